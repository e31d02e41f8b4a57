//! Where the logs of decisions go: to QEMU's debug console, in chunks, each pool's as that of a
//! CPU.

use alloc::vec::Vec;
use core::arch::asm;
use core::cell::UnsafeCell;
use core::hint;
use core::sync::atomic::{AtomicBool, Ordering};

use anysched_core::recorder::LogSink;
use anysched_wire::log;

/// A chunk is sent when it has reached this size.
const CHUNK: usize = 64 << 10;

/// Pools with logs, at most.
const POOLS: usize = 16;

/// The log of a pool.
pub struct PoolLog(pub u8);

struct Chunk {
    bytes: Vec<u8>,
    /// How many of the bytes are complete records.
    complete: usize,
}

struct Chunks {
    is_held: AtomicBool,
    all: UnsafeCell<[Chunk; POOLS]>,
}

// SAFETY: the chunks are used by who holds the lock.
unsafe impl Sync for Chunks {}

static CHUNKS: Chunks = Chunks {
    is_held: AtomicBool::new(false),
    all: UnsafeCell::new([const { Chunk { bytes: Vec::new(), complete: 0 } }; POOLS]),
};

impl Chunks {
    fn with(&self, call: impl FnOnce(&mut [Chunk; POOLS])) {
        while self.is_held.swap(true, Ordering::Acquire) {
            hint::spin_loop();
        }
        // SAFETY: this holds the lock.
        call(unsafe { &mut *self.all.get() });
        self.is_held.store(false, Ordering::Release);
    }
}

impl LogSink for PoolLog {
    fn write(&mut self, bytes: &[u8]) {
        CHUNKS.with(|all| {
            let Some(chunk) = all.get_mut(usize::from(self.0)) else { return };
            if chunk.bytes.capacity() == 0 {
                // Allocates once, with room for the last record: later there must be no allocation.
                chunk.bytes.reserve(2 * CHUNK);
            }
            chunk.bytes.extend_from_slice(bytes);
        });
    }

    fn record_ends(&mut self) {
        CHUNKS.with(|all| {
            let Some(chunk) = all.get_mut(usize::from(self.0)) else { return };
            chunk.complete = chunk.bytes.len();
            if chunk.complete >= CHUNK {
                send(self.0, chunk);
            }
        });
    }
}

/// Sends the complete records of a chunk.
fn send(pool: u8, chunk: &mut Chunk) {
    log::send(pool, &chunk.bytes[..chunk.complete], |bytes| bytes.iter().copied().for_each(put));
    let complete = core::mem::take(&mut chunk.complete);
    chunk.bytes.drain(..complete);
}

fn put(byte: u8) {
    // SAFETY: the port belongs to isa-debugcon or to nobody; writing to it touches no memory.
    unsafe { asm!("out dx, al", in("dx") log::PORT, in("al") byte, options(nomem, nostack)) }
}

/// Sends what has been recorded so far, unless it is being written.
pub fn flush() {
    if CHUNKS.is_held.load(Ordering::Relaxed) {
        return;
    }
    CHUNKS.with(|all| {
        for (pool, chunk) in all.iter_mut().enumerate() {
            if chunk.complete > 0 {
                send(pool as u8, chunk);
            }
        }
    });
}
