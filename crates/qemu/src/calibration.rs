//! What scheduling costs in a kernel, worked out from what its program `calibrate` says.

use crate::Outcome as Said;
use anysched_core::registry::{PolicyInfo, Settings};
use anysched_core::{Machine, Span};
use anysched_host::{
    By, Calibration, Figure, HostError, HostInfo, MeasuredCosts, Setup, Subject, as_text, rehearsed,
};

/// The program that measures.
pub const CALIBRATE: &str = "calibrate";

/// The loops of programs that several kernels have.
pub const LOOPS: &[(&str, &str)] = &[("divide", "divide_ps"), ("shift", "shift_ps")];

/// A kernel whose costs are measured on a machine of one CPU.
pub struct Calibrator<'a> {
    /// Its host.
    pub host: &'static HostInfo,
    /// All policies.
    pub policies: &'static [PolicyInfo],
    /// The kernel's tick, which is also that of policies without one of their own.
    pub tick: Span,
    /// Loops of its programs in which experiments measure their loads, and the values that say in
    /// picoseconds what an iteration takes.
    pub loops: &'static [(&'static str, &'static str)],
    /// The table.
    pub columns: &'static [Column],
    /// What readers of the table need to know.
    pub notes: &'static str,
    /// Whether policies are booted once more with a clock around their calls.
    pub timed: bool,
    /// Boots the program under a scheduler; with such a clock, if the last argument says so.
    pub boot: &'a dyn Fn(&By<'_>, &Setup, bool) -> Result<Said, HostError>,
}

/// A column of the table: its heading and where its figures come from.
#[derive(Clone, Copy, Debug)]
pub struct Column(pub [&'static str; 2], pub Source);

/// Where a figure comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A value in picoseconds, as nanoseconds.
    Time(&'static str),
    /// The same, of what not every scheduler or kernel measures.
    PartOfTime(&'static str),
    /// A value in thousandths, as percent, of what not every kernel measures.
    Share(&'static str),
    /// What a call of this kind takes by itself, on average, in nanoseconds.
    Call(&'static str),
}

/// What was measured under a scheduler.
struct Measured {
    label: String,
    plain: Said,
    /// With a clock around the policy's calls, if it is one of ours.
    timed: Option<Said>,
    /// The interval between two ticks in a simulation of it.
    tick: Span,
}

impl Calibrator<'_> {
    /// Measures what scheduling costs under each of `subjects`.
    ///
    /// Errors: a boot failed, the image is of another version, or no policy has a rule of the
    /// kernel's own.
    pub fn calibrate(&self, subjects: &[Subject]) -> Result<Calibration, HostError> {
        let all: Vec<Measured> =
            subjects.iter().map(|subject| self.measure(subject)).collect::<Result<_, _>>()?;
        let reference = self.reference()?;
        let of_reference;
        let reference = match all.iter().find(|one| one.label == reference) {
            Some(one) => &one.plain,
            None => {
                let (label, name) = (reference.into(), reference.into());
                of_reference = self.measure(&Subject { label, name, settings: Vec::new() })?;
                &of_reference.plain
            }
        };
        let time = |(name, key): &(&'static str, &str)| Ok((*name, value(reference, key)?));
        let costs = all.iter().map(|one| {
            let figures = self.columns.iter().map(|Column(_, source)| one.figure(*source));
            let figures = figures.collect::<Result<_, HostError>>()?;
            Ok(MeasuredCosts { figures, ..one.costs(reference, self.tick)? })
        });
        Ok(Calibration {
            costs: costs.collect::<Result<_, HostError>>()?,
            iterations: self.loops.iter().map(time).collect::<Result<_, HostError>>()?,
            figures: self
                .columns
                .iter()
                .map(|Column(heading, _)| Figure { heading: *heading })
                .collect(),
            notes: self.notes,
        })
    }

    /// The scheduler that tells the others what a switch takes, which is not a matter of the
    /// policy.
    fn reference(&self) -> Result<&'static str, HostError> {
        let missing = || {
            let title = self.host.title;
            HostError(format!("no policy has a rule of {title}'s own to measure switches by"))
        };
        self.host.native(self.policies).first().map(|info| info.name).ok_or_else(missing)
    }

    fn measure(&self, subject: &Subject) -> Result<Measured, HostError> {
        let failed =
            |error: &dyn std::fmt::Display| HostError(format!("{}: {error}", subject.name));
        let machine = Machine::flat(1).map_err(|error| failed(&error))?.with_tick(Some(self.tick));
        let setup = Setup::new(machine);
        let label = subject.label.clone();
        let Some(info) = self.policies.iter().find(|info| info.name == subject.name) else {
            let own = self.host.schedulers.iter().find(|own| **own == subject.name);
            let own = own.ok_or_else(|| self.host.no_scheduler(&subject.name))?;
            let plain = (self.boot)(&By::Own(own), &setup, false)?;
            return Ok(Measured { label, plain, timed: None, tick: self.tick });
        };
        // What a rehearsal teaches makes no difference to the tick.
        let policy = (info.build)(&setup.machine, &as_text(&subject.settings));
        let period = policy.map_err(|error| failed(&error))?.tick_period();
        let boot = |timed| {
            let run = |_, settings: &Settings| {
                (self.boot)(&By::Policy(info, as_text(settings)), &setup, timed)
            };
            rehearsed(info, &subject.settings, run, |said| said.learned).map(|(said, _)| said)
        };
        let plain = boot(false)?;
        let timed = self.timed.then(|| boot(true)).transpose()?;
        Ok(Measured { label, plain, timed, tick: period.unwrap_or(self.tick) })
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
/// seldom are to another. The policy's part belongs to it, where that is measured, or not.
fn switch(said: &Said, with_policy: bool) -> Result<Option<u64>, HostError> {
    let part = |tasks: u32| {
        let policy = said.value(&format!("policy_of_yield_ps_{tasks}")).filter(|_| !with_policy);
        let all = value(said, &format!("yield_ps_{tasks}"))?;
        Ok::<_, HostError>(all.saturating_sub(policy.unwrap_or(0)))
    };
    let (alone, among) = (part(1)?, part(4)?);
    let switches = said.value("yield_switches_4").filter(|switches| *switches > 500);
    Ok(switches.map(|switches| among.saturating_sub(alone) * 1000 / switches))
}

impl Measured {
    /// Without the figures.
    fn costs(&self, reference: &Said, tick: Span) -> Result<MeasuredCosts, HostError> {
        let pick = ns(value(&self.plain, "yield_ps_1")?);
        let switch = match switch(&self.plain, true)? {
            Some(switch) => switch,
            // The reference's policy is another one.
            None => switch(reference, false)?.unwrap_or(0),
        };
        let context_switch = ns(switch);
        let wakeup = ns(value(&self.plain, "wakeup_ps")?);
        // Measured for each tick of the kernel, and charged for each of the simulation.
        let interrupt = Span(ns(value(&self.plain, "interrupt_ps")?));
        let ready = wakeup.saturating_sub(pick + context_switch);
        // Half of a wake-up that leads to no switch is the way into the kernel and back.
        let wake = self.plain.value("wake_ps").map(|wake| ns(wake / 2).min(ready));
        let enqueue = wake.unwrap_or(ready);
        let preempt = self.plain.value("preempt_ps").map(ns);
        let switched = enqueue + pick + context_switch;
        // What the tasks' runqueues and the switches to them take is charged besides.
        let create = self.plain.value("start_ps").map(|start| ns(start).saturating_sub(enqueue));
        let exit =
            self.plain.value("end_ps").map(|end| ns(end).saturating_sub(pick + context_switch));
        Ok(MeasuredCosts {
            label: self.label.clone(),
            pick: Span(pick),
            context_switch: Span(context_switch),
            enqueue: Span(enqueue),
            after_wake: wake.map(|wake| Span(ready - wake)),
            wake_irq: preempt.map(|preempt| Span(preempt.saturating_sub(switched))),
            create: create.map(Span),
            exit: exit.map(Span),
            timer_irq: interrupt.scaled(self.tick.0, tick.0),
            figures: Vec::new(),
        })
    }

    /// Nanoseconds that a call of this kind takes by itself, on average.
    fn call(&self, kind: &str) -> Option<u64> {
        let timed = self.timed.as_ref()?;
        let (calls, time) =
            (timed.value(&format!("{kind}_calls"))?, timed.value(&format!("{kind}_ns"))?);
        Some((time + calls / 2) / calls.max(1))
    }

    fn figure(&self, source: Source) -> Result<Option<u64>, HostError> {
        Ok(match source {
            Source::Time(name) => Some(ns(value(&self.plain, name)?)),
            Source::PartOfTime(name) => self.plain.value(name).map(ns),
            Source::Share(name) => self.plain.value(name).map(|thousandths| (thousandths + 5) / 10),
            Source::Call(kind) => self.call(kind),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(values: &[(&str, u64)]) -> Said {
        let values = values.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Said { values, ..Said::default() }
    }

    const TICK: Span = Span::from_ms(4);

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
        Measured { label: label.into(), plain, timed: Some(timed), tick: TICK }
    }

    #[test]
    fn costs_add_up_to_what_was_measured() {
        let all = measured("a", 1000);
        let costs = all.costs(&all.plain, TICK).unwrap();
        assert_eq!((costs.pick, costs.context_switch), (Span(300), Span(40)));
        assert_eq!(costs.pick + costs.context_switch + costs.enqueue, Span(900));
        assert_eq!(costs.timer_irq, Span(1501));
        // Starting takes 2 us with the enqueue of 560 ns, ending 3 us with the pick and the switch.
        assert_eq!((costs.create, costs.exit), (Some(Span(1440)), Some(Span(2660))));
        assert_eq!((costs.after_wake, costs.wake_irq), (None, None));
        // A wake-up by a task takes 900 ns as before, one by a timer 1100 ns.
        let mut told = measured("e", 1000);
        let values = [("wake_ps", 600_000), ("preempt_ps", 1_100_000)];
        told.plain.values.extend(values.map(|(name, number)| (name.to_string(), number)));
        let costs = told.costs(&all.plain, TICK).unwrap();
        assert_eq!((costs.enqueue, costs.after_wake), (Span(300), Some(Span(260))));
        assert_eq!(costs.wake_irq, Some(Span(1100 - 300 - 340)));
        // Four of five yields are to another task.
        let some = measured("b", 800);
        assert_eq!(some.costs(&all.plain, TICK).unwrap().context_switch, Span(50));
        // One that does not switch tells nothing; the reference does.
        let none = measured("c", 3);
        assert_eq!(none.costs(&all.plain, TICK).unwrap().context_switch, Span(40));
        // Of which 25 may be its policy's.
        let mut known = measured("d", 1000);
        let parts = [("policy_of_yield_ps_1", 100_000), ("policy_of_yield_ps_4", 125_000)];
        known.plain.values.extend(parts.map(|(name, number)| (name.to_string(), number)));
        assert_eq!(known.costs(&all.plain, TICK).unwrap().context_switch, Span(40));
        assert_eq!(none.costs(&known.plain, TICK).unwrap().context_switch, Span(15));
    }

    #[test]
    fn what_a_tick_of_the_kernel_takes_is_shared_by_those_of_the_policy() {
        let mut one = measured("a", 1000);
        one.tick = Span::from_ms(1);
        assert_eq!(one.costs(&one.plain, TICK).unwrap().timer_irq, Span(375));
    }

    #[test]
    fn what_is_missing_is_refused_and_what_was_not_called_is_absent() {
        let mut one = measured("a", 1000);
        assert_eq!((one.call("pick"), one.call("put")), (Some(23), None));
        for (source, figure) in [
            (Source::Time("yield_ps_1"), Some(300)),
            (Source::PartOfTime("policy_of_yield_ps_4"), None),
            (Source::Share("yield_switches_4"), Some(100)),
            (Source::Call("pick"), Some(23)),
        ] {
            assert_eq!(one.figure(source), Ok(figure), "{source:?}");
        }
        one.plain.values.retain(|(name, _)| name != "wakeup_ps");
        let error = one.costs(&one.plain, TICK).unwrap_err();
        assert!(error.0.contains("`wakeup_ps`"), "{error}");
        assert_eq!(one.figure(Source::Time("wakeup_ps")), Err(error));
    }
}
