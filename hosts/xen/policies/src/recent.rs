//! The last calls, for the message of a panic.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::panic::Line;
use crate::xen;

/// What the C side may ask.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    New,
    Online,
    Offline,
    Attach,
    Detach,
    Update,
    Domain,
    Wake,
    Sleep,
    Saved,
    Schedule,
    Tick,
    Timer,
}

const NAMES: [&str; 13] = [
    "new", "online", "offline", "attach", "detach", "update", "domain", "wake", "sleep", "saved",
    "schedule", "tick", "timer",
];

/// Calls that are kept. Of calls that come at the same time one may be lost: this is for people.
const KEPT: usize = 16;

static CALLS: [AtomicU64; KEPT] = [const { AtomicU64::new(0) }; KEPT];
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A pool as calls are kept with it.
#[derive(Clone, Copy, Debug)]
pub struct Tag(u64);

impl Tag {
    /// That of the pool of this number.
    pub fn of(pool: u8) -> Tag {
        Tag(u64::from(pool) << 32)
    }
}

/// A call is made: its operation, the pool, and the vCPU or pCPU that it is about.
#[inline]
pub fn note(op: Op, Tag(pool): Tag, about: u32) {
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let call = u64::from(about) | pool | (op as u64) << 40;
    CALLS[made % KEPT].store(call, Ordering::Relaxed);
}

/// Prints the last calls, the latest last.
pub fn print() {
    let made = MADE.load(Ordering::Relaxed);
    for number in made.saturating_sub(KEPT)..made {
        let call = CALLS[number % KEPT].load(Ordering::Relaxed);
        let (about, pool) = (call as u32, call >> 32 & 0xff);
        let name = NAMES.get((call >> 40) as usize).copied().unwrap_or_default();
        let line = Line::of(format_args!("anysched: call {number}: {name} {about} of pool {pool}"));
        xen::print(line.as_str());
    }
}
