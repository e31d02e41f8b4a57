//! Prints in JSON what the scheduler of a recording decided: how often it switched and moved tasks,
//! and when and where they ran after they were woken.
//!
//! ```text
//! cargo run --release -p anysched-workload --example decisions -- FILE TASKS IDLE_EXIT
//! ```
//!
//! FILE is a recording of `sched_switch` and wake-ups in ftrace's text, packed or not. TASKS says
//! of which tasks wake-ups count: `all`; `known`, all but those that the recording calls `other`;
//! `numbered`, those whose names end with a number. IDLE_EXIT, in ns, is how much later a task ran
//! than the switch of an idle CPU to it; 0 if switches show that. What there is none of is null.

use anysched_core::Span;
use anysched_workload::import::ftrace::{Decisions, Recording, Softirqs, mean, percentile};
use std::error::Error;
use std::fs::File;
use std::process::ExitCode;

const USAGE: &str = "usage: decisions FILE all|known|numbered IDLE_EXIT";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match decisions(&args) {
        Ok(decisions) => {
            println!("{}", figures(&decisions));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("decisions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn decisions(args: &[String]) -> Result<Decisions, Box<dyn Error>> {
    let [path, tasks, idle_exit] = args else { return Err(USAGE.into()) };
    let is_meant: fn(&str) -> bool = match tasks.as_str() {
        "all" => |_| true,
        "known" => |name| !name.starts_with("other-"),
        "numbered" => is_numbered,
        other => return Err(format!("no tasks \"{other}\"\n{USAGE}").into()),
    };
    let idle_exit: u64 = idle_exit
        .parse()
        .map_err(|error| format!("\"{idle_exit}\" is no number of ns: {error}\n{USAGE}"))?;
    let failed = |error: &dyn Error| format!("{path}: {error}");
    let file = File::open(path).map_err(|error| failed(&error))?;
    let recording = Recording::read(file).map_err(|error| failed(&error))?;
    let replay = recording.replay(Softirqs::default());
    let is_meant =
        |task: usize| is_meant(replay.model.tasks[task].new.name.as_deref().unwrap_or_default());
    Ok(Decisions::of(&replay, recording.cpus(), Span(idle_exit), is_meant))
}

/// Whether a name ends with a number before the pid that importing adds.
fn is_numbered(name: &str) -> bool {
    let Some((name, _)) = name.rsplit_once('-') else { return false };
    let number = name.rsplit_once('-').map_or("", |(_, number)| number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !name.contains('/')
}

fn figures(decisions: &Decisions) -> serde_json::Value {
    serde_json::json!({
        "involuntary_switches": decisions.involuntary,
        "migrations": decisions.migrations,
        "wakeup_latency_ns_mean": mean(&decisions.latencies),
        "wakeup_latency_ns_p95": percentile(&decisions.latencies, 95).map(|span| span.0),
        "first_run_of_new_tasks_ns_mean": mean(&decisions.first_waits),
        "share_to_previous_cpu": decisions.share(decisions.to_previous),
        "share_to_wakers_cpu": decisions.share_to_waker(),
        "share_to_busy_cpu": decisions.share(decisions.to_busy),
        "share_to_busy_cpu_while_another_was_idle": decisions.share(decisions.past_idle),
    })
}
