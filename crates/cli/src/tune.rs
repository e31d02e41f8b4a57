//! `anysched tune`.

use crate::args::{ListFormat, TuneArgs};
use crate::output::{self, Failure};
use crate::progress::with_bar;
use anysched_lab::output as formats;
use anysched_lab::tune::{Arriving, Objective, TuneError, Tuning};
use anysched_workload::dist::Dist;
use std::path::Path;

/// Tasks of a run unless told otherwise.
const TASKS: u64 = 2000;

pub fn tune(args: &TuneArgs) -> Result<(), Failure> {
    let tuning = tuning(args)?;
    let cancel = output::cancel_on_interrupt()?;
    let tuned = with_bar(args.jobs, cancel, |options| tuning.tune(options));
    let tuned = tuned.map_err(|error| match error {
        TuneError::Setting { key, value, why } => format!("--{key} {value}: {why}"),
        TuneError::Run(error) => error.to_string(),
    })?;
    output::print(&match args.format {
        ListFormat::Table => formats::tuned_table(&tuned),
        ListFormat::Json => formats::tuned_json(&tuned),
        ListFormat::Markdown => formats::tuned_markdown(&tuned),
    })?;
    if tuned.complete {
        return Ok(());
    }
    eprintln!("anysched: interrupted; {} rows are complete", tuned.rows.len());
    Err(Failure::Interrupted)
}

fn tuning(args: &TuneArgs) -> Result<Tuning, Failure> {
    let service = Dist::parse(&args.service, Path::new(""))
        .map_err(|error| Failure::from(format!("--service {error}")))?;
    let arriving = if args.batch { Arriving::Batch } else { Arriving::Load(args.load) };
    if matches!(arriving, Arriving::Load(load) if load >= 1.0) && args.tasks.is_none() {
        return Err(Failure::from(format!(
            "--load {}: from 1 on the queue grows for as long as tasks come, so that the result \
             is about their number; stay below 1, or give the number with --tasks",
            args.load
        )));
    }
    let objective = match args.objective {
        crate::args::ObjectiveName::Mean => Objective::Mean,
        crate::args::ObjectiveName::P99 => Objective::P99,
    };
    Ok(Tuning {
        service,
        arriving,
        tasks: args.tasks.unwrap_or(TASKS),
        cpus: args.cpus.into(),
        objective,
        seeds: args.seeds,
        seed: args.seed,
        policies: args.policy.clone(),
    })
}
