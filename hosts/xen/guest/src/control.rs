//! Calls about domains and the machine, which only the toolstack may make.

use crate::hypercall::{Answer, Call, Errno, at, hypercall};

/// The versions of the interface that structures here are of: Xen 4.20's.
const DOMCTL_VERSION: u32 = 0x17;
const SYSCTL_VERSION: u32 = 0x15;

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
        version: DOMCTL_VERSION,
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
