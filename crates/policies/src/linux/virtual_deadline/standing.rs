//! The latest of what the CPUs of a group run, kept as a tournament.

use alloc::vec::Vec;

use anysched_core::time::Time;

/// A time per CPU of a group; zero for those that run nothing.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// A complete binary tree: node n has the later of 2n and 2n + 1, leaves are the second half.
    nodes: Vec<Time>,
}

impl Standing {
    pub(crate) fn new(cpus: usize) -> Standing {
        Standing { nodes: alloc::vec![Time::ZERO; 2 * cpus.next_power_of_two()] }
    }

    pub(crate) fn get(&self, slot: usize) -> Time {
        self.nodes[self.nodes.len() / 2 + slot]
    }

    pub(crate) fn set(&mut self, slot: usize, time: Time) {
        let mut node = self.nodes.len() / 2 + slot;
        self.nodes[node] = time;
        while node > 1 {
            let later = self.nodes[node].max(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == later {
                break;
            }
            self.nodes[node] = later;
        }
    }

    /// The latest time.
    pub(crate) fn latest(&self) -> Time {
        self.nodes[1]
    }

    /// The first of those who have the latest time.
    pub(crate) fn first_of_latest(&self) -> usize {
        let leaves = self.nodes.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            node += usize::from(self.nodes[node] < self.nodes[node + 1]);
        }
        node - leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_of_the_latest_is_found(
            cpus in 1..20usize,
            sets in prop::collection::vec((0..20usize, 0..9u64), 0..60)
        ) {
            let mut standing = Standing::new(cpus);
            let mut plain = alloc::vec![0; cpus];
            for (slot, time) in sets {
                standing.set(slot % cpus, Time(time));
                plain[slot % cpus] = time;
                let latest = *plain.iter().max().unwrap();
                prop_assert_eq!(standing.latest(), Time(latest));
                let first = plain.iter().position(|&time| time == latest).unwrap();
                prop_assert_eq!(standing.first_of_latest(), first);
                prop_assert_eq!(standing.get(slot % cpus), Time(time));
            }
        }
    }
}
