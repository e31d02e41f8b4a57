//! Running QEMU and listening to it.

use crate::BootError;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

const PROGRAM: &str = "qemu-system-x86_64";

/// What it is called and how it is come by.
fn missing() -> BootError {
    BootError::Missing {
        what: format!("{PROGRAM} is not installed"),
        remedy: "install it with `apt-get install qemu-system-x86` (Debian, Ubuntu), \
                 `dnf install qemu-system-x86-core` (Fedora) or `pacman -S qemu-system-x86` (Arch)"
            .into(),
    }
}

/// A machine that boots `kernel`: no screen, no network, its console on our pipe.
///
/// Errors: QEMU is not there.
pub(crate) fn machine(kernel: &Path, memory: &str) -> Result<Command, BootError> {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join(PROGRAM).is_file())
    });
    if !found {
        return Err(missing());
    }
    let mut qemu = Command::new(PROGRAM);
    qemu.args(["-machine", "q35", "-accel", "tcg", "-m", memory])
        .args(["-display", "none", "-vga", "none", "-nodefaults", "-no-reboot"])
        .args(["-serial", "stdio", "-monitor", "none"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"])
        .arg("-kernel")
        .arg(kernel);
    Ok(qemu)
}

/// Instructions instead of time: one is a nanosecond, and idle time is skipped. The same run takes
/// the same time to the nanosecond, whatever else this computer does.
pub(crate) fn count_instructions(qemu: &mut Command) {
    qemu.args(["-icount", "shift=0,sleep=off", "-seed", "1"])
        .args(["-rtc", "base=2026-01-01,clock=vm"]);
}

/// Time that follows real time as well as it can, while instructions are still counted.
pub(crate) fn follow_real_time(qemu: &mut Command) {
    qemu.args(["-icount", "shift=auto,sleep=on", "-seed", "1"]);
}

/// A QEMU that runs, and the lines of its console. It is ended when this goes.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

/// What became of a line that was waited for.
pub(crate) enum Heard {
    Line(String),
    /// Nothing for as long as was asked.
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
        let mut child = started.spawn().map_err(|error| BootError::files(PROGRAM, error))?;
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

    /// Waits for the next line, for `patience` at most.
    ///
    /// Errors: QEMU cannot be waited for.
    pub fn listen(&mut self, patience: Duration) -> Result<Heard, BootError> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Heard::Line(line)),
            Err(RecvTimeoutError::Timeout) => Ok(Heard::Silence),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait();
                status.map(Heard::End).map_err(|error| BootError::files(PROGRAM, error))
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
