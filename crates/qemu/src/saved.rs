//! Machines that have booted, kept so that the next boot need not do it again.
//!
//! A guest that is ready for its orders writes [`READY`](anysched_wire::result::READY), which stops
//! its machine after that very instruction. All that the machine is goes into a file then. One that
//! goes on from there is in the same state to the byte each time, clocks included, and reads the
//! orders that it is given then.
//!
//! Most of the file is memory of the guest, a quarter as large when compressed, which takes half a
//! second with zstd. Where zstd is not installed, the file is as QEMU writes it.

use crate::{BootError, Console, Event, Heard, Running, directory};
use anysched_wire::result::READY_PORT;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at something that takes a while.
const PAUSE: Duration = Duration::from_millis(10);

/// For how long QEMU may say nothing to an order.
const PATIENCE: Duration = Duration::from_secs(60);

/// Boots `qemu` until its guest is ready, and saves the machine to the file `path`. What the
/// guest says for people goes to `say`.
///
/// Errors: the kernel panicked, was silent for longer than `patience` or ended; QEMU cannot
/// save.
pub fn save(
    mut qemu: Command,
    path: &Path,
    patience: Duration,
    say: &mut dyn FnMut(&str),
) -> Result<(), BootError> {
    qemu.args(["-action", "panic=pause"]);
    let (mut running, mut monitor) = start(qemu)?;
    let mut console = Console::default();
    let silence = running.silence();
    // The console has to be read meanwhile: a guest that cannot write stands still.
    while monitor.status()? != "guest-panicked" {
        match console.hear(&mut running, PAUSE, say)? {
            Event::Silence if silence.lasted() >= patience => return Err(console.hung(patience)),
            Event::Silence | Event::Line => {}
            Event::End => {
                return Err(BootError::Refused { why: "it ended before it was ready".into() });
            }
        }
    }
    monitor.save(path)
}

/// Has `qemu`, otherwise the same as the one that was saved to the file `path`, go on from there.
///
/// Errors: QEMU does not take it.
pub fn go_on(mut qemu: Command, path: &Path) -> Result<Running, BootError> {
    qemu.arg("-incoming").arg(shell(reader(path)?, path)?);
    let (running, mut monitor) = start(qemu)?;
    while monitor.status()? == "inmigrate" {
        sleep(PAUSE);
    }
    monitor.ask("cont", &json!({}))?;
    Ok(running)
}

/// Starts a machine with what its guest says that it is ready by.
fn start(mut qemu: Command) -> Result<(Running, Monitor), BootError> {
    let directory = directory()?;
    let socket = directory.path().join("qmp");
    qemu.args(["-device", &format!("pvpanic,ioport={READY_PORT}"), "-qmp"]);
    qemu.arg(format!("unix:{},server=on,wait=off", socket.display()));
    let mut running = Running::start(qemu)?;
    let monitor = Monitor::open(&socket, &mut running)?;
    Ok((running, monitor))
}

/// What a compressed file begins with (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The command that writes a state, in front of the file's path.
fn writer() -> &'static str {
    let found = Command::new("zstd").arg("--version").output();
    if found.is_ok_and(|found| found.status.success()) { "zstd --quiet -1 >" } else { "cat >" }
}

/// The command that reads the state in the file `path`, in front of this path.
fn reader(path: &Path) -> Result<&'static str, BootError> {
    let fault = |error| BootError::files(path.display(), error);
    let mut first = Vec::with_capacity(ZSTD.len());
    let file = File::open(path).map_err(fault)?;
    file.take(ZSTD.len() as u64).read_to_end(&mut first).map_err(fault)?;
    Ok(if first == ZSTD { "zstd --quiet --decompress --stdout <" } else { "cat <" })
}

/// A command of the shell that QEMU asks, with a path behind it.
///
/// Errors: no shell takes this path.
fn shell(command: &str, path: &Path) -> Result<String, BootError> {
    Ok(format!("exec:{}", word(command, path)?))
}

/// A command with a path behind it.
fn word(command: &str, path: &Path) -> Result<String, BootError> {
    let path = path.to_str().ok_or_else(|| BootError::files(path.display(), "not UTF-8"))?;
    let word = shlex::try_quote(path).map_err(|error| BootError::files(path, error))?;
    Ok(format!("{command} {word}"))
}

/// QEMU's monitor for programs: lines of JSON (docs/interop/qmp-spec of QEMU 7.2).
struct Monitor {
    lines: BufReader<UnixStream>,
}

impl Monitor {
    /// Waits until that of `running` is there, and greets it.
    fn open(socket: &Path, running: &mut Running) -> Result<Monitor, BootError> {
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > PATIENCE => return Err(fault(error)),
                Err(_) => {}
            }
            if let Heard::End(status) = running.listen(PAUSE)? {
                return Err(fault(format!("QEMU has not started: {status}")));
            }
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
        let mut monitor = Monitor { lines: BufReader::new(stream) };
        monitor.read()?;
        monitor.ask("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    fn read(&mut self) -> Result<Value, BootError> {
        let mut line = String::new();
        match self.lines.read_line(&mut line).map_err(fault)? {
            0 => Err(fault("it has gone")),
            _ => serde_json::from_str(&line).map_err(fault),
        }
    }

    /// The answer to an order.
    fn ask(&mut self, order: &str, arguments: &Value) -> Result<Value, BootError> {
        let text = json!({ "execute": order, "arguments": arguments });
        writeln!(self.lines.get_mut(), "{text}").map_err(fault)?;
        loop {
            let mut said = self.read()?;
            if let Some(answer) = said.get_mut("return") {
                return Ok(answer.take());
            }
            if let Some(error) = said.get("error") {
                return Err(fault(format!("{order}: {error}")));
            }
            // Anything else is an event.
        }
    }

    /// What the machine does, in QEMU's word.
    fn status(&mut self) -> Result<String, BootError> {
        let status = self.ask("query-status", &json!({}))?;
        Ok(status["status"].as_str().unwrap_or_default().to_string())
    }

    /// Saves a machine that is stopped.
    fn save(&mut self, path: &Path) -> Result<(), BootError> {
        self.ask("migrate-set-parameters", &json!({ "max-bandwidth": u32::MAX }))?;
        // QEMU may call it complete before the command has written everything, and does not tell
        // whether it could.
        let mut written = path.as_os_str().to_owned();
        written.push(".written");
        let written = PathBuf::from(written);
        let uri = format!("{} && {}", shell(writer(), path)?, word("touch", &written)?);
        self.ask("migrate", &json!({ "uri": uri }))?;
        let mut complete = None;
        while !written.exists() {
            let state = self.ask("query-migrate", &json!({}))?;
            match state["status"].as_str() {
                Some("completed")
                    if complete.get_or_insert_with(Instant::now).elapsed() > PATIENCE =>
                {
                    return Err(BootError::files(path.display(), "it cannot be written"));
                }
                Some("failed" | "cancelled") => return Err(fault(state.to_string())),
                _ => {}
            }
            sleep(PAUSE);
        }
        fs::remove_file(&written).map_err(|error| BootError::files(written.display(), error))
    }
}

fn fault(error: impl std::fmt::Display) -> BootError {
    BootError::files("QEMU's monitor", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_for_the_shell() {
        assert_eq!(shell("cat >", Path::new("/a b/c")).unwrap(), "exec:cat > '/a b/c'");
        assert!(shell("cat", Path::new("/a\0")).is_err());
    }

    #[test]
    fn states_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a state");
        let words = |command: &str| command.strip_prefix("exec:").unwrap().to_string();
        for write in ["cat >", writer()] {
            let write = words(&shell(write, &path).unwrap());
            let line = format!("echo memory | {{ {write}; }}");
            let written = Command::new("sh").arg("-c").arg(line).status();
            assert!(written.unwrap().success(), "{write}");
            let read = words(&shell(reader(&path).unwrap(), &path).unwrap());
            let read = Command::new("sh").arg("-c").arg(read).output().unwrap();
            assert_eq!(read.stdout, b"memory\n");
        }
    }
}
