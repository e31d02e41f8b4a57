//! The page by which a machine and dom0 pass messages: a ring each way, and an event for what is
//! new.

use core::array;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::domain::PAGE;

/// Messages in a ring, at most.
const ROOM: usize = 63;

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter {
    /// When it was sent first, in nanoseconds of Xen's time.
    pub sent: u64,
    /// When it was put there, likewise.
    pub at: u64,
    /// By which port it goes, or to which channel it comes.
    pub whither: u32,
    /// Its number among those from outside, if it is one of them.
    pub number: Option<u32>,
}

/// The page.
#[repr(C)]
pub struct Mailbox {
    /// What the machine sends.
    pub out: Ring,
    /// What comes to it.
    pub come: Ring,
}

const _: () = assert!(size_of::<Mailbox>() <= PAGE);

/// What one side writes and the other reads; both count from 0 and never wrap.
#[repr(C)]
pub struct Ring {
    written: AtomicU64,
    read: AtomicU64,
    letters: [[AtomicU64; 4]; ROOM],
}

impl Ring {
    /// Adds a letter. Returns whether there was room for it.
    pub fn put(&self, letter: Letter) -> bool {
        let written = self.written.load(Relaxed);
        if written - self.read.load(Acquire) >= ROOM as u64 {
            return false;
        }
        let Letter { sent, at, whither, number } = letter;
        let number = number.map_or(0, |number| u64::from(number) + 1);
        let place = &self.letters[written as usize % ROOM];
        for (word, value) in place.iter().zip([sent, at, whither.into(), number]) {
            word.store(value, Relaxed);
        }
        self.written.store(written + 1, Release);
        true
    }

    /// Takes the oldest letter.
    pub fn take(&self) -> Option<Letter> {
        let read = self.read.load(Relaxed);
        if read == self.written.load(Acquire) {
            return None;
        }
        let place = &self.letters[read as usize % ROOM];
        let [sent, at, whither, number] = array::from_fn(|word| place[word].load(Relaxed));
        self.read.store(read + 1, Release);
        let number = number.checked_sub(1).map(|number| number as u32);
        Some(Letter { sent, at, whither: whither as u32, number })
    }
}

/// The page at an address.
///
/// # Safety
///
/// A page is mapped there that nothing else uses, zero before it is used, and stays.
pub unsafe fn at(address: u64) -> &'static Mailbox {
    // SAFETY: by the contract of this function; all of it is atomic.
    unsafe { &*(address as *const Mailbox) }
}
