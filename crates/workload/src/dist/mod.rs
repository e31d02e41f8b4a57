//! Distributions of durations.
//!
//! | text | distribution |
//! |---|---|
//! | `10ms` | always the same |
//! | `uniform(1ms, 5ms)` | uniform from `low` to `high` |
//! | `exp(10ms)` | exponential with this `mean` |
//! | `lognormal(10ms, 1.0)` | log-normal with this `mean`; `sigma` is the deviation of the logarithm |
//! | `lognormal(median=10ms, sigma=1.0)` | the same by its median |
//! | `pareto(1.5, 1ms, 10s)` | Pareto with exponent `alpha`, bounded to `low ..= high` |
//! | `hyperexp(0.9: 1ms, 0.1: 50ms)` | exponential with a mean chosen at random |
//! | `hyperexp(10ms, cv2=4)` | the same with two means, by `mean` and squared coefficient of variation |
//! | `empirical(file.csv)` | one of the values in a file, all equally likely |
//!
//! Arguments may be given by name: `exp(mean=10ms)`. Moments, density, CDF and quantiles are
//! those of the continuous distribution, in ns; samples are rounded to the nearest ns.

mod functions;
mod normal;
mod parse;
#[cfg(test)]
mod tests;

pub use functions::{Family, Formulas};

use crate::rng::Rng;
use anysched_core::Span;
use libm::{exp, expm1, log, pow, sqrt};
use std::fmt;
use std::sync::Arc;

/// A distribution of durations; see the [module documentation](self). Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Dist(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Constant(Span),
    Uniform {
        low: Span,
        high: Span,
    },
    Exp {
        mean: Span,
    },
    /// `mu` and `sigma` are those of the logarithm; `at` is the mean or the median.
    Lognormal {
        by: Centre,
        at: Span,
        sigma: f64,
        mu: f64,
    },
    /// `kept` is the part of the unbounded distribution that lies below `high`.
    Pareto {
        alpha: f64,
        low: Span,
        high: Span,
        kept: f64,
    },
    /// `by` is the mean and squared coefficient of variation, if it was given by those.
    Hyperexp {
        phases: Arc<[Phase]>,
        by: Option<(Span, f64)>,
    },
    Empirical(Arc<Empirical>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Centre {
    Mean,
    Median,
}

/// With this probability, an exponential with this mean (ns).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Phase {
    probability: f64,
    mean: f64,
}

#[derive(Debug, PartialEq)]
struct Empirical {
    /// As it was written.
    file: String,
    /// Ascending, in ns, at least one.
    values: Vec<u64>,
    mean: f64,
    variance: f64,
}

/// Why a distribution was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistError {
    /// The distribution as it was written.
    pub text: String,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for DistError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\": {}", self.text, self.why)
    }
}

impl std::error::Error for DistError {}

impl Dist {
    /// Always `span`.
    pub fn constant(span: Span) -> Dist {
        Dist(Kind::Constant(span))
    }

    /// The length that every sample has, if it is always the same.
    pub fn as_constant(&self) -> Option<Span> {
        match self.0 {
            Kind::Constant(span) => Some(span),
            _ => None,
        }
    }

    /// Draws one, rounded to the nearest ns; it may be 0.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> Span {
        let ns = match &self.0 {
            Kind::Constant(span) => return *span,
            Kind::Exp { mean } => exp_quantile(mean.0 as f64, rng.unit()),
            Kind::Hyperexp { phases, .. } => {
                let mut u = rng.unit();
                let wanted = |phase: &&Phase| {
                    u -= phase.probability;
                    u < 0.0
                };
                let phase = phases.iter().find(wanted).unwrap_or(&phases[phases.len() - 1]);
                exp_quantile(phase.mean, rng.unit())
            }
            _ => self.quantile(rng.unit()),
        };
        to_span(ns)
    }

    /// The mean in ns.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Kind::Constant(span) => span.0 as f64,
            Kind::Uniform { low, high } => (low.0 as f64 + high.0 as f64) / 2.0,
            Kind::Exp { mean } => mean.0 as f64,
            Kind::Lognormal { by: Centre::Mean, at, .. } => at.0 as f64,
            Kind::Lognormal { at, sigma, .. } => at.0 as f64 * exp(sigma * sigma / 2.0),
            Kind::Pareto { alpha, low, high, kept } => {
                pareto_moment(*alpha, low.0 as f64, high.0 as f64, *kept, 1.0)
            }
            Kind::Hyperexp { by: Some((mean, _)), .. } => mean.0 as f64,
            Kind::Hyperexp { phases, .. } => phases.iter().map(|p| p.probability * p.mean).sum(),
            Kind::Empirical(sample) => sample.mean,
        }
    }

    /// The variance in ns².
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        match &self.0 {
            Kind::Constant(_) => 0.0,
            Kind::Uniform { low, high } => {
                let width = high.0 as f64 - low.0 as f64;
                width * width / 12.0
            }
            Kind::Exp { .. } => mean * mean,
            Kind::Lognormal { sigma, .. } => expm1(sigma * sigma) * mean * mean,
            Kind::Pareto { alpha, low, high, kept } => {
                let square = pareto_moment(*alpha, low.0 as f64, high.0 as f64, *kept, 2.0);
                square - mean * mean
            }
            Kind::Hyperexp { by: Some((_, cv2)), .. } => cv2 * mean * mean,
            Kind::Hyperexp { phases, .. } => {
                let squares = phases.iter().map(|p| 2.0 * p.probability * p.mean * p.mean);
                squares.sum::<f64>() - mean * mean
            }
            Kind::Empirical(sample) => sample.variance,
        }
    }

    /// The probability of at most `x` ns.
    pub fn cdf(&self, x: f64) -> f64 {
        match &self.0 {
            Kind::Constant(span) => f64::from(u8::from(x >= span.0 as f64)),
            Kind::Uniform { low, high } => {
                let (low, high) = (low.0 as f64, high.0 as f64);
                match x {
                    _ if x < low => 0.0,
                    _ if x >= high => 1.0,
                    _ => (x - low) / (high - low),
                }
            }
            Kind::Exp { mean } => exp_cdf(mean.0 as f64, x),
            Kind::Lognormal { sigma, mu, .. } if x > 0.0 => normal::cdf((log(x) - mu) / sigma),
            Kind::Lognormal { .. } => 0.0,
            Kind::Pareto { alpha, low, high, kept } => {
                let x = x.clamp(low.0 as f64, high.0 as f64);
                // Not the negative, which would be -0 below `low`.
                (0.0 - expm1(alpha * log(low.0 as f64 / x))) / kept
            }
            Kind::Hyperexp { phases, .. } => {
                phases.iter().map(|p| p.probability * exp_cdf(p.mean, x)).sum()
            }
            Kind::Empirical(sample) => {
                let below = sample.values.partition_point(|&value| value as f64 <= x);
                below as f64 / sample.values.len() as f64
            }
        }
    }

    /// The length in ns that is not exceeded with probability `p`: the least x with
    /// `cdf(x) >= p`. `p` is clamped to 0 ..= 1; infinite for 1 where there is no upper bound.
    pub fn quantile(&self, p: f64) -> f64 {
        let p = p.clamp(0.0, 1.0);
        match &self.0 {
            Kind::Constant(span) => span.0 as f64,
            Kind::Uniform { low, high } => {
                let (low, high) = (low.0 as f64, high.0 as f64);
                low + p * (high - low)
            }
            Kind::Exp { mean } => exp_quantile(mean.0 as f64, p),
            Kind::Lognormal { sigma, mu, .. } => exp(mu + sigma * normal::quantile(p)),
            Kind::Pareto { alpha, low, high, kept } => {
                let x = low.0 as f64 * pow(1.0 - p * kept, -1.0 / alpha);
                x.clamp(low.0 as f64, high.0 as f64)
            }
            Kind::Hyperexp { phases, .. } => self.hyperexp_quantile(phases, p),
            Kind::Empirical(sample) => {
                let n = sample.values.len();
                let mut k = (libm::ceil(p * n as f64) as usize).clamp(1, n);
                // `p * n` may have been rounded up over a whole number.
                if k > 1 && (k - 1) as f64 / n as f64 >= p {
                    k -= 1;
                }
                sample.values[k - 1] as f64
            }
        }
    }

    /// The probability density at `x` ns, per ns; `None` where single values have a probability
    /// of their own (constant and empirical ones).
    pub fn density(&self, x: f64) -> Option<f64> {
        let exponential = |mean: f64| if x < 0.0 { 0.0 } else { exp(-x / mean) / mean };
        Some(match &self.0 {
            Kind::Constant(_) | Kind::Empirical(_) => return None,
            Kind::Uniform { low, high } if low == high => return None,
            Kind::Uniform { low, high } => {
                let (low, high) = (low.0 as f64, high.0 as f64);
                if (low..=high).contains(&x) { 1.0 / (high - low) } else { 0.0 }
            }
            Kind::Exp { mean } => exponential(mean.0 as f64),
            Kind::Lognormal { sigma, mu, .. } if x > 0.0 => {
                normal::density((log(x) - mu) / sigma) / (sigma * x)
            }
            Kind::Lognormal { .. } => 0.0,
            Kind::Pareto { alpha, low, high, kept } => {
                let (low, high) = (low.0 as f64, high.0 as f64);
                let inside = (low..=high).contains(&x);
                if inside { alpha / x * pow(low / x, *alpha) / kept } else { 0.0 }
            }
            Kind::Hyperexp { phases, .. } => {
                phases.iter().map(|p| p.probability * exponential(p.mean)).sum()
            }
        })
    }

    /// Between the quantiles of the shortest and the longest phase, by halving.
    fn hyperexp_quantile(&self, phases: &[Phase], p: f64) -> f64 {
        let bounds = phases.iter().map(|phase| exp_quantile(phase.mean, p));
        let (mut low, mut high) = bounds
            .fold((f64::INFINITY, 0.0), |(low, high), x| (f64::min(low, x), f64::max(high, x)));
        if high == f64::INFINITY {
            return high;
        }
        loop {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                return high;
            }
            if self.cdf(middle) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
}

/// The exponential distribution with this mean, by inverse transform.
#[inline]
pub(crate) fn exp_quantile(mean: f64, p: f64) -> f64 {
    -mean * log(1.0 - p)
}

fn exp_cdf(mean: f64, x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { -expm1(-x / mean) }
}

/// The `k`-th moment: α low^k / kept · ∫ r^(k−α−1) dr from 1 to high / low.
fn pareto_moment(alpha: f64, low: f64, high: f64, kept: f64, k: f64) -> f64 {
    let (power, range) = (k - alpha, log(high / low));
    // Near α = k both sides of the fraction vanish; `expm1` keeps its digits.
    let integral = if power == 0.0 { range } else { expm1(power * range) / power };
    alpha * pow(low, k) / kept * integral
}

/// Rounded to the nearest ns, saturating at both ends.
#[inline]
pub(crate) fn to_span(ns: f64) -> Span {
    Span((ns + 0.5) as u64)
}

/// The balanced-means hyperexponential: both phases contribute half of the mean.
fn balanced(mean: f64, cv2: f64) -> [Phase; 2] {
    let spread = sqrt((cv2 - 1.0) / (cv2 + 1.0));
    // (1 − spread) / 2 without the cancellation.
    let rare = 1.0 / ((cv2 + 1.0) * (1.0 + spread));
    let phase = |probability: f64| Phase { probability, mean: mean / (2.0 * probability) };
    [phase(1.0 - rare), phase(rare)]
}

impl fmt::Display for Dist {
    /// The form that [`Dist::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Constant(span) => write!(f, "{span}"),
            Kind::Uniform { low, high } => write!(f, "uniform({low}, {high})"),
            Kind::Exp { mean } => write!(f, "exp({mean})"),
            Kind::Lognormal { by: Centre::Mean, at, sigma, .. } => {
                write!(f, "lognormal(mean={at}, sigma={sigma})")
            }
            Kind::Lognormal { at, sigma, .. } => {
                write!(f, "lognormal(median={at}, sigma={sigma})")
            }
            Kind::Pareto { alpha, low, high, .. } => write!(f, "pareto({alpha}, {low}, {high})"),
            Kind::Hyperexp { by: Some((mean, cv2)), .. } => {
                write!(f, "hyperexp({mean}, cv2={cv2})")
            }
            Kind::Hyperexp { phases, .. } => {
                f.write_str("hyperexp(")?;
                for (n, phase) in phases.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    // Phases that were written one by one have whole numbers of ns.
                    let mean = Span(phase.mean as u64);
                    write!(f, "{comma}{}: {mean}", phase.probability)?;
                }
                f.write_str(")")
            }
            Kind::Empirical(sample) => write!(f, "empirical({})", sample.file),
        }
    }
}
