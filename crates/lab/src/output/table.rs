//! The results as plain text for a terminal: policies as lines, 80 columns wide.

use super::align::{self, Side};
use super::marks::{self, marked};
use super::numbers::Format;
use crate::results::stats::Estimate;
use crate::results::verdict::{Check, ClaimResult, Measure, SizeResult};
use crate::results::{Group, PolicyUsed, Results, Row, measured};
use crate::spec::claim::Verdict;
use crate::spec::columns::{Column, column, shown_by_default};
use crate::spec::parts::{ALL, TASK, WORKLOAD};
use crate::spec::report::Asked;
use crate::spec::sweep::AxisValue;
use anysched_measure::{Apart, Metric};
use std::collections::BTreeSet;
use std::fmt::Write;

const WIDTH: usize = 80;

/// The results as plain text: a table per combination of axis values with policies as lines, then
/// the claims. Every line but those with long names fits in 80 columns.
pub fn table(results: &Results) -> String {
    let mut text = String::new();
    let title = results.title.as_deref().unwrap_or(&results.experiment);
    let _ = writeln!(text, "{title}");
    wrap(&mut text, "", &results.question);
    let shown = shown_columns(results);
    let formats = shown.iter().map(|asked| format_of(results, asked.column)).collect();
    let tables = Tables { results, shown, formats };
    for parted in tables.parted() {
        tables.groups(&mut text, &parted);
    }
    if !results.complete {
        text.push('\n');
        wrap(&mut text, "", &marks::interrupted(results));
    }
    for note in tables.without_data() {
        text.push('\n');
        wrap(&mut text, "", &note);
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
fn shown_columns(results: &Results) -> Vec<Asked> {
    if !results.shown.is_empty() {
        return results.shown.clone();
    }
    let has = |column: &Column| results.rows.iter().any(|row| row.estimate(*column).is_some());
    let mut shown: Vec<Column> = shown_by_default().filter(|column| has(column)).collect();
    // Averages of tasks that finished say little if many did not.
    let unfinished = column("unfinished").filter(|&column| {
        results.rows.iter().any(|row| row.values(column).iter().any(|&count| count > 0.0))
    });
    shown.extend(unfinished);
    shown.into_iter().map(Asked::from).collect()
}

/// One format for a column in all tables, so that they can be compared.
pub(super) fn format_of(results: &Results, column: Column) -> Format {
    let estimates = results.rows.iter().filter_map(|row| row.estimate(column));
    let means: Vec<f64> = estimates.map(|estimate| estimate.mean).collect();
    Format::of(column.metric, &means)
}

struct Tables<'a> {
    results: &'a Results,
    shown: Vec<Asked>,
    formats: Vec<Format>,
}

/// A column of numbers: `mean ± error` of each line under `head`, which is told how wide the cells
/// are.
pub(super) fn estimates(
    estimates: impl Iterator<Item = Option<Estimate>>,
    format: &Format,
    head: impl FnOnce(usize) -> Vec<String>,
) -> align::Column {
    let parts: Vec<_> = estimates
        .map(|it| {
            it.map_or_else(|| ("-".to_string(), String::new()), |it| format.parts(it.mean, it.ci95))
        })
        .collect();
    let means = align::at_points(parts.iter().map(|(mean, _)| mean.as_str()));
    let errors = align::at_points(parts.iter().map(|(_, error)| error.as_str()));
    let pad = align::width(&errors);
    let cell = |(mean, error): (String, String)| match pad {
        0 => mean,
        _ => format!("{mean} {error:>pad$}"),
    };
    let cells: Vec<String> = means.into_iter().zip(errors).map(cell).collect();
    let head = head(align::width(&cells));
    align::Column::new(Side::Right, head, cells)
}

/// The lines of a table for a policy, at most; the files have all.
const MOST_PARTS: usize = 50;

impl Tables<'_> {
    /// The groups that are shown, those together that differ in nothing but the workload or task.
    fn parted(&self) -> Vec<Vec<usize>> {
        let Results { groups, rows_shown, .. } = self.results;
        let shown = (0..groups.len()).filter(|group| rows_shown.include(&groups[*group].axes));
        let mut tables: Vec<Vec<usize>> = Vec::new();
        for group in shown {
            match tables.last_mut() {
                Some(last) if !is_of_all(&groups[group]) => last.push(group),
                _ => tables.push(vec![group]),
            }
        }
        tables
    }

    /// A table of groups that differ in nothing but the workload or task: of all of them first.
    fn groups(&self, text: &mut String, groups: &[usize]) {
        text.push('\n');
        let mut described = self.results.groups[groups[0]].clone();
        described.axes.retain(|(axis, _)| !is_apart(axis));
        heading(text, &described, self.results.seeds);
        let parts = &groups[..groups.len().min(MOST_PARTS + 1)];
        let policies = 0..self.results.policies.len();
        let lines: Vec<(usize, usize)> = policies
            .flat_map(|policy| parts.iter().map(move |group| (*group, policy)))
            .filter(|(group, policy)| parts.len() == 1 || self.row(*group, *policy).is_some())
            .collect();
        let mut names = vec![self.policies(&lines)];
        if parts.len() > 1 {
            names.push(self.parts(&lines));
        }
        let has_data = |number: &usize| {
            lines.iter().any(|(group, policy)| self.estimate(*group, *policy, *number).is_some())
        };
        let asked_for = !self.results.shown.is_empty();
        let numbers = (0..self.shown.len()).filter(|number| asked_for || has_data(number));
        let all: Vec<align::Column> = numbers.map(|number| self.column(&lines, number)).collect();
        if all.is_empty() {
            text.push_str("nothing was measured\n");
        }
        write_blocks(text, &names, &all);
        if parts.len() < groups.len() {
            let more = groups.len() - parts.len();
            wrap(text, "", &format!("and {more} more, which the files of --out have"));
        }
    }

    /// Of each metric that was asked for and that no row has, what it is, and what there is.
    fn without_data(&self) -> Vec<String> {
        let has =
            |column: Column| self.results.rows.iter().any(|row| row.estimate(column).is_some());
        let lacking: BTreeSet<Metric> = self
            .shown
            .iter()
            .filter(|asked| !has(asked.column))
            .map(|it| it.column.metric)
            .collect();
        let known = measured(&self.results.rows);
        let note = |metric: Metric| {
            let alike = known.iter().filter(|other| {
                other.unit() == metric.unit() && other.is_distribution() == metric.is_distribution()
            });
            let alike: Vec<String> = alike.map(|other| format!("{other}")).collect();
            let instead = match alike.is_empty() {
                true => String::new(),
                false => format!(" There is {}.", alike.join(", ")),
            };
            format!("No data of {metric} ({}).{instead}", metric.what().trim_end_matches('.'))
        };
        lacking.into_iter().map(note).collect()
    }

    /// The row of a group and a policy. A workload or task may have none.
    fn row(&self, group: usize, policy: usize) -> Option<&Row> {
        let row = self.results.row(group, policy)?;
        let is_empty = row.runs.iter().all(|run| run.values().is_empty());
        Some(row).filter(|_| !is_empty)
    }

    fn estimate(&self, group: usize, policy: usize, number: usize) -> Option<Estimate> {
        let asked = &self.shown[number];
        if !(asked.of.is_empty() || is_of_all(&self.results.groups[group])) {
            return None;
        }
        self.results.estimate(group, policy, asked)
    }

    /// The name of the policy where its lines begin.
    fn policies(&self, lines: &[(usize, usize)]) -> align::Column {
        let name = |(number, (_, policy)): (usize, &(usize, usize))| {
            let before = number.checked_sub(1).map(|before| lines[before].1);
            let PolicyUsed { label, nature, .. } = &self.results.policies[*policy];
            if before == Some(*policy) { String::new() } else { marked(label, *nature) }
        };
        names("policy", lines.iter().enumerate().map(name))
    }

    /// Which tasks lines are of.
    fn parts(&self, lines: &[(usize, usize)]) -> align::Column {
        let Apart { loads, tasks } = self.results.rows_shown.apart;
        let name = |(group, _): &(usize, usize)| {
            let axes = &self.results.groups[*group].axes;
            let apart = axes.iter().filter(|(axis, _)| is_apart(axis));
            let mut values = apart.map(|(_, value)| value.to_string());
            values.find(|value| value != ALL).unwrap_or(ALL.to_string())
        };
        let axes = [(loads, WORKLOAD), (tasks, TASK)];
        let axes: Vec<&str> =
            axes.into_iter().filter(|(is, _)| *is).map(|(_, axis)| axis).collect();
        names(&axes.join("/"), lines.iter().map(name))
    }

    fn column(&self, lines: &[(usize, usize)], number: usize) -> align::Column {
        let (asked, format) = (&self.shown[number], &self.formats[number]);
        let of = |(group, policy): &(usize, usize)| self.estimate(*group, *policy, number);
        estimates(lines.iter().map(of), format, |width| head(asked, format, width))
    }
}

/// Whether an axis parts the tasks of a machine.
fn is_apart(axis: &str) -> bool {
    [WORKLOAD, TASK].contains(&axis)
}

/// Whether the rows of a group are of all tasks of a machine.
fn is_of_all(group: &Group) -> bool {
    group.axes.iter().all(|(axis, value)| !is_apart(axis) || value.to_string() == ALL)
}

/// The name of a column in one line, with stat and unit.
pub(super) fn name_in_full(asked: &Asked, format: &Format) -> String {
    let mut lines = head(asked, format, usize::MAX);
    lines.retain(|line| !line.is_empty());
    lines.join(", ")
}

/// The name of a column in lines of about `width`, the last one with stat and unit.
pub(super) fn head(asked: &Asked, format: &Format, width: usize) -> Vec<String> {
    let Asked { of, column } = asked;
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
    let parts = of.iter().map(|(axis, value)| match axis.as_str() {
        TASK => format!("task {value}"),
        _ => value.clone(),
    });
    lines.splice(0..0, parts);
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
pub(super) fn write_blocks(text: &mut String, names: &[align::Column], all: &[align::Column]) {
    let mut left = all;
    while !left.is_empty() {
        let mut width: usize = names.iter().map(|column| column.width() + align::GAP).sum();
        width -= align::GAP;
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
        let columns: Vec<_> = names.iter().chain(block).collect();
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
    let shown = Format::plain(&[value.mean]).interval(value.mean, value.ci95);
    format!("{shown} {}", measure.unit).trim_end().to_string()
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
