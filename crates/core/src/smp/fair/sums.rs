//! What domains are judged by, summed over their CPUs.

use alloc::vec::Vec;
use core::ops::{AddAssign, SubAssign};

use super::domains::{Domains, Group};
use crate::ids::{CpuId, CpuMask};
use crate::machine::Machine;

/// What a CPU does, or the CPUs of a group together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Usable CPUs.
    pub cpus: u64,
    /// Those of them that are idle.
    pub idle: u64,
    /// Those with more than one task.
    pub crowded: u64,
    /// Tasks, running ones included.
    pub tasks: u64,
    /// Those of them that count as tasks to be moved.
    pub to_move: u64,
    /// Averages: see [`Average`](super::pelt::Average). Utilisation is at most 1024 a CPU.
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, more: Sum) {
        self.cpus += more.cpus;
        self.idle += more.idle;
        self.crowded += more.crowded;
        self.tasks += more.tasks;
        self.to_move += more.to_move;
        self.load += more.load;
        self.runnable += more.runnable;
        self.util += more.util;
    }
}

impl SubAssign for Sum {
    fn sub_assign(&mut self, less: Sum) {
        self.cpus -= less.cpus;
        self.idle -= less.idle;
        self.crowded -= less.crowded;
        self.tasks -= less.tasks;
        self.to_move -= less.to_move;
        self.load -= less.load;
        self.runnable -= less.runnable;
        self.util -= less.util;
    }
}

/// Sums of all CPUs and domains, kept where some domains are groups of others.
#[derive(Debug)]
pub(super) struct Sums {
    cpus: Vec<Sum>,
    /// Of domains that are groups of others.
    domains: Vec<Sum>,
    /// CPUs whose sum may be wrong.
    stale: CpuMask,
}

impl Sums {
    /// Nothing is known.
    pub fn new(machine: &Machine, domains: &Domains) -> Sums {
        let are_needed = domains.all.iter().any(|domain| domain.has_domains);
        let cpus = if are_needed { machine.cpus() } else { 0 };
        Sums {
            cpus: alloc::vec![Sum::default(); cpus],
            domains: alloc::vec![Sum::default(); domains.all.len()],
            stale: CpuMask::first(cpus),
        }
    }

    /// Something about `cpu` has changed.
    #[inline]
    pub fn note(&mut self, cpu: CpuId) {
        if !self.cpus.is_empty() {
            self.stale.insert(cpu);
        }
    }

    /// A CPU whose sum has to be [set](Sums::set), the next one each time.
    pub fn next_stale(&mut self) -> Option<CpuId> {
        self.stale.take_lowest()
    }

    /// What `cpu` does.
    pub fn set(&mut self, domains: &Domains, cpu: CpuId, sum: Sum) {
        let old = core::mem::replace(&mut self.cpus[cpu.index()], sum);
        if old == sum {
            return;
        }
        let Some((_widest, groups)) = domains.around[cpu.index()].split_last() else { return };
        for &domain in groups {
            let all = &mut self.domains[usize::from(domain)];
            *all += sum;
            *all -= old;
        }
    }

    /// Of a group that is this `domain`, without what the CPUs `without` of it do; its capacity is
    /// that of all.
    pub fn of_domain(&self, domain: u16, group: &Group, without: &CpuMask) -> Sum {
        let whole = self.domains[usize::from(domain)];
        let mut sum = whole;
        if !without.is_empty() {
            for cpu in group.cpus.iter().filter(|cpu| without.contains(**cpu)) {
                sum -= self.cpus[cpu.index()];
            }
        }
        Sum { cpus: whole.cpus, ..sum }
    }
}
