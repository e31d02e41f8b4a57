//! A host that can do, next, anything that the contract lets a host do.

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{
    Arrival, CpuId, CpuMask, CpuSet, Cx, DomainId, Enqueue, Off, Pick, Scheduler, Span, TaskId,
    TaskParams, Time, canonical,
};

use crate::event::{Event, Step};
use crate::property::{Driven, Steps};
use crate::scope::Scope;

/// The host, and the policy behind it.
#[derive(Debug)]
pub struct Host<'a, S> {
    /// The policy.
    pub policy: S,
    /// The time of the next call.
    pub now: Time,
    scope: &'a Scope,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
}

/// A task as the host knows it.
#[derive(Clone, Debug)]
struct Task {
    state: State,
    prev: CpuId,
    /// The CPU to which it is bound, if it is.
    bound: Option<CpuId>,
    is_nice: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The policy does not know it.
    Gone,
    Blocked,
    Ready,
    /// Taken out for a moment (rule 9).
    Taken,
    Running,
}

#[derive(Clone, Debug)]
struct Cpu {
    is_online: bool,
    /// It is to pick: it was kicked, or its task was put back.
    is_due: bool,
    runs: Option<Stint>,
}

#[derive(Clone, Copy, Debug)]
struct Stint {
    task: TaskId,
    picked: Time,
    /// When it was picked or last charged.
    charged: Time,
    /// [`Time::NEVER`]: it has no limit.
    ends: Time,
}

canonical!(Task { state, prev, bound, is_nice });
canonical!(State: u64);
canonical!(Cpu { is_online, is_due, runs });
canonical!(Stint { task, picked, charged, ends });

/// Policies may take time 0 for never.
pub(crate) const START: Time = Time(1);

/// What a policy is told of a task: every other one has periods.
pub(crate) fn params(task: TaskId, is_nice: bool, affinity: CpuSet) -> TaskParams {
    let mut params = TaskParams::nice(if is_nice { 5 } else { 0 });
    params.affinity = affinity;
    params.domain = DomainId((task.0 % 2) as u16);
    params.priority = if is_nice { 0 } else { 1 };
    if task.0 % 2 == 1 {
        params.period = Some(Span::from_ms(20));
        params.budget = Some(Span::from_ms(5));
        params.relative_deadline = Some(Span::from_ms(15));
    }
    params
}

const NEW: Task = Task { state: State::Gone, prev: CpuId(0), bound: None, is_nice: false };

impl<'a, S: Scheduler> Host<'a, S> {
    /// `policy` has been built for the machine of `scope` and not been called yet.
    pub fn new(policy: S, scope: &'a Scope) -> Host<'a, S> {
        let idle = Cpu { is_online: true, is_due: false, runs: None };
        Host {
            policy,
            now: START,
            scope,
            tasks: vec![NEW; scope.tasks as usize],
            cpus: vec![idle; scope.machine.cpus()],
        }
    }

    pub(crate) fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<S> {
        (0..self.cpus.len() as u16).map(CpuId)
    }

    fn task_ids(&self) -> impl Iterator<Item = TaskId> + use<S> {
        (0..self.tasks.len() as u32).map(TaskId)
    }

    fn in_state(&self, state: State) -> impl Iterator<Item = TaskId> + '_ {
        self.task_ids().filter(move |&task| self.state(task) == state)
    }

    pub(crate) fn state(&self, task: TaskId) -> State {
        self.tasks[task.index()].state
    }

    /// What `cpu` runs.
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].runs.map(|stint| stint.task)
    }

    /// The CPUs that run something.
    pub(crate) fn busy_cpus(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.cpu_ids().filter(|&cpu| self.running(cpu).is_some())
    }

    fn affinity(&self, task: TaskId) -> CpuSet {
        self.tasks[task.index()].bound.map_or(CpuSet::All, |cpu| CpuSet::of([cpu]))
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].is_online
    }

    /// A CPU whose slice is over.
    fn expired_cpu(&self) -> Option<CpuId> {
        let ends = |cpu: &CpuId| self.cpus[cpu.index()].runs.map_or(Time::NEVER, |s| s.ends);
        self.cpu_ids().find(|cpu| ends(cpu) <= self.now)
    }

    fn is_timer_due(&self) -> bool {
        self.policy.next_timer().is_some_and(|due| due <= self.now)
    }

    fn cpu_events(&self, cpu: CpuId, events: &mut Vec<Event>) {
        let kinds = self.scope.kinds;
        let Cpu { is_online, is_due, runs } = self.cpus[cpu.index()];
        let mut leaves = |why: Off| {
            events.push(Event::Leave { cpu, why, picks: true });
            if kinds.late_picks {
                events.push(Event::Leave { cpu, why, picks: false });
            }
        };
        match runs {
            None if is_due => events.push(Event::Pick { cpu }),
            None => {}
            Some(stint) if stint.ends <= self.now => leaves(Off::Expired),
            Some(stint) => {
                if is_due {
                    leaves(Off::Preempted);
                }
                [Off::Blocked, Off::Yielded, Off::Exited].into_iter().for_each(leaves);
                if stint.picked == self.now && kinds.not_run {
                    events.push(Event::Leave { cpu, why: Off::NotRun, picks: false });
                }
                if stint.charged < self.now && kinds.ticks {
                    events.push(Event::Tick { cpu });
                }
            }
        }
        if !kinds.hotplug {
            return;
        }
        let others = self.cpu_ids().any(|other| other != cpu && self.is_online(other));
        let bound = self.tasks.iter().any(|t| t.state != State::Gone && t.bound == Some(cpu));
        if !is_online {
            events.push(Event::Online { cpu, online: true });
        } else if others && !bound {
            events.push(Event::Online { cpu, online: false });
        }
    }

    fn change_events(&self, task: TaskId, events: &mut Vec<Event>) {
        let kinds = self.scope.kinds;
        if kinds.nice {
            events.push(Event::Nice { task });
        }
        if !kinds.affinity || self.cpus.len() == 1 {
            return;
        }
        let bound = self.tasks[task.index()].bound;
        if bound.is_some() {
            events.push(Event::Bind { task, to: None });
        }
        let online = self.cpu_ids().filter(|&cpu| self.is_online(cpu) && bound != Some(cpu));
        events.extend(online.map(|cpu| Event::Bind { task, to: Some(cpu) }));
    }

    fn params(&self, task: TaskId) -> TaskParams {
        params(task, self.tasks[task.index()].is_nice, self.affinity(task))
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut S, &mut Cx<'_>) -> T) -> T {
        let mut kicks = CpuMask::EMPTY;
        let answer = call(&mut self.policy, &mut Cx::new(self.now, &mut kicks));
        for cpu in kicks.iter() {
            if let Some(cpu) = self.cpus.get_mut(cpu.index()).filter(|cpu| cpu.is_online) {
                cpu.is_due = true;
            }
        }
        answer
    }

    fn enqueue(&mut self, task: TaskId, why: Enqueue, from: Option<CpuId>) {
        self.tasks[task.index()].state = State::Ready;
        let burst = self.scope.tells_bursts.then(|| Span::from_ms(3 + 4 * u64::from(task.0)));
        let arrival = Arrival { why, from, burst, deadline: None };
        self.call(|policy, cx| policy.enqueue(cx, task, arrival));
    }

    /// Lets `cpu`, which runs nothing, pick.
    fn pick(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].is_due = false;
        let pick = self.call(|policy, cx| policy.pick_next(cx, cpu));
        self.start(cpu, pick);
    }

    fn start(&mut self, cpu: CpuId, pick: Option<Pick>) {
        let Some(Pick { task, slice }) = pick else { return };
        let ends = if slice == Span::MAX { Time::NEVER } else { self.now + slice };
        let stint = Stint { task, picked: self.now, charged: self.now, ends };
        self.cpus[cpu.index()].runs = Some(stint);
        let known = &mut self.tasks[task.index()];
        (known.state, known.prev) = (State::Running, cpu);
    }

    /// Takes the task of `cpu` off.
    fn put(&mut self, cpu: CpuId, why: Off) {
        let Some(stint) = self.cpus[cpu.index()].runs.take() else { return };
        let (task, ran) = (stint.task, self.now.since(stint.charged));
        let state = match why {
            Off::Blocked => State::Blocked,
            Off::Exited => State::Gone,
            _ => State::Ready,
        };
        self.tasks[task.index()].state = state;
        self.cpus[cpu.index()].is_due = self.is_online(cpu);
        self.call(|policy, cx| policy.put_prev(cx, cpu, task, ran, why));
        if why == Off::Exited {
            self.tasks[task.index()] = NEW;
            self.call(|policy, cx| policy.detach(cx, task));
        }
    }

    /// Takes the task of `cpu` off, and has it pick.
    fn leave(&mut self, cpu: CpuId, why: Off) {
        self.put(cpu, why);
        self.pick(cpu);
    }

    fn resume(&mut self, task: TaskId) {
        let prev = self.tasks[task.index()].prev;
        self.enqueue(task, Enqueue::Resumed { prev }, None);
    }

    fn tick(&mut self, cpu: CpuId) {
        let Some(stint) = &mut self.cpus[cpu.index()].runs else { return };
        let (task, ran) = (stint.task, self.now.since(stint.charged));
        stint.charged = self.now;
        self.call(|policy, cx| policy.tick(cx, cpu, task, ran));
    }

    fn timer(&mut self) {
        self.call(|policy, cx| policy.timer(cx));
    }

    fn update(&mut self, task: TaskId) {
        let params = self.params(task);
        self.call(|policy, cx| policy.update(cx, task, &params));
    }

    /// Has the task of `cpu` yield in one call, or in two.
    pub(crate) fn yields(&mut self, cpu: CpuId, at_once: bool) {
        if !at_once {
            return self.leave(cpu, Off::Yielded);
        }
        let Some(stint) = self.cpus[cpu.index()].runs.take() else { return };
        let (task, ran) = (stint.task, self.now.since(stint.charged));
        self.tasks[task.index()].state = State::Ready;
        self.cpus[cpu.index()].is_due = false;
        let pick = self.call(|policy, cx| policy.yield_and_pick(cx, cpu, task, ran));
        self.start(cpu, pick.into());
    }
}

impl<S: Scheduler> Steps for Host<'_, S> {
    type Event = Event;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let kinds = self.scope.kinds;
        for cpu in self.cpu_ids() {
            self.cpu_events(cpu, &mut events);
        }
        let wakers = || core::iter::once(None).chain(self.cpu_ids().map(Some));
        let is_waker = |from: Option<CpuId>| from.is_none_or(|cpu| self.running(cpu).is_some());
        // Numbers are given out from the lowest.
        if let Some(task) = self.in_state(State::Gone).next() {
            let from = wakers().filter(|&from| is_waker(from));
            events.extend(from.map(|from| Event::Arrive { task, from }));
        }
        for task in self.task_ids() {
            match self.state(task) {
                State::Blocked => {
                    for from in wakers().filter(|&from| is_waker(from)) {
                        events.push(Event::Wake { task, from, sync: false });
                        if from.is_some() && kinds.sync {
                            events.push(Event::Wake { task, from, sync: true });
                        }
                    }
                }
                State::Ready if kinds.resumed => events.push(Event::Take { task }),
                State::Taken => events.push(Event::Resume { task }),
                _ => {}
            }
            if self.state(task) != State::Gone {
                self.change_events(task, &mut events);
            }
        }
        if self.is_timer_due() {
            events.push(Event::Timer);
        } else if self.expired_cpu().is_none() {
            let steps = Step::distinct(self.now, self.next_due());
            events.extend(steps.map(|step| Event::Pass { step }));
        }
        events
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Arrive { task, from } => {
                self.tasks[task.index()].state = State::Blocked;
                let params = self.params(task);
                self.call(|policy, cx| policy.attach(cx, task, &params));
                self.enqueue(task, Enqueue::New, from);
            }
            Event::Wake { task, from, sync } => {
                let prev = self.tasks[task.index()].prev;
                self.enqueue(task, Enqueue::Wakeup { prev, sync }, from);
            }
            Event::Take { task } => {
                self.tasks[task.index()].state = State::Taken;
                self.call(|policy, cx| policy.dequeue(cx, task));
            }
            Event::Resume { task } => self.resume(task),
            Event::Leave { cpu, why, picks } => {
                self.put(cpu, why);
                if picks {
                    self.pick(cpu);
                }
            }
            Event::Pick { cpu } => self.pick(cpu),
            Event::Tick { cpu } => self.tick(cpu),
            Event::Timer => self.timer(),
            Event::Pass { step } => self.now = step.end(self.now, self.next_due()),
            Event::Nice { task } => {
                self.tasks[task.index()].is_nice ^= true;
                self.update(task);
            }
            Event::Bind { task, to } => {
                self.tasks[task.index()].bound = to;
                self.update(task);
            }
            Event::Online { cpu, online } => {
                self.cpus[cpu.index()].is_online = online;
                self.cpus[cpu.index()].is_due = false;
                self.call(|policy, cx| policy.set_online(cx, cpu, online));
                if !online {
                    self.put(cpu, Off::Preempted);
                }
            }
        }
    }

    fn words(&self) -> Option<Vec<u64>> {
        let mut canon = Canon::new(self.now);
        self.tasks.canon(&(), &mut canon);
        self.cpus.canon(&(), &mut canon);
        self.policy.canon(&mut canon);
        canon.words()
    }
}

impl<S: Scheduler> Driven for Host<'_, S> {
    fn now(&self) -> Time {
        self.now
    }

    fn pass_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn next_due(&self) -> Option<Time> {
        let ends = self.cpus.iter().filter_map(|cpu| cpu.runs).map(|stint| stint.ends);
        let timer = self.policy.next_timer();
        ends.chain(timer).min().filter(|&due| due != Time::NEVER)
    }

    fn tick_period(&self) -> Option<Span> {
        self.policy.tick_period()
    }

    fn release(&self) -> Option<Event> {
        self.in_state(State::Taken).next().map(|task| Event::Resume { task })
    }

    fn due(&self) -> Option<Event> {
        let due = self.cpu_ids().find(|cpu| self.cpus[cpu.index()].is_due);
        let serve = due.map(|cpu| match self.running(cpu) {
            Some(_) => Event::Leave { cpu, why: Off::Preempted, picks: true },
            None => Event::Pick { cpu },
        });
        serve.or_else(|| self.is_timer_due().then_some(Event::Timer))
    }

    fn expired(&self) -> Option<Event> {
        let leave = |cpu| Event::Leave { cpu, why: Off::Expired, picks: true };
        self.expired_cpu().map(leave)
    }

    fn block(&self) -> Option<Event> {
        let leave = |cpu| Event::Leave { cpu, why: Off::Blocked, picks: true };
        self.busy_cpus().next().map(leave)
    }

    fn ticks(&self) -> Vec<Event> {
        self.busy_cpus().map(|cpu| Event::Tick { cpu }).collect()
    }

    fn waiting(&self) -> Vec<TaskId> {
        self.in_state(State::Ready).collect()
    }

    fn runnable(&self) -> usize {
        self.waiting().len() + self.busy_cpus().count()
    }
}
