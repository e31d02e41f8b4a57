//! Where the log of decisions goes: to the debug console, in chunks that `anysched_wire::log`
//! defines. The CPUs share a policy, so there is one log, sent as that of CPU 0.

use anysched_arceos_qemu::debugcon;
use anysched_core::recorder::LogSink;
use anysched_wire::log::Chunk;
use kspin::SpinNoIrq;

static CHUNK: SpinNoIrq<Chunk> = SpinNoIrq::new(Chunk::new());

/// The log.
pub(crate) struct Log;

impl LogSink for Log {
    fn write(&mut self, bytes: &[u8]) {
        CHUNK.lock().write(bytes);
    }

    fn record_ends(&mut self) {
        let mut chunk = CHUNK.lock();
        if chunk.record_ends() {
            chunk.send(0, debugcon::send);
        }
    }
}

/// Sends what has been recorded so far.
pub fn finish() {
    CHUNK.lock().send(0, debugcon::send);
}
