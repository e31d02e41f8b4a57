//! Shortest job first by estimate, as in ArceOS: the task whose turns have been shortest, by an
//! exponentially weighted moving average, runs until it blocks, yields or ends.
//!
//! Source: ArceOS branch `schedule_benchmark`, `scheduler/src/sjf.rs` (131131yhx/arceos 901dfaf).
//! Order key: (expected, arrival number), where putting a task back that ran for `ran` does
//! `expected += ((ran − expected) · alpha_num) >> alpha_log2_den`, rounding towards −∞. A task is
//! given its number when it is created and each time it wakes, and keeps it when it yields, so of
//! tasks that expect the same, the one that arrived first is picked again and again. Blocking and
//! ending teach the estimate nothing. Starvation is possible and intended.
//! Deviation: in the source equality of keys ignores the number, though their order does not.
//! `ran` is CPU time; the source takes the time since the pick.
//! A runqueue that wants a task is given the last in the order.
//! Cost: O(log n).

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Ewma, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `sjf-ewma`.
    pub struct SjfEwmaParams {
        /// Numerator of the weight of the latest turn, at most the denominator.
        alpha_num: u32 = 1,
        /// Binary logarithm of the denominator of that weight, at most 31.
        alpha_log2_den: u32 = 4,
        /// What a new task is expected to use.
        initial_expected: Span = Span::ZERO,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct SjfEwma {
    ewma: Ewma,
    initial: Span,
    forest: Forest<(Span, u64)>,
    queues: Vec<Tree>,
    tasks: PerTask<Task>,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    expected: Span,
    /// CPU time used since the pick.
    ran: Span,
    arrival: u64,
}

impl Policy for SjfEwma {
    type Params = SjfEwmaParams;
    const SOURCE: &'static str = "ArceOS schedule_benchmark sjf.rs (131131yhx/arceos 901dfaf)";
    const ORDER: &'static [First] = &[First::Least("expected_ns"), First::Least("arrival")];
    const STARVES: bool = true;
    const NATIVE: &'static [Native] = &[Native { host: "arceos", scheduler: None }];

    fn build(_: &Machine, queues: usize, params: &SjfEwmaParams) -> Result<SjfEwma, ParamError> {
        if params.alpha_log2_den > 31 {
            return Err(ParamError::Invalid { name: "alpha_log2_den", why: "must be at most 31" });
        }
        if params.alpha_num > 1 << params.alpha_log2_den {
            let why = "must not exceed 2 to the power of alpha_log2_den";
            return Err(ParamError::Invalid { name: "alpha_num", why });
        }
        Ok(SjfEwma {
            ewma: Ewma { num: params.alpha_num, log2_den: params.alpha_log2_den },
            initial: params.initial_expected,
            forest: Forest::default(),
            queues: alloc::vec![Tree::default(); queues],
            tasks: PerTask::new(),
            // Tasks that were never ready have number 0.
            arrivals: 1,
        })
    }
}

impl RunQueue for SjfEwma {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.forest.attach(task);
        let fresh = Task { expected: self.initial, ran: Span::ZERO, arrival: 0 };
        self.tasks.set(task, fresh);
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let task = &mut self.tasks[id];
        match entry.why {
            Why::New | Why::Woken => {
                task.arrival = self.arrivals;
                self.arrivals += 1;
            }
            Why::Put(Off::NotRun) | Why::Resumed | Why::Moved => {}
            Why::Put(_) => task.expected = self.ewma.after(task.expected, task.ran),
        }
        let key = (task.expected, task.arrival);
        self.forest.insert(&mut self.queues[at.queue], id, key, ());
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let task = self.forest.pop_first_fit(&mut self.queues[at.queue], fits)?;
        self.tasks[task].ran = Span::ZERO;
        Some(task)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        self.tasks[task].ran += ran;
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        Span::MAX
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.iter_back(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("expected_ns", i64::try_from(task.expected.0).unwrap_or(i64::MAX));
        sink("arrival", task.arrival as i64);
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            SjfEwma {
                ewma: fixed,
                initial: fixed,
                forest: fixed,
                queues: of(forest),
                tasks,
                arrivals: fixed
            }
        );
    }
}

canonical!(Task { expected, ran, arrival: order });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_oracle::drive::{CLOSED, Drive, ms, play};

    #[test]
    fn averages_round_towards_minus_infinity() {
        let after = |average, sample| Ewma::ARCEOS.after(Span(average), Span(sample)).0;
        assert_eq!(after(0, 160), 10);
        assert_eq!(after(0, 31), 1);
        assert_eq!(after(0, 15), 0);
        assert_eq!(after(10, 9), 9, "-1 >> 4 is -1");
        assert_eq!(after(100, 83), 98, "-17 >> 4 is -2");
        assert_eq!(after(100, 84), 99, "-16 >> 4 is -1");
        assert_eq!(after(1, 0), 0);
        let half = Ewma { num: 3, log2_den: 2 };
        assert_eq!(half.after(Span(0), Span(10)), Span(7));
        assert_eq!(half.after(Span(10), Span(5)), Span(6), "-15 >> 2 is -4");
        let all = Ewma { num: 1 << 31, log2_den: 31 };
        assert_eq!(all.after(Span::MAX, Span::ZERO), Span::ZERO);
        assert_eq!(all.after(Span::ZERO, Span::MAX), Span::MAX);
    }

    /// Nothing yields here, so nothing is ever learnt and the order is that of arrival.
    #[test]
    fn tasks_that_never_yield_are_served_as_they_come() {
        play::<SjfEwma>(&[], CLOSED).assert(CLOSED, &[7, 9, 14, 15, 24, 27], 69);
    }

    #[test]
    fn short_turns_go_first() {
        let mut drive = Drive::<Smp<SjfEwma>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, None));
        assert_eq!(drive.run(ms(32), Off::Yielded), 0);
        assert_eq!(drive.run(ms(16), Off::Yielded), 1);
        assert_eq!(drive.run(ms(48), Off::Yielded), 2);
        let expected = [0, 1, 2].map(|task| drive.probe(task, "expected_ns"));
        assert_eq!(expected, [2_000_000, 1_000_000, 3_000_000]);
        // 1 + (17 − 1) / 16 = 2 ms, as much as task 0, which has the earlier number.
        assert_eq!(drive.run(ms(17), Off::Yielded), 1);
        assert_eq!(drive.run(ms(2), Off::Yielded), 0);
        // A task keeps its number when it yields: it goes again before its equal.
        assert_eq!(drive.run(ms(2), Off::Blocked), 0);
        assert_eq!(drive.run(ms(1), Off::NotRun), 1);
        drive.wake(0);
        // With a new number it is behind its equal. Neither blocking nor an undone pick taught.
        let expected = [0, 1].map(|task| drive.probe(task, "expected_ns"));
        assert_eq!(expected, [2_000_000, 2_000_000]);
        assert_eq!(drive.run(ms(2), Off::Exited), 1);
        assert_eq!(drive.run(ms(2), Off::Exited), 0);
    }

    #[test]
    fn a_turn_counts_from_the_pick_over_all_charges() {
        let mut drive = Drive::<Smp<SjfEwma>>::rule("1", &[("initial_expected", "16ms")]);
        drive.create(0, None);
        assert_eq!(drive.run(ms(500), Off::Blocked), 0);
        drive.wake(0);
        drive.pick(0);
        drive.kicked();
        assert!(!drive.tick(0, ms(10)) && !drive.tick(0, ms(20)));
        drive.now += ms(2);
        drive.put(0, 0, ms(2), Off::Yielded);
        assert_eq!(drive.probe(0, "expected_ns"), 17_000_000);
    }

    #[test]
    fn the_weight_is_settable_up_to_one() {
        let mut drive =
            Drive::<Smp<SjfEwma>>::rule("1", &[("alpha_num", "3"), ("alpha_log2_den", "2")]);
        drive.create(0, None);
        drive.run(Span(10), Off::Yielded);
        assert_eq!(drive.probe(0, "expected_ns"), 7);
        let machine = Machine::flat(1).unwrap();
        for (name, value) in [("alpha_num", "17"), ("alpha_log2_den", "32")] {
            let built = anysched_core::registry::build_rule::<SjfEwma>(&machine, &[(name, value)]);
            assert!(matches!(built, Err(ParamError::Invalid { name: at, .. }) if at == name));
        }
    }
}
