//! EDF and DM as in textbooks: a job is ready from its release until it is done, the one with the
//! smallest key runs, and a released job takes the CPU from one with a larger key at once.
//!
//! Source: C. L. Liu and J. W. Layland, J. ACM 20(1), 1973 (EDF); J. Leung and J. Whitehead,
//! Performance Evaluation 2(4), 1982 (DM).
//! A job's deadline is that of its arrival, or the arrival plus the task's relative deadline.
//!
//! Of a job that begins without its task having blocked, because the one before ended just then or
//! later, no host tells. A task that has a period and a budget is taken to be in its next job when
//! the job before has used the budget and the next is due; its deadline is a period later. Without
//! them, EDF keeps the deadline of the job before. DM does not look at it.

use super::{Order, Sedf, ns, span};
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::time::{Span, Time};
use anysched_core::{Cx, Off, Pick};

impl<O: Order> Sedf<O> {
    /// A job of `task` with this deadline arrives.
    pub(super) fn set_deadline(&mut self, task: TaskId, now: Time, deadline: Option<Time>) {
        let vcpu = &mut self.tasks[task.index()];
        let usual = ns(now).saturating_add(vcpu.relative_deadline);
        vcpu.deadline = Some(deadline.map_or(usual, ns));
        vcpu.used = 0;
    }

    /// CPU time after which the job of `task` has used its budget, if that matters.
    fn until_next_job(&self, task: TaskId) -> Span {
        let vcpu = &self.tasks[task.index()];
        let dm = self.cpus[vcpu.cpu.index()].order.is_dm();
        match vcpu.job {
            Some(job) if !dm && vcpu.used < job.slice => Span((job.slice - vcpu.used) as u64),
            _ => Span::MAX,
        }
    }

    /// `task` has run for `ran`: whether it is in another job now.
    fn begins_next_job(&mut self, task: TaskId, now: Time, ran: Span) -> bool {
        let vcpu = &mut self.tasks[task.index()];
        vcpu.used = vcpu.used.saturating_add(span(ran));
        let Some(job) = vcpu.job else { return false };
        let release = vcpu.deadline().saturating_sub(vcpu.relative_deadline);
        let begins = vcpu.used >= job.slice && release.saturating_add(job.period) <= ns(now);
        if begins {
            vcpu.used -= job.slice;
            vcpu.deadline = Some(vcpu.deadline().saturating_add(job.period));
        }
        begins
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
        task.map(|task| Pick { task, slice: self.until_next_job(task) })
    }

    /// `task`, which has kept its place in the runqueue, stops running after `ran`.
    pub(super) fn put_released(
        &mut self,
        now: Time,
        task: TaskId,
        ran: Span,
        why: Off,
        runnable: bool,
    ) {
        let other_job = self.begins_next_job(task, now, ran);
        if runnable && why != Off::Yielded && !other_job {
            return;
        }
        self.unqueue(task);
        if runnable {
            self.push_run(task);
        }
    }
}
