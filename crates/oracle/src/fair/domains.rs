//! Scheduling domains: per CPU the levels of the machine, each with the groups of the level below.

use anysched_core::machine::Level;
use anysched_core::{CpuId, Machine};

/// What a domain, or the domain below that a group stands for, is for.
pub type Flags = u32;

/// CPUs that find nothing to run pull.
pub const BALANCE_NEWIDLE: Flags = 1;
/// New tasks are spread.
pub const BALANCE_FORK: Flags = 2;
/// Woken tasks may come to the waker.
pub const WAKE_AFFINE: Flags = 4;
/// Siblings of a core.
pub const SHARE_CPUCAPACITY: Flags = 8;
/// Behind one last-level cache.
pub const SHARE_LLC: Flags = 16;
/// One balances at a time.
pub const SERIALIZE: Flags = 32;
/// Tasks are spread over groups of this kind.
pub const PREFER_SIBLING: Flags = 64;
/// Its groups are each CPU's own.
pub const OVERLAP: Flags = 128;
/// Several nodes.
pub const NUMA: Flags = 256;
/// All that mean something only where there are at least two groups.
const NEEDS_GROUPS: Flags = !WAKE_AFFINE;

/// A domain of one CPU.
#[derive(Clone, Debug)]
pub struct Domain {
    /// 0 SMT, 1 MC, 2 PKG, 3 NODE, 4 NUMA.
    pub level: usize,
    /// Its CPUs.
    pub span: Vec<usize>,
    /// See the constants.
    pub flags: Flags,
    /// In the order of the ring, the CPU's own first.
    pub groups: Vec<usize>,
    /// In ms.
    pub min_interval: u64,
    /// In ms.
    pub max_interval: u64,
    /// In ms.
    pub interval: u64,
    /// In jiffies.
    pub last_balance: u64,
    /// In percent.
    pub imbalance_pct: u64,
    /// How often balancing may fail before cache-hot tasks move.
    pub cache_nice_tries: u64,
    /// How often balancing has failed.
    pub failed: u64,
    /// Up to how many tasks a node may keep for itself.
    pub imb_numa_nr: u64,
    /// In ns.
    pub max_newidle_cost: u64,
    /// How often it was to be looked at when there was nothing to run, halved now and then.
    pub newidle_call: u64,
    /// How often it would have helped.
    pub newidle_success: u64,
    /// In how many of 1024 cases it is looked at.
    pub newidle_ratio: u64,
    /// Since when this is counted, in ns.
    pub newidle_stamp: u64,
    /// In jiffies.
    pub last_decay: u64,
}

/// A group of a domain.
#[derive(Clone, Debug)]
pub struct Group {
    level: usize,
    /// Its CPUs.
    pub span: Vec<usize>,
    /// Those of the domain below.
    pub flags: Flags,
    /// How many cores its CPUs belong to.
    pub cores: u64,
    /// What groups of the same CPUs share, an index of [`Domains::imbalance`].
    pub shared: usize,
}

/// What the CPUs behind one last-level cache share.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// CPUs not in the mask of idle ones.
    pub busy: u64,
    /// Some core may be idle.
    pub idle_cores: bool,
    /// How many CPUs a search for an idle one looks at.
    pub scan: u64,
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Domains {
    /// Per CPU, bottom-up.
    pub of: Vec<Vec<Domain>>,
    /// All of them.
    pub groups: Vec<Group>,
    /// By [`Group::shared`]: tasks could not be moved within because of their affinity.
    pub imbalance: Vec<bool>,
    /// By the first CPU of a last-level cache.
    pub shared: Vec<Shared>,
    /// Per CPU, the siblings of its core.
    pub smt: Vec<Vec<usize>>,
    /// Per CPU, its node.
    pub node: Vec<Vec<usize>>,
    /// Groups that several CPUs share, and what groups share: level and first CPU.
    keys: Vec<(usize, usize)>,
}

fn sharing(machine: &Machine, level: Level, cpu: usize) -> Vec<usize> {
    machine.sharing(level, CpuId(cpu as u16)).iter().map(|cpu| cpu.index()).collect()
}

/// `span` from `first` round to the CPU before it.
pub fn ring(span: &[usize], first: usize) -> Vec<usize> {
    let behind = span.iter().filter(|&&cpu| cpu >= first);
    behind.chain(span.iter().filter(|&&cpu| cpu < first)).copied().collect()
}

/// A domain as it begins (sd_init).
fn init(level: usize, span: Vec<usize>) -> Domain {
    let weight = span.len() as u64;
    let mut flags = BALANCE_NEWIDLE | BALANCE_FORK | WAKE_AFFINE | PREFER_SIBLING;
    let (mut imbalance_pct, mut cache_nice_tries) = (117, 1);
    match level {
        0 => {
            flags |= SHARE_CPUCAPACITY | SHARE_LLC;
            (imbalance_pct, cache_nice_tries) = (110, 0);
        }
        1 => flags |= SHARE_LLC,
        4 => {
            flags |= NUMA | SERIALIZE | OVERLAP;
            flags &= !PREFER_SIBLING;
            cache_nice_tries = 2;
        }
        _ => {}
    }
    Domain {
        level,
        span,
        flags,
        groups: Vec::new(),
        min_interval: weight,
        max_interval: 2 * weight,
        interval: weight,
        last_balance: 0,
        imbalance_pct,
        cache_nice_tries,
        failed: 0,
        imb_numa_nr: 0,
        max_newidle_cost: 0,
        newidle_call: 512,
        newidle_success: 256,
        newidle_ratio: 512,
        newidle_stamp: 0,
        last_decay: 0,
    }
}

impl Domains {
    /// Those of `machine` (build_sched_domains).
    pub fn new(machine: &Machine) -> Domains {
        let cpus = machine.cpus();
        let mut domains = Domains {
            of: Vec::new(),
            groups: Vec::new(),
            imbalance: Vec::new(),
            shared: vec![Shared::default(); cpus],
            smt: (0..cpus).map(|cpu| sharing(machine, Level::Core, cpu)).collect(),
            node: (0..cpus).map(|cpu| sharing(machine, Level::Node, cpu)).collect(),
            keys: Vec::new(),
        };
        let levels = [Level::Core, Level::Llc, Level::Node, Level::Node, Level::Machine];
        for cpu in 0..cpus {
            let mut of = Vec::new();
            for (number, level) in levels.into_iter().enumerate() {
                of.push(init(number, sharing(machine, level, cpu)));
                if of.last().is_some_and(|domain: &Domain| domain.span.len() == cpus) {
                    break;
                }
            }
            domains.of.push(of);
        }
        for cpu in 0..cpus {
            domains.build_groups(cpu);
            allow_numa_imbalance(&mut domains.of[cpu]);
        }
        (0..cpus).for_each(|cpu| domains.attach(cpu));
        for cpu in 0..cpus {
            if let Some(llc) = domains.llc(cpu) {
                let (first, weight) = (llc.span[0], llc.span.len() as u64);
                domains.shared[first].busy = weight;
            }
        }
        domains
    }

    /// Groups are the spans of the domain below, of the CPUs of this one from `cpu` on.
    fn build_groups(&mut self, cpu: usize) {
        for index in 0..self.of[cpu].len() {
            let Domain { level, span, flags, .. } = self.of[cpu][index].clone();
            let mut covered: Vec<usize> = Vec::new();
            for other in ring(&span, cpu) {
                if covered.contains(&other) {
                    continue;
                }
                let child = index.checked_sub(1).map(|below| &self.of[other][below]);
                let members = child.map_or(vec![other], |child| child.span.clone());
                let child_flags = child.map_or(0, |child| child.flags);
                covered.extend(&members);
                let group = self.group(level, members, child_flags, flags & OVERLAP != 0);
                self.of[cpu][index].groups.push(group);
            }
        }
    }

    /// The group of these CPUs, which is shared by all their domains unless it is `private`.
    fn group(&mut self, level: usize, span: Vec<usize>, flags: Flags, private: bool) -> usize {
        let same = |group: &Group| group.level == level && group.span == span;
        if let (false, Some(known)) = (private, self.groups.iter().position(same)) {
            return known;
        }
        let key = (level, span[0]);
        let shared = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.imbalance.push(false);
            self.keys.len() - 1
        });
        let first_of_core = |cpu: &&usize| {
            let mut siblings = self.smt[**cpu].iter().filter(|sibling| span.contains(sibling));
            siblings.next() == Some(cpu)
        };
        let cores = span.iter().filter(first_of_core).count() as u64;
        self.groups.push(Group { level, span, flags, cores, shared });
        self.groups.len() - 1
    }

    fn is_degenerate(domain: &Domain) -> bool {
        let used = domain.flags & NEEDS_GROUPS != 0 && domain.groups.len() > 1;
        domain.span.len() == 1 || !used && domain.flags & WAKE_AFFINE == 0
    }

    fn is_parent_degenerate(domain: &Domain, parent: &Domain) -> bool {
        if Self::is_degenerate(parent) {
            return true;
        }
        let idle = if parent.groups.len() == 1 { NEEDS_GROUPS } else { 0 };
        domain.span == parent.span && parent.flags & !idle & !domain.flags == 0
    }

    /// Removes the domains of `cpu` that add nothing (cpu_attach_domain).
    fn attach(&mut self, cpu: usize) {
        let of = &mut self.of[cpu];
        let mut index = 0;
        while index + 1 < of.len() {
            if !Self::is_parent_degenerate(&of[index], &of[index + 1]) {
                index += 1;
                continue;
            }
            let parent = of.remove(index + 1);
            if let Some(above) = of.get(index + 1) {
                self.groups[above.groups[0]].flags = of[index].flags;
            }
            of[index].flags |= parent.flags & PREFER_SIBLING;
        }
        if of.first().is_some_and(Self::is_degenerate) {
            of.remove(0);
            if let Some(lowest) = of.first() {
                self.groups[lowest.groups[0]].flags = 0;
            }
        }
    }

    /// The widest domain of `cpu` behind one last-level cache.
    pub fn llc(&self, cpu: usize) -> Option<&Domain> {
        self.of[cpu].iter().rev().find(|domain| domain.flags & SHARE_LLC != 0)
    }

    /// A number for the last-level cache of `cpu`.
    pub fn llc_id(&self, cpu: usize) -> usize {
        self.llc(cpu).map_or(cpu, |llc| llc.span[0])
    }

    /// How many CPUs are behind the last-level cache of `cpu`.
    pub fn llc_size(&self, cpu: usize) -> u64 {
        self.llc(cpu).map_or(1, |llc| llc.span.len() as u64)
    }

    /// What the CPUs behind the last-level cache of `cpu` share.
    pub fn shared(&mut self, cpu: usize) -> Option<&mut Shared> {
        let first = self.llc(cpu)?.span[0];
        Some(&mut self.shared[first])
    }

    /// Whether any core has siblings.
    pub fn has_smt(&self) -> bool {
        self.smt.iter().any(|siblings| siblings.len() > 1)
    }
}

/// An eighth of a node with one last-level cache, or as many as it has caches.
fn allow_numa_imbalance(of: &mut [Domain]) {
    let (mut allowed, mut span) = (0, 1);
    for index in 0..of.len() {
        let weight = of[index].span.len() as u64;
        let child = index.checked_sub(1).map(|below| &of[below]);
        let child = child.filter(|child| child.flags & SHARE_LLC != 0);
        match child.filter(|_| of[index].flags & SHARE_LLC == 0) {
            Some(child) => {
                let llcs = weight / child.span.len() as u64;
                allowed = if llcs == 1 { weight / 8 } else { llcs }.max(1);
                let numa = of[index + 1..].iter().find(|above| above.flags & NUMA != 0);
                span = numa.map_or(weight, |numa| numa.span.len() as u64);
                of[index].imb_numa_nr = allowed;
            }
            None => of[index].imb_numa_nr = allowed * (weight / span).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: &str) -> Domains {
        Domains::new(&Machine::parse(machine).unwrap())
    }

    fn levels(domains: &Domains, cpu: usize) -> Vec<(usize, usize)> {
        domains.of[cpu].iter().map(|domain| (domain.level, domain.span.len())).collect()
    }

    fn spans(domains: &Domains, cpu: usize, index: usize) -> Vec<Vec<usize>> {
        let groups = domains.of[cpu][index].groups.iter();
        groups.map(|&group| domains.groups[group].span.clone()).collect()
    }

    #[test]
    fn a_single_cpu_has_none_and_four_have_one() {
        assert!(of("1").of[0].is_empty());
        let four = of("4");
        assert_eq!(levels(&four, 2), [(1, 4)]);
        assert_eq!(spans(&four, 2, 0), [[2], [3], [0], [1]]);
        assert_eq!([four.shared[0].busy, four.shared[0].scan], [4, 0]);
        assert!(four.groups.iter().all(|group| group.span.len() > 1 || group.flags == 0));
    }

    #[test]
    fn two_nodes_of_two_cores_with_siblings() {
        let two = of("2 nodes x 2 cores x 2 threads");
        assert_eq!(levels(&two, 5), [(0, 2), (1, 4), (4, 8)]);
        assert_eq!(spans(&two, 5, 0), [[5], [4]]);
        assert_eq!(spans(&two, 5, 1), [[4, 5], [6, 7]]);
        assert_eq!(spans(&two, 5, 2), [[4, 5, 6, 7], [0, 1, 2, 3]]);
        let numa = &two.of[5][2];
        assert_eq!([numa.cache_nice_tries, numa.imb_numa_nr, numa.imbalance_pct], [2, 1, 117]);
        // The own group has the flags of the domain that is left below, the other those of NODE.
        let [own, other] = [numa.groups[0], numa.groups[1]].map(|group| two.groups[group].flags);
        assert_eq!(own & SHARE_LLC, SHARE_LLC);
        assert_eq!(other & (SHARE_LLC | PREFER_SIBLING), PREFER_SIBLING);
        assert_eq!(two.groups[two.of[5][1].groups[0]].cores, 1);
    }

    #[test]
    fn caches_within_a_node() {
        let two = of("2 llcs x 2 cores");
        assert_eq!(levels(&two, 3), [(1, 2), (2, 4)]);
        assert_eq!([two.llc_id(3), two.llc_id(1)], [2, 0]);
        assert_eq!(levels(&of("2 llcs x 1 cores"), 0), [(2, 2)]);
        assert!(of("2 llcs x 1 cores").llc(0).is_none());
        assert_eq!(of("2 nodes x 2 llcs x 2 cores").of[0][2].imb_numa_nr, 2);
    }
}
