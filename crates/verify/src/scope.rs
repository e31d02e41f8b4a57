//! What is searched: how many tasks, which machine, which events.

use anysched_core::Machine;

/// The bounds of a search, other than its depth.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The machine.
    pub machine: Machine,
    /// How many tasks there are at most.
    pub tasks: u32,
    /// Whether the policy is told how long tasks will run.
    pub tells_bursts: bool,
    /// Which events may happen.
    pub kinds: Kinds,
}

/// Kinds of events that can be left out. Arrivals, wake-ups, blocking, yielding, exits, ends of
/// slices, preemptions, picks, timers and passing time always happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Wakers announce that they will block.
    pub sync: bool,
    /// A CPU picks later than its task was put back.
    pub late_picks: bool,
    /// Picks are undone.
    pub not_run: bool,
    /// Ready tasks are taken out for a moment.
    pub resumed: bool,
    /// The host ticks.
    pub ticks: bool,
    /// Weights and priorities change.
    pub nice: bool,
    /// Affinities change.
    pub affinity: bool,
    /// CPUs come into use and go out of it.
    pub hotplug: bool,
}

impl Kinds {
    /// All of them.
    pub const ALL: Kinds = Kinds {
        sync: true,
        late_picks: true,
        not_run: true,
        resumed: true,
        ticks: true,
        nice: true,
        affinity: true,
        hotplug: true,
    };
}

impl Scope {
    /// All kinds of events.
    pub fn new(machine: Machine, tasks: u32) -> Scope {
        Scope { machine, tasks, tells_bursts: false, kinds: Kinds::ALL }
    }
}
