//! `anysched calibrate`: what scheduling costs in a real kernel, for simulations of it.

use crate::args::{CalibrateArgs, CalibrateFormat};
use crate::boot::unknown;
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use anysched_core::Machine;
use anysched_host::{Calibration, Figure, Host, HostInfo, MeasuredCosts, Setup, Subject};
use anysched_lab::Experiment;
use anysched_lab::output::align;
use anysched_policies::{POLICIES, policy};
use std::fmt::Write;

pub fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let host = hosts::open(args.host);
    let measured = host.calibrate(&subjects(args, &*host)?)?;
    output::print(&match args.format {
        CalibrateFormat::Table => table(args.host, &measured),
        CalibrateFormat::Markdown => markdown(&measured),
        CalibrateFormat::Toml => toml(args, &measured),
    })
}

/// The schedulers that are measured: those of the experiment or of `--policy`.
fn subjects(args: &CalibrateArgs, host: &dyn Host) -> Result<Vec<Subject>, Failure> {
    if let Some(file) = &args.file {
        let experiment = Experiment::load(file).map_err(Failure::pointing)?;
        // Not planned: it may name the very costs that are to be measured.
        let experiment = choose::changed(experiment, &args.policy, &[])?;
        let subject = |entry: &anysched_lab::PolicyEntry| {
            let owned = |(name, text): (&str, &str)| (name.to_string(), text.to_string());
            Subject {
                label: entry.label.clone(),
                name: entry.info.name.to_string(),
                settings: entry.settings().into_iter().map(owned).collect(),
            }
        };
        return Ok(experiment.entries().iter().map(subject).collect());
    }
    let own = args.host.schedulers;
    // A machine of one CPU is measured, on which there is more than one task.
    let setup = Setup::new(Machine::flat(1).map_err(|error| error.to_string())?);
    let fits = |name: &&str| host.require_own(name, &setup, 2).is_ok();
    let names: Vec<&str> = match args.policy.is_empty() {
        true => own_rules(args.host).into_iter().chain(own.iter().copied().filter(fits)).collect(),
        false => args.policy.iter().map(String::as_str).collect(),
    };
    let known = |name: &str| policy(name).is_some() || own.contains(&name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(unknown(args.host, name));
    }
    let subject =
        |name: &str| Subject { label: name.into(), name: name.into(), settings: Vec::new() };
    Ok(names.into_iter().map(subject).collect())
}

/// The policies that are measured unless others are named: those whose rule the host has itself,
/// or all if it has none.
fn own_rules(host: &HostInfo) -> Vec<&'static str> {
    let native = host.native(POLICIES);
    let chosen = if native.is_empty() { POLICIES.iter().collect() } else { native };
    chosen.into_iter().map(|info| info.name).collect()
}

/// What an iteration of the loops takes, in words.
fn loops(measured: &Calibration) -> String {
    let mut times = measured.iterations.iter().map(|&(name, ps)| (name, exact(ps)));
    let Some((_, first)) = times.next() else { return String::new() };
    let others: String = times.map(|(name, time)| format!(", in `{name}` {time}")).collect();
    format!("An iteration takes {first}{others}.")
}

/// Picoseconds in nanoseconds, with as many digits as there are.
fn exact(ps: u64) -> String {
    let (whole, rest) = (ps / 1000, ps % 1000);
    match rest {
        0 => format!("{whole}ns"),
        _ => format!("{whole}.{}ns", format!("{rest:03}").trim_end_matches('0')),
    }
}

/// A row: the label and the figures.
fn cells(one: &MeasuredCosts) -> Vec<String> {
    let cell = |figure: &Option<u64>| figure.map_or_else(|| "-".to_string(), |n| n.to_string());
    std::iter::once(one.label.clone()).chain(one.figures.iter().map(cell)).collect()
}

/// The head of the table, in two lines.
fn head(figures: &[Figure]) -> Vec<[&'static str; 2]> {
    std::iter::once(["", "policy"]).chain(figures.iter().map(|figure| figure.heading)).collect()
}

fn table(host: &HostInfo, measured: &Calibration) -> String {
    let head = head(&measured.figures);
    let line = |line: usize| head.iter().map(|head| head[line].to_string()).collect();
    let mut lines: Vec<Vec<String>> = vec![line(0), line(1)];
    lines.extend(measured.costs.iter().map(cells));
    let mut text = format!("What scheduling costs in {}\n\n", host.title);
    text.push_str(&align::rows(&lines, 1));
    text.push_str(&notes(measured));
    text
}

/// What readers need to know, behind the table.
fn notes(measured: &Calibration) -> String {
    match measured.iterations.is_empty() {
        true => format!("\n{}\n", measured.notes),
        false => format!("\n{}\n{}\n", measured.notes, loops(measured)),
    }
}

fn markdown(measured: &Calibration) -> String {
    let head = head(&measured.figures);
    let heads: Vec<String> = head
        .iter()
        .map(|[first, second]| match first.strip_suffix('-') {
            Some(part) => format!("{part}{second}"),
            None => format!("{first} {second}").trim().to_string(),
        })
        .collect();
    let mut text = format!("| {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(head.len() - 1));
    for one in &measured.costs {
        let _ = writeln!(text, "| {} |", cells(one).join(" | "));
    }
    text.push_str(&notes(measured));
    text
}

fn toml(args: &CalibrateArgs, measured: &Calibration) -> String {
    let (name, title) = (args.host.name, args.host.title);
    let mut command = format!("anysched calibrate {name}");
    if let Some(file) = &args.file {
        let _ = write!(command, " {}", file.display());
    }
    if !args.policy.is_empty() {
        let _ = write!(command, " --policy {}", args.policy.join(","));
    }
    let mut text =
        format!("# What scheduling costs in {title}; written by\n# {command} --format toml\n");
    if !measured.iterations.is_empty() {
        text.push_str("\n[iteration]\n");
    }
    for &(name, ps) in &measured.iterations {
        let _ = writeln!(text, "{name} = \"{}\"", exact(ps));
    }
    for one in &measured.costs {
        let _ = writeln!(text, "\n[{}]", key(&one.label));
        let costs = [
            ("pick", Some(one.pick)),
            ("context_switch", Some(one.context_switch)),
            ("enqueue", Some(one.enqueue)),
            ("after_wake", one.after_wake),
            ("wake_irq", one.wake_irq),
            ("timer_irq", Some(one.timer_irq)),
            ("create", one.create),
            ("exit", one.exit),
        ];
        for (name, cost) in costs.into_iter().filter_map(|(name, cost)| Some((name, cost?))) {
            let _ = writeln!(text, "{name} = \"{}ns\"", cost.0);
        }
        text.push_str("charged = true\n");
    }
    text
}

/// `label` as a key of TOML.
fn key(label: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match label.chars().all(plain) {
        true => label.to_string(),
        false => format!("{label:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_keys_are_written_as_toml_reads_them() {
        assert_eq!([13_000, 7_250, 930].map(exact), ["13ns", "7.25ns", "0.93ns"]);
        assert_eq!(["pbg-last", "rr(tick=1ms)"].map(key), ["pbg-last", "\"rr(tick=1ms)\""]);
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let figures = vec![Figure { heading: ["an-", "other"] }, Figure { heading: ["", "put"] }];
        let figures_of = vec![Some(7), None];
        let costs = MeasuredCosts { label: "rr".into(), figures: figures_of, ..Default::default() };
        let iterations = vec![("divide", 13_000), ("shift", 930)];
        let measured = Calibration { iterations, figures, costs: vec![costs], notes: "Notes." };
        assert_eq!(
            markdown(&measured),
            "| policy | another | put |\n|---|--:|--:|\n| rr | 7 | - |\n\nNotes.\n\
             An iteration takes 13ns, in `shift` 0.93ns.\n"
        );
    }
}
