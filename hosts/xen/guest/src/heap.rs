//! Memory: a region of dom0's image, or what dom0 has given a domain.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::slice;

use anysched_heap::Heap;

use crate::smp::Lock;

unsafe extern "C" {
    static mut own_heap: [u8; 0];
    static own_heap_end: u8;
}

struct Memory(Lock<Heap>);

#[global_allocator]
static HEAP: Memory = Memory(Lock::new(Heap::new()));

/// Makes the region in the image available, which only dom0 has. Called once, before anything is
/// allocated.
pub fn set_up_own() {
    let first = &raw mut own_heap as u64;
    let length = &raw const own_heap_end as u64 - first;
    // SAFETY: the linker has put it there for this, and it is nobody else's.
    unsafe { set_up(first, length as usize) }
}

/// Makes a region available. Called once, before anything is allocated.
///
/// # Safety
///
/// The region is nobody else's.
pub unsafe fn set_up(address: u64, length: usize) {
    // SAFETY: by the contract of this function.
    let region = unsafe { slice::from_raw_parts_mut(address as *mut MaybeUninit<u8>, length) };
    HEAP.0.with(|heap| heap.give(region));
}

// SAFETY: the heap's blocks are disjoint and aligned as asked, and one call is made at a time.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.with(|heap| heap.allocate(layout))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is one of `alloc`.
        self.0.with(|heap| unsafe { heap.deallocate(block, layout) });
    }
}
