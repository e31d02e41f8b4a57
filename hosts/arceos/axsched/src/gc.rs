//! The kernel's `gc` task, which runs outside the policy.
//!
//! axtask wakes it when a task ends. It frees the task's stack or, while the task is still held,
//! yields and tries again, without end. Under a policy it would be one more task that yields all
//! the time, and would distort what is measured of the policy.

use alloc::sync::Arc;

use crate::task::PolicyTask;

/// How long `gc` waits for the CPU to become idle before it runs all the same, when a task stops by
/// itself or by its policy: memory of ended tasks must not pile up under load. It preempts no task,
/// since the policy would take that for its own doing. In nanoseconds.
const PATIENCE: u64 = 1_000_000;

/// `gc`, when it is ready.
#[derive(Debug)]
pub(crate) struct Gc<T, const S: usize> {
    ready: Option<Ready<T, S>>,
}

#[derive(Debug)]
struct Ready<T, const S: usize> {
    task: Arc<PolicyTask<T, S>>,
    /// It has tried and could not free everything: not before this time.
    not_before: u64,
    /// Whether or not the CPU has better things to do.
    at_the_latest: u64,
}

impl<T, const S: usize> Gc<T, S> {
    pub fn new() -> Gc<T, S> {
        Gc { ready: None }
    }

    /// It became ready, after an incomplete try if `again`.
    pub fn enqueue(&mut self, task: Arc<PolicyTask<T, S>>, now: u64, again: bool) {
        let not_before = if again { now + PATIENCE } else { now };
        self.ready = Some(Ready { task, not_before, at_the_latest: now + PATIENCE });
    }

    /// It has waited long enough.
    #[inline]
    pub fn take_overdue(&mut self, now: u64) -> Option<Arc<PolicyTask<T, S>>> {
        self.take_if(|ready| ready.at_the_latest <= now)
    }

    /// No other task wants the CPU.
    pub fn take(&mut self, now: u64) -> Option<Arc<PolicyTask<T, S>>> {
        self.take_if(|ready| ready.not_before <= now)
    }

    /// When it should have the CPU at the latest.
    pub fn due(&self) -> Option<u64> {
        self.ready.as_ref().map(|ready| ready.at_the_latest)
    }

    #[inline]
    fn take_if(&mut self, may: impl Fn(&Ready<T, S>) -> bool) -> Option<Arc<PolicyTask<T, S>>> {
        self.ready.as_ref().filter(|ready| may(ready))?;
        self.ready.take().map(|ready| ready.task)
    }
}
