//! Exponential decay without floats: numbers of 64 significant bits with an exponent as wide as
//! needed, e^(t/τ) as such a number, and the way back.
//!
//! Errors (checked in the tests): of a sum, difference, product or quotient of exact numbers, 2^-63
//! of the result; of [`Decay::growth`], 2^-59 of it; of [`Decay::time_until`], 1 ns and another
//! 2^-16 ns each time that growth doubles until then. [`Decay::growth`] takes τ to be longer than
//! it is by at most 2^-63 of it, the same for all times, which shifts no comparison.

use anysched_core::canonical;
use anysched_core::exp2::{self, LN_2, LOG2_E};
use anysched_core::time::Span;

/// A non-negative number: `mantissa · 2^exponent`, rounded down to 64 bits. The highest bit of the
/// mantissa is set unless the number is 0, so the derived order is numerical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Real {
    exponent: i64,
    mantissa: u64,
}

impl Default for Real {
    fn default() -> Real {
        Real::ZERO
    }
}

impl Real {
    /// 0, which is below all others.
    pub const ZERO: Real = Real { exponent: i64::MIN, mantissa: 0 };

    /// `wide · 2^exponent`.
    #[inline]
    fn new(wide: u128, exponent: i64) -> Real {
        if wide == 0 {
            return Real::ZERO;
        }
        let bits = 128 - wide.leading_zeros();
        let mantissa = if bits > 64 { wide >> (bits - 64) } else { wide << (64 - bits) };
        Real { exponent: exponent + i64::from(bits) - 64, mantissa: mantissa as u64 }
    }

    /// `numerator / denominator`, which must not be 0.
    pub fn ratio(numerator: u32, denominator: u32) -> Real {
        Real::new(u128::from(numerator), 0).over(Real::new(u128::from(denominator), 0))
    }

    /// Both mantissas at one scale, and its exponent; `other` must not be the larger.
    #[inline]
    fn aligned(self, other: Real) -> (u128, u128, i64) {
        let distance = self.exponent.saturating_sub(other.exponent).min(127);
        let small = (u128::from(other.mantissa) << 63) >> distance;
        (u128::from(self.mantissa) << 63, small, self.exponent.saturating_sub(63))
    }

    /// `self + other`
    #[inline]
    pub fn plus(self, other: Real) -> Real {
        let (large, small) = if self >= other { (self, other) } else { (other, self) };
        if small == Real::ZERO {
            return large;
        }
        let (large, small, exponent) = large.aligned(small);
        Real::new(large + small, exponent)
    }

    /// `self - other`, or 0 if `other` is larger.
    #[inline]
    pub fn minus(self, other: Real) -> Real {
        if self <= other {
            return Real::ZERO;
        }
        let (large, small, exponent) = self.aligned(other);
        Real::new(large - small, exponent)
    }

    /// `self · other`
    #[inline]
    pub fn times(self, other: Real) -> Real {
        if self == Real::ZERO || other == Real::ZERO {
            return Real::ZERO;
        }
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        Real::new(product, self.exponent + other.exponent)
    }

    /// `self / other`, which must not be 0.
    #[inline]
    pub fn over(self, other: Real) -> Real {
        if self == Real::ZERO {
            return Real::ZERO;
        }
        let quotient = (u128::from(self.mantissa) << 64) / u128::from(other.mantissa);
        Real::new(quotient, self.exponent - other.exponent - 64)
    }

    /// Rounded down to a whole number.
    pub fn floor(self) -> u64 {
        match self.exponent {
            ..=-64 => 0,
            exponent @ -63..=0 => self.mantissa >> -exponent,
            _ => u64::MAX,
        }
    }

    /// log₂, with 64 fractional bits. Not for 0.
    #[inline]
    fn log2(self) -> i128 {
        (i128::from(self.exponent + 63) << 64) + i128::from(exp2::logarithm(self.mantissa))
    }

    #[cfg(test)]
    pub fn to_f64(self) -> f64 {
        self.mantissa as f64 * f64::exp2(self.exponent as f64)
    }
}

/// e^(t/τ) for one τ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decay {
    /// 1 / (τ ln 2) per ns, with `fraction` fractional bits.
    doublings: u64,
    fraction: u32,
    /// τ ln 2, stretched by [`OVERSHOOT_PERCENT`], in 2^-16 ns.
    doubling_time: u64,
    tau: Span,
}

/// The shortest and the longest τ that [`Decay`] takes.
pub(super) const TAU: core::ops::RangeInclusive<Span> = Span::from_us(1)..=Span::from_s(3600);

/// OSv stretches the times of its timer a little, so that they end late rather than early.
const OVERSHOOT_PERCENT: u128 = 101;

impl Decay {
    /// With this τ, one of [`TAU`].
    pub fn new(tau: Span) -> Decay {
        let wide = LOG2_E / u128::from(tau.0);
        let dropped = 64 - wide.leading_zeros();
        let stretched = u128::from(LN_2) * u128::from(tau.0) * OVERSHOOT_PERCENT / 100;
        Decay {
            doublings: (wide >> dropped) as u64,
            fraction: 124 - dropped,
            doubling_time: (stretched >> 48) as u64,
            tau,
        }
    }

    /// log₂ e^(time/τ), with 64 fractional bits.
    #[inline]
    fn log2_of_growth(&self, time: i64) -> i128 {
        (i128::from(time) * i128::from(self.doublings)) >> (self.fraction - 64)
    }

    /// e^(time/τ) for a time in ns.
    #[inline]
    pub fn growth(&self, time: i64) -> Real {
        let log2 = self.log2_of_growth(time);
        Real { exponent: (log2 >> 64) as i64 - 63, mantissa: exp2::power(log2 as u64) }
    }

    /// The time from `time` until [`Decay::growth`] reaches `growth`, overestimated by 1 %;
    /// [`Span::ZERO`] if it already has, [`Span::MAX`] if that is out of range.
    #[inline]
    pub fn time_until(&self, growth: Real, time: i64) -> Span {
        let doublings = growth.log2() - self.log2_of_growth(time);
        let Ok(doublings) = u128::try_from(doublings) else { return Span::ZERO };
        let factor = u128::from(self.doubling_time);
        let fraction = ((doublings & u128::from(u64::MAX)) * factor) >> 64;
        let whole = (doublings >> 64).saturating_mul(factor).saturating_add(fraction) >> 16;
        u64::try_from(whole).map_or(Span::MAX, Span)
    }

    /// `real` times τ in ns.
    pub fn in_time(&self, real: Real) -> u64 {
        real.times(Real::new(u128::from(self.tau.0), 0)).floor()
    }
}

canonical!(Real { exponent, mantissa });

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How far apart two numbers are, relative to the second, in 2^-64.
    fn apart(a: Real, b: Real) -> u64 {
        let difference = a.minus(b).plus(b.minus(a));
        difference.over(b).times(Real::new(1, 64)).floor()
    }

    fn real() -> impl Strategy<Value = Real> {
        (any::<u64>(), -40..40i64).prop_map(|(whole, exponent)| Real::new(whole.into(), exponent))
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_floats(a in real(), b in real()) {
            let close = |real: Real, float: f64| {
                let real = real.to_f64();
                prop_assert!((real - float).abs() <= float.abs() * 1e-15, "{real} {float}");
                Ok(())
            };
            let (x, y) = (a.to_f64(), b.to_f64());
            close(a.plus(b), x + y)?;
            close(a.times(b), x * y)?;
            if b != Real::ZERO {
                close(a.over(b), x / y)?;
            }
            prop_assert_eq!(a < b, a.minus(b) == Real::ZERO && a != b);
            prop_assert!((a.minus(b).to_f64() - (x - y).max(0.0)).abs() <= x * 1e-15);
            prop_assert_eq!(a.plus(b).minus(b).minus(a), Real::ZERO);
            prop_assert!(a.minus(b).plus(b) <= a.plus(Real::ZERO).max(b));
        }

        /// If 2^2x = (2^x)² holds up to 2^-59, then 2^x itself is right up to 2^-59: the largest
        /// error e is at most half of (e + 2^-59).
        #[test]
        fn powers_of_two_square(x in any::<u64>()) {
            let power = |x: u64| Real { exponent: -63, mantissa: exp2::power(x) };
            let twice = power(x.wrapping_mul(2));
            let carried = Real { exponent: twice.exponent + (x >> 63) as i64, ..twice };
            prop_assert!(apart(power(x).times(power(x)), carried) <= 32);
        }

        #[test]
        fn growth_is_that_of_floats(
            tau in 1_000..3_600_000_000_000u64,
            times in -30_000..30_000i64,
        ) {
            let time = (tau as i128 * i128::from(times) / 1000) as i64;
            let growth = Decay::new(Span(tau)).growth(time).to_f64();
            let float = (time as f64 / tau as f64).exp();
            prop_assert!((growth - float).abs() <= float * 1e-14, "{growth} {float}");
        }

        #[test]
        fn growths_multiply(a in any::<u32>(), b in any::<u32>()) {
            let decay = Decay::new(Span::from_ms(200));
            let (a, b) = (i64::from(a) << 20, i64::from(b));
            prop_assert!(apart(decay.growth(a).times(decay.growth(b)), decay.growth(a + b)) <= 32);
            prop_assert!(apart(decay.growth(a).over(decay.growth(b)), decay.growth(a - b)) <= 32);
        }

        /// After a hundred years of uptime too.
        #[test]
        fn times_come_back_one_percent_longer(
            time in 0..3_000_000_000_000_000_000i64, distance in 0..10_000_000_000i64
        ) {
            let decay = Decay::new(Span::from_ms(200));
            let until = decay.time_until(decay.growth(time + distance), time);
            prop_assert!(until.0.abs_diff(distance as u64 * 101 / 100) <= 1, "{until} {distance}");
        }
    }

    #[test]
    fn exact_values() {
        // e^(1/2) = 1.6487212707001281468486507878
        let root_e = Decay::new(Span::from_ms(200)).growth(100_000_000);
        assert!(apart(root_e, Real { exponent: -63, mantissa: 15_206_769_664_743_235_147 }) <= 16);
    }

    #[test]
    fn far_ends() {
        let decay = Decay::new(Span::from_us(1));
        let (first, last) = (decay.growth(i64::MIN), decay.growth(i64::MAX));
        assert!(Real::ZERO < first && first < decay.growth(0) && decay.growth(0) < last);
        assert_eq!(first.plus(last), last);
        assert_eq!(decay.time_until(first, 0), Span::ZERO);
        assert!(decay.time_until(last, 0) > Span(i64::MAX as u64));
        assert_eq!(decay.time_until(last, i64::MIN), Span::MAX);
        assert_eq!(decay.in_time(last), u64::MAX);
        assert_eq!(decay.in_time(Real::ratio(3, 7)), 428);
    }
}
