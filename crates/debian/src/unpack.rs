//! Packages unpacked without being installed: their scripts do not run, and any user may do it.

use crate::BootError;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What neither builds nor guests read.
const LEFT_OUT: [&str; 6] = ["doc", "info", "lintian", "locale", "man", "zoneinfo"];

/// Directories that Debian has merged into `/usr`; packages may still name them.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// Where programs get directories of this computer mounted: who runs them may not be who unpacked.
const MOUNT_POINTS: [&str; 6] = ["dev", "out", "policies", "proc", "tmp", "work"];

/// Files over which devices are mounted; any user can make those.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// Unpacks packages into `root`, a few at a time.
///
/// Errors: a package is broken, or something cannot be written.
pub fn unpack(packages: &[PathBuf], root: &Path) -> Result<(), BootError> {
    let fault = |error| BootError::files(root.display(), error);
    for name in MERGED {
        fs::create_dir_all(root.join("usr").join(name)).map_err(fault)?;
        link(&format!("usr/{name}"), &root.join(name))?;
    }
    for name in MOUNT_POINTS {
        fs::create_dir_all(root.join(name)).map_err(fault)?;
    }
    for name in DEVICES {
        fs::write(root.join("dev").join(name), "").map_err(fault)?;
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(package) = packages.get(next.fetch_add(1, Ordering::Relaxed)) {
            unpack_one(package, root)?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        started.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Adds packages to the file `installed`, as dpkg notes those that it has installed.
///
/// Errors: a package cannot be read, or the file cannot be written.
pub fn note(packages: &[PathBuf], installed: &Path) -> Result<(), BootError> {
    let mut text = fs::read_to_string(installed).unwrap_or_default();
    for package in packages {
        let fields = Command::new("dpkg-deb").arg("--field").arg(package).output();
        let fields = fields.map_err(|error| BootError::files("dpkg-deb", error))?;
        if !fields.status.success() {
            let said = String::from_utf8_lossy(&fields.stderr);
            return Err(BootError::files(package.display(), said.trim()));
        }
        let fields = String::from_utf8_lossy(&fields.stdout);
        let name = fields.lines().next().unwrap_or_default();
        // What it replaces goes: of several entries of a package, none counts more.
        let others =
            text.split_inclusive("\n\n").filter(|entry| entry.lines().next() != Some(name));
        text = others.collect();
        text += &format!("{}\nStatus: install ok installed\n\n", fields.trim_end());
    }
    fs::write(installed, text).map_err(|error| BootError::files(installed.display(), error))
}

fn unpack_one(package: &Path, root: &Path) -> Result<(), BootError> {
    let fault = |program: &str, error| BootError::files(program, error);
    let mut reading = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fault("dpkg-deb", error))?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--no-same-owner", "--keep-directory-symlink", "--directory"]).arg(root);
    tar.args(LEFT_OUT.map(|name| format!("--exclude=./usr/share/{name}/*")));
    if let Some(files) = reading.stdout.take() {
        tar.stdin(files);
    }
    let written = tar.output().map_err(|error| fault("tar", error));
    // It ends when nobody reads what it writes, too.
    drop(tar);
    let read = reading.wait_with_output().map_err(|error| fault("dpkg-deb", error))?;
    let written = written?;
    for output in [&read, &written] {
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(BootError::files(package.display(), said.trim()));
        }
    }
    Ok(())
}

/// Links that scripts of packages would have made, where they are missing.
///
/// Errors: they cannot be made, or what they point to is not there.
pub fn link_alternatives(root: &Path) -> Result<(), BootError> {
    let programs = root.join("usr/bin");
    let gcc = newest_gcc(&programs)?;
    for (name, target) in [("awk", "gawk"), ("sh", "bash"), ("gcc", gcc.as_str())] {
        if !programs.join(target).exists() {
            return Err(BootError::files(programs.join(target).display(), "not in any package"));
        }
        if !programs.join(name).exists() {
            link(target, &programs.join(name))?;
        }
    }
    Ok(())
}

/// Headers bring the compiler that their kernel was built with, under its full name.
fn newest_gcc(programs: &Path) -> Result<String, BootError> {
    let fault = |error| BootError::files(programs.display(), error);
    let mut newest = None;
    for entry in fs::read_dir(programs).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name().to_string_lossy().into_owned();
        let version = name.strip_prefix("x86_64-linux-gnu-gcc-");
        let version: Option<u32> = version.and_then(|version| version.parse().ok());
        newest = newest.max(version.map(|version| (version, name)));
    }
    let missing = || BootError::files(programs.display(), "no x86_64-linux-gnu-gcc-VERSION");
    newest.map(|(_, name)| name).ok_or_else(missing)
}

fn link(target: &str, path: &Path) -> Result<(), BootError> {
    #[cfg(unix)]
    match std::os::unix::fs::symlink(target, path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(BootError::files(path.display(), error));
        }
        _ => {}
    }
    #[cfg(not(unix))]
    let _ = (target, path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_compiler_is_that_with_the_highest_number() {
        let directory = tempfile::tempdir().unwrap();
        let add = |name: &str| fs::write(directory.path().join(name), "").unwrap();
        let error = newest_gcc(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with("no x86_64-linux-gnu-gcc-VERSION"), "{error}");
        for name in ["9", "16", "14", "ar-17"] {
            add(&format!("x86_64-linux-gnu-gcc-{name}"));
        }
        assert_eq!(newest_gcc(directory.path()).unwrap(), "x86_64-linux-gnu-gcc-16");
    }

    #[test]
    fn a_broken_package_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("broken.deb");
        fs::write(&package, "not a package").unwrap();
        // Where dpkg-deb is not installed, that is the error.
        let error = unpack(&[package], &directory.path().join("root")).unwrap_err().to_string();
        assert!(error.contains("broken.deb") || error.contains("dpkg-deb"), "{error}");
    }

    #[test]
    fn what_alternatives_point_to_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("usr/bin");
        fs::create_dir_all(&programs).unwrap();
        for name in ["bash", "x86_64-linux-gnu-gcc-14"] {
            fs::write(programs.join(name), "").unwrap();
        }
        let error = link_alternatives(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with("usr/bin/gawk: not in any package"), "{error}");
        fs::write(programs.join("gawk"), "").unwrap();
        link_alternatives(directory.path()).unwrap();
        assert!(programs.join("awk").exists() && programs.join("gcc").exists());
    }
}
