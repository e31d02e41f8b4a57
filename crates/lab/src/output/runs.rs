//! The runs as CSV, one line each.

use super::csv_lines;
use crate::results::{Results, measured};
use crate::spec::columns::Column;

/// The last column before the metrics; axes lie between `policy` and `seed_index`.
pub(crate) const SEED: &str = "seed";
pub(crate) const SEED_INDEX: &str = "seed_index";
pub(crate) const POLICY: &str = "policy";
pub(crate) const HOST: &str = "host";
pub(crate) const EXPERIMENT: &str = "experiment";

/// The runs as CSV (RFC 4180 with plain line ends), one line per run, in the order of rows and
/// seeds.
///
/// The columns are `experiment`, `spec_hash`, `host`, `policy`, one per axis, `seed_index`, `seed`;
/// then those of the metrics that any run has data for. What there is no data for is empty. Numbers
/// are exact: what is read is what was measured.
pub fn runs_csv(results: &Results) -> String {
    let columns: Vec<Column> = measured(&results.rows).into_iter().flat_map(Column::of).collect();
    let mut header = [EXPERIMENT, "spec_hash", HOST, POLICY].map(String::from).to_vec();
    let axes = results.groups.first().map_or(&[][..], |group| &group.axes);
    header.extend(axes.iter().map(|(axis, _)| axis.clone()));
    header.extend([SEED_INDEX, SEED].map(String::from));
    header.extend(columns.iter().map(Column::to_string));
    let mut lines = vec![header];
    for row in &results.rows {
        for run in &row.runs {
            let mut fields = vec![
                results.experiment.clone(),
                results.spec_hash.clone(),
                results.host.to_string(),
                results.policies[row.policy].label.clone(),
            ];
            let axes = &results.groups[row.group].axes;
            fields.extend(axes.iter().map(|(_, value)| value.to_string()));
            fields.extend([run.index.to_string(), run.seed.to_string()]);
            let number = |column: &Column| run.value(*column).map_or(String::new(), written);
            fields.extend(columns.iter().map(number));
            lines.push(fields);
        }
    }
    csv_lines(&lines)
}

/// A number with all its digits.
fn written(number: f64) -> String {
    number.to_string()
}
