//! `anysched model periodic`.

use crate::args::{PeriodicArgs, PlainFormat};
use crate::output::Failure;
use anysched_core::Span;
use anysched_theory::realtime::edf::{self, Demand, Verdict};
use anysched_theory::realtime::{self, Task, TaskSet, TooLong, bounds, fixed};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;

pub fn periodic(args: &PeriodicArgs) -> Result<String, Failure> {
    let name = args.file.display().to_string();
    let opened = File::open(&args.file).map_err(|error| format!("{name}: {error}"))?;
    let set = realtime::read(opened, &name)?;
    let report = Report { responses: fixed::responses(&set), edf: edf::verdict(&set), set };
    Ok(match args.format {
        PlainFormat::Table => report.table(),
        PlainFormat::Json => format!("{:#}\n", report.json()),
    })
}

struct Report {
    set: TaskSet,
    responses: Result<Vec<Option<u128>>, TooLong>,
    edf: Result<Verdict, TooLong>,
}

/// Formats a time that may exceed a [`Span`].
fn time(ns: u128) -> String {
    match u64::try_from(ns) {
        Ok(ns) if ns < u64::MAX => Span(ns).to_string(),
        _ => "over 584 years".to_string(),
    }
}

/// The conclusion from a sufficient test.
fn sufficient(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "all deadlines are met",
        Some(false) => "says nothing",
        None => "only for D ≥ T without jitter",
    }
}

impl Report {
    fn dm(&self) -> Result<bool, TooLong> {
        self.responses.as_ref().map(|responses| fixed::meets(&self.set, responses)).map_err(|e| *e)
    }

    fn table(&self) -> String {
        let set = &self.set;
        let count = set.tasks().len();
        let s = if count == 1 { "" } else { "s" };
        let mut text = format!("{count} periodic task{s} on one CPU, without costs\n\n");
        let _ = writeln!(text, "{:34}{:.4}", "utilisation, U = ΣC/T", set.utilisation());
        let hyperperiod = set.hyperperiod().map_or("over 2^128 ns".to_string(), time);
        let _ = writeln!(text, "{:34}{hyperperiod}", "hyperperiod");
        let horizon = set.horizon().map_or("over 2^128 ns".to_string(), time);
        let _ = writeln!(text, "{:34}{horizon}\n", "simulate, released together, for");
        for (order, test, value, says) in self.tests() {
            let _ = writeln!(text, "{order:5}{test:29}{value:22}{says}");
        }
        text.push_str(&self.tasks());
        if self.responses.is_err() || self.edf.is_err() {
            let _ = writeln!(text, "\n{TooLong}");
        }
        text
    }

    /// Order, test, values, conclusion.
    fn tests(&self) -> Vec<(&'static str, &'static str, String, String)> {
        let set = &self.set;
        let tasks = set.tasks().len();
        let beside = |value: f64, passed: bool, bound: String| {
            format!("{value:.4} {} {bound}", if passed { "≤" } else { ">" })
        };
        let or_empty = |passed: Option<bool>, value: f64, bound: String| {
            passed.map_or(String::new(), |passed| beside(value, passed, bound))
        };
        let (liu_layland, hyperbolic) = (bounds::liu_layland(set), bounds::hyperbolic(set));
        let (fits, dense_enough) = (bounds::fits(set), bounds::dense_enough(set));
        let bound = format!("{:.4}", bounds::liu_layland_bound(tasks));
        let product = bounds::hyperbolic_product(set);
        let overload = if fits { "not overloaded" } else { "overloaded: deadlines are missed" };
        let two = "2".to_string();
        let one = || "1".to_string();
        vec![
            ("any", "U", beside(set.utilisation(), fits, one()), overload.into()),
            (
                "RM",
                "U, Liu and Layland",
                or_empty(liu_layland, set.utilisation(), bound),
                sufficient(liu_layland).into(),
            ),
            (
                "RM",
                "Π(U + 1), hyperbolic",
                or_empty(hyperbolic, product, two),
                sufficient(hyperbolic).into(),
            ),
            (
                "EDF",
                "ΣC/min(D − J, T), density",
                beside(bounds::density(set), dense_enough, one()),
                sufficient(Some(dense_enough)).into(),
            ),
            ("DM", "response times, exact", String::new(), self.dm_says()),
            ("EDF", "demand, exact", String::new(), self.edf_says()),
        ]
    }

    fn dm_says(&self) -> String {
        match self.dm() {
            Ok(true) => "all deadlines are met".to_string(),
            Ok(false) => "deadlines are missed".to_string(),
            Err(TooLong) => "not known".to_string(),
        }
    }

    fn edf_says(&self) -> String {
        match &self.edf {
            Ok(Verdict::Schedulable) => "all deadlines are met".to_string(),
            Ok(Verdict::Misses(Some(Demand { at, work }))) => {
                format!("deadlines are missed: {} to do by {}", time(*work), time(*at))
            }
            Ok(Verdict::Misses(None)) => "deadlines are missed, after a long time".to_string(),
            Err(TooLong) => "not known".to_string(),
        }
    }

    fn tasks(&self) -> String {
        let jitter = self.set.tasks().iter().any(|task| task.jitter > Span::ZERO);
        let mut text = format!("\n{:>5}{:>14}{:>14}{:>14}", "task", "run", "period", "deadline");
        if jitter {
            let _ = write!(text, "{:>14}", "jitter");
        }
        let _ = writeln!(text, "{:>9}{:>18}", "U", "worst under DM");
        for (nth, task) in self.set.tasks().iter().enumerate() {
            let Task { run, period, deadline, .. } = task.to_owned();
            let _ = write!(text, "{:>5}", nth + 1);
            for span in [run, period, deadline].into_iter().chain(jitter.then_some(task.jitter)) {
                let _ = write!(text, "{:>14}", span.to_string());
            }
            let _ = write!(text, "{:>9.4}", task.utilisation());
            let _ = match self.responses.as_ref().map(|responses| responses[nth]) {
                Ok(Some(response)) if response > u128::from(deadline.0) => {
                    writeln!(text, "{:>18}  misses", time(response))
                }
                Ok(Some(response)) => writeln!(text, "{:>18}", time(response)),
                Ok(None) => writeln!(text, "{:>18}  misses", "without bound"),
                Err(TooLong) => writeln!(text, "{:>18}", "not known"),
            };
        }
        text
    }

    fn json(&self) -> Value {
        let set = &self.set;
        // Few readers support JSON numbers beyond 64 bits.
        let ns = |ns: u128| u64::try_from(ns).map_or(Value::Null, Value::from);
        let task = |(nth, task): (usize, &Task)| {
            let response = self.responses.as_ref().ok().and_then(|responses| responses[nth]);
            json!({
                "run_ns": task.run.0,
                "period_ns": task.period.0,
                "deadline_ns": task.deadline.0,
                "jitter_ns": task.jitter.0,
                "utilisation": task.utilisation(),
                "dm_response_ns": response.map(ns),
            })
        };
        let first = match self.edf {
            Ok(Verdict::Misses(Some(Demand { at, work }))) => {
                json!({"at_ns": ns(at), "demand_ns": ns(work)})
            }
            _ => Value::Null,
        };
        json!({
            "utilisation": set.utilisation(),
            "hyperperiod_ns": set.hyperperiod().map(ns),
            "horizon_ns": set.horizon().map(ns),
            "not_overloaded": bounds::fits(set),
            "liu_layland": bounds::liu_layland(set),
            "liu_layland_bound": bounds::liu_layland_bound(set.tasks().len()),
            "hyperbolic": bounds::hyperbolic(set),
            "hyperbolic_product": bounds::hyperbolic_product(set),
            "density": bounds::density(set),
            "density_test": bounds::dense_enough(set),
            "dm": self.dm().ok(),
            "edf": self.edf.ok().map(|verdict| verdict == Verdict::Schedulable),
            "edf_first_failure": first,
            "tasks": set.tasks().iter().enumerate().map(task).collect::<Vec<_>>(),
        })
    }
}
