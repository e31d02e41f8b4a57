//! A ring buffer of BPF's, read without system calls. Its layout is described in
//! Documentation/bpf/ringbuf.rst: a page with the reader's position, one with the writer's, then
//! the data, twice, so that records are whole where it begins anew.

use std::ffi::CStr;
use std::io::Error;
use std::os::fd::RawFd;
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};

use crate::libbpf::Object;

const PAGE: usize = 4096;
/// Bytes before what a record holds: its length with two flags, and where its page is.
const HEADER: usize = 8;
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// The reader's end.
pub struct Ring {
    fd: RawFd,
    read: NonNull<u8>,
    written: NonNull<u8>,
    size: usize,
}

// SAFETY: the mappings stay as long as the process lives; one owner reads.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the buffer.
    ///
    /// Errors: there is none of this name, or it cannot be mapped.
    pub fn open(object: &Object, name: &CStr) -> Result<Ring, String> {
        let (fd, size) = object.map_fd(name)?;
        let size = size as usize;
        let map = |length, protection, offset| {
            // SAFETY: the kernel chooses the address.
            let at = unsafe {
                libc::mmap(null_mut(), length, protection, libc::MAP_SHARED, fd, offset as i64)
            };
            match NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED) {
                Some(at) => Ok(at),
                None => Err(format!("a buffer cannot be mapped: {}", Error::last_os_error())),
            }
        };
        let read = map(PAGE, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let written = map(PAGE + 2 * size, libc::PROT_READ, PAGE)?;
        Ok(Ring { fd, read, written, size })
    }

    /// Readable when there are records.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    fn positions(&self) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: each begins its page, and is an aligned integer.
        unsafe { (self.read.cast().as_ref(), self.written.cast().as_ref()) }
    }

    /// Whether there are records.
    pub fn is_empty(&self) -> bool {
        let (read, written) = self.positions();
        read.load(Relaxed) == written.load(Acquire)
    }

    /// Has `handle` see all records that are complete, in the order in which they were begun.
    pub fn drain(&mut self, mut handle: impl FnMut(&[u8])) {
        let (read, written) = self.positions();
        let mut at = read.load(Relaxed);
        while at != written.load(Acquire) {
            // SAFETY: the place is within the first copy of the data, which a second one follows.
            let (header, contents) = unsafe {
                let record = self.written.add(PAGE + at as usize % self.size);
                (record.cast::<AtomicU32>().as_ref(), record.add(HEADER))
            };
            let header = header.load(Acquire);
            if header & BUSY != 0 {
                return;
            }
            let length = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                // SAFETY: the record is complete, and stays until the position passes it.
                handle(unsafe { slice::from_raw_parts(contents.as_ptr(), length) });
            }
            at += (length + HEADER).next_multiple_of(8) as u64;
            read.store(at, Release);
        }
    }
}
