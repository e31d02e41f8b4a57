//! Programs for ArceOS that test a scheduler, whichever it is: the same code is built with a policy
//! of anysched underneath and with ArceOS's own schedulers.
//!
//! [`run`] runs the program that the host asked for and [reports](say) what became of its tasks and
//! what else it has measured. Everything else that is printed is for people.
//!
//! All programs that start tasks take one argument in common: with `hold=1` handles of tasks are
//! held until all have ended, as in programs that join each.

#![no_std]

extern crate alloc;
extern crate axstd as std;

mod batch;
mod calibrate;
mod cases;
mod crew;
mod faults;
mod signal;
#[cfg(feature = "net")]
mod udp;
mod work;

use alloc::boxed::Box;

use anysched_arceos_qemu::{boot, refuse};
use anysched_wire::result::Message;
use axtask::AxTaskRef;
use std::println;

pub use crew::Task;

use crew::now;

/// What differs between kernels scheduled by a policy of anysched and others.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Starts a task that runs the given function.
    pub spawn: fn(&Task, Box<dyn FnOnce() + Send>) -> AxTaskRef,
    /// Blocks the current task until a time in nanoseconds since boot.
    pub sleep_until: fn(u64),
    /// CPU time in nanoseconds and dispatches of a task, where they are counted.
    pub usage: fn(&AxTaskRef) -> Option<(u64, u32)>,
    /// How many times CPUs have switched tasks, where that is counted.
    pub switches: fn() -> Option<u64>,
    /// Reports what the kernel has measured of itself.
    pub measured: fn(),
}

/// Programs start at a multiple of this, in nanoseconds since boot: a tick of ArceOS.
const START: u64 = 10_000_000;

/// Says something to the host.
pub fn say(message: &Message) {
    println!("{message}");
}

/// Sleeps until the next multiple of [`START`], so that what happened before, such as how long
/// reading the host's orders took, makes no difference from there on.
fn sleep_until_start(kernel: &Kernel) {
    (kernel.sleep_until)((now() / START + 1) * START);
}

/// Runs the program that the host asked for.
pub fn run(kernel: &Kernel) {
    // The first yield makes the main task known to the scheduler, like any other.
    axtask::yield_now();
    let boot = boot();
    say(&Message::Started(boot.program.clone()));
    sleep_until_start(kernel);
    match boot.program.as_str() {
        "batch" => batch::batch(kernel),
        "fault" => faults::fault(),
        "calibrate" => calibrate::calibrate(kernel),
        #[cfg(feature = "net")]
        "udp" => udp::udp(kernel),
        #[cfg(not(feature = "net"))]
        "udp" => refuse("this image has no network; build it with the feature `net` for \"udp\""),
        case if cases::run(kernel, case) => {}
        other => refuse(format_args!("there is no program \"{other}\" in this image")),
    }
    (kernel.measured)();
    say(&Message::End);
}
