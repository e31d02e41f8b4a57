//! Calls about domains and the machine, which only the toolstack may make.

use crate::hypercall::{Answer, Call, Errno, at, hypercall};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The version of the interface that structures here are of, in Xen 4.17 to 4.20.
const SYSCTL_VERSION: u32 = 0x15;

/// An interface to calls about domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Of Xen 4.17: a new domain has no word of alternate maps of its memory.
    Of417 = 0x15,
    /// Of Xen 4.19 and 4.20.
    Of419 = 0x17,
}

impl Interface {
    /// That of the Xen that runs this, which is asked once.
    pub fn here() -> Interface {
        /// The operation that answers with a release's two numbers, 16 bits each.
        const NUMBER: u64 = 0;
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut numbers = NUMBERS.load(Relaxed);
        if numbers == 0 {
            // SAFETY: this one takes no argument.
            numbers = unsafe { hypercall(Call::Version, [NUMBER, 0, 0, 0]) }.unwrap_or(u64::MAX);
            NUMBERS.store(numbers, Relaxed);
        }
        if numbers < (4 << 16 | 19) { Interface::Of417 } else { Interface::Of419 }
    }
}

/// Operations (public/domctl.h).
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum Domctl {
    Create = 1,
    Destroy = 2,
    Pause = 3,
    Unpause = 4,
    Info = 5,
    Affinity = 9,
    MaxMemory = 11,
    Context = 12,
    MaxVcpus = 15,
    Scheduler = 16,
    Resume = 27,
}

#[repr(C)]
struct DomctlCall<T> {
    operation: u32,
    version: u32,
    domain: u16,
    pad: [u16; 3],
    body: T,
    /// The union is as large as its largest member; Xen copies all of it.
    room: [u64; 32],
}

/// What failed, and how.
#[derive(Clone, Copy, Debug)]
pub struct Failed(pub &'static str, pub Errno);

/// Says of an error what failed.
pub trait Naming<T> {
    fn of(self, what: &'static str) -> Result<T, Failed>;
}

impl<T> Naming<T> for Result<T, Errno> {
    fn of(self, what: &'static str) -> Result<T, Failed> {
        self.map_err(|errno| Failed(what, errno))
    }
}

/// Makes a call about a domain; the body is changed to the answer.
pub fn domctl<T: Copy>(operation: Domctl, domain: u16, body: T) -> Result<(u16, T), Errno> {
    let mut call = DomctlCall {
        operation: operation as u32,
        version: Interface::here() as u32,
        domain,
        pad: [0; 3],
        body,
        room: [0; 32],
    };
    // SAFETY: the structure is the operation's.
    unsafe { hypercall(Call::Domctl, [at(&mut call), 0, 0, 0]) }?;
    Ok((call.domain, call.body))
}

#[repr(C)]
struct SysctlCall<T> {
    operation: u32,
    version: u32,
    body: T,
    room: [u64; 32],
}

/// Makes a call about the machine; the body is changed to the answer.
pub fn sysctl<T: Copy>(operation: u32, body: T) -> Result<T, Errno> {
    let mut call = SysctlCall { operation, version: SYSCTL_VERSION, body, room: [0; 32] };
    // SAFETY: the structure is the operation's.
    unsafe { hypercall(Call::Sysctl, [at(&mut call), 0, 0, 0]) }?;
    Ok(call.body)
}

/// Sends keys to Xen's console, as by hand.
pub fn press(keys: &str) -> Answer {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Keys {
        keys: u64,
        count: u32,
    }
    const KEYS: u32 = 7;
    let count = keys.len() as u32;
    sysctl(KEYS, Keys { keys: keys.as_ptr() as u64, count }).map(|_| 0)
}
