//! A heap in a region of fixed size, which knows how much of it is used and what it had to refuse.
//!
//! Whoever makes it a global allocator sees to it that one call is made at a time.

#![no_std]

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use rlsf::Tlsf;

/// Blocks of up to 4 GiB; free ones in 32 lists for each power of two.
type Blocks = Tlsf<'static, u32, u32, 28, 32>;

/// A heap.
pub struct Heap {
    blocks: Blocks,
    all: usize,
    used: usize,
    /// The size of a request that could not be met.
    refused: usize,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap::new()
    }
}

impl Heap {
    /// Without memory.
    pub const fn new() -> Heap {
        Heap { blocks: Blocks::new(), all: 0, used: 0, refused: 0 }
    }

    /// Gives it memory.
    pub fn give(&mut self, region: &'static mut [MaybeUninit<u8>]) {
        self.all += region.len();
        self.blocks.insert_free_block(region);
    }

    /// A block, or null.
    pub fn allocate(&mut self, layout: Layout) -> *mut u8 {
        let Some(block) = self.blocks.allocate(layout) else {
            self.refused = layout.size();
            return ptr::null_mut();
        };
        self.used += layout.size();
        block.as_ptr()
    }

    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// The block is of [`allocate`](Heap::allocate) with this layout, and not used again.
    pub unsafe fn deallocate(&mut self, block: *mut u8, layout: Layout) {
        self.used -= layout.size();
        // SAFETY: by the contract of this function; blocks that were given are not null.
        unsafe { self.blocks.deallocate(NonNull::new_unchecked(block), layout.align()) }
    }

    /// Bytes in use, and bytes there are.
    pub fn usage(&self) -> (usize, usize) {
        (self.used, self.all)
    }

    /// The size in bytes of the request that could not be met, if one could not.
    pub fn refused(&self) -> Option<usize> {
        Some(self.refused).filter(|size| *size > 0)
    }
}
