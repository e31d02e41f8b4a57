//! A thread of the storm, watched from outside.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use anysched_programs::Kernel;
use rustix::thread::{Pid, gettid};

use super::weather::Storm;
use crate::kernel::Linux;
use crate::machine::refuse;
use crate::procfs;

/// How often the end of a thread is looked for, in nanoseconds.
const LOOK: u64 = 10_000_000;

/// A thread.
pub struct Worker {
    id: Pid,
    thread: JoinHandle<()>,
}

/// What can be seen of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// CPU time that it has used, in nanoseconds.
    pub used: u64,
    /// Whether it is running or ready.
    pub is_ready: bool,
}

impl Sight {
    /// What can be seen of a task. One that has ended is not ready.
    pub fn of(task: Pid) -> Sight {
        let used = procfs::cpu_time(&read(task, "schedstat")).unwrap_or(0);
        Sight { used, is_ready: procfs::state(&read(task, "stat")) == Some('R') }
    }
}

/// What the kernel says of a task in a line, for people: the fields of its `stat`, its CPU time,
/// time waited and picks.
pub fn seen(task: Pid) -> String {
    format!("{}; {}", read(task, "stat").trim_end(), read(task, "schedstat").trim_end())
}

fn read(task: Pid, file: &str) -> String {
    let path = format!("/proc/{}/{file}", task.as_raw_nonzero());
    std::fs::read_to_string(path).unwrap_or_default()
}

impl Worker {
    /// Starts one that runs `body`.
    pub fn start(
        name: String,
        storm: &Arc<Storm>,
        body: impl FnOnce(&Storm) + Send + 'static,
    ) -> Worker {
        let storm = storm.clone();
        let (tell, told) = sync_channel(1);
        let thread = Builder::new().name(name).spawn(move || {
            let _ = tell.send(gettid());
            body(&storm);
        });
        match (thread, told.recv()) {
            (Ok(thread), Ok(id)) => Worker { id, thread },
            _ => refuse("there can be no more threads"),
        }
    }

    /// What the kernel calls it.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Waits until it has ended, for a span in nanoseconds at most.
    pub fn await_end(&self, patience: u64) {
        let start = Linux::now();
        while !self.thread.is_finished() && Linux::now() < start + patience {
            Linux::sleep_until(Linux::now() + LOOK);
        }
    }
}
