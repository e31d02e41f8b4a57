//! A QEMU for machines that this computer's own does not emulate well.

use crate::place::{APT, ROOT, find_or_fetch, finish, present, unpack_new};
use crate::{Apt, BootError, State, lacking, mirror};
use anysched_host::Clock;
use anysched_qemu::{Emulator, sources};
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// The suite with a QEMU that gives CPUs equal turns.
const SUITE: &str = "trixie";

/// The package.
const PACKAGE: &str = "qemu-system-x86";

/// Where it is, beside what the Linux host has fetched.
const PLACE: &str = "qemu";

/// In the root: what starts programs, libraries, QEMU, and where it finds firmware.
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const PROGRAM: &str = "usr/bin/qemu-system-x86_64";
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

/// The QEMU for a machine of `cpus` CPUs whose time passes by `clock`: the one that is installed,
/// unless several CPUs count instructions and it does not give them [equal
/// turns](Emulator::is_fair). Then it is one of Debian's, which is fetched once (60 MB) and not
/// installed. What happens meanwhile goes to `say`.
///
/// Errors: none is installed; one that is needed cannot be had.
pub fn emulator(
    clock: Clock,
    cpus: usize,
    say: &mut dyn FnMut(&str),
) -> Result<&'static Emulator, BootError> {
    static FAIR: OnceLock<Result<Emulator, BootError>> = OnceLock::new();
    let installed = Emulator::installed()?;
    if cpus == 1 || clock == Clock::Parallel || installed.is_fair() {
        return Ok(installed);
    }
    FAIR.get_or_init(|| fair(installed, say)).as_ref().map_err(Clone::clone)
}

/// A QEMU that is fair, as the installed one is not.
fn fair(installed: &Emulator, say: &mut dyn FnMut(&str)) -> Result<Emulator, BootError> {
    let found = find(&sources("linux")?.join("target/packages"), say);
    found.map_err(|error| BootError::Missing {
        what: format!(
            "several CPUs do not get equal turns where instructions are counted, in {}; no newer \
             one could be fetched: {error}",
            installed.version().lines().next().unwrap_or_default()
        ),
        remedy: "install QEMU 8.1 or later".into(),
    })
}

/// What was fetched before into the directory `cache`, or is now.
fn find(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Emulator, BootError> {
    let place = cache.join(PLACE);
    let found = || State::read(&place).map(|_| words(&place.join(ROOT)));
    let needs = "machines of several CPUs are emulated";
    Emulator::new(find_or_fetch(cache, needs, say, found, |say| fetch(cache, &place, say))?)
}

/// How QEMU is called that is in `root`: with its own libraries, which are newer than this
/// computer's, and without being root, which another root directory would need.
fn words(root: &Path) -> Vec<OsString> {
    let inside = |path: &str| root.join(path).into_os_string();
    let mut words = vec![inside(LOADER), "--library-path".into(), inside(LIBRARIES)];
    words.push(inside(PROGRAM));
    for directory in FIRMWARE {
        words.extend(["-L".into(), inside(directory)]);
    }
    words
}

/// Fetches it. Until all of it is there, it is in a directory of another name.
fn fetch(cache: &Path, place: &Path, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
    let new = place.with_added_extension("new");
    let mirror = mirror()?;
    let unfit = |why: String| lacking(SUITE, &mirror, &why);
    let apt = Apt::new(&new.join(APT), cache, &mirror, &[SUITE])?;
    say(&format!("fetching QEMU, which gives several CPUs equal turns, of Debian {SUITE}"));
    let listed = apt.update().map_err(unfit)?;
    apt.fetch_with_dependencies(&[PACKAGE]).map_err(unfit)?;
    let state = unpack_new(&new, &apt, listed, say)?;
    for file in [LOADER, PROGRAM] {
        present(&new.join(ROOT), &[file.into()], "").map_err(unfit)?;
    }
    finish(&new, place, &state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_called_with_its_own_libraries_and_firmware() {
        let words = words(Path::new("/r"));
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            words.join(" "),
            "/r/usr/lib64/ld-linux-x86-64.so.2 --library-path /r/usr/lib/x86_64-linux-gnu \
             /r/usr/bin/qemu-system-x86_64 -L /r/usr/share/qemu -L /r/usr/share/seabios"
        );
    }
}
