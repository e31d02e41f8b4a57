//! The machine as util-linux's JSON describes it.
//!
//! `lscpu -J -e` lists the CPUs with the ids of their core, package and so on. `lscpu -J` is a
//! summary that only counts: which CPUs share a core has to be assumed, and a warning says how.
//! Newer versions make some fields of the summary `children` of others.
//!
//! `anysched topology --format json` is a list of CPUs too, with `package` for `socket`, `llc` for
//! the caches, and `capacity`.

use super::assemble::{Numbers, Seen, assemble, count};
use super::{Error, Topology, list};
use anysched_core::MAX_CPUS;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Reads the machine from `text`, the contents of the file `name`.
///
/// Errors: as [`super::parse`].
pub(super) fn read(name: &str, text: &str) -> Result<Topology, Error> {
    let root: Value = serde_json::from_str(text).map_err(|error| {
        let place = format!("{name}: line {} column {}", error.line(), error.column());
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        Error::new(place, format!("not JSON: {what}"), REMEDY)
    })?;
    match (root["cpus"].as_array(), root["lscpu"].as_array()) {
        (Some(cpus), _) => read_list(name, cpus),
        (None, Some(fields)) => read_summary(name, fields),
        (None, None) => {
            Err(Error::new(name, "it contains neither a list `cpus` nor a list `lscpu`", REMEDY))
        }
    }
}

const REMEDY: &str = "the file is what `lscpu -J -e` prints, or `lscpu -J`";

/// `lscpu -J -e`: one table per CPU.
fn read_list(name: &str, rows: &[Value]) -> Result<Topology, Error> {
    let (mut cores, mut caches, mut packages) = (Numbers::new(), Numbers::new(), Numbers::new());
    let mut seen = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(columns) = row.as_object() else {
            let place = format!("{name}: cpus[{index}]");
            return Err(Error::new(place, format!("{row} is not a table"), REMEDY));
        };
        let row = Row { file: name, index, columns };
        if row.is_offline()? {
            continue;
        }
        if seen.len() == MAX_CPUS {
            return Err(count(name, MAX_CPUS + 1));
        }
        let number = match row.number("os")? {
            Some(number) => number,
            None => row
                .number("cpu")?
                .ok_or_else(|| row.error("cpu", "is missing", "`lscpu -J -e` prints it"))?,
        };
        let socket = match row.number("socket")? {
            Some(socket) => Some(socket),
            None => row.number("package")?.or(row.number("cluster")?),
        };
        let package = socket.map(|socket| Ok((row.number("drawer")?, row.number("book")?, socket)));
        let package = package.transpose()?;
        let (llc, inner) = row.caches()?;
        // On machines with several kinds of CPUs, core ids may repeat across kinds; SMT siblings
        // share the same inner caches.
        let core = row.number("core")?.map(|core| cores.of((package, core, inner)));
        let capacity = row.number("capacity")?;
        if capacity == Some(0) {
            return Err(row.error("capacity", "is 0", "it must be a number from 1"));
        }
        seen.push(Seen {
            number,
            core,
            llc: llc.map(|llc| caches.of(llc)),
            package: package.map(|package| packages.of(package)),
            node: row.number("node")?,
            capacity,
        });
    }
    assemble(name, seen, Vec::new())
}

struct Row<'a> {
    file: &'a str,
    index: usize,
    columns: &'a Map<String, Value>,
}

/// A cache: its level, and its number within the level.
type Cache = (u32, u32);

impl Row<'_> {
    fn error(&self, column: &str, what: &str, remedy: &str) -> Error {
        let place = format!("{}: cpus[{}]", self.file, self.index);
        Error::new(place, format!("`{column}` {what}"), remedy)
    }

    fn number(&self, column: &str) -> Result<Option<u32>, Error> {
        let Some(value) = self.columns.get(column) else { return Ok(None) };
        let text = match value {
            Value::Null => return Ok(None),
            Value::String(text) => text.trim().to_string(),
            other => other.to_string(),
        };
        if text.is_empty() || text == "-" {
            return Ok(None);
        }
        let number = text.parse::<u32>().ok().filter(|number| *number <= list::LAST);
        number.map(Some).ok_or_else(|| {
            let remedy = format!("it must be a number from 0 to {}", list::LAST);
            self.error(column, &format!("is \"{text}\""), &remedy)
        })
    }

    fn is_offline(&self) -> Result<bool, Error> {
        match self.columns.get("online") {
            None | Some(Value::Bool(true)) => Ok(false),
            Some(Value::Bool(false)) => Ok(true),
            Some(Value::String(text)) if matches!(text.as_str(), "yes" | "Y" | "-") => Ok(false),
            Some(Value::String(text)) if matches!(text.as_str(), "no" | "N") => Ok(true),
            Some(other) => {
                Err(self.error("online", &format!("is {other}"), "it must be true or false"))
            }
        }
    }

    /// The last-level cache, and the cache that SMT siblings certainly share: the one of level 2,
    /// or the level 1 data cache. The column is called `l1d:l1i:l2:l3`, and its values are ids in
    /// that order, omitting those that a CPU does not have.
    fn caches(&self) -> Result<(Option<Cache>, Option<Cache>), Error> {
        if let Some(llc) = self.number("llc")? {
            return Ok((Some((0, llc)), None));
        }
        let is_caches = |key: &&String| key.split(':').all(|name| level_of(name).is_some());
        let Some(column) = self.columns.keys().find(is_caches) else { return Ok((None, None)) };
        let value = match &self.columns[column] {
            Value::String(text) => text.trim().to_string(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let (mut llc, mut inner) = (None, None);
        for (name, id) in column.split(':').zip(value.split(':')) {
            let Some((level, true)) = level_of(name) else { continue };
            if matches!(id, "" | "-") {
                continue;
            }
            let Ok(id) = id.parse::<u32>() else {
                let remedy = "it must hold cache ids, such as \"0:0:0:0\"";
                return Err(self.error(column, &format!("is \"{value}\""), remedy));
            };
            if llc.is_none_or(|(widest, _)| level > widest) {
                llc = Some((level, id));
            }
            if inner.is_none() || level == 2 {
                inner = Some((level, id));
            }
        }
        Ok((llc, inner))
    }
}

/// The level in the name of a cache, such as `l1d`, and whether it holds data.
fn level_of(name: &str) -> Option<(u32, bool)> {
    let rest = name.strip_prefix(['l', 'L'])?;
    let digits = rest.trim_end_matches(['d', 'i', 'D', 'I']);
    Some((digits.parse().ok()?, !rest.ends_with(['i', 'I'])))
}

/// `lscpu -J`: how many there are of each.
fn read_summary(name: &str, fields: &[Value]) -> Result<Topology, Error> {
    let summary = Summary::of(name, fields)?;
    let online = summary.cpus("On-line CPU(s) list")?.ok_or_else(|| {
        let remedy = "lscpu prints it without `-x`, in English with LC_ALL=C";
        Error::new(name, "no field \"On-line CPU(s) list:\"", remedy)
    })?;
    if !(1..=MAX_CPUS).contains(&online.len()) {
        return Err(count(name, online.len()));
    }
    let threads = summary.need("Thread(s) per core")?;
    let (sockets, cores_each) = summary.sockets()?;
    let cores = sockets.saturating_mul(cores_each);
    if cores.checked_mul(threads) != Some(online.len()) {
        let message = format!(
            "{sockets} sockets x {cores_each} cores x {threads} threads do not make the {} CPUs \
             that are online",
            online.len()
        );
        return Err(Error::new(name, message, EXACT));
    }
    let nodes = summary.nodes(&online)?;
    let mut warnings = Vec::new();
    let caches = summary.caches(sockets, cores, &mut warnings)?;
    // On these machines, firmware numbers the threads of a core consecutively.
    let architecture = summary.fields.get("Architecture").copied().unwrap_or_default();
    let adjacent = architecture.starts_with("ppc") || architecture.starts_with("s390");
    let mut seen = Vec::with_capacity(online.len());
    let mut first = 0;
    for (node, cpus) in nodes.iter().enumerate() {
        if cpus.len() % threads != 0 {
            let message = format!("node {node} has {} CPUs, no whole cores", cpus.len());
            return Err(Error::new(name, message, EXACT));
        }
        let here = cpus.len() / threads;
        for (index, &number) in cpus.iter().enumerate() {
            let core = first + if adjacent { index / threads } else { index % here };
            seen.push(Seen {
                number,
                core: Some(core as u32),
                llc: Some((core * caches / cores) as u32),
                package: Some((core / cores_each) as u32),
                node: Some(node as u32),
                capacity: None,
            });
        }
        first += here;
    }
    if threads > 1 || caches > nodes.len() || sockets > nodes.len() {
        let order = match adjacent {
            true => "the threads of a core are adjacent",
            false => "a node's CPUs are the first threads of all cores, then the others",
        };
        warnings.push(format!(
            "the summary counts CPUs but does not list them; assuming that {order}, and that cores \
             fill caches and packages in this order; {EXACT}"
        ));
    }
    assemble(name, seen, warnings)
}

const EXACT: &str = "`lscpu -J -e` is exact";

/// The fields of a summary, without the trailing colons of their names.
struct Summary<'a> {
    file: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
}

impl<'a> Summary<'a> {
    fn of(file: &'a str, fields: &'a [Value]) -> Result<Summary<'a>, Error> {
        let mut found = BTreeMap::new();
        let mut stack: Vec<&Value> = fields.iter().rev().collect();
        while let Some(field) = stack.pop() {
            stack.extend(field["children"].as_array().into_iter().flatten().rev());
            let (Some(key), Some(data)) = (field["field"].as_str(), field["data"].as_str()) else {
                continue;
            };
            let key = key.trim().trim_end_matches(':');
            let counts = ["Thread(s) per core", "Core(s) per socket", "Core(s) per cluster"];
            if found.insert(key, data.trim()).is_some() && counts.contains(&key) {
                let message = format!("\"{key}:\" is given for several kinds of CPUs");
                return Err(Error::new(file, message, EXACT));
            }
        }
        Ok(Summary { file, fields: found })
    }

    fn error(&self, key: &str, remedy: &str) -> Error {
        let message = match self.fields.get(key) {
            Some(data) => format!("\"{key}:\" is \"{data}\""),
            None => format!("no field \"{key}:\""),
        };
        Error::new(self.file, message, remedy)
    }

    /// A count; `None` if it is not reported.
    fn number(&self, key: &str) -> Result<Option<usize>, Error> {
        match self.fields.get(key) {
            None | Some(&"-") => Ok(None),
            Some(data) => match data.parse() {
                Ok(number @ 1..=65_535) => Ok(Some(number)),
                _ => Err(self.error(key, "it must be a number from 1")),
            },
        }
    }

    fn need(&self, key: &str) -> Result<usize, Error> {
        let missing =
            || self.error(key, "lscpu prints it on most machines; `lscpu -J -e` lists it");
        self.number(key)?.ok_or_else(missing)
    }

    /// How many sockets there are, and how many cores each has. Where kernels know no sockets,
    /// clusters take their place.
    fn sockets(&self) -> Result<(usize, usize), Error> {
        if let Some(cores) = self.number("Core(s) per cluster")? {
            return Ok((self.need("Cluster(s)")?, cores));
        }
        let cores = self.need("Core(s) per socket")?;
        let Some(per_book) = self.number("Socket(s) per book")? else {
            return Ok((self.need("Socket(s)")?, cores));
        };
        let books = match self.number("Book(s) per drawer")? {
            Some(books) => books.saturating_mul(self.need("Drawer(s)")?),
            None => self.need("Book(s)")?,
        };
        Ok((per_book.saturating_mul(books), cores))
    }

    fn cpus(&self, key: &str) -> Result<Option<Vec<u32>>, Error> {
        let Some(data) = self.fields.get(key) else { return Ok(None) };
        list::parse(data).map(Some).map_err(|why| {
            let remedy = "a list of CPUs looks like 0-3,8; lscpu prints it without `-x`";
            Error::new(self.file, format!("\"{key}:\" is \"{data}\": {why}"), remedy)
        })
    }

    /// The CPUs of each node that has any; a single node with all CPUs if none is reported.
    fn nodes(&self, online: &[u32]) -> Result<Vec<Vec<u32>>, Error> {
        let number =
            |key: &str| key.strip_prefix("NUMA node")?.strip_suffix(" CPU(s)")?.parse::<u32>().ok();
        let mut nodes = BTreeMap::new();
        for key in self.fields.keys() {
            let Some(number) = number(key) else { continue };
            let mut cpus = self.cpus(key)?.unwrap_or_default();
            cpus.retain(|cpu| online.binary_search(cpu).is_ok());
            nodes.insert(number, cpus);
        }
        nodes.retain(|_, cpus| !cpus.is_empty());
        if nodes.is_empty() {
            return Ok(vec![online.to_vec()]);
        }
        let mut all: Vec<u32> = nodes.values().flatten().copied().collect();
        all.sort_unstable();
        if all != online {
            let (all, online) = (all.len(), online.len());
            let message = format!("the NUMA nodes have {all} CPUs in all, but {online} are online");
            return Err(Error::new(self.file, message, "each CPU must be in one node"));
        }
        Ok(nodes.into_values().collect())
    }

    /// How many last-level caches there are, spread evenly over the sockets.
    fn caches(
        &self,
        sockets: usize,
        cores: usize,
        warnings: &mut Vec<String>,
    ) -> Result<usize, Error> {
        match self.last_level()? {
            Some(n) if n > 0 && cores.is_multiple_of(n) && n.is_multiple_of(sockets) => Ok(n),
            Some(n) => {
                let message =
                    format!("{n} last-level caches cannot be spread evenly over {sockets} sockets");
                Err(Error::new(self.file, message, EXACT))
            }
            None => {
                let assumed = "assuming one per socket";
                warnings.push(format!("the number of caches is not reported; {assumed}"));
                Ok(sockets)
            }
        }
    }

    /// How many last-level caches there are; `None` if that is not reported.
    fn last_level(&self) -> Result<Option<usize>, Error> {
        let level = |key: &str| match level_of(key.strip_suffix(" cache")?)? {
            (level, true) => Some(level),
            (_, false) => None,
        };
        let caches = self.fields.iter().filter_map(|(key, data)| Some((level(key)?, key, data)));
        let Some((_, key, data)) = caches.max_by_key(|(level, ..)| *level) else { return Ok(None) };
        // Old versions report only their size.
        let Some((_, rest)) = data.split_once('(') else { return Ok(None) };
        let number = rest.split(' ').next().and_then(|text| text.parse().ok());
        number.map(Some).ok_or_else(|| {
            self.error(key, "it must be a size and a number, such as \"8 MiB (1 instance)\"")
        })
    }
}
