//! The kernel: its file systems and modules, and how its machine ends.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use anysched_wire::result::Message;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};

/// Type and place of each.
const FILE_SYSTEMS: [(&str, &str); 6] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
];

/// Where modules are, in the order of their names.
const MODULES: &str = "/lib/anysched/modules";

/// Of finit_module(2): the file is compressed.
const COMPRESSED: i32 = 4;

/// Mounts what the kernel has, and has a panic of this program end the machine.
pub fn set_up() {
    for (kind, place) in FILE_SYSTEMS {
        mount_one(kind, place);
    }
    std::panic::set_hook(Box::new(|panic| refuse(format_args!("the first program: {panic}"))));
}

/// Who needs a file that is not there says so.
pub fn mount_one(kind: &str, place: &str) {
    let _ = fs::create_dir_all(place);
    let _ = mount(kind, place, kind, MountFlags::empty(), None);
}

/// Loads all modules that this machine has been given.
///
/// Errors: one cannot be loaded.
pub fn load_modules() -> Result<(), String> {
    let fault = |error: &dyn Display| format!("{MODULES}: {error}");
    let entries = fs::read_dir(MODULES).map_err(|error| fault(&error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let is_plain = path.extension().is_some_and(|ending| ending == "ko");
        let flags = if is_plain { 0 } else { COMPRESSED };
        let file = File::open(&path).map_err(|error| fault(&error))?;
        finit_module(&file, c"", flags)
            .map_err(|error| format!("{} cannot be loaded: {error}", path.display()))?;
    }
    Ok(())
}

/// Says something to whoever listens to the console.
pub fn say(message: &Message) {
    line(message);
}

/// A line for people.
pub fn line(text: impl Display) {
    // In one piece: the kernel and Xen write there, too.
    let _ = io::stdout().write_all(format!("{text}\n").as_bytes());
}

/// Says why what is asked for cannot be done, and ends the machine.
pub fn refuse(why: impl Display) -> ! {
    line(format_args!("\n{}", Message::Refused(why.to_string())));
    end()
}

/// Ends the machine.
pub fn end() -> ! {
    let _ = io::stdout().flush();
    let _ = reboot(RebootCommand::PowerOff);
    // Of the first program, this makes the kernel panic, which ends the machine, too.
    std::process::exit(1)
}
