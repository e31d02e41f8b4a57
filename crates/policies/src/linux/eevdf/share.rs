//! Virtual time of a task of some weight, rounded as Linux rounds it.

use anysched_core::canonical;
use anysched_core::params::NICE_0_WEIGHT;
use anysched_core::time::Span;

/// What a weight makes of CPU time.
///
/// Linux multiplies by a 32-bit reciprocal of the weight instead of dividing (`calc_delta_fair`),
/// which is at most 2^−22 off, and rounds down at each charge, which takes up to 1 virtual ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// 1024 is that of nice 0; at least 1.
    pub weight: u32,
    factor: u32,
    shift: u8,
}

impl Share {
    /// The share of `weight`, of which 0 counts as 1; `floor` rounds its reciprocal down instead
    /// of to nearest.
    pub fn new(weight: u32, floor: bool) -> Share {
        let weight = weight.max(1);
        let wide = u64::from(weight);
        let reciprocal = match floor {
            true => u64::from(u32::MAX) / wide,
            false => (((1 << 32) + wide / 2) / wide).min(u64::from(u32::MAX)),
        };
        let factor = reciprocal * u64::from(NICE_0_WEIGHT);
        let excess = 32u32.saturating_sub(factor.leading_zeros());
        Share { weight, factor: (factor >> excess) as u32, shift: (32 - excess) as u8 }
    }

    /// `real` ns of CPU time in virtual ns, rounded down; saturates far beyond any real time.
    #[inline]
    pub fn to_virtual(self, real: Span) -> i64 {
        if self.weight == NICE_0_WEIGHT {
            return real.0 as i64;
        }
        match real.0.checked_mul(u64::from(self.factor)) {
            Some(product) => (product >> self.shift) as i64,
            None => ((u128::from(real.0) * u128::from(self.factor)) >> self.shift) as i64,
        }
    }

    /// The least CPU time that is at least `virtually` virtual ns when charged at once.
    #[inline]
    pub fn to_real(self, virtually: i64) -> Span {
        let goal = virtually.max(0).unsigned_abs();
        if self.weight == NICE_0_WEIGHT {
            return Span(goal);
        }
        if goal >> 32 == 0 {
            return Span((goal << self.shift).div_ceil(u64::from(self.factor)));
        }
        let wide = (u128::from(goal) << self.shift).div_ceil(u128::from(self.factor));
        Span(u64::try_from(wide).unwrap_or(u64::MAX))
    }

    /// `distance` virtual ns at this weight, as they are at that of `to`; rounded toward 0.
    #[inline]
    pub fn convert(self, distance: i64, to: Share) -> i64 {
        match distance.checked_mul(i64::from(self.weight)) {
            Some(product) => product / i64::from(to.weight),
            None => (i128::from(distance) * i128::from(self.weight) / i128::from(to.weight)) as i64,
        }
    }
}

canonical!(Share { weight, factor: fixed, shift: fixed });
