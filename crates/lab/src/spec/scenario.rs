//! `[[scenario]]`: loads and machines that are compared side by side.

use crate::spec::error::{Fault, Faults, NOWHERE};
use crate::spec::fields::{self, Fields, read_all};
use crate::spec::keys;
use crate::spec::sweep::{PolicyEntry, Sweep};
use crate::spec::tree::{Entry, Node, Table, Value};
use std::ops::Range;

/// The name of the axis that scenarios are.
pub(crate) const SCENARIO: &str = "scenario";

/// One load and machine; an experiment without `[[scenario]]` has one without a name.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: Option<String>,
    pub(crate) at: Range<usize>,
    /// A table of `machine`, `workload` and perhaps `duration`.
    pub(crate) tree: Node,
    /// By label, what policies have different here.
    policies: Vec<(String, Table)>,
}

impl Scenario {
    /// `policy` as it is here.
    pub(crate) fn policy(&self, policy: &PolicyEntry) -> Result<PolicyEntry, Fault> {
        let mut here = policy.clone();
        for (_, changes) in self.policies.iter().filter(|(label, _)| *label == policy.label) {
            here.change_in_scenario(changes)?;
        }
        Ok(here)
    }
}

/// The scenarios, and what is wrong with them. One whose load is missing is among them, so that
/// what else is wrong can be found.
pub(crate) fn read_scenarios(
    fields: &Fields<'_>,
    sweep: &Sweep,
) -> Result<(Vec<Scenario>, Faults), Fault> {
    let mut base = Node::empty_table(NOWHERE);
    for key in ["machine", "workload", "vm", "duration"] {
        if let Some(entry) = fields.table.entry(key) {
            base.replace(&[key], &entry.key_at, entry.node.clone()).map_err(Fault::whole)?;
        }
    }
    let mut faults = Faults::default();
    let nodes = fields.tables("scenario")?;
    if nodes.is_empty() {
        let scenario = Scenario { name: None, at: NOWHERE, tree: base, policies: Vec::new() };
        faults.take(require_workload(&scenario));
        return Ok((vec![scenario], faults));
    }
    let mut scenarios: Vec<Scenario> = Vec::new();
    for node in nodes {
        let Some(scenario) = faults.take(read_all(node, |node| read(node, &base, sweep))) else {
            continue;
        };
        if scenarios.iter().any(|other| other.name == scenario.name) {
            let name = scenario.name.as_deref().unwrap_or_default();
            let at =
                node.as_table().and_then(|table| table.get("name")).map_or(&node.at, |it| &it.at);
            let message = format!("two scenarios are called \"{name}\"");
            faults.add(Fault::at(at, message).label("the second one"));
            continue;
        }
        faults.take(require_workload(&scenario));
        scenarios.push(scenario);
    }
    Ok((scenarios, faults))
}

/// A scenario that changes `base`.
fn read(node: &Node, base: &Node, sweep: &Sweep) -> Result<Scenario, Fault> {
    let fields = Fields::of(node, &keys::SCENARIO)?;
    let name = fields::name(fields.need("name", "\"interactive\"")?, "name")?.to_string();
    let mut tree = base.clone();
    let mut policies = Vec::new();
    for entry in &fields.table.0 {
        match (entry.key.as_str(), &entry.node.value) {
            ("name", _) => {}
            ("policy", _) => policies = read_changes(&entry.node, sweep)?,
            ("machine", Value::Table(overrides)) => {
                for inner in &overrides.0 {
                    let path = ["machine", inner.key.as_str()];
                    set_part(&mut tree, &path, &inner.key_at, inner.node.clone())
                        .map_err(|why| Fault::at(&inner.key_at, why))?;
                }
            }
            (key, _) => set_part(&mut tree, &[key], &entry.key_at, entry.node.clone())
                .map_err(|why| Fault::at(&entry.key_at, why))?,
        }
    }
    Ok(Scenario { name: Some(name), at: node.at.clone(), tree, policies })
}

/// What policies have different in a scenario, by label.
fn read_changes(node: &Node, sweep: &Sweep) -> Result<Vec<(String, Table)>, Fault> {
    let known = sweep.policies.iter().map(|policy| policy.label.as_str());
    let fields = Fields::named(node, "[scenario.policy]", known)?;
    let change = |entry: &Entry| match &entry.node.value {
        Value::Table(changes) => Ok((entry.key.clone(), changes.clone())),
        _ => Err(Fault::at(&entry.node.at, format!("what differs is a table, not {}", entry.node))
            .help(format!("for example `{} = {{ machine = {{ cpus = 5 }} }}`", entry.key))),
    };
    fields.table.0.iter().map(change).collect()
}

fn require_workload(scenario: &Scenario) -> Result<(), Fault> {
    let has = |key| scenario.tree.as_table().is_some_and(|table| table.get(key).is_some());
    if has("workload") || has("vm") {
        return Ok(());
    }
    let help = "add a `[[workload]]`, for example with `kind = \"batch\"`, `tasks = 100` and \
                `service = \"exp(10ms)\"`";
    Err(match &scenario.name {
        None => Fault::whole("no load").help(help),
        Some(name) => Fault::at(&scenario.at, format!("scenario \"{name}\" has no load"))
            .help(help.replace("[[workload]]", "[[scenario.workload]]")),
    })
}

/// Replaces a part of a scenario. `cpus` and `topology` are two ways to say one thing, so that
/// each replaces the other.
pub(crate) fn set_part(
    tree: &mut Node,
    path: &[&str],
    key_at: &Range<usize>,
    node: Node,
) -> Result<(), String> {
    let other = match path {
        ["machine", "cpus"] => Some("topology"),
        ["machine", "topology"] => Some("cpus"),
        _ => None,
    };
    if let (Some(other), Value::Table(table)) = (other, &mut tree.value)
        && let Some(machine) = table.0.iter_mut().find(|entry| entry.key == "machine")
        && let Value::Table(machine) = &mut machine.node.value
    {
        machine.0.retain(|entry| entry.key != other);
    }
    tree.replace(path, key_at, node)
}
