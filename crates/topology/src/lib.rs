//! Machines read from existing descriptions: the running Linux, hwloc's XML, lscpu's JSON.
//!
//! Each reader reports what every online CPU shares with which others; `assemble` turns that into a
//! machine in which cores, last-level caches, packages and nodes nest. Deviations from the source
//! are warnings.

mod assemble;
mod hwloc;
mod list;
mod lscpu;
mod sysfs;

use anysched_core::machine::{Cpu, Level, TopologyError};
use anysched_core::{CpuId, Machine};
use std::fmt;
use std::path::Path;

/// A machine as a source describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The machine. Its CPUs are the online ones in ascending order of their numbers.
    pub machine: Machine,
    /// The operating system's number of each CPU, ascending.
    pub numbers: Vec<u32>,
    /// How the machine deviates from the source, one line each.
    pub warnings: Vec<String>,
}

impl Topology {
    /// The CPUs that have the numbers 0 to `count` − 1. One that is not online sits in a core, a
    /// last-level cache and a package of its own.
    pub fn by_number(&self, count: usize) -> Vec<Cpu> {
        let highest = |level| self.machine.groups(level) as u16;
        let mut alone = [Level::Core, Level::Llc, Level::Package].map(highest);
        let numbers = (0..count).map(|number| self.numbers.binary_search(&(number as u32)));
        let cpu = |place: Result<usize, usize>| match place {
            Ok(place) => *self.machine.cpu(CpuId(place as u16)),
            Err(_) => {
                let [core, llc, package] = alone;
                alone = alone.map(|number| number + 1);
                Cpu { core, llc, package, node: 0, capacity: 1024 }
            }
        };
        numbers.map(cpu).collect()
    }
}

/// Why a description of a machine was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file, and the position in it if known.
    pub place: String,
    /// What is wrong, with the value.
    pub message: String,
    /// What would be valid.
    pub remedy: String,
}

impl Error {
    fn new(
        place: impl fmt::Display,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error { place: place.to_string(), message: message.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.message, self.remedy)
    }
}

impl std::error::Error for Error {}

/// Where a topology comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `host`: the machine this program runs on.
    Host,
    /// A name that ends in `.xml`: what `lstopo --of xml` writes.
    Hwloc,
    /// A name that ends in `.json`: what `lscpu -J`, `lscpu -J -e` and `anysched topology --format
    /// json` print.
    Lscpu,
    /// Anything else: words such as `4 cores x 2 threads`.
    Words,
}

impl Source {
    /// The source that `spec` names.
    pub fn of(spec: &str) -> Source {
        let extension = Path::new(spec).extension().map(|text| text.to_ascii_lowercase());
        match extension.as_deref().and_then(|text| text.to_str()) {
            _ if spec.trim() == "host" => Source::Host,
            Some("xml") => Source::Hwloc,
            Some("json") => Source::Lscpu,
            _ => Source::Words,
        }
    }
}

/// Reads the machine that `spec` names, see [`Source`]; files are relative to the current
/// directory.
///
/// Errors: the source cannot be read or understood, has no CPUs or more than 1024, or its levels do
/// not nest.
pub fn read(spec: &str) -> Result<Topology, Error> {
    match Source::of(spec) {
        Source::Host => host(),
        Source::Words => words(spec).map_err(|error| {
            Error::new(format!("\"{spec}\""), "not a topology", format!("{error}; or give {FORMS}"))
        }),
        Source::Hwloc | Source::Lscpu => {
            let unreadable = |why: String| Error::new(spec, why, format!("give {FORMS}"));
            // A device or a pipe may be endless.
            let bytes = std::fs::metadata(spec).and_then(|meta| match meta.is_file() {
                true => std::fs::read(spec),
                false => Err(std::io::Error::other("it is not a file")),
            });
            parse(spec, &bytes.map_err(|error| unreadable(format!("cannot be read: {error}")))?)
        }
    }
}

const FORMS: &str = "`host`, an .xml of lstopo or a .json of lscpu";

/// The machine this program runs on.
///
/// Errors: as [`sysfs`].
pub fn host() -> Result<Topology, Error> {
    sysfs("/sys".as_ref())
}

/// The machine described by the Linux sysfs mounted at `root`.
///
/// Errors: files that cannot be read or hold invalid values; sets of CPUs that overlap without
/// being equal; levels that do not nest.
pub fn sysfs(root: &Path) -> Result<Topology, Error> {
    sysfs::read(root)
}

/// The machine described by the contents of the file `name`: XML or JSON, by the name's ending.
///
/// Errors: as [`read`].
pub fn parse(name: &str, bytes: &[u8]) -> Result<Topology, Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Error::new(
            format!("{name}: line {line}"),
            "not UTF-8",
            "a topology is text, as `lstopo --of xml` and `lscpu -J` print it",
        )
    })?;
    match Source::of(name) {
        Source::Lscpu => lscpu::read(name, text),
        _ => hwloc::read(name, text),
    }
}

/// Writes ascending numbers in the kernel's list format, "0-3,8".
pub fn show_list(numbers: &[u32]) -> String {
    list::show(numbers)
}

/// The machine that words such as `"4 cores x 2 threads"` describe.
///
/// Errors: as [`Machine::parse`].
pub fn words(text: &str) -> Result<Topology, TopologyError> {
    let machine = Machine::parse(text)?;
    let numbers = (0..machine.cpus() as u32).collect();
    Ok(Topology { machine, numbers, warnings: Vec::new() })
}

/// The CPUs as an array of tables with `cpu`, `os`, `core`, `llc`, `package`, `node` and
/// `capacity`. [`parse`] reads it back as the array `cpus` of a file.
pub fn cpus_in_json(topology: &Topology) -> serde_json::Value {
    let cpu = |(id, number): (CpuId, &u32)| {
        let Cpu { core, llc, package, node, capacity } = topology.machine.cpu(id);
        serde_json::json!({
            "cpu": id.0,
            "os": number,
            "core": core,
            "llc": llc,
            "package": package,
            "node": node,
            "capacity": capacity,
        })
    };
    topology.machine.cpu_ids().zip(&topology.numbers).map(cpu).collect()
}

/// The words from which [`Machine::parse`] makes a machine of the same shape, with nearby CPUs
/// numbered consecutively; `None` if the machine is not regular or its CPUs differ in capacity.
pub fn in_words(machine: &Machine) -> Option<String> {
    let fast = machine.cpu_ids().all(|cpu| machine.cpu(cpu).capacity == 1024);
    if fast { shape_in_words(machine) } else { None }
}

/// As [`in_words`], ignoring capacities.
pub fn shape_in_words(machine: &Machine) -> Option<String> {
    let even = |cpu| Cpu { capacity: 1024, ..*machine.cpu(cpu) };
    let even = Machine::new(machine.cpu_ids().map(even).collect()).ok()?;
    let everything: Vec<CpuId> = even.cpu_ids().collect();
    let counts = regular(&even, Level::Machine, &everything)?;
    let parts = counts.iter().zip(NAMES).filter(|(count, _)| **count > 1);
    let parts: Vec<String> = parts.map(|(count, name)| format!("{count} {name}s")).collect();
    Some(if parts.is_empty() { "1 core".to_string() } else { parts.join(" x ") })
}

/// The names of units, from the widest to the narrowest.
const NAMES: [&str; 5] = ["node", "package", "llc", "core", "thread"];

/// How many units of each level there are: "1 node, 1 package, 2 llcs, 6 cores, 8 CPUs".
pub fn totals(machine: &Machine) -> String {
    let levels = [Level::Node, Level::Package, Level::Llc, Level::Core].into_iter();
    let counts = levels.map(|level| machine.groups(level)).zip(NAMES);
    let parts = counts.chain([(machine.cpus(), "CPU")]).map(|(count, name)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {name}{plural}")
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// How many units of each level below `level` make up the unit with the CPUs `cpus`, from the
/// widest level to single threads; `None` if two units of a level differ in that or in capacity.
pub fn regular(machine: &Machine, level: Level, cpus: &[CpuId]) -> Option<Vec<usize>> {
    let inner = match level {
        Level::Machine => Level::Node,
        Level::Node => Level::Package,
        Level::Package => Level::Llc,
        Level::Llc => Level::Core,
        Level::Core => {
            let capacity = |cpu: &CpuId| machine.cpu(*cpu).capacity;
            let same = cpus.iter().all(|cpu| capacity(cpu) == capacity(&cpus[0]));
            return same.then(|| vec![cpus.len()]);
        }
    };
    let units = units(machine, inner, cpus);
    let capacity = |unit: &[CpuId]| unit.first().map(|&cpu| machine.cpu(cpu).capacity);
    let first = regular(machine, inner, units.first()?)?;
    let same = |unit: &&[CpuId]| {
        capacity(unit) == capacity(units[0])
            && regular(machine, inner, unit).as_ref() == Some(&first)
    };
    units.iter().all(same).then(|| [&[units.len()], first.as_slice()].concat())
}

/// The units of `level` that make up `cpus`, ordered by their first CPU.
pub fn units<'a>(machine: &'a Machine, level: Level, cpus: &[CpuId]) -> Vec<&'a [CpuId]> {
    let members = cpus.iter().map(|&cpu| (cpu, machine.sharing(level, cpu)));
    members.filter(|(cpu, unit)| unit.first() == Some(cpu)).map(|(_, unit)| unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_are_offline_are_alone() {
        let machine = Machine::parse("2 packages x 1 core x 2 threads").unwrap();
        let topology = Topology { machine, numbers: vec![0, 2, 3, 4], warnings: Vec::new() };
        let cpu = |core, llc, package| Cpu { core, llc, package, node: 0, capacity: 1024 };
        let found = topology.by_number(6);
        // Packages are nodes of their own where nodes are not described.
        let cores: Vec<u16> = found.iter().map(|cpu| cpu.core).collect();
        assert_eq!(cores, [0, 2, 0, 1, 1, 3]);
        assert_eq!((found[1], found[5]), (cpu(2, 2, 2), cpu(3, 3, 3)));
        assert!(Machine::new(found).is_ok());
    }

    #[test]
    fn the_name_tells_the_source() {
        for (spec, source) in [
            ("host", Source::Host),
            ("host.xml", Source::Hwloc),
            ("../machines/a.JSON", Source::Lscpu),
            ("4 cores x 2 threads", Source::Words),
            ("8", Source::Words),
        ] {
            assert_eq!(Source::of(spec), source, "{spec}");
        }
    }

    #[test]
    fn words_come_back() {
        for text in [
            "1 core",
            "8 cores",
            "2 threads",
            "4 cores x 2 threads",
            "2 nodes x 2 packages x 2 llcs x 4 cores x 2 threads",
        ] {
            assert_eq!(in_words(&Machine::parse(text).unwrap()).as_deref(), Some(text));
        }
    }

    #[test]
    fn irregular_machines_have_no_words() {
        let cpu = *Machine::flat(1).unwrap().cpu(CpuId(0));
        let of = |cpus: [anysched_core::machine::Cpu; 3]| Machine::new(cpus.into()).unwrap();
        let [second, third] = [1, 2].map(|core| anysched_core::machine::Cpu { core, ..cpu });
        assert_eq!(in_words(&of([cpu, second, third])).as_deref(), Some("3 cores"));
        assert_eq!(in_words(&of([cpu, cpu, second])), None);
        let slow = anysched_core::machine::Cpu { capacity: 512, ..third };
        assert_eq!(in_words(&of([cpu, second, slow])), None);
    }
}
