//! Strawman: a runqueue per CPU, alternately first come, first served and round robin, and each
//! task stays in the one that its number falls to.
//!
//! Source: what the M-RSF paper (Dong, Yang and Li 2024) says of OSv's scheduler, which it calls
//! multi-queue multi-server (MQMS), taken literally: several queues, each with a policy of its own
//! such as FCFS and RR, and no task ever changes its queue. OSv does nothing of the kind; what it
//! does is `osv`. This policy is here to show what comparisons with that description are worth.
//! Order key: arrival number; the n-th new task goes to runqueue n mod CPUs. Runqueues with even
//! numbers let a task run until it leaves; in the others an expired task goes to the tail. A task
//! that is not allowed on its CPU goes to the shortest runqueue where it is.
//! Not work-conserving: nothing is stolen or balanced.
//! Cost: O(1).

use alloc::vec::Vec;

use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, TaskParams};
use anysched_core::queue::{Links, List};
use anysched_core::registry::{First, Policy};
use anysched_core::smp::{
    At, Balance, Entry, Layout, Place, Removal, RunQueue, SmpParams, Steal, Why,
};
use anysched_core::time::Span;
use anysched_core::{Canon, Machine, Off, canon_fields, params};

params! {
    /// Parameters of `mqms-loose`.
    pub struct MqmsLooseParams {
        /// Time a task of a round-robin runqueue runs before the next one has its turn.
        quantum: Span = Span::from_ms(50),
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct MqmsLoose {
    quantum: Span,
    links: Links,
    queues: Vec<List>,
}

impl Policy for MqmsLoose {
    type Params = MqmsLooseParams;
    const SOURCE: &'static str = "M-RSF paper (Dong, Yang, Li 2024), its words on OSv";
    const ORDER: &'static [First] = &[First::Longest];
    const STARVES: bool = true;

    fn build(_: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError> {
        if params.quantum == Span::ZERO {
            return Err(ParamError::Invalid { name: "quantum", why: "must be above 0" });
        }
        Ok(MqmsLoose {
            quantum: params.quantum,
            links: Links::default(),
            queues: alloc::vec![List::default(); queues],
        })
    }
}

impl RunQueue for MqmsLoose {
    const HAS_LAYOUTS: bool = false;

    fn smp() -> SmpParams {
        SmpParams {
            layout: Layout::PerCpu,
            place: Place::RoundRobin,
            steal: Steal::Never,
            balance: Balance::Never,
            ..SmpParams::default()
        }
    }

    fn attach(&mut self, task: TaskId, _: &TaskParams) {
        self.links.attach(task);
    }

    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry) {
        let queue = &mut self.queues[at.queue];
        match entry.why {
            Why::Put(Off::NotRun) => self.links.push_front(queue, task),
            _ => self.links.push_back(queue, task),
        }
    }

    fn pop(&mut self, at: &At<'_>, _: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let queue = &mut self.queues[at.queue];
        let task = self.links.iter(queue).find(|&task| fits(task))?;
        self.links.remove(queue, task);
        Some(task)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.links.remove(&mut self.queues[at.queue], task);
    }

    fn slice(&mut self, at: &At<'_>, _: TaskId) -> Span {
        if at.queue.is_multiple_of(2) { Span::MAX } else { self.quantum }
    }

    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.links.iter(&self.queues[at.queue]).find(|&task| fits(task))
    }

    fn canon(&self, to: &mut Canon) {
        canon_fields!(self, to, MqmsLoose { quantum: fixed, links: fixed, queues: of(links) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::Smp;
    use anysched_core::{Arrival, Enqueue, Scheduler};
    use anysched_oracle::drive::{CLOSED, Drive, ms, play};

    #[test]
    fn one_runqueue_is_first_come_first_served() {
        play::<MqmsLoose>(&[], CLOSED).assert(CLOSED, &[7, 9, 14, 15, 24, 27], 69);
    }

    #[test]
    fn tasks_go_round_and_stay_and_queues_differ() {
        let mut drive = Drive::<Smp<MqmsLoose>>::rule("3", &[("quantum", "2ms")]);
        (0..7).for_each(|task| drive.create(task, None));
        assert_eq!(
            [drive.pick(0), drive.pick(1), drive.pick(2)],
            [Some((0, Span::MAX)), Some((1, ms(2))), Some((2, Span::MAX)),]
        );
        drive.now += ms(2);
        drive.put(1, 1, ms(2), Off::Expired);
        assert_eq!(drive.pick(1), Some((4, ms(2))));
        drive.put(0, 0, ms(2), Off::Exited);
        drive.put(2, 2, ms(2), Off::Blocked);
        assert_eq!([drive.pick(0), drive.pick(2)], [Some((3, Span::MAX)), Some((5, Span::MAX))]);
        drive.put(2, 5, Span::ZERO, Off::Exited);
        // CPU 2 idles beside tasks 1 and 6, and 2 returns to where it was.
        assert_eq!(drive.pick(2), None);
        let why = Enqueue::Wakeup { prev: CpuId(2), sync: false };
        drive.call(|smp, cx| smp.enqueue(cx, TaskId(2), Arrival::because(why)));
        assert_eq!(drive.pick(2), Some((2, Span::MAX)));
    }
}
