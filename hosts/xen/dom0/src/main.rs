//! The first program (`/init`) of a Linux dom0 under Xen, and of the Linux domains that it builds.
//!
//! As dom0 it starts Xen's toolstack, has `xl` build domains and set what their scheduler gives
//! them, lets all go on at once and says what came of it. Which part it has in a domain, the
//! command line of that one's kernel says, which is this program's environment.

#![forbid(unsafe_code)]

mod command;
mod domain;
mod domains;
mod icmp;
mod machine;
mod toolstack;

use std::num::NonZeroU64;

fn main() {
    machine::set_up();
    // Sleeps end when they are to, and not up to 50 µs later.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    match domain::Part::own() {
        Some(part) => domain::perform(part),
        None => toolstack::perform(),
    }
}
