//! QEMU as a machine for kernels under test: start it, listen to it, end it, and make of what it
//! said what it measured.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod calibration;
mod console;
mod cpus;
mod emulator;
mod error;
mod job;
mod measured;
mod patience;
#[cfg(unix)]
mod saved;
mod sources;

pub use calibration::{CALIBRATE, Calibrator, Column, LOOPS, Source};
pub use console::{Console, Event, Outcome, TaskOutcome};
pub use cpus::cpus;
pub use emulator::Emulator;
pub use error::BootError;
pub use job::{Job, Reading};
pub use measured::measured;
#[cfg(unix)]
pub use saved::{go_on, save};
pub use sources::{require_target, sources};

use anysched_host::{Clock, InstructionTime, Setup, cpus_in_words};
use anysched_wire::log;
use patience::Silence;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tempfile::TempDir;

/// A directory for the files of a boot, which go with it.
///
/// Errors: it cannot be made.
pub fn directory() -> Result<TempDir, BootError> {
    tempfile::tempdir()
        .map_err(|error| BootError::files("the directory for temporary files", error))
}

/// The machine that runs of `setup` have, in words, if its time passes as is `wanted`; `at_once`
/// says how several CPUs run that count no instructions.
pub fn in_words(setup: &Setup, wanted: Option<Clock>, at_once: &str) -> String {
    let cpus = cpus_in_words(setup.machine.cpus());
    let clock = match Clock::or_usual(wanted, &setup.machine) {
        Clock::Instructions(each) => format!("an instruction is {each}"),
        Clock::Real => "an instruction is a nanosecond, idle time is real".into(),
        Clock::Parallel => format!("CPUs {at_once}, times mean nothing"),
    };
    let options = match setup.kernel_options.as_str() {
        "" => String::new(),
        options => format!("; kernel options {options}"),
    };
    format!("{cpus} in QEMU, {clock}{options}")
}

/// Has a machine's time pass in this way. CPUs at the same time are QEMU's own way.
pub fn set_clock(qemu: &mut Command, clock: Clock) {
    match clock {
        Clock::Instructions(each) => count_instructions(qemu, each),
        Clock::Real => follow_real_time(qemu),
        Clock::Parallel => {}
    }
}

/// Hands `text` to the kernel as the firmware item called `item`, by a file in `directory`.
///
/// Errors: the file cannot be written.
pub fn give(qemu: &mut Command, item: &str, directory: &Path, text: &str) -> Result<(), BootError> {
    let path = directory.join(item.replace('/', "-"));
    qemu.arg("-fw_cfg").arg(format!("name={item},file={}", path.display()));
    std::fs::write(&path, text).map_err(|error| BootError::files(path.display(), error))
}

/// Has the logs of decisions that a kernel sends go to the file `path`.
pub fn send_logs(qemu: &mut Command, path: &Path) {
    send_from(qemu, "log", log::PORT, path);
}

/// Has what a kernel sends by the debug console at the I/O port `port` go to the file `path`. QEMU
/// calls it by the name.
pub fn send_from(qemu: &mut Command, name: &str, port: u16, path: &Path) {
    qemu.arg("-chardev").arg(format!("file,id={name},path={}", path.display()));
    qemu.args(["-device", &format!("isa-debugcon,iobase={port:#x},chardev={name}")]);
}

/// The log of each of `cpus` CPUs, of what was [sent](send_from).
///
/// Errors: the file cannot be read, or what was sent is malformed.
pub fn read_logs(path: &Path, cpus: usize) -> Result<Vec<Vec<u8>>, BootError> {
    let sent = std::fs::read(path).map_err(|error| BootError::files(path.display(), error))?;
    Ok(log::receive(&sent, cpus)?)
}

/// Counts instructions instead of time: each takes as long as `each`, and idle time is skipped. The
/// same run takes the same time to the nanosecond, whatever else this computer does.
fn count_instructions(qemu: &mut Command, each: InstructionTime) {
    qemu.args(["-icount", &format!("shift={},sleep=off", each.shift()), "-seed", "1"])
        .args(["-rtc", "base=2026-01-01,clock=vm"]);
}

/// For kernels that talk to the outside world: instructions are counted as above, but idle time
/// passes in real time and does not end before something arrives from outside.
///
/// QEMU's alternatives are less exact. 40 clients with requests of 1 ms and 5 ms under `rr`, three
/// runs each on a computer that executes about 10⁹ of this machine's instructions a second:
///
/// | `-icount` | guest's seconds per second | service of 1 ms, by the guest | p50 of round trips |
/// |---|---|---|---|
/// | `shift=0,sleep=on` | 0.96 to 1.03 | 1.00 to 1.01 ms | 49 to 54 ms |
/// | `shift=3,sleep=on,align=on` | 1.07 to 1.17 | 1.00 to 1.04 ms | 54 to 56 ms |
/// | `shift=2,sleep=on` | 2.95 to 3.23 | 1.00 to 1.02 ms | 15 to 17 ms |
/// | `shift=auto,sleep=on` | 0.52 to 1.95 | 0.12 to 1.04 ms | 10 to 12 ms |
///
/// `auto` changes the time per instruction by factors of two while the guest runs, and stops its
/// clock for up to a second. With a fixed rate, work takes the same time by the guest's clock
/// whatever this computer does; how fast that clock runs depends on the computer.
fn follow_real_time(qemu: &mut Command) {
    qemu.args(["-icount", "shift=0,sleep=on", "-seed", "1"]);
}

/// A running QEMU and the lines of its console. Dropping it ends QEMU.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

/// The outcome of waiting for a line.
pub enum Heard {
    /// A line, without its line ending.
    Line(String),
    /// Nothing within the time given.
    Silence,
    /// QEMU has ended.
    End(ExitStatus),
}

impl Running {
    /// Starts QEMU.
    ///
    /// Errors: it cannot be started.
    pub fn start(mut qemu: Command) -> Result<Running, BootError> {
        let started = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = started.spawn().map_err(|error| BootError::files("QEMU", error))?;
        let (sender, lines) = channel();
        let console = child.stdout.take();
        std::thread::spawn(move || {
            let mut console = BufReader::new(console.into_iter().next()?);
            let mut line = Vec::new();
            while console.read_until(b'\n', &mut line).ok()? > 0 {
                let text = String::from_utf8_lossy(&line);
                sender.send(text.trim_end_matches(['\r', '\n']).to_string()).ok()?;
                line.clear();
            }
            Some(())
        });
        Ok(Running { child, lines })
    }

    /// Measures its silence from here on.
    pub(crate) fn silence(&self) -> Silence {
        Silence::begin(self.child.id())
    }

    /// Waits for the next line, up to `patience`. Time for which QEMU itself waits for a CPU of
    /// this computer does not count, where this computer's kernel says it.
    ///
    /// Errors: waiting for QEMU fails.
    pub fn listen(&mut self, patience: Duration) -> Result<Heard, BootError> {
        let silence = self.silence();
        let mut left = patience;
        loop {
            match self.lines.recv_timeout(left) {
                Ok(line) => return Ok(Heard::Line(line)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait();
                    return status.map(Heard::End).map_err(|error| BootError::files("QEMU", error));
                }
            }
            left = patience.saturating_sub(silence.lasted());
            if left.is_zero() {
                return Ok(Heard::Silence);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
