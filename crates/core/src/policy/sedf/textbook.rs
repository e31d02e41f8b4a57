//! EDF and DM as in textbooks: a job is ready from its release until it is done, the one with the
//! smallest key runs, and a released job takes the CPU from one with a larger key at once.
//!
//! Source: C. L. Liu and J. W. Layland, J. ACM 20(1), 1973 (EDF); J. Leung and J. Whitehead,
//! Performance Evaluation 2(4), 1982 (DM).
//! A job's deadline is that of its arrival, or the arrival plus the task's relative deadline. One
//! that begins without its task having blocked keeps the deadline of the job before.

use super::{Order, Sedf, ns};
use crate::ids::{CpuId, TaskId};
use crate::time::{Span, Time};
use crate::{Cx, Off, Pick};

impl<O: Order> Sedf<O> {
    /// A job of `task` with this deadline arrives.
    pub(super) fn set_deadline(&mut self, task: TaskId, now: Time, deadline: Option<Time>) {
        let vcpu = &mut self.tasks[task.index()];
        let usual = ns(now).saturating_add(vcpu.relative_deadline);
        vcpu.deadline = Some(deadline.map_or(usual, ns));
    }

    /// Queues `task` and sees whether it is to run at once.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.push_run(task);
        let cpu = self.tasks[task.index()].cpu;
        let on = &self.cpus[cpu.index()];
        let goes_first = match on.current {
            Some(current) => self.guaranteed.key(task) < self.guaranteed.key(current.task),
            None => !on.choosing,
        };
        if goes_first {
            cx.kick(cpu);
        }
    }

    pub(super) fn pick_released(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let on = &mut self.cpus[cpu.index()];
        let task = on.runq.first();
        on.current = task.map(|task| super::Current { task, extra: None });
        self.touched(cx, cpu);
        task.map(|task| Pick { task, slice: Span::MAX })
    }

    /// `task`, which has kept its place in the runqueue, stops running.
    pub(super) fn put_released(&mut self, task: TaskId, why: Off, runnable: bool) {
        if runnable && why != Off::Yielded {
            return;
        }
        self.unqueue(task);
        if runnable {
            self.push_run(task);
        }
    }
}
