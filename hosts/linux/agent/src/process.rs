//! What the agent asks of the kernel for itself.

use std::io::{Error, Result};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// The priority of the thread that calls the policy: above all that it schedules. Below that of the
/// kernel's thread that ends a scheduler, 50.
pub const AGENT: i32 = 10;
/// That of the thread that watches it.
pub const WATCHER: i32 = 11;

fn checked(result: i32) -> Result<i32> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// Takes the current thread out of the policy's reach.
pub fn real_time(priority: i32) -> Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: it reads the parameters.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) }).map(drop)
}

/// Keeps all memory, also what comes, where it is: a page that has to be read back would need tasks
/// that only the agent lets run.
pub fn lock_memory() -> Result<()> {
    // SAFETY: it changes no memory.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// A descriptor that can be waited for.
pub struct Waited(OwnedFd);

impl Waited {
    fn of(fd: RawFd) -> Result<Waited> {
        // SAFETY: it was just opened, and nobody else has it.
        checked(fd).map(|fd| Waited(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What can be waited for until the process is asked to end, in place of a signal.
pub fn block_signals() -> Result<Waited> {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: the first call fills in the set, which the others read.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        let mut signals = signals.assume_init();
        libc::sigaddset(&mut signals, libc::SIGTERM);
        libc::sigaddset(&mut signals, libc::SIGINT);
        libc::sigprocmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        Waited::of(libc::signalfd(-1, &signals, libc::SFD_CLOEXEC))
    }
}

/// What another thread can be woken by.
#[derive(Clone)]
pub struct Bell(Arc<(Waited, AtomicBool)>);

impl Bell {
    pub fn new() -> Result<Bell> {
        // SAFETY: it touches no memory.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Waited::of(event).map(|event| Bell(Arc::new((event, AtomicBool::new(false)))))
    }

    pub fn fd(&self) -> RawFd {
        self.0.0.fd()
    }

    pub fn ring(&self) {
        // SAFETY: it takes a number.
        unsafe { libc::eventfd_write(self.fd(), 1) };
        self.0.1.store(true, SeqCst);
    }

    /// As [`take`](Bell::take), but without a system call if it has hardly rung: for who looks
    /// again before waiting.
    pub fn has_rung(&self) -> bool {
        self.0.1.load(SeqCst) && self.take()
    }

    /// Whether it has rung since this was asked last. What counts is the kernel's number: whoever
    /// rings may be interrupted between that and the hint.
    pub fn take(&self) -> bool {
        self.0.1.store(false, SeqCst);
        let mut times = 0;
        // SAFETY: it writes to `times`.
        unsafe { libc::eventfd_read(self.fd(), &mut times) == 0 }
    }
}

/// Has the agent asked to end when the thread that has started it ends, however it does.
pub fn end_with_parent() -> Result<()> {
    // SAFETY: it touches no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
}

/// Waits until there is something to read. Returns whether there is, of each.
pub fn wait<const N: usize>(fds: &[RawFd; N], at_most: Option<Duration>) -> [bool; N] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time = at_most.map(|span| libc::timespec {
        tv_sec: span.as_secs() as i64,
        tv_nsec: span.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(null(), |time| time as *const libc::timespec);
    // SAFETY: it writes to `polled`, and reads the time.
    unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, time, null()) };
    polled.map(|polled| polled.revents != 0)
}

/// Nanoseconds of the clock by which events are told.
pub fn clock() -> u64 {
    // SAFETY: all bits may be zero.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: it writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
