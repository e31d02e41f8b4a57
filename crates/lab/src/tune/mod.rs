//! The parameters of a policy that suit a load best, and how far it is then from the best policy
//! there is. [`Grid`] searches given values for an experiment file; the rest is about single loads.
//!
//! *Searched*: the parameters that policies say can be ([`PolicyInfo::spaces`]), in the bounds that
//! stand there.
//!
//! *Objective*: the [`Objective`] of a run, averaged over seeds. Each parameter set gets the same
//! tasks for the same seed, so that two are compared by their paired differences.
//!
//! *Budget*: a coarse grid is thinned by successive halving (a quarter of the seeds for all, twice
//! as many for the best quarter, until the best few have all seeds); of those that are then as
//! good as the best one, the simplest is refined parameter by parameter, in at most
//! [`space::MOVES`] moves for each of two steps. [`space::budget`] bounds the runs.
//!
//! *Result*: a row for each tuned policy, and for each that is a [`Baseline`], measured with as
//! many other seeds, so that what a search owes to its seeds does not count.
//!
//! [`PolicyInfo::spaces`]: anysched_core::registry::PolicyInfo::spaces
//! [`Baseline`]: anysched_core::tuning::Baseline

mod evaluate;
mod grid;
mod results;
mod search;
pub mod space;
#[cfg(test)]
mod tests;

pub use grid::{Grid, GridKind, GridLine, GridRequest, GridRow, GridTuned};
pub use results::{Tuned, TunedRow};

use crate::plan::run::{RunError, RunOptions};
use crate::plan::workers::Workers;
use anysched_workload::dist::Dist;
use evaluate::{Bench, Purpose, Scores};
use search::Search;
use space::{Candidate, Space};
use std::cell::Cell;
use std::fmt;

/// What a policy is tuned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The mean turnaround of the tasks of a run.
    Mean,
    /// The 99th percentile of the turnaround of the tasks of a run.
    P99,
}

impl Objective {
    /// Both.
    pub const ALL: [Objective; 2] = [Objective::Mean, Objective::P99];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Mean => "mean",
            Objective::P99 => "p99",
        }
    }
}

/// When tasks arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arriving {
    /// All at once.
    Batch,
    /// As a Poisson process that keeps this part of all CPUs busy; above 0.
    Load(f64),
}

impl fmt::Display for Arriving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arriving::Batch => f.write_str("batch"),
            Arriving::Load(load) => write!(f, "load {load}"),
        }
    }
}

/// What is tuned, and for which load.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// CPU time of each task; its mean is above 0.
    pub service: Dist,
    /// When tasks arrive.
    pub arriving: Arriving,
    /// Tasks of a run; at least 1.
    pub tasks: u64,
    /// CPUs of the machine, 1 to 1024.
    pub cpus: usize,
    /// What is minimised.
    pub objective: Objective,
    /// Runs of a parameter set in the search, and again in the comparison; at least 2.
    pub seeds: u32,
    /// What the seeds of the runs derive from.
    pub seed: u64,
    /// The policies that are tuned, of those in [`space::policies`].
    pub policies: Vec<String>,
}

/// Why nothing could be tuned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuneError {
    /// A field of [`Tuning`] has a value that cannot be.
    Setting {
        /// The field.
        key: &'static str,
        /// What it was.
        value: String,
        /// What would be right.
        why: String,
    },
    /// A run could not be finished.
    Run(RunError),
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuneError::Setting { key, value, why } => write!(f, "{key} {value}: {why}"),
            TuneError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TuneError {}

impl Tuning {
    /// Tunes, and compares the outcome. After a cancellation, the rows that are complete.
    ///
    /// The same [`Tuning`] gives the same result, to the last bit, whatever `options.jobs` is.
    ///
    /// Errors: a field of no use; a run that could not be finished.
    pub fn tune(&self, options: &RunOptions<'_>) -> Result<Tuned, TuneError> {
        let bench = Bench::new(self)?;
        let spaces = self.spaces()?;
        let baselines = space::baselines(bench.mean());
        let seeds = self.seeds as usize;
        let budgets = spaces.iter().map(|space| space::budget(space, seeds) + seeds);
        let counter = Counter {
            options,
            total: baselines.len() * seeds + budgets.sum::<usize>(),
            before: Cell::new(0),
        };
        let workers = Workers { jobs: options.jobs, cancel: options.cancel };
        let mut tuned = Tuned { tuning: self.clone(), rows: Vec::new(), complete: false };
        for (label, candidate) in baselines {
            let Some(scores) = compare(&bench, workers, &counter, &label, &candidate)? else {
                return Ok(tuned);
            };
            tuned.rows.push(TunedRow::new(label, candidate, None, scores));
        }
        for space in &spaces {
            let (label, start) = (space.label(), counter.before.get());
            let search = Search::new(*space, self.objective, &bench, workers, &counter);
            let Some((candidate, runs)) = search.run()? else { return Ok(tuned) };
            counter.before.set(start + space::budget(space, seeds));
            let Some(scores) = compare(&bench, workers, &counter, &label, &candidate)? else {
                return Ok(tuned);
            };
            tuned.rows.push(TunedRow::new(label, candidate, Some(runs), scores));
        }
        tuned.complete = true;
        Ok(tuned)
    }

    fn spaces(&self) -> Result<Vec<Space>, TuneError> {
        for name in &self.policies {
            if !space::policies().contains(&name.as_str()) {
                let why = format!("only {} can be tuned", space::policies().join(" and "));
                return Err(TuneError::Setting { key: "policy", value: name.clone(), why });
            }
        }
        let wanted = |space: &Space| self.policies.iter().any(|name| name == space.policy.name);
        Ok(space::spaces().into_iter().filter(wanted).collect())
    }
}

/// Runs with the seeds that no search sees; `None` after a cancellation.
fn compare(
    bench: &Bench,
    workers: Workers<'_>,
    counter: &Counter<'_>,
    label: &str,
    candidate: &Candidate,
) -> Result<Option<Scores>, TuneError> {
    let wanted: Vec<_> =
        (0..bench.seeds()).map(|index| (candidate, bench.seed(Purpose::Compare, index))).collect();
    bench.run(workers, counter, label, &wanted)
}

/// Adds up the runs of all searches and comparisons.
struct Counter<'a> {
    options: &'a RunOptions<'a>,
    total: usize,
    /// Runs before those that are under way; a search that needs fewer than its budget jumps.
    before: Cell<usize>,
}
