//! Sums that are absent unless they were measured.

use anysched_core::Span;
use std::ops::AddAssign;

/// What a [`Total`] adds up: numbers of events, or time.
pub trait Amount: Copy + Default + AddAssign {
    /// In the unit of its column: events or ns.
    fn number(self) -> u64;

    /// The amount that is this number in the unit of its column.
    fn of_number(number: u64) -> Self;
}

impl Amount for u64 {
    fn number(self) -> u64 {
        self
    }

    fn of_number(number: u64) -> u64 {
        number
    }
}

impl Amount for Span {
    fn number(self) -> u64 {
        self.0
    }

    fn of_number(number: u64) -> Span {
        Span(number)
    }
}

/// A count, or a sum of times, over a whole run. By default it was not measured, which is not the
/// same as 0.
///
/// A total covers everything that happened. One that lacks a part would be too small and look like
/// any other, so a sum of which a part was not measured counts as not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total<T> {
    sum: T,
    known: bool,
}

impl<T: Amount> Total<T> {
    /// Measured, and `sum` so far.
    pub fn of(sum: T) -> Total<T> {
        Total { sum, known: true }
    }

    /// The sum, if it was measured.
    pub fn get(self) -> Option<T> {
        self.known.then_some(self.sum)
    }

    /// The sum in the unit of its column, if it was measured.
    pub(crate) fn number(self) -> Option<f64> {
        self.get().map(|sum| sum.number() as f64)
    }

    /// Adds the total of another machine; not measured unless both were.
    pub fn merge(&mut self, other: &Total<T>) {
        self.sum += other.sum;
        self.known &= other.known;
    }
}

impl<T: Amount> AddAssign<T> for Total<T> {
    /// Counts `more`. The total has to be a measured one: [`Total::of`].
    #[inline]
    fn add_assign(&mut self, more: T) {
        debug_assert!(self.known, "counted into a total that is not measured");
        self.sum += more;
    }
}

impl PartialEq<u64> for Total<u64> {
    fn eq(&self, sum: &u64) -> bool {
        self.get() == Some(*sum)
    }
}

impl PartialEq<Span> for Total<Span> {
    fn eq(&self, sum: &Span) -> bool {
        self.get() == Some(*sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_not_zero() {
        let unknown = Total::<u64>::default();
        assert_eq!((unknown.get(), unknown.number()), (None, None));
        assert_ne!(unknown, 0);
        assert_eq!(Total::of(0), 0);
    }

    #[test]
    fn a_sum_is_measured_if_all_its_parts_are() {
        let mut both = Total::of(Span(3));
        both += Span(1);
        both.merge(&Total::of(Span(5)));
        assert_eq!(both, Span(9));
        both.merge(&Total::default());
        assert_eq!(both.get(), None);
        both.merge(&Total::of(Span(1)));
        assert_eq!(both.get(), None, "the missing part does not come back");
    }
}
