//! Where the log of decisions goes: to the debug console, in chunks.
//!
//! CPUs fill chunks of their own, so their logs do not mix; `anysched_wire::log` defines how they
//! are sent.

use alloc::vec::Vec;

use anysched_arceos_qemu::debugcon;
use anysched_core::recorder::LogSink;
use anysched_wire::log;
use kspin::SpinNoIrq;

use crate::MAX_CPUS;

/// A chunk is sent when it has reached this size.
const CHUNK: usize = 64 << 10;

static CHUNKS: [SpinNoIrq<Chunk>; MAX_CPUS] =
    [const { SpinNoIrq::new(Chunk { bytes: Vec::new(), complete: 0 }) }; MAX_CPUS];

struct Chunk {
    bytes: Vec<u8>,
    /// How many of the bytes are complete records.
    complete: usize,
}

/// One chunk at a time.
static CONSOLE: SpinNoIrq<()> = SpinNoIrq::new(());

/// The log of one CPU.
pub(crate) struct CpuLog {
    pub cpu: usize,
}

impl LogSink for CpuLog {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunk = CHUNKS[self.cpu].lock();
        if chunk.bytes.capacity() == 0 {
            // Allocates once, with room for the last record: later there must be no allocation.
            chunk.bytes.reserve(2 * CHUNK);
        }
        chunk.bytes.extend_from_slice(bytes);
    }

    fn record_ends(&mut self) {
        let mut chunk = CHUNKS[self.cpu].lock();
        chunk.complete = chunk.bytes.len();
        if chunk.complete >= CHUNK {
            send(self.cpu, &mut chunk);
        }
    }
}

/// Sends the complete records of a chunk.
fn send(cpu: usize, chunk: &mut Chunk) {
    let _turn = CONSOLE.lock();
    // There are fewer than 256 CPUs.
    log::send(cpu as u8, &chunk.bytes[..chunk.complete], debugcon::send);
    let complete = core::mem::take(&mut chunk.complete);
    chunk.bytes.drain(..complete);
}

/// Sends what has been recorded so far.
pub fn finish() {
    for (cpu, chunk) in CHUNKS.iter().enumerate() {
        let mut chunk = chunk.lock();
        if chunk.complete > 0 {
            send(cpu, &mut chunk);
        }
    }
}
