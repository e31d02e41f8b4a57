//! First come, first served: tasks run in the order in which they became ready, each until it
//! blocks, yields or ends.
//!
//! Source: textbook; ArceOS `axsched` 0.3.1, `fifo.rs`.
//! Order key: arrival number. Nothing preempts; a yielder goes to the tail.
//! A runqueue that wants a task is given the head.
//! Cost: O(1).

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Links, List};
use anysched_core::registry::{First, Native, Policy};
use anysched_core::smp::{At, Entry, Removal, RunQueue, SmpParams, Why};
use anysched_core::time::Span;
use anysched_core::tuning::{Baseline, Role};
use anysched_core::{Canon, Machine, Off, canon_fields, params};

params! {
    /// Parameters of `fcfs`: none beyond those of the queue layout.
    pub struct FcfsParams {}
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Fcfs {
    links: Links,
    queues: Vec<List>,
}

impl Policy for Fcfs {
    type Params = FcfsParams;
    const SOURCE: &'static str = "textbook; ArceOS axsched 0.3.1 fifo.rs";
    const ORDER: &'static [First] = &[First::Longest];
    const STARVES: bool = true;
    const NATIVE: &'static [Native] = &[Native { host: "arceos", scheduler: Some("stock-fifo") }];
    const BASELINE: Option<Baseline> = Some(Baseline::new(Role::Blind));

    fn build(_: &Machine, queues: usize, _: &FcfsParams) -> Result<Fcfs, ParamError> {
        Ok(Fcfs { links: Links::default(), queues: alloc::vec![List::default(); queues] })
    }
}

impl RunQueue for Fcfs {
    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.links.attach(task);
    }

    #[inline]
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        let queue = &mut self.queues[at.queue];
        match entry.why {
            Why::Put(Off::NotRun) => self.links.push_front(queue, task),
            _ => self.links.push_back(queue, task),
        }
    }

    #[inline]
    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.links.pop_first_fit(&mut self.queues[at.queue], fits)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.links.remove(&mut self.queues[at.queue], task);
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
        self.links.iter(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, Fcfs { links: fixed, queues: of(links) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, times};

    #[test]
    fn golden_vectors() {
        let closed = play::<Fcfs>(&[], CLOSED);
        closed.assert(CLOSED, &[7, 9, 14, 15, 24, 27], 69);
        assert_eq!(closed.first, times(&[0, 7, 9, 14, 15, 24]));
        play::<Fcfs>(&[], OPEN).assert(OPEN, &[6, 9, 17, 18, 20], 36);
    }

    #[test]
    fn only_an_undone_pick_keeps_its_place() {
        let mut drive = Drive::<Smp<Fcfs>>::rule("1", &[]);
        (0..4).for_each(|task| drive.create(task, None));
        assert_eq!(drive.run(Span::ZERO, Off::NotRun), 0);
        assert_eq!(drive.run(ms(1), Off::Yielded), 0);
        assert_eq!(drive.run(ms(1), Off::Preempted), 1);
        assert_eq!(drive.run(ms(1), Off::Blocked), 2);
        drive.wake(2);
        let order: Vec<u32> = (0..4).map(|_| drive.run(ms(1), Off::Exited)).collect();
        assert_eq!(order, [3, 0, 1, 2]);
    }

    #[test]
    fn a_cpu_skips_tasks_that_are_not_allowed_there() {
        let mut drive = Drive::<Smp<Fcfs>>::rule("2", &[]);
        let only = |cpu| TaskParams {
            affinity: anysched_core::CpuSet::of([CpuId(cpu)]),
            ..TaskParams::default()
        };
        drive.create_with(0, None, &only(1));
        drive.create_with(1, None, &only(0));
        drive.create(2, None);
        assert_eq!([drive.pick(0), drive.pick(1)], [Some((1, Span::MAX)), Some((0, Span::MAX))]);
        assert_eq!(drive.policy.rule().len(0), 1);
    }
}
