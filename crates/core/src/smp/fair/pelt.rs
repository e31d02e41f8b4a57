//! Per-entity load tracking (Linux `kernel/sched/pelt.c`, 6.12): averages in which what was a
//! millisecond ago counts a little less than what is now, and half after 32 of them.
//!
//! Time is cut into periods of 1024 us (2^20 ns). A sum is that of all periods, each multiplied by
//! y^(its age), y^32 = 1/2. An average is the sum divided by what it would be if all had been full.
//! All of it is in integers, rounded where Linux rounds, because decisions compare averages that
//! differ by one.

use crate::canon::{Canon, Canonical};
use crate::time::Time;
use crate::{canon_fields, canonical};

/// Σ 1024·y^n over all n ≥ 0, as rounded by Linux.
const MOST: u32 = 47_742;

/// The divider of averages at the start of a period: what the sum of a full history is there.
const LEAST_DIVIDER: u32 = MOST - 1024;

/// The period in units of 1024 ns.
const PERIOD: u64 = 1024;

/// How many periods halve a sum.
const HALF_LIFE: u64 = 32;

/// (2^32 − 1)·y^n, rounded down, for n = 0 to 31.
const Y_TO_THE: [u32; 32] = {
    // y, y², y⁴, y⁸ and y¹⁶ as multiples of 2^-62, from which the binary digits of n choose.
    const POWERS: [u128; 5] = [
        4_512_867_096_753_504_462,
        4_416_165_660_797_809_419,
        4_228_934_724_888_366_667,
        3_877_950_241_171_266_237,
        3_260_954_456_333_195_553,
    ];
    let mut table = [u32::MAX; 32];
    let mut n = 1;
    while n < 32 {
        let (mut product, mut bit) = (1_u128 << 62, 0);
        while bit < 5 {
            if n & (1 << bit) != 0 {
                product = (product * POWERS[bit]) >> 62;
            }
            bit += 1;
        }
        table[n] = ((product * 0xffff_ffff) >> 62) as u32;
        n += 1;
    }
    table
};

/// What becomes of sums after some periods.
#[derive(Clone, Copy)]
struct Decay {
    halvings: u32,
    factor: u32,
}

impl Decay {
    #[inline]
    fn after(periods: u64) -> Decay {
        if periods > HALF_LIFE * 63 {
            return Decay { halvings: 0, factor: 0 };
        }
        let factor = Y_TO_THE[(periods % HALF_LIFE) as usize];
        Decay { halvings: (periods / HALF_LIFE) as u32, factor }
    }

    /// What is left of `sum`.
    #[inline]
    fn of(self, sum: u64) -> u64 {
        ((u128::from(sum >> self.halvings) * u128::from(self.factor)) >> 32) as u64
    }
}

/// `sum / divider`, in 32 bits where that does, which takes a third of the time.
#[inline]
fn quotient(sum: u64, divider: u64) -> u64 {
    match (u32::try_from(sum), u32::try_from(divider)) {
        (Ok(sum), Ok(divider)) => u64::from(sum / divider),
        _ => sum / divider,
    }
}

/// What an entity or a runqueue was doing since it was last brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since {
    /// The weight that counts: 1 for a ready task, the sum of weights for a runqueue, 0 for nobody.
    pub load: u64,
    /// How many tasks were ready.
    pub runnable: u64,
    /// Whether one ran.
    pub running: bool,
}

impl Since {
    /// Nothing.
    pub const BLOCKED: Since = Since { load: 0, runnable: 0, running: false };
}

/// Stands for the time up to which averages are that belong to no runqueue yet: no time is later.
const DETACHED: u64 = u64::MAX;

/// The averages of a task or a runqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Average {
    /// Up to when it is, in nanoseconds, or a little before; or [`DETACHED`].
    updated: u64,
    load_sum: u64,
    runnable_sum: u64,
    util_sum: u64,
    /// How far the present period had come, in units of 1024 ns.
    into_period: u64,
    /// Weight times the share of time for which it was ready.
    pub load: u64,
    /// Tasks that were ready, 1024 for each.
    pub runnable: u64,
    /// The share of time for which it ran, of 1024.
    pub util: u64,
}

impl Average {
    /// Of a runqueue in which nothing has happened up to now, which is time 0.
    pub const EMPTY: Average = Average {
        updated: 0,
        load_sum: 0,
        runnable_sum: 0,
        util_sum: 0,
        into_period: 0,
        load: 0,
        runnable: 0,
        util: 0,
    };

    /// Of a new task: as if it had always been ready.
    pub fn new(weight: u64) -> Average {
        Average { updated: DETACHED, load: weight, ..Average::EMPTY }
    }

    /// Whether it belongs to a runqueue.
    #[inline]
    pub fn is_attached(&self) -> bool {
        self.updated != DETACHED
    }

    /// It belongs to no runqueue any more.
    #[inline]
    pub fn leave(&mut self) {
        self.updated = DETACHED;
    }

    /// Up to when it is; it belongs to a runqueue.
    #[inline]
    pub fn updated(&self) -> u64 {
        self.updated
    }

    /// It is from then on as late as a runqueue that was updated at that time.
    #[inline]
    pub fn join(&mut self, updated: u64) {
        self.updated = updated;
    }

    /// What a full sum is at this moment.
    fn divider(&self) -> u64 {
        u64::from(LEAST_DIVIDER) + self.into_period
    }

    /// Counts the time up to `now`; averages are those of a task of this `weight`, or of a runqueue
    /// if it is 1. Returns whether a period has ended, as only then averages change.
    #[inline]
    pub fn advance(&mut self, now: u64, since: Since, weight: u64) -> bool {
        debug_assert!(self.is_attached());
        now.wrapping_sub(self.updated) >> 10 != 0 && self.count(now, since, weight)
    }

    #[inline]
    fn count(&mut self, now: u64, since: Since, weight: u64) -> bool {
        if now < self.updated {
            self.updated = now;
            return false;
        }
        let units = (now - self.updated) >> 10;
        self.updated += units << 10;
        let whole = units + self.into_period;
        if whole < PERIOD {
            self.into_period = whole;
            self.add(since, units);
            return false;
        }
        self.end_period(whole, since, weight);
        true
    }

    /// Counts so many units of 1024 ns.
    #[inline]
    fn add(&mut self, since: Since, units: u64) {
        if since.load == 0 {
            return;
        }
        self.load_sum += since.load * units;
        self.runnable_sum += (since.runnable * units) << 10;
        if since.running {
            self.util_sum += units << 10;
        }
    }

    /// The present moment is `whole` units after the last period began, in another one.
    fn end_period(&mut self, whole: u64, since: Since, weight: u64) {
        let (decay, into) = (Decay::after(whole / PERIOD), whole % PERIOD);
        self.load_sum = decay.of(self.load_sum);
        self.runnable_sum = decay.of(self.runnable_sum);
        self.util_sum = decay.of(self.util_sum);
        let first = decay.of(PERIOD - self.into_period);
        let between = u64::from(MOST) - decay.of(u64::from(MOST)) - PERIOD;
        self.into_period = into;
        self.add(since, first + between + into);
        let divider = self.divider();
        self.load = quotient(weight * self.load_sum, divider);
        self.runnable = quotient(self.runnable_sum, divider);
        self.util = quotient(self.util_sum, divider);
    }

    /// A task with these averages begins to count in `queue`, which is up to date.
    pub fn attach(&mut self, queue: &mut Average, weight: u64) {
        (self.updated, self.into_period) = (queue.updated, queue.into_period);
        let divider = self.divider();
        self.util_sum = self.util * divider;
        self.runnable_sum = self.runnable * divider;
        let load_sum = self.load * divider;
        self.load_sum = if weight < load_sum { load_sum / weight } else { 1 };
        queue.load += self.load;
        queue.load_sum += weight * self.load_sum;
        queue.util += self.util;
        queue.util_sum += self.util_sum;
        queue.runnable += self.runnable;
        queue.runnable_sum += self.runnable_sum;
    }

    /// A task ceases to count in `queue`; both are up to date.
    pub fn detach(&self, queue: &mut Average, weight: u64) {
        queue.subtract_load(self.load, weight * self.load_sum);
        subtract((&mut queue.util, &mut queue.util_sum), (self.util, self.util_sum));
        let runnable = (self.runnable, self.runnable_sum);
        subtract((&mut queue.runnable, &mut queue.runnable_sum), runnable);
    }

    fn subtract_load(&mut self, load: u64, sum: u64) {
        self.load = self.load.saturating_sub(load);
        // In 32 bits, as there.
        let rest = self.load_sum.saturating_sub(sum) as u32;
        self.load_sum = rest.max((self.load * u64::from(LEAST_DIVIDER)) as u32).into();
    }

    /// Tasks with these averages together have gone from the runqueue since it was last brought up
    /// to date.
    pub fn remove(&mut self, gone: &Removed) {
        let divider = self.divider();
        self.subtract_load(gone.load, gone.load * divider);
        subtract((&mut self.util, &mut self.util_sum), (gone.util, gone.util * divider));
        let runnable = (gone.runnable, gone.runnable * divider);
        subtract((&mut self.runnable, &mut self.runnable_sum), runnable);
    }

    /// The weight of a task that counts in `queue` changes.
    pub fn reweigh(&mut self, queue: Option<&mut Average>, from: u64, to: u64) {
        let before = (self.load, from * self.load_sum);
        self.load = to * self.load_sum / self.divider();
        if let Some(queue) = queue {
            queue.subtract_load(before.0, before.1);
            queue.load += self.load;
            queue.load_sum += to * self.load_sum;
        }
    }

    /// Whether nothing is left of the sums.
    pub fn is_decayed(&self) -> bool {
        self.load_sum == 0 && self.runnable_sum == 0 && self.util_sum == 0
    }

    /// Whether load and utilisation are too small to show.
    pub fn is_over(&self) -> bool {
        self.load == 0 && self.util == 0
    }
}

/// Takes an average and its sum from those of a runqueue, whose sum stays at what its average is
/// worth at least.
fn subtract((average, sum): (&mut u64, &mut u64), (less, less_sum): (u64, u64)) {
    *average = average.saturating_sub(less);
    *sum = sum.saturating_sub(less_sum).max(*average * u64::from(LEAST_DIVIDER));
}

/// Averages of tasks that have left a runqueue while they slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Removed {
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
    /// How many there are.
    pub tasks: u32,
}

impl Removed {
    pub fn add(&mut self, task: &Average) {
        self.load += task.load;
        self.runnable += task.runnable;
        self.util += task.util;
        self.tasks += 1;
    }
}

canonical!(Removed { load, runnable, util, tasks });

impl Canonical for Average {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.time(Time(self.updated));
        canon_fields!(
            self,
            to,
            Average {
                updated: fixed,
                load_sum,
                runnable_sum,
                util_sum,
                into_period,
                load,
                runnable,
                util,
            }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: Since = Since { load: 1, runnable: 1, running: true };

    /// The first and the last powers as Linux's table has them.
    #[test]
    fn powers_of_y() {
        assert_eq!(Y_TO_THE[0], 0xffff_ffff);
        assert_eq!(Y_TO_THE[1], 0xfa83_b2da);
        assert_eq!(Y_TO_THE[16], 0xb504_f333);
        assert_eq!(Y_TO_THE[31], 0x82cd_8698);
    }

    #[test]
    fn half_of_it_is_from_the_last_32_periods() {
        let mut task = Average::new(1024);
        task.load = 0;
        task.updated = 0;
        let mut now = 0;
        for _ in 0..32 {
            now += 1 << 20;
            task.advance(now, RUNS, 1024);
        }
        // 1024·(1 − 1/2), less by what the present, empty period lacks.
        assert!((500..=512).contains(&task.util), "{task:?}");
        assert!((500..=512).contains(&task.load), "{task:?}");
        for _ in 0..32 {
            now += 1 << 20;
            task.advance(now, Since::BLOCKED, 1024);
        }
        assert!((245..=256).contains(&task.util), "{task:?}");
        task.advance(now + (64 << 20), Since::BLOCKED, 1024);
        assert!((61..=64).contains(&task.util), "{task:?}");
        task.advance(now + (3000 << 20), Since::BLOCKED, 1024);
        assert!(task.is_over());
    }

    #[test]
    fn less_than_a_period_waits_for_its_end() {
        let mut task = Average::EMPTY;
        assert!(!task.advance(1023, RUNS, 1024), "less than a unit");
        assert_eq!(task.updated, 0);
        assert!(!task.advance(500_000, RUNS, 1024));
        assert_eq!(task.util, 0);
        assert!(task.advance(1_100_000, RUNS, 1024));
        assert!(task.util > 0);
    }

    #[test]
    fn a_runqueue_is_the_sum_of_its_tasks() {
        let mut queue = Average { updated: 5 << 20, ..Average::EMPTY };
        let (mut a, mut b) = (Average::new(1024), Average::new(335));
        a.attach(&mut queue, 1024);
        b.attach(&mut queue, 335);
        assert_eq!(queue.load, 1024 + 335);
        a.detach(&mut queue, 1024);
        assert_eq!(queue.load, 335);
        b.reweigh(Some(&mut queue), 335, 670);
        assert!((669..=671).contains(&queue.load), "{queue:?}");
        let mut gone = Removed::default();
        gone.add(&b);
        queue.remove(&gone);
        assert_eq!(queue.load, 0);
    }
}
