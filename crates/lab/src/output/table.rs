//! The results as plain text for a terminal: policies as lines, 80 columns wide.

use super::align::{self, Side};
use super::marks::{self, marked};
use super::numbers::Format;
use crate::results::stats::Estimate;
use crate::results::verdict::{Check, ClaimResult, Measure, SizeResult};
use crate::results::{Group, Results};
use crate::spec::claim::Verdict;
use crate::spec::columns::{Column, column};
use crate::spec::sweep::AxisValue;
use std::fmt::Write;

const WIDTH: usize = 80;

/// What is shown if the file does not say, as far as there is data.
const DEFAULT: [&str; 8] = [
    "waiting_time_ns_mean",
    "turnaround_ns_mean",
    "response_time_ns_mean",
    "wakeup_latency_ns_mean",
    "wakeup_latency_ns_p99",
    "job_response_time_ns_p99",
    "deadline_miss_ratio",
    "context_switches",
];

/// The results as plain text: a table per combination of axis values with policies as lines, then
/// the claims. Every line but those with long names fits in 80 columns.
pub fn table(results: &Results) -> String {
    let mut text = String::new();
    let title = results.title.as_deref().unwrap_or(&results.experiment);
    let _ = writeln!(text, "{title}");
    wrap(&mut text, "", &results.question);
    let shown = shown_columns(results);
    let formats = shown.iter().map(|&column| format_of(results, column)).collect();
    let tables = Tables { results, shown, formats };
    let is_shown = |&group: &usize| results.groups[group].is_shown(&results.vms_shown);
    for group in (0..results.groups.len()).filter(is_shown) {
        tables.group(&mut text, group);
    }
    if !results.complete {
        text.push('\n');
        wrap(&mut text, "", &marks::interrupted(results));
    }
    let mut notes = marks::notes(results.policies.iter().map(|policy| policy.nature));
    if results.seeds > 1 {
        notes.push("± is half the 95 % confidence interval of the mean over seeds.");
    }
    if !notes.is_empty() {
        let _ = writeln!(text, "\n{}", notes.join("\n"));
    }
    if !results.claims.is_empty() {
        text += "\nClaims\n";
        for claim in &results.claims {
            write_claim(&mut text, claim);
        }
    }
    text
}

/// The columns that are shown.
fn shown_columns(results: &Results) -> Vec<Column> {
    if !results.shown.is_empty() {
        return results.shown.clone();
    }
    let has = |column: &Column| results.rows.iter().any(|row| row.estimate(*column).is_some());
    let mut shown: Vec<Column> =
        DEFAULT.into_iter().filter_map(column).filter(|column| has(column)).collect();
    // Averages of tasks that finished say little if many did not.
    let unfinished = column("unfinished").filter(|&column| {
        results.rows.iter().any(|row| row.values(column).iter().any(|&count| count > 0.0))
    });
    shown.extend(unfinished);
    shown
}

/// One format for a column in all tables, so that they can be compared.
pub(super) fn format_of(results: &Results, column: Column) -> Format {
    let estimates = results.rows.iter().filter_map(|row| row.estimate(column));
    let means: Vec<f64> = estimates.map(|estimate| estimate.mean).collect();
    Format::of(column.metric, &means)
}

struct Tables<'a> {
    results: &'a Results,
    shown: Vec<Column>,
    formats: Vec<Format>,
}

/// A column of numbers: `mean ± error` of each line under `head`, which is told how wide the cells
/// are.
pub(super) fn estimates(
    estimates: impl Iterator<Item = Option<Estimate>>,
    format: &Format,
    head: impl FnOnce(usize) -> Vec<String>,
) -> align::Column {
    let mut numbers = Vec::new();
    for estimate in estimates {
        numbers.push(estimate.map(|estimate| {
            // Runs that do not depend on the seed have no error to speak of.
            let error = estimate.ci95.filter(|&ci95| ci95 > 0.0);
            let error = error.map(|ci95| format!("± {}", format.number(ci95)));
            (format.number(estimate.mean), error.unwrap_or_default())
        }));
    }
    let pad = align::width(numbers.iter().flatten().map(|(_, error)| error));
    let cell = |number: Option<(String, String)>| match number {
        None => "-".to_string(),
        Some((mean, _)) if pad == 0 => mean,
        Some((mean, error)) => format!("{mean} {error:>pad$}"),
    };
    let cells: Vec<String> = numbers.into_iter().map(cell).collect();
    let head = head(align::width(&cells));
    align::Column::new(Side::Right, head, cells)
}

impl Tables<'_> {
    fn group(&self, text: &mut String, group: usize) {
        text.push('\n');
        heading(text, &self.results.groups[group], self.results.seeds);
        let policies = self.results.policies.iter();
        let names = names("policy", policies.map(|policy| marked(&policy.label, policy.nature)));
        let has_data = |number: &usize| {
            (0..self.results.policies.len()).any(|policy| {
                let row = self.results.row(group, policy);
                row.is_some_and(|row| row.estimate(self.shown[*number]).is_some())
            })
        };
        let asked_for = !self.results.shown.is_empty();
        let numbers = (0..self.shown.len()).filter(|number| asked_for || has_data(number));
        let all: Vec<align::Column> = numbers.map(|number| self.column(group, number)).collect();
        if all.is_empty() {
            text.push_str("nothing was measured\n");
        }
        write_blocks(text, &names, &all);
    }

    fn column(&self, group: usize, number: usize) -> align::Column {
        let (column, format) = (self.shown[number], &self.formats[number]);
        let policies = 0..self.results.policies.len();
        let of = |policy| self.results.row(group, policy)?.estimate(column);
        estimates(policies.map(of), format, |width| head(column, format, width))
    }
}

/// The name of a column in one line, with stat and unit.
pub(super) fn name_in_full(column: Column, format: &Format) -> String {
    let mut lines = head(column, format, usize::MAX);
    lines.retain(|line| !line.is_empty());
    lines.join(", ")
}

/// The name of a column in lines of about `width`, the last one with stat and unit.
pub(super) fn head(column: Column, format: &Format, width: usize) -> Vec<String> {
    let name = column.metric.to_string();
    let name = name.trim_end_matches("_ns").trim_end_matches("_per_s");
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(['_', '.']) {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    let stat = column.stat.map_or("", |stat| stat.name());
    let comma = if stat.is_empty() || format.unit.is_empty() { "" } else { ", " };
    lines.push(format!("{stat}{comma}{}", format.unit));
    lines
}

/// The column of names under what they name.
pub(super) fn names(head: &str, names: impl Iterator<Item = String>) -> align::Column {
    align::Column::new(Side::Left, vec![head.to_string()], names.collect())
}

/// The columns beside the names, below each other where they do not fit beside each other.
pub(super) fn write_blocks(text: &mut String, names: &align::Column, all: &[align::Column]) {
    let mut left = all;
    while !left.is_empty() {
        let mut width = names.width();
        let count = left
            .iter()
            .take_while(|column| {
                width += align::GAP + column.width();
                width <= WIDTH
            })
            .count();
        let (block, rest) = left.split_at(count.max(1));
        if left.len() < all.len() {
            text.push('\n');
        }
        let columns: Vec<_> = std::iter::once(names).chain(block).collect();
        text.push_str(&align::text(&align::lines(&columns, align::GAP)));
        left = rest;
    }
}

pub(super) fn heading(text: &mut String, group: &Group, seeds: u32) {
    if !group.axes.is_empty() {
        wrap(text, "", &group.title());
    }
    wrap(text, "", &facts(group, seeds).join("; "));
    for exception in &group.exceptions {
        wrap(text, "", &format!("but {exception}"));
    }
    text.push('\n');
}

/// What the runs of a group have in common.
pub(super) fn facts(group: &Group, seeds: u32) -> Vec<String> {
    let mut facts = vec![group.machine.clone()];
    facts.extend(group.loads.iter().cloned());
    facts.push(format!("costs: {}", group.costs));
    facts.extend(group.duration.iter().map(|duration| format!("duration {duration}")));
    facts.push(if seeds == 1 { "1 seed".to_string() } else { format!("{seeds} seeds") });
    facts
}

fn write_claim(text: &mut String, claim: &ClaimResult) {
    wrap(text, "  ", &format!("{}: {}", claim.id, super::claims::verdict(claim)));
    wrap(text, "    ", &claim.text);
    for (name, said) in [
        ("paper", &claim.paper),
        ("reading", &claim.reading),
        ("because", &claim.because),
        ("details", &claim.details),
    ] {
        if let Some(said) = said {
            wrap(text, "    ", &format!("{name}: {said}"));
        }
    }
    let mut last = "";
    for check in &claim.checks {
        expression(text, &check.expression, &mut last);
        wrap(text, "      ", &format!("{}{}", place(&check.axes), describe_check(check)));
    }
    if let Some(size) = &claim.size {
        let unit = claim.measures.first().map_or("", |measure| &measure.unit);
        wrap(text, "    ", &format!("size: {}", describe_size(size, unit)));
    }
    for measure in &claim.measures {
        expression(text, &measure.expression, &mut last);
        wrap(text, "      ", &format!("{}{}", place(&measure.axes), describe_measure(measure)));
    }
}

/// Adds `words` unless they stand above already.
fn expression<'a>(text: &mut String, words: &'a str, last: &mut &'a str) {
    if *last != words {
        wrap(text, "    ", words);
        *last = words;
    }
}

pub(super) fn place(axes: &[(String, AxisValue)]) -> String {
    let pairs: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
    if pairs.is_empty() { String::new() } else { format!("{}: ", pairs.join(", ")) }
}

/// The value of a measure with its interval and unit.
pub(super) fn describe_measure(measure: &Measure) -> String {
    let Some(value) = measure.value else { return "no data".to_string() };
    let shown = interval(&value, &Format::plain(&[value.mean]));
    format!("{shown} {}", measure.unit).trim_end().to_string()
}

/// A mean with its interval, if it has one.
pub(super) fn interval(value: &Estimate, format: &Format) -> String {
    let error = value.ci95.map(|ci95| format!(" ± {}", format.number(ci95)));
    format.number(value.mean) + &error.unwrap_or_default()
}

/// What the claim says the measure is, and whether it is.
pub(super) fn describe_size(size: &SizeResult, unit: &str) -> String {
    let format = Format::plain(&[size.low, size.high]);
    let verdict = size.verdict.map_or("no data", Verdict::words);
    let said = format!("{} to {} {unit}", format.number(size.low), format.number(size.high));
    format!("{}: {verdict}{}", said.trim_end(), enough(size.seeds_needed))
}

/// How many seeds would tell what so many do not, to two digits.
pub(super) fn enough(seeds: Option<u64>) -> String {
    let Some(seeds) = seeds else { return String::new() };
    let unit = 10_u64.pow(seeds.max(1).ilog10().saturating_sub(1));
    format!("; some {} seeds would tell", seeds.div_ceil(unit) * unit)
}

pub(super) fn describe_check(check: &Check) -> String {
    let Some(verdict) = check.verdict else { return "no data".to_string() };
    let sides = [check.left, check.right];
    let format = if check.is_time { Format::of_times(&sides) } else { Format::plain(&sides) };
    let margin = check.margin.map(|margin| format!(" ± {}", format.with_unit(margin)));
    let note = check.note.map(|note| format!(" ({note})")).unwrap_or_default();
    let note = note + &enough(check.seeds_needed);
    format!(
        "{}: {} against {}, difference {}{}{}",
        match verdict {
            Verdict::DoesNotHold => "no",
            Verdict::Undecided => "undecided",
            _ => "yes",
        },
        format.with_unit(check.left),
        format.with_unit(check.right),
        format.with_unit(check.difference),
        margin.unwrap_or_default(),
        note,
    )
}

/// Adds `words` in lines of at most [`WIDTH`], all behind `indent`, further ones two deeper.
pub(super) fn wrap(text: &mut String, indent: &str, words: &str) {
    let mut line = indent.to_string();
    let mut empty = true;
    for word in words.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = format!("{indent}  ");
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    let _ = writeln!(text, "{line}");
}
