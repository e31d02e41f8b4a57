//! The state of a policy in a form in which two states are equal if the policy will decide alike
//! from both, whatever happens: for searches that merge states, and for nothing else.
//!
//! What a policy keeps often says more than what its decisions depend on. A counter that breaks
//! ties says how many tasks have come so far, where only the order of two values counts; a time is
//! absolute, where only its distance from now counts. [`Canon`] takes each value as what it is and
//! leaves the rest out. A macro reads a struct field by field and leaves no field out by accident:
//!
//! ```
//! use anysched_core::canon::{Canon, Canonical};
//! use anysched_core::{Span, Time, VTime};
//!
//! struct Task {
//!     /// Tells tasks with the same deadline apart.
//!     number: u64,
//!     deadline: Time,
//!     vruntime: VTime,
//!     left: Span,
//! }
//! anysched_core::canonical!(Task { number: order, deadline, vruntime, left });
//!
//! let words = |task: Task, now| {
//!     let mut canon = Canon::new(Time(now));
//!     task.canon(&(), &mut canon);
//!     canon.words()
//! };
//! let early = Task { number: 3, deadline: Time(70), vruntime: VTime(5), left: Span(1) };
//! let late = Task { number: 9, deadline: Time(170), vruntime: VTime(55), left: Span(1) };
//! assert_eq!(words(early, 50), words(late, 150));
//! ```
//!
//! | in the macro | for | is recorded |
//! |---|---|---|
//! | `field` | most types | its value; a [`Time`] by its distance from now; a [`VTime`] as with `shift` |
//! | `field: order` | numbers that are only compared with each other | the rank among all of them and 0 |
//! | `field: shift`, `shift_wide` | virtual times | the distance from the first of them |
//! | `field: due` | times of which only counts whether they have passed | the distance, 0 once passed |
//! | `field: of(store)` | queues, whose tasks are linked in `store` | the tasks in their order |
//! | `field: fixed` | settings, what follows from other fields, and counters | nothing |

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::{CpuId, CpuMask, CpuSet, DomainId, TaskId};
use crate::per_task::PerTask;
use crate::time::{Span, Time, VTime};
use crate::{Off, TaskParams};

/// Collects a state. See the [module documentation](self).
#[derive(Debug)]
pub struct Canon {
    now: Time,
    words: Vec<u64>,
    /// Numbers of which the order counts, and where in `words` their ranks go.
    ordered: Vec<(i128, usize)>,
    /// The virtual time from which the others are counted.
    origin: Option<u64>,
    /// The same of those that have more bits.
    wide_origin: Option<i128>,
    is_known: bool,
}

/// What can be recorded. Tasks in a queue are found in a `Store`.
pub trait Canonical<Store: ?Sized = ()> {
    /// Records this.
    fn canon(&self, store: &Store, to: &mut Canon);
}

impl Canon {
    /// A state at `now`; nothing of it is recorded yet.
    pub fn new(now: Time) -> Canon {
        Canon {
            now,
            words: Vec::new(),
            ordered: Vec::new(),
            origin: None,
            wide_origin: None,
            is_known: true,
        }
    }

    /// The time of the state.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Records a number.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    /// Records a number of which only counts how it compares with others recorded like this, and
    /// with 0.
    #[inline]
    pub fn order(&mut self, number: i128) {
        self.ordered.push((number, self.words.len()));
        self.words.push(0);
    }

    /// Records a number of which only counts how far it is from others recorded like this.
    #[inline]
    pub fn shift(&mut self, number: u64) {
        let origin = *self.origin.get_or_insert(number);
        self.words.push(number.wrapping_sub(origin));
    }

    /// The same for numbers that do not fit in 64 bits.
    pub fn shift_wide(&mut self, number: i128) {
        let origin = *self.wide_origin.get_or_insert(number);
        number.wrapping_sub(origin).canon(&(), self);
    }

    /// Records a time by its distance from now.
    #[inline]
    pub fn time(&mut self, time: Time) {
        // What is never due stays so, whatever the time.
        let never = time.0 > u64::MAX / 2;
        self.words.push(if never { time.0 } else { time.0.wrapping_sub(self.now.0) });
    }

    /// Records a time of which only counts when it will have passed, or that it has.
    #[inline]
    pub fn due(&mut self, time: Time) {
        self.time(time.max(self.now));
    }

    /// Records how far `period`, which is counted from time 0, has advanced.
    pub fn phase(&mut self, period: Span) {
        self.words.push(self.now.0 % period.0.max(1));
    }

    /// What was recorded is not all that decisions depend on.
    pub fn unknown(&mut self) {
        self.is_known = false;
    }

    /// The state in numbers; `None` if it cannot be said.
    pub fn words(mut self) -> Option<Vec<u64>> {
        if !self.is_known {
            return None;
        }
        // Numbers are counted from 0, which is what one has before it gets its first: it compares
        // otherwise with numbers to come than one that was given.
        let mut numbers: Vec<i128> = self.ordered.iter().map(|&(number, _)| number).collect();
        numbers.push(0);
        numbers.sort_unstable();
        numbers.dedup();
        let rank = |number| numbers.partition_point(|&other| other < number) as u64;
        for &(number, place) in &self.ordered {
            self.words[place] = rank(number).wrapping_sub(rank(0));
        }
        Some(self.words)
    }
}

/// Records the fields of a struct, as the [module documentation](crate::canon) says:
/// `canon_fields!(self, to, Self { a, b: order })`.
#[macro_export]
macro_rules! canon_fields {
    ($self:expr, $to:expr, $type:ident {
        $($field:ident $(: $how:ident $(($store:ident))?)?),* $(,)?
    }) => {{
        // Named one by one, so that a new field cannot be forgotten.
        let $type { $($field),* } = $self;
        $($crate::canon_fields!(@field $to, $field $(, $how $($store)?)?);)*
    }};
    (@field $to:expr, $field:ident) => {
        $crate::canon::Canonical::canon($field, &(), $to)
    };
    (@field $to:expr, $field:ident, fixed) => { let _ = $field; };
    (@field $to:expr, $field:ident, order) => { $to.order(i128::from(*$field)) };
    (@field $to:expr, $field:ident, shift) => { $to.shift(*$field as u64) };
    (@field $to:expr, $field:ident, shift_wide) => { $to.shift_wide(*$field) };
    (@field $to:expr, $field:ident, due) => { $to.due(*$field) };
    (@field $to:expr, $field:ident, of $store:ident) => {
        $crate::canon::Canonical::canon($field, $store, $to)
    };
}

/// Makes a type [`Canonical`](crate::canon::Canonical): a struct by its fields, an enum without
/// fields by its number, as in `canonical!(Place: u64)`; a struct with queues of tasks with what
/// links them, as in `canonical!(Queue, links: Links { waiting: of(links) })`.
#[macro_export]
macro_rules! canonical {
    ($type:ident { $($fields:tt)* }) => {
        impl $crate::canon::Canonical for $type {
            fn canon(&self, _: &(), to: &mut $crate::canon::Canon) {
                $crate::canon_fields!(self, to, $type { $($fields)* });
            }
        }
    };
    ($type:ident, $store:ident: $of:ty { $($fields:tt)* }) => {
        impl $crate::canon::Canonical<$of> for $type {
            fn canon(&self, $store: &$of, to: &mut $crate::canon::Canon) {
                $crate::canon_fields!(self, to, $type { $($fields)* });
            }
        }
    };
    ($type:ident: u64) => {
        impl $crate::canon::Canonical for $type {
            fn canon(&self, _: &(), to: &mut $crate::canon::Canon) {
                to.word(*self as u64);
            }
        }
    };
}

macro_rules! words {
    ($($type:ty),*) => {$(
        impl Canonical for $type {
            #[inline]
            fn canon(&self, _: &(), to: &mut Canon) {
                to.word(*self as u64);
            }
        }
    )*};
}
words!(bool, u8, u16, u32, u64, usize, i32, i64);

macro_rules! wide {
    ($($type:ty),*) => {$(
        impl Canonical for $type {
            fn canon(&self, _: &(), to: &mut Canon) {
                to.word(*self as u64);
                to.word((*self >> 64) as u64);
            }
        }
    )*};
}
wide!(u128, i128);

impl Canonical for () {
    fn canon(&self, _: &(), _: &mut Canon) {}
}

impl Canonical for Time {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.time(*self);
    }
}

impl Canonical for Span {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.0);
    }
}

impl Canonical for VTime {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.shift(self.0);
    }
}

impl Canonical for TaskId {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.0.into());
    }
}

impl Canonical for CpuId {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.0.into());
    }
}

impl Canonical for DomainId {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.0.into());
    }
}

impl Canonical for Off {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(*self as u64);
    }
}

impl Canonical for CpuMask {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.len() as u64);
        self.iter().for_each(|cpu| to.word(cpu.0.into()));
    }
}

impl Canonical for CpuSet {
    fn canon(&self, _: &(), to: &mut Canon) {
        match self {
            CpuSet::All => to.word(u64::MAX),
            CpuSet::Few(_) | CpuSet::Many(_) => {
                self.iter().for_each(|cpu| to.word(cpu.0.into()));
                to.word(u64::MAX - 1);
            }
        }
    }
}

impl Canonical for TaskParams {
    fn canon(&self, _: &(), to: &mut Canon) {
        canon_fields!(
            self,
            to,
            TaskParams {
                weight,
                priority,
                affinity,
                preferred,
                domain,
                key,
                intensity,
                period,
                budget,
                relative_deadline,
            }
        );
    }
}

impl<S: ?Sized, T: Canonical<S>> Canonical<S> for Option<T> {
    fn canon(&self, store: &S, to: &mut Canon) {
        to.word(self.is_some().into());
        if let Some(value) = self {
            value.canon(store, to);
        }
    }
}

impl<S: ?Sized, T: Canonical<S>, U: Canonical<S>> Canonical<S> for (T, U) {
    fn canon(&self, store: &S, to: &mut Canon) {
        self.0.canon(store, to);
        self.1.canon(store, to);
    }
}

impl<S: ?Sized, T: Canonical<S>> Canonical<S> for [T] {
    fn canon(&self, store: &S, to: &mut Canon) {
        to.word(self.len() as u64);
        self.iter().for_each(|value| value.canon(store, to));
    }
}

impl<S: ?Sized, T: Canonical<S>> Canonical<S> for Box<T> {
    fn canon(&self, store: &S, to: &mut Canon) {
        (**self).canon(store, to);
    }
}

impl<S: ?Sized, T: Canonical<S>> Canonical<S> for Vec<T> {
    fn canon(&self, store: &S, to: &mut Canon) {
        self.as_slice().canon(store, to);
    }
}

impl<S: ?Sized, T: Canonical<S>, const N: usize> Canonical<S> for [T; N] {
    fn canon(&self, store: &S, to: &mut Canon) {
        self.iter().for_each(|value| value.canon(store, to));
    }
}

impl<S: ?Sized, T: Canonical<S>> Canonical<S> for PerTask<T> {
    fn canon(&self, store: &S, to: &mut Canon) {
        to.word(self.len() as u64);
        self.values().for_each(|value| value.canon(store, to));
    }
}

/// Records tasks in their order.
pub(crate) fn tasks(tasks: impl Iterator<Item = TaskId>, to: &mut Canon) {
    tasks.for_each(|task| to.word(task.0.into()));
    to.word(u64::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(record: impl FnOnce(&mut Canon)) -> Option<Vec<u64>> {
        let mut canon = Canon::new(Time(100));
        record(&mut canon);
        canon.words()
    }

    #[test]
    fn of_an_order_only_ranks_are_kept() {
        let ranks = |numbers: &[i128]| words(|to| numbers.iter().for_each(|&n| to.order(n)));
        assert_eq!(ranks(&[7, 3, 3, 9]), Some(alloc::vec![2, 1, 1, 3]));
        assert_eq!(ranks(&[70, 30, 30, 90]), ranks(&[7, 3, 3, 9]));
        assert_eq!(ranks(&[-7, -90]), ranks(&[-1, -2]));
        assert_ne!(ranks(&[7, 3]), ranks(&[7, 0]), "3 was given, 0 was not");
    }

    #[test]
    fn of_virtual_times_only_distances_are_kept_across_the_wrap() {
        let near = |first: u64| {
            words(|to| [0, 5].into_iter().for_each(|n| to.shift(first.wrapping_add(n))))
        };
        assert_eq!(near(u64::MAX - 2), near(40));
        assert_eq!(near(0), Some(alloc::vec![0, 5]));
    }

    #[test]
    fn times_count_from_now_and_never_stays_never() {
        assert_eq!(words(|to| to.time(Time(130))), Some(alloc::vec![30]));
        assert_ne!(words(|to| to.time(Time(99))), words(|to| to.time(Time(98))));
        assert_eq!(words(|to| to.due(Time(99))), words(|to| to.due(Time(2))));
        assert_eq!(words(|to| to.time(Time::NEVER)), Some(alloc::vec![Time::NEVER.0]));
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(words(Canon::unknown), None);
    }
}
