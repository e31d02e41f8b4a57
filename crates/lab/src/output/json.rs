//! The results as JSON.

use crate::results::verdict::{Check, ClaimResult, Measure};
use crate::results::{Aggregate, Results, Row};
use crate::spec::sweep::AxisValue;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The results as JSON: `experiment`, `question`, `spec_hash`, `host`, `seed`, `rows` and
/// `claims`. A row has `policy`, `clairvoyant`, `rehearsed`, `axes`, `seeds` and `metrics`; each
/// metric has `mean`, `ci95`, `sd`, `min`, `p50`, `p95`, `p99` and `max`, in the unit that its
/// name ends with. What there is no data for is left out or `null`.
pub fn json(results: &Results) -> String {
    let rows = results.rows.iter().map(|row| row_value(results, row)).collect();
    let claims = results.claims.iter().map(claim_value).collect();
    let mut root = vec![
        ("experiment", text(&results.experiment)),
        ("question", text(&results.question)),
        ("spec_hash", text(&results.spec_hash)),
        ("host", text(results.host)),
        ("seed", Value::Whole(results.seed)),
        ("complete", Value::Flag(results.complete)),
        ("rows", Value::List(rows)),
        ("claims", Value::List(claims)),
    ];
    if let Some(title) = &results.title {
        root.insert(1, ("title", text(title)));
    }
    pretty(&object(root))
}

pub(super) fn pretty(value: &Value) -> String {
    let mut json = serde_json::to_string_pretty(value).unwrap_or_default();
    json.push('\n');
    json
}

/// Like `serde_json::Value`, but keys keep their order.
pub(super) enum Value {
    Null,
    Flag(bool),
    Whole(u64),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Whole(number) => serializer.serialize_u64(*number),
            // Up to 2^53 every whole number is exact, and it is written without a point.
            Value::Number(number)
                if *number == libm::trunc(*number) && libm::fabs(*number) <= 9e15 =>
            {
                serializer.serialize_i64(*number as i64)
            }
            // What is not a number becomes null.
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(items) => items.serialize(serializer),
            Value::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

pub(super) fn object<K: Into<String>>(entries: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.to_string())
}

fn maybe_text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, self::text)
}

pub(super) fn maybe(value: Option<f64>) -> Value {
    value.map_or(Value::Null, Value::Number)
}

pub(super) fn axes_value(axes: &[(String, AxisValue)]) -> Value {
    let value = |value: &AxisValue| match value {
        AxisValue::Text(text) => self::text(text),
        AxisValue::Integer(number) => Value::Number(*number as f64),
        AxisValue::Real(number) => Value::Number(*number),
        AxisValue::Flag(flag) => Value::Flag(*flag),
    };
    object(axes.iter().map(|(axis, has)| (axis.as_str(), value(has))))
}

fn row_value(results: &Results, row: &Row) -> Value {
    let policy = &results.policies[row.policy];
    let metrics = row.metrics().into_iter();
    object([
        ("policy", text(&policy.label)),
        ("clairvoyant", Value::Flag(policy.nature.clairvoyant)),
        ("rehearsed", Value::Flag(policy.nature.rehearsed)),
        ("axes", axes_value(&results.groups[row.group].axes)),
        ("seeds", Value::Whole(row.runs.len() as u64)),
        ("metrics", object(metrics.map(|(name, _, of)| (name.to_string(), aggregate_value(&of))))),
    ])
}

fn aggregate_value(of: &Aggregate) -> Value {
    object([
        ("mean", Value::Number(of.mean)),
        ("ci95", maybe(of.ci95)),
        ("sd", Value::Number(of.sd)),
        ("min", Value::Number(of.min)),
        ("p50", Value::Number(of.p50)),
        ("p95", Value::Number(of.p95)),
        ("p99", Value::Number(of.p99)),
        ("max", Value::Number(of.max)),
    ])
}

fn claim_value(claim: &ClaimResult) -> Value {
    let verdict = claim.verdict.map(|verdict| verdict.words());
    object([
        ("id", text(&claim.id)),
        ("text", text(&claim.text)),
        ("paper", maybe_text(claim.paper.as_deref())),
        ("reading", maybe_text(claim.reading.as_deref())),
        ("because", maybe_text(claim.because.as_deref())),
        ("expected", text(claim.expected.words())),
        ("verdict", maybe_text(verdict)),
        ("as_expected", Value::Flag(claim.is_as_expected())),
        ("checks", Value::List(claim.checks.iter().map(check_value).collect())),
        ("measures", Value::List(claim.measures.iter().map(measure_value).collect())),
    ])
}

fn check_value(check: &Check) -> Value {
    object([
        ("axes", axes_value(&check.axes)),
        ("expression", text(&check.expression)),
        ("left", Value::Number(check.left)),
        ("right", Value::Number(check.right)),
        ("difference", Value::Number(check.difference)),
        ("two_standard_errors", maybe(check.margin)),
        ("holds", check.holds.map_or(Value::Null, Value::Flag)),
        ("note", maybe_text(check.note)),
    ])
}

fn measure_value(measure: &Measure) -> Value {
    object([
        ("axes", axes_value(&measure.axes)),
        ("expression", text(&measure.expression)),
        ("mean", maybe(measure.value.map(|value| value.mean))),
        ("ci95", maybe(measure.value.and_then(|value| value.ci95))),
        ("unit", text(&measure.unit)),
    ])
}
