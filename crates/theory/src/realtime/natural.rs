//! Natural numbers of any size, just enough to compare fractions exactly.

use std::cmp::Ordering;

/// A natural number: 64-bit digits, lowest first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Natural(Vec<u64>);

impl Natural {
    pub fn new(value: u64) -> Natural {
        Natural(if value == 0 { Vec::new() } else { vec![value] })
    }

    pub fn times(&self, factor: u64) -> Natural {
        if factor == 0 {
            return Natural::new(0);
        }
        let mut digits = Vec::with_capacity(self.0.len() + 1);
        let mut carry = 0;
        for &digit in &self.0 {
            let product = u128::from(digit) * u128::from(factor) + carry;
            digits.push(product as u64);
            carry = product >> 64;
        }
        if carry > 0 {
            digits.push(carry as u64);
        }
        Natural(digits)
    }

    pub fn plus(&self, other: &Natural) -> Natural {
        let length = self.0.len().max(other.0.len());
        let digit = |number: &Natural, at: usize| u128::from(*number.0.get(at).unwrap_or(&0));
        let mut digits = Vec::with_capacity(length + 1);
        let mut carry = 0;
        for at in 0..length {
            let sum = digit(self, at) + digit(other, at) + carry;
            digits.push(sum as u64);
            carry = sum >> 64;
        }
        if carry > 0 {
            digits.push(carry as u64);
        }
        Natural(digits)
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Natural) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Natural) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sum of fractions.
#[derive(Clone, Debug)]
pub struct Sum {
    numerator: Natural,
    denominator: Natural,
}

impl Sum {
    pub fn zero() -> Sum {
        Sum { numerator: Natural::new(0), denominator: Natural::new(1) }
    }

    /// Adds `over` / `under`; `under` is above 0.
    pub fn add(&mut self, over: u64, under: u64) {
        self.numerator = self.numerator.times(under).plus(&self.denominator.times(over));
        self.denominator = self.denominator.times(under);
    }

    pub fn cmp_one(&self) -> Ordering {
        self.numerator.cmp(&self.denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(number: &Natural) -> u128 {
        number.0.iter().rev().fold(0, |value, &digit| value << 64 | u128::from(digit))
    }

    proptest! {
        #[test]
        fn as_in_128_bits(a: u64, b: u64, c in 0..1u64 << 40, d in 0..1u64 << 20) {
            let left = Natural::new(a).times(b).plus(&Natural::new(c));
            let right = Natural::new(c).times(d).times(d).plus(&Natural::new(b));
            let wide = |n: u64| u128::from(n);
            let expected = (wide(a) * wide(b)).checked_add(wide(c));
            if let Some(expected) = expected {
                prop_assert_eq!(value(&left), expected);
            }
            prop_assert_eq!(value(&right), wide(c) * wide(d) * wide(d) + wide(b));
            if let Some(expected) = expected {
                prop_assert_eq!(left.cmp(&right), expected.cmp(&value(&right)));
            }
        }
    }

    #[test]
    fn sums_are_exact() {
        let mut sum = Sum::zero();
        for _ in 0..999 {
            sum.add(1, 1000);
        }
        assert_eq!(sum.cmp_one(), Ordering::Less);
        sum.add(u64::MAX - 1, 1000 * (u64::MAX / 1000));
        assert_eq!(sum.cmp_one(), Ordering::Greater);
        let mut thirds = Sum::zero();
        (0..3).for_each(|_| thirds.add(u64::MAX / 3, u64::MAX));
        assert_eq!(thirds.cmp_one(), Ordering::Equal);
    }
}
