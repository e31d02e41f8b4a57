//! The guest's first file system, and archives with programs for it.

use super::Build;
use crate::{Archive, BootError, Root, Suite, packaged};
use anysched_debian::step::{run, step};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

/// Directories in which the guest mounts and writes.
const DIRECTORIES: [&str; 7] = ["/proc", "/sys", "/dev", "/tmp", "/run", "/etc/anysched", "/root"];

const BUSYBOX: &str = "/usr/bin/busybox";
const BPFTOOL: &str = "/usr/sbin/bpftool";

/// What the C library loads when a thread ends itself or is cancelled; no program names it.
const UNWINDER: &str = "/lib/x86_64-linux-gnu/libgcc_s.so.1";

/// Finds the libraries that a program needs.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

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

/// The libraries of a program and their loader, inside the root.
fn libraries(root: &Root, program: &str) -> Result<BTreeSet<String>, BootError> {
    let mut list = root.command(LOADER, &[])?;
    list.args(["--list", program]);
    listed(&run(list, program)?, program)
}

/// The files in what the loader lists: `NAME => FILE (ADDRESS)`, or `FILE (ADDRESS)` of the loader
/// itself. What the kernel provides has no file.
fn listed(lines: &str, program: &str) -> Result<BTreeSet<String>, BootError> {
    let mut files = BTreeSet::new();
    for line in lines.lines().map(str::trim) {
        let (name, file) = line.split_once(" => ").unwrap_or(("", line));
        if file == "not found" {
            let said = format!("{program} needs {name}, which is in none of its packages");
            return Err(BootError::Build { said });
        }
        let file = file.rsplit_once(" (").map_or(file, |(file, _)| file);
        if file.starts_with('/') {
            files.insert(file.to_string());
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>, BootError> {
    fs::read(path).map_err(|error| BootError::files(path.display(), error))
}

fn write(path: &Path, archive: &Archive) -> Result<(), BootError> {
    fs::write(path, archive.bytes()?).map_err(|error| BootError::files(path.display(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the loader says of bpftool in forky, and of a program without a library.
    const BPFTOOL_LISTED: &str = "\
\tlinux-vdso.so.1 (0x00007f0b37ae6000)
\tlibelf.so.1 => /lib/x86_64-linux-gnu/libelf.so.1 (0x00007f0b37a0f000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0b3700a000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f0b37ae8000)
";

    #[test]
    fn libraries_and_the_loader_are_files() {
        let files: Vec<String> = listed(BPFTOOL_LISTED, BPFTOOL).unwrap().into_iter().collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/x86_64-linux-gnu/libelf.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = listed("\tlibblas.so.3 => not found\n", "/usr/bin/x").unwrap_err().to_string();
        assert!(error.ends_with("/usr/bin/x needs libblas.so.3, which is in none of its packages"));
    }
}
