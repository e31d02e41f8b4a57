//! The results as CSV, one line per row.

use super::fields::CSV;
use crate::results::{Aggregate, Results, measured};
use ::csv::WriterBuilder;
use anysched_measure::Metric;

/// The results as CSV (RFC 4180 with plain line ends), one line per row, aggregated over seeds.
///
/// The columns are `experiment`, `spec_hash`, `host`, `policy`, `clairvoyant`, `rehearsed`, one per
/// axis, `seeds`; then, for each metric that any row has data for, `_mean`, `_ci95`, `_sd`, `_min`,
/// `_p50`, `_p95`, `_p99` and `_max` behind its name. What there is no data for is empty. The
/// runs themselves are in [`runs_csv`](super::runs_csv) and the Parquet file.
pub fn csv(results: &Results) -> String {
    let metrics: Vec<Metric> = measured(&results.rows).into_iter().collect();
    let own = CSV.iter().map(|field| field.name.to_string());
    let mut header: Vec<String> = own.take_while(|name| name != "AXIS").collect();
    let axes = results.groups.first().map_or(&[][..], |group| &group.axes);
    header.extend(axes.iter().map(|(axis, _)| axis.clone()));
    header.push("seeds".to_string());
    for metric in &metrics {
        header.extend(STATS.iter().map(|stat| format!("{metric}_{stat}")));
    }
    let mut lines = vec![header];
    for row in &results.rows {
        let policy = &results.policies[row.policy];
        let mut fields = vec![
            results.experiment.clone(),
            results.spec_hash.clone(),
            results.host.to_string(),
            policy.label.clone(),
            policy.nature.clairvoyant.to_string(),
            policy.nature.rehearsed.to_string(),
        ];
        let axes = &results.groups[row.group].axes;
        fields.extend(axes.iter().map(|(_, value)| value.to_string()));
        fields.push(row.runs.len().to_string());
        for metric in &metrics {
            match row.aggregate_of(*metric) {
                Some(aggregate) => fields.extend(numbers(&aggregate)),
                None => fields.extend(STATS.map(|_| String::new())),
            }
        }
        lines.push(fields);
    }
    csv_lines(&lines)
}

/// Lines of fields as CSV (RFC 4180 with plain line ends): quoted where they must be.
pub fn csv_lines(lines: &[Vec<String>]) -> String {
    let mut writer = WriterBuilder::new().flexible(true).from_writer(Vec::new());
    // Writing to memory does not fail, and text remains text.
    let written = lines.iter().try_for_each(|line| writer.write_record(line));
    debug_assert!(written.is_ok(), "{written:?}");
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

const STATS: [&str; 8] = ["mean", "ci95", "sd", "min", "p50", "p95", "p99", "max"];

fn numbers(of: &Aggregate) -> [String; 8] {
    let ci95 = of.ci95.map_or(String::new(), |ci95| ci95.to_string());
    let [mean, sd, min] = [of.mean, of.sd, of.min].map(|number| number.to_string());
    let [p50, p95, p99, max] = [of.p50, of.p95, of.p99, of.max].map(|number| number.to_string());
    [mean, ci95, sd, min, p50, p95, p99, max]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = ["a", "b,c", "say \"hi\"", "two\nlines", "#", " x"].map(String::from);
        assert_eq!(
            csv_lines(&[fields.to_vec(), vec!["1".to_string()]]),
            "a,\"b,c\",\"say \"\"hi\"\"\",\"two\nlines\",#, x\n1\n"
        );
    }
}
