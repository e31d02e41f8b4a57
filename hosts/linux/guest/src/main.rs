//! The first program (`/init`) of a Linux guest: it starts the policy that the host names, runs a
//! program under it, says what came of that, and ends the machine.

mod agent;
mod attributes;
mod console;
mod events;
mod gate;
mod kernel;
mod machine;
mod mounts;
mod orders;
mod pages;
mod ports;
mod process;
mod procfs;
mod programs;
mod quiet;
mod report;
mod scheduler;
mod signal;
mod statistics;
mod usage;

use anysched_programs::{Kernel, sleep_until_start};
use anysched_wire::boot::Boot;
use anysched_wire::result::Message;

use events::Events;
use kernel::Linux;
use machine::refuse;
use ports::Ports;
use scheduler::Scheduler;

fn main() {
    mounts::mount_all();
    console::open();
    machine::end_on_panic();
    // Sleeps end when they are to, and not up to 50 µs later: all that is started inherits this.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    quiet::wait();
    // Up to here all boots are alike, so that the machine can be saved.
    if let Ok(ports) = Ports::open() {
        quiet::settle();
        ports.ready();
    }
    let boot = Linux::boot();
    let events = boot.events.then(|| Events::record().unwrap_or_else(|why| refuse(why)));
    let scheduler = Scheduler::start(boot).unwrap_or_else(|why| refuse(why));
    Linux::say(&Message::Started(boot.program.clone()));
    let end = perform(boot, scheduler, events);
    Linux::say(&end);
    machine::end();
}

/// Runs the program; returns the last message.
fn perform(boot: &Boot, scheduler: Scheduler, events: Option<Events>) -> Message {
    sleep_until_start::<Linux>();
    let before = Linux::switches();
    if !programs::run(&boot.program) {
        refuse(format_args!("there is no program \"{}\" in this guest", boot.program));
    }
    let after = Linux::switches();
    let death = scheduler.death();
    if death.is_some() {
        report::dump();
    }
    let stopped = scheduler.stop();
    if let Some(Err(why)) = events.as_ref().map(Events::stop) {
        refuse(why);
    }
    if let (Some(before), Some(after)) = (before, after) {
        report::value("switches", after - before);
    }
    report::status();
    if boot.record {
        report::log();
    }
    if let Some(events) = &events {
        report::events(events);
    }
    match (death, stopped) {
        (Some(why), _) | (None, Err(why)) => Message::Refused(why),
        (None, Ok(())) => Message::End,
    }
}
