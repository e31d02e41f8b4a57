//! What the kernel lets a program set of a thread: its CPUs, its niceness, its scheduling class.

use std::ffi::c_int;
use std::io;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

/// More CPUs than the kernel can have.
pub const MAX_CPU: usize = CpuSet::MAX_CPU;

/// A scheduling class, as far as programs use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// That of ordinary tasks, which the policy schedules.
    Normal,
    /// Ordinary too: computes, and need not run soon.
    Batch,
    /// Ordinary too: runs when nothing else wants to, in the kernel's own scheduler.
    Idle,
    /// Above the policy, with this priority, first come, first served. What it starts is ordinary.
    Fifo(u8),
    /// The same, in turns.
    RoundRobin(u8),
}

/// Puts `thread`, or the current one, into a class.
pub fn set_class(thread: Option<Pid>, class: Class) -> io::Result<()> {
    let (policy, priority) = match class {
        Class::Normal => (libc::SCHED_OTHER, 0),
        Class::Batch => (libc::SCHED_BATCH, 0),
        Class::Idle => (libc::SCHED_IDLE, 0),
        Class::Fifo(priority) => (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority),
        Class::RoundRobin(priority) => (libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, priority),
    };
    let thread = Pid::as_raw(thread);
    let parameters = c_int::from(priority);
    // Not by the C library, whose function does nothing in musl.
    // SAFETY: the kernel reads one number from the last argument, and writes nothing.
    let set = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const parameters)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the niceness, -20 to 19, of `thread` or the current one.
pub fn set_nice(thread: Option<Pid>, nice: i32) -> io::Result<()> {
    Ok(setpriority_process(thread, nice)?)
}

/// Lets `thread`, or the current one, run on these CPUs only.
pub fn set_cpus(thread: Option<Pid>, cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(thread, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;
    use rustix::thread::{gettid, sched_getaffinity};

    #[test]
    fn what_is_set_is_there() {
        // On a thread of its own, which ends with what was set.
        let set = || {
            let own = Some(gettid());
            set_cpus(own, &[0]).unwrap();
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            set_nice(own, 5).unwrap();
            assert_eq!(getpriority_process(own).unwrap(), 5);
            set_class(own, Class::Batch).unwrap();
            // SAFETY: it only reads.
            assert_eq!(unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }, 3);
            set_class(None, Class::Normal).unwrap();
            assert!(set_cpus(None, &[MAX_CPU]).is_err() && set_cpus(None, &[]).is_err());
        };
        std::thread::spawn(set).join().unwrap();
    }
}
