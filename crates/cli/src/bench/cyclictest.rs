//! The report of cyclictest, rt-tests 0.84 (`print_stat`).

use super::{Shown, distribution, measure, print};
use crate::bench_args::CyclictestArgs;
use crate::output::Failure;
use anysched_core::Span;
use anysched_measure::{Metrics, ThreadLatency};
use serde_json::{Value, json};

pub fn bench(args: &CyclictestArgs) -> Result<(), Failure> {
    let mut load = format!(
        "[[scenario.workload]]\nkind = \"cyclictest\"\nthreads = {}\ninterval = \"{}ns\"\n\
         distance = \"{}ns\"\nduration = \"{}ns\"\n",
        args.threads, args.interval.0, args.distance.0, args.duration.0
    );
    if args.burn > 0 {
        load.push_str(&format!(
            "[[scenario.workload]]\nkind = \"hog\"\ntasks = {}\nuntil = \"{}ns\"\n",
            args.burn, args.duration.0
        ));
    }
    let shown = measure("cyclictest", &args.bench, &[load])?;
    print(
        "cyclictest",
        &args.bench,
        &shown,
        |shown| text(args, shown),
        |metrics, _| result(metrics),
    )
}

fn interval(args: &CyclictestArgs, thread: usize) -> Span {
    args.interval + args.distance.scaled(thread as u64, 1)
}

fn text(args: &CyclictestArgs, shown: &Shown) -> String {
    let threads = &shown.loads[0].benchmark.threads;
    let lines = threads.iter().enumerate();
    lines.map(|(number, thread)| line(args, number, thread)).collect()
}

/// Threads are numbered as tasks in the simulator, from 0, and have no priority.
fn line(args: &CyclictestArgs, number: usize, thread: &ThreadLatency) -> String {
    let (unit, width) = if args.nsecs { (1, 8) } else { (1000, 5) };
    let [min, act, avg, max] =
        [thread.min, thread.last, thread.mean(), thread.max].map(|span| span.0 / unit);
    let interval = interval(args, number).0 / 1000;
    let cycles = thread.cycles;
    format!(
        "T:{number:2} ({number:5}) P: 0 I:{interval} C:{cycles:7} Min:{min:7} Act:{act:width$} \
         Avg:{avg:width$} Max:{max:8}\n"
    )
}

fn result(metrics: &Metrics) -> Value {
    let of = |thread: &ThreadLatency| {
        json!({
            "cycles": thread.cycles,
            "min_ns": thread.min.0,
            "act_ns": thread.last.0,
            "avg_ns": thread.mean().0,
            "max_ns": thread.max.0,
        })
    };
    let threads: Vec<Value> = metrics.benchmark.threads.iter().map(of).collect();
    json!({ "threads": threads, "latency_ns": distribution(&metrics.benchmark.latency) })
}
