//! What the scheduler of a CPU is told by code that does not hold its lock: tasks that have gone,
//! parameters of its policy to be set, and the question of what that has learned. The scheduler
//! looks after every interrupt and whenever a task blocks or ends.

use alloc::string::{String, ToString};
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
    /// There are orders.
    ordered: AtomicBool,
    orders: SpinNoIrq<Settings>,
}

static MAILBOXES: [Mailbox; MAX_CPUS] = [const {
    Mailbox {
        full: AtomicBool::new(false),
        departed: SpinNoIrq::new(Vec::new()),
        asked: AtomicBool::new(false),
        ordered: AtomicBool::new(false),
        orders: SpinNoIrq::new(Settings::new()),
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

/// Asks the policy to set a parameter; it has, or [`refused`] says why not, once the
/// current task has blocked and run again.
pub fn ask_for_param(name: &str, value: &str) {
    let mailbox = &MAILBOXES[HOME];
    mailbox.orders.lock().push((name.to_string(), value.to_string()));
    mailbox.ordered.store(true, Release);
    mailbox.full.store(true, Release);
}

/// Why a policy has refused what it was asked for, if it has.
static REFUSED: SpinNoIrq<Option<String>> = SpinNoIrq::new(None);

/// Why a policy has refused to set a parameter; asked once.
pub fn refused() -> Option<String> {
    REFUSED.lock().take()
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

    /// Takes the parameters that are to be set.
    pub fn orders(&self) -> Settings {
        // Cleared first: what arrives meanwhile sets it again.
        if !self.ordered.swap(false, Acquire) {
            return Settings::new();
        }
        core::mem::take(&mut self.orders.lock())
    }

    /// Tells why the policy has refused.
    pub fn refuse(&self, why: String) {
        *REFUSED.lock() = Some(why);
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
