//! What scheduling costs in ArceOS, measured by its program `calibrate`.

use crate::Outcome as Said;
use crate::host::{ArceOs, HOST};
use anysched_core::registry::Settings;
use anysched_core::{Machine, Span};
use anysched_host::{
    Calibration, Figure, HostError, MeasuredCosts, Setup, Subject, as_text, rehearsed,
};
use anysched_policies::{POLICIES, policy};

/// The tick of policies that have none of their own: that of ArceOS.
const TICK: Span = Span::from_ms(10);

/// The columns of the table.
const FIGURES: [[&str; 2]; 11] = [
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

/// What was measured under a scheduler.
struct Measured {
    label: String,
    plain: Said,
    /// With a clock around the policy's calls, if it is one of ours.
    timed: Option<Said>,
}

pub(crate) fn calibrate(host: &ArceOs, subjects: &[Subject]) -> Result<Calibration, HostError> {
    let all: Vec<Measured> =
        subjects.iter().map(|subject| measure(host, subject)).collect::<Result<_, _>>()?;
    let reference = reference()?;
    let of_reference;
    let reference = match all.iter().find(|one| one.label == reference) {
        Some(one) => &one.plain,
        None => {
            let (label, name) = (reference.into(), reference.into());
            of_reference = measure(host, &Subject { label, name, settings: Vec::new() })?;
            &of_reference.plain
        }
    };
    let loops = [("divide", "divide_ps"), ("shift", "shift_ps")];
    let time = |(name, key): (&'static str, &str)| Ok((name, value(reference, key)?));
    let costs = all.iter().map(|one| one.costs(reference)).collect::<Result<_, HostError>>()?;
    Ok(Calibration {
        iterations: loops.into_iter().map(time).collect::<Result<_, HostError>>()?,
        figures: FIGURES.iter().map(|&heading| Figure { heading }).collect(),
        costs,
        notes: NOTES,
    })
}

/// The scheduler whose image tells the others what a switch takes, which is not a matter of the
/// policy.
fn reference() -> Result<&'static str, HostError> {
    let missing =
        || HostError("no policy has a rule of ArceOS's own to measure switches by".into());
    HOST.native(POLICIES).first().map(|info| info.name).ok_or_else(missing)
}

fn measure(host: &ArceOs, subject: &Subject) -> Result<Measured, HostError> {
    let machine = Machine::flat(1).map_err(|error| HostError(error.to_string()))?;
    let setup = Setup::new(machine.with_tick(Some(TICK)));
    let boot = |timed| boot(host, subject, &setup, timed);
    let plain = boot(false)?;
    let timed = policy(&subject.name).map(|_| boot(true)).transpose()?;
    Ok(Measured { label: subject.label.clone(), plain, timed })
}

/// Boots the program; before it, a rehearsal if the policy needs one.
fn boot(host: &ArceOs, subject: &Subject, setup: &Setup, timed: bool) -> Result<Said, HostError> {
    let boot = |settings: &Settings| {
        host.boot_calibration(&subject.name, &as_text(settings), setup, timed)
    };
    match policy(&subject.name) {
        Some(info) => {
            let run = |_, settings: &Settings| boot(settings);
            rehearsed(info, &subject.settings, run, |said| said.learned).map(|(said, _)| said)
        }
        None => boot(&subject.settings),
    }
}

/// A value of the program, which must be there.
fn value(said: &Said, name: &str) -> Result<u64, HostError> {
    said.value(name).ok_or_else(|| {
        HostError(format!("the image did not say `{name}`: it is not of this version"))
    })
}

/// Nanoseconds of a value in picoseconds, rounded.
fn ns(ps: u64) -> u64 {
    (ps + 500) / 1000
}

/// What a yield to another task takes more than one without, in picoseconds; `None` where yields
/// seldom are to another.
fn switch(said: &Said) -> Result<Option<u64>, HostError> {
    let (alone, among) = (value(said, "yield_ps_1")?, value(said, "yield_ps_4")?);
    let switches = said.value("yield_switches_4").filter(|switches| *switches > 500);
    Ok(switches.map(|switches| among.saturating_sub(alone) * 1000 / switches))
}

impl Measured {
    fn costs(&self, reference: &Said) -> Result<MeasuredCosts, HostError> {
        let pick = ns(value(&self.plain, "yield_ps_1")?);
        let switch = match switch(&self.plain)? {
            Some(switch) => switch,
            None => switch(reference)?.unwrap_or(0),
        };
        let context_switch = ns(switch);
        let wakeup = ns(value(&self.plain, "wakeup_ps")?);
        Ok(MeasuredCosts {
            label: self.label.clone(),
            pick: Span(pick),
            context_switch: Span(context_switch),
            enqueue: Span(wakeup.saturating_sub(pick + context_switch)),
            timer_irq: Span(ns(value(&self.plain, "interrupt_ps")?)),
            figures: self.figures()?,
        })
    }

    /// Nanoseconds that a call of this kind takes by itself, on average.
    fn call(&self, kind: &str) -> Option<u64> {
        let timed = self.timed.as_ref()?;
        let (calls, time) =
            (timed.value(&format!("{kind}_calls"))?, timed.value(&format!("{kind}_ns"))?);
        Some((time + calls / 2) / calls.max(1))
    }

    /// In the order of [`FIGURES`].
    fn figures(&self) -> Result<Vec<Option<u64>>, HostError> {
        let plain = |name: &str| Ok::<_, HostError>(Some(ns(value(&self.plain, name)?)));
        let switches = self.plain.value("yield_switches_4").map(|switches| (switches + 5) / 10);
        Ok(vec![
            plain("yield_ps_1")?,
            plain("yield_ps_4")?,
            switches,
            plain("yield_ps_64")?,
            self.call("put"),
            self.call("pick"),
            self.call("enqueue"),
            plain("wakeup_ps")?,
            plain("interrupt_ps")?,
            plain("start_ps")?,
            plain("end_ps")?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_measured_by_the_first_of_the_kernels_own_rules() {
        let info = policy(reference().unwrap()).unwrap();
        let native = info.native.iter().find(|native| native.host == HOST.name).unwrap();
        assert_eq!(native.scheduler, HOST.schedulers.first().copied());
    }

    fn said(values: &[(&str, u64)]) -> Said {
        let values = values.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Said { values, ..Said::default() }
    }

    fn measured(label: &str, switches: u64) -> Measured {
        let plain = said(&[
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
        let timed = said(&[("pick_calls", 4), ("pick_ns", 90)]);
        Measured { label: label.into(), plain, timed: Some(timed) }
    }

    #[test]
    fn costs_add_up_to_what_was_measured() {
        let all = measured("a", 1000);
        let costs = all.costs(&all.plain).unwrap();
        assert_eq!((costs.pick, costs.context_switch), (Span(300), Span(40)));
        assert_eq!(costs.pick + costs.context_switch + costs.enqueue, Span(900));
        assert_eq!(costs.timer_irq, Span(1501));
        // Four of five yields are to another task.
        let some = measured("b", 800);
        assert_eq!(some.costs(&all.plain).unwrap().context_switch, Span(50));
        // One that does not switch tells nothing; the reference does.
        let none = measured("c", 3);
        assert_eq!(none.costs(&all.plain).unwrap().context_switch, Span(40));
    }

    #[test]
    fn what_is_missing_is_refused_and_what_was_not_called_is_absent() {
        let mut one = measured("a", 1000);
        assert_eq!(one.figures().unwrap().len(), FIGURES.len());
        assert_eq!((one.call("pick"), one.call("put")), (Some(23), None));
        one.plain.values.retain(|(name, _)| name != "wakeup_ps");
        let error = one.costs(&one.plain).unwrap_err();
        assert!(error.0.contains("`wakeup_ps`"), "{error}");
    }
}
