//! The log of decisions, which is in memory until the agent ends.

use std::sync::{Mutex, PoisonError};

use anysched_core::recorder::LogSink;

use crate::memory;

/// Bytes of a piece of memory.
const PIECE: usize = 1 << 20;

struct Log {
    pieces: Vec<Vec<u8>>,
    /// Bytes that complete records have, and bytes there may be.
    complete: usize,
    size: usize,
    length: usize,
    /// Records that found no room. What follows a loss means nothing: the log ends before it.
    lost: u64,
    is_full: bool,
}

static LOG: Mutex<Log> = Mutex::new(Log {
    pieces: Vec::new(),
    complete: 0,
    size: 0,
    length: 0,
    lost: 0,
    is_full: false,
});

fn with<R>(action: impl FnOnce(&mut Log) -> R) -> R {
    action(&mut LOG.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Room for so many bytes; 0: nothing is recorded.
pub fn reserve(bytes: u64) {
    memory::add(bytes as usize + PIECE);
    with(|log| log.size = bytes as usize);
}

/// The log's bytes: used, there, and records lost; nothing, if nothing is recorded.
pub fn usage() -> Option<(u64, u64, u64)> {
    with(|log| (log.size > 0).then_some((log.complete as u64, log.size as u64, log.lost)))
}

/// What was recorded, in pieces, if anything was to be. If a panic ended it, with the beginning of
/// a record that has no answer.
pub fn recorded() -> Option<Vec<Vec<u8>>> {
    // The thread that records may have stopped in the middle.
    let mut log = LOG.try_lock().ok()?;
    let length = if log.is_full { log.complete } else { log.length };
    let mut left = length;
    let mut pieces = std::mem::take(&mut log.pieces);
    for piece in &mut pieces {
        piece.truncate(left);
        left -= piece.len();
    }
    (log.size > 0).then_some(pieces)
}

/// Where the recorder writes.
pub struct Buffer;

impl LogSink for Buffer {
    fn write(&mut self, mut bytes: &[u8]) {
        with(|log| {
            if log.is_full || log.length + bytes.len() > log.size {
                log.is_full = true;
                return;
            }
            log.length += bytes.len();
            while !bytes.is_empty() {
                if log.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
                    log.pieces.push(Vec::with_capacity(PIECE));
                }
                let Some(piece) = log.pieces.last_mut() else { return };
                let (now, later) = bytes.split_at(bytes.len().min(PIECE - piece.len()));
                piece.extend_from_slice(now);
                bytes = later;
            }
        });
    }

    fn record_ends(&mut self) {
        with(|log| match log.is_full {
            true => log.lost += 1,
            false => log.complete = log.length,
        });
    }
}
