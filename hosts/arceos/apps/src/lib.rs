//! ArceOS as a kernel for [programs](anysched_programs) that test a scheduler, whichever it is, and
//! programs that only ArceOS runs. The same code is built with a policy of anysched underneath and
//! with ArceOS's own schedulers.
//!
//! [`run`] runs the program that the host asked for and [reports](Message) what became of its tasks
//! and what else it has measured. Everything else that is printed is for people.

#![no_std]

extern crate alloc;
extern crate axstd as std;

mod faults;
mod kernel;
mod signal;
#[cfg(feature = "net")]
mod udp;

use anysched_arceos_qemu::refuse;
use anysched_programs::{Kernel, sleep_until_start};
use anysched_wire::result::Message;

pub use anysched_programs::{Task, Usage};
pub use kernel::{ArceOs, Image};

/// Runs the program that the host asked for.
pub fn run<I: Image>() {
    // The first yield makes the main task known to the scheduler, like any other.
    axtask::yield_now();
    let program = ArceOs::<I>::boot().program.as_str();
    ArceOs::<I>::say(&Message::Started(program.into()));
    sleep_until_start::<ArceOs<I>>();
    match program {
        "fault" => faults::fault(),
        #[cfg(feature = "net")]
        "udp" => udp::udp::<ArceOs<I>>(),
        #[cfg(not(feature = "net"))]
        "udp" => refuse("this image has no network; build it with the feature `net` for \"udp\""),
        shared if anysched_programs::run::<ArceOs<I>>(shared) => {}
        other => refuse(format_args!("there is no program \"{other}\" in this image")),
    }
    I::measured();
    ArceOs::<I>::say(&Message::End);
}
