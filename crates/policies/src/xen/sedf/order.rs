//! The order of runqueues, and when it changes.

use core::fmt::Debug;

use anysched_core::{Canon, choice};

choice! {
    /// The key of deadline-monotonic order, the smallest first.
    pub enum DmKey {
        /// The slice, which the paper on SEDF_DM takes for the relative deadline.
        Slice = "slice",
        /// The period, which is the relative deadline in SEDF.
        Period = "period",
        /// The task's relative deadline, or its period.
        Deadline = "deadline",
    }
}

/// The order of a CPU's runqueue: by deadline (EDF) or by a fixed key (DM). It is told what happens
/// and may change whenever a CPU decides.
pub trait Order: Clone + Debug {
    /// Whether it is currently DM.
    fn is_dm(&self) -> bool;

    /// Whether a scan of the runqueue continues past the first vCPU that is in its right place.
    fn scans_all(&self) -> bool {
        self.is_dm()
    }

    /// A scan has come upon a vCPU, which has `missed` its deadline or not.
    fn saw(&mut self, _missed: bool) {}

    /// A vCPU has used up the `whole` slice or blocked before, `on_time` for its deadline or not.
    fn done(&mut self, _on_time: bool, _whole: bool) {}

    /// Whether the order changes now. Called after each scan.
    fn decide(&mut self) -> bool {
        false
    }

    /// See [`Scheduler::canon`](anysched_core::Scheduler::canon).
    fn canon(&self, _to: &mut Canon) {}
}

/// By deadline at all times.
#[derive(Clone, Copy, Debug)]
pub struct Edf;

impl Order for Edf {
    fn is_dm(&self) -> bool {
        false
    }
}
