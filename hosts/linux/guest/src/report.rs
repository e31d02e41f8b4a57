//! What is said of the machine and the policy when the program has ended.

use std::fs::File;
use std::io::Read;

use anysched_programs::Kernel;
use anysched_wire::log;
use anysched_wire::result::Message;
use anysched_wire::status::Line;

use crate::events::Events;
use crate::kernel::Linux;
use crate::machine::refuse;
use crate::ports::Ports;
use crate::scheduler;

const DUMP: &str = "/proc/anysched/dump";

/// Bytes of the log that are read at a time.
const CHUNK: usize = 1 << 20;

/// Says a measured number.
pub fn value(name: &str, number: u64) {
    anysched_programs::value::<Linux>(name, number);
}

/// Says, for people, what the kernel knew of all CPUs and tasks when it ended the policy.
pub fn dump() {
    let text = std::fs::read_to_string(DUMP).unwrap_or_default();
    text.lines().for_each(|line| println!("{line}"));
}

/// Says what the policy has learned. Refuses a log of which records are lost.
pub fn status() {
    let status = scheduler::status_lines();
    let status = status.unwrap_or_else(|error| refuse(format_args!("the status: {error}")));
    for line in status {
        match line {
            Line::Learned(name, value) => Linux::say(&Message::Learned { name, value }),
            Line::Log(_, size, lost) if lost > 0 => refuse(format_args!(
                "{lost} decisions found no room in the log's buffer of {size} bytes: record a \
                 shorter program"
            )),
            _ => {}
        }
    }
}

/// Sends the log of decisions. That there is none is for the host to notice.
pub fn log() {
    let path = scheduler::log_file();
    let Ok(mut file) = File::open(path) else { return };
    let mut bytes = vec![0; CHUNK];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return,
            // The module's CPUs share one log.
            Ok(length) => send(0, &bytes[..length]),
            Err(error) => refuse(format_args!("{path}: {error}")),
        }
    }
}

/// Sends what the kernel has recorded of itself. The guest refuses if part of it is missing.
pub fn events(events: &Events) {
    for cpu in 0..events.cpus() {
        match events.take(cpu) {
            Ok(lines) => send(1 + cpu as u8, &lines),
            Err(why) => refuse(why),
        }
    }
}

/// Sends a part of a log to the host.
fn send(number: u8, bytes: &[u8]) {
    match Ports::open() {
        Ok(ports) => log::send(number, bytes, |bytes| ports.send(bytes)),
        Err(error) => refuse(format_args!("the log cannot be sent: I/O ports: {error}")),
    }
}
