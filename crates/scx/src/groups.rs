//! cgroups as domains.
//!
//! A policy sees each cgroup as a domain, whatever is above it: its weight counts against those of
//! all others. The first that the kernel names, its root, is domain 0; a group that was never named
//! is part of it. Policies without domains see tasks only.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use anysched_core::params::DEFAULT_DOMAIN_WEIGHT;
use anysched_core::{DomainId, DomainParams, Scheduler, TaskId, Time};

use crate::Adapter;

/// The weight of a cgroup that was given none (Linux, Documentation/admin-guide/cgroup-v2.rst).
const USUAL_WEIGHT: u64 = 100;

/// The cgroups that there are, by the kernel's numbers.
#[derive(Default)]
pub(crate) struct Groups {
    known: BTreeMap<u64, (DomainId, DomainParams)>,
    free: Vec<DomainId>,
}

impl Groups {
    /// The domain of a group.
    pub(crate) fn domain(&self, group: u64) -> DomainId {
        self.known.get(&group).map_or(DomainId(0), |(domain, _)| *domain)
    }

    /// A group, which is made known if it is not.
    fn group(&mut self, group: u64) -> &mut (DomainId, DomainParams) {
        let count = self.known.len();
        self.known.entry(group).or_insert_with(|| {
            let next = || u16::try_from(count).ok().map(DomainId);
            let domain = self.free.pop().or_else(next);
            let Some(domain) = domain else { panic!("there are more than 65536 cgroups") };
            (domain, DomainParams { weight: DEFAULT_DOMAIN_WEIGHT, cap_percent: 0 })
        })
    }
}

impl<P: Scheduler> Adapter<P> {
    /// A group has this weight, where 100 is the usual one; it may be new.
    pub fn set_group_weight(&mut self, now: Time, group: u64, weight: u64) {
        let weight = weight * u64::from(DEFAULT_DOMAIN_WEIGHT) / USUAL_WEIGHT;
        let weight = u32::try_from(weight.max(1)).unwrap_or(u32::MAX);
        self.set_group(now, group, |params| params.weight = weight);
    }

    /// A group may use this much CPU time, in percent of a CPU, 0 for all; it may be new.
    pub fn set_group_cap(&mut self, now: Time, group: u64, percent: u64) {
        let percent = u32::try_from(percent).unwrap_or(u32::MAX);
        self.set_group(now, group, |params| params.cap_percent = percent);
    }

    fn set_group(&mut self, now: Time, group: u64, change: impl FnOnce(&mut DomainParams)) {
        let known = self.groups.group(group);
        change(&mut known.1);
        let (domain, params) = *known;
        self.call(now, |policy, cx| policy.set_domain(cx, domain, &params));
    }

    /// A group has gone; no task is in it.
    pub fn disband(&mut self, group: u64) {
        if let Some((domain, _)) = self.groups.known.remove(&group) {
            self.groups.free.push(domain);
        }
    }

    /// A task goes to another group.
    pub fn join(&mut self, now: Time, id: TaskId, group: u64) {
        let domain = self.groups.domain(group);
        if let Some(mut params) = self.affinities.params(id).cloned() {
            params.domain = domain;
            self.set_params(now, id, params);
        }
    }
}
