//! Wrong times: lognormal factors in integers.
//!
//! The factor is e^(σz), where z is normal: the sum of 48 uniform numbers of 16 bits, shifted and
//! scaled to mean 0 and variance 1. Its distribution function is within 0.0007 of the normal one,
//! and |z| is below 12. For a given z, the result is within 10^-12 of the product, and half a
//! nanosecond from rounding. The tests check both.

use alloc::string::String;

use super::Key;
use anysched_core::exp2;
use anysched_core::random::SplitMix64;
use anysched_core::time::Span;

/// The largest σ, in millionths.
const MOST: u64 = 10_000_000;

/// Decimal places of σ.
const PLACES: usize = 6;

/// log₂ e, with 60 fractional bits.
const LOG2_E: i128 = 0x1715_4765_2b82_fe17;

/// Fractional bits of [`normal`].
const FRACTION: u32 = 18;

/// Reads σ, in millionths.
pub(super) fn parse_sigma(text: &str) -> Result<u32, &'static str> {
    let why = "σ is a number from 0 to 10 with at most 6 decimals, for example noisy(0.5)";
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let plain = whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit());
    if !plain || whole.len() + part.len() == 0 || part.len() > PLACES {
        return Err(why);
    }
    let zeros = core::iter::repeat_n(b'0', PLACES - part.len());
    let digits = whole.bytes().chain(part.bytes()).chain(zeros);
    let millionths = digits
        .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    if millionths > MOST {
        return Err(why);
    }
    Ok(millionths as u32)
}

/// Writes σ, given in millionths, so that [`parse_sigma`] reads it back.
pub(super) fn show_sigma(millionths: u32) -> String {
    let (whole, part) = (millionths / 1_000_000, millionths % 1_000_000);
    if part == 0 {
        return alloc::format!("{whole}");
    }
    let text = alloc::format!("{whole}.{part:06}");
    text.trim_end_matches('0').into()
}

/// `time` with the noise that `seed` and `key` determine; σ is in millionths.
pub(super) fn apply(time: Span, sigma: u32, seed: u64, key: Key) -> Span {
    scaled(time, exponent(sigma, normal(seed, key)))
}

/// A standard normal number, with [`FRACTION`] fractional bits.
fn normal(seed: u64, key: Key) -> i64 {
    let key = match key {
        Key::Created(number) => u64::from(number),
        Key::Own(key) => 1 << 32 | u64::from(key),
    };
    // Mixed before the seed joins, so that neighbouring seeds and keys do not collide.
    let mut random = SplitMix64(SplitMix64(key).bits() ^ seed);
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

/// [`normal`] as a float.
#[cfg(test)]
pub(super) fn normal_of(seed: u64, key: Key) -> f64 {
    normal(seed, key) as f64 / f64::from(1 << FRACTION)
}
