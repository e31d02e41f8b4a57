//! Known distributions of run times, in integers.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use anysched_core::exp2;
use anysched_core::params::Value;
use anysched_core::time::Span;

use super::table::{Builder, Table};

/// Parts of a distribution that is continuous. With four times as many, means are hardly 1 % less,
/// and tasks are switched twice as often, where ranks rise.
const PARTS: u64 = 32;
/// Fractional bits of probabilities.
const BITS: u32 = 40;
/// A probability below which quotients would be inexact.
const RARE: u128 = 1 << 10;
/// Probabilities and exponents are read in millionths.
const MILLION: u64 = 1_000_000;
/// No time of a distribution is longer, so that products fit.
const LONGEST: Span = Span::from_s(3600);

/// What is known of run times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One of these, all equally likely.
    Values(Vec<Span>),
    /// Exponential with this mean.
    Exp(Span),
    /// Uniform from the first to the second.
    Uniform(Span, Span),
    /// Pareto, bounded to `low ..= high`.
    Pareto {
        /// The exponent, in millionths.
        alpha: u64,
        /// The least.
        low: Span,
        /// The most.
        high: Span,
    },
    /// Exponential with one of these means, with probabilities in millionths.
    Hyperexp(Vec<(u64, Span)>),
}

const FORM: &str = "not one of exp(10ms) | uniform(1ms, 5ms) | pareto(1.5, 1ms, 10s) | \
                    hyperexp(0.9: 1ms, 0.1: 50ms), or times such as 10ms, 20ms";

impl Value for Sizes {
    const KIND: &'static str = "distribution | times, separated by commas, spaces or lines";

    fn parse(text: &str) -> Result<Sizes, &'static str> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else { return values(text) };
        let inside = rest.strip_suffix(')').ok_or(FORM)?;
        let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
        match (name.trim_end(), &parts[..]) {
            ("exp", [mean]) => Ok(Sizes::Exp(time(mean)?)),
            ("uniform", [low, high]) => {
                let (low, high) = (Span::parse(low)?, time(high)?);
                if low >= high {
                    return Err("the first time has to be below the second");
                }
                Ok(Sizes::Uniform(low, high))
            }
            ("pareto", [alpha, low, high]) => {
                let (alpha, low, high) = (millionths(alpha)?, time(low)?, time(high)?);
                if alpha == 0 || alpha > 100 * MILLION {
                    return Err("the exponent has to be above 0, at most 100");
                }
                if low >= high {
                    return Err("the first time has to be below the second");
                }
                Ok(Sizes::Pareto { alpha, low, high })
            }
            ("hyperexp", phases) => {
                let phase = |part: &&str| {
                    let (probability, mean) = part.split_once(':').ok_or(FORM)?;
                    Ok((millionths(probability.trim())?, time(mean.trim())?))
                };
                let phases = phases.iter().map(phase).collect::<Result<Vec<_>, &str>>()?;
                if phases.iter().map(|phase| phase.0).sum::<u64>() != MILLION {
                    return Err("the probabilities have to sum to 1");
                }
                Ok(Sizes::Hyperexp(phases))
            }
            _ => Err(FORM),
        }
    }

    fn show(&self) -> String {
        let decimal = |millionths: u64| {
            let text = format!("{}.{:06}", millionths / MILLION, millionths % MILLION);
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        };
        match self {
            Sizes::Values(values) => {
                values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            Sizes::Exp(mean) => format!("exp({mean})"),
            Sizes::Uniform(low, high) => format!("uniform({low}, {high})"),
            Sizes::Pareto { alpha, low, high } => {
                format!("pareto({}, {low}, {high})", decimal(*alpha))
            }
            Sizes::Hyperexp(phases) => {
                let phases = phases.iter().map(|(p, mean)| format!("{}: {mean}", decimal(*p)));
                format!("hyperexp({})", phases.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Times between commas, spaces and line ends, with comments behind `#`, in ascending order.
fn values(text: &str) -> Result<Sizes, &'static str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(line));
    let texts = lines.flat_map(|line| line.split([',', ' ', '\t'])).filter(|text| !text.is_empty());
    let mut values = texts.map(Span::parse).collect::<Result<Vec<Span>, _>>()?;
    values.sort_unstable();
    match values.last() {
        None | Some(&Span::ZERO) => Err(FORM),
        Some(&last) if last > LONGEST => Err("a time has to be at most 1h"),
        Some(_) => Ok(Sizes::Values(values)),
    }
}

fn time(text: &str) -> Result<Span, &'static str> {
    match Span::parse(text)? {
        Span::ZERO => Err("the time has to be above 0"),
        time if time > LONGEST => Err("a time has to be at most 1h"),
        time => Ok(time),
    }
}

/// A decimal number without a sign, in millionths.
fn millionths(text: &str) -> Result<u64, &'static str> {
    let why = "a number has at most 4 digits before the point and 6 behind it, for example 1.5";
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let plain = whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit());
    if !plain || whole.is_empty() || whole.len() > 4 || part.len() > 6 {
        return Err(why);
    }
    let zeros = core::iter::repeat_n(b'0', 6 - part.len());
    let digits = whole.bytes().chain(part.bytes()).chain(zeros);
    Ok(digits.fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0')))
}

/// 2^-x, where x has 64 fractional bits, with [`BITS`] fractional bits.
fn halvings(x: u128) -> u128 {
    let whole = x.div_ceil(1 << 64);
    let shift = u128::from(63 - BITS) + whole;
    let fraction = ((whole << 64) - x) as u64;
    if shift > 127 { 0 } else { u128::from(exp2::power(fraction)) >> shift }
}

/// log₂, with 64 fractional bits; of 0 as of 1.
fn log2(x: u64) -> u128 {
    let zeros = x.max(1).leading_zeros();
    u128::from(63 - zeros) << 64 | u128::from(exp2::logarithm(x.max(1) << zeros))
}

/// e^(-age / mean), with [`BITS`] fractional bits.
fn exponential(age: Span, mean: Span) -> u128 {
    // With 60 fractional bits.
    let log2_e = exp2::LOG2_E >> 64;
    halvings((u128::from(age.0) * log2_e / u128::from(mean.0)) << 4)
}

/// `start` · 2^(`exponent` · place / PARTS), where the exponent has 64 fractional bits.
fn step(start: Span, exponent: u128, place: u64) -> Span {
    let exponent = exponent / u128::from(PARTS) * u128::from(place);
    let wide = u128::from(start.0) * u128::from(exp2::power(exponent as u64));
    Span((wide >> (63 - (exponent >> 64))) as u64)
}

impl Sizes {
    /// How many parts a table has.
    pub(super) fn parts(&self) -> usize {
        match self {
            Sizes::Values(values) => values.len(),
            _ => PARTS as usize + 2,
        }
    }

    /// The table of ranks.
    pub(super) fn fill(&self, builder: &mut Builder, table: &mut Table) {
        match self {
            Sizes::Values(values) => builder.fill_from_sizes(values, table),
            Sizes::Exp(mean) => {
                builder.part(Span::ZERO, u128::from(mean.0), 1);
                builder.fill(None, table);
            }
            Sizes::Uniform(low, high) => {
                let width = u128::from(high.0 - low.0);
                let age =
                    |place| Span(low.0 + (width * u128::from(place) / u128::from(PARTS)) as u64);
                let ages = (0..=PARTS)
                    .map(age)
                    .map(|age| (age, (u128::from(high.0 - age.0) << BITS) / width));
                bounded(ages, builder, table);
            }
            Sizes::Pareto { alpha, low, high } => {
                let power = |octaves: u128| {
                    halvings(((octaves >> 32) * u128::from(*alpha) / u128::from(MILLION)) << 32)
                };
                let range = log2(high.0) - log2(low.0);
                let cut = power(range);
                let age = |place| match place {
                    0 => *low,
                    PARTS => *high,
                    _ => step(*low, range, place),
                };
                let ages = (0..=PARTS).map(age).map(|age| {
                    let octaves = log2(age.0) - log2(low.0);
                    (age, (power(octaves).saturating_sub(cut) << BITS) / ((1 << BITS) - cut))
                });
                bounded(ages, builder, table);
            }
            Sizes::Hyperexp(phases) => hyperexp(phases, builder, table),
        }
    }
}

/// From ages that ascend, each with the probability of a longer time, which is 1 at the first; in
/// between the probability is taken to fall in a straight line.
fn bounded(ages: impl Iterator<Item = (Span, u128)>, builder: &mut Builder, table: &mut Table) {
    let (mut from, mut above) = (Span::ZERO, 1 << BITS);
    for (age, next) in ages {
        let cost = u128::from(age.0 - from.0) * (above + next) / 2;
        builder.part(from, cost, above.saturating_sub(next));
        (from, above) = (age, next);
        // What is left is too rare for these numbers.
        if above == 0 {
            break;
        }
    }
    builder.fill(Some(from), table);
}

/// A phase with the mean m uses m times what ends of it, between any two ages.
fn hyperexp(phases: &[(u64, Span)], builder: &mut Builder, table: &mut Table) {
    let shortest = phases.iter().map(|phase| phase.1).min().unwrap_or_default();
    let longest = phases.iter().map(|phase| phase.1).max().unwrap_or_default();
    let start = Span((shortest.0 / 64).max(1));
    let range = log2(longest.0 * 24) - log2(start.0);
    let ages = (0..=PARTS).map(|place| step(start, range, place));
    let of = |(probability, mean): (u64, Span), age| {
        (exponential(age, mean) * u128::from(probability)) / u128::from(MILLION)
    };
    let mut from = Span::ZERO;
    for age in ages.chain([Span::MAX]) {
        let left = |age| phases.iter().map(|&phase| of(phase, age)).sum::<u128>();
        // What is too rare for these numbers ends as one part.
        let is_last = age == Span::MAX || left(age) < RARE;
        if age == from && !is_last {
            continue;
        }
        let (mut cost, mut ends) = (0, 0);
        for &phase in phases {
            let until = if is_last { 0 } else { of(phase, age) };
            let ended = of(phase, from).saturating_sub(until);
            cost += ended * u128::from(phase.1.0);
            ends += ended;
        }
        builder.part(from, cost, ends);
        from = age;
        if is_last {
            break;
        }
    }
    builder.fill(None, table);
}
