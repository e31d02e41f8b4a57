//! The report of hackbench, rt-tests 0.84 (`main`).

use super::{Shown, measure, print};
use crate::bench_args::HackbenchArgs;
use crate::output::Failure;
use anysched_measure::Metrics;
use serde_json::{Value, json};

pub fn bench(args: &HackbenchArgs) -> Result<(), Failure> {
    let load = format!(
        "[[scenario.workload]]\nkind = \"hackbench\"\ngroups = {}\nfds = {}\nloops = {}\n",
        args.groups, args.fds, args.loops
    );
    let shown = measure("hackbench", &args.bench, &[load])?;
    let text = |shown: &Shown| text(args, &shown.loads[0]);
    print("hackbench", &args.bench, &shown, text, |metrics, _| result(metrics))
}

fn text(args: &HackbenchArgs, metrics: &Metrics) -> String {
    let each = 2 * u64::from(args.fds);
    let tasks = u64::from(args.groups) * each;
    let ms = metrics.benchmark.elapsed.unwrap_or_default().0 / 1_000_000;
    format!(
        "Running in process mode with {} groups using {each} file descriptors each (== {tasks} \
         tasks)\n\
         Each sender will pass {} messages of 100 bytes\n\
         Time: {}.{:03}\n",
        args.groups,
        args.loops,
        ms / 1000,
        ms % 1000
    )
}

fn result(metrics: &Metrics) -> Value {
    json!({ "time_ns": metrics.benchmark.elapsed.map(|span| span.0) })
}
