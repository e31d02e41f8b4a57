//! Two sets of runs side by side.

use super::align;
use super::csv_lines;
use super::json::{Number, pretty};
use super::numbers::Format;
use super::table::wrap;
use crate::compare::{Compared, Comparison};
use crate::spec::columns::Column;
use serde_json::{Value, json};
use std::fmt::Write;

/// The comparison as plain text: a table for each group, a line for each policy and metric.
pub fn comparison_table(comparison: &Comparison) -> String {
    let mut text = String::new();
    let [a, b] = &comparison.names;
    let _ = writeln!(text, "A: {a}\nB: {b}");
    let mut left = &comparison.rows[..];
    while let Some(first) = left.first() {
        let count = left.iter().take_while(|row| row.axes == first.axes).count();
        let (group, rest) = left.split_at(count);
        text.push('\n');
        if !first.axes.is_empty() {
            wrap(&mut text, "", &in_words(&first.axes));
            text.push('\n');
        }
        text += &of_group(group);
        left = rest;
    }
    if comparison.rows.is_empty() {
        text += "\nThey have no row in common: none with the same policy and the same axes.\n";
    }
    for (name, only) in ["A", "B"].into_iter().zip(&comparison.only) {
        if !only.is_empty() {
            text.push('\n');
            wrap(&mut text, "", &format!("Only in {name}: {}.", only.join(", ")));
        }
    }
    text.push('\n');
    text += &notes(&comparison.rows);
    text
}

fn of_group(rows: &[Compared]) -> String {
    let head = ["policy", "metric", "A", "B", "B - A", "change", ""];
    let mut lines = vec![head.map(String::from).to_vec()];
    let mut last = None;
    for row in rows {
        let format = Format::of(
            row.column.metric,
            &[row.means[0].mean, row.means[1].mean, row.difference.0],
        );
        let (mean, ci95) = row.difference;
        let unit = if format.unit.is_empty() { "" } else { ", " };
        let [a, b] = &row.policies;
        let policy = if a == b { a.clone() } else { format!("{a} | {b}") };
        let shown = if last == Some(&row.policies) { String::new() } else { policy };
        last = Some(&row.policies);
        let signed = |text: String| if mean > 0.0 { format!("+{text}") } else { text };
        lines.push(vec![
            shown,
            format!("{}{unit}{}", name(row.column), format.unit),
            format.with_error(row.means[0].mean, row.means[0].ci95),
            format.with_error(row.means[1].mean, row.means[1].ci95),
            signed(format.with_error(mean, ci95)),
            row.change().map_or("-".to_string(), |change| signed(format!("{change:.1} %"))),
            row.tells().word().to_string(),
        ]);
    }
    align::text(&align_last(&lines))
}

/// The lines, with the last column to the left as the first two.
fn align_last(lines: &[Vec<String>]) -> Vec<String> {
    let column = |at: usize| {
        let side = if (2..6).contains(&at) { align::Side::Right } else { align::Side::Left };
        let cells = lines[1..].iter().map(|line| line[at].clone()).collect();
        align::Column::new(side, vec![lines[0][at].clone()], cells)
    };
    let columns: Vec<align::Column> = (0..lines[0].len()).map(column).collect();
    align::lines(&columns.iter().collect::<Vec<_>>(), align::GAP)
}

/// A column in words: `waiting time mean`.
fn name(column: Column) -> String {
    let metric = column.metric.to_string();
    let metric = metric.trim_end_matches("_ns").trim_end_matches("_per_s").replace(['_', '.'], " ");
    let stat = column.stat.map_or(String::new(), |stat| format!(" {}", stat.name()));
    metric + &stat
}

fn in_words(axes: &[(String, String)]) -> String {
    let pairs: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
    pairs.join(", ")
}

fn notes(rows: &[Compared]) -> String {
    let mut text = String::new();
    let paired: Vec<usize> = rows.iter().filter_map(|row| row.pairs).collect();
    if let (Some(least), Some(most)) = (paired.iter().min(), paired.iter().max()) {
        let pairs = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let words = format!(
            "Differences are of runs with the same seed, which have the same tasks: {pairs} pairs \
             in a row; ± is half their 95 % confidence interval."
        );
        wrap(&mut text, "", &words);
    }
    if paired.len() < rows.len() {
        wrap(
            &mut text,
            "",
            "Where no seeds are the same, ± is that of two independent means (Welch).",
        );
    }
    if rows.iter().any(|row| row.tells() == crate::compare::Tells::Nothing) {
        wrap(&mut text, "", "undecided: the interval holds 0, or there is only one seed.");
    }
    text
}

/// The comparison as JSON: `a`, `b`, `rows` and what only one of them has. A row has `axes`,
/// `policies`, `metric`, `a`, `b` and `difference`, each with `mean` and `ci95`, `pairs` (`null`:
/// not paired) and `tells`.
pub fn comparison_json(comparison: &Comparison) -> String {
    let number = |number: f64| json!(Number(number));
    let estimate =
        |mean: f64, ci95: Option<f64>| json!({ "mean": number(mean), "ci95": ci95.map(number) });
    let row = |row: &Compared| {
        let axes: serde_json::Map<String, Value> =
            row.axes.iter().map(|(axis, value)| (axis.clone(), json!(value))).collect();
        let [a, b] = &row.means;
        json!({
            "axes": axes,
            "policies": row.policies,
            "metric": row.column.to_string(),
            "a": estimate(a.mean, a.ci95),
            "b": estimate(b.mean, b.ci95),
            "difference": estimate(row.difference.0, row.difference.1),
            "pairs": row.pairs,
            "tells": row.tells().word(),
        })
    };
    pretty(&json!({
        "a": comparison.names[0],
        "b": comparison.names[1],
        "rows": comparison.rows.iter().map(row).collect::<Vec<_>>(),
        "only_a": comparison.only[0],
        "only_b": comparison.only[1],
    }))
}

/// The comparison as CSV: a line for each policy and metric of each group.
pub fn comparison_csv(comparison: &Comparison) -> String {
    let mut lines = vec![
        [
            "axes",
            "policy_a",
            "policy_b",
            "metric",
            "a_mean",
            "a_ci95",
            "b_mean",
            "b_ci95",
            "difference",
            "difference_ci95",
            "pairs",
            "tells",
        ]
        .map(String::from)
        .to_vec(),
    ];
    let some = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    for row in &comparison.rows {
        let [a, b] = &row.means;
        let [policy_a, policy_b] = row.policies.clone();
        lines.push(vec![
            in_words(&row.axes),
            policy_a,
            policy_b,
            row.column.to_string(),
            a.mean.to_string(),
            some(a.ci95),
            b.mean.to_string(),
            some(b.ci95),
            row.difference.0.to_string(),
            some(row.difference.1),
            row.pairs.map_or(String::new(), |pairs| pairs.to_string()),
            row.tells().word().to_string(),
        ]);
    }
    csv_lines(&lines)
}
