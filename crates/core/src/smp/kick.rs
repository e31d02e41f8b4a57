//! Kicks: which CPU is told that a task is ready.
//!
//! No CPU may stay idle beside a waiting task that it could take. So each such task is *promised*
//! to a CPU that runs nothing and is about to pick: one that was kicked for it, or the one that
//! has just put it back and picks next anyhow. A CPU may all the same take another task than the
//! one that it was told of, and hands that one on; CPUs that run out of work leave promised tasks
//! alone, as Linux leaves a runqueue alone that has a single task and is about to run it.

use super::{At, NO_CPU, NOBODY, RunQueue, Slot, Smp, State, at};
use crate::ids::{CpuId, TaskId};
use crate::{Cx, Off};

impl<Q: RunQueue> Smp<Q> {
    /// Whether a CPU that runs nothing is about to pick because of `task`, which is ready.
    pub(super) fn is_promised(&self, task: TaskId) -> bool {
        let cpu = self.tasks[task].promise;
        cpu != NO_CPU && self.promised[self.slot(CpuId(cpu))] == task.0
    }

    /// Notes that `cpu`, which runs nothing and will pick, does so because of `task`.
    fn promise(&mut self, task: TaskId, cpu: CpuId) {
        let slot = self.slot(cpu);
        self.cpus[slot].told = true;
        self.promised[slot] = task.0;
        self.tasks[task].promise = cpu.0;
    }

    /// Kicks `cpu` once until it picks again.
    #[inline]
    pub(super) fn tell(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let slot = self.slot(cpu);
        self.cpus[slot].told = true;
        self.idle.remove(cpu);
        cx.kick(cpu);
    }

    /// Kicks all idle CPUs: each finds out for itself whether there is something for it.
    #[cold]
    pub(super) fn kick_all_idle(&mut self, cx: &mut Cx<'_>) {
        while let Some(cpu) = self.idle.lowest() {
            self.tell(cx, cpu);
        }
    }

    /// After `task` entered `queue`: kicks an idle CPU that may run it, nearest to `near`.
    /// Returns whether there was one.
    #[inline]
    pub(super) fn kick_idle(
        &mut self,
        cx: &mut Cx<'_>,
        task: TaskId,
        queue: usize,
        near: CpuId,
    ) -> bool {
        self.tasks[task].promise = NO_CPU;
        !self.idle.is_empty() && self.kick_one_of_idle(cx, task, queue, near)
    }

    fn kick_one_of_idle(
        &mut self,
        cx: &mut Cx<'_>,
        task: TaskId,
        queue: usize,
        near: CpuId,
    ) -> bool {
        let Some(cpu) = self.find_idle(task, queue, near) else { return false };
        self.tell(cx, cpu);
        self.promise(task, cpu);
        true
    }

    /// After `task` entered `queue` and no CPU was idle: kicks the CPU it preempts, if any.
    pub(super) fn kick_victim(&mut self, cx: &mut Cx<'_>, task: TaskId, queue: usize) {
        let mut victim: Option<(u64, CpuId)> = None;
        let at = at!(self, cx.now, queue);
        let affinity = &self.tasks[task].affinity;
        for running in at.running {
            if running.told || running.task == NOBODY || !affinity.contains(running.cpu) {
                continue;
            }
            if let Some(margin) = self.rule.preempts(&at, task, running) {
                let worse = victim.is_none_or(|(most, cpu)| {
                    margin > most || (margin == most && running.cpu < cpu)
                });
                if worse {
                    victim = Some((margin, running.cpu));
                }
            }
        }
        if let Some((_, cpu)) = victim {
            self.tell(cx, cpu);
        }
    }

    /// After `task` was put back into `queue` by `cpu`: `cpu` itself picks next, so that another
    /// CPU is needed only if this one was going to pick anyhow, or cannot run the task.
    #[inline]
    pub(super) fn keep_or_kick(
        &mut self,
        cx: &mut Cx<'_>,
        task: TaskId,
        queue: usize,
        cpu: CpuId,
        why: Off,
    ) {
        let usable = self.online.contains(cpu)
            && self.rule.serves(cpu, task)
            && (self.restricted == 0 || self.tasks[task].affinity.contains(cpu));
        if usable && !self.cpus[self.slot(cpu)].told {
            self.promise(task, cpu);
        } else {
            self.kick_idle(cx, task, queue, cpu);
        }
        if why == Off::NotRun {
            // Whether the host tries again by itself is not known.
            cx.kick(cpu);
        }
    }

    /// `cpu` has picked `taken`, or goes away. If it was to pick because of another task and that
    /// still waits, another CPU takes its place: the one that was to run `taken`, else an idle one.
    #[inline]
    pub(super) fn hand_on(&mut self, cx: &mut Cx<'_>, cpu: CpuId, taken: Option<TaskId>) {
        let slot = self.slot(cpu);
        let promised = core::mem::replace(&mut self.promised[slot], NOBODY);
        if promised != NOBODY && taken != Some(TaskId(promised)) {
            self.promise_to_another(cx, cpu, TaskId(promised), taken);
        }
    }

    fn promise_to_another(
        &mut self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        task: TaskId,
        taken: Option<TaskId>,
    ) {
        let Slot { state, queue, promise, .. } = self.tasks[task];
        if state != State::Ready || promise != cpu.0 {
            return;
        }
        let queue = usize::from(queue);
        if let Some(taken) = taken.filter(|&taken| self.is_promised(taken)) {
            let other = CpuId(self.tasks[taken].promise);
            if self.may_take(other, task, queue) {
                self.promise(task, other);
                return;
            }
        }
        self.kick_idle(cx, task, queue, cpu);
    }

    /// Whether the CPU that was told of `task` may still run it.
    pub(super) fn is_promised_allowed(&self, task: TaskId) -> bool {
        let slot = &self.tasks[task];
        self.is_promised(task) && slot.affinity.contains(CpuId(slot.promise))
    }
}
