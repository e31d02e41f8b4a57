//! Completely fair scheduling as in ArceOS: the task with the least weighted number of ticks runs
//! until a tick finds it beyond the stored minimum.
//!
//! Source: ArceOS `axsched` 0.3.1, `cfs.rs`.
//! Order key: (vruntime, number), `vruntime = start + ⌊ticks · 1024 / weight⌋` in ticks; the
//! number is new at every entry, so equals take turns. A new or woken task starts at the stored
//! minimum with 0 ticks. A tick counts one for the task it finds running, however little of it
//! that task ran; if others wait, the task is taken off when its vruntime exceeds the stored
//! minimum. It is queued by its vruntime whatever the reason.
//! The stored minimum starts at 0 and becomes the front's vruntime when a task is added or taken
//! out, and only then; running and being put back leave it alone. As an added task is itself at the
//! minimum, only taking out a waiting one ever raises it. Otherwise it stays at 0: every tick takes
//! off whatever runs if another task waits, and a task that wakes is ahead of all that have run.
//! Deviations: the source keeps the ticks of a task that it adds again, which count in its vruntime
//! but not in the key it is queued by; here both are the minimum. Taking out the last waiting task
//! keeps the minimum; the source then starts at 0 again. A task that returns after being taken out
//! for a moment keeps its vruntime; taking it out has refreshed the minimum all the same.
//! A runqueue that wants a task is given the last in the order.
//! Cost: O(log n).

use alloc::vec::Vec;

use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{NICE_0_WEIGHT, ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Whereabouts, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `cfs-arceos`.
    pub struct CfsArceosParams {
        /// Host tick in which everything is counted.
        tick: Span = Span::from_ms(10),
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct CfsArceos {
    tick: Span,
    forest: Forest<(u64, u64)>,
    queues: Vec<Queue>,
    tasks: PerTask<Task>,
    /// How often a task has been queued.
    entries: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    tree: Tree,
    /// In ticks.
    min_vruntime: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    start: u64,
    ticks: u64,
    weight: u32,
}

impl Task {
    fn vruntime(&self) -> u64 {
        self.start + self.ticks * u64::from(NICE_0_WEIGHT) / u64::from(self.weight.max(1))
    }

    fn start_at(&mut self, vruntime: u64) {
        self.start = vruntime;
        self.ticks = 0;
    }
}

impl Policy for CfsArceos {
    type Params = CfsArceosParams;
    const SOURCE: &'static str = "ArceOS axsched 0.3.1 cfs.rs";
    const ORDER: &'static [First] = &[First::Least("vruntime_ticks")];
    const NATIVE: &'static [Native] = &[Native { host: "arceos", scheduler: Some("stock-cfs") }];

    fn build(
        _: &Machine,
        queues: usize,
        params: &CfsArceosParams,
    ) -> Result<CfsArceos, ParamError> {
        if params.tick == Span::ZERO {
            return Err(ParamError::Invalid { name: "tick", why: "must be above 0" });
        }
        Ok(CfsArceos {
            tick: params.tick,
            forest: Forest::default(),
            queues: alloc::vec![Queue::default(); queues],
            tasks: PerTask::new(),
            entries: 0,
        })
    }
}

impl CfsArceos {
    fn refresh_minimum(&mut self, queue: usize) {
        let queue = &mut self.queues[queue];
        if let Some(first) = queue.tree.first() {
            queue.min_vruntime = self.forest.key(first).0;
        }
    }
}

impl RunQueue for CfsArceos {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.tasks.grow(task, |_| Task::default());
        self.tasks[task] = Task { weight: params.weight, ..Task::default() };
    }

    fn update(&mut self, _: &At<'_>, _: Whereabouts, task: TaskId, params: &TaskParams) {
        let task = &mut self.tasks[task];
        if task.weight != params.weight {
            task.start_at(task.vruntime());
            task.weight = params.weight;
        }
    }

    // Inlined into `yield_and_pick`, where the reason is known.
    #[inline(always)]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let added = matches!(entry.why, Why::New | Why::Woken | Why::Moved);
        let queue = &mut self.queues[at.queue];
        let task = &mut self.tasks[id];
        if added {
            task.start_at(queue.min_vruntime);
        }
        let number = match entry.why {
            Why::Put(Off::NotRun) | Why::Resumed => self.forest.key(id).1,
            _ => {
                self.entries += 1;
                self.entries
            }
        };
        self.forest.insert(&mut queue.tree, id, (task.vruntime(), number), ());
        if added {
            self.refresh_minimum(at.queue);
        }
    }

    #[inline(always)]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.pop_first_fit(&mut self.queues[at.queue].tree, fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue].tree, task);
        self.refresh_minimum(at.queue);
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        Span::MAX
    }

    #[inline]
    fn tick(&mut self, at: &At<'_>, task: TaskId) -> bool {
        let queue = &self.queues[at.queue];
        let task = &mut self.tasks[task];
        task.ticks += 1;
        !queue.tree.is_empty() && task.vruntime() > queue.min_vruntime
    }

    fn tick_period(&self) -> Option<Span> {
        Some(self.tick)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].tree.len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.iter_back(&self.queues[at.queue].tree).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let task = &self.tasks[task];
        sink("vruntime_ticks", task.vruntime() as i64);
        sink("ticks", task.ticks as i64);
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            CfsArceos { tick: fixed, forest: fixed, queues: of(forest), tasks, entries: fixed }
        );
        self.forest.keys().for_each(|(_, number)| to.order(number.into()));
    }
}

canonical!(Queue, forest: Forest<(u64, u64)> { tree: of(forest), min_vruntime: shift });

impl Canonical for Task {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Task { start: _, ticks, weight } = self;
        to.shift(self.vruntime());
        to.word(ticks * u64::from(NICE_0_WEIGHT) % u64::from((*weight).max(1)));
        to.word((*weight).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Scheduler;
    use anysched_core::Smp;
    use anysched_oracle::drive::{Drive, ms, play, times};

    fn order(drive: &mut Drive<Smp<CfsArceos>>, turns: usize) -> Vec<u32> {
        (0..turns).map(|_| turn(drive)).collect()
    }

    /// One turn: up to the tick that takes the task off.
    fn turn(drive: &mut Drive<Smp<CfsArceos>>) -> u32 {
        let task = drive.pick(0).unwrap().0;
        drive.kicked();
        while !drive.tick(task, ms(10)) {}
        drive.put(0, task, Span::ZERO, Off::Preempted);
        task
    }

    /// Each turn is one tick, because the stored minimum stays 0. The third task arrives at
    /// 55 ms, in the turn of task 1, starts at 0 and catches up with the others' 3 ticks.
    #[test]
    fn whoever_arrives_starts_at_a_minimum_that_never_moved() {
        let played = play::<CfsArceos>(&[], &[(0, 50), (0, 50), (55, 40)]);
        // 0: 0-10 20-30 40-50, 1: 10-20 30-40 50-60, 2: 60-90, then in turns 0 1 2 0 1.
        assert_eq!(played.finish, times(&[130, 140, 120]));
        assert_eq!(played.first, times(&[0, 10, 60]));
    }

    #[test]
    fn only_taking_out_a_waiting_task_raises_the_minimum() {
        let mut drive = Drive::<Smp<CfsArceos>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, None));
        assert_eq!(order(&mut drive, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(drive.policy.rule().queues[0].min_vruntime, 0);
        drive.call(|smp, cx| smp.dequeue(cx, TaskId(2)));
        assert_eq!(drive.policy.rule().queues[0].min_vruntime, 2);
        drive.wake(2);
        assert_eq!(drive.probe(2, "vruntime_ticks"), 2);
        // 1 and 2 are at 2 and 0 at 3; of equals the one queued first.
        assert_eq!(order(&mut drive, 4), [1, 2, 0, 1]);
        assert_eq!(drive.policy.rule().queues[0].min_vruntime, 2, "though all are beyond it");
    }

    /// Task 1 runs at 1 when taking out task 2 raises the minimum to the 2 of task 0.
    #[test]
    fn a_task_runs_until_it_is_beyond_the_minimum_and_another_waits() {
        let mut drive = Drive::<Smp<CfsArceos>>::rule("1", &[]);
        drive.create(0, None);
        drive.create(1, None);
        assert_eq!(order(&mut drive, 3), [0, 1, 0]);
        assert_eq!(drive.pick(0).map(|pick| pick.0), Some(1));
        drive.create(2, None);
        drive.call(|smp, cx| smp.dequeue(cx, TaskId(2)));
        drive.kicked();
        assert!(!drive.tick(1, ms(10)), "2 ticks are not more than 2");
        drive.call(|smp, cx| smp.dequeue(cx, TaskId(0)));
        assert!(!drive.tick(1, ms(10)), "nobody waits");
        drive.wake(0);
        assert_eq!(drive.probe(0, "vruntime_ticks"), 2, "kept by an empty runqueue");
        assert!(drive.tick(1, ms(10)), "4 ticks are more than 2");
    }

    /// Tasks 0 and 2 share a runqueue, 1 and 3 the other one, whose minimum is still 0.
    #[test]
    fn a_task_that_moves_starts_at_the_minimum_of_its_new_runqueue() {
        let mut drive =
            Drive::<Smp<CfsArceos>>::rule("2", &[("layout", "per-cpu"), ("steal", "never")]);
        (0..4).for_each(|task| drive.create(task, None));
        assert_eq!(order(&mut drive, 5), [0, 2, 0, 2, 0]);
        let params =
            TaskParams { affinity: anysched_core::CpuSet::Few(0b10), ..TaskParams::default() };
        drive.call(|smp, cx| smp.update(cx, TaskId(0), &params));
        let minimums = [0, 1].map(|queue| drive.policy.rule().queues[queue].min_vruntime);
        assert_eq!((drive.probe(0, "vruntime_ticks"), minimums), (0, [2, 0]));
        assert_eq!((drive.probe(0, "runqueue"), drive.probe(2, "runqueue")), (1, 0));
    }

    #[test]
    fn waking_forgets_what_was_used() {
        let mut drive = Drive::<Smp<CfsArceos>>::rule("1", &[]);
        drive.create(0, None);
        drive.create(1, None);
        order(&mut drive, 6);
        drive.pick(0);
        drive.put(0, 0, ms(1), Off::Blocked);
        assert_eq!(drive.probe(0, "vruntime_ticks"), 3);
        drive.wake(0);
        assert_eq!(drive.probe(0, "vruntime_ticks"), 0);
        assert_eq!(order(&mut drive, 4), [0, 0, 0, 1]);
    }

    #[test]
    fn time_between_ticks_is_free() {
        let mut drive = Drive::<Smp<CfsArceos>>::rule("1", &[]);
        drive.create(0, None);
        drive.create(1, None);
        let turns: Vec<u32> = (0..4).map(|_| drive.run(ms(9), Off::Yielded)).collect();
        assert_eq!(turns, [0, 1, 0, 1]);
        assert_eq!(drive.probe(0, "vruntime_ticks"), 0);
    }

    /// Nice 5 weighs 335: ⌊1024 / 335⌋ = 3, ⌊2048 / 335⌋ = 6, ⌊3072 / 335⌋ = 9. Nice −5 weighs
    /// 3121: three ticks are ⌊3072 / 3121⌋ = 0, the fourth makes it 1.
    #[test]
    fn ticks_weigh_by_niceness() {
        let mut drive = Drive::<Smp<CfsArceos>>::rule("1", &[]);
        drive.create_with(0, None, &TaskParams::nice(5));
        drive.create_with(1, None, &TaskParams::nice(-5));
        assert_eq!(order(&mut drive, 1), [0]);
        assert_eq!(drive.probe(0, "vruntime_ticks"), 3);
        assert_eq!(order(&mut drive, 1), [1]);
        assert_eq!((drive.probe(1, "vruntime_ticks"), drive.probe(1, "ticks")), (1, 4));
        // A new niceness keeps the vruntime and weights only what follows.
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &TaskParams::nice(5)));
        assert_eq!((drive.probe(1, "vruntime_ticks"), drive.probe(1, "ticks")), (1, 0));
        assert_eq!(order(&mut drive, 1), [1]);
        assert_eq!(drive.probe(1, "vruntime_ticks"), 4);
    }

    #[test]
    fn an_undone_pick_and_a_moment_away_keep_the_place_among_equals() {
        let mut drive = Drive::<Smp<CfsArceos>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, None));
        assert_eq!(drive.run(Span::ZERO, Off::NotRun), 0);
        drive.take_out_and_resume(0);
        assert_eq!(order(&mut drive, 3), [0, 1, 2]);
    }
}
