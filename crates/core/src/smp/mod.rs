//! From an ordering rule to a scheduler for many CPUs.
//!
//! A policy that is an ordering rule implements [`RunQueue`]. [`Smp`] adds what all of them have in
//! common: which CPUs share a runqueue, where a task that becomes ready is placed, whom it
//! preempts, what an idle CPU pulls and what is balanced in the background.

mod balance;
mod change;
mod config;
mod fair;
mod kick;
mod loads;
mod place;
mod rule;

use alloc::boxed::Box;
use alloc::vec::Vec;

use rule::{Erase, Rule};

pub use config::{Balance, Balancing, Layout, Place, SmpParams, Steal};

use crate::canon::{Canon, Canonical};
use crate::ids::{CpuId, CpuMask, CpuSet, TaskId};
use crate::machine::Machine;
use crate::neighbours::Neighbours;
use crate::params::{ParamError, TaskParams};
use crate::per_task::PerTask;
use crate::policy::Policy;
use crate::promise::Promises;
use crate::time::{Span, Time};
use crate::{Arrival, Cx, Enqueue, Off, Pick, Scheduler, canon_fields, canonical};

/// When, and about which runqueue, a rule is asked.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The time of the call.
    pub now: Time,
    /// The runqueue in question, `0 .. queues`.
    pub queue: usize,
    /// What the CPUs that serve this runqueue are doing.
    pub running: &'a [Running],
}

/// What one CPU is doing.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    pub(crate) task: u32,
    pub(crate) cpu: CpuId,
    /// Already asked to pick again.
    pub(crate) told: bool,
    pub(crate) since: Time,
}

impl Running {
    /// `cpu` runs `task`, if any, which was picked or last charged at `since`.
    #[inline]
    pub fn new(cpu: CpuId, task: Option<TaskId>, since: Time) -> Running {
        Running { task: task.map_or(NOBODY, |task| task.0), cpu, told: false, since }
    }

    /// The task that runs, if one does.
    #[inline]
    pub fn task(&self) -> Option<TaskId> {
        (self.task != NOBODY).then_some(TaskId(self.task))
    }

    /// The CPU.
    #[inline]
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// When the task was picked or last charged, whichever is later. Until the next charge, the CPU
    /// time that it uses can only be estimated as the time since then.
    #[inline]
    pub fn since(&self) -> Time {
        self.since
    }
}

/// Stands for "no task" in place of a task's number.
pub const NOBODY: u32 = u32::MAX;

/// How a task enters a runqueue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Why.
    pub why: Why,
    /// The running task that created it ([`Why::New`]) or woke it ([`Why::Woken`]), if one did.
    pub by: Option<TaskId>,
    /// CPU time until it blocks or exits, where the host knows it ([`Arrival::burst`]).
    pub burst: Option<Span>,
    /// The absolute deadline of its job ([`Arrival::deadline`]).
    pub deadline: Option<Time>,
}

/// Why a task enters a runqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has just been created.
    New,
    /// It was blocked.
    Woken,
    /// The host had taken it out for a moment.
    Resumed,
    /// It comes from another runqueue (see [`Removal::Move`]).
    Moved,
    /// It ran here until now; it has been charged already.
    Put(Off),
}

/// Why a queued task leaves a runqueue without running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is no longer ready, perhaps only for a moment.
    Dequeue,
    /// It goes to another runqueue.
    Move,
}

/// Where a task is when its parameters change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Blocked, or just attached.
    Away,
    /// Queued in the runqueue in question.
    Queued,
    /// Running on a CPU of the runqueue in question.
    Running,
}

/// An ordering rule over one or more runqueues that share an arena of tasks.
///
/// A task is in at most one runqueue. A running task is not queued, but a rule may keep counting
/// it, because it learns of every change: `pop` (queued → running), `push` with [`Why::Put`]
/// (running → queued), `leave` (running → blocked).
pub trait RunQueue: Policy + 'static {
    /// Whether a task that becomes ready may interrupt a running one; if not,
    /// [`RunQueue::preempts`] is never asked.
    const PREEMPTS: bool = false;

    /// The default layout, placement and balancing of this policy.
    fn smp() -> SmpParams;

    /// Whether layout, placement and balancing may be set; if not, those of [`RunQueue::smp`] are
    /// part of the policy's definition.
    const HAS_LAYOUTS: bool = true;

    /// Whether CPUs have roles: whether [`RunQueue::serves`] is ever false.
    const HAS_ROLES: bool = false;

    /// Whether the rule lets `cpu` run `task`, which waits in its runqueue; `pop` respects it.
    fn serves(&self, _cpu: CpuId, _task: TaskId) -> bool {
        true
    }

    /// Whether, since the last call, a waiting task became eligible on more CPUs; idle CPUs are
    /// then kicked.
    fn has_opened(&mut self) -> bool {
        false
    }

    /// `cpu` is put into use or taken out of it; all are in use at first. For rules with roles.
    fn set_online(&mut self, _cpu: CpuId, _online: bool) {}

    /// Makes room for `task` and resets its state. May allocate.
    fn attach(&mut self, task: TaskId, params: &TaskParams);

    /// Forgets `task`, which is in no runqueue.
    fn detach(&mut self, _task: TaskId) {}

    /// The parameters of `task` change; `at.queue` is meaningless while it is away.
    fn update(&mut self, _at: &At<'_>, _is: Whereabouts, _task: TaskId, _params: &TaskParams) {}

    /// `task`, which is in the runqueue in question, may run on other CPUs than before. Where
    /// tasks are placed as in Linux, which takes it out for that and puts it back.
    fn requeue(&mut self, _at: &At<'_>, _is: Whereabouts, _task: TaskId) {}

    /// `task` enters the runqueue.
    fn push(&mut self, at: &At<'_>, task: TaskId, entry: &Entry);

    /// Takes the task that `cpu` runs next: the first in the rule's order that `fits`.
    fn pop(&mut self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId>;

    /// Takes out `task`, which is queued here.
    fn remove(&mut self, at: &At<'_>, task: TaskId, why: Removal);

    /// `task`, which runs here, has used `ran` of CPU time since it was picked or last charged.
    fn charge(&mut self, _at: &At<'_>, _task: TaskId, _ran: Span) {}

    /// The charge for the time up to when `task` stops, for the reason `why`. A rule whose
    /// accounting then starts afresh has nothing to record.
    #[inline]
    fn settle(&mut self, at: &At<'_>, task: TaskId, ran: Span, _why: Off) {
        self.charge(at, task, ran);
    }

    /// `task`, which ran here and has been charged, blocks or exits. Returns whether the rule
    /// keeps it queued all the same (delayed dequeue); it then counts as blocked, `pop` and
    /// `spare` must not return it, and a wake-up returns it to this runqueue. Before that it may
    /// be moved to another runqueue, where it is queued in the same way, or dropped.
    fn leave(&mut self, _at: &At<'_>, _task: TaskId, _why: Off) -> bool {
        false
    }

    /// A task that was kept queued though it sleeps and has been dropped, each once. Asked where
    /// there are several runqueues.
    fn take_dropped(&mut self) -> Option<TaskId> {
        None
    }

    /// Whether ever a task is kept queued though it sleeps.
    const DELAYS: bool = false;

    /// Which kernel's way of balancing belongs to the rule. Asked once, when it is built.
    fn balancing(&self) -> Balancing {
        Balancing::default()
    }

    /// Whether `task`, which waits in `queue`, is owed CPU time.
    fn is_owed(&self, _queue: usize, _task: TaskId) -> bool {
        true
    }

    /// The longest that `task`, just popped, may run; above zero.
    fn slice(&mut self, at: &At<'_>, task: TaskId) -> Span;

    /// The host's tick while `task`, which has been charged, runs here. Returns whether its CPU
    /// should pick again.
    fn tick(&mut self, _at: &At<'_>, _task: TaskId) -> bool {
        false
    }

    /// The tick by which the policy is defined, if any ([`Scheduler::tick_period`]).
    fn tick_period(&self) -> Option<Span> {
        None
    }

    /// Whether `task`, just pushed, should interrupt what `running` runs: `Some(margin)` if so.
    /// Among several CPUs the one with the largest margin is interrupted, the lowest of equals.
    fn preempts(&mut self, _at: &At<'_>, _task: TaskId, _running: &Running) -> Option<u64> {
        None
    }

    /// Whether [`RunQueue::reconsiders`] decides about waiting tasks, too, where a runqueue has one
    /// CPU; if not, they preempt as if they had just come.
    const RECONSIDERS: bool = false;

    /// Whether `running` should pick again because the parameters of `task`, which it runs, have
    /// just changed; on a machine of one CPU also asked if `task` waits there.
    fn reconsiders(&mut self, _at: &At<'_>, _task: TaskId, _running: &Running) -> bool {
        false
    }

    /// Whether `cpu`, which runs a task, should pick again, as a rule may have decided when
    /// another task left its runqueue or a task's parameters changed; asked after either.
    #[inline]
    fn wants_pick(&self, _cpu: CpuId) -> bool {
        false
    }

    /// How many tasks wait in `queue`. Delayed ones do not count.
    fn len(&self, queue: usize) -> usize;

    /// The load of `queue` for balancing, in weight (1024 for a task of nice 0): waiting tasks,
    /// and running ones where the rule counts them.
    fn load(&self, queue: usize) -> u64 {
        self.len(queue) as u64 * 1024
    }

    /// The weight of `task` in [`RunQueue::load`].
    fn weight(&self, _task: TaskId) -> u64 {
        1024
    }

    /// Whether [`RunQueue::load`] counts running tasks.
    const LOAD_COUNTS_RUNNING: bool = false;

    /// The waiting task to hand over when another runqueue wants one: the first that `fits`, in the
    /// order in which the rule prefers to lose them.
    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId>;

    /// Whether CPUs that are busy leave `task`, which waits here, alone, as it is to run soon.
    fn is_buddy(&self, _queue: usize, _task: TaskId) -> bool {
        false
    }

    /// Whether it does not matter to `task` what is in the cache.
    fn is_cold(&self, _task: TaskId) -> bool {
        false
    }

    /// Whether [`RunQueue::timer`] is ever due.
    const HAS_TIMERS: bool = false;

    /// When [`RunQueue::timer`] is due. Only asked if [`RunQueue::HAS_TIMERS`].
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Handles what is due.
    fn timer(&mut self, _now: Time) {}

    /// See [`Scheduler::check_param`]. Those of layout, placement and balancing do not change.
    fn check_param(&self, name: &str, _text: &str) -> Result<(), ParamError> {
        Err(ParamError::Fixed { name: name.into(), changeable: &[] })
    }

    /// See [`Scheduler::set_param`]. Tasks stay in their runqueues, and as ready as they are.
    fn set_param(&mut self, _name: &str, _text: &str) {}

    /// See [`Scheduler::probe`].
    fn probe(&self, _task: TaskId, _sink: &mut dyn FnMut(&'static str, i64)) {}

    /// As [`RunQueue::probe`], with what depends on the runqueue in which the task is or was last.
    fn probe_in(&self, _queue: usize, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        self.probe(task, sink);
    }

    /// See [`Scheduler::learned`].
    fn learned(&self, _sink: &mut dyn FnMut(&'static str, &str)) {}

    /// See [`Scheduler::canon`].
    fn canon(&self, to: &mut Canon) {
        to.unknown();
    }
}

/// When the timer of `rule` is due.
#[inline]
pub(crate) fn due<Q: RunQueue>(rule: &Q) -> Option<Time> {
    if Q::HAS_TIMERS { rule.next_timer() } else { None }
}

/// Makes the rule `Q` a [`Scheduler`] for all CPUs of a machine.
#[derive(Debug)]
pub struct Smp<Q: ?Sized> {
    params: SmpParams,
    machine: Machine,
    /// Per CPU.
    homes: Vec<Home>,
    /// What each CPU is doing, CPUs of one runqueue next to each other.
    cpus: Vec<Running>,
    /// Per runqueue.
    spans: Vec<Slots>,
    /// CPUs that run nothing and will not pick unless kicked.
    idle: CpuMask,
    online: CpuMask,
    /// CPUs that run nothing but will pick, and on account of which tasks; see [`kick`].
    promises: Promises,
    /// Runqueues with waiting tasks, by number; kept only when there are several.
    waiting: CpuMask,
    tasks: PerTask<Slot>,
    /// Attached tasks that may not run everywhere.
    restricted: u32,
    /// For round-robin placement.
    next_queue: usize,
    neighbours: Neighbours,
    kept: Kept,
    // What is of use in some layouts only is kept apart, as kernels that build a policy have stacks
    // of a few KiB.
    balancer: Box<balance::Balancer>,
    /// Kept where each CPU has a runqueue of its own, unless CPUs pull as in Linux.
    loads: Box<loads::Loads>,
    /// Kept where that is so, too, and tasks are placed, pulled or balanced as in Linux.
    fair: Box<fair::Fair>,
    /// The last field, so that it can be one of any kind.
    rule: Q,
}

/// What is kept apart, looked up where every call passes by.
#[derive(Clone, Copy, Debug)]
struct Kept {
    loads: bool,
    fair: bool,
    /// Tasks are placed, and CPUs pull, as in Linux.
    places: bool,
    pulls: bool,
}

/// Where a CPU is found.
#[derive(Clone, Copy, Debug, Default)]
struct Home {
    /// The runqueue it serves.
    queue: u16,
    /// Its place in [`Smp::cpus`].
    slot: u16,
}

/// The places in [`Smp::cpus`] of the CPUs of a runqueue.
#[derive(Clone, Copy, Debug)]
struct Slots {
    first: u16,
    end: u16,
}

impl Slots {
    #[inline(always)]
    fn slots(self) -> core::ops::Range<usize> {
        usize::from(self.first)..usize::from(self.end)
    }
}

/// Which CPU serves which runqueue: [`Smp::homes`], [`Smp::cpus`] and [`Smp::spans`].
struct Assigned {
    homes: Vec<Home>,
    cpus: Vec<Running>,
    spans: Vec<Slots>,
}

impl Assigned {
    fn new(machine: &Machine, layout: Layout) -> Assigned {
        let level = layout.level();
        let queue_of: Vec<u16> = machine
            .cpu_ids()
            .map(|cpu| level.map_or(cpu.0, |l| machine.cpu(cpu).group(l)))
            .collect();
        let queues = queue_of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        let mut by_queue: Vec<CpuId> = machine.cpu_ids().collect();
        by_queue.sort_unstable_by_key(|cpu| (queue_of[cpu.index()], cpu.0));
        let mut homes = alloc::vec![Home::default(); machine.cpus()];
        for (slot, cpu) in by_queue.iter().enumerate() {
            homes[cpu.index()] = Home { queue: queue_of[cpu.index()], slot: slot as u16 };
        }
        let first = |queue: usize| {
            by_queue.partition_point(|c| usize::from(queue_of[c.index()]) < queue) as u16
        };
        let slots = |queue| Slots { first: first(queue), end: first(queue + 1) };
        let idle = |&cpu: &CpuId| Running { task: NOBODY, cpu, told: false, since: Time::ZERO };
        Assigned {
            cpus: by_queue.iter().map(idle).collect(),
            spans: (0..queues).map(slots).collect(),
            homes,
        }
    }
}

/// What is kept of each task, whatever the rule.
#[derive(Clone, Debug)]
struct Slot {
    affinity: CpuSet,
    /// Until when it is cache-hot: [`SmpParams::cache_hot`] after it last stopped running.
    hot_until: Time,
    /// The runqueue it is in, or was last in.
    queue: u16,
    /// The CPU it last ran on.
    cpu: u16,
    state: State,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            affinity: CpuSet::All,
            hot_until: Time::ZERO,
            queue: 0,
            cpu: 0,
            state: State::Blocked,
        }
    }
}

/// A task's state apart from the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Blocked,
    /// Blocked for the host, but the rule keeps it queued.
    Delayed,
    Ready,
    Running,
}

impl State {
    pub(crate) fn whereabouts(self) -> Whereabouts {
        match self {
            State::Blocked => Whereabouts::Away,
            State::Ready | State::Delayed => Whereabouts::Queued,
            State::Running => Whereabouts::Running,
        }
    }
}

/// `At` borrows only what a rule may see, so that the rule itself can be borrowed as well.
macro_rules! at {
    ($self:ident, $now:expr, $queue:expr) => {{
        let queue = usize::from($queue);
        At { now: $now, queue, running: &$self.cpus[$self.spans[queue].slots()] }
    }};
}
use at;

impl<Q: RunQueue> Smp<Q> {
    /// The scheduler of `machine` with the parameters of the rule and the layout.
    ///
    /// Errors: a parameter is unusable.
    pub fn new(
        machine: &Machine,
        params: &Q::Params,
        smp: &SmpParams,
    ) -> Result<Smp<Q>, ParamError> {
        Smp::boxed(machine, params, smp).map(|smp| *smp)
    }

    /// The same in memory of its own: it has a KiB or two, of which a kernel's stack has few.
    ///
    /// Errors: as [`Smp::new`].
    #[inline(never)]
    pub fn boxed(
        machine: &Machine,
        params: &Q::Params,
        smp: &SmpParams,
    ) -> Result<Box<Smp<Q>>, ParamError> {
        let Assigned { homes, cpus, spans } = Assigned::new(machine, smp.layout);
        let queues = spans.len();
        let rule = Q::build(machine, queues, params)?;
        let tick = rule.tick_period().or(machine.tick());
        let fair = fair::Fair::new(machine, smp, tick, rule.balancing());
        let has_loads = smp.layout == Layout::PerCpu && queues > 1 && !fair.pulls;
        let kept =
            Kept { loads: has_loads, fair: fair.is_on, places: fair.places, pulls: fair.pulls };
        Ok(Box::new(Smp {
            kept,
            fair,
            params: SmpParams { steal: smp.steal(), ..smp.clone() },
            machine: machine.clone(),
            spans,
            cpus,
            homes,
            idle: CpuMask::first(machine.cpus()),
            online: CpuMask::first(machine.cpus()),
            promises: Promises::new(machine.cpus()),
            waiting: CpuMask::EMPTY,
            tasks: PerTask::new(),
            restricted: 0,
            next_queue: 0,
            neighbours: Neighbours::new(machine),
            balancer: balance::Balancer::new(machine, smp, queues),
            loads: loads::Loads::new(machine, has_loads),
            rule,
        }))
    }

    /// The rule, for tests and probes.
    pub fn rule(&self) -> &Q {
        &self.rule
    }
}

impl<R: ?Sized> Smp<R> {
    /// How many runqueues there are.
    #[inline]
    pub fn queues(&self) -> usize {
        self.spans.len()
    }

    /// The runqueue of `cpu` may have changed.
    #[inline]
    fn note(&mut self, cpu: CpuId) {
        if self.kept.loads {
            self.loads.note(cpu);
        }
    }

    #[inline]
    fn slot(&self, cpu: CpuId) -> usize {
        usize::from(self.homes[cpu.index()].slot)
    }

    /// The runqueue that `cpu` serves.
    #[inline]
    fn queue_of(&self, cpu: CpuId) -> usize {
        usize::from(self.homes[cpu.index()].queue)
    }

    /// The CPUs that serve `queue`.
    #[inline]
    fn members(&self, queue: usize) -> &[Running] {
        &self.cpus[self.spans[queue].slots()]
    }

    /// Whether `task` may run on some usable CPU of `queue`.
    fn may_enter(&self, task: TaskId, queue: usize) -> bool {
        let affinity = &self.tasks[task].affinity;
        self.online_members(queue).any(|cpu| affinity.contains(cpu))
    }

    /// The usable CPUs that serve `queue`.
    fn online_members(&self, queue: usize) -> impl Iterator<Item = CpuId> + '_ {
        let cpus = self.members(queue).iter().map(|member| member.cpu);
        cpus.filter(|&cpu| self.online.contains(cpu))
    }
}

impl<R: Erase + ?Sized> Smp<R> {
    /// For code that is compiled once, whatever the rule.
    #[inline(always)]
    fn erased(&mut self) -> &mut Smp<dyn Rule> {
        R::erase(self)
    }

    /// Records what a call touched for the host's cost model, and which queues wait for stealing.
    #[inline(always)]
    fn touched(&mut self, cx: &mut Cx<'_>, queue: usize) {
        self.answer_opened(cx);
        self.note_dropped(cx);
        let queued = self.rule.len(queue);
        cx.work.queue = queue as u16;
        cx.work.queued = queued as u32;
        if self.queues() > 1 {
            self.note(CpuId(queue as u16));
            if queued > 0 {
                if self.waiting.is_empty() {
                    self.balancer.resume(cx.now);
                    self.fair.resume(cx.now);
                }
                self.waiting.insert(CpuId(queue as u16));
            } else {
                self.waiting.remove(CpuId(queue as u16));
            }
        }
    }

    /// Sleeping tasks that the rule has dropped from their runqueues are blocked, no more.
    #[inline(always)]
    fn note_dropped(&mut self, cx: &Cx<'_>) {
        while self.rule.delays()
            && self.queues() > 1
            && let Some(task) = self.rule.take_dropped()
        {
            self.tasks[task].state = State::Blocked;
            if self.kept.fair {
                self.fair.drops(CpuId(self.tasks[task].queue), task, cx.now);
            }
        }
    }

    /// Kicks the idle CPUs if waiting tasks became eligible on more CPUs.
    #[inline(always)]
    fn answer_opened(&mut self, cx: &mut Cx<'_>) {
        if self.rule.has_roles() && self.rule.has_opened() {
            self.kick_all_idle(cx);
        }
    }

    /// Puts `task` into `queue` and kicks whoever should run it.
    #[inline]
    fn enter(&mut self, cx: &mut Cx<'_>, task: TaskId, queue: usize, near: CpuId, entry: &Entry) {
        let slot = &mut self.tasks[task];
        slot.queue = queue as u16;
        if entry.why != Why::Moved || slot.state != State::Delayed {
            slot.state = State::Ready;
        }
        self.note_entering(cx, queue, task);
        let at = at!(self, cx.now, queue);
        self.rule.push(&at, task, entry);
        self.touched(cx, queue);
        let kicked = self.kick_idle(cx, task, queue, near);
        if self.rule.may_preempt() && !kicked {
            self.kick_victim(cx, task, queue);
        }
    }
}

impl<Q: RunQueue> Smp<Q> {
    /// The next task of `queue` for `cpu`.
    #[inline]
    fn pop(&mut self, cx: &mut Cx<'_>, queue: usize, cpu: CpuId) -> Option<TaskId> {
        let at = at!(self, cx.now, queue);
        let task = if self.restricted == 0 {
            self.rule.pop(&at, cpu, |_| true)
        } else {
            let tasks = &self.tasks;
            self.rule.pop(&at, cpu, |task| tasks[task].affinity.contains(cpu))
        };
        self.touched(cx, queue);
        task
    }

    /// The next task of `queue` for `cpu`; if there is none, one that it pulls from elsewhere. In
    /// Linux's way that may be a delayed one, which is only dropped: then it pulls again.
    #[inline]
    fn pop_or_pull(&mut self, cx: &mut Cx<'_>, queue: usize, cpu: CpuId) -> Option<TaskId> {
        let mut has_pulled = false;
        loop {
            let task = self.pop(cx, queue, cpu);
            let gives_up = has_pulled && !self.kept.pulls;
            if task.is_some() || gives_up || !self.pull(cx, queue, cpu) {
                return task;
            }
            has_pulled = true;
        }
    }
}

impl Entry {
    /// The entry of a task that becomes ready.
    #[inline]
    pub(crate) fn of(arrival: &Arrival, by: Option<TaskId>) -> Entry {
        let why = match arrival.why {
            Enqueue::New => Why::New,
            Enqueue::Wakeup { .. } => Why::Woken,
            Enqueue::Resumed { .. } => Why::Resumed,
        };
        Entry { why, by, burst: arrival.burst, deadline: arrival.deadline }
    }

    /// An entry of which only the reason is known.
    #[inline]
    pub fn because(why: Why) -> Entry {
        Entry { why, by: None, burst: None, deadline: None }
    }
}

impl<Q: RunQueue> Scheduler for Smp<Q> {
    fn attach(&mut self, _: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.tasks.grow(task, |_| Slot::default());
        self.promises.attach(task);
        if self.kept.fair {
            self.fair.attach(task);
        }
        self.restricted += u32::from(!params.affinity.is_all());
        self.tasks[task] = Slot { affinity: params.affinity.clone(), ..Slot::default() };
        self.rule.attach(task, params);
    }

    fn detach(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.erased().forget(cx, task);
    }

    fn update(&mut self, cx: &mut Cx<'_>, task: TaskId, params: &TaskParams) {
        self.erased().change(cx, task, params);
    }

    fn check_param(&self, name: &str, text: &str) -> Result<(), ParamError> {
        self.rule.check_param(name, text)
    }

    fn set_param(&mut self, _: &mut Cx<'_>, name: &str, text: &str) {
        self.rule.set_param(name, text);
    }

    fn set_online(&mut self, cx: &mut Cx<'_>, cpu: CpuId, online: bool) {
        self.erased().set_usable(cx, cpu, online);
    }

    #[inline]
    fn enqueue(&mut self, cx: &mut Cx<'_>, task: TaskId, arrival: Arrival) {
        let by = arrival.from.and_then(|cpu| self.cpus[self.slot(cpu)].task());
        let entry = Entry::of(&arrival, by);
        let slot = &self.tasks[task];
        let near = match arrival.why {
            Enqueue::New => arrival.from.unwrap_or(CpuId(0)),
            _ if self.kept.places => CpuId(slot.queue),
            Enqueue::Wakeup { prev, .. } | Enqueue::Resumed { prev } => prev,
        };
        let home = usize::from(slot.queue);
        let delayed = slot.state == State::Delayed;
        let stays = delayed && self.may_enter(task, home);
        if delayed && !stays {
            self.rule.remove(&at!(self, cx.now, home), task, Removal::Dequeue);
            self.note_dropped(cx);
            self.note(CpuId(home as u16));
        }
        let queue = if stays || self.queues() == 1 {
            home
        } else if self.kept.places {
            self.erased().select(cx.now, task, &arrival, near).index()
        } else {
            self.erased().choose_queue(task, Some(&arrival), near)
        };
        if self.kept.fair && !stays {
            if let (Enqueue::New, Some(by)) = (arrival.why, by) {
                self.fair.inherits(task, by);
            }
            self.erased().note_arrival(cx, task, arrival.why, queue);
        }
        self.enter(cx, task, queue, near, &entry);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let queue = usize::from(self.tasks[task].queue);
        self.note_leaving(cx, queue, task, fair::Leaves::Out);
        self.rule.remove(&at!(self, cx.now, queue), task, Removal::Dequeue);
        self.tasks[task].state = State::Blocked;
        self.touched(cx, queue);
        self.answer_wish(cx, queue);
    }

    #[inline]
    fn pick_next(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<Pick> {
        let queue = self.queue_of(cpu);
        let slot = self.slot(cpu);
        self.cpus[slot].told = false;
        let online = self.online.contains(cpu);
        let task = if online { self.pop_or_pull(cx, queue, cpu) } else { None };
        self.hand_on(cx, cpu, task);
        let Some(task) = task else {
            if online {
                self.idle.insert(cpu);
                self.hurry(cx, cpu);
                if self.kept.fair {
                    self.erased().goes_idle(cx, cpu);
                }
            }
            return None;
        };
        self.idle.remove(cpu);
        if self.kept.fair {
            self.fair.starts(cpu, task, cx.now);
        }
        self.cpus[slot] = Running { task: task.0, cpu, told: false, since: cx.now };
        let state = &mut self.tasks[task];
        state.state = State::Running;
        state.cpu = cpu.0;
        let slice = self.rule.slice(&at!(self, cx.now, queue), task);
        Some(Pick { task, slice })
    }

    #[inline]
    fn put_prev(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span, why: Off) {
        let queue = self.queue_of(cpu);
        let slot = self.slot(cpu);
        let online = self.online.contains(cpu);
        self.rule.settle(&at!(self, cx.now, queue), task, ran, why);
        self.cpus[slot].task = NOBODY;
        self.tasks[task].hot_until = cx.now + self.params.cache_hot;
        if !why.runnable() {
            self.note(CpuId(queue as u16));
            let delayed = self.rule.leave(&at!(self, cx.now, queue), task, why);
            let how = match why {
                _ if delayed => fair::Leaves::Delayed,
                Off::Exited => fair::Leaves::Ended,
                _ => fair::Leaves::Asleep,
            };
            self.note_leaving(cx, queue, task, how);
            let state = if delayed { State::Delayed } else { State::Blocked };
            self.tasks[task].state = state;
            if delayed && self.kept.fair && !self.may_enter(task, queue) {
                self.erased().rehome(cx, task, cpu);
            }
        } else if self.restricted == 0 && online || self.may_enter(task, queue) {
            self.tasks[task].state = State::Ready;
            if self.kept.fair {
                self.fair.stops(cpu, task, cx.now);
            }
            self.rule.push(&at!(self, cx.now, queue), task, &Entry::because(Why::Put(why)));
            self.touched(cx, queue);
            self.keep_or_kick(cx, task, queue, cpu, why);
        } else {
            self.erased().expel(cx, task, queue, cpu, why);
        }
        if self.kept.fair {
            self.erased().push_if_wanted(cx, cpu);
        }
        if online && !self.cpus[slot].told {
            // The host is about to pick for this CPU, so it is idle only if that finds nothing.
            let waiting = self.rule.len(queue) > 0 || !self.waiting.is_empty();
            if waiting {
                self.cpus[slot].told = true;
            } else {
                self.idle.insert(cpu);
            }
        }
    }

    #[inline]
    fn tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId, ran: Span) {
        let queue = self.queue_of(cpu);
        let slot = self.slot(cpu);
        self.rule.charge(&at!(self, cx.now, queue), task, ran);
        self.cpus[slot].since = cx.now;
        if self.rule.tick(&at!(self, cx.now, queue), task) && !self.cpus[slot].told {
            self.tell(cx, cpu);
        }
        if self.kept.fair {
            self.erased().ticks(cx, cpu, task);
        }
    }

    fn tick_period(&self) -> Option<Span> {
        self.rule.tick_period()
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        let balance = match self.waiting.is_empty() {
            true => None,
            false => self.next_balance().or_else(|| self.next_own_tick()),
        };
        match due(&self.rule) {
            None => balance,
            Some(rule) => Some(balance.map_or(rule, |balance| rule.min(balance))),
        }
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if due(&self.rule).is_some_and(|due| due <= cx.now) {
            self.rule.timer(cx.now);
            self.loads.note_all();
            self.answer_opened(cx);
        }
        self.erased().balance(cx);
        self.erased().own_tick(cx);
    }

    fn probe(&self, task: TaskId, sink: &mut dyn FnMut(&'static str, i64)) {
        sink("runqueue", i64::from(self.tasks[task].queue));
        if self.kept.fair {
            self.fair.probe(task, self.tasks[task].queue, sink);
        }
        self.rule.probe_in(usize::from(self.tasks[task].queue), task, sink);
    }

    fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if self.kept.fair {
            self.fair.tally(sink);
        }
    }

    fn learned(&self, sink: &mut dyn FnMut(&'static str, &str)) {
        self.rule.learned(sink);
    }

    fn canon(&self, to: &mut Canon) {
        self.rule.canon(to);
        canon_fields!(
            self,
            to,
            Smp {
                rule: fixed,
                params: fixed,
                machine: fixed,
                homes: fixed,
                cpus,
                spans: fixed,
                idle,
                online,
                promises,
                waiting: fixed,
                tasks,
                restricted: fixed,
                next_queue,
                neighbours: fixed,
                kept: fixed,
                balancer,
                loads: fixed,
                fair,
            }
        );
    }
}

canonical!(Slot { affinity, hot_until: due, queue, cpu, state });
canonical!(State: u64);

impl Canonical for Running {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Running { task, cpu: _, told, since } = self;
        to.word((*task).into());
        to.word((*told).into());
        if *task != NOBODY {
            to.time(*since);
        }
    }
}
