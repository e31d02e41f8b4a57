//! Machines as distributions have them, and costs that come with the program: the keys `like` and
//! `costs` of `[machine]`.

use crate::spec::error::Fault;
use crate::spec::fields::{self, hint};
use crate::spec::sweep::PolicyEntry;
use crate::spec::tree::{self, Node, Table, Value};
use anysched_core::Machine;
use std::ops::Range;

/// A machine that comes with the program, in the folder `machines`.
struct Shipped {
    name: &'static str,
    text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$( Shipped {
            name: $name,
            text: include_str!(concat!("../../machines/", $name, ".toml")),
        } ),*]
    };
}

/// Distributions: what their kernels are built with.
const MACHINES: &[Shipped] = shipped!["debian-12", "debian-13", "ubuntu-24.04", "fedora-40"];

/// Costs of kernels, as `anysched calibrate` writes them, with one table.
const COSTS: &[Shipped] = shipped!["linux-6.1", "linux-6.12", "linux-7.2"];

/// Costs of 0, by name.
const FREE: &str = "free";

/// The keys of a cost that are not times.
const CHARGED: &str = "charged";

/// A distribution's machine, all of whose values are at the place of the name.
pub(crate) struct Like {
    name: &'static str,
    /// The distribution and its kernel.
    title: String,
    table: Table,
    at: Range<usize>,
}

impl Like {
    /// The one that `[machine]` names, if it names any.
    pub(crate) fn of(machine: &Node) -> Result<Option<Like>, Fault> {
        let Some(node) = machine.as_table().and_then(|table| table.get("like")) else {
            return Ok(None);
        };
        let name = fields::text(node, "like")?;
        let known = MACHINES.iter().find(|known| known.name == name);
        let Some(known) = known else {
            let names = MACHINES.iter().map(|known| known.name);
            return Err(Fault::at(&node.at, format!("no machine is known as \"{name}\""))
                .label("unknown distribution")
                .help(hint(name, names)));
        };
        let table = read(known, &node.at)?;
        let title = table.get("title").and_then(Node::as_text).unwrap_or(known.name).to_string();
        Ok(Some(Like { name: known.name, title, table, at: node.at.clone() }))
    }

    /// The machine in words, for headings, with the settings of policies that it has given.
    pub(crate) fn described(&self, settings: &[String]) -> String {
        let mut text = format!(", like {} ({}", self.name, self.title);
        for settings in settings {
            text += &format!("; {settings}");
        }
        text + ")"
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.table.get(key).and_then(Node::as_text)
    }

    /// Gives `policy` the settings that it has there, but for those that it has of its own and
    /// for those that it does not know. Returns them in words.
    pub(crate) fn settle(&self, policy: &mut PolicyEntry) -> Vec<String> {
        let known = (policy.info.params)();
        let mut settled = Vec::new();
        for (name, text) in settings(&self.table, policy.info.name) {
            let is_set = policy.settings().iter().any(|(set, _)| *set == name);
            if !is_set && known.iter().any(|param| param.name == name) {
                policy.set(name, &self.at, text, &self.at);
                settled.push(format!("{name} {text}"));
            }
        }
        settled
    }
}

/// The settings of a policy in a machine.
fn settings<'a>(machine: &'a Table, policy: &str) -> Vec<(&'a str, &'a str)> {
    let table = |node: &'a Node, key: &str| node.as_table().and_then(|table| table.get(key));
    let of_policy = machine.get("policy").and_then(|all| table(all, policy));
    let entries = of_policy.and_then(Node::as_table).map(|table| table.0.as_slice());
    let pair = |entry: &'a tree::Entry| Some((entry.key.as_str(), entry.node.as_text()?));
    entries.unwrap_or_default().iter().filter_map(pair).collect()
}

/// Whether a kernel's own policy is without the tick that belongs to its rule.
pub(crate) fn misses_tick(policy: &PolicyEntry, machine: &Machine) -> bool {
    let says_tick = policy.settings().iter().any(|(name, _)| *name == "tick");
    machine.tick().is_none() && !says_tick && is_of_a_distribution(policy.info.name)
}

/// The warning about it.
pub(crate) fn missing_tick(label: &str) -> String {
    format!(
        "`{label}` decides at ticks, and none is stated; say `like = \"debian-13\"` or \
         `tick = \"4ms\"` in [machine]"
    )
}

/// Whether a distribution's kernel schedules by this policy, so that its tick belongs to the rule.
fn is_of_a_distribution(policy: &str) -> bool {
    MACHINES
        .iter()
        .any(|known| read(known, &(0..0)).is_ok_and(|table| !settings(&table, policy).is_empty()))
}

fn read(shipped: &Shipped, at: &Range<usize>) -> Result<Table, Fault> {
    let mut node = tree::parse(shipped.text)
        .map_err(|fault| Fault::at(at, format!("{}: {}", shipped.name, fault.message())))?;
    node.place(at);
    match node.value {
        Value::Table(table) => Ok(table),
        _ => Ok(Table::default()),
    }
}

/// Whether `costs` is a name of this program, and not a file.
pub(crate) fn is_shipped(costs: &str) -> bool {
    costs == FREE || find(costs).is_some()
}

/// Costs by the kernel's name or by that of a distribution.
fn find(name: &str) -> Option<&'static Shipped> {
    let machine = MACHINES.iter().find(|known| known.name == name);
    let of_machine = machine.and_then(|known| {
        let table = read(known, &(0..0)).ok()?;
        let costs = table.get("costs").and_then(Node::as_text)?.to_string();
        COSTS.iter().find(|known| known.name == costs)
    });
    of_machine.or_else(|| COSTS.iter().find(|known| known.name == name))
}

/// A `[machine]` in which what it takes from others is written out: the tick of the distribution
/// that it is like, and the costs of that or of those that it names. What it says itself goes
/// before.
pub(crate) fn written_out(machine: &Node) -> Result<Node, Fault> {
    let mut whole = machine.clone();
    let Value::Table(table) = &mut whole.value else { return Ok(whole) };
    let like = Like::of(machine)?;
    if let Some(like) = &like
        && let Some(tick) = like.text("tick")
        && table.get("tick").is_none()
    {
        table.set("tick", &like.at, Node::of_text(tick, &like.at));
    }
    let named = table.get("costs").map(|node| fields::text(node, "costs").map(str::to_string));
    let named = named.transpose()?;
    let (name, at) = match (&named, &like) {
        (Some(name), _) => (Some(name.as_str()), table.get("costs").map(|node| node.at.clone())),
        (None, Some(like)) => (like.text("costs"), Some(like.at.clone())),
        (None, None) => (None, None),
    };
    let (Some(shipped), Some(at)) = (name.and_then(find), at) else { return Ok(whole) };
    let costs = read(shipped, &at)?;
    let first = costs.0.iter().filter_map(|entry| entry.node.as_table());
    for entry in first.filter(|table| table.get(CHARGED).is_some()).take(1).flat_map(|t| &t.0) {
        if table.get(&entry.key).is_none() {
            table.set(&entry.key, &at, entry.node.clone());
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use anysched_policies::{POLICIES, policy};
    use std::path::Path;

    #[test]
    fn what_machines_say_is_understood() {
        for known in MACHINES {
            let table = read(known, &(0..0)).unwrap();
            for key in ["title", "tick", "costs"] {
                assert!(table.get(key).and_then(Node::as_text).is_some(), "{}: {key}", known.name);
            }
            assert!(find(known.name).is_some(), "{}", known.name);
            let of_policies = table.get("policy").and_then(Node::as_table).unwrap();
            for entry in &of_policies.0 {
                let info = policy(&entry.key).expect("a policy");
                let parameters = (info.params)();
                for (name, value) in settings(&table, info.name) {
                    // What it does not have is left out.
                    let Some(parameter) = parameters.iter().find(|known| known.name == name) else {
                        continue;
                    };
                    let kind = parameter.kind;
                    let has = kind.split(" | ").any(|word| word == value);
                    assert!(has, "{}: {} {name} is {kind}", known.name, info.name);
                }
            }
        }
        let some = POLICIES.iter().filter(|info| is_of_a_distribution(info.name)).count();
        assert!(some > 0 && some < POLICIES.len());
    }

    #[test]
    fn costs_that_come_with_the_program_are_those_of_one_scheduler() {
        for known in COSTS {
            let machine = format!("[machine]\ncpus = 1\ncosts = {:?}\n", known.name);
            let text = format!(
                "question = \"?\"\npolicy = \"rr\"\n{machine}[[workload]]\nkind = \"batch\"\n\
                 tasks = 1\nservice = \"1ms\"\n"
            );
            let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
            let plan = experiment.plan().unwrap();
            let costs = &plan.setup(0, 0).costs;
            assert!(costs.charged && costs.context_switch.0 > 0 && costs.create.0 > 0);
        }
    }

    #[test]
    fn all_are_in_the_documentation() {
        let page = include_str!("../../EXPERIMENTS.md");
        for known in MACHINES.iter().chain(COSTS) {
            assert!(page.contains(&format!("`\"{}\"`", known.name)), "{}", known.name);
        }
    }
}
