//! Processes that do what a function of this program says.

use std::io;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::kernel::nanoseconds;
use crate::machine::refuse;

/// A process that was started.
pub struct Process(Pid);

impl Process {
    /// Starts a process that runs `body` and ends. The guest refuses to run if there can be no
    /// more.
    ///
    /// While this program has several threads, `body` may do system calls and nothing else: what
    /// other threads hold, such as the lock of the heap, stays held.
    pub fn start(body: impl FnOnce()) -> Process {
        // SAFETY: the child runs `body` under the restriction above, and leaves without returning
        // to what the parent has called.
        match unsafe { libc::fork() } {
            0 => {
                body();
                // SAFETY: it does not return.
                unsafe { libc::_exit(0) }
            }
            child => match Pid::from_raw(child.max(0)) {
                Some(child) => Process(child),
                None => {
                    refuse(format_args!("a process cannot start: {}", io::Error::last_os_error()))
                }
            },
        }
    }

    /// What the kernel calls it.
    pub fn id(&self) -> Pid {
        self.0
    }

    /// CPU time that it has used, in nanoseconds.
    pub fn cpu_time(&self) -> u64 {
        let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: both calls write to the variable that they are given, and to nothing else.
        let is_read = unsafe {
            libc::clock_getcpuclockid(self.0.as_raw_nonzero().get(), &mut clock) == 0
                && libc::clock_gettime(clock, &mut time) == 0
        };
        assert!(is_read, "a child that has not been waited for has a clock");
        nanoseconds(rustix::time::Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec })
    }

    /// Waits for its end.
    pub fn wait(self) {
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }

    /// Ends it.
    pub fn kill(self) {
        let _ = kill_process(self.0, Signal::KILL);
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::spin_loop;

    #[test]
    fn a_process_uses_time_until_it_is_killed() {
        let process = Process::start(|| {
            loop {
                spin_loop();
            }
        });
        while process.cpu_time() < 1_000_000 {
            std::thread::yield_now();
        }
        process.kill();
    }
}
