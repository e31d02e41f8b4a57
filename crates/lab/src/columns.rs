//! What a run is measured by, as columns of numbers.

use anysched_measure::{Metrics, Summary};
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

/// One number a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The metric with its unit, for example `waiting_time_ns`.
    pub metric: &'static str,
    /// What of its distribution; `None`: the metric is a single number.
    pub stat: Option<Stat>,
    name: String,
}

impl Column {
    fn new(metric: &'static str, stat: Option<Stat>) -> Column {
        let name = match stat {
            Some(stat) => format!("{metric}_{}", stat.name()),
            None => metric.to_string(),
        };
        Column { metric, stat, name }
    }

    /// Its name, for example `waiting_time_ns_p99` or `makespan_ns`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let none = Metrics::default();
    let each = |(metric, ..): (&'static str, &Summary, f64)| {
        Stat::ALL.map(|stat| Column::new(metric, Some(stat)))
    };
    let distributions = none.distributions().into_iter().flat_map(each);
    let numbers = none.numbers().into_iter().map(|(metric, _)| Column::new(metric, None));
    distributions.chain(numbers).collect()
});

/// All columns: each distribution with all its [`Stat`]s, then the single numbers.
pub fn columns() -> &'static [Column] {
    &COLUMNS
}

/// The position in [`columns`] of the column of this name.
pub fn column(name: &str) -> Option<usize> {
    columns().iter().position(|column| column.name == name)
}

/// The numbers of a run in the order of [`columns`]; NaN where there is no data.
pub(crate) fn measure(metrics: &Metrics) -> Box<[f64]> {
    let mut values = Vec::with_capacity(columns().len());
    for (_, summary, factor) in metrics.distributions() {
        values.extend(describe(summary).map(|value| value * factor));
    }
    values.extend(metrics.numbers().into_iter().map(|(_, value)| value));
    for value in &mut values {
        if !value.is_finite() {
            *value = f64::NAN;
        }
    }
    values.into()
}

/// In the order of [`Stat::ALL`].
fn describe(summary: &Summary) -> [f64; 7] {
    let [p50, p95, p99] = match summary.percentiles([50.0, 95.0, 99.0]) {
        Some(percentiles) => percentiles.map(|value| value as f64),
        None => return [f64::NAN; 7],
    };
    let extreme = |value: Option<u64>| value.map_or(f64::NAN, |value| value as f64);
    let (min, max) = (extreme(summary.min()), extreme(summary.max()));
    [summary.mean(), summary.sd(), min, p50, p95, p99, max]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_metric_and_stat() {
        let name = |name| column(name).map(|index| columns()[index].clone());
        let waiting = name("waiting_time_ns_p99").unwrap();
        assert_eq!((waiting.metric, waiting.stat), ("waiting_time_ns", Some(Stat::P99)));
        assert_eq!(name("makespan_ns").unwrap().stat, None);
        assert_eq!(name("makespan_ns_mean"), None);
    }

    #[test]
    fn no_data_is_not_a_number_and_factors_apply() {
        let mut metrics = Metrics::default();
        metrics.slowdown.record(1_500_000);
        metrics.slowdown.record(2_500_000);
        let values = measure(&metrics);
        let value = |name| values[column(name).unwrap()];
        assert_eq!(values.len(), columns().len());
        assert_eq!((value("slowdown_mean"), value("slowdown_p50")), (2.0, 1.5));
        assert!(value("turnaround_ns_mean").is_nan());
        assert!(value("throughput_per_s").is_nan(), "nothing ran");
        assert_eq!(value("tasks"), 0.0);
    }
}
