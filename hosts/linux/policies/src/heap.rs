//! The policy's memory: a region of fixed size that the C side gives.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;

use rlsf::Tlsf;

use crate::kernel;

/// Blocks of up to 4 GiB; free ones in 32 lists for each power of two.
type Blocks = Tlsf<'static, u32, u32, 28, 32>;

struct Heap(UnsafeCell<State>);

struct State {
    blocks: Blocks,
    used: u64,
    /// The size of a request that could not be met.
    refused: u64,
}

// SAFETY: the C side makes one call at a time.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(State { blocks: Blocks::new(), used: 0, refused: 0 }));

// SAFETY: rlsf's blocks are disjoint and aligned as asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: nobody else is here.
        let state = unsafe { &mut *self.0.get() };
        let Some(block) = state.blocks.allocate(layout) else {
            state.refused = layout.size() as u64;
            return ptr::null_mut();
        };
        state.used += layout.size() as u64;
        block.as_ptr()
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: nobody else is here; the block is one of `alloc`.
        unsafe {
            let state = &mut *self.0.get();
            state.used -= layout.size() as u64;
            state.blocks.deallocate(NonNull::new_unchecked(block), layout.align());
        }
    }
}

/// Forgets all blocks.
pub fn reset() {
    // SAFETY: nobody else is here, and what was allocated is not used again.
    unsafe {
        let state = &mut *HEAP.0.get();
        *state = State { blocks: Blocks::new(), used: 0, refused: 0 };
        let size = kernel::anysched_heap_size as usize;
        let region =
            slice::from_raw_parts_mut(kernel::anysched_heap.cast::<MaybeUninit<u8>>(), size);
        state.blocks.insert_free_block(region);
    }
}

/// Bytes in use, and bytes there are.
pub fn usage() -> (u64, u64) {
    // SAFETY: nobody else is here.
    (unsafe { (*HEAP.0.get()).used }, kernel::anysched_heap_size)
}

/// The size in bytes of the request that could not be met, if one could not.
pub fn refused() -> Option<u64> {
    // SAFETY: nobody else is here.
    Some(unsafe { (*HEAP.0.get()).refused }).filter(|size| *size > 0)
}
