//! What the runs of an experiment have shown.

pub(crate) mod host;
pub(crate) mod stats;
pub(crate) mod verdict;

use crate::results::stats::{Estimate, percentile};
use crate::results::verdict::ClaimResult;
use crate::spec::columns::{self, Column, Stat};
use crate::spec::parts::RowsShown;
use crate::spec::report::Asked;
use crate::spec::sweep::AxisValue;
use anysched_core::registry::Nature;
use anysched_measure::Metric;
use std::collections::BTreeSet;
use std::fmt;

/// All rows of an experiment, or what there was of them when it was cancelled.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where the numbers come from.
    pub host: &'static str,
    /// The experiment's name.
    pub experiment: String,
    /// What it is to find out.
    pub question: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// BLAKE3 of the experiment (its values, not its layout) and of the files it names, in hex.
    pub spec_hash: String,
    /// The experiment's own seed, of which those of the runs are derived.
    pub seed: u64,
    /// How many seeds each row has.
    pub seeds: u32,
    /// The policies that are compared, in the order of the file.
    pub policies: Vec<PolicyUsed>,
    /// The combinations of axis values, in the order of the file.
    pub groups: Vec<Group>,
    /// A row per group and policy, the policies of a group next to each other.
    pub rows: Vec<Row>,
    /// The claims with their verdicts.
    pub claims: Vec<ClaimResult>,
    /// Whether no row is missing, nor a run of one.
    pub complete: bool,
    /// Of each group, the position of its runs' group in the plan.
    pub(crate) planned: Vec<usize>,
    /// What the file wants to be shown; empty: no wish.
    pub(crate) shown: Vec<Asked>,
    /// Which of the rows are to be shown.
    pub(crate) rows_shown: RowsShown,
}

/// A policy as it was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyUsed {
    /// What it is called in this experiment.
    pub label: String,
    /// Its name in the registry.
    pub name: String,
    /// Its settings where they differ from the defaults.
    pub settings: Vec<(String, String)>,
    /// What it needs to know, and whether it leaves CPUs idle.
    pub nature: Nature,
}

impl PolicyUsed {
    /// A scheduler that a host has of its own, which is taken to need nothing and to idle never.
    pub fn of_host(name: &str) -> PolicyUsed {
        PolicyUsed {
            label: name.into(),
            name: name.into(),
            settings: Vec::new(),
            nature: Nature {
                clairvoyant: false,
                rehearsed: false,
                work_conserving: true,
                starves: false,
                longest_wait: None,
            },
        }
    }
}

/// Runs that have everything in common but policy and seed. All policies of a group are given
/// the same tasks for the same seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The values of the axes; scenarios are the axis `scenario`.
    pub axes: Vec<(String, AxisValue)>,
    /// The machine in words.
    pub machine: String,
    /// Its loads in words, one each.
    pub loads: Vec<String>,
    /// What scheduling costs, in words.
    pub costs: String,
    /// When a run ends at the latest, in words; `None`: when all tasks are done.
    pub duration: Option<String>,
    /// What is different for some policies, in words: the machine, settings.
    pub exceptions: Vec<Exception>,
}

/// What is different for one policy of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exception {
    /// Its settings.
    Settings {
        /// The policy.
        label: String,
        /// What is different, in words.
        changes: Vec<String>,
    },
    /// Its machine, or what scheduling costs there.
    Machine {
        /// The policy.
        label: String,
        /// The machine in words.
        machine: String,
        /// The costs in words.
        costs: String,
    },
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exception::Settings { label, changes } => write!(f, "{label}: {}", changes.join(", ")),
            Exception::Machine { label, machine, costs } => {
                write!(f, "{label}: {machine}; costs: {costs}")
            }
        }
    }
}

/// The runs of one policy in one group.
#[derive(Clone, Debug)]
pub struct Row {
    /// Position in [`Results::groups`].
    pub group: usize,
    /// Position in [`Results::policies`].
    pub policy: usize,
    /// One run per seed, in order; fewer in a row that was begun when the experiment was cancelled.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which of the row's seeds it has, from 0.
    pub index: u32,
    /// The seed.
    pub seed: u64,
    /// In the order of columns, where there is data.
    pub(crate) values: Box<[(Column, f64)]>,
}

/// A metric over the seeds of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregate {
    /// Mean over seeds (of the run's mean, if the metric is a distribution).
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for one seed.
    pub ci95: Option<f64>,
    /// Standard deviation: of a distribution the mean over seeds of the run's, otherwise over
    /// seeds. The percentiles likewise.
    pub sd: f64,
    /// Smallest of all.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest of all.
    pub max: f64,
}

impl Run {
    /// The value of a column, if there is data.
    pub fn value(&self, column: Column) -> Option<f64> {
        let place = self.values.binary_search_by_key(&column, |(known, _)| *known).ok()?;
        Some(self.values[place].1)
    }

    /// All that there is data for, in the order of columns.
    pub fn values(&self) -> &[(Column, f64)] {
        &self.values
    }
}

impl Row {
    /// The values over seeds of a column, where there is data.
    pub fn values(&self, column: Column) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.value(column)).collect()
    }

    /// A column over seeds; `None` if no run has data.
    pub fn estimate(&self, column: Column) -> Option<Estimate> {
        Estimate::of(&self.values(column))
    }

    /// A metric over seeds, for example `waiting_time_ns` or `makespan_ns`; `None` if there is no
    /// such metric or no run has data.
    pub fn aggregate(&self, metric: &str) -> Option<Aggregate> {
        self.aggregate_of(Metric::named(metric, &columns::ALL_TALLIES)?)
    }

    /// As [`Row::aggregate`].
    pub(crate) fn aggregate_of(&self, metric: Metric) -> Option<Aggregate> {
        if metric.is_distribution() {
            return self.aggregate_distribution(metric);
        }
        let mut sorted = self.values(Column { metric, stat: None });
        let estimate = Estimate::of(&sorted)?;
        sorted.sort_by(f64::total_cmp);
        Some(Aggregate {
            mean: estimate.mean,
            ci95: estimate.ci95,
            sd: estimate.sd,
            min: sorted[0],
            p50: percentile(&sorted, 50.0),
            p95: percentile(&sorted, 95.0),
            p99: percentile(&sorted, 99.0),
            max: sorted[sorted.len() - 1],
        })
    }

    fn aggregate_distribution(&self, metric: Metric) -> Option<Aggregate> {
        let values = |stat: Stat| self.values(Column { metric, stat: Some(stat) });
        let mean = |stat| Estimate::of(&values(stat)).map(|estimate| estimate.mean);
        let estimate = Estimate::of(&values(Stat::Mean))?;
        Some(Aggregate {
            mean: estimate.mean,
            ci95: estimate.ci95,
            sd: mean(Stat::Sd)?,
            min: values(Stat::Min).into_iter().reduce(f64::min)?,
            p50: mean(Stat::P50)?,
            p95: mean(Stat::P95)?,
            p99: mean(Stat::P99)?,
            max: values(Stat::Max).into_iter().reduce(f64::max)?,
        })
    }

    /// All metrics that there is data for, with whether each is a distribution.
    pub fn metrics(&self) -> Vec<(Metric, bool, Aggregate)> {
        let known =
            |metric: Metric| Some((metric, metric.is_distribution(), self.aggregate_of(metric)?));
        measured([self]).into_iter().filter_map(known).collect()
    }
}

/// The metrics that any of the rows has data for.
pub(crate) fn measured<'a>(rows: impl IntoIterator<Item = &'a Row>) -> BTreeSet<Metric> {
    let runs = rows.into_iter().flat_map(|row| &row.runs);
    runs.flat_map(|run| run.values.iter().map(|(column, _)| column.metric)).collect()
}

impl Group {
    /// Whether `axis` has the value that is written `value`.
    pub fn has(&self, axis: &str, value: &str) -> bool {
        self.axes.iter().any(|(name, has)| name == axis && has.to_string() == value)
    }

    /// `axis = value, …`, or nothing.
    pub fn title(&self) -> String {
        let pair = |(axis, value): &(String, AxisValue)| format!("{axis} = {value}");
        self.axes.iter().map(pair).collect::<Vec<_>>().join(", ")
    }
}

impl Results {
    /// The rows, as positions of group and policy in the plan: one, where
    /// virtual machines have rows of their own.
    pub fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> =
            self.rows.iter().map(|row| (self.planned[row.group], row.policy)).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// The first run of a policy in a group of the plan, as [`Results::runs`] has them: what it has
    /// shown of the whole machine.
    pub fn first_run(&self, group: usize, policy: usize) -> Option<&Run> {
        let is = |row: &&Row| self.planned[row.group] == group && row.policy == policy;
        self.rows.iter().find(is).and_then(|row| row.runs.first())
    }

    /// The row of a group and a policy, by their positions; `None` if it was not completed.
    pub fn row(&self, group: usize, policy: usize) -> Option<&Row> {
        let place = |row: &Row| (row.group, row.policy);
        let index = self.rows.binary_search_by_key(&(group, policy), place).ok()?;
        Some(&self.rows[index])
    }

    /// What the experiment wants to be shown of all tasks; empty: no wish.
    pub fn shown(&self) -> Vec<Column> {
        let of_all = self.shown.iter().filter(|asked| asked.of.is_empty());
        of_all.map(|asked| asked.column).collect()
    }

    /// A column over the seeds of a group and a policy, by their positions; `None` without data.
    pub(crate) fn estimate(&self, group: usize, policy: usize, asked: &Asked) -> Option<Estimate> {
        self.row(self.group_beside(group, &asked.of)?, policy)?.estimate(asked.column)
    }

    /// The position of the policy with this label.
    pub fn policy(&self, label: &str) -> Option<usize> {
        self.policies.iter().position(|policy| policy.label == label)
    }

    /// The paired difference `a` − `b` over seeds of a column (for example
    /// `waiting_time_ns_mean`) in a group, between two policies by label. `None` if there is no
    /// such column, group or policy, or no data.
    pub fn paired(&self, group: usize, column: &str, a: &str, b: &str) -> Option<Estimate> {
        let column = columns::column(column)?;
        let a = self.row(group, self.policy(a)?)?;
        let b = self.row(group, self.policy(b)?)?;
        let difference = |run: &Run| {
            let other = b.runs.binary_search_by_key(&run.index, |other| other.index).ok()?;
            Some(run.value(column)? - b.runs[other].value(column)?)
        };
        let differences: Vec<f64> = a.runs.iter().filter_map(difference).collect();
        Estimate::of(&differences)
    }

    /// The group that has the axis values of `group` but those of `rows`.
    pub(crate) fn group_beside(&self, group: usize, rows: &[(String, String)]) -> Option<usize> {
        if rows.is_empty() {
            return Some(group);
        }
        let here = &self.groups[group];
        self.groups.iter().position(|other| {
            here.axes.iter().all(|(axis, value)| {
                let wanted = rows.iter().find(|(name, _)| name == axis);
                let value = wanted.map_or_else(|| value.to_string(), |(_, value)| value.clone());
                other.has(axis, &value)
            })
        })
    }
}
