//! The gate at which tasks that arrive together wait for each other.
//!
//! ArceOS keeps the CPU while it starts them. A thread cannot do that, so those that get a CPU
//! before all are there block at the gate: the scheduler then sees them run for some microseconds,
//! block and be woken when the gate opens. Those that get none before that pass without stopping.

use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::thread::futex;

const OPEN: u32 = 0;
const SHUT: u32 = 1;

/// The gate that tasks started at this moment have to pass.
static CURRENT: Mutex<Option<Gate>> = Mutex::new(None);

/// A gate.
#[derive(Clone)]
pub struct Gate(Arc<AtomicU32>);

impl Gate {
    /// That of tasks that are started at this moment.
    pub fn current() -> Option<Gate> {
        CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it is open. Returns whether that took waiting.
    pub fn pass(&self) -> bool {
        let mut has_waited = false;
        while self.0.load(Acquire) == SHUT {
            has_waited = true;
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, SHUT, None);
        }
        has_waited
    }
}

/// Keeps a gate shut as long as it is there.
pub struct Shut(Gate);

impl Shut {
    /// Tasks that are started from here on wait.
    pub fn new() -> Shut {
        let gate = Gate(Arc::new(AtomicU32::new(SHUT)));
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate.clone());
        Shut(gate)
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let Shut(Gate(state)) = self;
        state.store(OPEN, Release);
        let _ = futex::wake(state, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::time::Duration;

    #[test]
    fn nobody_passes_before_it_opens() {
        assert!(Gate::current().is_none());
        let shut = Shut::new();
        let gate = Gate::current().unwrap();
        let has_passed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gate.pass();
                has_passed.store(true, SeqCst);
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!has_passed.load(SeqCst));
            drop(shut);
        });
        assert!(has_passed.load(SeqCst) && !gate.pass() && Gate::current().is_none());
    }
}
