//! A parting in words.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_core::registry::First;
use anysched_core::{Span, Time};
use core::fmt;

use super::{After, Parting, Then};
use crate::follow::{Who, left};
use crate::why::{Reason, reason, time, values, wrapped};

/// How many tasks are told in words.
const TASKS: usize = 8;

/// One of two schedules.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// By what its policy orders tasks.
    pub order: &'static [First],
    /// Where it parts from the other, in its own time.
    pub parting: Parting,
    /// What there was then, and what came of it.
    pub after: After,
}

/// Two schedules that part.
#[derive(Clone, Debug)]
pub struct Diff {
    /// Both.
    pub sides: [Side; 2],
}

impl Diff {
    /// Why a side, by number, runs what it runs and not what the other does.
    pub fn reason(&self, side: usize) -> Reason {
        let [Some(chosen), Some(other)] = [side, 1 - side].map(|side| self.chosen(side)) else {
            return Reason::Unknown;
        };
        let Side { order, after, .. } = &self.sides[side];
        let known = |who: &Who| after.tasks.get(&who.serial);
        let [Some(chosen), Some(other)] = [known(chosen), known(other)] else {
            return Reason::Unknown;
        };
        // What runs has not been waiting; since when it would count is the policy's own matter.
        let waits = [chosen, other].map(|then| then.waits);
        let (chosen_since, other_since) = match waits {
            [Some(chosen), Some(other)] => (chosen, other),
            _ => (Time::ZERO, Time::ZERO),
        };
        match reason(order, (&chosen.values, chosen_since), (&other.values, other_since)) {
            Reason::Tie if waits.contains(&None) => Reason::Unknown,
            found => found,
        }
    }

    /// What a side runs.
    fn chosen(&self, side: usize) -> Option<&Who> {
        self.sides[side].after.runs.as_ref()
    }

    /// What a side's CPU ran just before.
    fn ran(&self, side: usize) -> Option<&Who> {
        let Side { parting, after, .. } = &self.sides[side];
        let on = after.cpus.iter().find(|(cpu, ..)| *cpu == parting.cpu);
        on.and_then(|(_, who, _)| who.as_ref())
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.sides;
        let [at, other] = [a, b].map(|side| side.parting.time);
        let when = match at == other {
            true => format!("at {}", time(at)),
            false => format!("at {} and {}", time(at), time(other)),
        };
        let Parting { cpu, alike, .. } = a.parting;
        let alike = match alike {
            0 => "the first step".to_string(),
            1 => "after 1 step alike".to_string(),
            n => format!("after {n} steps alike"),
        };
        let text = format!("{} and {} part {when} on CPU {}, {alike}.", a.name, b.name, cpu.0);
        wrapped(f, &text, 0)?;
        for (side, Side { name, .. }) in self.sides.iter().enumerate() {
            let (runs, ran) = (self.chosen(side), self.ran(side));
            let does = match runs {
                None => "runs nothing".to_string(),
                Some(who) if Some(who) == ran => format!("goes on with {}", who.in_full()),
                Some(who) => format!("runs {}", who.in_full()),
            };
            let why = match self.reason(side).words() {
                why if why.is_empty() => why,
                why => format!(": {why}"),
            };
            wrapped(f, &format!("  {name} {does}{why}"), 6)?;
        }
        Ok(())
    }

    /// The tasks to tell of: those that the sides run, then those for which most changes.
    fn tasks(&self) -> Vec<u64> {
        let all: BTreeSet<u64> =
            self.sides.iter().flat_map(|side| side.after.tasks.keys().copied()).collect();
        let chosen: Vec<u64> =
            (0..2).filter_map(|side| self.chosen(side)).map(|who| who.serial).collect();
        let rank = |serial: &u64| {
            let done = [0, 1].map(|side| self.then(side, *serial).and_then(|then| then.done));
            let changes = match done {
                [Some((a, _)), Some((b, _))] => a.0.abs_diff(b.0),
                [None, None] => 0,
                _ => u64::MAX,
            };
            let place = chosen.iter().position(|known| known == serial).unwrap_or(2);
            (place, core::cmp::Reverse(changes), *serial)
        };
        let mut all: Vec<u64> = all.into_iter().collect();
        all.sort_by_key(rank);
        all
    }

    fn then(&self, side: usize, serial: u64) -> Option<&Then> {
        self.sides[side].after.tasks.get(&serial)
    }

    fn write_before(&self, f: &mut fmt::Formatter<'_>, tasks: &[u64]) -> fmt::Result {
        f.write_str("\nJust before\n")?;
        for serial in tasks.iter().take(TASKS) {
            let Some(then) = self.then(0, *serial).or(self.then(1, *serial)) else { continue };
            let ran = |(_, who, since): &&(_, Option<Who>, Time)| {
                who.as_ref() == Some(&then.who) && *since != Time::NEVER
            };
            let does = match then.waits {
                Some(since) => format!("ready since {}", time(since)),
                None => match self.sides[0].after.cpus.iter().find(ran) {
                    Some((cpu, _, since)) => {
                        format!("on CPU {} since {}", cpu.0, time(*since))
                    }
                    None => "running".to_string(),
                },
            };
            wrapped(f, &format!("  {}, {does}", then.who.in_full()), 6)?;
            for (side, Side { name, .. }) in self.sides.iter().enumerate() {
                let known = self.then(side, *serial).map(|then| values(&then.values));
                if let Some(known) = known.filter(|known| !known.is_empty()) {
                    wrapped(f, &format!("      {name}: {known}"), 8)?;
                }
            }
        }
        match tasks.len().saturating_sub(TASKS) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more tasks"),
        }
    }

    fn write_after(&self, f: &mut fmt::Formatter<'_>, tasks: &[u64]) -> fmt::Result {
        f.write_str("\nWhat came of it\n")?;
        let mut told = 0;
        let mut same = 0;
        for serial in tasks {
            let both = [0, 1].map(|side| self.then(side, *serial));
            let [Some(a), Some(b)] = both else { continue };
            if a.picked == b.picked && a.done == b.done {
                same += 1;
                continue;
            }
            if told == TASKS {
                continue;
            }
            told += 1;
            let [x, y] = [(0, a), (1, b)].map(|(side, then)| self.outcome(side, then));
            let by = match (a.done, b.done) {
                (Some((a, _)), Some((b, _))) => self.later(a, b),
                _ => String::new(),
            };
            wrapped(f, &format!("  {}: {x}; {y}{by}", a.who.in_full()), 6)?;
        }
        if same > 0 {
            writeln!(f, "  {same} more: the same")?;
        }
        match tasks.len().saturating_sub(told + same) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more tasks"),
        }
    }

    fn later(&self, a: Time, b: Time) -> String {
        let [start_a, start_b] = [0, 1].map(|side: usize| self.sides[side].parting.time);
        let (a, b) = (a.since(start_a), b.since(start_b));
        match a.0.cmp(&b.0) {
            core::cmp::Ordering::Less => {
                format!(", {} later", crate::why::short(Span(b.0 - a.0)))
            }
            core::cmp::Ordering::Equal => String::new(),
            core::cmp::Ordering::Greater => {
                format!(", {} earlier", crate::why::short(Span(a.0 - b.0)))
            }
        }
    }

    fn outcome(&self, side: usize, then: &Then) -> String {
        let name = &self.sides[side].name;
        let picked = match (then.waits, then.picked) {
            (_, Some(at)) => format!("is picked at {}", time(at)),
            (None, None) => "goes on".to_string(),
            (Some(_), None) => "is never picked".to_string(),
        };
        match then.done {
            Some((at, why)) => {
                let is = if left(why) == "blocked" { "blocks" } else { "ends" };
                format!("with {name} it {picked} and {is} at {}", time(at))
            }
            None => format!("with {name} it {picked}"),
        }
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.tasks();
        self.write_head(f)?;
        self.write_before(f, &tasks)?;
        self.write_after(f, &tasks)
    }
}
