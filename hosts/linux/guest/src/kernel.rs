//! What Linux gives programs. Tasks are threads of this process.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};

use anysched_programs::{Kernel, Task, Usage};
use anysched_wire::boot::Boot;
use anysched_wire::result::Message;
use rustix::thread::{clock_nanosleep_absolute, sched_yield};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

use crate::gate::{Gate, Shut};
use crate::signal::{Alone, Wakes};
use crate::usage::Begun;
use crate::{attributes, machine, orders, procfs, scheduler};

/// Enough for the programs, and little enough for thousands of tasks. In bytes.
const STACK: usize = 64 << 10;

const SECOND: u64 = 1_000_000_000;

/// A time or span of the kernel's, in nanoseconds.
pub fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Linux.
pub struct Linux;

/// A thread that was started.
pub struct Handle {
    thread: RefCell<Option<JoinHandle<()>>>,
    used: Arc<OnceLock<Usage>>,
}

impl Kernel for Linux {
    type Handle = Handle;
    type Signal = Wakes;
    type Guarded<T: Send + 'static> = Alone<T>;
    type Together = Shut;

    const COUNTS: bool = true;
    const HAS_NICENESS: bool = true;

    fn boot() -> &'static Boot {
        orders::boot()
    }

    fn script() -> Vec<u8> {
        orders::script()
    }

    fn say(message: &Message) {
        // Whether anyone listens makes no difference to the program.
        let _ = writeln!(io::stdout(), "{message}");
    }

    fn refuse(why: impl Display) -> ! {
        machine::refuse(why)
    }

    fn now() -> u64 {
        nanoseconds(clock_gettime(ClockId::Monotonic))
    }

    fn cpu_time() -> u64 {
        nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
    }

    fn tick() -> u64 {
        // The coarse clock goes by ticks.
        nanoseconds(clock_getres(ClockId::MonotonicCoarse))
    }

    fn yield_now() {
        sched_yield();
    }

    fn sleep_until(time: u64) {
        let time =
            Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as i64 as _ };
        // It may be interrupted by a signal, and then goes on.
        while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
    }

    fn set_nice(nice: i32) {
        if let Err(error) = attributes::set_nice(None, nice) {
            machine::refuse(format_args!("a task of niceness {nice}: {error}"));
        }
    }

    fn set_cpus(cpus: &[u32]) {
        let list: Vec<usize> = match cpus {
            [] => (0..attributes::MAX_CPU).collect(),
            cpus => cpus.iter().map(|cpu| *cpu as usize).collect(),
        };
        if let Err(error) = attributes::set_cpus(None, &list) {
            machine::refuse(format_args!("a task on CPUs {cpus:?}: {error}"));
        }
    }

    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> Handle {
        let used = Arc::new(OnceLock::new());
        let (gate, own) = (Gate::current(), used.clone());
        let (nice, cpus) = (task.nice, task.cpus.clone());
        let body = move || {
            if nice != 0 {
                Linux::set_nice(nice);
            }
            if !cpus.is_empty() {
                Linux::set_cpus(&cpus);
            }
            let has_waited = gate.is_some_and(|gate| gate.pass());
            let begun = Begun::now(has_waited);
            body();
            // To ask takes longer than to end.
            if Arc::strong_count(&own) > 1 {
                let _ = own.set(begun.used());
            }
        };
        // Names of threads are C's.
        let name = task.name.replace('\0', "");
        match Builder::new().name(name).stack_size(STACK).spawn(body) {
            Ok(thread) => Handle { thread: RefCell::new(Some(thread)), used },
            Err(error) => machine::refuse(format_args!("task \"{}\": {error}", task.name)),
        }
    }

    fn join(task: &Handle) {
        if let Some(thread) = task.thread.take() {
            // A panic has ended the machine.
            let _ = thread.join();
        }
    }

    fn usage(task: &Handle) -> Option<Usage> {
        task.used.get().copied()
    }

    fn together() -> Shut {
        Shut::new()
    }

    fn switches() -> Option<u64> {
        procfs::switches(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn policy_time() -> Option<u64> {
        scheduler::policy_time()
    }
}
