//! The engine: takes the next event, tells the policy, and carries out its answers.

use anysched_core::machine::Level;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Off, Scheduler, Span, TaskId, TaskParams, Time, Work,
};
use anysched_trace::{Counter, Event, Kind, NoTrace, Sink, TaskInfo};
use anysched_workload::{Load, NewTask, Op, Outside};
use std::fmt;

use crate::agenda::{Class, CpuAgenda, Moment, Sleepers};
use crate::cpu::Cpu;
use crate::sync::Objects;
use crate::task::{Job, State, Tasks};
use crate::vm::{Guest, Vms};
use anysched_host::Setup;
use anysched_host::Vm;
use anysched_measure::Metrics;

/// One run of a machine under a policy and a load.
pub struct Sim<S, L, T = NoTrace> {
    pub(crate) policy: S,
    pub(crate) load: L,
    pub(crate) sink: T,
    pub(crate) setup: Setup,
    pub(crate) free: bool,
    pub(crate) now: Time,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: Tasks,
    pub(crate) objects: Objects,
    /// When the load's next event is due.
    pub(crate) outside: Time,
    pub(crate) sleepers: Sleepers,
    pub(crate) kicks: CpuMask,
    /// Per runqueue, when its lock is free again.
    locks: Vec<Time>,
    pub(crate) agenda: CpuAgenda,
    tick: Span,
    next_hotplug: usize,
    /// Tasks that are ready but not running.
    pub(crate) ready: u64,
    running: u64,
    /// Operations performed since time last advanced.
    pub(crate) standstill: u64,
    /// How often the policy's timer has run since a task was last picked.
    fruitless: u64,
    pub(crate) metrics: Metrics,
    on_exit: Option<OnExit>,
    pub(crate) error: Option<SimError>,
    /// The virtual machines whose CPUs are tasks here, if there are any.
    pub(crate) vms: Option<Box<Vms>>,
    /// If this machine is virtual, its link to the machine whose tasks its CPUs are.
    pub(crate) guest: Option<Box<Guest>>,
}

/// Takes the results of tasks as they exit.
type OnExit = Box<dyn FnMut(&TaskResult)>;

/// The result of a task that exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// How many tasks arrived before it.
    pub serial: u64,
    /// When it arrived.
    pub arrival: Time,
    /// When it first ran.
    pub first_run: Time,
    /// When it exited.
    pub completion: Time,
    /// The work it did, in ns of the fastest CPU.
    pub service: Span,
    /// The time it was blocked.
    pub blocked: Span,
}

/// Why a run could not be finished. Each is a fault of the load or the policy, not of the machine
/// it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// Ten million operations without any time passing.
    Standstill {
        /// The time at which it happened.
        at: Time,
        /// The last task that did something, by serial.
        task: u64,
    },
    /// The policy asked for a timer ten million times without any time passing.
    PolicyTimer {
        /// The time at which it happened.
        at: Time,
    },
    /// The next event lies beyond the last time that can be simulated.
    TooLong {
        /// The time of the last event.
        at: Time,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Standstill { at, task } => write!(
                f,
                "time stands still at {} ns: task {task} and perhaps others go on without using \
                 the CPU or blocking; give the loop a run or a sleep above 0",
                at.0
            ),
            SimError::PolicyTimer { at } => {
                write!(f, "the policy's timer does not advance beyond {} ns", at.0)
            }
            SimError::TooLong { at } => write!(
                f,
                "after {} ns, something goes on beyond {} ns (4.5 years), the end of what can be \
                 simulated; shorten the load or end the run before",
                at.0,
                Moment::HORIZON.0
            ),
        }
    }
}

impl std::error::Error for SimError {}

const STANDSTILL: u64 = 10_000_000;

/// How often the policy's timer may run before the engine concludes that no ready task awaits it.
const FRUITLESS: u64 = 1_000_000;

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
            agenda: CpuAgenda::new(setup.machine.cpus()),
            locks: vec![Time::ZERO; setup.machine.cpus()],
            objects: Objects::new(&load.sizes()),
            free: setup.costs.are_zero(),
            outside: load.peek(),
            policy,
            load,
            sink,
            setup,
            now: Time::ZERO,
            tasks: Tasks::default(),
            sleepers: Sleepers::new(),
            kicks: CpuMask::EMPTY,
            tick,
            next_hotplug: 0,
            ready: 0,
            running: 0,
            standstill: 0,
            fruitless: 0,
            metrics: Metrics::from_zero(),
            on_exit: None,
            error: None,
            vms: None,
            guest: None,
        }
    }

    /// The same run with virtual machines, whose CPUs are tasks beside those of the load.
    pub fn with_vms(mut self, vms: Vec<Vm>) -> Sim<S, L, T> {
        if !vms.is_empty() {
            self.vms = Some(Box::new(Vms::new(vms, self.sink.listens())));
        }
        self
    }

    /// Calls `take` with the result of every task that exits.
    pub fn on_exit(mut self, take: impl FnMut(&TaskResult) + 'static) -> Sim<S, L, T> {
        self.on_exit = Some(Box::new(take));
        self
    }

    /// Runs until no event is left, or until [`Setup::until`].
    ///
    /// Errors: the load or the policy continues forever without time advancing, or beyond 2^57 ns
    /// (4.5 years).
    pub fn run(mut self) -> Result<(Metrics, S, T), SimError> {
        while self.advance() {}
        match self.error.take() {
            Some(error) => Err(error),
            None => {
                self.finish();
                Ok((self.metrics, self.policy, self.sink))
            }
        }
    }

    /// Handles one event, after the picks of the instant before it. False: the run is over.
    #[inline]
    fn advance(&mut self) -> bool {
        let mut others = self.next_other();
        let mut next = self.next_moment(others);
        if next.time() > self.now && !self.kicks.is_empty() {
            // Picks change the next events of CPUs and of virtual machines on them, and when the
            // policy's timer is due, but nothing else.
            self.pick_kicked();
            if self.vms.is_some() {
                others = self.next_other();
            }
            next = self.next_moment(others);
        }
        let time = next.time();
        if time > self.now {
            if time > self.setup.until || next == Moment::NEVER {
                self.fail_if_cut_off();
                return false;
            }
            self.close_seconds(time);
            self.now = time;
            self.standstill = 0;
        }
        self.handle(next);
        self.error.is_none()
    }

    /// The next event that neither belongs to a CPU nor was requested by the policy.
    #[inline]
    fn next_other(&self) -> Moment {
        let ready = match &self.guest {
            None => self.outside.min(self.sleepers.next()),
            Some(guest) => guest.next_ready(self.outside).min(self.sleepers.next()),
        };
        let mut next = Moment::new(ready, Class::Ready);
        if let Some(&(time, ..)) = self.setup.hotplug.get(self.next_hotplug) {
            next = next.min(Moment::new(time, Class::Hotplug));
        }
        match &self.vms {
            None => next,
            Some(vms) => next.min(vms.next()),
        }
    }

    /// Handles the event `next`.
    #[inline]
    fn handle(&mut self, next: Moment) {
        self.metrics.events += 1;
        match next.class() {
            Class::BurstEnd => {
                let cpu = self.agenda.first_cpu();
                self.count(cpu);
                self.continue_task(cpu);
            }
            Class::SliceEnd => self.put_prev(self.agenda.first_cpu(), Off::Expired),
            Class::Tick => self.do_tick(self.agenda.first_cpu()),
            Class::Ready if self.guest.is_some() => self.interrupt(),
            Class::Ready => self.become_ready(),
            Class::PolicyTimer => self.policy_timer(),
            Class::Guest => self.settle_guest(),
            Class::Hotplug => match &self.vms {
                Some(vms) if vms.starts_or_stops(self.now) => self.start_or_stop_vm(),
                _ => self.hotplug(),
            },
        }
    }

    /// Takes an arrival from the load, or wakes a task whose sleep is over.
    #[inline]
    fn become_ready(&mut self) {
        let sleeper = self.sleepers.next();
        if self.outside <= sleeper && self.outside <= self.now {
            self.take_outside();
        } else if sleeper <= self.now {
            if let Some(task) = self.sleepers.pop() {
                self.wake(task, None, self.now);
            }
        } else {
            self.deliver_message();
        }
    }

    /// Handles all events of a virtual machine up to and including `now`.
    pub(crate) fn settle(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.standstill = 0;
        }
        while self.error.is_none() {
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
        if self.kicks.is_empty() { next.time() } else { self.now.min(next.time()) }
    }

    /// The first of `others`, the CPUs' events, and the policy's timer. The timer alone keeps a run
    /// going only while a ready task may be waiting for it, as for the next period of a budget.
    #[inline]
    fn next_moment(&self, others: Moment) -> Moment {
        let mut next = self.agenda.first().min(others);
        if let Some(time) = self.policy.next_timer()
            && self.takes_timer(next)
        {
            next = next.min(Moment::new(time.max(self.now), Class::PolicyTimer));
        }
        next
    }

    /// Whether the policy's timer matters, given that otherwise `next` is the next event.
    #[inline]
    fn takes_timer(&self, next: Moment) -> bool {
        let is_waited_for = self.ready > 0 && self.fruitless < FRUITLESS;
        match &self.guest {
            None => next != Moment::NEVER || !self.kicks.is_empty() || is_waited_for,
            Some(guest) => guest.takes_timer(is_waited_for),
        }
    }

    /// The run is over: reports an error if something would happen before its end, but too late to
    /// be simulated.
    #[cold]
    fn fail_if_cut_off(&mut self) {
        let goes_on = self.running > 0 || self.outside < Time::NEVER || !self.sleepers.is_empty();
        if goes_on && self.setup.until >= Moment::HORIZON {
            self.error = Some(SimError::TooLong { at: self.now });
        }
    }

    #[cold]
    fn policy_timer(&mut self) {
        if let Some(guest) = &mut self.guest
            && guest.none_entered()
        {
            return guest.raise();
        }
        self.standstill += 1;
        if self.standstill > STANDSTILL {
            self.error = Some(SimError::PolicyTimer { at: self.now });
        }
        self.fruitless += 1;
        self.call(|policy, cx| policy.timer(cx));
    }

    /// Calls the policy; adds its kicks to the pending ones.
    #[inline]
    pub(crate) fn call<R>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        self.call_counting(call).0
    }

    #[inline]
    fn call_counting<R>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> (R, Work) {
        let mut cx = Cx::new(self.now, &mut self.kicks);
        let result = call(&mut self.policy, &mut cx);
        (result, cx.work)
    }

    #[inline]
    pub(crate) fn emit(&mut self, kind: Kind) {
        self.sink.event(&Event { time: self.now, kind });
    }

    fn sample(&mut self) {
        self.emit(Kind::Sample { counter: Counter::Ready, value: self.ready });
        self.emit(Kind::Sample { counter: Counter::Busy, value: self.running });
    }

    pub(crate) fn take_outside(&mut self) {
        // In the past if a virtual CPU only now gets to handle it.
        let at = self.outside;
        let what = self.load.outside();
        self.outside = self.load.peek();
        match what {
            Outside::Arrival(new) => self.create(new, None, at),
            Outside::Signal(channel) => self.signal(channel, Some(at), None, at),
            Outside::Message { channel, sent } => self.signal(channel, Some(sent), None, at),
        }
    }

    /// `task` is about to do something else at the instant at which it left `cpu`, which has not
    /// picked yet: reports to the trace that it left.
    #[inline]
    pub(crate) fn tell_leaving(&mut self, task: TaskId, cpu: CpuId) {
        if !self.sink.listens() {
            return;
        }
        let state = &mut self.cpus[cpu.index()];
        if let Some(prev) = state.leaving
            && prev.0 == task
            && !std::mem::replace(&mut state.leaving_told, true)
        {
            self.emit(Kind::Switch { cpu, prev: Some(prev), next: None });
        }
    }

    /// A task has arrived at `at`; `creator` is the CPU whose task created it.
    pub(crate) fn create(&mut self, new: NewTask, creator: Option<CpuId>, at: Time) {
        if let Some((id, cpu)) = self.tasks.next_reused() {
            self.tell_leaving(id, cpu);
        }
        let id = self.tasks.create(at);
        // A message to the last task with this number is not for this one.
        self.objects.take_message(id);
        let task = &mut self.tasks[id];
        task.nice = new.nice;
        task.cpu = creator.map_or(0, |cpu| cpu.0);
        if new.deadline.is_some() || new.period.is_some() {
            task.job = Job { release: at, deadline: new.deadline.unwrap_or(Time::NEVER) };
        }
        let serial = task.serial;
        self.metrics.tasks += 1;
        self.metrics.first_arrival.get_or_insert(at);
        let params = TaskParams {
            priority: new.priority,
            affinity: self.setup_affinity(new.affinity),
            domain: new.domain,
            period: new.period,
            budget: new.budget,
            relative_deadline: new.relative_deadline,
            key: new.key,
            ..TaskParams::nice(new.nice)
        };
        self.sink.task(&TaskInfo { task: id, serial, name: new.name.as_deref(), nice: new.nice });
        let by = creator.and_then(|cpu| self.cpus[cpu.index()].task);
        self.emit(Kind::Attach { task: id, by });
        self.call(|policy, cx| policy.attach(cx, id, &params));
        if params != TaskParams::default() {
            self.tasks[id].params = Some(Box::new(params));
        }
        self.load.start(id, at);
        self.fetch(id);
        self.enqueue(id, Enqueue::New, creator);
        self.tasks[id].since = at;
    }

    /// `task`, which is blocked, becomes ready because of an event at `at`; `waker` is the CPU
    /// whose task woke it.
    pub(crate) fn wake(&mut self, id: TaskId, waker: Option<CpuId>, at: Time) {
        let task = &mut self.tasks[id];
        let at = at.max(task.since);
        task.blocked += at.since(task.since);
        task.woken = true;
        let prev = task.last_cpu();
        self.tell_leaving(id, prev);
        let by = waker.and_then(|cpu| self.cpus[cpu.index()].task);
        self.emit(Kind::Wake { task: id, by, cpu: waker });
        self.fetch(id);
        self.enqueue(id, Enqueue::Wakeup { prev, sync: false }, waker);
        self.tasks[id].since = at;
    }

    /// Asks the load what `task` does next, so that the policy can be told how long it runs.
    #[inline]
    fn fetch(&mut self, id: TaskId) {
        let task = &self.tasks[id];
        if task.left == Span::ZERO && task.pending.is_none() && !task.vcpu {
            match self.load.step(id, self.now) {
                Op::Run(work) => self.tasks[id].left = work,
                other => self.tasks[id].pending = Some(Box::new(other)),
            }
        }
    }

    pub(crate) fn enqueue(&mut self, id: TaskId, why: Enqueue, from: Option<CpuId>) {
        let task = &mut self.tasks[id];
        task.state = State::Ready;
        task.since = self.now;
        self.ready += 1;
        let (left, last, vcpu) = (task.left, task.last_cpu(), task.vcpu);
        let deadline = task.job.deadline;
        let arrival = Arrival {
            why,
            from,
            // How long a virtual machine will want its CPU is unknown even to the simulator.
            burst: if vcpu { None } else { Some(self.load.burst(id, left)) },
            deadline: (deadline != Time::NEVER).then_some(deadline),
        };
        let ((), work) = self.call_counting(|policy, cx| policy.enqueue(cx, id, arrival));
        if !self.free {
            let cost = self.setup.costs.enqueue(work.queued) + self.lock(work.queue, Span::ZERO);
            self.charge(from.unwrap_or(last), cost);
        }
        self.sample();
    }

    /// Waits for the lock of `queue` and holds it for `work`; returns the total time.
    fn lock(&mut self, queue: u16, work: Span) -> Span {
        let hold = self.setup.costs.lock_hold;
        if hold == Span::ZERO {
            return work;
        }
        let free = &mut self.locks[usize::from(queue)];
        *free = (*free).max(self.now) + hold + work;
        free.since(self.now)
    }

    /// `cpu` spends `cost` on something that no task is charged for.
    fn charge(&mut self, cpu: CpuId, cost: Span) {
        if cost == Span::ZERO {
            return;
        }
        let index = cpu.index();
        if self.cpus[index].task.is_some() {
            if self.charges_later(cpu, cost) {
                return;
            }
            self.count(index);
            self.delay(index, cost);
            self.schedule(index);
        } else {
            let cpu = &mut self.cpus[index];
            cpu.free_at = cpu.free_at.max(self.now) + cost;
        }
    }

    /// Delays the task on `cpu` by `cost`; its time must have been counted up to now.
    fn delay(&mut self, cpu: usize, cost: Span) {
        self.cpus[cpu].delay(cost);
        if self.setup.costs.charged {
            self.cpus[cpu].charge(cost);
        }
        if let Some(id) = self.cpus[cpu].task
            && self.tasks[id].vcpu
        {
            // It resumes when the delay is over.
            self.leave_guest(id, Off::Preempted);
        }
    }

    /// Counts the CPU time of the task on `cpu` up to now.
    #[inline]
    pub(crate) fn count(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        if let Some(id) = cpu.task {
            let task = &mut self.tasks[id];
            let (_, work) = cpu.count(self.now, task.left);
            task.left -= work;
            task.service += work;
        }
    }

    /// Puts the next event of `cpu` on the agenda.
    #[inline]
    pub(crate) fn schedule(&mut self, cpu: usize) {
        let moment = match self.cpus[cpu].task {
            Some(task) => self.cpus[cpu].next(self.tasks[task].left),
            None => Moment::NEVER,
        };
        self.agenda.set(cpu, moment);
    }

    /// The CPU time of the task on `cpu` not yet reported to its policy; reports it now, except for
    /// delays that have not passed yet.
    fn tell(&mut self, cpu: usize, unspent: Span) -> Span {
        let charged = self.setup.costs.charged;
        let untold = &mut self.cpus[cpu].untold;
        let open = if charged { unspent.min(*untold) } else { Span::ZERO };
        std::mem::replace(untold, open) - open
    }

    /// Takes the running task off `cpu`, which will pick again at the end of this instant.
    fn put_prev(&mut self, cpu: usize, why: Off) {
        self.count(cpu);
        self.take_off(cpu, why);
    }

    /// The same, when all CPU time of the task has been counted.
    pub(crate) fn take_off(&mut self, cpu: usize, why: Off) {
        let state = &mut self.cpus[cpu];
        let Some(id) = state.task.take() else { return };
        if self.tasks[id].vcpu {
            self.leave_guest(id, why);
        }
        // A planned cost of switching to the task that was never incurred was not spent.
        let unspent = match self.postponed_delay(cpu) {
            Some(delay) => delay,
            None => self.cpus[cpu].from.since(self.now),
        };
        let ran = self.tell(cpu, unspent);
        let state = &mut self.cpus[cpu];
        let cpu_id = state.id;
        state.leaving = Some((id, why));
        state.overhead = state.overhead.saturating_sub(unspent);
        self.agenda.set(cpu, Moment::NEVER);
        self.kicks.insert(cpu_id);
        self.running -= 1;
        self.metrics.last_completion = self.now;
        let task = &mut self.tasks[id];
        task.since = self.now;
        if why.runnable() {
            task.state = State::Ready;
            self.ready += 1;
        } else {
            task.state = State::Blocked;
        }
        self.call(|policy, cx| policy.put_prev(cx, cpu_id, id, ran, why));
    }

    fn do_tick(&mut self, cpu: usize) {
        self.count(cpu);
        let cost = self.setup.costs.timer_irq;
        if cost > Span::ZERO {
            self.delay(cpu, cost);
        }
        self.cpus[cpu].next_tick = self.now + self.tick;
        self.schedule(cpu);
        let ran = self.tell(cpu, self.cpus[cpu].from.since(self.now));
        if let Some(task) = self.cpus[cpu].task {
            let id = self.cpus[cpu].id;
            self.call(|policy, cx| policy.tick(cx, id, task, ran));
        }
    }

    /// The picks of this instant, lowest CPU first.
    fn pick_kicked(&mut self) {
        while let Some(cpu) = self.kicks.take_lowest() {
            let index = cpu.index();
            if !self.cpus[index].online || self.postpones_kick(index) {
                continue;
            }
            if self.cpus[index].task.is_some() {
                self.emit(Kind::Kick { cpu });
                self.metrics.preemptions += 1;
                self.put_prev(index, Off::Preempted);
                self.kicks.remove(cpu);
            }
            self.pick(index);
        }
    }

    fn pick(&mut self, cpu: usize) {
        let id = self.cpus[cpu].id;
        let was_idle = self.cpus[cpu].leaving.is_none();
        let (pick, work) = self.call_counting(|policy, cx| policy.pick_next(cx, id));
        let prev = self.cpus[cpu].leaving.take();
        let told = std::mem::take(&mut self.cpus[cpu].leaving_told);
        let next = pick.map(|pick| pick.task);
        if let Some(pick) = pick {
            self.start(cpu, pick.task, pick.slice, prev, &work);
            self.agenda.add(cpu, self.cpus[cpu].next(self.tasks[pick.task].left));
        } else if !was_idle {
            self.cpus[cpu].idle_since = self.now;
        }
        let prev = prev.filter(|_| !told);
        if prev.is_some() || next.is_some() {
            self.emit(Kind::Switch { cpu: id, prev, next });
            self.sample();
        }
        if self.setup.smt_speed != 1024 && was_idle != next.is_none() {
            self.change_sibling_speed(cpu);
        }
    }

    /// `cpu` switches to the task it has picked.
    fn start(
        &mut self,
        cpu: usize,
        id: TaskId,
        slice: Span,
        prev: Option<(TaskId, Off)>,
        work: &Work,
    ) {
        let task = &mut self.tasks[id];
        let (cpu_id, last) = (self.cpus[cpu].id, task.last_cpu());
        let switched = self.cpus[cpu].last != Some(id);
        let migrated = task.has_run && last != cpu_id;
        self.metrics.dispatches += 1;
        self.metrics.context_switches += u64::from(switched);
        task.cpu = cpu_id.0;
        task.state = State::Running;
        self.ready -= 1;
        self.running += 1;
        self.fruitless = 0;
        if migrated {
            self.tell_leaving(id, last);
            self.note_migration(id, last, cpu_id);
        }
        if prev.is_none() {
            let idle = self.now.since(self.cpus[cpu].idle_since);
            self.cpus[cpu].idle += idle;
        }
        let delay = if self.free {
            Span::ZERO
        } else {
            self.pick_cost(cpu, switched, migrated.then_some(last), work)
        };
        self.note_run(id, delay);
        let tick = self.tick;
        let cpu = &mut self.cpus[cpu];
        cpu.task = Some(id);
        cpu.last = Some(id);
        cpu.from = self.now + delay;
        cpu.overhead += delay;
        cpu.untold = Span::ZERO;
        cpu.rest = 0;
        cpu.slice = slice;
        if self.setup.costs.charged {
            cpu.charge(delay);
        }
        cpu.next_tick = match tick {
            Span::ZERO => Time::NEVER,
            Span(tick) => Time((self.now.0 / tick + 1) * tick),
        };
    }

    /// `task` has been picked and runs after `delay`; until then it waits.
    #[inline]
    fn note_run(&mut self, id: TaskId, delay: Span) {
        let runs = self.now + delay;
        let task = &mut self.tasks[id];
        let waited = runs.since(task.since).0;
        if task.vcpu {
            if let Some(vms) = &mut self.vms {
                vms.note_wait(id, waited);
            }
        } else if std::mem::take(&mut task.woken) {
            self.metrics.wakeup_latency.record(waited);
        } else {
            self.metrics.runqueue_wait.record(waited);
        }
        task.first_run = task.first_run.min(runs);
        task.has_run = true;
    }

    fn note_migration(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let machine = &self.setup.machine;
        let (old, new) = (machine.cpu(from), machine.cpu(to));
        self.metrics.migrations += 1;
        self.metrics.migrations_llc += u64::from(old.llc != new.llc);
        self.metrics.migrations_node += u64::from(old.node != new.node);
        self.emit(Kind::Migrate { task, from, to });
    }

    /// The time that `cpu` spends from now until the picked task runs.
    fn pick_cost(
        &mut self,
        cpu: usize,
        switched: bool,
        migrated_from: Option<CpuId>,
        work: &Work,
    ) -> Span {
        let search = self.setup.costs.pick_per_item.scaled(u64::from(work.scanned), 1);
        let mut cost = self.lock(work.queue, search) + self.cpus[cpu].free_at.since(self.now);
        let costs = &self.setup.costs;
        cost += costs.pick_base;
        if switched {
            cost += costs.context_switch;
        }
        if let Some(from) = migrated_from {
            cost += costs.migration(self.setup.machine.distance(from, self.cpus[cpu].id));
        }
        cost
    }

    /// `cpu` became busy or idle: its siblings slow down or speed up.
    fn change_sibling_speed(&mut self, cpu: usize) {
        let siblings = self.setup.machine.sharing(Level::Core, self.cpus[cpu].id).to_vec();
        let busy = siblings.iter().filter(|cpu| self.cpus[cpu.index()].task.is_some()).count();
        for sibling in siblings {
            let capacity = u64::from(self.setup.machine.cpu(sibling).capacity);
            let sibling = sibling.index();
            let shared = busy > usize::from(self.cpus[sibling].task.is_some());
            let smt = if shared { u64::from(self.setup.smt_speed) } else { 1024 };
            self.count(sibling);
            self.cpus[sibling].speed = (capacity * smt / 1024).max(1);
            self.change_guest_speed(sibling);
            self.schedule(sibling);
        }
    }

    fn hotplug(&mut self) {
        let (_, cpu, online) = self.setup.hotplug[self.next_hotplug];
        self.next_hotplug += 1;
        let index = cpu.index();
        if self.cpus[index].online == online {
            return;
        }
        self.cpus[index].online = online;
        if online {
            self.cpus[index].idle_since = self.now;
            self.call(|policy, cx| policy.set_online(cx, cpu, true));
            return;
        }
        self.widen_stranded();
        self.call(|policy, cx| policy.set_online(cx, cpu, false));
        if self.cpus[index].task.is_some() {
            self.put_prev(index, Off::Preempted);
            if let Some((task, _)) = self.cpus[index].leaving {
                self.tell_leaving(task, cpu);
            }
            self.cpus[index].leaving = None;
            self.cpus[index].leaving_told = false;
            if self.setup.smt_speed != 1024 {
                self.change_sibling_speed(index);
            }
        } else {
            let idle = self.now.since(self.cpus[index].idle_since);
            self.cpus[index].idle += idle;
        }
        self.cpus[index].idle_since = Time::NEVER;
    }

    /// Tasks not allowed on any CPU in use become allowed on all, as in Linux
    /// (`select_fallback_rq`).
    fn widen_stranded(&mut self) {
        let online = |cpu: &Cpu| cpu.online;
        let stranded: Vec<TaskId> = self
            .tasks
            .live()
            .filter(|(_, task)| {
                task.params.as_ref().is_some_and(|params| {
                    !self.cpus.iter().any(|cpu| online(cpu) && params.affinity.contains(cpu.id))
                })
            })
            .map(|(id, _)| id)
            .collect();
        for id in stranded {
            self.update_params(id, |params| params.affinity = anysched_core::CpuSet::All);
        }
    }

    /// Changes the parameters of `task` and tells the policy.
    pub(crate) fn update_params(&mut self, id: TaskId, change: impl FnOnce(&mut TaskParams)) {
        let mut params = self.tasks[id].params.take().unwrap_or_default();
        change(&mut params);
        self.call(|policy, cx| policy.update(cx, id, &params));
        self.tasks[id].params = Some(params);
    }

    /// An affinity that some CPU of the machine satisfies: if none does, all are allowed.
    pub(crate) fn setup_affinity(&self, affinity: anysched_core::CpuSet) -> anysched_core::CpuSet {
        let usable = |cpu: &Cpu| cpu.online && affinity.contains(cpu.id);
        if self.cpus.iter().any(usable) { affinity } else { anysched_core::CpuSet::All }
    }

    /// `task` has exited and been taken off its CPU.
    pub(crate) fn retire(&mut self, id: TaskId) {
        self.close_job(id);
        let task = &self.tasks[id];
        let result = TaskResult {
            serial: task.serial,
            arrival: task.arrival,
            first_run: task.first_run,
            completion: self.now,
            service: task.service,
            blocked: task.blocked,
        };
        let turnaround = self.now.since(task.arrival);
        let metrics = &mut self.metrics;
        metrics.completed += 1;
        metrics.turnaround.record(turnaround.0);
        metrics.response_time.record(task.first_run.since(task.arrival).0);
        let waiting = turnaround.saturating_sub(task.service).saturating_sub(task.blocked);
        metrics.waiting_time.record(waiting.0);
        if task.service > Span::ZERO {
            metrics.slowdown.record(turnaround.scaled(1_000_000, task.service.0).0);
        }
        if let Some(take) = &mut self.on_exit {
            take(&result);
        }
        let cpu = usize::from(task.cpu);
        if self.cpus[cpu].last == Some(id) {
            self.cpus[cpu].last = None;
        }
        self.call(|policy, cx| policy.detach(cx, id));
        self.load.exited(id, self.now);
        self.outside = self.load.peek();
        self.tasks.release(id);
    }

    /// Completes the task's current job, if it has one.
    #[inline]
    pub(crate) fn close_job(&mut self, id: TaskId) {
        let job = std::mem::take(&mut self.tasks[id].job);
        if job.release == Time::NEVER {
            return;
        }
        self.metrics.job_response_time.record(self.now.since(job.release).0);
        if job.deadline != Time::NEVER {
            self.metrics.deadline_misses += u64::from(self.now > job.deadline);
            self.metrics.tardiness.record(self.now.since(job.deadline).0);
        }
    }

    /// Counts jobs that are still open and already late at the end of the run as late, by their
    /// lateness so far; nothing is known of the others.
    fn close_late_jobs(&mut self) {
        let late = |job: &Job| job.deadline != Time::NEVER && job.deadline < self.now;
        for (_, task) in self.tasks.live().filter(|(_, task)| late(&task.job)) {
            self.metrics.deadline_misses += 1;
            self.metrics.tardiness.record(self.now.since(task.job.deadline).0);
        }
    }

    pub(crate) fn fail_if_standing_still(&mut self, id: TaskId) -> bool {
        self.standstill += 1;
        if self.standstill > STANDSTILL {
            let task = self.tasks[id].serial;
            self.error = Some(SimError::Standstill { at: self.now, task });
        }
        self.error.is_some()
    }

    pub(crate) fn finish(&mut self) {
        if self.setup.until != Time::NEVER && self.setup.until > self.now {
            self.now = self.setup.until;
        }
        self.close_seconds(self.now);
        self.finish_vms();
        let counts = &mut self.metrics.policy;
        self.policy.tally(&mut |name, count| counts.push((name, count)));
        // Waits after wake-ups have been recorded in one place only.
        self.metrics.runqueue_wait.merge(&self.metrics.wakeup_latency);
        self.close_late_jobs();
        for cpu in 0..self.cpus.len() {
            self.count(cpu);
            let cpu = &mut self.cpus[cpu];
            if cpu.task.is_some() {
                self.metrics.last_completion = self.now;
                let unspent = cpu.from.since(self.now);
                cpu.overhead = cpu.overhead.saturating_sub(unspent);
            } else if cpu.idle_since != Time::NEVER {
                cpu.idle += self.now.since(cpu.idle_since);
            }
            self.metrics.busy += cpu.busy;
            self.metrics.overhead += cpu.overhead;
            self.metrics.idle += cpu.idle;
        }
        let unfinished = self.tasks.live().filter(|(_, task)| !task.vcpu).count();
        self.metrics.unfinished += unfinished as u64;
        self.metrics.add_vms();
    }
}
