//! What ArceOS gives programs.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;
use core::marker::PhantomData;

use anysched_arceos_qemu as qemu;
use anysched_programs::{CALIBRATION, Kernel, Task, Usage};
use anysched_wire::boot::Boot;
use anysched_wire::result::Message;
use anysched_wire::script;
use axtask::AxTaskRef;
use kernel_guard::NoPreempt;
use std::println;

use crate::signal::{Alone, Waiting};

/// What differs between images scheduled by a policy of anysched and others.
pub trait Image: 'static {
    /// Whether CPU time and dispatches of tasks are counted.
    const COUNTS: bool;

    /// How many iterations of a loop tell its speed.
    const CALIBRATION: u64 = CALIBRATION;

    /// Starts a task that runs `body`.
    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> AxTaskRef;

    /// Blocks the current task until a time in nanoseconds since boot.
    fn sleep_until(time: u64);

    /// As [`Kernel::sleep_before`].
    fn sleep_before(time: u64, burst: u64) {
        let _ = burst;
        Self::sleep_until(time);
    }

    /// As [`Kernel::expect`].
    fn expect(task: &AxTaskRef, burst: u64) {
        let _ = (task, burst);
    }

    /// Sets a parameter of the policy.
    ///
    /// Errors: the policy refuses, or there is none that has any.
    fn set_param(name: &str, value: &str) -> Result<(), String>;

    /// CPU time and dispatches of a task, where they are counted.
    fn usage(task: &AxTaskRef) -> Option<Usage>;

    /// How many times CPUs have switched tasks, where that is counted.
    fn switches() -> Option<u64>;

    /// Reports what the kernel has measured of itself.
    fn measured();
}

/// ArceOS in an image.
pub struct ArceOs<I>(PhantomData<I>);

impl<I: Image> Kernel for ArceOs<I> {
    type Handle = AxTaskRef;
    type Signal = Waiting;
    type Guarded<T: Send + 'static> = Alone<T>;
    type Together = NoPreempt;

    const COUNTS: bool = I::COUNTS;
    const HAS_NICENESS: bool = false;

    fn boot() -> &'static Boot {
        qemu::boot()
    }

    fn script() -> Vec<u8> {
        qemu::item(script::ITEM)
    }

    fn say(message: &Message) {
        println!("{message}");
    }

    fn refuse(why: impl Display) -> ! {
        qemu::refuse(why)
    }

    fn now() -> u64 {
        axplat::time::monotonic_time_nanos()
    }

    fn calibration() -> u64 {
        I::CALIBRATION
    }

    fn tick() -> u64 {
        10_000_000
    }

    fn yield_now() {
        axtask::yield_now();
    }

    fn sleep_until(time: u64) {
        I::sleep_until(time);
    }

    fn sleep_before(time: u64, burst: u64) {
        I::sleep_before(time, burst);
    }

    fn expect(task: &AxTaskRef, burst: u64) {
        I::expect(task, burst);
    }

    fn set_param(name: &str, value: &str) {
        if let Err(why) = I::set_param(name, value) {
            qemu::refuse(why);
        }
    }

    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> AxTaskRef {
        if task.nice != 0 || !task.cpus.is_empty() {
            qemu::refuse("ArceOS has no niceness, and this image binds no task to a CPU");
        }
        I::spawn(task, body)
    }

    fn join(task: &AxTaskRef) {
        task.join();
    }

    fn usage(task: &AxTaskRef) -> Option<Usage> {
        I::usage(task)
    }

    fn together() -> NoPreempt {
        NoPreempt::new()
    }

    fn switches() -> Option<u64> {
        I::switches()
    }
}
