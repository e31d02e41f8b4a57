//! `anysched tune`.

use crate::args::{ListFormat, ObjectiveName, TuneArgs};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use anysched_lab::tune::{Arriving, GridRequest, Objective, TuneError, Tuning, space};
use anysched_lab::{Experiment, output as formats};
use anysched_workload::dist::Dist;
use std::path::Path;

/// Defaults.
const TASKS: u64 = 2000;
const LOAD: f64 = 0.9;
const SEEDS: u32 = 20;

pub fn tune(args: &TuneArgs) -> Result<(), Failure> {
    let service = match (&args.file, &args.service) {
        (Some(file), _) => return tune_file(args, file),
        (None, service) => service.as_deref().unwrap_or_default(),
    };
    let tuning = tuning(args, service)?;
    let cancel = output::cancel_on_interrupt()?;
    let host = hosts::open(args.host.host);
    let tuned = with_bar(&*host, args.jobs, cancel, None, |options| tuning.tune(options));
    let tuned = tuned.map_err(|error| match error {
        TuneError::Setting { key, value, why } => format!("--{key} {value}: {why}"),
        TuneError::Run(error) => error.to_string(),
    })?;
    output::print(&match args.format {
        ListFormat::Table => formats::tuned_table(&tuned),
        ListFormat::Json => formats::tuned_json(&tuned),
        ListFormat::Markdown => formats::tuned_markdown(&tuned),
    })?;
    finish(tuned.complete, tuned.rows.len())
}

/// The command's result after it has printed `rows` rows.
fn finish(complete: bool, rows: usize) -> Result<(), Failure> {
    if complete {
        return Ok(());
    }
    eprintln!("anysched: interrupted; {rows} rows are complete");
    Err(Failure::Interrupted)
}

fn tuning(args: &TuneArgs, service: &str) -> Result<Tuning, Failure> {
    let service = Dist::parse(service, Path::new(""))
        .map_err(|error| Failure::from(format!("--service {error}")))?;
    let load = args.load.unwrap_or(LOAD);
    let arriving = if args.batch { Arriving::Batch } else { Arriving::Load(load) };
    if matches!(arriving, Arriving::Load(load) if load >= 1.0) && args.tasks.is_none() {
        return Err(Failure::from(format!(
            "--load {load}: from 1 on the queue grows for as long as tasks come, so that the \
             result is about their number; stay below 1, or give the number with --tasks"
        )));
    }
    let objective = match args.objective.unwrap_or(ObjectiveName::Mean) {
        ObjectiveName::Mean => Objective::Mean,
        ObjectiveName::P99 => Objective::P99,
    };
    let named = args.policy.iter().flat_map(|names| names.split(','));
    let mut policies: Vec<String> = named.map(str::to_string).collect();
    if policies.is_empty() {
        policies = space::policies().into_iter().map(str::to_string).collect();
    }
    Ok(Tuning {
        service,
        arriving,
        tasks: args.tasks.unwrap_or(TASKS),
        cpus: args.cpus.unwrap_or(1).into(),
        objective,
        seeds: args.seeds.unwrap_or(SEEDS),
        seed: args.seed.unwrap_or(1),
        policies,
    })
}

/// Searches given values for an experiment.
fn tune_file(args: &TuneArgs, file: &Path) -> Result<(), Failure> {
    let request = request(args)?;
    let mut experiment = Experiment::load(file).map_err(Failure::pointing)?;
    experiment = choose::changed(experiment, &[], &args.set)?;
    if let Some(seed) = args.seed {
        let seeded = experiment.with_setting("seed", &seed.to_string());
        experiment = seeded.map_err(Failure::pointing)?;
    }
    if let Some(seeds) = args.seeds {
        experiment = experiment.with_seeds(seeds);
    }
    let grid = experiment.grid(&request).map_err(Failure::pointing)?;
    for warning in grid.warnings() {
        eprintln!("anysched: {warning}");
    }
    let cancel = output::cancel_on_interrupt()?;
    let host = hosts::open(args.host.host);
    let tuned = with_bar(&*host, args.jobs, cancel, None, |options| grid.run(options))?;
    output::print(&match args.format {
        ListFormat::Table => formats::grid_table(&tuned),
        ListFormat::Json => formats::grid_json(&tuned),
        ListFormat::Markdown => formats::grid_markdown(&tuned),
    })?;
    finish(tuned.complete, tuned.rows.len())
}

fn request(args: &TuneArgs) -> Result<GridRequest, Failure> {
    let refused = [
        (args.service.is_some(), "--service", "workload.0.service=\"exp(10ms)\""),
        (args.load.is_some(), "--load", "workload.0.load=0.9"),
        (args.batch, "--batch", "workload.0.kind=batch"),
        (args.tasks.is_some(), "--tasks", "workload.0.tasks=2000"),
        (args.cpus.is_some(), "--cpus", "machine.cpus=4"),
    ];
    if let Some((_, flag, set)) = refused.into_iter().find(|(given, ..)| *given) {
        return Err(Failure::from(format!(
            "{flag}: the experiment file says that; change it there, or for example with --set \
             '{set}'"
        )));
    }
    if args.objective.is_some() {
        return Err(Failure::from(
            "--objective: for an experiment file say the column with --metric, for example \
             --metric turnaround_ns_p99",
        ));
    }
    let [policy] = args.policy.as_slice() else {
        return Err(Failure::from(format!(
            "--policy is given {} times; for an experiment file it is the label of the one policy \
             that is tuned",
            args.policy.len()
        )));
    };
    let Some(metric) = &args.metric else {
        return Err(Failure::from(
            "no --metric: say what is to be small, for example --metric turnaround_ns_mean, or \
             with --larger what is to be large",
        ));
    };
    if args.over.is_empty() {
        return Err(Failure::from(
            "no --over: say which values are tried, for example --over quantum=1ms,5ms,20ms",
        ));
    }
    let over = args.over.iter().map(|text| values(text)).collect::<Result<_, _>>()?;
    let (policy, metric) = (policy.clone(), metric.clone());
    Ok(GridRequest { policy, metric, over, larger: args.larger })
}

/// Parses a parameter and its values, separated by commas, or by `|` if there is one.
fn values(text: &str) -> Result<(String, Vec<String>), Failure> {
    let (key, list) = text.split_once('=').unwrap_or_default();
    let separator = if list.contains('|') { '|' } else { ',' };
    let values: Vec<String> = list.split(separator).map(|it| it.trim().to_string()).collect();
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(Failure::from(format!(
            "--over \"{text}\": it takes KEY=V1,V2,…, for example quantum=1ms,5ms, or \
             KEY=V1|V2 for values with commas"
        )));
    }
    Ok((key.trim().to_string(), values))
}
