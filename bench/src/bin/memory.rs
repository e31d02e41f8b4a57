//! Memory and time with many tasks. `memory POLICY TASKS` runs a closed batch and prints
//! milliseconds and bytes per task: the growth of the process's peak over that of a batch of one
//! task. `memory POLICY TASKS alone` makes as many tasks ready in the policy, without a simulator
//! or a load, and prints the same two figures.

use anysched_bench::{batch, machine, registered, run};
use anysched_core::{Arrival, CpuMask, Cx, Enqueue, Scheduler, Span, TaskId, TaskParams, Time};
use anysched_trace::NoTrace;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let policy = args.next().unwrap_or_else(|| "fcfs".into());
    let tasks: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let alone = args.next().is_some_and(|word| word == "alone");
    let machine = machine(4);
    let play = |tasks: u32| {
        let scheduler = registered(&policy, &machine);
        if alone {
            drop(ready(scheduler, tasks));
        } else {
            run(&machine, scheduler, batch(tasks.into()), Time::NEVER, NoTrace);
        }
    };
    play(1);
    let before = peak_bytes();
    let started = Instant::now();
    play(tasks);
    let ms = started.elapsed().as_secs_f64() * 1000.0;
    let bytes = (peak_bytes() - before) as f64 / f64::from(tasks);
    println!("{policy} {tasks} {ms:.1} {bytes:.1}");
}

/// `scheduler` with `tasks` ready tasks whose bursts differ.
fn ready(mut scheduler: Box<dyn Scheduler>, tasks: u32) -> Box<dyn Scheduler> {
    let mut kicks = CpuMask::EMPTY;
    let mut cx = Cx::new(Time(0), &mut kicks);
    for task in (0..tasks).map(TaskId) {
        scheduler.attach(&mut cx, task, &TaskParams::default());
        let burst = Some(Span(u64::from(task.0.wrapping_mul(2_654_435_769)) + 1));
        scheduler.enqueue(&mut cx, task, Arrival { burst, ..Arrival::because(Enqueue::New) });
    }
    scheduler
}

/// This process's peak memory, from Linux's /proc; 0 elsewhere.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
