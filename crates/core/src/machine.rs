//! The machine: CPUs and how close they are to each other. Immutable once built.

use alloc::vec::Vec;
use core::fmt;

use crate::ids::{CpuId, MAX_CPUS};
use crate::time::Span;

/// A machine of 1 to [`MAX_CPUS`] CPUs, each in one group of every [`Level`].
/// Groups nest: all CPUs of a core share an LLC, all CPUs of an LLC a package, and all CPUs of a
/// package a node.
/// node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    cpus: Vec<Cpu>,
    /// Per level, the members of each group, ascending.
    groups: [Vec<Vec<CpuId>>; 5],
    tick: Option<Span>,
}

/// Where one CPU sits: the number of its group on each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The physical core; its CPUs are SMT siblings.
    pub core: u16,
    /// The last-level cache.
    pub llc: u16,
    /// The package (socket).
    pub package: u16,
    /// The NUMA node.
    pub node: u16,
    /// Work done per unit of time, 1024 for the fastest CPU; `1 ..= 1024`.
    pub capacity: u16,
}

/// What CPUs can share, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// A physical core: SMT siblings.
    Core,
    /// A last-level cache.
    Llc,
    /// A package (socket).
    Package,
    /// A NUMA node.
    Node,
    /// Everything.
    Machine,
}

impl Level {
    /// All levels, nearest first.
    pub const ALL: [Level; 5] =
        [Level::Core, Level::Llc, Level::Package, Level::Node, Level::Machine];
}

/// How far a task moves between two CPUs: the nearest level they share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Distance {
    /// The same CPU.
    Same,
    /// Another CPU that shares this level but none nearer.
    Shares(Level),
}

impl Machine {
    /// `cpus` CPUs in one package behind one LLC, without SMT.
    ///
    /// Errors: `cpus` is not in `1 ..= 1024`.
    pub fn flat(cpus: usize) -> Result<Machine, TopologyError> {
        let cpu = |core| Cpu { core, llc: 0, package: 0, node: 0, capacity: 1024 };
        Machine::new((0..cpus.min(MAX_CPUS + 1)).map(|n| cpu(n as u16)).collect())
    }

    /// A machine of exactly these CPUs; the n-th is `CpuId(n)`.
    ///
    /// Errors: none or too many CPUs, a capacity outside `1 ..= 1024`, or groups that do not
    /// nest.
    pub fn new(cpus: Vec<Cpu>) -> Result<Machine, TopologyError> {
        if cpus.is_empty() || cpus.len() > MAX_CPUS {
            return Err(TopologyError::Count(cpus.len()));
        }
        if let Some(cpu) = cpus.iter().position(|cpu| !(1..=1024).contains(&cpu.capacity)) {
            return Err(TopologyError::Capacity(CpuId(cpu as u16)));
        }
        let mut groups: [Vec<Vec<CpuId>>; 5] = Default::default();
        for (level, groups) in Level::ALL.into_iter().zip(&mut groups) {
            for (index, cpu) in cpus.iter().enumerate() {
                let group = usize::from(cpu.group(level));
                if groups.len() <= group {
                    groups.resize(group + 1, Vec::new());
                }
                groups[group].push(CpuId(index as u16));
            }
        }
        for pair in Level::ALL.windows(2) {
            for members in &groups[pair[0] as usize] {
                let mut outer = members.iter().map(|cpu| cpus[cpu.index()].group(pair[1]));
                let first = outer.next();
                if outer.any(|group| Some(group) != first) {
                    return Err(TopologyError::Nesting(pair[0], pair[1]));
                }
            }
        }
        Ok(Machine { cpus, groups, tick: None })
    }

    /// Reads a topology such as `"2 nodes x 2 packages x 4 cores x 2 threads"` or `"8 cpus"`.
    ///
    /// Levels go from the widest to the narrowest, each at most once: `nodes`, `packages`, `llcs`,
    /// `cores` (or `cpus`), `threads`. Missing levels count 1. Each count is per unit of the level
    /// before it; packages have one LLC unless `llcs` is given. CPUs are numbered so that nearby
    /// ones are adjacent.
    ///
    /// Errors: an unknown level, levels out of order, a count of 0, or more than 1024 CPUs.
    pub fn parse(text: &str) -> Result<Machine, TopologyError> {
        const LEVELS: [&str; 5] = ["node", "package", "llc", "core", "thread"];
        let mut counts = [1usize; 5];
        let mut next = 0;
        for part in text.split(['x', '×', '*']) {
            let part = part.trim();
            let split = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let count: usize = part[..split].parse().map_err(|_| TopologyError::Syntax)?;
            let word = part[split..].trim();
            let word = word.strip_suffix('s').unwrap_or(word);
            let word = if matches!(word, "cpu" | "") { "core" } else { word };
            let level =
                LEVELS.iter().position(|&level| level == word).ok_or(TopologyError::Syntax)?;
            if level < next {
                return Err(TopologyError::Order);
            }
            next = level + 1;
            counts[level] = count;
        }
        let total = counts.iter().try_fold(1usize, |total, &n| total.checked_mul(n));
        let total = total.filter(|n| (1..=MAX_CPUS).contains(n));
        let Some(total) = total else {
            return Err(TopologyError::Count(total.unwrap_or(0)));
        };
        let [_, packages, llcs, cores, threads] = counts;
        let cpu = |n: usize| {
            let core = n / threads;
            let llc = core / cores;
            let package = llc / llcs;
            Cpu {
                core: core as u16,
                llc: llc as u16,
                package: package as u16,
                node: (package / packages) as u16,
                capacity: 1024,
            }
        };
        Machine::new((0..total).map(cpu).collect())
    }

    /// The same machine with a periodic tick, for policies that do not define their own. `None`:
    /// timers are exact.
    pub fn with_tick(mut self, tick: Option<Span>) -> Machine {
        self.tick = tick.filter(|&tick| tick > Span::ZERO);
        self
    }

    /// The period of the tick, if this machine has a fixed one. Never `Some(Span::ZERO)`.
    pub fn tick(&self) -> Option<Span> {
        self.tick
    }

    /// The period of the tick, or `default` if none has been fixed for this machine.
    pub fn tick_or(&self, default: Span) -> Span {
        self.tick.unwrap_or(default)
    }

    /// How many CPUs there are, `1 ..= 1024`.
    #[inline]
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// All CPUs in ascending order.
    pub fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len() as u16).map(CpuId)
    }

    /// Where `cpu` sits.
    #[inline]
    pub fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }

    /// How many groups there are on `level`.
    pub fn groups(&self, level: Level) -> usize {
        self.groups[level as usize].len()
    }

    /// The CPUs of one group, ascending.
    pub fn members(&self, level: Level, group: u16) -> &[CpuId] {
        &self.groups[level as usize][usize::from(group)]
    }

    /// The CPUs that share `level` with `cpu`, including `cpu`, ascending.
    #[inline]
    pub fn sharing(&self, level: Level, cpu: CpuId) -> &[CpuId] {
        self.members(level, self.cpus[cpu.index()].group(level))
    }

    /// How far apart two CPUs are.
    #[inline]
    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        if a == b {
            return Distance::Same;
        }
        let (a, b) = (self.cpu(a), self.cpu(b));
        let shares = |level: &Level| a.group(*level) == b.group(*level);
        Distance::Shares(Level::ALL.into_iter().find(shares).unwrap_or(Level::Machine))
    }
}

impl Cpu {
    /// The number of this CPU's group on `level`.
    #[inline]
    pub fn group(&self, level: Level) -> u16 {
        match level {
            Level::Core => self.core,
            Level::Llc => self.llc,
            Level::Package => self.package,
            Level::Node => self.node,
            Level::Machine => 0,
        }
    }
}

/// Why a topology was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// Not `1 ..= 1024` CPUs.
    Count(usize),
    /// A CPU's capacity is not in `1 ..= 1024`.
    Capacity(CpuId),
    /// A group of the first level spans several groups of the second.
    Nesting(Level, Level),
    /// The text is not of the form `N level x N level …`.
    Syntax,
    /// Levels are not given from the widest to the narrowest, or one is given twice.
    Order,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Count(_) => {
                write!(f, "a machine has 1 to {MAX_CPUS} CPUs")
            }
            TopologyError::Capacity(cpu) => {
                write!(f, "the capacity of CPU {} is not in 1..=1024", cpu.0)
            }
            TopologyError::Nesting(inner, outer) => {
                write!(f, "a group of level {inner:?} spreads over several of level {outer:?}")
            }
            TopologyError::Syntax => f.write_str(
                "a topology looks like \"2 nodes x 2 packages x 4 cores x 2 threads\"; its levels \
                 are nodes, packages, llcs, cores and threads",
            ),
            TopologyError::Order => f.write_str(
                "levels go from the widest to the narrowest, each once: nodes, packages, llcs, \
                 cores, threads",
            ),
        }
    }
}

impl core::error::Error for TopologyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_string_nests_its_levels() {
        let machine = Machine::parse("2 nodes x 2 packages x 4 cores x 2 threads").unwrap();
        assert_eq!(machine.cpus(), 32);
        let groups = Level::ALL.map(|level| machine.groups(level));
        assert_eq!(groups, [16, 4, 4, 2, 1]);
        assert_eq!(machine.sharing(Level::Core, CpuId(5)), [CpuId(4), CpuId(5)]);
        let far = |a, b| machine.distance(CpuId(a), CpuId(b));
        assert_eq!(far(3, 3), Distance::Same);
        assert_eq!(far(2, 3), Distance::Shares(Level::Core));
        assert_eq!(far(0, 7), Distance::Shares(Level::Llc));
        assert_eq!(far(0, 8), Distance::Shares(Level::Node));
        assert_eq!(far(0, 16), Distance::Shares(Level::Machine));
    }

    #[test]
    fn short_forms() {
        assert_eq!(Machine::parse("8"), Machine::flat(8));
        assert_eq!(Machine::parse("8 cpus"), Machine::flat(8));
        assert_eq!(Machine::parse("2 llcs x 4 cores").unwrap().groups(Level::Llc), 2);
    }

    #[test]
    fn wrong_topologies_are_refused() {
        for (text, error) in [
            ("", TopologyError::Syntax),
            ("4 sockets", TopologyError::Syntax),
            ("4 cores x 2 nodes", TopologyError::Order),
            ("4 cores x 2 cores", TopologyError::Order),
            ("0 cores", TopologyError::Count(0)),
            ("1025", TopologyError::Count(0)),
            ("99999999999999999999 cores", TopologyError::Syntax),
        ] {
            assert_eq!(Machine::parse(text), Err(error), "{text}");
        }
        let cpu = Cpu { core: 0, llc: 0, package: 0, node: 0, capacity: 1024 };
        let split = Machine::new([cpu, Cpu { llc: 1, ..cpu }].into());
        assert_eq!(split, Err(TopologyError::Nesting(Level::Core, Level::Llc)));
    }
}
