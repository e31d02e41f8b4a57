//! What a search over an experiment has found, as a table, as Markdown and as JSON.

use super::json::{EstimateOut, pairs, pretty};
use super::marks::{self, marked};
use super::numbers::Format;
use super::table::{self, estimates, head, name_in_full, wrap};
use crate::results::stats::Estimate;
use crate::spec::sweep::AxisValue;
use crate::tune::{GridKind, GridLine, GridRow, GridTuned};
use serde::Serialize;
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
        let names = table::names("policy", row.lines.iter().map(name));
        let metric = row.lines.iter().map(GridLine::estimate);
        let over = vec!["over the best".to_string(), format.unit.to_string()];
        let difference = row.lines.iter().map(|line| difference(row, line));
        let columns = [
            estimates(metric, &format, |width| head(&tuned.metric().into(), &format, width)),
            estimates(difference, &format, |_| over),
        ];
        table::write_blocks(&mut page, std::slice::from_ref(&names), &columns);
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
        estimate.map_or_else(|| "-".to_string(), |it| format.with_error(it.mean, it.ci95))
    };
    for row in &tuned.rows {
        let title = row.group.title();
        if !title.is_empty() {
            let _ = writeln!(page, "\n{title}");
        }
        let metric = name_in_full(&tuned.metric().into(), &format);
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
    pretty(&Document {
        experiment: &tuned.experiment,
        policy: &request.policy,
        metric: &request.metric,
        larger: request.larger,
        over: &request.over,
        seeds: tuned.seeds,
        complete: tuned.complete,
        rows: tuned.rows.iter().map(RowOut::new).collect(),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    policy: &'a str,
    metric: &'a str,
    larger: bool,
    #[serde(serialize_with = "pairs")]
    over: &'a [(String, Vec<String>)],
    seeds: u32,
    complete: bool,
    rows: Vec<RowOut<'a>>,
}

#[derive(Serialize)]
struct RowOut<'a> {
    #[serde(serialize_with = "pairs")]
    axes: &'a [(String, AxisValue)],
    search_runs: usize,
    lines: Vec<LineOut<'a>>,
}

impl RowOut<'_> {
    fn new(row: &GridRow) -> RowOut<'_> {
        RowOut {
            axes: &row.group.axes,
            search_runs: row.search_runs,
            lines: row.lines.iter().map(|line| LineOut::new(row, line)).collect(),
        }
    }
}

#[derive(Serialize)]
struct LineOut<'a> {
    kind: &'static str,
    policy: &'a str,
    label: &'a str,
    #[serde(serialize_with = "pairs")]
    settings: &'a [(String, String)],
    clairvoyant: bool,
    rehearsed: bool,
    #[serde(flatten)]
    value: EstimateOut,
    over_best: Option<EstimateOut>,
}

impl LineOut<'_> {
    fn new<'a>(row: &GridRow, line: &'a GridLine) -> LineOut<'a> {
        LineOut {
            kind: kind(line.kind),
            policy: line.policy,
            label: &line.label,
            settings: &line.settings,
            clairvoyant: line.nature.clairvoyant,
            rehearsed: line.nature.rehearsed,
            value: line.estimate().into(),
            over_best: difference(row, line).map(|over| Some(over).into()),
        }
    }
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
