//! Shortest job first: the task that needs the least CPU time runs, until it blocks, yields or
//! ends. [`srpt`](super::srpt) is the same order with preemption.
//!
//! Source: textbook.
//! Order key: (CPU time left until the task blocks or ends, arrival number), or with `key = total`
//! the time it needed when it became ready instead. A task that yields or is preempted is queued
//! anew by what it has left, behind equals; a yielder that is still the shortest goes on.
//! Needs a host that knows how long tasks will run. Where it does not (kernels), the need is
//! estimated by the average that [`sjf-ewma`](crate::arceos::sjf_ewma) keeps, of what the task used
//! between becoming ready and blocking or yielding; new tasks are expected to need nothing.
//! A runqueue that wants a task is given the last in the order.
//! Cost: O(log n).

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{WideForest, WideTree};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Why};
use anysched_core::time::Span;
use anysched_core::tuning::{Baseline, Role};
use anysched_core::{Canon, Ewma, Machine, Off, PerTask, canon_fields, canonical, choice, params};

choice! {
    /// What makes a job short.
    pub enum Key {
        /// CPU time that it still needs.
        Remaining = "remaining",
        /// CPU time that it needed when it became ready.
        Total = "total",
    }
}

params! {
    /// Parameters of `sjf` and `srpt`.
    pub struct ShortestFirstParams {
        /// Whether the CPU time that a task still needs counts, or what it needed when it became
        /// ready.
        key: Key = Key::Remaining,
    }
}

/// See the documentation of the modules [`sjf`](self) and [`srpt`](super::srpt).
#[derive(Debug)]
pub struct ShortestFirst<const PREEMPTIVE: bool> {
    by: Key,
    forest: WideForest,
    queues: Vec<WideTree>,
    tasks: PerTask<Task>,
    /// How often a task has been queued.
    entries: u64,
}

/// Runs each task until it leaves the CPU by itself.
pub type Sjf = ShortestFirst<false>;

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// CPU time that it needed when it became ready, as the host knows it or as expected.
    need: Span,
    /// CPU time that it has used since.
    used: Span,
    /// Average use so far, where the host does not know the need.
    average: Span,
    /// The arrival number with which it was last queued.
    number: u64,
    /// Whether the host knows the need.
    known: bool,
}

impl Task {
    fn begin(&mut self, known: Option<Span>) {
        self.need = known.unwrap_or(self.average);
        self.used = Span::ZERO;
        self.known = known.is_some();
    }

    /// Takes note of what it used, unless the host knows better.
    fn learn(&mut self) {
        if !self.known {
            self.average = Ewma::ARCEOS.after(self.average, self.used);
        }
    }

    /// Its key when `more` CPU time has not been charged yet.
    fn key(&self, by: Key, more: Span) -> Span {
        match by {
            Key::Remaining => self.need.saturating_sub(self.used + more),
            Key::Total => self.need,
        }
    }
}

impl<const PREEMPTIVE: bool> Policy for ShortestFirst<PREEMPTIVE> {
    type Params = ShortestFirstParams;
    const SOURCE: &'static str =
        if PREEMPTIVE { "L. Schrage, Operations Research 16(3), 1968" } else { "textbook" };
    const ORDER: &'static [First] = &[First::Least("left_ns")];
    const CLAIRVOYANT: bool = true;
    const STARVES: bool = true;
    const BASELINE: Option<Baseline> =
        Some(Baseline::new(if PREEMPTIVE { Role::Optimum } else { Role::NonPreemptive }));

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        Ok(ShortestFirst {
            by: params.key,
            forest: WideForest::new(queues),
            queues: alloc::vec![WideTree::default(); queues],
            tasks: PerTask::new(),
            entries: 0,
        })
    }
}

impl<const PREEMPTIVE: bool> RunQueue for ShortestFirst<PREEMPTIVE> {
    const PREEMPTS: bool = PREEMPTIVE;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.forest.attach(task);
        self.tasks.set(task, Task::default());
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        let task = &mut self.tasks[id];
        match entry.why {
            Why::New | Why::Woken => task.begin(entry.burst),
            Why::Put(Off::Yielded) if !task.known => {
                task.learn();
                task.begin(None);
            }
            Why::Put(_) | Why::Resumed | Why::Moved => {}
        }
        match entry.why {
            Why::Put(Off::NotRun) | Why::Resumed | Why::Moved => {}
            Why::New | Why::Woken | Why::Put(_) => {
                self.entries += 1;
                task.number = self.entries;
            }
        }
        let key = (task.key(self.by, Span::ZERO).0, task.number);
        self.forest.insert(&mut self.queues[at.queue], id, key);
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
        self.tasks[task].used += ran;
    }

    fn leave(&mut self, _: &At<'_>, task: TaskId, _: Off) -> bool {
        self.tasks[task].learn();
        false
    }

    #[inline]
    fn slice(&mut self, _: &At<'_>, _: TaskId) -> Span {
        Span::MAX
    }

    #[inline]
    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let uncharged = at.now.since(running.since());
        let rival = self.tasks[running.task()?].key(self.by, uncharged);
        let margin = rival.saturating_sub(self.tasks[task].key(self.by, Span::ZERO));
        (margin > Span::ZERO).then_some(margin.0)
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
        let ns = |span: Span| i64::try_from(span.0).unwrap_or(i64::MAX);
        sink("need_ns", ns(task.need));
        sink("left_ns", ns(task.need.saturating_sub(task.used)));
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            ShortestFirst { by: fixed, forest: fixed, queues: of(forest), tasks, entries: fixed }
        );
    }
}

canonical!(Task { need, used, average, number: order, known });

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, times};

    #[test]
    fn golden_vectors() {
        let closed = play::<Sjf>(&[], CLOSED);
        closed.assert(CLOSED, &[18, 3, 11, 1, 27, 6], 39);
        assert_eq!(closed.first, times(&[11, 1, 6, 0, 18, 3]));
        play::<Sjf>(&[], OPEN).assert(OPEN, &[6, 12, 20, 7, 9], 20);
    }

    #[test]
    fn a_shorter_task_waits_for_a_longer_one_that_runs() {
        let mut drive = Drive::<Smp<Sjf>>::rule("1", &[]);
        drive.create(0, Some(ms(9)));
        assert_eq!(drive.pick(0), Some((0, Span::MAX)));
        drive.kicked();
        drive.create(1, Some(ms(1)));
        assert_eq!(drive.kicked(), []);
    }

    /// Both tasks have 5 ms to go when the first is put back: it is behind the other now.
    #[test]
    fn equals_go_by_the_time_of_queueing() {
        for (why, then) in [(Off::Yielded, 1), (Off::Preempted, 1), (Off::NotRun, 0)] {
            let mut drive = Drive::<Smp<Sjf>>::rule("1", &[]);
            let ran = if why == Off::NotRun { Span::ZERO } else { ms(2) };
            drive.create(0, Some(ms(5) + ran));
            if why == Off::NotRun {
                drive.create(1, Some(ms(5)));
                drive.pick(0);
            } else {
                drive.pick(0);
                drive.create(1, Some(ms(5)));
            }
            drive.put(0, 0, ran, why);
            assert_eq!(drive.pick(0).map(|pick| pick.0), Some(then), "{why:?}");
        }
    }

    #[test]
    fn taking_a_task_out_for_a_moment_keeps_its_place() {
        let mut drive = Drive::<Smp<Sjf>>::rule("1", &[]);
        (0..3).for_each(|task| drive.create(task, Some(ms(5))));
        drive.take_out_and_resume(0);
        assert_eq!(drive.pick(0).map(|pick| pick.0), Some(0));
    }

    /// After 6 of its 9 ms, 3 are left: shorter than 4 by what remains, longer by the total.
    #[test]
    fn the_key_is_what_remains_or_the_total() {
        for (key, then) in [("remaining", 0), ("total", 1)] {
            let mut drive = Drive::<Smp<Sjf>>::rule("1", &[("key", key)]);
            drive.create(0, Some(ms(9)));
            drive.pick(0);
            drive.create(1, Some(ms(4)));
            drive.put(0, 0, ms(6), Off::Yielded);
            assert_eq!(drive.pick(0).map(|pick| pick.0), Some(then), "{key}");
        }
    }

    /// 16 ms of use raise an estimate of 0 by 1 ms; the next burst is expected to be that long.
    #[test]
    fn without_knowledge_the_past_is_the_estimate() {
        let mut drive = Drive::<Smp<Sjf>>::rule("1", &[]);
        drive.create(0, None);
        assert_eq!(drive.run(ms(16), Off::Blocked), 0);
        drive.wake(0);
        assert_eq!(drive.probe(0, "need_ns"), 1_000_000);
        drive.create(1, None);
        assert_eq!(drive.run(ms(32), Off::Yielded), 1);
        assert_eq!(drive.probe(1, "left_ns"), 2_000_000);
        // Preemption is no end of a burst: what is left of the estimate shrinks to nothing.
        assert_eq!(drive.run(ms(3), Off::Preempted), 0);
        assert_eq!(drive.probe(0, "need_ns"), 1_000_000);
        assert_eq!(drive.probe(0, "left_ns"), 0);
        assert_eq!(drive.run(ms(14), Off::Blocked), 0);
        drive.wake(0);
        // (17 − 1) / 16 = 1 more.
        assert_eq!(drive.probe(0, "need_ns"), 2_000_000);
        // A burst that the host knows teaches nothing.
        assert_eq!(drive.run(ms(1), Off::Blocked), 1);
        drive.wake_for(1, Some(ms(50)));
        drive.run(ms(18), Off::Blocked);
        drive.run(ms(50), Off::Blocked);
        drive.wake(1);
        assert_eq!(drive.probe(1, "need_ns"), 1_937_500);
    }

    #[test]
    fn another_runqueue_is_given_the_longest_that_may_go() {
        let mut drive = Drive::<Smp<Sjf>>::rule("2", &[("layout", "per-cpu"), ("steal", "never")]);
        let only = TaskParams { affinity: anysched_core::CpuSet::Few(1), ..TaskParams::default() };
        drive.create(0, Some(ms(1)));
        drive.create(9, Some(ms(1)));
        drive.create_with(1, Some(ms(7)), &only);
        drive.create_with(2, Some(ms(9)), &only);
        drive.create_with(3, Some(ms(8)), &only);
        let at = At { now: drive.now, queue: 0, running: &[] };
        let rule = drive.policy.rule();
        assert_eq!((rule.len(0), rule.len(1)), (4, 1));
        assert_eq!(rule.spare(&at, |_| true), Some(TaskId(2)));
        assert_eq!(rule.spare(&at, |task| task.0 != 2), Some(TaskId(3)));
        assert_eq!(rule.spare(&at, |task| task.0 > 3), None);
        assert_eq!([drive.pick(1), drive.pick(1)].map(|pick| pick.map(|p| p.0)), [Some(9), None]);
    }
}
