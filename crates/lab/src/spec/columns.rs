//! What a run is measured by, as columns of numbers.

use anysched_core::Machine;
use anysched_core::registry::PolicyInfo;
use anysched_measure::{Measured, Metric, Metrics, Moments, Summary};
use anysched_policies::POLICIES;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

/// What is told of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stat {
    /// Arithmetic mean.
    Mean,
    /// Standard deviation with n − 1.
    Sd,
    /// Smallest.
    Min,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest.
    Max,
}

impl Stat {
    /// All of them in the order of columns.
    pub const ALL: [Stat; 7] =
        [Stat::Mean, Stat::Sd, Stat::Min, Stat::P50, Stat::P95, Stat::P99, Stat::Max];

    /// Its name at the end of a column's.
    pub fn name(self) -> &'static str {
        match self {
            Stat::Mean => "mean",
            Stat::Sd => "sd",
            Stat::Min => "min",
            Stat::P50 => "p50",
            Stat::P95 => "p95",
            Stat::P99 => "p99",
            Stat::Max => "max",
        }
    }
}

/// One number a run. Columns are ordered as [`Metric`]s are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    /// The metric.
    pub metric: Metric,
    /// What of its distribution; `None`: the metric is a single number.
    pub stat: Option<Stat>,
}

impl Column {
    /// The columns of a metric.
    pub(crate) fn of(metric: Metric) -> Vec<Column> {
        match metric.is_distribution() {
            true => Stat::ALL.map(|stat| Column { metric, stat: Some(stat) }).into(),
            false => vec![Column { metric, stat: None }],
        }
    }

    /// Whether it is a time in ns.
    pub fn is_time(self) -> bool {
        self.metric.unit() == "ns"
    }
}

/// Its name, for example `waiting_time_ns_p99` or `makespan_ns`.
impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stat {
            Some(stat) => write!(f, "{}_{}", self.metric, stat.name()),
            None => write!(f, "{}", self.metric),
        }
    }
}

static COLUMNS: LazyLock<Vec<Column>> =
    LazyLock::new(|| Metric::general().flat_map(Column::of).collect());

/// The columns of what every run is judged by: each distribution with all its [`Stat`]s, then the
/// single numbers. Benchmarks and policies add others to runs that have them.
pub fn columns() -> &'static [Column] {
    &COLUMNS
}

/// What is shown if the file does not say, as far as there is data.
const DEFAULT: [&str; 8] = [
    "waiting_time_ns_mean",
    "turnaround_ns_mean",
    "response_time_ns_mean",
    "wakeup_latency_ns_mean",
    "wakeup_latency_ns_p99",
    "job_response_time_ns_p99",
    "deadline_miss_ratio",
    "context_switches",
];

/// The columns that are shown if a file does not say, as far as there is data.
pub(crate) fn shown_by_default() -> impl Iterator<Item = Column> {
    DEFAULT.into_iter().filter_map(column)
}

/// The column of this name, where policies count what `tallies` lists.
pub(crate) fn column_with(name: &str, tallies: &[&'static str]) -> Option<Column> {
    let number = Metric::named(name, tallies).filter(|metric| !metric.is_distribution());
    if let Some(metric) = number {
        return Some(Column { metric, stat: None });
    }
    Stat::ALL.into_iter().find_map(|stat| {
        let metric = name.strip_suffix(stat.name())?.strip_suffix('_')?;
        let metric = Metric::named(metric, tallies).filter(|metric| metric.is_distribution())?;
        Some(Column { metric, stat: Some(stat) })
    })
}

/// The column of this name: of every run, of a benchmark, or of what any policy counts.
pub fn column(name: &str) -> Option<Column> {
    column_with(name, &ALL_TALLIES)
}

/// What all policies count.
pub(crate) static ALL_TALLIES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| tallies(POLICIES.iter()));

/// The names under which `policies` count something of themselves, each once.
pub(crate) fn tallies<'a>(policies: impl Iterator<Item = &'a PolicyInfo>) -> Vec<&'static str> {
    let mut names = BTreeSet::new();
    let Ok(machine) = Machine::flat(1) else { return Vec::new() };
    for policy in policies {
        // Settings and the machine decide at most whether a policy counts, not under which names;
        // what one does not count on one CPU, another one does.
        if let Ok(policy) = (policy.build)(&machine, &[]) {
            policy.tally(&mut |name, _| {
                names.insert(name);
            });
        }
    }
    names.into_iter().collect()
}

/// The numbers of a run by column, in order, where there is data.
pub(crate) fn measure(metrics: &Metrics) -> Box<[(Column, f64)]> {
    let mut values = Vec::new();
    for (metric, measured) in metrics.measured() {
        match measured {
            Measured::Number(number) => values.push((Column { metric, stat: None }, number)),
            Measured::Distribution(summary, factor) => {
                let numbers = describe(summary).map(|number| number * factor);
                values.extend(Column::of(metric).into_iter().zip(numbers));
            }
        }
    }
    values.into()
}

/// In the order of [`Stat::ALL`].
fn describe(summary: &Summary) -> [f64; 7] {
    let percentiles = summary.percentiles([50.0, 95.0, 99.0]);
    let (Some(moments), Some(percentiles)) = (summary.moments(), percentiles) else {
        return [f64::NAN; 7];
    };
    let [p50, p95, p99] = percentiles.map(|value| value as f64);
    let Moments { mean, sd, min, max } = moments;
    [mean, sd, min as f64, p50, p95, p99, max as f64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_metric_and_stat() {
        let waiting = column("waiting_time_ns_p99").unwrap();
        assert_eq!(waiting.metric.to_string(), "waiting_time_ns");
        assert_eq!((waiting.stat, waiting.is_time()), (Some(Stat::P99), true));
        assert_eq!(column("makespan_ns").unwrap().stat, None);
        for name in ["makespan_ns_mean", "waiting_time_ns", "waiting_time_ns_avg", "policy.x"] {
            assert_eq!(column(name), None, "{name}");
        }
        for name in ["finish_7_ns", "policy.switches", "policy.boost_ns_cv", "groups_jain"] {
            assert_eq!(column(name).unwrap().to_string(), name);
        }
        assert!(columns().is_sorted(), "columns come in the order of metrics and stats");
    }

    #[test]
    fn what_policies_count_is_not_taken_for_a_variation() {
        assert!(ALL_TALLIES.contains(&"switches"));
        assert!(ALL_TALLIES.iter().all(|name| !name.ends_with("_cv")), "{ALL_TALLIES:?}");
    }

    #[test]
    fn no_data_is_no_number_and_factors_apply() {
        let mut metrics = Metrics::from_zero();
        metrics.slowdown.record(1_500_000);
        metrics.slowdown.record(2_500_000);
        let values = measure(&metrics);
        assert!(values.is_sorted_by_key(|(column, _)| *column));
        let value = |name| {
            let column = column(name).unwrap();
            values.iter().find(|(known, _)| *known == column).map(|(_, value)| *value)
        };
        assert_eq!((value("slowdown_mean"), value("slowdown_p50")), (Some(2.0), Some(1.5)));
        assert_eq!(value("turnaround_ns_mean"), None);
        assert_eq!(value("throughput_per_s"), None, "nothing ran");
        assert_eq!(value("tasks"), Some(0.0));
    }
}
