//! The policy of this boot: how it is started, watched and stopped.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anysched_loader::{Agent, LOG, Module, SchedExt};
use anysched_programs::Kernel;
use anysched_wire::WireError;
use anysched_wire::boot::Boot;
use anysched_wire::status::{self, Line};

use crate::kernel::Linux;
use crate::{agent, orders, procfs};

const MODULE: &str = "/lib/anysched/anysched.ko";
const BPFTOOL: &str = "/usr/sbin/bpftool";

/// The most bytes of a record of the kernel's log.
const LONGEST_RECORD: usize = 8192;

/// How long the kernel may take to end a scheduler, and between two looks at that, in nanoseconds.
const DISABLING: u64 = 10_000_000_000;
const LOOK: u64 = 10_000_000;

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel's own scheduler.
    Stock,
    /// A scheduler of sched_ext, with the module that asks a policy, or without.
    Ext,
    /// One that asks a policy in a process.
    Agent,
}

impl Scheduler {
    /// Starts the scheduler that the host names.
    ///
    /// Errors: why it cannot be started, with what the kernel says of it.
    pub fn start(boot: &Boot) -> Result<Scheduler, String> {
        if boot.policy.starts_with("stock-") {
            return Ok(Scheduler::Stock);
        }
        if orders::in_agent() && !boot.policy.starts_with("bpf-") {
            return agent::start(orders::start()).map(|()| Scheduler::Agent);
        }
        let object = if boot.policy.starts_with("bpf-") {
            format!("/lib/anysched/{}.bpf.o", boot.policy)
        } else {
            Module.load(Path::new(MODULE), None)?;
            Module.configure(orders::start()).map_err(with_status)?;
            String::from("/lib/anysched/anysched.bpf.o")
        };
        kernel().register(Path::new(&object)).map_err(with_status)?;
        Ok(Scheduler::Ext)
    }

    /// Why it has come to an end by itself, if it has.
    pub fn death(self) -> Option<String> {
        if self == Scheduler::Stock || state() == "enabled" {
            return None;
        }
        if self == Scheduler::Agent {
            return Some(agent::last_words());
        }
        await_disabled();
        let why = why_dead(&status_lines().unwrap_or_default());
        Some(why.unwrap_or_else(|| format!("sched_ext is {}: {}", state(), kernel_says())))
    }

    /// Gives the CPUs back to the kernel's own scheduler.
    ///
    /// Errors: the kernel does not do it.
    pub fn stop(self) -> Result<(), String> {
        if self == Scheduler::Stock {
            return Ok(());
        }
        if self == Scheduler::Agent {
            return agent::stop();
        }
        kernel().unregister()
    }
}

/// Where the log of decisions is.
pub fn log_file() -> &'static str {
    if orders::in_agent() { agent::LOG } else { LOG }
}

/// What the module or the agent says of itself, if it is there.
pub fn status() -> Option<String> {
    if orders::in_agent() { Agent::status() } else { Module.status() }
}

/// The same, read; nothing if it is not there.
///
/// Errors: it is not written as it should be.
pub fn status_lines() -> Result<Vec<Line>, WireError> {
    status().map_or(Ok(Vec::new()), |text| status::read(text.as_bytes()))
}

/// Nanoseconds that calls of the policy have taken; `None` if there is none, or it does not say.
pub fn policy_time() -> Option<u64> {
    let lines = status_lines().unwrap_or_default();
    lines.iter().find_map(|line| match line {
        Line::Calls(_, time, _) => Some(*time),
        _ => None,
    })
}

/// Why the policy has died, if it has.
pub fn why_dead(status: &[Line]) -> Option<String> {
    status.iter().find_map(|line| match line {
        Line::Dead(why) => Some(why.clone()),
        _ => None,
    })
}

/// Waits until a scheduler that comes to an end is gone: the kernel says why when it is.
fn await_disabled() {
    let start = Linux::now();
    while state() == "disabling" && Linux::now() < start + DISABLING {
        Linux::sleep_until(Linux::now() + LOOK);
    }
}

/// What the kernel has logged of sched_ext.
fn kernel_says() -> String {
    let log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    let Ok(mut log) = log else { return "the kernel's log cannot be read".into() };
    let mut said = Vec::new();
    let mut record = [0; LONGEST_RECORD];
    // A record at a time; behind the last there is nothing, for which a read would wait. Records
    // that were overwritten meanwhile are an error once.
    loop {
        match log.read(&mut record) {
            Ok(length) => said.extend(procfs::sched_ext_says(&record[..length])),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(_) => return said.join("\n"),
        }
    }
}

/// `why`, and what the module says.
fn with_status(why: String) -> String {
    match status() {
        Some(status) => format!("{why}\n{}", status.trim()),
        None => why,
    }
}

fn kernel() -> SchedExt {
    SchedExt::new(BPFTOOL)
}

/// What the kernel says of schedulers of sched_ext: `enabled`, `disabled` and what is between.
pub fn state() -> String {
    kernel().state().unwrap_or_else(|| "missing".into())
}
