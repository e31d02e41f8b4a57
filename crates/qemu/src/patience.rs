//! How long a machine may be silent: a computer that others use, too, may leave QEMU waiting for a
//! CPU for most of the time, and that says nothing of the kernel in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Silence of a process from some time on.
pub(crate) struct Silence {
    begun: Instant,
    tasks: PathBuf,
    /// For how long it had waited for a CPU by then.
    waited: Duration,
}

impl Silence {
    /// From here on, of the process with this number.
    pub(crate) fn begin(process: u32) -> Silence {
        let tasks = PathBuf::from(format!("/proc/{process}/task"));
        Silence { begun: Instant::now(), waited: waited(&tasks), tasks }
    }

    /// How long it has lasted so far, without the time for which the process waited for a CPU.
    pub(crate) fn lasted(&self) -> Duration {
        let waited = waited(&self.tasks).saturating_sub(self.waited);
        self.begun.elapsed().saturating_sub(waited)
    }
}

/// For how long the thread of a process that has waited longest for a CPU has done so; 0 where the
/// kernel does not say.
fn waited(tasks: &Path) -> Duration {
    let threads = fs::read_dir(tasks).into_iter().flatten().flatten();
    let waits = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        waited_by(&text)
    });
    waits.max().unwrap_or_default()
}

/// The time in `/proc/PID/schedstat` for which a thread was ready and did not run (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn waited_by(schedstat: &str) -> Option<Duration> {
    let waited = schedstat.split_whitespace().nth(1)?;
    waited.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_cpu_is_no_silence() {
        assert_eq!(waited_by("120 3000000 7\n"), Some(Duration::from_millis(3)));
        assert_eq!(waited_by("120"), None);
        let process = tempfile::tempdir().unwrap();
        let thread = |name: &str, waited: u64| {
            let directory = process.path().join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("schedstat"), format!("9 {waited} 1\n")).unwrap();
        };
        thread("7", 3_000_000_000);
        thread("8", 5_000_000_000);
        let tasks = process.path().to_path_buf();
        let waited = waited(&tasks);
        assert_eq!(waited, Duration::from_secs(5), "that of the thread that has waited longest");
        let Some(begun) = Instant::now().checked_sub(Duration::from_secs(60)) else { return };
        let silence = Silence { begun, waited, tasks };
        assert!(silence.lasted() >= Duration::from_secs(60));
        thread("7", 55_000_000_000);
        let lasted = silence.lasted();
        assert!((10..60).contains(&lasted.as_secs()), "{lasted:?} of 60 s, less 50 s");
    }
}
