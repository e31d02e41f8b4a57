//! Figures of runs: from the results of an experiment, and as they are kept.

use serde_json::Value;
use std::collections::BTreeMap;

/// Figures by load, scheduler and quantity.
pub type Figures = BTreeMap<(String, String, String), f64>;

/// Names of columns end with one of these if the metric has many values.
const STATS: [&str; 6] = ["mean", "min", "p50", "p95", "p99", "max"];

pub fn rows(json: &Value) -> impl Iterator<Item = &Value> {
    json["rows"].as_array().into_iter().flatten()
}

/// The loads, in the order of the file.
pub fn loads(json: &Value) -> Vec<String> {
    let mut loads: Vec<String> = rows(json).map(load).collect();
    loads.dedup();
    loads
}

/// The load of a row.
pub fn load(row: &Value) -> String {
    row["axes"]["scenario"].as_str().unwrap_or_default().to_string()
}

/// The figures of results, of quantities that are wanted.
pub fn figures(json: &Value, is_wanted: impl Fn(&String) -> bool) -> Figures {
    let mut figures = Figures::new();
    for row in rows(json) {
        let scheduler = row["policy"].as_str().unwrap_or_default();
        for (metric, numbers) in row["metrics"].as_object().into_iter().flatten() {
            let stats = STATS.map(|stat| (format!("{metric}_{stat}"), &numbers[stat]));
            for (quantity, number) in stats.into_iter().chain([(metric.clone(), &numbers["mean"])])
            {
                if let Some(number) = number.as_f64().filter(|_| is_wanted(&quantity)) {
                    figures.insert((load(row), scheduler.to_string(), quantity), number);
                }
            }
        }
    }
    figures
}

pub fn tsv(figures: &Figures) -> String {
    let line = |((load, scheduler, quantity), figure): (&(String, String, String), &f64)| {
        format!("{load}\t{scheduler}\t{quantity}\t{figure}\n")
    };
    figures.iter().map(line).collect()
}

pub fn from_tsv(text: &str) -> Figures {
    let line = |line: &str| {
        let words: Vec<&str> = line.split('\t').collect();
        let [load, scheduler, quantity, figure] = words[..] else { return None };
        let key = (load.to_string(), scheduler.to_string(), quantity.to_string());
        Some((key, figure.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_measured() {
        let json = r#"{"rows": [{"policy": "stock-cfs", "axes": {"scenario": "one hog"},
            "metrics": {"a_ns": {"mean": 1.5, "p99": 7}, "b": {"mean": null}}}]}"#;
        let json: Value = serde_json::from_str(json).unwrap();
        let figures = figures(&json, |quantity| quantity != "a_ns");
        let lines = ["one hog\tstock-cfs\ta_ns_mean\t1.5\n", "one hog\tstock-cfs\ta_ns_p99\t7\n"];
        assert_eq!(tsv(&figures), lines.concat());
        assert_eq!(from_tsv(&tsv(&figures)), figures);
        assert_eq!(from_tsv("a\tb\n"), Figures::new());
    }
}
