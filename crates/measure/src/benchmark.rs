//! What simulated benchmarks measure of themselves, as their reports need it.

use crate::metrics::Summary;
use anysched_core::Span;
use anysched_workload::Measured;

/// What the simulated benchmarks of a run have measured; nothing, if there was none.
#[derive(Clone, Debug, Default)]
pub struct Benchmark {
    /// Latencies as the benchmark defines them, of all its threads.
    pub latency: Summary,
    /// From the end of a sleep to the first instruction after it.
    pub wakeup: Summary,
    /// From the beginning of a request to its end.
    pub request: Summary,
    /// Requests of a second, per second.
    pub rate: Summary,
    /// Deadlines that were met.
    pub deadlines_met: u64,
    /// Deadlines that were missed.
    pub deadlines_missed: u64,
    /// Work that was done, in the benchmark's unit.
    pub work_done: u64,
    /// Work that was left out or late.
    pub work_missed: u64,
    /// How long the whole of it took; of several benchmarks, the longest. 0: none has said it.
    pub elapsed: Span,
    /// The latencies of each thread.
    pub threads: Vec<ThreadLatency>,
    /// From the first instruction of a task to the end of its work.
    pub leave_time: Summary,
    /// What became of each task that says so, in the order in which they are created.
    pub tasks: Vec<TaskProgress>,
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
            Measured::Elapsed(time) => self.elapsed = self.elapsed.max(time),
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
        self.latency.merge(&other.latency);
        self.wakeup.merge(&other.wakeup);
        self.request.merge(&other.request);
        self.rate.merge(&other.rate);
        self.deadlines_met += other.deadlines_met;
        self.deadlines_missed += other.deadlines_missed;
        self.work_done += other.work_done;
        self.work_missed += other.work_missed;
        self.elapsed = self.elapsed.max(other.elapsed);
        if self.threads.len() < other.threads.len() {
            self.threads.resize(other.threads.len(), ThreadLatency::default());
        }
        for (mine, theirs) in self.threads.iter_mut().zip(&other.threads) {
            mine.merge(theirs);
        }
        self.leave_time.merge(&other.leave_time);
        if self.tasks.len() < other.tasks.len() {
            self.tasks.resize(other.tasks.len(), TaskProgress::default());
        }
        for (mine, theirs) in self.tasks.iter_mut().zip(&other.tasks) {
            mine.merge(theirs);
        }
    }

    /// Jain's index of what `value` is of the tasks that were counted; NaN if none was.
    fn jain(&self, value: impl Fn((u32, Span)) -> f64) -> f64 {
        let counted = self.tasks.iter().filter_map(|task| task.counted);
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for value in counted.map(value) {
            n += 1.0;
            sum += value;
            squares += value * value;
        }
        sum * sum / (n * squares)
    }

    /// Jain's index of the groups that tasks had done when they were counted; NaN if none was.
    pub fn groups_jain(&self) -> f64 {
        self.jain(|(groups, _)| f64::from(groups))
    }

    /// Jain's index of the CPU time of these groups; NaN if none was counted.
    pub fn groups_time_jain(&self) -> f64 {
        self.jain(|(_, work)| work.0 as f64)
    }

    /// What there is of the first five tasks, by column name; NaN where there is nothing.
    pub(crate) fn of_tasks(&self) -> [(&'static str, f64); 15] {
        let task = |number: usize| self.tasks.get(number).copied().unwrap_or_default();
        let span = |span: Option<Span>| span.map_or(f64::NAN, |span| span.0 as f64);
        let finish = |number| span(task(number).finished);
        let leave = |number| span(task(number).left);
        let groups = |number| task(number).counted.map_or(f64::NAN, |(groups, _)| groups.into());
        [
            ("finish_0_ns", finish(0)),
            ("finish_1_ns", finish(1)),
            ("finish_2_ns", finish(2)),
            ("finish_3_ns", finish(3)),
            ("finish_4_ns", finish(4)),
            ("leave_0_ns", leave(0)),
            ("leave_1_ns", leave(1)),
            ("leave_2_ns", leave(2)),
            ("leave_3_ns", leave(3)),
            ("leave_4_ns", leave(4)),
            ("groups_0", groups(0)),
            ("groups_1", groups(1)),
            ("groups_2", groups(2)),
            ("groups_3", groups(3)),
            ("groups_4", groups(4)),
        ]
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

    /// Deadlines met, of those met and missed; NaN if there were none.
    pub fn deadlines_met_percent(&self) -> f64 {
        percent(self.deadlines_met, self.deadlines_missed)
    }

    /// Work done, of that done and missed: Interbench's "desired CPU"; NaN if there was none.
    pub fn desired_cpu_percent(&self) -> f64 {
        percent(self.work_done, self.work_missed)
    }

    /// Requests by the time that the benchmark took; NaN if there were none.
    pub fn requests_per_s(&self) -> f64 {
        match self.request.count() {
            0 => f64::NAN,
            requests => requests as f64 * 1e9 / self.elapsed.0 as f64,
        }
    }

    /// How long the benchmark took in ns; NaN if none has said it.
    pub(crate) fn time(&self) -> f64 {
        if self.elapsed == Span::ZERO { f64::NAN } else { self.elapsed.0 as f64 }
    }
}

fn percent(part: u64, rest: u64) -> f64 {
    100.0 * part as f64 / (part + rest) as f64
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
        assert!(benchmark.deadlines_met_percent().is_nan());
        assert!(benchmark.requests_per_s().is_nan() && benchmark.time().is_nan());
        benchmark.record(Measured::Deadlines { met: 1, missed: 0 });
        benchmark.record(Measured::Deadlines { met: 0, missed: 3 });
        benchmark.record(Measured::Work { done: 4, missed: 1 });
        benchmark.record(Measured::Request(Span(9)));
        benchmark.record(Measured::Elapsed(Span::from_ms(500)));
        assert_eq!(benchmark.deadlines_met_percent(), 25.0);
        assert_eq!(benchmark.desired_cpu_percent(), 80.0);
        assert_eq!(benchmark.requests_per_s(), 2.0);
    }
}
