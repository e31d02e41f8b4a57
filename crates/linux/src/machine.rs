//! Machines that have booted and wait for their orders, kept beside what they were made of.

use crate::build::lock;
use crate::{BootError, Image};
use anysched_debian::step::step;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::io::ErrorKind::{DirectoryNotEmpty, NotFound};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const INITRD: &str = "initrd";
const STATE: &str = "state";
/// Its time of change is when the machine was used last.
const USED: &str = "used";

/// So many are kept, of some 90 MB each.
const KEPT: usize = 12;

/// One that was used within this time may be in use.
const IN_USE: Duration = Duration::from_secs(3600);

/// A machine that is ready.
pub struct Ready {
    /// The file with its state.
    pub state: PathBuf,
    /// Its first file system: QEMU wants to see it again.
    pub initrd: PathBuf,
}

impl Image {
    /// The machine with this description, made of these files. If there is none yet, `boot` boots
    /// it: it writes the first file system and the state to the paths that it is given.
    ///
    /// Errors: those of `boot`, or files cannot be written.
    pub(crate) fn ready(
        &self,
        description: &str,
        inputs: &[PathBuf],
        boot: &mut dyn FnMut(&Path, &Path) -> Result<(), BootError>,
    ) -> Result<Ready, BootError> {
        let mut name = DefaultHasher::new();
        (description, inputs).hash(&mut name);
        let machines = self.machines();
        let directory = machines.join(format!("{:016x}", name.finish()));
        let _lock = lock(&directory)?;
        let [initrd, state, used] = [INITRD, STATE, USED].map(|name| directory.join(name));
        step(&state, description, inputs, |new| {
            let fault = |error| BootError::files(machines.display(), error);
            forget_old(&machines, &directory).map_err(fault)?;
            boot(&initrd, new)
        })?;
        File::create(&used).map_err(|error| BootError::files(used.display(), error))?;
        Ok(Ready { state, initrd })
    }
}

/// Removes what was not used for the longest time, to make room for `new`, which may have been
/// there before.
fn forget_old(machines: &Path, new: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(machines)? {
        let path = entry?.path();
        if path == new {
            continue;
        }
        if let Ok(used) = fs::metadata(path.join(USED)).and_then(|used| used.modified()) {
            all.push((used, path));
        }
    }
    all.sort();
    let now = SystemTime::now();
    for (used, path) in &all[..(all.len() + 1).saturating_sub(KEPT)] {
        if now.duration_since(*used).is_ok_and(|ago| ago > IN_USE) {
            match fs::remove_dir_all(path) {
                // Another boot removes it at the same time, or begins to use it.
                Err(error) if [NotFound, DirectoryNotEmpty].contains(&error.kind()) => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_nobody_uses_make_room() {
        let machines = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for number in 0..KEPT as u64 + 2 {
            let directory = machines.path().join(number.to_string());
            fs::create_dir(&directory).unwrap();
            let used = File::create(directory.join(USED)).unwrap();
            // Number 1 is in use, older ones have longer been out of it.
            let ago = if number == 1 { 10 } else { 7200 + 100 - number };
            used.set_modified(now - Duration::from_secs(ago)).unwrap();
        }
        // The oldest one is built anew.
        let new = machines.path().join("0");
        forget_old(machines.path(), &new).unwrap();
        let left = |number: u64| machines.path().join(number.to_string()).exists();
        assert!(left(0) && left(1) && !left(2) && !left(3) && left(4), "with one more, {KEPT}");
        forget_old(machines.path(), &new).unwrap();
        assert!(left(0) && left(4));
    }
}
