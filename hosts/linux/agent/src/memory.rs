//! The agent's memory, of which there is so much and no more: a policy that wants ever more ends
//! the agent and not the machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::end;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

static USED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets how much there may be, in bytes.
pub fn limit(bytes: usize) {
    LIMIT.store(bytes, Relaxed);
}

/// Bytes in use, and bytes there may be.
pub fn usage() -> (u64, u64) {
    (USED.load(Relaxed) as u64, LIMIT.load(Relaxed) as u64)
}

/// Adds what belongs to no policy.
pub fn add(bytes: usize) {
    LIMIT.fetch_add(bytes, Relaxed);
}

// SAFETY: the system's allocator does it.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Relaxed);
        let limit = LIMIT.load(Relaxed);
        if layout.size() > limit.saturating_sub(used) {
            limit_is_reached(layout.size(), used, limit);
        }
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the block is one of `alloc`, that is, of the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cold]
fn limit_is_reached(wanted: usize, used: usize, limit: usize) -> ! {
    LIMIT.store(usize::MAX, Relaxed);
    end::die(&format!(
        "the policy's memory is used up: {wanted} bytes more are wanted, {used} of {limit} are in \
         use; start the agent with a larger --heap"
    ))
}
