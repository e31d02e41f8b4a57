//! Debian's packages of a dom0 with Linux: a kernel and Xen's tools, kept where they were unpacked.

use crate::{BootError, Sources};
use anysched_debian::place::{APT, ROOT, find_or_fetch, finish, present, unpack_new};
use anysched_debian::{Apt, Root, State, lacking, mirror};
use std::fs;
use std::path::{Path, PathBuf};

/// The package that depends on the suite's newest kernel. Kernels for virtual machines cannot be
/// dom0.
const KERNEL: &str = "linux-image-amd64";

/// What domains set their network up with.
const SHELL: &str = "busybox-static";

/// A kernel and Xen's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packages {
    /// The kernel, as `uname -r` says it.
    pub kernel: String,
    /// The version of Xen that the tools are for, without the release, as `4.20`.
    pub series: String,
    /// What the packages make up.
    pub root: Root,
    /// The file that changes when they are fetched anew.
    pub record: PathBuf,
}

impl Packages {
    /// What was fetched before for a Xen of these sources, or is now: about 146 MB of the suite
    /// that the sources are of. What happens meanwhile goes to `say`.
    ///
    /// Errors: apt is not installed, there is no room, or the suite does not have what is needed.
    pub fn find(
        cache: &Path,
        sources: &Sources,
        say: &mut dyn FnMut(&str),
    ) -> Result<Packages, BootError> {
        let place = cache.join(format!("{}-dom0", sources.suite));
        let series = series(&sources.version);
        let found = || Packages::found(&place, &series);
        let needs = "domains with Linux are built";
        find_or_fetch(cache, needs, say, found, |say| {
            fetch(cache, &place, &sources.suite, &series, say)
        })
    }

    fn found(place: &Path, series: &str) -> Option<Packages> {
        let state = State::read(place)?;
        if state.all("wanted") != names(series) {
            return None;
        }
        Some(Packages {
            kernel: state.one("kernel")?.into(),
            series: series.into(),
            root: Root::new(place.join(ROOT)),
            record: State::file(place),
        })
    }

    /// Where a module is in the root, by its path in the kernel's directory without an ending.
    ///
    /// Errors: the packages do not have it.
    pub fn module(&self, path: &str) -> Result<PathBuf, BootError> {
        let name = |ending| format!("usr/lib/modules/{}/kernel/{path}{ending}", self.kernel);
        let names = [".ko.xz", ".ko.zst", ".ko"].map(name);
        let found = present(self.root.path(), &names, "");
        found
            .map(|name| self.root.path().join(name))
            .map_err(|why| BootError::files(self.root.path().display(), why))
    }
}

/// `4.20` of `4.20.3+127-gc42374a105`.
fn series(version: &str) -> String {
    let mut numbers = version.split(|at: char| !at.is_ascii_digit());
    let mut next = || numbers.next().unwrap_or_default();
    format!("{}.{}", next(), next())
}

/// The packages that are fetched, with what they depend on. Tools serve Xen of their series only.
fn names(series: &str) -> [String; 3] {
    [format!("xen-utils-{series}"), KERNEL.into(), SHELL.into()]
}

/// Fetches them. Until all of it is there, it is in a directory of another name.
fn fetch(
    cache: &Path,
    place: &Path,
    suite: &str,
    series: &str,
    say: &mut dyn FnMut(&str),
) -> Result<(), BootError> {
    let new = place.with_added_extension("new");
    let mirror = mirror()?;
    let unfit = |why: String| lacking(suite, &mirror, &why);
    let apt = Apt::new(&new.join(APT), cache, &mirror, &[suite])?;
    say(&format!("fetching Linux and the tools of Xen {series}, of Debian {suite}"));
    let listed = apt.update().map_err(unfit)?;
    let names = names(series);
    apt.fetch_with_dependencies(&names.each_ref().map(String::as_str)).map_err(unfit)?;
    let mut state = unpack_new(&new, &apt, listed, say)?;
    let root = new.join(ROOT);
    let kernel = kernel(&root).map_err(unfit)?;
    for file in [super::BUSYBOX, &super::tool(series, "xl"), &super::tool(series, "xenstored")] {
        present(&root, &[file.trim_start_matches('/').into()], "").map_err(unfit)?;
    }
    state.add("kernel", &kernel);
    for name in &names {
        state.add("wanted", name);
    }
    finish(&new, place, &state)
}

/// The kernel in a root, by its directory of modules, with its image beside it.
fn kernel(root: &Path) -> Result<String, String> {
    let modules = root.join("usr/lib/modules");
    let entries = fs::read_dir(&modules).map_err(|error| format!("usr/lib/modules: {error}"))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| root.join(super::image(name)).exists());
    names.sort();
    names.pop().ok_or_else(|| format!("{KERNEL} has brought no boot/vmlinuz-VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_those_of_the_sources_series() {
        assert_eq!(series("4.20.3+127-gc42374a105"), "4.20");
        assert_eq!(names(&series("4.17.5+72-g01140da4e8"))[0], "xen-utils-4.17");
    }

    #[test]
    fn what_was_fetched_is_found_without_a_network() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join("trixie-dom0");
        let new = place.with_added_extension("new");
        let mut state = State::default();
        state.add("kernel", "6.12.9-amd64");
        names("4.20").iter().for_each(|name| state.add("wanted", name));
        fs::create_dir_all(new.join("root/boot")).unwrap();
        fs::create_dir_all(new.join("root/usr/lib/modules/6.12.9-amd64/kernel/net")).unwrap();
        fs::write(new.join("root/usr/lib/modules/6.12.9-amd64/kernel/net/a.ko.xz"), "x").unwrap();
        assert!(kernel(&new.join(ROOT)).unwrap_err().contains("no boot/vmlinuz-VERSION"));
        fs::write(new.join("root/boot/vmlinuz-6.12.9-amd64"), "x").unwrap();
        assert_eq!(kernel(&new.join(ROOT)).unwrap(), "6.12.9-amd64");
        finish(&new, &place, &state).unwrap();
        let found = Packages::found(&place, "4.20").unwrap();
        assert!(found.module("net/a").unwrap().ends_with("kernel/net/a.ko.xz"));
        let missing = found.module("net/b").unwrap_err().to_string();
        assert!(missing.contains("have no usr/lib/modules/6.12.9-amd64/kernel/net/b.ko.xz or"));
        assert_eq!(Packages::found(&place, "4.17"), None, "tools of another series");
    }
}
