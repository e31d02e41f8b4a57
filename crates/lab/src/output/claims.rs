//! The claims of a paper, examined by several experiments, without the rows behind them.

use super::numbers::Format;
use super::table::{describe_check, describe_measure, place, wrap};
use crate::results::Results;
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
    let found = found(claim).join("; ");
    let lines = [
        ("paper", claim.paper.as_deref()),
        ("here", Some(found.as_str()).filter(|found| !found.is_empty())),
        ("reading", claim.reading.as_deref()),
        ("because", claim.because.as_deref()),
    ];
    for (name, said) in lines {
        if let Some(said) = said {
            wrap(text, "    ", &format!("{name}: {said}"));
        }
    }
}

/// For a page: a table with a line for each claim, and below it what takes more than a phrase.
pub fn claims_markdown(all: &[Results]) -> String {
    let mut text = String::from("| claim | the paper | here | verdict |\n|---|---|---|---|\n");
    let claims = || all.iter().flat_map(|results| &results.claims);
    for claim in claims() {
        let cells = [
            format!("{}: {}", claim.id, claim.text),
            claim.paper.clone().unwrap_or_default(),
            in_a_phrase(claim),
            verdict(claim),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let _ = write!(text, "\n{}", counts(all));
    let notes: String = claims().map(notes).collect();
    if !notes.is_empty() {
        let _ = write!(text, "\nReadings, reasons and each figure:\n\n{notes}");
    }
    text
}

/// What was measured: a figure, or the range of several.
fn in_a_phrase(claim: &ClaimResult) -> String {
    let means = || claim.measures.iter().filter_map(|it| Some(it.value?.mean));
    match claim.measures.as_slice() {
        [] => found(claim).into_iter().next().unwrap_or_default(),
        [measure] => describe_measure(measure),
        [first, rest @ ..] if rest.iter().all(|it| it.unit == first.unit) => {
            let range = [means().fold(f64::NAN, f64::min), means().fold(f64::NAN, f64::max)];
            let format = Format::plain(&range);
            let [low, high] = range.map(|mean| format.number(mean));
            let range = if low == high { low } else { format!("{low} to {high}") };
            format!("{range} {}", first.unit).trim_end().to_string()
        }
        several => format!("{} figures", several.len()),
    }
}

/// What a cell does not say of a claim, as items of a list; nothing if it says all.
fn notes(claim: &ClaimResult) -> String {
    let mut notes = String::new();
    if let Some(reading) = &claim.reading {
        let _ = writeln!(notes, "  - reading: {reading}");
    }
    if let Some(because) = &claim.because {
        let _ = writeln!(notes, "  - why: {because}");
    }
    match claim.measures.as_slice() {
        [measure] => {
            let place = place(&measure.axes);
            if let Some(place) = place.strip_suffix(": ") {
                let _ = writeln!(notes, "  - at: {place}");
            }
        }
        _ => {
            let phrase = in_a_phrase(claim);
            for figure in found(claim).iter().filter(|figure| **figure != phrase) {
                let _ = writeln!(notes, "  - here: {figure}");
            }
        }
    }
    if notes.is_empty() { notes } else { format!("- {}\n{notes}", claim.id) }
}

/// What was measured, as the file asks for it; otherwise how many comparisons hold, and the first
/// one that does not.
fn found(claim: &ClaimResult) -> Vec<String> {
    if !claim.measures.is_empty() {
        let one = |it: &Measure| format!("{}{}", place(&it.axes), describe_measure(it));
        return claim.measures.iter().map(one).collect();
    }
    let decided: Vec<&Check> = claim.checks.iter().filter(|it| it.holds.is_some()).collect();
    if decided.is_empty() {
        return Vec::new();
    }
    let holding = decided.iter().filter(|it| it.holds == Some(true)).count();
    let mut found = vec![format!("{holding} of {} comparisons hold", decided.len())];
    found.extend(
        decided
            .iter()
            .find(|it| it.holds == Some(false))
            .map(|it| format!("{}`{}`: {}", place(&it.axes), it.expression, describe_check(it))),
    );
    found
}

fn verdict(claim: &ClaimResult) -> String {
    match claim.verdict {
        None => "not decided: left out".to_string(),
        Some(verdict) if claim.is_as_expected() => verdict.to_string(),
        Some(verdict) => format!("{verdict} (expected: {})", claim.expected),
    }
}

/// How many claims came out how, and how many otherwise than their files expect.
fn counts(all: &[Results]) -> String {
    let claims: Vec<&ClaimResult> = all.iter().flat_map(|results| &results.claims).collect();
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let mut parts = Vec::new();
    for verdict in Verdict::ALL.map(Some).into_iter().chain([None]) {
        let words = verdict.map_or("not decided", Verdict::words);
        match count(verdict) {
            0 => {}
            number => parts.push(format!("{words}: {number}")),
        }
    }
    let others = claims.iter().filter(|it| it.verdict.is_some() && !it.is_as_expected()).count();
    let surprise = match others {
        0 => String::new(),
        number => format!(" {number} came out otherwise than expected."),
    };
    format!("{} claims. {}.{surprise}\n", claims.len(), parts.join("; "))
}
