//! Fixed priorities: the most urgent task runs, one that becomes ready takes the CPU from a less
//! urgent one at once, and equals run first come, first served or in turns of a quantum.
//!
//! Source: IEEE Std 1003.1-2017 (POSIX), 2.8.4 Process Scheduling, policies `SCHED_FIFO` (without
//! `quantum`) and `SCHED_RR`.
//! Order key: (−[`TaskParams::priority`], place in the list of that priority); larger priorities
//! are more urgent. A task goes to the tail of its list when it becomes ready, yields, has used up
//! its quantum or is given another priority; to the head when it is preempted. A quantum lasts
//! until it is used up, through any number of preemptions; a task that wakes or yields has a new
//! one.
//! Of several CPUs, the one whose task is the least urgent is interrupted. Equals do not interrupt.
//! A runqueue that wants a task is given the last in the order.
//!
//! Deviations:
//! - POSIX has one list per priority for the whole system; here the `layout` decides.
//! - A running task that is made less urgent than a waiting one goes on until the host's next tick,
//!   the end of its quantum, or the next decision.
//!
//! Nothing keeps the less urgent from starving, and there is no priority inheritance.
//! Cost: O(log n), and O(CPUs of the runqueue) when a task becomes ready and no CPU is idle.

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Forest, Tree};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, PerTask, canon_fields, canonical, params};

params! {
    /// Parameters of `priority`.
    pub struct PriorityParams {
        /// Time a task runs before the next one of its priority has its turn (SCHED_RR); none lets
        /// it run until it blocks or yields (SCHED_FIFO).
        quantum: Span = Span::MAX,
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Priority {
    quantum: Span,
    forest: Forest<Key>,
    queues: Vec<Tree>,
    tasks: PerTask<Task>,
    /// How many times a task has gone to a tail, and to a head.
    tails: i64,
    heads: i64,
}

/// Smaller is more urgent, then nearer to the head.
type Key = (i64, i64);

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    priority: i32,
    /// What is left of its quantum.
    left: Span,
    /// It was made less urgent while it ran, and has not been compared with waiting tasks since.
    lowered: bool,
}

impl Priority {
    fn tail(&mut self, task: TaskId) -> Key {
        self.tails += 1;
        (-i64::from(self.tasks[task].priority), self.tails)
    }

    fn head(&mut self, task: TaskId) -> Key {
        self.heads += 1;
        (-i64::from(self.tasks[task].priority), -self.heads)
    }
}

impl Policy for Priority {
    type Params = PriorityParams;
    const SOURCE: &'static str = "POSIX SCHED_FIFO and SCHED_RR, IEEE Std 1003.1-2017, 2.8.4";
    const ORDER: &'static [First] = &[First::Most("priority"), First::Longest];
    const STARVES: bool = true;

    fn build(_: &Machine, queues: usize, params: &PriorityParams) -> Result<Priority, ParamError> {
        if params.quantum == Span::ZERO {
            return Err(ParamError::Invalid { name: "quantum", why: "must be above 0, or none" });
        }
        Ok(Priority {
            quantum: params.quantum,
            forest: Forest::default(),
            queues: alloc::vec![Tree::default(); queues],
            tasks: PerTask::new(),
            tails: 0,
            heads: 0,
        })
    }
}

impl RunQueue for Priority {
    const PREEMPTS: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, params: &TaskParams) {
        self.forest.attach(task);
        self.tasks.grow(task, |_| Task::default());
        self.tasks[task] = Task { priority: params.priority, left: self.quantum, lowered: false };
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, id: TaskId, params: &TaskParams) {
        let task = &mut self.tasks[id];
        let before = core::mem::replace(&mut task.priority, params.priority);
        task.lowered |= is == Whereabouts::Running && params.priority < before;
        if is == Whereabouts::Queued && before != params.priority {
            let key = self.tail(id);
            self.forest.remove(&mut self.queues[at.queue], id);
            self.forest.insert(&mut self.queues[at.queue], id, key, ());
        }
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let task = &mut self.tasks[id];
        task.lowered = false;
        let key = match entry.why {
            Why::Put(Off::NotRun) => self.head(id),
            Why::Put(Off::Preempted) if task.left > Span::ZERO => self.head(id),
            Why::Moved => self.forest.key(id),
            // Its priority may have changed while it was out.
            Why::Resumed => (-i64::from(task.priority), self.forest.key(id).1),
            Why::New | Why::Woken | Why::Put(_) => {
                task.left = self.quantum;
                self.tail(id)
            }
        };
        self.forest.insert(&mut self.queues[at.queue], id, key, ());
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.pop_first_fit(&mut self.queues[at.queue], fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.forest.remove(&mut self.queues[at.queue], task);
    }

    #[inline]
    fn charge(&mut self, _: &At<'_>, task: TaskId, ran: Span) {
        if self.quantum < Span::MAX {
            let left = &mut self.tasks[task].left;
            *left = left.saturating_sub(ran);
        }
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, task: TaskId) -> Span {
        self.tasks[task].left
    }

    #[inline]
    fn tick(&mut self, at: &At<'_>, task: TaskId) -> bool {
        let Task { priority, lowered, .. } = self.tasks[task];
        self.tasks[task].lowered = false;
        let first = self.queues[at.queue].first().filter(|_| lowered);
        first.is_some_and(|first| self.tasks[first].priority > priority)
    }

    #[inline]
    fn preempts(&mut self, _: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let priority = |task: TaskId| i64::from(self.tasks[task].priority);
        let margin = priority(task) - priority(running.task()?);
        u64::try_from(margin).ok().filter(|&margin| margin > 0)
    }

    #[inline]
    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.forest.iter_back(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        let Task { priority, left, .. } = self.tasks[task];
        sink("priority", i64::from(priority));
        sink("quantum_left_ns", i64::try_from(left.0).unwrap_or(i64::MAX));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Priority {
                quantum: fixed,
                forest: fixed,
                queues: of(forest),
                tasks,
                tails: fixed,
                heads: fixed
            }
        );
        for (urgency, number) in self.forest.keys() {
            to.word(urgency as u64);
            to.order(number.into());
        }
    }
}

canonical!(Task { priority, left, lowered });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Scheduler;
    use anysched_core::Smp;
    use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play};

    fn of(priority: i32) -> TaskParams {
        TaskParams { priority, ..TaskParams::default() }
    }

    fn order<const N: usize>(drive: &mut Drive<Smp<Priority>>) -> [u32; N] {
        core::array::from_fn(|_| drive.run(ms(1), Off::Exited))
    }

    /// With one priority it is FCFS, or round robin.
    #[test]
    fn golden_vectors() {
        play::<Priority>(&[], CLOSED).assert(CLOSED, &[7, 9, 14, 15, 24, 27], 69);
        play::<Priority>(&[], OPEN).assert(OPEN, &[6, 9, 17, 18, 20], 36);
        let turns = [("quantum", "2ms")];
        play::<Priority>(&turns, CLOSED).assert(CLOSED, &[24, 4, 21, 7, 27, 18], 28);
        play::<Priority>(&turns, OPEN).assert(OPEN, &[16, 9, 20, 10, 12], 11);
    }

    #[test]
    fn larger_is_more_urgent_and_interrupts() {
        let mut drive = Drive::<Smp<Priority>>::rule("1", &[]);
        drive.create_with(0, None, &of(-5));
        assert_eq!(drive.pick(0), Some((0, Span::MAX)));
        drive.kicked();
        for (task, priority, kicked) in [(1, -6, false), (2, -5, false), (3, 7, true)] {
            drive.create_with(task, None, &of(priority));
            assert_eq!(drive.kicked() == [0], kicked, "{priority}");
        }
        drive.put(0, 0, ms(1), Off::Preempted);
        assert_eq!(order(&mut drive), [3, 0, 2, 1], "the preempted one is at the head");
    }

    #[test]
    fn the_cpu_of_the_least_urgent_task_is_interrupted() {
        let mut drive = Drive::<Smp<Priority>>::rule("3", &[]);
        for (task, priority) in [(0, 2), (1, i32::MIN), (2, 1)] {
            drive.create_with(task, None, &of(priority));
            // Each on the CPU of its number.
            drive.pick(task as u16);
        }
        drive.kicked();
        let victims = [(3, i32::MAX), (4, 2), (5, 2)].map(|(task, priority)| {
            drive.create_with(task, None, &of(priority));
            drive.kicked().first().copied()
        });
        assert_eq!(victims, [Some(1), Some(2), None]);
    }

    /// The places that POSIX lists, among equals.
    #[test]
    fn tails_and_heads() {
        for (why, expected) in [
            (Off::Preempted, [0, 1, 2]),
            (Off::NotRun, [0, 1, 2]),
            (Off::Yielded, [1, 2, 0]),
            (Off::Expired, [1, 2, 0]),
        ] {
            let mut drive = Drive::<Smp<Priority>>::rule("1", &[("quantum", "10ms")]);
            (0..3).for_each(|task| drive.create(task, None));
            let ran = match why {
                Off::NotRun => Span::ZERO,
                Off::Expired => ms(10),
                _ => ms(4),
            };
            assert_eq!(drive.run(ran, why), 0);
            assert_eq!(order(&mut drive), expected, "{why:?}");
        }
        let mut drive = Drive::<Smp<Priority>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, None));
        drive.run(ms(1), Off::Blocked);
        drive.wake(0);
        drive.take_out_and_resume(1);
        assert_eq!(order(&mut drive), [1, 2, 0]);
    }

    /// A yielder does not make way for the less urgent.
    #[test]
    fn a_yielder_stays_in_its_list() {
        let mut drive = Drive::<Smp<Priority>>::rule("1", &[]);
        drive.create_with(0, None, &of(1));
        drive.create_with(1, None, &of(0));
        assert_eq!([drive.run(ms(1), Off::Yielded), drive.run(ms(1), Off::Yielded)], [0, 0]);
    }

    #[test]
    fn a_preempted_task_uses_up_its_quantum_and_a_woken_one_has_a_new_one() {
        let mut drive = Drive::<Smp<Priority>>::rule("1", &[("quantum", "10ms")]);
        drive.create(0, None);
        drive.create(1, None);
        assert_eq!(drive.run(ms(4), Off::Preempted), 0);
        assert_eq!(drive.pick(0), Some((0, ms(6))));
        drive.put(0, 0, ms(6), Off::Preempted);
        assert_eq!(drive.pick(0), Some((1, ms(10))), "nothing was left of it");
        drive.put(0, 1, ms(3), Off::Blocked);
        drive.wake(1);
        assert_eq!(drive.run(ms(10), Off::Expired), 0);
        assert_eq!(drive.pick(0), Some((1, ms(10))));
    }

    #[test]
    fn another_priority_leads_to_its_tail_and_the_same_one_nowhere() {
        let mut drive = Drive::<Smp<Priority>>::rule("1", &[]);
        for (task, priority) in [(0, 0), (1, 0), (2, 0), (3, 5)] {
            drive.create_with(task, None, &of(priority));
        }
        drive.call(|smp, cx| smp.update(cx, TaskId(0), &of(0)));
        drive.call(|smp, cx| smp.update(cx, TaskId(2), &of(5)));
        assert_eq!(order(&mut drive), [3, 2, 0, 1]);
    }

    #[test]
    fn a_change_of_priority_interrupts_at_once_or_at_the_next_tick() {
        let mut drive = Drive::<Smp<Priority>>::rule("1", &[]);
        drive.create(0, None);
        drive.pick(0);
        drive.create(1, None);
        drive.kicked();
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &of(1)));
        assert_eq!(drive.kicked(), [0]);
        drive.put(0, 0, ms(1), Off::Preempted);
        assert_eq!(drive.pick(0).map(|pick| pick.0), Some(1));
        assert!(!drive.tick(1, ms(1)));
        drive.call(|smp, cx| smp.update(cx, TaskId(1), &of(-1)));
        assert!(drive.tick(1, ms(1)));
        assert!(!drive.tick(1, ms(1)), "once");
    }
}
