//! `anysched calibrate`: what scheduling costs in a real kernel, for simulations of it.

use crate::args::{CalibrateArgs, CalibrateFormat, KernelName};
use crate::boot::{self, Row};
use crate::choose;
use crate::kernel::{ArceOs, PATIENCE};
use crate::output::{self, Failure};
use anysched_arceos::{Boot, Kernel, Outcome};
use anysched_core::Span;
use anysched_lab::Experiment;
use std::fmt::Write;

/// ArceOS's own policies as ours, and PBG.
const USUAL: [&str; 6] = ["fcfs", "rr", "cfs-arceos", "sjf-ewma", "mlfq-arceos", "pbg"];

/// What every image can tell the others: what a switch takes, which is not a matter of the policy.
const REFERENCE: &str = "fcfs";

/// The tick of policies that have none of their own: that of ArceOS.
const TICK: Span = Span::from_ms(10);

/// What was measured under a scheduler.
struct Measured {
    label: String,
    plain: Outcome,
    /// With a clock around the policy's calls, if it is one of ours.
    timed: Option<Outcome>,
}

/// What the simulator is told, in nanoseconds.
struct Costs {
    pick: u64,
    context_switch: u64,
    enqueue: u64,
    timer_irq: u64,
}

pub fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let KernelName::Arceos = args.host;
    let host = ArceOs::new(PATIENCE);
    let mut all = Vec::new();
    for (label, row) in rows(args)? {
        all.push(measure(&host, label, &row)?);
    }
    let reference = match all.iter().find(|one| one.label == REFERENCE) {
        Some(one) => one.plain.clone(),
        None => measure(&host, REFERENCE.into(), &row(REFERENCE, Vec::new()))?.plain,
    };
    output::print(&match args.format {
        CalibrateFormat::Table => table(&all)?,
        CalibrateFormat::Markdown => markdown(&all)?,
        CalibrateFormat::Toml => toml(args, &all, &reference)?,
    })
}

/// The schedulers that are measured: those of the experiment or of `--policy`.
fn rows(args: &CalibrateArgs) -> Result<Vec<(String, Row)>, Failure> {
    let stock = || Kernel::STOCK.iter().map(|(name, _)| *name);
    if let Some(file) = &args.file {
        let experiment = Experiment::load(file).map_err(Failure::pointing)?;
        // Not planned: it may name the very costs that are to be measured.
        let experiment = choose::changed(experiment, &args.policy, &[])?;
        let rows = experiment.entries().iter().map(|entry| {
            let owned = |(name, text): (&str, &str)| (name.to_string(), text.to_string());
            let settings = entry.settings().into_iter().map(owned).collect();
            (entry.label.clone(), row(entry.info.name, settings))
        });
        return Ok(rows.collect());
    }
    let names: Vec<&str> = match args.policy.is_empty() {
        true => USUAL.into_iter().chain(stock()).collect(),
        false => args.policy.iter().map(String::as_str).collect(),
    };
    let known =
        |name: &str| anysched_policies::policy(name).is_some() || stock().any(|own| own == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let own = stock().collect::<Vec<_>>().join(", ");
        return Err(Failure::from(format!(
            "there is no policy `{unknown}`; `anysched policies` lists them, and ArceOS has {own}"
        )));
    }
    Ok(names.into_iter().map(|name| (name.to_string(), row(name, Vec::new()))).collect())
}

fn row(policy: &str, settings: Vec<(String, String)>) -> Row {
    let mut boot = Boot::new(policy, "calibrate");
    boot.settings = settings;
    boot.tick = Some(TICK);
    boot.patience = PATIENCE;
    Row { boot, info: anysched_policies::policy(policy) }
}

fn measure(host: &ArceOs, label: String, row: &Row) -> Result<Measured, Failure> {
    let plain = boot::rehearsed(host, row, &mut |_| ())?;
    let timed = match row.info {
        Some(_) => {
            let boot = Boot { timed: true, ..row.boot.clone() };
            Some(boot::rehearsed(host, &Row { boot, ..*row }, &mut |_| ())?)
        }
        None => None,
    };
    Ok(Measured { label, plain, timed })
}

/// A value of the program, which must be there.
fn value(outcome: &Outcome, name: &str) -> Result<u64, Failure> {
    outcome.value(name).ok_or_else(|| {
        Failure::from(format!("the image did not say `{name}`: it is not of this version"))
    })
}

/// Nanoseconds of a value in picoseconds, rounded.
fn ns(ps: u64) -> u64 {
    (ps + 500) / 1000
}

/// What a yield to another task takes more than one without, in picoseconds; `None` where yields
/// seldom are to another.
fn switch(outcome: &Outcome) -> Result<Option<u64>, Failure> {
    let (alone, among) = (value(outcome, "yield_ps_1")?, value(outcome, "yield_ps_4")?);
    let switches = outcome.value("yield_switches_4").filter(|switches| *switches > 500);
    Ok(switches.map(|switches| among.saturating_sub(alone) * 1000 / switches))
}

impl Measured {
    fn costs(&self, reference: &Outcome) -> Result<Costs, Failure> {
        let pick = ns(value(&self.plain, "yield_ps_1")?);
        let switch = match switch(&self.plain)? {
            Some(switch) => switch,
            None => switch(reference)?.unwrap_or(0),
        };
        let context_switch = ns(switch);
        let wakeup = ns(value(&self.plain, "wakeup_ps")?);
        Ok(Costs {
            pick,
            context_switch,
            enqueue: wakeup.saturating_sub(pick + context_switch),
            timer_irq: ns(value(&self.plain, "interrupt_ps")?),
        })
    }

    /// Nanoseconds that a call of this kind takes by itself, on average.
    fn call(&self, kind: &str) -> Option<u64> {
        let timed = self.timed.as_ref()?;
        let (calls, time) =
            (timed.value(&format!("{kind}_calls"))?, timed.value(&format!("{kind}_ns"))?);
        Some((time + calls / 2) / calls.max(1))
    }

    /// A row of the table.
    fn cells(&self) -> Result<Vec<String>, Failure> {
        let plain = |name: &str| Ok::<_, Failure>(ns(value(&self.plain, name)?).to_string());
        let or_none =
            |number: Option<u64>| number.map_or_else(|| "-".to_string(), |n| n.to_string());
        let switches = self.plain.value("yield_switches_4").map(|switches| (switches + 5) / 10);
        Ok(vec![
            self.label.clone(),
            plain("yield_ps_1")?,
            plain("yield_ps_4")?,
            or_none(switches),
            plain("yield_ps_64")?,
            or_none(self.call("put")),
            or_none(self.call("pick")),
            or_none(self.call("enqueue")),
            plain("wakeup_ps")?,
            plain("interrupt_ps")?,
            plain("start_ps")?,
            plain("end_ps")?,
        ])
    }
}

/// The head of the table, in two lines.
const HEAD: [[&str; 2]; 12] = [
    ["", "policy"],
    ["yield", "alone"],
    ["yield", "of 4"],
    ["to an-", "other, %"],
    ["yield", "of 64"],
    ["", "put"],
    ["", "pick"],
    ["en-", "queue"],
    ["wake-", "up"],
    ["inter-", "rupt"],
    ["", "start"],
    ["", "end"],
];

const NOTES: &str = "\
Nanoseconds, of which an instruction takes one. Put, pick and enqueue are the policy's
part alone, measured with a clock around its calls; the kernel's is in all others.";

/// What an iteration of the loops takes, in words.
fn loops(all: &[Measured]) -> Result<String, Failure> {
    let Some(one) = all.first() else { return Ok(String::new()) };
    let time = |name: &str| Ok::<_, Failure>(exact(value(&one.plain, name)?));
    Ok(format!("An iteration takes {}, in `unequal` {}.", time("divide_ps")?, time("shift_ps")?))
}

/// Picoseconds in nanoseconds, with as many digits as there are.
fn exact(ps: u64) -> String {
    let (whole, rest) = (ps / 1000, ps % 1000);
    match rest {
        0 => format!("{whole}ns"),
        _ => format!("{whole}.{}ns", format!("{rest:03}").trim_end_matches('0')),
    }
}

fn table(all: &[Measured]) -> Result<String, Failure> {
    let rows = all.iter().map(Measured::cells).collect::<Result<Vec<_>, _>>()?;
    let length = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| {
            let heads = HEAD[column].iter().map(|head| length(head));
            heads.chain(rows.iter().map(|row| length(&row[column]))).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::from("What scheduling costs in ArceOS\n\n");
    let mut line = |cells: Vec<&str>| {
        let mut line = format!("{:<width$}", cells[0], width = widths[0]);
        for (cell, width) in cells.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(HEAD.iter().map(|head| head[0]).collect());
    line(HEAD.iter().map(|head| head[1]).collect());
    for row in &rows {
        line(row.iter().map(String::as_str).collect());
    }
    let _ = write!(text, "\n{NOTES}\n{}\n", loops(all)?);
    Ok(text)
}

fn markdown(all: &[Measured]) -> Result<String, Failure> {
    let heads: Vec<String> = HEAD
        .iter()
        .map(|[first, second]| match first.strip_suffix('-') {
            Some(part) => format!("{part}{second}"),
            None => format!("{first} {second}").trim().to_string(),
        })
        .collect();
    let mut text = format!("| {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(HEAD.len() - 1));
    for one in all {
        let _ = writeln!(text, "| {} |", one.cells()?.join(" | "));
    }
    let _ = write!(text, "\n{NOTES}\n{}\n", loops(all)?);
    Ok(text)
}

fn toml(args: &CalibrateArgs, all: &[Measured], reference: &Outcome) -> Result<String, Failure> {
    let mut command = String::from("anysched calibrate arceos");
    if let Some(file) = &args.file {
        let _ = write!(command, " {}", file.display());
    }
    if !args.policy.is_empty() {
        let _ = write!(command, " --policy {}", args.policy.join(","));
    }
    let mut text =
        format!("# What scheduling costs in ArceOS; written by\n# {command} --format toml\n");
    let iteration = |name: &str| Ok::<_, Failure>(exact(value(reference, name)?));
    let (divide, shift) = (iteration("divide_ps")?, iteration("shift_ps")?);
    let _ = write!(text, "\n[iteration]\ndivide = \"{divide}\"\nshift = \"{shift}\"\n");
    for one in all {
        let Costs { pick, context_switch, enqueue, timer_irq } = one.costs(reference)?;
        let _ = write!(
            text,
            "\n[{}]\npick = \"{pick}ns\"\ncontext_switch = \"{context_switch}ns\"\nenqueue = \
             \"{enqueue}ns\"\ntimer_irq = \"{timer_irq}ns\"\ncharged = true\n",
            key(&one.label)
        );
    }
    Ok(text)
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

    fn outcome(values: &[(&str, u64)]) -> Outcome {
        let values = values.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Outcome { values, ..Outcome::default() }
    }

    fn measured(label: &str, switches: u64) -> Measured {
        let plain = outcome(&[
            ("divide_ps", 13_000),
            ("shift_ps", 7_250),
            ("yield_ps_1", 300_400),
            ("yield_ps_4", 340_000),
            ("yield_ps_64", 341_000),
            ("yield_switches_4", switches),
            ("wakeup_ps", 900_000),
            ("interrupt_ps", 1_500_600),
            ("start_ps", 2_000_000),
            ("end_ps", 3_000_000),
        ]);
        let timed = outcome(&[("pick_calls", 4), ("pick_ns", 90)]);
        Measured { label: label.into(), plain, timed: Some(timed) }
    }

    #[test]
    fn costs_add_up_to_what_was_measured() {
        let all = measured("a", 1000);
        let costs = all.costs(&all.plain).unwrap_or_else(|_| unreachable!());
        assert_eq!((costs.pick, costs.context_switch), (300, 40));
        assert_eq!(costs.pick + costs.context_switch + costs.enqueue, 900);
        assert_eq!(costs.timer_irq, 1501);
        // Four of five yields are to another task.
        let some = measured("b", 800);
        assert_eq!(some.costs(&all.plain).map(|costs| costs.context_switch).ok(), Some(50));
        // One that does not switch tells nothing; the reference does.
        let none = measured("c", 3);
        assert_eq!(none.costs(&all.plain).map(|costs| costs.context_switch).ok(), Some(40));
    }

    #[test]
    fn what_is_missing_is_refused_and_what_was_not_called_is_no_number() {
        let mut one = measured("a", 1000);
        assert_eq!(one.call("pick"), Some(23));
        assert_eq!(one.call("put"), None);
        one.plain.values.retain(|(name, _)| name != "wakeup_ps");
        let Err(Failure::Line(line)) = one.costs(&one.plain).map(drop) else { panic!() };
        assert!(line.contains("`wakeup_ps`"), "{line}");
    }

    #[test]
    fn numbers_and_keys_are_written_as_toml_reads_them() {
        assert_eq!([13_000, 7_250, 930].map(exact), ["13ns", "7.25ns", "0.93ns"]);
        assert_eq!(["pbg-last", "rr(tick=1ms)"].map(key), ["pbg-last", "\"rr(tick=1ms)\""]);
    }
}
