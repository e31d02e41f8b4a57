//! Kicks: which CPU is told that a task is ready.
//!
//! CPUs that run out of work leave alone tasks that are [promised](crate::promise) to others, as
//! Linux leaves alone a runqueue whose CPU is about to run its only task.

use super::rule::{Erase, Rule};
use super::{At, NOBODY, Running, Slot, Smp, State, at};
use crate::ids::{CpuId, TaskId};
use crate::promise::PassedOver;
use crate::{Cx, Off};

impl<R: Erase + ?Sized> Smp<R> {
    /// Notes that `cpu`, which runs nothing and is about to pick, does so on account of `task`.
    fn promise(&mut self, task: TaskId, cpu: CpuId) {
        let slot = self.slot(cpu);
        self.cpus[slot].told = true;
        self.promises.promise(task, cpu);
    }

    /// Kicks `cpu`, at most once until it picks again.
    #[inline]
    pub(super) fn tell(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let slot = self.slot(cpu);
        self.cpus[slot].told = true;
        self.idle.remove(cpu);
        cx.kick(cpu);
    }

    /// Kicks all idle CPUs: each finds out for itself whether there is a task for it.
    #[cold]
    pub(super) fn kick_all_idle(&mut self, cx: &mut Cx<'_>) {
        while let Some(cpu) = self.idle.lowest() {
            self.tell(cx, cpu);
        }
    }

    /// After `task` entered `queue`: kicks the idle CPU nearest to `near` that may run it. Returns
    /// whether there was one.
    #[inline]
    pub(super) fn kick_idle(
        &mut self,
        cx: &mut Cx<'_>,
        task: TaskId,
        queue: usize,
        near: CpuId,
    ) -> bool {
        self.promises.withdraw(task);
        !self.idle.is_empty() && self.erased().kick_one_of_idle(cx, task, queue, near)
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
        self.note_dropped(cx);
        if let Some((_, cpu)) = victim {
            self.tell(cx, cpu);
        }
    }

    /// Kicks the CPUs of `queue` that [`RunQueue::wants_pick`](super::RunQueue::wants_pick) names.
    pub(super) fn answer_wish(&mut self, cx: &mut Cx<'_>, queue: usize) {
        for slot in self.spans[queue].slots() {
            let Running { task, cpu, told, .. } = self.cpus[slot];
            if task != NOBODY && !told && self.rule.wants_pick(cpu) {
                self.tell(cx, cpu);
            }
        }
    }

    /// After `cpu` put `task` back into `queue`: `cpu` itself picks next, so another CPU is needed
    /// only if `cpu` was going to pick anyway or cannot run the task.
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
        cx.kick_if_undone(cpu, why);
    }

    /// `cpu` has picked `taken` or goes away. If it was to pick on account of another task that
    /// still waits, another CPU takes its place: the one that was to run `taken`, else an idle one.
    #[inline]
    pub(super) fn hand_on(&mut self, cx: &mut Cx<'_>, cpu: CpuId, taken: Option<TaskId>) {
        if let Some(passed_over) = self.promises.settle(cpu, taken) {
            self.erased().promise_to_another(cx, cpu, passed_over);
        }
    }
}

impl Smp<dyn Rule> {
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

    fn promise_to_another(&mut self, cx: &mut Cx<'_>, cpu: CpuId, passed_over: PassedOver) {
        let PassedOver { task, freed } = passed_over;
        let Slot { state, queue, .. } = self.tasks[task];
        if state != State::Ready {
            return;
        }
        let queue = usize::from(queue);
        match freed.filter(|&freed| self.may_take(freed, task, queue)) {
            Some(freed) => self.promise(task, freed),
            None => {
                self.kick_idle(cx, task, queue, cpu);
            }
        }
    }

    /// Whether the CPU that was kicked for `task` may still run it.
    pub(super) fn is_promised_allowed(&self, task: TaskId) -> bool {
        self.promises.cpu(task).is_some_and(|cpu| self.tasks[task].affinity.contains(cpu))
    }
}
