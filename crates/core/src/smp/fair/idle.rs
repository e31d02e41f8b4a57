//! When CPUs balance: as they run out of work, at their ticks, and without ticks for as long as
//! they are idle.

use super::super::Smp;
use super::super::rule::Rule;
use super::balance::Idle;
use super::domains::Domains;
use super::{Fair, MOST_COST, Success, Turn, migration_cost};
use crate::Cx;
use crate::ids::{CpuId, CpuMask};
use crate::time::Time;

/// An interval of a busy CPU is so many times longer.
const BUSY_FACTOR: u64 = 16;

/// What an idle CPU is to do for all that have no ticks.
#[derive(Clone, Copy, Debug)]
struct Help {
    /// Balance them.
    balances: bool,
    /// Let their averages decay.
    updates: bool,
    /// Find out when the next of them is due.
    has_news: bool,
}

impl Domains {
    /// How a CPU begins to balance a domain.
    pub(super) fn turn(&self, domain: u16) -> Turn {
        let interval = self[domain].cpus.len() as u64;
        let success = Success { tries: 512, hits: 256, rate: 512, since: 0 };
        Turn { last: 0, interval, failures: 0, newidle: 0, newidle_set: 0, success }
    }
}

impl Success {
    /// One more try (`update_newidle_stats`).
    fn note(&mut self, hits: u32, by_rate: bool, now: Time) {
        self.tries += 1;
        self.hits += hits;
        if self.tries < 1024 {
            return;
        }
        self.rate = self.hits;
        if by_rate {
            // 1024 if it took 4 s to run out of work 512 times.
            let seldom = (now.0 - self.since) >> 22;
            self.rate = (seldom + u64::from(self.hits)).min(1024) as u32;
        }
        (self.tries, self.hits, self.since) = (self.tries / 2, self.hits / 2, now.0);
    }
}

impl Fair {
    /// How long `turn` lasts, in jiffies.
    fn interval(&self, turn: &Turn, is_busy: bool) -> u64 {
        let ms = if is_busy { turn.interval * BUSY_FACTOR } else { turn.interval };
        let jiffies = (ms * 1_000_000).div_ceil(self.jiffy.0);
        let longest = (self.hz * self.queues.len() as u64 / 10).max(1);
        // Not the multiple of a narrower domain's.
        (jiffies - u64::from(is_busy)).clamp(1, longest)
    }

    /// The cost of newidle balancing falls by 1 % a second. Returns whether it has.
    fn forget_cost(&mut self, cpu: CpuId, depth: usize, jiffies: u64) -> bool {
        let hz = self.hz;
        let turn = &mut self.queues[cpu.index()].turns[depth];
        let falls = jiffies > turn.newidle_set + hz;
        if falls {
            turn.newidle = turn.newidle * 253 / 256;
            turn.newidle_set = jiffies;
        }
        falls
    }

    /// `cpu` has ticks, or has none, as far as others know.
    pub(super) fn set_tickless(&mut self, cpu: CpuId, is_tickless: bool) {
        let queue = &mut self.queues[cpu.index()];
        if queue.is_tickless == is_tickless {
            return;
        }
        queue.is_tickless = is_tickless;
        let cache = self.domains.cache[cpu.index()];
        if let Some(cache) = cache.map(|domain| &mut self.caches[usize::from(domain)]) {
            cache.busy = if is_tickless { cache.busy - 1 } else { cache.busy + 1 };
        }
        if is_tickless {
            self.nohz.cpus.insert(cpu);
            self.nohz.has_news = true;
        } else {
            self.nohz.cpus.remove(cpu);
        }
    }
}

impl Smp<dyn Rule> {
    /// `cpu` has run out of work: pulls. Returns whether it got a task (`sched_balance_newidle`).
    pub(in super::super) fn balance_newly_idle(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> bool {
        let jiffies = self.fair.jiffies(cx.now);
        self.fair.queues[cpu.index()].idle_since = cx.now.0.max(1);
        let depths = self.fair.queues[cpu.index()].turns.len();
        let mut next = jiffies + self.fair.hz;
        let mut moved = 0;
        let expected = |smp: &Self, depth: usize| smp.fair.queues[cpu.index()].turns[depth].newidle;
        let mean_idle = self.fair.queues[cpu.index()].mean_idle;
        if !self.fair.is_overloaded || mean_idle < expected(self, 0) {
            next = next.min(self.next_turn(cpu, 0, false));
        } else {
            self.update_blocked(cx, cpu);
            let mut spent = 0;
            for depth in 0..depths {
                next = next.min(self.next_turn(cpu, depth, false));
                if mean_idle < spent + expected(self, depth) {
                    break;
                }
                let Some(weight) = self.chance(cpu, depth, cx.now) else { continue };
                let passed = self.pass(cx, cpu, depth, Idle::Newly);
                moved += passed.moved;
                let hits = if passed.moved > 0 { weight } else { 0 };
                self.note_try(cpu, depth, hits, cx.now);
                let domain = self.fair.domains.around[cpu.index()][depth];
                let size = self.fair.domains[domain].cpus.len() as u64;
                let cost = self.params.newidle_cost.scaled(size, 1).0.min(MOST_COST);
                spent += cost;
                self.spend(cpu, depth, cost, jiffies);
                if moved > 0 || !passed.goes_on {
                    break;
                }
            }
            let queue = &mut self.fair.queues[cpu.index()];
            queue.most_newidle = queue.most_newidle.max(spent);
        }
        let queue = &mut self.fair.queues[cpu.index()];
        queue.next_balance = queue.next_balance.min(next);
        if moved > 0 {
            queue.idle_since = 0;
        }
        queue.updates_idle = moved == 0
            && queue.mean_idle >= migration_cost(&self.params)
            && self.fair.nohz.has_blocked
            && jiffies >= self.fair.nohz.next_blocked;
        moved > 0
    }

    /// Whether `cpu`, which has run out of work, balances the domain: how many times it would have
    /// had to do so for it to help once, or `None`.
    fn chance(&mut self, cpu: CpuId, depth: usize, now: Time) -> Option<u32> {
        let balancing = self.fair.balancing;
        if !self.fair.ni_random.unwrap_or(balancing.random) {
            return Some(1);
        }
        let rate = self.fair.queues[cpu.index()].turns[depth].success.rate;
        if balancing.by_rate && rate >= 1024 {
            return Some(1);
        }
        let weight = rate + 1;
        if self.fair.chances.below(1024) > u64::from(weight) {
            self.note_try(cpu, depth, 0, now);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    /// Running out of work, `cpu` found something in the domain, or nothing (`hits` is 0).
    fn note_try(&mut self, cpu: CpuId, depth: usize, hits: u32, now: Time) {
        let by_rate = self.fair.balancing.by_rate;
        self.fair.queues[cpu.index()].turns[depth].success.note(hits, by_rate, now);
    }

    /// Balancing a domain on running out of work has taken `cost`.
    fn spend(&mut self, cpu: CpuId, depth: usize, cost: u64, jiffies: u64) {
        let turn = &mut self.fair.queues[cpu.index()].turns[depth];
        if cost > turn.newidle {
            (turn.newidle, turn.newidle_set) = (cost, jiffies);
        } else {
            self.fair.forget_cost(cpu, depth, jiffies);
        }
    }

    /// When `cpu` balances that domain next, in jiffies.
    fn next_turn(&self, cpu: CpuId, depth: usize, is_busy: bool) -> u64 {
        let turn = &self.fair.queues[cpu.index()].turns[depth];
        turn.last + self.fair.interval(turn, is_busy)
    }

    /// `cpu` has found nothing to run.
    pub(in super::super) fn goes_idle(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let ran = self.fair.runs_idle(cpu);
        self.fair.queues[cpu.index()].buries();
        if ran
            && self.fair.domains.has_smt
            && let Some(cache) = self.fair.domains.cache[cpu.index()]
            && !self.fair.caches[usize::from(cache)].has_idle_core
            && self.is_core_of_idle(cpu, Some(cpu))
        {
            self.fair.caches[usize::from(cache)].has_idle_core = true;
        }
        if core::mem::take(&mut self.fair.queues[cpu.index()].updates_idle) {
            let help = Help { balances: false, updates: true, has_news: false };
            self.balance_idle(cx, cpu, help);
        }
        self.fair.queues[cpu.index()].has_blocked = true;
        self.fair.set_tickless(cpu, true);
        self.fair.nohz.has_blocked = true;
        self.fair.sums.note(cpu);
    }

    /// A task has woken up on `cpu`, which may have been idle.
    pub(in super::super) fn wakes_on(&mut self, cx: &Cx<'_>, cpu: CpuId) {
        let queue = &mut self.fair.queues[cpu.index()];
        if queue.idle_since == 0 {
            return;
        }
        let was_idle = cx.now.0.saturating_sub(queue.idle_since) as i64;
        let mean = queue.mean_idle as i64;
        let mean = mean + (was_idle - mean) / 8;
        queue.mean_idle = (mean as u64).min(2 * queue.most_newidle);
        queue.idle_since = 0;
    }

    /// The tick of `cpu`, which runs a task.
    pub(in super::super) fn balance_at_tick(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let jiffies = self.fair.jiffies(cx.now);
        if jiffies >= self.fair.queues[cpu.index()].next_balance {
            self.update_blocked(cx, cpu);
            self.balance_domains(cx, cpu, Idle::Busy);
        }
        self.kick_balancer(cx, cpu, jiffies);
    }

    /// Averages decay.
    fn update_blocked(&mut self, cx: &Cx<'_>, cpu: CpuId) -> bool {
        self.fair.queues[cpu.index()].blocked_updated = self.fair.jiffies(cx.now);
        self.fair.advance(cpu, cx.now);
        let queue = &mut self.fair.queues[cpu.index()];
        queue.has_blocked = !queue.average.is_over();
        queue.has_blocked
    }

    /// Balances the domains around `cpu` whose time has come (`sched_balance_domains`).
    fn balance_domains(&mut self, cx: &mut Cx<'_>, cpu: CpuId, idle: Idle) {
        let jiffies = self.fair.jiffies(cx.now);
        let (mut idle, mut is_busy) = (idle, idle != Idle::Long);
        let mut next = jiffies + 60 * self.fair.hz;
        let (mut goes_on, mut falls, mut cost) = (true, false, 0);
        for depth in 0..self.fair.queues[cpu.index()].turns.len() {
            falls = self.fair.forget_cost(cpu, depth, jiffies);
            cost += self.fair.queues[cpu.index()].turns[depth].newidle;
            if !goes_on {
                if falls {
                    continue;
                }
                break;
            }
            if jiffies >= self.next_turn(cpu, depth, is_busy) {
                let passed = self.pass(cx, cpu, depth, idle);
                goes_on = passed.goes_on;
                if passed.moved > 0 {
                    is_busy = !self.is_idle(cpu);
                    idle = if is_busy { Idle::Busy } else { Idle::Long };
                }
                self.fair.queues[cpu.index()].turns[depth].last = jiffies;
            }
            next = next.min(self.next_turn(cpu, depth, is_busy));
        }
        let queue = &mut self.fair.queues[cpu.index()];
        if falls {
            queue.most_newidle = cost.max(migration_cost(&self.params));
        }
        queue.next_balance = next;
    }

    /// A busy CPU sees at its tick whether CPUs without ticks have to balance, and has the first of
    /// them do so for all (`nohz_balancer_kick`).
    fn kick_balancer(&mut self, cx: &mut Cx<'_>, cpu: CpuId, jiffies: u64) {
        self.fair.set_tickless(cpu, false);
        let nohz = &self.fair.nohz;
        if nohz.cpus.is_empty() {
            return;
        }
        let cache = self.fair.domains.cache[cpu.index()];
        let busy = cache.map_or(0, |domain| self.fair.caches[usize::from(domain)].busy);
        let balances = jiffies >= nohz.next_balance && (self.tasks_of(cpu) >= 2 || busy > 1);
        let updates = balances || nohz.has_blocked && jiffies > nohz.next_blocked;
        let help = Help { balances, updates, has_news: nohz.has_news };
        if !updates && !help.has_news {
            return;
        }
        if balances {
            self.fair.nohz.next_balance = jiffies + 1;
        }
        let is_other = |&other: &CpuId| other != cpu;
        let first = self.fair.nohz.cpus.iter_among(&self.fair.idle).find(is_other);
        if let Some(first) = first {
            self.balance_idle(cx, first, help);
        }
    }

    /// `first` balances for all CPUs without ticks, beginning with the one after it
    /// (`_nohz_idle_balance`).
    fn balance_idle(&mut self, cx: &mut Cx<'_>, first: CpuId, help: Help) {
        let Help { balances, updates, has_news } = help;
        let jiffies = self.fair.jiffies(cx.now);
        let mut has_blocked = false;
        if updates {
            self.fair.nohz.has_blocked = false;
        }
        if has_news {
            self.fair.nohz.has_news = false;
        }
        let latest = jiffies + 60 * self.fair.hz;
        let mut next = latest;
        let cpus: CpuMask = self.fair.nohz.cpus.clone();
        let after = cpus.iter().filter(|&cpu| cpu > first);
        let before = cpus.iter().filter(|&cpu| cpu <= first);
        for cpu in after.chain(before) {
            if !self.is_idle(cpu) {
                continue;
            }
            if !self.is_idle(first) {
                self.fair.nohz.has_blocked |= updates;
                self.fair.nohz.has_news |= has_news;
                return;
            }
            if updates {
                has_blocked |= self.update_blocked_of_idle(cx, cpu, jiffies);
            }
            if balances && jiffies >= self.fair.queues[cpu.index()].next_balance {
                self.balance_domains(cx, cpu, Idle::Long);
            }
            next = next.min(self.fair.queues[cpu.index()].next_balance);
        }
        let nohz = &mut self.fair.nohz;
        if next < latest {
            nohz.next_balance = next;
        }
        if updates {
            nohz.next_blocked = jiffies + (32_000_000_u64).div_ceil(self.fair.jiffy.0);
        }
        nohz.has_blocked |= has_blocked;
    }

    fn update_blocked_of_idle(&mut self, cx: &Cx<'_>, cpu: CpuId, jiffies: u64) -> bool {
        let queue = &self.fair.queues[cpu.index()];
        if !queue.has_blocked {
            return false;
        }
        jiffies <= queue.blocked_updated || self.update_blocked(cx, cpu)
    }
}
