//! Where a task that becomes ready is queued (select_task_rq).

use super::domains::{BALANCE_FORK, Domain, WAKE_AFFINE, ring};
use super::load::Waker;
use super::{Fair, Rule};

impl<R: Rule> Fair<R> {
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.cpus.len()).collect()
    }

    pub(super) fn is_allowed(&self, id: usize, cpu: usize) -> bool {
        self.tasks[id].allowed.contains(anysched_core::CpuId(cpu as u16))
    }

    /// The CPUs where `id` may run.
    fn allowed(&self, id: usize) -> Vec<usize> {
        self.all().into_iter().filter(|&cpu| self.is_allowed(id, cpu)).collect()
    }

    /// The CPU of a new task, created on `this`.
    pub(super) fn place_new(&mut self, id: usize, this: usize) -> usize {
        let allowed = self.allowed(id);
        let cpu = if allowed.len() == 1 { allowed[0] } else { self.select_fork(id, this) };
        self.fall_back(id, cpu)
    }

    /// The CPU of a woken task, woken by what runs on `this`.
    pub(super) fn place_woken(&mut self, id: usize, this: usize, sync: bool) -> usize {
        let allowed = self.allowed(id);
        let cpu = if allowed.len() == 1 { allowed[0] } else { self.select_wake(id, this, sync) };
        self.fall_back(id, cpu)
    }

    /// `cpu` if `id` may run there, else the first where it may: of its last node, or of all
    /// (select_fallback_rq).
    pub(super) fn fall_back(&self, id: usize, cpu: usize) -> usize {
        if self.is_allowed(id, cpu) {
            return cpu;
        }
        let node = &self.domains.node[self.tasks[id].cpu];
        let near = node.iter().copied().find(|&cpu| self.is_allowed(id, cpu));
        near.or(self.allowed(id).first().copied()).unwrap_or(cpu)
    }

    /// `id` may run on other CPUs than before: the next of them that is not the last one chosen
    /// is where it goes, should it have to (cpumask_any_and_distribute).
    pub(super) fn distribute(&mut self, id: usize) {
        let allowed = self.allowed(id);
        let last = &mut self.cpus[self.tasks[id].cpu].distributed;
        if let Some(&next) = ring(&allowed, *last + 1).first() {
            (*last, self.tasks[id].bound_to) = (next, next);
        }
    }

    /// The widest domain that spreads new tasks, if no lower one does not; then down
    /// (select_task_rq_fair, sched_balance_find_dst_cpu).
    fn select_fork(&mut self, id: usize, this: usize) -> usize {
        let spreads = |domain: &&Domain| domain.flags & BALANCE_FORK != 0;
        let widest = self.domains.of[this].iter().take_while(spreads).count();
        let mut cpu = this;
        let mut below = widest;
        while let Some(index) = below.checked_sub(1) {
            below = index;
            let domain = self.domains.of[cpu][index].clone();
            if domain.flags & BALANCE_FORK == 0 {
                continue;
            }
            let Some(group) = self.idlest_group(&domain, id, cpu) else { continue };
            let new = self.idlest_cpu(group, id, cpu);
            if new == cpu {
                continue;
            }
            cpu = new;
            let narrower = |lower: &&Domain| lower.span.len() < domain.span.len();
            let chain: Vec<&Domain> = self.domains.of[cpu].iter().take_while(narrower).collect();
            below = chain
                .iter()
                .rposition(|lower| lower.flags & BALANCE_FORK != 0)
                .map_or(0, |at| at + 1);
        }
        cpu
    }

    /// sched_balance_find_dst_group_cpu
    fn idlest_cpu(&self, group: usize, id: usize, this: usize) -> usize {
        let span = &self.domains.groups[group].span;
        if span.len() == 1 {
            return span[0];
        }
        let (mut latest, mut idlest) = (0, None);
        let (mut least, mut least_loaded) = (u64::MAX, this);
        for &cpu in span.iter().filter(|&&cpu| self.is_allowed(id, cpu)) {
            let on = &self.cpus[cpu];
            if on.is_idle() {
                if on.idle_stamp > latest {
                    (latest, idlest) = (on.idle_stamp, Some(cpu));
                }
            } else if idlest.is_none() && on.avg.load < least {
                (least, least_loaded) = (on.avg.load, cpu);
            }
        }
        idlest.unwrap_or(least_loaded)
    }

    /// Of the task that runs on `cpu`, or of its idle task.
    fn waker(&mut self, cpu: usize) -> &mut Waker {
        match self.cpus[cpu].running {
            Some(running) => &mut self.tasks[running].waker,
            None => &mut self.cpus[cpu].idle_waker,
        }
    }

    /// record_wakee
    fn record_wakee(&mut self, this: usize, id: usize) {
        let (jiffies, second) = (self.jiffies(), self.hz());
        let waker = self.waker(this);
        if jiffies > waker.decayed + second {
            waker.flips /= 2;
            waker.decayed = jiffies;
        }
        if waker.last != Some(id) {
            waker.last = Some(id);
            waker.flips += 1;
        }
    }

    /// wake_wide
    pub(super) fn is_wide(&mut self, this: usize, id: usize) -> bool {
        let size = self.domains.llc_size(this);
        let (one, other) = (self.waker(this).flips, self.tasks[id].waker.flips);
        let (more, fewer) = (one.max(other), one.min(other));
        fewer >= size && more >= fewer * size
    }

    /// select_task_rq_fair of a wake-up
    fn select_wake(&mut self, id: usize, this: usize, sync: bool) -> usize {
        let prev = self.tasks[id].cpu;
        self.record_wakee(this, id);
        let wants_affine = !self.is_wide(this, id) && self.is_allowed(id, this);
        let mut target = prev;
        let affine =
            |domain: &&Domain| domain.flags & WAKE_AFFINE != 0 && domain.span.contains(&prev);
        let affine = self.domains.of[this].iter().find(affine).map(|domain| domain.imbalance_pct);
        if let (true, true, Some(pct)) = (wants_affine, this != prev, affine) {
            target = self.wake_affine(pct, id, this, prev, sync);
        }
        self.idle_sibling(id, prev, target)
    }

    fn wake_affine(&mut self, pct: u64, id: usize, this: usize, prev: usize, sync: bool) -> usize {
        // wake_affine_idle
        let [is_idle, prev_is_idle] = [this, prev].map(|cpu| self.cpus[cpu].is_idle());
        if is_idle && self.share_cache(this, prev) {
            return if prev_is_idle { prev } else { this };
        }
        if sync && self.nr_awake(this) == 1 {
            return this;
        }
        if prev_is_idle {
            return prev;
        }
        // wake_affine_weight
        let mut here = self.cpus[this].avg.load as i64;
        if sync {
            let current = self.cpus[this].running.map_or(0, |running| self.h_load(running)) as i64;
            if current > here {
                return this;
            }
            here -= current;
        }
        let load = self.h_load(id) as i64;
        let here = (here + load) * 100;
        let there = (self.cpus[prev].avg.load as i64 - load) * (100 + (pct as i64 - 100) / 2);
        // Capacities are all 1024.
        if here * 1024 < there * 1024 + i64::from(sync) { this } else { prev }
    }

    pub(super) fn share_cache(&self, one: usize, other: usize) -> bool {
        self.domains.llc_id(one) == self.domains.llc_id(other)
    }

    /// select_idle_sibling
    fn idle_sibling(&mut self, id: usize, prev: usize, target: usize) -> usize {
        if self.cpus[target].is_idle() {
            return target;
        }
        if prev != target && self.share_cache(prev, target) && self.cpus[prev].is_idle() {
            return prev;
        }
        let recent = std::mem::replace(&mut self.tasks[id].recent, prev);
        if recent != prev
            && recent != target
            && self.share_cache(recent, target)
            && self.cpus[recent].is_idle()
            && self.is_allowed(id, recent)
        {
            return recent;
        }
        let Some(llc) = self.domains.llc(target).map(|llc| llc.span.clone()) else {
            return target;
        };
        let mut has_idle_core = false;
        if self.domains.has_smt() {
            has_idle_core = self.domains.shared(target).is_some_and(|shared| shared.idle_cores);
            if !has_idle_core && self.share_cache(prev, target) {
                // select_idle_smt
                let mut siblings = self.domains.smt[prev].iter().copied();
                let is_good = |&cpu: &usize| {
                    cpu != prev
                        && self.is_allowed(id, cpu)
                        && llc.contains(&cpu)
                        && self.cpus[cpu].is_idle()
                };
                if let Some(cpu) = siblings.find(is_good) {
                    return cpu;
                }
            }
        }
        self.idle_cpu(id, &llc, has_idle_core, target).unwrap_or(target)
    }

    /// select_idle_cpu
    pub(super) fn idle_cpu(
        &mut self,
        id: usize,
        llc: &[usize],
        has_core: bool,
        target: usize,
    ) -> Option<usize> {
        let scan = self.domains.shared(target).map_or(u64::MAX, |shared| shared.scan);
        if scan == 0 {
            return None;
        }
        let mut left: Vec<usize> =
            llc.iter().copied().filter(|&cpu| self.is_allowed(id, cpu)).collect();
        if !has_core {
            let looked_at = ring(&left, target + 1).into_iter().take(scan as usize);
            return looked_at.into_iter().find(|&cpu| self.cpus[cpu].is_idle());
        }
        let mut found = None;
        for cpu in ring(&left.clone(), target + 1) {
            if !left.contains(&cpu) {
                continue;
            }
            if self.is_core_free(cpu, &left, &mut found) {
                return Some(cpu);
            }
            left.retain(|other| !self.domains.smt[cpu].contains(other));
        }
        if let Some(shared) = self.domains.shared(target) {
            shared.idle_cores = false;
        }
        found
    }

    /// Whether all siblings of `cpu` are idle; else, the first of them that is idle and in `cpus`
    /// is noted, unless another is (select_idle_core).
    fn is_core_free(&self, cpu: usize, cpus: &[usize], found: &mut Option<usize>) -> bool {
        let mut free = true;
        for &sibling in &self.domains.smt[cpu] {
            if !self.cpus[sibling].is_idle() {
                free = false;
                if found.is_none() {
                    continue;
                }
                break;
            }
            if found.is_none() && cpus.contains(&sibling) {
                *found = Some(sibling);
            }
        }
        free
    }
}
