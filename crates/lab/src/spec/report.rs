//! `[report]`: the columns and rows that a table shows, and columns by their names.

use crate::spec::columns::{self, Column, Stat, column_with};
use crate::spec::error::{Fault, Faults};
use crate::spec::fields::{self, Fields, hint};
use crate::spec::keys;
use crate::spec::known::known;
use crate::spec::parts::{self, ALL, RowsShown, VM, vm_names};
use crate::spec::scenario::Scenario;
use crate::spec::sweep::{self, Sweep};
use crate::spec::tree::Node;
use anysched_core::registry::PolicyInfo;
use anysched_measure::{Apart, Kind, Metric, MetricInfo, metric_infos};
use anysched_workload::nearest::nearest;
use std::ops::Range;

/// Which columns and which rows are shown; no columns: no wish.
pub(crate) fn read_report(
    node: &Node,
    scenarios: &[Scenario],
    counted: &Counted,
) -> Result<(Vec<Asked>, RowsShown), Fault> {
    let fields = Fields::of(node, &keys::REPORT)?;
    let columns = fields.get("columns").map(|list| read_columns(list, scenarios, counted));
    let columns = columns.transpose()?;
    let vms = fields.get("vms").map(|list| read_vms_shown(list, scenarios)).transpose()?;
    let by = fields.get("by").map(|node| parts::read_by(node, scenarios)).transpose()?;
    let rows = RowsShown { vms: vms.unwrap_or_default(), apart: by.unwrap_or_default() };
    Ok((columns.unwrap_or_default(), rows))
}

fn read_vms_shown(list: &Node, scenarios: &[Scenario]) -> Result<Vec<String>, Fault> {
    let names = vm_names(scenarios);
    if names.is_empty() {
        return Err(Fault::at(&list.at, "there are no virtual machines to be shown")
            .help("leave `vms` out, or add a `[[vm]]`"));
    }
    let items = list.as_list().filter(|items| !items.is_empty()).ok_or_else(|| {
        let message = format!("`vms` is a list of names, not {}", list.shown());
        Fault::at(&list.at, message).help("for example `vms = [\"all\", \"web\"]`")
    })?;
    let known = || [ALL].into_iter().chain(names.iter().map(String::as_str));
    let read = |item: &Node| {
        let name = fields::text(item, "vms")?;
        if known().any(|known| known == name) {
            return Ok(name.to_string());
        }
        Err(Fault::at(&item.at, format!("no [[vm]] is called \"{name}\""))
            .label("unknown name")
            .help(hint(name, known().collect::<Vec<_>>().into_iter())))
    };
    items.iter().map(read).collect()
}

/// A column of rows of all tasks, or of those of a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// Where the rows differ from those of all: axes and their values.
    pub(crate) of: Vec<(String, String)>,
    pub(crate) column: Column,
}

impl Asked {
    /// What `name` asks for: `turnaround_ns_p99`, `workload.web.turnaround_ns_p99`.
    ///
    /// Errors: no such workload or virtual machine, or as [`find_column`].
    pub(crate) fn named(
        name: &str,
        at: &Range<usize>,
        scenarios: &[Scenario],
        counted: &Counted,
    ) -> Result<Asked, Fault> {
        let (of, column) = parts::parts_of(name);
        for (axis, value) in &of {
            parts::check(axis, value, at, scenarios)?;
        }
        let of = of.into_iter().map(|(axis, value)| (axis.to_string(), value.to_string()));
        Ok(Asked { of: of.collect(), column: find_column(column, at, counted)? })
    }

    /// What has to be measured apart for it.
    pub(crate) fn apart(&self) -> Apart {
        parts::apart(self.of.iter().map(|(axis, _)| axis.as_str()))
    }
}

impl From<Column> for Asked {
    fn from(column: Column) -> Asked {
        Asked { of: Vec::new(), column }
    }
}

fn read_columns(
    list: &Node,
    scenarios: &[Scenario],
    counted: &Counted,
) -> Result<Vec<Asked>, Fault> {
    let Some(items) = list.as_list() else {
        return Err(Fault::at(&list.at, format!("`columns` is a list, not {}", list.shown()))
            .help("for example `columns = [\"waiting_time_ns_mean\", \"makespan_ns\"]`"));
    };
    let mut faults = Faults::default();
    let asked = items.iter().filter_map(|item| {
        let name = fields::text(item, "columns");
        faults.take(name.and_then(|name| Asked::named(name, &item.at, scenarios, counted)))
    });
    let asked = asked.collect();
    faults.result().map(|()| asked)
}

/// What the policies of an experiment count of themselves, those of its virtual machines included.
pub(crate) struct Counted(Vec<&'static str>);

impl Counted {
    pub(crate) fn by_policies(sweep: &Sweep, scenarios: &[Scenario]) -> Counted {
        let of_vms = scenarios.iter().flat_map(|scenario| {
            let list = scenario.tree.as_table().and_then(|table| table.get(VM)?.as_list());
            let policy = |node: &'_ Node| node.as_table()?.get("policy").and_then(policy_named);
            list.unwrap_or_default().iter().filter_map(policy).collect::<Vec<_>>()
        });
        let is_policy = |axis: &&sweep::Axis| axis.path.ends_with(".policy");
        let swept = sweep.axes.iter().filter(is_policy).flat_map(|axis| &axis.values);
        let policies = sweep.policies.iter().map(|entry| entry.info);
        Counted(columns::tallies(policies.chain(of_vms).chain(swept.filter_map(policy_named))))
    }
}

/// The policy of a name or of a table with a `name`, if that is right.
fn policy_named(node: &Node) -> Option<&'static PolicyInfo> {
    let name = node.as_table().map_or(Some(node), |table| table.get("name"))?;
    known(name.as_text()?)
}

/// The column `name`, if it is one of those that runs can have where policies count this.
pub(crate) fn find_column(
    name: &str,
    at: &Range<usize>,
    counted: &Counted,
) -> Result<Column, Fault> {
    column_with(name, &counted.0).ok_or_else(|| match name.strip_prefix("policy.") {
        None => no_column(name, at),
        Some(_) => not_counted(name, at, counted),
    })
}

/// No policy of an experiment counts `name`: what they count instead.
fn not_counted(name: &str, at: &Range<usize>, Counted(counted): &Counted) -> Fault {
    let names: Vec<String> = counted
        .iter()
        .flat_map(|name| [Metric::tally(name), Metric::tally_cv(name)])
        .map(|metric| metric.to_string())
        .collect();
    let help = match names.is_empty() {
        true => "none of the policies here counts anything of itself".to_string(),
        false => hint(name, names.iter().map(String::as_str)),
    };
    Fault::at(at, format!("no policy of this experiment counts `{name}`"))
        .label("not counted")
        .help(help)
}

/// There is no column `name`: what there is instead.
fn no_column(name: &str, at: &Range<usize>) -> Fault {
    let infos = || metric_infos().filter(|info| !info.name.contains('N'));
    let is_of = |info: &&MetricInfo| {
        let rest = name.strip_prefix(info.name);
        info.kind == Kind::Distribution
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let known: Vec<String> = infos()
        .filter_map(|info| Metric::named(info.name, &[]))
        .flat_map(Column::of)
        .map(|column| column.to_string())
        .collect();
    let names = known.iter().map(String::as_str);
    let help = match infos().find(is_of) {
        Some(MetricInfo { name, .. }) => {
            let stats = Stat::ALL.map(|stat| format!("`{name}_{}`", stat.name()));
            format!("of this metric there are {}", stats.join(", "))
        }
        None if nearest(name, names.clone()).is_some() => hint(name, names),
        None => {
            let names: Vec<&str> = metric_infos().map(|info| info.name).collect();
            format!("there are {}", names.join(", "))
        }
    };
    Fault::at(at, format!("no metric is called `{name}`")).label("unknown metric").help(help)
}
