//! `anysched load-model`.

use crate::args::{LoadModelArgs, PlainFormat};
use crate::output::{self, Failure, short_time};
use anysched_core::Span;
use anysched_theory::fit::{Fit, Fits, fit};
use anysched_theory::load_model::{
    Bin, Shares, Slice, bounds, histogram, recommended_slice, shares,
};
use anysched_theory::measured::{self, Format, Measured};
use anysched_workload::dist::{Dist, Family};
use anysched_workload::import::input::of_file;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;
use std::path::Path;

pub fn load_model(args: &LoadModelArgs) -> Result<(), Failure> {
    let (q1, q2) = (slice("q1", args.q1.as_deref())?, slice("q2", args.q2.as_deref())?);
    let (measured, service) = match (&args.times.service, &args.times.fit) {
        (Some(text), _) => (None, distribution(text)?),
        (None, Some(file)) => {
            let measured = read(file, args.format_of_file.as_deref())?;
            let name = file.display();
            let fits = fit(&measured.sample).map_err(|error| format!("{name}: {error}"))?;
            let service = fits.best().dist.clone();
            (Some(Fitted { file: name.to_string(), measured, fits }), service)
        }
        (None, None) => return Err(Failure::from("either --service or --fit is needed")),
    };
    let recommended = recommended_slice(&service);
    let q1 = q1.unwrap_or(recommended.length);
    let report = Report { service, recommended, q1, q2: q2.unwrap_or(q1), fitted: measured };
    output::print(&match args.format {
        PlainFormat::Table => report.table(),
        PlainFormat::Json => format!("{:#}\n", report.json()),
    })
}

/// Parses the argument of `--service`.
pub fn distribution(text: &str) -> Result<Dist, Failure> {
    let service =
        Dist::parse(text, Path::new(".")).map_err(|error| format!("--service {error}"))?;
    if service.mean() > 0.0 {
        return Ok(service);
    }
    let why = "no task would run; at least one run time has to be above 0, for example 10ms";
    Err(Failure::from(format!("--service \"{text}\": {why}")))
}

fn slice(name: &str, text: Option<&str>) -> Result<Option<Span>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match Span::parse(text) {
        Ok(Span::ZERO) => Err(Failure::from(format!(
            "--{name} is {text}: with a slice of 0 no task gets on; it has to be above 0, for \
             example 10ms"
        ))),
        Ok(Span::MAX) => Err(Failure::from(format!(
            "--{name} is {text}: tasks leave a queue when their slice is used up; give a time, for \
             example 10ms"
        ))),
        Ok(span) => Ok(Some(span)),
        Err(why) => Err(Failure::from(format!("--{name} is \"{text}\": {why}"))),
    }
}

fn read(file: &Path, format: Option<&str>) -> Result<Measured, Failure> {
    let name = file.display().to_string();
    let opened = File::open(file).and_then(of_file).map_err(|error| format!("{name}: {error}"))?;
    Ok(measured::read(opened, &name, format.map(Format::of))?)
}

/// Measured times and what was fitted to them.
struct Fitted {
    file: String,
    measured: Measured,
    fits: Fits,
}

impl Fitted {
    /// The distribution that draws each measured time with equal probability.
    fn dist(&self) -> Dist {
        self.measured.sample.dist(&self.file)
    }
}

struct Report {
    service: Dist,
    recommended: Slice,
    q1: Span,
    q2: Span,
    fitted: Option<Fitted>,
}

/// Lines of a histogram.
const LINES: usize = 20;

/// Length of the longest bar.
const BAR: usize = 40;

/// Where to print the inverse CDF, including at 1 − 1/e and 1 − 1/e².
const PROBABILITIES: [f64; 9] = [0.01, 0.1, 0.25, 0.5, 0.632_121, 0.864_665, 0.9, 0.99, 0.999];

/// Where to print density and CDF, in multiples of the slice of Q1.
const MULTIPLES: [f64; 9] = [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0];

impl Report {
    fn table(&self) -> String {
        let mut text = String::new();
        if let Some(fitted) = &self.fitted {
            text.push_str(&fit_table(fitted));
        }
        let service = &self.service;
        let deviation = short_time(libm::sqrt(service.variance()));
        let formulas = service.formulas();
        let _ = writeln!(text, "service           {service}");
        let _ = writeln!(text, "mean              {}", short_time(service.mean()));
        let _ = writeln!(text, "deviation         {deviation}");
        let _ = writeln!(text, "density     f(t)  {}", formulas.density);
        let _ = writeln!(text, "CDF         F(t)  {}", formulas.cdf);
        let _ = writeln!(text, "inverse   F⁻¹(u)  {}", formulas.inverse);
        let Slice { length, rule } = self.recommended;
        let _ = writeln!(text, "slice             {}", short_time(length.0 as f64));
        let _ = writeln!(text, "                  {}", rule.words());
        text.push('\n');
        text.push_str(&self.queues());
        text.push('\n');
        text.push_str(&self.functions());
        text.push('\n');
        text.push_str(&self.picture());
        text
    }

    fn shares(&self) -> Shares {
        shares(&self.service, self.q1, self.q2)
    }

    /// How many tasks are done after each queue.
    fn queues(&self) -> String {
        let model = self.shares();
        let measured = self.fitted.as_ref().map(|fitted| shares(&fitted.dist(), self.q1, self.q2));
        let done = |shares: &Shares| [shares.done_after_q1, shares.done_after_q2, 1.0];
        let slices =
            [short_time(self.q1.0 as f64), short_time(self.q2.0 as f64), "no limit".into()];
        let mut text = format!("{:7}{:>10}{:>12}", "after", "slice", "tasks done");
        if measured.is_some() {
            let _ = write!(text, "{:>10}", "measured");
        }
        let _ = writeln!(text, "{:>22}", "CPU time given there");
        for (queue, slice) in slices.iter().enumerate() {
            let name = format!("Q{}", queue + 1);
            let _ = write!(text, "{name:7}{slice:>10}");
            let _ = write!(text, "{:>12}", percent(done(&model)[queue]));
            if let Some(measured) = &measured {
                let _ = write!(text, "{:>10}", percent(done(measured)[queue]));
            }
            let _ = writeln!(text, "{:>22}", percent(model.cpu_time[queue]));
        }
        text
    }

    /// Density and CDF on the left, the inverse CDF on the right.
    fn functions(&self) -> String {
        let (unit, per) = unit_of(self.service.mean());
        let mut text = format!(
            "{:>10}{:>16}{:>9}{:>14}{:>12}\n",
            "t",
            format!("f(t) per {unit}"),
            "F(t)",
            "u",
            "F⁻¹(u)"
        );
        for (multiple, probability) in MULTIPLES.into_iter().zip(PROBABILITIES) {
            let t = multiple * self.q1.0 as f64;
            let density = self.service.density(t).map_or("-".to_string(), |f| figures(f * per));
            let _ = writeln!(
                text,
                "{:>10}{density:>16}{:>9}{:>14}{:>12}",
                short_time(t),
                percent(self.service.cdf(t)),
                percent(probability),
                short_time(self.service.quantile(probability))
            );
        }
        text
    }

    /// A histogram of the measured times, if any, with the distribution's share at the end of each
    /// line.
    fn picture(&self) -> String {
        let shown = self.fitted.as_ref().map(Fitted::dist);
        if shown.is_none() && self.service.family() == Family::Constant {
            return format!("every task runs {}\n", self.service);
        }
        let bins = self.bins();
        let model: Vec<Bin> = histogram(&self.service, &ends(&bins));
        let most = bins.iter().map(|bin| bin.share).fold(0.0, f64::max);
        let mut text = match &shown {
            Some(_) => format!("{:>23}  {:48}{:>6}\n", "run time", "share of the tasks", "fit"),
            None => format!("{:>23}  share of the tasks\n", "run time"),
        };
        let mut marks = vec![(self.q1.0 as f64, "Q1"), (self.q1.0 as f64 + self.q2.0 as f64, "Q2")];
        marks.reverse();
        for (bin, fitted) in bins.iter().zip(model) {
            let range = match bin.to {
                f64::INFINITY => format!("{:>10} …          ", short_time(bin.from)),
                to => format!("{:>10} … {:>10}", short_time(bin.from), short_time(to)),
            };
            let mut line =
                format!("{range}  {:<BAR$} {:>7}", bar(bin.share / most), percent(bin.share));
            if shown.is_some() {
                let _ = write!(line, "{:>7}", percent(fitted.share));
            }
            while let Some((at, queue)) = marks.pop_if(|(at, _)| *at <= bin.to) {
                let _ = write!(line, "  {queue} to {}", short_time(at));
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    fn bins(&self) -> Vec<Bin> {
        match &self.fitted {
            Some(fitted) => {
                let measured = fitted.dist();
                histogram(&measured, &bounds(&measured, LINES))
            }
            None => histogram(&self.service, &bounds(&self.service, LINES)),
        }
    }

    fn json(&self) -> Value {
        let service = &self.service;
        let shares = self.shares();
        let formulas = service.formulas();
        let points: Vec<Value> = MULTIPLES
            .into_iter()
            .map(|multiple| multiple * self.q1.0 as f64)
            .map(|t| json!({"ns": t, "density_per_ns": service.density(t), "cdf": service.cdf(t)}))
            .collect();
        let inverse: Vec<Value> = PROBABILITIES
            .into_iter()
            .map(|u| json!({"probability": u, "ns": service.quantile(u)}))
            .collect();
        let bins = self.bins();
        let model = histogram(service, &ends(&bins));
        let bins: Vec<Value> = bins
            .iter()
            .zip(model)
            .map(|(bin, model)| {
                json!({
                    "from_ns": bin.from,
                    "to_ns": bin.to.is_finite().then_some(bin.to),
                    "share": bin.share,
                    "model_share": model.share,
                })
            })
            .collect();
        json!({
            "service": service.to_string(),
            "mean_ns": service.mean(),
            "sd_ns": libm::sqrt(service.variance()),
            "density": formulas.density,
            "cdf": formulas.cdf,
            "inverse_cdf": formulas.inverse,
            "recommended_slice_ns": self.recommended.length.0,
            "recommended_because": self.recommended.rule.words(),
            "q1_ns": self.q1.0,
            "q2_ns": self.q2.0,
            "done_after_q1": shares.done_after_q1,
            "done_after_q2": shares.done_after_q2,
            "cpu_time": shares.cpu_time,
            "points": points,
            "quantiles": inverse,
            "histogram": bins,
            "fit": self.fitted.as_ref().map(|fitted| fit_json(fitted, self.q1, self.q2)),
        })
    }
}

fn ends(bins: &[Bin]) -> Vec<f64> {
    bins.first().map(|bin| bin.from).into_iter().chain(bins.iter().map(|bin| bin.to)).collect()
}

fn fit_table(fitted: &Fitted) -> String {
    let Fitted { file, measured, fits } = fitted;
    let (count, format) = (measured.sample.values().len(), measured.format);
    let mut text = format!("{file}: {count} run times ({format})\n");
    for note in &measured.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let width = fits.fits.iter().map(|fit| fit.dist.to_string().chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let head = ["log-likelihood", "AIC", "BIC", "KS"];
    let [likelihood, aic, bic, distance] = head;
    let _ = writeln!(text, "\n{:width$}{likelihood:>16}{aic:>10}{bic:>10}{distance:>8}", "fit");
    let best = fits.best();
    for fit in &fits.fits {
        let _ = writeln!(
            text,
            "{:width$}{:>16.1}{:>10}{:>10}{:>8.4}",
            fit.dist.to_string(),
            fit.log_likelihood,
            more(fit.aic - fits.fits.iter().map(|fit| fit.aic).fold(f64::INFINITY, f64::min)),
            more(fit.bic - best.bic),
            fit.distance
        );
    }
    for fit in fits.fits.iter().filter(|fit| fit.note.is_some()) {
        let _ = writeln!(text, "note: {}: {}", fit.dist, fit.note.unwrap_or_default());
    }
    for (family, why) in &fits.refused {
        let _ = writeln!(text, "not fitted: {family}: {why}");
    }
    let _ = writeln!(text, "\nbest by likelihood (least BIC): {}", best.dist.family());
    let nearest = fits.nearest();
    let agrees = if nearest.dist == best.dist { ", too" } else { "" };
    let _ =
        writeln!(text, "nearest to the measured CDF (least KS): {}{agrees}", nearest.dist.family());
    if best.distance > FAR {
        let slice = fitted.dist().quantile(-libm::expm1(-1.0));
        let _ = writeln!(
            text,
            "no family is near: the CDF of the best is off by up to {}; of the measured times,\n\
             63.2 % are at most {}, which --q1 takes",
            percent(best.distance),
            short_time(slice)
        );
    }
    text.push('\n');
    text
}

/// Beyond this distance, a slice computed from a fit is too far off to be useful.
const FAR: f64 = 0.1;

fn fit_json(fitted: &Fitted, q1: Span, q2: Span) -> Value {
    let Fitted { file, measured, fits } = fitted;
    let one = |fit: &Fit| {
        json!({
            "family": fit.dist.family().to_string(),
            "service": fit.dist.to_string(),
            "parameters": fit.parameters,
            "log_likelihood": fit.log_likelihood,
            "aic": fit.aic,
            "bic": fit.bic,
            "ks": fit.distance,
            "note": fit.note,
        })
    };
    let refused =
        |(family, why): &(Family, &str)| json!({"family": family.to_string(), "why": why});
    let shares = shares(&fitted.dist(), q1, q2);
    json!({
        "file": file,
        "format": measured.format.to_string(),
        "times": measured.sample.values().len(),
        "notes": measured.notes,
        "best": fits.best().dist.family().to_string(),
        "nearest": fits.nearest().dist.family().to_string(),
        "fits": fits.fits.iter().map(one).collect::<Vec<Value>>(),
        "not_fitted": fits.refused.iter().map(refused).collect::<Vec<Value>>(),
        "measured_done_after_q1": shares.done_after_q1,
        "measured_done_after_q2": shares.done_after_q2,
    })
}

/// Differences between criteria say more than their values, which depend on the unit of time.
fn more(difference: f64) -> String {
    if difference == 0.0 { "least".to_string() } else { format!("+{difference:.1}") }
}

/// Drawn with eighths of a block.
fn bar(part: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * (BAR * 8) as f64 + 0.5) as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The unit in which to print times of about `ns`, and its length in ns.
fn unit_of(ns: f64) -> (&'static str, f64) {
    match ns {
        _ if ns >= 1e9 => ("s", 1e9),
        _ if ns >= 1e6 => ("ms", 1e6),
        _ if ns >= 1e3 => ("us", 1e3),
        _ => ("ns", 1.0),
    }
}

/// Formats with four significant digits.
fn figures(number: f64) -> String {
    match number {
        0.0 => "0".to_string(),
        _ if (1e-3..1e5).contains(&number) => {
            let before = libm::floor(libm::log10(number)) as i32 + 1;
            format!("{number:.*}", (4 - before).max(0) as usize)
        }
        _ => format!("{number:.3e}"),
    }
}
