//! sched_ext, as far as the glue sees of it.
//!
//! What the kernel does to a task between two calls of the policy is split into events: a CPU that
//! has picked a task drops its lock before it starts it, and other CPUs may take that task away
//! meanwhile.
//!
//! Source: kernel/sched/ext.c of 6.12 (`enqueue_task_scx`, `dequeue_task_scx`, `balance_scx`,
//! `put_prev_task_scx`, `set_next_task_scx`, `rq_offline_scx`), `sched_change` of
//! kernel/sched/core.c, and hosts/linux/module/glue.c.

use std::fmt;

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{CpuId, CpuSet, Machine, Off, Scheduler, Span, TaskId, Time, canonical};
use anysched_scx::{Adapter, Enqueued, Prev, State, Waking};

use super::Kernel;
use crate::event::Step;
use crate::host::{START, params};
use crate::property::{Driven, Steps};
use crate::subject::Held;

/// Linux with some tasks and CPUs, and a policy behind its glue.
pub struct Linux {
    adapter: Adapter<Held>,
    now: Time,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    has_hotplug: bool,
    /// What is wrong with the glue.
    #[cfg(test)]
    pub(super) flaw: super::tests::Flaw,
}

/// What the kernel gives a task that it runs without having asked (`SCX_SLICE_DFL`).
const SLICE: Span = Span::from_ms(20);

/// A task as the kernel knows it.
#[derive(Clone, Debug, Default)]
struct Task {
    /// The glue's number; `None`: it is not there.
    id: Option<TaskId>,
    /// It is in no runqueue.
    is_asleep: bool,
    /// The kernel has left it to the policy (`SCX_OPSS_QUEUED`): what a CPU is given is ignored
    /// if it is anywhere else.
    is_left: bool,
    /// It goes to sleep, or ends, when its CPU schedules next.
    leaves: Option<Leaves>,
    bound: Option<CpuId>,
    is_nice: bool,
    /// CPU time in nanoseconds.
    runtime: u64,
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    Sleeps,
    Ends,
}

#[derive(Clone, Debug)]
struct Cpu {
    is_online: bool,
    /// What it runs, or ran until something above the policy came.
    current: Option<usize>,
    /// What is next here: what the policy has given it, and what the kernel has put here without
    /// having asked.
    local: Vec<usize>,
    /// It has asked the policy and not switched yet.
    is_switching: bool,
    /// Something above the policy runs.
    is_taken: bool,
    /// It is to schedule: it was kicked.
    is_kicked: bool,
    /// The slice is over.
    is_expired: bool,
    /// What it runs is to be replaced: it sleeps or has yielded.
    is_due: bool,
    slice_ends: Time,
    ticked: Time,
}

canonical!(Task { id, is_asleep, is_left, leaves, bound, is_nice, runtime: fixed });
canonical!(Leaves: u64);

impl Canonical for Cpu {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Cpu { is_online, current, local, is_switching, .. } = self;
        [*is_online, *is_switching, self.is_taken, self.is_kicked].canon(&(), to);
        [self.is_expired, self.is_due].canon(&(), to);
        current.canon(&(), to);
        local[..].canon(&(), to);
        self.slice_ends.canon(&(), to);
        current.map(|_| self.ticked).canon(&(), to);
    }
}

/// What happens in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields say which task and which CPU")]
pub enum LinuxEvent {
    /// A task is created, or comes from another class; it is not ready.
    Enable {
        task: usize,
    },
    /// A sleeping task ends, or goes to another class.
    Disable {
        task: usize,
    },
    /// A task becomes ready.
    Wake {
        task: usize,
        from: Option<CpuId>,
    },
    /// What runs on a CPU is about to sleep.
    Sleep {
        cpu: CpuId,
    },
    /// It is woken before it does.
    Stay {
        cpu: CpuId,
    },
    /// What runs on a CPU ends.
    End {
        cpu: CpuId,
    },
    Yield {
        cpu: CpuId,
    },
    /// A CPU asks the policy, or takes what it has to carry.
    Schedule {
        cpu: CpuId,
    },
    /// It switches to what it was given.
    Switch {
        cpu: CpuId,
    },
    /// The timer of the slice.
    SliceEnd {
        cpu: CpuId,
    },
    Tick {
        cpu: CpuId,
    },
    Timer,
    Pass {
        step: Step,
    },
    /// A real-time task takes a CPU, or leaves it.
    Taken {
        cpu: CpuId,
        taken: bool,
    },
    /// The weight of a task changes: it is taken out and put back.
    Nice {
        task: usize,
    },
    Bind {
        task: usize,
        to: Option<CpuId>,
    },
    Online {
        cpu: CpuId,
        online: bool,
    },
}

impl Linux {
    /// With up to `tasks` tasks; `policy` was built for `machine`. With `has_hotplug`, CPUs go out
    /// of use and come back.
    pub fn new(policy: Held, machine: &Machine, tasks: u32, has_hotplug: bool) -> Linux {
        let idle = Cpu {
            is_online: true,
            current: None,
            local: Vec::new(),
            is_switching: false,
            is_taken: false,
            is_kicked: false,
            is_expired: false,
            is_due: false,
            slice_ends: Time::NEVER,
            ticked: START,
        };
        Linux {
            adapter: Adapter::new(policy, machine),
            now: START,
            tasks: vec![Task::default(); tasks as usize],
            cpus: vec![idle; machine.cpus()],
            has_hotplug,
            #[cfg(test)]
            flaw: super::tests::Flaw::None,
        }
    }

    fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len() as u16).map(CpuId)
    }

    /// CPUs that run something, or did until something above the policy came.
    fn busy_cpus(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.cpu_ids().filter(|&cpu| self.at(cpu).current.is_some())
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    fn at(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }

    fn id(&self, task: usize) -> TaskId {
        self.tasks[task].id.expect("it is there")
    }

    fn number(&self, id: TaskId) -> usize {
        let number = self.tasks.iter().position(|task| task.id == Some(id));
        number.expect("the policy picks a task that is there")
    }

    /// Where a task runs or is on its stack.
    fn runs_on(&self, task: usize) -> Option<CpuId> {
        self.cpu_ids().find(|&cpu| self.at(cpu).current == Some(task))
    }

    fn is_allowed(&self, task: usize, cpu: CpuId) -> bool {
        let bound = self.tasks[task].bound;
        // One whose only CPU has gone may run anywhere.
        bound.is_none_or(|bound| bound == cpu || !self.at(bound).is_online)
    }

    /// The CPU time of a task has to be what it is now.
    fn account(&mut self, until: Time) {
        let passed = until.since(self.now).0;
        for cpu in &self.cpus {
            if let Some(task) = cpu.current.filter(|_| !cpu.is_taken) {
                self.tasks[task].runtime += passed;
            }
        }
        self.now = until;
    }

    fn kicks(&mut self) {
        while let Some(cpu) = self.adapter.take_kick() {
            #[cfg(test)]
            if self.flaw == super::tests::Flaw::LosesKicks {
                continue;
            }
            self.cpu(cpu).is_kicked |= self.at(cpu).is_online;
        }
    }

    fn enqueue(&mut self, task: usize, wakeup: bool, from: Option<CpuId>, over: Option<Off>) {
        let (id, runtime) = (self.id(task), self.tasks[task].runtime);
        let waking = Waking { wakeup, sync: false, from, over };
        let enqueued = self.adapter.enqueue(self.now, id, runtime, waking);
        self.tasks[task].is_left = enqueued == Enqueued::Waits;
        if enqueued == Enqueued::GoesOn {
            // It goes into the queue of a CPU where it may run, which starts it without asking.
            let may = |&cpu: &CpuId| self.at(cpu).is_online && self.is_allowed(task, cpu);
            let cpu = self.cpu_ids().find(may).expect("there is a CPU for each task");
            self.cpu(cpu).local.push(task);
        }
    }

    /// What ran stops, and is put back if it can go on.
    fn put_prev(&mut self, cpu: CpuId) {
        let Some(prev) = self.cpu(cpu).current.take() else { return };
        if self.tasks[prev].leaves.is_none() && !self.tasks[prev].is_asleep {
            self.enqueue(prev, false, None, None);
        }
    }

    fn schedule(&mut self, cpu: CpuId) {
        let now = self.now;
        let prev = self.at(cpu).current;
        if let Some(task) = prev
            && let Some(leaves) = self.tasks[task].leaves
        {
            let why = if leaves == Leaves::Ends { Off::Exited } else { Off::Blocked };
            let (id, runtime) = (self.id(task), self.tasks[task].runtime);
            self.adapter.leaves(now, id, runtime, why);
            self.tasks[task].is_asleep = true;
        }
        self.cpu(cpu).is_due = false;
        if !self.at(cpu).local.is_empty() {
            // The lock is not dropped, and what the CPU was kicked for is still to come.
            return self.switch(cpu);
        }
        let is_expired = self.at(cpu).is_expired;
        let on = self.cpu(cpu);
        (on.is_kicked, on.is_expired, on.is_switching) = (false, false, true);
        on.slice_ends = Time::NEVER;
        let runnable = |task: &usize| self.tasks[*task].leaves.is_none();
        let why = if is_expired { Off::Expired } else { Off::Preempted };
        let told = prev.map(|task| {
            let id = self.id(task);
            Prev { task: id, runnable: runnable(&task), why }
        });
        let runs = self.adapter.runs(cpu).map(|id| self.tasks[self.number(id)].runtime);
        let pick = self.adapter.dispatch(now, cpu, told, runs.unwrap_or(0));
        let Some(pick) = pick else { return };
        let task = self.number(pick.task);
        assert!(self.is_allowed(task, cpu), "task {task} may not run on CPU {}", cpu.0);
        let is_left = std::mem::take(&mut self.tasks[task].is_left);
        let on = self.cpu(cpu);
        on.slice_ends = if pick.slice == Span::MAX { Time::NEVER } else { now + pick.slice };
        on.local.extend(Some(task).filter(|_| is_left));
        if prev == Some(task) {
            (on.is_switching, on.ticked) = (false, now);
        }
    }

    fn switch(&mut self, cpu: CpuId) {
        self.put_prev(cpu);
        let now = self.now;
        let on = self.cpu(cpu);
        (on.is_switching, on.ticked) = (false, now);
        if self.at(cpu).local.is_empty() {
            return;
        }
        let task = self.cpu(cpu).local.remove(0);
        assert!(self.runs_on(task).is_none(), "task {task} runs on two CPUs");
        self.cpu(cpu).current = Some(task);
        let id = self.id(task);
        if self.adapter.runs(cpu) == Some(id) {
            self.adapter.started(id);
            return;
        }
        let runtime = self.tasks[task].runtime;
        self.adapter.runs_unasked(self.now, id, runtime, cpu);
        self.cpu(cpu).slice_ends = self.now + SLICE;
    }

    /// `sched_change`: a task is taken out, something of it changes, and it is put back.
    fn change(&mut self, task: usize, change: impl FnOnce(&mut Task)) {
        let is_queued = !self.tasks[task].is_asleep;
        if is_queued {
            self.adapter.dequeue(self.now, self.id(task));
            self.tasks[task].is_left = false;
            // It is in no local queue any more.
            for cpu in &mut self.cpus {
                cpu.local.retain(|&local| local != task);
            }
        }
        change(&mut self.tasks[task]);
        let Task { bound, is_nice, .. } = self.tasks[task];
        let affinity = bound.map_or(CpuSet::All, |cpu| CpuSet::of([cpu]));
        let params = params(TaskId(task as u32), is_nice, affinity);
        self.adapter.update(self.now, self.id(task), params);
        if !is_queued {
            return;
        }
        match self.runs_on(task) {
            None => self.enqueue(task, false, None, None),
            // One that runs goes into the queue of its CPU without a call (`sticky_cpu`), and the
            // stopper takes it off a CPU that it may not use any more.
            Some(cpu) if !self.is_allowed(task, cpu) => self.push(task, cpu),
            Some(_) => {}
        }
    }

    /// A task is moved from the CPU where it runs to another.
    fn push(&mut self, task: usize, cpu: CpuId) {
        self.cpu(cpu).current = None;
        self.cpu(cpu).is_due = true;
        self.adapter.dequeue(self.now, self.id(task));
        self.enqueue(task, false, None, None);
    }

    fn online(&mut self, cpu: CpuId, online: bool) {
        self.cpu(cpu).is_online = online;
        let runs = self.adapter.runs(cpu).map(|id| self.tasks[self.number(id)].runtime);
        self.adapter.set_online(self.now, cpu, online, runs.unwrap_or(0));
        if online {
            return;
        }
        let on = self.cpu(cpu);
        (on.is_kicked, on.is_expired, on.is_due) = (false, false, false);
        on.slice_ends = Time::NEVER;
        let pushed: Vec<usize> = on.current.take().into_iter().chain(on.local.drain(..)).collect();
        for task in pushed {
            if self.tasks[task].leaves.take().is_some() {
                let (id, runtime) = (self.id(task), self.tasks[task].runtime);
                self.adapter.leaves(self.now, id, runtime, Off::Blocked);
                self.tasks[task].is_asleep = true;
                continue;
            }
            self.adapter.dequeue(self.now, self.id(task));
            self.enqueue(task, false, None, None);
        }
    }

    /// Whether `cpu` has something to schedule for, and nothing above the policy runs.
    fn wants(&self, cpu: CpuId) -> bool {
        let on = self.at(cpu);
        let leaves = on.current.is_some_and(|task| self.tasks[task].leaves.is_some());
        let is_idle_with_work = on.current.is_none() && !on.local.is_empty();
        on.is_online
            && !on.is_taken
            && !on.is_switching
            && (on.is_kicked || on.is_expired || on.is_due || leaves || is_idle_with_work)
    }

    fn is_timer_due(&self) -> bool {
        self.adapter.next_timer().is_some_and(|due| due <= self.now)
    }

    fn expired_cpu(&self) -> Option<CpuId> {
        self.cpu_ids().find(|&cpu| self.at(cpu).slice_ends <= self.now)
    }
}

impl Steps for Linux {
    type Event = LinuxEvent;

    fn events(&self) -> Vec<LinuxEvent> {
        let mut events = Vec::new();
        let new = self.tasks.iter().position(|task| task.id.is_none());
        events.extend(new.map(|task| LinuxEvent::Enable { task }));
        for (number, task) in self.tasks.iter().enumerate().filter(|(_, task)| task.id.is_some()) {
            let is_off = self.runs_on(number).is_none();
            if task.is_asleep && is_off {
                let wakers = self.busy_cpus().filter(|&cpu| !self.at(cpu).is_switching).map(Some);
                let wake = |from| LinuxEvent::Wake { task: number, from };
                events.extend(wakers.chain([None]).map(wake));
                events.push(LinuxEvent::Disable { task: number });
            }
            let is_switched = self.runs_on(number).is_some_and(|cpu| self.at(cpu).is_switching);
            if task.leaves.is_some() || is_switched {
                continue;
            }
            events.push(LinuxEvent::Nice { task: number });
            if self.cpus.len() > 1 {
                let all = self.cpu_ids().map(Some).chain([None]);
                let others = all
                    .filter(|&to| to != task.bound && to.is_none_or(|cpu| self.at(cpu).is_online));
                events.extend(others.map(|to| LinuxEvent::Bind { task: number, to }));
            }
        }
        for cpu in self.cpu_ids() {
            self.cpu_events(cpu, &mut events);
        }
        if self.is_timer_due() {
            events.push(LinuxEvent::Timer);
        } else if self.expired_cpu().is_none() {
            let steps = Step::distinct(self.now, self.next_due());
            events.extend(steps.map(|step| LinuxEvent::Pass { step }));
        }
        events
    }

    fn apply(&mut self, event: LinuxEvent) {
        let now = self.now;
        match event {
            LinuxEvent::Enable { task } => {
                let params = params(TaskId(task as u32), false, CpuSet::All);
                let id = self.adapter.attach(now, params, 0);
                self.tasks[task] = Task { id: Some(id), is_asleep: true, ..Task::default() };
            }
            LinuxEvent::Disable { task } => {
                self.adapter.detach(now, self.id(task), self.tasks[task].runtime);
                self.tasks[task] = Task::default();
            }
            LinuxEvent::Wake { task, from } => {
                self.tasks[task].is_asleep = false;
                self.tasks[task].leaves = None;
                self.enqueue(task, true, from, None);
            }
            LinuxEvent::Sleep { cpu } => self.leave(cpu, Some(Leaves::Sleeps)),
            LinuxEvent::Stay { cpu } => self.leave(cpu, None),
            LinuxEvent::End { cpu } => self.leave(cpu, Some(Leaves::Ends)),
            LinuxEvent::Yield { cpu } => {
                if let Some(task) = self.at(cpu).current {
                    self.adapter.yields(self.id(task));
                    self.cpu(cpu).is_due = true;
                }
            }
            LinuxEvent::Schedule { cpu } => self.schedule(cpu),
            LinuxEvent::Switch { cpu } => self.switch(cpu),
            LinuxEvent::SliceEnd { cpu } => {
                self.cpu(cpu).is_expired = true;
                self.cpu(cpu).slice_ends = Time::NEVER;
            }
            LinuxEvent::Tick { cpu } => {
                self.cpu(cpu).ticked = now;
                if let Some(task) = self.at(cpu).current {
                    self.adapter.tick(now, self.id(task), self.tasks[task].runtime);
                }
            }
            LinuxEvent::Timer => self.adapter.timer(now),
            LinuxEvent::Pass { step } => self.account(step.end(now, self.next_due())),
            LinuxEvent::Taken { cpu, taken } => self.cpu(cpu).is_taken = taken,
            LinuxEvent::Nice { task } => self.change(task, |task| task.is_nice ^= true),
            LinuxEvent::Bind { task, to } => self.change(task, |task| task.bound = to),
            LinuxEvent::Online { cpu, online } => self.online(cpu, online),
        }
        self.kicks();
    }

    fn words(&self) -> Option<Vec<u64>> {
        let mut canon = Canon::new(self.now);
        self.tasks[..].canon(&(), &mut canon);
        self.cpus[..].canon(&(), &mut canon);
        let runtime = |id: TaskId| {
            let task = self.tasks.iter().find(|task| task.id == Some(id));
            task.map_or(0, |task| task.runtime)
        };
        self.adapter.canon(runtime, &mut canon);
        canon.words()
    }
}

impl Linux {
    fn leave(&mut self, cpu: CpuId, leaves: Option<Leaves>) {
        if let Some(task) = self.at(cpu).current {
            self.tasks[task].leaves = leaves;
        }
    }

    fn cpu_events(&self, cpu: CpuId, events: &mut Vec<LinuxEvent>) {
        let on = self.at(cpu);
        if on.is_switching {
            events.push(LinuxEvent::Switch { cpu });
            return;
        }
        if self.wants(cpu) {
            events.push(LinuxEvent::Schedule { cpu });
        }
        if let Some(task) = on.current.filter(|_| !on.is_taken) {
            match self.tasks[task].leaves {
                None => {
                    events.push(LinuxEvent::Sleep { cpu });
                    events.push(LinuxEvent::End { cpu });
                    events.push(LinuxEvent::Yield { cpu });
                }
                Some(Leaves::Sleeps) => events.push(LinuxEvent::Stay { cpu }),
                Some(Leaves::Ends) => {}
            }
            if on.slice_ends <= self.now {
                events.push(LinuxEvent::SliceEnd { cpu });
            } else if on.ticked < self.now {
                events.push(LinuxEvent::Tick { cpu });
            }
        } else if on.slice_ends <= self.now {
            events.push(LinuxEvent::SliceEnd { cpu });
        }
        if on.is_online {
            events.push(LinuxEvent::Taken { cpu, taken: !on.is_taken });
        }
        let others = self.cpu_ids().any(|other| other != cpu && self.at(other).is_online);
        if self.has_hotplug && (others || !on.is_online) && !on.is_taken {
            events.push(LinuxEvent::Online { cpu, online: !on.is_online });
        }
    }
}

impl Kernel for Linux {
    fn policy(&mut self) -> &mut Held {
        self.adapter.policy_mut()
    }
}

impl Driven for Linux {
    fn now(&self) -> Time {
        self.now
    }

    fn pass_until(&mut self, time: Time) {
        self.account(self.now.max(time));
    }

    fn due(&self) -> Option<LinuxEvent> {
        let switching = self.cpu_ids().find(|&cpu| self.at(cpu).is_switching);
        let switch = switching.map(|cpu| LinuxEvent::Switch { cpu });
        let wants = || self.cpu_ids().find(|&cpu| self.wants(cpu));
        let schedule = || wants().map(|cpu| LinuxEvent::Schedule { cpu });
        let timer = || self.is_timer_due().then_some(LinuxEvent::Timer);
        switch.or_else(schedule).or_else(timer)
    }

    fn expired(&self) -> Option<LinuxEvent> {
        self.expired_cpu().map(|cpu| LinuxEvent::SliceEnd { cpu })
    }

    fn tick_period(&self) -> Option<Span> {
        self.adapter.policy().tick_period()
    }

    fn next_due(&self) -> Option<Time> {
        let ends = self.cpus.iter().map(|cpu| cpu.slice_ends);
        ends.chain(self.adapter.next_timer()).min().filter(|&due| due != Time::NEVER)
    }

    fn release(&self) -> Option<LinuxEvent> {
        let taken = self.cpu_ids().find(|&cpu| self.at(cpu).is_taken);
        taken.map(|cpu| LinuxEvent::Taken { cpu, taken: false })
    }

    fn block(&self) -> Option<LinuxEvent> {
        self.busy_cpus().next().map(|cpu| LinuxEvent::Sleep { cpu })
    }

    fn ticks(&self) -> Vec<LinuxEvent> {
        self.busy_cpus().map(|cpu| LinuxEvent::Tick { cpu }).collect()
    }

    fn waiting(&self) -> Vec<TaskId> {
        let is_ready = |task: &Task| task.id.is_some() && !task.is_asleep;
        let tasks = self.tasks.iter().enumerate();
        let waits =
            tasks.filter(|(number, task)| is_ready(task) && self.runs_on(*number).is_none());
        waits.map(|(number, _)| TaskId(number as u32)).collect()
    }

    fn runnable(&self) -> usize {
        self.tasks.iter().filter(|task| task.id.is_some() && !task.is_asleep).count()
    }

    fn unasked(&self) -> Span {
        let is_unasked = |task: &&usize| self.adapter.state(self.id(**task)) == State::Unasked;
        let running = self.cpus.iter().filter_map(|cpu| cpu.current.as_ref()).filter(is_unasked);
        let local = self.cpus.iter().flat_map(|cpu| &cpu.local);
        Span(SLICE.0 * (running.count() + local.count()) as u64)
    }
}

impl fmt::Display for LinuxEvent {
    /// The event in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            LinuxEvent::Enable { task } => write!(f, "task {task} comes"),
            LinuxEvent::Disable { task } => write!(f, "task {task} goes"),
            LinuxEvent::Wake { task, from: None } => write!(f, "task {task} is woken"),
            LinuxEvent::Wake { task, from: Some(cpu) } => {
                write!(f, "what runs on CPU {} wakes task {task}", cpu.0)
            }
            LinuxEvent::Sleep { cpu } => write!(f, "what runs on CPU {} goes to sleep", cpu.0),
            LinuxEvent::Stay { cpu } => write!(f, "it is woken before it sleeps, on CPU {}", cpu.0),
            LinuxEvent::End { cpu } => write!(f, "what runs on CPU {} ends", cpu.0),
            LinuxEvent::Yield { cpu } => write!(f, "what runs on CPU {} yields", cpu.0),
            LinuxEvent::Schedule { cpu } => write!(f, "CPU {} asks", cpu.0),
            LinuxEvent::Switch { cpu } => write!(f, "CPU {} switches", cpu.0),
            LinuxEvent::SliceEnd { cpu } => write!(f, "the slice on CPU {} ends", cpu.0),
            LinuxEvent::Tick { cpu } => write!(f, "a tick on CPU {}", cpu.0),
            LinuxEvent::Timer => f.write_str("the policy's timer"),
            LinuxEvent::Pass { step } => step.fmt(f),
            LinuxEvent::Taken { cpu, taken: true } => {
                write!(f, "a real-time task takes CPU {}", cpu.0)
            }
            LinuxEvent::Taken { cpu, taken: false } => write!(f, "it leaves CPU {}", cpu.0),
            LinuxEvent::Nice { task } => write!(f, "the weight of task {task} changes"),
            LinuxEvent::Bind { task, to: Some(cpu) } => {
                write!(f, "task {task} is bound to CPU {}", cpu.0)
            }
            LinuxEvent::Bind { task, to: None } => write!(f, "task {task} may run anywhere"),
            LinuxEvent::Online { cpu, online: true } => write!(f, "CPU {} comes into use", cpu.0),
            LinuxEvent::Online { cpu, online: false } => write!(f, "CPU {} goes out of use", cpu.0),
        }
    }
}
