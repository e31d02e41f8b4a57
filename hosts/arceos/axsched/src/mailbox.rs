//! What the scheduler of a CPU is told by code that does not hold its lock: tasks that have gone.
//! It looks after every interrupt and whenever a task blocks or ends.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::{Acquire, Release}};

use anysched_core::TaskId;
use kspin::SpinNoIrq;

use crate::MAX_CPUS;

/// The mailbox of a CPU.
pub(crate) struct Mailbox {
    /// Something is there.
    full: AtomicBool,
    departed: SpinNoIrq<Vec<TaskId>>,
}

static MAILBOXES: [Mailbox; MAX_CPUS] = [const {
    Mailbox { full: AtomicBool::new(false), departed: SpinNoIrq::new(Vec::new()) }
}; MAX_CPUS];

/// `task`, which the policy of `cpu` knows, is no more.
pub(crate) fn departed(cpu: u32, task: TaskId) {
    let mailbox = &MAILBOXES[cpu as usize];
    mailbox.departed.lock().push(task);
    mailbox.full.store(true, Release);
}

impl Mailbox {
    pub fn of(cpu: usize) -> &'static Mailbox {
        &MAILBOXES[cpu]
    }

    /// Takes the tasks that have gone since the last time.
    pub fn collect(&self) -> Vec<TaskId> {
        // Cleared first: what comes in meanwhile sets it again.
        if !self.full.swap(false, Acquire) {
            return Vec::new();
        }
        core::mem::take(&mut self.departed.lock())
    }
}
