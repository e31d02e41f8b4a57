//! What becomes of the machine when the agent fails.
//!
//! Argument: `how`: `kill` and `stop` do that to the agent; `wait` waits for one that fails by
//! itself.
//!
//! Values, in nanoseconds: `back_after_ns`, from the signal until the kernel's own scheduler is
//! back, or without one the longest time for which this program did not run; `progress_min_ns`, CPU
//! time that each process, two for each CPU, has used in the half second after that, at least.

use std::hint::black_box;
use std::num::NonZero;
use std::thread::available_parallelism;

use anysched_programs::Kernel;
use rustix::process::{Pid, Signal, kill_process};

use crate::agent;
use crate::kernel::Linux;
use crate::machine::refuse;
use crate::process::Process;
use crate::report::value;
use crate::scheduler::state;

const MILLISECOND: u64 = 1_000_000;

/// Time under the policy before the agent fails.
const BEFORE: u64 = 50 * MILLISECOND;
/// Time in which the processes are to have run after that.
const AFTER: u64 = 500 * MILLISECOND;
/// The longest that is waited.
const PATIENCE: u64 = 5_000 * MILLISECOND;

/// Runs the program.
pub fn agent_fault() {
    let how = Linux::boot().argument("how").unwrap_or("wait");
    let signal = match how {
        "kill" => Some(Signal::KILL),
        "stop" => Some(Signal::STOP),
        "wait" => None,
        other => refuse(format_args!("`how` = \"{other}\": kill, stop or wait is wanted")),
    };
    let processes: Vec<Process> = (0..2 * cpus()).map(|_| Process::start(spin)).collect();
    sleep(BEFORE);
    agent::expect_end();
    let start = Linux::now();
    if let Some((signal, agent)) = signal.zip(agent::process()) {
        send(agent, signal);
    }
    let longest = longest_pause(start);
    let back = Linux::now() - start;
    value("back_after_ns", if signal.is_some() { back } else { longest });
    let before: Vec<u64> = processes.iter().map(Process::cpu_time).collect();
    sleep(AFTER);
    let progress =
        processes.iter().zip(before).map(|(process, before)| process.cpu_time() - before);
    value("progress_min_ns", progress.min().unwrap_or_default());
    processes.into_iter().for_each(Process::kill);
}

fn cpus() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns + 1);
    }
}

fn sleep(span: u64) {
    Linux::sleep_until(Linux::now() + span);
}

fn send(agent: Pid, signal: Signal) {
    if let Err(error) = kill_process(agent, signal) {
        refuse(format_args!("the agent gets no signal: {error}"));
    }
}

/// Waits until the kernel's own scheduler is back. Returns the longest time between two looks.
fn longest_pause(start: u64) -> u64 {
    let (mut last, mut longest) = (start, 0);
    while state() != "disabled" {
        if last - start > PATIENCE {
            refuse(format_args!(
                "the scheduler is {} {PATIENCE} ns after the agent failed",
                state()
            ));
        }
        sleep(MILLISECOND);
        let now = Linux::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}
