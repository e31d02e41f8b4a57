//! The virtual machine's side: CPUs that are entered, waiting or halted, and interrupts.

use anysched_core::{CpuId, Off, Scheduler, Span, TaskId, Time};
use anysched_trace::Sink;
use anysched_workload::{Channel, Load, Port};
use std::collections::VecDeque;

use crate::agenda::Moment;
use crate::engine::Sim;

/// What a virtual machine knows of the host.
pub(crate) struct Guest {
    pub(super) vcpus: Vec<Vcpu>,
    entered: usize,
    /// CPU 0 has been interrupted and not entered since.
    raised: bool,
    /// Channel, time sent, and time of arrival.
    pub(super) inbox: VecDeque<(Channel, Time, Time)>,
    pub(super) outbox: Vec<(Port, Time)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Halted,
    Waits,
    Entered,
}

#[derive(Debug)]
pub(super) struct Vcpu {
    mode: Mode,
    pub(super) since: Time,
    /// It has to pick when it is next entered.
    kicked: bool,
    /// Tasks whose sleep has ended on it, and when; woken when it is next entered.
    awake: Vec<(TaskId, Time)>,
    /// What it still has to spend on switching tasks.
    delay: Span,
    next_tick: Time,
    /// The time it has spent in each mode, indexed by mode.
    pub(super) spent: [Span; 3],
}

impl Vcpu {
    /// The time it has spent in `mode` up to `now`.
    pub(super) fn spent(&self, mode: Mode, now: Time) -> Span {
        let current = if self.mode == mode { now.since(self.since) } else { Span::ZERO };
        self.spent[mode as usize] + current
    }

    pub(super) fn change(&mut self, mode: Mode, now: Time) {
        self.spent[self.mode as usize] += now.since(self.since);
        self.since = now;
        self.mode = mode;
    }
}

impl Guest {
    pub(super) fn new(cpus: usize) -> Guest {
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

    pub(crate) fn none_entered(&self) -> bool {
        self.entered == 0
    }

    /// Whether the policy's timer is useful now: some CPU would run it, or one must be woken
    /// because tasks are ready.
    pub(crate) fn takes_timer(&self, is_waited_for: bool) -> bool {
        self.entered > 0 || is_waited_for && !self.raised
    }

    /// Interrupts CPU 0.
    pub(crate) fn raise(&mut self) {
        self.raised = true;
    }

    /// When CPU 0 is to be interrupted for an arrival from outside; `load`: when the load's next
    /// one is due.
    pub(crate) fn next_ready(&self, load: Time) -> Time {
        if self.raised && !self.is_entered(0) {
            return Time::NEVER;
        }
        if self.inbox.is_empty() { load } else { Time::ZERO }
    }

    /// Time entered and time halted up to `now`, over all CPUs.
    pub(super) fn used(&self, now: Time) -> (Span, Span) {
        let sum = |mode| self.vcpus.iter().map(|vcpu| vcpu.spent(mode, now).0).sum();
        (Span(sum(Mode::Entered)), Span(sum(Mode::Halted)))
    }
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// Handles what is due next, if the CPU that has to handle it is entered.
    pub(crate) fn interrupt(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        let sleeper = self.sleepers.next();
        let outside = guest.next_ready(self.outside);
        if outside <= sleeper && outside <= self.now {
            if !guest.is_entered(0) {
                guest.raise();
            } else if let Some((channel, sent, at)) = guest.inbox.pop_front() {
                self.signal(channel, Some(sent), None, at);
            } else {
                self.take_outside();
            }
        } else if sleeper <= self.now {
            let Some(task) = self.sleepers.pop() else { return };
            let cpu = usize::from(self.tasks[task].cpu);
            if guest.is_entered(cpu) {
                self.wake(task, None, self.now);
            } else {
                guest.vcpus[cpu].awake.push((task, self.now));
            }
        } else {
            self.deliver_message();
        }
    }

    /// Whether the pick of `cpu` has to wait until it is entered.
    #[inline]
    pub(crate) fn postpones_kick(&mut self, cpu: usize) -> bool {
        match &mut self.guest {
            Some(guest) if !guest.is_entered(cpu) => {
                guest.vcpus[cpu].kicked = true;
                true
            }
            _ => false,
        }
    }

    /// Charges `cpu` while it is not entered: it pays when it next is.
    pub(crate) fn charges_later(&mut self, cpu: CpuId, cost: Span) -> bool {
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
    pub(crate) fn postponed_delay(&mut self, cpu: usize) -> Option<Span> {
        let vcpu = &mut self.guest.as_mut()?.vcpus[cpu];
        (vcpu.mode != Mode::Entered).then(|| std::mem::take(&mut vcpu.delay))
    }

    /// Whether `cpu` has anything to do.
    pub(super) fn wants(&self, cpu: usize) -> bool {
        let Some(guest) = &self.guest else { return false };
        let vcpu = &guest.vcpus[cpu];
        self.cpus[cpu].task.is_some()
            || vcpu.kicked
            || !vcpu.awake.is_empty()
            || cpu == 0 && guest.raised
            || self.kicks.contains(self.cpus[cpu].id)
    }

    /// The virtual machine is created, with all its CPUs halted.
    pub(super) fn begin(&mut self, now: Time) {
        self.now = now;
        for cpu in &mut self.cpus {
            (cpu.from, cpu.idle_since) = (Time::NEVER, now);
        }
        let Some(guest) = &mut self.guest else { return };
        guest.vcpus.iter_mut().for_each(|vcpu| vcpu.since = now);
    }

    /// The host starts to run `cpu`, at `speed` 1/1024.
    pub(super) fn enter(&mut self, cpu: usize, now: Time, speed: u64) {
        self.now = now;
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
    pub(super) fn leave(&mut self, cpu: usize, now: Time, halted: bool) {
        self.now = now;
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
        self.agenda.set(cpu, Moment::NEVER);
        if let Some(id) = state.task
            && self.tasks[id].vcpu
        {
            self.leave_guest(id, Off::Preempted);
        }
    }

    /// `cpu` runs at `speed` 1/1024 of its speed on a CPU of its own.
    pub(super) fn run_at(&mut self, cpu: usize, speed: u64) {
        self.count(cpu);
        let state = &mut self.cpus[cpu];
        let capacity = u64::from(self.setup.machine.cpu(state.id).capacity);
        state.speed = (capacity * speed / 1024).max(1);
        self.change_guest_speed(cpu);
        self.schedule(cpu);
    }

    /// Counts the CPUs' times up to now, for the last time.
    pub(super) fn finish_guest(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        for (vcpu, state) in guest.vcpus.iter_mut().zip(&mut self.cpus) {
            vcpu.change(vcpu.mode, self.now);
            self.metrics.stolen += vcpu.spent[Mode::Waits as usize];
            state.idle += vcpu.spent[Mode::Halted as usize];
            if vcpu.mode != Mode::Entered {
                // The rest of a delay is not spent.
                state.from = self.now + vcpu.delay;
                state.idle_since = self.now;
            }
        }
    }
}
