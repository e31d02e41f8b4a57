//! Whole distributions, as percentiles close enough to be drawn.

use super::super::json::Number;
use super::answers::number;
use anysched_measure::{Measured, Metrics, Part, PartMetrics};
use serde::Serialize;

/// Equal steps, and steps towards 100 % of which 16 are a decade.
const STEPS: usize = 64;
const DECADE: f64 = 16.0;
const COUNT: usize = 2 * STEPS + 2;

/// A distribution in one run.
#[derive(Serialize)]
pub(super) struct Distribution {
    group: usize,
    policy: usize,
    /// Whose tasks; `null`: all.
    load: Option<String>,
    metric: String,
    count: u64,
    /// In the order of [`percents`].
    values: Vec<Option<Number>>,
}

/// Of what there are values, ascending.
pub(super) fn percents() -> [f64; COUNT] {
    let mut percents = [95.0; COUNT];
    // Those that results have, exactly.
    percents[COUNT - 1] = 99.0;
    for step in 1..=STEPS {
        percents[step - 1] = 100.0 * step as f64 / STEPS as f64;
        let beyond = libm::pow(10.0, -(step as f64) / DECADE);
        percents[STEPS + step - 1] = 100.0 * (1.0 - beyond);
    }
    percents.sort_by(f64::total_cmp);
    percents
}

/// All distributions that a run has measured, of all tasks and of each load.
pub(super) fn of(
    metrics: &Metrics,
    loads: &[String],
    (group, policy): (usize, usize),
) -> Vec<Distribution> {
    let percents = percents();
    let mut all = Vec::new();
    let mut add = |metrics: &Metrics, load: Option<&String>| {
        for (metric, measured) in metrics.measured() {
            let Measured::Distribution(summary, factor) = measured else { continue };
            let Some(values) = summary.percentiles(percents) else { continue };
            all.push(Distribution {
                group,
                policy,
                load: load.cloned(),
                metric: metric.to_string(),
                count: summary.count(),
                values: values.into_iter().map(|value| number(value as f64 * factor)).collect(),
            });
        }
    };
    add(metrics, None);
    for PartMetrics { part, inside } in &metrics.parts {
        if let Part::Load(load) = part {
            add(inside, loads.get(*load));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_ascend_and_have_those_of_results() {
        let percents = percents();
        assert!(percents.is_sorted() && percents[0] > 0.0);
        assert_eq!(percents[COUNT - 1], 100.0);
        assert!([50.0, 95.0, 99.0].iter().all(|known| percents.contains(known)));
    }

    #[test]
    fn a_distribution_is_of_all_tasks_and_of_each_load() {
        let mut metrics = Metrics::from_zero();
        (1..=100).for_each(|value| metrics.slowdown.record(value * 1_000_000));
        let inside = Metrics::from_zero();
        metrics.parts.push(PartMetrics { part: Part::Load(0), inside });
        let found = of(&metrics, &["web".into()], (1, 2));
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(found.len(), 1, "the load has no numbers: {json}");
        let median = percents().iter().position(|percent| *percent == 50.0).unwrap();
        assert_eq!(json[0]["values"][median], 50);
        assert_eq!((&json[0]["group"], &json[0]["count"]), (&1.into(), &100.into()));
        assert!(json[0]["load"].is_null());
    }
}
