//! Tuned policies as a table, as Markdown and as JSON.

use super::align;
use super::json::{EstimateOut, pairs, pretty};
use super::marks::{self, marked};
use super::numbers::Format;
use super::table::wrap;
use crate::results::stats::Estimate;
use crate::tune::{Objective, Tuned, TunedRow, space};
use anysched_host::cpus_in_words;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt::Write;

const COLUMNS: usize = 5;

/// Tuned policies as plain text, 80 columns wide.
pub fn tuned_table(tuned: &Tuned) -> String {
    let mut page = String::new();
    wrap(&mut page, "", &heading(tuned));
    page.push('\n');
    let mut lines = vec![heads(tuned)];
    lines.extend(tuned.rows.iter().map(|row| cells(tuned, row)));
    page.push_str(&align::rows(&lines, 1));
    page.push_str("\nparameters\n");
    for row in tuned.rows.iter().filter(|row| !row.settings.is_empty()) {
        wrap(&mut page, "  ", &format!("{}: {}", row.label, row.parameters()));
    }
    notes(&mut page, tuned);
    page
}

/// Tuned policies for a page of documentation.
pub fn tuned_markdown(tuned: &Tuned) -> String {
    let mut page = format!("{}\n\n", heading(tuned));
    let heads = heads(tuned);
    let _ = writeln!(page, "| {} | parameters |\n|---|--:|--:|--:|--:|---|", heads.join(" | "));
    for row in &tuned.rows {
        let cells = cells(tuned, row).map(|cell| cell.replace('*', "\\*"));
        let parameters = match row.parameters() {
            none if none.is_empty() => none,
            some => format!("`{some}`"),
        };
        let _ = writeln!(page, "| {} | {parameters} |", cells.join(" | "));
    }
    let mut told = String::new();
    notes(&mut told, tuned);
    page.push_str(&told.replace('*', "\\*").replace('\n', "\n\n").replace("\n\n\n\n", "\n\n"));
    format!("{}\n", page.trim_end())
}

/// Tuned policies for programs: what was asked for, `rows`, and whether all are there. A row has
/// `policy`, `label`, `settings`, `clairvoyant`, `rehearsed`, `search_runs` (`null`: not tuned)
/// and, for `turnaround_ns_mean` and `turnaround_ns_p99`, `mean`, `ci95` and the paired difference
/// from the optimum (`srpt`) and from the policy to beat without knowledge (`mlfq`) in percent.
pub fn tuned_json(tuned: &Tuned) -> String {
    let asked = &tuned.tuning;
    pretty(&Document {
        service: asked.service.to_string(),
        arriving: asked.arriving.to_string(),
        tasks: asked.tasks,
        cpus: asked.cpus,
        objective: asked.objective.name(),
        seed: asked.seed,
        seeds: asked.seeds,
        complete: tuned.complete,
        rows: tuned.rows.iter().map(|row| RowOut::new(tuned, row)).collect(),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    service: String,
    arriving: String,
    tasks: u64,
    cpus: usize,
    objective: &'static str,
    seed: u64,
    seeds: u32,
    complete: bool,
    rows: Vec<RowOut<'a>>,
}

#[derive(Serialize)]
struct RowOut<'a> {
    policy: &'static str,
    label: &'a str,
    #[serde(serialize_with = "pairs")]
    settings: &'a [(&'static str, String)],
    clairvoyant: bool,
    rehearsed: bool,
    search_runs: Option<usize>,
    turnaround_ns_mean: TurnaroundOut,
    turnaround_ns_p99: TurnaroundOut,
}

impl RowOut<'_> {
    fn new<'a>(tuned: &Tuned, row: &'a TunedRow) -> RowOut<'a> {
        RowOut {
            policy: row.policy.name,
            label: &row.label,
            settings: &row.settings,
            clairvoyant: row.nature.clairvoyant,
            rehearsed: row.nature.rehearsed,
            search_runs: row.search_runs,
            turnaround_ns_mean: TurnaroundOut::new(tuned, row, Objective::Mean),
            turnaround_ns_p99: TurnaroundOut::new(tuned, row, Objective::P99),
        }
    }
}

#[derive(Serialize)]
struct TurnaroundOut {
    #[serde(flatten)]
    value: EstimateOut,
    #[serde(flatten)]
    over: Over,
}

/// By how much it is over that of others, in percent, by their labels.
struct Over([(String, Option<EstimateOut>); 2]);

impl Serialize for Over {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (label, over) in &self.0 {
            map.serialize_entry(&format!("percent_over_{label}"), over)?;
        }
        map.end()
    }
}

impl TurnaroundOut {
    fn new(tuned: &Tuned, row: &TunedRow, objective: Objective) -> TurnaroundOut {
        let over = |label: String| {
            let other = tuned.row(&label).filter(|other| other.label != row.label);
            let difference = other.and_then(|other| row.against(other, objective));
            (label, difference.map(|over| Some(over).into()))
        };
        TurnaroundOut {
            value: row.turnaround(objective).into(),
            over: Over([over(space::optimum()), over(space::rival())]),
        }
    }
}

fn heading(tuned: &Tuned) -> String {
    let asked = &tuned.tuning;
    let cpus = cpus_in_words(asked.cpus);
    format!(
        "{}, {}, {} tasks, {cpus}; turnaround, tuned for its {} in {} runs with {} seeds, compared \
         with {} others",
        asked.service,
        asked.arriving,
        asked.tasks,
        asked.objective.name(),
        tuned.search_runs(),
        asked.seeds,
        asked.seeds,
    )
}

fn format_of(tuned: &Tuned, objective: Objective) -> Format {
    let values = tuned.rows.iter().filter_map(|row| row.turnaround(objective));
    Format::of_times(&values.map(|estimate| estimate.mean).collect::<Vec<_>>())
}

fn heads(tuned: &Tuned) -> [String; COLUMNS] {
    let unit =
        |objective| format!("{}, {}", Objective::name(objective), format_of(tuned, objective).unit);
    let over = format!("% over {}", space::optimum());
    ["policy".to_string(), unit(Objective::Mean), over.clone(), unit(Objective::P99), over]
}

fn cells(tuned: &Tuned, row: &TunedRow) -> [String; COLUMNS] {
    let name = marked(&row.label, row.nature);
    let [mean, p99] = Objective::ALL.map(|objective| {
        let format = format_of(tuned, objective);
        let own = row
            .turnaround(objective)
            .map_or_else(String::new, |it| format.interval(it.mean, it.ci95));
        let optimum = tuned.row(&space::optimum()).filter(|other| other.label != row.label);
        let over = optimum.and_then(|other| row.against(other, objective));
        (own, over.map_or_else(String::new, percent))
    });
    [name, mean.0, mean.1, p99.0, p99.1]
}

/// `+3.2 ± 0.1`.
fn percent(difference: Estimate) -> String {
    let error = difference.ci95.map_or_else(String::new, |ci95| format!(" ± {ci95:.1}"));
    format!("{:+.1}{error}", difference.mean).replace("-0.0 ", "+0.0 ")
}

fn notes(page: &mut String, tuned: &Tuned) {
    page.push('\n');
    let rival = space::rival();
    if let Some(blind) = tuned.row(&rival) {
        let tuned_blind = |row: &&TunedRow| row.search_runs.is_some() && !row.nature.clairvoyant;
        for row in tuned.rows.iter().filter(tuned_blind).filter(|row| row.label != rival) {
            let [mean, p99] = Objective::ALL
                .map(|objective| row.against(blind, objective).map_or_else(String::new, percent));
            let words = format!("{} against {rival}: mean {mean} %, p99 {p99} %", row.label);
            let _ = writeln!(page, "{words}");
        }
    }
    for note in marks::notes(tuned.rows.iter().map(|row| row.nature)) {
        let _ = writeln!(page, "{note}");
    }
    let _ = writeln!(page, "± is half the 95 % confidence interval; differences are paired.");
    if !tuned.complete {
        let _ = writeln!(page, "Cancelled: rows that were not complete are left out.");
    }
}
