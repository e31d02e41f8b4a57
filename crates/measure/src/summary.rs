//! Distributions in bounded memory.

/// Samples up to this number are kept and their percentiles are exact.
pub const EXACT_SAMPLES: usize = 1 << 16;

/// Mantissa bits of a histogram bucket: above [`EXACT_SAMPLES`], percentiles are rounded down by
/// less than 1 part in 256.
const MANTISSA: u32 = 8;

/// Count, mean, standard deviation, extremes and percentiles of a stream of numbers, in bounded
/// memory. Mean and extremes are exact; so are percentiles up to [`EXACT_SAMPLES`] samples.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Numbers not yet in the fields below; all of them, up to [`EXACT_SAMPLES`].
    samples: Vec<u64>,
    /// How many samples are kept before they are folded.
    keep: usize,
    folded: Folded,
}

/// Mean, standard deviation and extremes of a [`Summary`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// As [`Summary::mean`].
    pub mean: f64,
    /// As [`Summary::sd`].
    pub sd: f64,
    /// As [`Summary::min`].
    pub min: u64,
    /// As [`Summary::max`].
    pub max: u64,
}

/// Numbers that are kept only in aggregate.
#[derive(Clone, Debug, Default)]
struct Folded {
    count: u64,
    sum: u128,
    /// Σ (x − first)², which loses less to cancellation than Σ x².
    squares: f64,
    first: u64,
    min: u64,
    max: u64,
    histogram: Vec<u64>,
}

/// How many samples are folded at a time after the first [`EXACT_SAMPLES`]: recording one is then
/// a store, and the rest of the work runs over an array that stays in the first-level cache.
const BATCH: usize = 1024;

impl Folded {
    fn add(&mut self, values: &[u64]) {
        let Some(&first) = values.first() else { return };
        if self.count == 0 {
            (self.first, self.min, self.max) = (first, first, first);
        }
        self.count += values.len() as u64;
        for &value in values {
            self.sum += u128::from(value);
            // Of the difference, which is signed: a CPU converts that at once, and it loses less.
            let distance = value.wrapping_sub(self.first) as i64 as f64;
            self.squares += distance * distance;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    fn merge(&mut self, other: &Folded) {
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        // Σ (x − a)² = Σ (x − b)² + 2 (b − a) Σ (x − b) + n (b − a)²
        let shift = other.first as f64 - self.first as f64;
        let n = other.count as f64;
        let around_other = other.sum as f64 - n * other.first as f64;
        self.squares += other.squares + shift * (2.0 * around_other + n * shift);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.histogram.iter_mut().zip(&other.histogram) {
            *mine += theirs;
        }
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    fn sd(&self) -> f64 {
        if self.count < 2 {
            return if self.count == 1 { 0.0 } else { f64::NAN };
        }
        let n = self.count as f64;
        let shift = self.sum as f64 / n - self.first as f64;
        libm::sqrt(((self.squares - n * shift * shift) / (n - 1.0)).max(0.0))
    }

    fn add_to_histogram(&mut self, values: &[u64]) {
        self.histogram.resize(bucket(u64::MAX) + 1, 0);
        for &value in values {
            self.histogram[bucket(value)] += 1;
        }
    }
}

impl Summary {
    /// Adds one number.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if self.samples.len() >= self.keep {
            self.make_room();
        }
        self.samples.push(value);
    }

    /// Adds all numbers of `other`.
    pub fn merge(&mut self, other: &Summary) {
        if other.folded.count > 0 {
            self.fold();
            self.folded.merge(&other.folded);
        }
        for &value in &other.samples {
            self.record(value);
        }
    }

    #[cold]
    fn make_room(&mut self) {
        if self.keep < EXACT_SAMPLES && self.folded.count == 0 {
            self.keep = (self.keep * 2).max(64);
            return;
        }
        self.fold();
    }

    fn fold(&mut self) {
        self.folded.add(&self.samples);
        self.folded.add_to_histogram(&self.samples);
        self.samples.clear();
        self.samples.shrink_to(BATCH);
        self.keep = BATCH;
    }

    /// The moments of all numbers so far, without the histogram.
    fn all(&self) -> Folded {
        let Folded { count, sum, squares, first, min, max, .. } = self.folded;
        let mut all = Folded { count, sum, squares, first, min, max, histogram: Vec::new() };
        all.add(&self.samples);
        all
    }

    /// How many numbers there were.
    pub fn count(&self) -> u64 {
        self.folded.count + self.samples.len() as u64
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.all().sum
    }

    /// Their mean; NaN if there were none.
    pub fn mean(&self) -> f64 {
        self.all().mean()
    }

    /// Their standard deviation with n − 1; 0 for a single number, NaN for none.
    pub fn sd(&self) -> f64 {
        self.all().sd()
    }

    /// The smallest, if there is one.
    pub fn min(&self) -> Option<u64> {
        self.moments().map(|moments| moments.min)
    }

    /// The largest, if there is one.
    pub fn max(&self) -> Option<u64> {
        self.moments().map(|moments| moments.max)
    }

    /// All of these at once, if there is a number.
    pub fn moments(&self) -> Option<Moments> {
        let all = self.all();
        let Folded { min, max, .. } = all;
        (all.count > 0).then(|| Moments { mean: all.mean(), sd: all.sd(), min, max })
    }

    /// How many numbers are at most `value`. Above [`EXACT_SAMPLES`], numbers are taken for the
    /// lower bound of their bucket, as by [`Summary::percentiles`].
    pub fn count_up_to(&self, value: u64) -> u64 {
        let samples = self.samples.iter().filter(|&&sample| sample <= value).count() as u64;
        let folded = self.folded.histogram.iter().take(bucket(value) + 1).sum::<u64>();
        samples + folded
    }

    /// The nearest-rank percentiles `percents` (each in `0 < p <= 100`), if there is a number.
    pub fn percentiles<const N: usize>(&self, percents: [f64; N]) -> Option<[u64; N]> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank =
            |percent: f64| (libm::ceil(percent / 100.0 * count as f64) as u64).clamp(1, count);
        if self.folded.count == 0 {
            return Some(nth(
                &mut self.samples.clone(),
                percents.map(|percent| rank(percent) as usize),
            ));
        }
        let mut all = self.folded.clone();
        all.add(&self.samples);
        all.add_to_histogram(&self.samples);
        Some(percents.map(|percent| {
            let mut left = rank(percent);
            let found = all.histogram.iter().position(|&count| {
                let here = count >= left;
                left = left.saturating_sub(count);
                here
            });
            found.map_or(all.max, lowest_of).clamp(all.min, all.max)
        }))
    }
}

/// The values of these ranks, from 1, as if `values` were sorted.
fn nth<const N: usize>(values: &mut [u64], ranks: [usize; N]) -> [u64; N] {
    let mut order: [usize; N] = core::array::from_fn(|place| place);
    order.sort_unstable_by_key(|&place| ranks[place]);
    let (mut rest, mut before, mut found) = (values, 0, [0; N]);
    for place in order {
        // What is before a rank is out of the way of higher ones.
        let at = ranks[place] - 1 - before;
        found[place] = *rest.select_nth_unstable(at).1;
        (rest, before) = (&mut rest[at..], before + at);
    }
    found
}

/// The bucket of `value`: exact below 2^9, then 256 buckets per power of two.
#[inline]
fn bucket(value: u64) -> usize {
    let exponent = (63 - (value | 1).leading_zeros()).saturating_sub(MANTISSA);
    ((exponent as usize) << MANTISSA) + (value >> exponent) as usize
}

/// The smallest value of a bucket.
fn lowest_of(bucket: usize) -> u64 {
    let exponent = (bucket >> MANTISSA).saturating_sub(1);
    ((bucket - (exponent << MANTISSA)) as u64) << exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_as_in_a_sorted_list() {
        let mut state = 1u64;
        for n in 1..200 {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize
            };
            let mut values: Vec<u64> = (0..n).map(|_| next() as u64 % 50).collect();
            let ranks = [(); 4].map(|()| next() % n + 1);
            let found = nth(&mut values.clone(), ranks);
            values.sort_unstable();
            assert_eq!(found, ranks.map(|rank| values[rank - 1]));
        }
    }

    #[test]
    fn small_samples_are_exact() {
        let mut summary = Summary::default();
        for value in [7, 2, 5, 1, 9, 3] {
            summary.record(value);
        }
        assert_eq!(summary.mean(), 4.5);
        assert!((summary.sd() - 9.5f64.sqrt()).abs() < 1e-12, "{}", summary.sd());
        assert_eq!((summary.min(), summary.max()), (Some(1), Some(9)));
        assert_eq!(summary.percentiles([50.0, 95.0, 99.0, 100.0]), Some([3, 9, 9, 9]));
        assert_eq!([0, 1, 4, 5, 9].map(|value| summary.count_up_to(value)), [0, 1, 3, 4, 6]);
    }

    #[test]
    fn no_sample_is_no_number() {
        let summary = Summary::default();
        assert!(summary.mean().is_nan() && summary.sd().is_nan());
        assert_eq!(summary.percentiles([50.0]), None);
    }

    #[test]
    fn merging_is_recording_all() {
        for (left, right) in [(10, 20), (10, 100_000), (100_000, 10), (100_000, 200_000), (0, 5)] {
            let values = |n: u64, seed: u64| (0..n).map(move |i| (i * 7919 + seed) % 1_000_003);
            let (mut a, mut b, mut all) = <(Summary, Summary, Summary)>::default();
            values(left, 1).for_each(|value| a.record(value));
            values(right, 500).for_each(|value| b.record(value));
            values(left, 1).chain(values(right, 500)).for_each(|value| all.record(value));
            a.merge(&b);
            assert_eq!(
                (a.count(), a.sum(), a.min(), a.max()),
                (all.count(), all.sum(), all.min(), all.max())
            );
            assert_eq!(a.percentiles([50.0, 99.0]), all.percentiles([50.0, 99.0]));
            assert!((a.sd() / all.sd() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn buckets_are_ordered_and_narrow() {
        let mut values: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1]).collect();
        values.extend([511, 512, 513, 1_000_000_007, u64::MAX]);
        values.sort_unstable();
        for pair in values.windows(2) {
            assert!(bucket(pair[0]) <= bucket(pair[1]));
        }
        for value in values {
            let low = lowest_of(bucket(value));
            assert!(low <= value && value - low <= value / 256, "{value}: {low}");
            assert_eq!(bucket(low), bucket(value));
        }
    }

    #[test]
    fn large_samples_keep_their_moments_and_nearly_their_percentiles() {
        let mut summary = Summary::default();
        let n = 3 * EXACT_SAMPLES as u64;
        for value in 0..n {
            summary.record(1_000_000 + value * 7919 % n);
        }
        assert_eq!(summary.mean(), 1_000_000.0 + (n - 1) as f64 / 2.0);
        let sd = ((n * n - 1) as f64 / 12.0 * (n as f64 / (n - 1) as f64)).sqrt();
        assert!((summary.sd() / sd - 1.0).abs() < 1e-9);
        let [p50, p99] = summary.percentiles([50.0, 99.0]).unwrap();
        let below = summary.count_up_to(p50) as f64 / n as f64;
        // A bucket there has 4096 of these numbers, a 48th.
        assert!((0.5..0.521).contains(&below), "{below}");
        for (found, exact) in [(p50, 1_000_000 + n / 2), (p99, 1_000_000 + n * 99 / 100)] {
            assert!(found <= exact && (exact - found) as f64 <= exact as f64 / 256.0);
        }
    }
}
