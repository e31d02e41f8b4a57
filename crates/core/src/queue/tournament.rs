//! The least of many keys that change one at a time.

use alloc::vec::Vec;
use core::ops::Range;

/// A key per place, and the least of any range of places: a tournament.
///
/// Changing a key and asking for a range cost O(log n); a change stops on its way up where it
/// makes no difference. Nothing allocates once it is built.
#[derive(Clone, Debug)]
pub struct Tournament<K> {
    /// A complete binary tree: node n has the lesser key of 2n and 2n + 1, leaves are the second
    /// half.
    nodes: Vec<K>,
    /// The key of places that there are not, which no other is greater than.
    none: K,
}

impl<K: Ord + Copy> Tournament<K> {
    /// `places` places with the key `none`, which must not be less than any other.
    pub fn new(places: usize, none: K) -> Tournament<K> {
        Tournament { nodes: alloc::vec![none; 2 * places.next_power_of_two()], none }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// The key of `place`.
    #[inline]
    pub fn get(&self, place: usize) -> K {
        self.nodes[self.leaves() + place]
    }

    /// Changes the key of `place`.
    #[inline]
    pub fn set(&mut self, place: usize, key: K) {
        let mut node = self.leaves() + place;
        self.nodes[node] = key;
        while node > 1 {
            let least = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == least {
                break;
            }
            self.nodes[node] = least;
        }
    }

    /// The least key of all.
    #[inline]
    pub fn least(&self) -> K {
        self.nodes[1]
    }

    /// The least key in `range`.
    pub fn least_in(&self, range: Range<usize>) -> K {
        let (mut low, mut high) = (range.start + self.leaves(), range.end + self.leaves());
        let mut least = self.none;
        while low < high {
            if low % 2 == 1 {
                least = least.min(self.nodes[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                least = least.min(self.nodes[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        least
    }

    /// The first place in `range` whose key is less than `bound`.
    pub fn first_below(&self, range: Range<usize>, bound: K) -> Option<usize> {
        let (mut node, end) = (range.start + self.leaves(), range.end + self.leaves());
        // The leaves below `node` are `node << depth ..`; all before them have been ruled out.
        let mut depth = 0;
        while node << depth < end {
            if self.nodes[node] < bound {
                while depth > 0 {
                    (node, depth) = (2 * node, depth - 1);
                    node += usize::from(self.nodes[node] >= bound);
                }
                return (node < end).then(|| node - self.leaves());
            }
            node += 1;
            if node.is_power_of_two() {
                return None;
            }
            let up = node.trailing_zeros();
            (node, depth) = (node >> up, depth + up);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_searched_as_in_a_plain_list(
            places in 1..40usize,
            sets in prop::collection::vec((0..40usize, 0..9u32), 0..60),
            (a, b, bound) in (0..40usize, 0..40usize, 0..10u32)
        ) {
            let mut tournament = Tournament::new(places, u32::MAX);
            let mut plain = alloc::vec![u32::MAX; places];
            for (place, key) in sets {
                tournament.set(place % places, key);
                plain[place % places] = key;
                prop_assert_eq!(tournament.least(), *plain.iter().min().unwrap());
                prop_assert_eq!(tournament.get(place % places), key);
            }
            let (start, end) = (a.min(b) % places, (a.max(b) % places).max(a.min(b) % places));
            for range in [start..end, start..places, 0..end] {
                let least = plain[range.clone()].iter().min().copied().unwrap_or(u32::MAX);
                prop_assert_eq!(tournament.least_in(range.clone()), least);
                let first = range.clone().find(|&place| plain[place] < bound);
                prop_assert_eq!(tournament.first_below(range, bound), first);
            }
        }
    }
}
