//! The policy of this boot: how it is started, watched and stopped.

use std::path::Path;

use anysched_loader::{Module, SchedExt};
use anysched_wire::boot::Boot;

use crate::{orders, procfs};

/// What the module says of itself, as lines.
pub const STATUS: &str = "/proc/anysched/status";

const MODULE: &str = "/lib/anysched/anysched.ko";
const BPFTOOL: &str = "/usr/sbin/bpftool";

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel's own scheduler.
    Stock,
    /// A scheduler of sched_ext, with the module that asks a policy, or without.
    Ext,
}

impl Scheduler {
    /// Starts the scheduler that the host names.
    ///
    /// Errors: why it cannot be started, with what the kernel says of it.
    pub fn start(boot: &Boot) -> Result<Scheduler, String> {
        if boot.policy.starts_with("stock-") {
            return Ok(Scheduler::Stock);
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
        let status = status().unwrap_or_default();
        let why = procfs::lines(&status, "dead").next();
        Some(match why {
            Some(why) => why.into(),
            None => format!("sched_ext is {}: the kernel's console says why", state()),
        })
    }

    /// Gives the CPUs back to the kernel's own scheduler.
    ///
    /// Errors: the kernel does not do it.
    pub fn stop(self) -> Result<(), String> {
        if self == Scheduler::Stock {
            return Ok(());
        }
        kernel().unregister()
    }
}

/// What the module says of itself, if it is loaded.
pub fn status() -> Option<String> {
    Module.status()
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

fn state() -> String {
    kernel().state().unwrap_or_else(|| "missing".into())
}
