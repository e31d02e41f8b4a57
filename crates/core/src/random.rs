//! Seeded random numbers for policies that draw lots: in integers, the same on every host.

use crate::canon::{Canon, Canonical};

/// SplitMix64: a counter and a bijection without a visible pattern, so that any state is a good
/// seed.
///
/// Source: G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA
/// 2014.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(
    /// The state; at first, the seed.
    pub u64,
);

impl SplitMix64 {
    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `bound`; 0 if that is 0. Of two such numbers, one is drawn more often by at
    /// most one in 2⁶⁴ draws.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// The bijection of [`SplitMix64`], whose result shows no pattern of `word`: variant 13 of D.
/// Stafford, Better Bit Mixing, 2011.
#[inline]
pub fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Canonical for SplitMix64 {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by an independent program from the published definition.
    #[test]
    fn numbers_are_those_of_the_definition() {
        let mut random = SplitMix64(1_234_567);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
