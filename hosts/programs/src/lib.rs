//! Programs that put a scheduler to the test, whichever kernel it is in: the same code runs in
//! every kernel that gives them what [`Kernel`] asks for.
//!
//! [`run`] runs one of them, which [says](Kernel::say) what became of its tasks and what else it
//! has measured.
//!
//! All programs that start tasks take one argument in common: with `hold=1` handles of tasks are
//! held until all have ended, as in programs that join each.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod among;
mod arguments;
mod batch;
mod calibrate;
mod cases;
mod crew;
mod interbench;
mod summary;
mod work;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

use anysched_wire::boot::Boot;
use anysched_wire::result::Message;

pub use arguments::{argument, numbers, text};
pub use crew::{Crew, Notes};
pub use summary::Summary;
pub use work::{Burner, CALIBRATION, divide, shift};

/// What programs need of a kernel. There is one kernel, so nothing here takes a value of it.
pub trait Kernel: 'static {
    /// A task that was started.
    type Handle;
    /// What tasks wait for.
    type Signal: Signal;
    /// What tasks look at one after another.
    type Guarded<T: Send + 'static>: Guarded<T>;
    /// While it is there, tasks that are started do not run on this CPU.
    type Together;

    /// Whether CPU time and dispatches of tasks are counted.
    const COUNTS: bool;
    /// Whether tasks have niceness.
    const HAS_NICENESS: bool;

    /// What to run.
    fn boot() -> &'static Boot;

    /// The text of the [script](anysched_wire::script).
    fn script() -> Vec<u8>;

    /// Says something to the host.
    fn say(message: &Message);

    /// Says why what the host asks for cannot be done, and ends the machine.
    fn refuse(why: impl Display) -> !;

    /// Nanoseconds since boot.
    fn now() -> u64;

    /// CPU time of the current task in nanoseconds, by which loops are calibrated. Where it is not
    /// counted, this is the time, and nothing else may run meanwhile.
    fn cpu_time() -> u64 {
        Self::now()
    }

    /// How many iterations of a loop tell its speed.
    fn calibration() -> u64 {
        CALIBRATION
    }

    /// The interval at which a timer with nothing else to do interrupts, in nanoseconds.
    fn tick() -> u64;

    /// Lets another task run, if the scheduler wants to.
    fn yield_now();

    /// Blocks the current task until a time in nanoseconds since boot.
    fn sleep_until(time: u64);

    /// As [`Kernel::sleep_until`]. After that the task uses `burst` nanoseconds of CPU time before
    /// it may block again.
    fn sleep_before(time: u64, burst: u64) {
        let _ = burst;
        Self::sleep_until(time);
    }

    /// Says that a task which is blocked uses `burst` nanoseconds of CPU time, once it is woken,
    /// before it may block again.
    fn expect(task: &Self::Handle, burst: u64) {
        let _ = (task, burst);
    }

    /// Has the current task be of this niceness, where the kernel knows that. Others refuse.
    fn set_nice(nice: i32) {
        Self::refuse(format_args!("this kernel has no niceness, such as {nice}"))
    }

    /// Has the current task run on these CPUs only, or on all if there are none, where the kernel
    /// knows that. Others refuse.
    fn set_cpus(cpus: &[u32]) {
        Self::refuse(format_args!("this kernel binds no task to CPUs, such as {cpus:?}"))
    }

    /// Sets a parameter of the policy, where programs can. Others refuse.
    fn set_param(name: &str, _value: &str) {
        Self::refuse(format_args!("programs cannot set `{name}` of the policy in this kernel"))
    }

    /// Starts a task that runs `body`.
    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> Self::Handle;

    /// Waits until a task has ended.
    fn join(task: &Self::Handle);

    /// What a task that has ended has used, where that is counted.
    fn usage(task: &Self::Handle) -> Option<Usage>;

    /// Has tasks that arrive together all be there before one of them runs.
    fn together() -> Self::Together;

    /// How many times CPUs have switched tasks, where that is counted.
    fn switches() -> Option<u64>;

    /// Nanoseconds that calls of the policy have taken so far, where that is always measured.
    fn policy_time() -> Option<u64> {
        None
    }
}

/// What one task at a time waits for, until others have done something.
pub trait Signal: Default + Send + Sync + 'static {
    /// Blocks the current task until `is_done`, which is checked again after each [`Signal::wake`].
    fn wait_until(&self, is_done: impl Fn() -> bool);

    /// Wakes the task that waits.
    fn wake(&self);
}

/// Something that one task at a time looks at.
pub trait Guarded<T>: Send + Sync + 'static {
    /// Guards it.
    fn new(guarded: T) -> Self;

    /// Looks at it, for some instructions in which nothing blocks.
    fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R;
}

/// A task, as a program describes it before it starts it.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// What the results call it.
    pub name: String,
    /// CPU time that it uses before it may block, in nanoseconds, if the program knows.
    pub work: Option<u64>,
    /// Its niceness, -20 to 19, where the kernel knows that.
    pub nice: i32,
    /// The CPUs on which it may run, where the kernel knows that; all if there are none.
    pub cpus: Vec<u32>,
}

/// What a task has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in nanoseconds.
    pub service: u64,
    /// How often it was picked, where that is counted.
    pub dispatches: Option<u64>,
}

/// Programs start at a multiple of this, in nanoseconds since boot: a tick of ArceOS.
const START: u64 = 10_000_000;

/// Sleeps until the next multiple of [`START`], so that what happened before, such as how long
/// reading the host's orders took, makes no difference from there on.
pub fn sleep_until_start<K: Kernel>() {
    K::sleep_until((K::now() / START + 1) * START);
}

/// Says a measured number.
pub fn value<K: Kernel>(name: &str, number: u64) {
    K::say(&Message::Value { name: name.into(), number });
}

/// Runs the program of this name; `false` if there is none.
pub fn run<K: Kernel>(name: &str) -> bool {
    match name {
        "batch" => batch::batch::<K>(),
        "interbench" => interbench::interbench::<K>(),
        "calibrate" => calibrate::calibrate::<K>(),
        case => return cases::run::<K>(case),
    }
    true
}
