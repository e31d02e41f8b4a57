//! A task that waits until others have done something, as a futex.

use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};

use anysched_programs::{Guarded, Signal};
use rustix::thread::futex;

/// Counts how often the waiting task was woken.
#[derive(Default)]
pub struct Wakes(AtomicU32);

impl Signal for Wakes {
    fn wait_until(&self, is_done: impl Fn() -> bool) {
        loop {
            // Before the check: a wake after it makes the kernel return at once.
            let seen = self.0.load(Acquire);
            if is_done() {
                return;
            }
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, seen, None);
        }
    }

    fn wake(&self) {
        self.0.fetch_add(1, Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }
}

/// What one task at a time looks at; the others wait for it as for any other lock.
pub struct Alone<T>(Mutex<T>);

impl<T: Send + 'static> Guarded<T> for Alone<T> {
    fn new(guarded: T) -> Alone<T> {
        Alone(Mutex::new(guarded))
    }

    fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
