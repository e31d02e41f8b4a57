//! An experiment of one row, as it is made smaller, and as it is written.

use crate::plan::GroupParts;
use crate::shrink::search::Smaller;
use crate::spec::error::NOWHERE;
use crate::spec::overrides::quoted;
use crate::spec::tree::{Entry, Node, Table, Value};
use anysched_core::{DomainId, Machine, Span, Time};
use anysched_workload::model::{Model, ModelTask};
use anysched_workload::{NewTask, Op};
use std::fmt::Write;
use std::path::Path;

/// An experiment of one row.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its name, from which the seeds of its runs derive.
    pub(crate) name: String,
    /// The file: `question`, `seed`, `policy`, `duration`, `machine`, `vm`, `workload`, `claim`.
    pub(crate) root: Node,
    /// The load, in place of `workload`.
    pub(crate) model: Option<Model>,
}

/// A table of an experiment that has a header of its own where it is in a list.
const LISTS: [&str; 4] = ["workload", "vm", "claim", "hotplug"];

/// The keys at the top, in the order in which they are written.
const ORDER: [&str; 8] =
    ["question", "seed", "policy", "duration", "machine", "workload", "vm", "claim"];

pub(crate) fn text_node(text: impl Into<String>) -> Node {
    Node { value: Value::Text(text.into()), at: NOWHERE }
}

pub(crate) fn whole_node(number: i64) -> Node {
    Node { value: Value::Integer(number), at: NOWHERE }
}

pub(crate) fn list_node(items: Vec<Node>) -> Node {
    Node { value: Value::List(items), at: NOWHERE }
}

pub(crate) fn table_node(entries: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let entry = |(key, node): (&str, Node)| Entry { key: key.into(), key_at: NOWHERE, node };
    let table = Table(entries.into_iter().map(entry).collect());
    Node { value: Value::Table(table), at: NOWHERE }
}

impl Case {
    /// The row of `parts` with the policies of these labels; files are named from `directory`.
    pub(crate) fn of(name: &str, parts: &GroupParts, labels: &[String], directory: &Path) -> Case {
        let chosen = parts.policies.iter().filter(|policy| labels.contains(&policy.label));
        let policies = chosen.map(|policy| policy.written()).collect();
        let mut root = table_node([("policy", list_node(policies))]);
        let tree = parts.tree.as_table().map_or(&[][..], |table| &table.0);
        for Entry { key, node, .. } in tree {
            let mut node = node.clone();
            node.place(&NOWHERE);
            name_from_here(&mut node, directory);
            set(&mut root, key, node);
        }
        Case { name: name.into(), root, model: None }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.root.as_table()?.get(key)
    }

    pub(crate) fn set(&mut self, key: &str, node: Node) {
        set(&mut self.root, key, node);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        if let Value::Table(table) = &mut self.root.value {
            table.0.retain(|entry| entry.key != key);
        }
    }

    /// The list at a key; empty: there is none.
    pub(crate) fn list(&self, key: &str) -> &[Node] {
        self.get(key).and_then(Node::as_list).unwrap_or_default()
    }

    /// How many CPUs its machine has, as far as that is said in words.
    pub(crate) fn cpus(&self) -> usize {
        let machine = self.get("machine").and_then(Node::as_table);
        let part = |key| machine.and_then(|machine| machine.get(key));
        match (part("cpus").map(|node| &node.value), part("topology").and_then(Node::as_text)) {
            (Some(Value::Integer(cpus)), _) => *cpus as usize,
            (_, Some(text)) => Machine::parse(text).map_or(1024, |machine| machine.cpus()),
            _ => 1024,
        }
    }

    /// How many tasks there are, as far as that is said.
    pub(crate) fn tasks(&self) -> u64 {
        let counted = |node: &Node| {
            let table = node.as_table();
            let count = ["tasks", "clients", "threads", "groups", "workers", "count"];
            let count = count.into_iter().find_map(|key| match table?.get(key)?.value {
                Value::Integer(count) => Some(count.max(0) as u64),
                _ => None,
            });
            count.unwrap_or(1)
        };
        let keys = self.list("workload").iter().chain(self.list("vm")).map(counted).sum::<u64>();
        keys + self.model.as_ref().map_or(0, |model| model.tasks.len() as u64)
    }

    /// The name of the file with its model.
    pub(crate) fn model_name(&self) -> String {
        format!("{}.model", self.name)
    }

    /// Its text, and the model that it names, if it does.
    pub(crate) fn written(&self) -> (String, Option<Vec<u8>>) {
        let mut root = self.root.clone();
        let mut file = None;
        if let Some(model) = &self.model {
            let loads = as_loads(model).unwrap_or_else(|| {
                let mut bytes = Vec::new();
                // Writing to memory does not fail, and what measures was left out.
                let _ = trimmed(model).write(&mut bytes);
                file = Some(bytes);
                let name = text_node(self.model_name());
                vec![table_node([("kind", text_node("model")), ("file", name)])]
            });
            set(&mut root, "workload", list_node(loads));
        }
        let mut text = String::new();
        if let Value::Table(table) = &mut root.value {
            let place = |entry: &Entry| ORDER.iter().position(|key| *key == entry.key);
            table.0.sort_by_key(place);
            write_table(&mut text, "", table);
        }
        (text, file)
    }
}

fn set(root: &mut Node, key: &str, node: Node) {
    if let Value::Table(table) = &mut root.value {
        table.set(key, &NOWHERE, node);
    }
}

/// Gives files their full names: the case is in another folder.
fn name_from_here(node: &mut Node, directory: &Path) {
    let full = |name: &str| {
        let path = directory.join(name);
        let there = path.is_file();
        let full = std::path::absolute(&path).ok().filter(|_| there);
        full.map(|path| path.display().to_string())
    };
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| name_from_here(item, directory)),
        Value::Table(table) => {
            for Entry { key, node, .. } in &mut table.0 {
                match (key.as_str(), &mut node.value) {
                    ("file" | "topology" | "costs", Value::Text(text)) => {
                        *text = full(text).unwrap_or_else(|| text.clone());
                    }
                    (_, Value::Text(text)) => {
                        let file = text.strip_prefix("empirical(");
                        let file = file.and_then(|rest| rest.strip_suffix(')'));
                        if let Some(file) = file.and_then(full) {
                            *text = format!("empirical({file})");
                        }
                    }
                    _ => name_from_here(node, directory),
                }
            }
        }
        _ => {}
    }
}

/// A model with no more channels, locks and barriers than it uses.
fn trimmed(model: &Model) -> Model {
    let mut model = model.clone();
    let (mut channels, mut locks, mut barriers) = (0, 0, 0);
    for (_, channel) in &model.signals {
        channels = channels.max(channel.0 + 1);
    }
    for op in model.tasks.iter().flat_map(|task| &task.script.ops) {
        match op {
            Op::Wait(c) | Op::Signal(c) | Op::Write(c) | Op::Notify(c) | Op::Broadcast(c) => {
                channels = channels.max(c.0 + 1);
            }
            Op::Lock(lock) | Op::Spin(lock) | Op::Unlock(lock) => locks = locks.max(lock.0 + 1),
            Op::Meet(barrier) => barriers = barriers.max(barrier.0 as usize + 1),
            _ => {}
        }
    }
    model.sizes.channels = channels;
    model.sizes.locks = locks;
    model.sizes.barriers.truncate(barriers);
    model
}

/// The tasks of a model as loads of one task each; `None`: one of them does what only a model says.
fn as_loads(model: &Model) -> Option<Vec<Node>> {
    if !model.signals.is_empty() {
        return None;
    }
    // Of what arrives at the same time, the load given first comes first.
    let mut loads: Vec<(Node, u64)> = Vec::new();
    for task in &model.tasks {
        let load = as_load(task)?;
        match loads.last_mut() {
            Some((last, times)) if last.to_string() == load.to_string() => *times += 1,
            _ => loads.push((load, 1)),
        }
    }
    Some(loads.into_iter().map(|(load, times)| several(load, times)).collect())
}

/// So many of a load of one task.
fn several(mut load: Node, times: u64) -> Node {
    let is_batch = load.as_table().is_some_and(|table| table.get("service").is_some());
    if let Value::Table(table) = &mut load.value
        && (times > 1 || is_batch)
    {
        let tasks = Entry { key: "tasks".into(), key_at: NOWHERE, node: whole_node(times as i64) };
        table.0.insert(1, tasks);
    }
    load
}

fn as_load(task: &ModelTask) -> Option<Node> {
    let at = task.arrives?;
    let time = |span: Span| text_node(span.to_string());
    let mut load = match &task.script.ops[..] {
        &[Op::Run(run)] if run > Span::ZERO => {
            let mut load = table_node([("kind", text_node("batch")), ("service", time(run))]);
            if at > Time::ZERO {
                set(&mut load, "at", time(at.since(Time::ZERO)));
            }
            load
        }
        ops => {
            let (run, sleep, rounds) = turns(ops)?;
            let mut load = table_node([
                ("kind", text_node("interactive")),
                ("run", time(run)),
                ("sleep", time(sleep)),
                ("rounds", whole_node(rounds)),
            ]);
            if at > Time::ZERO {
                set(&mut load, "offset", time(at.since(Time::ZERO)));
            }
            load
        }
    };
    let usual = NewTask::default();
    let NewTask { name, nice, affinity, domain, priority, period, .. } = &task.new;
    let NewTask { budget, relative_deadline, key, intensity, .. } = &task.new;
    if period.is_some() || task.script.rounds != 1 {
        return None;
    }
    let number = |number: i64, usual: i64| (number != usual).then(|| whole_node(number));
    let others = [
        ("name", name.as_deref().map(text_node)),
        ("nice", number((*nice).into(), usual.nice.into())),
        ("priority", number((*priority).into(), usual.priority.into())),
        ("affinity", (!affinity.is_all()).then(|| text_node(affinity.to_string()))),
        ("domain", number(domain.0.into(), DomainId::default().0.into())),
        ("deadline", relative_deadline.map(time)),
        ("slice", budget.map(time)),
        ("key", key.map(|key| whole_node(key.into()))),
        ("intensity", number((*intensity).into(), usual.intensity.into())),
    ];
    for (key, node) in others {
        if let Some(node) = node {
            set(&mut load, key, node);
        }
    }
    Some(load)
}

/// A run and a sleep in turn, so often, with a run at the end.
fn turns(ops: &[Op]) -> Option<(Span, Span, i64)> {
    let (&Op::Run(run), &Op::Sleep(sleep)) = (ops.first()?, ops.get(1)?) else { return None };
    let turns = ops.chunks(2).all(|turn| match turn {
        [Op::Run(first), Op::Sleep(second)] => (*first, *second) == (run, sleep),
        [Op::Run(first)] => *first == run,
        _ => false,
    });
    // One that sleeps at its end is another; its last sleep matters to nobody else.
    let ends = ops.len() % 2 == 1 && run > Span::ZERO;
    (turns && ends).then(|| (run, sleep, ops.len().div_ceil(2) as i64))
}

fn write_table(text: &mut String, path: &str, table: &Table) {
    let is_below = |entry: &&Entry| {
        let lists = LISTS.contains(&entry.key.as_str()) && entry.node.as_list().is_some();
        lists || path.is_empty() && entry.key == "machine"
    };
    for Entry { key, node, .. } in table.0.iter().filter(|entry| !is_below(entry)) {
        let _ = match (key.as_str(), node.as_list()) {
            ("policy", Some([policy])) => writeln!(text, "{key} = {}", inline(policy)),
            ("policy", Some(policies)) => {
                let policies = policies.iter().map(|policy| format!("    {},\n", inline(policy)));
                writeln!(text, "{key} = [\n{}]", policies.collect::<String>())
            }
            _ => writeln!(text, "{} = {}", bare(key), inline(node)),
        };
    }
    let dot = if path.is_empty() { "" } else { "." };
    for Entry { key, node, .. } in table.0.iter().filter(is_below) {
        let one = std::slice::from_ref(node);
        for item in node.as_list().unwrap_or(one) {
            let [open, close] = if node.as_list().is_some() { ["[[", "]]"] } else { ["[", "]"] };
            let _ = writeln!(text, "\n{open}{path}{dot}{key}{close}");
            if let Value::Table(inner) = &item.value {
                write_table(text, &format!("{path}{dot}{key}"), inner);
            }
        }
    }
}

fn bare(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(is_bare) { key.into() } else { quoted(key) }
}

fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        // A policy without settings.
        Value::Table(Table(entries)) if matches!(&entries[..], [only] if only.key == "name") => {
            inline(&entries[0].node)
        }
        Value::Table(Table(entries)) => {
            let entries = entries.iter().map(|e| format!("{} = {}", bare(&e.key), inline(&e.node)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        _ => node.to_string(),
    }
}

impl Smaller for Case {
    /// Tasks, CPUs, what needs a model beside it, what is said at all, whole numbers, digits of
    /// times, times.
    fn weight(&self) -> Vec<u64> {
        let mut sums = Sums::default();
        for key in ["policy", "machine", "vm", "workload", "duration"] {
            if let Some(node) = self.get(key) {
                sums.add(node);
            }
        }
        if let Some(model) = &self.model {
            sums.add_model(model);
        }
        let Sums { said, numbers, digits, times } = sums;
        let only_in_model = self.model.as_ref().map_or(0, |model| {
            let tasks = model.tasks.iter().filter(|task| as_load(task).is_none());
            (model.signals.len() + tasks.count()) as u64
        });
        let cpus = self.cpus() as u64;
        vec![self.tasks(), cpus, only_in_model, said, numbers, digits, times]
    }

    fn text(&self) -> String {
        let (text, model) = self.written();
        text + &model.map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What there is to say of a case.
#[derive(Default)]
struct Sums {
    said: u64,
    numbers: u64,
    digits: u64,
    times: u64,
}

impl Sums {
    fn add(&mut self, node: &Node) {
        self.said += 1;
        match &node.value {
            Value::Integer(number) => {
                self.numbers = self.numbers.saturating_add(number.unsigned_abs());
            }
            Value::Text(text) => match Span::parse(text) {
                Ok(span) => self.add_time(span),
                // More to read than a time.
                Err(_) => self.digits += 100 + text.len() as u64,
            },
            Value::List(items) => items.iter().for_each(|item| self.add(item)),
            Value::Table(table) => table.0.iter().for_each(|entry| self.add(&entry.node)),
            Value::Real(_) | Value::Flag(_) => {}
        }
    }

    fn add_time(&mut self, span: Span) {
        self.digits += digits(span);
        self.times = self.times.saturating_add(span.0);
    }

    fn add_model(&mut self, model: &Model) {
        self.said += model.signals.len() as u64;
        model.signals.iter().for_each(|(at, _)| self.add_time(at.since(Time::ZERO)));
        for task in &model.tasks {
            self.said += task.script.ops.len() as u64 + attributes(&task.new);
            self.add_time(task.arrives.unwrap_or(Time::ZERO).since(Time::ZERO));
            for op in &task.script.ops {
                match op {
                    Op::Run(span) | Op::Sleep(span) => self.add_time(*span),
                    Op::Release { at, .. } => self.add_time(at.since(Time::ZERO)),
                    _ => {}
                }
            }
            let spans = [task.new.period, task.new.budget, task.new.relative_deadline];
            spans.into_iter().flatten().for_each(|span| self.add_time(span));
            self.numbers += u64::from(task.new.nice.unsigned_abs());
        }
    }
}

/// How many parameters of a task are not the usual ones.
fn attributes(new: &NewTask) -> u64 {
    let NewTask { name, nice, affinity, domain, priority, period, budget, .. } = new;
    let NewTask { relative_deadline, deadline, key, intensity, .. } = new;
    let set = [
        name.is_some(),
        *nice != 0,
        !affinity.is_all(),
        *domain != DomainId::default(),
        *priority != 0,
        period.is_some(),
        budget.is_some(),
        relative_deadline.is_some(),
        deadline.is_some(),
        key.is_some(),
        *intensity != 0,
    ];
    set.into_iter().filter(|set| *set).count() as u64
}

/// How much there is to read of a time: nothing of 0, least of a millisecond, and else its digits.
pub(crate) fn digits(span: Span) -> u64 {
    const MILLISECOND: u64 = 1_000_000;
    match span.0 {
        0 => 0,
        MILLISECOND => 1,
        mut ns => {
            while ns % 10 == 0 {
                ns /= 10;
            }
            2 + u64::from(ns.ilog10())
        }
    }
}
