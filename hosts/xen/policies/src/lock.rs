//! A lock for what pools share. Interrupts are off wherever it is taken, so whoever holds it goes
//! on.

use core::cell::UnsafeCell;
use core::hint;
use core::sync::atomic::{AtomicBool, Ordering};

/// Something that one pCPU uses at a time.
pub struct Lock<T> {
    is_held: AtomicBool,
    inner: UnsafeCell<T>,
}

// SAFETY: what is inside is used by who holds the lock.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub const fn new(inner: T) -> Lock<T> {
        Lock { is_held: AtomicBool::new(false), inner: UnsafeCell::new(inner) }
    }

    pub fn with<R>(&self, call: impl FnOnce(&mut T) -> R) -> R {
        while self.is_held.swap(true, Ordering::Acquire) {
            hint::spin_loop();
        }
        // SAFETY: this holds the lock.
        let result = call(unsafe { &mut *self.inner.get() });
        self.is_held.store(false, Ordering::Release);
        result
    }

    /// As [`with`](Lock::with), unless somebody holds it.
    pub fn try_with(&self, call: impl FnOnce(&mut T)) {
        if !self.is_held.load(Ordering::Relaxed) {
            self.with(call);
        }
    }
}
