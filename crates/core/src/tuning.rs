//! How parameters of a policy can be searched, and which policies a search is measured against.

use alloc::string::String;
use alloc::vec::Vec;

use crate::exp2;
use crate::time::Span;

/// Names of parameters with their values as text.
pub type Values = Vec<(&'static str, String)>;

/// Parameters of a policy that can be searched.
#[derive(Debug)]
pub struct Space {
    /// What distinguishes it from the policy's other spaces in results; may be empty.
    pub variant: &'static str,
    /// Whether it is what policies without knowledge of CPU times have to beat. One space of all
    /// policies is.
    pub is_rival: bool,
    /// A parameter set is a position on each of them.
    pub axes: &'static [Axis],
    /// The parameter set at a position, which has a number for each axis, for tasks of a mean CPU
    /// time.
    pub values: fn(&[i32], Span) -> Values,
}

/// Whole numbers that stand for the values of a parameter.
#[derive(Debug)]
pub struct Axis {
    /// The least position.
    pub low: i32,
    /// The largest one.
    pub high: i32,
    /// The positions of the grid, the simplest first: fewer levels, longer slices.
    pub coarse: &'static [i32],
    /// How far a move goes when the best of the grid is refined, at first and then; 0: not at all.
    pub steps: [i32; 2],
}

/// What a policy stands for beside tuned ones, and with which parameters.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    /// What it stands for.
    pub role: Role,
    /// What distinguishes it in results from the policy itself; may be empty.
    pub variant: &'static str,
    /// Its parameters for tasks of a mean CPU time.
    pub values: fn(Span) -> Values,
}

impl Baseline {
    /// With the defaults of all parameters.
    pub const fn new(role: Role) -> Baseline {
        Baseline { role, variant: "", values: |_| Vec::new() }
    }
}

/// What a baseline stands for. Results show baselines in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The least mean turnaround on one CPU; results are compared with it.
    Optimum,
    /// The least mean turnaround without preemption.
    NonPreemptive,
    /// No knowledge and no preemption.
    Blind,
    /// Nearly processor sharing.
    Sharing,
    /// A policy that can be tuned, with the parameters of its source.
    Untuned,
}

/// `mean` times 2 to the power of `quarters` / 4, to [`three_digits`] and at least 1 ns.
pub fn quarter_octaves(mean: Span, quarters: i32) -> Span {
    let mantissa = exp2::power((quarters.rem_euclid(4) as u64) << 62);
    let product = u128::from(mean.0.max(1)) * u128::from(mantissa);
    // The mantissa has 63 fractional bits.
    let ns = match u32::try_from(63 - quarters.div_euclid(4)) {
        Ok(right) => product.checked_shr(right).unwrap_or(0),
        Err(_) => u128::MAX,
    };
    three_digits(Span(u64::try_from(ns).unwrap_or(u64::MAX)))
}

/// `span` to three digits, so that it can be written down; at least 1 ns.
pub fn three_digits(span: Span) -> Span {
    let ns = u128::from(span.0.max(1));
    let mut unit = 1;
    while ns / unit >= 1000 {
        unit *= 10;
    }
    Span(u64::try_from((ns + unit / 2) / unit * unit).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_rounded() {
        for (ns, rounded) in [
            (0, 1),
            (999, 999),
            (1_234_567, 1_230_000),
            (1_235_000, 1_240_000),
            (9_996, 10_000),
            (u64::MAX, 18_400_000_000_000_000_000),
        ] {
            assert_eq!(three_digits(Span(ns)), Span(rounded), "{ns}");
        }
    }

    #[test]
    fn octaves_double() {
        let mean = Span::from_ms(10);
        for (quarters, ns) in [
            (0, 10_000_000),
            (4, 20_000_000),
            (-4, 5_000_000),
            (-8, 2_500_000),
            // √2, and its root: 1.414 and 1.189.
            (2, 14_100_000),
            (1, 11_900_000),
            (-1, 8_410_000),
            (-400, 1),
            (40 * 4, 11_000_000_000_000_000_000),
            // Spans end at 2^64 ns.
            (41 * 4, 18_400_000_000_000_000_000),
            (400, 18_400_000_000_000_000_000),
        ] {
            assert_eq!(quarter_octaves(mean, quarters), Span(ns), "{quarters}");
        }
        assert_eq!(quarter_octaves(Span::ZERO, 0), Span(1));
    }
}
