//! Balancing between groups.

use alloc::vec::Vec;

use super::VirtualDeadlines;
use anysched_core::Cx;
use anysched_core::ids::{CpuId, CpuSet};
use anysched_core::machine::{Level, Machine};
use anysched_core::params::ParamError;
use anysched_core::time::{Span, Time};

/// The grid on which balancing begins after a time in which nothing waited: a tick of HZ = 1000.
const JIFFY: Span = Span::from_ms(1);

/// How often groups look at others, and which of them are too busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balancing {
    /// Time between two looks at the other groups of a package; [`Span::MAX`] never looks.
    pub core: Span,
    /// The same for the other packages of a node.
    pub package: Span,
    /// The same for other nodes.
    pub node: Span,
    /// These times are shorter by this factor while a CPU of the group is idle.
    pub busy_factor: u32,
    /// A group with more than this percentage of the own load is too busy.
    pub threshold: u32,
}

/// When groups look at which others.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// The levels at which there are several groups, from the narrowest.
    steps: Vec<Step>,
    /// Per group and step, when it last looked.
    last: Vec<[Time; 3]>,
    /// When the first group is due, at the earliest.
    next: Time,
    /// No group looks before, because nothing waited for a while.
    not_before: Time,
    busy_factor: u64,
    threshold: usize,
    /// Load and CPUs of the domains that are compared, so that nothing is allocated for it.
    sums: Vec<(usize, usize)>,
}

/// A level of domains. Each is made of domains of the step below, the narrowest of groups.
#[derive(Debug)]
struct Step {
    interval: Span,
    /// Per domain, its groups.
    groups: Vec<Vec<u16>>,
    /// Per group, its domain.
    domain_of: Vec<u16>,
    /// Per group, its domain of the step below.
    part_of: Vec<u16>,
}

impl Balancer {
    pub(crate) fn none() -> Balancer {
        Balancer {
            steps: Vec::new(),
            last: Vec::new(),
            next: Time::NEVER,
            not_before: Time::ZERO,
            busy_factor: 1,
            threshold: 100,
            sums: Vec::new(),
        }
    }

    /// Errors: an interval, factor or threshold is out of range, named as the parameters of `gfs`.
    pub(crate) fn new(
        machine: &Machine,
        groups: &[CpuSet],
        policy: &Balancing,
    ) -> Result<Balancer, ParamError> {
        let wrong = |name, why| Err(ParamError::Invalid { name, why });
        let levels = [
            (Level::Package, "core_interval", policy.core),
            (Level::Node, "package_interval", policy.package),
            (Level::Machine, "node_interval", policy.node),
        ];
        for (_, name, interval) in levels {
            let range = Span::from_us(100)..=Span::from_s(3600);
            if interval != Span::MAX && !range.contains(&interval) {
                return wrong(name, "must be from 100us to 1h, or none");
            }
        }
        if !(1..=1000).contains(&policy.busy_factor) {
            return wrong("busy_factor", "must be from 1 to 1000");
        }
        if policy.threshold < 100 {
            return wrong("threshold", "must be at least 100");
        }
        let first: Vec<CpuId> = groups.iter().filter_map(|group| group.iter().next()).collect();
        let mut parts: Vec<u16> = (0..groups.len() as u16).collect();
        let mut steps = Vec::new();
        for (level, _, interval) in levels {
            let domain_of: Vec<u16> =
                first.iter().map(|&cpu| machine.cpu(cpu).group(level)).collect();
            let apart =
                |(a, b): (usize, usize)| domain_of[a] == domain_of[b] && parts[a] != parts[b];
            let several = (1..groups.len()).any(|b| (0..b).any(|a| apart((a, b))));
            if several {
                let of = |domain| {
                    let inside = |&group: &u16| domain_of[usize::from(group)] == domain;
                    (0..groups.len() as u16).filter(inside).collect()
                };
                let domains = (0..machine.groups(level) as u16).map(of).collect();
                let part_of = core::mem::replace(&mut parts, domain_of.clone());
                steps.push(Step { interval, groups: domains, domain_of, part_of });
            }
        }
        let parts = groups.len().max(machine.groups(Level::Package));
        Ok(Balancer {
            next: if steps.is_empty() { Time::NEVER } else { Time::ZERO },
            last: alloc::vec![[Time::ZERO; 3]; groups.len()],
            steps,
            not_before: Time::ZERO,
            busy_factor: u64::from(policy.busy_factor),
            threshold: policy.threshold as usize,
            sums: alloc::vec![(0, 0); parts],
        })
    }

    /// When `group` looks at the others of this step again.
    fn due(&self, group: usize, step: usize, idle: bool) -> Time {
        let interval = self.steps[step].interval;
        if interval == Span::MAX {
            return Time::NEVER;
        }
        let factor = if idle { self.busy_factor } else { 1 };
        (self.last[group][step] + Span((interval.0 / factor).max(1))).max(self.not_before)
    }
}

impl<Of> VirtualDeadlines<Of> {
    /// When balancing is due, while anything waits.
    pub(crate) fn next_balance(&self) -> Option<Time> {
        let on = self.waiting > 0 && self.balancer.next != Time::NEVER;
        on.then_some(self.balancer.next)
    }

    /// Something waits again, after nothing did.
    pub(crate) fn resume_balancing(&mut self, now: Time) {
        let balancer = &mut self.balancer;
        if balancer.next <= now {
            balancer.not_before = Time(now.0 - now.0 % JIFFY.0) + JIFFY;
            balancer.next = balancer.not_before;
        }
    }

    /// `cpu` is idle: its group looks at the others sooner.
    pub(crate) fn hurry(&mut self, cpu: CpuId) {
        if !self.balancer.steps.is_empty() {
            let group = usize::from(self.cpus[cpu.index()].group);
            let due = self.balancer.due(group, 0, true);
            self.balancer.next = self.balancer.next.min(due);
        }
    }

    /// `cpu` has nothing to run: its group looks at the others if that is due. Returns whether it
    /// got anything.
    pub(crate) fn balance_idle(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> bool {
        let group = usize::from(self.cpus[cpu.index()].group);
        !self.balancer.steps.is_empty() && self.waiting > 0 && self.look_around(cx, group, true)
    }

    /// Lets the groups look whose turn has come.
    pub(crate) fn balance(&mut self, cx: &mut Cx<'_>) {
        if self.balancer.next > cx.now || self.waiting == 0 {
            return;
        }
        let mut next = Time::NEVER;
        for group in 0..self.groups.len() {
            let idle = !self.groups[group].idle.is_empty();
            if self.balancer.due(group, 0, idle) <= cx.now {
                self.look_around(cx, group, idle);
            }
            let idle = !self.groups[group].idle.is_empty();
            next = next.min(self.balancer.due(group, 0, idle));
        }
        self.balancer.next = next;
    }

    /// `group` looks at the others, level by level as far as that is due. Returns whether it got
    /// anything.
    fn look_around(&mut self, cx: &mut Cx<'_>, group: usize, idle: bool) -> bool {
        let mut got = false;
        for step in 0..self.balancer.steps.len() {
            if cx.now < self.balancer.due(group, step, idle) {
                break;
            }
            self.balancer.last[group][step] = cx.now;
            if let Some(from) = self.busiest(group, step) {
                got |= self.even_out(cx, from, group);
            }
        }
        got
    }

    /// Tasks that wait or run in `group`, and its usable CPUs.
    fn load(&self, group: usize) -> (usize, usize) {
        let group = &self.groups[group];
        let online = group.members.iter().filter(|&&cpu| self.online.contains(cpu)).count();
        (group.load(), online)
    }

    /// The busiest group other than `own` in the busiest part of its domain.
    fn busiest(&mut self, own: usize, step: usize) -> Option<usize> {
        let mut sums = core::mem::take(&mut self.balancer.sums);
        let Step { groups, domain_of, part_of, .. } = &self.balancer.steps[step];
        let domain = &groups[usize::from(domain_of[own])];
        let part = |group: &u16| usize::from(part_of[usize::from(*group)]);
        domain.iter().for_each(|group| sums[part(group)] = (0, 0));
        for group in domain {
            let (load, cpus) = self.load(usize::from(*group));
            let sum = &mut sums[part(group)];
            *sum = (sum.0 + load, sum.1 + cpus);
        }
        let busier = |a: (usize, usize), b: (usize, usize)| a.0 * b.1 > b.0 * a.1;
        let mut top: Option<usize> = None;
        for at in domain.iter().map(part).filter(|&at| sums[at].1 > 0) {
            if top.is_none_or(|top| busier(sums[at], sums[top])) {
                top = Some(at);
            }
        }
        let mut busiest: Option<(usize, (usize, usize))> = None;
        for group in domain.iter().filter(|group| Some(part(group)) == top) {
            let group = usize::from(*group);
            let load = self.load(group);
            let better = busiest.is_none_or(|(_, most)| busier(load, most));
            if group != own && load.1 > 0 && better {
                busiest = Some((group, load));
            }
        }
        self.balancer.sums = sums;
        busiest.map(|(group, _)| group)
    }

    /// Moves waiting tasks until both groups have the same load, if `from` has too much. Returns
    /// whether any was moved.
    fn even_out(&mut self, cx: &mut Cx<'_>, from: usize, to: usize) -> bool {
        let ((much, cpus), (own, own_cpus)) = (self.load(from), self.load(to));
        let (more, less) = (much * own_cpus, own * cpus);
        if own_cpus == 0 || more * 100 <= less * self.balancer.threshold {
            return false;
        }
        let mut left = (more - less) / (cpus + own_cpus);
        let mut candidate = self.groups[from].tree.last();
        let mut got = false;
        while let Some(task) = candidate.filter(|_| left > 0) {
            candidate = self.forest.prev(task);
            cx.work.scanned += 1;
            if self.may_enter(task, to) {
                left -= 1;
                got = true;
                self.take_out(cx, task);
                self.push(cx, task, to);
                if !self.kick_idle(cx, task, to) {
                    self.preempt_latest(cx, task, to);
                }
            }
        }
        got
    }
}
