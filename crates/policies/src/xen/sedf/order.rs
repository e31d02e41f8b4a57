//! By what runqueues are ordered, and when that changes.

use core::fmt::Debug;

use anysched_core::choice;

choice! {
    /// What deadline-monotonic order goes by, the smallest first.
    pub enum DmKey {
        /// The slice, which the paper on SEDF_DM takes for the relative deadline.
        Slice = "slice",
        /// The period, which is the relative deadline in SEDF.
        Period = "period",
        /// The task's relative deadline, or its period.
        Deadline = "deadline",
    }
}

/// The order of a CPU's runqueue: by deadline (EDF) or by a fixed key (DM). It is told what
/// happens and may change its mind when a CPU decides.
pub trait Order: Clone + Debug {
    /// Whether it is DM now.
    fn is_dm(&self) -> bool;

    /// Whether a scan of the runqueue goes on behind the first vCPU that is where it should be.
    fn scans_all(&self) -> bool {
        self.is_dm()
    }

    /// A scan came upon a vCPU, which has `missed` its deadline or not.
    fn saw(&mut self, _missed: bool) {}

    /// A vCPU has used up the `whole` slice or blocked before, `on_time` for its deadline or not.
    fn done(&mut self, _on_time: bool, _whole: bool) {}

    /// Whether the order is another one from now on. Called after each scan.
    fn decide(&mut self) -> bool {
        false
    }
}

/// By deadline at all times.
#[derive(Clone, Copy, Debug)]
pub struct Edf;

impl Order for Edf {
    fn is_dm(&self) -> bool {
        false
    }
}
