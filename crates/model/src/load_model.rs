//! From a distribution of run times to slices.
//!
//! A task that has used up a slice of Q1 goes to Q2, and after a second one to Q3, where it runs
//! to its end. Of the tasks, F(q1) are done after Q1 and F(q1 + q2) after Q2.

use anysched_core::Span;
use anysched_workload::dist::{Dist, Family};

/// Why a slice is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All tasks are as long: they end with the slice.
    Constant,
    /// The mean of an exponential: 63.2 % of the tasks are done after one slice and 86.5 % after
    /// two, whatever the mean. The rule of the M-RSF paper.
    Mean,
    /// The middle of a uniform range, (a + b) / 2: half of the tasks are done after one slice and
    /// all after two. The rule of the M-RSF paper.
    MiddleOfRange,
    /// The time within which 1 − 1/e = 63.2 % of the tasks are done. For an exponential it is the
    /// mean. It keeps what the mean is chosen for where the mean does not: with a heavy tail a few
    /// long tasks decide the mean, so that nearly all tasks would end in Q1 and the queues would
    /// sort nothing.
    Share,
}

impl Rule {
    /// The rule in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Rule::Constant => "the length that all tasks have",
            Rule::Mean => "the mean, for an exponential",
            Rule::MiddleOfRange => "(a + b) / 2, for a uniform",
            Rule::Share => {
                "63.2 % of the tasks are done within it, as with the mean of an exponential"
            }
        }
    }
}

/// A slice for Q1 and Q2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// How long; at least 1 ns.
    pub length: Span,
    /// Why.
    pub rule: Rule,
}

/// The slice that the load model recommends for tasks with these run times.
pub fn recommended_slice(service: &Dist) -> Slice {
    let rule = match service.family() {
        Family::Constant => Rule::Constant,
        Family::Exponential => Rule::Mean,
        Family::Uniform => Rule::MiddleOfRange,
        _ => Rule::Share,
    };
    let length = match rule {
        Rule::Share => service.quantile(-libm::expm1(-1.0)),
        _ => service.mean(),
    };
    Slice { length: Span((length + 0.5) as u64).max(Span(1)), rule }
}

/// What happens in each queue, given slices for Q1 and Q2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The share of the tasks that are done after Q1: F(q1).
    pub done_after_q1: f64,
    /// The share of the tasks that are done after Q2: F(q1 + q2).
    pub done_after_q2: f64,
    /// The shares of the CPU time that Q1, Q2 and Q3 give; they sum to 1.
    pub cpu_time: [f64; 3],
}

/// The [`Shares`] for slices `q1` and `q2`.
pub fn shares(service: &Dist, q1: Span, q2: Span) -> Shares {
    let (first, second) = (q1.0 as f64, q1.0 as f64 + q2.0 as f64);
    let (to_first, to_second) = (service.limited_mean(first), service.limited_mean(second));
    // Tasks of no length use nothing anywhere; what there is then counts as Q1's.
    let mean = service.mean();
    let part = |time: f64| if mean > 0.0 { time / mean } else { 0.0 };
    let after = [part(to_second - to_first), part(mean - to_second)];
    Shares {
        done_after_q1: service.cdf(first),
        done_after_q2: service.cdf(second),
        cpu_time: [1.0 - after[0] - after[1], after[0], after[1]],
    }
}

/// A range of a [`histogram`]; it includes its upper end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// From here, ns.
    pub from: f64,
    /// To here, ns; infinite in the last one.
    pub to: f64,
    /// The share of the tasks that is in between.
    pub share: f64,
}

/// The ends of `count` ranges that show where the run times are, the last one open.
///
/// The ranges are equally wide up to the 98th percentile; if that is more than ten times the
/// median, a linear scale would put nearly everything into one of them, and they widen by equal
/// factors from the 2nd percentile on.
pub fn bounds(service: &Dist, count: usize) -> Vec<f64> {
    let (low, middle, high) =
        (service.quantile(0.02), service.quantile(0.5), service.quantile(0.98));
    let steps = count.max(2) - 1;
    let bound = |step: usize| {
        let part = step as f64 / steps as f64;
        if high > 10.0 * middle && low > 0.0 {
            low * libm::pow(high / low, part)
        } else {
            high * part
        }
    };
    let mut bounds: Vec<f64> = (0..=steps).map(bound).collect();
    // The first range begins at 0, which is where the linear scale begins anyway.
    bounds[0] = 0.0;
    bounds.push(f64::INFINITY);
    bounds
}

/// How many of the tasks are between these ends.
pub fn histogram(service: &Dist, bounds: &[f64]) -> Vec<Bin> {
    let bin = |ends: &[f64]| {
        let below = |x: f64| if x > 0.0 { service.cdf(x) } else { 0.0 };
        Bin { from: ends[0], to: ends[1], share: below(ends[1]) - below(ends[0]) }
    };
    bounds.windows(2).map(bin).collect()
}
