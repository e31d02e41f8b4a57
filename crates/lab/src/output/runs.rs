//! The runs as columns, for the forms that hold them so, and as CSV.

use super::csv_lines;
use crate::compare::{EXPERIMENT, HOST, POLICY, SEED, SEED_INDEX};
use crate::results::{Results, Row, Run, measured};
use crate::spec::columns::{Column, columns};
use crate::spec::sweep::AxisValue;

/// What a column holds, a value for each run.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Text(Vec<String>),
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Whole numbers from 0 on.
    Unsigned(Vec<u64>),
    /// Numbers.
    Number(Vec<f64>),
    /// Numbers, where there is data.
    Optional(Vec<Option<f64>>),
}

/// The runs as columns with their names, a value per run, in the order of rows and seeds.
///
/// The columns are `experiment`, `spec_hash`, `host`, `policy` (label), one per axis,
/// `seed_index`, `seed`, all of [`columns`], and what benchmarks measured and policies counted. An
/// axis is whole numbers, numbers or texts, whichever holds all its values.
pub fn runs(results: &Results) -> Vec<(String, Values)> {
    let runs: Vec<(&Row, &Run)> =
        results.rows.iter().flat_map(|row| row.runs.iter().map(move |run| (row, run))).collect();
    let mut all = Vec::new();
    let text = |name: &str, value: &dyn Fn(&Row, &Run) -> String| {
        let values = runs.iter().map(|(row, run)| value(row, run)).collect();
        (name.to_string(), Values::Text(values))
    };
    all.push(text(EXPERIMENT, &|_, _| results.experiment.clone()));
    all.push(text("spec_hash", &|_, _| results.spec_hash.clone()));
    all.push(text(HOST, &|_, _| results.host.to_string()));
    all.push(text(POLICY, &|row, _| results.policies[row.policy].label.clone()));
    let axes = results.groups.first().map_or(0, |group| group.axes.len());
    for axis in 0..axes {
        let name = results.groups[0].axes[axis].0.clone();
        let value = |&(row, _): &(&Row, &Run)| &results.groups[row.group].axes[axis].1;
        let is_free = all.iter().all(|(taken, _)| *taken != name);
        all.push((if is_free { name } else { format!("axis.{name}") }, {
            let all_values = results.groups.iter().map(|group| &group.axes[axis].1);
            Values::of_axis(all_values.collect(), runs.iter().map(value).collect())
        }));
    }
    let numbers = runs.iter().map(|(_, run)| i64::from(run.index)).collect();
    all.push((SEED_INDEX.to_string(), Values::Whole(numbers)));
    let seeds = runs.iter().map(|(_, run)| run.seed).collect();
    all.push((SEED.to_string(), Values::Unsigned(seeds)));
    for column in columns_of(results) {
        let values = runs.iter().map(|(_, run)| run.value(column)).collect();
        all.push((column.to_string(), Values::Optional(values)));
    }
    all
}

/// The runs as CSV (RFC 4180 with plain line ends), one line per run: the columns of [`runs()`], of
/// metrics only those that any run has data for. What there is no data for is empty. Numbers are
/// exact: what is read is what was measured.
pub fn runs_csv(results: &Results) -> String {
    let columns: Vec<_> = runs(results).into_iter().filter(|(_, values)| values.any()).collect();
    let mut lines = vec![columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()];
    let count = results.rows.iter().map(|row| row.runs.len()).sum();
    lines.extend((0..count).map(|run| columns.iter().map(|(_, of)| of.written(run)).collect()));
    csv_lines(&lines)
}

/// The columns of every run, then those of the benchmarks and policies that there are.
fn columns_of(results: &Results) -> Vec<Column> {
    let others = measured(&results.rows).into_iter().filter(|metric| !metric.is_general());
    columns().iter().copied().chain(others.flat_map(Column::of)).collect()
}

impl Values {
    /// Whether there is data.
    fn any(&self) -> bool {
        match self {
            Values::Optional(values) => values.iter().any(Option::is_some),
            Values::Text(_) | Values::Whole(_) | Values::Unsigned(_) | Values::Number(_) => true,
        }
    }

    /// The value of a run, with all its digits.
    fn written(&self, run: usize) -> String {
        match self {
            Values::Text(values) => values[run].clone(),
            Values::Whole(values) => values[run].to_string(),
            Values::Unsigned(values) => values[run].to_string(),
            Values::Number(values) => values[run].to_string(),
            Values::Optional(values) => values[run].map_or(String::new(), |v| v.to_string()),
        }
    }

    /// `values` in the narrowest type that holds `all`.
    fn of_axis(all: Vec<&AxisValue>, values: Vec<&AxisValue>) -> Values {
        let whole = |value: &&AxisValue| match value {
            AxisValue::Integer(number) => Some(*number),
            _ => None,
        };
        let number = |value: &&AxisValue| match value {
            AxisValue::Integer(number) => Some(*number as f64),
            AxisValue::Real(number) => Some(*number),
            _ => None,
        };
        if all.iter().all(|value| whole(value).is_some()) {
            return Values::Whole(values.iter().filter_map(whole).collect());
        }
        if all.iter().all(|value| number(value).is_some()) {
            return Values::Number(values.iter().filter_map(number).collect());
        }
        Values::Text(values.iter().map(|value| value.to_string()).collect())
    }
}
