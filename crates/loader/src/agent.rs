//! A policy in a process of its own, which decides for the kernel through a BPF program.

use crate::change::{outcome, request};
use crate::{SchedExt, here};
use anysched_wire::change::LONGEST;
use anysched_wire::start::Start;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const DIRECTORY: &str = "/run/anysched";
const START: &str = "/run/anysched/start";
/// What it prints: warnings of libbpf, and last why it has died.
const SAID: &str = "/run/anysched/said";
/// What it says of itself when it ends.
const STATUS: &str = "/run/anysched/status";
/// Whoever connects is told the status.
const SOCKET: &str = "/run/anysched/agent";
/// Takes what is to change.
const CHANGES: &str = "/run/anysched/changes";

/// For how long an agent may take to begin: the kernel checks its programs, which takes seconds
/// where that is emulated.
const BEGINNING: Duration = Duration::from_secs(60);

/// For how long an agent may take to end that was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// For how long an agent may take to say how it is doing.
const ANSWER: Duration = Duration::from_secs(1);

/// For how long an agent may take to change a parameter.
const CHANGE: Duration = Duration::from_secs(5);

/// What an agent is made of.
#[derive(Clone, Copy, Debug)]
pub struct AgentFiles<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its BPF programs.
    pub object: &'a Path,
    /// Where it leaves the log of decisions when it ends, if one is recorded.
    pub log: &'a Path,
}

/// An agent, as a child of this process. It ends with the thread that has started it.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    end: Option<ExitStatus>,
}

impl Agent {
    /// Starts one and waits until it decides. `heap` is the policy's memory in bytes; `None`: the
    /// agent's default.
    ///
    /// Errors: it cannot be started, or what it or the kernel says against it.
    pub fn start(files: &AgentFiles<'_>, heap: Option<u64>, start: Start) -> Result<Agent, String> {
        let fault = |path: &str, error: io::Error| format!("{path}: {error}");
        let text = here(start)?;
        fs::create_dir_all(DIRECTORY).map_err(|error| fault(DIRECTORY, error))?;
        remove(&[STATUS, SOCKET, CHANGES]);
        fs::write(START, text).map_err(|error| fault(START, error))?;
        let said = File::create(SAID).map_err(|error| fault(SAID, error))?;
        let mut command = Command::new(files.program);
        command.args(["--start", START, "--status", STATUS, "--socket", SOCKET]);
        command.args(["--changes", CHANGES]);
        command.arg("--object").arg(files.object).arg("--log").arg(files.log);
        if let Some(heap) = heap {
            command.arg("--heap").arg(heap.to_string());
        }
        // The signals of a terminal are for who has started it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).process_group(0);
        let child = command.spawn();
        let child = child.map_err(|error| format!("{}: {error}", files.program.display()))?;
        let mut agent = Agent { child, end: None };
        agent.await_start()?;
        Ok(agent)
    }

    fn await_start(&mut self) -> Result<(), String> {
        let (kernel, start) = (SchedExt::new(""), Instant::now());
        while kernel.state().as_deref() != Some("enabled") {
            if self.has_ended() {
                return Err(self.last_words());
            }
            if start.elapsed() >= BEGINNING {
                self.kill();
                return Err(format!("the agent does not decide after {BEGINNING:?}"));
            }
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// Errors: it gets none.
    pub fn send(&self, signal: Signal) -> Result<(), String> {
        send(self.process(), signal)
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.end.is_none() {
            self.end = self.child.try_wait().ok().flatten();
        }
        self.end.is_some()
    }

    /// Why it ends, if not because it was asked to: what it says last. Waits until it has ended, as
    /// the kernel takes its scheduler away first.
    pub fn last_words(&mut self) -> String {
        if !self.await_end() {
            return format!(
                "the agent does not decide any more, and has not ended for {PATIENCE:?}"
            );
        }
        let said = fs::read(SAID).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let said = said.trim().strip_prefix("anysched-agent: ").unwrap_or(said.trim());
        match (said, self.end.and_then(|end| end.signal())) {
            ("", Some(signal)) => format!("signal {signal} has ended the agent"),
            ("", None) => "the agent has ended, and has not said why".into(),
            (said, _) => said.into(),
        }
    }

    /// Has it end, and waits until the kernel's own scheduler is back. What it leaves is there
    /// then.
    ///
    /// Errors: the kernel does not give up its scheduler.
    pub fn end(&mut self) -> Result<(), String> {
        if !self.has_ended() {
            let _ = self.send(Signal::TERM);
            // One that was stopped hears nothing before.
            let _ = self.send(Signal::CONT);
        }
        self.await_end();
        self.kill();
        SchedExt::new("").await_end()
    }

    /// Whether it ends in time.
    fn await_end(&mut self) -> bool {
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < PATIENCE {
            sleep(Duration::from_millis(1));
        }
        self.has_ended()
    }

    fn kill(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            self.end = self.child.wait().ok();
        }
    }

    /// What the agent that decides here says of itself, or what the last one has left.
    pub fn status() -> Option<String> {
        let text = match connect().and_then(io::read_to_string) {
            Ok(text) if !text.is_empty() => text.into_bytes(),
            _ => fs::read(STATUS).ok()?,
        };
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The process of the agent that decides here, whoever has started it.
    pub fn running() -> Option<u32> {
        let process = socket_peercred(connect().ok()?).ok()?.pid;
        u32::try_from(process.as_raw_nonzero().get()).ok()
    }

    /// Has the agent that decides here change a parameter, whoever has started it.
    ///
    /// Errors: its policy does not change it, or there is no agent that answers.
    pub fn change(name: &str, value: &str) -> Result<(), String> {
        let fault = |error: io::Error| format!("{CHANGES}: {error}");
        let text = request(name, value)?;
        // An address that is no file: nothing is left of it.
        let own = format!("anysched-change-{}", std::process::id());
        let own = SocketAddr::from_abstract_name(own).map_err(fault)?;
        let socket = UnixDatagram::bind_addr(&own).map_err(fault)?;
        socket.set_read_timeout(Some(CHANGE)).map_err(fault)?;
        // Nobody else can answer.
        socket.connect(CHANGES).map_err(fault)?;
        socket.send(text.as_bytes()).map_err(fault)?;
        let mut answer = vec![0; LONGEST];
        let length = socket.recv(&mut answer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => format!("the agent does not answer for {CHANGE:?}"),
            _ => fault(error),
        })?;
        outcome(&answer[..length])
    }

    /// Asks the agent that decides here to end, whoever has started it, and waits until the
    /// kernel's own scheduler is back.
    ///
    /// Errors: there is none, or it does not end.
    pub fn end_running() -> Result<(), String> {
        let agent = Agent::running().ok_or_else(|| format!("{SOCKET}: no agent answers"))?;
        send(agent, Signal::TERM)?;
        SchedExt::new("").await_end()
    }

    /// Removes what agents leave but logs.
    pub fn clean() {
        remove(&[START, SAID, STATUS, SOCKET, CHANGES]);
        let _ = fs::remove_dir(DIRECTORY);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

fn send(process: u32, signal: Signal) -> Result<(), String> {
    let fault = |error: &dyn Display| format!("the agent gets no signal: {error}");
    let process = Pid::from_raw(process as i32).ok_or_else(|| fault(&"it is no process"))?;
    kill_process(process, signal).map_err(|error| fault(&error))
}

fn connect() -> io::Result<UnixStream> {
    let agent = UnixStream::connect(SOCKET)?;
    agent.set_read_timeout(Some(ANSWER))?;
    Ok(agent)
}

fn remove(paths: &[&str]) {
    for path in paths {
        let _ = fs::remove_file(path);
    }
}
