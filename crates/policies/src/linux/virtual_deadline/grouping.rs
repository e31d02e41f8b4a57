//! Which CPUs share a runqueue.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_core::Machine;
use anysched_core::ids::{CpuId, CpuMask, CpuSet};
use anysched_core::machine::Level;
use anysched_core::params::{ParamError, Value};

/// How the CPUs of a machine are divided into groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// By package if the machine has several, else by core (GFS's own rule).
    Auto,
    /// The threads of a core.
    Core,
    /// The CPUs behind a last-level cache.
    Llc,
    /// The CPUs of a package.
    Package,
    /// The CPUs of a NUMA node.
    Node,
    /// All CPUs together.
    Single,
    /// These sets, which divide the machine.
    List(Vec<CpuSet>),
}

const WORDS: [(&str, Grouping); 6] = [
    ("auto", Grouping::Auto),
    ("core", Grouping::Core),
    ("llc", Grouping::Llc),
    ("package", Grouping::Package),
    ("node", Grouping::Node),
    ("single", Grouping::Single),
];

impl Value for Grouping {
    const KIND: &'static str =
        "auto | core | llc | package | node | single | lists of CPUs as \"0-3;4-7\"";

    fn parse(text: &str) -> Result<Grouping, &'static str> {
        let text = text.trim();
        if let Some((_, grouping)) = WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(grouping.clone());
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err("not auto, core, llc, package, node, single, or lists as \"0-3;4-7\"");
        }
        text.split(';').map(CpuSet::parse).collect::<Result<_, _>>().map(Grouping::List)
    }

    fn show(&self) -> String {
        if let Grouping::List(sets) = self {
            let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
            return sets.join(";");
        }
        let word = WORDS.iter().find(|(_, grouping)| grouping == self);
        word.map_or_else(String::new, |(word, _)| (*word).to_owned())
    }
}

impl Grouping {
    /// The names of all ways but a list.
    pub fn names() -> Vec<&'static str> {
        WORDS.iter().map(|(word, _)| *word).collect()
    }

    /// The [`groups`](Grouping::groups) of `machine` by a grouping as text.
    ///
    /// Errors: it is none, or as [`groups`](Grouping::groups).
    pub fn divide(machine: &Machine, text: &str) -> Result<Vec<CpuSet>, ParamError> {
        let invalid = |why| ParamError::Invalid { name: "grouping", why };
        Grouping::parse(text).map_err(invalid)?.groups(machine)
    }

    /// The groups of `machine`, in the order of their first CPUs or of the list.
    ///
    /// Errors: sets of a list overlap, leave out a CPU or name one that the machine has not.
    pub fn groups(&self, machine: &Machine) -> Result<Vec<CpuSet>, ParamError> {
        let level = match self {
            Grouping::Auto if machine.groups(Level::Package) > 1 => Level::Package,
            Grouping::Auto | Grouping::Core => Level::Core,
            Grouping::Llc => Level::Llc,
            Grouping::Package => Level::Package,
            Grouping::Node => Level::Node,
            Grouping::Single => Level::Machine,
            Grouping::List(sets) => return divide(machine, sets),
        };
        let mut groups: Vec<&[CpuId]> = (0..machine.groups(level))
            .map(|group| machine.members(level, group as u16))
            .filter(|members| !members.is_empty())
            .collect();
        groups.sort_unstable_by_key(|members| members[0]);
        Ok(groups.into_iter().map(|members| CpuSet::of(members.iter().copied())).collect())
    }
}

/// `sets`, if each CPU of `machine` is in exactly one of them.
fn divide(machine: &Machine, sets: &[CpuSet]) -> Result<Vec<CpuSet>, ParamError> {
    let wrong = |why| Err(ParamError::Invalid { name: "grouping", why });
    let mut seen = CpuMask::EMPTY;
    for set in sets {
        for cpu in set.iter() {
            if cpu.index() >= machine.cpus() {
                return wrong("a list names a CPU that the machine does not have");
            }
            if seen.contains(cpu) {
                return wrong("a CPU is in two of the lists");
            }
            seen.insert(cpu);
        }
    }
    if seen.len() < machine.cpus() {
        return wrong("each CPU of the machine must be in one of the lists");
    }
    Ok(sets.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(topology: &str, grouping: &str) -> Vec<String> {
        let machine = Machine::parse(topology).unwrap();
        let groups = Grouping::parse(grouping).unwrap().groups(&machine).unwrap();
        groups.iter().map(ToString::to_string).collect()
    }

    /// The paper's machine, an i7-3770: four groups of two.
    #[test]
    fn one_package_is_grouped_by_core() {
        assert_eq!(groups("4 cores x 2 threads", "auto"), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!(groups("3 cores", "auto"), ["0", "1", "2"]);
    }

    #[test]
    fn several_packages_are_grouped_by_package() {
        assert_eq!(groups("2 packages x 2 cores x 2 threads", "auto"), ["0-3", "4-7"]);
        let numa = "2 nodes x 2 packages x 2 cores";
        assert_eq!(groups(numa, "auto"), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!(groups(numa, "node"), ["0-3", "4-7"]);
        assert_eq!(groups(numa, "core").len(), 8);
        assert_eq!(groups(numa, "single"), ["0-7"]);
        assert_eq!(groups("2 llcs x 3 cores", "llc"), ["0-2", "3-5"]);
    }

    #[test]
    fn lists_divide_the_machine() {
        assert_eq!(groups("6 cores", "4-5;0,2;1,3"), ["4-5", "0,2", "1,3"]);
        let machine = Machine::flat(4).unwrap();
        for text in ["0-2", "0-3;3", "0-4", "0-1;0-3"] {
            assert!(Grouping::parse(text).unwrap().groups(&machine).is_err(), "{text}");
        }
        assert!(Grouping::parse("cores").is_err());
        assert!(Grouping::parse("0-1;3-2").is_err());
    }

    #[test]
    fn texts_read_back() {
        for text in ["auto", "core", "llc", "package", "node", "single", "0-3;4-7", "0,2;1,3"] {
            assert_eq!(Grouping::parse(text).unwrap().show(), text);
        }
    }
}
