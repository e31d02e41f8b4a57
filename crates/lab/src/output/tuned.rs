//! Tuned policies as a table, as Markdown and as JSON.

use super::json::{Value, maybe, object, pretty, text};
use super::marks::{self, marked};
use super::numbers::Format;
use super::table::wrap;
use crate::results::stats::Estimate;
use crate::tune::{Objective, Tuned, TunedRow, space};
use std::fmt::Write;

const COLUMNS: usize = 5;

/// Tuned policies as plain text, 80 columns wide.
pub fn tuned_table(tuned: &Tuned) -> String {
    let mut page = String::new();
    wrap(&mut page, "", &heading(tuned));
    page.push('\n');
    let mut lines = vec![heads(tuned).to_vec()];
    lines.extend(tuned.rows.iter().map(|row| cells(tuned, row).to_vec()));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS).map(|column| width(column).unwrap_or(0)).collect();
    for line in &lines {
        let mut shown = format!("{:width$}", line[0], width = widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(shown, "  {cell:>width$}");
        }
        let _ = writeln!(page, "{}", shown.trim_end());
    }
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
    let rows = tuned.rows.iter().map(|row| row_value(tuned, row)).collect();
    pretty(&object([
        ("service", text(&asked.service.to_string())),
        ("arriving", text(&asked.arriving.to_string())),
        ("tasks", Value::Whole(asked.tasks)),
        ("cpus", Value::Whole(asked.cpus as u64)),
        ("objective", text(asked.objective.name())),
        ("seed", Value::Whole(asked.seed)),
        ("seeds", Value::Whole(u64::from(asked.seeds))),
        ("complete", Value::Flag(tuned.complete)),
        ("rows", Value::List(rows)),
    ]))
}

fn row_value(tuned: &Tuned, row: &TunedRow) -> Value {
    let settings = row.settings.iter().map(|(name, value)| (*name, text(value)));
    let runs = row.search_runs.map_or(Value::Null, |runs| Value::Whole(runs as u64));
    let mut entries = vec![
        ("policy", text(row.policy.name)),
        ("label", text(&row.label)),
        ("settings", object(settings)),
        ("clairvoyant", Value::Flag(row.nature.clairvoyant)),
        ("rehearsed", Value::Flag(row.nature.rehearsed)),
        ("search_runs", runs),
    ];
    let (optimum, rival) = (space::optimum(), space::rival());
    let percent_over = |label: &str| format!("percent_over_{label}");
    for (name, objective) in
        ["turnaround_ns_mean", "turnaround_ns_p99"].into_iter().zip(Objective::ALL)
    {
        let against = |label: &str| {
            let other = tuned.row(label).filter(|other| other.label != row.label)?;
            row.against(other, objective)
        };
        entries.push((
            name,
            object([
                ("mean".to_string(), maybe(row.turnaround(objective).map(|it| it.mean))),
                ("ci95".to_string(), maybe(row.turnaround(objective).and_then(|it| it.ci95))),
                (percent_over(&optimum), difference_value(against(&optimum))),
                (percent_over(&rival), difference_value(against(&rival))),
            ]),
        ));
    }
    object(entries)
}

fn difference_value(difference: Option<Estimate>) -> Value {
    let Some(difference) = difference else { return Value::Null };
    object([("mean", Value::Number(difference.mean)), ("ci95", maybe(difference.ci95))])
}

fn heading(tuned: &Tuned) -> String {
    let asked = &tuned.tuning;
    let cpus = if asked.cpus == 1 { "1 CPU".to_string() } else { format!("{} CPUs", asked.cpus) };
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
        let own = row.turnaround(objective).map_or_else(String::new, |it| {
            let error =
                it.ci95.map_or_else(String::new, |ci95| format!(" ± {}", format.number(ci95)));
            format.number(it.mean) + &error
        });
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
