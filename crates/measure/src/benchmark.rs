//! What simulated benchmarks measure of themselves, in the form that their reports need.

use crate::summary::Summary;
use crate::table::{Kind, MetricInfo, Scope, metrics};
use anysched_core::Span;
use anysched_workload::Measured;

metrics! {
    /// What the benchmarks of a run measured of themselves. Empty unless one ran.
    Benchmark as BENCHMARK_METRICS;

    distributions {
        latency of Tasks => "benchmark_latency_ns", "ns",
            "Latencies of all threads as the benchmark defines them (interbench, cyclictest, \
             schbench).";
        wakeup of Tasks => "benchmark_wakeup_ns", "ns",
            "From the end of a sleep to the first instruction after it (interbench).";
        request of Tasks => "benchmark_request_ns", "ns",
            "From the beginning of a request to its end (schbench), or from a request to its \
             answer (closed-loop with `persistent`).";
        leave_time of Tasks => "leave_time_ns", "ns",
            "From the first instruction of a task to the end of its work (arceos-test).";
    }

    numbers {
        { |b| (b.work_done + b.work_missed > 0).then(|| b.interbench_sd()) }
            => "interbench_sd_ns", "ns",
            "What Interbench 0.31 prints as the standard deviation of latencies (interbench).";
        { Benchmark::deadlines_met_percent } => "deadlines_met_percent", "%",
            "Deadlines met, of those met and missed (interbench).";
        { Benchmark::desired_cpu_percent } => "desired_cpu_percent", "%",
            "Work done, of that done and missed (interbench).";
        { Benchmark::requests_per_s } => "benchmark_requests_per_s", "/s",
            "Requests by the time that the benchmark took (schbench, closed-loop with \
             `persistent`).";
        { |b| b.elapsed.map(|span| span.0 as f64) } => "benchmark_time_ns", "ns",
            "How long the whole benchmark took (hackbench, schbench, closed-loop with \
             `persistent`).";
        { Benchmark::groups_jain } => "groups_jain", "1",
            "Jain's index of the groups of work that tasks had done when they were counted \
             (arceos-test).";
        { Benchmark::groups_time_jain } => "groups_time_jain", "1",
            "Jain's index of the CPU time of these groups (arceos-test).";
    }

    inputs {}

    kept {
        rate: Summary [Tasks by Summary::merge], "Requests of a second, per second.";
        deadlines_met: u64 [Tasks by |sum, more| *sum += more], "Deadlines that were met.";
        deadlines_missed: u64 [Tasks by |sum, more| *sum += more], "Deadlines that were missed.";
        work_done: u64 [Tasks by |sum, more| *sum += more],
            "Work that was done, in the benchmark's unit.";
        work_missed: u64 [Tasks by |sum, more| *sum += more], "Work that was left out or late.";
        elapsed: Option<Span> [Tasks by |longest, other| *longest = (*longest).max(*other)],
            "How long the whole of it took; of several benchmarks, the longest.";
        threads: Vec<ThreadLatency> [Tasks by |all, others| {
            merge_each(all, others, ThreadLatency::merge);
        }], "The latencies of each thread.";
        tasks: Vec<TaskProgress> [Tasks by |all, others| {
            merge_each(all, others, TaskProgress::merge);
        }], "What became of each task that says so, in the order in which they are created.";
    }
}

/// The metrics that each task of `arceos-test` has; `N` is its number in the order of creation.
pub static TASK_METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "finish_N_ns",
        unit: "ns",
        what: "From the creation of task N to the end of its work (arceos-test).",
        kind: Kind::Derived,
    },
    MetricInfo {
        name: "leave_N_ns",
        unit: "ns",
        what: "From the first instruction of task N to the end of its work (arceos-test).",
        kind: Kind::Derived,
    },
    MetricInfo {
        name: "groups_N",
        unit: "1",
        what: "Groups of work that task N had done when they were counted (arceos-test).",
        kind: Kind::Derived,
    },
];

/// Adds items at the same positions.
fn merge_each<T: Clone + Default>(all: &mut Vec<T>, others: &[T], merge: fn(&mut T, &T)) {
    if all.len() < others.len() {
        all.resize(others.len(), T::default());
    }
    all.iter_mut().zip(others).for_each(|(one, other)| merge(one, other));
}

/// How far a task came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskProgress {
    /// When its work was done, since it was created.
    pub finished: Option<Span>,
    /// The same since its first instruction.
    pub left: Option<Span>,
    /// Groups of work that it had done when they were counted, and their CPU time.
    pub counted: Option<(u32, Span)>,
}

impl TaskProgress {
    fn merge(&mut self, other: &TaskProgress) {
        self.finished = self.finished.max(other.finished);
        self.left = self.left.max(other.left);
        self.counted = match (self.counted, other.counted) {
            (Some(mine), Some(theirs)) => {
                Some((mine.0.saturating_add(theirs.0), mine.1 + theirs.1))
            }
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// The latencies of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLatency {
    /// How many there were.
    pub cycles: u64,
    /// The shortest; 0 without any.
    pub min: Span,
    /// The last.
    pub last: Span,
    /// The longest.
    pub max: Span,
    /// Their sum.
    pub sum: Span,
}

impl ThreadLatency {
    /// Their mean, rounded down; 0 without any.
    pub fn mean(&self) -> Span {
        Span(self.sum.0.checked_div(self.cycles).unwrap_or(0))
    }

    fn record(&mut self, latency: Span) {
        self.min = if self.cycles == 0 { latency } else { self.min.min(latency) };
        self.max = self.max.max(latency);
        self.last = latency;
        self.sum += latency;
        self.cycles += 1;
    }

    fn merge(&mut self, other: &ThreadLatency) {
        if other.cycles == 0 {
            return;
        }
        self.min = if self.cycles == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.last = other.last;
        self.sum += other.sum;
        self.cycles += other.cycles;
    }
}

impl Benchmark {
    /// Adds what a benchmark has measured.
    pub fn record(&mut self, measured: Measured) {
        match measured {
            Measured::Latency { thread, latency } => {
                self.latency.record(latency.0);
                let thread = usize::from(thread);
                if self.threads.len() <= thread {
                    self.threads.resize(thread + 1, ThreadLatency::default());
                }
                self.threads[thread].record(latency);
            }
            Measured::Wakeup(latency) => self.wakeup.record(latency.0),
            Measured::Request(time) => self.request.record(time.0),
            Measured::Rate(requests) => self.rate.record(requests),
            Measured::Deadlines { met, missed } => {
                self.deadlines_met += u64::from(met);
                self.deadlines_missed += u64::from(missed);
            }
            Measured::Work { done, missed } => {
                self.work_done += u64::from(done);
                self.work_missed += u64::from(missed);
            }
            Measured::Elapsed(time) => self.elapsed = self.elapsed.max(Some(time)),
            Measured::Finished { thread, time } => self.task(thread).finished = Some(time),
            Measured::Left { thread, time } => {
                self.leave_time.record(time.0);
                self.task(thread).left = Some(time);
            }
            Measured::Groups { thread, groups, work } => {
                self.task(thread).counted = Some((groups, work));
            }
        }
    }

    fn task(&mut self, thread: u16) -> &mut TaskProgress {
        let thread = usize::from(thread);
        if self.tasks.len() <= thread {
            self.tasks.resize(thread + 1, TaskProgress::default());
        }
        &mut self.tasks[thread]
    }

    /// Adds what the benchmarks on another machine have measured.
    pub fn merge(&mut self, other: &Benchmark) {
        self.merge_those(other, &[Scope::Tasks]);
    }

    /// Jain's index of `value` over the tasks that were counted, unless it is 0 for all.
    fn jain(&self, value: impl Fn((u32, Span)) -> f64) -> Option<f64> {
        let counted = self.tasks.iter().filter_map(|task| task.counted);
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for value in counted.map(value) {
            n += 1.0;
            sum += value;
            squares += value * value;
        }
        (squares > 0.0).then(|| sum * sum / (n * squares))
    }

    /// Jain's index of the groups that tasks had done when they were counted, if there were any.
    pub fn groups_jain(&self) -> Option<f64> {
        self.jain(|(groups, _)| f64::from(groups))
    }

    /// Jain's index of the CPU time of these groups, if there was any.
    pub fn groups_time_jain(&self) -> Option<f64> {
        self.jain(|(_, work)| work.0 as f64)
    }

    /// What there is of the metric at this position of [`TASK_METRICS`], by task.
    pub(crate) fn of_tasks(&self, metric: usize) -> impl Iterator<Item = (usize, f64)> {
        let value = move |task: &TaskProgress| match metric {
            0 => task.finished.map(|span| span.0 as f64),
            1 => task.left.map(|span| span.0 as f64),
            _ => task.counted.map(|(groups, _)| f64::from(groups)),
        };
        self.tasks.iter().map(value).enumerate().filter_map(|(task, value)| Some((task, value?)))
    }

    /// What Interbench 0.31 prints as the standard deviation of the latencies, in ns: instead of
    /// Σl² − n·mean² it divides Σl² − mean²/n by n − 1, so that the result is about the root mean
    /// square. 0 for a single latency, NaN for none.
    pub fn interbench_sd(&self) -> f64 {
        let n = self.latency.count() as f64;
        if n < 2.0 {
            return self.latency.sd();
        }
        let (mean, sd) = (self.latency.mean(), self.latency.sd());
        let squares = (n - 1.0) * sd * sd + n * mean * mean;
        libm::sqrt((squares - mean * mean / n) / (n - 1.0))
    }

    /// Deadlines met, of those met and missed, if there were any.
    pub fn deadlines_met_percent(&self) -> Option<f64> {
        percent(self.deadlines_met, self.deadlines_missed)
    }

    /// Work done, of that done and missed, if there was any: Interbench's "desired CPU".
    pub fn desired_cpu_percent(&self) -> Option<f64> {
        percent(self.work_done, self.work_missed)
    }

    /// Requests by the time that the benchmark took, if both are known.
    pub fn requests_per_s(&self) -> Option<f64> {
        let requests = Some(self.request.count()).filter(|requests| *requests > 0)?;
        Some(requests as f64 * 1e9 / self.elapsed?.0 as f64)
    }
}

fn percent(part: u64, rest: u64) -> Option<f64> {
    (part + rest > 0).then(|| 100.0 * part as f64 / (part + rest) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: &[(u16, u64)]) -> Benchmark {
        let mut benchmark = Benchmark::default();
        for &(thread, latency) in latencies {
            benchmark.record(Measured::Latency { thread, latency: Span(latency) });
        }
        benchmark
    }

    /// Latencies 0, 0, 3, 5: the sum of squares is 34, the mean 2. The standard deviation is
    /// √((34 − 4·4) / 3) = √6; Interbench prints √((34 − 4/4) / 3) = √11.
    #[test]
    fn the_standard_deviation_of_interbench_is_another() {
        let benchmark = of(&[(0, 0), (0, 0), (0, 3), (0, 5)]);
        assert!((benchmark.latency.sd() - 6f64.sqrt()).abs() < 1e-12);
        assert!((benchmark.interbench_sd() - 11f64.sqrt()).abs() < 1e-12);
        assert_eq!(of(&[(0, 7)]).interbench_sd(), 0.0);
        assert!(of(&[]).interbench_sd().is_nan());
    }

    #[test]
    fn threads_are_kept_apart_and_merged() {
        let mut benchmark = of(&[(1, 4), (1, 8), (1, 6)]);
        assert_eq!(benchmark.threads[0], ThreadLatency::default());
        let thread = benchmark.threads[1];
        let [min, last, max] = [thread.min, thread.last, thread.max].map(|span| span.0);
        assert_eq!((thread.cycles, min, last, max), (3, 4, 6, 8));
        assert_eq!(thread.mean(), Span(6));
        benchmark.merge(&of(&[(0, 2), (2, 1)]));
        assert_eq!(benchmark.latency.count(), 5);
        let cycles: Vec<u64> = benchmark.threads.iter().map(|thread| thread.cycles).collect();
        assert_eq!(cycles, [1, 3, 1]);
        assert_eq!(benchmark.threads[0].min, Span(2));
    }

    #[test]
    fn parts_are_of_what_was_wanted() {
        let mut benchmark = Benchmark::default();
        assert_eq!((benchmark.deadlines_met_percent(), benchmark.requests_per_s()), (None, None));
        benchmark.record(Measured::Deadlines { met: 1, missed: 0 });
        benchmark.record(Measured::Deadlines { met: 0, missed: 3 });
        benchmark.record(Measured::Work { done: 4, missed: 1 });
        benchmark.record(Measured::Request(Span(9)));
        benchmark.record(Measured::Elapsed(Span::from_ms(500)));
        assert_eq!(benchmark.deadlines_met_percent(), Some(25.0));
        assert_eq!(benchmark.desired_cpu_percent(), Some(80.0));
        assert_eq!(benchmark.requests_per_s(), Some(2.0));
    }
}
