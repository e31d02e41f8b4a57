//! What is counted and measured during a run.

use anysched_core::machine::Cpu as Place;
use anysched_core::{Span, TaskId, Time};
use anysched_measure::{Apart, Metrics};
use anysched_workload::Measured;

use super::parts::Parts;
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
    /// What is measured of some of the tasks, if anything is.
    parts: Option<Box<Parts>>,
}

impl Account {
    pub(super) fn new() -> Account {
        let metrics = Metrics::from_zero();
        Account { metrics, ready: 0, running: 0, on_exit: None, parts: None }
    }

    pub(super) fn on_exit(&mut self, take: OnExit) {
        self.on_exit = Some(take);
    }

    pub(super) fn measure_apart(&mut self, apart: Apart) {
        self.parts = apart.any().then(|| Box::new(Parts::new(apart)));
    }

    /// What is measured of some of the tasks.
    pub(super) fn apart(&self) -> Apart {
        self.parts.as_ref().map_or(Apart::default(), |parts| parts.apart())
    }

    /// Records something that happened to `task`.
    #[inline]
    pub(super) fn of(&mut self, task: TaskId, record: impl Fn(&mut Metrics)) {
        record(&mut self.metrics);
        if let Some(parts) = &mut self.parts {
            parts.of(task, record);
        }
    }

    /// A task of a benchmark says what it measured.
    pub(super) fn measured(&mut self, id: TaskId, measured: Measured) {
        self.of(id, |metrics| metrics.benchmark.record(measured));
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

    /// A task, which is of this load of several, has arrived.
    pub(super) fn arrived(
        &mut self,
        id: TaskId,
        serial: u64,
        name: Option<&str>,
        part: usize,
        at: Time,
    ) {
        if let Some(parts) = &mut self.parts {
            parts.arrived(id, serial, name, part);
        }
        self.of(id, |metrics| {
            metrics.tasks += 1;
            metrics.first_arrival.get_or_insert(at);
        });
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
    pub(super) fn dispatched(&mut self, id: TaskId, switched: bool) {
        self.of(id, |metrics| {
            metrics.dispatches += 1;
            metrics.context_switches += u64::from(switched);
        });
        self.ready -= 1;
        self.running += 1;
    }

    /// A task was on its CPU for this long. Of the whole machine, its CPUs know.
    #[inline]
    pub(super) fn used(&mut self, id: TaskId, time: Span) {
        if let Some(parts) = &mut self.parts {
            parts.of(id, |metrics| metrics.busy += time);
        }
    }

    /// A running task left its CPU; `runnable`: it remains ready.
    #[inline]
    pub(super) fn left_cpu(&mut self, id: TaskId, now: Time, runnable: bool) {
        self.running -= 1;
        self.ready += u64::from(runnable);
        self.of(id, |metrics| metrics.last_completion = now);
    }

    /// A task has waited for a CPU; `woken`: since it was woken.
    #[inline]
    pub(super) fn waited(&mut self, id: TaskId, waited: Span, woken: bool) {
        self.of(id, |metrics| match woken {
            true => metrics.wakeup_latency.record(waited.0),
            false => metrics.runqueue_wait.record(waited.0),
        });
    }

    pub(super) fn migrated(&mut self, id: TaskId, from: &Place, to: &Place) {
        self.of(id, |metrics| {
            metrics.migrations += 1;
            metrics.migrations_llc += u64::from(from.llc != to.llc);
            metrics.migrations_node += u64::from(from.node != to.node);
        });
    }

    pub(super) fn exited(&mut self, id: TaskId, task: &Task, now: Time) {
        let turnaround = now.since(task.arrival);
        let waiting = turnaround.saturating_sub(task.service).saturating_sub(task.blocked);
        self.of(id, |metrics| {
            metrics.completed += 1;
            metrics.turnaround.record(turnaround.0);
            metrics.response_time.record(task.first_run.since(task.arrival).0);
            metrics.waiting_time.record(waiting.0);
            if task.service > Span::ZERO {
                metrics.slowdown.record(turnaround.scaled(1_000_000, task.service.0).0);
            }
        });
        if let Some(parts) = &mut self.parts {
            parts.forget(id);
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
    pub(super) fn completed_job(&mut self, id: TaskId, job: Job, now: Time) {
        self.of(id, |metrics| {
            metrics.job_response_time.record(now.since(job.release).0);
            if job.deadline != Time::NEVER {
                metrics.deadline_misses += u64::from(now > job.deadline);
                metrics.tardiness.record(now.since(job.deadline).0);
            }
        });
    }

    /// The run ends while this task is there. Its job, if it is open, counts as late if it already
    /// is, by its lateness so far; otherwise nothing is known of it.
    pub(super) fn abandoned(&mut self, id: TaskId, task: &Task, now: Time) {
        let (job, counts) = (task.job, !task.vcpu);
        self.of(id, |metrics| {
            metrics.unfinished += u64::from(counts);
            if job.deadline != Time::NEVER && job.deadline < now {
                metrics.deadline_misses += 1;
                metrics.tardiness.record(now.since(job.deadline).0);
            }
        });
    }

    /// The run is over.
    pub(super) fn finish(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.metrics.parts = parts.finish();
        }
        let parts = self.metrics.parts.iter_mut().map(|part| &mut part.inside);
        parts.for_each(add_wakeups);
        add_wakeups(&mut self.metrics);
    }
}

/// Waits after wake-ups have been recorded in one place only.
fn add_wakeups(metrics: &mut Metrics) {
    metrics.runqueue_wait.merge(&metrics.wakeup_latency);
}
