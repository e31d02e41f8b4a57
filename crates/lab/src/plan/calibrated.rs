//! What scheduling costs under each policy, measured on another host: the file that the key
//! `costs` of `[machine]` names, as `anysched calibrate` writes it.

use crate::plan::like;
use crate::spec::error::Fault;
use crate::spec::fields;
use crate::spec::files::Files;
use crate::spec::scenario::set_part;
use crate::spec::sweep::PolicyEntry;
use crate::spec::tree::{self, Node, Table, Value};
use anysched_workload::kinds;
use std::ops::Range;

/// What has been measured; nothing without `costs`.
#[derive(Debug, Default)]
pub(crate) struct Calibrated {
    name: String,
    /// A table for each policy, by label or name, and one for each key of loads that was measured.
    tables: Table,
    at: Range<usize>,
}

impl Calibrated {
    /// That of a `[machine]`.
    pub(crate) fn of(machine: &Node, files: &mut Files) -> Result<Calibrated, Fault> {
        let Some(node) = machine.as_table().and_then(|table| table.get("costs")) else {
            return Ok(Calibrated::default());
        };
        let name = fields::text(node, "costs")?;
        if like::is_shipped(name) {
            return Ok(Calibrated::default());
        }
        let text = files.text(name, &node.at)?;
        let mut read = tree::parse(&text)
            .map_err(|fault| Fault::at(&node.at, format!("\"{name}\": {}", fault.message())))?;
        read.place(&node.at);
        let Value::Table(tables) = read.value else { return Ok(Calibrated::default()) };
        Ok(Calibrated { name: name.to_string(), tables, at: node.at.clone() })
    }

    /// What is different for `policy` of a machine, which may say something else.
    pub(crate) fn costs(&self, policy: &PolicyEntry, machine: &Node) -> Result<Table, Fault> {
        if self.name.is_empty() {
            return Ok(Table::default());
        }
        let labels = [policy.label.as_str(), policy.info.name];
        let found = labels.iter().find_map(|label| self.tables.get(label)?.as_table());
        let Some(found) = found else {
            let message = format!("\"{}\" does not say what {} costs", self.name, policy.label);
            return Err(Fault::at(&self.at, message).help(format!(
                "add a table [{}]; `anysched calibrate` writes such files",
                policy.label
            )));
        };
        let is_said = |key: &str| machine.as_table().is_some_and(|table| table.get(key).is_some());
        let mut costs = found.clone();
        costs.0.retain(|entry| !is_said(&entry.key));
        Ok(costs)
    }

    /// `tree`, in which keys of loads that are left out have the values that were measured for
    /// them, if any.
    pub(crate) fn with_measured(&self, tree: &Node) -> Result<Node, Fault> {
        let mut changed = tree.clone();
        let loads = tree.as_table().and_then(|table| table.get("workload")).and_then(Node::as_list);
        for (number, load) in loads.unwrap_or_default().iter().enumerate() {
            let Some(load) = load.as_table() else { continue };
            let text = |key: &str| load.get(key).and_then(Node::as_text);
            let Some(kind) = text("kind").and_then(kinds::kind) else { continue };
            for key in kind.keys().filter(|key| load.get(key.name).is_none()) {
                let name = key.calibrated.and_then(|known| known.name(text(known.by)?));
                let measured = self.tables.get(key.name).and_then(Node::as_table);
                let value = name.and_then(|name| measured?.get(name));
                let Some(value) = value else { continue };
                let path = ["workload", &number.to_string(), key.name];
                set_part(&mut changed, &path, &self.at, value.clone())
                    .map_err(|why| Fault::at(&self.at, why))?;
            }
        }
        Ok(changed)
    }
}
