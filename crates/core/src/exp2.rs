//! Powers of two and binary logarithms in fixed point.
//!
//! Errors (checked in the tests): of [`power`], 2^-59 of the result; of [`logarithm`], 2^-59.

/// 1 / ln 2, with 124 fractional bits.
pub const LOG2_E: u128 = 0x1715_4765_2b82_fe17_77d0_ffda_0d23_a7d1;
/// ln 2, with 64 fractional bits.
pub const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// 1, with 63 fractional bits.
pub const ONE: u64 = 1 << 63;
/// 2^(1/2), 2^(1/4), … 2^(1/64), with 63 fractional bits.
const ROOTS: [u64; 6] = roots();
/// Their reciprocals, with 64 fractional bits.
const UNROOTS: [u64; 6] = reciprocals(ROOTS);

const fn roots() -> [u64; 6] {
    let mut roots = [0; 6];
    let mut square = 1u128 << 127;
    let mut i = 0;
    while i < 6 {
        let root = square.isqrt();
        roots[i] = root as u64;
        square = root << 63;
        i += 1;
    }
    roots
}

const fn reciprocals(of: [u64; 6]) -> [u64; 6] {
    let mut result = [0; 6];
    let mut i = 0;
    while i < 6 {
        result[i] = ((1u128 << 127) / of[i] as u128) as u64;
        i += 1;
    }
    result
}

/// The upper half of the product.
#[inline]
fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// The product of two numbers with 63 fractional bits, saturating.
#[inline]
fn product(a: u64, b: u64) -> u64 {
    let wide = (u128::from(a) * u128::from(b) + (1 << 62)) >> 63;
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// 2^(x / 2^64), with 63 fractional bits. Six bits of x by roots, the rest by Taylor's series,
/// whose eighth term is below 2^-67.
#[inline]
pub fn power(x: u64) -> u64 {
    let mut result = ONE;
    for (bit, root) in ROOTS.iter().enumerate() {
        if (x << bit) >> 63 != 0 {
            result = product(result, *root);
        }
    }
    let z = high((x << 6) >> 6, LN_2);
    let mut series = ONE;
    for term in (1..=7).rev() {
        series = ONE + high(z, series) / term;
    }
    product(result, series)
}

/// log₂ of a mantissa read as a number from 1 to 2, with 64 fractional bits. Six bits by roots, the
/// rest from ln m = 2 artanh((m − 1) / (m + 1)), whose fifth term is below 2^-69.
#[inline]
pub fn logarithm(mantissa: u64) -> u64 {
    let mut rest = mantissa;
    let mut result = 0u64;
    for (bit, (root, reciprocal)) in ROOTS.iter().zip(UNROOTS).enumerate() {
        if rest >= *root {
            rest = high(rest, reciprocal).max(ONE);
            result |= ONE >> bit;
        }
    }
    let y = ((u128::from(rest - ONE) << 64) / (u128::from(rest) + u128::from(ONE))) as u64;
    let square = high(y, y);
    let mut series = u64::MAX / 7;
    for term in [5, 3] {
        series = high(square, series) + u64::MAX / term;
    }
    let artanh = u128::from(y + high(y, high(square, series)));
    result.saturating_add(((artanh * (LOG2_E >> 61)) >> 62) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// If 2^2x = (2^x)² holds up to 2^-59, then 2^x itself is right up to 2^-59: the largest
        /// error e is at most half of (e + 2^-59).
        #[test]
        fn powers_square(x in any::<u64>()) {
            let root = u128::from(power(x));
            // From 1 to 4, with 126 fractional bits.
            let square = root * root;
            let twice = u128::from(power(x.wrapping_mul(2))) << (63 + (x >> 63));
            prop_assert!(square.abs_diff(twice) <= 33 * (twice >> 64));
        }

        #[test]
        fn logarithms_undo_powers(x in any::<u64>()) {
            let back = logarithm(power(x));
            prop_assert!(back.abs_diff(x) <= 32, "{x:x} {back:x}");
        }
    }

    #[test]
    fn exact_values() {
        assert_eq!(power(0), ONE);
        assert_eq!(logarithm(ONE), 0);
        // √2 and its 64th root to the last bit but one: 0x1.6a09e667f3bcc908, 0x1.02c9a3e778060ee6.
        assert!(power(1 << 63).abs_diff(0xb504_f333_f9de_6484) <= 1);
        assert!(power(1 << 58).abs_diff(0x8164_d1f3_bc03_0773) <= 1);
    }
}
