//! The machine as Linux describes it in `/sys/devices/system`.
//!
//! Linux's Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/
//! sysfs-devices-system-cpu define the files. Lists of CPUs are preferred to ids: `core_id` is
//! unique only within a package, and packages may be numbered -1.

use super::assemble::{Numbers, Seen, assemble, count};
use super::{Error, Topology, list};
use anysched_core::MAX_CPUS;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Reads the machine under `root`, which is `/sys` except in tests.
///
/// Errors: as [`super::sysfs`].
pub(super) fn read(root: &Path) -> Result<Topology, Error> {
    let folder = root.join("devices/system/cpu");
    let place = folder.display().to_string();
    let online = online(&folder)?;
    if !(1..=MAX_CPUS).contains(&online.len()) {
        return Err(count(&place, online.len()));
    }
    let nodes = nodes(&root.join("devices/system/node"), &online)?;
    let (mut cores, mut caches) = (Sets::default(), Sets::default());
    let mut seen = Vec::with_capacity(online.len());
    for &number in &online {
        let folder = folder.join(format!("cpu{number}"));
        let topology = folder.join("topology");
        for name in ["core_cpus_list", "thread_siblings_list"] {
            if cores.add(number, 0, &topology.join(name), &online)? {
                break;
            }
        }
        if let Some((level, path)) = last_level(&folder.join("cache"))? {
            caches.add(number, level, &path, &online)?;
        }
        let package = value::<i64>(&topology.join("physical_package_id"), "a number")?;
        seen.push(Seen {
            number,
            package: package.and_then(|package| u32::try_from(package).ok()),
            node: nodes.get(&number).copied(),
            capacity: capacity(&folder.join("cpu_capacity"))?,
            ..Seen::default()
        });
    }
    cores.check()?;
    caches.check()?;
    let mut numbers = Numbers::new();
    for cpu in &mut seen {
        cpu.core = match cores.first(cpu.number) {
            Some((_, first)) => Some(first),
            None => core_by_number(&folder, cpu)?.map(|key| numbers.of(key)),
        };
    }
    let mut numbers = Numbers::new();
    for cpu in &mut seen {
        cpu.llc = caches.first(cpu.number).map(|key| numbers.of(key));
    }
    assemble(&place, seen, Vec::new())
}

/// The contents of a file, trimmed; `None` if there is no such file.
fn text(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(
            path.display(),
            format!("cannot be read: {error}"),
            "make it readable, or give a file that `lstopo --of xml` or `lscpu -J -e` has written",
        )),
    }
}

fn value<T: FromStr>(path: &Path, wanted: &str) -> Result<Option<T>, Error> {
    let Some(text) = text(path)? else { return Ok(None) };
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => {
            Err(Error::new(path.display(), format!("\"{text}\""), format!("it must be {wanted}")))
        }
    }
}

fn cpus(path: &Path) -> Result<Option<Vec<u32>>, Error> {
    let Some(text) = text(path)? else { return Ok(None) };
    let remedy = "a list of CPUs looks like 0-3,8";
    list::parse(&text).map(Some).map_err(|why| Error::new(path.display(), why, remedy))
}

/// The numbers that follow `prefix` in the names of files or folders, ascending.
fn numbered(folder: &Path, prefix: &str) -> Result<Vec<u32>, Error> {
    let mut numbers = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(numbers),
        Err(error) => {
            let message = format!("cannot be read: {error}");
            return Err(Error::new(folder.display(), message, "make it readable"));
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<u32>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The CPUs that are online: those in the file `online`, or those not marked offline individually.
fn online(folder: &Path) -> Result<Vec<u32>, Error> {
    if !folder.is_dir() {
        return Err(Error::new(
            folder.display(),
            "no such folder",
            "`host` reads how Linux describes its CPUs; elsewhere, name a file of lstopo or lscpu, \
             or give the topology in words",
        ));
    }
    if let Some(online) = cpus(&folder.join("online"))? {
        return Ok(online);
    }
    let mut online = Vec::new();
    for number in numbered(folder, "cpu")? {
        let flag = text(&folder.join(format!("cpu{number}/online")))?;
        if flag.as_deref() != Some("0") {
            online.push(number);
        }
    }
    Ok(online)
}

/// The node of each of these CPUs; empty if the kernel knows no nodes.
fn nodes(folder: &Path, online: &[u32]) -> Result<BTreeMap<u32, u32>, Error> {
    let mut node_of = BTreeMap::new();
    for node in numbered(folder, "node")? {
        let path = folder.join(format!("node{node}/cpulist"));
        let members = cpus(&path)?.unwrap_or_default();
        for cpu in members.into_iter().filter(|cpu| online.binary_search(cpu).is_ok()) {
            if let Some(other) = node_of.insert(cpu, node) {
                let message = format!("CPU {cpu} is also in node {other}");
                return Err(Error::new(path.display(), message, "a CPU must be in one node"));
            }
        }
    }
    Ok(node_of)
}

/// The level of the largest data cache in a CPU's folder, and the file that lists its CPUs.
fn last_level(folder: &Path) -> Result<Option<(u32, PathBuf)>, Error> {
    let mut widest: Option<(u32, PathBuf)> = None;
    for index in numbered(folder, "index")? {
        let cache = folder.join(format!("index{index}"));
        let kind = text(&cache.join("type"))?;
        let level = value(&cache.join("level"), "a number from 1")?.unwrap_or(0);
        if kind.as_deref() != Some("Instruction")
            && widest.as_ref().is_none_or(|(widest, _)| level > *widest)
        {
            widest = Some((level, cache.join("shared_cpu_list")));
        }
    }
    Ok(widest)
}

fn capacity(path: &Path) -> Result<Option<u32>, Error> {
    let wanted = "a number from 1, in most kernels up to 1024";
    match value(path, wanted)? {
        Some(0) => Err(Error::new(path.display(), "\"0\"", format!("it must be {wanted}"))),
        capacity => Ok(capacity),
    }
}

/// The core by its id within the package, if there is no list of its CPUs.
fn core_by_number(folder: &Path, cpu: &Seen) -> Result<Option<(Option<u32>, i64)>, Error> {
    let path = folder.join(format!("cpu{}/topology/core_id", cpu.number));
    Ok(value(&path, "a number")?.map(|core| (cpu.package, core)))
}

/// Groups of CPUs, as each member describes its own.
#[derive(Default)]
struct Sets(BTreeMap<u32, Set>);

struct Set {
    level: u32,
    members: Vec<u32>,
    path: PathBuf,
}

impl Sets {
    /// Records the online CPUs with which, according to the list at `path`, `cpu` shares something.
    /// False: there is no such list.
    fn add(&mut self, cpu: u32, level: u32, path: &Path, online: &[u32]) -> Result<bool, Error> {
        let Some(mut members) = cpus(path)? else { return Ok(false) };
        members.retain(|member| online.binary_search(member).is_ok());
        if members.binary_search(&cpu).is_err() {
            let message = format!("\"{}\" lacks CPU {cpu} itself", list::show(&members));
            return Err(Error::new(path.display(), message, "it must list the CPU itself"));
        }
        self.0.insert(cpu, Set { level, members, path: path.to_path_buf() });
        Ok(true)
    }

    /// Errors: two CPUs of a group disagree.
    fn check(&self) -> Result<(), Error> {
        for (cpu, set) in &self.0 {
            let says_else = |other: &&u32| {
                let other = self.0.get(other);
                other.is_none_or(|o| o.level != set.level || o.members != set.members)
            };
            let Some(other) = set.members.iter().find(says_else) else { continue };
            let mine = list::show(&set.members);
            let theirs = match self.0.get(other) {
                Some(set) => {
                    format!("{} says \"{}\"", set.path.display(), list::show(&set.members))
                }
                None => format!("CPU {other} has no such list"),
            };
            let message = format!("CPU {cpu} shares with \"{mine}\", but {theirs}");
            let remedy = "all members of a set must list the same CPUs: correct the files";
            return Err(Error::new(set.path.display(), message, remedy));
        }
        Ok(())
    }

    /// Identifies the group of a CPU: its level and its first CPU.
    fn first(&self, cpu: u32) -> Option<(u32, u32)> {
        let set = self.0.get(&cpu)?;
        Some((set.level, *set.members.first()?))
    }
}
