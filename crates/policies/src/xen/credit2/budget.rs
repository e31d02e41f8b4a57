//! Domains: weights, and the budgets that keep them below their caps.

use alloc::vec::Vec;

use super::{Credit2, MIN_TIMER, Place, Task};
use anysched_core::ids::{DomainId, TaskId};
use anysched_core::params::DEFAULT_DOMAIN_WEIGHT;
use anysched_core::queue::{Links, List};
use anysched_core::time::{Span, Time};
use anysched_core::{Cx, canonical};

/// A domain, whose vCPUs share a weight and a cap.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    weight: u32,
    vcpus: u32,
    cap: Option<Cap>,
    /// Ready vCPUs that wait for budget, the latest arrival first.
    parked: List,
}

#[derive(Clone, Debug)]
struct Cap {
    /// CPU time in each period.
    total: i64,
    /// What is left to take; below 0, a debt.
    pool: i64,
    next: Time,
}

impl Credit2 {
    /// The domain, which is made when it first occurs.
    fn domain(&mut self, domain: DomainId) -> &mut Domain {
        let index = usize::from(domain.0);
        if self.domains.len() <= index {
            let parked = List::default();
            let new = Domain { weight: DEFAULT_DOMAIN_WEIGHT, vcpus: 0, cap: None, parked };
            self.domains.resize(index + 1, new);
        }
        &mut self.domains[index]
    }

    fn domain_of(&mut self, task: TaskId) -> &mut Domain {
        let domain = self.task(task).domain;
        &mut self.domains[usize::from(domain.0)]
    }

    /// Adds `task`, which is in no runqueue, to its domain.
    pub(super) fn enter_domain(&mut self, task: TaskId) {
        let domain = self.domain(self.tasks[task].domain);
        domain.vcpus += 1;
        let (weight, budget) = (domain.weight, domain.cap.as_ref().map(|_| 0));
        let known = &mut self.tasks[task];
        (known.weight, known.budget) = (weight, budget);
    }

    pub(super) fn leave_domain(&mut self, task: TaskId) {
        self.domain_of(task).vcpus -= 1;
    }

    /// Takes from its domain what `task` needs to run. Returns whether it may; otherwise it is
    /// parked.
    pub(super) fn has_budget(&mut self, task: TaskId, now: Time) -> bool {
        let budget = self.task(task).budget;
        let Some(debt) = budget.filter(|&budget| budget <= 0) else { return true };
        let domain = self.domain_of(task);
        let Some(cap) = &mut domain.cap else { return true };
        cap.pool = cap.pool.saturating_add(debt);
        let quota = (cap.total / i64::from(domain.vcpus.max(1))).max(MIN_TIMER.0 as i64);
        let taken = quota.min(cap.pool).max(0);
        cap.pool -= taken;
        self.tasks[task].budget = Some(taken);
        if taken == 0 {
            self.park(task, now);
        }
        taken > 0
    }

    fn park(&mut self, task: TaskId, now: Time) {
        if self.task(task).place == Place::Waiting {
            self.remove(task);
            self.change_load(task, -1, now);
        }
        let known = &mut self.tasks[task];
        known.place = Place::Parked;
        let parked = &mut self.domains[usize::from(known.domain.0)].parked;
        self.parked.push_front(parked, task);
    }

    /// `task`, which is parked, is no longer ready.
    pub(super) fn unlist(&mut self, task: TaskId) {
        let domain = self.tasks[task].domain;
        self.parked.remove(&mut self.domains[usize::from(domain.0)].parked, task);
    }

    /// Gives what `task` has left, or its debt, back to its domain. Returns whether that leaves
    /// something for parked vCPUs.
    pub(super) fn give_back(&mut self, task: TaskId) -> bool {
        let Some(budget) = self.task(task).budget.filter(|&budget| budget != 0) else {
            return false;
        };
        self.tasks[task].budget = Some(0);
        let Some(cap) = &mut self.domain_of(task).cap else { return false };
        cap.pool = cap.pool.saturating_add(budget);
        cap.pool > 0
    }

    pub(super) fn unpark_all(&mut self, cx: &mut Cx<'_>, domain: DomainId) {
        let index = usize::from(domain.0);
        while let Some(task) = self.parked.pop_front(&mut self.domains[index].parked) {
            self.wake(cx, task);
        }
    }

    /// Refills the domains that are due.
    pub(super) fn replenish(&mut self, cx: &mut Cx<'_>) {
        let period = self.params.cap_period;
        let mut next = Time::NEVER;
        for index in 0..self.domains.len() {
            let Some(cap) = &mut self.domains[index].cap else { continue };
            let mut refilled = false;
            if cap.next <= cx.now {
                let periods = cx.now.since(cap.next).0 / period.0 + 1;
                cap.next += Span(periods * period.0);
                let added = cap.total.saturating_mul(periods as i64);
                cap.pool = cap.pool.saturating_add(added).min(cap.total);
                refilled = cap.pool > 0;
            }
            next = next.min(cap.next);
            if refilled {
                self.unpark_all(cx, DomainId(index as u16));
            }
        }
        self.next_replenishment = next;
    }

    /// Sets the weight of a domain; 0 leaves it as it is.
    pub(super) fn set_weight(&mut self, domain: DomainId, weight: u32) {
        if weight == 0 {
            return;
        }
        let old = core::mem::replace(&mut self.domain(domain).weight, weight);
        for task in self.vcpus_of(domain) {
            let known = &mut self.tasks[task];
            known.weight = weight;
            let queue = known.queue;
            let most = &mut self.queues[queue].max_weight;
            *most = weight.max(*most);
            self.weight_left(queue, old);
        }
    }

    fn vcpus_of(&self, domain: DomainId) -> Vec<TaskId> {
        let members = self.queues.iter().flat_map(|queue| self.members.iter(&queue.members));
        members.filter(|&task| self.task(task).domain == domain).collect()
    }

    /// Sets the cap of a domain in percent of a CPU; 0 lifts it.
    pub(super) fn set_cap(&mut self, cx: &mut Cx<'_>, domain: DomainId, percent: u32) {
        let period = self.params.cap_period;
        let total = period.scaled(u64::from(percent), 100).0.min(i64::MAX as u64 / 4) as i64;
        let known = self.domain(domain);
        let was_capped = known.cap.is_some();
        match &mut known.cap {
            _ if percent == 0 => known.cap = None,
            Some(cap) => cap.total = total,
            None => known.cap = Some(Cap { total, pool: total, next: cx.now + period }),
        }
        if was_capped != (percent != 0) {
            for task in self.vcpus_of(domain) {
                self.set_capped(cx, task, percent != 0);
            }
        }
        if percent == 0 {
            self.unpark_all(cx, domain);
        }
        let caps = self.domains.iter().filter_map(|domain| domain.cap.as_ref());
        self.next_replenishment = caps.map(|cap| cap.next).min().unwrap_or(Time::NEVER);
    }

    /// From now on `task` needs a budget, or none. What it ran before is charged without one.
    fn set_capped(&mut self, cx: &mut Cx<'_>, task: TaskId, capped: bool) {
        let cpu = self.task(task).cpu;
        if capped && self.running(cpu) == Some(task) {
            self.charge_running(task, cx.now);
            self.poke(cx, cpu);
        }
        self.tasks[task].budget = capped.then_some(0);
    }

    /// Moves `task` to another domain, which never happens in Xen.
    pub(super) fn change_domain(&mut self, cx: &mut Cx<'_>, task: TaskId, to: DomainId) {
        let Task { place, cpu, queue, weight: old, domain: from, .. } = *self.task(task);
        if self.running(cpu) == Some(task) {
            self.charge_running(task, cx.now);
        }
        if place == Place::Parked {
            self.unlist(task);
        }
        let refilled = self.give_back(task);
        self.leave_domain(task);
        self.tasks[task].domain = to;
        self.enter_domain(task);
        let most = &mut self.queues[queue].max_weight;
        *most = self.tasks[task].weight.max(*most);
        self.weight_left(queue, old);
        if place == Place::OnCpu && self.task(task).budget.is_some() {
            self.poke(cx, cpu);
        }
        if place == Place::Parked {
            self.wake(cx, task);
        }
        if refilled {
            self.unpark_all(cx, from);
        }
    }
}

canonical!(Domain, links: Links { weight, vcpus, cap, parked: of(links) });
canonical!(Cap { total, pool, next });
