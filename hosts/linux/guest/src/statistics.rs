//! Summaries of samples.

/// Samples, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    sorted: Vec<u64>,
}

impl Summary {
    /// Of these samples; `None` if there are none.
    pub fn of(mut samples: Vec<u64>) -> Option<Summary> {
        samples.sort_unstable();
        (!samples.is_empty()).then_some(Summary { sorted: samples })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.sorted.len() as u64
    }

    /// The least of them.
    pub fn min(&self) -> u64 {
        self.sorted[0]
    }

    /// The greatest of them.
    pub fn max(&self) -> u64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// Their mean, rounded down.
    pub fn mean(&self) -> u64 {
        (self.sum() / u128::from(self.count())) as u64
    }

    /// The least sample that is no less than this percentage of all, 1 to 100.
    pub fn percentile(&self, percent: usize) -> u64 {
        self.sorted[(self.sorted.len() * percent).div_ceil(100).max(1) - 1]
    }

    /// The coefficient of variation (standard deviation by mean) in millionths; 0 if all are 0.
    pub fn variation_millionths(&self) -> u64 {
        let mean = self.sum() as f64 / self.count() as f64;
        if mean == 0.0 {
            return 0;
        }
        let squares: f64 = self.sorted.iter().map(|&sample| (sample as f64 - mean).powi(2)).sum();
        ((squares / self.count() as f64).sqrt() / mean * 1e6).round() as u64
    }

    fn sum(&self) -> u128 {
        self.sorted.iter().map(|&sample| u128::from(sample)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(Summary::of(vec![]), None);
        let one = Summary::of(vec![7]).unwrap();
        assert_eq!([1, 50, 100].map(|percent| one.percentile(percent)), [7, 7, 7]);
        assert_eq!(one.variation_millionths(), 0);
        let ten = Summary::of((1..=10).rev().collect()).unwrap();
        assert_eq!([50, 90, 91, 99].map(|percent| ten.percentile(percent)), [5, 9, 10, 10]);
        assert_eq!((ten.count(), ten.min(), ten.max(), ten.mean()), (10, 1, 10, 5));
        // Mean 2, variance 2/3.
        assert_eq!(Summary::of(vec![1, 2, 3]).unwrap().variation_millionths(), 408_248);
        assert_eq!(Summary::of(vec![0, 0]).unwrap().variation_millionths(), 0);
    }
}
