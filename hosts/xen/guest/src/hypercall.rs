//! Calls of the hypervisor, and what they are given (Xen, public/*.h, of versions 4.17 and 4.20).

use core::arch::asm;

use alloc::boxed::Box;

/// The numbers of calls.
#[repr(u64)]
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Memory = 12,
    UpdateVaMapping = 14,
    Version = 17,
    Console = 18,
    UpdateVaMappingOtherDomain = 22,
    Vcpu = 24,
    MmuExtended = 26,
    Sched = 29,
    EventChannel = 32,
    PhysicalDevices = 33,
    Sysctl = 35,
    Domctl = 36,
}

/// What Xen answers: 0 or more, or a negated number of an error.
pub type Answer = Result<u64, Errno>;

/// The number of an error (public/errno.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i64);

impl Errno {
    pub const RESTART: Errno = Errno(85);
    const AGAIN: Errno = Errno(11);
    const BUSY: Errno = Errno(16);
    const ADDRESS_IN_USE: Errno = Errno(98);

    /// Whether the same call may be obeyed later.
    pub fn is_passing(self) -> bool {
        [Errno::AGAIN, Errno::BUSY, Errno::ADDRESS_IN_USE, Errno::RESTART].contains(&self)
    }
}

/// Makes a call.
///
/// # Safety
///
/// The arguments are what the call takes.
pub unsafe fn hypercall(call: Call, arguments: [u64; 4]) -> Answer {
    let [first, second, third, fourth] = arguments;
    let answer: i64;
    // SAFETY: by the contract of this function; a call changes the registers that are named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") call as u64 => answer,
            inlateout("rdi") first => _,
            inlateout("rsi") second => _,
            inlateout("rdx") third => _,
            inlateout("r10") fourth => _,
            out("rcx") _,
            out("r11") _,
        );
    }
    if answer < 0 { Err(Errno(-answer)) } else { Ok(answer as u64) }
}

/// The address of what a call is given.
pub fn at<T>(thing: &mut T) -> u64 {
    core::ptr::from_mut(thing) as u64
}

const YIELD: u64 = 0;
const SHUTDOWN: u64 = 2;
const POLL: u64 = 3;

/// Why a domain shuts down.
#[derive(Clone, Copy, Debug)]
pub enum Shutdown {
    PowerOff = 0,
    Reboot = 1,
    Suspend = 2,
    Crash = 3,
}

/// Gives up the pCPU for a moment.
pub fn yield_cpu() {
    // SAFETY: it takes nothing.
    let _ = unsafe { hypercall(Call::Sched, [YIELD, 0, 0, 0]) };
}

/// The domain stands still until dom0 has it go on: all that it needs to begin is there.
pub fn ready() {
    let mut reason = Shutdown::Suspend as u32;
    // SAFETY: it takes a reason.
    let _ = unsafe { hypercall(Call::Sched, [SHUTDOWN, at(&mut reason), 0, 0]) };
}

/// Ends the domain.
pub fn shut_down(why: Shutdown) -> ! {
    let mut reason = why as u32;
    loop {
        // SAFETY: it takes a reason.
        let _ = unsafe { hypercall(Call::Sched, [SHUTDOWN, at(&mut reason), 0, 0]) };
    }
}

#[repr(C)]
struct Poll {
    ports: u64,
    count: u32,
    timeout: u64,
}

/// Waits until one of the ports is pending, or until `timeout`, nanoseconds of Xen's time.
pub fn poll(ports: &mut [u32], timeout: u64) {
    let (address, count) = (ports.as_mut_ptr() as u64, ports.len() as u32);
    let mut poll = Poll { ports: address, count, timeout };
    // SAFETY: the ports are valid for the time of the call.
    let _ = unsafe { hypercall(Call::Sched, [POLL, at(&mut poll), 0, 0]) };
}

/// The same, without an end if `until` is `u64::MAX`: Xen takes 0 for that, and refuses what is too
/// late for its timers.
pub fn poll_until(ports: &mut [u32], until: u64) {
    poll(ports, if until == u64::MAX { 0 } else { until });
}

/// Writes to the console.
pub fn write(text: &str) {
    // SAFETY: the text is valid.
    let _ = unsafe { hypercall(Call::Console, [0, text.len() as u64, text.as_ptr() as u64, 0]) };
}

/// In which state a vCPU is, since when, and how long it has been in each (public/vcpu.h).
#[repr(C)]
#[derive(Default)]
struct Runstates {
    state: i32,
    entered: u64,
    times: [u64; 4],
}

/// How long a vCPU of this domain has been running, runnable, blocked and offline, in nanoseconds.
pub fn runstates(vcpu: usize) -> [u64; 4] {
    const GET: u64 = 4;
    let mut info = Runstates::default();
    // SAFETY: it takes room for the answer.
    let _ = unsafe { hypercall(Call::Vcpu, [GET, vcpu as u64, at(&mut info), 0]) };
    info.times
}

/// Tells when the first vCPU of this domain has last got its pCPU. Xen writes that each time it
/// does, which takes time: ask for this after what is timed.
pub fn watch_gets() -> Result<impl Fn() -> u64, Errno> {
    const REGISTER: u64 = 5;
    let area: &'static mut Runstates = Box::leak(Box::default());
    let info = &raw const *area;
    let mut address = info as u64;
    // SAFETY: the place stays, and nobody else writes there.
    unsafe { hypercall(Call::Vcpu, [REGISTER, 0, at(&mut address), 0]) }?;
    // SAFETY: as above.
    Ok(move || unsafe { (&raw const (*info).entered).read_volatile() })
}
