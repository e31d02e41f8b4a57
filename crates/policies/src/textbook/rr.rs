//! Round robin: tasks take turns of one quantum each.
//!
//! Source: textbook; ArceOS `axsched` 0.3.1, `round_robin.rs`.
//! Order key: arrival number. An expired or yielding task goes to the tail with a new quantum; a
//! preempted one goes back to the head with the rest of its quantum. A task that blocks keeps
//! what is left and gets no more when it wakes, as in ArceOS.
//! With `tick`, the quantum is counted in ticks of the host as ArceOS does it: a task is taken
//! off at the tick that finds at most one tick left, however little of that tick it ran; one
//! that blocks with nothing left runs up to the next tick when it wakes.
//! A runqueue that wants a task is given the head.
//! Cost: O(1).

use alloc::string::ToString;
use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Links, List};
use anysched_core::registry::{Bound, First, Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Why};
use anysched_core::time::Span;
use anysched_core::tuning::{Baseline, Role, three_digits};
use anysched_core::{Canon, Machine, Off, canon_fields, params};

params! {
    /// Parameters of `rr`.
    pub struct RoundRobinParams {
        /// Time a task runs before the next one has its turn.
        quantum: Span = Span::from_ms(50),
        /// Tick in which the quantum is counted, as ArceOS does (10ms there); 0 ends it exactly.
        tick: Span = Span::ZERO,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct RoundRobin {
    quantum: Span,
    tick: Span,
    /// Quanta end, and exactly.
    is_exact: bool,
    /// With what is left of each task's quantum.
    links: Links<Span>,
    queues: Vec<List>,
}

impl Policy for RoundRobin {
    type Params = RoundRobinParams;
    const SOURCE: &'static str = "textbook; ArceOS axsched 0.3.1 round_robin.rs";
    const ORDER: &'static [First] = &[First::Longest];
    const NATIVE: &'static [Native] = &[Native { host: "arceos", scheduler: Some("stock-rr") }];
    /// A tenth of the mean CPU time is short enough to come near processor sharing.
    const BASELINE: Option<Baseline> = Some(Baseline {
        values: |mean| alloc::vec![("quantum", three_digits(Span(mean.0 / 10)).to_string())],
        ..Baseline::new(Role::Sharing)
    });

    /// A quantum of each other task, however many CPUs share them.
    fn longest_wait(params: &Self::Params) -> Option<Bound> {
        let ticks = if params.tick > Span::ZERO {
            params.quantum.0.div_ceil(params.tick.0).saturating_add(1)
        } else {
            0
        };
        let quantum = params.quantum.max(Span(params.tick.0.saturating_mul(ticks)));
        Some(Bound { fixed: Span::ZERO, per_rival: quantum })
    }

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        if params.quantum == Span::ZERO {
            return Err(ParamError::Invalid { name: "quantum", why: "must be above 0" });
        }
        if params.tick > params.quantum {
            return Err(ParamError::Invalid { name: "tick", why: "must not exceed the quantum" });
        }
        Ok(RoundRobin {
            quantum: params.quantum,
            tick: params.tick,
            is_exact: params.tick == Span::ZERO && params.quantum < Span::MAX,
            links: Links::default(),
            queues: alloc::vec![List::default(); queues],
        })
    }
}

impl RunQueue for RoundRobin {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.links.attach(task);
        self.links[task] = self.quantum;
    }

    // Inlined into `put_prev`, where the reason is known: a yield takes a quarter fewer
    // instructions.
    #[inline(always)]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        let queue = &mut self.queues[at.queue];
        let left = &mut self.links[task];
        let keeps_turn = match entry.why {
            Why::Put(Off::NotRun) => true,
            Why::Put(Off::Preempted) => *left > Span::ZERO,
            // Among tasks that were put back, only preempted ones have less than a full quantum.
            // One that left the policy's class may have used all of it.
            Why::Resumed => *left < self.quantum && (*left > Span::ZERO || self.tick > Span::ZERO),
            _ => false,
        };
        if keeps_turn {
            return self.links.push_front(queue, task);
        }
        // An exact timer cannot end a slice of nothing; a tick can.
        let has_none = *left == Span::ZERO && self.tick == Span::ZERO;
        if has_none || matches!(entry.why, Why::Put(_)) {
            *left = self.quantum;
        }
        self.links.push_back(queue, task);
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.links.pop_first_fit(&mut self.queues[at.queue], fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.links.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        if self.is_exact {
            let left = &mut self.links[task];
            *left = left.saturating_sub(ran);
        }
    }

    #[inline]
    fn settle(&mut self, at: &At<'_>, task: TaskId, ran: Span, why: Off) {
        // A task whose turn is over gets a whole quantum anyway.
        if !matches!(why, Off::Yielded | Off::Expired) {
            self.charge(at, task, ran);
        }
    }

    #[inline]
    fn tick(&mut self, _: &At<'_>, task: TaskId) -> bool {
        if self.tick == Span::ZERO {
            return false;
        }
        let left = &mut self.links[task];
        *left = left.saturating_sub(self.tick);
        *left == Span::ZERO
    }

    fn tick_period(&self) -> Option<Span> {
        (self.tick > Span::ZERO).then_some(self.tick)
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, task: TaskId) -> Span {
        if self.tick == Span::ZERO { self.links[task] } else { Span::MAX }
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.links.iter(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("quantum_left_ns", self.links[task].0 as i64);
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            RoundRobin { quantum: fixed, tick: fixed, is_exact: fixed, links, queues: of(links) }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, times};

    #[test]
    fn golden_vectors() {
        let closed = play::<RoundRobin>(&[("quantum", "2ms")], CLOSED);
        closed.assert(CLOSED, &[24, 4, 21, 7, 27, 18], 28);
        assert_eq!(closed.first, times(&[0, 2, 4, 6, 7, 9]));
        play::<RoundRobin>(&[("quantum", "2ms")], OPEN).assert(OPEN, &[16, 9, 20, 10, 12], 11);
    }

    /// ArceOS: a quantum of 5 ticks of 10 ms. Task 1 ends in the middle of a tick, and the rest of
    /// that tick is charged to task 0, which is found running.
    #[test]
    fn ticks_count_for_whom_they_find() {
        let settings = [("quantum", "50ms"), ("tick", "10ms")];
        let played = play::<RoundRobin>(&settings, &[(0, 100), (0, 5), (0, 40)]);
        // 0 runs 0..50, 1 runs 50..55, 2 runs 55..95 (ticks at 60, 70, 80, 90), 0 the rest.
        assert_eq!(played.finish, times(&[145, 55, 95]));
        let played = play::<RoundRobin>(&settings, &[(0, 5), (0, 60), (0, 20)]);
        // 1 runs 5..50: its fifth tick comes after 45 ms.
        assert_eq!(played.finish, times(&[5, 85, 70]));
        assert_eq!(played.first, times(&[0, 5, 50]));
    }

    #[test]
    fn a_quantum_that_is_no_multiple_of_the_tick_ends_at_the_next_one() {
        let mut drive =
            Drive::<Smp<RoundRobin>>::rule("1", &[("quantum", "25ms"), ("tick", "10ms")]);
        drive.create(0, None);
        assert_eq!(drive.pick(0), Some((0, Span::MAX)));
        drive.kicked();
        assert_eq!(
            [drive.tick(0, ms(10)), drive.tick(0, ms(10)), drive.tick(0, ms(10))],
            [false, false, true]
        );
    }

    #[test]
    fn blocking_keeps_what_is_left_and_waking_adds_nothing() {
        let mut drive = Drive::<Smp<RoundRobin>>::rule("1", &[]);
        drive.create(0, None);
        drive.create(1, None);
        assert_eq!(drive.run(ms(30), Off::Blocked), 0);
        drive.wake(0);
        assert_eq!(drive.run(ms(50), Off::Expired), 1);
        assert_eq!(drive.pick(0), Some((0, ms(20))));
        // All of it used just when it blocks: a new quantum, because a slice cannot be empty.
        drive.now += ms(20);
        drive.put(0, 0, ms(20), Off::Blocked);
        drive.wake(0);
        assert_eq!(drive.run(ms(1), Off::Yielded), 1);
        assert_eq!(drive.pick(0), Some((0, ms(50))));
    }

    #[test]
    fn with_ticks_a_task_with_nothing_left_runs_to_the_next_one() {
        let mut drive =
            Drive::<Smp<RoundRobin>>::rule("1", &[("quantum", "20ms"), ("tick", "10ms")]);
        drive.create(0, None);
        drive.create(1, None);
        drive.pick(0);
        drive.kicked();
        assert!(!drive.tick(0, ms(10)) && drive.tick(0, ms(10)));
        drive.put(0, 0, Span::ZERO, Off::Blocked);
        drive.wake(0);
        assert_eq!(drive.probe(0, "quantum_left_ns"), 0);
        assert_eq!(drive.run(ms(5), Off::Yielded), 1);
        assert_eq!(drive.pick(0), Some((0, Span::MAX)));
        drive.kicked();
        assert!(drive.tick(0, ms(5)));
        drive.put(0, 0, Span::ZERO, Off::Preempted);
        assert_eq!(drive.probe(0, "quantum_left_ns"), 20_000_000);
        assert_eq!(drive.pick(0).map(|pick| pick.0), Some(1));
    }

    #[test]
    fn a_preempted_task_returns_to_the_head_even_after_it_was_taken_out() {
        let mut drive = Drive::<Smp<RoundRobin>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, None));
        assert_eq!(drive.run(ms(10), Off::Preempted), 0);
        drive.take_out_and_resume(0);
        assert_eq!(drive.pick(0), Some((0, ms(40))));
        drive.put(0, 0, Span::ZERO, Off::NotRun);
        assert_eq!(drive.pick(0), Some((0, ms(40))));
        drive.now += ms(10);
        drive.put(0, 0, ms(10), Off::Yielded);
        drive.take_out_and_resume(0);
        assert_eq!(drive.pick(0), Some((1, ms(50))));
    }

    #[test]
    fn a_quantum_of_none_stays_unlimited() {
        let mut drive = Drive::<Smp<RoundRobin>>::rule("1", &[("quantum", "none")]);
        drive.create(0, None);
        drive.run(ms(10), Off::Preempted);
        assert_eq!(drive.pick(0), Some((0, Span::MAX)));
    }

    #[test]
    fn unusable_parameters_are_refused() {
        let machine = Machine::flat(1).unwrap();
        let build = |settings: &[(&str, &str)]| {
            anysched_core::registry::build_rule::<RoundRobin>(&machine, settings).err()
        };
        assert!(build(&[("quantum", "0")]).is_some());
        assert!(build(&[("tick", "51ms")]).is_some());
        assert!(build(&[("tick", "50ms")]).is_none());
    }
}
