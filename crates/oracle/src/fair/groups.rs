//! How busy groups of CPUs are, which one a new task goes to, and which one gives tasks away.

use super::balance::{Env, Migrate};
use super::domains::{Domain, NUMA, PREFER_SIBLING, SHARE_CPUCAPACITY, SHARE_LLC};
use super::{Fair, Rule};

/// From what needs least help to what needs most. Of the kernel's kinds those are left out that
/// need CPUs of different capacity or priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    #[default]
    HasSpare,
    FullyBusy,
    SmtBalance,
    Imbalanced,
    Overloaded,
}

/// Of a group.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub avg_load: u64,
    pub load: u64,
    pub capacity: u64,
    pub util: u64,
    pub runnable: u64,
    pub ready: u64,
    /// sum_h_nr_running
    pub movable: u64,
    pub idle_cpus: u32,
    pub weight: u64,
    pub kind: Kind,
}

/// Of a domain.
#[derive(Debug)]
struct Busiest {
    busiest: Option<usize>,
    local: usize,
    total_load: u64,
    total_capacity: u64,
    avg_load: u64,
    prefer_sibling: bool,
    stats: Stats,
    local_stats: Stats,
}

/// group_classify
fn classify(pct: u64, stats: &Stats, is_smt: bool, is_imbalanced: bool) -> Kind {
    let Stats { capacity, util, runnable, ready, weight, .. } = *stats;
    let waits = capacity * pct < runnable * 100;
    let is_overloaded = ready > weight && (capacity * 100 < util * pct || waits);
    let has_capacity = ready < weight || !waits && capacity * 100 > util * pct;
    match () {
        () if is_overloaded => Kind::Overloaded,
        () if is_imbalanced => Kind::Imbalanced,
        () if is_smt => Kind::SmtBalance,
        () if !has_capacity => Kind::FullyBusy,
        () => Kind::HasSpare,
    }
}

/// adjust_numa_imbalance
fn within_numa(imbalance: u64, ready: u64, allowed: u64) -> u64 {
    if ready <= allowed && imbalance <= 2 { 0 } else { imbalance }
}

impl<R: Rule> Fair<R> {
    /// The sums over `cpus` of `group`, of which `id` is none.
    fn sum_up(&self, group: usize, cpus: &[usize]) -> Stats {
        let weight = self.domains.groups[group].span.len() as u64;
        let mut stats = Stats { weight, capacity: 1024 * weight, ..Stats::default() };
        for &cpu in cpus {
            let on = &self.cpus[cpu];
            stats.load += on.avg.load;
            stats.util += self.util(cpu, false);
            stats.runnable += on.avg.runnable;
            stats.ready += on.nr_running();
            stats.movable += self.nr_movable(cpu);
            stats.idle_cpus += u32::from(on.is_idle());
        }
        stats
    }

    fn is_imbalanced(&self, group: usize) -> bool {
        self.domains.imbalance[self.domains.groups[group].shared]
    }

    /// update_sg_wakeup_stats, for a task that is new
    fn wakeup_stats(&self, domain: &Domain, group: usize, id: usize) -> Stats {
        let span = &self.domains.groups[group].span;
        let cpus: Vec<usize> =
            span.iter().copied().filter(|&cpu| self.is_allowed(id, cpu)).collect();
        let mut stats = self.sum_up(group, &cpus);
        stats.kind = classify(domain.imbalance_pct, &stats, false, self.is_imbalanced(group));
        if matches!(stats.kind, Kind::FullyBusy | Kind::Overloaded) {
            stats.avg_load = stats.load * 1024 / stats.capacity;
        }
        stats
    }

    /// The group of `domain` that the new task `id` should go to, unless it is that of `this`
    /// (sched_balance_find_dst_group).
    pub(super) fn idlest_group(&self, domain: &Domain, id: usize, this: usize) -> Option<usize> {
        let mut local: Option<(usize, Stats)> = None;
        let mut idlest: Option<usize> = None;
        let mut best =
            Stats { avg_load: u32::MAX.into(), kind: Kind::Overloaded, ..Stats::default() };
        for &group in &domain.groups {
            let span = &self.domains.groups[group].span;
            if !span.iter().any(|&cpu| self.is_allowed(id, cpu)) {
                continue;
            }
            let stats = self.wakeup_stats(domain, group, id);
            if span.contains(&this) {
                local = Some((group, stats));
            } else if is_idler(&stats, &best) {
                (idlest, best) = (Some(group), stats);
            }
        }
        let idlest = idlest?;
        let Some((local, stats)) = local else { return Some(idlest) };
        if stats.kind != best.kind {
            return (stats.kind > best.kind).then_some(idlest);
        }
        match stats.kind {
            Kind::Overloaded | Kind::FullyBusy => {
                let imbalance = 1024 * (domain.imbalance_pct - 100) / 100;
                let is_numa = domain.flags & NUMA != 0;
                let stays = is_numa && best.avg_load + imbalance >= stats.avg_load
                    || best.avg_load >= stats.avg_load + imbalance
                    || 100 * stats.avg_load <= domain.imbalance_pct * best.avg_load;
                (!stays).then_some(idlest)
            }
            Kind::Imbalanced | Kind::SmtBalance => None,
            Kind::HasSpare => {
                if domain.flags & NUMA != 0 {
                    let span = &self.domains.groups[local].span;
                    let allowed = span.iter().filter(|&&cpu| self.is_allowed(id, cpu)).count();
                    let allowed = domain.imb_numa_nr.min(allowed as u64);
                    let imbalance = stats.idle_cpus.abs_diff(best.idle_cpus).into();
                    if within_numa(imbalance, stats.ready + 1, allowed) == 0 {
                        return None;
                    }
                }
                (stats.idle_cpus < best.idle_cpus).then_some(idlest)
            }
        }
    }

    /// update_sg_lb_stats
    fn group_stats(&self, env: &Env, group: usize, is_local: bool) -> Stats {
        let members = &self.domains.groups[group];
        let cpus: Vec<usize> =
            members.span.iter().copied().filter(|cpu| env.cpus.contains(cpu)).collect();
        let mut stats = self.sum_up(group, &cpus);
        let is_smt = self.options.balances_cores
            && !is_local
            && env.idle.is_some()
            && members.flags & SHARE_CPUCAPACITY != 0
            && stats.movable > 1;
        stats.kind = classify(env.pct, &stats, is_smt, self.is_imbalanced(group));
        if stats.kind == Kind::Overloaded {
            stats.avg_load = stats.load * 1024 / stats.capacity;
        }
        stats
    }

    /// update_sd_pick_busiest
    fn is_busier(&self, group: usize, stats: &Stats, sds: &Busiest) -> bool {
        let best = &sds.stats;
        if stats.movable == 0 || stats.kind < best.kind {
            return false;
        }
        if stats.kind > best.kind {
            return true;
        }
        let is_smt = |group: usize| self.domains.groups[group].flags & SHARE_CPUCAPACITY != 0;
        let has_fewer_idle = stats.idle_cpus < best.idle_cpus
            || stats.idle_cpus == best.idle_cpus && stats.ready > best.ready;
        let by_load = stats.avg_load > best.avg_load
            || stats.avg_load == best.avg_load && !sds.busiest.is_some_and(is_smt);
        match stats.kind {
            Kind::Overloaded => stats.avg_load > best.avg_load,
            Kind::Imbalanced => false,
            Kind::FullyBusy if !self.options.balances_cores => stats.avg_load > best.avg_load,
            Kind::HasSpare if !self.options.balances_cores => has_fewer_idle,
            Kind::SmtBalance if stats.idle_cpus != 0 || best.idle_cpus != 0 => has_fewer_idle,
            Kind::SmtBalance | Kind::FullyBusy => by_load,
            Kind::HasSpare => match sds.busiest {
                Some(busiest) if is_smt(busiest) != is_smt(group) => {
                    !(is_smt(group) && stats.movable <= 1)
                }
                _ => has_fewer_idle,
            },
        }
    }

    /// update_sd_lb_stats
    fn domain_stats(&mut self, env: &Env) -> Busiest {
        let domain = self.domains.of[env.owner][env.index].clone();
        let worst = Stats { idle_cpus: u32::MAX, ..Stats::default() };
        let mut sds = Busiest {
            busiest: None,
            local: domain.groups[0],
            total_load: 0,
            total_capacity: 0,
            avg_load: 0,
            prefer_sibling: false,
            stats: worst,
            local_stats: Stats::default(),
        };
        let mut util = 0;
        for &group in &domain.groups {
            let is_local = self.domains.groups[group].span.contains(&env.dst);
            let stats = self.group_stats(env, group, is_local);
            sds.total_load += stats.load;
            sds.total_capacity += stats.capacity;
            util += stats.util;
            if is_local {
                (sds.local, sds.local_stats) = (group, stats);
            } else if self.is_busier(group, &stats, &sds) {
                (sds.busiest, sds.stats) = (Some(group), stats);
            }
        }
        if !self.options.balances_cores {
            // Of the domain below this one.
            let below = env.index.checked_sub(1).map(|index| &self.domains.of[env.owner][index]);
            sds.prefer_sibling = below.is_some_and(|below| below.flags & PREFER_SIBLING != 0);
        } else if let Some(busiest) = sds.busiest {
            sds.prefer_sibling = self.domains.groups[busiest].flags & PREFER_SIBLING != 0;
        }
        if env.index + 1 == self.domains.of[env.owner].len() {
            let mut seen = domain.span.iter().filter(|cpu| env.cpus.contains(cpu));
            self.overloaded = seen.any(|&cpu| self.cpus[cpu].nr_running() > 1);
        }
        self.limit_scan(env, &domain, util);
        sds
    }

    /// How many CPUs a search looks at, by their utilization (update_idle_cpu_scan).
    fn limit_scan(&mut self, env: &Env, domain: &Domain, util: u64) {
        let size = self.domains.llc_size(env.dst);
        if env.is_newly_idle() || domain.span.len() as u64 != size {
            return;
        }
        let x = util / size;
        let busy = x * x * env.pct * env.pct / (10_000 * 1024);
        let scan = (1024 - busy.min(1024)) * size / 1024;
        if let Some(shared) = self.domains.shared(env.dst) {
            shared.scan = scan;
        }
    }

    /// sibling_imbalance
    fn sibling_imbalance(&self, env: &Env, sds: &Busiest) -> u64 {
        let tasks = sds.stats.ready.saturating_sub(sds.local_stats.ready);
        if !self.options.balances_cores {
            return tasks;
        }
        let (Some(busiest), true) = (sds.busiest, env.idle.is_some()) else { return 0 };
        if sds.stats.ready == 0 {
            return 0;
        }
        let there = self.domains.groups[busiest].cores;
        let here = self.domains.groups[sds.local].cores;
        if there == here {
            return tasks;
        }
        let difference = (here * sds.stats.ready).saturating_sub(there * sds.local_stats.ready);
        let imbalance = (2 * difference + here + there) / (here + there);
        if imbalance <= 1 && sds.local_stats.ready == 0 && sds.stats.ready > 1 {
            return 2;
        }
        imbalance
    }

    /// What and how much is to be moved (calculate_imbalance).
    fn imbalance(&self, env: &Env, sds: &mut Busiest) -> (Migrate, i64) {
        let (local, busiest) = (&mut sds.local_stats, &sds.stats);
        if matches!(busiest.kind, Kind::SmtBalance | Kind::Imbalanced) {
            return (Migrate::Tasks, 1);
        }
        if local.kind == Kind::HasSpare {
            if busiest.kind > Kind::FullyBusy && env.flags & SHARE_LLC == 0 {
                let spare = local.capacity.max(local.util) - local.util;
                if env.idle.is_some() && spare == 0 {
                    return (Migrate::Tasks, 1);
                }
                return (Migrate::Util, spare as i64);
            }
            let (weight, idle) = (busiest.weight, (local.idle_cpus, busiest.idle_cpus));
            let (ready, allowed) = (local.ready + 1, env.imb_numa_nr);
            let mut imbalance = if weight == 1 || sds.prefer_sibling {
                self.sibling_imbalance(env, sds)
            } else {
                // The difference of unsigned numbers is never negative.
                idle.0.wrapping_sub(idle.1).into()
            };
            if env.flags & NUMA != 0 {
                imbalance = within_numa(imbalance, ready, allowed);
            }
            return (Migrate::Tasks, imbalance as i64 >> 1);
        }
        if local.kind < Kind::Overloaded {
            local.avg_load = local.load * 1024 / local.capacity;
            if local.avg_load >= busiest.avg_load {
                return (Migrate::Load, 0);
            }
            sds.avg_load = sds.total_load * 1024 / sds.total_capacity;
            if local.avg_load >= sds.avg_load {
                return (Migrate::Load, 0);
            }
        }
        let there = busiest.avg_load.wrapping_sub(sds.avg_load).wrapping_mul(busiest.capacity);
        let here = sds.avg_load.wrapping_sub(local.avg_load).wrapping_mul(local.capacity);
        (Migrate::Load, (there.min(here) / 1024) as i64)
    }

    /// The group that gives tasks away, if any; what is to be moved is noted in `env`
    /// (sched_balance_find_src_group).
    pub(super) fn busiest_group(&mut self, env: &mut Env) -> Option<usize> {
        let mut sds = self.domain_stats(env);
        env.imbalance = 0;
        let group = sds.busiest?;
        if sds.stats.kind != Kind::Imbalanced && !self.is_unbalanced(env, &mut sds) {
            return None;
        }
        (env.migrate, env.imbalance) = self.imbalance(env, &mut sds);
        (env.imbalance != 0).then_some(group)
    }

    fn is_unbalanced(&self, env: &Env, sds: &mut Busiest) -> bool {
        let (local, busiest) = (&sds.local_stats, &sds.stats);
        if local.kind > busiest.kind {
            return false;
        }
        if local.kind == Kind::Overloaded {
            sds.avg_load = sds.total_load * 1024 / sds.total_capacity;
            if local.avg_load >= busiest.avg_load
                || local.avg_load >= sds.avg_load
                || 100 * busiest.avg_load <= env.pct * local.avg_load
            {
                return false;
            }
        }
        let is_spread = sds.prefer_sibling
            && local.kind == Kind::HasSpare
            && self.sibling_imbalance(env, sds) > 1;
        if is_spread || busiest.kind == Kind::Overloaded {
            return true;
        }
        if env.idle.is_none() {
            return false;
        }
        let is_smt = |group: usize| self.domains.groups[group].flags & SHARE_CPUCAPACITY != 0;
        let differs = sds.busiest.is_some_and(|busiest| is_smt(busiest) != is_smt(sds.local));
        if busiest.kind == Kind::SmtBalance && differs {
            return true;
        }
        let is_even = busiest.weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1;
        !is_even && busiest.movable != 1
    }
}

/// update_pick_idlest
fn is_idler(stats: &Stats, best: &Stats) -> bool {
    if stats.kind != best.kind {
        return stats.kind < best.kind;
    }
    match stats.kind {
        Kind::Overloaded | Kind::FullyBusy => stats.avg_load < best.avg_load,
        Kind::Imbalanced | Kind::SmtBalance => false,
        Kind::HasSpare => {
            stats.idle_cpus > best.idle_cpus
                || stats.idle_cpus == best.idle_cpus && stats.util < best.util
        }
    }
}
