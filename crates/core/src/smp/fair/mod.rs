//! Linux's fair class on many CPUs: where tasks are placed and how they are balanced, each CPU with
//! a runqueue of its own (Linux `kernel/sched/fair.c`, `topology.c` and `pelt.c`, 6.12.107).
//!
//! - [`select`](self): a new task goes to the idlest group, domain by domain; one that wakes up to
//!   an idle CPU of the cache of its waker or of the CPU where it last ran.
//! - A CPU that runs out of work pulls (`newidle`), as long as that is expected to take less time
//!   than it would be idle, and if there is a CPU with two tasks at all.
//! - At ticks each CPU balances its domains, from the narrowest, at intervals that grow while there
//!   is nothing to do. Idle CPUs have no ticks (`NO_HZ`): a busy one has the first of them balance
//!   for all.
//!
//! What is decided on are averages of [load](pelt), counts of tasks and idle CPUs.
//!
//! Deviations:
//! - A jiffy is the tick; where the host has none, 4 ms, and ticks are timers. A CPU is tickless
//!   from the moment that it finds nothing to run. What one CPU has another do happens at once.
//! - Balancing takes no time of its own; how long a CPU expects it to take is
//!   [`newidle_cost`](super::SmpParams) for each CPU that is looked at.
//! - Left out: control groups, CPUs of unequal capacity, other classes, NUMA balancing (pages),
//!   core scheduling, clusters within a cache, clamping of utilisation.
//!
//! Cost: O(1) for each change; sums of domains are brought up to date when they are needed, so that
//! a pass looks at groups, and at CPUs of one group only.

mod balance;
mod domains;
mod idle;
mod pelt;
mod select;
mod sums;

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::domains::{Domains, Group};
use self::pelt::{Average, Removed, Since};
use self::sums::Sums;
use super::rule::Rule;
use super::{Balance, Balancing, Layout, NOBODY, Place, Smp, SmpParams, Steal};
use crate::canon::{Canon, Canonical};
use crate::ids::{CpuId, CpuMask, TaskId};
use crate::machine::{Level, Machine};
use crate::per_task::PerTask;
use crate::queue::{Links, List};
use crate::random::SplitMix64;
use crate::time::{Span, Time};
use crate::{Cx, Enqueue, canon_fields, canonical};

/// The tick where the host has none: HZ = 250.
const USUAL_JIFFY: Span = Span::from_ms(4);

/// What is kept of all CPUs and tasks.
#[derive(Debug)]
pub(super) struct Fair {
    /// Whether anything is kept.
    pub(super) is_on: bool,
    pub(super) places: bool,
    pub(super) pulls: bool,
    pub(super) balances: bool,
    jiffy: Span,
    /// How many of them had ended at the last time that was asked about, and when the last ended.
    jiffies: (u64, Time),
    /// How many of them a second has.
    hz: u64,
    /// When the next tick is, where the host has none.
    next_tick: Option<Time>,
    domains: Domains,
    /// Per CPU.
    queues: Vec<Queue>,
    /// Those that are idle; kept up with [`Queue::is_idle`].
    idle: CpuMask,
    entities: PerTask<Entity>,
    links: Links,
    /// Per domain; of use where it is the widest that shares a cache.
    caches: Vec<Cache>,
    sums: Sums,
    /// Per domain: as a group of its parent, it is out of balance because of tasks bound to CPUs.
    out_of_balance: Vec<bool>,
    /// Some CPU has two tasks, or had when that was last looked at.
    is_overloaded: bool,
    /// What belongs to the rule.
    balancing: Balancing,
    /// Whether newidle balancing is left out by chance, if that is not up to the rule.
    ni_random: Option<bool>,
    chances: SplitMix64,
    /// How many CPUs have two tasks that are ready.
    crowded: u32,
    nohz: Nohz,
    /// Tasks on their way, within a call.
    detached: Vec<TaskId>,
    /// How often a CPU has looked at a domain to balance it, and how many tasks it has pulled.
    looks: u64,
    pulled: u64,
}

/// A CPU.
#[derive(Debug)]
struct Queue {
    average: Average,
    removed: Removed,
    /// The task that has ended here, and its weight, until the CPU has gone on to another one.
    dead: Option<(Average, u64)>,
    /// Expected utilisation of the tasks that are ready.
    util_est: u64,
    /// Of the tasks that are ready.
    weight: u64,
    /// How many there are, the running one included, and those that are kept queued though they
    /// sleep.
    ready: u64,
    /// How many of them sleep.
    delayed: u64,
    running: Option<TaskId>,
    /// They, the one that was picked or came longest ago first.
    tasks: List,
    /// The running task is to be pushed to this CPU as soon as it is off this one.
    push_to: Option<CpuId>,
    /// In jiffies.
    next_balance: u64,
    /// Since when it has been idle, until a task wakes up here; 0: a task has.
    idle_since: u64,
    /// How long it is idle on average, in ns.
    mean_idle: u64,
    /// What balancing all domains when it runs out of work has taken at most.
    most_newidle: u64,
    /// Per domain around it.
    turns: Vec<Turn>,
    /// It has no ticks, as far as others know.
    is_tickless: bool,
    /// It went idle and may have averages that have to decay.
    has_blocked: bool,
    /// In jiffies.
    blocked_updated: u64,
    /// It runs nothing, and has not picked since a task came.
    runs_idle: bool,
    is_online: bool,
    /// It is to bring the averages of idle CPUs up to date before it goes idle.
    updates_idle: bool,
    /// Of interrupts that come while it is idle.
    waker: Waker,
    /// To which CPU a task went last whose affinity was changed here.
    distributed: CpuId,
}

/// How one CPU balances one domain.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// In jiffies.
    last: u64,
    /// In ms.
    interval: u64,
    /// How many times in a row nothing could be moved.
    failures: u32,
    /// What balancing it when the CPU ran out of work has taken at most, in ns; less by 1 % a
    /// second.
    newidle: u64,
    /// When that was raised or lowered last, in jiffies.
    newidle_set: u64,
    success: Success,
}

/// How often it helped that a CPU that ran out of work balanced a domain.
#[derive(Clone, Copy, Debug)]
struct Success {
    /// How often the CPU has run out of work, halved at times.
    tries: u32,
    /// How often it would have helped always to balance.
    hits: u32,
    /// Of 1024 times, how often it balances.
    rate: u32,
    /// Since when this is counted, in ns.
    since: u64,
}

/// The CPUs that share a cache.
#[derive(Clone, Copy, Debug)]
struct Cache {
    /// Some core may be idle.
    has_idle_core: bool,
    /// How many CPUs are looked at for an idle one.
    scan: u64,
    /// CPUs that have ticks.
    busy: usize,
}

/// What is kept of CPUs without ticks.
#[derive(Debug)]
struct Nohz {
    cpus: CpuMask,
    /// In jiffies.
    next_balance: u64,
    /// Some of them has averages that have to decay,
    has_blocked: bool,
    /// which is not due before this jiffy.
    next_blocked: u64,
    /// A CPU came since `next_balance` was computed.
    has_news: bool,
}

/// A task.
#[derive(Clone, Debug)]
struct Entity {
    average: Average,
    weight: u64,
    /// Its utilisation when it last went to sleep, smoothed where that was less than before.
    util_est: u64,
    /// Its utilisation has not been computed anew since it went to sleep.
    is_unchanged: bool,
    /// It is in a runqueue.
    is_ready: bool,
    /// It sleeps there.
    is_delayed: bool,
    waker: Waker,
    /// The CPU where it was before the last one.
    recent: CpuId,
    /// The CPU where it goes if it may not stay where it is.
    bound_to: CpuId,
}

/// Whom a task wakes.
#[derive(Clone, Copy, Debug)]
struct Waker {
    last: u32,
    /// How often that was another one than before, halved each second.
    flips: u32,
    /// In jiffies.
    halved: u64,
}

/// How a task leaves a runqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// It sleeps.
    Asleep,
    /// It sleeps, but stays queued for the time being.
    Delayed,
    /// It stayed queued while it slept, and does not any longer.
    Dropped,
    /// It has ended.
    Ended,
    /// The host takes it out for a moment.
    Out,
    /// It goes to another runqueue.
    Moves,
}

/// Costs of balancing are capped at this, in nanoseconds: 18 minutes, longer than CPUs idle between
/// two tasks, and far from overflow when summed up.
const MOST_COST: u64 = 1 << 40;

/// What moving a task is taken to cost, in nanoseconds.
fn migration_cost(params: &SmpParams) -> u64 {
    params.cache_hot.0.min(MOST_COST)
}

impl Fair {
    // In a frame of its own.
    #[inline(never)]
    pub(super) fn new(
        machine: &Machine,
        params: &SmpParams,
        tick: Option<Span>,
        balancing: Balancing,
    ) -> Box<Fair> {
        let is_split = params.layout == Layout::PerCpu && machine.cpus() > 1;
        let places = is_split && params.place == Place::Linux;
        let pulls = is_split && params.steal == Steal::Linux;
        let balances = is_split && params.balance == Balance::Linux;
        let is_on = places || pulls || balances;
        let domains = if is_on { Domains::new(machine) } else { Domains::default() };
        let cost = migration_cost(params);
        let tick = tick.filter(|tick| *tick > Span::ZERO);
        let jiffy = tick.unwrap_or(USUAL_JIFFY);
        let queue = |cpu: CpuId| Queue {
            average: Average::EMPTY,
            removed: Removed::default(),
            dead: None,
            util_est: 0,
            weight: 0,
            ready: 0,
            delayed: 0,
            running: None,
            tasks: List::default(),
            push_to: None,
            next_balance: 0,
            idle_since: 1,
            mean_idle: 2 * cost,
            most_newidle: cost,
            turns: domains.around[cpu.index()].iter().map(|&domain| domains.turn(domain)).collect(),
            is_tickless: true,
            has_blocked: false,
            blocked_updated: 0,
            updates_idle: false,
            runs_idle: true,
            is_online: true,
            waker: Waker::new(),
            distributed: CpuId(0),
        };
        let cache = |domain: &domains::Domain| Cache {
            has_idle_core: true,
            scan: domain.cpus.len() as u64,
            busy: 0,
        };
        Box::new(Fair {
            is_on,
            places,
            pulls,
            balances,
            jiffy,
            jiffies: (0, Time::ZERO),
            hz: (1_000_000_000 / jiffy.0).max(1),
            next_tick: (balances && tick.is_none()).then_some(Time::ZERO + USUAL_JIFFY),
            queues: machine.cpu_ids().filter(|_| is_on).map(queue).collect(),
            idle: CpuMask::first(machine.cpus()),
            entities: PerTask::new(),
            links: Links::default(),
            caches: domains.all.iter().map(cache).collect(),
            sums: Sums::new(machine, &domains),
            out_of_balance: alloc::vec![false; domains.all.len()],
            is_overloaded: false,
            balancing,
            ni_random: params.ni_random,
            chances: SplitMix64(params.ni_seed),
            crowded: 0,
            detached: Vec::with_capacity(balance::MOST_LOOKED_AT as usize),
            looks: 0,
            pulled: 0,
            nohz: Nohz {
                cpus: CpuMask::first(machine.cpus()),
                next_balance: 0,
                has_blocked: false,
                next_blocked: 0,
                has_news: false,
            },
            domains,
        })
    }

    /// See [`Scheduler::tally`](crate::Scheduler::tally).
    pub(super) fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("balance_looks", self.looks);
        sink("balance_moved", self.pulled);
    }

    /// See [`Scheduler::probe`](crate::Scheduler::probe).
    pub(super) fn probe(&self, task: TaskId, queue: u16, sink: &mut dyn FnMut(&'static str, i64)) {
        let entity = &self.entities[task];
        sink("load_avg", entity.average.load as i64);
        sink("util_avg", entity.average.util as i64);
        sink("util_est", entity.util_est as i64);
        let on = &self.queues[usize::from(queue)];
        sink("q_load", on.average.load as i64);
        sink("q_util", on.average.util as i64);
        sink("q_runnable", on.average.runnable as i64);
        sink("q_est", on.util_est as i64);
        sink("q_avg_idle", on.mean_idle as i64);
        sink("q_next", on.next_balance as i64);
        sink("q_fails", on.turns.iter().map(|turn| i64::from(turn.failures)).sum());
        sink("q_interval", on.turns.iter().map(|turn| turn.interval as i64).sum());
        sink("nohz_next", self.nohz.next_balance as i64);
        sink("nohz_blocked", self.nohz.next_blocked as i64);
        sink("over", i64::from(self.is_overloaded));
    }

    /// `cpu` comes into use or goes out of it.
    pub(super) fn set_online(&mut self, cpu: CpuId, online: bool) {
        let queue = &mut self.queues[cpu.index()];
        let was_busy = !core::mem::replace(&mut queue.is_tickless, false);
        self.nohz.cpus.remove(cpu);
        let cache = self.domains.cache[cpu.index()];
        if let Some(cache) = cache.map(|domain| &mut self.caches[usize::from(domain)]) {
            // While it is out of use it counts as neither busy nor idle.
            cache.busy += usize::from(online);
            cache.busy -= usize::from(!online && was_busy);
        }
        let queue = &mut self.queues[cpu.index()];
        queue.is_online = online;
        match queue.is_idle() {
            true => self.idle.insert(cpu),
            false => self.idle.remove(cpu),
        }
        self.sums.note(cpu);
    }

    /// A task waits again, after none did: a tick of our own that fell due meanwhile is left out.
    #[inline]
    pub(super) fn resume(&mut self, now: Time) {
        if let Some(next) = self.next_tick
            && next <= now
        {
            self.next_tick = Some(Time((self.jiffies(now) + 1) * self.jiffy.0));
        }
    }

    /// The time in jiffies. Divides only when another one has begun.
    #[inline]
    fn jiffies(&mut self, now: Time) -> u64 {
        let (_, began) = self.jiffies;
        if now.0.wrapping_sub(began.0) >= self.jiffy.0 {
            let ended = now.0 / self.jiffy.0;
            self.jiffies = (ended, Time(ended * self.jiffy.0));
        }
        self.jiffies.0
    }

    /// Makes room for `task`.
    pub(super) fn attach(&mut self, task: TaskId) {
        self.entities.set(task, Entity::new());
        self.links.attach(task);
    }

    /// Whether averages of `group` mislead, because tasks are bound to CPUs.
    fn is_out_of_balance(&self, group: &Group) -> bool {
        group.domain.is_some_and(|domain| self.out_of_balance[usize::from(domain)])
    }

    /// Brings the averages of the runqueue of `cpu` up to date, before anything else about it
    /// changes.
    fn advance(&mut self, cpu: CpuId, now: Time) {
        self.queues[cpu.index()].advance(now);
        self.sums.note(cpu);
    }

    /// The same with those of `task`, which is ready there.
    #[inline]
    fn advance_with(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.queues[cpu.index()].advance_with(task, &mut self.entities[task], now, true);
        self.sums.note(cpu);
    }

    /// A new task, of which nothing is known, is about to enter the runqueue of `cpu`: it is taken
    /// to use as much as the tasks there do for their load, and at most half of what is free.
    fn guess(&mut self, task: TaskId, cpu: CpuId) {
        let there = &self.queues[cpu.index()].average;
        let entity = &mut self.entities[task];
        entity.average = Average::new(entity.weight);
        let free = 1024_u64.saturating_sub(there.util) / 2;
        let util = match there.util {
            0 => free,
            util => (util * entity.weight / (there.load + 1)).min(free),
        };
        (entity.average.util, entity.average.runnable) = (util, util);
    }

    /// `task` becomes ready in the runqueue of `cpu`.
    pub(super) fn enters(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        if entity.is_delayed && entity.is_ready {
            return self.revives(cpu, task, now);
        }
        if !entity.is_delayed {
            queue.util_est += entity.util_est;
        }
        queue.advance_with(task, entity, now, false);
        queue.delayed += u64::from(entity.is_delayed);
        if !entity.average.is_attached() {
            entity.average.attach(&mut queue.average, entity.weight);
        }
        entity.is_ready = true;
        queue.weight += entity.weight;
        queue.ready += 1;
        self.crowded += u32::from(queue.ready == 2);
        self.is_overloaded |= queue.ready == 2;
        self.links.push_back(&mut queue.tasks, task);
        self.idle.remove(cpu);
        self.sums.note(cpu);
    }

    /// `task`, which slept in the runqueue of `cpu`, has woken up.
    fn revives(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.advance_with(cpu, task, now);
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        queue.util_est += entity.util_est;
        queue.delayed -= 1;
        entity.is_delayed = false;
    }

    /// `task`, which slept in the runqueue of `cpu`, is not queued any longer.
    pub(super) fn drops(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        if self.entities[task].is_delayed {
            self.leaves(cpu, task, now, Leaves::Dropped);
            self.entities[task].is_delayed = false;
        }
    }

    /// `task`, which was in the runqueue of `cpu`, leaves it.
    pub(super) fn leaves(&mut self, cpu: CpuId, task: TaskId, now: Time, how: Leaves) {
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        if !entity.is_delayed {
            queue.util_est = queue.util_est.saturating_sub(entity.util_est);
        }
        if matches!(how, Leaves::Asleep | Leaves::Delayed | Leaves::Ended) {
            entity.estimate();
        }
        queue.advance_with(task, entity, now, true);
        if how == Leaves::Delayed {
            entity.is_delayed = true;
            queue.delayed += 1;
            queue.running = None;
            return self.sums.note(cpu);
        }
        queue.delayed -= u64::from(entity.is_delayed);
        if how == Leaves::Moves {
            entity.average.detach(&mut queue.average, entity.weight);
            entity.average.leave();
        }
        entity.is_ready = false;
        queue.weight -= entity.weight;
        queue.ready -= 1;
        self.crowded -= u32::from(queue.ready == 1);
        if queue.running == Some(task) {
            queue.running = None;
        }
        self.links.remove(&mut queue.tasks, task);
        if queue.is_idle() {
            self.idle.insert(cpu);
        }
        if how == Leaves::Ended {
            queue.buries();
            queue.dead = Some((entity.average, entity.weight));
            entity.average.leave();
        }
        self.sums.note(cpu);
    }

    /// What `task`, which sleeps, has left behind on `cpu` is to be forgotten there.
    pub(super) fn removes(&mut self, cpu: CpuId, task: TaskId) {
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        if entity.average.is_attached() {
            entity.average = queue.forget(entity.average, entity.weight);
            entity.average.leave();
        }
    }

    /// `task`, which slept, goes from `cpu` to another one, where it wakes up.
    fn goes(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.removes(cpu, task);
        let is_idle = self.queues[cpu.index()].runs_idle;
        let entity = &mut self.entities[task];
        if is_idle && !entity.average.is_decayed() {
            entity.average.join(self.queues[cpu.index()].average.updated());
            entity.average.advance(now.0, Since::BLOCKED, entity.weight);
            entity.average.leave();
        }
    }

    /// `cpu` begins to run `task`.
    #[inline]
    pub(super) fn starts(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        queue.advance_with(task, entity, now, true);
        queue.running = Some(task);
        queue.runs_idle = false;
        queue.buries();
        self.links.move_back(&mut queue.tasks, task);
        self.sums.note(cpu);
    }

    /// `cpu` puts back `task`, which stays ready.
    #[inline]
    pub(super) fn stops(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        queue.advance_with(task, entity, now, true);
        queue.running = None;
        self.sums.note(cpu);
    }

    /// `cpu` has found nothing to run. Returns whether it ran something before.
    fn runs_idle(&mut self, cpu: CpuId) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let ran = !core::mem::replace(&mut queue.runs_idle, true);
        if queue.is_idle() {
            self.idle.insert(cpu);
        }
        ran
    }

    /// The weight of `task` becomes `weight`; it is, or was, on `cpu`.
    pub(super) fn reweighs(&mut self, cpu: CpuId, task: TaskId, weight: u64, now: Time) {
        let from = self.entities[task].weight;
        if from == weight {
            return;
        }
        let is_ready = self.entities[task].is_ready;
        self.requeues(cpu, task, now);
        let (entity, queue) = (&mut self.entities[task], &mut self.queues[cpu.index()]);
        let attached = entity.average.is_attached().then_some(&mut queue.average);
        entity.average.reweigh(attached, from, weight);
        entity.weight = weight;
        if is_ready {
            queue.weight = queue.weight - from + weight;
        }
        self.sums.note(cpu);
    }

    /// `parent` creates `task`, a copy of itself.
    pub(super) fn inherits(&mut self, task: TaskId, parent: TaskId) {
        self.entities[task].waker = self.entities[parent].waker;
    }

    /// `task` is taken out, if it is ready, and comes back at once.
    pub(super) fn requeues(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        if !self.entities[task].is_ready {
            return;
        }
        self.advance_with(cpu, task, now);
        let queue = &mut self.queues[cpu.index()];
        self.is_overloaded |= queue.ready == 2;
        self.links.move_back(&mut queue.tasks, task);
    }

    /// The load that `task` makes on `cpu`, where it counts.
    fn task_load(&self, cpu: CpuId, task: TaskId) -> u64 {
        let there = self.queues[cpu.index()].average.load;
        self.entities[task].average.load * there / (there + 1)
    }
}

impl Queue {
    /// Brings its averages up to date, before anything else about it changes.
    #[inline]
    fn advance(&mut self, now: Time) {
        if self.removed.tasks > 0 {
            let removed = core::mem::take(&mut self.removed);
            self.average.remove(&removed);
        }
        let Queue { weight, ready, delayed, running, .. } = *self;
        let runnable = ready - delayed;
        let since = Since { load: weight, runnable, running: running.is_some() };
        self.average.advance(now.0, since, 1);
    }

    /// The same with those of `task`, which was ready here or asleep.
    #[inline]
    fn advance_with(&mut self, task: TaskId, entity: &mut Entity, now: Time, is_ready: bool) {
        let running = self.running == Some(task);
        let runnable = u64::from(is_ready && !entity.is_delayed);
        let since = Since { load: u64::from(is_ready), runnable, running };
        let average = &mut entity.average;
        if average.is_attached() && average.advance(now.0, since, entity.weight) {
            entity.is_unchanged = false;
        }
        self.advance(now);
    }

    /// The CPU has gone on from the task that has ended here, if one has: its averages are to be
    /// forgotten (`finish_task_switch`).
    #[inline]
    fn buries(&mut self) {
        if let Some((average, weight)) = self.dead.take() {
            self.forget(average, weight);
        }
    }

    /// A task of this `weight` that has slept is to be forgotten. Returns its averages, as late as
    /// those of the runqueue.
    #[cold]
    fn forget(&mut self, mut average: Average, weight: u64) -> Average {
        average.advance(self.average.updated(), Since::BLOCKED, weight);
        self.removed.add(&average);
        average
    }

    /// Whether the CPU runs nothing and has nothing to run.
    #[inline]
    fn is_idle(&self) -> bool {
        self.is_online && self.runs_idle && self.ready == 0
    }
}

impl Waker {
    fn new() -> Waker {
        Waker { last: NOBODY, flips: 0, halved: 0 }
    }
}

impl Entity {
    fn new() -> Entity {
        Entity {
            average: Average::new(0),
            weight: 0,
            util_est: 0,
            is_unchanged: false,
            is_ready: false,
            is_delayed: false,
            waker: Waker::new(),
            recent: CpuId(0),
            bound_to: CpuId(0),
        }
    }

    /// The task went to sleep: what it will use next time is what it used until now, smoothed by a
    /// quarter where that is less (`UTIL_EST`).
    fn estimate(&mut self) {
        /// Differences that do not count: 1 %.
        const MARGIN: u64 = 1024 / 100;
        if self.is_unchanged {
            return;
        }
        let used = self.average.util;
        let is_cut_short = used + MARGIN < self.average.runnable;
        if self.util_est > used && self.util_est - used >= MARGIN && !is_cut_short {
            if used > 1024 {
                return;
            }
            self.util_est = (self.util_est * 4 - (self.util_est - used)) / 4;
        } else if self.util_est <= used {
            self.util_est = used;
        }
        self.is_unchanged = true;
    }
}

impl<R: ?Sized> Smp<R> {
    /// `task` enters the runqueue of a CPU.
    #[inline]
    pub(super) fn note_entering(&mut self, cx: &Cx<'_>, queue: usize, task: TaskId) {
        if self.fair.is_on {
            self.fair.enters(CpuId(queue as u16), task, cx.now);
        }
    }

    /// `task` leaves the runqueue of a CPU.
    #[inline]
    pub(super) fn note_leaving(&mut self, cx: &Cx<'_>, queue: usize, task: TaskId, how: Leaves) {
        if self.fair.is_on {
            self.fair.leaves(CpuId(queue as u16), task, cx.now, how);
        }
    }

    /// When a tick of our own is due, where the host has none; only while a task waits.
    #[inline]
    pub(super) fn next_own_tick(&self) -> Option<Time> {
        self.fair.next_tick
    }
}

impl Smp<dyn Rule> {
    /// How many tasks are in the runqueue of `cpu`, running and delayed ones included.
    #[inline]
    fn tasks_of(&self, cpu: CpuId) -> u64 {
        self.fair.queues[cpu.index()].ready
    }

    /// The same without those that balancing does not count among tasks to be moved.
    #[inline]
    fn tasks_to_move(&self, cpu: CpuId) -> u64 {
        let queue = &self.fair.queues[cpu.index()];
        if self.fair.balancing.eligible { queue.ready - queue.delayed } else { queue.ready }
    }

    /// `task` becomes ready on `cpu`, for the reason `why`.
    pub(super) fn note_arrival(&mut self, cx: &Cx<'_>, task: TaskId, why: Enqueue, queue: usize) {
        let cpu = CpuId(queue as u16);
        if why == Enqueue::New {
            self.fair.entities[task].weight = self.rule.weight(task);
            return self.fair.guess(task, cpu);
        }
        let last = CpuId(self.tasks[task].queue);
        if last != cpu {
            self.fair.goes(last, task, cx.now);
            self.tasks[task].hot_until = Time::ZERO;
        }
        if matches!(why, Enqueue::Wakeup { .. }) {
            self.wakes_on(cx, cpu);
        }
    }

    /// `cpu` has put back what it ran: another CPU may have wanted that, or another task.
    pub(super) fn push_if_wanted(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        if let Some(to) = self.fair.queues[cpu.index()].push_to.take() {
            self.fair.queues[cpu.index()].buries();
            self.push_to(cx, cpu, to);
        }
    }

    /// The tick of `cpu`, which runs `task`.
    pub(super) fn ticks(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId) {
        self.fair.advance_with(cpu, task, cx.now);
        if self.fair.balances {
            self.balance_at_tick(cx, cpu);
        }
    }

    /// All CPUs that run something have a tick, if it is due.
    pub(super) fn own_tick(&mut self, cx: &mut Cx<'_>) {
        if self.fair.next_tick.is_none_or(|due| due > cx.now) {
            return;
        }
        let jiffy = self.fair.jiffy;
        self.fair.next_tick = Some(Time((self.fair.jiffies(cx.now) + 1) * jiffy.0));
        for cpu in self.machine.cpu_ids() {
            if let Some(task) = self.fair.queues[cpu.index()].running {
                self.ticks(cx, cpu, task);
            }
        }
    }

    /// Whether nothing runs on the core of `cpu`, or nothing but on `cpu` itself.
    fn is_core_of_idle(&self, cpu: CpuId, but: Option<CpuId>) -> bool {
        let mut threads = self.machine.sharing(Level::Core, cpu).iter();
        threads.all(|&cpu| Some(cpu) == but || self.is_idle(cpu) || !self.online.contains(cpu))
    }
}

/// A count of jiffies that is recorded by its distance from the present one.
struct InJiffies(u64);

impl Canonical<Jiffies> for InJiffies {
    fn canon(&self, Jiffies(now): &Jiffies, to: &mut Canon) {
        to.word(self.0.wrapping_sub(*now));
    }
}

/// How many jiffies have ended by now.
struct Jiffies(u64);

impl Canonical for Fair {
    fn canon(&self, _: &(), to: &mut Canon) {
        if !self.is_on {
            return;
        }
        to.phase(self.jiffy);
        let jiffies = Jiffies(to.now().0 / self.jiffy.0);
        self.queues.iter().for_each(|queue| queue.canon(&self.links, &jiffies, to));
        for (_, entity) in self.entities.iter() {
            entity.canon(&jiffies, to);
        }
        self.nohz.canon(&jiffies, to);
        canon_fields!(
            self,
            to,
            Fair {
                is_on: fixed,
                places: fixed,
                pulls: fixed,
                balances: fixed,
                jiffy: fixed,
                jiffies: fixed,
                hz: fixed,
                next_tick,
                domains: fixed,
                queues: fixed,
                idle,
                entities: fixed,
                links: fixed,
                caches,
                sums: fixed,
                out_of_balance,
                is_overloaded,
                balancing: fixed,
                ni_random: fixed,
                chances,
                crowded: fixed,
                nohz: fixed,
                detached: fixed,
                looks: fixed,
                pulled: fixed,
            }
        );
    }
}

canonical!(Cache { has_idle_core, scan, busy });

impl Nohz {
    fn canon(&self, jiffies: &Jiffies, to: &mut Canon) {
        let Nohz { cpus, next_balance, has_blocked, next_blocked, has_news } = self;
        cpus.canon(&(), to);
        [*next_balance, *next_blocked].map(InJiffies).canon(jiffies, to);
        [*has_blocked, *has_news].canon(&(), to);
    }
}

impl Entity {
    fn canon(&self, jiffies: &Jiffies, to: &mut Canon) {
        self.waker.canon(jiffies, to);
        canon_fields!(
            self,
            to,
            Entity {
                average,
                weight,
                util_est,
                is_unchanged,
                is_ready,
                is_delayed,
                waker: fixed,
                recent,
                bound_to,
            }
        );
    }
}

impl Waker {
    fn canon(&self, jiffies: &Jiffies, to: &mut Canon) {
        let Waker { last, flips, halved } = self;
        [*last, *flips].canon(&(), to);
        InJiffies(*halved).canon(jiffies, to);
    }
}

impl Turn {
    fn canon(&self, jiffies: &Jiffies, to: &mut Canon) {
        let Turn { last, interval, failures, newidle, newidle_set, success } = self;
        [*last, *newidle_set].map(InJiffies).canon(jiffies, to);
        [*interval, *newidle, u64::from(*failures)].canon(&(), to);
        let Success { tries, hits, rate, since } = success;
        [*tries, *hits, *rate].canon(&(), to);
        to.time(Time(*since));
    }
}

impl Queue {
    fn canon(&self, links: &Links, jiffies: &Jiffies, to: &mut Canon) {
        [self.next_balance, self.blocked_updated].map(InJiffies).canon(jiffies, to);
        self.turns.iter().for_each(|turn| turn.canon(jiffies, to));
        self.waker.canon(jiffies, to);
        (self.idle_since != 0).canon(&(), to);
        if self.idle_since != 0 {
            to.time(Time(self.idle_since));
        }
        canon_fields!(
            self,
            to,
            Queue {
                average,
                removed,
                dead,
                util_est,
                weight,
                ready,
                delayed,
                running,
                tasks: of(links),
                push_to,
                next_balance: fixed,
                idle_since: fixed,
                mean_idle,
                most_newidle,
                turns: fixed,
                is_tickless,
                has_blocked,
                blocked_updated: fixed,
                runs_idle,
                is_online,
                updates_idle,
                waker: fixed,
                distributed,
            }
        );
    }
}
