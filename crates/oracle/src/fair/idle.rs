//! When CPUs balance: at ticks, when they find nothing to run, and one idle CPU for all others that
//! have no tick.

use super::balance::Idle;
use super::domains::{BALANCE_NEWIDLE, ring};
use super::{Fair, Rule};

/// What all CPUs share (struct nohz). Times are in jiffies.
#[derive(Clone, Debug, Default)]
pub struct Nohz {
    has_blocked: bool,
    needs_update: bool,
    pub(super) next_balance: u64,
    pub(super) next_blocked: u64,
}

/// What an idle CPU is asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Ask {
    balance: bool,
    stats: bool,
    next: bool,
}

impl<R: Rule> Fair<R> {
    /// get_sd_balance_interval, in jiffies
    fn interval(&self, cpu: usize, index: usize, busy: bool) -> u64 {
        let ms = self.domains.of[cpu][index].interval * if busy { 16 } else { 1 };
        let interval = self.ms_to_jiffies(ms) - u64::from(busy);
        interval.clamp(1, self.hz() * self.cpus.len() as u64 / 10)
    }

    /// update_next_balance
    fn next_of(&self, cpu: usize, index: usize) -> u64 {
        self.domains.of[cpu][index].last_balance + self.interval(cpu, index, false)
    }

    /// update_newidle_cost: whether the cost has decayed.
    fn note_cost(&mut self, cpu: usize, index: usize, cost: u64) -> bool {
        let (now, second) = (self.jiffies(), self.hz());
        let domain = &mut self.domains.of[cpu][index];
        if cost > domain.max_newidle_cost {
            (domain.max_newidle_cost, domain.last_decay) = (cost, now);
        } else if now > domain.last_decay + second {
            domain.max_newidle_cost = domain.max_newidle_cost * 253 / 256;
            domain.last_decay = now;
            return true;
        }
        false
    }

    /// update_newidle_stats
    fn note_newidle(&mut self, cpu: usize, index: usize, success: u64) {
        let domain = &mut self.domains.of[cpu][index];
        domain.newidle_call += 1;
        domain.newidle_success += success;
        if domain.newidle_call >= 1024 {
            let mut ratio = domain.newidle_success;
            if self.options.ni_rate {
                ratio = (ratio + ((self.now - domain.newidle_stamp) >> 22)).min(1024);
            }
            domain.newidle_ratio = ratio;
            domain.newidle_stamp = self.now;
            domain.newidle_call /= 2;
            domain.newidle_success /= 2;
        }
    }

    /// sched_balance_domains: `cpu` is `idle`, or busy.
    fn balance_domains(&mut self, cpu: usize, mut idle: bool) {
        let now = self.jiffies();
        let mut goes_on = true;
        let mut has_decayed = false;
        let (mut next, mut is_earlier) = (now + 60 * self.hz(), false);
        let mut cost = 0;
        for index in 0..self.domains.of[cpu].len() {
            has_decayed = self.note_cost(cpu, index, 0);
            cost += self.domains.of[cpu][index].max_newidle_cost;
            if !goes_on {
                if has_decayed {
                    continue;
                }
                break;
            }
            let mut interval = self.interval(cpu, index, !idle);
            if now >= self.domains.of[cpu][index].last_balance + interval {
                let moved;
                (moved, goes_on) = self.balance(cpu, index, idle.then_some(Idle::Idle));
                if moved > 0 {
                    idle = self.cpus[cpu].is_idle();
                }
                self.domains.of[cpu][index].last_balance = now;
                interval = self.interval(cpu, index, !idle);
            }
            let due = self.domains.of[cpu][index].last_balance + interval;
            if due < next {
                (next, is_earlier) = (due, true);
            }
        }
        if has_decayed {
            self.cpus[cpu].max_idle_balance_cost = cost.max(self.options.migration_cost.0);
        }
        if is_earlier {
            self.cpus[cpu].next_balance = next;
        }
    }

    /// sched_balance_newidle: whether there is something to run, and whether the loads of idle CPUs
    /// are to be updated.
    pub(super) fn newidle(&mut self, cpu: usize) -> (bool, bool) {
        let mut next = self.jiffies() + self.hz();
        let mut has_pulled = false;
        self.cpus[cpu].idle_stamp = self.now;
        let avg_idle = self.cpus[cpu].avg_idle;
        let lowest = self.domains.of[cpu].first().map(|domain| domain.max_newidle_cost);
        if lowest.is_some_and(|cost| !self.overloaded || avg_idle < cost) {
            next = next.min(self.next_of(cpu, 0));
        } else if lowest.is_some() {
            self.update_blocked(cpu);
            let mut cost = 0;
            for index in 0..self.domains.of[cpu].len() {
                next = next.min(self.next_of(cpu, index));
                let domain = &self.domains.of[cpu][index];
                if avg_idle < cost + domain.max_newidle_cost {
                    break;
                }
                if domain.flags & BALANCE_NEWIDLE == 0 {
                    continue;
                }
                let mut weight = 1;
                let (ratio, size) = (domain.newidle_ratio, domain.span.len() as u64);
                if self.options.ni_random && !(self.options.ni_rate && ratio >= 1024) {
                    let dice = self.random.below(1024);
                    if dice > ratio + 1 {
                        self.note_newidle(cpu, index, 0);
                        continue;
                    }
                    let rate = ratio + 1;
                    weight = (1024 + rate / 2) / rate;
                }
                let passes = self.options.newidle_cost.0 * size;
                let (moved, goes_on) = self.balance(cpu, index, Some(Idle::Newly));
                has_pulled = moved > 0;
                cost += passes;
                self.note_newidle(cpu, index, if has_pulled { weight } else { 0 });
                self.note_cost(cpu, index, passes);
                if has_pulled || !goes_on {
                    break;
                }
            }
            let on = &mut self.cpus[cpu];
            on.max_idle_balance_cost = on.max_idle_balance_cost.max(cost);
            has_pulled |= !on.tasks.is_empty();
            self.pulls += u64::from(has_pulled);
        }
        let on = &mut self.cpus[cpu];
        on.next_balance = on.next_balance.min(next);
        if has_pulled {
            on.idle_stamp = 0;
        }
        // nohz_newidle_balance
        let has_time = on.avg_idle >= self.options.migration_cost.0;
        let is_due = self.nohz.has_blocked && self.jiffies() >= self.nohz.next_blocked;
        (has_pulled, !has_pulled && has_time && is_due)
    }

    /// `cpu` has found nothing to run.
    pub(super) fn go_idle(&mut self, cpu: usize, updates: bool) {
        if !std::mem::replace(&mut self.cpus[cpu].idle, true) && self.domains.has_smt() {
            self.note_idle_core(cpu);
        }
        if updates {
            self.balance_idle(cpu, Ask { stats: true, ..Ask::default() });
        }
        // nohz_balance_enter_idle
        self.cpus[cpu].has_blocked_load = true;
        if self.domains.of[cpu].is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.cpus[cpu].tickless, true) {
            if let Some(shared) = self.domains.shared(cpu) {
                shared.busy -= 1;
            }
            self.nohz.needs_update = true;
        }
        self.nohz.has_blocked = true;
    }

    /// __update_idle_core
    fn note_idle_core(&mut self, cpu: usize) {
        let mut others = self.domains.smt[cpu].iter().filter(|&&other| other != cpu);
        let is_free = others.all(|&other| self.cpus[other].is_idle());
        if let Some(shared) = self.domains.shared(cpu).filter(|_| is_free) {
            shared.idle_cores = true;
        }
    }

    /// sched_balance_trigger
    pub(super) fn trigger(&mut self, cpu: usize) {
        if self.domains.of[cpu].is_empty() {
            return;
        }
        if self.jiffies() >= self.cpus[cpu].next_balance {
            self.update_blocked(cpu);
            self.balance_domains(cpu, false);
        }
        // nohz_balancer_kick
        if std::mem::take(&mut self.cpus[cpu].tickless)
            && let Some(shared) = self.domains.shared(cpu)
        {
            shared.busy += 1;
        }
        if !self.cpus.iter().any(|on| on.tickless) {
            return;
        }
        let now = self.jiffies();
        let mut ask = Ask {
            stats: self.nohz.has_blocked && now > self.nohz.next_blocked,
            next: self.nohz.needs_update,
            balance: false,
        };
        let is_shared = self.domains.shared(cpu).is_some_and(|shared| shared.busy > 1);
        if now >= self.nohz.next_balance && (self.cpus[cpu].nr_running() >= 2 || is_shared) {
            (ask.stats, ask.balance) = (true, true);
        }
        if !(ask.stats || ask.next) {
            return;
        }
        // kick_ilb
        if ask.balance {
            self.nohz.next_balance = now + 1;
        }
        let is_free = |&other: &usize| {
            other != cpu && self.cpus[other].tickless && self.cpus[other].is_idle()
        };
        if let Some(helper) = self.all().into_iter().find(is_free) {
            self.balance_idle(helper, ask);
        }
    }

    /// _nohz_idle_balance, on `this`
    fn balance_idle(&mut self, this: usize, ask: Ask) {
        let now = self.jiffies();
        let (mut next, mut is_earlier) = (now + 60 * self.hz(), false);
        let mut has_blocked = false;
        self.nohz.has_blocked &= !ask.stats;
        self.nohz.needs_update &= !ask.next;
        for cpu in ring(&self.all(), this + 1) {
            if !self.cpus[cpu].tickless || !self.cpus[cpu].is_idle() {
                continue;
            }
            if !self.cpus[this].is_idle() {
                self.nohz.has_blocked |= ask.stats || has_blocked;
                self.nohz.needs_update |= ask.next;
                return;
            }
            if ask.stats {
                has_blocked |= self.update_idle_load(cpu);
            }
            if now >= self.cpus[cpu].next_balance && ask.balance {
                self.balance_domains(cpu, true);
            }
            if self.cpus[cpu].next_balance < next {
                (next, is_earlier) = (self.cpus[cpu].next_balance, true);
            }
        }
        if is_earlier {
            self.nohz.next_balance = next;
        }
        if ask.stats {
            self.nohz.next_blocked = now + self.ms_to_jiffies(32);
        }
        self.nohz.has_blocked |= has_blocked;
    }

    /// update_nohz_stats
    fn update_idle_load(&mut self, cpu: usize) -> bool {
        if !self.cpus[cpu].has_blocked_load {
            return false;
        }
        if self.jiffies() <= self.cpus[cpu].last_blocked_update {
            return true;
        }
        self.update_blocked(cpu);
        self.cpus[cpu].has_blocked_load
    }
}
