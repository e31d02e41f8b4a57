//! Which state each task is in, and what that makes of what the kernel says.

use alloc::vec;
use alloc::vec::Vec;

use anysched_core::{
    Affinities, Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, ParamError, Pick, Scheduler,
    Span, TaskId, TaskParams, Time,
};

use crate::groups::Groups;
use crate::{Counts, Latencies};

/// What the policy believes of a task, and where the kernel has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Blocked for the policy; it has never been ready.
    New,
    /// Blocked for both.
    Blocked,
    /// Blocked for the policy; the kernel has taken it out for a moment.
    Out,
    /// Ready.
    Ready,
    /// The policy gave it to this CPU, which has not started it.
    Picked(CpuId),
    /// It runs there, or did until something above the policy took the CPU for a moment.
    Running(CpuId),
    /// Blocked for the policy; it runs without having been picked.
    Unasked,
}

/// A task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) state: State,
    /// It has yielded since it was picked.
    pub(crate) yielded: bool,
    /// The CPU that it was picked for last.
    pub(crate) cpu: CpuId,
    /// CPU time in nanoseconds, as the kernel counts it, that the policy has been told of, and when
    /// it was.
    pub(crate) charged: u64,
    pub(crate) told: Time,
    /// When it was woken, until it is picked; otherwise `u64::MAX`.
    pub(crate) woken: u64,
}

/// How a task becomes ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waking {
    /// It was blocked.
    pub wakeup: bool,
    /// The waker announced that it will block at once.
    pub sync: bool,
    /// The CPU of the task that woke or created it; `None`: an interrupt did.
    pub from: Option<CpuId>,
    /// Of a task that runs: its slice has ended, or its CPU has been kicked.
    pub over: Option<Off>,
}

/// What is to be done with a task that the kernel has put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// Nothing: it waits in the policy.
    Waits,
    /// It goes on where it was, as soon as it can, with what is left of its slice.
    GoesOn,
}

/// What a CPU ran when it came to pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prev {
    /// The task.
    pub task: TaskId,
    /// Whether the kernel could go on running it.
    pub runnable: bool,
    /// Why it stops, unless it has yielded: [`Off::Expired`] or [`Off::Preempted`].
    pub why: Off,
}

/// A policy as sched_ext drives it. All times are nanoseconds; `runtime` is the CPU time that a
/// task has used in all, as the kernel counts it, and may start anywhere.
///
/// Tasks are called by the numbers that [`attach`](Adapter::attach) gave them; other numbers
/// panic, as do CPUs that the machine does not have.
pub struct Adapter<P> {
    pub(crate) policy: P,
    has_timers: bool,
    pub(crate) groups: Groups,
    pub(crate) tasks: Vec<Task>,
    pub(crate) affinities: Affinities,
    pub(crate) free: Vec<TaskId>,
    pub(crate) cpus: Vec<Cpu>,
    /// What the policy asked for and nobody has [taken](Adapter::take_kick).
    pub(crate) kicks: CpuMask,
    /// Tasks in each of the policy's runqueues, as far as it has said.
    queued: Vec<u32>,
    /// The runqueue of the last call.
    queue: u16,
    latencies: Latencies,
}

/// A CPU.
#[derive(Clone, Default)]
pub(crate) struct Cpu {
    /// What the policy believes that it runs.
    pub(crate) runs: Option<TaskId>,
    /// The runqueue from which it has picked last.
    queue: u16,
    counts: Counts,
}

impl<P: Scheduler> Adapter<P> {
    /// `policy`, which was built for `machine` and has not been called.
    pub fn new(policy: P, machine: &Machine) -> Adapter<P> {
        Adapter {
            has_timers: policy.has_timers(),
            policy,
            groups: Groups::default(),
            tasks: Vec::new(),
            affinities: Affinities::new(machine),
            free: Vec::new(),
            cpus: vec![Cpu::default(); machine.cpus()],
            kicks: CpuMask::EMPTY,
            queued: vec![0; machine.cpus() + 1],
            queue: 0,
            latencies: Latencies::new(),
        }
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy, for what is no call of a host: a recorder's sink, counters.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// The state of a task.
    pub fn state(&self, task: TaskId) -> State {
        self.tasks[task.index()].state
    }

    /// What the policy believes that `cpu` runs.
    pub fn runs(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].runs
    }

    /// What has happened on `cpu`; of wake-ups, those of tasks that it ran last.
    pub fn counts(&self, cpu: CpuId) -> &Counts {
        &self.cpus[cpu.index()].counts
    }

    /// How many tasks were in the runqueue of `cpu` when the policy last said.
    pub fn queued(&self, cpu: CpuId) -> u32 {
        self.queued[usize::from(self.cpus[cpu.index()].queue)]
    }

    /// Whether `cpu` is in use.
    pub fn is_online(&self, cpu: CpuId) -> bool {
        self.affinities.online().contains(cpu)
    }

    /// How long woken tasks were ready before they were picked.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Takes the lowest CPU that the policy has kicked.
    pub fn take_kick(&mut self) -> Option<CpuId> {
        let cpu = self.kicks.take_lowest()?;
        self.count(cpu).kicks += 1;
        Some(cpu)
    }

    /// When [`timer`](Adapter::timer) is due; ask again after each call.
    pub fn next_timer(&self) -> Option<Time> {
        if self.has_timers { self.policy.next_timer() } else { None }
    }

    #[inline]
    pub(crate) fn call<R>(&mut self, now: Time, call: impl FnOnce(&mut P, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx::new(now, &mut self.kicks);
        let answer = call(&mut self.policy, &mut cx);
        let work = cx.work;
        self.queue = work.queue;
        if let Some(queued) = self.queued.get_mut(usize::from(work.queue)) {
            *queued = work.queued;
        }
        answer
    }

    #[inline]
    fn count(&mut self, cpu: CpuId) -> &mut Counts {
        &mut self.cpus[cpu.index()].counts
    }

    #[inline]
    fn task(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }

    /// A task has come, in this [group](crate::groups); it is blocked. Returns its number.
    pub fn attach(&mut self, now: Time, mut params: TaskParams, group: u64) -> TaskId {
        params.domain = self.groups.domain(group);
        let task = Task {
            state: State::New,
            yielded: false,
            cpu: CpuId(0),
            charged: 0,
            told: now,
            woken: u64::MAX,
        };
        let id = self.free.pop().unwrap_or(TaskId(self.tasks.len() as u32));
        if id.index() == self.tasks.len() {
            self.tasks.push(task);
            // `detach` must not allocate: it may be the kernel's last call of a dying task.
            self.free.reserve(self.tasks.len());
        } else {
            self.tasks[id.index()] = task;
        }
        let known = self.affinities.set(id, params);
        self.call(now, |policy, cx| policy.attach(cx, id, &known));
        id
    }

    /// A task has gone, in whichever state.
    pub fn detach(&mut self, now: Time, id: TaskId, runtime: u64) {
        self.leaves(now, id, runtime, Off::Exited);
        self.call(now, |policy, cx| policy.detach(cx, id));
        self.affinities.remove(id);
        self.free.push(id);
    }

    /// The parameters of a task have changed; its group is not among them.
    pub fn update(&mut self, now: Time, id: TaskId, mut params: TaskParams) {
        let known = self.affinities.params(id);
        params.domain = known.map_or_else(Default::default, |known| known.domain);
        self.set_params(now, id, params);
    }

    /// Tells the policy of parameters that have changed.
    pub(crate) fn set_params(&mut self, now: Time, id: TaskId, params: TaskParams) {
        if self.affinities.params(id) == Some(&params) {
            return;
        }
        let known = self.affinities.set(id, params);
        self.call(now, |policy, cx| policy.update(cx, id, &known));
    }

    /// A task sleeps or ends (`why`), wherever it was.
    pub fn leaves(&mut self, now: Time, id: TaskId, runtime: u64, why: Off) {
        match self.task(id).state {
            State::Ready => self.call(now, |policy, cx| policy.dequeue(cx, id)),
            State::Picked(cpu) | State::Running(cpu) => self.put(now, cpu, id, runtime, why),
            State::New | State::Blocked | State::Out | State::Unasked => {}
        }
        self.task(id).state = State::Blocked;
    }

    /// The CPU time of a task that the policy has not been told of. The kernel counts from when it
    /// began to pick; what the pick took is not the task's.
    #[inline]
    fn charge(&mut self, now: Time, id: TaskId, runtime: u64) -> Span {
        let task = self.task(id);
        let ran = runtime.saturating_sub(core::mem::replace(&mut task.charged, runtime));
        let passed = now.since(core::mem::replace(&mut task.told, now));
        Span(ran).min(passed)
    }

    /// A task stops on `cpu`.
    #[inline]
    fn put(&mut self, now: Time, cpu: CpuId, id: TaskId, runtime: u64, why: Off) {
        let ran = self.charge(now, id, runtime);
        self.task(id).yielded = false;
        self.cpus[cpu.index()].runs = None;
        let counts = self.count(cpu);
        counts.undone += u64::from(why == Off::NotRun);
        counts.preemptions += u64::from(why == Off::Preempted);
        self.call(now, |policy, cx| policy.put_prev(cx, cpu, id, ran, why));
    }

    /// The pick of a task by `cpu` comes to nothing; the task is ready.
    fn undo(&mut self, now: Time, cpu: CpuId, id: TaskId) {
        self.undo_at(now, cpu, id);
        self.task(id).state = State::Ready;
        self.kicks.insert(cpu);
    }

    /// As [`undo`](Self::undo), while `cpu` is about to pick.
    fn undo_at(&mut self, now: Time, cpu: CpuId, id: TaskId) {
        let charged = self.task(id).charged;
        self.put(now, cpu, id, charged, Off::NotRun);
    }

    /// As [`undo`](Self::undo), and the policy loses sight of the task.
    fn undo_and_remove(&mut self, now: Time, cpu: CpuId, id: TaskId) {
        self.undo(now, cpu, id);
        self.call(now, |policy, cx| policy.dequeue(cx, id));
    }

    /// A task has become ready, or was put back.
    #[inline]
    pub fn enqueue(&mut self, now: Time, id: TaskId, runtime: u64, waking: Waking) -> Enqueued {
        let task = self.task(id);
        let prev = task.cpu;
        let why = match task.state {
            State::Ready => return Enqueued::Waits,
            State::Running(cpu) => {
                let why = if task.yielded { Some(Off::Yielded) } else { waking.over };
                let Some(why) = why else { return Enqueued::GoesOn };
                self.put(now, cpu, id, runtime, why);
                self.task(id).state = State::Ready;
                return Enqueued::Waits;
            }
            State::Picked(cpu) => {
                self.undo(now, cpu, id);
                return Enqueued::Waits;
            }
            State::New => Enqueue::New,
            State::Blocked if waking.wakeup => {
                task.woken = now.0;
                Enqueue::Wakeup { prev, sync: waking.sync }
            }
            State::Blocked | State::Out | State::Unasked => Enqueue::Resumed { prev },
        };
        // Whatever it used without having been picked is not the policy's business.
        task.charged = runtime;
        task.state = State::Ready;
        self.count(prev).wakeups += u64::from(matches!(why, Enqueue::Wakeup { .. }));
        let arrival = Arrival { from: waking.from, ..Arrival::because(why) };
        self.call(now, |policy, cx| policy.enqueue(cx, id, arrival));
        Enqueued::Waits
    }

    /// A task is taken out for a moment. One that runs goes on running.
    pub fn dequeue(&mut self, now: Time, id: TaskId) {
        match self.task(id).state {
            State::Ready => self.call(now, |policy, cx| policy.dequeue(cx, id)),
            State::Picked(cpu) => self.undo_and_remove(now, cpu, id),
            State::New | State::Blocked | State::Out | State::Running(_) | State::Unasked => return,
        }
        self.task(id).state = State::Out;
    }

    /// `cpu`, which has run `prev`, wants a task. The one that the policy
    /// [believes](Adapter::runs) to be there has used `runtime`.
    ///
    /// If the answer is `prev`, the kernel goes on with it.
    #[inline]
    pub fn dispatch(
        &mut self,
        now: Time,
        cpu: CpuId,
        prev: Option<Prev>,
        runtime: u64,
    ) -> Option<Pick> {
        let mut put_back = None;
        if let Some(id) = self.runs(cpu) {
            match prev.filter(|prev| prev.task == id && prev.runnable) {
                Some(prev) if self.task(id).state == State::Running(cpu) => {
                    let why = if self.task(id).yielded { Off::Yielded } else { prev.why };
                    self.put(now, cpu, id, runtime, why);
                    put_back = Some(id);
                }
                // It ran until something above the policy came, and is no longer here.
                _ if self.task(id).state == State::Running(cpu) => {
                    self.put(now, cpu, id, runtime, Off::Preempted);
                }
                // It was picked and never came here.
                _ => self.undo_at(now, cpu, id),
            }
            self.task(id).state = State::Ready;
        }
        let pick = self.call(now, |policy, cx| policy.pick_next(cx, cpu));
        self.cpus[cpu.index()].queue = self.queue;
        let Some(Pick { task: id, .. }) = pick else {
            self.count(cpu).idle += 1;
            return None;
        };
        if let Some(prev) = put_back.filter(|&prev| prev != id && self.cpus.len() > 1) {
            // It is still on its stack: no other CPU may pick it before the kernel has put it back.
            self.call(now, |policy, cx| policy.dequeue(cx, prev));
            self.task(prev).state = State::Out;
        }
        let kept = put_back == Some(id);
        let task = self.task(id);
        task.told = now;
        let moved = core::mem::replace(&mut task.cpu, cpu) != cpu;
        let woken = core::mem::replace(&mut task.woken, u64::MAX);
        task.state = if kept { State::Running(cpu) } else { State::Picked(cpu) };
        self.cpus[cpu.index()].runs = Some(id);
        if woken != u64::MAX {
            self.latencies.record(now.0.saturating_sub(woken));
        }
        let counts = self.count(cpu);
        counts.dispatches += 1;
        counts.kept += u64::from(kept);
        counts.migrations += u64::from(moved);
        pick
    }

    /// A task that was picked has begun to run where it should.
    #[inline]
    pub fn started(&mut self, id: TaskId) {
        let task = self.task(id);
        if let State::Picked(cpu) = task.state {
            task.state = State::Running(cpu);
        }
    }

    /// A task runs on `cpu`, for which the policy has not picked it.
    pub fn runs_unasked(&mut self, now: Time, id: TaskId, runtime: u64, cpu: CpuId) {
        match self.task(id).state {
            State::Picked(at) => self.undo_and_remove(now, at, id),
            State::Running(at) => {
                self.put(now, at, id, runtime, Off::Preempted);
                self.call(now, |policy, cx| policy.dequeue(cx, id));
                self.kicks.insert(at);
            }
            State::Ready => self.call(now, |policy, cx| policy.dequeue(cx, id)),
            State::New | State::Blocked | State::Out | State::Unasked => {}
        }
        self.count(cpu).unasked += 1;
        let task = self.task(id);
        task.cpu = cpu;
        task.state = State::Unasked;
    }

    /// A task, just picked, cannot run on its CPU: the kernel runs it where it may, once.
    pub fn refuse(&mut self, now: Time, id: TaskId) {
        if let State::Picked(cpu) = self.task(id).state {
            self.undo_and_remove(now, cpu, id);
            self.task(id).state = State::Out;
        }
    }

    /// A task, which runs, gives up its CPU.
    #[inline]
    pub fn yields(&mut self, id: TaskId) {
        self.task(id).yielded = true;
    }

    /// The tick, while a task runs.
    pub fn tick(&mut self, now: Time, id: TaskId, runtime: u64) {
        if let State::Running(cpu) = self.task(id).state {
            let ran = self.charge(now, id, runtime);
            self.call(now, |policy, cx| policy.tick(cx, cpu, id, ran));
        }
    }

    /// The policy's timer is due.
    pub fn timer(&mut self, now: Time) {
        while self.next_timer().is_some_and(|due| due <= now) {
            self.call(now, |policy, cx| policy.timer(cx));
        }
    }

    /// The policy's parameter `name` is to be `text` from now on.
    ///
    /// Errors: the policy does not change it while it runs, or not to that.
    pub fn set_param(&mut self, now: Time, name: &str, text: &str) -> Result<(), ParamError> {
        self.policy.check_param(name, text)?;
        self.call(now, |policy, cx| policy.set_param(cx, name, text));
        Ok(())
    }

    /// What runs on `cpu`, which goes out of use, is put back; the kernel takes it elsewhere.
    pub(crate) fn vacate(&mut self, now: Time, cpu: CpuId, runtime: u64) {
        let Some(id) = self.runs(cpu) else { return };
        match self.task(id).state {
            State::Running(_) => self.put(now, cpu, id, runtime, Off::Preempted),
            _ => self.undo(now, cpu, id),
        }
        self.call(now, |policy, cx| policy.dequeue(cx, id));
        self.task(id).state = State::Out;
        self.kicks.remove(cpu);
    }
}
