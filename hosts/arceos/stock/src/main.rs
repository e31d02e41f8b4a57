//! An ArceOS unikernel with one of its own schedulers, to compare with.

#![no_std]
#![no_main]

extern crate alloc;
use axstd as _;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use anysched_arceos_apps::{Image, Task, Usage, run};
use axtask::AxTaskRef;

/// As in the image with our policies. In bytes.
const STACK: usize = 16 << 10;

/// An image with a scheduler of ArceOS's own.
struct Stock;

impl Image for Stock {
    const COUNTS: bool = false;

    fn spawn(task: &Task, body: Box<dyn FnOnce() + Send>) -> AxTaskRef {
        axtask::spawn_raw(body, task.name.clone(), STACK)
    }

    fn sleep_until(deadline: u64) {
        axtask::sleep_until(Duration::from_nanos(deadline));
    }

    fn set_param(name: &str, _: &str) -> Result<(), String> {
        Err(format!("ArceOS's own schedulers have no parameter such as `{name}`"))
    }

    fn usage(_: &AxTaskRef) -> Option<Usage> {
        None
    }

    fn switches() -> Option<u64> {
        None
    }

    fn measured() {}
}

#[unsafe(no_mangle)]
fn main() {
    run::<Stock>();
    anysched_arceos_qemu::exit(0);
}
