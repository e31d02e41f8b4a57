//! Hashes of states. Of ten million states two are taken for one another with a probability of
//! less than 10^-24, so that a state is known by its hash alone.

use anysched_core::random::mixed;

/// 128 bits of `words`.
pub(crate) fn of(words: &[u64]) -> u128 {
    let (mut high, mut low) = (0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f_u64);
    for &word in words.iter().chain([&(words.len() as u64)]) {
        high = mixed(high ^ word);
        low = mixed(low.rotate_left(29).wrapping_add(word ^ 0xa076_1d64_78bd_642f));
    }
    u128::from(high) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_word_and_its_place_counts() {
        let states = (0..1000_u64).flat_map(|n| [vec![n], vec![n, 0], vec![0, n], vec![n, n]]);
        let states: HashSet<Vec<u64>> = states.collect();
        let hashes: HashSet<u128> = states.iter().map(|words| of(words)).collect();
        assert_eq!(hashes.len(), states.len());
        let halves: HashSet<u64> = hashes.iter().map(|&hash| hash as u64).collect();
        assert_eq!(halves.len(), states.len(), "each half tells them apart");
    }
}
