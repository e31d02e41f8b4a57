//! What a load model asks of a distribution beyond density, CDF and quantiles.

use super::{Dist, Empirical, Kind, normal};
use anysched_core::Span;
use libm::{exp, expm1, log, log1p};
use std::f64::consts::TAU;
use std::fmt;

/// The kind of a distribution, whatever its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Constant,
    Uniform,
    Exponential,
    Lognormal,
    Pareto,
    Hyperexponential,
    Empirical,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Constant => "constant",
            Family::Uniform => "uniform",
            Family::Exponential => "exponential",
            Family::Lognormal => "lognormal",
            Family::Pareto => "Pareto",
            Family::Hyperexponential => "hyperexponential",
            Family::Empirical => "empirical",
        })
    }
}

/// The functions of a distribution as formulas with its parameters, in `t` (a time) and `u` (a
/// probability).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formulas {
    /// f(t), per unit of time.
    pub density: String,
    /// F(t), the probability of at most `t`.
    pub cdf: String,
    /// The `t` at which F(t) = u.
    pub inverse: String,
}

impl Dist {
    /// Its kind.
    pub fn family(&self) -> Family {
        match &self.0 {
            Kind::Constant(_) => Family::Constant,
            Kind::Uniform { low, high } if low == high => Family::Constant,
            Kind::Uniform { .. } => Family::Uniform,
            Kind::Exp { .. } => Family::Exponential,
            Kind::Lognormal { .. } => Family::Lognormal,
            Kind::Pareto { .. } => Family::Pareto,
            Kind::Hyperexp { .. } => Family::Hyperexponential,
            Kind::Empirical(_) => Family::Empirical,
        }
    }

    /// One of these times, all equally likely; `name` stands for them in text. `None` if there are
    /// none.
    pub fn of_values(values: Vec<Span>, name: &str) -> Option<Dist> {
        let values = values.into_iter().map(|value| value.0).collect();
        Empirical::new(name.to_string(), values).map(|sample| Dist(Kind::Empirical(sample.into())))
    }

    /// The logarithm of [`Dist::density`], also where the density itself is too small for a
    /// float; −∞ where it is 0.
    pub fn log_density(&self, x: f64) -> Option<f64> {
        let exponential = |mean: f64| -x / mean - log(mean);
        Some(match &self.0 {
            Kind::Exp { mean } if x >= 0.0 => exponential(mean.0 as f64),
            Kind::Hyperexp { phases, .. } if x >= 0.0 => {
                // The greatest is factored out of the sum, so that one term of it is 1.
                let logs = phases.iter().map(|p| log(p.probability) + exponential(p.mean));
                let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
                most + log(logs.map(|term| exp(term - most)).sum())
            }
            Kind::Lognormal { sigma, mu, .. } if x > 0.0 => {
                let z = (log(x) - mu) / sigma;
                -z * z / 2.0 - log(sigma * x) - log(TAU) / 2.0
            }
            Kind::Pareto { alpha, low, high, kept } => {
                let (low, high) = (low.0 as f64, high.0 as f64);
                if !(low..=high).contains(&x) {
                    return Some(f64::NEG_INFINITY);
                }
                log(alpha / x) + alpha * log(low / x) - log(*kept)
            }
            _ => log(self.density(x)?),
        })
    }

    /// The mean of the lengths capped at `x` ns, E\[min(S, x)\]: what a task gets, on average, if
    /// it may use at most `x`. It is the integral of 1 − F from 0 to `x`.
    pub fn limited_mean(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        if x == f64::INFINITY {
            return self.mean();
        }
        match &self.0 {
            Kind::Constant(span) => f64::min(span.0 as f64, x),
            Kind::Uniform { low, high } => {
                let (low, high) = (low.0 as f64, high.0 as f64);
                match x {
                    _ if x <= low => x,
                    _ if x >= high => self.mean(),
                    _ => x - (x - low) * (x - low) / (2.0 * (high - low)),
                }
            }
            Kind::Exp { mean } => limited_exp(mean.0 as f64, x),
            Kind::Lognormal { sigma, mu, .. } => {
                let z = (log(x) - mu) / sigma;
                self.mean() * normal::cdf(z - sigma) + x * normal::cdf(-z)
            }
            Kind::Pareto { alpha, low, high, kept } => {
                let (low, x) = (low.0 as f64, f64::min(x, high.0 as f64));
                if x <= low {
                    return x;
                }
                let (power, range) = (1.0 - alpha, log1p((x - low) / low));
                let unbounded = if power == 0.0 { range } else { expm1(power * range) / power };
                low + (low * unbounded - (1.0 - kept) * (x - low)) / kept
            }
            Kind::Hyperexp { phases, .. } => {
                phases.iter().map(|p| p.probability * limited_exp(p.mean, x)).sum()
            }
            Kind::Empirical(sample) => {
                let cut = sample.values.iter().map(|&value| f64::min(value as f64, x));
                cut.sum::<f64>() / sample.values.len() as f64
            }
        }
    }

    /// The distribution's functions, for human readers.
    pub fn formulas(&self) -> Formulas {
        let (density, cdf, inverse) = match &self.0 {
            Kind::Constant(span) => point(*span),
            Kind::Uniform { low, high } if low == high => point(*low),
            Kind::Uniform { low, high } => {
                let width = Span(high.0 - low.0);
                (
                    format!("1 / {width} for {low} ≤ t ≤ {high}"),
                    format!("(t − {low}) / {width}"),
                    format!("{low} + u · {width}"),
                )
            }
            Kind::Exp { mean } => (
                format!("e^(−t / {mean}) / {mean}"),
                format!("1 − e^(−t / {mean})"),
                format!("−{mean} · ln(1 − u)"),
            ),
            Kind::Lognormal { sigma, mu, .. } => {
                let median = super::to_span(exp(*mu));
                (
                    format!("φ(ln(t / {median}) / {sigma}) / ({sigma} · t)"),
                    format!("Φ(ln(t / {median}) / {sigma})"),
                    format!("{median} · e^({sigma} · Φ⁻¹(u))"),
                )
            }
            Kind::Pareto { alpha, low, high, .. } => (
                format!("{alpha} / (K · t) · ({low} / t)^{alpha} for {low} ≤ t ≤ {high}"),
                format!("(1 − ({low} / t)^{alpha}) / K, K = 1 − ({low} / {high})^{alpha}"),
                format!("{low} · (1 − K · u)^(−1 / {alpha})"),
            ),
            Kind::Hyperexp { .. } => (
                "Σ p / m · e^(−t / m) over the phases, each p: m".to_string(),
                "1 − Σ p · e^(−t / m)".to_string(),
                "no closed form; found by halving".to_string(),
            ),
            Kind::Empirical(sample) => (
                "none: single values have a probability of their own".to_string(),
                format!("how many of the {} values are at most t", sample.values.len()),
                "the least value v with F(v) ≥ u".to_string(),
            ),
        };
        Formulas { density, cdf, inverse }
    }
}

fn point(span: Span) -> (String, String, String) {
    (
        "none: every task is as long".to_string(),
        format!("0 below {span}, then 1"),
        format!("{span}"),
    )
}

fn limited_exp(mean: f64, x: f64) -> f64 {
    -mean * expm1(-x / mean)
}
