//! Where a task that becomes ready is placed (Linux `select_task_rq_fair`).

use super::super::Smp;
use super::super::rule::Rule;
use super::domains::Group;
use super::sums::Sum;
use super::{Fair, Waker};
use crate::ids::{CpuId, CpuMask, CpuSet, TaskId};
use crate::machine::Level;
use crate::time::Time;
use crate::{Arrival, Enqueue};

/// How busy a group is, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Busyness {
    /// It has capacity to spare.
    HasSpare,
    /// It has none, but no task waits.
    FullyBusy,
    /// A core two of whose threads have tasks; for groups from which idle CPUs would pull.
    SmtBalance,
    /// Averages say nothing, because tasks are bound to CPUs.
    OutOfBalance,
    /// Tasks wait.
    Overloaded,
}

/// How busy CPUs are that together do this, `cpus` of them in all.
#[inline]
pub(super) fn classify(sum: &Sum, imbalance_percent: u64, is_out_of_balance: bool) -> Busyness {
    let capacity = 1024 * sum.cpus;
    let waits = capacity * imbalance_percent < sum.runnable * 100;
    let overloaded =
        sum.tasks > sum.cpus && (capacity * 100 < sum.util * imbalance_percent || waits);
    let has_spare = sum.tasks < sum.cpus || !waits && capacity * 100 > sum.util * imbalance_percent;
    if overloaded {
        Busyness::Overloaded
    } else if is_out_of_balance {
        Busyness::OutOfBalance
    } else if has_spare {
        Busyness::HasSpare
    } else {
        Busyness::FullyBusy
    }
}

/// Load per capacity: 1024 for a task of nice 0 on each CPU.
pub(super) fn mean_load(sum: &Sum) -> u64 {
    sum.load / sum.cpus.max(1)
}

/// `tasks` more here than there, of which nodes allow a few as long as few run here.
pub(super) fn numa_imbalance(tasks: u64, running: u64, allowed: u64) -> u64 {
    /// A pair of tasks that talk to each other.
    const PAIR: u64 = 2;
    if allowed > 0 && running <= allowed && tasks <= PAIR { 0 } else { tasks }
}

impl Waker {
    /// It wakes `task`.
    fn wakes(&mut self, task: TaskId, jiffies: u64, hz: u64) {
        if jiffies > self.halved + hz {
            self.flips >>= 1;
            self.halved = jiffies;
        }
        if self.last != task.0 {
            self.last = task.0;
            self.flips += 1;
        }
    }
}

impl Fair {
    /// How many CPUs share the cache of `cpu`.
    fn cache_size(&self, cpu: CpuId) -> u32 {
        let domain = self.domains.cache[cpu.index()];
        domain.map_or(1, |domain| self.domains[domain].cpus.len() as u32)
    }

    /// Whether who wakes `task` on `waker`, and changed `flips` times whom it wakes, is of so many
    /// with it that they had better be spread: one changes whom it wakes as often as there are CPUs
    /// behind a cache, and the other so many times as often (`wake_wide`).
    fn is_wide(&self, waker: CpuId, flips: u32, task: TaskId) -> bool {
        let other = self.entities[task].waker.flips;
        let (less, more) = (flips.min(other), flips.max(other));
        less > 0 && {
            let factor = self.cache_size(waker);
            less >= factor && u64::from(more) >= u64::from(less) * u64::from(factor)
        }
    }
}

impl Smp<dyn Rule> {
    /// The CPU on whose runqueue `task` goes, which last was at `prev` or was created there.
    pub(in super::super) fn select(
        &mut self,
        now: Time,
        task: TaskId,
        arrival: &Arrival,
        prev: CpuId,
    ) -> CpuId {
        if arrival.why == Enqueue::New {
            self.fair.entities[task].recent = prev;
        }
        let chosen = match (self.only_cpu(task), arrival.why) {
            (Some(cpu), _) => cpu,
            (None, Enqueue::Resumed { .. }) => prev,
            (None, Enqueue::New) => {
                self.refresh();
                self.find_idlest_cpu(task, prev)
            }
            (None, Enqueue::Wakeup { sync, .. }) => {
                let waker = arrival.from.unwrap_or(prev);
                self.select_woken(now, task, waker, prev, sync)
            }
        };
        if self.usable(task, chosen) { chosen } else { self.fall_back(task, prev) }
    }

    /// The CPU to which `task` is bound, if it is bound to one.
    #[inline]
    fn only_cpu(&self, task: TaskId) -> Option<CpuId> {
        match &self.tasks[task].affinity {
            CpuSet::All => None,
            affinity => self.only_cpu_of(affinity),
        }
    }

    fn only_cpu_of(&self, affinity: &CpuSet) -> Option<CpuId> {
        let mut allowed = affinity.iter().filter(|&cpu| cpu.index() < self.machine.cpus());
        let first = allowed.next()?;
        allowed.next().is_none().then_some(first)
    }

    /// The first CPU of the node of `prev` that `task` may use, else the first of all.
    fn fall_back(&self, task: TaskId, prev: CpuId) -> CpuId {
        let near = self.machine.sharing(Level::Node, prev).iter().copied();
        let all = self.machine.cpu_ids();
        near.chain(all).find(|&cpu| self.usable(task, cpu)).unwrap_or(prev)
    }

    /// The affinity of `task`, which is or was on `cpu`, has changed. If it may not stay, it goes
    /// to the next CPU in turn (`cpumask_any_and_distribute`).
    pub(in super::super) fn distribute(&mut self, task: TaskId, cpu: CpuId) {
        let last = self.fair.queues[cpu.index()].distributed;
        let usable = |&cpu: &CpuId| self.usable(task, cpu);
        let next = self.machine.cpu_ids().skip(last.index() + 1).find(usable);
        if let Some(next) = next.or_else(|| self.machine.cpu_ids().find(usable)) {
            self.fair.queues[cpu.index()].distributed = next;
            self.fair.entities[task].bound_to = next;
        }
    }

    /// Where `task` goes that may not stay on `cpu`.
    pub(in super::super) fn leave_for(&self, task: TaskId, cpu: CpuId) -> CpuId {
        let to = self.fair.entities[task].bound_to;
        let is_bound = self.online.contains(cpu) && self.usable(task, to);
        if is_bound { to } else { self.fall_back(task, cpu) }
    }

    #[inline]
    pub(super) fn is_idle(&self, cpu: CpuId) -> bool {
        self.fair.idle.contains(cpu)
    }

    fn select_woken(
        &mut self,
        now: Time,
        task: TaskId,
        waker: CpuId,
        prev: CpuId,
        sync: bool,
    ) -> CpuId {
        let (jiffies, hz) = (self.fair.jiffies(now), self.fair.hz);
        let running = self.fair.queues[waker.index()].running;
        let record = match running {
            Some(running) => &mut self.fair.entities[running].waker,
            None => &mut self.fair.queues[waker.index()].waker,
        };
        record.wakes(task, jiffies, hz);
        let flips = record.flips;
        if !self.online.contains(prev) {
            // It is in no domain, and runs nothing.
            return prev;
        }
        let mut target = prev;
        if waker != prev
            && self.tasks[task].affinity.contains(waker)
            && !self.fair.is_wide(waker, flips, task)
        {
            let domains = &self.fair.domains;
            if let Some(depth) = domains.meeting(waker, prev) {
                let percent = domains[domains.around[waker.index()][depth]].imbalance_percent;
                target = self.nearer(task, waker, prev, sync, percent);
            }
        }
        self.find_idle_sibling(task, prev, target)
    }

    /// Whether `task` had better run at its waker or where it was (`wake_affine`).
    fn nearer(&self, task: TaskId, waker: CpuId, prev: CpuId, sync: bool, percent: u64) -> CpuId {
        if self.is_idle(waker) && self.fair.domains.share_cache(waker, prev) {
            return if self.is_idle(prev) { prev } else { waker };
        }
        let queue = &self.fair.queues[waker.index()];
        if sync && queue.ready - queue.delayed == 1 {
            return waker;
        }
        if self.is_idle(prev) {
            return prev;
        }
        let load = |cpu: CpuId| self.fair.queues[cpu.index()].average.load as i64;
        let mut here = load(waker);
        if sync && let Some(running) = self.fair.queues[waker.index()].running {
            let of_waker = self.fair.task_load(waker, running) as i64;
            if of_waker > here {
                return waker;
            }
            here -= of_waker;
        }
        let of_task = self.fair.task_load(prev, task) as i64;
        let here = (here + of_task) * 100;
        let bias = 100 + (percent as i64 - 100) / 2;
        let there = (load(prev) - of_task) * bias + i64::from(sync);
        if here < there { waker } else { prev }
    }

    /// An idle CPU that shares the cache of `target`, else `target` (`select_idle_sibling`).
    fn find_idle_sibling(&mut self, task: TaskId, prev: CpuId, target: CpuId) -> CpuId {
        if self.fair.idle.is_empty() && !self.fair.domains.has_smt {
            self.fair.entities[task].recent = prev;
            return target;
        }
        if self.is_idle(target) {
            return target;
        }
        if prev != target && self.fair.domains.share_cache(prev, target) && self.is_idle(prev) {
            return prev;
        }
        let recent = core::mem::replace(&mut self.fair.entities[task].recent, prev);
        if recent != prev
            && recent != target
            && self.fair.domains.share_cache(recent, target)
            && self.is_idle(recent)
            && self.tasks[task].affinity.contains(recent)
        {
            return recent;
        }
        let Some(cache) = self.fair.domains.cache[target.index()] else { return target };
        let mut by_core = false;
        if self.fair.domains.has_smt {
            by_core = self.fair.caches[usize::from(cache)].has_idle_core;
            if !by_core && self.fair.domains.share_cache(prev, target) {
                let threads = self.machine.sharing(Level::Core, prev).iter();
                let mut idle = threads.copied().filter(|&cpu| {
                    cpu != target && self.is_idle(cpu) && self.tasks[task].affinity.contains(cpu)
                });
                if let Some(cpu) = idle.next() {
                    return cpu;
                }
            }
        }
        self.scan_for_idle(task, cache, by_core, target).unwrap_or(target)
    }

    /// An idle CPU of a cache, on an idle core if it is to be `by_core`, from the one after
    /// `target` on (`select_idle_cpu`).
    fn scan_for_idle(
        &mut self,
        task: TaskId,
        cache: u16,
        by_core: bool,
        target: CpuId,
    ) -> Option<CpuId> {
        let limit = self.fair.caches[usize::from(cache)].scan;
        if limit == 0 {
            return None;
        }
        if self.fair.idle.is_empty() {
            self.fair.caches[usize::from(cache)].has_idle_core &= !by_core;
            return None;
        }
        if by_core {
            return self.scan_for_idle_core(task, cache, target);
        }
        let affinity = &self.tasks[task].affinity;
        let usable = |cpu: &CpuId| self.online.contains(*cpu) && affinity.contains(*cpu);
        let (before, from) = self.fair.domains[cache].around(target);
        let cpus = from.iter().chain(before).copied().filter(usable);
        cpus.take(limit as usize).find(|&cpu| self.is_idle(cpu))
    }

    /// The same by cores.
    fn scan_for_idle_core(&mut self, task: TaskId, cache: u16, target: CpuId) -> Option<CpuId> {
        let mut found = None;
        let mut passed = CpuMask::EMPTY;
        let (before, from) = self.fair.domains[cache].around(target);
        let affinity = &self.tasks[task].affinity;
        for &cpu in from.iter().chain(before) {
            if !self.online.contains(cpu) || !affinity.contains(cpu) || passed.contains(cpu) {
                continue;
            }
            let threads = self.machine.sharing(Level::Core, cpu);
            let mut is_idle = true;
            for &thread in threads.iter().filter(|thread| self.online.contains(**thread)) {
                if !self.is_idle(thread) {
                    is_idle = false;
                    if found.is_some() {
                        break;
                    }
                } else if found.is_none() && affinity.contains(thread) && !passed.contains(thread) {
                    found = Some(thread);
                }
            }
            if is_idle {
                return Some(cpu);
            }
            passed.insert_all(&CpuMask::of(threads.iter().copied()));
        }
        self.fair.caches[usize::from(cache)].has_idle_core = false;
        found
    }

    /// The CPU for a new task that is created on `cpu`: the idlest of the idlest group, domain by
    /// domain from the widest (`find_idlest_cpu`).
    fn find_idlest_cpu(&self, task: TaskId, cpu: CpuId) -> CpuId {
        let (mut cpu, mut chosen) = (cpu, cpu);
        let mut depth = self.fair.domains.around[cpu.index()].len();
        while depth > 0 {
            depth -= 1;
            let Some(group) = self.find_idlest_group(task, cpu, depth) else { continue };
            chosen = self.find_idlest_of_group(task, group, cpu);
            if chosen == cpu {
                continue;
            }
            // Goes on in the domains of the chosen CPU that are narrower than this one.
            let domains = &self.fair.domains;
            let size = domains[domains.around[cpu.index()][depth]].cpus.len();
            cpu = chosen;
            let around = &domains.around[cpu.index()];
            let narrower = |domain: &&u16| domains[**domain].cpus.len() < size;
            depth = around.iter().take_while(narrower).count();
        }
        chosen
    }

    /// What the CPUs of a group do that `task` may use.
    fn sum_for(&self, task: TaskId, group: &Group) -> Sum {
        let affinity = &self.tasks[task].affinity;
        let whole = self.sum_of_group(group, &CpuMask::EMPTY);
        if affinity.is_all() {
            return whole;
        }
        let mut sum = Sum::default();
        for &cpu in group.cpus.iter().filter(|cpu| affinity.contains(**cpu)) {
            sum += self.sum_of_cpu(cpu);
        }
        // Its capacity is that of all.
        Sum { cpus: whole.cpus, ..sum }
    }

    fn find_idlest_group(&self, task: TaskId, cpu: CpuId, depth: usize) -> Option<&Group> {
        let whole = &self.fair.domains[self.fair.domains.around[cpu.index()][depth]];
        let affinity = &self.tasks[task].affinity;
        let mut idlest: Option<(Busyness, Sum, &Group)> = None;
        let mut local: Option<(Busyness, Sum, &Group)> = None;
        for (place, number) in self.fair.domains.ring(cpu, depth).enumerate() {
            let group = &whole.groups[number];
            if !group.cpus.iter().any(|&cpu| self.online.contains(cpu) && affinity.contains(cpu)) {
                continue;
            }
            let sum = self.sum_for(task, group);
            let out = self.fair.is_out_of_balance(group);
            let busyness = classify(&sum, whole.imbalance_percent, out);
            if place == 0 {
                local = Some((busyness, sum, group));
                continue;
            }
            let is_better = match &idlest {
                None => busyness < Busyness::Overloaded || mean_load(&sum) < u64::from(u32::MAX),
                Some((other, ..)) if busyness != *other => busyness < *other,
                Some((_, other, _)) => match busyness {
                    Busyness::Overloaded | Busyness::FullyBusy => {
                        mean_load(&sum) < mean_load(other)
                    }
                    Busyness::HasSpare => {
                        sum.idle > other.idle || sum.idle == other.idle && sum.util < other.util
                    }
                    _ => false,
                },
            };
            if is_better {
                idlest = Some((busyness, sum, group));
            }
        }
        let (busyness, sum, group) = idlest?;
        let Some((own, local, home)) = local else { return Some(group) };
        let goes = if own != busyness {
            own > busyness
        } else {
            match own {
                Busyness::Overloaded | Busyness::FullyBusy => {
                    let margin = 1024 * (whole.imbalance_percent - 100) / 100;
                    let (here, there) = (mean_load(&local), mean_load(&sum));
                    !(whole.is_numa && there + margin >= here)
                        && there < here + margin
                        && 100 * here > whole.imbalance_percent * there
                }
                Busyness::HasSpare => {
                    let stays = whole.is_numa && {
                        let here = home.cpus.iter().filter(|cpu| affinity.contains(**cpu));
                        let most = if affinity.is_all() { usize::MAX } else { here.count() };
                        let allowed = whole.numa_imbalance.min(most as u64);
                        numa_imbalance(local.idle.abs_diff(sum.idle), local.tasks + 1, allowed) == 0
                    };
                    !stays && local.idle < sum.idle
                }
                _ => false,
            }
        };
        goes.then_some(group)
    }

    /// The CPU of `group` that went idle last, else the least loaded.
    fn find_idlest_of_group(&self, task: TaskId, group: &Group, cpu: CpuId) -> CpuId {
        if let [only] = group.cpus[..] {
            return only;
        }
        let affinity = &self.tasks[task].affinity;
        let (mut idle, mut least) = (None, (u64::MAX, cpu));
        let mut latest = 0;
        for &cpu in group.cpus.iter().filter(|cpu| affinity.contains(**cpu)) {
            let queue = &self.fair.queues[cpu.index()];
            if self.is_idle(cpu) {
                if queue.idle_since > latest {
                    (latest, idle) = (queue.idle_since, Some(cpu));
                }
            } else if idle.is_none() && self.online.contains(cpu) && queue.average.load < least.0 {
                least = (queue.average.load, cpu);
            }
        }
        idle.unwrap_or(least.1)
    }
}
