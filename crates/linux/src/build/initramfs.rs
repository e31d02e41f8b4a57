//! The guest's first file system, and archives with programs for it.

use super::Build;
use crate::{Archive, BootError, Root, Suite, packaged};
use anysched_debian::libraries;
use anysched_debian::step::{run, step};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

/// Directories in which the guest mounts and writes.
const DIRECTORIES: [&str; 7] = ["/proc", "/sys", "/dev", "/tmp", "/run", "/etc/anysched", "/root"];

const BUSYBOX: &str = "/usr/bin/busybox";
const BPFTOOL: &str = "/usr/sbin/bpftool";

/// What the C library loads when a thread ends itself or is cancelled; no program names it.
const UNWINDER: &str = "/lib/x86_64-linux-gnu/libgcc_s.so.1";

/// The file system that every boot has.
pub(super) fn base(build: &Build<'_>, suite: &Suite, guest: &Path) -> Result<PathBuf, BootError> {
    let inputs = [suite.record(), guest.to_path_buf()];
    let result = build.of_kernel("initramfs").join("base.cpio");
    step(&result, BUSYBOX, &inputs, |new| {
        let mut archive = Archive::default();
        archive.add_program("/init", read(guest)?);
        add_busybox(&mut archive, &suite.root)?;
        for directory in DIRECTORIES {
            archive.add_directory(directory);
        }
        write(new, &archive)
    })?;
    Ok(result)
}

/// An archive with what policies come into the kernel by, and the agent.
pub(super) fn loaders(
    build: &Build<'_>,
    suite: &Suite,
    agent: &Path,
    bpf: &[PathBuf],
) -> Result<PathBuf, BootError> {
    let inputs = [&[suite.record(), agent.to_path_buf()], bpf].concat();
    let result = build.of_kernel("initramfs").join("loaders.cpio");
    step(&result, BPFTOOL, &inputs, |new| {
        let root = &suite.root;
        let mut archive = Archive::default();
        archive.add_program("/usr/sbin/anysched-agent", read(agent)?);
        for file in libraries(root, BPFTOOL)?.iter().map(String::as_str).chain([BPFTOOL]) {
            archive.add_program(file, read(&root.resolve(file)?)?);
        }
        for file in bpf {
            add_part(&mut archive, file)?;
        }
        write(new, &archive)
    })?;
    Ok(result)
}

/// An archive with the module.
pub(super) fn module(build: &Build<'_>, module: &PathBuf) -> Result<PathBuf, BootError> {
    let name = if build.checked { "checked.cpio" } else { "module.cpio" };
    let result = build.of_kernel("initramfs").join(name);
    step(&result, "", slice::from_ref(module), |new| {
        let mut archive = Archive::default();
        add_part(&mut archive, module)?;
        write(new, &archive)
    })?;
    Ok(result)
}

/// A file of the host, where the guest looks for it.
fn add_part(archive: &mut Archive, file: &Path) -> Result<(), BootError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    archive.add_file(&format!("/lib/anysched/{name}"), read(file)?);
    Ok(())
}

/// An archive with a program of the suite and its libraries.
pub(super) fn program(
    build: &Build<'_>,
    suite: &Suite,
    name: &str,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, BootError> {
    let path = format!("/usr/bin/{name}");
    let mut record = suite.record();
    if let (false, Some(package)) = (suite.has(&path), packaged::package(name)) {
        record = suite.add(package, say)?;
    }
    if !suite.has(&path) {
        return Err(missing(suite, name, &path));
    }
    let root = &suite.root;
    let result = build.of_kernel("initramfs").join(format!("usr-bin-{name}.cpio"));
    step(&result, UNWINDER, &[record], |new| {
        let mut needed = libraries(root, &path)?;
        if suite.has(UNWINDER) {
            needed.insert(UNWINDER.into());
        }
        let mut archive = Archive::default();
        for file in needed.iter().chain([&path]) {
            archive.add_program(file, read(&root.resolve(file)?)?);
        }
        write(new, &archive)
    })?;
    Ok(result)
}

/// That a program was looked for, and is not there.
fn missing(suite: &Suite, name: &str, path: &str) -> BootError {
    let from = packaged::package(name).map(|package| format!("'s package {package}"));
    BootError::Missing {
        what: format!("Debian {}{} has no {path}", suite.name, from.unwrap_or_default()),
        remedy: "take another program: those of the packages that `anysched hosts` names are \
                 fetched, others have to be in packages that build"
            .into(),
    }
}

/// BusyBox under all names that it has a command for.
fn add_busybox(archive: &mut Archive, root: &Root) -> Result<(), BootError> {
    archive.add_program("/bin/busybox", read(&root.resolve(BUSYBOX)?)?);
    let mut list = root.command(BUSYBOX, &[])?;
    list.arg("--list");
    for command in run(list, "busybox")?.lines().filter(|name| *name != "busybox") {
        archive.add_link(&format!("/bin/{command}"), "busybox");
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, BootError> {
    fs::read(path).map_err(|error| BootError::files(path.display(), error))
}

fn write(path: &Path, archive: &Archive) -> Result<(), BootError> {
    fs::write(path, archive.bytes()?).map_err(|error| BootError::files(path.display(), error))
}
