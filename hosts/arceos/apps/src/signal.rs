//! A task that waits until others have done something.
//!
//! ArceOS's own wait queues (axtask's `WaitQueue`, which is event-listener without std) cannot bear
//! a task losing the CPU in the middle of an operation: two tasks that wake each other hang under
//! rr with slices of 1 ms, and under cfs, which preempts the waker, they take a slice for each
//! hand-over. Here the lock keeps the CPU.

use core::future::poll_fn;
use core::task::{Poll, Waker};

use anysched_programs::{Guarded, Signal};
use axtask::future::block_on;
use kspin::SpinNoIrq;

/// What one task at a time waits for.
pub struct Waiting {
    waker: SpinNoIrq<Option<Waker>>,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { waker: SpinNoIrq::new(None) }
    }
}

impl Signal for Waiting {
    fn wait_until(&self, is_done: impl Fn() -> bool) {
        block_on(poll_fn(|cx| {
            if is_done() {
                return Poll::Ready(());
            }
            *self.waker.lock() = Some(cx.waker().clone());
            // It may have been done in between, without anyone being woken.
            if is_done() { Poll::Ready(()) } else { Poll::Pending }
        }));
    }

    fn wake(&self) {
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What one task at a time looks at, which keeps the CPU meanwhile.
pub struct Alone<T>(SpinNoIrq<T>);

impl<T: Send + 'static> Guarded<T> for Alone<T> {
    fn new(guarded: T) -> Alone<T> {
        Alone(SpinNoIrq::new(guarded))
    }

    fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.0.lock())
    }
}
