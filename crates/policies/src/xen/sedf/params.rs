//! Parameters that SEDF and its relatives share.

use alloc::vec::Vec;

use anysched_core::params::{ParamError, ParamInfo, Params};
use anysched_core::time::Span;
use anysched_core::{choice, params};

/// The shortest period; the limits are Xen's.
pub(super) const MIN_PERIOD: Span = Span::from_us(10);
/// The longest period.
pub(super) const MAX_PERIOD: Span = Span::from_s(10);
/// The shortest slice.
pub(super) const MIN_SLICE: Span = Span::from_us(5);
/// The period of vCPUs that get slices by weight, in ns.
pub(super) const WEIGHT_PERIOD: i64 = 100_000_000;
/// What slices by weight leave free in each such period, in ns.
pub(super) const WEIGHT_SAFETY: i64 = 5_000_000;

choice! {
    /// The CPU of a vCPU, among those that are in use and allowed.
    pub enum Placement {
        /// The first, as in Xen 4.2.
        First = "first",
        /// By its number in its domain, as in Xen 4.4.
        Spread = "spread",
    }
}

choice! {
    /// What the weights of domains are used for.
    pub enum Weights {
        /// Nothing.
        Off = "off",
        /// Slices, for vCPUs without a budget of their own.
        Slices = "slices",
        /// Extra time, for vCPUs without a budget of their own.
        Extra = "extra",
    }
}

choice! {
    /// The first period of a vCPU that has a slice when it first wakes.
    pub enum Start {
        /// Ends one slice from now, and so started in the past.
        Slice = "slice",
        /// Starts one slice from now, as in Xen's code.
        Wait = "wait",
        /// Starts now, as in Xen when the slice is set after the start.
        Period = "period",
    }
}

params! {
    /// Parameters of SEDF and its relatives.
    pub struct SedfParams {
        /// Period of a task without one of its own; 10us to 10s.
        period: Span = Span::from_ms(100),
        /// Slice per period of a task without a budget: 5us to the period; 0: extra time only.
        slice: Span = Span::ZERO,
        /// What domain weights are for: nothing, slices of 100ms, or shares of extra time.
        weights: Weights = Weights::Off,
        /// Whether tasks get extra time; without it, each needs a slice.
        extra: bool = true,
        /// Share of extra time; 0: by slice / period, 1 for tasks without a slice.
        extraweight: u32 = 0,
        /// Length of the first period after a long block, after which periods double; 0: not
        /// shortened.
        latency: Span = Span::ZERO,
        /// The CPU of a task: the first it may use (Xen 4.2), or by its number (4.4).
        placement: Placement = Placement::First,
        /// The first period ends a slice from now; starts then (literal Xen 4.2); or starts at
        /// once.
        start: Start = Start::Slice,
    }
}

/// A policy's own parameters, combined with [`SedfParams`].
#[derive(Clone, Debug, Default)]
pub struct Joint<P> {
    /// Its own.
    pub own: P,
    /// Those that all relatives share.
    pub shared: SedfParams,
}

impl<P: Params> Params for Joint<P> {
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        match self.own.set(name, text) {
            Err(ParamError::Unknown { .. }) => self.shared.set(name, text),
            other => other,
        }
    }

    fn list(&self) -> Vec<ParamInfo> {
        let mut list = self.own.list();
        list.extend(self.shared.list());
        list
    }
}

/// Errors: values out of range, or a task without a budget would never run.
pub(super) fn check(params: &SedfParams) -> Result<(), ParamError> {
    let invalid = |name, why| Err(ParamError::Invalid { name, why });
    let SedfParams { period, slice, weights, extra, .. } = *params;
    if !(MIN_PERIOD..=MAX_PERIOD).contains(&period) {
        return invalid("period", "must be from 10us to 10s");
    }
    if slice != Span::ZERO && !(MIN_SLICE..=period).contains(&slice) {
        return invalid("slice", "must be 0, or from 5us to the period");
    }
    if params.latency != Span::ZERO && params.latency < MIN_PERIOD {
        return invalid("latency", "must be 0, or 10us or more");
    }
    if weights == Weights::Extra && !extra {
        return invalid("weights", "shares of extra time need extra = true");
    }
    if slice == Span::ZERO && weights == Weights::Off {
        if !extra {
            return invalid("slice", "must be above 0 without extra time, or tasks never run");
        }
        if period < Span::from_us(500) {
            return invalid("period", "must be 500us or more if slice is 0, or tasks never run");
        }
    }
    Ok(())
}
