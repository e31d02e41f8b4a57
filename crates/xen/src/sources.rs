//! Xen's sources, and the programs that build them: Debian's packages, kept where they were
//! unpacked.

use crate::BootError;
use anysched_debian::place::{APT, ROOT, files, find_or_fetch, finish, present, unpack_new};
use anysched_debian::{Apt, Root, State, lacking, link_alternatives, mirror};
use std::fs;
use std::path::{Path, PathBuf};

/// The suite with the Xen that is built.
const SUITE: &str = "trixie";

/// The source package.
const PACKAGE: &str = "xen";

/// The release that figures were taken with, by its path on a mirror and its SHA-256 sum: an
/// earlier one of the suite. Mirrors keep those for some time, and have had it while they lacked
/// the one that the suite's index named.
const PINNED: (&str, &str) = (
    "pool/main/x/xen/xen_4.20.3+127-gc42374a105.orig.tar.xz",
    "df0831854a55a8f31cb3cb85036f2edc928e2ef098d77f815f5714bfafac68f3",
);

/// What builds it.
const TOOLS: [&str; 18] = [
    "bash",
    "binutils",
    "bison",
    "coreutils",
    "diffutils",
    "findutils",
    "flex",
    "gawk",
    "gcc",
    "grep",
    "gzip",
    "libc6-dev",
    "m4",
    "make",
    "python3-minimal",
    "sed",
    "tar",
    "xz-utils",
];

/// Where the tarball is, beside the root.
const TARBALL: &str = "source.tar.xz";

/// Xen's sources and what builds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Xen's version, as the package has it.
    pub version: String,
    /// What Xen's authors have released, on this computer.
    pub tarball: PathBuf,
    /// The system that the packages make up: its programs build Xen.
    pub root: Root,
    /// Bytes that were fetched, lists and packages, as apt stores them.
    pub fetched: u64,
}

impl Sources {
    /// What was fetched before, or is now: about 125 MB, which become 320 MB on the disk. What
    /// happens meanwhile goes to `say`.
    ///
    /// Errors: apt is not installed, there is no room, or the suite does not have what is needed.
    pub fn find(say: &mut dyn FnMut(&str)) -> Result<Sources, BootError> {
        Sources::find_in(&anysched_qemu::sources("xen")?.join("target/packages"), say)
    }

    /// As [`Sources::find`], with what was found kept in the directory `cache`.
    ///
    /// Errors: as [`Sources::find`].
    pub fn find_in(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Sources, BootError> {
        let place = cache.join(SUITE);
        let found = || Sources::found(&place);
        find_or_fetch(cache, "Xen is built", say, found, |say| fetch(cache, &place, say))
    }

    fn found(place: &Path) -> Option<Sources> {
        let state = State::read(place)?;
        if state.all("wanted") != TOOLS {
            return None;
        }
        Some(Sources {
            version: state.one("version")?.into(),
            tarball: place.join(TARBALL),
            root: Root::new(place.join(ROOT)),
            fetched: state.one("fetched")?.parse().ok()?,
        })
    }
}

/// Fetches everything. Until all of it is there, it is in a directory of another name.
fn fetch(cache: &Path, place: &Path, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
    let new = place.with_added_extension("new");
    let mirror = mirror()?;
    let unfit = |why: String| lacking(SUITE, &mirror, &why);
    let apt = Apt::new(&new.join(APT), cache, &mirror, &[SUITE])?;
    apt.see_sources(&mirror, &[SUITE])?;
    say(&format!("fetching Xen's sources and what builds them, of Debian {SUITE}"));
    let listed = apt.update().map_err(unfit)?;
    apt.fetch_with_dependencies(&TOOLS).map_err(unfit)?;
    // Beside the packages it would be taken for one.
    let aside = new.join(TARBALL);
    let tarball = fetch_release(&apt, &mirror, say).map_err(unfit)?;
    let version =
        version(&tarball).ok_or_else(|| unfit(format!("{} has no version", tarball.display())))?;
    fs::rename(&tarball, &aside).map_err(|error| BootError::files(aside.display(), error))?;
    leave_packages(&apt.archives())?;
    let mut state = unpack_new(&new, &apt, listed, say)?;
    let root = new.join(ROOT);
    link_alternatives(&root)?;
    for name in ["make", "gcc", "flex", "bison", "xz"] {
        present(&root, &[format!("usr/bin/{name}")], "").map_err(unfit)?;
    }
    state.add("version", &version);
    for name in TOOLS {
        state.add("wanted", name);
    }
    finish(&new, place, &state)
}

/// Fetches the release that figures were taken with, or else the one that the suite has now.
fn fetch_release(apt: &Apt, mirror: &str, say: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    let (path, sum) = PINNED;
    apt.fetch_file(mirror, path, sum).or_else(|why| {
        say(&format!("the mirror has no {path} any more; figures may differ ({why})"));
        apt.fetch_source(PACKAGE)
    })
}

/// The version in the name of a tarball, `xen_4.20.3.orig.tar.xz`.
fn version(tarball: &Path) -> Option<String> {
    let name = tarball.file_name()?.to_str()?;
    let (_, rest) = name.split_once('_')?;
    Some(rest.split_once(".orig.tar.")?.0.to_string())
}

/// Removes what a directory has besides packages.
fn leave_packages(directory: &Path) -> Result<(), BootError> {
    for path in files(directory)? {
        let is_package = path.extension().is_some_and(|ending| ending == "deb");
        if !is_package && path.file_name().is_some_and(|name| name != "lock") {
            fs::remove_file(&path).map_err(|error| BootError::files(path.display(), error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_name() {
        let of = |name: &str| version(Path::new(name));
        let name = "/a_b/xen_4.20.3+127-gc42374a105.orig.tar.xz";
        assert_eq!(of(name).as_deref(), Some("4.20.3+127-gc42374a105"));
        assert_eq!(of("/a_b/xen-4.20.tar.xz"), None);
    }

    #[test]
    fn what_was_fetched_is_found_without_a_network() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join(SUITE);
        let mut state = State::default();
        state.add("fetched", "1000");
        state.add("version", "4.20.3");
        for name in TOOLS {
            state.add("wanted", name);
        }
        let new = place.with_added_extension("new");
        fs::create_dir_all(&new).unwrap();
        finish(&new, &place, &state).unwrap();
        let found = Sources::find_in(cache.path(), &mut |line| panic!("{line}")).unwrap();
        assert_eq!((found.version.as_str(), found.fetched), ("4.20.3", 1000));
        assert_eq!(found.root.path(), place.join(ROOT));
        // What other tools have fetched is not enough.
        let other = State::default();
        other.write(&place).unwrap();
        assert_eq!(Sources::found(&place), None);
    }
}
