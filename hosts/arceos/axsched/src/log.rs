//! Where the log of decisions goes: to the debug console, in chunks.
//!
//! CPUs fill chunks of their own, so their logs do not mix; `anysched_wire::log` defines how they
//! are sent.

use anysched_arceos_qemu::debugcon;
use anysched_core::recorder::LogSink;
use anysched_wire::log::Chunk;
use kspin::SpinNoIrq;

use crate::MAX_CPUS;

static CHUNKS: [SpinNoIrq<Chunk>; MAX_CPUS] = [const { SpinNoIrq::new(Chunk::new()) }; MAX_CPUS];

/// One chunk at a time.
static CONSOLE: SpinNoIrq<()> = SpinNoIrq::new(());

/// The log of one CPU.
pub(crate) struct CpuLog {
    pub cpu: usize,
}

impl LogSink for CpuLog {
    fn write(&mut self, bytes: &[u8]) {
        CHUNKS[self.cpu].lock().write(bytes);
    }

    fn record_ends(&mut self) {
        let mut chunk = CHUNKS[self.cpu].lock();
        if chunk.record_ends() {
            send(self.cpu, &mut chunk);
        }
    }
}

/// Sends the complete records of a chunk.
fn send(cpu: usize, chunk: &mut Chunk) {
    let _turn = CONSOLE.lock();
    // There are fewer than 256 CPUs.
    chunk.send(cpu as u8, debugcon::send);
}

/// Sends what has been recorded so far.
pub fn finish() {
    for (cpu, chunk) in CHUNKS.iter().enumerate() {
        send(cpu, &mut chunk.lock());
    }
}
