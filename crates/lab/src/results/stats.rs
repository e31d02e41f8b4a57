//! Means over seeds and how sure they are.

/// The mean of some numbers and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// How many numbers there were; at least 1.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation with n − 1; 0 for a single number.
    pub sd: f64,
    /// The standard error of the mean; `None` for a single number.
    pub standard_error: Option<f64>,
    /// Half the width of the 95 % confidence interval by Student's t; `None` for a single number.
    pub ci95: Option<f64>,
}

impl Estimate {
    /// The estimate from independent `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        // Exact when all are the same, which a sum of rounded numbers is not.
        if values.iter().all(|value| *value == values[0]) {
            let certain = (n > 1).then_some(0.0);
            let mean = values[0];
            return Some(Estimate { n, mean, sd: 0.0, standard_error: certain, ci95: certain });
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let sd = libm::sqrt(squares / (n - 1) as f64);
        let error = sd / libm::sqrt(n as f64);
        let ci95 = Some(student_t_975(n - 1) * error);
        Some(Estimate { n, mean, sd, standard_error: Some(error), ci95 })
    }

    /// The smallest number of values whose interval, with this mean and deviation, leaves out 0;
    /// `None` if the mean is 0 or a billion values would not do.
    pub fn needed(&self) -> Option<u64> {
        let excludes = |n: u64| {
            student_t_975(n as usize - 1) * self.sd / libm::sqrt(n as f64) < libm::fabs(self.mean)
        };
        let (mut low, mut high) = (2, 1_000_000_000);
        if !excludes(high) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if excludes(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom, at least 1.
pub fn student_t_975(freedom: usize) -> f64 {
    // Where the expansion below is off by more than 1e-6.
    const TABLE: [f64; 16] = [
        12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157,
        2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905,
    ];
    if let Some(&t) = TABLE.get(freedom.max(1) - 1) {
        return t;
    }
    // Cornish and Fisher's expansion in 1 / freedom (Abramowitz and Stegun 26.7.5).
    let z = 1.959963984540054f64;
    let v = freedom as f64;
    let z2 = z * z;
    let g1 = (z2 + 1.0) * z / 4.0;
    let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) * z / 96.0;
    let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) * z / 384.0;
    let g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) * z / 92160.0;
    z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v
}

/// The nearest-rank percentile of `sorted`, which is not empty; `0 < percent <= 100`.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = libm::ceil(percent / 100.0 * sorted.len() as f64) as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From printed tables of the t distribution.
    #[test]
    fn t_is_that_of_the_tables() {
        for (freedom, t) in [
            (1, 12.706205),
            (9, 2.262157),
            (16, 2.119905),
            (17, 2.109816),
            (19, 2.093024),
            (29, 2.045230),
            (60, 2.000298),
            (120, 1.979930),
            (1_000_000, 1.959966),
        ] {
            assert!((student_t_975(freedom) - t).abs() < 1.5e-6, "{freedom}");
        }
    }

    #[test]
    fn an_estimate_by_hand() {
        // Deviations −3, −1, 4 from 5: squares 26, sd √13, error √(13 / 3).
        let estimate = Estimate::of(&[2.0, 4.0, 9.0]).unwrap();
        assert_eq!((estimate.n, estimate.mean), (3, 5.0));
        assert!((estimate.sd - 3.605551).abs() < 1e-6);
        assert!((estimate.standard_error.unwrap() - 2.081666).abs() < 1e-6);
        assert!((estimate.ci95.unwrap() - 4.302653 * 2.081666).abs() < 1e-5);
    }

    #[test]
    fn how_many_values_it_takes_to_tell_a_mean_from_0() {
        // Mean 1, sd 2: t 2.10 · 2 / √n falls below 1 at n = 18 (t for 17: 2.110, 0.9946).
        let estimate = |mean, sd| Estimate { n: 4, mean, sd, standard_error: None, ci95: None };
        assert_eq!(estimate(1.0, 2.0).needed(), Some(18));
        assert_eq!(estimate(-1.0, 2.0).needed(), Some(18));
        // Far apart: t for 1 degree 12.706 · 0.1 / √2 = 0.898.
        assert_eq!(estimate(1.0, 0.1).needed(), Some(2));
        assert_eq!(estimate(0.0, 1.0).needed(), None);
    }

    #[test]
    fn one_number_has_no_interval_and_equal_ones_are_certain() {
        let one = Estimate::of(&[0.1]).unwrap();
        assert_eq!((one.mean, one.sd, one.standard_error, one.ci95), (0.1, 0.0, None, None));
        let same = Estimate::of(&[0.1; 7]).unwrap();
        assert_eq!((same.mean, same.sd, same.ci95), (0.1, 0.0, Some(0.0)));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!([50.0, 75.0, 76.0, 99.0].map(|p| percentile(&sorted, p)), [2.0, 3.0, 4.0, 4.0]);
    }
}
