//! Tasks that change, and CPUs that come and go: who moves then, and who has to pick.

use super::rule::Rule;
use super::{At, Entry, NOBODY, Removal, Slot, Smp, State, Why, at, fair};
use crate::Cx;
use crate::ids::{CpuId, TaskId};
use crate::params::TaskParams;
use crate::time::Time;

impl Smp<dyn Rule> {
    /// See [`Scheduler::detach`](crate::Scheduler::detach).
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let slot = &self.tasks[task];
        self.restricted -= u32::from(!slot.affinity.is_all());
        if slot.state == State::Delayed {
            let queue = usize::from(slot.queue);
            self.rule.remove(&at!(self, cx.now, queue), task, Removal::Dequeue);
            self.note_dropped(cx);
            self.note(CpuId(queue as u16));
            self.answer_wish(cx, queue);
        }
        if self.kept.fair {
            self.fair.removes(CpuId(self.tasks[task].queue), task);
        }
        self.tasks[task] = Slot::default();
        self.rule.detach(task);
    }

    /// See [`Scheduler::update`](crate::Scheduler::update).
    pub(super) fn change(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        let slot = &mut self.tasks[task];
        self.restricted -= u32::from(!slot.affinity.is_all());
        self.restricted += u32::from(!params.affinity.is_all());
        let is_bound_anew = slot.affinity != params.affinity;
        slot.affinity = params.affinity.clone();
        let (queue, state, cpu) = (usize::from(slot.queue), slot.state, CpuId(slot.cpu));
        self.rule.update(&at!(self, cx.now, queue), state.whereabouts(), task, params);
        self.note_dropped(cx);
        self.note(CpuId(queue as u16));
        if self.kept.fair {
            let weight = self.rule.weight(task);
            self.fair.reweighs(CpuId(queue as u16), task, weight, cx.now);
            if is_bound_anew {
                self.fair.requeues(CpuId(queue as u16), task, cx.now);
                if state != State::Blocked {
                    self.rule.requeue(&at!(self, cx.now, queue), state.whereabouts(), task);
                    self.note_dropped(cx);
                }
                self.distribute(task, CpuId(queue as u16));
            }
        }
        match state {
            State::Delayed if self.kept.fair && !self.may_enter(task, queue) => {
                self.rehome(cx, task, CpuId(queue as u16));
            }
            State::Ready if !self.may_enter(task, queue) => {
                let near = if self.kept.fair { CpuId(queue as u16) } else { cpu };
                self.rehome(cx, task, near);
            }
            State::Ready => {
                let kicked = self.is_promised_allowed(task) || self.kick_idle(cx, task, queue, cpu);
                if self.rule.reconsiders_waiting() && self.members(queue).len() == 1 {
                    self.reconsider(cx, task, queue);
                } else if self.rule.may_preempt() && !kicked {
                    self.kick_victim(cx, task, queue);
                }
            }
            State::Running => {
                let (at, running) = (at!(self, cx.now, queue), self.cpus[self.slot(cpu)]);
                if self.rule.reconsiders(&at, task, &running) || !params.affinity.contains(cpu) {
                    self.tell(cx, cpu);
                } else {
                    self.answer_wish(cx, queue);
                }
            }
            _ => self.answer_wish(cx, queue),
        }
    }

    /// See [`Scheduler::set_online`](crate::Scheduler::set_online).
    pub(super) fn set_usable(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.rule.set_online(cpu, online);
        self.note(cpu);
        if self.kept.fair && self.online.contains(cpu) != online {
            self.fair.set_online(cpu, online);
        }
        if online {
            self.online.insert(cpu);
            self.tell(cx, cpu);
            return;
        }
        self.online.remove(cpu);
        self.idle.remove(cpu);
        let slot = self.slot(cpu);
        self.cpus[slot].told = false;
        let queue = self.queue_of(cpu);
        loop {
            let fits = |task: TaskId| !self.may_enter(task, queue);
            let stranded = self.rule.spare(&at!(self, cx.now, queue), &fits);
            let Some(task) = stranded else { break };
            self.rehome(cx, task, cpu);
        }
        self.hand_on(cx, cpu, None);
        self.answer_opened(cx);
    }

    /// The parameters of `task`, which waits in `queue`, have changed: its only CPU may have to
    /// pick.
    fn reconsider(&mut self, cx: &mut Cx<'_>, task: TaskId, queue: usize) {
        let running = self.members(queue)[0];
        let asks = running.task != NOBODY && !running.told;
        if asks && self.rule.reconsiders(&at!(self, cx.now, queue), task, &running) {
            self.tell(cx, running.cpu);
        }
    }

    /// Moves `task`, which is queued where it may not run, to a runqueue where it may. `cpu` is
    /// where it last ran.
    #[cold]
    pub(super) fn rehome(&mut self, cx: &mut Cx<'_>, task: TaskId, cpu: CpuId) {
        let to = self.choose_queue(task, None, cpu);
        self.take_out(cx, task);
        self.enter(cx, task, to, cpu, &Entry::because(Why::Moved));
    }

    /// Takes the waiting `task` out of its runqueue so that it can enter another.
    pub(super) fn take_out(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let from = usize::from(self.tasks[task].queue);
        self.note_leaving(cx, from, task, fair::Leaves::Moves);
        if self.kept.fair {
            self.tasks[task].hot_until = Time::ZERO;
        }
        self.rule.remove(&at!(self, cx.now, from), task, Removal::Move);
        self.touched(cx, from);
        self.answer_wish(cx, from);
    }

    /// Moves `task`, which waits in one runqueue, to another.
    pub(super) fn move_task(&mut self, cx: &mut Cx<'_>, task: TaskId, to: usize) {
        self.take_out(cx, task);
        self.push_moved(cx, task, to);
    }

    /// Puts `task`, which was taken out of another runqueue, into `to`, whose CPU is about to pick.
    pub(super) fn push_moved(&mut self, cx: &mut Cx<'_>, task: TaskId, to: usize) {
        self.tasks[task].queue = to as u16;
        self.note_entering(cx, to, task);
        self.rule.push(&at!(self, cx.now, to), task, &Entry::because(Why::Moved));
        self.touched(cx, to);
    }
}
