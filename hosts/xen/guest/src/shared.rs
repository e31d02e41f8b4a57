//! The page that Xen and a domain share: time and events.

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crate::hypercall::{Call, hypercall};
use crate::smp::{MOST, number};

unsafe extern "C" {
    static mut shared_info: [u8; 4096];
}

/// What the page begins with, for each of 32 vCPUs (public/xen.h).
#[repr(C)]
struct Info {
    pending: AtomicU8,
    mask: AtomicU8,
    selector: AtomicU64,
    arch: [u64; 2],
    time: Time,
}

const _: () = assert!(size_of::<Info>() == 64);

#[repr(C)]
struct Time {
    version: AtomicU32,
    pad: u32,
    timestamp: AtomicU64,
    system: AtomicU64,
    multiplier: AtomicU32,
    shift: AtomicU8,
    flags: [u8; 3],
}

/// Where the bits of pending events are, behind 32 vCPUs.
const PENDING: usize = MOST * size_of::<Info>();

/// Maps the page. No event interrupts this kernel: it polls.
pub fn map(machine_address: u64) {
    const PRESENT_WRITABLE_USER: u64 = 7;
    const INVALIDATE: u64 = 2;
    let page = &raw mut shared_info as u64;
    let entry = machine_address | PRESENT_WRITABLE_USER;
    // SAFETY: the page is nobody else's.
    let mapped = unsafe { hypercall(Call::UpdateVaMapping, [page, entry, INVALIDATE, 0]) };
    if let Err(error) = mapped {
        panic!("the page shared with Xen cannot be mapped: {error:?}");
    }
    mask(0);
}

/// No event interrupts this vCPU.
pub fn mask(vcpu: usize) {
    info(vcpu).mask.store(1, Ordering::Relaxed);
}

fn info(vcpu: usize) -> &'static Info {
    assert!(vcpu < MOST, "there is no vCPU {vcpu}");
    // SAFETY: Xen keeps such structures there; all of them that changes is atomic.
    unsafe { &*(&raw const shared_info).cast::<Info>().add(vcpu) }
}

/// Nanoseconds since Xen has booted.
pub fn now() -> u64 {
    clock().1
}

/// The counter of time of this pCPU, and nanoseconds since Xen has booted then.
pub fn clock() -> (u64, u64) {
    let time = &info(number()).time;
    loop {
        let version = time.version.load(Ordering::Acquire);
        // SAFETY: all x86-64 CPUs have it.
        let ticks = unsafe { _rdtsc() };
        let passed = ticks.wrapping_sub(time.timestamp.load(Ordering::Relaxed));
        let shift = time.shift.load(Ordering::Relaxed) as i8;
        let passed = if shift >= 0 { passed << shift } else { passed >> -shift };
        let multiplier = time.multiplier.load(Ordering::Relaxed);
        let scaled = (u128::from(passed) * u128::from(multiplier)) >> 32;
        let now = time.system.load(Ordering::Relaxed) + scaled as u64;
        fence(Ordering::Acquire);
        if version & 1 == 0 && version == time.version.load(Ordering::Relaxed) {
            return (ticks, now);
        }
    }
}

/// Whether an event is pending at a port; it is taken.
pub fn take_pending(port: u32) -> bool {
    let (word, bit) = pending(port);
    word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
}

/// Whether an event is pending at a port.
pub fn is_pending(port: u32) -> bool {
    let (word, bit) = pending(port);
    word.load(Ordering::Acquire) & bit != 0
}

/// Where the bit of a port is.
fn pending(port: u32) -> (&'static AtomicU64, u64) {
    let word = PENDING / 8 + port as usize / 64;
    // SAFETY: the page has a word for each 64 ports.
    let word = unsafe { &*(&raw const shared_info).cast::<AtomicU64>().add(word) };
    (word, 1 << (port % 64))
}
