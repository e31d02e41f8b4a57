//! `anysched topology`: a machine's CPUs, what they share, and the groups that a policy forms.

use crate::args::{PlainFormat, TopologyArgs};
use crate::output::{self, Failure};
use anysched_core::machine::Level;
use anysched_core::params::ParamError;
use anysched_core::registry::Groupings;
use anysched_core::{CpuId, CpuSet, Machine};
use anysched_policies::POLICIES;
use anysched_topology::{self as topology, Topology};
use serde_json::{Map, Value, json};
use std::fmt::Write;

pub fn topology(args: &TopologyArgs) -> Result<(), Failure> {
    let found = topology::read(&args.spec)?;
    for warning in &found.warnings {
        eprintln!("anysched: {}: {warning}", args.spec);
    }
    // One policy of the list forms groups.
    let mut by_groups = POLICIES.iter().filter_map(|policy| Some((policy.name, policy.groupings?)));
    let (policy, ways) = by_groups.next().ok_or("no policy forms groups of CPUs".to_string())?;
    let groupings = groupings(&ways, &found.machine, args.grouping.as_deref())?;
    match args.format {
        PlainFormat::Json => output::print(&format!("{:#}\n", describe(args, &found, &groupings))),
        PlainFormat::Table => {
            let mut text = format!("{}\n", topology::totals(&found.machine));
            text += &tree(&found, args.full);
            let _ = writeln!(text, "\ngroups of the policy {policy}:");
            text += &list(&groupings, args.full);
            text += "\nin an experiment:\n";
            text += &line(&args.spec, &found.machine);
            output::print(&text)
        }
    }
}

/// How a policy divides a machine: a name, and the CPUs of each group.
type Groups = (String, Vec<Vec<CpuId>>);

/// The groups by each named rule, or those of a list.
fn groupings(
    ways: &Groupings,
    machine: &Machine,
    list: Option<&str>,
) -> Result<Vec<Groups>, Failure> {
    let names = match list {
        Some(list) => vec![list],
        None => (ways.names)(),
    };
    let members = |set: &CpuSet| machine.cpu_ids().filter(|&cpu| set.contains(cpu)).collect();
    let groups = |name: &str| {
        let refused = |why: String| {
            let last = machine.cpus() - 1;
            Failure::from(format!("--grouping \"{name}\": {why}; the machine has CPUs 0 to {last}"))
        };
        let sets = (ways.of)(machine, name).map_err(|error| match error {
            ParamError::Invalid { why, .. } => refused(why.to_string()),
            other => refused(other.to_string()),
        })?;
        Ok((name.to_string(), sets.iter().map(members).collect()))
    };
    names.into_iter().map(groups).collect()
}

/// At most this many groups are shown unless all are asked for.
const MOST_GROUPS: usize = 8;

fn list(groupings: &[Groups], full: bool) -> String {
    let width = groupings.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, groups) in groupings {
        let shown = if full { groups.len() } else { groups.len().min(MOST_GROUPS) };
        let mut cpus = groups[..shown].iter().map(|cpus| show(cpus)).collect::<Vec<_>>().join("; ");
        if shown < groups.len() {
            cpus += "; …";
        }
        let _ = writeln!(text, "  {name:width$}  {:>4}  {cpus}", groups.len());
    }
    text
}

fn show(cpus: &[CpuId]) -> String {
    CpuSet::of(cpus.iter().copied()).to_string()
}

/// The line of an experiment file that gives this machine.
fn line(spec: &str, machine: &Machine) -> String {
    let name = spec.replace('\\', "\\\\").replace('"', "\\\"");
    match topology::in_words(machine) {
        Some(words) if Machine::parse(&words).as_ref() == Ok(machine) => {
            format!("  topology = \"{words}\"\n")
        }
        Some(words) => format!(
            "  topology = \"{name}\"\n  topology = \"{words}\"  # near CPUs have adjacent numbers\n"
        ),
        None => format!("  topology = \"{name}\"\n"),
    }
}

fn describe(args: &TopologyArgs, found: &Topology, groupings: &[Groups]) -> Value {
    let numbers = |cpus: &Vec<CpuId>| cpus.iter().map(|cpu| cpu.0).collect::<Vec<u16>>();
    let groups = |groups: &Vec<Vec<CpuId>>| groups.iter().map(numbers).collect::<Vec<_>>();
    let groupings: Map<String, Value> =
        groupings.iter().map(|(name, cpus)| (name.clone(), json!(groups(cpus)))).collect();
    json!({
        "spec": args.spec,
        "cpus": topology::cpus_in_json(found),
        "words": topology::in_words(&found.machine),
        "groupings": groupings,
        "warnings": found.warnings,
    })
}

/// The levels that have a line per unit, widest first.
const LEVELS: [(Level, &str); 4] = [
    (Level::Node, "node"),
    (Level::Package, "package"),
    (Level::Llc, "llc"),
    (Level::Core, "core"),
];

/// A line per unit. Unless all are asked for, identical units share a line, as do the parts of a
/// regular unit.
fn tree(found: &Topology, full: bool) -> String {
    let tree = Tree {
        machine: &found.machine,
        numbers: &found.numbers,
        renumbered: found.numbers.iter().zip(0..).any(|(&number, cpu)| number != cpu),
        unequal: found.machine.cpu_ids().any(|cpu| found.machine.cpu(cpu).capacity != 1024),
        full,
    };
    let mut text = String::new();
    let all: Vec<CpuId> = found.machine.cpu_ids().collect();
    tree.write(&mut text, 0, &all, 0);
    text
}

struct Tree<'a> {
    machine: &'a Machine,
    /// The operating system's number of each CPU.
    numbers: &'a [u32],
    renumbered: bool,
    unequal: bool,
    full: bool,
}

impl Tree<'_> {
    /// Writes the units of a level that make up `cpus`, and what they contain.
    fn write(&self, text: &mut String, level: usize, cpus: &[CpuId], depth: usize) {
        let Some(&(kind, name)) = LEVELS.get(level) else { return };
        let units = topology::units(self.machine, kind, cpus);
        // Packages are always shown, so that the whole machine has a line.
        if let [only] = units.as_slice()
            && kind != Level::Package
            && !self.full
        {
            return self.write(text, level + 1, only, depth);
        }
        let inner = |unit: &[CpuId]| match self.full {
            true => None,
            false => topology::regular(self.machine, kind, unit),
        };
        let capacity = |unit: &[CpuId]| self.machine.cpu(unit[0]).capacity;
        let alike = |a: &&[CpuId], b: &&[CpuId]| {
            inner(a).is_some() && inner(a) == inner(b) && capacity(a) == capacity(b)
        };
        for run in units.chunk_by(alike) {
            let number = |unit: &[CpuId]| self.machine.cpu(unit[0]).group(kind);
            let title = match run {
                [.., last] if run.len() > 1 => {
                    format!("{name}s {}-{}", number(run[0]), number(last))
                }
                _ => format!("{name} {}", number(run[0])),
            };
            let shape = inner(run[0]).map(|counts| in_words(level, &counts)).unwrap_or_default();
            let each = if run.len() > 1 && !shape.is_empty() { " each" } else { "" };
            let indent = "  ".repeat(depth);
            let cpus = self.cpus(run);
            let line = match shape.as_str() {
                "" => format!("{indent}{title}: {cpus}"),
                _ => format!("{indent}{title}: {shape}{each} ({cpus})"),
            };
            let _ = writeln!(text, "{line}{}", self.capacity(run[0]));
            if inner(run[0]).is_none() {
                self.write(text, level + 1, run[0], depth + 1);
            }
        }
    }

    /// The CPUs of a few units individually, of many together.
    fn cpus(&self, units: &[&[CpuId]]) -> String {
        let all: Vec<CpuId> = units.iter().copied().flatten().copied().collect();
        let units = if units.len() > 4 { &[all.as_slice()] } else { units };
        let lists: Vec<String> = units.iter().map(|unit| show(unit)).collect();
        let plural = if all.len() == 1 { "" } else { "s" };
        let mut text = format!("CPU{plural} {}", lists.join("; "));
        if self.renumbered {
            let number = |cpu: &CpuId| self.numbers[cpu.index()];
            let lists = units.iter().map(|unit| {
                let mut numbers: Vec<u32> = unit.iter().map(number).collect();
                numbers.sort_unstable();
                topology::show_list(&numbers)
            });
            text += &format!(", OS {}", lists.collect::<Vec<_>>().join("; "));
        }
        text
    }

    /// The capacity of a unit's CPUs, if they all have the same and others differ.
    fn capacity(&self, unit: &[CpuId]) -> String {
        let capacity = self.machine.cpu(unit[0]).capacity;
        match unit.iter().all(|&cpu| self.machine.cpu(cpu).capacity == capacity) {
            true if self.unequal => format!(", capacity {capacity}"),
            _ => String::new(),
        }
    }
}

/// "4 cores x 2 threads" from the counts below a level; a core with one thread is not mentioned.
fn in_words(level: usize, counts: &[usize]) -> String {
    let names = LEVELS.iter().skip(level + 1).map(|(_, name)| *name).chain(["thread"]);
    let parts = counts.iter().zip(names).filter(|(count, _)| **count > 1);
    let parts: Vec<String> = parts.map(|(count, name)| format!("{count} {name}s")).collect();
    parts.join(" x ")
}
