//! Slices as multiples of the mean CPU time, for searches.

use super::Estimate;
use alloc::string::ToString;
use anysched_core::params::Value;
use anysched_core::time::Span;
use anysched_core::tuning::{Axis, Baseline, Role, Space, Values, quarter_octaves, three_digits};

/// A slice: quarters of octaves of the mean CPU time, from 1/256 to 27; the largest position is
/// none, which takes away the levels below.
const SLICE: Axis =
    Axis { low: -32, high: NO_SLICE, coarse: &[20, 12, 8, 4, 0, -4, -8, -16], steps: [2, 1] };
const NO_SLICE: i32 = 20;

/// The slices of Q1 and Q2, for each source of estimates.
pub(super) const SPACES: [Space; 3] = [
    space("", |position, mean| values(position, mean, None)),
    space("profile", |position, mean| values(position, mean, Some(Estimate::Profile))),
    space("ewma", |position, mean| values(position, mean, Some(Estimate::Ewma))),
];

/// The source takes the mean CPU time for both slices.
pub(super) const UNTUNED: Baseline = Baseline {
    role: Role::Untuned,
    variant: "untuned",
    values: |mean| {
        let whole = three_digits(mean).to_string();
        alloc::vec![("q1", whole.clone()), ("q2", whole)]
    },
};

const fn space(variant: &'static str, values: fn(&[i32], Span) -> Values) -> Space {
    Space { variant, is_rival: false, axes: &[SLICE, SLICE], values }
}

fn values(position: &[i32], mean: Span, estimate: Option<Estimate>) -> Values {
    let [q1, q2] = *position else { return Values::new() };
    let slice = |position: i32| match position {
        NO_SLICE.. => Span::MAX,
        _ => quarter_octaves(mean, position),
    };
    let mut values = alloc::vec![("q1", slice(q1).to_string())];
    // Nothing gets to Q2 when Q1 has no slice.
    if q1 < NO_SLICE {
        values.push(("q2", slice(q2).to_string()));
    }
    values.extend(estimate.map(|estimate| ("estimate", estimate.show())));
    values
}
