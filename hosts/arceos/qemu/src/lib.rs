//! What a guest of QEMU is told at boot, and its ways out besides the console.
//!
//! - [`fw_cfg`]: named items that the host hands over, from which [`boot`] is read.
//! - [`debugcon`]: bytes out, one instruction each: the log of decisions.
//! - [`refuse`]: the message that what the host asks for cannot be done.
//! - [`exit`]: an exit status, which ArceOS itself lacks (a panic there ends like a success).

#![no_std]

extern crate alloc;

mod boot;
pub mod debugcon;
pub mod fw_cfg;

pub use boot::{boot, item};

use alloc::string::ToString;
use core::fmt::Display;

use anysched_wire::result::{EXIT_PORT, Message};
use x86_64::instructions::{hlt, port::PortWriteOnly};

/// Ends QEMU with status `2 · code + 1`. Returns if the device is not there.
pub fn exit(code: u32) {
    // SAFETY: the port belongs to isa-debug-exit or to nobody; writing to it touches no memory.
    unsafe { PortWriteOnly::new(EXIT_PORT).write(code) }
}

/// Says why what the host asks for cannot be done, and ends QEMU.
pub fn refuse(why: impl Display) -> ! {
    // At the beginning of a line, whatever was printed before.
    axplat::console_print!("\n{}\n", Message::Refused(why.to_string()));
    exit(1);
    loop {
        hlt();
    }
}
