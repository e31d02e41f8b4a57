//! The results as JSON.

use crate::results::stats::Estimate;
use crate::results::verdict::{Check, ClaimResult, Measure};
use crate::results::{Aggregate, Results, Row};
use crate::spec::claim::Verdict;
use crate::spec::sweep::AxisValue;
use serde::Serialize;
use serde::ser::Serializer;
use std::fmt::Display;

/// The results as JSON: `experiment`, `question`, `spec_hash`, `host`, `seed`, `rows` and
/// `claims`. A row has `policy`, `clairvoyant`, `rehearsed`, `axes`, `seeds` and `metrics`; each
/// metric has `mean`, `ci95`, `sd`, `min`, `p50`, `p95`, `p99` and `max`, in the unit that its
/// name ends with. What there is no data for is left out or `null`.
pub fn json(results: &Results) -> String {
    pretty(&Document {
        experiment: &results.experiment,
        title: results.title.as_deref(),
        question: &results.question,
        spec_hash: &results.spec_hash,
        host: results.host,
        seed: results.seed,
        complete: results.complete,
        rows: results.rows.iter().map(|row| RowOut::new(results, row)).collect(),
        claims: results.claims.iter().map(ClaimOut::new).collect(),
    })
}

pub(super) fn pretty(value: &impl Serialize) -> String {
    let mut json = serde_json::to_string_pretty(value).unwrap_or_default();
    json.push('\n');
    json
}

/// A number of a metric: a whole one is written without a point, one that is none as `null`.
#[derive(Clone, Copy)]
pub(super) struct Number(pub(super) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Up to 2^53 every whole number is exact.
        if self.0 == libm::trunc(self.0) && libm::fabs(self.0) <= 9e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// `mean` and `ci95`; `null` without data.
#[derive(Serialize)]
pub(super) struct EstimateOut {
    mean: Option<Number>,
    ci95: Option<Number>,
}

impl From<Option<Estimate>> for EstimateOut {
    fn from(estimate: Option<Estimate>) -> EstimateOut {
        EstimateOut {
            mean: estimate.map(|estimate| Number(estimate.mean)),
            ci95: estimate.and_then(|estimate| estimate.ci95).map(Number),
        }
    }
}

/// An object whose keys stay in this order.
pub(super) fn pairs<K: Display, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key.to_string(), value)))
}

impl Serialize for AxisValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AxisValue::Text(text) => serializer.serialize_str(text),
            AxisValue::Integer(number) => Number(*number as f64).serialize(serializer),
            AxisValue::Real(number) => Number(*number).serialize(serializer),
            AxisValue::Flag(flag) => serializer.serialize_bool(*flag),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    question: &'a str,
    spec_hash: &'a str,
    host: &'a str,
    seed: u64,
    complete: bool,
    rows: Vec<RowOut<'a>>,
    claims: Vec<ClaimOut<'a>>,
}

#[derive(Serialize)]
struct RowOut<'a> {
    policy: &'a str,
    clairvoyant: bool,
    rehearsed: bool,
    #[serde(serialize_with = "pairs")]
    axes: &'a [(String, AxisValue)],
    seeds: usize,
    #[serde(serialize_with = "pairs")]
    metrics: Vec<(String, AggregateOut)>,
}

impl RowOut<'_> {
    fn new<'a>(results: &'a Results, row: &Row) -> RowOut<'a> {
        let policy = &results.policies[row.policy];
        let metrics = row.metrics().into_iter();
        RowOut {
            policy: &policy.label,
            clairvoyant: policy.nature.clairvoyant,
            rehearsed: policy.nature.rehearsed,
            axes: &results.groups[row.group].axes,
            seeds: row.runs.len(),
            metrics: metrics.map(|(name, _, of)| (name.to_string(), of.into())).collect(),
        }
    }
}

#[derive(Serialize)]
struct AggregateOut {
    mean: Number,
    ci95: Option<Number>,
    sd: Number,
    min: Number,
    p50: Number,
    p95: Number,
    p99: Number,
    max: Number,
}

impl From<Aggregate> for AggregateOut {
    fn from(of: Aggregate) -> AggregateOut {
        AggregateOut {
            mean: Number(of.mean),
            ci95: of.ci95.map(Number),
            sd: Number(of.sd),
            min: Number(of.min),
            p50: Number(of.p50),
            p95: Number(of.p95),
            p99: Number(of.p99),
            max: Number(of.max),
        }
    }
}

#[derive(Serialize)]
struct ClaimOut<'a> {
    id: &'a str,
    text: &'a str,
    paper: Option<&'a str>,
    reading: Option<&'a str>,
    because: Option<&'a str>,
    details: Option<&'a str>,
    expected: &'static str,
    verdict: Option<&'static str>,
    as_expected: bool,
    seeds_needed: Option<u64>,
    size: Option<SizeOut>,
    checks: Vec<CheckOut<'a>>,
    measures: Vec<MeasureOut<'a>>,
}

impl ClaimOut<'_> {
    fn new(claim: &ClaimResult) -> ClaimOut<'_> {
        ClaimOut {
            id: &claim.id,
            text: &claim.text,
            paper: claim.paper.as_deref(),
            reading: claim.reading.as_deref(),
            because: claim.because.as_deref(),
            details: claim.details.as_deref(),
            expected: claim.expected.words(),
            verdict: claim.verdict.map(Verdict::words),
            as_expected: claim.is_as_expected(),
            seeds_needed: claim.seeds_needed(),
            size: claim.size.map(|size| SizeOut {
                low: Number(size.low),
                high: Number(size.high),
                expected: size.expected.words(),
                verdict: size.verdict.map(Verdict::words),
                seeds_needed: size.seeds_needed,
            }),
            checks: claim.checks.iter().map(CheckOut::new).collect(),
            measures: claim.measures.iter().map(MeasureOut::new).collect(),
        }
    }
}

#[derive(Serialize)]
struct SizeOut {
    low: Number,
    high: Number,
    expected: &'static str,
    verdict: Option<&'static str>,
    seeds_needed: Option<u64>,
}

#[derive(Serialize)]
struct CheckOut<'a> {
    #[serde(serialize_with = "pairs")]
    axes: &'a [(String, AxisValue)],
    expression: &'a str,
    left: Number,
    right: Number,
    difference: Number,
    ci95: Option<Number>,
    verdict: Option<&'static str>,
    seeds_needed: Option<u64>,
    note: Option<&'a str>,
}

impl CheckOut<'_> {
    fn new(check: &Check) -> CheckOut<'_> {
        CheckOut {
            axes: &check.axes,
            expression: &check.expression,
            left: Number(check.left),
            right: Number(check.right),
            difference: Number(check.difference),
            ci95: check.margin.map(Number),
            verdict: check.verdict.map(Verdict::words),
            seeds_needed: check.seeds_needed,
            note: check.note,
        }
    }
}

#[derive(Serialize)]
struct MeasureOut<'a> {
    #[serde(serialize_with = "pairs")]
    axes: &'a [(String, AxisValue)],
    expression: &'a str,
    #[serde(flatten)]
    value: EstimateOut,
    unit: &'a str,
}

impl MeasureOut<'_> {
    fn new(measure: &Measure) -> MeasureOut<'_> {
        MeasureOut {
            axes: &measure.axes,
            expression: &measure.expression,
            value: measure.value.into(),
            unit: &measure.unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let numbers = [1.0, -0.0, -3.0, 0.5, 9e15, 1e16, f64::NAN, f64::INFINITY].map(Number);
        assert_eq!(
            serde_json::to_string(&numbers).unwrap(),
            "[1,0,-3,0.5,9000000000000000,1e+16,null,null]"
        );
    }
}
