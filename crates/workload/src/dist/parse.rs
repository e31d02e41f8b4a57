//! Reading distributions from text and from files.

use super::{Centre, Dist, DistError, Empirical, Kind, Phase, balanced};
use crate::nearest::nearest;
use anysched_core::Span;
use libm::{expm1, log};
use std::io;
use std::path::Path;
use std::sync::Arc;

const NAMES: [&str; 6] = ["uniform", "exp", "lognormal", "pareto", "hyperexp", "empirical"];

/// An example of each of [`NAMES`].
const EXAMPLES: [&str; NAMES.len()] = [
    "uniform(1ms, 5ms)",
    "exp(10ms)",
    "lognormal(10ms, 1.0)",
    "pareto(1.5, 1ms, 10s)",
    "hyperexp(10ms, cv2=4)",
    "empirical(times.csv)",
];

/// Beyond this the rare phase is too rare for 53-bit random numbers.
const MAX_CV2: f64 = 1e9;

/// What is in the file at a path.
type ReadFile<'a> = dyn Fn(&Path) -> io::Result<Vec<u8>> + 'a;

impl Dist {
    /// Reads one of the forms that the [module documentation](super) lists. Files are looked up in
    /// `base_dir` unless their path is absolute.
    ///
    /// Errors: not one of these forms, parameters out of range, or a file that cannot be read or
    /// contains something other than times. Never panics.
    pub fn parse(text: &str, base_dir: &Path) -> Result<Dist, DistError> {
        Dist::parse_with(text, base_dir, &|path| std::fs::read(path))
    }

    /// As [`Dist::parse`], where files are what `read` gives for their path.
    ///
    /// Errors: as [`Dist::parse`].
    pub fn parse_with(text: &str, base_dir: &Path, read: &ReadFile<'_>) -> Result<Dist, DistError> {
        let text = text.trim();
        let dist = kind(text, base_dir, read).map(Dist).and_then(|dist| {
            let finite = dist.mean().is_finite() && dist.variance().is_finite();
            if finite { Ok(dist) } else { Err("its mean or variance is infinite".to_string()) }
        });
        dist.map_err(|why| DistError { text: text.to_string(), why })
    }
}

fn kind(text: &str, base_dir: &Path, read: &ReadFile<'_>) -> Result<Kind, String> {
    let Some((name, rest)) = text.split_once('(') else {
        if text.starts_with(char::is_alphabetic) {
            return Err(not_a_name(text));
        }
        return time("the time", text).map(Kind::Constant);
    };
    let name = name.trim_end();
    let Some(inside) = rest.strip_suffix(')') else {
        return Err("does not end with \")\"".to_string());
    };
    match name {
        "uniform" => uniform(arguments(inside, ["low", "high"])?),
        "exp" => {
            let [mean] = arguments(inside, ["mean"])?;
            Ok(Kind::Exp { mean: positive("the mean", mean)? })
        }
        "lognormal" => lognormal(inside),
        "pareto" => pareto(arguments(inside, ["alpha", "low", "high"])?),
        "hyperexp" if inside.contains(':') => phases(inside),
        "hyperexp" => hyperexp(arguments(inside, ["mean", "cv2"])?),
        "empirical" => empirical(inside.trim(), base_dir, read),
        _ => Err(not_a_name(name)),
    }
}

fn not_a_name(name: &str) -> String {
    if let Some(known) = NAMES.iter().position(|&known| known == name) {
        let example = EXAMPLES[known];
        return format!("{name} needs its arguments in parentheses, for example \"{example}\"");
    }
    let hint = nearest(name, NAMES).map_or(String::new(), |near| format!("did you mean {near}? "));
    format!(
        "no distribution is called \"{name}\"; {hint}there are a plain time, {}",
        NAMES.join(", ")
    )
}

/// The texts given for `names`, in the order of `names`.
fn arguments<'a, const N: usize>(
    inside: &'a str,
    names: [&str; N],
) -> Result<[&'a str; N], String> {
    let mut texts = [None; N];
    for (place, part) in inside.split(',').enumerate() {
        let (place, text) = match part.split_once('=') {
            None => (place, part.trim()),
            Some((name, text)) => {
                let place = names.iter().position(|&known| known == name.trim());
                let place = place.ok_or_else(|| {
                    format!(
                        "no argument is called \"{}\"; there are {}",
                        name.trim(),
                        names.join(", ")
                    )
                })?;
                (place, text.trim())
            }
        };
        let Some(slot) = texts.get_mut(place) else {
            return Err(format!("too many arguments; there are {}", names.join(", ")));
        };
        if slot.replace(text).is_some() {
            return Err(format!("{} is given twice", names[place]));
        }
    }
    let missing = texts.iter().zip(names).find(|(text, _)| text.is_none_or(str::is_empty));
    match missing {
        Some((_, name)) => {
            Err(format!("{name} is missing; the arguments are {}", names.join(", ")))
        }
        None => Ok(texts.map(Option::unwrap_or_default)),
    }
}

fn uniform([low, high]: [&str; 2]) -> Result<Kind, String> {
    let (low, high) = (time("low", low)?, time("high", high)?);
    if low > high {
        return Err(format!("low is {low}, above high, which is {high}; exchange them"));
    }
    Ok(Kind::Uniform { low, high })
}

fn lognormal(inside: &str) -> Result<Kind, String> {
    let by_median = inside.split(',').any(|part| part.trim_start().starts_with("median"));
    let (by, name) = if by_median { (Centre::Median, "median") } else { (Centre::Mean, "mean") };
    let [at, sigma] = arguments(inside, [name, "sigma"])?;
    let at = positive(&format!("the {name}"), at)?;
    let sigma = number("sigma", sigma)?;
    if sigma <= 0.0 {
        return Err(format!("sigma is {sigma}; it has to be above 0 (a plain time never varies)"));
    }
    let centre = log(at.0 as f64);
    let mu = if by_median { centre } else { centre - sigma * sigma / 2.0 };
    Ok(Kind::Lognormal { by, at, sigma, mu })
}

fn pareto([alpha, low, high]: [&str; 3]) -> Result<Kind, String> {
    let alpha = number("alpha", alpha)?;
    if alpha <= 0.0 {
        return Err(format!("alpha is {alpha}; it has to be above 0, for example 1.5"));
    }
    let (low, high) = (positive("low", low)?, positive("high", high)?);
    if low >= high {
        return Err(format!("low is {low}, which has to be below high, {high}"));
    }
    let kept = -expm1(alpha * log(low.0 as f64 / high.0 as f64));
    if kept <= 0.0 {
        return Err(format!("low {low} and high {high} are too near to each other"));
    }
    Ok(Kind::Pareto { alpha, low, high, kept })
}

fn hyperexp([mean, cv2]: [&str; 2]) -> Result<Kind, String> {
    let (mean, cv2) = (positive("the mean", mean)?, number("cv2", cv2)?);
    if !(1.0..=MAX_CV2).contains(&cv2) {
        return Err(format!(
            "cv2 is {cv2}; it has to be in 1 ..= {MAX_CV2:e} (an exponential has 1; for less use \
             uniform or lognormal)"
        ));
    }
    Ok(Kind::Hyperexp { phases: balanced(mean.0 as f64, cv2).into(), by: Some((mean, cv2)) })
}

fn phases(inside: &str) -> Result<Kind, String> {
    let mut phases = Vec::new();
    for part in inside.split(',') {
        let Some((probability, mean)) = part.split_once(':') else {
            return Err(format!("\"{}\" is not of the form probability: mean", part.trim()));
        };
        let probability = number("a probability", probability.trim())?;
        if !(probability > 0.0 && probability <= 1.0) {
            return Err(format!("a probability is {probability}; it has to be above 0, at most 1"));
        }
        let mean = positive("a mean", mean.trim())?.0 as f64;
        phases.push(Phase { probability, mean });
    }
    let sum: f64 = phases.iter().map(|phase| phase.probability).sum();
    // Sums of decimal fractions miss 1 by a few parts in 10^16.
    if (sum - 1.0).abs() > 1e-9 {
        return Err(format!("the probabilities sum to {sum}; they have to sum to 1"));
    }
    Ok(Kind::Hyperexp { phases: phases.into(), by: None })
}

/// Reads one time per line, a plain number being ns. Blank lines and lines that begin with `#` are
/// skipped, as is a first line that begins with a letter, the name of the column.
fn empirical(file: &str, base_dir: &Path, read: &ReadFile<'_>) -> Result<Kind, String> {
    if file.is_empty() {
        return Err("the name of the file is missing".to_string());
    }
    let path = base_dir.join(file);
    let bytes = read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("{}:{line}: not UTF-8; it holds one time per line", path.display())
    })?;
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        let name = number == 0 && line.starts_with(char::is_alphabetic);
        if line.is_empty() || line.starts_with('#') || name {
            continue;
        }
        let value = match line.parse::<u64>() {
            Ok(ns) => ns,
            Err(_) => {
                let place = format!("{}:{}: the value", path.display(), number + 1);
                time(&place, line)?.0
            }
        };
        values.push(value);
    }
    let Some(sample) = Empirical::new(file.to_string(), values) else {
        return Err(format!("{} has no values; it needs one time per line", path.display()));
    };
    Ok(Kind::Empirical(Arc::new(sample)))
}

impl Empirical {
    /// `None` without values.
    pub(super) fn new(file: String, mut values: Vec<u64>) -> Option<Empirical> {
        if values.is_empty() {
            return None;
        }
        values.sort_unstable();
        let n = values.len() as f64;
        let mean = values.iter().map(|&value| value as f64).sum::<f64>() / n;
        let squares = values.iter().map(|&value| (value as f64 - mean) * (value as f64 - mean));
        let variance = squares.sum::<f64>() / n;
        Some(Empirical { file, values, mean, variance })
    }
}

fn time(what: &str, text: &str) -> Result<Span, String> {
    match Span::parse(text) {
        Ok(Span::MAX) => {
            Err(format!("{what} is \"{text}\"; it needs a limit, for example \"3ms\""))
        }
        Ok(span) => Ok(span),
        Err(why) => Err(format!("{what} is \"{text}\": {why}")),
    }
}

fn positive(what: &str, text: &str) -> Result<Span, String> {
    match time(what, text)? {
        Span::ZERO => Err(format!("{what} is 0; it has to be above 0, for example \"3ms\"")),
        span => Ok(span),
    }
}

fn number(what: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("{what} is \"{text}\", which is not a number such as 1.5")),
    }
}
