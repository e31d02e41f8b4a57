//! Memory: a region of the image. One vCPU runs here, and nothing interrupts it.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use rlsf::Tlsf;

const SIZE: usize = 1 << 20;

struct Heap {
    blocks: UnsafeCell<Tlsf<'static, u32, u32, 24, 16>>,
    region: UnsafeCell<[MaybeUninit<u8>; SIZE]>,
}

// SAFETY: nobody else is here.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    blocks: UnsafeCell::new(Tlsf::new()),
    region: UnsafeCell::new([MaybeUninit::uninit(); SIZE]),
};

/// Makes the region available. Called once, before anything is allocated.
pub fn set_up() {
    // SAFETY: nobody else is here, and the region is nobody else's.
    unsafe { (*HEAP.blocks.get()).insert_free_block(&mut *HEAP.region.get()) };
}

// SAFETY: rlsf's blocks are disjoint and aligned as asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: nobody else is here.
        let block = unsafe { (*self.blocks.get()).allocate(layout) };
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: nobody else is here; the block is one of `alloc`.
        unsafe {
            (*self.blocks.get()).deallocate(NonNull::new_unchecked(block), layout.align());
        }
    }
}
