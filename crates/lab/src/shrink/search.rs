//! The search for something smaller that still fails: delta debugging on lists (A. Zeller, R.
//! Hildebrandt, IEEE TSE 28, 2002, without its tests of parts alone), one change at a time on the
//! rest, until no change is left. It draws nothing, so that the same start gives the same end.
//!
//! proptest and its relatives shrink what their own strategies have drawn, along the way by which
//! it was drawn. Here the start is a file that somebody wrote, and what is legal is known by
//! whoever reads it, so that nothing would be left of such a library but its loop.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When a search ends, whatever it has come to.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// After so much time.
    pub time: Option<Duration>,
    /// After so many tries.
    pub tries: u64,
    /// Once it is true.
    pub cancel: &'a AtomicBool,
}

/// Whether a search may go on, as far as its tries do not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock<'a> {
    until: Option<Instant>,
    cancel: Option<&'a AtomicBool>,
}

impl Clock<'_> {
    /// It may go on for ever.
    pub(crate) const NONE: Clock<'static> = Clock { until: None, cancel: None };

    pub(crate) fn is_over(self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
            || self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// How long a search still may go on.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    clock: Clock<'a>,
    tries: u64,
    tried: u64,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(limits: Limits<'a>) -> Budget<'a> {
        let until = limits.time.and_then(|time| Instant::now().checked_add(time));
        let clock = Clock { until, cancel: Some(limits.cancel) };
        Budget { clock, tries: limits.tries, tried: 0 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.tried >= self.tries || self.clock.is_over()
    }

    pub(crate) fn clock(&self) -> Clock<'a> {
        self.clock
    }

    pub(crate) fn tried(&self) -> u64 {
        self.tried
    }

    pub(crate) fn spend(&mut self) {
        self.tried += 1;
    }
}

/// What is made smaller.
pub(crate) trait Smaller: Clone {
    /// How large it is; earlier numbers count for more.
    fn weight(&self) -> Vec<u64>;

    /// What tells it from others.
    fn text(&self) -> String;
}

/// A search under way.
pub(crate) struct Search<'a, 'b, C> {
    /// The smallest so far that fails.
    pub(crate) best: C,
    budget: &'b mut Budget<'a>,
    fails: &'b mut dyn FnMut(&C) -> bool,
    seen: HashSet<u64>,
}

impl<'a, 'b, C: Smaller> Search<'a, 'b, C> {
    /// From `start`, which fails.
    pub(crate) fn new(
        start: C,
        budget: &'b mut Budget<'a>,
        fails: &'b mut dyn FnMut(&C) -> bool,
    ) -> Search<'a, 'b, C> {
        Search { best: start, budget, fails, seen: HashSet::new() }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.budget.is_over()
    }

    /// Takes `candidate` if it is smaller and fails.
    pub(crate) fn take(&mut self, candidate: C) -> bool {
        let mut hash = DefaultHasher::new();
        candidate.text().hash(&mut hash);
        if candidate.weight() >= self.best.weight()
            || !self.seen.insert(hash.finish())
            || self.is_over()
        {
            return false;
        }
        self.budget.spend();
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Takes the first of `candidates` that is smaller and fails, again and again until none is.
    pub(crate) fn take_all(&mut self, candidates: impl Fn(&C) -> Vec<C>) -> bool {
        let mut any = false;
        loop {
            let found = candidates(&self.best).into_iter().any(|candidate| self.take(candidate));
            any |= found;
            if !found || self.is_over() {
                return any;
            }
        }
    }

    /// Leaves out as much as can be of a list, of which `without` leaves out a part: halves first,
    /// single items last.
    pub(crate) fn take_list(
        &mut self,
        length: impl Fn(&C) -> usize,
        without: impl Fn(&C, Range<usize>) -> C,
    ) -> bool {
        let mut any = false;
        let mut chunk = length(&self.best);
        while chunk > 0 && !self.is_over() {
            let mut at = 0;
            while at < length(&self.best) {
                let end = (at + chunk).min(length(&self.best));
                match self.take(without(&self.best, at..end)) {
                    true => any = true,
                    false => at = end,
                }
            }
            chunk = chunk.min(length(&self.best)) / 2;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Numbers(Vec<u64>);

    impl Smaller for Numbers {
        fn weight(&self) -> Vec<u64> {
            vec![self.0.len() as u64, self.0.iter().sum()]
        }
        fn text(&self) -> String {
            format!("{self:?}")
        }
    }

    fn without(numbers: &Numbers, range: Range<usize>) -> Numbers {
        let mut numbers = numbers.clone();
        numbers.0.drain(range);
        numbers
    }

    fn shrunk(tries: u64, fails: impl Fn(&[u64]) -> bool) -> (Vec<u64>, u64) {
        let cancel = AtomicBool::new(false);
        let mut budget = Budget::new(Limits { time: None, tries, cancel: &cancel });
        let mut fails = |numbers: &Numbers| fails(&numbers.0);
        let mut search = Search::new(Numbers((0..100).collect()), &mut budget, &mut fails);
        while search.take_list(|numbers| numbers.0.len(), without) && !search.is_over() {}
        let best = search.best.0;
        (best, budget.tried())
    }

    #[test]
    fn what_matters_stays() {
        let (left, tried) =
            shrunk(u64::MAX, |numbers| [13, 14, 77].iter().all(|n| numbers.contains(n)));
        assert_eq!(left, [13, 14, 77]);
        assert!(tried < 200, "{tried}");
    }

    #[test]
    fn it_ends_when_its_tries_are_used_up() {
        // All, a half, a quarter, and 12 of the 25 that are left.
        let (left, tried) = shrunk(4, |numbers| numbers.contains(&99));
        assert_eq!(tried, 4);
        assert_eq!(left, (87..100).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_tried_twice() {
        let calls = std::cell::Cell::new(0);
        let (_, tried) = shrunk(u64::MAX, |_| {
            calls.set(calls.get() + 1);
            false
        });
        assert_eq!(calls.get(), tried);
        // The last four are left out by twelves and by sixes, the last one by threes and alone.
        assert_eq!(tried, 1 + 2 + 4 + 9 + 17 + 34 + 100 - 2);
    }
}
