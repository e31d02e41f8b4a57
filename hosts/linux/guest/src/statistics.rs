//! Statistics that only this guest's programs show.

use anysched_programs::Summary;

/// The coefficient of variation (standard deviation by mean) in millionths; 0 if all are 0.
pub fn variation_millionths(summary: &Summary) -> u64 {
    let samples = summary.samples();
    let count = samples.len() as f64;
    let sum: u128 = samples.iter().map(|&sample| u128::from(sample)).sum();
    let mean = sum as f64 / count;
    if mean == 0.0 {
        return 0;
    }
    let squares: f64 = samples.iter().map(|&sample| (sample as f64 - mean).powi(2)).sum();
    ((squares / count).sqrt() / mean * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let of = |samples| variation_millionths(&Summary::of(samples).unwrap());
        assert_eq!(of(vec![7]), 0);
        // Mean 2, variance 2/3.
        assert_eq!(of(vec![1, 2, 3]), 408_248);
        assert_eq!(of(vec![0, 0]), 0);
    }
}
