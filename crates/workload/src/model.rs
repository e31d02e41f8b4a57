//! Explicit models: every task with the list of what it does. Importers produce them.
//!
//! A model is stored in a JSON file, with one script, task or signal per line:
//!
//! ```json
//! {"anysched-model":1,"cpus":2,"channels":1,
//! "scripts":[
//! {"ops":[["run",250000],["wait",0]],"repeat_from":0,"rounds":"forever"},
//! {"ops":[["sleep",1000000],["signal",0]],"rounds":10}],
//! "tasks":[
//! {"name":"reader","arrives":0,"script":0},
//! {"name":"writer","arrives":0,"script":1,"nice":5}],
//! "signals":[
//! [500000,0]]}
//! ```
//!
//! Times are in nanoseconds. Defaults are left out: see [`Model::read`].

use crate::import::{self, ImportError, excerpt};
use crate::nearest::nearest;
use crate::{Channel, NewTask, Op, Sizes};
use anysched_core::{CpuSet, DomainId, Span, Time};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;

/// A complete, explicit load.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Its tasks; here [`Op::Spawn`] means an index into these.
    pub tasks: Vec<ModelTask>,
    /// Signals from timers and devices, by time.
    pub signals: Vec<(Time, Channel)>,
    /// How many objects it uses.
    pub sizes: Sizes,
    /// CPUs of the machine it was recorded on, if it was.
    pub cpus: Option<u32>,
    /// When the source ends the load, whatever its tasks are still doing.
    pub until: Option<Time>,
    /// What the source said that the model leaves out, one line each.
    pub warnings: Vec<String>,
}

/// One task of a [`Model`].
#[derive(Clone, Debug, Default)]
pub struct ModelTask {
    /// Its parameters and name.
    pub new: NewTask,
    /// When it arrives; `None`: another task spawns it, perhaps more than once.
    pub arrives: Option<Time>,
    /// What it does.
    pub script: Arc<Script>,
}

/// A list of operations, of which the tail may be repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The operations; [`Op::Exit`] follows the last one. Both times of an [`Op::Release`] count
    /// from the task's previous release, at first from its arrival, so that they can be repeated:
    /// `at` is the period.
    pub ops: Vec<Op>,
    /// Where a repetition begins.
    pub repeat_from: usize,
    /// How many times the part from `repeat_from` is done; at least 1, `u64::MAX` means forever.
    pub rounds: u64,
    /// Whether a release that is found to be past counts as made when it is found, so that later
    /// ones move too; otherwise they keep their grid.
    pub slips: bool,
}

impl Default for Script {
    fn default() -> Script {
        Script { ops: Vec::new(), repeat_from: 0, rounds: 1, slips: false }
    }
}

impl Script {
    /// A script that is done once.
    pub fn once(ops: Vec<Op>) -> Script {
        Script { ops, ..Script::default() }
    }
}

/// The version of the format that [`Model::write`] writes and [`Model::read`] reads.
const VERSION: u64 = 1;

/// The most channels or locks that a file may ask for; hosts allocate them all at once.
const MAX_OBJECTS: u32 = 1 << 24;

impl Model {
    /// Whether its tasks go on for ever, so that a run needs an end of its own.
    pub fn is_endless(&self) -> bool {
        let mut scripts = self.tasks.iter().map(|task| &task.script);
        let repeats = scripts.any(|s| s.rounds == u64::MAX && s.repeat_from < s.ops.len());
        self.until.is_none() && repeats
    }

    /// Writes the model as JSON. Scripts that tasks share are written once.
    ///
    /// Errors: those of `out`.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let out = &mut out;
        write!(out, "{{\"anysched-model\":{VERSION}")?;
        for (key, value) in [("cpus", self.cpus.map(u64::from)), ("until", self.until.map(|t| t.0))]
        {
            if let Some(value) = value {
                write!(out, ",\"{key}\":{value}")?;
            }
        }
        write!(out, ",\"channels\":{},\"locks\":{}", self.sizes.channels, self.sizes.locks)?;
        write!(out, ",\"barriers\":{}", text(&self.sizes.barriers)?)?;
        write_list(out, "warnings", self.warnings.iter(), |out, line| {
            write!(out, "{}", text(line)?)
        })?;
        let (scripts, numbers) = self.scripts();
        write_list(out, "scripts", scripts.iter(), |out, script| write_script(out, script))?;
        write_list(out, "tasks", self.tasks.iter().zip(numbers), |out, (task, script)| {
            write_task(out, task, script)
        })?;
        write_list(out, "signals", self.signals.iter(), |out, (at, channel)| {
            write!(out, "[{},{}]", at.0, channel.0)
        })?;
        writeln!(out, "}}")
    }

    /// The distinct scripts in the order of their first tasks, and the number of each task's.
    fn scripts(&self) -> (Vec<&Arc<Script>>, Vec<usize>) {
        let mut scripts = Vec::new();
        let mut known = BTreeMap::new();
        let numbers = self.tasks.iter().map(|task| {
            *known.entry(Arc::as_ptr(&task.script)).or_insert_with(|| {
                scripts.push(&task.script);
                scripts.len() - 1
            })
        });
        let numbers = numbers.collect();
        (scripts, numbers)
    }

    /// Reads what [`Model::write`] writes, as text or compressed with gzip.
    ///
    /// A task has `script` and may have `name`, `arrives` (if absent, another task spawns it),
    /// `nice` (0), `priority` (0), `affinity` ("all"), `domain` (0), `period`, `budget`,
    /// `relative_deadline`, `deadline`, `key` and `intensity` (0). A script has `ops` and may have
    /// `repeat_from` (0), `rounds` (1) and `slips` (false).
    ///
    /// Errors: the text is not JSON or not such a model, with line and column; a script that does
    /// not exist, more than 16 777 216 channels or locks, or what [`Model::validate`] refuses.
    pub fn read(input: impl Read) -> Result<Model, ImportError> {
        let mut input = import::open(input)?;
        let mut beginning = Vec::new();
        input.by_ref().take(MAX_BEGINNING).read_to_end(&mut beginning)?;
        let input = BufReader::with_capacity(1 << 16, beginning.as_slice().chain(input));
        let file: File = serde_json::from_reader(input).map_err(|error| {
            let full = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let mut what = in_words(full.strip_suffix(&place).unwrap_or(&full));
            if !Model::begins(&String::from_utf8_lossy(&beginning)) {
                what += &format!("; a model is JSON that begins with {{\"{KEY}\":{VERSION}");
            }
            ImportError::at(error.line() as u64, error.column() as u64, what)
        })?;
        file.into_model()
    }

    /// Whether a text that begins like this is a model.
    pub(crate) fn begins(text: &str) -> bool {
        text.contains(KEY)
    }
}

/// What `serde_json` says, in words for the author of the file.
fn in_words(what: &str) -> String {
    const EXPECTED: [(&str, &str); 7] = [
        ("u64", "a whole number from 0 to 18446744073709551615"),
        ("usize", "a whole number from 0 to 18446744073709551615"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("u16", "a whole number from 0 to 65535"),
        ("i32", "a whole number from -2147483648 to 2147483647"),
        ("i8", "a nice value from -20 to 19"),
        ("u8", "an intensity from 0 to 100"),
    ];
    if let Some(part) = what.strip_prefix("EOF while parsing ") {
        return format!("the text ends in the middle of {part}");
    }
    match what {
        "expected value" => return "expected a value".into(),
        "trailing characters" => return "expected the end".into(),
        _ => {}
    }
    for (expected, words) in EXPECTED {
        if let Some(found) = what.strip_suffix(expected).filter(|w| w.ends_with(" expected ")) {
            return format!("{found}{words}");
        }
    }
    what.to_string()
}

/// The JSON of a value whose maps have only string keys.
fn text<T: serde::Serialize + ?Sized>(value: &T) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::from)
}

/// Writes `,"key":[…]`, one item per line; nothing if there are none.
fn write_list<W: Write, I: Iterator>(
    out: &mut W,
    key: &str,
    items: I,
    mut item: impl FnMut(&mut W, I::Item) -> io::Result<()>,
) -> io::Result<()> {
    let mut empty = true;
    for each in items {
        if empty {
            write!(out, ",\n\"{key}\":[")?;
        }
        out.write_all(if empty { b"\n" } else { b",\n" })?;
        item(out, each)?;
        empty = false;
    }
    if empty { Ok(()) } else { out.write_all(b"]") }
}

fn write_script(out: &mut impl Write, script: &Script) -> io::Result<()> {
    out.write_all(b"{\"ops\":[")?;
    for (index, op) in script.ops.iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write_op(out, op)?;
    }
    out.write_all(b"]")?;
    if script.repeat_from > 0 {
        write!(out, ",\"repeat_from\":{}", script.repeat_from)?;
    }
    match script.rounds {
        1 => {}
        u64::MAX => out.write_all(b",\"rounds\":\"forever\"")?,
        rounds => write!(out, ",\"rounds\":{rounds}")?,
    }
    if script.slips {
        out.write_all(b",\"slips\":true")?;
    }
    out.write_all(b"}")
}

fn write_op(out: &mut impl Write, op: &Op) -> io::Result<()> {
    match op {
        Op::Run(span) => write!(out, "[\"run\",{}]", span.0),
        Op::Sleep(span) => write!(out, "[\"sleep\",{}]", span.0),
        Op::Release { at, deadline: None } => write!(out, "[\"release\",{}]", at.0),
        Op::Release { at, deadline: Some(deadline) } => {
            write!(out, "[\"release\",{},{}]", at.0, deadline.0)
        }
        Op::Wait(channel) => write!(out, "[\"wait\",{}]", channel.0),
        Op::Signal(channel) => write!(out, "[\"signal\",{}]", channel.0),
        Op::Write(channel) => write!(out, "[\"write\",{}]", channel.0),
        Op::Notify(channel) => write!(out, "[\"notify\",{}]", channel.0),
        Op::Broadcast(channel) => write!(out, "[\"broadcast\",{}]", channel.0),
        Op::Lock(lock) => write!(out, "[\"lock\",{}]", lock.0),
        Op::Spin(lock) => write!(out, "[\"spin\",{}]", lock.0),
        Op::Unlock(lock) => write!(out, "[\"unlock\",{}]", lock.0),
        Op::Meet(barrier) => write!(out, "[\"meet\",{}]", barrier.0),
        Op::Send(port) => write!(out, "[\"send\",{}]", port.0),
        Op::Reply(way) => write!(out, "[\"reply\",{}]", way.0),
        Op::Yield => write!(out, "[\"yield\"]"),
        Op::SetNice(nice) => write!(out, "[\"nice\",{nice}]"),
        Op::SetAffinity(cpus) => write!(out, "[\"affinity\",\"{cpus}\"]"),
        Op::Spawn(task) => write!(out, "[\"spawn\",{task}]"),
        Op::Exit => write!(out, "[\"exit\"]"),
        Op::Measure(_) => Err(io::Error::other("measuring is no operation of models")),
    }
}

fn write_task(out: &mut impl Write, task: &ModelTask, script: usize) -> io::Result<()> {
    let new = &task.new;
    write!(out, "{{\"script\":{script}")?;
    if let Some(name) = &new.name {
        write!(out, ",\"name\":{}", text(&**name)?)?;
    }
    if !new.affinity.is_all() {
        write!(out, ",\"affinity\":\"{}\"", new.affinity)?;
    }
    for (key, value) in [
        ("nice", i64::from(new.nice)),
        ("priority", i64::from(new.priority)),
        ("intensity", i64::from(new.intensity)),
    ] {
        if value != 0 {
            write!(out, ",\"{key}\":{value}")?;
        }
    }
    if new.domain != DomainId::default() {
        write!(out, ",\"domain\":{}", new.domain.0)?;
    }
    for (key, value) in [
        ("arrives", task.arrives.map(|time| time.0)),
        ("period", new.period.map(|span| span.0)),
        ("budget", new.budget.map(|span| span.0)),
        ("relative_deadline", new.relative_deadline.map(|span| span.0)),
        ("deadline", new.deadline.map(|time| time.0)),
        ("key", new.key.map(u64::from)),
    ] {
        if let Some(value) = value {
            write!(out, ",\"{key}\":{value}")?;
        }
    }
    out.write_all(b"}")
}

/// What distinguishes a model from other JSON, within its first bytes.
const KEY: &str = "anysched-model";
const MAX_BEGINNING: u64 = 1 << 10;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a model in braces")]
struct File {
    #[serde(rename = "anysched-model")]
    version: Option<Version>,
    cpus: Option<u32>,
    until: Option<u64>,
    #[serde(default)]
    channels: u32,
    #[serde(default)]
    locks: u32,
    #[serde(default)]
    barriers: Vec<u32>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    scripts: Vec<FileScript>,
    #[serde(default)]
    tasks: Vec<FileTask>,
    #[serde(default)]
    signals: Vec<(u64, u32)>,
}

/// Checked while reading, so that a newer file is not refused for its new keys.
struct Version;

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Version, D::Error> {
        match u64::deserialize(input)? {
            VERSION => Ok(Version),
            other => Err(de::Error::custom(format_args!(
                "this is version {other} of the model format; only version {VERSION} is known"
            ))),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a script in braces")]
struct FileScript {
    ops: Vec<FileOp>,
    #[serde(default)]
    repeat_from: usize,
    #[serde(default)]
    rounds: Rounds,
    #[serde(default)]
    slips: bool,
}

struct Rounds(u64);

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds(1)
    }
}

impl<'de> Deserialize<'de> for Rounds {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Rounds, D::Error> {
        struct Reads;
        impl Visitor<'_> for Reads {
            type Value = Rounds;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of rounds from 1, or \"forever\"")
            }
            fn visit_u64<E: de::Error>(self, rounds: u64) -> Result<Rounds, E> {
                match rounds {
                    0 => Err(E::invalid_value(de::Unexpected::Unsigned(0), &self)),
                    rounds => Ok(Rounds(rounds)),
                }
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Rounds, E> {
                match word {
                    "forever" => Ok(Rounds(u64::MAX)),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        input.deserialize_any(Reads)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a task in braces")]
struct FileTask {
    script: usize,
    name: Option<Arc<str>>,
    arrives: Option<u64>,
    #[serde(default)]
    nice: i8,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    affinity: Cpus,
    #[serde(default)]
    domain: u16,
    period: Option<u64>,
    budget: Option<u64>,
    relative_deadline: Option<u64>,
    deadline: Option<u64>,
    key: Option<u32>,
    #[serde(default)]
    intensity: u8,
}

#[derive(Default)]
struct Cpus(CpuSet);

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Cpus, D::Error> {
        let list = String::deserialize(input)?;
        let set = CpuSet::parse(&list);
        set.map(Cpus).map_err(|why| de::Error::custom(format_args!("\"{list}\": {why}")))
    }
}

/// One operation: `["name", argument…]`.
struct FileOp(Op);

const OP_NAMES: &[&str] = &[
    "run",
    "sleep",
    "release",
    "wait",
    "signal",
    "write",
    "notify",
    "broadcast",
    "lock",
    "spin",
    "unlock",
    "meet",
    "send",
    "reply",
    "yield",
    "nice",
    "affinity",
    "spawn",
    "exit",
];

impl<'de> Deserialize<'de> for FileOp {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<FileOp, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = FileOp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an operation such as [\"run\",1000]")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<FileOp, A::Error> {
                let Some(name) = seq.next_element::<String>()? else {
                    return Err(de::Error::invalid_length(0, &self));
                };
                let op = read_op(&name, &mut seq)?;
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(FileOp(op)),
                    Some(_) => Err(de::Error::custom(format_args!(
                        "the operation `{name}` has too many arguments"
                    ))),
                }
            }
        }
        input.deserialize_seq(Reads)
    }
}

fn read_op<'de, A: SeqAccess<'de>>(name: &str, seq: &mut A) -> Result<Op, A::Error> {
    fn one<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
        name: &str,
        seq: &mut A,
    ) -> Result<T, A::Error> {
        seq.next_element()?.ok_or_else(|| {
            de::Error::custom(format_args!("the operation `{name}` needs an argument"))
        })
    }
    Ok(match name {
        "run" => Op::Run(Span(one(name, seq)?)),
        "sleep" => Op::Sleep(Span(one(name, seq)?)),
        "release" => {
            let at = Time(one(name, seq)?);
            Op::Release { at, deadline: seq.next_element()?.map(Time) }
        }
        "wait" => Op::Wait(one(name, seq)?),
        "signal" => Op::Signal(one(name, seq)?),
        "write" => Op::Write(one(name, seq)?),
        "notify" => Op::Notify(one(name, seq)?),
        "broadcast" => Op::Broadcast(one(name, seq)?),
        "lock" => Op::Lock(one(name, seq)?),
        "spin" => Op::Spin(one(name, seq)?),
        "unlock" => Op::Unlock(one(name, seq)?),
        "meet" => Op::Meet(one(name, seq)?),
        "send" => Op::Send(one(name, seq)?),
        "reply" => Op::Reply(Span(one(name, seq)?)),
        "yield" => Op::Yield,
        "nice" => Op::SetNice(one(name, seq)?),
        "affinity" => Op::SetAffinity(one::<A, Cpus>(name, seq)?.0),
        "spawn" => Op::Spawn(one(name, seq)?),
        "exit" => Op::Exit,
        other => {
            let near = nearest(other, OP_NAMES.iter().copied());
            let hint = near.map_or_else(
                || format!("; there are {}", OP_NAMES.join(", ")),
                |near| format!("; did you mean `{near}`?"),
            );
            let other = excerpt(other);
            return Err(de::Error::custom(format_args!("no operation `{other}`{hint}")));
        }
    })
}

impl File {
    fn into_model(self) -> Result<Model, ImportError> {
        let wrong = |what: String| Err(ImportError::whole(what));
        if self.version.is_none() {
            return wrong(format!("not a model: it has no `\"{KEY}\": {VERSION}`"));
        }
        for (what, number) in [("channels", self.channels), ("locks", self.locks)] {
            if number > MAX_OBJECTS {
                return wrong(format!("{number} {what}; at most {MAX_OBJECTS} are possible"));
            }
        }
        let scripts: Vec<_> = self.scripts.into_iter().map(FileScript::into_script).collect();
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for (number, task) in self.tasks.into_iter().enumerate() {
            let Some(script) = scripts.get(task.script) else {
                let (script, there) = (task.script, scripts.len());
                return wrong(format!(
                    "task {number}: script {script} is not there; there are {there}, numbered \
                     from 0"
                ));
            };
            tasks.push(task.into_task(script.clone()));
        }
        let (channels, locks, barriers) = (self.channels, self.locks, self.barriers);
        let signals = self.signals.into_iter().map(|(at, to)| (Time(at), Channel(to))).collect();
        let model = Model {
            tasks,
            signals,
            sizes: Sizes { channels, locks, barriers },
            cpus: self.cpus,
            until: self.until.map(Time),
            warnings: self.warnings,
        };
        match model.validate() {
            Ok(()) => Ok(model),
            Err(error) => wrong(error.to_string()),
        }
    }
}

impl FileScript {
    fn into_script(self) -> Arc<Script> {
        Arc::new(Script {
            ops: self.ops.into_iter().map(|op| op.0).collect(),
            repeat_from: self.repeat_from,
            rounds: self.rounds.0,
            slips: self.slips,
        })
    }
}

impl FileTask {
    fn into_task(self, script: Arc<Script>) -> ModelTask {
        ModelTask {
            new: NewTask {
                name: self.name,
                nice: self.nice,
                affinity: self.affinity.0,
                domain: DomainId(self.domain),
                priority: self.priority,
                period: self.period.map(Span),
                budget: self.budget.map(Span),
                relative_deadline: self.relative_deadline.map(Span),
                deadline: self.deadline.map(Time),
                key: self.key,
                intensity: self.intensity,
            },
            arrives: self.arrives.map(Time),
            script,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Barrier, Lock, Port};
    use anysched_core::CpuId;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;

    fn written(model: &Model) -> String {
        let mut file = Vec::new();
        model.write(&mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn a_model_is_written_as_documented() {
        let reader = Script {
            ops: vec![Op::Run(Span(250_000)), Op::Wait(Channel(0))],
            rounds: u64::MAX,
            ..Script::default()
        };
        let writer = Script {
            ops: vec![Op::Yield, Op::Sleep(Span(1_000_000)), Op::Signal(Channel(0))],
            repeat_from: 1,
            rounds: 10,
            slips: true,
        };
        let task = |name: &str, nice, script| ModelTask {
            new: NewTask { name: Some(name.into()), nice, ..NewTask::default() },
            arrives: Some(Time::ZERO),
            script,
        };
        let reader = Arc::new(reader);
        let model = Model {
            tasks: vec![
                task("reader", 0, reader.clone()),
                task("writer", 5, Arc::new(writer)),
                task("a \"second\" reader", 0, reader),
            ],
            signals: vec![(Time(500_000), Channel(0))],
            sizes: Sizes { channels: 1, locks: 0, barriers: vec![2] },
            cpus: Some(2),
            until: None,
            warnings: vec!["no \n".into()],
        };
        let text = r#"{"anysched-model":1,"cpus":2,"channels":1,"locks":0,"barriers":[2],
"warnings":[
"no \n"],
"scripts":[
{"ops":[["run",250000],["wait",0]],"rounds":"forever"},
{"ops":[["yield"],["sleep",1000000],["signal",0]],"repeat_from":1,"rounds":10,"slips":true}],
"tasks":[
{"script":0,"name":"reader","arrives":0},
{"script":1,"name":"writer","nice":5,"arrives":0},
{"script":0,"name":"a \"second\" reader","arrives":0}],
"signals":[
[500000,0]]}
"#;
        assert_eq!(written(&model), text);
        let back = Model::read(text.as_bytes()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{model:?}"));
        assert!(Arc::ptr_eq(&back.tasks[0].script, &back.tasks[2].script));
    }

    /// A model with two channels, two locks, two barriers and four tasks may name all of them.
    fn op() -> impl Strategy<Value = Op> {
        let two = 0..2u32;
        prop_oneof![
            any::<u64>().prop_map(|ns| Op::Run(Span(ns))),
            any::<u64>().prop_map(|ns| Op::Sleep(Span(ns))),
            (any::<u64>(), any::<Option<u64>>()).prop_map(|(at, deadline)| Op::Release {
                at: Time(at),
                deadline: deadline.map(Time),
            }),
            two.clone().prop_map(|n| Op::Wait(Channel(n))),
            two.clone().prop_map(|n| Op::Signal(Channel(n))),
            two.clone().prop_map(|n| Op::Write(Channel(n))),
            two.clone().prop_map(|n| Op::Notify(Channel(n))),
            two.clone().prop_map(|n| Op::Broadcast(Channel(n))),
            two.clone().prop_map(|n| Op::Lock(Lock(n))),
            two.clone().prop_map(|n| Op::Spin(Lock(n))),
            two.clone().prop_map(|n| Op::Unlock(Lock(n))),
            two.clone().prop_map(|n| Op::Send(Port(n))),
            any::<u64>().prop_map(|ns| Op::Reply(Span(ns))),
            two.prop_map(|n| Op::Meet(Barrier(n))),
            Just(Op::Yield),
            (-20..=19i8).prop_map(Op::SetNice),
            cpus().prop_map(Op::SetAffinity),
            (0..4u32).prop_map(Op::Spawn),
            Just(Op::Exit),
        ]
    }

    fn cpus() -> impl Strategy<Value = CpuSet> {
        let some = prop::collection::vec(0..1024u16, 1..5);
        prop_oneof![
            Just(CpuSet::All),
            some.prop_map(|cpus| CpuSet::of(cpus.into_iter().map(CpuId))),
        ]
    }

    fn script() -> impl Strategy<Value = Arc<Script>> {
        let rounds = prop_oneof![1..5u64, Just(u64::MAX)];
        (prop::collection::vec(op(), 0..6), 0..6usize, rounds, any::<bool>()).prop_map(
            |(mut ops, from, rounds, slips)| {
                // So that no repetition and no chain of creations is endless.
                ops.insert(0, Op::Run(Span(1)));
                ops.push(Op::Sleep(Span(1)));
                let repeat_from = from.min(ops.len() - 1);
                Arc::new(Script { ops, repeat_from, rounds, slips })
            },
        )
    }

    fn model() -> impl Strategy<Value = Model> {
        let span = || any::<Option<u64>>().prop_map(|ns| ns.map(Span));
        let time = || prop::option::of((0..u64::MAX).prop_map(Time));
        let new = (
            (any::<Option<String>>(), -20..=19i8, cpus(), any::<u16>(), any::<i32>()),
            (span(), span(), span(), time(), any::<Option<u32>>(), 0..=100u8),
        );
        let new = new.prop_map(|((name, nice, affinity, domain, priority), times)| NewTask {
            name: name.map(Arc::from),
            nice,
            affinity,
            domain: DomainId(domain),
            priority,
            period: times.0,
            budget: times.1,
            relative_deadline: times.2,
            deadline: times.3,
            key: times.4,
            intensity: times.5,
        });
        let tasks = prop::collection::vec((new, time(), script(), any::<bool>()), 4);
        let signals = prop::collection::vec((any::<u64>(), 0..2u32), 0..4);
        let rest = (any::<Option<u32>>(), time(), any::<Vec<String>>());
        (tasks, signals, rest).prop_map(|(tasks, signals, (cpus, until, warnings))| {
            let first = tasks[0].2.clone();
            let task = |(new, arrives, own, shares): (_, _, Arc<Script>, bool)| ModelTask {
                new,
                arrives,
                script: if shares { first.clone() } else { own },
            };
            Model {
                tasks: tasks.into_iter().map(task).collect(),
                signals: signals.into_iter().map(|(at, to)| (Time(at), Channel(to))).collect(),
                sizes: Sizes { channels: 2, locks: 2, barriers: vec![1, 3] },
                cpus,
                until,
                warnings,
            }
        })
    }

    proptest! {
        #[test]
        fn models_read_back_as_written(model in model(), zipped: bool) {
            let mut file = written(&model).into_bytes();
            if zipped {
                let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
                zip.write_all(&file).unwrap();
                file = zip.finish().unwrap();
            }
            let back = Model::read(&file[..]).unwrap();
            prop_assert_eq!(format!("{back:?}"), format!("{model:?}"));
        }
    }

    #[test]
    fn malformed_models() {
        let ops = |ops: &str| format!("{{\"anysched-model\":1,\"scripts\":[{{\"ops\":{ops}}}]}}");
        let task = |task: &str| {
            format!(
                "{{\"anysched-model\":1,\"channels\":1,\"scripts\":[{{\"ops\":[[\"wait\",1]]}}],\n\
                 \"tasks\":[{{{task}}}]}}"
            )
        };
        for (text, error) in [
            (
                "".into(),
                "line 1: the text ends in the middle of a value; a model is JSON that begins with \
                 {\"anysched-model\":1",
            ),
            (
                "[1]".into(),
                "line 1, column 3: invalid length 1, expected a model in braces; a model is JSON \
                 that begins with {\"anysched-model\":1",
            ),
            (
                "{\"anysched-model\":1".into(),
                "line 1, column 19: the text ends in the middle of an object",
            ),
            ("{}".into(), "not a model: it has no `\"anysched-model\": 1`"),
            (
                "{\"anysched-model\":2,\"new\":1}".into(),
                "line 1, column 20: this is version 2 of the model format; only version 1 is known",
            ),
            (
                "{\"channels\":20000000,\"anysched-model\":1}".into(),
                "20000000 channels; at most 16777216 are possible",
            ),
            (ops("[[\"runn\",1]]"), "line 1, column 48: no operation `runn`; did you mean `run`?"),
            (ops("[[\"run\"]]"), "line 1, column 46: the operation `run` needs an argument"),
            (
                ops("[[\"run\",1,2]]"),
                "line 1, column 50: the operation `run` has too many arguments",
            ),
            (
                ops("[[\"run\",-1]]"),
                "line 1, column 49: invalid value: integer `-1`, expected a whole number from 0 to \
                 18446744073709551615",
            ),
            (
                ops("[[]]"),
                "line 1, column 41: invalid length 0, expected an operation such as [\"run\",1000]",
            ),
            (
                ops("[[\"affinity\",\"3-1\"]]"),
                "line 1, column 57: \"3-1\": a range of CPUs goes from the lower to the higher",
            ),
            (
                ops("[],\"rounds\":0"),
                "line 1, column 52: invalid value: integer `0`, expected a number of \
                 rounds from 1, or \"forever\"",
            ),
            (
                ops("[],\"rounds\":\"ever\""),
                "line 1, column 56: invalid value: string \"ever\", expected a number of \
                 rounds from 1, or \"forever\"",
            ),
            (task("\"script\":1"), "task 0: script 1 is not there; there are 1, numbered from 0"),
            (
                task("\"script\":0,\"name\":\"t\""),
                "task 0 \"t\", operation 0: channel 1 is not there; the model has 1, \
                 numbered from 0",
            ),
            (task("\"script\":0,\"nice\":20"), "task 0: nice 20 is not in -20 ..= 19"),
            (
                task("\"script\":0,\"nicer\":2"),
                "line 2, column 29: unknown field `nicer`, expected one of `script`, \
                 `name`, `arrives`, `nice`, `priority`, `affinity`, `domain`, `period`, `budget`, \
                 `relative_deadline`, `deadline`, `key`, `intensity`",
            ),
        ] {
            let found = Model::read(text.as_bytes()).expect_err(&text).to_string();
            assert_eq!(found, error, "{text}");
        }
    }
}
