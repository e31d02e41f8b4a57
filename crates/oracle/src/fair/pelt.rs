//! Per-entity load tracking: geometric sums in periods of 1024 times 1024 ns that lose half of
//! their worth in 32 periods.

use std::sync::LazyLock;

/// What is tracked of a task or of a runqueue. Times are in ns.
#[derive(Clone, Debug, Default)]
pub struct Avg {
    /// Up to when the sums go.
    pub updated: u64,
    /// How much of the present period they cover, in units of 1024 ns.
    pub contrib: u64,
    /// Time ready, of a task; the same times weight, of a runqueue.
    pub load_sum: u64,
    /// Tasks that are ready, by time and capacity.
    pub runnable_sum: u64,
    /// Time running, times capacity.
    pub util_sum: u64,
    /// Weight times the share of time ready.
    pub load: u64,
    /// 1024 for each task that is always ready.
    pub runnable: u64,
    /// 1024 for a CPU that always runs something.
    pub util: u64,
}

const PERIOD: u64 = 1024;

/// 2^32 − 1 times 2^(−n/32), of which the integer part counts.
static FACTORS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let y = 0.5f64.powf(1.0 / 32.0);
    (0..32).map(|n| (f64::from(u32::MAX) * y.powi(n)) as u64).collect()
});

/// What the sum of a share of 1 converges to.
static MOST: LazyLock<u64> = LazyLock::new(|| {
    let mut sum = PERIOD;
    loop {
        let next = ((sum * FACTORS[1]) >> 32) + PERIOD;
        if next == sum {
            return sum;
        }
        sum = next;
    }
});

/// `value` after `periods` periods.
pub fn decay(value: u64, periods: u64) -> u64 {
    if periods > 32 * 63 {
        return 0;
    }
    let halved = value >> (periods / 32);
    ((u128::from(halved) * u128::from(FACTORS[periods as usize % 32])) >> 32) as u64
}

/// Average and sum without some of them. A sum is never less than its average needs; that is
/// compared in 32 bits.
fn less(all: (u64, u64), part: (u64, u64)) -> (u64, u64) {
    let average = all.0.saturating_sub(part.0);
    let sum = all.1.saturating_sub(part.1) as u32;
    (average, sum.max((average * least_divider()) as u32).into())
}

/// The least that a sum is divided by.
pub fn least_divider() -> u64 {
    *MOST - PERIOD
}

impl Avg {
    /// What a sum is at this point of the period if its share is 1.
    pub fn divider(&self) -> u64 {
        least_divider() + self.contrib
    }

    /// Goes on to `now`; meanwhile load, ready tasks and running were as given. Whether a period
    /// has ended (___update_load_sum).
    pub fn go_on(&mut self, now: u64, load: u64, runnable: u64, running: bool) -> bool {
        let Some(passed) = now.checked_sub(self.updated) else {
            self.updated = now;
            return false;
        };
        let units = passed / 1024;
        if units == 0 {
            return false;
        }
        self.updated += units * 1024;
        let (runnable, running) = if load > 0 { (runnable, running) } else { (0, false) };
        let periods = (self.contrib + units) / PERIOD;
        let rest = (self.contrib + units) % PERIOD;
        let mut seen = units;
        if periods > 0 {
            self.load_sum = decay(self.load_sum, periods);
            self.runnable_sum = decay(self.runnable_sum, periods);
            self.util_sum = decay(self.util_sum, periods);
            let first = decay(PERIOD - self.contrib, periods);
            let full = *MOST - decay(*MOST, periods) - PERIOD;
            seen = first + full + rest;
        }
        self.contrib = rest;
        self.load_sum += load * seen;
        self.runnable_sum += runnable * seen * 1024;
        self.util_sum += u64::from(running) * seen * 1024;
        periods > 0
    }

    /// The averages from the sums (___update_load_avg).
    pub fn average(&mut self, weight: u64) {
        let divider = self.divider();
        self.load = weight * self.load_sum / divider;
        self.runnable = self.runnable_sum / divider;
        self.util = self.util_sum / divider;
    }

    /// Takes away the load, average and sum, of something that goes.
    pub fn take_load(&mut self, average: u64, sum: u64) {
        (self.load, self.load_sum) = less((self.load, self.load_sum), (average, sum));
    }

    /// Takes away the utilization.
    pub fn take_util(&mut self, average: u64, sum: u64) {
        (self.util, self.util_sum) = less((self.util, self.util_sum), (average, sum));
    }

    /// Takes away the runnable time.
    pub fn take_runnable(&mut self, average: u64, sum: u64) {
        let runnable = (self.runnable, self.runnable_sum);
        (self.runnable, self.runnable_sum) = less(runnable, (average, sum));
    }

    /// Whether nothing is left.
    pub fn is_decayed(&self) -> bool {
        self.load_sum == 0 && self.util_sum == 0 && self.runnable_sum == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Documentation/scheduler: the factors and the limit.
    #[test]
    fn factors_are_those_of_the_kernel() {
        assert_eq!([FACTORS[0], FACTORS[1], FACTORS[16]], [0xffff_ffff, 0xfa83_b2da, 0xb504_f333]);
        assert_eq!([FACTORS[5], FACTORS[31]], [0xe5b9_06e6, 0x82cd_8698]);
        assert_eq!(*MOST, 47_742);
    }

    fn run(units: u64, running: bool) -> Avg {
        let mut avg = Avg::default();
        if avg.go_on(units * 1024, 1, 1, running) {
            avg.average(1024);
        }
        avg
    }

    /// 32 periods of 1 are half of what there can be: 47742 − 23870 = 23872 at the end of a period,
    /// where the whole is 46718.
    #[test]
    fn half_after_32_periods() {
        let avg = run(32 * 1024, true);
        assert_eq!(avg.load_sum, 47_742 - decay(47_742, 32) - 1024 + decay(1024, 32));
        assert_eq!([avg.load, avg.util, avg.runnable], [512, 512, 512]);
        assert_eq!(run(32 * 1024, false).util, 0);
        let long = run(2_000 * 1024, true);
        assert_eq!([long.load, long.util, long.runnable], [1024, 1024, 1024]);
    }

    /// Within a period sums grow and averages stay.
    #[test]
    fn averages_change_at_ends_of_periods() {
        let avg = run(1023, true);
        assert_eq!([avg.load_sum, avg.load, avg.contrib], [1023, 0, 1023]);
        let avg = run(1024, true);
        assert_eq!(
            [avg.load_sum, avg.contrib],
            [decay(1024, 1) + 47_742 - decay(47_742, 1) - 1024, 0]
        );
        assert_eq!(avg.load, 1024 * avg.load_sum / 46_718);
    }

    #[test]
    fn half_is_left_after_32_periods() {
        assert_eq!(decay(1024, 32), 511, "the factor is a little below 1");
        assert_eq!(decay(1 << 40, 32 * 63), decay(1 << 40 >> 63, 0));
        assert_eq!(decay(u64::from(u32::MAX), 32 * 63 + 1), 0);
    }

    /// Two tasks of nice −20 have a load sum beyond 32 bits, of which only those are kept when one
    /// of them goes.
    #[test]
    fn sums_are_compared_in_32_bits() {
        let one = 88_761 * 47_742u64;
        let mut avg = Avg { load: 2 * 88_761, load_sum: 2 * one, ..Avg::default() };
        avg.take_load(0, 0);
        let needed = 177_522 * 46_718u64;
        assert_eq!(avg.load_sum, u64::from((2 * one) as u32).max(u64::from(needed as u32)));
    }
}
