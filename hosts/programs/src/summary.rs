//! Summaries of samples.

use alloc::vec::Vec;

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

    /// The samples, in ascending order.
    pub fn samples(&self) -> &[u64] {
        &self.sorted
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
        let sum: u128 = self.sorted.iter().map(|&sample| u128::from(sample)).sum();
        (sum / u128::from(self.count())) as u64
    }

    /// The least sample that is no less than this percentage of all, 1 to 100.
    pub fn percentile(&self, percent: usize) -> u64 {
        self.sorted[(self.sorted.len() * percent).div_ceil(100).max(1) - 1]
    }

    /// The standard deviation of what they are a sample of, rounded down; 0 of one.
    pub fn deviation(&self) -> u64 {
        let mean = self.mean();
        let square = |sample: &u64| u128::from(sample.abs_diff(mean)).pow(2);
        self.root(self.sorted.iter().map(square).sum())
    }

    /// What Interbench prints as standard deviation, rounded down: mean²/n is subtracted from the
    /// sum of squares, where n·mean² is right.
    pub fn deviation_of_interbench(&self) -> u64 {
        let squares: u128 = self.sorted.iter().map(|&sample| u128::from(sample).pow(2)).sum();
        self.root(squares - u128::from(self.mean()).pow(2) / u128::from(self.count()))
    }

    /// The root of a sum of squares by the degrees of freedom.
    fn root(&self, squares: u128) -> u64 {
        (squares / u128::from(self.count() - 1).max(1)).isqrt() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn by_hand() {
        assert_eq!(Summary::of(vec![]), None);
        let one = Summary::of(vec![7]).unwrap();
        assert_eq!([1, 50, 100].map(|percent| one.percentile(percent)), [7, 7, 7]);
        assert_eq!(one.deviation(), 0);
        let ten = Summary::of((1..=10).rev().collect()).unwrap();
        assert_eq!([50, 90, 91, 99].map(|percent| ten.percentile(percent)), [5, 9, 10, 10]);
        assert_eq!((ten.count(), ten.min(), ten.max(), ten.mean()), (10, 1, 10, 5));
        // Mean 30, sum of squared differences 1000, of squares 5500.
        let five = Summary::of(vec![10, 20, 30, 40, 50]).unwrap();
        assert_eq!(five.deviation(), 15);
        assert_eq!(five.deviation_of_interbench(), 36);
    }
}
