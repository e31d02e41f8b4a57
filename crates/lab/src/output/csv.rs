//! The results as CSV, one line per row.

use crate::results::{Aggregate, Results, measured};
use anysched_measure::Metric;

/// The results as CSV (RFC 4180 with plain line ends), one line per row, aggregated over seeds.
///
/// The columns are `experiment`, `spec_hash`, `host`, `policy`, `clairvoyant`, `rehearsed`, one per
/// axis, `seeds`; then, for each metric that any row has data for, `_mean`, `_ci95`, `_sd`, `_min`,
/// `_p50`, `_p95`, `_p99` and `_max` behind its name. What there is no data for is empty. The
/// runs themselves are in the Parquet file.
pub fn csv(results: &Results) -> String {
    let metrics: Vec<Metric> = measured(&results.rows).into_iter().collect();
    let mut header: Vec<String> =
        ["experiment", "spec_hash", "host", "policy", "clairvoyant", "rehearsed"]
            .map(String::from)
            .into();
    let axes = results.groups.first().map_or(&[][..], |group| &group.axes);
    header.extend(axes.iter().map(|(axis, _)| axis.clone()));
    header.push("seeds".to_string());
    for metric in &metrics {
        header.extend(STATS.iter().map(|stat| format!("{metric}_{stat}")));
    }
    let mut text = line(&header);
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
        text += &line(&fields);
    }
    text
}

const STATS: [&str; 8] = ["mean", "ci95", "sd", "min", "p50", "p95", "p99", "max"];

fn numbers(of: &Aggregate) -> [String; 8] {
    let ci95 = of.ci95.map_or(String::new(), |ci95| ci95.to_string());
    let [mean, sd, min] = [of.mean, of.sd, of.min].map(|number| number.to_string());
    let [p50, p95, p99, max] = [of.p50, of.p95, of.p99, of.max].map(|number| number.to_string());
    [mean, ci95, sd, min, p50, p95, p99, max]
}

fn line(fields: &[String]) -> String {
    let quoted = |field: &String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    };
    let mut line = fields.iter().map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = ["a", "b,c", "say \"hi\"", "two\nlines"].map(String::from);
        assert_eq!(line(&fields), "a,\"b,c\",\"say \"\"hi\"\"\",\"two\nlines\"\n");
    }
}
