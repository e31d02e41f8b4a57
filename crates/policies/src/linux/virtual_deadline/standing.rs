//! The latest of what the CPUs of a group run, kept as a tournament.

use core::cmp::Reverse;
use core::ops::Range;

use anysched_core::Canon;
use anysched_core::canon::Canonical;
use anysched_core::queue::Tournament;
use anysched_core::time::Time;

/// A time per CPU of a group; zero for those that run nothing.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    times: Tournament<Reverse<Time>>,
    cpus: usize,
}

impl Standing {
    pub(crate) fn new(cpus: usize) -> Standing {
        Standing { times: Tournament::new(cpus, Reverse(Time::ZERO)), cpus }
    }

    pub(crate) fn get(&self, slot: usize) -> Time {
        self.times.get(slot).0
    }

    pub(crate) fn set(&mut self, slot: usize, time: Time) {
        self.times.set(slot, Reverse(time));
    }

    /// The latest time.
    pub(crate) fn latest(&self) -> Time {
        self.times.least().0
    }

    /// The first of those who have the latest time.
    pub(crate) fn first_of_latest(&self) -> usize {
        let before = self.latest().0.checked_sub(1).map(Time);
        before.and_then(|before| self.first_later(0..self.cpus, before)).unwrap_or(0)
    }

    /// The first in `range` whose time is later than `time`.
    pub(crate) fn first_later(&self, range: Range<usize>, time: Time) -> Option<usize> {
        self.times.first_below(range, Reverse(time))
    }
}

impl Canonical for Standing {
    fn canon(&self, _: &(), to: &mut Canon) {
        for time in (0..self.cpus).map(|slot| self.get(slot)) {
            let is_idle = time == Time::ZERO;
            is_idle.canon(&(), to);
            if !is_idle {
                time.canon(&(), to);
            }
        }
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
