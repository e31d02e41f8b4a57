//! What a thread has used, as it asks itself.

use anysched_programs::{Kernel, Usage};

use crate::kernel::Linux;
use crate::procfs;

/// What the current thread has used so far.
pub fn so_far() -> Usage {
    let service = Linux::cpu_time();
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let dispatches = schedstat.as_deref().and_then(procfs::dispatches);
    Usage { service, dispatches }
}

/// What was used between `before` and `after`, with the dispatch during which `before` was asked.
pub fn between(before: Usage, after: Usage) -> Usage {
    let dispatches = before.dispatches.zip(after.dispatches);
    Usage {
        service: after.service.saturating_sub(before.service),
        dispatches: dispatches.map(|(before, after)| after.saturating_sub(before) + 1),
    }
}
