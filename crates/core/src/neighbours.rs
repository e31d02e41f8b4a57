//! Who is near whom, as sets of CPUs: searches for a near CPU look at 64 CPUs at a time.

use alloc::vec::Vec;

use crate::ids::{CpuId, CpuMask};
use crate::machine::{Level, Machine};

/// The CPUs of each group of the levels between a core and the whole machine, as sets.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    masks: [Vec<CpuMask>; 3],
    /// Per level, the group of each CPU.
    group_of: [Vec<u16>; 3],
}

impl Neighbours {
    const LEVELS: [Level; 3] = [Level::Llc, Level::Package, Level::Node];

    pub(crate) fn new(machine: &Machine) -> Neighbours {
        let mask = |level, group| {
            let mut mask = CpuMask::EMPTY;
            machine.members(level, group as u16).iter().for_each(|&cpu| mask.insert(cpu));
            mask
        };
        Neighbours {
            masks: Neighbours::LEVELS
                .map(|level| (0..machine.groups(level)).map(|group| mask(level, group)).collect()),
            group_of: Neighbours::LEVELS
                .map(|level| machine.cpu_ids().map(|cpu| machine.cpu(cpu).group(level)).collect()),
        }
    }

    /// The CPUs that share `level`, which is an LLC, a package or a node, with `cpu`.
    #[inline]
    pub(crate) fn of(&self, level: Level, cpu: CpuId) -> &CpuMask {
        let level = level as usize - Level::Llc as usize;
        &self.masks[level][usize::from(self.group_of[level][cpu.index()])]
    }
}
