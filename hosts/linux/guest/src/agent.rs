//! A policy in a process, as a child of this one.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anysched_loader::{Agent, AgentFiles};
use anysched_wire::start::Start;
use rustix::process::Signal;

const PROGRAM: &str = "/usr/sbin/anysched-agent";
const OBJECT: &str = "/lib/anysched/agent.bpf.o";

/// The log of decisions, when it has ended.
pub const LOG: &str = "/run/anysched/log";

/// The agent, until it has ended.
static AGENT: Mutex<Option<Agent>> = Mutex::new(None);

fn with<R>(action: impl FnOnce(&mut Option<Agent>) -> R) -> R {
    action(&mut AGENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Starts the agent, and waits until it decides.
///
/// Errors: why it does not.
pub fn start(start: Start) -> Result<(), String> {
    let files =
        AgentFiles { program: Path::new(PROGRAM), object: Path::new(OBJECT), log: Path::new(LOG) };
    let agent = Agent::start(&files, None, start)?;
    with(|known| *known = Some(agent));
    Ok(())
}

/// Sends it a signal.
///
/// Errors: there is no agent, or it gets none.
pub fn send(signal: Signal) -> Result<(), String> {
    with(|agent| agent.as_ref().ok_or("there is no agent")?.send(signal))
}

/// Why it ends: what it says last.
pub fn last_words() -> String {
    with(|agent| agent.as_mut().map_or_else(|| "there is no agent".into(), Agent::last_words))
}

/// Has it end, and waits until the kernel's own scheduler is back. Its status and its log are there
/// then.
///
/// Errors: the kernel does not give up its scheduler.
pub fn stop() -> Result<(), String> {
    with(Option::take).map_or(Ok(()), |mut agent| agent.end())
}
