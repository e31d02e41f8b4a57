//! Agents that fail, one after the other, and what becomes of the machine. The scheduler of the
//! orders has to be the kernel's own.
//!
//! Arguments: `kinds`, with commas between: `kill` and `stop` do that to the agent, `pause` has it
//! stand still for a tenth of a second, which it has to survive, others are how its policy goes
//! wrong; `policy`.
//!
//! Prose: `KIND: ` and why the agent has ended. Values, in nanoseconds: `KIND_back_after_ns`, from
//! the signal until the kernel's own scheduler is back, or without one the longest time for which
//! this program did not run, none for `pause`; `KIND_progress_min_ns`, CPU time that each process,
//! two for each CPU, has used in the fifth of a second after that, at least.

use std::hint::black_box;
use std::num::NonZero;
use std::thread::available_parallelism;

use anysched_loader::Agent;
use anysched_programs::{Kernel, text};
use anysched_wire::start::Start;
use anysched_wire::status;
use rustix::process::Signal;

use crate::agent;
use crate::kernel::Linux;
use crate::machine::refuse;
use crate::process::Process;
use crate::report::value;
use crate::scheduler::{state, why_dead};

const MILLISECOND: u64 = 1_000_000;

/// At which pick a policy goes wrong: when the processes are at work.
const AT: u64 = 100;
/// Time under the policy before an agent gets a signal.
const BEFORE: u64 = 50 * MILLISECOND;
/// How long an agent pauses: several times as long as CPUs wait before they help themselves, and a
/// third of what ends it.
const PAUSE: u64 = 100 * MILLISECOND;
/// Time in which an agent that has paused may fail all the same.
const GOES_ON: u64 = 600 * MILLISECOND;
/// Time in which the processes are to have run after that.
const AFTER: u64 = 200 * MILLISECOND;
/// The longest that is waited. sched_ext's watchdog looks for tasks that have waited for 5 s.
const PATIENCE: u64 = 20_000 * MILLISECOND;

/// Runs the program.
pub fn agent_fault() {
    let argument = |name, default| text::<Linux>(name).unwrap_or(default);
    let policy = argument("policy", "cfs");
    let processes: Vec<Process> = (0..2 * cpus()).map(|_| Process::start(spin)).collect();
    for kind in argument("kinds", "kill,stop,loop,panic,contract,memory").split(',') {
        fault(policy, kind, &processes);
    }
    processes.into_iter().for_each(Process::kill);
}

/// Has an agent fail, or pause.
fn fault(policy: &str, kind: &str, processes: &[Process]) {
    let signal = match kind {
        "kill" => Some(Signal::KILL),
        "stop" | "pause" => Some(Signal::STOP),
        _ => None,
    };
    let start = Start {
        policy: policy.into(),
        checked: kind == "contract",
        fault: signal.is_none().then(|| (kind.into(), AT)),
        ..Start::default()
    };
    let must = |done: Result<(), String>| {
        done.unwrap_or_else(|why| refuse(format_args!("{kind}: {why}")));
    };
    must(agent::start(start));
    let mut start = Linux::now();
    if let Some(signal) = signal {
        sleep(BEFORE);
        start = Linux::now();
        must(agent::send(signal));
    }
    if kind == "pause" {
        sleep(PAUSE);
        must(agent::send(Signal::CONT));
        sleep(GOES_ON);
        if state() != "enabled" {
            refuse(format_args!("{kind}: {}", agent::last_words()));
        }
    } else {
        let longest = longest_pause(kind, start);
        let back = if signal.is_some() { Linux::now() - start } else { longest };
        value(&format!("{kind}_back_after_ns"), back);
    }
    let before: Vec<u64> = processes.iter().map(Process::cpu_time).collect();
    sleep(AFTER);
    let progress =
        processes.iter().zip(before).map(|(process, before)| process.cpu_time() - before);
    value(&format!("{kind}_progress_min_ns"), progress.min().unwrap_or_default());
    must(agent::stop());
    println!("{kind}: {}", why_ended());
}

/// Why the last agent has ended: what it has left, if it could.
fn why_ended() -> String {
    let status = Agent::status().and_then(|text| status::read(text.as_bytes()).ok());
    why_dead(&status.unwrap_or_default()).unwrap_or_else(|| "it has left no reason".into())
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

/// Waits until the kernel's own scheduler is back. Returns the longest time between two looks.
fn longest_pause(kind: &str, start: u64) -> u64 {
    let (mut last, mut longest) = (start, 0);
    while state() != "disabled" {
        if last - start > PATIENCE {
            refuse(format_args!("{kind}: the scheduler is {} after {PATIENCE} ns", state()));
        }
        sleep(MILLISECOND);
        let now = Linux::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}
