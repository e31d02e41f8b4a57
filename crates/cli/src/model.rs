//! `anysched model`.

use crate::args::{MRsfArgs, MmcArgs, MmcnArgs, ModelCommand, PlainFormat, StationArgs};
use crate::load_model::distribution;
use crate::output::{self, Failure, short_time};
use crate::periodic::periodic;
use anysched_core::Span;
use anysched_theory::m_rsf::{self, Batch};
use anysched_theory::queueing::mmc::Mmc;
use anysched_theory::queueing::mmcn::Mmcn;
use anysched_theory::queueing::{Measures, QueueError, Station, paper};
use anysched_workload::dist::Family;
use serde_json::{Value, json};
use std::fmt::Write;

pub fn model(command: &ModelCommand) -> Result<(), Failure> {
    output::print(&match command {
        ModelCommand::Mmc(args) => mmc(args)?,
        ModelCommand::Mmcn(args) => mmcn(args)?,
        ModelCommand::MRsf(args) => m_rsf(args)?,
        ModelCommand::Periodic(args) => periodic(args)?,
    })
}

fn station(args: &StationArgs) -> Result<Station, Failure> {
    let service = match Span::parse(&args.service) {
        Ok(Span::MAX) => Err("it has to end; give a time, for example 10ms"),
        Ok(span) => Ok(span.0 as f64),
        Err(why) => Err(why),
    };
    let service = service.map_err(|why| format!("--service is \"{}\": {why}", args.service))?;
    let station = match (args.rate.arrivals, args.rate.load) {
        (Some(arrivals), _) => Station::new(arrivals, service, args.servers),
        (None, Some(load)) => Station::with_load(load, service, args.servers),
        (None, None) => return Err(Failure::from("either --arrivals or --load is needed")),
    };
    station.map_err(wrong)
}

/// Rewrites the advice in an error in terms of command-line arguments.
fn wrong(error: QueueError) -> Failure {
    let text = error.to_string();
    let option = |(name, rest): (&str, &str)| format!("--{name} is{rest}");
    match (&error, text.split_once(" is")) {
        (QueueError::Overload(_), _) | (_, None) => {
            let advice = text.replace("(mmcn)", "(`anysched model mmcn --limit N`)");
            Failure::from(format!("the {advice}"))
        }
        (_, Some(parts)) => Failure::from(option(parts)),
    }
}

fn mmc(args: &MmcArgs) -> Result<String, Failure> {
    let station = station(&args.station)?;
    let queue = Mmc::new(station).map_err(wrong)?;
    let states: Vec<f64> = (0..SHOWN as u32).map(|k| queue.pi(k)).collect();
    Ok(match args.format {
        PlainFormat::Table => {
            let mut text = format!("M/M/{}\n\n", station.servers());
            describe(&mut text, &station, &queue.measures());
            text.push_str(&probabilities(&states, None, true));
            text
        }
        PlainFormat::Json => {
            let mut value = numbers(&station, &queue.measures());
            value["pi"] = json!(states);
            format!("{value:#}\n")
        }
    })
}

/// How many states to print.
const SHOWN: usize = 12;

fn mmcn(args: &MmcnArgs) -> Result<String, Failure> {
    let station = station(&args.station)?;
    let queue = Mmcn::new(station, args.limit).map_err(wrong)?;
    let printed = args.paper.then(|| Printed::new(station.load(), args.limit)).transpose()?;
    Ok(match args.format {
        PlainFormat::Table => {
            let mut text = format!("M/M/{}/{}\n\n", station.servers(), args.limit);
            describe(&mut text, &station, &queue.measures());
            let shown = queue.pi().len().min(SHOWN);
            let states = &queue.pi()[..shown];
            text.push_str(&probabilities(states, printed.as_ref(), shown < queue.pi().len()));
            if let Some(printed) = &printed {
                text.push_str(&printed.table(&station, &queue.measures()));
            }
            text
        }
        PlainFormat::Json => {
            let mut value = numbers(&station, &queue.measures());
            value["limit"] = json!(args.limit);
            value["pi"] = json!(queue.pi());
            if let Some(printed) = &printed {
                value["paper"] = printed.json();
            }
            format!("{value:#}\n")
        }
    })
}

fn describe(text: &mut String, station: &Station, means: &Measures) {
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    for (name, value) in [
        ("arrivals, λ", format!("{}/s", libm::round(station.arrivals() * 1e6) / 1e6)),
        ("service time, 1/μ", short_time(station.service())),
        ("servers, c", station.servers().to_string()),
        ("load, ρ = λ/cμ", format!("{:.4}", station.load())),
        ("", String::new()),
        ("servers busy", percent(means.utilisation)),
        ("arrivals turned away", percent(means.lost)),
        ("of the others, wait", percent(means.waits)),
        ("tasks there, L", format!("{:.4}", means.tasks)),
        ("tasks waiting, Lq", format!("{:.4}", means.waiting)),
        ("waiting time, Wq", short_time(means.waiting_time)),
        ("time there, T", short_time(means.time)),
    ] {
        let _ = writeln!(text, "{}", format!("{name:22}{value:>14}").trim_end());
    }
}

fn probabilities(states: &[f64], printed: Option<&Printed>, more: bool) -> String {
    let mut text = format!("\n{:>6}{:>14}", "tasks", "probability");
    if printed.is_some() {
        let _ = write!(text, "{:>14}", "paper's (9)");
    }
    text.push('\n');
    for (k, probability) in states.iter().enumerate() {
        let _ = write!(text, "{k:>6}{probability:>14.6}");
        if let Some(printed) = printed {
            let _ = write!(text, "{:>14.6}", paper::paper_pi(printed.rho, printed.limit, k as u32));
        }
        text.push('\n');
    }
    if more {
        let _ = writeln!(text, "{:>6}", "…");
    }
    text
}

fn numbers(station: &Station, means: &Measures) -> Value {
    json!({
        "arrivals_per_s": station.arrivals(),
        "service_ns": station.service(),
        "servers": station.servers(),
        "load": station.load(),
        "utilisation": means.utilisation,
        "lost": means.lost,
        "waits": means.waits,
        "tasks": means.tasks,
        "waiting": means.waiting,
        "waiting_time_ns": means.waiting_time,
        "time_ns": means.time,
    })
}

/// The paper's results.
struct Printed {
    rho: f64,
    limit: u32,
    sum: f64,
    queue_sum: f64,
    queue_closed: f64,
    time: f64,
    time_last: f64,
}

impl Printed {
    fn new(rho: f64, limit: u32) -> Result<Printed, Failure> {
        if rho == 1.0 {
            return Err(Failure::from(
                "--paper: its equations divide by 1 - ρ, and ρ is 1; take another load, or leave \
                 --paper out",
            ));
        }
        Ok(Printed {
            rho,
            limit,
            sum: (0..=limit).map(|k| paper::paper_pi(rho, limit, k)).sum(),
            queue_sum: paper::paper_queue_sum(rho, limit),
            queue_closed: paper::paper_queue_closed(rho, limit),
            time: paper::paper_time(rho, limit),
            time_last: paper::paper_time_last(rho, limit),
        })
    }

    fn table(&self, station: &Station, means: &Measures) -> String {
        let mut text = String::from("\nequations (9) to (11) of the M-RSF paper, for 3 servers\n");
        let per_service = means.time / station.service();
        for (name, printed, right, why) in [
            ("(9) summed", self.sum, 1.0, "3 times the probabilities of M/M/1/N"),
            ("(10) as a sum", self.queue_sum, means.waiting, "counts a state N + 1"),
            (
                "(10) in closed form",
                self.queue_closed,
                means.waiting,
                "is not the value of the sum",
            ),
            ("(11)", self.time, per_service, "divides tasks by ρ, not by a rate"),
            ("(11), last expression", self.time_last, per_service, "and divides once more"),
        ] {
            let _ = writeln!(text, "{name:22}{printed:>14.4}  right {right:>10.4}  {why}");
        }
        text.push_str("right for the times are T in service times; the paper's have no unit\n");
        text
    }

    fn json(&self) -> Value {
        json!({
            "pi_sum": self.sum,
            "queue_sum": self.queue_sum,
            "queue_closed": self.queue_closed,
            "time": self.time,
            "time_last": self.time_last,
        })
    }
}

fn m_rsf(args: &MRsfArgs) -> Result<String, Failure> {
    let service = distribution(&args.service)?;
    let mean = service.mean();
    let mut rows = Vec::new();
    for &q in &args.q {
        if !(q.is_finite() && q > 0.0) {
            return Err(Failure::from(format!(
                "--q is {q}: with a slice of 0 no task gets on; it has to be above 0, in means of \
                 the run time, for example 1"
            )));
        }
        // At least half a ns, so that it rounds to one.
        let slice = Span(libm::round(q * mean) as u64).max(Span(1));
        rows.push((q, slice, m_rsf::batch(&service, slice, slice)));
    }
    let closed =
        |q: f64| (service.family() == Family::Exponential).then(|| m_rsf::exponential_batch(q));
    let value = |q: f64, batch: &Batch| closed(q).unwrap_or(batch.m_rsf / mean);
    if args.format == PlainFormat::Json {
        let row = |(q, slice, batch): &(f64, Span, Batch)| {
            json!({
                "q": q,
                "slice_ns": slice.0,
                "m_rsf": value(*q, batch),
                "closed_form": closed(*q),
                "sjf": batch.sjf / mean,
                "fcfs": batch.fcfs / mean,
                "sharing": batch.sharing / mean,
            })
        };
        let rows: Vec<Value> = rows.iter().map(row).collect();
        return Ok(format!("{:#}\n", json!({"service": service.to_string(), "rows": rows})));
    }
    let mut text = format!(
        "mean turnaround of a closed batch of n tasks on one CPU, in n means, for large n\n\
         run times: {service}\n\n{:>6}{:>10}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}\n",
        "q", "slice", "M-RSF", "SJF", "FCFS", "sharing", "vs FCFS", "vs SJF"
    );
    for (q, slice, batch) in &rows {
        let m_rsf = value(*q, batch);
        let versus = |other: f64| format!("{:+.1} %", (m_rsf / (other / mean) - 1.0) * 100.0);
        let _ = writeln!(
            text,
            "{q:>6}{:>10}{m_rsf:>10.4}{:>10.4}{:>10.4}{:>10.4}{:>12}{:>12}",
            short_time(slice.0 as f64),
            batch.sjf / mean,
            batch.fcfs / mean,
            batch.sharing / mean,
            versus(batch.fcfs),
            versus(batch.sjf)
        );
    }
    text.push_str(match service.family() {
        Family::Exponential => "\nM-RSF by the closed form; ",
        _ => "\nM-RSF by numerical integration; ",
    });
    text.push_str("\"sharing\" is what RR and fair policies come to with short slices\n");
    Ok(text)
}
