//! The report of schbench (`show_latencies`, `main`), without the delays counted by the kernel.

use super::text::expand_tabs;
use super::{Shown, distribution, measure, print};
use crate::bench_args::SchbenchArgs;
use crate::output::Failure;
use anysched_core::Span;
use anysched_measure::{Metrics, Summary};
use serde_json::{Value, json};

pub fn bench(args: &SchbenchArgs) -> Result<(), Failure> {
    let mut load = format!(
        "[[scenario.workload]]\nkind = \"schbench\"\nmessage_threads = {}\nwork = \"{}ns\"\n\
         duration = \"{}ns\"\n",
        args.message_threads, args.work.0, args.duration.0
    );
    if let Some(workers) = args.threads {
        load.push_str(&format!("workers = {workers}\n"));
    }
    let shown = measure("schbench", &args.bench, &[load])?;
    let text = |shown: &Shown| text(args.duration, &shown.loads[0]);
    print("schbench", &args.bench, &shown, text, |metrics, _| result(metrics))
}

fn text(runtime: Span, metrics: &Metrics) -> String {
    let benchmark = &metrics.benchmark;
    let latency = [(50.0, ' '), (90.0, ' '), (99.0, '*'), (99.9, ' ')];
    let rate = [(20.0, ' '), (50.0, '*'), (90.0, ' ')];
    let head = |label: &str, unit: &str| {
        format!("{label} percentiles ({unit}) runtime {} (s)", runtime.0 / 1_000_000_000)
    };
    [
        part(&head("Wakeup Latencies", "usec"), &benchmark.latency, 1000, &latency, Some(20.0)),
        part(&head("Request Latencies", "usec"), &benchmark.request, 1000, &latency, Some(20.0)),
        part(&head("RPS", "requests"), &benchmark.rate, 1, &rate, None),
        format!("average rps: {:.2}\n", benchmark.requests_per_s().unwrap_or(f64::NAN)),
    ]
    .concat()
}

/// Some percentiles of a distribution, each with the number of samples between it and the one
/// before; the first is counted from the percentile `from`.
fn part(
    head: &str,
    summary: &Summary,
    unit: u64,
    percentiles: &[(f64, char)],
    from: Option<f64>,
) -> String {
    let at = |percent: f64| summary.percentiles([percent]).map_or(0, |[value]| value);
    let up_to = |percent: f64| summary.count_up_to(at(percent));
    let mut text = format!("{head} ({} total samples)\n", summary.count());
    let mut before = from.map_or(0, up_to);
    for &(percent, star) in percentiles {
        let samples = up_to(percent) - before;
        before += samples;
        let shown = at(percent) / unit;
        text.push_str(&expand_tabs(&format!("\t{star} {percent:.1}th: {shown:<10}")));
        text.push_str(&format!(" ({samples} samples)\n"));
    }
    // The tool takes a smallest sample of 0 for none, and the next sample replaces it.
    let (count, zeros) = (summary.count() as f64, summary.count_up_to(0) as f64);
    let min = if zeros < count { at(100.0 * (zeros + 0.5) / count) } else { 0 };
    let max = summary.max().unwrap_or(0);
    text.push_str(&expand_tabs(&format!("\t  min={}, max={}\n", min / unit, max / unit)));
    text
}

fn result(metrics: &Metrics) -> Value {
    let benchmark = &metrics.benchmark;
    json!({
        "wakeup_latency_ns": distribution(&benchmark.latency),
        "request_latency_ns": distribution(&benchmark.request),
        "rps": distribution(&benchmark.rate),
        "average_rps": benchmark.requests_per_s(),
    })
}
