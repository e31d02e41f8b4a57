//! What going from one process to another costs.
//!
//! Argument: `n`, how often each is done. Values, in nanoseconds: `pipe_round_trip_ns`, a byte
//! there and back by two pipes (two wake-ups and two switches on one CPU); `yield_among_two_ns`, a
//! yield while another process does nothing but yield; `yield_alone_ns`.

use std::os::fd::OwnedFd;

use anysched_programs::{Kernel, argument};
use rustix::io::{read, write};

use crate::kernel::Linux;
use crate::machine::refuse;
use crate::process::Process;
use crate::report::value;

/// Times that something is done before it is measured.
const WARM_UP: u64 = 100;

/// Runs the program.
pub fn cost() {
    let times = argument::<Linux>("n", 3000).max(1);
    value("pipe_round_trip_ns", pipe_round_trip(times));
    let other = Process::start(|| {
        loop {
            Linux::yield_now();
        }
    });
    value("yield_among_two_ns", per_time(times, Linux::yield_now));
    other.kill();
    value("yield_alone_ns", per_time(times, Linux::yield_now));
}

/// Nanoseconds that `action` takes on average.
fn per_time(times: u64, mut action: impl FnMut()) -> u64 {
    (0..WARM_UP).for_each(|_| action());
    let start = Linux::now();
    (0..times).for_each(|_| action());
    (Linux::now() - start) / times
}

fn pipe_round_trip(times: u64) -> u64 {
    let ((ask, asked), (answer, answered)) = (pipe(), pipe());
    let other = Process::start(|| {
        let mut byte = [0];
        while read(&ask, &mut byte) == Ok(1) && write(&answered, &byte) == Ok(1) {}
    });
    let taken = per_time(times, || {
        let mut byte = [0];
        if write(&asked, &byte) != Ok(1) || read(&answer, &mut byte) != Ok(1) {
            refuse("the other end of a pipe is gone");
        }
    });
    other.kill();
    taken
}

/// The ends to read from and to write to.
fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe().unwrap_or_else(|error| refuse(format_args!("a pipe: {error}")))
}
