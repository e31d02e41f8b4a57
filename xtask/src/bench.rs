//! Benchmarks, and the page that shows their results.
//!
//! Every figure of docs/performance.md is read from what criterion has just measured, and every
//! claim is a ratio of two figures of the same run: absolute times depend on the machine.

use crate::run::{Failed, cargo, cargo_command, output, root};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;

/// Runs the benchmarks and writes docs/performance.md. With a filter, or `--quick`, only runs.
pub fn bench(args: &[&str]) -> Result<(), Failed> {
    let mut command = vec!["bench", "--quiet", "-p", "anysched-bench", "--"];
    if args.contains(&"--quick") {
        command.extend(["--warm-up-time", "0.3", "--measurement-time", "1"]);
    }
    command.extend(args.iter().filter(|arg| **arg != "--quick"));
    cargo(&command)?;
    if !args.is_empty() {
        return Ok(());
    }
    let page = page()?;
    let path = root().join("docs/performance.md");
    std::fs::write(&path, page).map_err(|error| Failed(format!("{}: {error}", path.display())))
}

fn target() -> PathBuf {
    std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from)
}

/// What criterion measured last: the median in ns, per element where the benchmark counts them.
fn measured(group: &str, name: &str) -> Result<f64, Failed> {
    let folder = target().join("criterion").join(group).join(name).join("new");
    let read = |file: &str| -> Result<Value, Failed> {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
        serde_json::from_str(&text).map_err(|error| Failed(format!("{}: {error}", path.display())))
    };
    let wrong = || Failed(format!("{}: not what criterion writes", folder.display()));
    let median = read("estimates.json")?["median"]["point_estimate"].as_f64().ok_or_else(wrong)?;
    let elements = read("benchmark.json")?["throughput"]["Elements"].as_u64();
    Ok(median / elements.unwrap_or(1) as f64)
}

const SIZES: [&str; 3] = ["16", "1000", "100000"];
const POLICIES: [&str; 7] = ["fcfs (static)", "fcfs", "rr", "mlfq", "srpt", "cfs", "eevdf"];
const PAIRS: [(&str, &str); 3] =
    [("fcfs", "axsched-fifo"), ("rr", "axsched-rr"), ("cfs-arceos", "axsched-cfs")];

fn page() -> Result<String, Failed> {
    let mut page = String::from(
        "# Performance\n\nWritten by `cargo xtask bench`, all in one run on one machine; one core \
         is used at a time. Compare the ratios: the times are those of that machine.\n",
    );
    dispatches(&mut page)?;
    queueing(&mut page)?;
    decisions(&mut page)?;
    growth(&mut page)?;
    batches(&mut page)?;
    let ns = measured("tracing", "perfetto file")?;
    let _ = write!(
        page,
        "\n## Tracing\n\nThe load of the first table with every event written to a Perfetto file: \
         {:.1} M events/s.\n",
        1e3 / ns
    );
    Ok(page)
}

fn dispatches(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Dispatches\n\n100 periodic tasks, 80 % load, 4 CPUs, no costs, tracing off. `static` \
         is built without dynamic dispatch.\n\n| policy | M dispatches/s | ns each |\n\
         |---|--:|--:|\n",
    );
    for policy in POLICIES {
        let folder = policy.replace(['(', ')'], "").replace(' ', "_");
        let ns = measured("dispatches", policy).or_else(|_| measured("dispatches", &folder))?;
        let _ = writeln!(page, "| {policy} | {:.1} | {ns:.0} |", 1e3 / ns);
    }
    Ok(())
}

fn queueing(page: &mut String) -> Result<(), Failed> {
    let (bare, ours) = (measured("mm1", "bare heap loop")?, measured("mm1", "fcfs")?);
    let _ = write!(
        page,
        "\n## M/M/1\n\nAgainst a bare loop over a binary heap that only counts waiting times: \
         {ours:.1} ns an event against {bare:.1} ns, {:.2} times.\n",
        ours / bare
    );
    Ok(())
}

fn decisions(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Decisions\n\nPick, tick and put on one CPU, ns, beside ArceOS's `axsched` 0.3.1, \
         which has no clock, reasons, CPU time or kicks.\n\n| tasks | policy | here | axsched | \
         ratio |\n|--:|---|--:|--:|--:|\n",
    );
    for (ours, theirs) in PAIRS {
        for size in SIZES {
            let here = measured("decision", &format!("{ours}/{size}"))?;
            let there = measured("decision", &format!("{theirs}/{size}"))?;
            let ratio = here / there;
            let _ = writeln!(page, "| {size} | {ours} | {here:.1} | {there:.1} | {ratio:.2} |");
        }
    }
    Ok(())
}

fn growth(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## Growth\n\nPeriodic tasks on 4 CPUs under FCFS. Growth is against 10 tasks, of the \
         time and of log2 n.\n\n| tasks | ns an event | growth | of log2 n |\n|--:|--:|--:|--:|\n",
    );
    let first = measured("growth", "10")?;
    for tasks in [10u32, 1_000, 100_000, 1_000_000] {
        let ns = measured("growth", &tasks.to_string())?;
        let log = f64::from(tasks).log2() / 10f64.log2();
        let _ = writeln!(page, "| {tasks} | {ns:.0} | {:.2} | {log:.2} |", ns / first);
    }
    Ok(())
}

fn batches(page: &mut String) -> Result<(), Failed> {
    page.push_str(
        "\n## A closed batch of 1,000,000 tasks\n\nOn 4 CPUs. Bytes are the growth of the \
         process's peak, load, simulator, policy and metrics together.\n\n| policy | s | bytes a \
         task |\n|---|--:|--:|\n",
    );
    for policy in ["fcfs", "srpt", "cfs", "eevdf"] {
        let line = output(&mut cargo_command(&[
            "run",
            "--quiet",
            "--profile",
            "bench",
            "-p",
            "anysched-bench",
            "--bin",
            "memory",
            "--",
            policy,
            "1000000",
        ]))?;
        let numbers: Vec<f64> =
            line.split_whitespace().skip(2).filter_map(|word| word.parse().ok()).collect();
        let [ms, bytes] = numbers[..] else {
            return Err(Failed(format!("the memory program printed \"{line}\"")));
        };
        let _ = writeln!(page, "| {policy} | {:.2} | {bytes:.0} |", ms / 1000.0);
    }
    Ok(())
}
