//! From a distribution of run times to time slices.
//!
//! A task that uses up its slice in Q1 goes to Q2, and after its slice there to Q3, where it runs
//! to completion. A share F(q1) of the tasks finishes in Q1, and F(q1 + q2) by the end of Q2.

use anysched_core::Span;
use anysched_workload::dist::{Dist, Family};

/// Why a slice is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All tasks have the same length: they end with the slice.
    Constant,
    /// The mean of an exponential: 63.2 % of the tasks finish within one slice and 86.5 % within
    /// two, whatever the mean. The rule of the M-RSF paper.
    Mean,
    /// The middle of a uniform range, (a + b) / 2: half of the tasks finish within one slice and
    /// all within two. The rule of the M-RSF paper.
    MiddleOfRange,
    /// The time within which 1 − 1/e = 63.2 % of the tasks finish. For an exponential this is the
    /// mean. It preserves the purpose of the mean where the mean itself fails: with a heavy tail a
    /// few long tasks dominate the mean, so that nearly all tasks would end in Q1 and the queues
    /// would sort nothing.
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
    /// The rule behind it.
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
    /// The share of tasks that finish in Q1: F(q1).
    pub done_after_q1: f64,
    /// The share of tasks that finish in Q1 or Q2: F(q1 + q2).
    pub done_after_q2: f64,
    /// The shares of CPU time that tasks use in Q1, Q2 and Q3; they sum to 1.
    pub cpu_time: [f64; 3],
}

/// The [`Shares`] for slices `q1` and `q2`.
pub fn shares(service: &Dist, q1: Span, q2: Span) -> Shares {
    let (first, second) = (q1.0 as f64, q1.0 as f64 + q2.0 as f64);
    let (to_first, to_second) = (service.limited_mean(first), service.limited_mean(second));
    // Tasks of zero length use no CPU time anywhere; everything then counts as Q1's.
    let mean = service.mean();
    let part = |time: f64| if mean > 0.0 { time / mean } else { 0.0 };
    let after = [part(to_second - to_first), part(mean - to_second)];
    Shares {
        done_after_q1: service.cdf(first),
        done_after_q2: service.cdf(second),
        cpu_time: [1.0 - after[0] - after[1], after[0], after[1]],
    }
}

/// A range of a [`histogram`], including its upper end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Lower end, ns.
    pub from: f64,
    /// Upper end, ns; infinite in the last range.
    pub to: f64,
    /// The share of the tasks in this range.
    pub share: f64,
}

/// The ends of `count` ranges that cover the run times, the last one open.
///
/// The ranges are equally wide up to the 98th percentile. If that is more than ten times the
/// median, a linear scale would put nearly everything into one range; then they widen geometrically
/// from the 2nd percentile on.
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
    // The first range begins at 0, as the linear scale does anyway.
    bounds[0] = 0.0;
    bounds.push(f64::INFINITY);
    bounds
}

/// The share of the tasks in each range.
pub fn histogram(service: &Dist, bounds: &[f64]) -> Vec<Bin> {
    let bin = |ends: &[f64]| {
        let below = |x: f64| if x > 0.0 { service.cdf(x) } else { 0.0 };
        Bin { from: ends[0], to: ends[1], share: below(ends[1]) - below(ends[0]) }
    };
    bounds.windows(2).map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn dist(text: &str) -> Dist {
        Dist::parse(text, Path::new("")).unwrap()
    }

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found}, not {wanted}");
    }

    #[test]
    fn slices_of_the_paper() {
        let slice = |text| recommended_slice(&dist(text));
        let expected = Slice { length: Span::from_ms(10), rule: Rule::Mean };
        assert_eq!(slice("exp(10ms)"), expected);
        let expected = Slice { length: Span::from_ms(5), rule: Rule::MiddleOfRange };
        assert_eq!(slice("uniform(2ms, 8ms)"), expected);
        let expected = Slice { length: Span::from_ms(2), rule: Rule::Constant };
        assert_eq!(slice("2ms"), expected);
        assert_eq!(slice("0").length, Span(1));
    }

    /// A single phase is an exponential, for which both rules agree.
    #[test]
    fn the_rule_by_share_continues_that_of_the_mean() {
        let one = recommended_slice(&dist("hyperexp(1: 10ms)"));
        assert_eq!(one, Slice { length: Span::from_ms(10), rule: Rule::Share });
        for text in ["lognormal(10ms, 1.5)", "pareto(1.1, 100us, 10s)", "hyperexp(10ms, cv2=9)"] {
            let service = dist(text);
            let slice = recommended_slice(&service).length;
            let done = shares(&service, slice, slice).done_after_q1;
            assert!((done - 0.632_121).abs() < 1e-5, "{text}: {done}");
        }
    }

    #[test]
    fn shares_of_an_exponential() {
        let slice = Span::from_ms(10);
        let shares = shares(&dist("exp(10ms)"), slice, slice);
        let p = (-1.0f64).exp();
        close(shares.done_after_q1, 1.0 - p);
        close(shares.done_after_q2, 1.0 - p * p);
        for (found, wanted) in shares.cpu_time.into_iter().zip([1.0 - p, p - p * p, p * p]) {
            close(found, wanted);
        }
    }

    #[test]
    fn endless_slices_leave_nothing_for_the_others() {
        let shares = shares(&dist("exp(10ms)"), Span::MAX, Span::MAX);
        assert_eq!((shares.done_after_q1, shares.done_after_q2), (1.0, 1.0));
        assert_eq!(shares.cpu_time, [1.0, 0.0, 0.0]);
    }

    #[test]
    fn histograms_have_all_tasks_once() {
        for text in ["exp(10ms)", "uniform(2ms, 8ms)", "pareto(1.1, 1ms, 10s)", "7ms"] {
            let service = dist(text);
            let bins = histogram(&service, &bounds(&service, 20));
            assert_eq!(bins.len(), 20);
            close(bins.iter().map(|bin| bin.share).sum(), 1.0);
            assert_eq!((bins[0].from, bins[19].to), (0.0, f64::INFINITY));
            assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from), "{text}");
        }
        let heavy = bounds(&dist("pareto(1.1, 1ms, 10s)"), 20);
        close(heavy[3] / heavy[2], heavy[19] / heavy[18]);
        let light = bounds(&dist("exp(10ms)"), 20);
        assert!((light[3] - light[2] - light[1]).abs() < 1e-6);
    }
}
