//! Builds a machine whose levels nest from descriptions of single CPUs.

use super::{Error, Topology};
use anysched_core::machine::Cpu;
use anysched_core::{MAX_CPUS, Machine};
use std::collections::{BTreeMap, BTreeSet};

/// What a source reports about one online CPU. Groups have arbitrary numbers; `None` is not
/// reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The operating system's number.
    pub(super) number: u32,
    pub(super) core: Option<u32>,
    pub(super) llc: Option<u32>,
    pub(super) package: Option<u32>,
    pub(super) node: Option<u32>,
    /// In any unit, above 0.
    pub(super) capacity: Option<u32>,
}

/// Consecutive numbers for things in the order in which they first occur.
pub(super) struct Numbers<K>(BTreeMap<K, u32>);

impl<K: Ord> Numbers<K> {
    pub(super) fn new() -> Numbers<K> {
        Numbers(BTreeMap::new())
    }

    pub(super) fn of(&mut self, key: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

/// The machine that consists of the CPUs in `seen`, read from the source called `place`; `warnings`
/// are those so far.
///
/// Errors: no CPUs or more than 1024; a property known of some CPUs only; levels that do not nest.
pub(super) fn assemble(
    place: &str,
    mut seen: Vec<Seen>,
    mut warnings: Vec<String>,
) -> Result<Topology, Error> {
    if !(1..=MAX_CPUS).contains(&seen.len()) {
        return Err(count(place, seen.len()));
    }
    seen.sort_by_key(|cpu| cpu.number);
    if let Some(pair) = seen.windows(2).find(|pair| pair[0].number == pair[1].number) {
        let message = format!("CPU {} is listed twice", pair[0].number);
        return Err(Error::new(place, message, "list each CPU once"));
    }
    let cpus: Vec<u32> = (0..seen.len() as u32).collect();
    let node = level(place, &seen, "node", |cpu| cpu.node)?.unwrap_or(vec![0; seen.len()]);
    let package = level(place, &seen, "package", |cpu| cpu.package)?;
    let mut package = package.unwrap_or_else(|| node.clone());
    let mut llc = level(place, &seen, "last-level cache", |cpu| cpu.llc)?;
    let core = level(place, &seen, "core", |cpu| cpu.core)?.unwrap_or_else(|| {
        warnings.push("no cores are described; assuming one per CPU".to_string());
        cpus
    });
    split(place, &seen, &node, &mut package, llc.as_deref_mut(), &mut warnings)?;
    let llc = llc.unwrap_or_else(|| {
        warnings.push("no caches are described; assuming one per package".to_string());
        package.clone()
    });
    let levels = [
        ("a core", "last-level cache", &core, &llc),
        ("a last-level cache", "package", &llc, &package),
        ("a package", "node", &package, &node),
    ];
    for (inner, outer, groups, around) in levels {
        nests(place, &seen, (inner, outer), groups, around)?;
    }
    let capacities = capacities(place, &seen)?;
    let [core, llc, package, node] = [core, llc, package, node].map(renumber);
    let cpu = |n: usize| Cpu {
        core: core[n],
        llc: llc[n],
        package: package[n],
        node: node[n],
        capacity: capacities[n],
    };
    let machine = Machine::new((0..seen.len()).map(cpu).collect())
        .map_err(|error| Error::new(place, error.to_string(), NESTING))?;
    Ok(Topology { machine, numbers: seen.iter().map(|cpu| cpu.number).collect(), warnings })
}

/// The error for a source with this number of CPUs.
pub(super) fn count(place: &str, cpus: usize) -> Error {
    let remedy = format!("a machine has 1 to {MAX_CPUS} CPUs");
    match cpus {
        0 => Error::new(place, "no CPU is online", remedy),
        _ => Error::new(place, format!("{cpus} CPUs are online"), remedy),
    }
}

const NESTING: &str = "a core must be behind one last-level cache, a cache in one package, a \
                       package in one node: correct the description, or give it in words, such \
                       as \"2 packages x 4 cores\"";

/// The groups of one level; `None` if no CPU reports it.
fn level(
    place: &str,
    seen: &[Seen],
    what: &str,
    group: impl Fn(&Seen) -> Option<u32>,
) -> Result<Option<Vec<u32>>, Error> {
    let (with, without): (Vec<&Seen>, Vec<&Seen>) =
        seen.iter().partition(|cpu| group(cpu).is_some());
    match (with.first(), without.first()) {
        (Some(with), Some(without)) => {
            let (with, without) = (with.number, without.number);
            let message = format!("CPU {without} has no {what}, but CPU {with} has one");
            Err(Error::new(place, message, "report it for all CPUs or for none"))
        }
        (Some(_), None) => Ok(Some(seen.iter().filter_map(group).collect())),
        (None, _) => Ok(None),
    }
}

/// Splits each package that contains several nodes into one package per node, and caches likewise.
fn split(
    place: &str,
    seen: &[Seen],
    node: &[u32],
    package: &mut [u32],
    llc: Option<&mut [u32]>,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let around = |inner: &[u32], outer: &[u32]| {
        let mut map: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (&inner, &outer) in inner.iter().zip(outer) {
            map.entry(inner).or_default().insert(outer);
        }
        map
    };
    let (nodes_of, packages_of) = (around(package, node), around(node, package));
    let wide = |package: u32| nodes_of[&package].len() > 1;
    if let Some(cpu) =
        (0..seen.len()).find(|&n| wide(package[n]) && packages_of[&node[n]].len() > 1)
    {
        let cpu = seen[cpu].number;
        let message = format!(
            "the node and the package of CPU {cpu} overlap: each has CPUs that the other lacks"
        );
        return Err(Error::new(place, message, NESTING));
    }
    let mut caches = 0;
    if let Some(llc) = llc {
        let (nodes_of, packages_of) = (around(llc, node), around(llc, package));
        let divided = |llc: u32| nodes_of[&llc].len() > 1 && packages_of[&llc].len() == 1;
        caches = nodes_of.keys().filter(|&&llc| divided(llc)).count();
        let mut numbers = Numbers::new();
        for (llc, &node) in llc.iter_mut().zip(node) {
            *llc = numbers.of((*llc, if divided(*llc) { node } else { 0 }));
        }
    }
    let packages = nodes_of.keys().filter(|&&package| wide(package)).count();
    let mut numbers = Numbers::new();
    for (package, &node) in package.iter_mut().zip(node) {
        *package = numbers.of((*package, if wide(*package) { node } else { 0 }));
    }
    for (count, what) in [(packages, "package"), (caches, "last-level cache")] {
        let text = match count {
            0 => continue,
            1 => format!("a {what} has several NUMA nodes inside (sub-NUMA clustering, NPS): it"),
            _ => format!(
                "{count} {what}s have several NUMA nodes inside (sub-NUMA clustering, NPS): each"
            ),
        };
        warnings
            .push(format!("{text} is split by node, because a node must contain whole {what}s"));
    }
    Ok(())
}

/// Checks that no group has CPUs from two groups of the next level.
fn nests(
    place: &str,
    seen: &[Seen],
    (inner, outer): (&str, &str),
    groups: &[u32],
    around: &[u32],
) -> Result<(), Error> {
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    for (cpu, &group) in groups.iter().enumerate() {
        let first = *first.entry(group).or_insert(cpu);
        if around[first] != around[cpu] {
            let (first, cpu) = (seen[first].number, seen[cpu].number);
            let message = format!("CPUs {first} and {cpu} share {inner}, but no {outer}");
            return Err(Error::new(place, message, NESTING));
        }
    }
    Ok(())
}

/// Capacities scaled so that the fastest has 1024.
fn capacities(place: &str, seen: &[Seen]) -> Result<Vec<u16>, Error> {
    let Some(given) = level(place, seen, "capacity", |cpu| cpu.capacity)? else {
        return Ok(vec![1024; seen.len()]);
    };
    let most = given.iter().copied().max().map_or(1, u64::from).max(1);
    let scaled = |capacity: u32| (u64::from(capacity) * 1024 + most / 2) / most;
    Ok(given.into_iter().map(|capacity| scaled(capacity).max(1) as u16).collect())
}

/// Groups numbered from 0 in the order of their first CPUs.
fn renumber(groups: Vec<u32>) -> Vec<u16> {
    let mut numbers = Numbers::new();
    groups.into_iter().map(|group| numbers.of(group) as u16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::CpuId;
    use anysched_core::machine::Level;

    /// CPUs with the numbers of their groups: core, cache, package, node.
    fn seen(cpus: &[[u32; 4]]) -> Vec<Seen> {
        let cpu = |(number, &[core, llc, package, node]): (usize, &[u32; 4])| Seen {
            number: number as u32,
            core: Some(core),
            llc: Some(llc),
            package: Some(package),
            node: Some(node),
            capacity: None,
        };
        cpus.iter().enumerate().map(cpu).collect()
    }

    fn refused(seen: Vec<Seen>) -> String {
        assemble("file", seen, Vec::new()).unwrap_err().to_string()
    }

    #[test]
    fn nodes_inside_split_packages_and_caches() {
        // One package with a shared cache and two nodes; the other is regular.
        let cpus = [[0, 0, 0, 0], [1, 0, 0, 1], [2, 1, 1, 2], [3, 1, 1, 2]];
        let found = assemble("file", seen(&cpus), Vec::new()).unwrap();
        let counts = Level::ALL.map(|level| found.machine.groups(level));
        assert_eq!(counts, [4, 3, 3, 3, 1]);
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
        assert_eq!(found.machine.sharing(Level::Package, CpuId(2)), [CpuId(2), CpuId(3)]);
    }

    #[test]
    fn what_does_not_nest_is_refused() {
        for (cpus, said) in [
            (
                vec![[0, 0, 0, 0], [0, 1, 0, 0]],
                "CPUs 0 and 1 share a core, but no last-level cache",
            ),
            (
                vec![[0, 0, 0, 0], [1, 0, 1, 0]],
                "CPUs 0 and 1 share a last-level cache, but no pack",
            ),
            (vec![[0, 0, 0, 0], [0, 0, 0, 1]], "CPUs 0 and 1 share a core, but no"),
            (
                vec![[0, 0, 0, 0], [1, 1, 0, 1], [2, 2, 1, 1]],
                "the node and the package of CPU 1 overlap",
            ),
        ] {
            let message = refused(seen(&cpus));
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn what_is_not_said_follows_from_the_rest() {
        let mut cpus = seen(&[[0, 0, 0, 7], [1, 0, 0, 7], [2, 0, 0, 3]]);
        for cpu in &mut cpus {
            (cpu.core, cpu.llc, cpu.package) = (None, None, None);
        }
        let found = assemble("file", cpus.clone(), Vec::new()).unwrap();
        assert_eq!(Level::ALL.map(|level| found.machine.groups(level)), [3, 2, 2, 2, 1]);
        assert_eq!(found.warnings.len(), 2);
        cpus[1].node = None;
        assert!(refused(cpus).contains("CPU 1 has no node, but CPU 0 has one"));
    }

    #[test]
    fn the_fastest_cpu_has_capacity_1024() {
        let mut cpus = seen(&[[0; 4], [1, 0, 0, 0], [2, 0, 0, 0]]);
        for (cpu, capacity) in cpus.iter_mut().zip([446, 871, 1]) {
            cpu.capacity = Some(capacity);
        }
        let machine = assemble("file", cpus, Vec::new()).unwrap().machine;
        let capacities: Vec<u16> = machine.cpu_ids().map(|cpu| machine.cpu(cpu).capacity).collect();
        // 446 · 1024 / 871 = 524.3, and 1.2 for the last.
        assert_eq!(capacities, [524, 1024, 1]);
    }

    #[test]
    fn counts_are_checked() {
        assert!(refused(Vec::new()).contains("no CPU is online; a machine has 1 to 1024 CPUs"));
        let many: Vec<[u32; 4]> = (0..1025).map(|core| [core, 0, 0, 0]).collect();
        assert!(refused(seen(&many)).contains("1025 CPUs are online"));
        let mut twice = seen(&[[0; 4], [1, 0, 0, 0]]);
        twice[1].number = 0;
        assert!(refused(twice).contains("CPU 0 is listed twice"));
    }
}
