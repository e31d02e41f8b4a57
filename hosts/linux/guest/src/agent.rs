//! A policy in a process, as a child of this one.

use std::fs;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

const AGENT: &str = "/usr/sbin/anysched-agent";
const DIRECTORY: &str = "/run/anysched";
const START: &str = "/run/anysched/start";
const SAID: &str = "/run/anysched/said";

/// What it says of itself when it has ended, as lines.
pub const STATUS: &str = "/run/anysched/status";
/// The log of decisions, when it has ended.
pub const LOG: &str = "/run/anysched/log";

/// Whether a program is about its end.
static IS_EXPECTED: AtomicBool = AtomicBool::new(false);

/// The process, until it has ended.
static CHILD: Mutex<Option<Child>> = Mutex::new(None);

fn with<R>(action: impl FnOnce(&mut Option<Child>) -> R) -> R {
    action(&mut CHILD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Starts the agent with this start text. When it schedules, the kernel says.
///
/// Errors: it cannot be started.
pub fn start(text: &[u8]) -> Result<(), String> {
    let fault = |path: &str, error: std::io::Error| format!("{path}: {error}");
    fs::create_dir_all(DIRECTORY).map_err(|error| fault(DIRECTORY, error))?;
    fs::write(START, text).map_err(|error| fault(START, error))?;
    let said = File::create(SAID).map_err(|error| fault(SAID, error))?;
    let mut agent = Command::new(AGENT);
    let child = agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn();
    let child = child.map_err(|error| fault(AGENT, error))?;
    with(|known| *known = Some(child));
    Ok(())
}

/// Whether it has ended by itself.
pub fn has_ended() -> bool {
    with(|child| {
        child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|end| end.is_some()))
    })
}

/// From here on its end is what the program is about, and none of the policy's.
pub fn expect_end() {
    IS_EXPECTED.store(true, Relaxed);
}

/// Whether [`expect_end`] was called.
pub fn end_is_expected() -> bool {
    IS_EXPECTED.load(Relaxed)
}

/// Its process.
pub fn process() -> Option<Pid> {
    with(|child| child.as_ref().map(Pid::from_child))
}

/// Why it has ended: what it has said last.
pub fn last_words() -> String {
    let said = fs::read(SAID).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said = said.trim().strip_prefix("anysched-agent: ").unwrap_or(said.trim());
    match said {
        "" => "the agent has ended, and has not said why".into(),
        said => said.into(),
    }
}

/// Asks it to end, and waits until it has. Its status and its log are there then.
pub fn stop() {
    // One that was stopped hears nothing else.
    let signal = if end_is_expected() { Signal::KILL } else { Signal::TERM };
    if let Some(process) = process() {
        let _ = kill_process(process, signal);
    }
    if let Some(mut child) = with(Option::take) {
        let _ = child.wait();
    }
}
