//! The busiest runqueues, where every CPU has a runqueue of its own, found without looking at all
//! of them.
//!
//! A change of a runqueue is only noted; what is kept of it is brought up to date on demand. The
//! CPUs are ordered so that those of each group of the machine are neighbours, with groups and CPUs
//! within a group by their lowest number.
//!
//! Cost: O(1) for a change, O(log CPUs) per changed runqueue for a search.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::ids::{CpuId, CpuMask};
use crate::machine::{Level, Machine};
use crate::queue::Tournament;

/// What is kept of the loads of all runqueues.
#[derive(Debug)]
pub(super) struct Loads {
    /// Per CPU, its place in that order.
    place_of: Vec<u16>,
    /// Per level and group, the places of its CPUs.
    ranges: [Vec<Range<u16>>; 5],
    /// Per place, the load of the runqueue if a task waits there, and its number.
    busy: Tournament<Busy>,
    /// Runqueues whose entry in `busy` may be wrong.
    stale: CpuMask,
}

/// A runqueue with waiting tasks: the busiest first, the lowest of equals.
pub(super) type Busy = (Reverse<u64>, u16);

/// A place where no task waits.
const NOTHING: Busy = (Reverse(0), u16::MAX);

impl Loads {
    /// No task waits or runs. Unless `wanted`, nothing is kept.
    // In a frame of its own.
    #[inline(never)]
    pub(super) fn new(machine: &Machine, wanted: bool) -> Box<Loads> {
        let mut order: Vec<CpuId> = if wanted { machine.cpu_ids().collect() } else { Vec::new() };
        let first = |level, cpu| machine.sharing(level, cpu)[0];
        order.sort_unstable_by_key(|&cpu| {
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
        Box::new(Loads {
            ranges: Level::ALL.map(groups),
            place_of,
            busy: Tournament::new(cpus, NOTHING),
            stale: CpuMask::EMPTY,
        })
    }

    /// The runqueue of `cpu` may have changed.
    #[inline]
    pub(super) fn note(&mut self, cpu: CpuId) {
        self.stale.insert(cpu);
    }

    /// All runqueues may have changed.
    pub(super) fn note_all(&mut self) {
        self.stale = CpuMask::first(self.place_of.len());
    }

    /// A runqueue that changed; [`Loads::set_busy`] must be told what waits there.
    #[inline]
    pub(super) fn next_stale(&mut self) -> Option<CpuId> {
        self.stale.take_lowest()
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
}
