//! Work on as many threads as wanted. What comes out does not depend on how many.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The threads and when to stop.
#[derive(Clone, Copy)]
pub(crate) struct Workers<'a> {
    /// How many pieces of work are done at the same time; at least 1.
    pub(crate) jobs: usize,
    /// Looked at between pieces: once it is true, no further one is begun.
    pub(crate) cancel: &'a AtomicBool,
}

/// Stops the other workers when one panics, so that the panic is seen soon.
struct StopIfPanicking<'a>(&'a AtomicBool);

impl Drop for StopIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Workers<'_> {
    /// Does the pieces `0 .. total`, begun in order so that what a cancellation leaves is a
    /// beginning; an error ends it too, unless it comes of the cancellation. Outcomes are in order,
    /// `None` where a piece was not done. After each, by one thread at a time, `after` gets how
    /// many are done and which that was.
    pub(crate) fn run<T: Send, E: Send>(
        &self,
        total: usize,
        work: impl Fn(usize) -> Result<T, E> + Sync,
        after: impl Fn(usize, usize) + Sync,
    ) -> Vec<Option<Result<T, E>>> {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let done = Mutex::new((0, (0..total).map(|_| None).collect::<Vec<_>>()));
        let worker = || {
            let _guard = StopIfPanicking(&stop);
            while !self.cancel.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return;
                }
                let outcome = work(number);
                if outcome.is_err() {
                    if self.cancel.load(Ordering::Relaxed) {
                        return;
                    }
                    stop.store(true, Ordering::Relaxed);
                }
                let Ok(mut done) = done.lock() else { return };
                done.0 += 1;
                done.1[number] = Some(outcome);
                after(done.0, number);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.clamp(1, total.max(1)) {
                scope.spawn(worker);
            }
            worker();
        });
        done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1
    }
}
