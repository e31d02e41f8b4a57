//! The table of what every run is judged by.

use crate::benchmark::Benchmark;
use crate::table::{Scope, metrics};
use crate::total::Total;
use anysched_core::registry::Settings;
use anysched_core::{DomainId, Span, Time};
use std::sync::Arc;

metrics! {
    /// What was measured in a run. By default nothing was; a host sets what it measures.
    ///
    /// Times are in ns; `slowdown` and `fairness` are recorded in millionths.
    Metrics as METRICS;

    distributions {
        turnaround of Tasks => "turnaround_ns", "ns",
            "Completion − arrival, per task that exited.";
        response_time of Tasks => "response_time_ns", "ns",
            "First run − arrival, per task that exited.";
        waiting_time of Tasks => "waiting_time_ns", "ns",
            "Turnaround − service − time blocked, per task that exited.";
        slowdown of Tasks * 1e-6 => "slowdown", "1",
            "Turnaround ÷ service, per task that exited and had any service.";
        wakeup_latency of Tasks => "wakeup_latency_ns", "ns",
            "Run − wake, per wake-up.";
        runqueue_wait of Tasks => "runqueue_wait_ns", "ns",
            "Run − ready, per dispatch: after wake-ups, first runs and preemptions.";
        job_response_time of Tasks => "job_response_time_ns", "ns",
            "Completion − release, per job of tasks that have jobs.";
        tardiness of Tasks => "tardiness_ns", "ns",
            "Completion − deadline where positive, else 0, per job with a deadline that is done or \
             already late when the run ends.";
        round_trip of Tasks => "round_trip_ns", "ns",
            "Answered − sent, per message that was answered.";
        vcpu_wait of Tasks => "vcpu_wait_ns", "ns",
            "Run − ready of virtual CPUs, per dispatch: of this machine's, or of all in it.";
        fairness of Machine * 1e-6 => "fairness", "1",
            "Jain's index of CPU time by weight over the domains that wanted all of their CPUs all \
             the time, per second in which there were two or more.";
    }

    numbers {
        { |m| m.makespan().map(|span| span.0 as f64) } => "makespan_ns", "ns",
            "Last completion − first arrival.";
        { |m| ratio(m.deadline_misses.get()?, m.tardiness.count()) }
            => "deadline_miss_ratio", "1",
            "Jobs not done by their deadline, of those that tardiness is known of.";
        dispatches: Total<u64> [Machine] => "dispatches", "1",
            "Picks that gave a CPU a task.";
        context_switches: Total<u64> [Machine] => "context_switches", "1",
            "Dispatches of another task than the CPU ran before.";
        preemptions: Total<u64> [Machine] => "preemptions", "1",
            "Times a task was taken off because the policy asked for it.";
        migrations: Total<u64> [Machine] => "migrations", "1",
            "Dispatches on another CPU than the task ran on before.";
        migrations_llc: Total<u64> [Machine] => "migrations_llc", "1",
            "Migrations to another last-level cache.";
        migrations_node: Total<u64> [Machine] => "migrations_node", "1",
            "Migrations to another NUMA node.";
        tasks: Total<u64> [Tasks] => "tasks", "1",
            "Tasks that arrived.";
        completed: Total<u64> [Tasks] => "completed", "1",
            "Tasks that exited.";
        unfinished: Total<u64> [Tasks] => "unfinished", "1",
            "Tasks that were blocked, ready or running when the run ended.";
        busy: Total<Span> [Machine] => "busy_ns", "ns",
            "CPU time that tasks used, over all CPUs.";
        overhead: Total<Span> [Machine] => "overhead_ns", "ns",
            "CPU time that scheduling cost, over all CPUs.";
        spun: Total<Span> [Tasks] => "spun_ns", "ns",
            "CPU time that tasks used waiting for spin locks, which is part of the busy time.";
        { |m| m.stolen_from_all().map(|span| span.0 as f64) } => "stolen_ns", "ns",
            "Time for which virtual CPUs wanted to run but were not let: of this machine, and of \
             all in it.";
        { |m| ratio(m.busy.get()?.0, m.capacity()?.0) } => "utilisation", "1",
            "Busy time of the time that CPUs were in use for, stolen time included.";
        { |m| Some(m.completed.get()? as f64 * 1e9 / m.makespan()?.0 as f64) }
            => "throughput_per_s", "/s",
            "Tasks that exited, by makespan.";
    }

    inputs {
        deadline_misses: Total<u64> [Tasks], "Jobs not done by their deadline.";
        events: Total<u64> [Tasks], "Events that the simulator processed.";
        idle: Total<Span> [Machine], "CPU time that nobody used while CPUs were in use.";
        stolen: Total<Span> [Machine],
            "Time for which the CPUs of this machine wanted to run, but the host did not let them.";
    }

    kept {
        benchmark: Benchmark [Tasks by Benchmark::merge],
            "What benchmarks measured of themselves.";
        policy: Vec<(&'static str, u64)> [Machine by |all, more| all.extend_from_slice(more)],
            "What the policy counted of itself (see [`anysched_core::Scheduler::tally`]).";
        vms: Vec<VmMetrics> [Machine by |all, more| all.extend_from_slice(more)],
            "The virtual machines, in the order in which they were given.";
        parts: Vec<PartMetrics> [Machine by |all, more| merge_parts(all, more)],
            "What some of the tasks did, if that was to be measured.";
        first_arrival: Option<Time> [Tasks by |first, other| {
            *first = first.iter().chain(other.iter()).min().copied();
        }],
            "First arrival, if a task has arrived.";
        last_completion: Time [Tasks by |last, other| *last = (*last).max(*other)],
            "When a task last stopped running; of no meaning before the first arrival.";
    }
}

/// What a virtual machine got.
#[derive(Clone, Debug)]
pub struct VmMetrics {
    /// Its name.
    pub name: String,
    /// Its domain.
    pub domain: DomainId,
    /// What its own scheduler and tasks did. There, `busy`, `overhead`, `idle` and `stolen` add up
    /// to all the time that its CPUs existed.
    pub inside: Metrics,
    /// What its own scheduler has [learned](anysched_core::Scheduler::learned).
    pub learned: Settings,
}

/// What some of the tasks of a machine did. What belongs to its CPUs is not known of them.
#[derive(Clone, Debug)]
pub struct PartMetrics {
    /// Which tasks.
    pub part: Part,
    /// What they did: `busy` is the CPU time that they used.
    pub inside: Metrics,
}

/// Some of the tasks of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Those of one of its loads, by position.
    Load(usize),
    /// One of them.
    Task {
        /// How many had arrived before it.
        serial: u64,
        /// Its name, if it has one.
        name: Option<Arc<str>>,
    },
}

/// Which tasks are to be measured apart, besides all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Those of each load.
    pub loads: bool,
    /// Each of the first [`PART_TASKS`].
    pub tasks: bool,
}

impl Apart {
    /// What either of the two asks for.
    pub fn and(self, other: Apart) -> Apart {
        Apart { loads: self.loads | other.loads, tasks: self.tasks | other.tasks }
    }

    /// Whether anything is.
    pub fn any(self) -> bool {
        self.loads || self.tasks
    }
}

/// How many tasks of a machine can be measured apart.
pub const PART_TASKS: usize = 10_000;

/// Adds parts of another machine to the same parts of this one.
fn merge_parts(all: &mut Vec<PartMetrics>, more: &[PartMetrics]) {
    for (place, other) in more.iter().enumerate() {
        let is_it = |known: &PartMetrics| known.part == other.part;
        let known = match all.get(place).is_some_and(is_it) {
            true => all.get_mut(place),
            false => all.iter_mut().find(|known| is_it(known)),
        };
        match known {
            Some(known) => known.inside.merge(&other.inside),
            None => all.push(other.clone()),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Metrics {
    /// For a host that measures everything, before anything has happened: all counts and times are
    /// known to be 0.
    pub fn from_zero() -> Metrics {
        Metrics::zero()
    }

    /// For some of the tasks of a machine: what they do is known to be 0 so far, what its CPUs do
    /// is not known.
    pub fn of_tasks() -> Metrics {
        Metrics {
            overhead: Total::default(),
            idle: Total::default(),
            stolen: Total::default(),
            events: Total::default(),
            ..Metrics::zero()
        }
    }

    /// Last completion − first arrival; `None` if no task has arrived.
    pub fn makespan(&self) -> Option<Span> {
        Some(self.last_completion.since(self.first_arrival?))
    }

    /// All the time of its CPUs, of which a virtual machine may have got only a part.
    fn capacity(&self) -> Option<Span> {
        Some(self.busy.get()? + self.overhead.get()? + self.idle.get()? + self.stolen.get()?)
    }

    /// Adds what another machine did, as if the two were one.
    pub fn merge(&mut self, other: &Metrics) {
        self.merge_those(other, &[Scope::Tasks, Scope::Machine]);
    }

    /// Adds what happened to tasks in virtual machines to what happened to tasks outside. The work
    /// of their CPUs is not added: it is time that they got from the CPUs outside.
    pub fn add_vms(&mut self) {
        let vms = std::mem::take(&mut self.vms);
        for VmMetrics { inside, .. } in &vms {
            self.merge_those(inside, &[Scope::Tasks]);
        }
        self.vms = vms;
    }

    /// The time that was stolen from this machine, if it is virtual, and from those in it; `None`
    /// if one of them did not measure it.
    pub fn stolen_from_all(&self) -> Option<Span> {
        let mut inside = self.vms.iter().map(|vm| vm.inside.stolen_from_all());
        inside.try_fold(self.stolen.get()?, |sum, stolen| Some(sum + stolen?))
    }
}
