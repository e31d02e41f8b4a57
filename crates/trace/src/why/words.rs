//! An explanation in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_core::{CpuId, Off, Span, Time};
use core::fmt;

use super::{Choice, Missed, Ran, Reason, Start, Values, Wait, Why};
use crate::follow::{Became, left};
use crate::why::find::Did;

/// How many choices, CPUs and tasks of a CPU are told in words.
const CHOICES: usize = 12;
const CPUS: usize = 8;
const TASKS: usize = 5;

/// A span to the microsecond, if it is longer than a millisecond.
pub fn short(span: Span) -> String {
    match span.0 {
        ns if ns < 1_000_000 || ns == u64::MAX => span.to_string(),
        ns => Span((ns + 500) / 1_000 * 1_000).to_string(),
    }
}

/// A time, as the span since the start.
pub(crate) fn time(at: Time) -> String {
    short(Span(at.0))
}

/// A value of a policy with its name; the name says if it is a time.
pub fn value(name: &str, value: i64) -> String {
    match name.strip_suffix("_ns") {
        Some(name) => format!("{} {}", plain(name), span(value)),
        None => format!("{} {value}", plain(name)),
    }
}

fn span(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    match value {
        i64::MAX => "none".to_string(),
        value => format!("{sign}{}", short(Span(value.unsigned_abs()))),
    }
}

fn amount(name: &str, value: i64) -> String {
    if name.ends_with("_ns") { span(value) } else { value.to_string() }
}

/// A name of a value as it is said: without its unit, with blanks.
pub(crate) fn plain(name: &str) -> String {
    name.strip_suffix("_ns").unwrap_or(name).replace('_', " ")
}

/// What is told of a machine's balancing, and not of the rule: names begin so. JSON has them.
const OF_BALANCING: [&str; 5] = ["q_", "nohz_", "load_", "util_", "over"];

/// The values of a policy's rule in words.
pub(crate) fn values(values: &Values) -> String {
    let of_rule = |(name, _): &&(&str, i64)| OF_BALANCING.iter().all(|of| !name.starts_with(of));
    let own: Vec<String> =
        values.iter().filter(of_rule).map(|(name, number)| value(name, *number)).collect();
    own.join(", ")
}

impl Reason {
    /// In words that follow the name of the task that was picked, or nothing.
    pub fn words(&self) -> String {
        match self {
            Reason::By { name, chosen, other } => {
                format!("{} {} before {}", plain(name), amount(name, *chosen), amount(name, *other))
            }
            Reason::Earlier { chosen, other } => {
                format!("ready since {}, before {}", time(*chosen), time(*other))
            }
            Reason::OtherQueue { chosen, other } => {
                format!("from runqueue {chosen}; the task waits in runqueue {other}")
            }
            Reason::Despite { name, chosen, other } => format!(
                "by another rule: {} {} comes after {}",
                plain(name),
                amount(name, *chosen),
                amount(name, *other)
            ),
            Reason::Tie => "a tie: first come, first served".to_string(),
            Reason::Unknown => String::new(),
        }
    }
}

impl Wait {
    /// Its length, if it has ended or the run at `until`.
    pub(crate) fn length(&self, until: Time) -> Span {
        self.to.unwrap_or(until).since(self.from)
    }

    /// As one of several: `3ms from 40ms`.
    fn brief(&self) -> String {
        let Wait { from, to, why, .. } = self;
        match to {
            Some(to) => {
                let length = short(to.since(*from));
                format!("{} to {} ({length}, {})", time(*from), time(*to), why.words())
            }
            None => format!("{} to the end of the run", time(*from)),
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who.in_full();
        let until = match self.until {
            Some(until) => format!("until {}", time(until)),
            None => "until the run ended".to_string(),
        };
        match self.did {
            Did::Waited => write!(f, "{who} waited then")?,
            Did::Ran(cpu, since) => {
                write!(f, "{who} ran then: on CPU {} from {}, {until}", cpu.0, time(since))?;
            }
            Did::Blocked(since) => {
                write!(f, "{who} was not ready then: it blocked at {}, {until}", time(since))?;
            }
            Did::NotYet(at) => write!(f, "{who} came only at {}", time(at))?,
            Did::Ended(at) => write!(f, "{who} had ended at {}", time(at))?,
        }
        match (&self.before, &self.after) {
            (None, None) => f.write_str("; it never waited"),
            (Some(wait), None) => write!(f, "; it last waited from {}", wait.brief()),
            (None, Some(wait)) => write!(f, "; it first waits from {}", wait.brief()),
            (Some(before), Some(after)) => {
                write!(f, "; it waited from {}, and from {}", before.brief(), after.brief())
            }
        }
    }
}

/// Writes `text` with lines of at most 80 characters; further ones are indented by `indent`.
pub(crate) fn wrapped(f: &mut fmt::Formatter<'_>, text: &str, indent: usize) -> fmt::Result {
    const WIDTH: usize = 80;
    let mut used = 0;
    let lead = text.len() - text.trim_start().len();
    write!(f, "{:lead$}", "")?;
    used += lead;
    for (number, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if number > 0 && used + 1 + length > WIDTH {
            write!(f, "\n{:indent$}", "")?;
            used = indent;
        } else if number > 0 {
            f.write_str(" ")?;
            used += 1;
        }
        f.write_str(word)?;
        used += length;
    }
    f.write_str("\n")
}

fn turns(turns: u64) -> String {
    if turns == 1 { String::new() } else { format!(" in {turns} turns") }
}

impl Why {
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait { who, from, to, why } = &self.wait;
        let (name, length) = (who.in_full(), short(self.wait.length(self.until)));
        let end = match (to, self.cpu) {
            (Some(to), Some(cpu)) => format!("to {}, when CPU {} took it", time(*to), cpu.0),
            (Some(to), None) => format!("to {}", time(*to)),
            (None, _) => format!("to the end of the run at {}", time(self.until)),
        };
        let text = format!(
            "{name} waited {length} under {}, from {} ({}) {end}.",
            self.policy,
            time(*from),
            why.words()
        );
        wrapped(f, &text, 0)
    }

    fn write_start(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\nWhen it became ready\n")?;
        if !self.values.is_empty() {
            wrapped(f, &format!("  {}: {}", self.wait.who.name, values(&self.values)), 6)?;
        }
        for Start { cpu, ran, kicked } in self.start.iter().take(CPUS) {
            let what = match ran {
                None if matches!(self.wait.why, Became::Left(_)) && !kicked => {
                    "had nothing else then".to_string()
                }
                None => "was idle".to_string(),
                Some((who, since, known)) => {
                    let known = match values(known) {
                        known if known.is_empty() => known,
                        known => format!(": {known}"),
                    };
                    format!("ran {} since {}{known}", who.in_full(), time(*since))
                }
            };
            let kick = if *kicked { "; kicked, to pick again" } else { "" };
            wrapped(f, &format!("  CPU {} {what}{kick}", cpu.0), 6)?;
        }
        self.more(f, self.start.len().saturating_sub(CPUS), "CPUs")
    }

    fn more(&self, f: &mut fmt::Formatter<'_>, count: usize, what: &str) -> fmt::Result {
        if count > 0 { writeln!(f, "  and {count} more {what}") } else { Ok(()) }
    }

    /// The CPUs, that which took the task first.
    fn cpus(&self) -> Vec<CpuId> {
        let mut cpus: Vec<CpuId> = self.ran.iter().map(|ran| ran.cpu).collect();
        cpus.dedup();
        cpus.sort_by_key(|cpu| (Some(*cpu) != self.cpu, *cpu));
        cpus
    }

    fn write_ran(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\nMeanwhile\n")?;
        let cpus = self.cpus();
        for &cpu in cpus.iter().take(CPUS) {
            let all: Vec<&Ran> = self.ran.iter().filter(|ran| ran.cpu == cpu).collect();
            let mut parts: Vec<String> = Vec::new();
            for ran in all.iter().take(TASKS) {
                let (time, turns) = (short(ran.time), turns(ran.turns));
                let how = match ran.ended {
                    Some(why) => format!(" ({})", left(why)),
                    None => String::new(),
                };
                parts.push(match &ran.who {
                    Some(who) => format!("{} had it {time}{turns}{how}", who.in_full()),
                    None => format!("it was idle {time}{turns}"),
                });
            }
            if all.len() > TASKS {
                let rest = Span(all[TASKS..].iter().map(|ran| ran.time.0).sum());
                let others = all.len() - TASKS;
                let plural = if others == 1 { "" } else { "s" };
                parts.push(format!("{others} other{plural} {}", short(rest)));
            }
            wrapped(f, &format!("  CPU {}: {}", cpu.0, parts.join(", ")), 6)?;
        }
        self.more(f, cpus.len().saturating_sub(CPUS), "CPUs")
    }

    fn write_choice(&self, f: &mut fmt::Formatter<'_>, choice: &Choice) -> fmt::Result {
        let Choice { at, cpu, who, slice, reason, .. } = choice;
        let Some(who) = who else {
            let text = format!("  {} CPU {}: nothing, though the task waits", time(*at), cpu.0);
            return wrapped(f, &text, 6);
        };
        let slice = match *slice {
            Span::MAX => String::new(),
            slice => format!(" for at most {}", short(slice)),
        };
        let why = match reason.words() {
            why if why.is_empty() => String::new(),
            why => format!(": {why}"),
        };
        let (name, other) = (&who.name, &self.wait.who.name);
        wrapped(f, &format!("  {} CPU {}: {name}{slice}{why}", time(*at), cpu.0), 6)?;
        if matches!(reason, Reason::Unknown | Reason::Despite { .. }) {
            for (name, known) in [(name, &choice.values), (other, &choice.own)] {
                if !known.is_empty() {
                    wrapped(f, &format!("      {name}: {}", values(known)), 8)?;
                }
            }
        }
        Ok(())
    }

    fn write_choices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = &self.policy;
        if self.choices.is_empty() {
            f.write_str("\n")?;
            wrapped(f, &format!("{policy} was not asked to choose meanwhile."), 0)?;
            return self.write_end(f);
        }
        writeln!(f, "\nWhat {policy} chose instead")?;
        let elsewhere = |choice: &&Choice| matches!(choice.reason, Reason::OtherQueue { .. });
        let here: Vec<&Choice> = self.choices.iter().filter(|it| !elsewhere(it)).collect();
        let shown = here.len().min(CHOICES);
        here[..shown].iter().try_for_each(|choice| self.write_choice(f, choice))?;
        let more = (here.len() - shown) as u64 + self.more_choices;
        if more > 0 {
            writeln!(f, "  and {more} more choices")?;
        }
        self.write_end(f)?;
        let mut queues: Vec<(CpuId, i64, i64, u64)> = Vec::new();
        for choice in self.choices.iter().filter(elsewhere) {
            let Reason::OtherQueue { chosen, other } = choice.reason else { continue };
            let is = |known: &&mut (CpuId, i64, i64, u64)| {
                (known.0, known.1, known.2) == (choice.cpu, chosen, other)
            };
            match queues.iter_mut().find(is) {
                Some(known) => known.3 += 1,
                None => queues.push((choice.cpu, chosen, other, 1)),
            }
        }
        for (cpu, queue, own, times) in queues.into_iter().take(CPUS) {
            let times = if times == 1 { "once".to_string() } else { format!("{times} times") };
            let name = &self.wait.who.name;
            let text = format!(
                "  CPU {}: {times} from runqueue {queue}, while {name} was in runqueue {own}",
                cpu.0
            );
            wrapped(f, &text, 6)?;
        }
        Ok(())
    }

    fn write_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(to), Some(cpu)) = (self.wait.to, self.cpu) else {
            return Ok(());
        };
        let after = match &self.left {
            Some((who, why)) if *who != self.wait.who => match why {
                Off::Preempted => format!(" in place of {}", who.name),
                why => format!(" after {} ({})", who.name, left(*why)),
            },
            _ => String::new(),
        };
        let known = match values(&self.values_at_end) {
            known if known.is_empty() => known,
            known => format!(": {known}"),
        };
        let name = &self.wait.who.name;
        wrapped(f, &format!("  {} CPU {}: {name}{after}{known}", time(to), cpu.0), 6)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_ran(f)?;
        self.write_start(f)?;
        self.write_choices(f)
    }
}
