//! What a page tells of an experiment besides its results.

use super::super::json::{Number, pairs};
use super::answers::{Answer, Better, answers, better, number};
use super::distributions::{Distribution, percents};
use super::timeline::Timeline;
use crate::plan::Plan;
use crate::results::stats::student_t_975;
use crate::results::{Group, Results, Row};
use crate::spec::columns::Column;
use crate::spec::sweep::AxisValue;
use anysched_core::Machine;
use anysched_core::registry::First;
use anysched_policies::policy;
use serde::Serialize;
use std::collections::BTreeSet;

/// What the command knows of a run: how to have it again.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The experiment's file, as it was named.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The command that made the runs.
    pub command: String,
    /// What of the command changes the experiment, for commands that look into one run.
    pub changes: String,
}

#[derive(Serialize)]
pub(super) struct Details<'a> {
    file: &'a str,
    text: &'a str,
    command: &'a str,
    changes: &'a str,
    version: &'static str,
    seeds: u32,
    /// The 97.5 % quantile of Student's t by how many seeds are compared.
    t975: Vec<(usize, f64)>,
    columns: Vec<ColumnOut>,
    policies: Vec<PolicyOut<'a>>,
    groups: Vec<GroupOut<'a>>,
    runs: Vec<RowOut>,
    answers: Vec<Answer>,
    machines: Vec<MachineOut>,
    percents: Vec<f64>,
    distributions: Vec<Distribution>,
    timelines: Vec<TimelineOut>,
}

#[derive(Serialize)]
struct ColumnOut {
    name: String,
    metric: String,
    stat: Option<&'static str>,
    unit: &'static str,
    what: &'static str,
    /// Whether the experiment asks for it.
    shown: bool,
    better: Option<Better>,
}

#[derive(Serialize)]
struct PolicyOut<'a> {
    label: &'a str,
    name: &'a str,
    summary: Option<&'static str>,
    source: Option<&'static str>,
    #[serde(serialize_with = "pairs")]
    settings: &'a [(String, String)],
    clairvoyant: bool,
    rehearsed: bool,
    /// The values by which it orders tasks.
    order: Vec<String>,
}

#[derive(Serialize)]
struct GroupOut<'a> {
    /// Of its runs, for `--group`.
    planned: usize,
    #[serde(serialize_with = "pairs")]
    axes: &'a [(String, AxisValue)],
    machine: &'a str,
    /// Position in `machines`; `null`: not known.
    topology: Option<usize>,
    loads: &'a [String],
    costs: &'a str,
    duration: Option<&'a str>,
    exceptions: Vec<String>,
}

/// All runs of a row; `values` of one are in the order of `columns`.
#[derive(Serialize)]
struct RowOut {
    group: usize,
    policy: usize,
    seeds: Vec<RunOut>,
}

#[derive(Serialize)]
struct RunOut {
    index: u32,
    /// As text: JavaScript has no whole numbers of 64 bits.
    seed: String,
    values: Vec<Option<Number>>,
}

#[derive(Serialize)]
struct MachineOut {
    /// Of each CPU: core, last-level cache, package, node, capacity.
    cpus: Vec<[u16; 5]>,
    tick_ns: Option<u64>,
}

#[derive(Serialize)]
struct TimelineOut {
    group: usize,
    policy: usize,
    index: u32,
    cpus: usize,
    events: u64,
    tasks: u64,
    names: Vec<(u64, String)>,
    values: Vec<&'static str>,
    until_ns: u64,
    ended: bool,
    /// Whether reasons of choices are told.
    reasons: bool,
    /// Which of the page's blocks has the streams.
    block: usize,
}

/// A timeline and whose it is: group and policy of the plan, the number of the seed.
pub(super) struct Made {
    pub(super) group: usize,
    pub(super) policy: usize,
    pub(super) index: u32,
    pub(super) cpus: usize,
    pub(super) timeline: Timeline,
    pub(super) reasons: bool,
    pub(super) block: usize,
}

impl Details<'_> {
    pub(super) fn of<'a>(
        results: &'a Results,
        plan: &Plan,
        origin: &'a Origin,
        made: Vec<Made>,
        distributions: Vec<Distribution>,
    ) -> Details<'a> {
        let columns = columns_of(results);
        let mut machines: Vec<Machine> = Vec::new();
        let groups = results.groups.iter().zip(&results.planned);
        let groups = groups.map(|(group, planned)| {
            let topology = (!plan.policies().is_empty()).then(|| {
                let machine = &plan.setup(*planned, 0).machine;
                machines.iter().position(|known| known == machine).unwrap_or_else(|| {
                    machines.push(machine.clone());
                    machines.len() - 1
                })
            });
            GroupOut::of(group, *planned, topology)
        });
        let groups = groups.collect();
        let counts: BTreeSet<usize> = results.rows.iter().map(|row| row.runs.len()).collect();
        let t = |n: &usize| (*n > 1).then(|| (*n, student_t_975(*n - 1)));
        Details {
            file: &origin.file,
            text: &origin.text,
            command: &origin.command,
            changes: &origin.changes,
            version: env!("CARGO_PKG_VERSION"),
            seeds: results.seeds,
            t975: counts.iter().filter_map(t).collect(),
            runs: results.rows.iter().map(|row| RowOut::of(row, &columns)).collect(),
            columns: columns.into_iter().map(|column| column_out(results, column)).collect(),
            policies: results.policies.iter().map(PolicyOut::of).collect(),
            groups,
            answers: answers(results),
            machines: machines.iter().map(MachineOut::of).collect(),
            percents: percents().to_vec(),
            distributions,
            timelines: made.into_iter().map(TimelineOut::of).collect(),
        }
    }
}

/// The columns that any run has data for; those that the experiment asks for first.
fn columns_of(results: &Results) -> Vec<Column> {
    let runs = results.rows.iter().flat_map(|row| &row.runs);
    let known: BTreeSet<Column> =
        runs.flat_map(|run| run.values().iter().map(|(column, _)| *column)).collect();
    let shown: Vec<Column> =
        results.shown().into_iter().filter(|column| known.contains(column)).collect();
    let others = known.into_iter().filter(|column| !shown.contains(column));
    shown.iter().copied().chain(others).collect()
}

fn column_out(results: &Results, column: Column) -> ColumnOut {
    ColumnOut {
        name: column.to_string(),
        metric: column.metric.to_string(),
        stat: column.stat.map(|stat| stat.name()),
        unit: column.metric.unit(),
        what: column.metric.what(),
        shown: results.shown().contains(&column),
        better: better(column),
    }
}

impl PolicyOut<'_> {
    fn of(used: &crate::results::PolicyUsed) -> PolicyOut<'_> {
        let info = policy(&used.name);
        let key = |first: &First| match *first {
            First::Least(name) => format!("least {name}"),
            First::Most(name) => format!("most {name}"),
            First::Longest => "longest ready".to_string(),
        };
        PolicyOut {
            label: &used.label,
            name: &used.name,
            summary: info.map(|info| info.summary),
            source: info.map(|info| info.source),
            settings: &used.settings,
            clairvoyant: used.nature.clairvoyant,
            rehearsed: used.nature.rehearsed,
            order: info.map_or_else(Vec::new, |info| info.order.iter().map(key).collect()),
        }
    }
}

impl GroupOut<'_> {
    fn of(group: &Group, planned: usize, topology: Option<usize>) -> GroupOut<'_> {
        GroupOut {
            planned,
            axes: &group.axes,
            machine: &group.machine,
            topology,
            loads: &group.loads,
            costs: &group.costs,
            duration: group.duration.as_deref(),
            exceptions: group.exceptions.iter().map(ToString::to_string).collect(),
        }
    }
}

impl RowOut {
    fn of(row: &Row, columns: &[Column]) -> RowOut {
        let run = |run: &crate::results::Run| RunOut {
            index: run.index,
            seed: run.seed.to_string(),
            values: columns.iter().map(|column| number(run.value(*column)?)).collect(),
        };
        RowOut { group: row.group, policy: row.policy, seeds: row.runs.iter().map(run).collect() }
    }
}

impl MachineOut {
    fn of(machine: &Machine) -> MachineOut {
        let cpu = |id| {
            let cpu = machine.cpu(id);
            [cpu.core, cpu.llc, cpu.package, cpu.node, cpu.capacity]
        };
        MachineOut {
            cpus: machine.cpu_ids().map(cpu).collect(),
            tick_ns: machine.tick().map(|tick| tick.0),
        }
    }
}

impl TimelineOut {
    fn of(made: Made) -> TimelineOut {
        let Made { group, policy, index, cpus, timeline, reasons, block } = made;
        TimelineOut {
            group,
            policy,
            index,
            cpus,
            events: timeline.events,
            tasks: timeline.tasks,
            names: timeline.names,
            values: timeline.values,
            until_ns: timeline.until.0,
            ended: timeline.ended,
            reasons,
            block,
        }
    }
}
