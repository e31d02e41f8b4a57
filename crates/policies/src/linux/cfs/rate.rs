//! Virtual time and slices, rounded as by `__calc_delta` of `fair.c`, which multiplies by rounded
//! inverses of weights instead of dividing.

use anysched_core::Span;
use anysched_core::params::NICE_0_WEIGHT;

/// Weights whose inverse the kernel's table cuts off, where it rounds all others to the nearest.
const CUT_OFF: [u32; 4] = [56, 45, 29, 23];

/// `factor` / 2^`shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    factor: u32,
    shift: u8,
}

impl Rate {
    /// How fast the vruntime of a task of `weight`, at least 1, grows: 1024 / weight, exact at
    /// nice 0, else with the inverse that the kernel has in a table (`sched_prio_to_wmult`).
    pub(super) fn of(weight: u32) -> Rate {
        if weight == NICE_0_WEIGHT {
            return Rate { factor: 1, shift: 0 };
        }
        let half = if CUT_OFF.contains(&weight) { 0 } else { weight / 2 };
        let weight = u64::from(weight.max(1));
        let inverse = ((1 << 32) + u64::from(half)) / weight;
        Rate::ratio(NICE_0_WEIGHT.into(), inverse.min(u32::MAX.into()) as u32)
    }

    /// The part that a task of `weight` has of `total`, which is not less.
    #[inline]
    fn part(weight: u64, total: u64) -> Rate {
        let inverse =
            if total < u64::from(u32::MAX) { u32::MAX / (total as u32).max(1) } else { 1 };
        Rate::ratio(weight, inverse)
    }

    /// `weight`, of at most 48 bits, times `inverse` / 2^32, with 32 significant bits.
    #[inline]
    fn ratio(weight: u64, inverse: u32) -> Rate {
        let product = weight.saturating_mul(inverse.into());
        let excess = 32 - ((product >> 32) as u32).leading_zeros();
        Rate { factor: (product >> excess) as u32, shift: (32 - excess) as u8 }
    }

    /// `time` at this rate.
    #[inline]
    pub(super) fn apply(self, time: Span) -> Span {
        Span(((u128::from(time.0) * u128::from(self.factor)) >> self.shift) as u64)
    }
}

/// The part of `period` that a task of `weight` has if `total` is the weight of all.
#[inline]
pub(super) fn slice(period: Span, weight: u64, total: u64) -> Span {
    Rate::part(weight, total).apply(period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_core::params::NICE_WEIGHTS;

    #[test]
    fn nice_0_is_exact_and_others_lose_less_than_a_millionth() {
        let times = [Span(1), Span(999_999), Span::from_ms(7), Span::from_s(100)];
        for weight in NICE_WEIGHTS.into_iter().chain([1, 2, 3, 88_762, u32::MAX]) {
            for time in times {
                let exact = time.scaled(NICE_0_WEIGHT.into(), weight.into()).0;
                let off = Rate::of(weight).apply(time).0.abs_diff(exact);
                assert!(off <= 1 + exact / 1_000_000 * 11, "{weight} {time}: {off} of {exact}");
                assert!(weight != NICE_0_WEIGHT || off == 0);
            }
        }
    }

    #[test]
    fn inverses_are_those_of_the_kernel() {
        // sched_prio_to_wmult of nice -20, 5, 13, 15 and 19, and WMULT_IDLEPRIO.
        let known = [
            (88_761, 48_388),
            (335, 12_820_798),
            (56, 76_695_844),
            (36, 119_304_647),
            (15, 286_331_153),
            (3, 1_431_655_765),
        ];
        for (weight, inverse) in known {
            assert_eq!(Rate::of(weight), Rate::ratio(1024, inverse), "{weight}");
        }
    }

    #[test]
    fn slices_are_parts_of_a_period_and_never_more() {
        let ms = Span::from_ms;
        assert_eq!(slice(ms(6), 1024, 2048), Span(2_999_998), "2^32 - 1 over 2048 is cut off");
        assert_eq!(slice(ms(6), 1024, 1024), Span(5_999_998));
        assert_eq!(slice(ms(6), 15, 15 + 88_761), Span(1_013));
        assert_eq!(slice(ms(6), 1 << 40, 1 << 40), Span(1_536_000_000));
        assert_eq!(slice(ms(6), 1, u64::from(u32::MAX) - 1), Span::ZERO);
    }
}
