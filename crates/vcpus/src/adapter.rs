//! Which state each vCPU is in, and what that makes of what Xen says.

use alloc::vec;
use alloc::vec::Vec;
use core::mem::replace;

use anysched_core::{
    Affinities, Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Pick, Scheduler, Span, TaskId,
    TaskParams, Time,
};

use crate::domains::Domains;

/// What the policy believes of a vCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Blocked; it has never been ready.
    New,
    /// Blocked.
    Blocked,
    /// Blocked for the policy; woken before its registers were saved.
    Woken,
    /// Ready.
    Ready,
    /// The policy gave it to this pCPU.
    Running(CpuId),
    /// Blocked for the policy, since that picked it before its registers were saved: it is ready as
    /// soon as they are.
    Out,
}

/// Whether a vCPU that was picked can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Fitness {
    /// It can.
    Runs,
    /// It is paused.
    Paused,
    /// Another pCPU has its registers. [`saved`](Adapter::saved) has to be called when it has not.
    Saving,
}

/// A vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vcpu {
    pub(crate) state: State,
    pub(crate) yielded: bool,
    /// Where it ran last.
    pub(crate) cpu: CpuId,
    pub(crate) picked: Time,
    /// It has been charged up to here; of one that is ready, it has waited since.
    pub(crate) charged: Time,
    pub(crate) slice: Span,
}

impl Vcpu {
    const fn new() -> Vcpu {
        let (picked, charged) = (Time::ZERO, Time::ZERO);
        let (state, cpu) = (State::New, CpuId(0));
        Vcpu { state, yielded: false, cpu, picked, charged, slice: Span::MAX }
    }
}

/// A pCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pcpu {
    /// What it runs, as the policy believes.
    pub(crate) runs: Option<TaskId>,
    /// What it ran last.
    pub(crate) last: Option<TaskId>,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocked vCPUs became ready.
    pub wakeups: u64,
    /// A pCPU got a vCPU.
    pub dispatches: u64,
    /// Of these, it went on with what it had run.
    pub kept: u64,
    /// Of these, it had run another before, whatever was between them.
    pub switches: u64,
    /// Of these, the vCPU had run on another pCPU.
    pub migrations: u64,
    /// A pCPU got nothing.
    pub idle: u64,
    /// What was picked was paused.
    pub undone: u64,
    /// pCPUs that the policy told to pick again.
    pub kicks: u64,
}

/// A policy as Xen drives it. vCPUs are called by the numbers that [`attach`](Adapter::attach) gave
/// them; other numbers panic, as do pCPUs that the machine does not have.
pub struct Adapter<P> {
    pub(crate) policy: P,
    pub(crate) has_timers: bool,
    pub(crate) domains: Domains,
    pub(crate) vcpus: Vec<Vcpu>,
    pub(crate) free: Vec<TaskId>,
    pub(crate) cpus: Vec<Pcpu>,
    pub(crate) affinities: Affinities,
    /// What the policy asked for and nobody has [taken](Adapter::take_kick).
    pub(crate) kicks: CpuMask,
    pub(crate) counts: Counts,
    /// The latest time that a call had: clocks of pCPUs differ a little.
    pub(crate) now: Time,
}

impl<P: Scheduler> Adapter<P> {
    /// `policy`, which was built for `machine` and has not been called.
    pub fn new(policy: P, machine: &Machine) -> Adapter<P> {
        Adapter {
            has_timers: policy.has_timers(),
            policy,
            domains: Domains::default(),
            vcpus: Vec::new(),
            free: Vec::new(),
            cpus: vec![Pcpu::default(); machine.cpus()],
            affinities: Affinities::new(machine),
            kicks: CpuMask::EMPTY,
            counts: Counts::default(),
            now: Time::ZERO,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy, for what is no call of a host.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// The state of a vCPU.
    pub fn state(&self, vcpu: TaskId) -> State {
        self.vcpus[vcpu.index()].state
    }

    /// What the policy believes that `cpu` runs.
    pub fn runs(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].runs
    }

    /// What has happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The latest time that the policy was told.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Takes the lowest pCPU that the policy has kicked.
    pub fn take_kick(&mut self) -> Option<CpuId> {
        let cpu = self.kicks.take_lowest()?;
        self.counts.kicks += 1;
        Some(cpu)
    }

    /// When [`timer`](Adapter::timer) is due; ask again after each call.
    pub fn next_timer(&self) -> Option<Time> {
        if self.has_timers { self.policy.next_timer() } else { None }
    }

    #[inline]
    pub(crate) fn call<R>(&mut self, now: Time, call: impl FnOnce(&mut P, &mut Cx<'_>) -> R) -> R {
        self.now = self.now.max(now);
        call(&mut self.policy, &mut Cx::new(self.now, &mut self.kicks))
    }

    #[inline]
    fn vcpu(&mut self, id: TaskId) -> &mut Vcpu {
        &mut self.vcpus[id.index()]
    }

    /// A vCPU of this domain has come; it is blocked. Returns its number. This may allocate, as no
    /// other call but those for domains does.
    pub fn attach(&mut self, now: Time, mut params: TaskParams, domain: u32) -> TaskId {
        params.domain = self.domains.number(domain);
        let id = self.free.pop().unwrap_or(TaskId(self.vcpus.len() as u32));
        if id.index() == self.vcpus.len() {
            self.vcpus.push(Vcpu::new());
            self.free.reserve(self.vcpus.len());
        } else {
            self.vcpus[id.index()] = Vcpu::new();
        }
        let known = self.affinities.set(id, params);
        self.call(now, |policy, cx| policy.attach(cx, id, &known));
        id
    }

    /// A vCPU has gone, in whichever state.
    pub fn detach(&mut self, now: Time, id: TaskId) {
        match self.vcpu(id).state {
            State::Ready => self.call(now, |policy, cx| policy.dequeue(cx, id)),
            State::Running(cpu) => self.put(now, cpu, id, Off::Exited),
            State::New | State::Blocked | State::Woken | State::Out => {}
        }
        self.vcpu(id).state = State::Blocked;
        // The next of this number is another.
        for on in self.cpus.iter_mut().filter(|on| on.last == Some(id)) {
            on.last = None;
        }
        self.call(now, |policy, cx| policy.detach(cx, id));
        self.affinities.remove(id);
        self.free.push(id);
    }

    /// The parameters of a vCPU of this domain have changed.
    pub fn update(&mut self, now: Time, id: TaskId, mut params: TaskParams, domain: u32) {
        params.domain = self.domains.number(domain);
        let known = self.affinities.set(id, params);
        self.call(now, |policy, cx| policy.update(cx, id, &known));
    }

    fn enqueue(&mut self, now: Time, id: TaskId, why: Enqueue, from: Option<CpuId>) {
        let since = self.now.max(now);
        let vcpu = self.vcpu(id);
        (vcpu.state, vcpu.charged) = (State::Ready, since);
        self.counts.wakeups += u64::from(matches!(why, Enqueue::Wakeup { .. }));
        let arrival = Arrival { from, ..Arrival::because(why) };
        self.call(now, |policy, cx| policy.enqueue(cx, id, arrival));
    }

    /// A vCPU has become ready; of one that was, this changes nothing. `saving`: a pCPU still has
    /// its registers. `from`: the pCPU of the vCPU that woke it; `None`: an interrupt did.
    pub fn wake(&mut self, now: Time, id: TaskId, saving: bool, from: Option<CpuId>) {
        let Vcpu { state, cpu: prev, .. } = *self.vcpu(id);
        match state {
            State::New => self.enqueue(now, id, Enqueue::New, from),
            State::Blocked if saving => self.vcpu(id).state = State::Woken,
            State::Blocked => self.enqueue(now, id, Enqueue::Wakeup { prev, sync: false }, from),
            State::Woken | State::Ready | State::Running(_) | State::Out => {}
        }
    }

    /// A vCPU blocks or is paused. Returns the pCPU that runs it: that has to look.
    pub fn sleep(&mut self, now: Time, id: TaskId) -> Option<CpuId> {
        match self.vcpu(id).state {
            State::Running(cpu) => return Some(cpu),
            State::Ready => self.call(now, |policy, cx| policy.dequeue(cx, id)),
            State::Out | State::Woken => {}
            State::New | State::Blocked => return None,
        }
        self.vcpu(id).state = State::Blocked;
        None
    }

    /// A vCPU, which runs, gives up its pCPU.
    pub fn yields(&mut self, id: TaskId) {
        self.vcpu(id).yielded = true;
    }

    /// The CPU time of a vCPU since it was last charged.
    #[inline]
    fn charge(&mut self, now: Time, id: TaskId) -> Span {
        let now = self.now.max(now);
        let vcpu = self.vcpu(id);
        now.since(replace(&mut vcpu.charged, now))
    }

    /// `cpu` does not run a vCPU any more. Returns its CPU time since it was last charged.
    #[inline]
    fn take_off(&mut self, now: Time, cpu: CpuId, id: TaskId) -> Span {
        self.cpus[cpu.index()].runs = None;
        self.vcpu(id).yielded = false;
        self.charge(now, id)
    }

    #[inline]
    fn put(&mut self, now: Time, cpu: CpuId, id: TaskId, why: Off) {
        let ran = self.take_off(now, cpu, id);
        self.call(now, |policy, cx| policy.put_prev(cx, cpu, id, ran, why));
    }

    /// What ran on `cpu` is put back; returns it if it is still ready.
    fn put_back(&mut self, now: Time, cpu: CpuId, is_runnable: bool) -> Option<TaskId> {
        let id = self.runs(cpu)?;
        let vcpu = *self.vcpu(id);
        let why = match (is_runnable, vcpu.yielded) {
            (false, _) => Off::Blocked,
            (true, true) => Off::Yielded,
            (true, false) if now.since(vcpu.picked) >= vcpu.slice => Off::Expired,
            (true, false) => Off::Preempted,
        };
        self.put(now, cpu, id, why);
        self.vcpu(id).state = if is_runnable { State::Ready } else { State::Blocked };
        is_runnable.then_some(id)
    }

    /// `cpu` wants a vCPU. `is_runnable`: what it ran could go on. `fitness` is asked about what is
    /// picked. With `tasklet`, Xen has work of its own and nothing is picked.
    ///
    /// What `cpu` ran stays ready for the policy, although its registers have yet to be saved:
    /// another pCPU that picks it before has to do without.
    #[inline]
    pub fn schedule(
        &mut self,
        now: Time,
        cpu: CpuId,
        is_runnable: bool,
        tasklet: bool,
        mut fitness: impl FnMut(TaskId) -> Fitness,
    ) -> Option<Pick> {
        let runs = self.runs(cpu);
        let (put, mut pick) = match runs.filter(|id| is_runnable && self.vcpu(*id).yielded) {
            Some(id) if !tasklet => (Some(id), self.yield_and_pick(now, cpu, id)),
            _ => {
                let put = self.put_back(now, cpu, is_runnable);
                if tasklet {
                    return None;
                }
                (put, self.pick_next(now, cpu))
            }
        };
        loop {
            let picked = self.start(cpu, pick)?;
            match fitness(picked.task) {
                Fitness::Runs => {
                    self.counts.kept += u64::from(put == Some(picked.task));
                    return Some(picked);
                }
                Fitness::Paused => self.refuse(now, cpu, picked.task, State::Blocked),
                Fitness::Saving => self.refuse(now, cpu, picked.task, State::Out),
            }
            pick = self.pick_next(now, cpu);
        }
    }

    #[inline]
    fn yield_and_pick(&mut self, now: Time, cpu: CpuId, id: TaskId) -> Option<Pick> {
        let ran = self.take_off(now, cpu, id);
        self.vcpu(id).state = State::Ready;
        self.call(now, |policy, cx| policy.yield_and_pick(cx, cpu, id, ran)).into()
    }

    #[inline]
    fn pick_next(&mut self, now: Time, cpu: CpuId) -> Option<Pick> {
        self.call(now, |policy, cx| policy.pick_next(cx, cpu))
    }

    /// `cpu` runs what the policy has picked, if it has.
    #[inline]
    fn start(&mut self, cpu: CpuId, pick: Option<Pick>) -> Option<Pick> {
        let Some(Pick { task: id, slice }) = pick else {
            self.counts.idle += 1;
            return None;
        };
        let now = self.now;
        let vcpu = self.vcpu(id);
        let moved = replace(&mut vcpu.cpu, cpu) != cpu;
        vcpu.state = State::Running(cpu);
        (vcpu.picked, vcpu.charged, vcpu.slice) = (now, now, slice);
        let on = &mut self.cpus[cpu.index()];
        on.runs = Some(id);
        let differs = on.last.replace(id) != Some(id);
        self.counts.switches += u64::from(differs);
        self.counts.dispatches += 1;
        self.counts.migrations += u64::from(moved);
        pick
    }

    /// What was just picked cannot run; for the policy it is blocked.
    fn refuse(&mut self, now: Time, cpu: CpuId, id: TaskId, state: State) {
        self.counts.undone += 1;
        self.put(now, cpu, id, Off::NotRun);
        self.call(now, |policy, cx| policy.dequeue(cx, id));
        self.vcpu(id).state = state;
    }

    /// The registers of a vCPU have been saved, for which [`wake`](Adapter::wake) or
    /// [`schedule`](Adapter::schedule) was told to wait; of others, this changes nothing.
    /// `is_runnable`: it is ready.
    pub fn saved(&mut self, now: Time, id: TaskId, is_runnable: bool) {
        let Vcpu { state, cpu: prev, .. } = *self.vcpu(id);
        let why = match state {
            State::Out => Enqueue::Resumed { prev },
            State::Woken => Enqueue::Wakeup { prev, sync: false },
            _ => return,
        };
        if is_runnable {
            self.enqueue(now, id, why, None);
        } else {
            self.vcpu(id).state = State::Blocked;
        }
    }

    /// The tick of `cpu`, if it runs something.
    pub fn tick(&mut self, now: Time, cpu: CpuId) {
        if let Some(id) = self.runs(cpu) {
            let ran = self.charge(now, id);
            self.call(now, |policy, cx| policy.tick(cx, cpu, id, ran));
        }
    }

    /// The policy's timer is due.
    pub fn timer(&mut self, now: Time) {
        while self.next_timer().is_some_and(|due| due <= self.now.max(now)) {
            self.call(now, |policy, cx| policy.timer(cx));
        }
    }

    /// A vCPU that is ready and has not run for longer than `limit`, and how long it has not. One
    /// that has a period is given two of them more: what it may use in one can be used up.
    pub fn starving(&self, now: Time, limit: Span) -> Option<(TaskId, Span)> {
        let now = self.now.max(now);
        let mut ready = (0..self.vcpus.len() as u32).map(TaskId).filter_map(|id| {
            let vcpu = &self.vcpus[id.index()];
            (vcpu.state == State::Ready).then(|| (id, now.since(vcpu.charged)))
        });
        ready.find(|(id, waited)| {
            let period = self.affinities.params(*id).and_then(|params| params.period);
            let more = period.map_or(0, |period| period.0.saturating_mul(2));
            waited.0 > limit.0.saturating_add(more)
        })
    }

    /// A pCPU comes into use or goes out of it; one that goes has been [asked](Adapter::schedule)
    /// last with a tasklet, so that it runs nothing. Xen lets a vCPU that has lost its last pCPU
    /// run anywhere (`cpu_disable_scheduler`), but only when that has gone: the policy is told
    /// before.
    pub fn set_online(&mut self, now: Time, cpu: CpuId, online: bool) {
        let Some(before) = self.affinities.set_online(cpu, online) else { return };
        if online {
            self.call(now, |policy, cx| policy.set_online(cx, cpu, true));
        }
        let mut next = TaskId(0);
        while let Some((id, known)) = self.affinities.next_changed(&before, next) {
            self.call(now, |policy, cx| policy.update(cx, id, &known));
            next = TaskId(id.0 + 1);
        }
        if !online {
            self.call(now, |policy, cx| policy.set_online(cx, cpu, false));
            self.kicks.remove(cpu);
        }
    }
}
