//! What a task does when it is on a CPU and has no work left: its operations, one after another,
//! until one of them needs time.

use anysched_core::params::weight_of_nice;
use anysched_core::{Off, Scheduler, Span, TaskId, Time};
use anysched_trace::Sink;
use anysched_workload::{Load, Op};

use crate::engine::Sim;
use crate::task::Job;

/// What comes after an operation.
enum Then {
    /// The next one.
    GoOn,
    /// The task uses the CPU.
    Runs,
    /// The task leaves the CPU.
    Leaves(Off),
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// The task on `cpu` has done its work: lets it do what comes next.
    pub(crate) fn continue_task(&mut self, cpu: usize) {
        let Some(id) = self.cpus[cpu].task else { return };
        if self.tasks[id].left > Span::ZERO {
            return self.schedule(cpu);
        }
        loop {
            if self.fail_if_standing_still(id) {
                return;
            }
            let op = match self.tasks[id].pending.take() {
                Some(op) => *op,
                None => self.load.step(id, self.now),
            };
            match self.perform(cpu, id, op) {
                Then::GoOn => {}
                Then::Runs => return self.schedule(cpu),
                Then::Leaves(why) => {
                    self.take_off(cpu, why);
                    if why == Off::Exited {
                        self.retire(id);
                    }
                    return;
                }
            }
        }
    }

    fn perform(&mut self, cpu: usize, id: TaskId, op: Op) -> Then {
        let here = Some(self.cpus[cpu].id);
        match op {
            Op::Run(Span::ZERO) => {}
            Op::Run(work) => {
                self.tasks[id].left = work;
                return Then::Runs;
            }
            Op::Sleep(Span::ZERO) => {}
            Op::Sleep(time) => {
                self.sleepers.push(self.now + time, id);
                return Then::Leaves(Off::Blocked);
            }
            Op::Release { at, deadline } => {
                self.close_job(id);
                let deadline = deadline.unwrap_or(Time::NEVER);
                self.tasks[id].job = Job { release: at, deadline };
                if at > self.now {
                    self.sleepers.push(at, id);
                    return Then::Leaves(Off::Blocked);
                }
            }
            Op::Wait(channel) => {
                if !self.objects.take(channel, id) {
                    return Then::Leaves(Off::Blocked);
                }
            }
            Op::Signal(channel) | Op::Notify(channel) => {
                let store = matches!(op, Op::Signal(_));
                if let Some(woken) = self.objects.signal(channel, store) {
                    self.wake(woken, here);
                }
            }
            Op::Broadcast(channel) => {
                while let Some(woken) = self.objects.signal(channel, false) {
                    self.wake(woken, here);
                }
            }
            Op::Lock(lock) => {
                if !self.objects.lock(lock, id) {
                    return Then::Leaves(Off::Blocked);
                }
            }
            Op::Unlock(lock) => {
                if let Some(woken) = self.objects.unlock(lock, id) {
                    self.wake(woken, here);
                }
            }
            Op::Meet(barrier) => {
                if !self.objects.meet(barrier, id) {
                    return Then::Leaves(Off::Blocked);
                }
                while let Some(woken) = self.objects.next_met(barrier) {
                    self.wake(woken, here);
                }
            }
            Op::Yield => return Then::Leaves(Off::Yielded),
            Op::SetNice(nice) => {
                self.tasks[id].nice = nice;
                self.update_params(id, |params| params.weight = weight_of_nice(nice));
            }
            Op::SetAffinity(affinity) => {
                let affinity = self.setup_affinity(affinity);
                self.update_params(id, |params| params.affinity = affinity);
            }
            Op::Spawn(what) => {
                let new = self.load.spawn(what);
                self.create(new, here);
            }
            Op::Exit => return Then::Leaves(Off::Exited),
        }
        Then::GoOn
    }
}
