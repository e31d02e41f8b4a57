//! The ways in which the machine ends.

use std::fmt::Display;
use std::io::{self, Write};

use anysched_wire::result::Message;
use rustix::system::{RebootCommand, reboot};

use crate::console;
use crate::ports::Ports;

/// Ends the machine.
pub fn end() -> ! {
    leave(0)
}

/// Says why what the host asks for cannot be done, and ends the machine.
pub fn refuse(why: impl Display) -> ! {
    // At the beginning of a line, whatever was printed before.
    let _ = writeln!(io::stdout(), "\n{}", Message::Refused(why.to_string()));
    leave(1)
}

/// Has a panic of any thread end the machine, with the reason.
pub fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| refuse(format_args!("the guest's program: {panic}"))));
}

fn leave(code: u32) -> ! {
    let _ = io::stdout().flush();
    console::drain();
    if let Ok(ports) = Ports::open() {
        ports.exit(code);
    }
    let _ = reboot(RebootCommand::PowerOff);
    // Of the first program, this makes the kernel panic, which ends the machine too.
    std::process::exit(1)
}
