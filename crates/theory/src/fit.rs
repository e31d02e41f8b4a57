//! Which distribution measured run times follow.
//!
//! Each family is fitted by maximum likelihood and written as text that experiments accept, with
//! numbers rounded to six digits; likelihood and distance are computed for the rounded parameters.
//!
//! | family | how | parameters |
//! |---|---|---|
//! | exponential | the mean | 1 |
//! | uniform | the least and the greatest time | 2 |
//! | lognormal | mean and deviation of the logarithms | 2 |
//! | Pareto | bounded by the least and the greatest time; the exponent solves the equation of Aban, Meerschaert and Panorska, "Parameter estimation for the truncated Pareto distribution", JASA 101 (2006) | 3 |
//! | hyperexponential | two phases, by expectation and maximisation from three starts, until a step gains less than 10^−6 in log-likelihood | 3 |
//!
//! By likelihood alone the hyperexponential would always beat the exponential, which is a special
//! case of it, so parameters have to cost something. The best is the one with the least BIC, ln(n)
//! · parameters − 2 · log-likelihood, which finds the right family with certainty as n grows. AIC,
//! with 2 · parameters, is reported too; it takes exponential times for hyperexponential ones in 4
//! % of cases, whether there are a thousand times or ten thousand.

use crate::measured::Sample;
use anysched_core::Span;
use anysched_workload::dist::{Dist, Family};
use libm::{exp, expm1, log, sqrt};
use std::fmt;
use std::path::Path;

/// A family with the parameters that fit best.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub dist: Dist,
    /// How many parameters were fitted.
    pub parameters: u32,
    /// The sum of the logarithms of the density (per ns) at all times.
    pub log_likelihood: f64,
    /// Akaike's criterion, 2 · parameters − 2 · log-likelihood; less is better, and only
    /// differences have a meaning.
    pub aic: f64,
    /// Schwarz's criterion, ln(n) · parameters − 2 · log-likelihood; likewise.
    pub bic: f64,
    /// The Kolmogorov-Smirnov distance: the greatest difference between the CDF and the share of
    /// the measured times. As the parameters come from the same times, the usual significance
    /// tables do not apply.
    pub distance: f64,
    /// A caveat about the fit.
    pub note: Option<&'static str>,
}

/// All families.
#[derive(Clone, Debug, PartialEq)]
pub struct Fits {
    /// The families that could be fitted, best first; at least one.
    pub fits: Vec<Fit>,
    /// The others, with the reason.
    pub refused: Vec<(Family, &'static str)>,
}

impl Fits {
    /// The one with the least BIC.
    pub fn best(&self) -> &Fit {
        &self.fits[0]
    }

    /// The one whose CDF is closest to the measured one.
    pub fn nearest(&self) -> &Fit {
        let nearer = |a: &&Fit, b: &&Fit| a.distance.total_cmp(&b.distance);
        self.fits.iter().min_by(nearer).unwrap_or(&self.fits[0])
    }
}

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant(
    /// The time that all tasks share.
    pub Span,
);

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        write!(
            f,
            "all times are {value}, so there is no distribution to fit; the plain time \"{value}\" \
             describes them, or measure with a finer clock"
        )
    }
}

impl std::error::Error for Constant {}

/// Fits all families.
///
/// Errors: all times are the same.
pub fn fit(sample: &Sample) -> Result<Fits, Constant> {
    let (low, high) = (sample.values()[0], sample.values()[sample.values().len() - 1]);
    if low == high {
        return Err(Constant(low));
    }
    let times = Times::new(sample.values());
    let mut fits = Fits { fits: Vec::new(), refused: Vec::new() };
    for (family, result) in [
        (Family::Exponential, times.exponential()),
        (Family::Uniform, times.uniform()),
        (Family::Lognormal, times.lognormal()),
        (Family::Pareto, times.pareto()),
        (Family::Hyperexponential, times.hyperexponential()),
    ] {
        match result {
            Ok(fit) => fits.fits.push(fit),
            Err(why) => fits.refused.push((family, why)),
        }
    }
    // The sort is stable: among equals the one with fewer parameters comes first.
    fits.fits.sort_by(|a, b| a.bic.total_cmp(&b.bic));
    Ok(fits)
}

/// The measured times, with sums that several families need.
struct Times {
    /// Ascending; each with its number of occurrences.
    counted: Vec<(f64, f64)>,
    low: Span,
    high: Span,
    n: f64,
    mean: f64,
    /// Mean of the logarithms.
    log_mean: f64,
}

type Fitted = Result<Fit, &'static str>;

impl Times {
    fn new(values: &[Span]) -> Times {
        let counted: Vec<(f64, f64)> = values
            .chunk_by(|a, b| a == b)
            .map(|same| (same[0].0 as f64, same.len() as f64))
            .collect();
        let n = values.len() as f64;
        let mean_of = |value: fn(f64) -> f64| {
            counted.iter().map(|&(x, count)| value(x) * count).sum::<f64>() / n
        };
        let (mean, log_mean) = (mean_of(|x| x), mean_of(log));
        Times { low: values[0], high: values[values.len() - 1], n, mean, log_mean, counted }
    }

    fn exponential(&self) -> Fitted {
        self.fit(&format!("exp({})", time(self.mean)), 1, None)
    }

    fn uniform(&self) -> Fitted {
        self.fit(&format!("uniform({}, {})", self.low, self.high), 2, None)
    }

    fn lognormal(&self) -> Fitted {
        let square = |&(x, count): &(f64, f64)| {
            let apart = log(x) - self.log_mean;
            apart * apart * count
        };
        let sigma = sqrt(self.counted.iter().map(square).sum::<f64>() / self.n);
        let median = time(exp(self.log_mean));
        self.fit(&format!("lognormal(median={median}, sigma={})", digits(sigma)), 2, None)
    }

    /// Solves 1/α + ln(r) r^α / (1 − r^α) = mean of ln(x / low), with r = low / high. The left side
    /// decreases from ln(1/r) / 2 at 0 towards 0, so α can be bracketed.
    fn pareto(&self) -> Fitted {
        let range = log(self.high.0 as f64 / self.low.0 as f64);
        let wanted = self.log_mean - log(self.low.0 as f64);
        if wanted >= range / 2.0 {
            return Err("the times do not thin out towards the longest, as those of a Pareto do");
        }
        let left = |alpha: f64| 1.0 / alpha - range / expm1(alpha * range);
        let (mut below, mut above) = (0.0, 1.0 / wanted);
        for _ in 0..200 {
            let middle = (below + above) / 2.0;
            if left(middle) > wanted {
                below = middle;
            } else {
                above = middle;
            }
        }
        self.fit(&format!("pareto({}, {}, {})", digits(above), self.low, self.high), 3, None)
            .map_err(|_| "the least and the greatest time are too near to each other")
    }

    /// The most likely result from three starts: the shorter half of the times against the longer,
    /// the shortest nine tenths against the rest, and the shortest tenth against the rest.
    fn hyperexponential(&self) -> Fitted {
        let thinned = self.thinned();
        let starts = [0.5, 0.9, 0.1].map(|part| {
            let mut phases = split(&thinned, part);
            climb(&thinned, &mut phases);
            (likelihood(&thinned, &phases), phases)
        });
        let Some((_, mut phases)) = starts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Err("there is nothing to start from");
        };
        let climbed = climb(&self.gathered(), &mut phases);
        let [short, long] = phases;
        let share = digits(short.share);
        // The rounded shares must sum to 1, too.
        let rest = digits(1.0 - share.parse::<f64>().unwrap_or(short.share));
        let text = format!("hyperexp({share}: {}, {rest}: {})", time(short.mean), time(long.mean));
        let note = (!climbed).then_some("the search was stopped before it had converged");
        self.fit(&text, 3, note).map_err(|_| "the times do not vary enough for two phases")
    }

    /// At most [`THINNED`] times that represent all: those at evenly spaced ranks.
    fn thinned(&self) -> Vec<(f64, f64)> {
        if self.counted.len() <= THINNED {
            return self.counted.clone();
        }
        let step = self.n / THINNED as f64;
        let (mut thinned, mut passed) = (Vec::with_capacity(THINNED), 0.0);
        for &(x, count) in &self.counted {
            let ranks_to = |rank: f64| libm::floor(rank / step + 0.5);
            let weight = ranks_to(passed + count) - ranks_to(passed);
            passed += count;
            if weight > 0.0 {
                thinned.push((x, weight));
            }
        }
        thinned
    }

    /// All times. If there are more than [`MANY`] different ones, those within a thousandth of each
    /// other are merged into their mean, so that a million times cost little more than a few
    /// thousand. This changes the sixth digit of the result.
    fn gathered(&self) -> Vec<(f64, f64)> {
        if self.counted.len() <= MANY {
            return self.counted.clone();
        }
        let near = |first: f64, x: f64| x <= first * 1.001;
        let mut gathered = Vec::new();
        let mut rest = &self.counted[..];
        while let Some(&(first, _)) = rest.first() {
            let (together, after) = rest.split_at(rest.partition_point(|&(x, _)| near(first, x)));
            let count: f64 = together.iter().map(|&(_, count)| count).sum();
            let sum: f64 = together.iter().map(|&(x, count)| x * count).sum();
            gathered.push((sum / count, count));
            rest = after;
        }
        gathered
    }

    /// The distribution described by `text`, with its likelihood and distance.
    fn fit(&self, text: &str, parameters: u32, note: Option<&'static str>) -> Fitted {
        let dist =
            Dist::parse(text, Path::new("")).map_err(|_| "its parameters are out of range")?;
        let terms = self
            .counted
            .iter()
            .map(|&(x, count)| dist.log_density(x).unwrap_or(f64::NEG_INFINITY) * count);
        let log_likelihood = terms.sum::<f64>();
        let aic = 2.0 * f64::from(parameters) - 2.0 * log_likelihood;
        let bic = log(self.n) * f64::from(parameters) - 2.0 * log_likelihood;
        let distance = self.distance(&dist);
        Ok(Fit { dist, parameters, log_likelihood, aic, bic, distance, note })
    }

    fn distance(&self, dist: &Dist) -> f64 {
        let (mut most, mut below) = (0.0f64, 0.0);
        for &(x, count) in &self.counted {
            let at = dist.cdf(x);
            most = most.max((at - below / self.n).abs());
            below += count;
            most = most.max((at - below / self.n).abs());
        }
        most
    }
}

/// How many times the search for phases starts from.
const THINNED: usize = 4096;

/// How many different times a search handles individually.
const MANY: usize = 10_000;

/// A step that raises the log-likelihood by less than this ends a search. Between families,
/// differences of about 1 matter.
const ENOUGH: f64 = 1e-6;

/// The most steps of a single search.
const MOST_STEPS: u32 = 5000;

#[derive(Clone, Copy)]
struct Phase {
    share: f64,
    mean: f64,
}

/// The shortest `part` of the times, and the rest.
fn split(counted: &[(f64, f64)], part: f64) -> [Phase; 2] {
    let n: f64 = counted.iter().map(|&(_, count)| count).sum();
    let (mut short, mut long) = ((0.0, 0.0), (0.0, 0.0));
    for &(x, count) in counted {
        let half = if short.0 < part * n { &mut short } else { &mut long };
        half.0 += count;
        half.1 += x * count;
    }
    // Where most times are the same, the rest may be empty.
    let all = short.1 + long.1;
    let mean = |(count, sum): (f64, f64)| if count > 0.0 { sum / count } else { all / n * 2.0 };
    let share = (short.0 / n).clamp(0.01, 0.99);
    [Phase { share, mean: mean(short) }, Phase { share: 1.0 - share, mean: mean(long) }]
}

/// Expectation maximisation, until a step gains less than [`ENOUGH`]; returns whether it converged.
fn climb(counted: &[(f64, f64)], phases: &mut [Phase; 2]) -> bool {
    let mut before = f64::NEG_INFINITY;
    for _ in 0..MOST_STEPS {
        let [short, long] = *phases;
        let (mut log_likelihood, mut all) = (0.0, 0.0);
        let (mut shorts, mut short_time, mut time) = (0.0, 0.0, 0.0);
        let (a, b) = (short.share / short.mean, long.share / long.mean);
        for &(x, count) in counted {
            // Relative to the longer phase, which never vanishes next to the other.
            let ratio = a / b * exp(x / long.mean - x / short.mean);
            let belongs = ratio / (1.0 + ratio);
            log_likelihood += count * (log(b * (1.0 + ratio)) - x / long.mean);
            all += count;
            time += x * count;
            shorts += belongs * count;
            short_time += belongs * x * count;
        }
        if log_likelihood - before < ENOUGH {
            return true;
        }
        before = log_likelihood;
        let (longs, long_time) = (all - shorts, time - short_time);
        if shorts < 1e-9 * all || longs < 1e-9 * all {
            return true;
        }
        let [one, other] = [
            Phase { share: shorts / all, mean: short_time / shorts },
            Phase { share: longs / all, mean: long_time / longs },
        ];
        *phases = if one.mean <= other.mean { [one, other] } else { [other, one] };
    }
    false
}

fn likelihood(counted: &[(f64, f64)], [short, long]: &[Phase; 2]) -> f64 {
    let density = |x: f64, phase: &Phase| phase.share / phase.mean * exp(-x / phase.mean);
    counted.iter().map(|&(x, count)| count * log(density(x, short) + density(x, long))).sum()
}

/// A number with six digits, without an exponent: `0.0123457`.
fn digits(number: f64) -> String {
    let before = if number > 0.0 { libm::floor(libm::log10(number)) as i32 + 1 } else { 1 };
    let text = format!("{number:.*}", (6 - before).clamp(0, 17) as usize);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    text
}

/// A time with six digits, at least 1 ns.
fn time(ns: f64) -> Span {
    let digits = libm::log10(f64::max(ns, 1.0)) as i32 + 1;
    let unit = libm::pow(10.0, f64::from((digits - 6).max(0)));
    Span((libm::round(ns / unit) * unit) as u64).max(Span(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_workload::rng::Rng;
    use proptest::prelude::*;

    fn draw(text: &str, n: usize, seed: u64) -> Sample {
        let dist = Dist::parse(text, Path::new("")).unwrap();
        let mut rng = Rng::from_seed(seed);
        Sample::new((0..n).map(|_| dist.sample(&mut rng)).collect()).unwrap()
    }

    fn of(ns: &[u64]) -> Sample {
        Sample::new(ns.iter().map(|&ns| Span(ns)).collect()).unwrap()
    }

    fn family(fits: &Fits, family: Family) -> &Fit {
        fits.fits.iter().find(|fit| fit.dist.family() == family).unwrap()
    }

    #[test]
    fn the_family_of_ten_thousand_samples_is_found() {
        for (text, expected) in [
            ("exp(10ms)", Family::Exponential),
            ("uniform(2ms, 8ms)", Family::Uniform),
            ("lognormal(median=3ms, sigma=1.2)", Family::Lognormal),
            ("lognormal(median=3ms, sigma=0.3)", Family::Lognormal),
            ("pareto(1.5, 1ms, 10s)", Family::Pareto),
            ("pareto(0.8, 10us, 1s)", Family::Pareto),
            ("hyperexp(0.9: 1ms, 0.1: 50ms)", Family::Hyperexponential),
            ("hyperexp(10ms, cv2=4)", Family::Hyperexponential),
        ] {
            let source = Dist::parse(text, Path::new("")).unwrap();
            for seed in 1..=5 {
                let fits = fit(&draw(text, 10_000, seed)).unwrap();
                let best = fits.best();
                assert_eq!(best.dist.family(), expected, "{text}, seed {seed}: {fits:#?}");
                // For the true distribution, 1.95 / √n is exceeded once in 1000 samples; a fitted
                // one is closer.
                assert!(best.distance < 0.0195, "{text}, seed {seed}: {}", best.distance);
                // Four standard errors for the hardest to distinguish, the second Pareto.
                for p in [0.1, 0.5, 0.9] {
                    let (found, wanted) = (best.dist.quantile(p), source.quantile(p));
                    let error = (found / wanted - 1.0).abs();
                    assert!(error < 0.12, "{text}, seed {seed}, {p}: {found}, not {wanted}");
                }
            }
        }
    }

    fn numbers(fit: &Fit) -> Vec<f64> {
        let text = fit.dist.to_string();
        let inside = &text[text.find('(').unwrap() + 1..text.len() - 1];
        let parts = inside.split([',', ':', '=']).map(str::trim);
        let number = |part: &str| match part.parse::<f64>() {
            Ok(number) => Some(number),
            Err(_) => Span::parse(part).ok().map(|span| span.0 as f64),
        };
        parts.filter_map(number).collect()
    }

    /// Bounds are four standard errors of the estimators.
    #[test]
    fn parameters_are_recovered() {
        let close = |found: f64, wanted: f64, by: f64| {
            assert!((found - wanted).abs() <= by, "{found}, not {wanted} ± {by}");
        };
        let root = 100.0;
        let of =
            |text: &str, of: Family| numbers(family(&fit(&draw(text, 10_000, 7)).unwrap(), of));
        close(of("exp(10ms)", Family::Exponential)[0], 1e7, 4.0 * 1e7 / root);
        // The minimum of n exceeds the bound by an exponential with mean width / n.
        let bounds = of("uniform(2ms, 8ms)", Family::Uniform);
        close(bounds[0], 2e6, 10.0 * 600.0);
        close(bounds[1], 8e6, 10.0 * 600.0);
        let lognormal = of("lognormal(median=3ms, sigma=1.2)", Family::Lognormal);
        close(lognormal[0], 3e6, 4.0 * 1.2 / root * 3e6);
        close(lognormal[1], 1.2, 4.0 * 1.2 / root / 1.41);
        let pareto = of("pareto(1.5, 1ms, 10s)", Family::Pareto);
        close(pareto[0], 1.5, 4.0 * 1.5 / root);
        close(pareto[1], 1e6, 10.0 * 1e6 / 1.5 / 1e4);
        let phases = of("hyperexp(0.9: 1ms, 0.1: 50ms)", Family::Hyperexponential);
        close(phases[0], 0.9, 0.015);
        close(phases[1], 1e6, 0.05e6);
        close(phases[3], 50e6, 4.0 * 50e6 / 1000f64.sqrt() * 1.3);
    }

    #[test]
    fn likelihood_and_distance_by_hand() {
        // Mean 2 ns: -2 - 3 ln 2 for {1, 2, 3}, as Σx / mean = 3.
        let fits = fit(&of(&[3, 1, 2])).unwrap();
        let exponential = family(&fits, Family::Exponential);
        assert!((exponential.log_likelihood + 3.0 + 3.0 * 2f64.ln()).abs() < 1e-12);
        assert!((exponential.aic - 2.0 + 2.0 * exponential.log_likelihood).abs() < 1e-12);
        // F(1) = 0.393, F(2) = 0.632, F(3) = 0.777 against steps to 1/3, 2/3, 1.
        let bic = 3f64.ln() - 2.0 * exponential.log_likelihood;
        assert!((exponential.bic - bic).abs() < 1e-12);
        assert!((exponential.distance - (1.0 - (-0.5f64).exp())).abs() < 1e-12);
        let uniform = family(&fits, Family::Uniform);
        assert!((uniform.log_likelihood + 3.0 * 2f64.ln()).abs() < 1e-12);
        assert!((uniform.distance - 1.0 / 3.0).abs() < 1e-12);
    }

    /// 200 000 different times are merged; the likelihood shows how well the phases are found.
    #[test]
    fn many_times_are_fitted_as_well_as_few() {
        let text = "hyperexp(0.9: 1ms, 0.1: 50ms)";
        let sample = draw(text, 200_000, 3);
        let fits = fit(&sample).unwrap();
        let found = numbers(family(&fits, Family::Hyperexponential));
        for (found, wanted) in found.iter().zip([0.9, 1e6, 0.1, 50e6]) {
            assert!((found / wanted - 1.0).abs() < 0.03, "{found}, not {wanted}");
        }
        // Changing any parameter in its third digit does not raise the likelihood.
        let times = Times::new(sample.values());
        for text in (0..3).flat_map(|place| {
            [0.999, 1.001].map(|factor| {
                let mut changed = [found[0], found[1], found[3]];
                changed[place] *= factor;
                let [share, short, long] = changed;
                let (share, rest) = (digits(share), 1.0 - digits(share).parse::<f64>().unwrap());
                format!("hyperexp({share}: {}, {}: {})", time(short), digits(rest), time(long))
            })
        }) {
            let other = times.fit(&text, 3, None).unwrap();
            assert!(other.log_likelihood < fits.best().log_likelihood, "{text}");
        }
    }

    #[test]
    fn times_that_do_not_thin_out_are_no_pareto() {
        let fits = fit(&of(&[1, 90, 95, 100])).unwrap();
        assert_eq!(fits.refused.len(), 1);
        assert_eq!(fits.refused[0].0, Family::Pareto);
    }

    #[test]
    fn constant_times_are_refused() {
        let error = fit(&of(&[5_000_000; 9])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "all times are 5ms, so there is no distribution to fit; the plain time \"5ms\" \
             describes them, or measure with a finer clock"
        );
    }

    #[test]
    fn numbers_are_written_with_six_digits() {
        assert_eq!(
            [digits(1.5), digits(0.012_345_678), digits(123.0)],
            ["1.5", "0.0123457", "123"]
        );
        assert_eq!(
            [time(1_234_567.0), time(0.2), time(12_345.6)],
            [1_234_570, 1, 12_346].map(Span)
        );
    }

    proptest! {
        #[test]
        fn any_times_are_fitted(values in proptest::collection::vec(1u64..=u64::MAX / 2, 1..40)) {
            if let Ok(fits) = fit(&of(&values)) {
                for fit in &fits.fits {
                    prop_assert!(fit.log_likelihood.is_finite(), "{fit:?}");
                    prop_assert!((0.0..=1.0).contains(&fit.distance), "{fit:?}");
                }
                let one = family(&fits, Family::Exponential).log_likelihood;
                if let Some(two) = fits.fits.iter()
                    .find(|fit| fit.dist.family() == Family::Hyperexponential)
                {
                    // One phase is a special case of two, up to rounding of the numbers.
                    prop_assert!(two.log_likelihood > one - 0.01, "{fits:?}");
                }
            }
        }
    }
}
