//! Files of rt-app, a generator of synthetic loads on Linux
//! (<https://github.com/scheduler-tools/rt-app>; the grammar and its meaning as of 2026).
//!
//! Files for its companion `workgen` are read too: with comments, repeated keys, trailing commas
//! and keys without a value.
//!
//! # What the events become
//!
//! Events are done in the order of the file. As for rt-app, a key is an event if it begins with
//! the event's name: `run`, `run0` and `run_first` are all runs.
//!
//! | event | operations |
//! |---|---|
//! | `run`, `runtime` | [`Op::Run`] |
//! | `sleep` | [`Op::Sleep`] |
//! | `timer` | [`Op::Release`], on a grid that begins when the task arrives |
//! | `lock`, `unlock` | [`Op::Lock`], [`Op::Unlock`] |
//! | `wait` | [`Op::Unlock`], [`Op::Wait`], [`Op::Lock`] |
//! | `signal`, `broad` | [`Op::Notify`], [`Op::Broadcast`]: lost if nobody waits |
//! | `sync` | as `signal` and `wait` |
//! | `suspend`, `resume` | [`Op::Wait`] and [`Op::Broadcast`] on the name of the suspended task |
//! | `sem_wait`, `sem_post` | [`Op::Wait`], [`Op::Signal`] |
//! | `barrier` | [`Op::Meet`] |
//! | `yield` | [`Op::Yield`] |
//! | `fork` | [`Op::Spawn`] |
//! | `mem`, `memrun`, `iorun` | nothing, with a warning |
//!
//! A `timer` in its `relative` mode, the default, restarts its grid when it is late; in `absolute`
//! mode it does not ([`slips`](crate::model::Script::slips)). A task whose only timer fires once
//! per round is periodic, with the next firing as its deadline.
//!
//! `suspend` waits on the name of its own task, whatever its value says; but a value that names no
//! task and that something resumes is what files for old versions wait on, and is used.
//!
//! Tasks of versions before 2014 are known by their key `exec`, the CPU time of a job; `period`,
//! `deadline`, `lock_order` and `resources` belong to it. A job holds each resource in turn for as
//! long as its `duration` says and computes the rest of `exec` without any. What a resource is
//! stands in `resources` of the file: a mutex, or a condition that is waited for, signalled or
//! broadcast under the mutexes in `access`.
//!
//! # What the rest becomes
//!
//! `instance`, `loop`, `delay`, `cpus`, `policy` and `priority` mean what they mean to rt-app.
//! Real-time tasks have nice −20, and their priority for policies that use one; `SCHED_IDLE` has
//! nice 19. `duration` becomes [`Model::until`], and endless loops are done as many times as fit
//! into it if nothing delays them. What has no meaning here is named in [`Model::warnings`].

mod build;
mod old;
#[cfg(test)]
mod tests;

use super::json::{self, Kind, Member, Value, error_at};
use super::{ImportError, Imported, Importer, Input, ReadError, excerpt, json_text, open};
use crate::kinds::{FileName, keys};
use crate::model::Model;
use crate::nearest::nearest;
use crate::{Channel, Lock, Op};
use anysched_core::{CpuId, CpuSet, MAX_CPUS, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Larger files are refused; the largest known ones have some 10 KiB.
const MAX_TEXT: u64 = 16 << 20;
/// The most operations that the loops of a file may expand to.
const MAX_OPS: u64 = 1 << 22;
/// The most tasks that a file may start.
const MAX_TASKS: u64 = 1 << 16;

keys! {
    /// The keys of a load that is a file of rt-app.
    pub struct RtApp {
        /// The file.
        file: FileName = needed, eg "load.json";
    }
}

impl Importer for RtApp {
    const FORMAT: &'static str = "rt-app";
    const ENDINGS: &'static [&'static str] = &[".json"];

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        let parts = ["\"tasks\"", "\"global\"", "\"resources\""];
        json_text(start).is_some_and(|text| {
            parts.iter().any(|part| text.contains(part))
                && !Model::begins(&text)
                && !text.contains("raceEvents\"")
        })
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(Imported::Model(read(input)?))
    }
}

/// Reads a file, plain or compressed with gzip.
///
/// Errors, with line and column: the text cannot be read, a key is unknown (with the nearest known
/// one), a value is of the wrong kind or out of range, a `fork` names no task, or loops make more
/// than 4 194 304 operations or instances more than 65 536 tasks.
pub fn read(input: impl Read) -> Result<Model, ImportError> {
    let mut bytes = Vec::new();
    open(input)?.take(MAX_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(ImportError::whole(format!(
            "longer than {MAX_TEXT} bytes: this is not such a text"
        )));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        error_at(&before, before.len(), "not UTF-8; save the file as UTF-8")
    })?;
    let root = json::parse(text)?;
    let mut reader = Reader { text, ..Reader::default() };
    reader.root(&root)?;
    reader.build()
}

/// What is known of the file so far.
#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    duration: Option<Span>,
    default_policy: Policy,
    tasks: Vec<Task>,
    locks: Numbers,
    /// The resources that the file declares, as tasks of old versions use them.
    resources: BTreeMap<String, old::Resource>,
    /// Of condition variables, with which tasks share names, and of semaphores.
    channels: Numbers,
    barriers: Numbers,
    /// The condition variables that are signalled or resumed.
    signalled: BTreeSet<String>,
    /// Those that are waited for.
    waited: BTreeSet<String>,
    /// What has no effect, and its place among these and how often it occurs.
    warnings: BTreeMap<String, (usize, u64)>,
}

/// Numbers for names, by first occurrence.
#[derive(Default)]
struct Numbers(BTreeMap<String, u32>);

impl Numbers {
    fn of(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_string()).or_insert(next)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Policy {
    #[default]
    Other,
    Batch,
    Idle,
    Fifo,
    RoundRobin,
    Deadline,
}

const POLICIES: [(&str, Policy); 6] = [
    ("SCHED_OTHER", Policy::Other),
    ("SCHED_BATCH", Policy::Batch),
    ("SCHED_IDLE", Policy::Idle),
    ("SCHED_FIFO", Policy::Fifo),
    ("SCHED_RR", Policy::RoundRobin),
    ("SCHED_DEADLINE", Policy::Deadline),
];

/// A `tasks` entry.
struct Task {
    at: usize,
    name: String,
    instances: u64,
    delay: Span,
    rounds: Rounds,
    phases: Vec<Phase>,
    policy: Policy,
    nice: i8,
    priority: i32,
    cpus: Option<CpuSet>,
    budget: Option<Span>,
    period: Option<Span>,
    relative_deadline: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounds {
    Some(u64),
    Endless,
}

impl Rounds {
    fn count(self) -> u64 {
        match self {
            Rounds::Some(rounds) => rounds,
            Rounds::Endless => u64::MAX,
        }
    }

    /// Rounds of rounds.
    fn times(self, outer: Rounds) -> Rounds {
        match self.count().saturating_mul(outer.count()) {
            u64::MAX => Rounds::Endless,
            rounds => Rounds::Some(rounds),
        }
    }
}

struct Phase {
    rounds: Rounds,
    cpus: Option<CpuSet>,
    nice: Option<i8>,
    events: Vec<Event>,
}

enum Event {
    Do(Op),
    Timer { reference: String, period: Span, absolute: bool },
    Suspend { named: Option<String> },
    Barrier(String),
    Fork { at: usize, name: String },
}

const EVENTS: [&str; 20] = [
    // A name comes before those it begins with.
    "runtime", "run", "sleep", "timer", "lock", "unlock", "wait", "signal", "broad", "sync",
    "suspend", "resume", "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post",
    "sem_wait",
];
const ROOT: [&str; 3] = ["tasks", "global", "resources"];
const GLOBAL: [&str; 14] = [
    "duration",
    "default_policy",
    "calibration",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
];
/// What a task and a phase may have besides events.
const SHARED: [&str; 12] = [
    "loop",
    "cpus",
    "policy",
    "priority",
    "nice",
    "taskgroup",
    "nodes_membind",
    "util_min",
    "util_max",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
];
/// What only a task may have.
const TASK: [&str; 5] = ["instance", "delay", "phases", "period", "deadline"];

/// The event that `key` stands for.
fn event_of(key: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|event| key.starts_with(event))
}

impl Reader<'_> {
    fn error<T>(&self, at: usize, what: impl Into<String>) -> Result<T, ImportError> {
        Err(error_at(self.text, at, what))
    }

    fn warn(&mut self, what: impl Into<String>) {
        let place = self.warnings.len();
        self.warnings.entry(what.into()).or_insert((place, 0)).1 += 1;
    }

    fn unknown<T>(&self, member: &Member, place: &str, keys: &[&str]) -> Result<T, ImportError> {
        let key = excerpt(&member.key);
        let near = nearest(&member.key, keys.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        self.error(member.at, format!("unknown key `{key}` in {place}{hint}"))
    }

    fn map<'v>(&self, value: &'v Value, what: &str) -> Result<&'v [Member], ImportError> {
        match &value.kind {
            Kind::Map(members) => Ok(members),
            _ => {
                let found = value.describe();
                self.error(value.at, format!("{what} is an object in braces, not {found}"))
            }
        }
    }

    fn string<'v>(&self, member: &'v Member) -> Result<&'v str, ImportError> {
        match &member.value.kind {
            Kind::Text(text) => Ok(text),
            _ => {
                let (key, found) = (excerpt(&member.key), member.value.describe());
                self.error(member.value.at, format!("`{key}` takes a string, not {found}"))
            }
        }
    }

    /// A whole number within a range; `what` says which.
    fn number(&self, member: &Member, range: (i64, i64), what: &str) -> Result<i64, ImportError> {
        match member.value.kind {
            Kind::Whole(number) if (range.0..=range.1).contains(&number) => Ok(number),
            _ => {
                let (key, found) = (excerpt(&member.key), member.value.describe());
                self.error(member.value.at, format!("`{key}` takes {what}, not {found}"))
            }
        }
    }

    fn span(&self, member: &Member) -> Result<Span, ImportError> {
        const MOST: i64 = (u64::MAX / 1000) as i64;
        let what = format!("a whole number of microseconds from 0 to {MOST}");
        let us = self.number(member, (0, MOST), &what)?;
        Ok(Span::from_us(us as u64))
    }

    fn rounds(&self, member: &Member, endless_from: i64) -> Result<Rounds, ImportError> {
        let what = "a whole number, or -1 for ever";
        let number = self.number(member, (-1, i64::MAX), what)?;
        Ok(if number < endless_from { Rounds::Endless } else { Rounds::Some(number as u64) })
    }

    fn cpus(&self, member: &Member) -> Result<CpuSet, ImportError> {
        let wrong = |at: usize, found: String| {
            let what = "`cpus` takes a list of CPU numbers from 0 to 1023";
            self.error(at, format!("{what}, not {found}"))
        };
        let Kind::List(items) = &member.value.kind else {
            return wrong(member.value.at, member.value.describe());
        };
        if items.is_empty() {
            return wrong(member.value.at, "an empty one".into());
        }
        let mut cpus = Vec::new();
        for item in items {
            match item.kind {
                Kind::Whole(cpu) if (0..MAX_CPUS as i64).contains(&cpu) => {
                    cpus.push(CpuId(cpu as u16));
                }
                _ => return wrong(item.at, item.describe()),
            }
        }
        Ok(CpuSet::of(cpus))
    }

    fn policy(&self, member: &Member) -> Result<Policy, ImportError> {
        let name = self.string(member)?;
        if let Some((_, policy)) = POLICIES.iter().find(|(known, _)| *known == name) {
            return Ok(*policy);
        }
        let known = POLICIES.map(|(known, _)| known).join(", ");
        let what = format!("no policy `{}`; there are {known}", excerpt(name));
        self.error(member.value.at, what)
    }

    fn root(&mut self, root: &Value) -> Result<(), ImportError> {
        let members = self.map(root, "a file of rt-app")?;
        for member in members {
            match member.key.as_str() {
                "global" => self.global(&member.value)?,
                "tasks" => {}
                "resources" => self.declare(&member.value)?,
                _ => return self.unknown(member, "the file", &ROOT),
            }
        }
        let mut tasks = members.iter().filter(|member| member.key == "tasks").peekable();
        if tasks.peek().is_none() {
            return self.error(root.at, format!("there are no `tasks`; {}", old::FRAGMENT));
        }
        for member in tasks {
            for task in self.map(&member.value, "`tasks`")? {
                let task = self.task(task)?;
                self.tasks.push(task);
            }
        }
        Ok(())
    }

    fn global(&mut self, value: &Value) -> Result<(), ImportError> {
        let mut ignored = Vec::new();
        for member in self.map(value, "`global`")? {
            match member.key.as_str() {
                "duration" => {
                    let most = (u64::MAX / 1_000_000_000) as i64;
                    let what = "a whole number of seconds, or -1 for no end";
                    let seconds = self.number(member, (-1, most), what)?;
                    self.duration = (seconds > 0).then(|| Span::from_s(seconds as u64));
                }
                "default_policy" => self.default_policy = self.policy(member)?,
                key if GLOBAL.contains(&key) => ignored.push(key),
                _ => return self.unknown(member, "`global`", &GLOBAL),
            }
        }
        if !ignored.is_empty() {
            self.warn(format!("without effect in `global`: {}", ignored.join(", ")));
        }
        Ok(())
    }

    fn task(&mut self, member: &Member) -> Result<Task, ImportError> {
        let members = self.map(&member.value, "a task")?;
        let is_old = members.iter().any(|member| member.key == "exec");
        let mut task = Task {
            at: member.at,
            name: member.key.clone(),
            instances: 1,
            delay: Span::ZERO,
            rounds: Rounds::Endless,
            phases: Vec::new(),
            policy: self.default_policy,
            nice: 0,
            priority: 0,
            cpus: None,
            budget: None,
            period: None,
            relative_deadline: None,
        };
        self.scheduling(&mut task, members)?;
        let has_phases = members.iter().any(|member| member.key == "phases");
        let mut seen = BTreeSet::new();
        for member in members {
            let key = member.key.as_str();
            if event_of(key).is_some() && key != "runtime" && has_phases {
                self.warn(format!("`{}` beside `phases` has no effect", excerpt(key)));
                continue;
            }
            if event_of(key).is_none() && key != "phases" && !seen.insert(key) {
                return self.error(member.at, format!("`{}` is given twice", excerpt(key)));
            }
            match key {
                "instance" => {
                    let what = "a whole number from 0";
                    task.instances = self.number(member, (0, i64::MAX), what)? as u64;
                }
                "delay" => task.delay = self.span(member)?,
                // rt-app counts the rounds of a phase up to this number, and so never meets 0.
                "loop" => task.rounds = self.rounds(member, i64::from(!has_phases))?,
                "cpus" => task.cpus = Some(self.cpus(member)?),
                "phases" => {
                    for phase in self.map(&member.value, "`phases`")? {
                        let members = self.map(&phase.value, "a phase")?;
                        let phase = self.phase(phase.at, members, &task, false)?;
                        task.phases.push(phase);
                    }
                }
                "runtime" if has_phases => task.budget = Some(self.span(member)?),
                "dl-runtime" => task.budget = Some(self.span(member)?),
                "period" | "dl-period" => task.period = Some(self.span(member)?),
                "deadline" | "dl-deadline" => task.relative_deadline = Some(self.span(member)?),
                "policy" | "priority" | "nice" => {}
                "taskgroup" | "nodes_membind" | "util_min" | "util_max" => {
                    self.warn(format!("`{key}` has no effect"));
                }
                _ if event_of(key).is_some() => {}
                "exec" | "lock_order" | "resources" if is_old => {}
                _ => {
                    let keys = [&EVENTS[..], &SHARED[..], &TASK[..]].concat();
                    return self.unknown(member, "a task", &keys);
                }
            }
        }
        if is_old {
            let phase = self.old_job(member.at, members, &task)?;
            task.phases = vec![phase];
            return Ok(task);
        }
        if !has_phases {
            let mut phase = self.phase(member.at, members, &task, true)?;
            phase.rounds = Rounds::Some(1);
            task.phases.push(phase);
        }
        if task.phases.is_empty() {
            return self.error(member.at, "this task has no phases");
        }
        self.warn_of_reservation(&task);
        Ok(task)
    }

    fn warn_of_reservation(&mut self, task: &Task) {
        if task.policy != Policy::Deadline
            && (task.budget, task.period, task.relative_deadline) != (None, None, None)
        {
            self.warn(
                "`dl-runtime`, `dl-period` and `dl-deadline` without SCHED_DEADLINE are \
                       kept as budget, period and relative deadline",
            );
        }
    }

    /// Reads how a task is scheduled at its start.
    fn scheduling(&mut self, task: &mut Task, members: &[Member]) -> Result<(), ImportError> {
        if let Some(policy) = members.iter().find(|member| member.key == "policy") {
            task.policy = self.policy(policy)?;
        }
        match task.policy {
            Policy::Other => {}
            Policy::Batch => self.warn("SCHED_BATCH is taken as SCHED_OTHER"),
            Policy::Idle => {
                self.warn("SCHED_IDLE is taken as nice 19");
                task.nice = 19;
            }
            Policy::Fifo | Policy::RoundRobin => {
                self.warn("SCHED_FIFO and SCHED_RR are taken as nice -20 with a priority");
                (task.nice, task.priority) = (-20, 10);
            }
            Policy::Deadline => {
                self.warn(
                    "SCHED_DEADLINE is taken as SCHED_OTHER with a budget, a period and a \
                           relative deadline",
                );
            }
        }
        if let Some(level) = self.level(members, task.policy)? {
            match task.policy {
                Policy::Fifo | Policy::RoundRobin => task.priority = level,
                Policy::Other | Policy::Batch => task.nice = level as i8,
                Policy::Idle | Policy::Deadline => {}
            }
        }
        Ok(())
    }

    /// The value of `priority` or `nice`: a nice value, or the priority of a real-time task.
    fn level(&self, members: &[Member], policy: Policy) -> Result<Option<i32>, ImportError> {
        let mut given = members.iter().filter(|m| m.key == "priority" || m.key == "nice");
        let Some(member) = given.next() else { return Ok(None) };
        if let Some(second) = given.next() {
            return self.error(second.at, "`priority` and `nice` are the same; give one of them");
        }
        let level = match policy {
            Policy::Fifo | Policy::RoundRobin if member.key == "priority" => {
                self.number(member, (1, 99), "a real-time priority from 1 to 99")
            }
            Policy::Deadline => self.number(member, (0, 0), "0 with SCHED_DEADLINE"),
            _ => self.number(member, (-20, 19), "a nice value from -20 to 19"),
        };
        level.map(|level| Some(level as i32))
    }

    /// Reads a phase; `whole`: the members are those of a task without phases.
    fn phase(
        &mut self,
        at: usize,
        members: &[Member],
        task: &Task,
        whole: bool,
    ) -> Result<Phase, ImportError> {
        let mut phase =
            Phase { rounds: Rounds::Some(1), cpus: None, nice: None, events: Vec::new() };
        let mut events = 0;
        let mut seen = BTreeSet::new();
        for member in members {
            let key = member.key.as_str();
            if let Some(event) = event_of(key) {
                events += 1;
                self.event(event, member, task, &mut phase.events)?;
                continue;
            }
            if whole {
                continue;
            }
            if !seen.insert(key) {
                return self.error(member.at, format!("`{}` is given twice", excerpt(key)));
            }
            match key {
                "loop" => phase.rounds = self.rounds(member, 1)?,
                "cpus" => phase.cpus = Some(self.cpus(member)?),
                "policy" | "priority" | "nice" => {}
                key if SHARED.contains(&key) => {
                    self.warn(format!("`{key}` of a phase has no effect"));
                }
                _ => {
                    let keys = [&EVENTS[..], &SHARED[..]].concat();
                    return self.unknown(member, "a phase", &keys);
                }
            }
        }
        if events == 0 {
            return self.error(at, "there are no events here, such as `run` or `sleep`");
        }
        if !whole {
            phase.nice = self.phase_nice(members, task)?;
        }
        Ok(phase)
    }

    fn phase_nice(&mut self, members: &[Member], task: &Task) -> Result<Option<i8>, ImportError> {
        let policy = match members.iter().find(|member| member.key == "policy") {
            Some(member) => Some(self.policy(member)?),
            None => None,
        };
        let level = self.level(members, policy.unwrap_or(task.policy))?;
        if policy.is_none() && level.is_none() {
            return Ok(None);
        }
        Ok(Some(match policy.unwrap_or(task.policy) {
            Policy::Other | Policy::Batch => level.unwrap_or(0) as i8,
            Policy::Deadline => 0,
            Policy::Idle => 19,
            Policy::Fifo | Policy::RoundRobin => {
                self.warn("the real-time priority of a phase is taken as nice -20");
                -20
            }
        }))
    }

    fn event(
        &mut self,
        event: &'static str,
        member: &Member,
        task: &Task,
        events: &mut Vec<Event>,
    ) -> Result<(), ImportError> {
        let op = match event {
            "run" => Op::Run(self.span(member)?),
            "runtime" => {
                self.warn("`runtime` is taken as CPU time, not as time that passes");
                Op::Run(self.span(member)?)
            }
            "sleep" => Op::Sleep(self.span(member)?),
            "yield" => Op::Yield,
            "wait" | "sync" => return self.wait(event, member, events),
            "timer" => {
                events.push(self.timer(member)?);
                return Ok(());
            }
            "suspend" => {
                let named = match &member.value.kind {
                    Kind::Text(name) if !name.is_empty() && *name != task.name => Some(name),
                    _ => None,
                };
                events.push(Event::Suspend { named: named.cloned() });
                return Ok(());
            }
            "mem" | "memrun" | "iorun" => {
                self.warn(format!("`{event}` has no effect"));
                return Ok(());
            }
            _ => {
                let name = self.string(member)?;
                match event {
                    "barrier" => {
                        events.push(Event::Barrier(name.to_string()));
                        return Ok(());
                    }
                    "fork" => {
                        events.push(Event::Fork { at: member.value.at, name: name.to_string() });
                        return Ok(());
                    }
                    "lock" => Op::Lock(Lock(self.locks.of(name))),
                    "unlock" => Op::Unlock(Lock(self.locks.of(name))),
                    "sem_post" => Op::Signal(self.semaphore(name)),
                    "sem_wait" => Op::Wait(self.semaphore(name)),
                    "signal" => Op::Notify(self.signalled(name)),
                    // `broad` and `resume` are left.
                    _ => Op::Broadcast(self.signalled(name)),
                }
            }
        };
        events.push(Event::Do(op));
        Ok(())
    }

    fn semaphore(&mut self, name: &str) -> Channel {
        Channel(self.channels.of(&format!("semaphore {name}")))
    }

    fn condition(&mut self, name: &str) -> Channel {
        Channel(self.channels.of(&format!("condition {name}")))
    }

    fn signalled(&mut self, name: &str) -> Channel {
        self.signalled.insert(name.to_string());
        self.condition(name)
    }

    fn waited(&mut self, name: &str) -> Channel {
        self.waited.insert(name.to_string());
        self.condition(name)
    }

    fn wait(
        &mut self,
        event: &str,
        member: &Member,
        events: &mut Vec<Event>,
    ) -> Result<(), ImportError> {
        let (mut reference, mut mutex) = ("unknown", "unknown");
        let place = format!("`{event}`");
        for field in self.map(&member.value, &place)? {
            match field.key.as_str() {
                "ref" => reference = self.string(field)?,
                "mutex" => mutex = self.string(field)?,
                _ => return self.unknown(field, &place, &["ref", "mutex"]),
            }
        }
        let lock = Lock(self.locks.of(mutex));
        let channel = self.waited(reference);
        if event == "sync" {
            events.push(Event::Do(Op::Notify(self.signalled(reference))));
        }
        events.extend([Op::Unlock(lock), Op::Wait(channel), Op::Lock(lock)].map(Event::Do));
        Ok(())
    }

    fn timer(&self, member: &Member) -> Result<Event, ImportError> {
        let (mut reference, mut period, mut absolute) = ("unknown", Span::ZERO, false);
        for field in self.map(&member.value, "`timer`")? {
            match field.key.as_str() {
                "ref" => reference = self.string(field)?,
                "period" => period = self.span(field)?,
                "mode" => {
                    absolute = match self.string(field)? {
                        "absolute" => true,
                        "relative" => false,
                        other => {
                            let other = excerpt(other);
                            let what = format!("`mode` is relative or absolute, not `{other}`");
                            return self.error(field.value.at, what);
                        }
                    }
                }
                _ => return self.unknown(field, "`timer`", &["ref", "period", "mode"]),
            }
        }
        Ok(Event::Timer { reference: reference.to_string(), period, absolute })
    }
}
