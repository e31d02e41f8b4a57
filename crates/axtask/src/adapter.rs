//! What each CPU does, and what that makes of what axtask says.

use alloc::vec::Vec;
use core::mem::{replace, take};

use anysched_core::{
    Arrival, CpuId, Cx, Enqueue, Machine, Off, Pick, Scheduler, Span, TaskId, TaskParams, Time,
};

use crate::driver::{Driver, put_because};

/// A task that the policy knows.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// It is ready or runs.
    pub(crate) is_runnable: bool,
    /// The CPU it last ran on.
    pub(crate) last: CpuId,
    /// It has never been ready.
    pub(crate) is_new: bool,
}

/// What a CPU does.
#[derive(Clone, Debug)]
pub(crate) struct OnCpu {
    /// It runs what the policy picked.
    pub(crate) runs: bool,
    /// That, or what ran last.
    pub(crate) task: TaskId,
    /// When the policy was last told of its CPU time.
    pub(crate) since: Time,
    pub(crate) slice_end: Time,
    pub(crate) next_tick: Time,
    /// What runs was put back for this reason: the policy learns of it with the pick that follows.
    pub(crate) put: Option<Off>,
    /// Ready, but the CPU may still be on its stack.
    pub(crate) leaves: Option<TaskId>,
    /// The CPU halts, or is about to.
    pub(crate) is_idle: bool,
    /// The policy wants the CPU to pick.
    pub(crate) resched: bool,
    /// The slice of the running task has ended.
    pub(crate) expired: bool,
}

/// Runs nothing yet.
pub(crate) const NOTHING: TaskId = TaskId(u32::MAX);

impl OnCpu {
    const fn new() -> OnCpu {
        OnCpu {
            runs: false,
            task: NOTHING,
            since: Time::ZERO,
            slice_end: Time::NEVER,
            next_tick: Time::NEVER,
            put: None,
            leaves: None,
            is_idle: false,
            resched: false,
            expired: false,
        }
    }

    fn running(&self) -> Option<TaskId> {
        self.runs.then_some(self.task)
    }
}

/// What a timer has interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Current {
    /// A task that policies know.
    Task(TaskId),
    /// The kernel's first one, before it has first stopped. It is not preempted: the policy might
    /// put it on a CPU that has not started yet.
    First,
    /// Another one.
    Other,
}

/// What had stopped when a CPU came to pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// What ran because of the policy, and for how long since it was last charged.
    pub ran: Option<(TaskId, Span)>,
    /// It stays ready.
    pub(crate) stays: Option<TaskId>,
}

impl Stopped {
    /// Whether what stopped stays ready.
    pub fn stays(&self) -> bool {
        self.stays.is_some()
    }
}

/// What a CPU is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Picked {
    /// The policy's choice.
    pub pick: Option<Pick>,
    /// It is another task than the CPU ran last.
    pub switches: bool,
    /// The CPU has to interrupt itself: as soon as it has switched, it has left what it ran.
    pub interrupts: bool,
}

/// What came of a tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticked {
    /// What ran because of the policy and was charged, and for how long.
    pub ran: Option<(TaskId, Span)>,
    /// Another task should run.
    pub resched: bool,
}

/// A policy as axtask drives it. Tasks are called by the numbers that [`attach`](Adapter::attach)
/// gave them; other numbers panic, as do CPUs that the machine does not have.
pub struct Adapter<P> {
    /// Its kicks are those that nobody has [taken](Adapter::take_kick).
    pub(crate) driver: Driver<P>,
    /// The latest time that a call had: CPUs may be ahead of each other.
    pub(crate) now: Time,
    pub(crate) tasks: Vec<Known>,
    /// Numbers of tasks that no longer exist.
    pub(crate) free: Vec<TaskId>,
    pub(crate) cpus: Vec<OnCpu>,
}

impl<P: Scheduler> Adapter<P> {
    /// `policy`, which was built for `machine` and has not been called.
    pub fn new(policy: P, machine: &Machine) -> Adapter<P> {
        Adapter {
            driver: Driver::new(policy, machine),
            now: Time::ZERO,
            tasks: Vec::new(),
            free: Vec::new(),
            cpus: (0..machine.cpus()).map(|_| OnCpu::new()).collect(),
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

    /// The time of the last call.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Calls the policy for anything that changes no task.
    pub fn call<R>(&mut self, call: impl FnOnce(&mut P, &mut Cx<'_>) -> R) -> R {
        self.driver.call(self.now, call)
    }

    fn on(&mut self, cpu: CpuId) -> &mut OnCpu {
        &mut self.cpus[cpu.index()]
    }

    fn known(&mut self, task: TaskId) -> &mut Known {
        &mut self.tasks[task.index()]
    }

    /// `cpu` calls, which it does before anything else: it has left the stack of what it ran
    /// before.
    pub fn enter(&mut self, now: Time, cpu: CpuId) {
        // Another CPU may have been ahead.
        self.now = self.now.max(now);
        let Some(task) = self.on(cpu).leaves.take() else { return };
        let known = self.known(task);
        let is_new = replace(&mut known.is_new, false);
        let why = if is_new { Enqueue::New } else { Enqueue::Resumed { prev: known.last } };
        self.call(|policy, cx| policy.enqueue(cx, task, Arrival::because(why)));
    }

    /// A task that the policy does not know is about to be ready on `cpu`. Returns its number.
    pub fn attach(&mut self, cpu: CpuId, params: &TaskParams) -> TaskId {
        let task = self.free.pop().unwrap_or(TaskId(self.tasks.len() as u32));
        let known = Known { is_runnable: false, last: cpu, is_new: true };
        match self.tasks.get_mut(task.index()) {
            Some(place) => *place = known,
            None => self.tasks.push(known),
        }
        self.call(|policy, cx| policy.attach(cx, task, params));
        task
    }

    /// A task no longer exists.
    pub fn detach(&mut self, task: TaskId) {
        self.call(|policy, cx| policy.detach(cx, task));
        self.free.push(task);
    }

    /// `task`, which did not run because of the policy, has become ready: `cpu` says so, in an
    /// interrupt or for the task that it runs.
    pub fn ready(&mut self, cpu: CpuId, task: TaskId, in_interrupt: bool, burst: Option<Span>) {
        let by_task = self.on(cpu).runs && !in_interrupt;
        let known = self.known(task);
        known.is_runnable = true;
        let why = match replace(&mut known.is_new, false) {
            true => Enqueue::New,
            false => Enqueue::Wakeup { prev: known.last, sync: false },
        };
        let arrival = Arrival { why, from: by_task.then_some(cpu), burst, deadline: None };
        self.call(|policy, cx| policy.enqueue(cx, task, arrival));
    }

    /// Takes `task` out, if it is ready and no CPU may be on its stack. Returns whether it was.
    pub fn take(&mut self, task: TaskId) -> bool {
        let is_out = |on: &OnCpu| on.running() == Some(task) || on.leaves == Some(task);
        if !self.known(task).is_runnable || self.cpus.iter().any(is_out) {
            return false;
        }
        self.known(task).is_runnable = false;
        self.call(|policy, cx| policy.dequeue(cx, task));
        true
    }

    /// The parameters of `task` have changed.
    pub fn update(&mut self, task: TaskId, params: &TaskParams) {
        self.call(|policy, cx| policy.update(cx, task, params));
    }

    /// What `cpu` runs because of the policy.
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].running()
    }

    /// `cpu` puts `task` back, because it yields or is preempted, and is about to pick. Returns
    /// whether it runs it because of the policy; otherwise the task has become
    /// [ready](Adapter::ready).
    pub fn put(&mut self, cpu: CpuId, task: TaskId, preempted: bool) -> bool {
        let on = self.on(cpu);
        if on.running() != Some(task) {
            return false;
        }
        on.put = Some(put_because(preempted, on.expired));
        true
    }

    /// The same of the kernel's first task, which has run since before there was a policy.
    pub fn put_first(&mut self, cpu: CpuId, task: TaskId) {
        self.known(task).is_runnable = true;
        let on = self.on(cpu);
        (on.put, on.task) = (Some(Off::Yielded), task);
    }

    /// `cpu` comes to pick: what it ran was put back, or waits, or is one that `exits`.
    pub fn stop(&mut self, cpu: CpuId, exits: bool) -> Stopped {
        let now = self.now;
        let on = self.on(cpu);
        let (put, task) = (on.put.take(), on.task);
        (on.resched, on.expired) = (false, false);
        let stays = put.map(|_| task);
        if !replace(&mut on.runs, false) {
            return Stopped { ran: None, stays };
        }
        let ran = now.since(replace(&mut on.since, now));
        if put.is_none() {
            self.known(task).is_runnable = false;
        }
        let why = put.unwrap_or(if exits { Off::Exited } else { Off::Blocked });
        self.call(|policy, cx| policy.put_prev(cx, cpu, task, ran, why));
        Stopped { ran: Some((task, ran)), stays }
    }

    /// `cpu`, which is about to pick, does what is due.
    pub fn look(&mut self, cpu: CpuId) {
        if take(&mut self.on(cpu).is_idle) {
            self.on(cpu).next_tick = self.driver.tick_after(self.now);
        }
        self.driver.run_timers(self.now);
    }

    /// What `cpu` is to run after what it `stopped`; nothing of the policy's unless it `may`.
    pub fn pick(&mut self, cpu: CpuId, stopped: Stopped, may: bool) -> Picked {
        let pick = if may { self.call(|policy, cx| policy.pick_next(cx, cpu)) } else { None };
        // All calls since the last pick asked for what has just been done.
        self.driver.kicks.remove(cpu);
        let left = stopped.stays.filter(|task| pick.is_none_or(|pick| pick.task != *task));
        if let Some(task) = left {
            if !self.known(task).is_new {
                self.call(|policy, cx| policy.dequeue(cx, task));
            }
            self.on(cpu).leaves = Some(task);
        }
        let interrupts = left.is_some();
        let Some(Pick { task, slice }) = pick else {
            return Picked { pick, switches: false, interrupts };
        };
        assert!(self.known(task).is_runnable, "the policy picked a task that is not ready");
        self.known(task).last = cpu;
        let now = self.now;
        let on = self.on(cpu);
        let switches = task != on.task;
        (on.runs, on.task, on.since) = (true, task, now);
        on.slice_end = Time(now.0.saturating_add(slice.0));
        Picked { pick, switches, interrupts }
    }

    /// The policy has nothing for `cpu`, which halts unless it has something else.
    pub fn rest(&mut self, cpu: CpuId, halts: bool) {
        self.on(cpu).is_idle = halts;
    }

    /// A timer has interrupted what `cpu` runs.
    pub fn tick(&mut self, cpu: CpuId, current: Current) -> Ticked {
        let now = self.now;
        let on = self.on(cpu);
        let mut ticked = Ticked { ran: None, resched: take(&mut on.resched) };
        match (on.running(), current) {
            (Some(task), Current::Task(current)) if task == current => {
                if now >= on.slice_end {
                    on.expired = true;
                    ticked.resched = true;
                }
                if now >= on.next_tick {
                    let ran = now.since(replace(&mut on.since, now));
                    ticked.ran = Some((task, ran));
                    self.call(|policy, cx| policy.tick(cx, cpu, task, ran));
                }
            }
            (_, Current::First) => {}
            // Not the policy's task: it must not keep the policy's tasks waiting.
            _ => ticked.resched = true,
        }
        self.on(cpu).next_tick = self.driver.tick_after(self.now);
        self.driver.run_timers(self.now);
        if self.driver.kicks.contains(cpu) {
            self.driver.kicks.remove(cpu);
            ticked.resched = true;
        }
        ticked
    }

    /// The next CPU that the policy wants to pick and that has to be interrupted for it, by `here`,
    /// which may be `in_interrupt`: the end of an interrupt looks by itself.
    pub fn take_kick(&mut self, here: CpuId, in_interrupt: bool) -> Option<CpuId> {
        while let Some(cpu) = self.driver.kicks.take_lowest() {
            let is_told = replace(&mut self.on(cpu).resched, true);
            if !is_told && (cpu != here || !in_interrupt) {
                return Some(cpu);
            }
        }
        None
    }

    /// Whether `cpu` halts, or is about to, although it should pick.
    pub fn halts_in_vain(&self, cpu: CpuId) -> bool {
        let on = &self.cpus[cpu.index()];
        on.is_idle && on.resched
    }

    /// When the next tick of `cpu` is due.
    pub fn next_tick(&self, cpu: CpuId) -> Time {
        self.cpus[cpu.index()].next_tick
    }

    /// When `cpu` has to be interrupted at the latest for the policy or its task.
    pub fn due(&self, cpu: CpuId) -> Time {
        let on = &self.cpus[cpu.index()];
        let task = if on.runs { on.slice_end.min(on.next_tick) } else { Time::NEVER };
        self.driver.timer().min(task)
    }
}
