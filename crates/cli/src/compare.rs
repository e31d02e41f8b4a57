//! `anysched compare`: two experiments, or their results, side by side.

use crate::args::{CompareArgs, Format};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use crate::run::interrupted;
use anysched_lab::Experiment;
use anysched_lab::compare::{Comparison, RUNS, RunTable};
use anysched_lab::output as formats;
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (a, b) = (Side::of(&args.a, args)?, Side::of(&args.b, args)?);
    let b = match (&a, b) {
        (Side::Experiment(first), Side::Experiment(second)) => {
            Side::Experiment(Box::new(second.with_tasks_of(first)))
        }
        (_, b) => b,
    };
    let cancel = output::cancel_on_interrupt()?;
    let a = a.runs(&args.a, args, cancel)?;
    let b = b.runs(&args.b, args, cancel)?;
    let (pairs, alone) = matched(&a, &b);
    if pairs.is_empty() {
        return Err(Failure::from(format!("no experiment is in both: {}", alone.join("; "))));
    }
    let mut texts = Vec::new();
    for (a, b) in pairs {
        let comparison = Comparison::of(a, b, &args.metric)?;
        texts.push(match args.format {
            Format::Table => formats::comparison_table(&comparison),
            Format::Json => formats::comparison_json(&comparison),
            Format::Csv => formats::comparison_csv(&comparison),
        });
    }
    output::print(&joined(args.format, &texts))?;
    for line in alone {
        eprintln!("anysched: {line}");
    }
    Ok(())
}

/// The texts of several comparisons as one.
fn joined(format: Format, texts: &[String]) -> String {
    match format {
        Format::Json if texts.len() > 1 => {
            let each: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
            format!("[{}]\n", each.join(",\n"))
        }
        _ => texts.join("\n"),
    }
}

/// What is compared with what: experiments of the same name, or the only ones. The rest in words.
fn matched<'a>(
    a: &'a [RunTable],
    b: &'a [RunTable],
) -> (Vec<(&'a RunTable, &'a RunTable)>, Vec<String>) {
    if let ([a], [b]) = (a, b) {
        return (vec![(a, b)], Vec::new());
    }
    let partner = |table: &RunTable, others: &'a [RunTable]| {
        others.iter().find(|other| other.experiment == table.experiment)
    };
    let pairs = a.iter().filter_map(|table| Some((table, partner(table, b)?))).collect();
    let first = a.iter().filter(|table| partner(table, b).is_none());
    let second = b.iter().filter(|table| partner(table, a).is_none());
    let alone = first.chain(second).map(|table| format!("only one side has {}", table.name));
    (pairs, alone.collect())
}

/// One of the two.
enum Side {
    Experiment(Box<Experiment>),
    Results(Vec<RunTable>),
}

impl Side {
    fn of(path: &Path, args: &CompareArgs) -> Result<Side, Failure> {
        let is_file_of_runs = path.to_string_lossy().ends_with(RUNS);
        if !path.is_dir() && !is_file_of_runs {
            let experiment = Experiment::load(path).map_err(Failure::pointing)?;
            let experiment = choose::changed(experiment, &args.policy, &args.set)?;
            return Ok(Side::Experiment(Box::new(match args.seeds {
                Some(seeds) => experiment.with_seeds(seeds),
                None => experiment,
            })));
        }
        Ok(Side::Results(match path.is_dir() {
            true => RunTable::of_folder(path)?,
            false => vec![RunTable::read(path)?],
        }))
    }

    /// The runs, which are made if it is an experiment.
    fn runs(
        self,
        path: &Path,
        args: &CompareArgs,
        cancel: &AtomicBool,
    ) -> Result<Vec<RunTable>, Failure> {
        let experiment = match self {
            Side::Results(tables) => return Ok(tables),
            Side::Experiment(experiment) => experiment,
        };
        let plan = choose::plan(&experiment)?;
        let host = hosts::open(args.host.host);
        plan.require(args.host.host)?;
        let results = with_bar(&*host, args.jobs, cancel, None, |options| plan.run(options))?;
        if !results.complete {
            return Err(interrupted(&results, None));
        }
        Ok(vec![RunTable::of(&results, &path.display().to_string())])
    }
}
