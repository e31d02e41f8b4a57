//! Time in integer nanoseconds. No clock is read anywhere in this crate: hosts pass `now` in.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// An instant: nanoseconds since an origin that the host chooses (start of the run, boot).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

/// A length of time in nanoseconds, `0 ..= u64::MAX`. [`Span::MAX`] stands for "no limit".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub u64);

/// Virtual time in nanoseconds of a task of weight 1024. Never mixed with [`Time`].
///
/// The zero point is arbitrary and the value may wrap, so two virtual times are compared by their
/// distance, [`VTime::minus`], which is exact as long as they are within 2^63 ns (292 years).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VTime(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than every real instant; stands for "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The time from `earlier` to `self`, or zero when `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero duration.
    pub const ZERO: Span = Span(0);
    /// "No limit".
    pub const MAX: Span = Span(u64::MAX);

    /// `n` microseconds.
    pub const fn from_us(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_ms(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_s(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }

    /// `self - other`, or zero when `other` is longer.
    #[inline]
    pub fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `self · numerator / denominator`, rounded down, saturating. `denominator` must not be 0.
    #[inline]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Span {
        // A 128-bit division costs several times as much as a 64-bit one; the product of real spans
        // and weights nearly always fits in 64 bits.
        match self.0.checked_mul(numerator) {
            Some(product) => Span(product / denominator),
            None => {
                let wide = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
                Span(u64::try_from(wide).unwrap_or(u64::MAX))
            }
        }
    }
}

impl VTime {
    /// `self - other` as a signed distance in virtual ns.
    #[inline]
    pub fn minus(self, other: VTime) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// `self` moved by `distance` virtual ns.
    #[inline]
    pub fn plus(self, distance: i64) -> VTime {
        VTime(self.0.wrapping_add(distance as u64))
    }

    /// The later of the two.
    #[inline]
    pub fn max(self, other: VTime) -> VTime {
        if self.minus(other) >= 0 { self } else { other }
    }

    /// The earlier of the two.
    #[inline]
    pub fn min(self, other: VTime) -> VTime {
        if self.minus(other) <= 0 { self } else { other }
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Saturates at [`Time::NEVER`], so that adding [`Span::MAX`] means "never".
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub for Time {
    type Output = Span;
    /// The time from `earlier` to `self`; overflows (a panic in debug builds) if it is negative.
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    /// Saturates at [`Span::MAX`].
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}

impl fmt::Display for Span {
    /// The shortest exact form with a unit: `0`, `750us`, `1.5ms`, `none` for [`Span::MAX`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        match *self {
            Span::ZERO => return f.write_str("0"),
            Span::MAX => return f.write_str("none"),
            _ => {}
        }
        for (ns, unit) in UNITS {
            if self.0 >= ns {
                let (whole, mut rest) = (self.0 / ns, self.0 % ns);
                if rest == 0 {
                    return write!(f, "{whole}{unit}");
                }
                let mut digits = ns.ilog10() as usize;
                while rest.is_multiple_of(10) {
                    rest /= 10;
                    digits -= 1;
                }
                return write!(f, "{whole}.{rest:0digits$}{unit}");
            }
        }
        write!(f, "{}ns", self.0)
    }
}

impl Span {
    /// Reads everything that [`Span`]'s `Display` writes and more: a decimal number with `ns`,
    /// `us`, `µs`, `ms`, `s`, `min` or `h`; `0` needs no unit; `none` is [`Span::MAX`].
    ///
    /// Errors: what is wrong with the text; fractions of a nanosecond are rejected.
    pub fn parse(text: &str) -> Result<Span, &'static str> {
        let text = text.trim();
        if text == "none" {
            return Ok(Span::MAX);
        }
        let unit_at = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(text.len());
        let (number, unit) = (&text[..unit_at], text[unit_at..].trim());
        let digit = |c: char| c.is_ascii_digit();
        if !number.contains(digit) {
            let opposite = unit.strip_prefix(['-', '−']).unwrap_or_default();
            return Err(match opposite.trim_start().starts_with(digit) {
                true => "a time is not negative",
                false => "a time starts with a number, for example \"3ms\"",
            });
        }
        let per_unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if number.bytes().all(|b| b == b'0') => 1,
            "" => return Err("a time needs a unit, for example \"3ms\""),
            _ => return Err("unknown unit; use ns, us, ms, s, min or h"),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let mut ns = 0u64;
        for digit in whole.bytes().filter(|&b| b != b'_') {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            if digit > 9 {
                return Err("a time has at most one decimal point");
            }
            ns = ns.checked_mul(10).and_then(|n| n.checked_add(digit)).ok_or(TOO_LONG)?;
        }
        ns = ns.checked_mul(per_unit).ok_or(TOO_LONG)?;
        let mut part = per_unit;
        for digit in fraction.bytes().filter(|&b| b != b'_') {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            if digit > 9 {
                return Err("a time has at most one decimal point");
            }
            if part.is_multiple_of(10) {
                part /= 10;
                ns = ns.checked_add(part * digit).ok_or(TOO_LONG)?;
            } else if digit != 0 {
                return Err("finer than a nanosecond");
            }
        }
        Ok(Span(ns))
    }
}

const TOO_LONG: &str = "longer than 584 years";

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_read_back_as_written() {
        for ns in [0, 1, 999, 1_000, 1_500, 750_000, 1_000_000, 2_250_000, 18_000_000_001, u64::MAX]
        {
            let text = Span(ns).to_string();
            assert_eq!(Span::parse(&text), Ok(Span(ns)), "{text}");
        }
        assert_eq!(Span(1_500).to_string(), "1.5us");
        assert_eq!(Span(1_000_000_001).to_string(), "1.000000001s");
    }

    #[test]
    fn spans_with_other_units_and_spaces() {
        assert_eq!(Span::parse(" 2 min"), Ok(Span::from_s(120)));
        assert_eq!(Span::parse("0.5h"), Ok(Span::from_s(1800)));
        assert_eq!(Span::parse("1_000us"), Ok(Span::from_ms(1)));
        assert_eq!(Span::parse("0"), Ok(Span::ZERO));
    }

    #[test]
    fn wrong_spans_say_why() {
        for (text, why) in [
            ("3", "a time needs a unit, for example \"3ms\""),
            ("", "a time starts with a number, for example \"3ms\""),
            ("ms", "a time starts with a number, for example \"3ms\""),
            ("._ms", "a time starts with a number, for example \"3ms\""),
            ("soon", "a time starts with a number, for example \"3ms\""),
            ("--1ms", "a time starts with a number, for example \"3ms\""),
            ("-1ms", "a time is not negative"),
            ("− 1ms", "a time is not negative"),
            ("3 weeks", "unknown unit; use ns, us, ms, s, min or h"),
            ("1.2.3ms", "a time has at most one decimal point"),
            ("1.5ns", "finer than a nanosecond"),
            ("99999999999h", "longer than 584 years"),
        ] {
            assert_eq!(Span::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn virtual_time_wraps() {
        let late = VTime(u64::MAX).plus(5);
        assert_eq!(late, VTime(4));
        assert_eq!(late.minus(VTime(u64::MAX)), 5);
        assert_eq!(late.max(VTime(u64::MAX)), late);
    }

    #[test]
    fn scaling_keeps_all_bits() {
        assert_eq!(Span(u64::MAX).scaled(1024, 1024), Span(u64::MAX));
        assert_eq!(Span::from_ms(6).scaled(836, 128), Span(39_187_500));
    }
}
