//! Numbers with a fraction, as programs print them.

/// `text` times `unit`, rounded down: `"1.5"` with the unit 1000 is 1500. The unit is a power of
/// ten; nothing if `text` is no such number, or too large.
pub fn scaled(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let mut sum = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(sum)
}

/// The first word of a line, scaled, behind a beginning that it may have.
pub fn behind(line: &str, beginning: &str, unit: u64) -> Option<u64> {
    scaled(line.trim().strip_prefix(beginning)?.split_whitespace().next()?, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_digits() {
        assert_eq!(scaled("1.5", 1000), Some(1500));
        assert_eq!(scaled("0.005", 1_000_000_000), Some(5_000_000));
        assert_eq!(scaled("7", 10), Some(70));
        assert_eq!(scaled("1.2399", 100), Some(123));
        for wrong in ["", ".5", "-1", "1,5", "1.5s", "99999999999999999999"] {
            assert_eq!(scaled(wrong, 1000), None, "{wrong}");
        }
        assert_eq!(behind("   Time: 0.5s", "Time:", 1), None);
        assert_eq!(behind("   Time:   0.5 s", "Time:", 10), Some(5));
    }
}
