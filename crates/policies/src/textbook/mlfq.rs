//! Multilevel feedback queue: the first task of the highest level that has one runs; a task that
//! has used up its allotment sinks a level, and all rise to the top at every boost.
//!
//! Source: R. and A. Arpaci-Dusseau, Operating Systems: Three Easy Pieces, chapter 8, rules 1 to 5.
//! Order key: (level, place in the level's list). New tasks enter at the tail of the top level,
//! woken ones at the tail of their level with what is left of their allotment, so that blocking
//! just before the end of a slice gains nothing. A task whose slice ends, or that yields, goes to
//! the tail of its level with a new slice; one that is preempted by a task of a higher level goes
//! back to the head with the rest of its slice. On the lowest level a used-up allotment is
//! renewed.
//! Where the source is silent: the lists keep their order at a boost, higher levels in front; a
//! boost does not interrupt a running task, and what that task ran before it does not count
//! against its new allotment.
//! A runqueue that wants a task is given the first of the lowest level.
//! Cost: O(1); a boost is O(tasks).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::Levels;
use anysched_core::registry::{Bound, First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Why};
use anysched_core::time::{Span, Time};
use anysched_core::tuning::{Axis, Space, Values, quarter_octaves};
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `mlfq`.
    pub struct MlfqParams {
        /// Number of levels, 1 to 64; auto: one per entry of slices. Levels beyond the entries
        /// have twice the slice of the level above.
        levels: Option<u32> = None,
        /// Slice of each level, top first; none: until the task leaves the CPU by itself.
        slices: Vec<Span> = [Span::from_ms(10), Span::from_ms(20), Span::from_ms(40)].into(),
        /// CPU time after which a task sinks, for each level, top first; auto: one slice each.
        allotments: Option<Vec<Span>> = None,
        /// Time between two boosts, which occur at its multiples; 0 never boosts.
        boost: Span = Span::from_s(1),
        /// Whether a task that becomes ready interrupts one of a lower level.
        preemptive: bool = true,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Mlfq {
    /// Slice and allotment of each level.
    levels: Vec<(Span, Span)>,
    /// Zero: never.
    boost: Span,
    last_boost: Time,
    next_boost: Time,
    preemptive: bool,
    queues: Levels,
    tasks: PerTask<Task>,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    level: usize,
    slice_left: Span,
    allotment_left: Span,
    /// Was preempted with some of its slice left, so it belongs at the head.
    interrupted: bool,
}

impl Policy for Mlfq {
    type Params = MlfqParams;
    const SOURCE: &'static str = "Operating Systems: Three Easy Pieces, chapter 8";
    const ORDER: &'static [First] = &[First::Least("level"), First::Longest];
    const SPACES: &'static [Space] =
        &[Space { variant: "", is_rival: true, axes: &AXES, values: tuned }];

    /// Each other task may come from the top: it has its allotment on each level before it is
    /// where the task waits, and a slice there.
    fn longest_wait(params: &MlfqParams) -> Option<Bound> {
        let levels = levels(params).ok()?;
        let (&(last, _), above) = levels.split_last()?;
        let spans = above.iter().map(|&(_, allotment)| allotment).chain([last]);
        let sum = spans.map(|span| span.0).fold(0, u64::saturating_add);
        (sum < Span::MAX.0).then_some(Bound { fixed: Span::ZERO, per_rival: Span(sum) })
    }

    fn build(_: &Machine, queues: usize, params: &MlfqParams) -> Result<Mlfq, ParamError> {
        let levels = levels(params)?;
        let boost = if params.boost == Span::MAX { Span::ZERO } else { params.boost };
        Ok(Mlfq {
            boost,
            last_boost: Time::ZERO,
            next_boost: Time::ZERO + boost,
            preemptive: params.preemptive,
            queues: Levels::new(queues, levels.len()),
            levels,
            tasks: PerTask::new(),
        })
    }
}

/// Levels; whether tasks of the last take turns (1); the first slice in quarters of octaves of the
/// mean CPU time, from 1/64 to 64; the ratio of the slices in halves of octaves, from 1 to 8.
const AXES: [Axis; 4] = [
    Axis { low: 1, high: 8, coarse: &[1, 2, 3, 5, 8], steps: [1, 1] },
    Axis { low: 0, high: 1, coarse: &[0, 1], steps: [1, 0] },
    Axis { low: -24, high: 24, coarse: &[16, 8, 4, 0, -4, -8, -16], steps: [2, 1] },
    Axis { low: 0, high: 6, coarse: &[0, 2, 4], steps: [1, 1] },
];

/// The parameters at a position on [`AXES`], without boosts.
fn tuned(position: &[i32], mean: Span) -> Values {
    let [levels, turns, first, ratio] = *position else { return Values::new() };
    let slice = |level: i32| match level + 1 == levels && turns == 0 {
        true => Span::MAX,
        false => quarter_octaves(mean, first + 2 * level * ratio),
    };
    let slices: Vec<String> = (0..levels).map(|level| slice(level).to_string()).collect();
    alloc::vec![("boost", "0".to_string()), ("slices", slices.join(","))]
}

/// Slice and allotment of each level.
fn levels(params: &MlfqParams) -> Result<Vec<(Span, Span)>, ParamError> {
    let invalid = |name, why| Err(ParamError::Invalid { name, why });
    let mut slices = params.slices.clone();
    let count = params.levels.map_or(slices.len(), |levels| levels as usize);
    if !(1..=Levels::MOST).contains(&count) {
        return invalid("levels", "must be from 1 to 64");
    }
    if slices.is_empty() || slices.len() > count {
        return invalid("slices", "must have at least one entry and no more than levels");
    }
    while let Some(&last) = slices.last().filter(|_| slices.len() < count) {
        slices.push(last + last);
    }
    let allotments = params.allotments.as_ref().unwrap_or(&slices);
    if allotments.len() != count {
        return invalid("allotments", "must have one entry per level");
    }
    if slices.contains(&Span::ZERO) {
        return invalid("slices", "must be above 0");
    }
    if allotments.contains(&Span::ZERO) {
        return invalid("allotments", "must be above 0");
    }
    Ok(slices.iter().copied().zip(allotments.iter().copied()).collect())
}

impl Mlfq {
    /// A task that enters `level`.
    fn fresh(&self, level: usize) -> Task {
        let (slice_left, allotment_left) = self.levels[level];
        Task { level, slice_left, allotment_left, interrupted: false }
    }

    /// Puts `task` at the tail of its level with a new slice, or of the next one if it has used
    /// up its allotment.
    fn queue_last(&mut self, queue: usize, id: TaskId) {
        let task = self.tasks[id];
        let task = if task.allotment_left == Span::ZERO {
            self.fresh((task.level + 1).min(self.levels.len() - 1))
        } else {
            Task { allotment_left: task.allotment_left, ..self.fresh(task.level) }
        };
        self.tasks[id] = task;
        self.queues.push_back(queue, task.level, id);
    }
}

impl RunQueue for Mlfq {
    const PREEMPTS: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.queues.attach(task);
        let fresh = self.fresh(0);
        self.tasks.set(task, fresh);
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let task = &mut self.tasks[id];
        let unused = task.slice_left.min(task.allotment_left) > Span::ZERO;
        match entry.why {
            Why::Put(Off::Preempted) if unused => {
                task.interrupted = true;
                self.queues.push_front(at.queue, task.level, id);
            }
            Why::Put(Off::NotRun) => self.queues.push_front(at.queue, task.level, id),
            Why::Resumed if task.interrupted && unused => {
                self.queues.push_front(at.queue, task.level, id);
            }
            Why::Resumed | Why::Moved if unused => {
                self.queues.push_back(at.queue, task.level, id);
            }
            Why::New | Why::Woken | Why::Resumed | Why::Moved | Why::Put(_) => {
                self.queue_last(at.queue, id);
            }
        }
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.queues.pop(at.queue, fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.queues.remove(at.queue, self.tasks[task].level, task);
    }

    #[inline]
    fn charge(&mut self, at: &At<'_>, task: TaskId, ran: Span) {
        // What a running task used before the last boost is forgiven.
        let ran = ran.min(at.now.since(self.last_boost));
        let task = &mut self.tasks[task];
        for left in [&mut task.slice_left, &mut task.allotment_left] {
            if *left != Span::MAX {
                *left = left.saturating_sub(ran);
            }
        }
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, task: TaskId) -> Span {
        let task = &self.tasks[task];
        task.slice_left.min(task.allotment_left)
    }

    #[inline]
    fn preempts(&mut self, _: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let level = self.tasks[running.task()?].level;
        let higher = level.checked_sub(self.tasks[task].level)?;
        (self.preemptive && higher > 0).then_some(higher as u64)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues.len(queue)
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.queues.first_of_lowest(at.queue, fits)
    }

    const HAS_TIMERS: bool = true;

    fn next_timer(&self) -> Option<Time> {
        (self.boost > Span::ZERO).then_some(self.next_boost)
    }

    fn timer(&mut self, now: Time) {
        self.last_boost = now;
        self.next_boost = Time((now.0 / self.boost.0 + 1).saturating_mul(self.boost.0));
        self.queues.raise_all();
        let fresh = self.fresh(0);
        self.tasks.values_mut().for_each(|task| *task = fresh);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        let ns = |span: Span| i64::try_from(span.0).unwrap_or(i64::MAX);
        sink("level", task.level as i64);
        sink("slice_left_ns", ns(task.slice_left));
        sink("allotment_left_ns", ns(task.allotment_left));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Mlfq {
                levels: fixed,
                boost: fixed,
                last_boost,
                next_boost,
                preemptive: fixed,
                queues,
                tasks
            }
        );
    }
}

canonical!(Task { level, slice_left, allotment_left, interrupted });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Scheduler;
    use anysched_core::Smp;
    use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, times};

    const PAPER: &[(&str, &str)] =
        &[("slices", "2ms,2ms,none"), ("boost", "0"), ("preemptive", "false")];

    #[test]
    fn golden_vectors() {
        let closed = play::<Mlfq>(PAPER, CLOSED);
        closed.assert(CLOSED, &[21, 4, 22, 7, 27, 18], 28);
        assert_eq!(closed.first, times(&[0, 2, 4, 6, 7, 9]));
        play::<Mlfq>(PAPER, OPEN).assert(OPEN, &[16, 12, 20, 7, 9], 5);
    }

    /// Task 1 arrives while task 0 is on the second level: it runs at once, and task 0 goes on
    /// with the 15 of its 20 ms that are left, before task 2, which came to that level first.
    #[test]
    fn a_preempted_task_goes_on_with_the_rest_of_its_slice() {
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &[]);
        drive.create(0, None);
        assert_eq!(drive.run(ms(10), Off::Expired), 0);
        drive.create(2, None);
        assert_eq!(drive.run(ms(10), Off::Expired), 2);
        assert_eq!(drive.pick(0), Some((0, ms(20))));
        drive.kicked();
        drive.now += ms(5);
        drive.create(1, None);
        assert_eq!(drive.kicked(), [0]);
        drive.put(0, 0, ms(5), Off::Preempted);
        assert_eq!(drive.pick(0), Some((1, ms(10))));
        drive.take_out_and_resume(0);
        drive.now += ms(1);
        drive.put(0, 1, ms(1), Off::Exited);
        assert_eq!(drive.pick(0), Some((0, ms(15))));
        drive.put(0, 0, Span::ZERO, Off::NotRun);
        assert_eq!(drive.pick(0), Some((0, ms(15))));
        drive.now += ms(15);
        drive.put(0, 0, ms(15), Off::Expired);
        assert_eq!(drive.probe(0, "level"), 2);
        assert_eq!(drive.pick(0), Some((2, ms(20))));
    }

    /// Runs `task`, which is next, through the slices of its first `levels` levels.
    fn sink(drive: &mut Drive<Smp<Mlfq>>, task: u32, levels: usize) {
        drive.create(task, None);
        for _ in 0..levels {
            let (picked, slice) = drive.pick(0).unwrap();
            drive.now += slice;
            drive.put(0, picked, slice, Off::Expired);
            assert_eq!(picked, task);
        }
        assert_eq!(drive.probe(task, "level"), levels as i64);
    }

    #[test]
    fn no_limit_stays_none_and_a_yielder_stays_last_when_taken_out() {
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &[("slices", "none")]);
        drive.create(0, None);
        drive.create(1, None);
        assert_eq!(drive.run(ms(5), Off::Preempted), 0);
        assert_eq!(drive.pick(0), Some((0, Span::MAX)));
        drive.now += ms(5);
        drive.put(0, 0, ms(5), Off::Yielded);
        drive.create(2, None);
        drive.take_out_and_resume(0);
        let order: Vec<u32> = (0..3).map(|_| drive.run(ms(1), Off::Exited)).collect();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn only_a_higher_level_interrupts_and_the_lowest_runner_most() {
        for (preemptive, kicked) in [("true", [3].as_slice()), ("false", &[])] {
            let mut drive = Drive::<Smp<Mlfq>>::rule("4", &[("preemptive", preemptive)]);
            for (task, levels) in [(2, 2), (3, 1), (1, 1), (0, 0)] {
                sink(&mut drive, task, levels);
            }
            assert_eq!([0, 1, 2, 3].map(|cpu| drive.pick(cpu).unwrap().0), [0, 3, 1, 2]);
            drive.kicked();
            drive.create(4, None);
            assert_eq!(drive.kicked(), kicked, "{preemptive}");
        }
    }

    /// 9 of 10 ms, then a wake-up: 1 ms is left of the allotment, and using it ends the stay.
    #[test]
    fn blocking_and_yielding_renew_nothing() {
        for why in [Off::Blocked, Off::Yielded] {
            let mut drive = Drive::<Smp<Mlfq>>::rule("1", &[]);
            drive.create(0, None);
            drive.run(ms(9), why);
            if why == Off::Blocked {
                drive.wake(0);
            }
            assert_eq!(drive.pick(0), Some((0, ms(1))), "{why:?}");
            drive.now += ms(1);
            drive.put(0, 0, ms(1), Off::Blocked);
            drive.wake(0);
            assert_eq!(drive.pick(0), Some((0, ms(20))), "{why:?}");
            assert_eq!(drive.probe(0, "level"), 1);
        }
    }

    /// An allotment of 25 ms in slices of 10: two turns at the tail of the same level, one of
    /// the last 5 ms, then down. The lowest level renews its allotment.
    #[test]
    fn an_allotment_may_be_several_slices() {
        let settings = [("slices", "10ms,20ms"), ("allotments", "25ms,40ms")];
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &settings);
        drive.create(0, None);
        for (slice, level) in [(10, 0), (10, 0), (5, 0), (20, 1), (20, 1), (20, 1)] {
            let (task, granted) = drive.pick(0).unwrap();
            assert_eq!((granted, drive.probe(task, "level")), (ms(slice), level));
            drive.now += granted;
            drive.put(0, task, granted, Off::Expired);
        }
        assert_eq!(drive.probe(0, "allotment_left_ns"), 20_000_000);
    }

    #[test]
    fn the_slice_ends_the_turn_though_the_allotment_lasts() {
        let settings = [("slices", "10ms"), ("allotments", "25ms")];
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &settings);
        drive.create(0, None);
        drive.create(1, None);
        let order: Vec<u32> = (0..4).map(|_| drive.run(ms(10), Off::Expired)).collect();
        assert_eq!(order, [0, 1, 0, 1]);
        // Preempted with an empty slice: no rest to go on with.
        drive.create(2, None);
        assert_eq!(drive.run(ms(5), Off::Preempted), 0);
        assert_eq!(drive.pick(0).unwrap().0, 1);
    }

    /// At the boost 0 is blocked on the lowest level, 1 and 2 wait there, 4 waits on the middle
    /// one, and 3 has been running on that for 5 ms: only what it runs from here on counts.
    #[test]
    fn a_boost_raises_queued_blocked_and_running_tasks() {
        let settings = [("slices", "10ms,20ms,none"), ("boost", "300ms")];
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &settings);
        sink(&mut drive, 0, 2);
        assert_eq!(drive.run(ms(1), Off::Blocked), 0);
        for (task, levels) in [(1, 2), (2, 2), (3, 1), (4, 1)] {
            sink(&mut drive, task, levels);
        }
        drive.now = Time::ZERO + ms(295);
        assert_eq!(drive.pick(0), Some((3, ms(20))));
        drive.kicked();
        drive.now = Time::ZERO + ms(300);
        assert_eq!(drive.policy.next_timer(), Some(drive.now));
        drive.call(|smp, cx| smp.timer(cx));
        assert_eq!(drive.policy.next_timer(), Some(Time::ZERO + ms(600)));
        assert_eq!([0, 1, 2, 3, 4].map(|task| drive.probe(task, "level")), [0; 5]);
        assert_eq!(drive.kicked(), []);
        drive.now += ms(4);
        drive.put(0, 3, ms(9), Off::Yielded);
        assert_eq!(drive.probe(3, "allotment_left_ns"), 6_000_000);
        drive.wake(0);
        let order: Vec<u32> = (0..5).map(|_| drive.run(ms(1), Off::Exited)).collect();
        assert_eq!(order, [4, 1, 2, 3, 0]);
    }

    #[test]
    fn boosts_fall_on_multiples_of_the_period() {
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &[("boost", "1s")]);
        drive.now = Time::ZERO + Span::from_ms(7_300);
        drive.call(|smp, cx| smp.timer(cx));
        assert_eq!(drive.policy.next_timer(), Some(Time::ZERO + Span::from_s(8)));
        for off in ["0", "none"] {
            assert_eq!(Drive::<Smp<Mlfq>>::rule("1", &[("boost", off)]).policy.next_timer(), None);
        }
    }

    #[test]
    fn levels_beyond_the_list_double() {
        let built = |levels, slices: &[Span]| {
            let slices = slices.to_vec();
            super::levels(&MlfqParams { levels, slices, ..MlfqParams::default() })
        };
        let slices: Vec<Span> =
            built(Some(5), &[ms(1), ms(3)]).unwrap().iter().map(|l| l.0).collect();
        assert_eq!(slices, [1, 3, 6, 12, 24].map(ms));
        assert_eq!(built(Some(64), &[Span(1 << 63)]).unwrap()[2].0, Span::MAX);
        for (levels, slices) in [
            (Some(0), [ms(1)].as_slice()),
            (Some(65), &[ms(1)]),
            (Some(1), &[ms(1), ms(1)]),
            (None, &[]),
            (None, &[ms(1), Span::ZERO]),
        ] {
            assert!(built(levels, slices).is_err(), "{levels:?} {slices:?}");
        }
        for allotments in [[ms(1), ms(1)].as_slice(), &[ms(1), ms(0), ms(1)]] {
            let allotments = Some(allotments.to_vec());
            assert!(super::levels(&MlfqParams { allotments, ..MlfqParams::default() }).is_err());
        }
    }

    #[test]
    fn another_runqueue_is_given_the_first_of_the_lowest_level() {
        let mut drive = Drive::<Smp<Mlfq>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, None));
        assert_eq!(drive.run(ms(10), Off::Expired), 0);
        assert_eq!(drive.run(ms(10), Off::Expired), 1);
        let at = At { now: drive.now, queue: 0, running: &[] };
        assert_eq!(drive.policy.rule().spare(&at, |_| true), Some(TaskId(0)));
        assert_eq!(drive.policy.rule().spare(&at, |task| task.0 == 2), Some(TaskId(2)));
    }
}
