//! The ways in which the agent ends. What it has put into the kernel goes with the process.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anysched_wire::status::{FIRST, Line};

use crate::options::Options;
use crate::{log, memory};

/// Memory that the agent needs for itself, in bytes: for what it says of up to 1024 CPUs.
const OWN: usize = 1 << 20;

/// Where status and log go.
static PLACES: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
static NAME: OnceLock<String> = OnceLock::new();

/// From here on a panic, of whichever thread, ends the agent with its message.
pub fn begin(options: &Options) {
    let _ = PLACES.set((options.status.clone(), options.log.clone()));
    memory::limit(options.heap.saturating_add(OWN));
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or_default();
        match panic.location() {
            Some(at) => {
                die(&format!("the policy panicked: {message} ({}:{})", at.file(), at.line()))
            }
            None => die(&format!("the policy panicked: {message}")),
        }
    }));
}

/// The policy's name, for the status.
pub fn name(policy: &str) {
    let _ = NAME.set(policy.into());
}

/// Ends the agent, which was called wrongly.
pub fn refuse(why: &str) -> ! {
    eprintln!("anysched-agent: {why}");
    std::process::exit(2)
}

/// Ends the agent: says why on standard error and in the status.
pub fn die(why: &str) -> ! {
    static DIES: AtomicBool = AtomicBool::new(false);
    if DIES.swap(true, Ordering::Relaxed) {
        // Another thread is at it, or this one has panicked here.
        sleep(Duration::from_secs(1));
    } else {
        memory::limit(usize::MAX);
        eprintln!("anysched-agent: {why}");
        let mut lines: Vec<Line> = NAME.get().cloned().map(Line::Policy).into_iter().collect();
        lines.push(Line::Dead(why.into()));
        let text = lines.iter().fold(String::from(FIRST), |text, line| format!("{text}{line}\n"));
        if let Err(error) = write(&text) {
            eprintln!("anysched-agent: {error}");
        }
    }
    // Without what a process does in an orderly end: other threads may hold what that needs.
    // SAFETY: it does not return.
    unsafe { libc::_exit(1) }
}

/// Writes the status, and the log if there is one.
///
/// Errors: a file cannot be written.
pub fn write(status: &str) -> io::Result<()> {
    let Some((status_file, log_file)) = PLACES.get() else { return Ok(()) };
    if let Some(pieces) = log::recorded() {
        fs::write(log_file, pieces.concat())?;
    }
    // Whoever sees it can rely on the log.
    fs::write(status_file, status)
}
