//! What scheduling costs on this machine, for simulations of it.
//!
//! Values, in picoseconds unless they count:
//! - `divide_ps`, `shift_ps`: an iteration of each loop;
//! - `yield_ps_N`: a yield, while N tasks do nothing else, and `yield_switches_N`: how many of a
//!   thousand go to another task, where the kernel counts them;
//! - `wakeup_ps`: one of two tasks wakes the other and waits until that wakes it;
//! - `policy_of_yield_ps_N`, `policy_of_wakeup_ps`: what the policy's calls take of that, where the
//!   kernel always measures it;
//! - `interrupt_ps`: a timer interrupt, of which there is one every tick;
//! - `start_ps`, `end_ps`: what starting a task takes from the task that starts it; its first turn
//!   and end;
//! - `idle_ps`: how late a task runs that a timer wakes while the CPU is idle;
//! - `wake_ps`: waking a task that does not run at once, from program to program, and `preempt_ps`:
//!   how late at least a task runs that a timer wakes while a nicer one computes; where the kernel
//!   has niceness.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

use crate::arguments::argument;
use crate::crew::Crew;
use crate::summary::Summary;
use crate::work::{divide, shift};
use crate::{Kernel, Signal, Task, value};

fn task(kind: &str, number: u64) -> Task {
    Task { name: format!("{kind}-{number}"), ..Task::default() }
}

/// Nanoseconds that the policy's calls have taken, as far as it was asked.
struct PolicyTime {
    asked: u64,
    /// What asking takes.
    nothing: u64,
}

impl PolicyTime {
    /// Begins; `None` where it is not measured.
    fn begin<K: Kernel>() -> Option<PolicyTime> {
        let before = K::policy_time()?;
        let asked = K::policy_time()?;
        Some(PolicyTime { asked, nothing: asked - before })
    }

    /// Says what each of `times` has taken.
    fn say<K: Kernel>(&self, name: &str, times: u64) {
        if let Some(time) = K::policy_time() {
            value::<K>(name, (time - self.asked).saturating_sub(self.nothing) * 1000 / times);
        }
    }
}

/// `tasks` tasks do nothing but yield.
fn yields<K: Kernel>(tasks: u64) {
    let each = argument::<K>("yields", 20_000) / tasks;
    let policy = PolicyTime::begin::<K>();
    let (start, switches) = (K::now(), K::switches());
    let mut crew = Crew::<K>::new();
    for i in 0..tasks {
        crew.start(task("yielder", i), move |_| {
            for _ in 0..each {
                K::yield_now();
            }
        });
    }
    crew.wait();
    let yields = each * tasks;
    let (end, switched) = (K::now(), K::switches());
    if let Some(policy) = policy {
        policy.say::<K>(&format!("policy_of_yield_ps_{tasks}"), yields);
    }
    value::<K>(&format!("yield_ps_{tasks}"), (end - start) * 1000 / yields);
    if let (Some(before), Some(after)) = (switches, switched) {
        value::<K>(&format!("yield_switches_{tasks}"), (after - before) * 1000 / yields);
    }
}

/// Whose turn it is, and who waits for it.
struct Turn<S> {
    whose: AtomicU64,
    waiting: [S; 2],
}

/// Two tasks that wake each other.
fn wakeups<K: Kernel>() {
    let each = argument::<K>("wakeups", 2_000);
    let turn = Arc::new(Turn { whose: AtomicU64::new(0), waiting: <[K::Signal; 2]>::default() });
    let policy = PolicyTime::begin::<K>();
    let start = K::now();
    let mut crew = Crew::<K>::new();
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
    let end = K::now();
    if let Some(policy) = policy {
        policy.say::<K>("policy_of_wakeup_ps", 2 * each);
    }
    value::<K>("wakeup_ps", (end - start) * 1000 / (2 * each));
}

/// Picoseconds that an iteration of `work` takes when nothing interrupts it.
fn per_iteration<K: Kernel>(work: fn(u64)) -> u64 {
    const ITERATIONS: u64 = 7_000;
    let least = |iterations| {
        let measured = (0..4).map(|_| {
            let start = K::now();
            work(iterations);
            K::now() - start
        });
        measured.min().unwrap_or(0)
    };
    // What is not in the loop, such as reading the clock, is in both.
    least(2 * ITERATIONS).saturating_sub(least(ITERATIONS)) * 1000 / ITERATIONS
}

/// How much longer a task computes because of the timer.
fn interrupts<K: Kernel>(iteration: u64) {
    const TICKS: u64 = 20;
    let tick = K::tick();
    let iterations = TICKS * tick * 1000 / iteration;
    let start = K::now();
    shift(iterations);
    let end = K::now();
    let interrupts = (end / tick - start / tick).max(1);
    value::<K>(
        "interrupt_ps",
        (end - start).saturating_sub(iterations * iteration / 1000) * 1000 / interrupts,
    );
}

/// Tasks that end at once.
fn starts<K: Kernel>() {
    const TASKS: u64 = 64;
    let left = Arc::new((AtomicU64::new(TASKS), K::Signal::default()));
    let start = K::now();
    for _ in 0..TASKS {
        let left = left.clone();
        let body = Box::new(move || {
            if left.0.fetch_sub(1, AcqRel) == 1 {
                left.1.wake();
            }
        });
        K::spawn(&Task { name: String::from("short"), ..Task::default() }, body);
    }
    let begun = K::now();
    left.1.wait_until(|| left.0.load(Acquire) == 0);
    let ended = K::now();
    value::<K>("start_ps", (begun - start) * 1000 / TASKS);
    value::<K>("end_ps", (ended - begun) * 1000 / TASKS);
}

/// A task that sleeps while there is no other.
fn idles<K: Kernel>() {
    const SLEEPS: u64 = 50;
    // Not a divisor of a tick, whose interrupt would come at the same time.
    const SPAN: u64 = 1_700_000;
    let late = (0..SLEEPS).map(|_| {
        let due = K::now() + SPAN;
        K::sleep_until(due);
        K::now().saturating_sub(due)
    });
    // Half of them, because kernel threads may be in the way of one or the other.
    let late = Summary::of(late.collect()).map_or(0, |late| late.percentile(50));
    value::<K>("idle_ps", late * 1000);
}

/// A task wakes one that is so nice that it goes on itself.
fn wakes<K: Kernel>() {
    const WAKES: u64 = 50;
    // In which the nice task comes to wait again.
    const PAUSE: u64 = 2_300_000;
    let turn = Arc::new((AtomicU64::new(0), K::Signal::default()));
    let waits = turn.clone();
    let mut crew = Crew::<K>::new();
    crew.start(Task { nice: 19, ..task("nice", 0) }, move |_| {
        for round in 1..=WAKES {
            waits.1.wait_until(|| waits.0.load(Acquire) >= round);
        }
    });
    let wake = |round| {
        K::sleep_until(K::now() + PAUSE);
        turn.0.store(round, Release);
        let start = K::now();
        turn.1.wake();
        K::now() - start
    };
    // One that was interrupted says nothing.
    let least = (1..=WAKES).map(wake).min().unwrap_or(0);
    crew.wait();
    value::<K>("wake_ps", least * 1000);
}

/// A timer wakes a task while one computes that is so nice that it has to make room.
fn preempts<K: Kernel>(iteration: u64) {
    const SLEEPS: u64 = 40;
    const SPAN: u64 = 3_300_000;
    let iterations = (SLEEPS + 10) * SPAN * 1000 / iteration;
    let mut crew = Crew::<K>::new();
    crew.start(Task { nice: 19, ..task("nice", 0) }, move |_| shift(iterations));
    let late = (0..SLEEPS).map(|_| {
        let due = K::now() + SPAN;
        K::sleep_until(due);
        K::now().saturating_sub(due)
    });
    let least = late.min().unwrap_or(0);
    crew.wait();
    value::<K>("preempt_ps", least * 1000);
}

/// Measures, and reports the results.
pub fn calibrate<K: Kernel>() {
    let iteration = per_iteration::<K>(shift);
    value::<K>("divide_ps", per_iteration::<K>(divide));
    value::<K>("shift_ps", iteration);
    interrupts::<K>(iteration);
    starts::<K>();
    wakeups::<K>();
    for tasks in [1, 4, 64] {
        yields::<K>(tasks);
    }
    idles::<K>();
    if K::HAS_NICENESS {
        wakes::<K>();
        preempts::<K>(iteration);
    }
}
