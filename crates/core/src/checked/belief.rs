//! The contract's diagram: the state of every task and CPU, derived from the calls alone.

use alloc::vec::Vec;

use super::violation::{HostFault, PolicyFault, TaskState};
use crate::call::Call;
use crate::ids::{CpuId, CpuMask, CpuSet, DomainId, TaskId};
use crate::machine::Machine;
use crate::per_task::PerTask;
use crate::queue::{Links, List};
use crate::time::{Span, Time};
use crate::{Enqueue, Off, Pick};

/// How far a task's number may exceed the number of tasks so far. Limits what a wrong number can
/// allocate.
const SPREAD: u64 = 1 << 16;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Belief {
    /// The latest time of any call.
    pub now: Time,
    tasks: PerTask<Task>,
    cpus: Vec<Cpu>,
    pub online: CpuMask,
    /// CPUs in use that run nothing and will not pick unless kicked.
    pub idle: CpuMask,
    /// CPUs in use that run nothing and will pick: kicked, or between `put_prev` and `pick_next`.
    pub choosing: CpuMask,
    /// Ready tasks, longest-waiting first.
    ready: List,
    links: Links,
    /// Domains with a cap: their tasks may wait beside an idle CPU.
    capped: Vec<DomainId>,
    /// How many tasks have been attached.
    attached: u64,
    /// Per CPU, the task assigned to it; used within [`Belief::unserved`].
    serves: Vec<Option<TaskId>>,
}

/// What is known of a task from the calls.
#[derive(Clone, Debug)]
struct Task {
    state: TaskState,
    affinity: CpuSet,
    domain: DomainId,
    /// When it became ready.
    since: Time,
    /// A CPU that went idle while this task was ready and allowed on it.
    passed: Option<CpuId>,
    /// Its wait has been reported.
    reported: bool,
}

/// What is known of a CPU from the calls.
#[derive(Clone, Debug)]
struct Cpu {
    runs: Option<TaskId>,
    /// Since when it has been due to pick: when it was kicked or its task put back.
    asked: Option<Time>,
    /// When its task was picked or last charged.
    charged: Time,
    /// The task that yielded here, until the next pick.
    yielded: Option<TaskId>,
}

/// A wait longer than allowed.
#[derive(Debug)]
pub(super) enum Overdue {
    Host(HostFault),
    Policy(PolicyFault),
}

const NEW_TASK: Task = Task {
    state: TaskState::Detached,
    affinity: CpuSet::All,
    domain: DomainId(0),
    since: Time::ZERO,
    passed: None,
    reported: false,
};

impl Belief {
    pub fn new(machine: &Machine) -> Belief {
        let cpu = Cpu { runs: None, asked: None, charged: Time::ZERO, yielded: None };
        Belief {
            now: Time::ZERO,
            tasks: PerTask::new(),
            cpus: alloc::vec![cpu; machine.cpus()],
            online: CpuMask::first(machine.cpus()),
            idle: CpuMask::first(machine.cpus()),
            choosing: CpuMask::EMPTY,
            ready: List::default(),
            links: Links::default(),
            capped: Vec::new(),
            attached: 0,
            serves: alloc::vec![None; machine.cpus()],
        }
    }

    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    pub fn state(&self, task: TaskId) -> TaskState {
        self.tasks.get(task).map_or(TaskState::Detached, |task| task.state)
    }

    pub fn since(&self, task: TaskId) -> Time {
        self.tasks[task].since
    }

    pub fn affinity(&self, task: TaskId) -> &CpuSet {
        &self.tasks[task].affinity
    }

    /// The task that has just yielded on `cpu`, if any.
    pub fn yielded(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].yielded
    }

    /// Ready tasks, longest-waiting first.
    pub fn ready(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.links.iter(&self.ready)
    }

    /// Whether the host may make this call at `now`.
    pub fn check(&self, now: Time, call: &Call<'_>) -> Result<(), HostFault> {
        if now < self.now {
            return Err(HostFault::TimeWentBack { to: now });
        }
        match *call {
            Call::Attach { task, ref params } => {
                if u64::from(task.0) >= self.attached + SPREAD {
                    return Err(HostFault::NotDense { task, attached: self.attached });
                }
                self.expect("attach", task, TaskState::Detached)?;
                self.expect_cpu_left(&self.online, task, &params.affinity)
            }
            Call::Detach { task } => self.expect("detach", task, TaskState::Blocked),
            Call::Update { task, ref params } => {
                if self.state(task) == TaskState::Detached {
                    return self.expect("update", task, TaskState::Blocked);
                }
                self.expect_cpu_left(&self.online, task, &params.affinity)
            }
            Call::SetDomain { .. } | Call::SetParam { .. } | Call::Timer => Ok(()),
            Call::SetOnline { cpu, online } => self.check_online(cpu, online),
            Call::Enqueue { task, arrival } => {
                if let Some(from) = arrival.from {
                    self.expect_cpu(from)?;
                }
                if let Enqueue::Wakeup { prev, .. } | Enqueue::Resumed { prev } = arrival.why {
                    self.expect_cpu(prev)?;
                }
                self.expect("enqueue", task, TaskState::Blocked)
            }
            Call::Dequeue { task } => self.expect("dequeue", task, TaskState::Ready),
            Call::PickNext { cpu } => {
                self.expect_cpu(cpu)?;
                match self.cpus[cpu.index()].runs {
                    Some(task) => Err(HostFault::StillRuns { cpu, task }),
                    None => Ok(()),
                }
            }
            Call::PutPrev { cpu, task, ran, .. } => {
                self.check_running("put_prev", now, cpu, task, ran)
            }
            Call::Tick { cpu, task, ran } => self.check_running("tick", now, cpu, task, ran),
        }
    }

    fn expect(&self, call: &'static str, task: TaskId, needed: TaskState) -> Result<(), HostFault> {
        match self.state(task) {
            state if state == needed => Ok(()),
            state => Err(HostFault::WrongState { call, task, state, needed }),
        }
    }

    fn expect_cpu(&self, cpu: CpuId) -> Result<(), HostFault> {
        let cpus = self.cpus.len();
        if cpu.index() < cpus { Ok(()) } else { Err(HostFault::NoSuchCpu { cpu, cpus }) }
    }

    fn expect_cpu_left(
        &self,
        online: &CpuMask,
        task: TaskId,
        affinity: &CpuSet,
    ) -> Result<(), HostFault> {
        if online.meets(affinity) { Ok(()) } else { Err(HostFault::NoCpuLeft { task }) }
    }

    fn check_online(&self, cpu: CpuId, online: bool) -> Result<(), HostFault> {
        self.expect_cpu(cpu)?;
        if online {
            return Ok(());
        }
        let mut left = self.online.clone();
        left.remove(cpu);
        let attached = self.tasks.iter();
        for (task, known) in attached.filter(|(_, known)| known.state != TaskState::Detached) {
            self.expect_cpu_left(&left, task, &known.affinity)?;
        }
        Ok(())
    }

    fn check_running(
        &self,
        call: &'static str,
        now: Time,
        cpu: CpuId,
        task: TaskId,
        ran: Span,
    ) -> Result<(), HostFault> {
        self.expect_cpu(cpu)?;
        self.expect(call, task, TaskState::Running(cpu))?;
        let passed = now.since(self.cpus[cpu.index()].charged);
        if ran <= passed { Ok(()) } else { Err(HostFault::RanTooLong { cpu, task, ran, passed }) }
    }

    /// Applies a call that [`Belief::check`] allows. After a pick, call [`Belief::run`] or
    /// [`Belief::rest`].
    pub fn apply(&mut self, now: Time, call: &Call<'_>) {
        self.now = now;
        match *call {
            Call::Attach { task, ref params } => {
                self.attached += 1;
                self.links.attach(task);
                self.tasks.grow(task, |_| NEW_TASK);
                let (affinity, domain) = (params.affinity.clone(), params.domain);
                self.tasks[task] = Task { state: TaskState::Blocked, affinity, domain, ..NEW_TASK };
            }
            Call::Detach { task } => self.tasks[task].state = TaskState::Detached,
            Call::Update { task, ref params } => {
                self.tasks[task].affinity = params.affinity.clone();
                self.tasks[task].domain = params.domain;
            }
            Call::SetDomain { domain, params } => {
                self.capped.retain(|&other| other != domain);
                if params.cap_percent > 0 {
                    self.capped.push(domain);
                }
            }
            Call::SetParam { .. } | Call::Timer => {}
            Call::SetOnline { cpu, online } => self.set_online(cpu, online),
            Call::Enqueue { task, .. } => self.make_ready(task),
            Call::Dequeue { task } => {
                self.links.remove(&mut self.ready, task);
                self.tasks[task].state = TaskState::Blocked;
            }
            Call::PickNext { cpu } => {
                self.cpus[cpu.index()].asked = None;
                if self.online.contains(cpu) {
                    self.idle.remove(cpu);
                    self.choosing.insert(cpu);
                }
            }
            Call::PutPrev { cpu, task, why, .. } => {
                let on = &mut self.cpus[cpu.index()];
                on.runs = None;
                on.yielded = (why == Off::Yielded).then_some(task);
                if self.online.contains(cpu) {
                    on.asked = on.asked.or(Some(now));
                    self.choosing.insert(cpu);
                }
                if why.runnable() {
                    self.make_ready(task);
                } else {
                    self.tasks[task].state = TaskState::Blocked;
                }
            }
            Call::Tick { cpu, .. } => self.cpus[cpu.index()].charged = now,
        }
    }

    fn make_ready(&mut self, task: TaskId) {
        let known = &mut self.tasks[task];
        known.state = TaskState::Ready;
        known.since = self.now;
        known.passed = None;
        known.reported = false;
        self.links.push_back(&mut self.ready, task);
    }

    fn set_online(&mut self, cpu: CpuId, online: bool) {
        if online == self.online.contains(cpu) {
            return;
        }
        if online {
            self.online.insert(cpu);
            if self.cpus[cpu.index()].runs.is_none() {
                self.idle.insert(cpu);
            }
        } else {
            self.online.remove(cpu);
            self.idle.remove(cpu);
            self.choosing.remove(cpu);
            self.cpus[cpu.index()].asked = None;
        }
    }

    /// `cpu`, which exists in the machine, was kicked.
    pub fn kick(&mut self, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        if self.online.contains(cpu) {
            on.asked = on.asked.or(Some(self.now));
            if on.runs.is_none() {
                self.idle.remove(cpu);
                self.choosing.insert(cpu);
            }
        }
    }

    /// The CPU that runs `task`, if it may no longer do so and is not about to pick.
    pub fn runs_forbidden(&self, task: TaskId) -> Option<CpuId> {
        let TaskState::Running(cpu) = self.state(task) else { return None };
        let asked = self.cpus[cpu.index()].asked.is_some();
        let fine = asked || self.affinity(task).contains(cpu) || !self.online.contains(cpu);
        (!fine).then_some(cpu)
    }

    /// What is wrong with picking `task` for `cpu`, if anything.
    pub fn check_pick(&self, cpu: CpuId, pick: Pick) -> Result<(), PolicyFault> {
        let task = pick.task;
        match self.state(task) {
            TaskState::Ready => {}
            TaskState::Running(on) => return Err(PolicyFault::DoubleRun { task, cpu, on }),
            state => return Err(PolicyFault::NotReady { task, cpu, state }),
        }
        if !self.online.contains(cpu) {
            return Err(PolicyFault::Offline { task, cpu });
        }
        if !self.affinity(task).contains(cpu) {
            return Err(PolicyFault::NotAllowed { task, cpu });
        }
        if pick.slice == Span::ZERO {
            return Err(PolicyFault::ZeroSlice { task, cpu });
        }
        Ok(())
    }

    /// `task`, which is ready, runs on `cpu`.
    pub fn run(&mut self, cpu: CpuId, task: TaskId) {
        self.links.remove(&mut self.ready, task);
        self.tasks[task].state = TaskState::Running(cpu);
        self.choosing.remove(cpu);
        self.idle.remove(cpu);
        let on = &mut self.cpus[cpu.index()];
        on.runs = Some(task);
        on.charged = self.now;
        on.yielded = None;
    }

    /// `cpu` has nothing to run.
    pub fn rest(&mut self, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        on.yielded = None;
        if !self.online.contains(cpu) {
            return;
        }
        if on.asked.is_none() {
            self.choosing.remove(cpu);
            self.idle.insert(cpu);
        }
        let (links, tasks) = (&self.links, &mut self.tasks);
        for task in links.iter(&self.ready) {
            let known = &mut tasks[task];
            if known.affinity.contains(cpu) {
                known.passed = Some(cpu);
            }
        }
    }

    /// The longest-waiting task that may run on `cpu`.
    pub fn first_ready_for(&self, cpu: CpuId) -> Option<TaskId> {
        self.ready().find(|&task| self.affinity(task).contains(cpu))
    }

    /// Whether `cpu`, which could run `task`, is idle.
    pub fn left_idle(&self, cpu: CpuId, task: TaskId) -> bool {
        self.idle.contains(cpu) && self.affinity(task).contains(cpu)
    }

    /// The task that has been ready for longest, and a CPU that it may run on, if no CPU runs
    /// anything or is about to pick.
    pub fn stuck(&self) -> Option<(TaskId, CpuId)> {
        if self.ready.is_empty() || !self.choosing.is_empty() {
            return None;
        }
        let runs = |cpu: &Cpu| cpu.runs.is_some();
        let task = self.ready().next().filter(|_| !self.cpus.iter().any(runs))?;
        Some((task, self.idle.lowest_of(self.affinity(task))?))
    }

    /// A ready task that an idle CPU could run, and that CPU, unless all such tasks can each be
    /// matched with a CPU that is about to pick. Tasks with a cap do not count. (A maximum
    /// matching, by augmenting paths.)
    pub fn unserved(&mut self) -> Option<(TaskId, CpuId)> {
        if self.idle.is_empty() || self.ready.is_empty() {
            return None;
        }
        let mut serves = core::mem::take(&mut self.serves);
        serves.fill(None);
        let may_wait = |task| self.capped.contains(&self.tasks[task].domain);
        let unserved = self.ready().filter(|&task| !may_wait(task)).find_map(|task| {
            let idle = self.idle.lowest_of(self.affinity(task))?;
            let mut tried = CpuMask::EMPTY;
            let served = self.find_server(task, &mut serves, &mut tried);
            (!served).then_some((task, idle))
        });
        self.serves = serves;
        unserved
    }

    /// Finds `task` an untried CPU that is about to pick; if necessary, reassigns tasks that
    /// already have one.
    fn find_server(
        &self,
        task: TaskId,
        serves: &mut [Option<TaskId>],
        tried: &mut CpuMask,
    ) -> bool {
        let affinity = self.affinity(task);
        for cpu in self.choosing.iter().filter(|&cpu| affinity.contains(cpu)) {
            if tried.contains(cpu) {
                continue;
            }
            tried.insert(cpu);
            let moved = match serves[cpu.index()] {
                None => true,
                Some(other) => self.find_server(other, serves, tried),
            };
            if moved {
                serves[cpu.index()] = Some(task);
                return true;
            }
        }
        false
    }

    /// Calls `report` once for every wait longer than `most`, and returns when the next one will
    /// be.
    pub(super) fn overdue(&mut self, most: Span, mut report: impl FnMut(Overdue)) -> Time {
        let mut at = self.links.iter(&self.ready);
        let mut late = alloc::vec::Vec::new();
        let mut next = Time::NEVER;
        for task in at.by_ref() {
            let known = &self.tasks[task];
            if self.now.since(known.since) <= most {
                next = known.since + most;
                break;
            }
            if !known.reported {
                late.push(task);
            }
        }
        drop(at);
        for task in late {
            self.tasks[task].reported = true;
            report(self.why_late(task, most));
        }
        next
    }

    fn why_late(&self, task: TaskId, most: Span) -> Overdue {
        let Task { affinity, since, passed, .. } = &self.tasks[task];
        let since = *since;
        for cpu in self.online.iter().filter(|&cpu| affinity.contains(cpu)) {
            let asked = self.cpus[cpu.index()].asked;
            if let Some(asked) = asked.filter(|&asked| self.now.since(asked) > most) {
                return Overdue::Host(HostFault::KickLost { cpu, asked, task });
            }
        }
        Overdue::Policy(match passed.or_else(|| self.idle.lowest_of(affinity)) {
            Some(idle) => PolicyFault::Lost { task, since, idle },
            None => PolicyFault::Starved { task, since },
        })
    }
}
