//! Where the logs of decisions go: to QEMU's debug console, in chunks, each pool's as that of a
//! CPU.

use core::arch::asm;

use anysched_core::recorder::LogSink;
use anysched_wire::log::{self, Chunk};

use crate::lock::Lock;

/// Pools with logs, at most.
const POOLS: usize = 16;

static CHUNKS: Lock<[Chunk; POOLS]> = Lock::new([const { Chunk::new() }; POOLS]);

/// The log of a pool.
pub struct PoolLog(pub u8);

impl PoolLog {
    fn with(&self, call: impl FnOnce(&mut Chunk)) {
        CHUNKS.with(|all| all.get_mut(usize::from(self.0)).map(call));
    }
}

impl LogSink for PoolLog {
    fn write(&mut self, bytes: &[u8]) {
        self.with(|chunk| chunk.write(bytes));
    }

    fn record_ends(&mut self) {
        self.with(|chunk| {
            if chunk.record_ends() {
                chunk.send(self.0, send);
            }
        });
    }
}

/// Sends bytes to the debug console.
fn send(bytes: &[u8]) {
    for &byte in bytes {
        // SAFETY: the port belongs to isa-debugcon or to nobody; writing to it touches no memory.
        unsafe { asm!("out dx, al", in("dx") log::PORT, in("al") byte, options(nomem, nostack)) }
    }
}

/// Sends what has been recorded so far, unless it is being written.
pub fn flush() {
    CHUNKS.try_with(|all| {
        for (pool, chunk) in all.iter_mut().enumerate() {
            chunk.send(pool as u8, send);
        }
    });
}
