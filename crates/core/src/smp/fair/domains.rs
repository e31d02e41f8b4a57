//! Scheduling domains (Linux `kernel/sched/topology.c`, 6.12): what a machine looks like to the
//! balancer. Around each CPU there are ever wider sets of CPUs; each is cut into groups, which are
//! the next narrower sets, or single CPUs in the narrowest.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::ids::CpuId;
use crate::machine::{Level, Machine};

/// The kinds of domains, from the narrowest: SMT, MC, PKG and NUMA. A package domain spans a node,
/// whatever the packages in it, because that is what Linux makes of it.
const KINDS: [Level; 4] = [Level::Core, Level::Llc, Level::Node, Level::Machine];

/// A set of CPUs that is balanced.
#[derive(Debug)]
pub(super) struct Domain {
    /// Its CPUs, in order.
    pub cpus: Vec<CpuId>,
    /// Its groups, by their first CPU.
    pub groups: Vec<Group>,
    /// Some of them are domains, not single CPUs.
    pub has_domains: bool,
    /// The domain that it is a group of, unless it is the widest.
    pub parent: Option<u16>,
    /// Its CPUs are threads of a core.
    pub shares_capacity: bool,
    /// Its CPUs share the last-level cache.
    pub shares_cache: bool,
    /// Its groups are nodes.
    pub is_numa: bool,
    /// The busiest group may have that percentage of this group's load.
    pub imbalance_percent: u64,
    /// After more failures than this, cache-hot tasks are moved too.
    pub cache_nice_tries: u32,
    /// Tasks by which nodes may differ while they have CPUs to spare.
    pub numa_imbalance: u64,
}

impl Domain {
    /// Its CPUs up to `cpu`, and those after it.
    pub fn around(&self, cpu: CpuId) -> (&[CpuId], &[CpuId]) {
        self.cpus.split_at(self.cpus.partition_point(|&other| other <= cpu))
    }
}

/// What is balanced against what.
#[derive(Debug)]
pub(super) struct Group {
    /// Its CPUs, in order.
    pub cpus: Vec<CpuId>,
    /// The domain that it is; `None` for a single CPU.
    pub domain: Option<u16>,
    /// How many cores it has, a part of one being one.
    pub cores: u64,
}

/// All domains of a machine.
#[derive(Debug, Default)]
pub(super) struct Domains {
    pub all: Vec<Domain>,
    /// Per CPU, its domains from the narrowest.
    pub around: Vec<Vec<u16>>,
    /// Per CPU, which of the groups of each of them it is in.
    groups: Vec<Vec<u16>>,
    /// Per CPU, the widest of them that shares the last-level cache.
    pub cache: Vec<Option<u16>>,
    /// Whether cores have threads.
    pub has_smt: bool,
}

impl Domains {
    pub fn new(machine: &Machine) -> Domains {
        let mut domains = Domains {
            around: alloc::vec![Vec::new(); machine.cpus()],
            groups: alloc::vec![Vec::new(); machine.cpus()],
            cache: alloc::vec![None; machine.cpus()],
            ..Domains::default()
        };
        for (kind, level) in KINDS.into_iter().enumerate() {
            for number in 0..machine.groups(level) as u16 {
                domains.add(machine, kind, machine.members(level, number));
            }
        }
        domains.has_smt = domains.all.iter().any(|domain| domain.shares_capacity);
        domains
    }

    /// Adds the domain of these CPUs, unless it would be one that is there already.
    fn add(&mut self, machine: &Machine, kind: usize, cpus: &[CpuId]) {
        let mut groups: Vec<Group> = Vec::new();
        for &cpu in cpus {
            if groups.iter().any(|group| group.cpus.contains(&cpu)) {
                continue;
            }
            let domain = self.around[cpu.index()].last().copied();
            let own = domain.map_or_else(|| [cpu].to_vec(), |it| self[it].cpus.clone());
            let first = |cpu| machine.sharing(Level::Core, cpu).iter().find(|it| own.contains(it));
            let is_first = |cpu: &&CpuId| first(**cpu) == Some(*cpu);
            let cores = own.iter().filter(is_first).count() as u64;
            groups.push(Group { cpus: own, domain, cores });
        }
        if groups.len() < 2 {
            return;
        }
        let (shares_capacity, shares_cache, is_numa) = (kind == 0, kind <= 1, kind == 3);
        let number = self.all.len() as u16;
        for (place, group) in (0..).zip(&groups) {
            if let Some(domain) = group.domain {
                self[domain].parent = Some(number);
            }
            for cpu in &group.cpus {
                self.around[cpu.index()].push(number);
                self.groups[cpu.index()].push(place);
                if shares_cache {
                    self.cache[cpu.index()] = Some(number);
                }
            }
        }
        self.all.push(Domain {
            cpus: cpus.to_vec(),
            has_domains: groups.iter().any(|group| group.domain.is_some()),
            groups,
            parent: None,
            shares_capacity,
            shares_cache,
            is_numa,
            imbalance_percent: if shares_capacity { 110 } else { 117 },
            cache_nice_tries: match kind {
                0 => 0,
                3 => 2,
                _ => 1,
            },
            numa_imbalance: if is_numa { numa_imbalance(machine, cpus[0]) } else { 0 },
        });
    }

    /// Which group of the domain at `depth` around it `cpu` is in.
    pub fn own_group(&self, cpu: CpuId, depth: usize) -> usize {
        self.groups[cpu.index()][depth].into()
    }

    /// The groups of the domain at `depth` around `cpu` in a ring, its own first.
    pub fn ring(&self, cpu: CpuId, depth: usize) -> impl Iterator<Item = usize> + use<> {
        let own = self.own_group(cpu, depth);
        let count = self[self.around[cpu.index()][depth]].groups.len();
        (own..own + count).map(move |place| if place < count { place } else { place - count })
    }

    /// Of the domains around `cpu`, how deep the narrowest lies that has `other`, too.
    pub fn meeting(&self, cpu: CpuId, other: CpuId) -> Option<usize> {
        let of_other = &self.around[other.index()];
        self.around[cpu.index()].iter().position(|domain| of_other.contains(domain))
    }

    /// Whether the two share a last-level cache.
    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        let (of_a, of_b) = (self.cache[a.index()], self.cache[b.index()]);
        a == b || of_a.is_some() && of_a == of_b
    }
}

impl Index<u16> for Domains {
    type Output = Domain;
    fn index(&self, domain: u16) -> &Domain {
        &self.all[usize::from(domain)]
    }
}

impl IndexMut<u16> for Domains {
    fn index_mut(&mut self, domain: u16) -> &mut Domain {
        &mut self.all[usize::from(domain)]
    }
}

/// Tasks by which nodes may differ: an eighth of the CPUs of a node that has one last-level cache,
/// else as many as it has caches.
fn numa_imbalance(machine: &Machine, cpu: CpuId) -> u64 {
    let node = machine.sharing(Level::Node, cpu).len() as u64;
    let caches = node / machine.sharing(Level::Llc, cpu).len() as u64;
    if caches == 1 { node / 8 } else { caches }.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(machine: &str) -> Vec<(usize, usize)> {
        let domains = Domains::new(&Machine::parse(machine).unwrap());
        let shape = |domain: &u16| {
            let domain = &domains[*domain];
            (domain.cpus.len(), domain.groups.len())
        };
        domains.around[0].iter().map(shape).collect()
    }

    #[test]
    fn domains_that_add_nothing_are_left_out() {
        assert_eq!(around("1"), []);
        assert_eq!(around("4 cores"), [(4, 4)]);
        assert_eq!(around("4 cores x 2 threads"), [(2, 2), (8, 4)]);
        assert_eq!(around("2 llcs x 1 cores x 2 threads"), [(2, 2), (4, 2)]);
        assert_eq!(around("2 packages x 2 llcs x 2 cores"), [(2, 2), (8, 4)]);
        assert_eq!(
            around("2 nodes x 2 llcs x 2 cores x 2 threads"),
            [(2, 2), (4, 2), (8, 2), (16, 2)]
        );
    }

    #[test]
    fn groups_come_in_a_ring() {
        let domains = Domains::new(&Machine::parse("4 cores x 2 threads").unwrap());
        let ring: Vec<usize> = domains.ring(CpuId(5), 1).collect();
        assert_eq!(ring, [2, 3, 0, 1]);
        assert!(domains.share_cache(CpuId(0), CpuId(7)));
        assert_eq!([1, 7].map(|cpu| domains.meeting(CpuId(0), CpuId(cpu))), [Some(0), Some(1)]);
        assert_eq!(domains[domains.around[0][1]].groups[1].cores, 1);
    }

    #[test]
    fn nodes_may_differ_by_an_eighth_of_their_cpus() {
        let widest = |machine: &str| {
            let domains = Domains::new(&Machine::parse(machine).unwrap());
            domains[*domains.around[0].last().unwrap()].numa_imbalance
        };
        assert_eq!(widest("2 nodes x 16 cores"), 2);
        assert_eq!(widest("2 nodes x 4 cores"), 1);
        assert_eq!(widest("2 nodes x 4 llcs x 4 cores"), 4);
    }
}
