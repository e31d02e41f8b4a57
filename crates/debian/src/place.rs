//! A directory with what was fetched of a suite, and what is done until it is there.

use crate::{Apt, BootError, State, note};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// In a suite's directory: the unpacked packages.
pub const ROOT: &str = "root";

/// In a suite's directory while something is fetched: apt's files.
pub const APT: &str = "apt";

/// In a suite's directory: which packages it has, as apt reads it.
pub const INSTALLED: &str = "installed";

/// Waits until no other process fetches. The lock goes with the file, and with the process.
///
/// Errors: it cannot be locked.
pub fn lock(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<File, BootError> {
    let path = cache.join("lock");
    let fault = |error| BootError::files(path.display(), error);
    fs::create_dir_all(cache).map_err(fault)?;
    let file = File::create(&path).map_err(fault)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => say("waiting for another process that fetches packages"),
        Err(TryLockError::Error(error)) => return Err(fault(error)),
    }
    file.lock().map_err(fault)?;
    Ok(file)
}

/// What `found` finds, after `fetch` if it finds nothing before. Of all that fetch for `cache`, one
/// does at a time. What is fetched are programs for Linux on x86-64; `needs` says what is done by
/// them.
///
/// Errors: this computer cannot run these; the cache cannot be locked; those of `fetch`; what that
/// has fetched is not found.
pub fn find_or_fetch<T>(
    cache: &Path,
    needs: &str,
    say: &mut dyn FnMut(&str),
    found: impl Fn() -> Option<T>,
    fetch: impl FnOnce(&mut dyn FnMut(&str)) -> Result<(), BootError>,
) -> Result<T, BootError> {
    if let Some(found) = found() {
        return Ok(found);
    }
    if std::env::consts::ARCH != "x86_64" || !cfg!(unix) {
        return Err(BootError::Missing {
            what: format!("{needs} by programs for Linux on x86-64"),
            remedy: "run this on such a computer".into(),
        });
    }
    let _lock = lock(cache, say)?;
    // Somebody else may have fetched it while this waited.
    if let Some(found) = found() {
        return Ok(found);
    }
    fetch(say)?;
    found().ok_or_else(|| BootError::files(cache.display(), "what was fetched is not there"))
}

/// Unpacks what was fetched. A root that an interrupted process left is made anew; packages that it
/// fetched are not fetched again. `listed`: bytes of lists that were fetched.
///
/// Errors: a package is broken, or something cannot be written.
pub fn unpack_new(
    new: &Path,
    apt: &Apt,
    listed: u64,
    say: &mut dyn FnMut(&str),
) -> Result<State, BootError> {
    let root = new.join(ROOT);
    remove(&root)?;
    let packages = files(&apt.archives())?;
    say(&format!("unpacking {} packages", packages.len()));
    crate::unpack(&packages, &root)?;
    note(&packages, &new.join(INSTALLED))?;
    let mut state = State::default();
    state.add("fetched", &(listed + sizes(&packages)).to_string());
    Ok(state)
}

/// Bytes of files that are there.
pub fn sizes(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|path| path.metadata().ok()).map(|data| data.len()).sum()
}

/// The first of `places` that is in the root, after `prefix`.
///
/// Errors: none is, in words.
pub fn present(root: &Path, places: &[String], prefix: &str) -> Result<String, String> {
    let found = places.iter().find(|place| root.join(place).exists());
    let missing = || format!("its packages have no {}", places.join(" or "));
    found.map(|place| format!("{prefix}{place}")).ok_or_else(missing)
}

/// Puts what was fetched in its place.
///
/// Errors: it cannot be written there.
pub fn finish(new: &Path, place: &Path, state: &State) -> Result<(), BootError> {
    remove(&new.join(APT))?;
    state.write(new)?;
    remove(place)?;
    fs::rename(new, place).map_err(|error| BootError::files(place.display(), error))
}

/// Removes a directory, if there is one.
///
/// Errors: it cannot be removed.
pub fn remove(directory: &Path) -> Result<(), BootError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BootError::files(directory.display(), error))
        }
        _ => Ok(()),
    }
}

/// The files that a directory has, not empty ones and not those below it.
///
/// Errors: it cannot be read.
pub fn files(directory: &Path) -> Result<Vec<PathBuf>, BootError> {
    let fault = |error| BootError::files(directory.display(), error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let data = entry.metadata().map_err(fault)?;
        if data.is_file() && data.len() > 0 {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_waits_for_another() {
        let cache = tempfile::tempdir().unwrap();
        let held = lock(cache.path(), &mut |line| panic!("{line}")).unwrap();
        let said = std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiting = scope.spawn(move || {
                let mut say = |line: &str| sender.send(line.to_string()).unwrap();
                lock(cache.path(), &mut say).unwrap();
            });
            let said = receiver.recv().unwrap();
            assert!(!waiting.is_finished());
            drop(held);
            said
        });
        assert_eq!(said, "waiting for another process that fetches packages");
    }

    #[test]
    fn what_is_there_is_not_fetched_again() {
        let cache = tempfile::tempdir().unwrap();
        let file = cache.path().join("file");
        let found = || file.exists().then_some(7);
        let find = |fetch: &dyn Fn() -> Result<(), BootError>| {
            find_or_fetch(cache.path(), "it is run", &mut |_| (), found, |_| fetch())
        };
        let lost = find(&|| Ok(())).unwrap_err().to_string();
        assert!(lost.ends_with("what was fetched is not there"), "{lost}");
        let fetch = || fs::write(&file, "").map_err(|error| BootError::files("file", error));
        assert_eq!(find(&fetch), Ok(7));
        assert_eq!(find(&|| panic!("it is there")), Ok(7));
    }

    #[test]
    fn what_packages_lack_is_named() {
        let root = tempfile::tempdir().unwrap();
        let places = ["usr/a".to_string(), "boot/b".to_string()];
        let why = present(root.path(), &places, "").unwrap_err();
        assert_eq!(why, "its packages have no usr/a or boot/b");
        fs::create_dir(root.path().join("boot")).unwrap();
        fs::write(root.path().join("boot/b"), "").unwrap();
        assert!(present(root.path(), &places, "/").is_ok_and(|place| place == "/boot/b"));
    }
}
