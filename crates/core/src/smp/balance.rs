//! Pulling by CPUs that run out of work; and periodic balancing where several CPUs share a
//! runqueue. Where each has its own, [`fair`](super::fair) balances.
//!
//! Both walk the levels of the machine from the nearest. A level's group of CPUs is a *domain* made
//! of the groups of the level below; the narrowest domain is a core, made of its CPUs.
//!
//! **Pulling** (Linux `newidle_balance`): a CPU with nothing to run takes one task from the
//! busiest runqueue of the nearest domain where one waits for it. Linux leaves cache-hot tasks
//! where they are even if the CPU then idles; here they are taken when there is nothing else,
//! because no CPU may idle beside a task that it could run.
//!
//! **Balancing** (after Linux's `load_balance` up to 6.5): at intervals, one CPU of each group of
//! each domain (the first idle one, else the first) compares its group with the busiest other group
//! of the domain, the next one round among equals, and pulls. [`Tuning`] has the numbers per level.
//!
//! - Balanced: no other group has waiting tasks, or the busiest has at most `imbalance_percent` of
//!   this group's load per capacity, or this group's load is at least the mean.
//! - Otherwise weight is moved until the busiest group or this one reaches the mean, and at most
//!   half of the difference: from the busiest runqueue that has a task for this CPU, in the order
//!   in which the rule prefers to lose tasks, at most [`MOST_MOVED`] of them. Not moved: tasks that
//!   run or are about to, cache-hot ones (unless this failed more than `nice_tries` times in a row;
//!   threads of a core share all caches), and tasks that weigh more than is to be moved. As in
//!   Linux that bound doubles with each failure, here for the first task only, so that three tasks
//!   on two CPUs take turns at sharing one. An idle CPU takes the first task whatever it weighs.
//! - The interval doubles while the group is balanced and falls back when it is not; it is
//!   `busy_factor` times longer while the CPU is busy.
//!
//! Deviations: intervals belong to groups, not to CPUs, because only one CPU of a group balances;
//! they are counted on a grid of 1 ms whenever the host calls; load is the sum of weights, not an
//! average over time; running tasks are never moved (no active balancing).
//!
//! Cost: a pull looks once at each runqueue with waiting tasks, and one by one at tasks that it may
//! not take. Balancing looks at each CPU of the domain.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Reverse;

use super::rule::{Erase, Rule};
use super::{At, Balance, Entry, Layout, Smp, SmpParams, Steal, Why, at};
use crate::canon::{Canon, Canonical};
use crate::ids::{CpuId, TaskId};
use crate::machine::{Distance, Level, Machine};
use crate::time::{Span, Time};
use crate::{Cx, canonical};

/// The grid on which balancing happens, and the shortest interval: Linux's jiffy at HZ = 1000.
const JIFFY: Span = Span::from_ms(1);

/// The most tasks moved at a time (Linux `sched_nr_migrate`).
const MOST_MOVED: usize = 32;

/// How the groups of one level's domains are balanced.
struct Tuning {
    /// Shortest interval, in ms.
    least_ms: u64,
    /// Longest interval, in ms.
    most_ms: u64,
    /// The interval is this many times longer for a busy CPU.
    busy_factor: u64,
    /// The busiest group must exceed this percentage of this group's load.
    imbalance_percent: u64,
    /// After more failures than this, cache-hot tasks are moved too.
    nice_tries: u32,
}

/// Linux `SD_SIBLING_INIT`, `SD_MC_INIT`, `SD_CPU_INIT` and `SD_NODE_INIT`.
const fn tuning(level: Level) -> Tuning {
    let (least_ms, most_ms, busy_factor, imbalance_percent, nice_tries) = match level {
        Level::Core => (1, 2, 64, 110, 0),
        Level::Llc | Level::Package | Level::Node => (1, 4, 64, 125, 1),
        Level::Machine => (8, 32, 32, 125, 2),
    };
    Tuning { least_ms, most_ms, busy_factor, imbalance_percent, nice_tries }
}

/// The level whose groups make up the domains of `level`; `None`: single CPUs.
const fn below(level: Level) -> Option<Level> {
    match level {
        Level::Core => None,
        Level::Llc => Some(Level::Core),
        Level::Package => Some(Level::Llc),
        Level::Node => Some(Level::Package),
        Level::Machine => Some(Level::Node),
    }
}

/// When each group balances next.
#[derive(Debug)]
pub(super) struct Balancer {
    /// The earliest of all turns, or the time at which a task began to wait again if that is later;
    /// `NEVER` without periodic balancing.
    next: Time,
    turns: Vec<Turn>,
    /// Per level and CPU, the turn of the CPU's group; [`NO_TURN`] if it has none.
    turn_of: [Vec<u16>; 5],
    /// Scratch space for a pull's candidate runqueues, so that it need not allocate.
    victims: Vec<Victim>,
}

const NO_TURN: u16 = u16::MAX;

/// When one group of a domain of `level` balances.
#[derive(Debug)]
struct Turn {
    level: Level,
    /// The first CPU of the group.
    leader: CpuId,
    /// When it last did.
    last: Time,
    due: Time,
    interval: Span,
    /// How many times in a row it found nothing to move although the groups were unbalanced.
    failures: u32,
}

/// A runqueue to pull from: nearest first, busiest first, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Victim {
    distance: Distance,
    load: Reverse<u64>,
    queue: u16,
}

enum Outcome {
    Balanced,
    Moved,
    Failed,
}

/// The load of a group of CPUs.
#[derive(Clone, Copy, Default)]
struct Group {
    load: u64,
    capacity: u64,
    waiting: usize,
}

impl Group {
    /// Load per capacity, 1024 for one task of nice 0 per CPU.
    fn mean(&self) -> u64 {
        (self.load * 1024).checked_div(self.capacity).unwrap_or(0)
    }
}

impl Balancer {
    // In a frame of its own.
    #[inline(never)]
    pub(super) fn new(machine: &Machine, params: &SmpParams, queues: usize) -> Box<Balancer> {
        let mut turns = Vec::new();
        let mut turn_of = [const { Vec::new() }; 5];
        if params.balance == Balance::Linux && params.layout != Layout::PerCpu && queues > 1 {
            for level in Level::ALL {
                // A runqueue that spans groups of a domain leaves nothing to balance between them.
                if params.layout.level() > below(level) {
                    continue;
                }
                let turn_of = &mut turn_of[level as usize];
                turn_of.resize(machine.cpus(), NO_TURN);
                for cpu in machine.cpu_ids() {
                    let group = group_of(machine, level, &cpu);
                    if group.len() == machine.sharing(level, cpu).len() {
                        continue;
                    }
                    if group[0] == cpu {
                        let interval = Span::from_ms(tuning(level).least_ms);
                        let (last, due) = (Time::ZERO, Time::ZERO + interval);
                        turns.push(Turn { level, leader: cpu, last, due, interval, failures: 0 });
                        turn_of[cpu.index()] = (turns.len() - 1) as u16;
                    } else {
                        turn_of[cpu.index()] = turn_of[group[0].index()];
                    }
                }
            }
        }
        let next = turns.iter().map(|turn| turn.due).min().unwrap_or(Time::NEVER);
        Box::new(Balancer { next, turns, turn_of, victims: Vec::with_capacity(queues) })
    }

    /// A task waits again, after none did: balancing that fell due meanwhile is due at the next
    /// point of the grid.
    #[inline]
    pub(super) fn resume(&mut self, now: Time) {
        if self.next <= now {
            self.next = grid(now) + JIFFY;
        }
    }
}

/// The latest point of the grid up to `now`.
fn grid(now: Time) -> Time {
    Time(now.0 - now.0 % JIFFY.0)
}

/// The group of `cpu` in its domain of `level`.
fn group_of<'a>(machine: &'a Machine, level: Level, cpu: &'a CpuId) -> &'a [CpuId] {
    match below(level) {
        None => core::slice::from_ref(cpu),
        Some(below) => machine.sharing(below, *cpu),
    }
}

impl<R: Erase + ?Sized> Smp<R> {
    /// Lets `cpu`, whose runqueue has nothing for it, take a task from the busiest other runqueue,
    /// nearest first. Returns whether it got one.
    #[inline]
    pub(super) fn pull(&mut self, cx: &mut Cx<'_>, queue: usize, cpu: CpuId) -> bool {
        if self.kept.pulls {
            return self.erased().balance_newly_idle(cx, cpu);
        }
        !self.waiting.is_empty() && self.erased().pull_nearest(cx, queue, cpu)
    }

    /// When balancing is due; only while anything waits.
    #[inline]
    pub(super) fn next_balance(&self) -> Option<Time> {
        (self.balancer.next != Time::NEVER).then_some(self.balancer.next)
    }

    /// `cpu` found nothing to run: its groups balance at the interval of an idle CPU. If it can
    /// pull from everywhere, that gains nothing.
    #[inline]
    pub(super) fn hurry(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        if !self.balancer.turns.is_empty() && self.params.steal != Steal::Machine {
            self.erased().hurry_groups(cx.now, cpu);
        }
    }
}

impl Smp<dyn Rule> {
    /// The weight of the tasks that wait or run on `queue`.
    fn queue_load(&self, queue: usize) -> u64 {
        let mut load = self.rule.load(queue);
        if !self.rule.load_counts_running() {
            let running = self.members(queue).iter().filter_map(|member| member.task());
            load += running.map(|task| self.rule.weight(task)).sum::<u64>();
        }
        load
    }

    /// The capacity of the usable CPUs of `queue`.
    fn capacity(&self, queue: usize) -> u64 {
        let cpus = self.online_members(queue);
        cpus.map(|cpu| u64::from(self.machine.cpu(cpu).capacity)).sum()
    }

    /// The load of `queue` per capacity: 1024 for one task of nice 0 per CPU.
    pub(super) fn relative_load(&self, queue: usize) -> u64 {
        self.group_load(&[self.members(queue)[0].cpu]).mean()
    }

    /// The load of the runqueues of `cpus`, which no other CPU serves.
    fn group_load(&self, cpus: &[CpuId]) -> Group {
        let mut group = Group::default();
        for &cpu in cpus {
            let queue = self.queue_of(cpu);
            if self.members(queue)[0].cpu == cpu {
                group.load += self.queue_load(queue);
                group.capacity += self.capacity(queue);
                group.waiting += self.rule.len(queue);
            }
        }
        group
    }

    fn is_hot(&self, task: TaskId, now: Time) -> bool {
        now < self.tasks[task].hot_until
    }

    /// As [`Smp::pull`], where CPUs do not pull as in Linux and a task waits somewhere.
    fn pull_nearest(&mut self, cx: &mut Cx<'_>, queue: usize, cpu: CpuId) -> bool {
        let Some(reach) = self.params.steal.level() else { return false };
        self.refresh_busy();
        let mut victims = core::mem::take(&mut self.balancer.victims);
        let task = self.find_nearest_spare(cx, queue, cpu, reach, &mut victims);
        self.balancer.victims = victims;
        if let Some(task) = task {
            self.move_task(cx, task, queue);
        }
        task.is_some()
    }

    /// The task that `cpu`, which serves `own`, takes: one that is not cache-hot from the nearest
    /// runqueue that has one, else the first cache-hot one. `victims` is scratch space.
    fn find_nearest_spare(
        &self,
        cx: &mut Cx<'_>,
        own: usize,
        cpu: CpuId,
        reach: Level,
        victims: &mut Vec<Victim>,
    ) -> Option<TaskId> {
        let mut hot = None;
        for level in Level::ALL {
            let (spare, hot_here) = self.find_spare(cx, own, cpu, level, victims);
            if spare.is_some() {
                return spare;
            }
            hot = hot.or(hot_here);
            if level == reach || self.machine.groups(level) == 1 {
                break;
            }
        }
        hot
    }

    /// The runqueues with waiting tasks that share `level`, but no nearer level, with `cpu`, which
    /// serves `own`.
    fn victims(&self, own: usize, cpu: CpuId, level: Level) -> impl Iterator<Item = Victim> + '_ {
        let victim = move |queue: CpuId| {
            let distance = self.machine.distance(cpu, self.members(queue.index())[0].cpu);
            let wanted = queue.index() != own
                && match level {
                    Level::Core => distance <= Distance::Shares(Level::Core),
                    level => distance == Distance::Shares(level),
                };
            let load = || Reverse(self.relative_load(queue.index()));
            wanted.then(|| Victim { distance, load: load(), queue: queue.0 })
        };
        // With one runqueue per CPU, a runqueue has the number of its CPU: only near ones need a
        // look.
        let per_cpu = self.params.layout.level().is_none();
        let around =
            if per_cpu { self.neighbours.of(&self.machine, level, cpu) } else { &self.waiting };
        self.waiting.iter_among(around).filter_map(victim)
    }

    /// Brings what is kept of waiting runqueues up to date.
    fn refresh_busy(&mut self) {
        while self.kept.loads
            && let Some(cpu) = self.loads.next_stale()
        {
            let load = self.waiting.contains(cpu).then(|| self.relative_load(cpu.index()));
            self.loads.set_busy(cpu, load);
        }
    }

    /// From the runqueues that share `level`, but no nearer level, with `cpu`, the task that it
    /// takes from the busiest that has one; and the first cache-hot one. `victims` is scratch
    /// space.
    fn find_spare(
        &self,
        cx: &mut Cx<'_>,
        own: usize,
        cpu: CpuId,
        level: Level,
        victims: &mut Vec<Victim>,
    ) -> (Option<TaskId>, Option<TaskId>) {
        // The first one usually suffices: the others are sorted only if it does not.
        let first = if self.kept.loads {
            let distance = Distance::Shares(level);
            let busiest = self.loads.busiest(&self.machine, cpu, level);
            busiest.map(|(load, queue)| Victim { distance, load, queue })
        } else {
            self.victims(own, cpu, level).min()
        };
        debug_assert_eq!(first, self.victims(own, cpu, level).min());
        let Some(first) = first else { return (None, None) };
        let (spare, mut hot) = self.find_spare_of(cx, cpu, &first);
        if spare.is_some() {
            return (spare, None);
        }
        victims.clear();
        victims.extend(self.victims(own, cpu, level));
        victims.sort_unstable();
        for victim in victims.iter().skip(1) {
            let (spare, hot_here) = self.find_spare_of(cx, cpu, victim);
            if spare.is_some() {
                return (spare, hot);
            }
            hot = hot.or(hot_here);
        }
        (None, hot)
    }

    /// The task that `cpu` takes from `victim`; and the first cache-hot one.
    fn find_spare_of(
        &self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        victim: &Victim,
    ) -> (Option<TaskId>, Option<TaskId>) {
        let shares_caches = victim.distance == Distance::Shares(Level::Core);
        let (hot, scanned) = (Cell::new(None), Cell::new(0));
        let fits = |task: TaskId| {
            scanned.set(scanned.get() + 1);
            let slot = &self.tasks[task];
            let promised = self.promises.cpu(task).is_some_and(|other| other != cpu);
            if promised || !slot.affinity.contains(cpu) {
                return false;
            }
            if !shares_caches && self.is_hot(task, cx.now) {
                hot.set(hot.get().or(Some(task)));
                return false;
            }
            true
        };
        let spare = self.rule.spare(&at!(self, cx.now, victim.queue), &fits);
        cx.work.scanned += scanned.get() - u32::from(spare.is_some());
        (spare, hot.get())
    }

    /// The groups of `cpu` balance at the interval of an idle CPU.
    fn hurry_groups(&mut self, now: Time, cpu: CpuId) {
        let balancer = &mut self.balancer;
        for turn_of in &balancer.turn_of {
            let turn = turn_of.get(cpu.index()).map(|&turn| usize::from(turn));
            if let Some(turn) = turn.and_then(|turn| balancer.turns.get_mut(turn)) {
                turn.due = turn.due.min((turn.last + turn.interval).max(grid(now) + JIFFY));
                balancer.next = balancer.next.min(turn.due);
            }
        }
    }

    /// Balances the groups whose turn has come, the narrowest domains first.
    pub(super) fn balance(&mut self, cx: &mut Cx<'_>) {
        if self.balancer.next > cx.now || self.waiting.is_empty() {
            return;
        }
        let mut next = Time::NEVER;
        for index in 0..self.balancer.turns.len() {
            if self.balancer.turns[index].due <= cx.now {
                self.take_turn(cx, index);
            }
            next = next.min(self.balancer.turns[index].due);
        }
        self.balancer.next = next;
    }

    fn take_turn(&mut self, cx: &mut Cx<'_>, index: usize) {
        let Turn { level, leader, interval, failures, .. } = self.balancer.turns[index];
        let tuning = tuning(level);
        let (least, most) = (Span::from_ms(tuning.least_ms), Span::from_ms(tuning.most_ms));
        let cpu = self.balancing_cpu(level, leader);
        let outcome =
            cpu.map_or(Outcome::Balanced, |cpu| self.even_out(cx, level, leader, cpu, failures));
        let busy = cpu.is_some_and(|cpu| !self.idle.contains(cpu));
        let turn = &mut self.balancer.turns[index];
        (turn.interval, turn.failures) = match outcome {
            Outcome::Balanced => ((interval + interval).min(most), 0),
            Outcome::Moved => (least, 0),
            Outcome::Failed => (least, failures.saturating_add(1)),
        };
        let factor = if busy { tuning.busy_factor } else { 1 };
        let longest = Span::from_ms(100 * self.machine.cpus() as u64);
        turn.last = grid(cx.now);
        turn.due = turn.last + turn.interval.scaled(factor, 1).min(longest);
    }

    /// The CPU that balances for the group of `leader`: the first idle one, else the first.
    fn balancing_cpu(&self, level: Level, leader: CpuId) -> Option<CpuId> {
        let mut cpus = group_of(&self.machine, level, &leader).iter().copied();
        let idle = cpus.clone().find(|&cpu| self.idle.contains(cpu));
        idle.or_else(|| cpus.find(|&cpu| self.online.contains(cpu)))
    }

    /// Pulls from the busiest group of the domain of `level` to `cpu`, for the group of `leader`.
    fn even_out(
        &mut self,
        cx: &mut Cx<'_>,
        level: Level,
        leader: CpuId,
        cpu: CpuId,
        failures: u32,
    ) -> Outcome {
        let machine = &self.machine;
        let (mut own, mut all) = (Group::default(), Group::default());
        let mut busiest: Option<(u64, CpuId, Group)> = None;
        // Starts after this group, so that groups do not all prefer the same one among equals.
        let domain = machine.sharing(level, leader);
        let (before, from_own) = domain.split_at(domain.partition_point(|&cpu| cpu < leader));
        for other in from_own.iter().chain(before) {
            let cpus = group_of(machine, level, other);
            if cpus[0] != *other {
                continue;
            }
            let group = self.group_load(cpus);
            all.load += group.load;
            all.capacity += group.capacity;
            if *other == leader {
                own = group;
            } else if group.waiting > 0 && busiest.is_none_or(|(most, ..)| group.mean() > most) {
                busiest = Some((group.mean(), *other, group));
            }
        }
        let Some((most, other, group)) = busiest else { return Outcome::Balanced };
        if most * 100 <= own.mean() * tuning(level).imbalance_percent {
            return Outcome::Balanced;
        }
        // Down to the mean there or up to the mean here, whichever is less.
        let surplus = most.saturating_sub(all.mean()) * group.capacity;
        let deficit = all.mean().saturating_sub(own.mean()) * own.capacity;
        match surplus.min(deficit) / 1024 {
            0 => Outcome::Balanced,
            weight => self.pull_weight(cx, level, other, cpu, failures, weight),
        }
    }

    /// Pulls up to `weight` from the group of `leader` to `cpu`.
    fn pull_weight(
        &mut self,
        cx: &mut Cx<'_>,
        level: Level,
        leader: CpuId,
        cpu: CpuId,
        failures: u32,
        weight: u64,
    ) -> Outcome {
        let to = self.queue_of(cpu);
        let mut tried = None;
        while let Some(victim) = self.busiest_below(level, leader, tried) {
            let from = usize::from(victim.queue);
            let (mut left, mut moved) = (weight, 0);
            let any_allowed = Cell::new(false);
            while moved < MOST_MOVED && left > 0 {
                let fits = |task: TaskId| {
                    if !self.may_enter(task, to) || self.promises.cpu(task).is_some() {
                        return false;
                    }
                    any_allowed.set(true);
                    let weight = self.rule.weight(task);
                    let first = moved == 0
                        && (self.idle.contains(cpu) || weight >> failures.min(63) <= left);
                    let cold = level == Level::Core
                        || failures > tuning(level).nice_tries
                        || !self.is_hot(task, cx.now);
                    (weight <= left || first) && cold
                };
                let spare = self.rule.spare(&at!(self, cx.now, from), &fits);
                let Some(task) = spare else { break };
                left = left.saturating_sub(self.rule.weight(task));
                moved += 1;
                self.take_out(cx, task);
                self.enter(cx, task, to, cpu, &Entry::because(Why::Moved));
            }
            if moved > 0 {
                return Outcome::Moved;
            }
            if any_allowed.get() {
                return Outcome::Failed;
            }
            tried = Some(victim);
        }
        Outcome::Balanced
    }

    /// The busiest runqueue with waiting tasks in the group of `leader` that comes after `tried`.
    fn busiest_below(&self, level: Level, leader: CpuId, tried: Option<Victim>) -> Option<Victim> {
        let cpus = group_of(&self.machine, level, &leader).iter();
        let victims = cpus.filter_map(|cpu| {
            let queue = self.queue_of(*cpu) as u16;
            let waits = self.waiting.contains(CpuId(queue));
            let load = || Reverse(self.relative_load(usize::from(queue)));
            waits.then(|| Victim { distance: Distance::Same, load: load(), queue })
        });
        victims.filter(|victim| tried.is_none_or(|tried| *victim > tried)).min()
    }
}

impl Canonical for Balancer {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Balancer { next, turns, turn_of: _, victims: _ } = self;
        if !turns.is_empty() {
            to.phase(JIFFY);
            next.canon(&(), to);
            turns.canon(&(), to);
        }
    }
}

canonical!(Turn { level: fixed, leader: fixed, last, due, interval, failures });
