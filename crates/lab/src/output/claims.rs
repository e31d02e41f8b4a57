//! The claims of a paper, examined by several experiments, without the rows behind them.

use super::numbers::Format;
use super::table::{describe_check, describe_measure, describe_size, enough, place, wrap};
use crate::results::Results;
use crate::results::stats::Estimate;
use crate::results::verdict::{Check, ClaimResult, Measure};
use crate::spec::claim::Verdict;
use std::fmt::Write;

/// For a terminal: the claims of each experiment, and how many came out how.
pub fn claims_text(all: &[Results]) -> String {
    let mut text = String::new();
    for results in all.iter().filter(|results| !results.claims.is_empty()) {
        let title = results.title.as_deref().unwrap_or(&results.experiment);
        wrap(&mut text, "", &format!("{title} ({}, {} seeds)", results.experiment, results.seeds));
        for claim in &results.claims {
            write_short(&mut text, claim);
        }
        text.push('\n');
    }
    text + &counts(all)
}

fn write_short(text: &mut String, claim: &ClaimResult) {
    wrap(text, "  ", &format!("{}: {}", claim.id, verdict(claim)));
    wrap(text, "    ", &claim.text);
    let found = Some(found(claim).join("; ")).filter(|found| !found.is_empty());
    let unit = claim.measures.first().map_or("", |measure| &measure.unit);
    let size = claim.size.map(|size| describe_size(&size, unit));
    let lines = [
        ("paper", claim.paper.as_deref()),
        ("size", size.as_deref()),
        ("here", found.as_deref()),
        ("reading", claim.reading.as_deref()),
        ("because", claim.because.as_deref()),
        ("details", claim.details.as_deref()),
    ];
    for (name, said) in lines {
        if let Some(said) = said {
            wrap(text, "    ", &format!("{name}: {said}"));
        }
    }
}

/// For a page: what the papers claim and what this project does, each a table with a line for each
/// claim, and below them what takes more than a phrase.
pub fn claims_markdown(all: &[Results]) -> String {
    let (papers, own) = apart(all);
    let mut text = String::new();
    if !papers.is_empty() {
        text.push_str("| claim | paper | here | verdict | why |\n|---|---|---|---|---|\n");
        for claim in &papers {
            let paper = claim.paper.as_deref().unwrap_or_default();
            row(&mut text, [&name(claim), paper, &in_a_phrase(claim), &verdict(claim), why(claim)]);
        }
        let _ = write!(text, "\n{}", counted(&papers, PAPERS));
    }
    if !own.is_empty() {
        if !papers.is_empty() {
            text.push_str("\nWhat this project adds:\n\n");
        }
        text.push_str("| claim | here | verdict | why |\n|---|---|---|---|\n");
        for claim in &own {
            row(&mut text, [&name(claim), &in_a_phrase(claim), &verdict(claim), why(claim)]);
        }
        let _ = write!(text, "\n{}", counted(&own, OWN));
    }
    let entries: String = papers.iter().chain(&own).map(|claim| entry(claim)).collect();
    if !entries.is_empty() {
        let _ = write!(text, "\nEach claim:\n\n{entries}");
    }
    text
}

/// The claims of papers, and the others.
fn apart(all: &[Results]) -> (Vec<&ClaimResult>, Vec<&ClaimResult>) {
    let claims = all.iter().flat_map(|results| &results.claims);
    claims.partition(|claim| claim.paper.is_some())
}

/// What claims are called: one, and several.
type Called = (&'static str, &'static str);
const PAPERS: Called = ("claim of a paper", "claims of papers");
const OWN: Called = ("claim of this project", "claims of this project");

fn row<const N: usize>(text: &mut String, cells: [&str; N]) {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn name(claim: &ClaimResult) -> String {
    format!("{}: {}", claim.id, claim.text)
}

/// What explains the verdict: the reason, or the reading under which it was found.
fn why(claim: &ClaimResult) -> &str {
    claim.because.as_deref().or(claim.reading.as_deref()).unwrap_or_default()
}

/// What was measured: a figure with its interval, or the lowest and the highest of several.
fn in_a_phrase(claim: &ClaimResult) -> String {
    let values = || claim.measures.iter().filter_map(|it| it.value);
    let by_mean = |a: &Estimate, b: &Estimate| a.mean.total_cmp(&b.mean);
    match claim.measures.as_slice() {
        [] => found(claim).into_iter().next().unwrap_or_default(),
        [measure] => describe_measure(measure),
        [first, ..] => match (values().min_by(by_mean), values().max_by(by_mean)) {
            (Some(low), Some(high)) => {
                let format = Format::plain(&[low.mean, high.mean]);
                let unit = &first.unit;
                let [low, high] = [low, high].map(|it| format.interval(it.mean, it.ci95));
                // Not where they would be told apart by digits that are not shown.
                let range = if low == high { low } else { format!("{low} to {high}") };
                format!("{range} {unit}").trim_end().to_string()
            }
            _ => "no data".to_string(),
        },
    }
}

/// What the tables do not say of a claim, as items of a list; nothing if they say all.
fn entry(claim: &ClaimResult) -> String {
    let mut items = String::new();
    if let Some(reading) = claim.reading.as_deref().filter(|reading| *reading != why(claim)) {
        let _ = writeln!(items, "  - reading: {reading}");
    }
    if let Some(details) = &claim.details {
        let _ = writeln!(items, "  - {details}");
    }
    if let Some(size) = &claim.size {
        let unit = claim.measures.first().map_or("", |measure| &measure.unit);
        let _ = writeln!(items, "  - size: {}", describe_size(size, unit));
    }
    match claim.measures.as_slice() {
        [measure] => {
            let place = place(&measure.axes);
            if !place.is_empty() {
                let _ = writeln!(items, "  - at: {}", place.trim_end_matches(": "));
            }
        }
        measures => {
            for measure in measures {
                let place = place(&measure.axes);
                let _ = writeln!(items, "  - here: {place}{}", describe_measure(measure));
            }
        }
    }
    items += &comparisons(claim);
    if items.is_empty() { items } else { format!("- {}\n{items}", claim.id) }
}

/// The comparisons of a claim in symbols, with what became of each.
fn comparisons(claim: &ClaimResult) -> String {
    let mut items = String::new();
    let mut told: Vec<&str> = Vec::new();
    for Check { expression, .. } in &claim.checks {
        if told.contains(&expression.as_str()) {
            continue;
        }
        told.push(expression);
        let rows: Vec<&Check> =
            claim.checks.iter().filter(|check| check.expression == *expression).collect();
        let all_alike =
            rows.iter().all(|check| check.verdict == rows[0].verdict && !tells_sides(claim, check));
        let found = match rows.as_slice() {
            [check] => found_by(claim, check),
            [check, ..] if all_alike => found_by(claim, check),
            rows => {
                let row = |check: &&Check| {
                    format!("\n    - {}{}", place(&check.axes), found_by(claim, check))
                };
                rows.iter().map(row).collect()
            }
        };
        let space = if found.starts_with('\n') { "" } else { " " };
        let _ = writeln!(items, "  - {}:{space}{found}", code(expression));
    }
    items
}

/// An expression as Markdown's code, in which labels may stand in backticks.
fn code(expression: &str) -> String {
    let ticks = if expression.contains('`') { "``" } else { "`" };
    format!("{ticks}{expression}{ticks}")
}

/// What became of a comparison in one row.
fn found_by(claim: &ClaimResult, check: &Check) -> String {
    match check.verdict {
        Some(verdict) if !tells_sides(claim, check) => verdict.to_string(),
        _ => describe_check(check),
    }
}

/// Whether to say what a comparison compares: not where the measured value says it, unless it was
/// not enough.
fn tells_sides(claim: &ClaimResult, check: &Check) -> bool {
    claim.measures.is_empty() || check.verdict == Some(Verdict::Undecided)
}

/// What was measured, as the file asks for it; otherwise how many comparisons hold.
fn found(claim: &ClaimResult) -> Vec<String> {
    if !claim.measures.is_empty() {
        let one = |it: &Measure| format!("{}{}", place(&it.axes), describe_measure(it));
        return claim.measures.iter().map(one).collect();
    }
    let decided = claim.checks.iter().filter(|it| it.verdict.is_some()).count();
    if decided == 0 {
        return Vec::new();
    }
    let holding = claim.checks.iter().filter(|it| it.verdict == Some(Verdict::Holds)).count();
    vec![format!("{holding} of {decided} comparisons hold")]
}

/// The verdicts on a claim and on its size, in a phrase.
pub(super) fn verdict(claim: &ClaimResult) -> String {
    let Some(found) = claim.verdict else { return "not decided: left out".to_string() };
    let mut words = found.to_string();
    if found == Verdict::Undecided {
        words += &enough(claim.seeds_needed());
    }
    // Of a claim that does not hold the size says nothing more.
    let size = claim.size.and_then(|size| size.verdict).filter(|_| found != Verdict::DoesNotHold);
    words += match size {
        Some(Verdict::Holds) => "; its size, too",
        Some(Verdict::Undecided) => "; its size is undecided",
        Some(_) => "; its size does not",
        None => "",
    };
    if !claim.is_unexpected() {
        return words;
    }
    let size = claim.size.filter(|size| size.expected != Verdict::Holds);
    let size = size.map(|size| format!("; of its size: {}", size.expected)).unwrap_or_default();
    format!("{words} (expected: {}{size})", claim.expected)
}

/// How many claims came out how, apart for those of papers and others, and how many otherwise than
/// their files expect.
fn counts(all: &[Results]) -> String {
    let (papers, own) = apart(all);
    let both = [(papers, PAPERS), (own, OWN)];
    let some = both.iter().filter(|(claims, _)| !claims.is_empty());
    some.map(|(claims, called)| counted(claims, *called)).collect()
}

fn counted(claims: &[&ClaimResult], (one, several): Called) -> String {
    let tally = |found: &dyn Fn(&ClaimResult) -> Option<Option<Verdict>>| {
        let verdicts = Verdict::ALL.map(Some).into_iter().chain([None]);
        let counts = verdicts.filter_map(|verdict| {
            let number = claims.iter().filter(|claim| found(claim) == Some(verdict)).count();
            let words = verdict.map_or("not decided", Verdict::words);
            (number > 0).then(|| format!("{words}: {number}"))
        });
        counts.collect::<Vec<_>>().join("; ")
    };
    let number = claims.len();
    let what = if number == 1 { one } else { several };
    let mut text = format!("{number} {what}. {}.", tally(&|claim| Some(claim.verdict)));
    let sizes = tally(&|claim| claim.size.map(|size| size.verdict));
    if !sizes.is_empty() {
        let _ = write!(text, " Their sizes, where they give one: {sizes}.");
    }
    match claims.iter().filter(|claim| claim.is_unexpected()).count() {
        0 => {}
        number => {
            let _ = write!(text, " {number} came out otherwise than expected.");
        }
    }
    text + "\n"
}
