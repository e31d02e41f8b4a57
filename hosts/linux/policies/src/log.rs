//! Where the log of decisions goes: into a buffer of the C side's.

use anysched_core::recorder::LogSink;

use crate::kernel;

/// The buffer, which counts what finds no room.
pub struct Buffer;

impl LogSink for Buffer {
    fn write(&mut self, bytes: &[u8]) {
        // SAFETY: the bytes are valid; the C side copies them.
        unsafe { kernel::anysched_log_write(bytes.as_ptr(), bytes.len() as u64) }
    }

    fn record_ends(&mut self) {
        kernel::anysched_log_record_ends();
    }
}
