//! Exponentially weighted moving averages.

use crate::time::Span;

/// An exponentially weighted moving average in integers: the latest sample has the weight
/// `num / 2^log2_den`, at most 1.
#[derive(Clone, Copy, Debug)]
pub struct Ewma {
    /// Numerator of the weight, at most the denominator.
    pub num: u32,
    /// Binary logarithm of the denominator, at most 31.
    pub log2_den: u32,
}

impl Ewma {
    /// The weight in ArceOS, 1/16.
    pub const ARCEOS: Ewma = Ewma { num: 1, log2_den: 4 };

    /// The average after `sample`. It lies between the two: rounding towards −∞ takes a step down
    /// no further than the sample, and a step up less far.
    #[inline]
    pub fn after(self, average: Span, sample: Span) -> Span {
        let step = (i128::from(sample.0) - i128::from(average.0)) * i128::from(self.num);
        Span((i128::from(average.0) + (step >> self.log2_den)) as u64)
    }
}
