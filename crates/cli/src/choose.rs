//! From the command line to a plan.

use crate::args::Selection;
use crate::hosts;
use crate::output::Failure;
use anysched_core::recorder::LogReader;
use anysched_host::{Host, HostInfo, Watch};
use anysched_lab::look::Source;
use anysched_lab::{Experiment, Plan};
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

/// Reads the experiment and changes what the command line says.
pub fn experiment(selection: &Selection) -> Result<Experiment, Failure> {
    with_seeds(selection, None)
}

/// Reads an experiment as it is: its file, a built-in one by name, or `-` for standard input.
pub fn read(file: &Path) -> Result<Experiment, Failure> {
    let experiment = match file.as_os_str() == "-" {
        true => Experiment::read_from(&mut std::io::stdin().lock()),
        false => Experiment::load(file),
    };
    experiment.map_err(Failure::pointing)
}

/// Takes these policies, if there are any, and changes what `--set` says.
pub fn changed(
    experiment: Experiment,
    policies: &[String],
    settings: &[String],
) -> Result<Experiment, Failure> {
    let policies = policies.to_vec();
    Changes { policies, settings: pairs(settings)?, ..Changes::default() }.apply(experiment)
}

/// What the command line changes of an experiment.
#[derive(Debug, Default)]
pub struct Changes {
    /// Policies by name or label; none: those of the file.
    pub policies: Vec<String>,
    /// Keys and their values.
    pub settings: Vec<(String, String)>,
    /// Keys and what they vary over.
    pub axes: Vec<(String, Vec<String>)>,
    /// What there are rows for besides those of all.
    pub by: Vec<String>,
    /// Another number of seeds.
    pub seeds: Option<u32>,
}

impl Changes {
    /// Errors: what `--set` or `--sweep` says cannot be read.
    pub fn of(selection: &Selection, seeds: Option<u32>) -> Result<Changes, Failure> {
        Ok(Changes {
            policies: selection.policy.clone(),
            settings: pairs(&selection.set)?,
            axes: axes(&selection.sweep)?,
            by: selection.by.clone(),
            seeds,
        })
    }

    /// Changes it, in the order of the fields.
    pub fn apply(&self, experiment: Experiment) -> Result<Experiment, Failure> {
        let mut changed = Ok(experiment);
        if !self.policies.is_empty() {
            changed = changed.and_then(|it| it.with_policies(&texts(&self.policies)));
        }
        for (key, value) in &self.settings {
            changed = changed.and_then(|it| it.with_setting(key, value));
        }
        for (key, values) in &self.axes {
            changed = changed.and_then(|it| it.with_axis(key, &texts(values)));
        }
        if !self.by.is_empty() {
            changed = changed.and_then(|it| it.with_rows_by(&texts(&self.by)));
        }
        let changed = changed.map_err(Failure::pointing)?;
        Ok(match self.seeds {
            Some(seeds) => changed.with_seeds(seeds),
            None => changed,
        })
    }
}

fn texts(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// What `--set` says.
fn pairs(settings: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |setting: &String| {
        let (key, value) = setting.split_once('=').unwrap_or_default();
        let (key, value) = (key.trim(), value.trim());
        let how = match key {
            "" => "it takes KEY=VALUE, for example quantum=10ms or machine.cpus=8",
            "policy" => "policies are chosen with --policy NAME,…",
            "seeds" => "their number is chosen with --seeds N",
            _ => return Ok((key.to_string(), from_here(value)?.into_owned())),
        };
        Err(Failure::from(format!("--set \"{setting}\": {how}")))
    };
    settings.iter().map(pair).collect()
}

/// What `--sweep` says.
fn axes(axes: &[String]) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let axis = |axis: &String| {
        let (key, values) = axis.split_once('=').unwrap_or_default();
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if key.trim().is_empty() || values.contains(&"") {
            return Err(Failure::from(format!(
                "--sweep \"{axis}\": it takes KEY=VALUE,…, for example machine.cpus=1,2,4"
            )));
        }
        Ok((key.trim().to_string(), values.into_iter().map(String::from).collect()))
    };
    axes.iter().map(axis).collect()
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
    Changes::of(selection, seeds)?.apply(read(&selection.file)?)
}

/// The plan of an experiment; what its loads leave out is said.
pub fn plan(experiment: &Experiment) -> Result<Plan, Failure> {
    let plan = experiment.plan().map_err(Failure::pointing)?;
    for warning in plan.warnings() {
        eprintln!("anysched: {warning}");
    }
    Ok(plan)
}

/// Checks that a plan has this group and this seed.
pub fn require_run(plan: &Plan, group: usize, seed: u32) -> Result<(), Failure> {
    if group >= plan.groups().len() {
        let last = plan.groups().len() - 1;
        let why = "as `anysched check` lists them";
        return Err(Failure::from(format!("--group {group}: they go from 0 to {last}, {why}")));
    }
    if seed >= plan.seeds() {
        let last = plan.seeds() - 1;
        return Err(Failure::from(format!("--seed {seed}: they go from 0 to {last}")));
    }
    Ok(())
}

/// What is looked into: runs of an experiment, or a log of decisions.
pub enum Looked {
    /// Runs of a group and a seed by all policies of a plan.
    Runs { plan: Box<Plan>, host: Box<dyn Host>, group: usize, seed: u32 },
    /// Logs, each with its name.
    Logs(Vec<(String, Vec<u8>)>),
}

/// How a log begins.
const LOG: &[u8] = b"anysched";

impl Looked {
    /// Opens an experiment, or a log if the file is one. Runs on hosts whose policies cannot be
    /// asked in this process are made once, and recorded.
    pub fn open(
        selection: &Selection,
        host: &HostInfo,
        group: usize,
        seed: u32,
    ) -> Result<Looked, Failure> {
        if is_log(&selection.file) {
            let Selection { file, policy, set, sweep, .. } = selection;
            let unused = [("--policy", policy), ("--set", set), ("--sweep", sweep)];
            if let Some((name, _)) = unused.iter().find(|(_, given)| !given.is_empty()) {
                let file = file.display();
                return Err(format!(
                    "{name}: {file} is a log, which names its policy and parameters itself"
                )
                .into());
            }
            return Looked::log(file);
        }
        let experiment = experiment(selection)?;
        let plan = plan(&experiment)?;
        require_run(&plan, group, seed)?;
        plan.require(host)?;
        let (opened, plan) = (hosts::open(host), Box::new(plan));
        if host.capabilities.observed {
            return Ok(Looked::Runs { plan, host: opened, group, seed });
        }
        let recorded = (0..plan.policies().len()).map(|policy| {
            let watch = Watch { record: true, ..Watch::default() };
            let outcome = plan.run_one(&*opened, group, policy, seed, watch)?;
            let label = &plan.policies()[policy].label;
            Ok((format!("{label} on {}", host.name), outcome.only_log()?.to_vec()))
        });
        Ok(Looked::Logs(recorded.collect::<Result<_, Failure>>()?))
    }

    /// Opens a log.
    pub fn log(file: &Path) -> Result<Looked, Failure> {
        let name = file.display().to_string();
        let log =
            std::fs::read(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
        LogReader::new(&log).map_err(|error| format!("{name}: {error}"))?;
        Ok(Looked::Logs(vec![(name, log)]))
    }

    /// All of it.
    fn sources(&self) -> Vec<Source<'_>> {
        match self {
            Looked::Runs { plan, host, group, seed } => {
                let (group, seed) = (*group, *seed);
                let source = |policy| Source::Run { plan, host: &**host, group, policy, seed };
                (0..plan.policies().len()).map(source).collect()
            }
            Looked::Logs(logs) => {
                logs.iter().map(|(name, log)| Source::Log { name, log }).collect()
            }
        }
    }

    /// The labels of the policies, for errors.
    fn labels(&self) -> Result<String, Failure> {
        let labels = self.sources().into_iter().map(|source| source.label());
        Ok(labels.collect::<Result<Vec<_>, _>>()?.join(", "))
    }

    /// The only one.
    pub fn only(&self) -> Result<Source<'_>, Failure> {
        match self.sources()[..] {
            [source] => Ok(source),
            _ => Err(format!("--policy: it takes one policy, of {}", self.labels()?).into()),
        }
    }

    /// Both.
    pub fn both(&self) -> Result<[Source<'_>; 2], Failure> {
        match self.sources()[..] {
            [a, b] => Ok([a, b]),
            [_] => Err(format!(
                "there is only {}: it takes two policies, --policy A,B, or two logs",
                self.labels()?
            )
            .into()),
            _ => Err(format!("--policy: it takes two policies, A,B, of {}", self.labels()?).into()),
        }
    }
}

/// Whether a file is a log of decisions.
pub fn is_log(file: &Path) -> bool {
    let mut start = [0; LOG.len()];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *LOG
}
