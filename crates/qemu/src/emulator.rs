//! The program that emulates machines.

use crate::BootError;
use anysched_wire::result::EXIT_PORT;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Its name where it is installed.
const PROGRAM: &str = "qemu-system-x86_64";

/// A small firmware that comes with it.
const QBOOT: &str = "qboot.rom";

/// The first version whose CPUs, where they take turns and instructions are counted, have equal
/// parts of the time until a timer is due. Before, the first CPU that is not idle uses up all of it
/// each time, and the others run when it sleeps or is interrupted.
const FAIR: (u32, u32) = (8, 1);

/// A QEMU.
#[derive(Clone, Debug)]
pub struct Emulator {
    /// The program, and arguments that it needs in any case.
    words: Vec<OsString>,
    version: String,
    /// Whether it came with [`QBOOT`].
    has_qboot: bool,
}

impl Emulator {
    /// The one that is installed.
    ///
    /// Errors: none is.
    pub fn installed() -> Result<&'static Emulator, BootError> {
        static INSTALLED: OnceLock<Option<Emulator>> = OnceLock::new();
        let installed = INSTALLED.get_or_init(|| Emulator::new(vec![PROGRAM.into()]).ok());
        installed.as_ref().ok_or_else(|| BootError::Missing {
            what: format!("{PROGRAM} is not installed"),
            remedy: "install it with `apt-get install qemu-system-x86` (Debian, Ubuntu), `dnf \
                     install qemu-system-x86-core` (Fedora) or `pacman -S qemu-system-x86` (Arch)"
                .into(),
        })
    }

    /// The one that is called by `words`: a program, and arguments that it needs in any case.
    ///
    /// Errors: it cannot be called.
    pub fn new(words: Vec<OsString>) -> Result<Emulator, BootError> {
        let mut emulator = Emulator { words, version: String::new(), has_qboot: false };
        emulator.version = emulator.say(&["--version"])?;
        let directories = emulator.say(&["-L", "help"])?;
        emulator.has_qboot =
            directories.lines().any(|directory| Path::new(directory).join(QBOOT).is_file());
        Ok(emulator)
    }

    fn say(&self, arguments: &[&str]) -> Result<String, BootError> {
        let said = self.command().args(arguments).output();
        let said = said.map_err(|error| BootError::files(self.words[0].display(), error))?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_string())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    /// What it says of its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether several CPUs that take turns get equal ones where instructions are counted.
    pub fn is_fair(&self) -> bool {
        number(&self.version).is_some_and(|version| version >= FAIR)
    }

    /// A machine that boots `kernel`: no screen, no network, its console on our pipe.
    pub fn machine(&self, kernel: &Path, memory: &str) -> Command {
        let mut qemu = self.command();
        qemu.args(["-machine", "q35", "-accel", "tcg", "-m", memory])
            .args(["-display", "none", "-vga", "none", "-nodefaults", "-no-reboot"])
            .args(["-serial", "stdio", "-monitor", "none"])
            .arg("-device")
            .arg(format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4"))
            .arg("-kernel")
            .arg(kernel);
        qemu
    }

    /// Has a machine boot a kernel that needs nothing from its firmware (so no network card, as
    /// firmware assigns its addresses) in a tenth of the time that QEMU's default firmware takes,
    /// if this QEMU came with qboot.
    pub fn boot_quickly(&self, machine: &mut Command) {
        if self.has_qboot {
            machine.args(["-bios", QBOOT]);
        }
    }
}

/// Major and minor number in what QEMU says of its version.
fn number(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("version ")?;
    let mut numbers = rest.split(|at: char| !at.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_distributions_are_read() {
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright";
        assert_eq!(number(debian), Some((7, 2)));
        assert_eq!(number("QEMU emulator version 10.0.13"), Some((10, 0)));
        assert_eq!(number("QEMU emulator version 8.1rc2"), Some((8, 1)));
        assert_eq!(number("QEMU"), None);
        let fair = |version: &str| {
            let version = format!("QEMU emulator version {version}");
            Emulator { words: Vec::new(), version, has_qboot: false }.is_fair()
        };
        assert_eq!(["7.2.22", "8.0.5", "8.1.0", "10.0"].map(fair), [false, false, true, true]);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Emulator::new(vec!["/nonesuch/qemu".into()]).unwrap_err().to_string();
        assert!(error.starts_with("/nonesuch/qemu: "), "{error}");
    }
}
