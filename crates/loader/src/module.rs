//! The module with the policies.

use crate::change::{outcome, request};
use anysched_core::machine::Cpu;
use anysched_wire::start::Start;
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Its log of decisions: what is read is gone.
pub const LOG: &str = "/proc/anysched/log";

const START: &str = "/proc/anysched/start";
/// What it says of itself.
pub const STATUS: &str = "/proc/anysched/status";
/// Takes what is to change, and answers.
const CHANGE: &str = "/proc/anysched/change";
/// The kernel is not to wait for what holds the module: that could not be interrupted.
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
const NAME: &CStr = c"anysched";

/// The CPUs that there can be.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// For how long what the kernel still holds of a scheduler may keep the module from leaving.
const PATIENCE: Duration = Duration::from_secs(10);

/// The module of the running kernel.
#[derive(Clone, Copy, Debug)]
pub struct Module;

impl Module {
    /// Whether it is loaded.
    pub fn is_loaded(self) -> bool {
        Path::new(STATUS).exists()
    }

    /// Loads `file`, with the policy's memory in bytes; `None`: the module's default.
    ///
    /// Errors: why the kernel does not take it.
    pub fn load(self, file: &Path, heap: Option<u64>) -> Result<(), String> {
        let parameters = heap.map(|bytes| format!("heap={bytes}")).unwrap_or_default();
        let parameters = CString::new(parameters).map_err(|error| error.to_string())?;
        let loaded = File::open(file).and_then(|module| {
            rustix::system::finit_module(module, &parameters, 0).map_err(io::Error::from)
        });
        loaded.map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Unloads it, if it is loaded, as soon as nothing holds it.
    ///
    /// Errors: something keeps holding it.
    pub fn unload(self) -> Result<(), String> {
        let start = Instant::now();
        while self.is_loaded() {
            match rustix::system::delete_module(NAME, NO_WAIT) {
                Ok(()) => return Ok(()),
                Err(error) if start.elapsed() >= PATIENCE => {
                    return Err(format!("the module anysched cannot be unloaded: {error}"));
                }
                Err(_) => sleep(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    /// Says what is to be started, on the CPUs of this machine.
    ///
    /// Errors: the machine cannot be read, or the module does not take it.
    pub fn configure(self, start: Start) -> Result<(), String> {
        let text = here(start)?;
        // In one write: the module takes what it is given as the whole.
        let file = OpenOptions::new().write(true).open(START);
        let written = file.and_then(|mut file| file.write(text.as_bytes()));
        match written {
            Ok(length) if length == text.len() => Ok(()),
            Ok(length) => Err(format!("{START}: it took {length} bytes of {}", text.len())),
            Err(error) => Err(format!("{START}: {error}")),
        }
    }

    /// Has the policy change a parameter.
    ///
    /// Errors: it does not, or there is none that decides.
    pub fn change(self, name: &str, value: &str) -> Result<(), String> {
        let text = request(name, value)?;
        let fault = |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::SRCH) => "the policy does not decide any more".into(),
            _ => format!("{CHANGE}: {error}"),
        };
        let mut file = OpenOptions::new().read(true).write(true).open(CHANGE).map_err(fault)?;
        // In one write: the module takes what it is given as the whole.
        let written = file.write(text.as_bytes()).map_err(fault)?;
        if written != text.len() {
            return Err(format!("{CHANGE}: it took {written} bytes of {}", text.len()));
        }
        let mut answer = Vec::new();
        file.read_to_end(&mut answer).map_err(fault)?;
        outcome(&answer)
    }

    /// What it says of itself, if it is loaded.
    pub fn status(self) -> Option<String> {
        fs::read(STATUS).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
    }
}

/// The text that has `start` start on the CPUs of this machine.
///
/// Errors: the machine cannot be read, or `start` not be written.
pub fn here(mut start: Start) -> Result<String, String> {
    start.cpus = cpus()?;
    start.write().map_err(|error| error.to_string())
}

/// Core, last-level cache, package, node and capacity of each CPU that there can be.
fn cpus() -> Result<Vec<[u16; 5]>, String> {
    let topology = anysched_topology::host().map_err(|error| error.to_string())?;
    let possible = fs::read_to_string(POSSIBLE).map_err(|error| format!("{POSSIBLE}: {error}"))?;
    let count = highest(&possible).ok_or_else(|| format!("{POSSIBLE}: {possible:?}"))? + 1;
    let cpu = |cpu: Cpu| [cpu.core, cpu.llc, cpu.package, cpu.node, cpu.capacity];
    Ok(topology.by_number(count).into_iter().map(cpu).collect())
}

/// The highest number in a list such as `0-3,8`.
fn highest(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_a_list() {
        let highest = ["0\n", "0-3\n", "0-3,8", ""].map(highest);
        assert_eq!(highest, [Some(0), Some(3), Some(8), None]);
    }
}
