//! Decision logs of several CPUs on one byte channel, in chunks.
//!
//! | bytes | are |
//! |---|---|
//! | 4 | [`MARK`]; its last character is the version |
//! | 1 | the CPU |
//! | 4 | the length *n* of what follows, little-endian, [`LONGEST`] at most |
//! | *n* | bytes of that CPU's log, which follow those of its chunk before |
//!
//! Chunks of CPUs come in any order, one after the other to the end of the channel. What a log
//! itself is, `anysched_core::recorder` defines.
//!
//! Linux, whose CPUs share a log, sends it as CPU 0's, and as that of CPU `1 + n` what the kernel
//! recorded of its own on CPU *n*: lines of ftrace with times in nanoseconds.

use crate::{At, WireError};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// What all chunks begin with; the last character is the version.
pub const MARK: [u8; 4] = *b"log1";

/// The most bytes of a chunk after its head.
pub const LONGEST: usize = 1 << 24;

/// The I/O port of QEMU's device `isa-debugcon`, which is the channel.
pub const PORT: u16 = 0xe9;

/// The most CPUs whose logs can be told apart.
pub const MOST_CPUS: usize = 256;

const NAME: &str = "logs of decisions";

/// Sends `bytes` of the log of `cpu` as chunks. Only one CPU may call this at a time.
pub fn send(cpu: u8, bytes: &[u8], mut sink: impl FnMut(&[u8])) {
    for chunk in bytes.chunks(LONGEST) {
        let [a, b, c, d] = MARK;
        // A chunk's length fits: it is `LONGEST` at most.
        let [e, f, g, h] = (chunk.len() as u32).to_le_bytes();
        sink(&[a, b, c, d, cpu, e, f, g, h]);
        sink(chunk);
    }
}

/// A log's chunk is due when it has so many bytes.
const DUE: usize = 64 << 10;

/// What a CPU has logged and not sent.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// How many of the bytes are complete records.
    complete: usize,
}

impl Chunk {
    /// Without a log.
    pub const fn new() -> Chunk {
        Chunk { bytes: Vec::new(), complete: 0 }
    }

    /// Adds bytes of a record. The first call allocates, with room for the last record: later
    /// there must be no allocation.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(2 * DUE);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// A record is complete. Returns whether the chunk is due to be [sent](Chunk::send).
    pub fn record_ends(&mut self) -> bool {
        self.complete = self.bytes.len();
        self.complete >= DUE
    }

    /// [Sends](send) the complete records, if there are any.
    pub fn send(&mut self, cpu: u8, sink: impl FnMut(&[u8])) {
        let complete = core::mem::take(&mut self.complete);
        send(cpu, &self.bytes[..complete], sink);
        self.bytes.drain(..complete);
    }
}

/// The log of each of `cpus` CPUs, from everything that was sent.
///
/// Errors: a chunk is malformed, is of another CPU or is cut off.
pub fn receive(sent: &[u8], cpus: usize) -> Result<Vec<Vec<u8>>, WireError> {
    let mut logs = vec![Vec::new(); cpus.min(MOST_CPUS)];
    let mut rest = sent;
    while !rest.is_empty() {
        let at = At::Byte(sent.len() - rest.len());
        let error = |value: &str, why: &str| WireError::new(NAME, at, value, why);
        let (mark, after) = rest.split_at(rest.len().min(MARK.len()));
        if mark != MARK {
            let wanted = "log1 is wanted; build program and image from the same sources";
            return Err(error(&format!("{}", mark.escape_ascii()), wanted));
        }
        let cut = |length: usize| error(&format!("{length}"), "bytes are wanted, and cut off");
        let ([cpu, length @ ..], after) = after.split_first_chunk::<5>().ok_or_else(|| cut(5))?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > LONGEST {
            return Err(error(&format!("{length}"), "bytes are too long for a chunk"));
        }
        let (chunk, after) = after.split_at_checked(length).ok_or_else(|| cut(length))?;
        let log = logs.get_mut(usize::from(*cpu));
        log.ok_or_else(|| error(&format!("{cpu}"), "there is no such CPU"))?
            .extend_from_slice(chunk);
        rest = after;
    }
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn complete_records_are_sent() {
        let (mut chunk, mut sent) = (Chunk::new(), Vec::new());
        chunk.write(&[1]);
        chunk.send(0, |bytes| sent.extend_from_slice(bytes));
        assert!(sent.is_empty(), "no record is complete");
        chunk.write(&[2]);
        assert!(!chunk.record_ends());
        chunk.write(&[3]);
        chunk.send(0, |bytes| sent.extend_from_slice(bytes));
        assert_eq!(receive(&sent, 1).unwrap(), [vec![1, 2]]);
        chunk.write(&[0; DUE]);
        assert!(chunk.record_ends());
        chunk.send(0, |bytes| sent.extend_from_slice(bytes));
        assert_eq!(receive(&sent, 1).unwrap()[0][..3], [1, 2, 3]);
    }

    #[test]
    fn chunks_by_hand() {
        let sent =
            b"log1\x00\x02\0\0\0\x0a\x0blog1\x01\x01\0\0\0\x14log1\x00\x01\0\0\0\x0c".as_slice();
        let mut written = Vec::new();
        for (cpu, bytes) in [(0, &[10, 11][..]), (1, &[20]), (0, &[12]), (1, &[])] {
            super::send(cpu, bytes, |bytes| written.extend_from_slice(bytes));
        }
        assert_eq!(written, sent);
        assert_eq!(receive(sent, 2).unwrap(), [vec![10, 11, 12], vec![20]]);
        assert_eq!(receive(sent, 3).unwrap()[2], []);
        assert_eq!(receive(&[], 1), Ok(vec![Vec::new()]));
        let error = receive(sent, 1).unwrap_err().to_string();
        assert_eq!(error, "logs of decisions, byte 11: \"1\": there is no such CPU");
        for cut in [1, 4, 8, 9, 10, 12, 20] {
            assert!(receive(&sent[..cut], 2).is_err(), "{cut}");
        }
        let error = receive(b"log2\x00\0\0\0\0", 1).unwrap_err();
        assert_eq!((error.at, error.value.as_str()), (At::Byte(0), "log2"));
        assert!(receive(b"log1\x00\xff\xff\xff\xff", 1).unwrap_err().why.contains("too long"));
    }

    #[test]
    fn what_is_too_long_is_several_chunks() {
        let bytes = vec![7; LONGEST + 1];
        let (mut written, mut calls) = (Vec::new(), 0);
        send(0, &bytes, |bytes| {
            written.extend_from_slice(bytes);
            calls += 1;
        });
        assert_eq!((calls, receive(&written, 1).unwrap()), (4, vec![bytes]));
    }
}
