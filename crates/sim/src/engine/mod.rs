//! The engine: takes the next event, tells the policy, and carries out its answers.
//!
//! [`Sim`] is one machine. Its parts know nothing of each other: the clock, the agenda of what
//! happens next, the CPUs, the tasks, what tasks wait at, and the account of what is measured. What
//! happens to them is here, by subject: dispatches, the lives of tasks, their operations, CPUs that
//! come and go. A machine may be virtual ([`guest`]) and may hold virtual machines ([`layer`]).

mod account;
mod agenda;
mod clock;
mod cpu;
mod dispatch;
mod guest;
mod hotplug;
mod layer;
mod life;
mod ops;
mod parts;
mod sync;
mod task;

pub use account::TaskResult;
pub(crate) use agenda::{Class, CpuAgenda, Moment};
pub use clock::SimError;
use guest::Guest;
pub(crate) use guest::Usage;
pub(crate) use layer::{Change, Machines};

use anysched_core::{CpuMask, Cx, Off, Scheduler, Span, Time, Work};
use anysched_host::{Beat, Setup};
use anysched_measure::{Apart, Metrics};
use anysched_trace::stuck::Stuck;
use anysched_trace::{Counter, Event, Kind, NoTrace, Sink};
use anysched_workload::Load;
use std::ops::ControlFlow;

use account::Account;
use agenda::Agenda;
use clock::Clock;
use cpu::Cpu;
use sync::Objects;
use task::Tasks;

/// After so many events whoever watches a run is told how far it is: some milliseconds.
const EVENTS_A_BEAT: u64 = 1 << 14;

/// One run of a machine under a policy and a load.
pub struct Sim<S, L, T = NoTrace> {
    policy: S,
    load: L,
    sink: T,
    setup: Setup,
    /// Nothing costs anything.
    free: bool,
    /// Time between ticks; zero if there are none.
    tick: Span,
    clock: Clock,
    agenda: Agenda,
    cpus: Vec<Cpu>,
    /// The CPUs that have to pick at the end of this instant.
    kicks: CpuMask,
    /// Per runqueue, when its lock is free again.
    locks: Vec<Time>,
    tasks: Tasks,
    objects: Objects,
    account: Account,
    /// The virtual machines whose CPUs are tasks here, if there are any.
    machines: Option<Box<dyn Machines>>,
    /// If this machine is virtual, its link to the machine whose tasks its CPUs are.
    guest: Option<Box<Guest>>,
}

impl<S: Scheduler, L: Load> Sim<S, L, NoTrace> {
    /// A run of `load` under `policy`, built for the same machine, without a trace.
    pub fn new(setup: Setup, policy: S, load: L) -> Sim<S, L, NoTrace> {
        Sim::with_sink(setup, policy, load, NoTrace)
    }
}

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// A run whose events go to `sink`.
    pub fn with_sink(setup: Setup, policy: S, load: L, sink: T) -> Sim<S, L, T> {
        let cpu = |id| Cpu::new(id, setup.machine.cpu(id).capacity);
        let tick = policy.tick_period().or(setup.machine.tick()).unwrap_or(Span::ZERO);
        Sim {
            cpus: setup.machine.cpu_ids().map(cpu).collect(),
            agenda: Agenda::new(setup.machine.cpus(), load.peek()),
            locks: vec![Time::ZERO; setup.machine.cpus()],
            objects: Objects::new(&load.sizes()),
            free: setup.costs.are_zero(),
            policy,
            load,
            sink,
            setup,
            tick,
            clock: Clock::new(),
            tasks: Tasks::default(),
            kicks: CpuMask::EMPTY,
            account: Account::new(),
            machines: None,
            guest: None,
        }
    }

    /// The same run with machines whose CPUs are tasks beside those of the load.
    pub(crate) fn with_machines(mut self, machines: Box<dyn Machines>) -> Sim<S, L, T> {
        self.machines = Some(machines);
        self
    }

    /// The same run with some of its tasks, and of those in its virtual machines, measured apart.
    /// To be said before [`Sim::with_vms`].
    pub fn measured_apart(mut self, apart: Apart) -> Sim<S, L, T> {
        self.account.measure_apart(apart);
        self
    }

    /// What is measured apart.
    pub(crate) fn apart(&self) -> Apart {
        self.account.apart()
    }

    /// Calls `take` with the result of every task that exits.
    pub fn on_exit(mut self, take: impl FnMut(&TaskResult) + 'static) -> Sim<S, L, T> {
        self.account.on_exit(Box::new(take));
        self
    }

    /// Runs until no event is left, or until [`Setup::until`].
    ///
    /// Errors: the load or the policy continues forever without time advancing, or beyond 2^57 ns
    /// (4.5 years).
    pub fn run(self) -> Result<(Metrics, S, T), SimError> {
        self.run_watched(|_| ControlFlow::Continue(()))
    }

    /// As [`Sim::run`]; now and then `beat` is told how far the run is, and may end it.
    ///
    /// Errors: those of [`Sim::run`], or `beat` has ended it.
    pub fn run_watched(
        mut self,
        mut beat: impl FnMut(Beat) -> ControlFlow<()>,
    ) -> Result<(Metrics, S, T), SimError> {
        let mut next = EVENTS_A_BEAT;
        while self.advance() {
            let Metrics { events, tasks, .. } = &self.account.metrics;
            let events = events.get().unwrap_or_default();
            // Some steps are several events.
            if events < next {
                continue;
            }
            next = events + EVENTS_A_BEAT;
            let ended = tasks.get().unwrap_or_default();
            if beat(Beat { now: self.now(), ended }).is_break() {
                self.clock.fail(SimError::Stopped { at: self.now() });
            }
        }
        match self.clock.take_error() {
            Some(error) => Err(error),
            None => {
                self.finish();
                Ok((self.account.metrics, self.policy, self.sink))
            }
        }
    }

    /// Handles one event, after the picks of the instant before it. False: the run is over.
    #[inline]
    fn advance(&mut self) -> bool {
        let mut others = self.next_other();
        let mut next = self.next_moment(others);
        if next.time() > self.now() && !self.kicks.is_empty() {
            // Picks change the next events of CPUs and of virtual machines on them, and when the
            // policy's timer is due, but nothing else.
            self.pick_kicked();
            if self.machines.is_some() {
                others = self.next_other();
            }
            next = self.next_moment(others);
        }
        let time = next.time();
        if time > self.now() {
            if time > self.setup.until || next == Moment::NEVER {
                self.fail_if_cut_off();
                if next == Moment::NEVER {
                    self.tell_stuck();
                }
                return false;
            }
            self.close_seconds(time);
            self.clock.advance(time);
        }
        self.handle(next);
        !self.clock.has_failed()
    }

    /// The next event that neither belongs to a CPU nor was requested by the policy.
    #[inline]
    fn next_other(&self) -> Moment {
        let outside = match &self.guest {
            None => self.agenda.outside,
            Some(guest) => guest.next_ready(self.agenda.outside),
        };
        let ready = outside.min(self.agenda.sleepers.next());
        let mut next = Moment::new(ready, Class::Ready);
        if let Some(&(time, ..)) = self.setup.hotplug.get(self.agenda.hotplugged) {
            next = next.min(Moment::new(time, Class::Hotplug));
        }
        if let Some(change) = self.setup.changes.get(self.agenda.changed) {
            next = next.min(Moment::new(change.at, Class::Hotplug));
        }
        match &self.machines {
            None => next,
            Some(machines) => next.min(machines.next()),
        }
    }

    /// Handles the event `next`.
    #[inline]
    fn handle(&mut self, next: Moment) {
        self.account.metrics.events += 1;
        match next.class() {
            Class::BurstEnd => {
                let cpu = self.agenda.cpus.first_cpu();
                self.count(cpu);
                self.continue_task(cpu);
            }
            Class::SliceEnd => self.put_prev(self.agenda.cpus.first_cpu(), Off::Expired),
            Class::Tick => self.do_tick(self.agenda.cpus.first_cpu()),
            Class::Ready if self.guest.is_some() => self.interrupt(),
            Class::Ready => self.become_ready(),
            Class::PolicyTimer => self.policy_timer(),
            Class::Guest => self.settle_machine(),
            Class::Hotplug => match self.next_change() {
                Some(change) => self.change_machine(change),
                None => self.change_setup(),
            },
        }
    }

    /// Takes an arrival from the load, or wakes a task whose sleep is over.
    #[inline]
    fn become_ready(&mut self) {
        let (now, sleeper) = (self.now(), self.agenda.sleepers.next());
        if self.agenda.outside <= sleeper && self.agenda.outside <= now {
            self.take_outside();
        } else if sleeper <= now {
            if let Some(task) = self.agenda.sleepers.pop() {
                self.wake(task, None, now);
            }
        } else {
            self.deliver_message();
        }
    }

    /// The first of `others`, the CPUs' events, and the policy's timer. The timer alone keeps a run
    /// going only while a ready task may be waiting for it, as for the next period of a budget.
    #[inline]
    fn next_moment(&self, others: Moment) -> Moment {
        let mut next = self.agenda.cpus.first().min(others);
        if let Some(time) = self.policy.next_timer()
            && self.takes_timer(next)
        {
            next = next.min(Moment::new(time.max(self.now()), Class::PolicyTimer));
        }
        next
    }

    /// Whether the policy's timer matters, given that otherwise `next` is the next event.
    #[inline]
    fn takes_timer(&self, next: Moment) -> bool {
        let is_waited_for = self.account.ready() > 0 && self.clock.trusts_timer();
        match &self.guest {
            None => next != Moment::NEVER || !self.kicks.is_empty() || is_waited_for,
            Some(guest) => guest.takes_timer(is_waited_for),
        }
    }

    /// The run is over: reports an error if something would happen before its end, but too late to
    /// be simulated.
    #[cold]
    fn fail_if_cut_off(&mut self) {
        let goes_on = self.account.running() > 0 || self.agenda.has_outside_or_sleepers();
        if goes_on && self.setup.until >= Moment::HORIZON {
            self.clock.fail(SimError::TooLong { at: self.now() });
        }
    }

    /// Nothing can happen any more: reports which tasks wait for what.
    #[cold]
    fn tell_stuck(&mut self) {
        if !self.sink.listens() {
            return;
        }
        for (task, on) in self.objects.waiting() {
            let on = match on {
                // A task that has ended holds what it has not given back.
                Stuck::Lock { lock, holder: Some(holder) } if !self.tasks.is_live(holder) => {
                    Stuck::Lock { lock, holder: None }
                }
                on => on,
            };
            self.sink.stuck(task, on);
        }
    }

    #[cold]
    fn policy_timer(&mut self) {
        if let Some(guest) = &mut self.guest
            && guest.none_entered()
        {
            return guest.raise();
        }
        self.clock.count_timer();
        self.call(|policy, cx| policy.timer(cx));
    }

    #[inline]
    fn now(&self) -> Time {
        self.clock.now()
    }

    /// Calls the policy; adds its kicks to the pending ones.
    #[inline]
    fn call<R>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        self.call_counting(call).0
    }

    #[inline]
    fn call_counting<R>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> (R, Work) {
        let mut cx = Cx::new(self.clock.now(), &mut self.kicks);
        let result = call(&mut self.policy, &mut cx);
        (result, cx.work)
    }

    #[inline]
    fn emit(&mut self, kind: Kind) {
        self.sink.event(&Event { time: self.now(), kind });
    }

    fn sample(&mut self) {
        self.emit(Kind::Sample { counter: Counter::Ready, value: self.account.ready() });
        self.emit(Kind::Sample { counter: Counter::Busy, value: self.account.running() });
    }

    /// The run is over: closes the account.
    fn finish(&mut self) {
        if self.setup.until != Time::NEVER {
            self.clock.advance(self.setup.until);
        }
        let now = self.now();
        self.sink.end(now);
        self.close_seconds(now);
        self.finish_guest();
        self.finish_machines();
        let counts = &mut self.account.metrics.policy;
        self.policy.tally(&mut |name, count| counts.push((name, count)));
        for (id, task) in self.tasks.live() {
            self.account.abandoned(id, task, now);
        }
        for cpu in 0..self.cpus.len() {
            self.count(cpu);
            let cpu = &mut self.cpus[cpu];
            if let Some(running) = cpu.task {
                self.account.of(running, |metrics| metrics.last_completion = now);
                let unspent = cpu.from.since(now);
                cpu.overhead = cpu.overhead.saturating_sub(unspent);
            } else if cpu.idle_since != Time::NEVER {
                cpu.idle += now.since(cpu.idle_since);
            }
            let metrics = &mut self.account.metrics;
            metrics.busy += cpu.busy;
            metrics.overhead += cpu.overhead;
            metrics.idle += cpu.idle;
        }
        self.account.finish();
        self.account.metrics.add_vms();
    }
}
