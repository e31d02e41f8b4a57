//! What every policy declares about itself.

use alloc::vec::Vec;

use crate::params::{ParamError, Params};
use crate::time::Span;
use crate::tuning::{Baseline, Space};
use crate::{CpuSet, Machine};

/// A kernel that has a policy's rule itself, so that the two can be compared there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native {
    /// The name of the host.
    pub host: &'static str,
    /// The host's own scheduler that follows the rule, if it can be chosen there.
    pub scheduler: Option<&'static str>,
}

/// How a policy divides the CPUs of a machine into groups.
#[derive(Clone, Copy, Debug)]
pub struct Groupings {
    /// The names of its ways to do so.
    pub names: fn() -> Vec<&'static str>,
    /// The groups of a machine by one of these names, or by a list of CPUs for each group.
    ///
    /// Errors: no such name; the list does not divide the machine.
    pub of: fn(&Machine, &str) -> Result<Vec<CpuSet>, ParamError>,
}

/// One of the things by which a policy orders tasks that wait in the same runqueue, for
/// explanations: names are those of [`Scheduler::probe`](crate::Scheduler::probe).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The least of this value goes first.
    Least(&'static str),
    /// The most of this value goes first.
    Most(&'static str),
    /// What has been ready for longest goes first.
    Longest,
}

/// A bound that grows with the number of tasks: `fixed` + `per_rival` · (tasks − 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Whatever the number of tasks.
    pub fixed: Span,
    /// For each other task that is ready or runs.
    pub per_rival: Span,
}

impl Bound {
    /// The bound among so many tasks, the one that waits included.
    pub fn of(self, tasks: u64) -> Span {
        let rivals = self.per_rival.0.saturating_mul(tasks.saturating_sub(1));
        Span(self.fixed.0.saturating_add(rivals))
    }
}

/// What every policy declares about itself, and how it is built.
pub trait Policy: Sized {
    /// Its parameters.
    type Params: Params;
    /// The rule's origin: paper and section, or kernel file and version.
    const SOURCE: &'static str;
    /// Whether it reads [`Arrival::burst`](crate::Arrival::burst), which no kernel knows;
    /// parameters may override this.
    const CLAIRVOYANT: bool = false;
    /// Whether, by its rule, a ready task may wait for as long as others go on computing;
    /// parameters may [override](Policy::starves) this.
    const STARVES: bool = false;
    /// By what it orders tasks that wait in the same runqueue: by the first, and where that is
    /// equal by the next. Empty: by nothing that values tell.
    const ORDER: &'static [First] = &[];
    /// See [`PolicyInfo::seed`](crate::registry::PolicyInfo::seed).
    const SEED: Option<&'static str> = None;
    /// See [`PolicyInfo::native`](crate::registry::PolicyInfo::native).
    const NATIVE: &'static [Native] = &[];
    /// See [`PolicyInfo::is_default_guest`](crate::registry::PolicyInfo::is_default_guest).
    const IS_DEFAULT_GUEST: bool = false;
    /// See [`PolicyInfo::groupings`](crate::registry::PolicyInfo::groupings).
    const GROUPINGS: Option<Groupings> = None;
    /// See [`PolicyInfo::spaces`](crate::registry::PolicyInfo::spaces).
    const SPACES: &'static [Space] = &[];
    /// See [`PolicyInfo::baseline`](crate::registry::PolicyInfo::baseline).
    const BASELINE: Option<Baseline> = None;

    /// Whether it reads [`Arrival::burst`](crate::Arrival::burst) with these parameters.
    fn is_clairvoyant(_: &Self::Params) -> bool {
        Self::CLAIRVOYANT
    }

    /// Whether, by its rule and with these parameters, a ready task may wait for as long as others
    /// go on computing.
    fn starves(_: &Self::Params) -> bool {
        Self::STARVES
    }

    /// Whether, with these parameters, no CPU that picks is left idle while its runqueue holds a
    /// task allowed there.
    fn is_work_conserving(_: &Self::Params) -> bool {
        true
    }

    /// How long a ready task waits at most, with these parameters, while all tasks have the usual
    /// weight or that of nice 5 and go on computing, and the host serves kicks at once; if that is
    /// known.
    fn longest_wait(_: &Self::Params) -> Option<Bound> {
        None
    }

    /// Whether, with these parameters, it uses what it learned in an earlier run of the same load.
    fn is_rehearsed(_: &Self::Params) -> bool {
        false
    }

    /// If these parameters lack what a run of the same load would teach: the names and values to
    /// change for that run. See [`PolicyInfo::rehearsal`](crate::registry::PolicyInfo::rehearsal).
    fn rehearsal(_: &Self::Params) -> Option<&'static [(&'static str, &'static str)]> {
        None
    }

    /// The policy with `queues` runqueues on `machine`.
    ///
    /// Errors: an unusable parameter.
    fn build(machine: &Machine, queues: usize, params: &Self::Params) -> Result<Self, ParamError>;
}
