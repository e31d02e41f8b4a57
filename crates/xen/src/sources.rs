//! Xen's sources, and the programs that build them: Debian's packages, kept where they were
//! unpacked.

use crate::BootError;
use anysched_debian::place::{APT, ROOT, files, find_or_fetch, finish, present, unpack_new};
use anysched_debian::{Apt, Root, State, lacking, link_alternatives, mirror, unavailable};
use std::fs;
use std::path::{Path, PathBuf};

/// The source package.
const PACKAGE: &str = "xen";

/// A suite of Debian with a Xen that is built.
#[derive(Debug)]
struct Suite {
    name: &'static str,
    /// The release that was tried, by its path on a mirror and its SHA-256 sum. Mirrors keep it for
    /// some time when the suite has a later one, and have had it while they lacked the one that
    /// the suite's index named.
    path: &'static str,
    sum: &'static str,
}

/// The first is the one that figures were taken with; the others serve if that cannot be had.
const SUITES: [Suite; 2] = [
    Suite {
        name: "trixie",
        path: "pool/main/x/xen/xen_4.20.3+127-gc42374a105.orig.tar.xz",
        sum: "df0831854a55a8f31cb3cb85036f2edc928e2ef098d77f815f5714bfafac68f3",
    },
    Suite {
        name: "bookworm",
        path: "pool/main/x/xen/xen_4.17.5+72-g01140da4e8.orig.tar.xz",
        sum: "53922f4d0a02c577f2ea9d63f65989cd88715779eebeed879ca1d314103ee06e",
    },
];

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
    /// Debian's suite that they are of.
    pub suite: String,
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
    /// What was fetched before, or is now: about 125 MB, which become 320 MB on the disk. It is of
    /// the first suite that has what is needed. What happens meanwhile goes to `say`.
    ///
    /// Errors: apt is not installed, there is no room, or no suite has what is needed.
    pub fn find(say: &mut dyn FnMut(&str)) -> Result<Sources, BootError> {
        Sources::find_in(&cache()?, say)
    }

    /// As [`Sources::find`], but of the oldest suite, whether or not a later one serves.
    ///
    /// Errors: as [`Sources::find`].
    pub fn find_oldest(say: &mut dyn FnMut(&str)) -> Result<Sources, BootError> {
        let [.., oldest] = &SUITES;
        oldest.find(&cache()?, say)
    }

    /// As [`Sources::find`], with what was found kept in the directory `cache`.
    ///
    /// Errors: as [`Sources::find`].
    pub fn find_in(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Sources, BootError> {
        if let Some(found) = SUITES.iter().find_map(|suite| suite.found(cache)) {
            return Ok(found);
        }
        let mut lacks = Vec::new();
        for suite in &SUITES {
            match suite.find(cache, say) {
                Err(BootError::Unavailable { what, .. }) => {
                    say(&what);
                    lacks.push(what);
                }
                other => return other,
            }
        }
        Err(unavailable(lacks.join("; ")))
    }
}

impl Suite {
    fn place(&self, cache: &Path) -> PathBuf {
        cache.join(self.name)
    }

    fn find(&self, cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Sources, BootError> {
        let found = || self.found(cache);
        find_or_fetch(cache, "Xen is built", say, found, |say| self.fetch(cache, say))
    }

    fn found(&self, cache: &Path) -> Option<Sources> {
        let place = self.place(cache);
        let state = State::read(&place)?;
        if state.all("wanted") != TOOLS {
            return None;
        }
        Some(Sources {
            suite: self.name.into(),
            version: state.one("version")?.into(),
            tarball: place.join(TARBALL),
            root: Root::new(place.join(ROOT)),
            fetched: state.one("fetched")?.parse().ok()?,
        })
    }

    /// Fetches everything. Until all of it is there, it is in a directory of another name.
    fn fetch(&self, cache: &Path, say: &mut dyn FnMut(&str)) -> Result<(), BootError> {
        let place = self.place(cache);
        let new = place.with_added_extension("new");
        let mirror = mirror()?;
        let unfit = |why: String| lacking(self.name, &mirror, &why);
        let apt = Apt::new(&new.join(APT), cache, &mirror, &[self.name])?;
        apt.see_sources(&mirror, &[self.name])?;
        say(&format!("fetching Xen's sources and what builds them, of Debian {}", self.name));
        let listed = apt.update().map_err(unfit)?;
        apt.fetch_with_dependencies(&TOOLS).map_err(unfit)?;
        // Beside the packages it would be taken for one.
        let aside = new.join(TARBALL);
        let tarball = self.fetch_release(&apt, &mirror, say).map_err(unfit)?;
        let version = version(&tarball)
            .ok_or_else(|| unfit(format!("{} has no version", tarball.display())))?;
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
        finish(&new, &place, &state)
    }

    /// Fetches the release that was tried, or else the one that the suite has now.
    fn fetch_release(
        &self,
        apt: &Apt,
        mirror: &str,
        say: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, String> {
        let path = self.path;
        apt.fetch_file(mirror, path, self.sum).or_else(|why| {
            say(&format!("the mirror has no {path} any more; figures may differ ({why})"));
            apt.fetch_source(PACKAGE)
        })
    }
}

/// Where what was fetched is kept.
pub(crate) fn cache() -> Result<PathBuf, BootError> {
    Ok(anysched_qemu::sources("xen")?.join("target/packages"))
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
        let place = SUITES[1].place(cache.path());
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
        assert_eq!(SUITES[1].found(cache.path()), None);
    }
}
