//! The report of Interbench 0.31 (`main`, `show_latencies`), with corrected values to its right.

use super::text::{expand_tabs, three_digits};
use super::{Shown, distribution, measure, print};
use crate::bench_args::InterbenchArgs;
use crate::output::Failure;
use anysched_measure::Metrics;
use serde_json::{Value, json};

pub fn bench(args: &InterbenchArgs) -> Result<(), Failure> {
    let pairs = pairs(args);
    if pairs.is_empty() {
        return Err(Failure::from("--task and --against name the same thing; nothing is left"));
    }
    let loads: Vec<String> =
        pairs.iter().map(|&(task, against)| load(args, task, against)).collect();
    let shown = measure("interbench", &args.bench, &loads)?;
    let text = |shown: &Shown| text(args, &pairs, shown);
    print("interbench", &args.bench, &shown, text, |metrics, number| {
        let (task, against) = pairs[number];
        result(task, against, metrics)
    })
}

/// What to benchmark in the presence of what: nothing against itself.
fn pairs(args: &InterbenchArgs) -> Vec<(&str, &str)> {
    let pairs_of = |task: &String| {
        let others = args.against.iter().filter(move |against| *against != task);
        others.map(|against| against.as_str()).collect::<Vec<_>>()
    };
    let all = args.task.iter().map(|task| (task.as_str(), pairs_of(task)));
    all.flat_map(|(task, others)| others.into_iter().map(move |against| (task, against))).collect()
}

fn load(args: &InterbenchArgs, task: &str, against: &str) -> String {
    format!(
        "[[scenario.workload]]\nkind = \"interbench\"\ntask = \"{task}\"\nagainst = \"{against}\"\n\
         burners = {}\nduration = \"{}ns\"\n",
        args.burn, args.duration.0
    )
}

/// The tool's name for it.
fn label(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn text(args: &InterbenchArgs, pairs: &[(&str, &str)], shown: &Shown) -> String {
    let mut text = format!(
        "# SD as the tool computes it, with mean^2/n for n*mean^2; behind the bar: the true SD\n\
         # of the latency in ms, mean and maximum of the time from timer to CPU in us\n\
         Load set to {} processors\n\nUsing simulated time, running every load for {}\n",
        args.burn, args.duration
    );
    let mut last = "";
    for (&(task, against), metrics) in pairs.iter().zip(&shown.loads) {
        if task != last {
            text.push_str(&head(task));
            last = task;
        }
        text.push_str(&line(task, against, metrics));
    }
    text
}

fn has_deadlines(task: &str) -> bool {
    task != "gaming"
}

fn head(task: &str) -> String {
    let deadlines = if has_deadlines(task) { "  % Deadlines Met" } else { "" };
    let head =
        expand_tabs(&format!("Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU{deadlines}"));
    format!(
        "\n--- Benchmarking simulated cpu of {} in the presence of simulated ---\n\
         {head:<73} | true SD  wakeup   max us\n",
        label(task)
    )
}

fn line(task: &str, against: &str, metrics: &Metrics) -> String {
    let benchmark = &metrics.benchmark;
    let ms = |ns: f64| ns / 1e6;
    let max = |max: Option<u64>| ms(max.map_or(f64::NAN, |max| max as f64));
    let deadlines = match has_deadlines(task) {
        true => {
            format!("\t{}", three_digits(benchmark.deadlines_met_percent().unwrap_or(f64::NAN), 11))
        }
        false => String::new(),
    };
    let left = expand_tabs(&format!(
        "{}\t{:6.1} +/- {:<8.1}{:6.1}\t\t{}{deadlines}",
        label(against),
        ms(benchmark.latency.mean()),
        ms(benchmark.interbench_sd()),
        max(benchmark.latency.max()),
        three_digits(benchmark.desired_cpu_percent().unwrap_or(f64::NAN), 4),
    ));
    let wakeup = match benchmark.wakeup.count() {
        0 => format!("{:>8}{:>9}", "-", "-"),
        _ => format!(
            "{:8.1}{:9.1}",
            1000.0 * ms(benchmark.wakeup.mean()),
            1000.0 * max(benchmark.wakeup.max())
        ),
    };
    format!("{left:<73} | {:7.3}{wakeup}\n", ms(benchmark.latency.sd()))
}

fn result(task: &str, against: &str, metrics: &Metrics) -> Value {
    let benchmark = &metrics.benchmark;
    json!({
        "task": task,
        "against": against,
        "latency_ns": distribution(&benchmark.latency),
        "interbench_sd_ns": benchmark.interbench_sd(),
        "wakeup_ns": distribution(&benchmark.wakeup),
        "desired_cpu_percent": benchmark.desired_cpu_percent(),
        "deadlines_met_percent": benchmark.deadlines_met_percent(),
    })
}
