//! The kernel's own scheduling events, as its tracefs records them, beside the policy's decisions.
//!
//! Text of events has times in microseconds, in which a kernel does a thousand things by its
//! counted instructions. The buffers themselves have nanoseconds: each line gets its time from
//! there.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anysched_loader::tracefs;

use crate::pages;

/// An instance of tracefs, so that programs of the guest may use the rest of it.
const INSTANCE: &str = "/sys/kernel/tracing/instances/events";

/// Names of tasks that the kernel keeps for the text, and where it is told.
const NAMES: (&str, &str) = ("/sys/kernel/tracing/saved_cmdlines_size", "32768");

/// The clock of the log of decisions.
const CLOCK: &str = "mono";

/// The size of the buffers of all CPUs, in KiB: some 900 000 events.
const KIB: usize = 64 << 10;

/// The events; those that a kernel does not have are left out.
const EVENTS: [&str; 12] = [
    "sched/sched_migrate_task",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_process_fork",
    "sched/sched_switch",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_waking",
    "sched_ext/sched_ext_dump",
    "sched_ext/sched_ext_event",
    "cpuhp/cpuhp_enter",
    "cpuhp/cpuhp_exit",
];

/// Without it there is nothing to see.
const NEEDED: &str = "sched/sched_switch";

/// A recording.
pub struct Events {
    cpus: usize,
}

impl Events {
    /// Begins it.
    ///
    /// Errors: the kernel has no tracefs, or refuses.
    pub fn record() -> Result<Events, String> {
        fs::create_dir(INSTANCE).map_err(|error| format!("{INSTANCE}: {error}"))?;
        let directories = fs::read_dir(path("per_cpu"));
        let cpus = directories.map_err(|error| format!("{INSTANCE}/per_cpu: {error}"))?.count();
        let _ = fs::write(NAMES.0, NAMES.1);
        write("tracing_on", "0")?;
        write("trace_clock", CLOCK)?;
        // What is lost is at the end, and counted.
        write("options/overwrite", "0")?;
        write("buffer_size_kb", &(KIB / cpus.max(1)).to_string())?;
        for event in EVENTS {
            let switch = format!("events/{event}/enable");
            if event == NEEDED || path(&switch).exists() {
                write(&switch, "1")?;
            }
        }
        write("tracing_on", "1")?;
        Ok(Events { cpus })
    }

    /// Ends it.
    ///
    /// Errors: the kernel refuses.
    pub fn stop(&self) -> Result<(), String> {
        write("tracing_on", "0")
    }

    /// CPUs that may have events.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// The events of a CPU, as lines of text, which the kernel then forgets.
    ///
    /// Errors: some found no room, or what the kernel says cannot be read.
    pub fn take(&self, cpu: usize) -> Result<Vec<u8>, String> {
        let directory = format!("per_cpu/cpu{cpu}");
        let stats = read(&format!("{directory}/stats"))?;
        match tracefs::lost(&String::from_utf8_lossy(&stats)) {
            0 => {}
            lost => {
                return Err(format!(
                    "{lost} of the kernel's events on CPU {cpu} found no room in {} KiB: trace a \
                     program that is shorter or switches less",
                    KIB / self.cpus
                ));
            }
        }
        // The text first: times are read by consuming the buffer.
        let text = read(&format!("{directory}/trace"))?;
        let times = times(&format!("{directory}/trace_pipe_raw"))?;
        pages::timed(&text, &times).map_err(|why| format!("{INSTANCE}/{directory}: {why}"))
    }
}

/// The times of the events of a CPU, which it then forgets.
fn times(raw: &str) -> Result<Vec<u64>, String> {
    let path = path(raw);
    let fault = |error| format!("{}: {error}", path.display());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
    let mut file = opened.map_err(fault)?;
    let mut page = [0; pages::SIZE];
    let mut times = Vec::new();
    loop {
        match file.read(&mut page) {
            Ok(0) => return Ok(times),
            Ok(length) => {
                let read = pages::times(&page[..length], &mut times);
                read.map_err(|why| format!("{}: {why}", path.display()))?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(times),
            Err(error) => return Err(fault(error)),
        }
    }
}

fn path(file: &str) -> PathBuf {
    PathBuf::from(format!("{INSTANCE}/{file}"))
}

fn read(file: &str) -> Result<Vec<u8>, String> {
    fs::read(path(file)).map_err(|error| format!("{INSTANCE}/{file}: {error}"))
}

fn write(file: &str, text: &str) -> Result<(), String> {
    fs::write(path(file), text).map_err(|error| format!("{INSTANCE}/{file}: {text}: {error}"))
}
