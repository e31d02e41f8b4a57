//! Where tasks of a load ran after they were woken, on several CPUs.

use super::decisions::{Decisions, Tasks};
use super::figures::Figures;
use super::row::Tolerance;
use crate::run::Failed;
use std::path::Path;

/// What is read from a trace.
pub const QUANTITIES: [&str; 4] = [
    "to the previous CPU, %",
    "to the waker's CPU, %",
    "to a busy CPU, %",
    "to a busy CPU while another was idle, %",
];

/// Counts may be off by more than on one CPU, as CPUs of the emulator take turns.
pub fn tolerance(quantity: &str) -> Tolerance {
    match quantity {
        share if share.ends_with(", %") => Tolerance::Points(5.0),
        time if time.contains("_ns") => Tolerance::of(time),
        _ => Tolerance::Count { percent: 15.0, few: 5.0 },
    }
}

/// The figures of a trace: of wake-ups of tasks of the load, which in a kernel are not alone.
pub fn figures(load: &str, policy: &str, trace: &Path, kernel: bool) -> Result<Figures, Failed> {
    let tasks = if kernel { Tasks::Numbered } else { Tasks::All };
    let decisions = Decisions::of(trace, tasks, 0)
        .map_err(|Failed(why)| Failed(format!("the trace of \"{load}\" under {policy}: {why}")))?;
    let figures = [
        "share_to_previous_cpu",
        "share_to_wakers_cpu",
        "share_to_busy_cpu",
        "share_to_busy_cpu_while_another_was_idle",
    ];
    let all = QUANTITIES.into_iter().zip(figures.map(|name| decisions.percent(name)));
    let key = |quantity: &str| (load.to_string(), policy.to_string(), quantity.to_string());
    Ok(all.filter_map(|(quantity, figure)| Some((key(quantity), figure?))).collect())
}
