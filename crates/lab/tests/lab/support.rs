//! What tests of experiments have in common.

use anysched_lab::{Experiment, Plan, RunOptions};
use anysched_sim::Simulator;
use std::path::Path;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Runs in the simulator, two at a time; nothing cancels them, is kept of them or hears of them.
pub const SIMULATED: RunOptions<'static> =
    RunOptions { host: &Simulator, jobs: 2, cancel: &NEVER, journal: None, progress: &|_| {} };

/// An experiment as if it stood in `file`.
pub fn experiment(file: &str, text: &str) -> Experiment {
    Experiment::parse(text, Path::new(file)).unwrap_or_else(|error| panic!("{}", error.to_plain()))
}

pub fn plan(experiment: &Experiment) -> Plan {
    experiment.plan().unwrap_or_else(|error| panic!("{}", error.to_plain()))
}
