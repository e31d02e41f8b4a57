//! Where the log of decisions goes: to the debug console, in chunks.
//!
//! A chunk is the number of the CPU (one byte), its length (four bytes, little-endian) and as many
//! bytes of that CPU's log. CPUs fill chunks of their own, so that their logs do not mix.

use alloc::vec::Vec;

use anysched_arceos_qemu::debugcon;
use anysched_core::recorder::LogSink;
use kspin::SpinNoIrq;

use crate::MAX_CPUS;

/// A chunk is sent when it has reached this size.
const CHUNK: usize = 64 << 10;

static CHUNKS: [SpinNoIrq<Vec<u8>>; MAX_CPUS] = [const { SpinNoIrq::new(Vec::new()) }; MAX_CPUS];

/// One chunk at a time.
static CONSOLE: SpinNoIrq<()> = SpinNoIrq::new(());

/// The log of one CPU.
pub(crate) struct CpuLog {
    pub cpu: usize,
}

impl LogSink for CpuLog {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunk = CHUNKS[self.cpu].lock();
        if chunk.capacity() == 0 {
            // Once, with room for the last record: later there must be no allocation.
            chunk.reserve(2 * CHUNK);
        }
        chunk.extend_from_slice(bytes);
        if chunk.len() >= CHUNK {
            send(self.cpu, &mut chunk);
        }
    }
}

fn send(cpu: usize, chunk: &mut Vec<u8>) {
    let _turn = CONSOLE.lock();
    debugcon::send(&[cpu as u8]);
    debugcon::send(&(chunk.len() as u32).to_le_bytes());
    debugcon::send(chunk);
    chunk.clear();
}

/// Sends what has been recorded so far. Call it between two calls of the policy that matter, at
/// the end: the record of a call that is going on would be torn.
pub fn finish() {
    for (cpu, chunk) in CHUNKS.iter().enumerate() {
        let mut chunk = chunk.lock();
        if !chunk.is_empty() {
            send(cpu, &mut chunk);
        }
    }
}
