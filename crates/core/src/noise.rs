//! Wrong times, for policies that go by what they know of tasks: lognormal factors in integers.
//!
//! The factor is e^(σz), where z is normal: the sum of 48 uniform numbers of 16 bits, shifted and
//! scaled to mean 0 and variance 1. Its distribution function is within 0.0007 of the normal one,
//! and |z| is below 12. For a given z, the result is within 10^-12 of the product, and half a
//! nanosecond from rounding. The tests check both.

use alloc::string::String;

use crate::exp2;
use crate::params::Value;
use crate::random::SplitMix64;
use crate::time::Span;

/// The largest σ, in millionths.
const MOST: u64 = 10_000_000;

/// Decimal places of σ.
const PLACES: usize = 6;

/// log₂ e, with 60 fractional bits.
const LOG2_E: i128 = 0x1715_4765_2b82_fe17;

/// Fractional bits of [`normal`].
const FRACTION: u32 = 18;

/// The σ of a lognormal factor with median 1, the standard deviation of its logarithm, in
/// millionths: from 0, which is no noise, to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sigma(u32);

impl Sigma {
    /// Whether it is 0.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Value for Sigma {
    const KIND: &'static str = "σ";
    fn parse(text: &str) -> Result<Sigma, &'static str> {
        let text = text.trim();
        let why = "σ is a number from 0 to 10 with at most 6 decimals, for example 0.5";
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let plain = whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit());
        if !plain || whole.len() + part.len() == 0 || part.len() > PLACES {
            return Err(why);
        }
        let zeros = core::iter::repeat_n(b'0', PLACES - part.len());
        let digits = whole.bytes().chain(part.bytes()).chain(zeros);
        let millionths = digits.fold(0u64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        });
        if millionths > MOST {
            return Err(why);
        }
        Ok(Sigma(millionths as u32))
    }
    fn show(&self) -> String {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if part == 0 {
            return alloc::format!("{whole}");
        }
        let text = alloc::format!("{whole}.{part:06}");
        text.trim_end_matches('0').into()
    }
}

/// `time` with the noise that `seed` and what the time is about, `of`, determine.
pub fn apply(time: Span, sigma: Sigma, seed: u64, of: u64) -> Span {
    scaled(time, exponent(sigma.0, normal(seed, of)))
}

/// A standard normal number, with [`FRACTION`] fractional bits.
fn normal(seed: u64, of: u64) -> i64 {
    // Mixed before the seed joins, so that neighbouring seeds and numbers do not collide.
    let mut random = SplitMix64(SplitMix64(of).bits() ^ seed);
    let mut sum = 0;
    for _ in 0..12 {
        let bits = random.bits();
        sum += (0..4).map(|part| i64::from((bits >> (16 * part)) as u16)).sum::<i64>();
    }
    2 * sum - 48 * i64::from(u16::MAX)
}

/// log₂ of e^(σz), with 64 fractional bits.
fn exponent(sigma: u32, normal: i64) -> i128 {
    let product = i128::from(normal) * i128::from(sigma) * LOG2_E;
    (product / 1_000_000) >> (FRACTION + 60 - 64)
}

/// `time · 2^exponent`, to the nearest nanosecond, at most the longest.
fn scaled(time: Span, exponent: i128) -> Span {
    let product = u128::from(time.0) * u128::from(exp2::power(exponent as u64));
    // The product has 63 fractional bits.
    let shift = 63 - (exponent >> 64);
    let rounded = match u32::try_from(shift) {
        Ok(0) => product,
        Ok(shift @ 1..=127) => (product >> shift) + (product >> (shift - 1) & 1),
        Ok(_) => 0,
        Err(_) => product.saturating_mul(2u128.saturating_pow((-shift).unsigned_abs() as u32)),
    };
    Span(u64::try_from(rounded).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// [`normal`] as a float.
    fn normal_of(seed: u64, of: u64) -> f64 {
        normal(seed, of) as f64 / f64::from(1 << FRACTION)
    }

    proptest! {
        #[test]
        fn noise_is_the_formula(
            time in any::<u64>(),
            sigma in 0..=10_000_000u32,
            seed in any::<u64>(),
            of in any::<u64>(),
        ) {
            let noisy = apply(Span(time), Sigma(sigma), seed, of).0;
            let factor = (f64::from(sigma) * 1e-6 * normal_of(seed, of)).exp();
            let float = (time as f64 * factor).min(u64::MAX as f64);
            prop_assert!((noisy as f64 - float).abs() <= 0.5 + float * 1e-12, "{noisy} {float}");
        }
    }

    #[test]
    fn sigmas_read_back_as_written() {
        for (text, sigma) in
            [("0", 0), ("0.1", 100_000), ("0.000001", 1), ("2", 2_000_000), ("10", 10_000_000)]
        {
            assert_eq!(
                (Sigma::parse(text), Sigma(sigma).show().as_str()),
                (Ok(Sigma(sigma)), text)
            );
        }
        assert_eq!(Sigma::parse(".25"), Ok(Sigma(250_000)));
        assert_eq!(Sigma::parse("1."), Ok(Sigma(1_000_000)));
        for text in ["", ".", "-1", "1e0", "10.000001", "0.0000001", "99999999999999999999", "σ"] {
            assert!(Sigma::parse(text).is_err(), "{text}");
        }
    }

    /// Of 50 000 numbers: a mean of 0 and a variance of 1, within four standard errors.
    #[test]
    fn drawn_numbers_are_normal() {
        let draws: Vec<f64> = (0..50_000).map(|n| normal_of(n / 100, n % 100)).collect();
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|z| z * z).sum::<f64>() / count;
        assert!(mean.abs() < 4.0 / count.sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 4.0 * (2.0 / count).sqrt(), "{variance}");
        let below = draws.iter().filter(|&&z| z < -1.0).count() as f64 / count;
        assert!((below - 0.158_655).abs() < 4.0 * (0.1335 / count).sqrt(), "{below}");
        assert!(normal_of(3, 5) != normal_of(3, 4) && normal_of(3, 5) != normal_of(4, 5));
    }

    /// The distribution of the sum of 48 uniform numbers, by convolution over 256 steps each,
    /// beside the integral of the normal density.
    #[test]
    fn sums_of_48_are_normal_enough() {
        const STEPS: usize = 256;
        let mut density = vec![1.0f64];
        for _ in 0..48 {
            let mut next = vec![0.0; density.len() + STEPS - 1];
            let mut window = 0.0;
            for (place, value) in next.iter_mut().enumerate() {
                window += density.get(place).copied().unwrap_or(0.0);
                window -= place.checked_sub(STEPS).and_then(|old| density.get(old)).unwrap_or(&0.0);
                *value = window / STEPS as f64;
            }
            density = next;
        }
        let deviation = (48.0 * ((STEPS * STEPS) as f64 - 1.0) / 12.0).sqrt();
        let middle = (density.len() - 1) as f64 / 2.0;
        let (mut sum, mut normal, mut worst) = (0.0, 0.0, 0.0f64);
        for (place, value) in density.iter().enumerate() {
            let z = (place as f64 - middle) / deviation;
            sum += value;
            normal += (-z * z / 2.0).exp() / (deviation * core::f64::consts::TAU.sqrt());
            worst = worst.max((sum - normal).abs());
        }
        assert!((sum - 1.0).abs() < 1e-9 && (normal - 1.0).abs() < 1e-9);
        assert!(worst < 0.0007, "{worst}");
    }
}
