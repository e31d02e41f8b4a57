//! What the scheduler of a CPU is told by code that does not hold its lock: tasks that have gone,
//! and the question of what its policy has learned. The scheduler looks after every interrupt and
//! whenever a task blocks or ends.

use alloc::vec::Vec;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

use anysched_core::registry::{self, Settings};
use anysched_core::{Scheduler, TaskId};
use kspin::SpinNoIrq;

use crate::MAX_CPUS;

/// The CPU whose mailbox is the policy's: there is one policy for all.
pub(crate) const HOME: usize = 0;

/// The mailbox of a CPU.
pub(crate) struct Mailbox {
    /// Something has arrived.
    full: AtomicBool,
    departed: SpinNoIrq<Vec<TaskId>>,
    asked: AtomicBool,
}

static MAILBOXES: [Mailbox; MAX_CPUS] = [const {
    Mailbox {
        full: AtomicBool::new(false),
        departed: SpinNoIrq::new(Vec::new()),
        asked: AtomicBool::new(false),
    }
}; MAX_CPUS];

/// `task`, which the policy of `cpu` knows, no longer exists.
pub(crate) fn departed(cpu: u32, task: TaskId) {
    let mailbox = &MAILBOXES[cpu as usize];
    mailbox.departed.lock().push(task);
    mailbox.full.store(true, Release);
}

/// What policies that were asked have learned.
static LEARNED: SpinNoIrq<Settings> = SpinNoIrq::new(Settings::new());

/// Asks the policy what it has learned; [`learned`] has the answer once the current task has
/// blocked and run again.
pub fn ask_what_was_learned() {
    let mailbox = &MAILBOXES[HOME];
    mailbox.asked.store(true, Relaxed);
    mailbox.full.store(true, Release);
}

/// Parameters for a later run, by name, that policies have learned.
pub fn learned() -> Settings {
    LEARNED.lock().clone()
}

impl Mailbox {
    /// Answers, if the policy was asked.
    pub fn answer(&self, policy: &dyn Scheduler) {
        if self.asked.swap(false, Relaxed) {
            *LEARNED.lock() = registry::learned(policy);
        }
    }

    pub fn of(cpu: usize) -> &'static Mailbox {
        &MAILBOXES[cpu]
    }

    /// Takes the tasks that have gone since the last time.
    pub fn collect(&self) -> Vec<TaskId> {
        // Cleared first: what arrives meanwhile sets it again.
        if !self.full.swap(false, Acquire) {
            return Vec::new();
        }
        core::mem::take(&mut self.departed.lock())
    }
}
