//! From the command line to a plan.

use crate::args::Selection;
use crate::output::Failure;
use anysched_lab::{Experiment, Plan};
use std::borrow::Cow;

/// Reads the experiment and changes what the command line says.
pub fn experiment(selection: &Selection) -> Result<Experiment, Failure> {
    let experiment = match selection.file.as_os_str() == "-" {
        true => Experiment::read_from(&mut std::io::stdin().lock()),
        false => Experiment::load(&selection.file),
    };
    let experiment = experiment.map_err(Failure::pointing)?;
    let changed = changed(experiment, &selection.policy, &selection.set)?;
    let swept = swept(changed, &selection.sweep)?;
    if selection.by.is_empty() {
        return Ok(swept);
    }
    let parts: Vec<&str> = selection.by.iter().map(String::as_str).collect();
    swept.with_rows_by(&parts).map_err(Failure::pointing)
}

/// Takes these policies, if there are any, and changes what `--set` says.
pub fn changed(
    mut experiment: Experiment,
    policies: &[String],
    settings: &[String],
) -> Result<Experiment, Failure> {
    if !policies.is_empty() {
        let names: Vec<&str> = policies.iter().map(String::as_str).collect();
        experiment = experiment.with_policies(&names).map_err(Failure::pointing)?;
    }
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap_or_default();
        let (key, value) = (key.trim(), value.trim());
        let how = match key {
            "" => "it takes KEY=VALUE, for example quantum=10ms or machine.cpus=8",
            "policy" => "policies are chosen with --policy NAME,…",
            "seeds" => "their number is chosen with --seeds N",
            _ => {
                let value = from_here(value)?;
                experiment = experiment.with_setting(key, &value).map_err(Failure::pointing)?;
                continue;
            }
        };
        return Err(Failure::from(format!("--set \"{setting}\": {how}")));
    }
    Ok(experiment)
}

/// Varies what `--sweep` says.
fn swept(mut experiment: Experiment, axes: &[String]) -> Result<Experiment, Failure> {
    for axis in axes {
        let (key, values) = axis.split_once('=').unwrap_or_default();
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if key.trim().is_empty() || values.contains(&"") {
            return Err(Failure::from(format!(
                "--sweep \"{axis}\": it takes KEY=VALUE,…, for example machine.cpus=1,2,4"
            )));
        }
        experiment = experiment.with_axis(key.trim(), &values).map_err(Failure::pointing)?;
    }
    Ok(experiment)
}

/// A value that is in a file, with the file's full name: one on the command line is meant from the
/// working directory, one in an experiment from there.
fn from_here(value: &str) -> Result<Cow<'_, str>, Failure> {
    let Some(file) = value.strip_prefix('@') else { return Ok(value.into()) };
    let full = std::path::absolute(file)
        .map_err(|error| Failure::from(format!("--set \"…={value}\": {error}")))?;
    Ok(format!("@{}", full.display()).into())
}

/// As [`experiment`], with another number of seeds if there is one.
pub fn with_seeds(selection: &Selection, seeds: Option<u32>) -> Result<Experiment, Failure> {
    let experiment = experiment(selection)?;
    Ok(match seeds {
        Some(seeds) => experiment.with_seeds(seeds),
        None => experiment,
    })
}

/// The plan of an experiment; what its loads leave out is said.
pub fn plan(experiment: &Experiment) -> Result<Plan, Failure> {
    let plan = experiment.plan().map_err(Failure::pointing)?;
    for warning in plan.warnings() {
        eprintln!("anysched: {warning}");
    }
    Ok(plan)
}
