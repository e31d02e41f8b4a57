//! Which CPUs are near each other, as sets: a search for a nearby CPU examines 64 CPUs at a time.

use alloc::vec::Vec;

use crate::ids::{CpuId, CpuMask};
use crate::machine::{Level, Machine};

/// The CPUs of each group of each level, as sets.
#[derive(Clone, Debug)]
pub struct Neighbours {
    masks: [Vec<CpuMask>; 5],
}

impl Neighbours {
    /// The neighbours on `machine`.
    pub fn new(machine: &Machine) -> Neighbours {
        let mask = |level, group| CpuMask::of(machine.members(level, group as u16).iter().copied());
        let masks = Level::ALL
            .map(|level| (0..machine.groups(level)).map(|group| mask(level, group)).collect());
        Neighbours { masks }
    }

    /// The CPUs that share `level` with `cpu`.
    #[inline]
    pub fn of(&self, machine: &Machine, level: Level, cpu: CpuId) -> &CpuMask {
        &self.masks[level as usize][usize::from(machine.cpu(cpu).group(level))]
    }
}

/// Which cores and caches are entirely idle.
#[derive(Clone, Debug)]
pub struct Idleness {
    /// Per core and per cache, how many of its CPUs are not idle.
    busy: [Vec<u16>; 2],
    /// The CPUs of idle cores and of idle caches.
    idle: [CpuMask; 2],
}

impl Idleness {
    const LEVELS: [Level; 2] = [Level::Core, Level::Llc];

    /// Starts with all CPUs idle.
    pub fn new(machine: &Machine) -> Idleness {
        Idleness {
            busy: Idleness::LEVELS.map(|level| alloc::vec![0; machine.groups(level)]),
            idle: [CpuMask::first(machine.cpus()), CpuMask::first(machine.cpus())],
        }
    }

    /// `cpu` becomes idle if it was busy, or busy if it was idle.
    #[inline]
    pub fn change(&mut self, machine: &Machine, neighbours: &Neighbours, cpu: CpuId, idle: bool) {
        for (at, level) in Idleness::LEVELS.into_iter().enumerate() {
            let group = usize::from(machine.cpu(cpu).group(level));
            let busy = &mut self.busy[at][group];
            if idle {
                *busy -= 1;
                if *busy == 0 {
                    self.idle[at].insert_all(neighbours.of(machine, level, cpu));
                }
            } else {
                if *busy == 0 {
                    self.idle[at].remove_all(neighbours.of(machine, level, cpu));
                }
                *busy += 1;
            }
        }
    }

    /// The CPUs of idle cores.
    pub fn cores(&self) -> &CpuMask {
        &self.idle[0]
    }

    /// The CPUs of idle caches.
    pub fn caches(&self) -> &CpuMask {
        &self.idle[1]
    }
}
