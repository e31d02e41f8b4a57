//! What the only CPU does, and what that makes of what axtask says.

use alloc::vec::Vec;
use core::mem::{replace, take};

use anysched_core::{
    Arrival, CpuId, Cx, Enqueue, Machine, Off, Pick, Scheduler, Span, TaskId, TaskParams, Time,
};

use crate::adapter::NOTHING;
use crate::driver::{Driver, put_because};
use crate::{Picked, Stopped, Ticked};

/// The CPU.
const CPU: CpuId = CpuId(0);

/// How the CPU comes to pick because the policy wants it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heeded {
    /// It need not, or is about to look by itself.
    Nothing,
    /// It has to interrupt itself.
    Interrupts,
    /// It halts, or is about to: it has to be interrupted after it may have halted.
    Wakes,
}

/// A policy as axtask drives it on a machine of one CPU. Tasks are called by the numbers that
/// [`attach`](OneCpu::attach) gave them. Which of them are ready, its host keeps.
///
/// Here a task that stops and stays ready need not be hidden from anybody. A yield, which is the
/// path kept short, is one call of the policy, and everything rarely needed is behind one flag.
pub struct OneCpu<P> {
    /// Its kicks are those since the last pick or [`heed_kicks`](OneCpu::heed_kicks).
    pub(crate) driver: Driver<P>,
    /// How many numbers have been given.
    pub(crate) tasks: u32,
    /// Numbers of tasks that no longer exist.
    pub(crate) free: Vec<TaskId>,
    /// The CPU runs what the policy picked.
    pub(crate) runs: bool,
    /// That, or what ran last.
    pub(crate) task: TaskId,
    /// When the policy was last told of its CPU time.
    pub(crate) since: Time,
    pub(crate) slice_end: Time,
    pub(crate) next_tick: Time,
    /// What runs was put back for this reason: the policy learns of it with the pick that follows.
    pub(crate) put: Option<Off>,
    /// The next pick has more to look at than usual.
    pub(crate) is_unusual: bool,
    /// The CPU halts, or is about to.
    pub(crate) is_idle: bool,
    /// The policy wants the CPU to pick.
    pub(crate) resched: bool,
    /// The slice of the running task has ended; the task is still here only because the kernel
    /// could not be preempted.
    pub(crate) expired: bool,
}

impl<P: Scheduler> OneCpu<P> {
    /// `policy`, which was built for `machine`, of one CPU, and has not been called.
    pub fn new(policy: P, machine: &Machine) -> OneCpu<P> {
        OneCpu {
            driver: Driver::new(policy, machine),
            tasks: 0,
            free: Vec::new(),
            runs: false,
            task: NOTHING,
            since: Time::ZERO,
            slice_end: Time::NEVER,
            next_tick: Time::NEVER,
            put: None,
            is_unusual: false,
            is_idle: false,
            resched: false,
            expired: false,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.driver.policy
    }

    /// The policy, for what is no call of a host.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.driver.policy
    }

    /// Calls the policy for anything that changes no task.
    #[inline]
    pub fn call<R>(&mut self, now: Time, call: impl FnOnce(&mut P, &mut Cx<'_>) -> R) -> R {
        self.driver.call(now, call)
    }

    /// A task that the policy does not know is about to be ready. Returns its number.
    pub fn attach(&mut self, now: Time, params: &TaskParams) -> TaskId {
        let task = self.free.pop().unwrap_or_else(|| {
            self.tasks += 1;
            TaskId(self.tasks - 1)
        });
        self.call(now, |policy, cx| policy.attach(cx, task, params));
        task
    }

    /// A task no longer exists.
    pub fn detach(&mut self, now: Time, task: TaskId) {
        self.call(now, |policy, cx| policy.detach(cx, task));
        self.free.push(task);
    }

    /// `task`, which did not run because of the policy, has become ready, for the first time or
    /// again: the CPU says so, in an interrupt or for the task that it runs.
    pub fn ready(
        &mut self,
        now: Time,
        task: TaskId,
        is_new: bool,
        in_interrupt: bool,
        burst: Option<Span>,
    ) {
        let by_task = self.runs && !in_interrupt;
        let why = if is_new { Enqueue::New } else { Enqueue::Wakeup { prev: CPU, sync: false } };
        let arrival = Arrival { why, from: by_task.then_some(CPU), burst, deadline: None };
        self.call(now, |policy, cx| policy.enqueue(cx, task, arrival));
    }

    /// Takes `task` out, which is ready.
    pub fn take(&mut self, now: Time, task: TaskId) {
        self.call(now, |policy, cx| policy.dequeue(cx, task));
    }

    /// The parameters of `task` have changed.
    pub fn update(&mut self, now: Time, task: TaskId, params: &TaskParams) {
        self.call(now, |policy, cx| policy.update(cx, task, params));
    }

    /// What runs because of the policy.
    pub fn running(&self) -> Option<TaskId> {
        self.runs.then_some(self.task)
    }

    /// Whether the CPU halts, or is about to.
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Whether the CPU halts, or is about to, although it should pick.
    pub fn halts_in_vain(&self) -> bool {
        self.is_idle && self.resched
    }

    /// The next pick has more to look at than usual, which its host knows of.
    pub fn notice(&mut self) {
        self.is_unusual = true;
    }

    /// What the CPU, which may be `in_interrupt`, does because of what the policy asked for.
    pub fn heed_kicks(&mut self, in_interrupt: bool) -> Heeded {
        if self.driver.kicks.is_empty() {
            return Heeded::Nothing;
        }
        self.driver.kicks.remove(CPU);
        self.resched = true;
        match (self.is_idle, in_interrupt) {
            (true, _) => Heeded::Wakes,
            (false, false) => Heeded::Interrupts,
            (false, true) => Heeded::Nothing,
        }
    }

    /// The CPU puts back what runs because of the policy, which yields or is preempted, and is
    /// about to pick.
    #[inline]
    pub fn put(&mut self, preempted: bool) {
        self.put = Some(put_because(preempted, self.expired));
    }

    /// The CPU comes to pick: if what ran yields and there is nothing else to look at, for how long
    /// it has run, and what comes next.
    #[inline]
    pub fn yield_and_pick(&mut self, now: Time) -> Option<(Span, Picked)> {
        if self.is_unusual || self.put != Some(Off::Yielded) {
            return None;
        }
        self.put = None;
        // Time does not go back on one CPU.
        let (task, ran) = (self.task, Span(now.0 - self.since.0));
        let pick = self.call(now, |policy, cx| policy.yield_and_pick(cx, CPU, task, ran));
        Some((ran, self.follow(now, pick.into())))
    }

    /// The CPU comes to pick otherwise: what it ran was put back, or waits, or is one that `exits`.
    pub fn stop(&mut self, now: Time, exits: bool) -> Stopped {
        let put = self.put.take();
        let task = self.task;
        (self.resched, self.expired) = (false, false);
        let stays = put.map(|_| task);
        if !replace(&mut self.runs, false) {
            return Stopped { ran: None, stays };
        }
        let ran = now.since(self.since);
        let why = put.unwrap_or(if exits { Off::Exited } else { Off::Blocked });
        self.call(now, |policy, cx| policy.put_prev(cx, CPU, task, ran, why));
        Stopped { ran: Some((task, ran)), stays }
    }

    /// The CPU, which is about to pick after a [stop](OneCpu::stop), does what is due. Returns
    /// whether it was idle.
    pub fn look(&mut self, now: Time) -> bool {
        let was_idle = take(&mut self.is_idle);
        if was_idle {
            self.next_tick = self.driver.tick_after(now);
        }
        self.is_unusual = false;
        self.driver.run_timers(now);
        was_idle
    }

    /// What the CPU is to run after that.
    pub fn pick(&mut self, now: Time) -> Picked {
        let pick = self.call(now, |policy, cx| policy.pick_next(cx, CPU));
        self.follow(now, pick)
    }

    #[inline]
    fn follow(&mut self, now: Time, pick: Option<Pick>) -> Picked {
        // All calls since the last pick asked for what has just been done.
        if !self.driver.kicks.is_empty() {
            self.driver.kicks.remove(CPU);
        }
        self.runs = pick.is_some();
        let Some(Pick { task, slice }) = pick else {
            return Picked { pick, switches: false, interrupts: false };
        };
        let switches = task != self.task;
        (self.task, self.since) = (task, now);
        self.slice_end = Time(now.0.saturating_add(slice.0));
        Picked { pick, switches, interrupts: false }
    }

    /// The policy has nothing for the CPU, which halts unless it has something else.
    pub fn rest(&mut self, halts: bool) {
        self.is_idle = halts;
        self.is_unusual = true;
    }

    /// A timer has interrupted the task that runs because of the policy, or another one.
    pub fn tick(&mut self, now: Time, is_running: bool) -> Ticked {
        self.is_unusual = true;
        let mut ticked = Ticked { ran: None, resched: take(&mut self.resched) };
        if is_running {
            if now >= self.slice_end {
                self.expired = true;
                ticked.resched = true;
            }
            if now >= self.next_tick {
                let (task, ran) = (self.task, now.since(replace(&mut self.since, now)));
                ticked.ran = Some((task, ran));
                self.call(now, |policy, cx| policy.tick(cx, CPU, task, ran));
            }
        } else {
            // It must not keep the policy's tasks waiting.
            ticked.resched = true;
        }
        self.next_tick = self.driver.tick_after(now);
        self.driver.run_timers(now);
        if !self.driver.kicks.is_empty() {
            self.driver.kicks.remove(CPU);
            ticked.resched = true;
        }
        ticked
    }

    /// When the next tick is due.
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// When the policy's next timer is due, or the end of the slice of the task that has been
    /// picked: only these come sooner because of a pick.
    #[inline]
    pub fn due_by_pick(&self) -> Time {
        self.driver.timer().min(self.slice_end)
    }

    /// When the CPU has to be interrupted at the latest for the policy or its task.
    pub fn due(&self) -> Time {
        let task = if self.runs { self.slice_end.min(self.next_tick) } else { Time::NEVER };
        self.driver.timer().min(task)
    }
}
