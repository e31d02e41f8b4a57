//! Loads of virtual machines that are created during a run.

use anysched_core::{Span, TaskId, Time};
use anysched_workload::{Load, NewTask, Op, Outside, Sizes};

/// A load that starts later.
pub(super) struct Later {
    pub(super) load: Box<dyn Load>,
    pub(super) by: Span,
}

impl Later {
    fn inside(&self, now: Time) -> Time {
        Time(now.since(Time::ZERO + self.by).0)
    }

    fn moved(&self, time: Time) -> Time {
        if time == Time::NEVER { time } else { time + self.by }
    }
}

impl Load for Later {
    fn sizes(&self) -> Sizes {
        self.load.sizes()
    }

    fn peek(&self) -> Time {
        self.moved(self.load.peek())
    }

    fn outside(&mut self) -> Outside {
        let mut what = self.load.outside();
        match &mut what {
            Outside::Arrival(new) => new.deadline = new.deadline.map(|time| time + self.by),
            Outside::Message { sent, .. } => *sent += self.by,
            Outside::Signal(_) => {}
        }
        what
    }

    fn spawn(&mut self, what: u32) -> NewTask {
        let mut new = self.load.spawn(what);
        new.deadline = new.deadline.map(|time| time + self.by);
        new
    }

    fn start(&mut self, task: TaskId, now: Time) {
        self.load.start(task, self.inside(now));
    }

    fn step(&mut self, task: TaskId, now: Time) -> Op {
        match self.load.step(task, self.inside(now)) {
            Op::Release { at, deadline } => {
                Op::Release { at: self.moved(at), deadline: deadline.map(|time| self.moved(time)) }
            }
            op => op,
        }
    }

    fn burst(&self, task: TaskId, run: Span) -> Span {
        self.load.burst(task, run)
    }

    fn exited(&mut self, task: TaskId, now: Time) {
        self.load.exited(task, self.inside(now));
    }

    fn part(&self, task: TaskId) -> usize {
        self.load.part(task)
    }
}
