//! The policy of this boot: how it is started, watched and stopped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anysched_core::machine::Cpu;
use anysched_wire::boot::Boot;

use crate::{orders, procfs};

/// What the module says of itself, as lines.
pub const STATUS: &str = "/proc/anysched/status";

const START: &str = "/proc/anysched/start";
/// The CPUs that there can be.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const MODULE: &str = "/lib/anysched/anysched.ko";
const STATE: &str = "/sys/kernel/sched_ext/state";
const PINS: &str = "/sys/fs/bpf";
const BPFTOOL: &str = "/usr/sbin/bpftool";

/// The most bytes of a record of the kernel's log.
const LONGEST_RECORD: usize = 8192;

/// For how long the kernel may take to change over.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel's own scheduler.
    Stock,
    /// A scheduler of sched_ext, with the module that asks a policy, or without.
    Ext,
}

impl Scheduler {
    /// Starts the scheduler that the host names.
    ///
    /// Errors: why it cannot be started, with what the kernel says of it.
    pub fn start(boot: &Boot) -> Result<Scheduler, String> {
        if boot.policy.starts_with("stock-") {
            return Ok(Scheduler::Stock);
        }
        let object = if boot.policy.starts_with("bpf-") {
            format!("/lib/anysched/{}.bpf.o", boot.policy)
        } else {
            load_module().map_err(|error| format!("{MODULE}: {error}"))?;
            let configured = configure();
            configured.map_err(|error| with_status(format!("{START}: {error}")))?;
            String::from("/lib/anysched/anysched.bpf.o")
        };
        register(&object).map_err(with_status)?;
        await_state("enabled").map_err(with_status)?;
        Ok(Scheduler::Ext)
    }

    /// Why it has come to an end by itself, if it has.
    pub fn death(self) -> Option<String> {
        if self == Scheduler::Stock || state() == "enabled" {
            return None;
        }
        let status = status().unwrap_or_default();
        let why = procfs::lines(&status, "dead").next();
        Some(match why {
            Some(why) => why.into(),
            None => format!("sched_ext is {}: {}", state(), kernel_says()),
        })
    }

    /// Gives the CPUs back to the kernel's own scheduler.
    ///
    /// Errors: the kernel does not do it.
    pub fn stop(self) -> Result<(), String> {
        if self == Scheduler::Stock {
            return Ok(());
        }
        let pins = fs::read_dir(PINS).map_err(|error| format!("{PINS}: {error}"))?;
        for pin in pins.flatten() {
            // What the kernel itself has put there cannot be removed, and does no harm.
            let _ = fs::remove_file(pin.path());
        }
        await_state("disabled")
    }
}

/// What the module says of itself, if it is loaded.
pub fn status() -> Option<String> {
    fs::read(STATUS).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// What the kernel has logged of sched_ext.
fn kernel_says() -> String {
    let log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    let Ok(mut log) = log else { return "the kernel's log cannot be read".into() };
    let mut said = Vec::new();
    let mut record = [0; LONGEST_RECORD];
    // A record at a time; behind the last there is nothing, for which a read would wait. Records
    // that were overwritten meanwhile are an error once.
    loop {
        match log.read(&mut record) {
            Ok(length) => said.extend(procfs::sched_ext_says(&record[..length])),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(_) => return said.join("\n"),
        }
    }
}

/// What the module reads to build the policy: what the host says, on the CPUs of this machine.
fn configuration() -> Result<Vec<u8>, String> {
    let topology = anysched_topology::host().map_err(|error| error.to_string())?;
    let possible =
        std::fs::read_to_string(POSSIBLE).map_err(|error| format!("{POSSIBLE}: {error}"))?;
    let count = procfs::highest(&possible).ok_or_else(|| format!("{POSSIBLE}: {possible:?}"))? + 1;
    let cpu = |cpu: Cpu| [cpu.core, cpu.llc, cpu.package, cpu.node, cpu.capacity];
    let mut start = orders::start();
    start.cpus = topology.by_number(count).into_iter().map(cpu).collect();
    start.write().map(String::into_bytes).map_err(|error| error.to_string())
}

fn load_module() -> io::Result<()> {
    rustix::system::finit_module(File::open(MODULE)?, c"", 0)?;
    Ok(())
}

/// In one write: the module takes what it is given as the whole.
fn configure() -> Result<(), String> {
    let text = configuration()?;
    let file = OpenOptions::new().write(true).open(START);
    let written = file.and_then(|mut file| file.write(&text)).map_err(|error| error.to_string())?;
    if written == text.len() {
        return Ok(());
    }
    Err(format!("it took {written} bytes of {}", text.len()))
}

fn register(object: &str) -> Result<(), String> {
    let output = Command::new(BPFTOOL).args(["struct_ops", "register", object, PINS]).output();
    let output = output.map_err(|error| format!("{BPFTOOL}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!("{object}: bpftool: {}\n{}", output.status, said.trim()))
}

/// `why`, and what the module says.
fn with_status(why: String) -> String {
    match status() {
        Some(status) => format!("{why}\n{}", status.trim()),
        None => why,
    }
}

fn state() -> String {
    let state = fs::read_to_string(STATE).unwrap_or_else(|_| "missing".into());
    state.trim().into()
}

fn await_state(wanted: &str) -> Result<(), String> {
    let start = Instant::now();
    while state() != wanted {
        if start.elapsed() >= PATIENCE {
            return Err(format!("{STATE}: {} after {PATIENCE:?}, not {wanted}", state()));
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}
