//! The policies' memory: a region of fixed size that the C side gives, shared by all pools.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use core::{hint, slice};

use rlsf::Tlsf;

/// Blocks of up to 4 GiB; free ones in 32 lists for each power of two.
type Blocks = Tlsf<'static, u32, u32, 28, 32>;

/// Interrupts are off wherever something is allocated, so whoever holds the lock goes on.
struct Heap {
    is_held: AtomicBool,
    state: UnsafeCell<State>,
}

struct State {
    blocks: Blocks,
    all: usize,
    used: usize,
    /// The size of a request that could not be met.
    refused: usize,
}

// SAFETY: the state is used by who holds the lock.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    is_held: AtomicBool::new(false),
    state: UnsafeCell::new(State { blocks: Blocks::new(), all: 0, used: 0, refused: 0 }),
};

impl Heap {
    fn with<R>(&self, call: impl FnOnce(&mut State) -> R) -> R {
        while self.is_held.swap(true, Ordering::Acquire) {
            hint::spin_loop();
        }
        // SAFETY: this holds the lock.
        let result = call(unsafe { &mut *self.state.get() });
        self.is_held.store(false, Ordering::Release);
        result
    }
}

// SAFETY: rlsf's blocks are disjoint and aligned as asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|state| match state.blocks.allocate(layout) {
            Some(block) => {
                state.used += layout.size();
                block.as_ptr()
            }
            None => {
                state.refused = layout.size();
                ptr::null_mut()
            }
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.with(|state| {
            state.used -= layout.size();
            // SAFETY: the block is one of `alloc`.
            unsafe { state.blocks.deallocate(NonNull::new_unchecked(block), layout.align()) }
        });
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
    HEAP.with(|state| {
        state.blocks.insert_free_block(region);
        state.all += size;
    });
}

/// Bytes in use, and bytes there are.
pub fn usage() -> (usize, usize) {
    HEAP.with(|state| (state.used, state.all))
}

/// The size in bytes of the request that could not be met, if one could not.
pub fn refused() -> Option<usize> {
    HEAP.with(|state| Some(state.refused).filter(|size| *size > 0))
}
