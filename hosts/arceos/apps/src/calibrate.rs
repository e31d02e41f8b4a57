//! What scheduling costs on this machine, for simulations of it.
//!
//! Values, in picoseconds unless they count:
//! - `divide_ps`, `shift_ps`: an iteration of each loop;
//! - `yield_ps_N`: a yield, while N tasks do nothing else, and `yield_switches_N`: how many of a
//!   thousand go to another task, where the kernel counts them;
//! - `wakeup_ps`: one of two tasks wakes the other and waits until that wakes it;
//! - `interrupt_ps`: a timer interrupt, of which there is one every 10 ms;
//! - `start_ps`, `end_ps`: what starting a task takes from the task that starts it; its first turn
//!   and end.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

use anysched_wire::result::Message;
use axtask::yield_now;

use crate::Kernel;
use crate::crew::{Crew, Task, argument, now};
use crate::signal::Signal;
use crate::work::{divide, shift};

/// A tick, and the interval at which a timer with nothing else to do interrupts, in nanoseconds.
const TICK: u64 = 10_000_000;

fn say(name: &str, number: u64) {
    crate::say(&Message::Value { name: name.into(), number });
}

fn task(kind: &str, number: u64) -> Task {
    Task { name: format!("{kind}-{number}"), work: None }
}

/// `tasks` tasks do nothing but yield.
fn yields(kernel: &Kernel, tasks: u64) {
    let each = argument("yields", 20_000) / tasks;
    let (start, switches) = (now(), (kernel.switches)());
    let mut crew = Crew::new(kernel);
    for i in 0..tasks {
        crew.start(task("yielder", i), move |_| {
            for _ in 0..each {
                yield_now();
            }
        });
    }
    crew.wait();
    let yields = each * tasks;
    say(&format!("yield_ps_{tasks}"), (now() - start) * 1000 / yields);
    if let (Some(before), Some(after)) = (switches, (kernel.switches)()) {
        say(&format!("yield_switches_{tasks}"), (after - before) * 1000 / yields);
    }
}

/// Whose turn it is, and who waits for it.
struct Turn {
    whose: AtomicU64,
    waiting: [Signal; 2],
}

/// Two tasks that wake each other.
fn wakeups(kernel: &Kernel) {
    let each = argument("wakeups", 2_000);
    let turn = Arc::new(Turn { whose: AtomicU64::new(0), waiting: [Signal::new(), Signal::new()] });
    let start = now();
    let mut crew = Crew::new(kernel);
    for own in 0..2 {
        let turn = turn.clone();
        crew.start(task("waker", own), move |_| {
            for _ in 0..each {
                turn.waiting[own as usize].wait_until(|| turn.whose.load(Acquire) == own);
                turn.whose.store(1 - own, Release);
                turn.waiting[1 - own as usize].wake();
            }
        });
    }
    crew.wait();
    say("wakeup_ps", (now() - start) * 1000 / (2 * each));
}

/// Picoseconds that an iteration of `work` takes when nothing interrupts it.
fn per_iteration(work: fn(u64)) -> u64 {
    const ITERATIONS: u64 = 20_000;
    let measured = (0..4).map(|_| {
        let start = now();
        work(ITERATIONS);
        (now() - start) * 1000 / ITERATIONS
    });
    measured.min().unwrap_or(0)
}

/// How much longer a task computes because of the timer.
fn interrupts(iteration: u64) {
    const TICKS: u64 = 20;
    let iterations = TICKS * TICK * 1000 / iteration;
    let start = now();
    shift(iterations);
    let end = now();
    let interrupts = (end / TICK - start / TICK).max(1);
    say(
        "interrupt_ps",
        (end - start).saturating_sub(iterations * iteration / 1000) * 1000 / interrupts,
    );
}

/// Tasks that end at once.
fn starts(kernel: &Kernel) {
    const TASKS: u64 = 64;
    let left = Arc::new((AtomicU64::new(TASKS), Signal::new()));
    let start = now();
    for _ in 0..TASKS {
        let left = left.clone();
        let body = Box::new(move || {
            if left.0.fetch_sub(1, AcqRel) == 1 {
                left.1.wake();
            }
        });
        (kernel.spawn)(&Task { name: String::from("short"), work: None }, body);
    }
    let begun = now();
    left.1.wait_until(|| left.0.load(Acquire) == 0);
    let ended = now();
    say("start_ps", (begun - start) * 1000 / TASKS);
    say("end_ps", (ended - begun) * 1000 / TASKS);
}

/// Measures, and reports the results.
pub fn calibrate(kernel: &Kernel) {
    let iteration = per_iteration(shift);
    say("divide_ps", per_iteration(divide));
    say("shift_ps", iteration);
    interrupts(iteration);
    starts(kernel);
    wakeups(kernel);
    for tasks in [1, 4, 64] {
        yields(kernel, tasks);
    }
}
