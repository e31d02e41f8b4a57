//! Why a task waited: who ran instead, where, for how long, and by which values of the policy.
//!
//! A run is watched twice: [`Finder`] finds the wait, [`Explainer`] looks at what was decided
//! meanwhile. Only that wait is kept.

mod explain;
mod find;
mod words;

use alloc::string::String;
use alloc::vec::Vec;
use anysched_core::registry::First;
use anysched_core::{CpuId, Off, Span, Time};

use crate::follow::{Became, Who};

pub use explain::Explainer;
pub(crate) use explain::probe;
pub use find::{Did, Finder, Found, Longest, Missed};
pub use words::{short, value};
pub(crate) use words::{time, values, wrapped};

/// A wait of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waited.
    pub who: Who,
    /// When it became ready.
    pub from: Time,
    /// Why.
    pub why: Became,
    /// When it was picked; `None`: not before the run ended.
    pub to: Option<Time>,
}

/// What a policy says of its state for a task, in its order.
pub type Values = Vec<(&'static str, i64)>;

/// A wait and what was decided meanwhile.
#[derive(Clone, Debug)]
pub struct Why {
    /// The policy, as it is called in what is shown.
    pub policy: String,
    /// The wait.
    pub wait: Wait,
    /// When it was over, or the run.
    pub until: Time,
    /// The CPU that picked the task.
    pub cpu: Option<CpuId>,
    /// What the CPUs on which it may run did when it became ready.
    pub start: Vec<Start>,
    /// The values of the task then.
    pub values: Values,
    /// Its values just before it was picked.
    pub values_at_end: Values,
    /// Who had which CPU, and how long.
    pub ran: Vec<Ran>,
    /// What was picked instead, in order; only the first ones.
    pub choices: Vec<Choice>,
    /// How many more there were.
    pub more_choices: u64,
    /// What left the CPU that then picked the task, at that moment, and why.
    pub left: Option<(Who, Off)>,
}

/// A CPU when the task became ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The CPU.
    pub cpu: CpuId,
    /// What it ran, since when, and what the policy said of that.
    pub ran: Option<(Who, Time, Values)>,
    /// Whether the policy kicked it because of the task.
    pub kicked: bool,
}

/// How long a task, or nothing, had a CPU during a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The CPU.
    pub cpu: CpuId,
    /// The task; `None`: the CPU was idle.
    pub who: Option<Who>,
    /// How long in all.
    pub time: Span,
    /// In how many turns.
    pub turns: u64,
    /// Why the last one ended; `None`: it did not.
    pub ended: Option<Off>,
}

/// A pick of another task.
#[derive(Clone, Debug)]
pub struct Choice {
    /// When.
    pub at: Time,
    /// For which CPU.
    pub cpu: CpuId,
    /// Which task; `None`: nothing.
    pub who: Option<Who>,
    /// For how long at most.
    pub slice: Span,
    /// Since when it had been ready.
    pub since: Time,
    /// What the policy said of it just before.
    pub values: Values,
    /// What it said of the task that waits.
    pub own: Values,
    /// What follows from both.
    pub reason: Reason,
}

/// Why one task was picked and not another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This value of it came before that of the other.
    By {
        /// The value's name.
        name: &'static str,
        /// That of the task that was picked.
        chosen: i64,
        /// That of the task that waits.
        other: i64,
    },
    /// It had been ready for longer, since then.
    Earlier {
        /// Since when the task that was picked had been ready.
        chosen: Time,
        /// Since when the task that waits had been.
        other: Time,
    },
    /// The task that waits is in another runqueue.
    OtherQueue {
        /// Of the task that was picked.
        chosen: i64,
        /// Of the task that waits.
        other: i64,
    },
    /// By this value, the first by which the policy orders tasks and they differ, the other would
    /// have come first: another rule of the policy decided.
    Despite {
        /// The value's name.
        name: &'static str,
        /// That of the task that was picked.
        chosen: i64,
        /// That of the task that waits.
        other: i64,
    },
    /// All values by which the policy orders tasks are the same.
    Tie,
    /// The policy has no order that one value tells, or has picked nothing.
    Unknown,
}

/// A task in a comparison: its values, and since when it is ready.
pub(crate) type Side<'a> = (&'a [(&'static str, i64)], Time);

fn find(values: &[(&'static str, i64)], name: &str) -> Option<i64> {
    values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Why `chosen` was picked and not `other` by a policy with this order.
pub fn reason(order: &[First], chosen: Side<'_>, other: Side<'_>) -> Reason {
    for queue in ["runqueue", "group"] {
        if let (Some(chosen), Some(other)) = (find(chosen.0, queue), find(other.0, queue))
            && chosen != other
        {
            return Reason::OtherQueue { chosen, other };
        }
    }
    for key in order {
        let (name, least) = match *key {
            First::Least(name) => (name, true),
            First::Most(name) => (name, false),
            First::Longest if chosen.1 == other.1 => continue,
            First::Longest if chosen.1 < other.1 => {
                return Reason::Earlier { chosen: chosen.1, other: other.1 };
            }
            First::Longest => return Reason::Unknown,
        };
        let (Some(chosen), Some(other)) = (find(chosen.0, name), find(other.0, name)) else {
            continue;
        };
        if chosen != other {
            return match (chosen < other) == least {
                true => Reason::By { name, chosen, other },
                false => Reason::Despite { name, chosen, other },
            };
        }
    }
    if order.is_empty() { Reason::Unknown } else { Reason::Tie }
}
