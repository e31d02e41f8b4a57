//! Seeded random numbers, the same on every machine.
//!
//! Xoshiro256++ (Blackman and Vigna 2021), whose state SplitMix64 fills from a 64-bit seed. Each
//! purpose draws from a stream of its own, so that one more draw for one purpose changes nothing
//! elsewhere, and two policies given the same seed are given the same tasks.

use anysched_core::random::SplitMix64;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream that `seed` starts.
    pub fn from_seed(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The stream for one purpose of something that was given `seed`.
    pub fn stream(seed: u64, purpose: &str) -> Rng {
        Rng::from_seed(derive(seed, purpose))
    }

    /// The `n`-th of many streams for the same purpose, one for each task or client.
    pub fn numbered(seed: u64, purpose: &str, n: u64) -> Rng {
        Rng::from_seed(mix(derive(seed, purpose) ^ mix(n)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1): a multiple of 2⁻⁵³, so that `1.0 - unit()` is exact and never 0.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0 .. n`, without bias; 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut wide = u128::from(self.bits()) * u128::from(n);
        if (wide as u64) < n {
            // The lowest 2^64 mod n products of each value would make it too frequent (Lemire
            // 2019).
            let surplus = n.wrapping_neg() % n;
            while (wide as u64) < surplus {
                wide = u128::from(self.bits()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }
}

/// A seed for one part of something that was given `seed`: a workload of an experiment, a run of a
/// sweep. Different parts get unrelated seeds.
pub fn derive(seed: u64, part: &str) -> u64 {
    // FNV-1a tells the names apart; the mixing spreads the difference over all bits.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let name = part.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    mix(mix(seed) ^ name)
}

/// One step of SplitMix64: other numbers for other seeds, without a visible pattern.
fn mix(seed: u64) -> u64 {
    SplitMix64(seed).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by an independent program from the published definitions.
    #[test]
    fn streams_are_the_same_on_every_machine() {
        let first = |mut rng: Rng| [rng.bits(), rng.bits()];
        assert_eq!(first(Rng::from_seed(1)), [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d]);
        assert_eq!(derive(1, "service"), 0x7b57_39d0_d272_81ff);
        let service = Rng::stream(1, "service");
        assert_eq!(first(service), [0xbddc_30b5_fb93_18aa, 0x767a_9567_a3b8_c084]);
        let seventh = Rng::numbered(1, "service", 7);
        assert_eq!(first(seventh), [0x0de0_9b88_ea93_c1e9, 0xfc51_2cb4_b762_a600]);
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_number() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            for purpose in ["", "a", "b", "service", "arrivals"] {
                assert!(seen.insert(Rng::stream(seed, purpose).bits()));
                for n in 0..40 {
                    assert!(seen.insert(Rng::numbered(seed, purpose, n).bits()));
                }
            }
        }
    }

    #[test]
    fn unit_stays_below_one() {
        let mut rng = Rng::from_seed(3);
        let draws: Vec<f64> = (0..100_000).map(|_| rng.unit()).collect();
        assert!(draws.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // Five standard errors of the mean of 100 000 uniforms: 5 · sqrt(1/12/1e5).
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
    }

    #[test]
    fn below_is_fair_and_in_range() {
        let mut rng = Rng::from_seed(4);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        // Binomial(70 000, 1/7): five standard deviations are 463.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 463), "{counts:?}");
        // 2^64 is 4/3 of this n: without rejecting draws, every third number would come twice as
        // often.
        let thirds = (0..30_000).filter(|_| rng.below(3 << 62).is_multiple_of(3)).count();
        // Binomial(30 000, 1/3): five standard deviations are 409.
        assert!(thirds.abs_diff(10_000) < 409, "{thirds}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
    }
}
