//! Balancing between groups.

use alloc::vec::Vec;
use anysched_core::{Canon, canon_fields};
use core::cmp::Ordering;
use core::ops::Range;

use super::VirtualDeadlines;
use anysched_core::Cx;
use anysched_core::canon::Canonical;
use anysched_core::ids::{CpuId, CpuMask, CpuSet};
use anysched_core::machine::{Level, Machine};
use anysched_core::params::ParamError;
use anysched_core::queue::Tournament;
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
    /// The levels of domains, from the narrowest, and how often groups look at the others there.
    intervals: [(Level, Span); 3],
    /// The levels at which there are several groups, from the narrowest.
    steps: Vec<Step>,
    /// Per group and step, when it last looked.
    last: Vec<[Time; 3]>,
    /// Per group, when it looks at the others of the first step again, but for `not_before`.
    dues: Tournament<Time>,
    /// How often a group has looked at a level, and how many tasks have been moved.
    looks: u64,
    moved: u64,
    /// When the first group is due, at the earliest.
    next: Time,
    /// No group looks before, because nothing waited for a while.
    not_before: Time,
    busy_factor: u64,
    threshold: usize,
    /// Per group, the load and the usable CPUs that the steps go by.
    counted: Vec<(usize, usize)>,
    /// Groups for which these may be wrong.
    stale: CpuMask,
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
    ranking: Ranking,
}

/// Which part of a domain is the busiest, and which group of a part. Parts of a domain are next to
/// each other, and so are groups of a part, by their lowest group.
#[derive(Debug)]
struct Ranking {
    /// Per domain, its parts.
    parts_of: Vec<Range<usize>>,
    /// Per part, load and usable CPUs of its groups.
    sums: Vec<(usize, usize)>,
    parts: Tournament<Busy>,
    /// Per part, the places of its groups.
    places_of: Vec<Range<usize>>,
    /// Per place, its group.
    group_at: Vec<u16>,
    /// Per group, its part and its place.
    where_is: Vec<(usize, usize)>,
    groups: Tournament<Busy>,
}

/// Load for CPUs: the most comes first, the lowest place of equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    load: usize,
    cpus: usize,
    place: usize,
}

impl Busy {
    /// Without usable CPUs, which comes last.
    const NOT: Busy = Busy { load: 0, cpus: 0, place: usize::MAX };

    fn new((load, cpus): (usize, usize), place: usize) -> Busy {
        if cpus == 0 { Busy::NOT } else { Busy { load, cpus, place } }
    }
}

impl Ord for Busy {
    fn cmp(&self, other: &Busy) -> Ordering {
        let busier = (other.load * self.cpus).cmp(&(self.load * other.cpus));
        busier.then(self.place.cmp(&other.place))
    }
}

impl PartialOrd for Busy {
    fn partial_cmp(&self, other: &Busy) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ranking {
    /// No load anywhere, and no usable CPU.
    fn new(groups: &[Vec<u16>], part_of: &[u16]) -> Ranking {
        let (mut parts_of, mut places_of): (Vec<Range<usize>>, Vec<Range<usize>>) =
            Default::default();
        let mut group_at = Vec::new();
        let mut where_is = alloc::vec![(0, 0); part_of.len()];
        for domain in groups {
            let first_part = places_of.len();
            let begins = |(at, group): (usize, &u16)| {
                let part = part_of[usize::from(*group)];
                !domain[..at].iter().any(|other| part_of[usize::from(*other)] == part)
            };
            for (_, first) in domain.iter().enumerate().filter(|&one| begins(one)) {
                let part = part_of[usize::from(*first)];
                let start = group_at.len();
                for &group in domain.iter().filter(|&&one| part_of[usize::from(one)] == part) {
                    where_is[usize::from(group)] = (places_of.len(), group_at.len());
                    group_at.push(group);
                }
                places_of.push(start..group_at.len());
            }
            parts_of.push(first_part..places_of.len());
        }
        Ranking {
            parts_of,
            sums: alloc::vec![(0, 0); places_of.len()],
            parts: Tournament::new(places_of.len(), Busy::NOT),
            places_of,
            groups: Tournament::new(group_at.len(), Busy::NOT),
            group_at,
            where_is,
        }
    }

    /// Load and usable CPUs of `group` change.
    fn count(&mut self, group: usize, before: (usize, usize), now: (usize, usize)) {
        let (part, place) = self.where_is[group];
        let (load, cpus) = &mut self.sums[part];
        *load = *load - before.0 + now.0;
        *cpus = *cpus - before.1 + now.1;
        self.parts.set(part, Busy::new(self.sums[part], part));
        self.groups.set(place, Busy::new(now, place));
    }

    /// The busiest group of `domain` other than `own` in its busiest part.
    fn busiest(&self, domain: usize, own: usize) -> Option<usize> {
        let top = self.parts.least_in(self.parts_of[domain].clone());
        let places = self.places_of.get(top.place)?;
        let (part, own) = self.where_is[own];
        let busiest = if part == top.place {
            let before = self.groups.least_in(places.start..own);
            before.min(self.groups.least_in(own + 1..places.end))
        } else {
            self.groups.least_in(places.clone())
        };
        self.group_at.get(busiest.place).map(|&group| usize::from(group))
    }
}

impl Balancer {
    pub(crate) fn none() -> Balancer {
        let levels = [Level::Package, Level::Node, Level::Machine];
        Balancer {
            intervals: levels.map(|level| (level, Span::MAX)),
            steps: Vec::new(),
            last: Vec::new(),
            dues: Tournament::new(0, Time::NEVER),
            looks: 0,
            moved: 0,
            next: Time::NEVER,
            not_before: Time::ZERO,
            busy_factor: 1,
            threshold: 100,
            counted: Vec::new(),
            stale: CpuMask::EMPTY,
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
        let mut balancer = Balancer {
            intervals: levels.map(|(level, _, interval)| (level, interval)),
            busy_factor: u64::from(policy.busy_factor),
            threshold: policy.threshold as usize,
            ..Balancer::none()
        };
        balancer.divide(machine, groups, Time::ZERO);
        (0..groups.len()).for_each(|group| balancer.plan(group, true));
        Ok(balancer)
    }

    /// From `now` on, when all are taken to have just looked, there are these groups. They are to
    /// be [planned](Balancer::plan).
    pub(crate) fn divide(&mut self, machine: &Machine, groups: &[CpuSet], now: Time) {
        let first: Vec<CpuId> = groups.iter().filter_map(|group| group.iter().next()).collect();
        let mut parts: Vec<u16> = (0..groups.len() as u16).collect();
        self.steps.clear();
        for (level, interval) in self.intervals {
            let domain_of: Vec<u16> =
                first.iter().map(|&cpu| machine.cpu(cpu).group(level)).collect();
            let apart =
                |(a, b): (usize, usize)| domain_of[a] == domain_of[b] && parts[a] != parts[b];
            let several = (1..groups.len()).any(|b| (0..b).any(|a| apart((a, b))));
            if several {
                let mut domains = alloc::vec![Vec::new(); machine.groups(level)];
                for (group, &domain) in domain_of.iter().enumerate() {
                    domains[usize::from(domain)].push(group as u16);
                }
                let part_of = core::mem::replace(&mut parts, domain_of.clone());
                let ranking = Ranking::new(&domains, &part_of);
                self.steps.push(Step { interval, groups: domains, domain_of, part_of, ranking });
            }
        }
        self.next = if self.steps.is_empty() { Time::NEVER } else { now };
        self.last = alloc::vec![[now; 3]; groups.len()];
        self.counted = alloc::vec![(0, 0); groups.len()];
        self.stale = CpuMask::first(groups.len());
        self.dues = Tournament::new(groups.len(), Time::NEVER);
    }

    /// See [`Scheduler::tally`](anysched_core::Scheduler::tally).
    pub(crate) fn tally(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("balance_looks", self.looks);
        sink("balance_moved", self.moved);
    }

    /// `group` has looked at others, or has an idle CPU from now on or none any more.
    #[inline]
    pub(crate) fn plan(&mut self, group: usize, idle: bool) {
        if !self.steps.is_empty() {
            self.dues.set(group, self.since_last(group, 0, idle));
        }
    }

    /// Something about `group` has changed.
    #[inline]
    pub(crate) fn note(&mut self, group: usize) {
        self.stale.insert(CpuId(group as u16));
    }

    /// When `group` looks at the others of this step again.
    fn due(&self, group: usize, step: usize, idle: bool) -> Time {
        self.since_last(group, step, idle).max(self.not_before)
    }

    /// When the first of `groups` is due.
    fn due_among(&self, groups: Range<usize>) -> Time {
        self.dues.least_in(groups).max(self.not_before)
    }

    /// The same as [`Balancer::due`], but for [`Balancer::not_before`].
    fn since_last(&self, group: usize, step: usize, idle: bool) -> Time {
        let interval = self.steps[step].interval;
        if interval == Span::MAX {
            return Time::NEVER;
        }
        let factor = if idle { self.busy_factor } else { 1 };
        self.last[group][step] + Span((interval.0 / factor).max(1))
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
        let all = self.groups.len();
        let (mut next, mut due) = (0, Time::NEVER);
        while self.balancer.not_before <= cx.now
            && let Some(group) = self.balancer.dues.first_below(next..all, cx.now + Span(1))
        {
            let before = self.balancer.due_among(0..group);
            let idle = !self.groups[group].idle.is_empty();
            self.look_around(cx, group, idle);
            if self.balancer.not_before > cx.now {
                // What it took was all that waited, so that balancing begins anew. Groups that
                // have been asked already keep their turns.
                due = before;
            }
            next = group + 1;
        }
        let rest = if due == Time::NEVER { 0 } else { next - 1 };
        self.balancer.next = due.min(self.balancer.due_among(rest..all));
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
            self.balancer.looks += 1;
            if let Some(from) = self.busiest(group, step) {
                got |= self.even_out(cx, from, group);
            }
        }
        let idle = !self.groups[group].idle.is_empty();
        self.balancer.plan(group, idle);
        got
    }

    /// Tasks that wait or run in `group`, and its usable CPUs.
    fn load(&self, group: usize) -> (usize, usize) {
        let group = &self.groups[group];
        (group.load(), group.usable)
    }

    /// The busiest group other than `own` in the busiest part of its domain.
    fn busiest(&mut self, own: usize, step: usize) -> Option<usize> {
        while let Some(group) = self.balancer.stale.take_lowest() {
            let group = group.index();
            let load = self.load(group);
            let before = core::mem::replace(&mut self.balancer.counted[group], load);
            for step in self.balancer.steps.iter_mut().filter(|_| before != load) {
                step.ranking.count(group, before, load);
            }
        }
        let Step { ranking, domain_of, .. } = &self.balancer.steps[step];
        let busiest = ranking.busiest(usize::from(domain_of[own]), own);
        debug_assert_eq!(busiest, self.find_busiest(own, step));
        busiest
    }

    /// The same, by looking at all groups.
    fn find_busiest(&self, own: usize, step: usize) -> Option<usize> {
        let Step { groups, domain_of, part_of, .. } = &self.balancer.steps[step];
        let domain = groups[usize::from(domain_of[own])].iter().map(|&group| usize::from(group));
        let part = |group: usize| {
            let same = |other: &usize| part_of[*other] == part_of[group];
            let loads = domain.clone().filter(same).map(|group| self.load(group));
            loads.fold((0, 0), |sum, load| (sum.0 + load.0, sum.1 + load.1))
        };
        let most = |load: &dyn Fn(usize) -> (usize, usize), among: &dyn Fn(usize) -> bool| {
            let of = |group| Busy::new(load(group), group);
            let usable = domain.clone().filter(|&group| among(group) && load(group).1 > 0);
            usable.min_by_key(|&group| of(group))
        };
        let top = most(&part, &|_| true)?;
        let load = |group| self.load(group);
        most(&load, &|group| group != own && part_of[group] == part_of[top])
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
                self.balancer.moved += 1;
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

impl Canonical for Balancer {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.phase(JIFFY);
        canon_fields!(
            self,
            to,
            Balancer {
                intervals: fixed,
                steps: fixed,
                last,
                dues: fixed,
                looks: fixed,
                moved: fixed,
                next: due,
                not_before: due,
                busy_factor: fixed,
                threshold: fixed,
                counted: fixed,
                stale: fixed,
            }
        );
        for group in 0..self.last.len() {
            self.dues.get(group).canon(&(), to);
        }
    }
}
