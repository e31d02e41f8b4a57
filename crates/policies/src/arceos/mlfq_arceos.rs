//! Multilevel feedback queue of ArceOS: as [`mlfq`](crate::textbook::mlfq), but counted in ticks of
//! the host, with a slice that doubles from level to level; a task sinks only if it is still
//! running at the last tick of its slice.
//!
//! Source: ArceOS branch `schedule_benchmark`, `scheduler/src/mlfq.rs` (131131yhx/arceos 901dfaf).
//! Order key: (level, place in the level's list). Every tick takes one from what is left of the
//! slice of the task it finds running, however little of it that task ran. A task that stops
//! running with nothing left sinks a level, to the tail. Otherwise it gets a full slice again, at
//! the head of its level if it was preempted and at the tail if it yielded: whoever yields before
//! its slice ends never sinks. A woken task goes to the tail of its level with what was left. By
//! default it interrupts nobody, not even a lower level. After `reset_ticks` ticks the running
//! tasks and the waiting ones, higher levels in front, return to the top level.
//! Deviation: in the source that reset loses all waiting tasks (it builds an iterator that
//! nothing consumes). Where the source is silent: each runqueue counts its own ticks up to the
//! reset, as if it were an ArceOS scheduler of its own; `NotRun` undoes a pick.
//! A runqueue that wants a task is given the first of the lowest level.
//! Cost: O(1); a reset is O(waiting tasks).

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::Levels;
use anysched_core::registry::{First, Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `mlfq-arceos`.
    pub struct MlfqArceosParams {
        /// Number of levels, 1 to 64.
        levels: u32 = 8,
        /// Host tick in which everything is counted.
        tick: Span = Span::from_ms(10),
        /// Slice of the top level, a whole number of ticks.
        base: Span = Span::from_ms(10),
        /// Factor by which the slice grows from each level to the next lower one.
        growth: u32 = 2,
        /// Ticks of running tasks after which all return to the top level; 0 never resets.
        reset_ticks: u32 = 100_000,
        /// Whether a task that yields gets a full slice again, or keeps what is left.
        yield_resets_allotment: bool = true,
        /// Whether a task that becomes ready interrupts one of a lower level.
        wake_preempts: bool = false,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct MlfqArceos {
    tick: Span,
    /// Slice of each level in ticks.
    slices: Vec<u32>,
    reset_ticks: u32,
    yield_resets: bool,
    wake_preempts: bool,
    queues: Levels,
    /// Per runqueue, the ticks until the next reset.
    until_reset: Vec<u32>,
    tasks: PerTask<Task>,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    level: usize,
    /// What is left of its slice, in ticks.
    remain: u32,
    /// Was preempted, so it belongs at the head.
    interrupted: bool,
}

impl Policy for MlfqArceos {
    type Params = MlfqArceosParams;
    const SOURCE: &'static str = "ArceOS schedule_benchmark mlfq.rs (131131yhx/arceos 901dfaf)";
    const ORDER: &'static [First] = &[First::Least("level"), First::Longest];
    const NATIVE: &'static [Native] = &[Native { host: "arceos", scheduler: None }];

    fn build(
        _: &Machine,
        queues: usize,
        params: &MlfqArceosParams,
    ) -> Result<MlfqArceos, ParamError> {
        let slices = slices(params)?;
        Ok(MlfqArceos {
            tick: params.tick,
            queues: Levels::new(queues, slices.len()),
            slices,
            reset_ticks: params.reset_ticks,
            yield_resets: params.yield_resets_allotment,
            wake_preempts: params.wake_preempts,
            until_reset: alloc::vec![params.reset_ticks; queues],
            tasks: PerTask::new(),
        })
    }
}

/// The slice of each level in ticks.
fn slices(params: &MlfqArceosParams) -> Result<Vec<u32>, ParamError> {
    let invalid = |name, why| Err(ParamError::Invalid { name, why });
    let levels = params.levels as usize;
    if !(1..=Levels::MOST).contains(&levels) {
        return invalid("levels", "must be from 1 to 64");
    }
    if params.tick == Span::ZERO {
        return invalid("tick", "must be above 0");
    }
    if params.base == Span::ZERO || !params.base.0.is_multiple_of(params.tick.0) {
        return invalid("base", "must be a whole number of ticks, at least one");
    }
    if params.growth == 0 {
        return invalid("growth", "must be above 0");
    }
    let Ok(base) = u32::try_from(params.base.0 / params.tick.0) else {
        return invalid("base", "must be less than 2^32 ticks");
    };
    let slices = core::iter::successors(Some(base), |above| above.checked_mul(params.growth));
    let slices: Vec<u32> = slices.take(levels).collect();
    if slices.len() < levels {
        return invalid("growth", "makes the slice of the lowest level 2^32 ticks or more");
    }
    Ok(slices)
}

impl MlfqArceos {
    fn fresh(&self, level: usize) -> Task {
        Task { level, remain: self.slices[level], interrupted: false }
    }

    /// Returns all tasks of `at.queue` to the top level.
    fn reset(&mut self, at: &At<'_>) {
        let fresh = self.fresh(0);
        self.until_reset[at.queue] = self.reset_ticks;
        self.queues.raise(at.queue);
        let running = at.running.iter().filter_map(Running::task);
        for task in running.chain(self.queues.iter(at.queue)) {
            self.tasks[task] = fresh;
        }
    }
}

impl RunQueue for MlfqArceos {
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
        let mut task = self.tasks[id];
        match entry.why {
            Why::Put(Off::NotRun) | Why::Resumed => {}
            Why::New | Why::Woken | Why::Moved => task.interrupted = false,
            Why::Put(_) if task.remain == 0 => {
                task = self.fresh((task.level + 1).min(self.slices.len() - 1));
            }
            Why::Put(why) => {
                task.interrupted = why == Off::Preempted;
                if task.interrupted || self.yield_resets {
                    task.remain = self.slices[task.level];
                }
            }
        }
        self.tasks[id] = task;
        if task.interrupted || entry.why == Why::Put(Off::NotRun) {
            self.queues.push_front(at.queue, task.level, id);
        } else {
            self.queues.push_back(at.queue, task.level, id);
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
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        Span::MAX
    }

    #[inline]
    fn tick(&mut self, at: &At<'_>, task: TaskId) -> bool {
        if self.reset_ticks > 0 {
            self.until_reset[at.queue] -= 1;
            if self.until_reset[at.queue] == 0 {
                self.reset(at);
                return true;
            }
        }
        let remain = &mut self.tasks[task].remain;
        *remain = remain.saturating_sub(1);
        *remain == 0
    }

    fn tick_period(&self) -> Option<Span> {
        Some(self.tick)
    }

    #[inline]
    fn preempts(&mut self, _: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let level = self.tasks[running.task()?].level;
        let higher = level.checked_sub(self.tasks[task].level)?;
        (self.wake_preempts && higher > 0).then_some(higher as u64)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues.len(queue)
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.queues.first_of_lowest(at.queue, fits)
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("level", task.level as i64);
        sink("slice_left_ticks", i64::from(task.remain));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            MlfqArceos {
                tick: fixed,
                slices: fixed,
                reset_ticks: fixed,
                yield_resets: fixed,
                wake_preempts: fixed,
                queues,
                until_reset,
                tasks
            }
        );
    }
}

canonical!(Task { level, remain, interrupted });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Scheduler;
    use anysched_core::Smp;
    use anysched_oracle::drive::{Drive, ms, play, times};

    fn state(drive: &Drive<Smp<MlfqArceos>>, task: u32) -> (i64, i64) {
        (drive.probe(task, "level"), drive.probe(task, "slice_left_ticks"))
    }

    /// Ticks every 10 ms; slices of 1, 2, 4 ticks. Task 1 ends between two ticks, and the next
    /// tick is counted whole for task 2.
    #[test]
    fn a_trace_with_ticks() {
        let played = play::<MlfqArceos>(&[], &[(0, 80), (0, 5), (0, 30)]);
        // Top: 0 at 0-10, 1 at 10-15, 2 at 15-20. Second: 0 at 20-40, 2 at 40-60.
        // Third: 0 at 60-100, 2 ends with 5 at 105; 0 ends with 10 at 115.
        assert_eq!(played.finish, times(&[115, 15, 105]));
        assert_eq!(played.first, times(&[0, 10, 15]));
    }

    /// The task that arrives at 25 ms is on a better level than the one that runs until 40.
    #[test]
    fn a_better_level_waits_unless_told_otherwise() {
        let tasks = [(0, 40), (25, 10)];
        let played = play::<MlfqArceos>(&[], &tasks);
        assert_eq!(played.first[1], times(&[30])[0]);
        let played = play::<MlfqArceos>(&[("base", "20ms")], &[(0, 60), (25, 10)]);
        // Slices of 2 and 4 ticks: 0 runs 0-20 and on.
        assert_eq!(played.first[1], times(&[60])[0]);
        let settings = [("base", "20ms"), ("wake_preempts", "true")];
        assert_eq!(play::<MlfqArceos>(&settings, &[(0, 60), (25, 10)]).first[1], times(&[25])[0]);
    }

    #[test]
    fn whoever_yields_in_time_never_sinks() {
        for (resets, expected) in [("true", (1, 2)), ("false", (1, 1))] {
            let settings = [("yield_resets_allotment", resets)];
            let mut drive = Drive::<Smp<MlfqArceos>>::rule("1", &settings);
            drive.create(0, None);
            drive.pick(0);
            drive.kicked();
            assert!(drive.tick(0, ms(10)));
            drive.put(0, 0, Span::ZERO, Off::Preempted);
            assert_eq!(state(&drive, 0), (1, 2));
            drive.pick(0);
            drive.kicked();
            assert!(!drive.tick(0, ms(10)));
            drive.put(0, 0, ms(9), Off::Yielded);
            assert_eq!(state(&drive, 0), expected, "{resets}");
            // Preemption always renews.
            drive.run(ms(9), Off::Preempted);
            assert_eq!(state(&drive, 0), (1, 2), "{resets}");
        }
    }

    #[test]
    fn blocking_keeps_level_and_ticks_and_preemption_renews_them() {
        let mut drive = Drive::<Smp<MlfqArceos>>::rule("1", &[]);
        drive.create(0, None);
        drive.pick(0);
        drive.tick(0, ms(10));
        drive.put(0, 0, Span::ZERO, Off::Preempted);
        drive.create(1, None);
        assert_eq!(drive.run(ms(1), Off::Blocked), 1);
        drive.pick(0);
        drive.tick(0, ms(10));
        drive.put(0, 0, Span::ZERO, Off::Blocked);
        drive.wake(0);
        assert_eq!(state(&drive, 0), (1, 1));
        // To the second level with task 1 too: it is behind task 0, which is preempted.
        drive.wake(1);
        drive.pick(0);
        drive.tick(1, ms(10));
        drive.put(0, 1, Span::ZERO, Off::Preempted);
        assert_eq!(drive.run(ms(5), Off::Preempted), 0);
        assert_eq!(state(&drive, 0), (1, 2));
        drive.take_out_and_resume(0);
        assert_eq!(drive.run(ms(5), Off::Yielded), 0);
        drive.take_out_and_resume(0);
        assert_eq!(drive.run(Span::ZERO, Off::NotRun), 1);
        assert_eq!(drive.run(ms(5), Off::Exited), 1);
        assert_eq!(drive.run(ms(5), Off::Exited), 0);
    }

    /// The fourth tick resets instead of being counted for task 0, on the second level.
    #[test]
    fn a_reset_returns_all_to_the_top_and_loses_nobody() {
        let settings = [("reset_ticks", "4"), ("levels", "3")];
        let mut drive = Drive::<Smp<MlfqArceos>>::rule("1", &settings);
        (0..4).for_each(|task| drive.create(task, None));
        for task in 0..3 {
            assert_eq!(drive.pick(0).unwrap().0, task);
            drive.kicked();
            assert!(drive.tick(task, ms(10)));
            drive.put(0, task, Span::ZERO, Off::Preempted);
        }
        assert_eq!(drive.run(ms(1), Off::Blocked), 3);
        assert_eq!(drive.pick(0).unwrap().0, 0);
        drive.wake(3);
        drive.kicked();
        assert!(drive.tick(0, ms(10)), "it picks again though a tick was left");
        assert_eq!([0, 1, 2, 3].map(|task| state(&drive, task)), [(0, 1); 4]);
        drive.put(0, 0, Span::ZERO, Off::Preempted);
        // The running task returns to the head; then the top level before the second.
        let order: Vec<u32> = (0..4).map(|_| drive.run(ms(1), Off::Exited)).collect();
        assert_eq!(order, [0, 3, 1, 2]);
    }

    #[test]
    fn each_runqueue_counts_its_own_ticks_to_the_reset() {
        let settings = [("reset_ticks", "2"), ("layout", "per-cpu"), ("steal", "never")];
        let mut drive = Drive::<Smp<MlfqArceos>>::rule("2", &settings);
        let tick_on_1 = |drive: &mut Drive<Smp<MlfqArceos>>| {
            assert_eq!(drive.pick(1).unwrap().0, 1);
            drive.call(|smp, cx| smp.tick(cx, CpuId(1), TaskId(1), ms(10)));
            drive.put(1, 1, Span::ZERO, Off::Preempted);
        };
        drive.create(0, None);
        drive.create(1, None);
        tick_on_1(&mut drive);
        drive.pick(0);
        drive.tick(0, ms(10));
        assert_eq!([0, 1].map(|task| state(&drive, task)), [(0, 0), (1, 2)]);
        drive.tick(0, ms(10));
        assert_eq!([0, 1].map(|task| state(&drive, task)), [(0, 1), (1, 2)]);
        tick_on_1(&mut drive);
        assert_eq!(state(&drive, 1), (0, 1));
    }

    #[test]
    fn the_lowest_level_keeps_its_slice() {
        let settings = [("levels", "2"), ("growth", "3"), ("tick", "1ms"), ("base", "2ms")];
        let mut drive = Drive::<Smp<MlfqArceos>>::rule("1", &settings);
        drive.create(0, None);
        for ticks in [2, 6, 6] {
            drive.pick(0);
            drive.kicked();
            let kicked: Vec<bool> = (0..ticks).map(|_| drive.tick(0, ms(1))).collect();
            assert_eq!(kicked.iter().position(|&kicked| kicked), Some(ticks - 1));
            drive.put(0, 0, Span::ZERO, Off::Preempted);
        }
        assert_eq!(state(&drive, 0), (1, 6));
    }

    #[test]
    fn unusable_parameters_are_refused() {
        let machine = Machine::flat(1).unwrap();
        for (name, value) in [
            ("levels", "0"),
            ("levels", "65"),
            ("tick", "0"),
            ("base", "15ms"),
            ("base", "0"),
            ("growth", "0"),
            ("growth", "65536"),
        ] {
            let built =
                anysched_core::registry::build_rule::<MlfqArceos>(&machine, &[(name, value)]);
            assert!(matches!(built, Err(ParamError::Invalid { name: at, .. }) if at == name));
        }
    }
}
