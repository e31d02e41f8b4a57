//! What is counted and measured during a run.

use anysched_core::machine::Cpu as Place;
use anysched_core::{Span, Time};
use anysched_measure::Metrics;

use super::task::{Job, Task};

/// The result of a task that exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// How many tasks arrived before it.
    pub serial: u64,
    /// When it arrived.
    pub arrival: Time,
    /// When it first ran.
    pub first_run: Time,
    /// When it exited.
    pub completion: Time,
    /// The work it did, in ns of the fastest CPU.
    pub service: Span,
    /// The time it was blocked.
    pub blocked: Span,
}

/// Takes the results of tasks as they exit.
type OnExit = Box<dyn FnMut(&TaskResult)>;

/// The metrics of a run and the numbers of its tasks by state.
pub(super) struct Account {
    pub(super) metrics: Metrics,
    /// Tasks that are ready but not running.
    ready: u64,
    running: u64,
    on_exit: Option<OnExit>,
}

impl Account {
    pub(super) fn new() -> Account {
        Account { metrics: Metrics::from_zero(), ready: 0, running: 0, on_exit: None }
    }

    pub(super) fn on_exit(&mut self, take: OnExit) {
        self.on_exit = Some(take);
    }

    /// Tasks that are ready but not running.
    #[inline]
    pub(super) fn ready(&self) -> u64 {
        self.ready
    }

    #[inline]
    pub(super) fn running(&self) -> u64 {
        self.running
    }

    pub(super) fn arrived(&mut self, at: Time) {
        self.metrics.tasks += 1;
        self.metrics.first_arrival.get_or_insert(at);
    }

    #[inline]
    pub(super) fn became_ready(&mut self) {
        self.ready += 1;
    }

    /// A ready task was taken off its queue without being run.
    pub(super) fn withdrawn(&mut self) {
        self.ready -= 1;
    }

    /// A ready task was picked; `switched`: by a CPU that did not run it last.
    #[inline]
    pub(super) fn dispatched(&mut self, switched: bool) {
        self.metrics.dispatches += 1;
        self.metrics.context_switches += u64::from(switched);
        self.ready -= 1;
        self.running += 1;
    }

    /// A running task left its CPU; `runnable`: it remains ready.
    #[inline]
    pub(super) fn left_cpu(&mut self, now: Time, runnable: bool) {
        self.running -= 1;
        self.ready += u64::from(runnable);
        self.metrics.last_completion = now;
    }

    /// A task has waited for a CPU; `woken`: since it was woken.
    #[inline]
    pub(super) fn waited(&mut self, waited: Span, woken: bool) {
        if woken {
            self.metrics.wakeup_latency.record(waited.0);
        } else {
            self.metrics.runqueue_wait.record(waited.0);
        }
    }

    pub(super) fn migrated(&mut self, from: &Place, to: &Place) {
        self.metrics.migrations += 1;
        self.metrics.migrations_llc += u64::from(from.llc != to.llc);
        self.metrics.migrations_node += u64::from(from.node != to.node);
    }

    pub(super) fn exited(&mut self, task: &Task, now: Time) {
        let turnaround = now.since(task.arrival);
        let metrics = &mut self.metrics;
        metrics.completed += 1;
        metrics.turnaround.record(turnaround.0);
        metrics.response_time.record(task.first_run.since(task.arrival).0);
        let waiting = turnaround.saturating_sub(task.service).saturating_sub(task.blocked);
        metrics.waiting_time.record(waiting.0);
        if task.service > Span::ZERO {
            metrics.slowdown.record(turnaround.scaled(1_000_000, task.service.0).0);
        }
        if let Some(take) = &mut self.on_exit {
            take(&TaskResult {
                serial: task.serial,
                arrival: task.arrival,
                first_run: task.first_run,
                completion: now,
                service: task.service,
                blocked: task.blocked,
            });
        }
    }

    #[inline]
    pub(super) fn completed_job(&mut self, job: Job, now: Time) {
        self.metrics.job_response_time.record(now.since(job.release).0);
        if job.deadline != Time::NEVER {
            self.metrics.deadline_misses += u64::from(now > job.deadline);
            self.metrics.tardiness.record(now.since(job.deadline).0);
        }
    }

    /// The run ends while this job is open: it counts as late if it already is, by its lateness so
    /// far; otherwise nothing is known of it.
    pub(super) fn abandoned_job(&mut self, job: Job, now: Time) {
        if job.deadline != Time::NEVER && job.deadline < now {
            self.metrics.deadline_misses += 1;
            self.metrics.tardiness.record(now.since(job.deadline).0);
        }
    }
}
