//! The busiest runqueues and the least loaded CPUs, where every CPU has a runqueue of its own,
//! found without looking at all of them.
//!
//! A change of a runqueue is only noted; what is kept of it is brought up to date on demand. The
//! CPUs are ordered so that those of each group of the machine are neighbours, with groups and CPUs
//! within a group by their lowest number.
//!
//! Cost: O(1) for a change, O(log CPUs) per changed runqueue for a search.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::ids::{CpuId, CpuMask};
use crate::machine::{Level, Machine};
use crate::queue::Tournament;

/// What is kept of the loads of all runqueues.
#[derive(Debug)]
pub(super) struct Loads {
    /// The CPUs in that order.
    order: Vec<CpuId>,
    /// Per CPU, its place in it.
    place_of: Vec<u16>,
    /// Per level and group, the places of its CPUs.
    ranges: [Vec<Range<u16>>; 5],
    /// Per place, the load of the runqueue if a task waits there, and its number.
    busy: Tournament<Busy>,
    /// Runqueues whose entry in `busy` may be wrong.
    busy_stale: CpuMask,
    /// From the widest groups of the machine to single CPUs.
    tiers: Vec<Tier>,
    /// Per CPU, the load that the tiers are computed from; `None`: it is out of use.
    counted: Vec<Option<u64>>,
    /// CPUs whose entry in that may be wrong.
    counted_stale: CpuMask,
}

/// A runqueue with waiting tasks: the busiest first, the lowest of equals.
pub(super) type Busy = (Reverse<u64>, u16);

/// A place where no task waits.
const NOTHING: Busy = (Reverse(0), u16::MAX);

/// The groups of one level, in the order of their CPUs.
#[derive(Debug)]
struct Tier {
    /// Per CPU, its group.
    group_of: Vec<u16>,
    /// Per group of the next wider tier, its groups.
    inside: Vec<Range<u16>>,
    /// Per group, the sum of the loads of its usable CPUs, and how many there are.
    sums: Vec<(u64, u64)>,
    /// Per group, the mean of these loads; `MAX` if no CPU is usable. And its number.
    least: Tournament<(u64, u16)>,
}

impl Loads {
    /// No task waits or runs. Unless `wanted`, nothing is kept.
    pub(super) fn new(machine: &Machine, wanted: bool) -> Loads {
        let mut order: Vec<CpuId> = if wanted { machine.cpu_ids().collect() } else { Vec::new() };
        let first = |level, cpu| machine.sharing(level, cpu)[0];
        order.sort_by_key(|&cpu| {
            let [core, llc, package, node, _] = Level::ALL.map(|level| first(level, cpu));
            (node, package, llc, core, cpu)
        });
        let cpus = order.len();
        let mut place_of = alloc::vec![0; cpus];
        for (place, cpu) in order.iter().enumerate() {
            place_of[cpu.index()] = place as u16;
        }
        let range = |members: &Vec<CpuId>| {
            let places = members.iter().map(|cpu| place_of[cpu.index()]);
            places.clone().min().unwrap_or(0)..places.max().map_or(0, |last| last + 1)
        };
        let groups = |level: Level| -> Vec<Range<u16>> {
            let groups = (0..machine.groups(level) as u16).filter(|_| wanted);
            groups.map(|group| range(&machine.members(level, group).to_vec())).collect()
        };
        let mut tiers: Vec<Tier> = Vec::new();
        for level in [Some(Level::Node), Some(Level::Package), Some(Level::Llc), Some(Level::Core)]
            .into_iter()
            .chain([None])
        {
            tiers.push(Tier::new(&order, tiers.last(), |cpu| {
                level.map_or(cpu, |level| first(level, cpu))
            }));
        }
        Loads {
            ranges: Level::ALL.map(groups),
            order,
            place_of,
            busy: Tournament::new(cpus, NOTHING),
            busy_stale: CpuMask::EMPTY,
            tiers,
            counted: alloc::vec![None; cpus],
            counted_stale: CpuMask::first(cpus),
        }
    }

    /// The runqueue of `cpu` may have changed.
    #[inline]
    pub(super) fn note(&mut self, cpu: CpuId) {
        if self.are_kept() {
            self.busy_stale.insert(cpu);
            self.counted_stale.insert(cpu);
        }
    }

    /// All runqueues may have changed.
    pub(super) fn note_all(&mut self) {
        if !self.are_kept() {
            return;
        }
        let all = CpuMask::first(self.place_of.len());
        (self.busy_stale, self.counted_stale) = (all.clone(), all);
    }

    /// Whether anything is kept.
    #[inline]
    pub(super) fn are_kept(&self) -> bool {
        !self.place_of.is_empty()
    }

    /// A runqueue that changed; [`Loads::set_busy`] must be told what waits there.
    #[inline]
    pub(super) fn next_busy_stale(&mut self) -> Option<CpuId> {
        self.busy_stale.take_lowest()
    }

    /// The load of the runqueue of `cpu` if a task waits there.
    #[inline]
    pub(super) fn set_busy(&mut self, cpu: CpuId, load: Option<u64>) {
        let busy = load.map_or(NOTHING, |load| (Reverse(load), cpu.0));
        let place = usize::from(self.place_of[cpu.index()]);
        if self.busy.get(place) != busy {
            self.busy.set(place, busy);
        }
    }

    /// The first runqueue with waiting tasks that shares `level`, but no nearer level, with `cpu`.
    pub(super) fn busiest(&self, machine: &Machine, cpu: CpuId, level: Level) -> Option<Busy> {
        let range = |level: Level| {
            let range = &self.ranges[level as usize][usize::from(machine.cpu(cpu).group(level))];
            usize::from(range.start)..usize::from(range.end)
        };
        let own = usize::from(self.place_of[cpu.index()]);
        let all = range(level);
        let near = match level {
            Level::Core => own..own + 1,
            Level::Llc => range(Level::Core),
            Level::Package => range(Level::Llc),
            Level::Node => range(Level::Package),
            Level::Machine => range(Level::Node),
        };
        let least = self.busy.least_in(all.start..near.start);
        let least = least.min(self.busy.least_in(near.end..all.end));
        (least != NOTHING).then_some(least)
    }

    /// A CPU that changed; [`Loads::count`] must be told its load.
    #[inline]
    pub(super) fn next_counted_stale(&mut self) -> Option<CpuId> {
        self.counted_stale.take_lowest()
    }

    /// The load of `cpu`; `None`: it is out of use.
    pub(super) fn count(&mut self, cpu: CpuId, load: Option<u64>) {
        let before = core::mem::replace(&mut self.counted[cpu.index()], load);
        if before == load {
            return;
        }
        for tier in &mut self.tiers {
            let group = tier.group_of[cpu.index()];
            let (sum, count) = &mut tier.sums[usize::from(group)];
            *sum = *sum - before.unwrap_or(0) + load.unwrap_or(0);
            *count = *count - u64::from(before.is_some()) + u64::from(load.is_some());
            let mean = sum.checked_div(*count).unwrap_or(u64::MAX);
            tier.least.set(usize::from(group), (mean, group));
        }
    }

    /// The least loaded CPU in use: the group with the least mean load, level by level, then the
    /// CPU; among equals that of `near`, then the lowest. `None`: no CPU is in use.
    pub(super) fn idlest(&self, near: CpuId) -> Option<CpuId> {
        let mut group = 0;
        for tier in &self.tiers {
            let inside = &tier.inside[group];
            let own = tier.group_of[near.index()];
            let (least, first) =
                tier.least.least_in(usize::from(inside.start)..usize::from(inside.end));
            if least == u64::MAX {
                return None;
            }
            let stays = inside.contains(&own) && tier.least.get(usize::from(own)).0 == least;
            group = usize::from(if stays { own } else { first });
        }
        // Groups of the last tier are single CPUs.
        Some(self.order[group])
    }
}

impl Tier {
    /// The groups of CPUs with the same `key`, which are neighbours in `order`, within those of the
    /// `wider` tier.
    fn new(order: &[CpuId], wider: Option<&Tier>, key: impl Fn(CpuId) -> CpuId) -> Tier {
        let mut group_of = alloc::vec![0; order.len()];
        let mut inside: Vec<Range<u16>> = Vec::new();
        let mut groups = 0;
        for (place, &cpu) in order.iter().enumerate() {
            if place == 0 || key(order[place - 1]) != key(cpu) {
                groups += 1;
                let outer = wider.map_or(0, |wider| usize::from(wider.group_of[cpu.index()]));
                inside.resize(outer + 1, groups - 1..groups);
                inside[outer].end = groups;
            }
            group_of[cpu.index()] = groups - 1;
        }
        Tier {
            group_of,
            inside,
            sums: alloc::vec![(0, 0); usize::from(groups)],
            least: Tournament::new(usize::from(groups), (u64::MAX, u16::MAX)),
        }
    }
}
