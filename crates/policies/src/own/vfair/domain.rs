//! Domains: the rate at which their vCPUs' virtual time passes, and their caps.

use super::{Place, Vfair};
use anysched_core::ids::{DomainId, TaskId};
use anysched_core::params::{DEFAULT_DOMAIN_WEIGHT, DomainParams};
use anysched_core::queue::{Links, List};
use anysched_core::time::{Span, Time};
use anysched_core::{Cx, canonical};

#[derive(Clone, Debug)]
pub(super) struct Domain {
    weight: u32,
    /// How many of its vCPUs are ready or running.
    active: u32,
    cap: Option<Cap>,
    /// Ready vCPUs that wait for the pool.
    parked: List,
}

#[derive(Clone, Debug)]
struct Cap {
    /// CPU time in each period.
    total: i64,
    /// What is left of it; below 0, a debt.
    pool: i64,
    next: Time,
}

/// Virtual ns for each ns of CPU time, as a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    active: u32,
    weight: u32,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { active: 1, weight: DEFAULT_DOMAIN_WEIGHT }
    }
}

impl Rate {
    pub fn virtual_time(self, ran: Span) -> i64 {
        let factor = u64::from(DEFAULT_DOMAIN_WEIGHT) * u64::from(self.active);
        ran.scaled(factor, u64::from(self.weight)).0.min(i64::MAX as u64 / 4) as i64
    }
}

impl Vfair {
    /// Registers `domain` if it is unknown.
    pub(super) fn make_domain(&mut self, domain: DomainId) {
        let parked = List::default();
        let new = Domain { weight: DEFAULT_DOMAIN_WEIGHT, active: 0, cap: None, parked };
        let known = self.domains.len().max(usize::from(domain.0) + 1);
        self.domains.resize(known, new);
    }

    pub(super) fn rate(&self, domain: DomainId) -> Rate {
        let Domain { weight, active, .. } = self.domains[usize::from(domain.0)];
        Rate { active: active.max(1), weight }
    }

    /// One more vCPU of `domain` is ready or running, or one fewer.
    pub(super) fn activate(&mut self, domain: DomainId, by: i32) {
        let active = &mut self.domains[usize::from(domain.0)].active;
        *active = active.saturating_add_signed(by);
    }

    /// Whether `domain` may currently not run.
    pub(super) fn is_exhausted(&self, domain: DomainId) -> bool {
        self.domains[usize::from(domain.0)].cap.as_ref().is_some_and(|cap| cap.pool <= 0)
    }

    pub(super) fn spend(&mut self, domain: DomainId, ran: Span) {
        if let Some(cap) = &mut self.domains[usize::from(domain.0)].cap {
            cap.pool = cap.pool.saturating_sub_unsigned(ran.0);
        }
    }

    /// A slice that leaves the other vCPUs of `domain` their part of the pool.
    pub(super) fn within_cap(&self, domain: DomainId, slice: Span) -> Span {
        let domain = &self.domains[usize::from(domain.0)];
        let Some(cap) = &domain.cap else { return slice };
        let part = Span(cap.pool.max(0) as u64 / u64::from(domain.active.max(1)));
        slice.min(part.max(self.params.guard)).max(Span(1))
    }

    pub(super) fn park(&mut self, task: TaskId) {
        let known = &mut self.tasks[task];
        known.place = Place::Parked;
        self.parked.push_back(&mut self.domains[usize::from(known.domain.0)].parked, task);
    }

    /// `task` is no longer parked.
    pub(super) fn unlist(&mut self, task: TaskId) {
        let domain = self.task(task).domain;
        self.parked.remove(&mut self.domains[usize::from(domain.0)].parked, task);
    }

    fn unpark_all(&mut self, cx: &mut Cx<'_>, domain: DomainId) {
        let index = usize::from(domain.0);
        while let Some(task) = self.parked.pop_front(&mut self.domains[index].parked) {
            self.insert(task);
            self.announce(cx, task);
        }
    }

    /// Refills the pools that are due.
    pub(super) fn refill(&mut self, cx: &mut Cx<'_>) {
        let period = self.params.cap_period;
        self.next_refill = Time::NEVER;
        for index in 0..self.domains.len() {
            let Some(cap) = &mut self.domains[index].cap else { continue };
            if cap.next <= cx.now {
                let periods = cx.now.since(cap.next).0 / period.0 + 1;
                cap.next += Span(periods * period.0);
                let gained = cap.total.saturating_mul(periods as i64);
                cap.pool = cap.pool.saturating_add(gained).min(cap.total);
            }
            self.next_refill = self.next_refill.min(cap.next);
            if cap.pool > 0 {
                self.unpark_all(cx, DomainId(index as u16));
            }
        }
    }

    /// Sets weight and cap of `domain`; a weight of 0 leaves it as it is.
    pub(super) fn set_share(&mut self, cx: &mut Cx<'_>, domain: DomainId, params: &DomainParams) {
        let period = self.params.cap_period;
        let total = period.scaled(u64::from(params.cap_percent), 100).0.min(i64::MAX as u64 / 4);
        let total = total as i64;
        let known = &mut self.domains[usize::from(domain.0)];
        if params.weight != 0 {
            known.weight = params.weight;
        }
        match &mut known.cap {
            _ if params.cap_percent == 0 => known.cap = None,
            Some(cap) => cap.total = total,
            None => known.cap = Some(Cap { total, pool: total, next: cx.now + period }),
        }
        if params.cap_percent == 0 {
            self.unpark_all(cx, domain);
        }
        self.refill(cx);
    }

    /// Moves `task` to another domain, which never happens in Xen.
    pub(super) fn change_domain(&mut self, cx: &mut Cx<'_>, task: TaskId, to: DomainId) {
        self.make_domain(to);
        let place = self.task(task).place;
        if place == Place::Parked {
            self.unlist(task);
        }
        let from = core::mem::replace(&mut self.tasks[task].domain, to);
        if place != Place::Blocked {
            self.activate(from, -1);
            self.activate(to, 1);
        }
        if place == Place::Parked && self.insert(task) {
            self.announce(cx, task);
        }
    }
}

canonical!(Domain, links: Links { weight, active, cap, parked: of(links) });
canonical!(Cap { total, pool, next });
canonical!(Rate { active, weight });
