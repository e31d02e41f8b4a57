//! The policy's memory: a region of fixed size that the C side gives.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::slice;

use anysched_heap::Heap;

use crate::kernel;

struct Global(UnsafeCell<Heap>);

// SAFETY: the C side makes one call at a time.
unsafe impl Sync for Global {}

#[global_allocator]
static HEAP: Global = Global(UnsafeCell::new(Heap::new()));

// SAFETY: the heap's blocks are disjoint and aligned as asked.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: nobody else is here.
        unsafe { (*self.0.get()).allocate(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: nobody else is here; the block is one of `alloc`.
        unsafe { (*self.0.get()).deallocate(block, layout) }
    }
}

/// Forgets all blocks.
pub fn reset() {
    // SAFETY: nobody else is here, and what was allocated is not used again.
    unsafe {
        let heap = &mut *HEAP.0.get();
        *heap = Heap::new();
        let size = kernel::anysched_heap_size as usize;
        let region = kernel::anysched_heap.cast::<MaybeUninit<u8>>();
        heap.give(slice::from_raw_parts_mut(region, size));
    }
}

/// Bytes in use, and bytes there are.
pub fn usage() -> (u64, u64) {
    // SAFETY: nobody else is here.
    let (used, _) = unsafe { (*HEAP.0.get()).usage() };
    (used as u64, kernel::anysched_heap_size)
}

/// The size in bytes of the request that could not be met, if one could not.
pub fn refused() -> Option<usize> {
    // SAFETY: nobody else is here.
    unsafe { (*HEAP.0.get()).refused() }
}
