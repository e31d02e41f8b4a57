//! `[sweep]`: the policies that are compared, the axes that are varied, how many seeds.

use crate::spec::error::{Fault, Faults, NOWHERE};
use crate::spec::fields::{self, hint};
use crate::spec::files::Files;
use crate::spec::keys;
use crate::spec::known::known;
use crate::spec::tree::{Entry, Node, Table, Value};
use anysched_core::registry::{Nature, PolicyInfo};
use anysched_core::{Machine, ParamError, Scheduler, Time};
use anysched_host::ParamChange;
use anysched_policies::POLICIES;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One policy of an experiment with its settings.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    /// What it is called in this experiment.
    pub label: String,
    /// Its line in the registry.
    pub info: &'static PolicyInfo,
    settings: Vec<Setting>,
    /// Parameters that change during a run, in time order; those of one time in the order of the
    /// file.
    changes: Vec<Change>,
    /// What of the machine is different for this policy.
    pub(crate) machine: Table,
    at: Range<usize>,
}

#[derive(Clone, Debug)]
struct Setting {
    name: String,
    name_at: Range<usize>,
    text: String,
    /// Of the file that the text names, once it has been read.
    contents: Option<Arc<str>>,
    text_at: Range<usize>,
    in_scenario: bool,
}

/// A parameter that changes during a run.
#[derive(Clone, Debug)]
struct Change {
    at: Time,
    setting: Setting,
}

/// What is varied: a path into the experiment, and its values.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) path: String,
    pub(crate) at: Range<usize>,
    pub(crate) values: Vec<Node>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisValue {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) policies: Vec<PolicyEntry>,
    /// Schedulers that the host is expected to have of its own, so that claims can be about them:
    /// these, or whichever it has.
    pub(crate) of_host: Option<Vec<String>>,
    /// These alone run; the policies only say on which machine.
    pub(crate) only_of_host: bool,
    pub(crate) axes: Vec<Axis>,
    pub(crate) seeds: u32,
}

impl Sweep {
    /// What rows and claims call the schedulers: the policies, then those of the host.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> + Clone {
        let policies = self.policies.iter().map(|entry| entry.label.as_str());
        policies.chain(self.of_host.iter().flatten().map(String::as_str))
    }
}

/// More runs than this are a slip of the pen.
pub(crate) const MAX_RUNS: usize = 1_000_000;

/// Reads `[sweep]`, if there is one, and the policy that is not swept, if there is one.
pub(crate) fn read(sweep: Option<&Node>, policy: Option<&Node>) -> Result<Sweep, Fault> {
    let none = Table::default();
    let table = match sweep {
        None => &none,
        Some(node) => node.as_table().ok_or_else(|| {
            Fault::at(&node.at, format!("[sweep] is a table, not {}", node.shown()))
        })?,
    };
    let policies = match (table.get("policy"), policy) {
        (Some(swept), Some(_)) => {
            return Err(Fault::at(&swept.at, "the policy is set twice")
                .help("keep `policy` in [sweep] or at the top"));
        }
        (Some(node), None) | (None, Some(node)) => read_policies(node),
        // The command line may have some.
        (None, None) => Ok(Vec::new()),
    };
    let mut faults = Faults::default();
    let policies = faults.take(policies).unwrap_or_default();
    let of_host = table.get("of_host").map(|list| read_of_host(list, &policies));
    let of_host = of_host.and_then(|read| faults.take(read));
    let mut axes = Vec::new();
    for entry in &table.0 {
        if keys::SWEEP.key(&entry.key).is_none() {
            faults.take(read_axis(&entry.key, &entry.key_at, &entry.node, &mut axes));
        }
    }
    let seeds = table.get("seeds").map(|node| fields::whole(node, "seeds", 1..=1_000_000));
    let seeds = seeds.and_then(|read| faults.take(read)).unwrap_or(1);
    faults.result().map(|()| Sweep { policies, of_host, only_of_host: false, axes, seeds })
}

fn read_of_host(list: &Node, policies: &[PolicyEntry]) -> Result<Vec<String>, Fault> {
    let items = list.as_list().ok_or_else(|| {
        Fault::at(&list.at, format!("`of_host` is a list of names, not {}", list.shown()))
            .help("for example `of_host = [\"stock-fifo\", \"stock-rr\"]`")
    })?;
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let name = fields::text(item, "of_host")?;
        let mut known = policies.iter().map(|entry| &entry.label).chain(&names);
        if known.any(|other| other == name) {
            let message = format!("two schedulers are called `{name}`");
            return Err(Fault::at(&item.at, message).label("the second one"));
        }
        names.push(name.to_string());
    }
    Ok(names)
}

pub(crate) fn read_axis(
    path: &str,
    at: &Range<usize>,
    node: &Node,
    axes: &mut Vec<Axis>,
) -> Result<(), Fault> {
    // `workload.0.tasks = […]` without quotes is a table of tables.
    if let Value::Table(table) = &node.value {
        for entry in &table.0 {
            let inner = format!("{path}.{}", entry.key);
            read_axis(&inner, &entry.key_at, &entry.node, axes)?;
        }
        return Ok(());
    }
    check_path(path, at)?;
    let values = node.as_list().filter(|list| !list.is_empty()).ok_or_else(|| {
        Fault::at(&node.at, format!("`{path}` is a list of values, not {}", node.shown()))
            .help(format!("for example `\"{path}\" = [{node}]`"))
    })?;
    let texts: Vec<String> = values.iter().map(Node::to_string).collect();
    for (index, value) in values.iter().enumerate() {
        if texts[..index].contains(&texts[index]) {
            return Err(Fault::at(&value.at, format!("`{path}` has the value {value} twice")));
        }
    }
    if axes.iter().any(|axis| axis.path == path) {
        return Err(Fault::at(at, format!("`{path}` is swept twice")));
    }
    axes.push(Axis { path: path.to_string(), at: at.clone(), values: values.to_vec() });
    Ok(())
}

/// Whether `path` leads to a value of an experiment, if there is one.
pub(crate) fn is_path(path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match first {
        "machine" | "workload" | "vm" => {
            !rest.is_empty() && rest.split('.').all(|part| !part.is_empty())
        }
        "duration" => path == first,
        _ => false,
    }
}

fn check_path(path: &str, at: &Range<usize>) -> Result<(), Fault> {
    if is_path(path) {
        return Ok(());
    }
    let first = path.split('.').next().unwrap_or_default();
    let help = match first {
        "scenario" => "the scenarios are an axis already".to_string(),
        "seed" => "say how many seeds with `seeds = 20`".to_string(),
        _ if known(first).is_some() || first == "policy" => {
            "list the variants: `policy = [{ name = \"rr\", quantum = \"1ms\", label = \"1\" }, \
             …]`"
            .to_string()
        }
        _ => "an axis is `policy`, `duration` or a path such as `\"machine.cpus\"`, \
              `\"workload.0.tasks\"` or `\"vm.0.policy\"`"
            .to_string(),
    };
    Err(Fault::at(at, format!("`{path}` cannot be swept")).label("not an axis").help(help))
}

pub(crate) fn read_policies(node: &Node) -> Result<Vec<PolicyEntry>, Fault> {
    if node.as_text() == Some("all") {
        let entry = |info: &'static PolicyInfo| PolicyEntry {
            label: info.name.to_string(),
            info,
            settings: Vec::new(),
            changes: Vec::new(),
            machine: Table::default(),
            at: node.at.clone(),
        };
        return Ok(POLICIES.iter().map(entry).collect());
    }
    let list = match &node.value {
        Value::List(list) if list.is_empty() => {
            return Err(Fault::at(&node.at, "the list of policies is empty"));
        }
        Value::List(list) => list.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut faults = Faults::default();
    let mut entries: Vec<(PolicyEntry, bool)> =
        list.iter().filter_map(|node| faults.take(fields::read_all(node, read_policy))).collect();
    faults.result()?;
    // Two of one name that have no labels of their own are told apart by their settings.
    let plain: Vec<String> =
        entries.iter().filter(|(_, labelled)| !labelled).map(|(e, _)| e.label.clone()).collect();
    for (entry, labelled) in &mut entries {
        let several = plain.iter().filter(|label| **label == entry.label).count() > 1;
        if several && !*labelled && !entry.settings.is_empty() {
            let pair = |setting: &Setting| format!("{}={}", setting.name, setting.text);
            let pairs: Vec<String> = entry.settings.iter().map(pair).collect();
            entry.label = format!("{}({})", entry.label, pairs.join(","));
        }
    }
    let entries: Vec<PolicyEntry> = entries.into_iter().map(|(entry, _)| entry).collect();
    for (index, entry) in entries.iter().enumerate() {
        if entries[..index].iter().any(|other| other.label == entry.label) {
            let message = format!("two policies are called `{}`", entry.label);
            return Err(Fault::at(&entry.at, message).label("the second one").help(
                "tell them apart: `{ name = \"rr\", quantum = \"1ms\", label = \"short\" }`",
            ));
        }
    }
    Ok(entries)
}

/// A policy, and whether its label was given.
fn read_policy(node: &Node) -> Result<(PolicyEntry, bool), Fault> {
    let (name_node, table) = match &node.value {
        Value::Text(_) => (node, None),
        Value::Table(table) => match table.get("name") {
            Some(name) => (name, Some(table)),
            None => {
                return Err(Fault::at(&node.at, "a policy has no `name`")
                    .help("for example `{ name = \"rr\", quantum = \"10ms\" }`"));
            }
        },
        _ => {
            let message = format!("a policy is a name or a table, not {}", node.shown());
            return Err(Fault::at(&node.at, message));
        }
    };
    let name = fields::text(name_node, "name")?;
    let info = known(name).ok_or_else(|| {
        Fault::at(&name_node.at, format!("no policy is called `{name}`"))
            .label("unknown policy")
            .help(hint(name, POLICIES.iter().map(|policy| policy.name)))
    })?;
    let label = table.and_then(|table| table.get("label"));
    let label = label.map(read_label).transpose()?;
    let labelled = label.is_some();
    let label = label.unwrap_or_else(|| name.to_string());
    let mut policy = PolicyEntry {
        label,
        info,
        settings: Vec::new(),
        changes: Vec::new(),
        machine: Table::default(),
        at: node.at.clone(),
    };
    if let Some(table) = table {
        policy.change(table, &["name", "label"])?;
        if let Some(entry) = table.entry("machine")
            && !labelled
        {
            return Err(Fault::at(
                &entry.key_at,
                "a policy with a machine of its own has no label",
            )
            .help(
                "`label = \"rr, 8 CPUs\"` tells readers that it is not compared on equal terms",
            ));
        }
    }
    Ok((policy, labelled))
}

fn read_label(node: &Node) -> Result<String, Fault> {
    let label = fields::text(node, "label")?;
    if label.is_empty() || label.contains(|c: char| c == '`' || c.is_control()) {
        let message = "a label has at least one character, and neither backticks nor line ends";
        return Err(Fault::at(&node.at, message));
    }
    Ok(label.to_string())
}

/// Settings reach policies as text; lists as their items with commas between them.
pub(crate) fn setting_text(key: &str, node: &Node) -> Result<String, Fault> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Real(_) | Value::Flag(_) => Ok(node.to_string()),
        Value::List(items) => {
            let texts: Result<Vec<String>, Fault> =
                items.iter().map(|item| setting_text(key, item)).collect();
            Ok(texts?.join(","))
        }
        Value::Table(_) => Err(Fault::at(&node.at, format!("`{key}` cannot be a table"))),
    }
}

/// `changes = [{ at = "1s", PARAMETER = VALUE }]`.
fn read_changes(node: &Node) -> Result<Vec<Change>, Fault> {
    const EXAMPLE: &str = "for example `changes = [{ at = \"1s\", grouping = \"single\" }]`";
    let list = node.as_list().ok_or_else(|| {
        Fault::at(&node.at, format!("`changes` is a list of tables, not {}", node.shown()))
            .help(EXAMPLE)
    })?;
    let mut changes = Vec::new();
    for item in list {
        let Some(table) = item.as_table() else {
            let message = format!("a change is a table, not {}", item.shown());
            return Err(Fault::at(&item.at, message).help(EXAMPLE));
        };
        let at = table.get("at").ok_or_else(|| {
            Fault::at(&item.at, "a change does not say when: it has no `at`").help(EXAMPLE)
        })?;
        let at = Time::ZERO + fields::span(at, "at")?;
        let params: Vec<&Entry> = table.0.iter().filter(|entry| entry.key != "at").collect();
        if params.is_empty() {
            return Err(Fault::at(&item.at, "a change names no parameter").help(EXAMPLE));
        }
        for Entry { key, key_at, node } in params {
            let setting = Setting::new(key, key_at, &setting_text(key, node)?, &node.at);
            changes.push(Change { at, setting });
        }
    }
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

impl Setting {
    fn new(name: &str, name_at: &Range<usize>, text: &str, text_at: &Range<usize>) -> Setting {
        Setting {
            name: name.to_string(),
            name_at: name_at.clone(),
            text: text.to_string(),
            contents: None,
            text_at: text_at.clone(),
            in_scenario: false,
        }
    }

    fn value(&self) -> &str {
        self.contents.as_deref().unwrap_or(&self.text)
    }
}

impl PolicyEntry {
    /// Its settings as they are given to [`PolicyInfo::build`].
    pub fn settings(&self) -> Vec<(&str, &str)> {
        self.settings.iter().map(|setting| (setting.name.as_str(), setting.value())).collect()
    }

    /// Its settings as they are written.
    pub(crate) fn settings_written(&self) -> Vec<(String, String)> {
        let written = |setting: &Setting| (setting.name.clone(), setting.text.clone());
        let later = self.changes.iter().map(|Change { at, setting }| {
            (format!("{} from {} on", setting.name, at.since(Time::ZERO)), setting.text.clone())
        });
        self.settings.iter().map(written).chain(later).collect()
    }

    /// Reads the files that take the place of values: `@NAME`.
    pub(crate) fn read_files(&mut self, files: &mut Files) -> Result<(), Fault> {
        let changed = self.changes.iter_mut().map(|change| &mut change.setting);
        for setting in self.settings.iter_mut().chain(changed) {
            if let Some(file) = setting.text.strip_prefix('@') {
                setting.contents = Some(files.text(file, &setting.text_at)?);
            }
        }
        Ok(())
    }

    /// It as an experiment has it, with the contents of files in place of their names.
    pub(crate) fn written(&self) -> Node {
        let text = |text: &str| Node::of_text(text, &NOWHERE);
        let mut table = Table::default();
        let mut set = |key: &str, node: Node| table.set(key, &NOWHERE, node);
        set("name", text(self.info.name));
        if self.label != self.info.name {
            set("label", text(&self.label));
        }
        for setting in &self.settings {
            set(&setting.name, text(setting.value()));
        }
        let changes = self.changes.iter().map(|Change { at, setting }| {
            let mut change = Table::default();
            change.set("at", &NOWHERE, text(&at.since(Time::ZERO).to_string()));
            change.set(&setting.name, &NOWHERE, text(setting.value()));
            Node { value: Value::Table(change), at: NOWHERE }
        });
        let changes: Vec<Node> = changes.collect();
        if !changes.is_empty() {
            set("changes", Node { value: Value::List(changes), at: NOWHERE });
        }
        if !self.machine.0.is_empty() {
            set("machine", Node { value: Value::Table(self.machine.clone()), at: NOWHERE });
        }
        Node { value: Value::Table(table), at: NOWHERE }
    }

    /// What it is with its settings.
    pub(crate) fn nature(&self) -> Nature {
        nature_of(self.info, &self.settings())
    }

    /// The settings that a scenario has changed: `name value`.
    pub(crate) fn changes_in_scenario(&self) -> Vec<String> {
        let words = |setting: &Setting| format!("{} {}", setting.name, setting.text);
        let changed = self.settings.iter().filter(|setting| setting.in_scenario).map(words);
        let later = self.changes.iter().filter(|change| change.setting.in_scenario);
        let later = later.map(|Change { at, setting }| {
            format!("{} from {} on", words(setting), at.since(Time::ZERO))
        });
        changed.chain(later).collect()
    }

    /// As [`PolicyEntry::change`], for one scenario.
    pub(crate) fn change_in_scenario(&mut self, table: &Table) -> Result<(), Fault> {
        self.change(table, &[])?;
        for setting in &mut self.settings {
            setting.in_scenario = table.get(&setting.name).is_some();
        }
        for change in &mut self.changes {
            change.setting.in_scenario = table.get("changes").is_some();
        }
        Ok(())
    }

    /// Sets what `table` holds besides `others`: parameters, and parts of the machine.
    pub(crate) fn change(&mut self, table: &Table, others: &[&str]) -> Result<(), Fault> {
        for Entry { key, key_at, node } in &table.0 {
            match (key.as_str(), &node.value) {
                (key, _) if others.contains(&key) => {}
                ("machine", Value::Table(machine)) => {
                    for part in &machine.0 {
                        self.machine.set(&part.key, &part.key_at, part.node.clone());
                    }
                }
                ("machine", _) => {
                    let message = format!("`machine` is a table, not {}", node.shown());
                    return Err(
                        Fault::at(&node.at, message).help("for example `machine = { cpus = 5 }`")
                    );
                }
                ("changes", _) => self.changes = read_changes(node)?,
                _ => self.set(key, key_at, &setting_text(key, node)?, &node.at),
            }
        }
        Ok(())
    }

    /// Gives a parameter another value.
    pub(crate) fn set(
        &mut self,
        name: &str,
        name_at: &Range<usize>,
        text: &str,
        text_at: &Range<usize>,
    ) {
        self.settings.retain(|setting| setting.name != name);
        self.settings.push(Setting::new(name, name_at, text, text_at));
    }

    /// Takes over the parameters of these names from `other`.
    pub(crate) fn take(&mut self, names: &[&str], other: &PolicyEntry) {
        let meant = |setting: &Setting| names.contains(&setting.name.as_str());
        self.settings.retain(|setting| !meant(setting));
        self.settings.extend(other.settings.iter().filter(|setting| meant(setting)).cloned());
    }

    /// The parameters that change during a run.
    pub(crate) fn changes(&self) -> Vec<ParamChange> {
        let change = |Change { at, setting }: &Change| ParamChange {
            at: *at,
            name: setting.name.clone(),
            text: setting.value().to_string(),
        };
        self.changes.iter().map(change).collect()
    }

    /// Checks that `policy`, which was built from this entry, changes its parameters as the entry
    /// says.
    ///
    /// Errors: names the first change that it refuses.
    pub(crate) fn check_changes(&self, policy: &dyn Scheduler) -> Result<(), Fault> {
        self.changes.iter().try_for_each(|Change { setting, .. }| {
            let checked = policy.check_param(&setting.name, setting.value());
            checked.map_err(|error| self.fault_in(std::slice::from_ref(setting), &error))
        })
    }

    /// Errors: parameters change during a run, which those of `what` cannot.
    pub(crate) fn refuse_changes(&self, what: &str) -> Result<(), Fault> {
        self.changes.first().map_or(Ok(()), |Change { setting, .. }| {
            let message = format!("parameters of {what} do not change during a run");
            Err(Fault::at(&setting.name_at, message).help("leave `changes` out"))
        })
    }

    /// Takes back all settings, so that the defaults hold.
    pub(crate) fn reset(&mut self) {
        self.settings.clear();
    }

    /// The policy, built for `machine`.
    ///
    /// Errors: all settings that it does not take.
    pub(crate) fn build(&self, machine: &Machine) -> Result<Box<dyn Scheduler>, Fault> {
        let wrong = match (self.info.build)(machine, &self.settings()) {
            Ok(policy) => return Ok(policy),
            Err(error) => self.fault(&error),
        };
        let others = self.wrong_settings(machine, |_| true).err();
        Err(others.map_or(wrong.clone(), |others| wrong.and(others)))
    }

    /// Errors: all settings that it takes on no machine, whatever the others are.
    pub(crate) fn check_settings(&self) -> Result<(), Fault> {
        let Ok(machine) = Machine::flat(1) else { return Ok(()) };
        let is_wrong =
            |error: &_| matches!(error, ParamError::Unknown { .. } | ParamError::Value { .. });
        self.wrong_settings(&machine, is_wrong)
    }

    /// Errors: what is wrong with its settings, each left out to find the next, as far as it is
    /// `told`.
    fn wrong_settings(
        &self,
        machine: &Machine,
        told: impl Fn(&ParamError) -> bool,
    ) -> Result<(), Fault> {
        let (mut left, mut faults) = (self.settings.clone(), Faults::default());
        loop {
            let settings: Vec<(&str, &str)> =
                left.iter().map(|setting| (setting.name.as_str(), setting.value())).collect();
            let Err(error) = (self.info.build)(machine, &settings) else { break };
            let (name, before) = (error.name().to_string(), left.len());
            left.retain(|setting| setting.name != name);
            // Another may need one that was left out.
            if left.len() == before {
                break;
            }
            if told(&error) {
                faults.add(self.fault(&error));
            }
        }
        faults.result()
    }

    fn fault(&self, error: &ParamError) -> Fault {
        self.fault_in(&self.settings, error)
    }

    /// An error about one of `settings`.
    fn fault_in(&self, settings: &[Setting], error: &ParamError) -> Fault {
        let find = |wanted: &str| settings.iter().find(|setting| setting.name == wanted);
        let name = self.info.name;
        let known = (self.info.params)();
        match error {
            ParamError::Unknown { name: wrong } => {
                let at = find(wrong).map_or(&self.at, |setting| &setting.name_at);
                Fault::at(at, format!("policy `{name}` has no parameter `{wrong}`"))
                    .label("unknown parameter")
                    .help(hint(wrong, known.iter().map(|param| param.name)))
            }
            ParamError::Value { name: param, value, why } => {
                let at = find(param).map_or(&self.at, |setting| &setting.text_at);
                Fault::at(at, format!("`{param}` of policy `{name}` = \"{value}\": {why}"))
            }
            ParamError::Invalid { name: param, why } => {
                let at = find(param).map_or(&self.at, |setting| &setting.text_at);
                Fault::at(at, format!("`{param}` of policy `{name}`: {why}"))
            }
            ParamError::Fixed { name: fixed, changeable } => {
                let at = find(fixed).map_or(&self.at, |setting| &setting.name_at);
                let message = format!("`{fixed}` of policy `{name}` does not change during a run");
                Fault::at(at, message).help(match changeable {
                    [] => "nor does any other of its parameters: leave `changes` out".to_string(),
                    _ => format!("these do: {}", changeable.join(", ")),
                })
            }
        }
    }
}

/// What a policy is with settings from which it has been built before.
pub(crate) fn nature_of(info: &PolicyInfo, settings: &[(&str, &str)]) -> Nature {
    let plain = Nature {
        clairvoyant: info.clairvoyant,
        rehearsed: false,
        work_conserving: true,
        starves: false,
        longest_wait: None,
    };
    (info.nature)(settings).unwrap_or(plain)
}

impl AxisValue {
    pub(crate) fn of(node: &Node) -> AxisValue {
        match &node.value {
            Value::Text(text) => AxisValue::Text(text.clone()),
            Value::Integer(number) => AxisValue::Integer(*number),
            Value::Real(number) => AxisValue::Real(*number),
            Value::Flag(flag) => AxisValue::Flag(*flag),
            Value::List(_) | Value::Table(_) => AxisValue::Text(node.to_string()),
        }
    }
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisValue::Text(text) => f.write_str(text),
            AxisValue::Integer(number) => write!(f, "{number}"),
            AxisValue::Real(number) => write!(f, "{number:?}"),
            AxisValue::Flag(flag) => write!(f, "{flag}"),
        }
    }
}
