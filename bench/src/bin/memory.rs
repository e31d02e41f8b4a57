//! Time and memory of one closed batch: `memory POLICY TASKS` prints milliseconds and bytes a
//! task, the growth of the process's peak over a batch of one task.

use anysched_bench::{batch, machine, registered, run};
use anysched_core::Time;
use anysched_trace::NoTrace;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let policy = args.next().unwrap_or_else(|| "fcfs".into());
    let tasks: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let machine = machine(4);
    let play = |tasks| {
        let scheduler = registered(&policy, &machine);
        run(&machine, scheduler, batch(tasks), Time::NEVER, NoTrace).0.completed
    };
    play(1);
    let before = peak_bytes();
    let started = Instant::now();
    let completed = play(tasks);
    let time = started.elapsed();
    let bytes = (peak_bytes() - before) as f64 / completed as f64;
    println!("{policy} {completed} {:.1} {bytes:.1}", time.as_secs_f64() * 1000.0);
}

/// The most memory that this process has had, from Linux's /proc; 0 elsewhere.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
