//! What a thread uses for what it was started for, as it asks itself.
//!
//! That does not include how it came to be: C library and kernel take some 20 µs for it.

use anysched_programs::{Kernel, Usage};

use crate::kernel::Linux;
use crate::procfs;

/// What a thread had used when it began.
pub struct Begun {
    service: u64,
    dispatches: Option<u64>,
}

impl Begun {
    /// The current thread begins; whether it has blocked before.
    pub fn now(has_blocked: bool) -> Begun {
        // Without blocking, it has been picked for the first time.
        let dispatches = if has_blocked { dispatches() } else { Some(1) };
        Begun { service: Linux::cpu_time(), dispatches }
    }

    /// What the current thread has used since then, with the dispatch during which it began.
    pub fn used(&self) -> Usage {
        let service = Linux::cpu_time().saturating_sub(self.service);
        let both = self.dispatches.zip(dispatches());
        Usage { service, dispatches: both.map(|(before, now)| now.saturating_sub(before) + 1) }
    }
}

/// How often the current thread was picked, where the kernel counts it.
fn dispatches() -> Option<u64> {
    procfs::dispatches(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_uses_what_it_uses() {
        let used = std::thread::spawn(|| {
            let begun = Begun::now(true);
            let start = Linux::cpu_time();
            while Linux::cpu_time() < start + 2_000_000 {}
            begun.used()
        });
        let used = used.join().unwrap();
        assert!((2_000_000..1_000_000_000).contains(&used.service), "{used:?}");
        assert!(used.dispatches.is_none_or(|dispatches| dispatches >= 1), "{used:?}");
    }
}
