//! The hypervisor as a package for machines that run Debian, with what its sources get.

use crate::build::{ADDED, ForMachines, LINES};
use crate::{BootError, Sources};
use anysched_debian::step::run;
use anysched_debian::{Root, Tools};
use anysched_qemu as qemu;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const PACKAGE: &str = "anysched-xen-hypervisor";

/// The files beside the package.
const PATCH: &str = "anysched-xen.patch";
const POLICIES: &str = "anysched-policies.o";

/// When all files are said to be from, in seconds since 1970: 2000-01-01. The same build gives the
/// same bytes; from 1970, a patch's file would be one that is not there.
const MADE: u64 = 946_684_800;

/// The boot loader lists hypervisors by the files in /boot.
const AFTERWARDS: &str =
    "#!/bin/sh\nset -e\nif command -v update-grub >/dev/null; then update-grub; fi\n";

/// Builds the hypervisor with all that Xen has by default, and writes to `directory` a package of
/// it for Debian, the patch to Xen's sources, and the object with the policies that this needs;
/// returns their paths. What happens meanwhile goes to `say`.
///
/// Errors: one of them is there already, it cannot be written, or what a compiler says.
pub fn package(
    sources: &Sources,
    directory: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, BootError> {
    let name = format!("{PACKAGE}_{}_amd64.deb", version(sources));
    let paths = [name.as_str(), PATCH, POLICIES].map(|name| directory.join(name));
    let fault = |path: &Path, error| BootError::files(path.display(), error);
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        let why = "is already there; name another folder with -o";
        return Err(fault(path, io::Error::new(io::ErrorKind::AlreadyExists, why)));
    }
    fs::create_dir_all(directory).map_err(|error| fault(directory, error))?;
    let built = ForMachines::build(sources, say)?;
    say("packing");
    let work = qemu::directory()?;
    let work = Work { root: &sources.root, directory: work.path() };
    let patch = work.patch(&built)?;
    let package = work.package(&built, sources, &patch)?;
    for (from, to) in [&package, &patch, &built.policies].into_iter().zip(&paths) {
        // Under its name only when all of it is there.
        let new = to.with_added_extension("new");
        fs::copy(from, &new).map_err(|error| fault(&new, error))?;
        fs::rename(&new, to).map_err(|error| fault(to, error))?;
    }
    Ok(paths.into())
}

/// The package's version: of Xen, and of what was added.
fn version(sources: &Sources) -> String {
    format!("{}+anysched{}", sources.version, env!("CARGO_PKG_VERSION"))
}

/// Where files are made, by programs of `root`, to which it is `/work`.
struct Work<'a> {
    root: &'a Root,
    directory: &'a Path,
}

impl Work<'_> {
    /// Writes a file in a directory that may be missing.
    fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, BootError> {
        let path = self.directory.join(path);
        let fault = |error| BootError::files(path.display(), error);
        fs::create_dir_all(path.parent().unwrap_or(self.directory)).map_err(fault)?;
        fs::write(&path, contents).map_err(fault)?;
        let file = File::options().write(true).open(&path).map_err(fault)?;
        file.set_modified(UNIX_EPOCH + Duration::from_secs(MADE)).map_err(fault)?;
        Ok(path)
    }

    /// Has a shell run a line in the directory.
    fn shell(&self, line: &str) -> Result<(), BootError> {
        let mounts = [(self.directory, "/work")];
        let mut shell = Tools::Root(self.root).tool("bash", &mounts)?;
        shell.command.args(["-e", "-c", &format!("cd /work\n{line}")]).env("TZ", "UTC0");
        run(shell.command, line).map(drop)
    }

    /// What Xen's sources get.
    fn patch(&self, built: &ForMachines) -> Result<PathBuf, BootError> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| BootError::files(path.display(), error))
        };
        for (file, lines) in LINES {
            let path = built.source.join(file);
            let changed = read(&path)?;
            let before = changed.strip_suffix(lines).ok_or_else(|| {
                BootError::files(path.display(), io::Error::other("has lost what was added to it"))
            })?;
            self.write(&format!("a/{file}"), before)?;
            self.write(&format!("b/{file}"), &changed)?;
        }
        for (_, file) in ADDED {
            self.write(&format!("b/{file}"), read(&built.source.join(file))?)?;
        }
        // It ends with 1 where files differ.
        self.shell(&format!("diff -ruN a b >{PATCH} || [ $? -eq 1 ]"))?;
        Ok(self.directory.join(PATCH))
    }

    fn package(
        &self,
        built: &ForMachines,
        sources: &Sources,
        patch: &Path,
    ) -> Result<PathBuf, BootError> {
        let read =
            |path: &Path| fs::read(path).map_err(|error| BootError::files(path.display(), error));
        let documents = format!("tree/usr/share/doc/{PACKAGE}");
        self.write(
            &format!("tree/boot/xen-{}-anysched", sources.version),
            read(&built.hypervisor)?,
        )?;
        self.write(&format!("{documents}/{PATCH}"), read(patch)?)?;
        self.write(&format!("{documents}/copyright"), copyright(&sources.version))?;
        self.shell("gzip -9n tree/boot/xen-*")?;
        self.write("debian-binary", "2.0\n")?;
        self.write("control/control", control(&version(sources)))?;
        for script in ["control/postinst", "control/postrm"] {
            let path = self.write(script, AFTERWARDS)?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))
                .map_err(|error| BootError::files(path.display(), error))?;
        }
        for (directory, tarball) in [("control", "control"), ("tree", "data")] {
            self.shell(&format!(
                "tar --create --xz --file {tarball}.tar.xz --sort=name --mtime=@{MADE} --owner=0 \
                 --group=0 --numeric-owner --mode=u=rwX,go=rX --directory {directory} ."
            ))?;
        }
        self.shell("ar rcD package.deb debian-binary control.tar.xz data.tar.xz")?;
        Ok(self.directory.join("package.deb"))
    }
}

fn control(version: &str) -> String {
    format!(
        "Package: {PACKAGE}\nVersion: {version}\nArchitecture: amd64\nMaintainer: anysched\n\
         Section: kernel\nPriority: optional\nSuggests: xen-utils-4.20\n\
         Description: Xen with a scheduler that runs policies of anysched\n \
         Boot it with sched=anysched anysched=POLICY[,NAME=VALUE]... anysched_as=credit\n \
         on its command line; without that it schedules as Xen does.\n"
    )
}

fn copyright(version: &str) -> String {
    format!(
        "Xen {version}: GPL-2.0, of the Xen Project; Debian's source package xen has its sources\n\
         and all notices. {PATCH}, here beside this file: GPL-2.0.\n\
         The policies that it is linked with: MIT or Apache-2.0, of anysched.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_debian::compare;
    use std::cmp::Ordering;

    fn sources(version: &str) -> Sources {
        Sources {
            suite: "trixie".into(),
            version: version.into(),
            tarball: PathBuf::new(),
            root: Root::new("/nonexistent"),
            fetched: 0,
        }
    }

    #[test]
    fn the_package_is_later_than_the_xen_in_it() {
        let sources = sources("4.20.3+127-gc42374a105");
        assert_eq!(compare(&version(&sources), &sources.version), Ordering::Greater);
        assert!(control("1").lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn what_is_there_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PATCH);
        fs::write(&path, "mine").unwrap();
        let error = package(&sources("4"), directory.path(), &mut |_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{}: is already there; name another folder with -o", path.display())
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
