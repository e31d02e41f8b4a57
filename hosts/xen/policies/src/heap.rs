//! The policies' memory: a region of fixed size that the C side gives, shared by all pools.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::slice;

use anysched_heap::Heap;

use crate::lock::Lock;

struct Global(Lock<Heap>);

#[global_allocator]
static HEAP: Global = Global(Lock::new(Heap::new()));

// SAFETY: the heap's blocks are disjoint and aligned as asked.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.with(|heap| heap.allocate(layout))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is one of `alloc`.
        self.0.with(|heap| unsafe { heap.deallocate(block, layout) });
    }
}

/// Gives the heap its memory.
///
/// # Safety
///
/// `region` has `size` bytes that nobody else uses.
pub unsafe fn give(region: *mut u8, size: usize) {
    // SAFETY: by the contract of this function.
    let region = unsafe { slice::from_raw_parts_mut(region.cast::<MaybeUninit<u8>>(), size) };
    HEAP.0.with(|heap| heap.give(region));
}

/// Bytes in use, and bytes there are.
pub fn usage() -> (usize, usize) {
    HEAP.0.with(|heap| heap.usage())
}

/// The size in bytes of the request that could not be met, if one could not.
pub fn refused() -> Option<usize> {
    HEAP.0.with(|heap| heap.refused())
}
