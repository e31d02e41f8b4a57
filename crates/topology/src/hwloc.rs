//! The machine as hwloc's XML describes it: `lstopo --of xml`.
//!
//! An `object` is nested in whatever contains it. In version 1, caches have the type `Cache` and a
//! `cache_type`, packages are `Socket` in older files, and NUMA nodes enclose what they hold. Since
//! version 2, caches are `L1Cache`, `L3Cache` and so on, and NUMA nodes stand beside the objects
//! that their `cpuset` lists; this reader uses the `cpuset` of nodes in both. Checked against the
//! files in hwloc's tests of versions 1.11, 2.9 and 3 (open-mpi/hwloc 3b37b024a).

use super::assemble::{Seen, assemble, count};
use super::{Error, Topology, list};
use anysched_core::MAX_CPUS;
use roxmltree::{Document, Node, ParsingOptions};

/// Reads the machine from `text`, the contents of the file `name`.
///
/// Errors: as [`super::parse`].
pub(super) fn read(name: &str, text: &str) -> Result<Topology, Error> {
    let options = ParsingOptions { allow_dtd: true, nodes_limit: 1 << 22, ..Default::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let place = format!("{name}: line {}", error.pos().row);
        Error::new(place, format!("not XML: {error}"), REMEDY)
    })?;
    let source = Source { name, document: &document };
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        let message = format!("the root is <{}>", root.tag_name().name());
        return Err(source.error(root, message, REMEDY));
    }
    let mut found = Found::default();
    source.walk(root, &mut found)?;
    if !(1..=MAX_CPUS).contains(&found.seen.len()) {
        return Err(count(name, found.seen.len()));
    }
    found.seen.sort_by_key(|cpu| cpu.number);
    let mut warnings = Vec::new();
    source.place_in_nodes(&mut found, &mut warnings)?;
    source.read_capacities(root, &mut found.seen, &mut warnings)?;
    assemble(name, found.seen, warnings)
}

const REMEDY: &str = "the file is what `lstopo --of xml` writes";

/// The groups that enclose an object.
#[derive(Clone, Copy, Default)]
struct Around {
    core: Option<u32>,
    llc: Option<u32>,
    package: Option<u32>,
}

/// What the objects describe.
#[derive(Default)]
struct Found<'a> {
    seen: Vec<Seen>,
    /// Each with its set of CPUs.
    nodes: Vec<(Node<'a, 'a>, Bits<'a>)>,
    /// The CPUs that may be used, and those that are online, where given.
    limits: Vec<Bits<'a>>,
    groups: u32,
}

struct Source<'a> {
    name: &'a str,
    document: &'a Document<'a>,
}

impl<'a> Source<'a> {
    fn error(&self, node: Node<'_, '_>, message: impl Into<String>, remedy: &str) -> Error {
        let line = self.document.text_pos_at(node.range().start).row;
        Error::new(format!("{}: line {line}", self.name), message, remedy)
    }

    /// Visits all objects from the outside in, without recursion: the file controls the depth.
    fn walk(&self, root: Node<'a, 'a>, found: &mut Found<'a>) -> Result<(), Error> {
        let mut stack = vec![(root, Around::default())];
        while let Some((parent, around)) = stack.pop() {
            let children = parent.children().filter(|node| node.has_tag_name("object"));
            for object in children {
                let around = self.visit(object, around, found)?;
                stack.push((object, around));
            }
        }
        Ok(())
    }

    fn visit(
        &self,
        object: Node<'a, 'a>,
        mut around: Around,
        found: &mut Found<'a>,
    ) -> Result<Around, Error> {
        let Some(kind) = object.attribute("type") else {
            return Err(self.error(object, "an object has no `type`", REMEDY));
        };
        let group = found.groups;
        found.groups += 1;
        match kind {
            "Machine" | "System" => {
                for key in ["cpuset", "online_cpuset"] {
                    found.limits.extend(self.bits(object, key)?);
                }
            }
            "Package" | "Socket" => around.package = Some(group),
            "Core" => around.core = Some(group),
            "NUMANode" | "Node" => {
                if let Some(cpus) = self.bits(object, "cpuset")? {
                    found.nodes.push((object, cpus));
                }
            }
            "PU" => {
                found.seen.extend(self.visit_pu(object, around, &found.limits)?);
                if found.seen.len() > MAX_CPUS {
                    let message = format!("more than {MAX_CPUS} CPUs are online");
                    let remedy = format!("a machine has 1 to {MAX_CPUS} CPUs");
                    return Err(self.error(object, message, &remedy));
                }
            }
            // The outermost is the last level.
            _ if holds_data(kind, object) => around.llc = around.llc.or(Some(group)),
            _ => {}
        }
        Ok(around)
    }

    /// Visits a processing unit, which is a CPU to Linux; skipped if it is offline.
    fn visit_pu(
        &self,
        object: Node<'a, 'a>,
        Around { core, llc, package }: Around,
        limits: &[Bits<'a>],
    ) -> Result<Option<Seen>, Error> {
        let text = object.attribute("os_index").unwrap_or_default();
        let number = text.parse().ok().filter(|number| *number <= list::LAST);
        let Some(number) = number else {
            let message = format!("`os_index` of a PU is \"{text}\"");
            let remedy = format!("it must be the number of a CPU, 0 to {}", list::LAST);
            return Err(self.error(object, message, &remedy));
        };
        let own = self.bits(object, "cpuset")?;
        if own.iter().chain(limits).all(|set| set.contains(number)) {
            return Ok(Some(Seen { number, core, llc, package, ..Seen::default() }));
        }
        match own {
            Some(own) if !own.is_empty() && !own.contains(number) => {
                let message = format!("the `cpuset` of PU {number} is \"{}\"", own.text);
                Err(self.error(object, message, "only the PU's own bit may be set"))
            }
            _ => Ok(None),
        }
    }

    /// An attribute that holds a set of CPUs.
    fn bits(&self, object: Node<'a, 'a>, key: &str) -> Result<Option<Bits<'a>>, Error> {
        let Some(text) = object.attribute(key) else { return Ok(None) };
        Bits::parse(text).map(Some).ok_or_else(|| {
            let message = format!("`{key}` is \"{text}\"");
            self.error(object, message, "a set of CPUs looks like \"0x0000000f,0x00000001\"")
        })
    }

    /// Assigns each CPU to the smallest node that holds it: besides the processors' nodes there may
    /// be memory-only nodes, which have the CPUs of several.
    fn place_in_nodes(
        &self,
        found: &mut Found<'a>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let members = |bits: &Bits<'_>| -> Vec<u32> {
            let all = found.seen.iter().map(|cpu| cpu.number);
            all.filter(|&number| bits.contains(number)).collect()
        };
        let mut nodes: Vec<(Vec<u32>, Node<'_, '_>)> = Vec::new();
        let mut left_out = 0;
        for (object, bits) in &found.nodes {
            let members = members(bits);
            match nodes.iter().any(|(others, _)| *others == members) {
                true => left_out += 1,
                false if members.is_empty() => left_out += 1,
                false => nodes.push((members, *object)),
            }
            if nodes.len() > 2 * MAX_CPUS {
                return Err(self.error(*object, "too many NUMA nodes", "sets of CPUs nest"));
            }
        }
        nodes.sort_by_key(|(members, _)| members.len());
        let mut node_of: Vec<Option<u32>> = vec![None; found.seen.len()];
        for (index, (members, object)) in nodes.iter().enumerate() {
            let at = |cpu: &u32| found.seen.binary_search_by_key(cpu, |seen| seen.number).ok();
            let places = members.iter().filter_map(at);
            for place in places.clone() {
                let Some(inner) = node_of[place] else { continue };
                let (inside, _) = &nodes[inner as usize];
                if inside.iter().any(|cpu| members.binary_search(cpu).is_err()) {
                    let message = format!(
                        "a node with CPUs {} and one with CPUs {} overlap",
                        list::show(inside),
                        list::show(members)
                    );
                    return Err(self.error(
                        *object,
                        message,
                        "of two nodes that share CPUs, one \
                        has all CPUs of the other",
                    ));
                }
            }
            for place in places {
                node_of[place].get_or_insert(index as u32);
            }
        }
        for (cpu, node) in found.seen.iter_mut().zip(node_of) {
            cpu.node = node;
        }
        match left_out {
            0 => {}
            1 => warnings.push("ignoring a NUMA node without CPUs of its own".to_string()),
            _ => warnings.push(format!("ignoring {left_out} NUMA nodes without CPUs of their own")),
        }
        Ok(())
    }

    /// Relative speeds of CPUs, if they differ: hwloc reports them from version 2.4 on, as Linux
    /// does.
    fn read_capacities(
        &self,
        root: Node<'a, 'a>,
        seen: &mut [Seen],
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let kinds: Vec<_> = root.children().filter(|node| node.has_tag_name("cpukind")).collect();
        for &kind in &kinds {
            let is_capacity = |node: &Node<'_, '_>| {
                node.has_tag_name("info") && node.attribute("name") == Some("LinuxCapacity")
            };
            let Some(info) = kind.children().find(is_capacity) else { continue };
            let text = info.attribute("value").unwrap_or_default();
            let Some(capacity) = text.parse().ok().filter(|capacity| *capacity > 0) else {
                let message = format!("`LinuxCapacity` is \"{text}\"");
                return Err(self.error(info, message, "it must be a number from 1"));
            };
            let Some(cpus) = self.bits(kind, "cpuset")? else { continue };
            for cpu in seen.iter_mut().filter(|cpu| cpus.contains(cpu.number)) {
                cpu.capacity = Some(capacity);
            }
        }
        if kinds.len() > 1 && seen.iter().all(|cpu| cpu.capacity.is_none()) {
            warnings.push(format!(
                "there are {} kinds of CPUs, but their speeds are not reported; assuming that all \
                 are equal",
                kinds.len()
            ));
        }
        Ok(())
    }
}

/// Whether an object is a processor cache that holds data, alone or together with instructions.
fn holds_data(kind: &str, object: Node<'_, '_>) -> bool {
    let level = kind.strip_prefix('L').and_then(|rest| rest.strip_suffix("Cache"));
    let numbered = level.is_some_and(|level| level.parse::<u32>().is_ok());
    // 0 is unified, 1 data, 2 instructions; the `1i` of `L1iCache` is not a number.
    numbered || kind == "Cache" && object.attribute("cache_type") != Some("2")
}

/// A bitmap as hwloc writes it: 32-bit words, highest first, where a word of 0 may be empty; a
/// leading `0xf...f` stands for all higher bits.
#[derive(Clone, Debug)]
struct Bits<'a> {
    text: &'a str,
    /// Lowest word first.
    words: Vec<u32>,
    all_higher: bool,
}

impl<'a> Bits<'a> {
    fn parse(text: &'a str) -> Option<Bits<'a>> {
        let (all_higher, rest) = match text.strip_prefix("0xf...f") {
            Some(rest) => (true, rest.strip_prefix(',').unwrap_or(rest)),
            None => (false, text),
        };
        let word = |text: &str| match text.strip_prefix("0x").unwrap_or(text) {
            "" if text.is_empty() => Some(0),
            digits => u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        };
        let words: Option<Vec<u32>> = match rest {
            "" if all_higher => Some(Vec::new()),
            "" => None,
            _ => rest.rsplit(',').map(word).collect(),
        };
        words.map(|words| Bits { text, words, all_higher })
    }

    fn contains(&self, cpu: u32) -> bool {
        let word = self.words.get((cpu / 32) as usize);
        word.map_or(self.all_higher, |word| word >> (cpu % 32) & 1 != 0)
    }

    fn is_empty(&self) -> bool {
        !self.all_higher && self.words.iter().all(|&word| word == 0)
    }
}
