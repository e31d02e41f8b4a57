//! What a search over an experiment has found, as a table, as Markdown and as JSON.

use super::json::{Value, axes_value, maybe, object, pretty, text};
use super::marks::{self, marked};
use super::numbers::Format;
use super::table::{self, Printed, head, name_in_full, wrap};
use crate::results::stats::Estimate;
use crate::tune::{GridKind, GridLine, GridRow, GridTuned};
use std::fmt::Write;

/// The best values of parameters as plain text: for each combination of axis values those found,
/// then what they compete with.
pub fn grid_table(tuned: &GridTuned) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "{}", tuned.title);
    let format = format_of(tuned);
    wrap(&mut page, "", &heading(tuned));
    for row in &tuned.rows {
        page.push('\n');
        table::heading(&mut page, &row.group, tuned.seeds);
        let mut names = vec!["policy".to_string()];
        names.extend(row.lines.iter().map(name));
        let metric = row.lines.iter().map(GridLine::estimate);
        let over = vec!["over the best".to_string(), format.unit.to_string()];
        let difference = row.lines.iter().map(|line| difference(row, line));
        let columns = [
            Printed::new(metric, &format, |width| head(tuned.metric(), &format, width)),
            Printed::new(difference, &format, |_| over),
        ];
        table::write_blocks(&mut page, &names, &columns);
        let _ = writeln!(page, "found in {} runs", row.search_runs);
    }
    let notes = notes(tuned);
    if !notes.is_empty() {
        let _ = writeln!(page, "\n{}", notes.join("\n"));
    }
    page
}

/// The best values of parameters for a page of documentation.
pub fn grid_markdown(tuned: &GridTuned) -> String {
    let format = format_of(tuned);
    let mut page = format!("{}\n", heading(tuned));
    let cell = |estimate: Option<Estimate>| {
        let Some(estimate) = estimate else { return "-".to_string() };
        let error = estimate.ci95.filter(|ci95| *ci95 > 0.0);
        let error = error.map_or_else(String::new, |ci95| format!(" ± {}", format.number(ci95)));
        format.number(estimate.mean) + &error
    };
    for row in &tuned.rows {
        let title = row.group.title();
        if !title.is_empty() {
            let _ = writeln!(page, "\n{title}");
        }
        let metric = name_in_full(tuned.metric(), &format);
        let _ = writeln!(page, "\n| policy | {metric} | over the best |\n|---|--:|--:|");
        for line in &row.lines {
            let name = name(line).replace('*', "\\*").replace('|', "\\|");
            let difference = cell(difference(row, line));
            let _ = writeln!(page, "| {name} | {} | {difference} |", cell(line.estimate()));
        }
    }
    for note in notes(tuned) {
        let _ = writeln!(page, "\n{}", note.replace('*', "\\*"));
    }
    page
}

/// The best values of parameters for programs: what was asked for, whether all rows are there, and
/// `rows`. A row has `axes`, `search_runs` and `lines`: `kind` (`found`, best first; `file`,
/// `defaults`, `other`), `policy`, `label`, `settings` (those searched), `clairvoyant`,
/// `rehearsed`, `mean`, `ci95` and `over_best`, the paired difference; in the unit that the
/// metric's name ends with.
pub fn grid_json(tuned: &GridTuned) -> String {
    let request = &tuned.request;
    let values =
        |values: &Vec<String>| Value::List(values.iter().map(|value| text(value)).collect());
    let over = request.over.iter().map(|(name, tried)| (name.as_str(), values(tried)));
    let rows = tuned.rows.iter().map(row_value).collect();
    pretty(&object([
        ("experiment", text(&tuned.experiment)),
        ("policy", text(&request.policy)),
        ("metric", text(&request.metric)),
        ("larger", Value::Flag(request.larger)),
        ("over", object(over)),
        ("seeds", Value::Whole(u64::from(tuned.seeds))),
        ("complete", Value::Flag(tuned.complete)),
        ("rows", Value::List(rows)),
    ]))
}

fn row_value(row: &GridRow) -> Value {
    let estimate = |estimate: Option<Estimate>| {
        [
            ("mean", maybe(estimate.map(|estimate| estimate.mean))),
            ("ci95", maybe(estimate.and_then(|estimate| estimate.ci95))),
        ]
    };
    let line = |line: &GridLine| {
        let settings = line.settings.iter().map(|(name, value)| (name.as_str(), text(value)));
        let mut entries = vec![
            ("kind", text(kind(line.kind))),
            ("policy", text(line.policy)),
            ("label", text(&line.label)),
            ("settings", object(settings)),
            ("clairvoyant", Value::Flag(line.nature.clairvoyant)),
            ("rehearsed", Value::Flag(line.nature.rehearsed)),
        ];
        entries.extend(estimate(line.estimate()));
        let over_best = difference(row, line).map(|over| object(estimate(Some(over))));
        entries.push(("over_best", over_best.unwrap_or(Value::Null)));
        object(entries)
    };
    object([
        ("axes", axes_value(&row.group.axes)),
        ("search_runs", Value::Whole(row.search_runs as u64)),
        ("lines", Value::List(row.lines.iter().map(line).collect())),
    ])
}

fn kind(kind: GridKind) -> &'static str {
    match kind {
        GridKind::Found => "found",
        GridKind::File => "file",
        GridKind::Defaults => "defaults",
        GridKind::Other => "other",
    }
}

fn heading(tuned: &GridTuned) -> String {
    let request = &tuned.request;
    let over = request.over.iter().map(|(name, values)| format!("{name} = {}", values.join(" | ")));
    format!(
        "{}: {} {} over {}; {} seeds, then {} others to compare",
        request.policy,
        if request.larger { "largest" } else { "smallest" },
        request.metric,
        over.collect::<Vec<_>>().join(", "),
        tuned.seeds,
        tuned.seeds,
    )
}

/// One for all rows, so that they can be compared.
fn format_of(tuned: &GridTuned) -> Format {
    let lines = tuned.rows.iter().flat_map(|row| &row.lines);
    let means: Vec<f64> =
        lines.filter_map(GridLine::estimate).map(|estimate| estimate.mean).collect();
    Format::of(tuned.metric().metric, &means)
}

fn name(line: &GridLine) -> String {
    marked(&line.label, line.nature)
}

/// How far a line is from the best one found; `None` for that itself.
fn difference(row: &GridRow, line: &GridLine) -> Option<Estimate> {
    let best = row.lines.first().filter(|best| !std::ptr::eq(*best, line))?;
    line.against(best)
}

fn notes(tuned: &GridTuned) -> Vec<&'static str> {
    let lines = tuned.rows.iter().flat_map(|row| &row.lines);
    let mut notes = marks::notes(lines.map(|line| line.nature));
    if tuned.seeds > 1 {
        notes.push("± is half the 95 % confidence interval; differences are paired.");
    }
    if !tuned.complete {
        notes.push("Cancelled: rows that were not complete are left out.");
    }
    notes
}
