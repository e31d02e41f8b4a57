//! What a guest of QEMU is told at boot, and its ways out besides the console.
//!
//! - [`fw_cfg`]: named items that the host hands over, from which [`boot`] is read.
//! - [`debugcon`]: bytes out, one instruction each: the log of decisions.
//! - [`exit`]: an exit status, which ArceOS itself does not have (a panic there ends like a
//!   success).

#![no_std]

extern crate alloc;

mod boot;
pub mod debugcon;
pub mod fw_cfg;

pub use boot::{Boot, boot};

use x86_64::instructions::port::PortWriteOnly;

/// Where QEMU's device `isa-debug-exit` listens: `iobase=0xf4`.
const EXIT_PORT: u16 = 0xf4;

/// Ends QEMU with status `2 · code + 1`. Returns if the device is not there.
pub fn exit(code: u32) {
    // SAFETY: the port belongs to isa-debug-exit or to nobody; writing to it touches no memory.
    unsafe { PortWriteOnly::new(EXIT_PORT).write(code) }
}
