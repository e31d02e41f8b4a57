//! Where tasks of a load ran after they were woken, on several CPUs.

use super::counts::is_task;
use super::figures::Figures;
use super::row::Tolerance;
use crate::run::Failed;
use anysched_core::Span;
use anysched_workload::import::ftrace::{Decisions, Recording, Softirqs};

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
pub fn figures(load: &str, policy: &str, trace: &str, kernel: bool) -> Result<Figures, Failed> {
    let recording = Recording::read(trace.as_bytes())
        .map_err(|error| Failed(format!("the trace of \"{load}\" under {policy}: {error}")))?;
    let replay = recording.replay(Softirqs::default());
    let is_meant = |task: usize| {
        // The importer adds a pid to the name.
        let name = replay.model.tasks[task].new.name.as_deref().unwrap_or_default();
        !kernel || name.rsplit_once('-').is_some_and(|(name, _)| is_task(name))
    };
    let decisions = Decisions::of(&replay, recording.cpus(), Span::ZERO, is_meant);
    let percent = |part: u64| decisions.share(part).map(|share| share * 100.0);
    let figures = [
        percent(decisions.to_previous),
        decisions.share_to_waker().map(|share| share * 100.0),
        percent(decisions.to_busy),
        percent(decisions.past_idle),
    ];
    let all = QUANTITIES.into_iter().zip(figures);
    let key = |quantity: &str| (load.to_string(), policy.to_string(), quantity.to_string());
    Ok(all.filter_map(|(quantity, figure)| Some((key(quantity), figure?))).collect())
}
