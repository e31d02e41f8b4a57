//! What scheduling costs under each policy, measured on another host: the file that the key
//! `costs` of `[machine]` names, as `anysched calibrate` writes it.

use crate::error::Fault;
use crate::experiment::set_part;
use crate::fields;
use crate::files::Files;
use crate::sweep::PolicyEntry;
use crate::tree::{self, Node, Table, Value};
use std::ops::Range;

/// The table of what an iteration takes, by the name of the loop.
const ITERATION: &str = "iteration";

/// What has been measured; nothing without `costs`.
#[derive(Debug, Default)]
pub(crate) struct Calibrated {
    name: String,
    /// A table for each policy, by label or name.
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

    /// `tree`, in which an iteration of an `arceos-test` takes what was measured, unless it says
    /// itself what it takes.
    pub(crate) fn with_iterations(&self, tree: &Node) -> Result<Node, Fault> {
        let mut changed = tree.clone();
        let iteration = self.tables.get(ITERATION).and_then(Node::as_table);
        let loads = tree.as_table().and_then(|table| table.get("workload")).and_then(Node::as_list);
        let (Some(iteration), Some(loads)) = (iteration, loads) else { return Ok(changed) };
        for (number, load) in loads.iter().enumerate() {
            let Some(load) = load.as_table() else { continue };
            let text = |key: &str| load.get(key).and_then(Node::as_text);
            if text("kind") != Some("arceos-test") || load.get(ITERATION).is_some() {
                continue;
            }
            let name = if text("case") == Some("unequal") { "shift" } else { "divide" };
            let Some(time) = iteration.get(name) else { continue };
            let path = ["workload", &number.to_string(), ITERATION];
            set_part(&mut changed, &path, &self.at, time.clone())
                .map_err(|why| Fault::at(&self.at, why))?;
        }
        Ok(changed)
    }
}
