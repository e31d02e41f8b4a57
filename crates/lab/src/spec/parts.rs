//! Axes that no file has: of whose tasks a row is.

use crate::spec::error::Fault;
use crate::spec::fields::{self, hint};
use crate::spec::scenario::Scenario;
use crate::spec::sweep::AxisValue;
use crate::spec::tree::Node;
use anysched_measure::Apart;
use std::ops::Range;

/// The axis that says of which virtual machines a row is.
pub(crate) const VM: &str = "vm";
/// The axis that says of which load's tasks a row is.
pub(crate) const WORKLOAD: &str = "workload";
/// The axis that says of which task a row is.
pub(crate) const TASK: &str = "task";
/// The value of these axes for rows of all.
pub(crate) const ALL: &str = "all";

/// The axes by which rows can be parted.
pub(crate) const PARTS: [&str; 3] = [TASK, WORKLOAD, VM];

/// Which of the rows of an experiment are shown. All are in its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowsShown {
    /// Of which virtual machines; empty: of all, and of the whole machine.
    pub(crate) vms: Vec<String>,
    /// Besides those of all tasks.
    pub(crate) apart: Apart,
}

impl RowsShown {
    /// Whether they include those of a group with these values of axes.
    pub(crate) fn include(&self, axes: &[(String, AxisValue)]) -> bool {
        axes.iter().all(|(axis, value)| {
            let value = value.to_string();
            match axis.as_str() {
                VM => self.vms.is_empty() || self.vms.contains(&value),
                WORKLOAD => self.apart.loads || value == ALL,
                TASK => self.apart.tasks || value == ALL,
                _ => true,
            }
        })
    }
}

/// Reads by what the rows of a table are parted.
pub(crate) fn read_by(node: &Node, scenarios: &[Scenario]) -> Result<Apart, Fault> {
    let one = std::slice::from_ref(node);
    let mut apart = Apart::default();
    for item in node.as_list().unwrap_or(one) {
        match fields::text(item, "by")? {
            TASK => apart.tasks = true,
            WORKLOAD => apart.loads = true,
            VM if vm_names(scenarios).is_empty() => {
                return Err(Fault::at(&item.at, "there are no virtual machines to part rows by")
                    .help("add a `[[vm]]`, or part them by `workload` or `task`"));
            }
            // They have rows of their own in any case.
            VM => {}
            other => {
                return Err(Fault::at(&item.at, format!("rows cannot be parted by \"{other}\""))
                    .help(hint(other, PARTS.into_iter())));
            }
        }
    }
    Ok(apart)
}

/// What has to be measured apart for rows that have values of these axes.
pub(crate) fn apart<'a>(axes: impl Iterator<Item = &'a str>) -> Apart {
    let apart = |axis| Apart { loads: axis == WORKLOAD, tasks: axis == TASK };
    axes.map(apart).fold(Apart::default(), Apart::and)
}

/// Checks that an axis has a value. Which tasks there are, only runs show.
pub(crate) fn check(
    axis: &str,
    value: &str,
    at: &Range<usize>,
    scenarios: &[Scenario],
) -> Result<(), Fault> {
    let (what, names) = match axis {
        VM => ("[[vm]]", vm_names(scenarios)),
        WORKLOAD => ("[[workload]]", all_load_names(scenarios)),
        _ => return Ok(()),
    };
    if value == ALL || names.iter().any(|name| name == value) {
        return Ok(());
    }
    Err(Fault::at(at, format!("no {what} is called \"{value}\""))
        .label("unknown name")
        .help(hint(value, names.iter().map(String::as_str))))
}

/// `workload.web.turnaround_ns_p99` as the rows of a part and a column of theirs.
pub(crate) fn parts_of(name: &str) -> (Vec<(&'static str, &str)>, &str) {
    let (mut parts, mut column) = (Vec::new(), name);
    while let Some((axis, value, rest)) = PARTS.iter().find_map(|axis| {
        let (value, rest) = column.strip_prefix(axis)?.strip_prefix('.')?.split_once('.')?;
        Some((*axis, value, rest))
    }) {
        parts.push((axis, value));
        column = rest;
    }
    (parts, column)
}

/// The names of the virtual machines of all scenarios, each once, as far as they are names.
pub(crate) fn vm_names(scenarios: &[Scenario]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for scenario in scenarios {
        let list = scenario.tree.as_table().and_then(|table| table.get(VM)?.as_list());
        for node in list.unwrap_or_default() {
            let name = node.as_table().and_then(|table| table.get("name")?.as_text());
            add(&mut names, name.into_iter());
        }
    }
    names
}

/// What the loads of a list are called: by their `name` or else by their kind, and by their
/// position behind that where several would be called so.
pub(crate) fn load_names(list: &[Node]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (number, node) in list.iter().enumerate() {
        let text = |key| node.as_table().and_then(|table| table.get(key)?.as_text());
        let name = text("name").or_else(|| text("kind")).unwrap_or_default().to_string();
        let taken = name == ALL || names.contains(&name);
        names.push(if taken { format!("{name}-{number}") } else { name });
    }
    names
}

/// The names of the loads of all scenarios and of their virtual machines, each once.
pub(crate) fn all_load_names(scenarios: &[Scenario]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for scenario in scenarios {
        let part = |node: &Node, key| {
            let list = node.as_table().and_then(|table| table.get(key)?.as_list());
            list.unwrap_or_default().to_vec()
        };
        let mut lists = vec![part(&scenario.tree, WORKLOAD)];
        lists.extend(part(&scenario.tree, VM).iter().map(|vm| part(vm, WORKLOAD)));
        for list in lists {
            add(&mut names, load_names(&list).iter().map(String::as_str));
        }
    }
    names
}

fn add<'a>(names: &mut Vec<String>, more: impl Iterator<Item = &'a str>) {
    for name in more {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
}
