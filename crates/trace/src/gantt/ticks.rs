//! Round times along a picture.

use alloc::string::{String, ToString};
use anysched_core::{Span, Time};

/// The times from `from` to `until` that are multiples of 1, 2 or 5 times a power of ten, no more
/// than `most` of them, `from` left out.
pub(super) fn ticks(from: Time, until: Time, most: u64) -> impl Iterator<Item = Time> {
    let least = until.since(from).0.div_ceil(most.max(1)).max(1);
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|times| times * 10u64.pow(power)));
    let step = steps.into_iter().find(|step| *step >= least).unwrap_or(u64::MAX);
    let first = (from.0 / step).saturating_add(1).saturating_mul(step);
    core::iter::successors(Some(first), move |at| at.checked_add(step))
        .take_while(move |at| *at <= until.0)
        .map(Time)
}

/// A time as a label: to four digits behind the point at most.
pub(super) fn label(at: Time) -> String {
    let unit = match at.0 {
        ns if ns >= 1_000_000_000 => 100_000,
        ns if ns >= 1_000_000 => 100,
        _ => 1,
    };
    Span((at.0 + unit / 2) / unit * unit).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn ticks_are_round() {
        let all = |from, until, most| -> Vec<u64> {
            ticks(Time(from), Time(until), most).map(|at| at.0).collect()
        };
        assert_eq!(all(0, 80, 6), [20, 40, 60, 80]);
        assert_eq!(all(0, 79, 8), [10, 20, 30, 40, 50, 60, 70]);
        assert_eq!(all(33, 95, 7), [40, 50, 60, 70, 80, 90]);
        assert_eq!(all(0, 1, 10), [1]);
        assert_eq!(all(0, 0, 10), [0u64; 0]);
        assert!(all(0, u64::MAX - 1, 3).len() <= 3);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(label(Time(240_000_024)), "240ms");
        assert_eq!(label(Time(1_234_567_891)), "1.2346s");
        assert_eq!(label(Time(250)), "250ns");
    }
}
