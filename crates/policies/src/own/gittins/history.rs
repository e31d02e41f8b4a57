//! What is learned of run times: the latest ones, and the ranks that follow from them.

use alloc::vec::Vec;
use anysched_core::canonical;

use anysched_core::noise::{self, Sigma};
use anysched_core::time::Span;

use super::table::{Builder, Table};

/// Run times are known from this many on.
const LEAST: usize = 4;

/// The latest run times. Allocates only when it is made.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// A ring, once it is full.
    latest: Vec<Span>,
    /// The place of the next in the ring.
    next: usize,
    /// The same in ascending order, with noise.
    sorted: Vec<Span>,
    /// How many are not in the table yet.
    fresh: usize,
    table: Table,
}

impl History {
    /// Room for the latest `length` run times.
    pub fn new(length: usize) -> History {
        History {
            latest: Vec::with_capacity(length),
            next: 0,
            sorted: Vec::with_capacity(length),
            fresh: 0,
            table: Table::with_capacity(length),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.latest.clear();
        self.sorted.clear();
        (self.next, self.fresh) = (0, 0);
        self.table.clear();
    }

    /// The ranks, if enough run times are known.
    #[inline]
    pub fn table(&self) -> Option<&Table> {
        self.table.is_filled().then_some(&self.table)
    }

    /// Notes a run time, which was `ran`. Tables are made anew when a quarter of what they are made
    /// of is.
    pub fn note(&mut self, ran: Span, error: Error, builder: &mut Builder) {
        if self.latest.len() < self.latest.capacity() {
            self.latest.push(ran);
        } else {
            let old = core::mem::replace(&mut self.latest[self.next], ran);
            self.next = (self.next + 1) % self.latest.len();
            let place = self.sorted.partition_point(|&other| other < error.of(old));
            self.sorted.remove(place);
        }
        let ran = error.of(ran);
        let place = self.sorted.partition_point(|&other| other < ran);
        self.sorted.insert(place, ran);
        self.fresh += 1;
        if self.sorted.len() >= LEAST && 4 * self.fresh >= self.sorted.len() {
            self.fresh = 0;
            builder.fill_from_sizes(&self.sorted, &mut self.table);
        }
    }
}

/// By how much what is learned is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    pub sigma: Sigma,
    pub seed: u64,
    /// Of whom it is learned.
    pub about: u64,
}

impl Error {
    fn of(self, ran: Span) -> Span {
        if self.sigma.is_zero() {
            ran
        } else {
            noise::apply(ran, self.sigma, self.seed, self.about)
        }
    }
}

canonical!(History { latest, next, sorted, fresh, table });
