//! A machine that is virtual: its CPUs are entered, waiting or halted.
//!
//! Work, slices and ticks advance only while the CPU is entered. Interrupts, too, are handled by a
//! CPU: the end of a task's sleep by the one on which it fell asleep, arrivals from outside by the
//! first. A halted CPU has to be woken for it; a waiting one handles it when it is entered.

use anysched_core::{CpuId, Off, Scheduler, Span, TaskId, Time};
use anysched_measure::Metrics;
use anysched_trace::Sink;
use anysched_workload::{Channel, Load, Port};
use std::collections::VecDeque;

use super::agenda::Moment;
use super::{Sim, SimError};

/// What a virtual machine knows of the machine whose tasks its CPUs are.
pub(super) struct Guest {
    vcpus: Vec<Vcpu>,
    entered: usize,
    /// CPU 0 has been interrupted and not entered since.
    raised: bool,
    /// Channel, time sent, and time of arrival.
    inbox: VecDeque<(Channel, Time, Time)>,
    outbox: Vec<(Port, Time)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Halted,
    Waits,
    Entered,
}

#[derive(Debug)]
struct Vcpu {
    mode: Mode,
    since: Time,
    /// It has to pick when it is next entered.
    kicked: bool,
    /// Tasks whose sleep has ended on it, and when; woken when it is next entered.
    awake: Vec<(TaskId, Time)>,
    /// What it still has to spend on switching tasks.
    delay: Span,
    next_tick: Time,
    /// The time it has spent in each mode, indexed by mode.
    spent: [Span; 3],
}

impl Vcpu {
    /// The time it has spent in `mode` up to `now`.
    fn spent(&self, mode: Mode, now: Time) -> Span {
        let current = if self.mode == mode { now.since(self.since) } else { Span::ZERO };
        self.spent[mode as usize] + current
    }

    fn change(&mut self, mode: Mode, now: Time) {
        self.spent[self.mode as usize] += now.since(self.since);
        self.since = now;
        self.mode = mode;
    }
}

impl Guest {
    fn new(cpus: usize) -> Guest {
        let vcpu = || Vcpu {
            mode: Mode::Halted,
            since: Time::NEVER,
            kicked: false,
            awake: Vec::new(),
            delay: Span::ZERO,
            next_tick: Time::NEVER,
            spent: [Span::ZERO; 3],
        };
        Guest {
            vcpus: std::iter::repeat_with(vcpu).take(cpus).collect(),
            entered: 0,
            raised: false,
            inbox: VecDeque::new(),
            outbox: Vec::new(),
        }
    }

    fn is_entered(&self, cpu: usize) -> bool {
        self.vcpus[cpu].mode == Mode::Entered
    }

    pub(super) fn none_entered(&self) -> bool {
        self.entered == 0
    }

    /// Whether the policy's timer is useful now: some CPU would run it, or one must be woken
    /// because tasks are ready.
    pub(super) fn takes_timer(&self, is_waited_for: bool) -> bool {
        self.entered > 0 || is_waited_for && !self.raised
    }

    /// Interrupts CPU 0.
    pub(super) fn raise(&mut self) {
        self.raised = true;
    }

    /// When CPU 0 is to be interrupted for an arrival from outside; `load`: when the load's next
    /// one is due.
    pub(super) fn next_ready(&self, load: Time) -> Time {
        if self.raised && !self.is_entered(0) {
            return Time::NEVER;
        }
        if self.inbox.is_empty() { load } else { Time::ZERO }
    }
}

/// How much of its CPUs a virtual machine has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Time entered, over all CPUs.
    pub(crate) entered: Span,
    /// Time halted, over all CPUs.
    pub(crate) halted: Span,
    /// Time since it was created.
    pub(crate) age: Span,
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// The same machine, virtual.
    pub(crate) fn into_guest(mut self) -> Sim<S, L, T> {
        self.guest = Some(Box::new(Guest::new(self.cpus.len())));
        self
    }

    /// Handles what is due next, if the CPU that has to handle it is entered.
    pub(super) fn interrupt(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        let (now, sleeper) = (self.clock.now(), self.agenda.sleepers.next());
        let outside = guest.next_ready(self.agenda.outside);
        if outside <= sleeper && outside <= now {
            if !guest.is_entered(0) {
                guest.raise();
            } else if let Some((channel, sent, at)) = guest.inbox.pop_front() {
                self.signal(channel, Some(sent), None, at);
            } else {
                self.take_outside();
            }
        } else if sleeper <= now {
            let Some(task) = self.agenda.sleepers.pop() else { return };
            let cpu = usize::from(self.tasks[task].cpu);
            if guest.is_entered(cpu) {
                self.wake(task, None, now);
            } else {
                guest.vcpus[cpu].awake.push((task, now));
            }
        } else {
            self.deliver_message();
        }
    }

    /// Whether the pick of `cpu` has to wait until it is entered.
    #[inline]
    pub(super) fn postpones_kick(&mut self, cpu: usize) -> bool {
        match &mut self.guest {
            Some(guest) if !guest.is_entered(cpu) => {
                guest.vcpus[cpu].kicked = true;
                true
            }
            _ => false,
        }
    }

    /// Charges `cpu` while it is not entered: it pays when it next is.
    pub(super) fn charges_later(&mut self, cpu: CpuId, cost: Span) -> bool {
        match &mut self.guest {
            Some(guest) if !guest.is_entered(cpu.index()) => {
                guest.vcpus[cpu.index()].delay += cost;
                self.cpus[cpu.index()].overhead += cost;
                true
            }
            _ => false,
        }
    }

    /// What `cpu` still had to spend, and now will not; `None`: it is entered, or not virtual.
    #[inline]
    pub(super) fn postponed_delay(&mut self, cpu: usize) -> Option<Span> {
        let vcpu = &mut self.guest.as_mut()?.vcpus[cpu];
        (vcpu.mode != Mode::Entered).then(|| std::mem::take(&mut vcpu.delay))
    }

    /// Whether `cpu` has anything to do.
    pub(crate) fn wants(&self, cpu: usize) -> bool {
        let Some(guest) = &self.guest else { return false };
        let vcpu = &guest.vcpus[cpu];
        self.cpus[cpu].task.is_some()
            || vcpu.kicked
            || !vcpu.awake.is_empty()
            || cpu == 0 && guest.raised
            || self.kicks.contains(self.cpus[cpu].id)
    }

    /// The virtual machine is created, with all its CPUs halted.
    pub(crate) fn begin(&mut self, now: Time) {
        self.clock.advance(now);
        for cpu in &mut self.cpus {
            (cpu.from, cpu.idle_since) = (Time::NEVER, now);
        }
        let Some(guest) = &mut self.guest else { return };
        guest.vcpus.iter_mut().for_each(|vcpu| vcpu.since = now);
    }

    /// The host starts to run `cpu`, at `speed` 1/1024.
    pub(crate) fn enter(&mut self, cpu: usize, now: Time, speed: u64) {
        self.clock.advance(now);
        let Some(guest) = &mut self.guest else { return };
        let vcpu = &mut guest.vcpus[cpu];
        vcpu.change(Mode::Entered, now);
        guest.entered += 1;
        if cpu == 0 {
            guest.raised = false;
        }
        let state = &mut self.cpus[cpu];
        state.from = now + std::mem::take(&mut vcpu.delay);
        // An overdue tick happens only once.
        state.next_tick = vcpu.next_tick.max(now);
        let idle = state.task.is_none();
        if idle {
            state.idle_since = now;
        }
        if std::mem::take(&mut vcpu.kicked) || idle {
            self.kicks.insert(state.id);
        }
        let awake = std::mem::take(&mut vcpu.awake);
        self.run_at(cpu, speed);
        for &(task, at) in &awake {
            self.wake(task, None, at);
        }
        if let Some(guest) = &mut self.guest {
            // Put back to reuse its allocation.
            guest.vcpus[cpu].awake = awake;
            guest.vcpus[cpu].awake.clear();
        }
    }

    /// The host stops running `cpu`: it has halted, or it waits.
    pub(crate) fn leave(&mut self, cpu: usize, now: Time, halted: bool) {
        self.clock.advance(now);
        self.count(cpu);
        let Some(guest) = &mut self.guest else { return };
        let vcpu = &mut guest.vcpus[cpu];
        vcpu.change(if halted { Mode::Halted } else { Mode::Waits }, now);
        guest.entered -= 1;
        let state = &mut self.cpus[cpu];
        if state.task.is_some() {
            vcpu.delay = state.from.since(now);
            vcpu.next_tick = state.next_tick;
        }
        (state.from, state.next_tick) = (Time::NEVER, Time::NEVER);
        vcpu.kicked |= self.kicks.contains(state.id);
        self.kicks.remove(state.id);
        self.agenda.cpus.set(cpu, Moment::NEVER);
        if let Some(id) = state.task
            && self.tasks[id].vcpu
        {
            self.suspend_vcpu(id, Off::Preempted);
        }
    }

    /// From now on the host runs `cpu` at `speed` 1/1024.
    pub(crate) fn set_speed(&mut self, cpu: usize, now: Time, speed: u64) {
        self.clock.advance(now);
        self.run_at(cpu, speed);
    }

    /// `cpu` runs at `speed` 1/1024 of its speed on a CPU of its own.
    fn run_at(&mut self, cpu: usize, speed: u64) {
        self.count(cpu);
        let state = &mut self.cpus[cpu];
        let capacity = u64::from(self.setup.machine.cpu(state.id).capacity);
        state.speed = (capacity * speed / 1024).max(1);
        self.change_vcpu_speed(cpu);
        self.schedule(cpu);
    }

    /// Handles all events up to and including `now`.
    pub(crate) fn settle(&mut self, now: Time) {
        self.clock.advance(now);
        while !self.clock.has_failed() {
            let next = self.next_moment(self.next_other());
            if next.time() <= now {
                self.handle(next);
            } else if self.kicks.is_empty() {
                break;
            } else {
                self.pick_kicked();
            }
        }
    }

    /// When the next event is due that happens by itself.
    pub(crate) fn next_time(&self) -> Time {
        let next = self.next_moment(self.next_other());
        if self.kicks.is_empty() { next.time() } else { self.now().min(next.time()) }
    }

    /// A halted `cpu` has something to do: it waits to be entered.
    pub(crate) fn await_entry(&mut self, cpu: usize, now: Time) {
        if let Some(guest) = &mut self.guest {
            guest.vcpus[cpu].change(Mode::Waits, now);
        }
    }

    /// A message arrives from another machine.
    pub(crate) fn receive(&mut self, channel: Channel, sent: Time, now: Time) {
        self.clock.advance(now);
        if let Some(guest) = &mut self.guest {
            guest.inbox.push_back((channel, sent, now));
        }
    }

    /// A task sends a message out of the machine.
    pub(super) fn send(&mut self, port: Port, sent: Time) {
        if let Some(guest) = &mut self.guest {
            guest.outbox.push((port, sent));
        }
    }

    /// Whether a trace is written.
    pub(crate) fn listens(&self) -> bool {
        self.sink.listens()
    }

    /// The messages sent since the last call: port, and when each set out.
    pub(crate) fn sent(&mut self) -> impl Iterator<Item = (Port, Time)> {
        self.guest.as_mut().into_iter().flat_map(|guest| guest.outbox.drain(..))
    }

    /// What the run fails for, once.
    pub(crate) fn take_error(&mut self) -> Option<SimError> {
        self.clock.take_error()
    }

    pub(crate) fn usage(&self, now: Time) -> Usage {
        let Some(guest) = &self.guest else { return Usage::default() };
        let sum = |mode| Span(guest.vcpus.iter().map(|vcpu| vcpu.spent(mode, now).0).sum());
        let age = |vcpu: &Vcpu| {
            vcpu.spent.iter().map(|span| span.0).sum::<u64>() + now.since(vcpu.since).0
        };
        let age = Span(guest.vcpus.iter().map(age).min().unwrap_or(0));
        Usage { entered: sum(Mode::Entered), halted: sum(Mode::Halted), age }
    }

    pub(crate) fn sink(&mut self) -> &mut T {
        &mut self.sink
    }

    pub(crate) fn metrics(&mut self) -> &mut Metrics {
        &mut self.account.metrics
    }

    pub(crate) fn policy(&self) -> &S {
        &self.policy
    }

    /// The machine is destroyed.
    pub(crate) fn end(&mut self, now: Time) {
        self.clock.advance(now);
        self.finish();
    }

    /// Counts the CPUs' times up to now, for the last time.
    pub(super) fn finish_guest(&mut self) {
        let now = self.now();
        let Some(guest) = &mut self.guest else { return };
        for (vcpu, state) in guest.vcpus.iter_mut().zip(&mut self.cpus) {
            vcpu.change(vcpu.mode, now);
            self.account.metrics.stolen += vcpu.spent[Mode::Waits as usize];
            state.idle += vcpu.spent[Mode::Halted as usize];
            if vcpu.mode != Mode::Entered {
                // The rest of a delay is not spent.
                state.from = now + vcpu.delay;
                state.idle_since = now;
            }
        }
    }
}
