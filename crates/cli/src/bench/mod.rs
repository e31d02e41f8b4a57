//! `anysched bench`: simulates benchmarks that exist as tools for Linux and prints their reports.

mod cyclictest;
mod hackbench;
mod interbench;
mod schbench;
mod text;

use crate::bench_args::{BenchArgs, BenchCommand, BenchFormat};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use anysched_lab::Experiment;
use anysched_measure::{Metrics, Summary};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;

pub fn bench(command: &BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::Interbench(args) => interbench::bench(args),
        BenchCommand::Cyclictest(args) => cyclictest::bench(args),
        BenchCommand::Schbench(args) => schbench::bench(args),
        BenchCommand::Hackbench(args) => hackbench::bench(args),
    }
}

/// A policy's results in each of the loads.
struct Shown {
    policy: String,
    loads: Vec<Metrics>,
}

/// Runs each load under each policy. A load is the text of one or more `[[scenario.workload]]`.
fn measure(tool: &str, args: &BenchArgs, loads: &[String]) -> Result<Vec<Shown>, Failure> {
    let experiment = Experiment::parse(&experiment(tool, args, loads), Path::new(tool))
        .map_err(Failure::pointing)?;
    let experiment = choose::changed(experiment, &args.policy, &args.set)?;
    let plan = choose::plan(&experiment)?;
    let cancel = output::cancel_on_interrupt()?;
    let host = hosts::open_usual()?;
    let measured = with_bar(&*host, args.jobs, cancel, None, |options| plan.measure(options))?;
    if cancel.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let policies = plan.policies();
    let shown = |(number, policy): (usize, &anysched_lab::PolicyEntry)| Shown {
        policy: policy.label.clone(),
        loads: measured.iter().skip(number).step_by(policies.len()).cloned().collect(),
    };
    Ok(policies.iter().enumerate().map(shown).collect())
}

/// The experiment. Costs are those of the first example, `experiments/quickstart.toml`, on cores
/// that do 1.2 times as much with two threads.
fn experiment(tool: &str, args: &BenchArgs, loads: &[String]) -> String {
    let topology = Value::from(args.topology.as_str());
    let mut text = format!(
        "question = \"What does {tool} say?\"\n\
         policy = [\"cfs\"]\n\
         [machine]\n\
         topology = {topology}\n\
         context_switch = \"1.5us\"\n\
         migration = {{ core = \"1us\", llc = \"10us\", node = \"30us\" }}\n\
         pick = \"200ns\"\n\
         enqueue = \"200ns\"\n\
         tick = \"1ms\"\n\
         smt = 0.6\n"
    );
    for (number, load) in loads.iter().enumerate() {
        text.push_str(&format!("[[scenario]]\nname = \"{number}\"\n{load}"));
    }
    text
}

/// Prints the reports of all policies.
fn print(
    tool: &str,
    args: &BenchArgs,
    all: &[Shown],
    text: impl Fn(&Shown) -> String,
    json: impl Fn(&Metrics, usize) -> Value,
) -> Result<(), Failure> {
    if args.format == BenchFormat::Text {
        let head = |shown: &Shown| {
            format!("# {tool}, simulated: {} on {}\n{}", shown.policy, args.topology, text(shown))
        };
        return output::print(&all.iter().map(head).collect::<Vec<_>>().join("\n"));
    }
    let of_policy = |shown: &Shown| {
        let loads = shown.loads.iter().enumerate();
        let results: Vec<Value> = loads.map(|(number, metrics)| json(metrics, number)).collect();
        json!({
            "tool": tool,
            "policy": shown.policy,
            "topology": args.topology,
            "results": results,
        })
    };
    let all: Vec<Value> = all.iter().map(of_policy).collect();
    output::print(&format!("{:#}\n", Value::from(all)))
}

/// A distribution of times in ns.
fn distribution(summary: &Summary) -> Value {
    let percentiles = summary.percentiles([50.0, 90.0, 99.0, 99.9]);
    let [p50, p90, p99, p999] = percentiles.map_or([None; 4], |found| found.map(Some));
    json!({
        "count": summary.count(),
        "mean": summary.mean(),
        "sd": summary.sd(),
        "min": summary.min(),
        "p50": p50,
        "p90": p90,
        "p99": p99,
        "p99.9": p999,
        "max": summary.max(),
    })
}
