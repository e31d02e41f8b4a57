//! Packages in roots that have nothing else: a folder with the program alone, and Debian at its
//! smallest.

use super::{QUICKSTART, about, require_table};
use crate::python;
use crate::run::{Failed, command, output, run};
use std::fs;
use std::path::Path;

/// The release of Debian in roots; the oldest that has what the wheel needs.
const SUITE: &str = "bookworm";

/// A root with the program and an empty `tmp`: not even a C library.
pub(super) fn try_program(program: &Path) -> Result<(), Failed> {
    let clean = tempfile::tempdir().map_err(|error| about(Path::new("/tmp"), &error))?;
    let there = clean.path().join("anysched");
    fs::create_dir(clean.path().join("tmp")).map_err(|error| about(clean.path(), &error))?;
    fs::copy(program, &there).map_err(|error| about(program, &error))?;
    require_table(&inside(clean.path(), "/anysched", &QUICKSTART)?)
}

/// Debian, where the package is installed by apt with what it depends on.
pub(super) fn try_debian(package: &Path) -> Result<(), Failed> {
    let clean = debian(&[])?;
    let there = clean.path().join("anysched.deb");
    fs::copy(package, &there).map_err(|error| about(package, &error))?;
    let install = ["install", "-y", "-qq", "--no-install-recommends", "/anysched.deb"];
    inside(clean.path(), "apt-get", &install)?;
    require_table(&inside(clean.path(), "anysched", &QUICKSTART)?)?;
    for file in [
        "usr/share/man/man1/anysched-run.1.gz",
        "usr/share/bash-completion/completions/anysched",
        "usr/share/doc/anysched/copyright",
    ] {
        fs::metadata(clean.path().join(file)).map_err(|error| about(Path::new(file), &error))?;
    }
    inside(clean.path(), "apt-get", &["purge", "-y", "-qq", "anysched"])?;
    match clean.path().join("usr/bin/anysched").exists() {
        false => Ok(()),
        true => Err(Failed("/usr/bin/anysched is there after its package was purged".into())),
    }
}

/// Debian with Python, where the wheel is installed by pip, without an index.
pub(super) fn try_wheel(wheel: &Path) -> Result<(), Failed> {
    let clean = debian(&["python3-venv"])?;
    let name = wheel.file_name().unwrap_or_default();
    fs::copy(wheel, clean.path().join(name)).map_err(|error| about(wheel, &error))?;
    inside(clean.path(), "python3", &["-m", "venv", "/env"])?;
    let wheel = format!("/{}", name.to_string_lossy());
    inside(clean.path(), "/env/bin/pip", &["install", "--quiet", "--no-index", &wheel])?;
    inside(clean.path(), "/env/bin/python", &["-c", python::BARE]).map(drop)
}

/// A root with apt, and these packages.
fn debian(packages: &[&str]) -> Result<tempfile::TempDir, Failed> {
    let clean = tempfile::tempdir().map_err(|error| about(Path::new("/tmp"), &error))?;
    let include = format!("--include={}", packages.join(","));
    let mut args = vec!["--quiet", "--variant=apt"];
    if !packages.is_empty() {
        args.push(&include);
    }
    let path = clean.path().to_string_lossy().into_owned();
    run(&mut command("mmdebstrap", &[&args[..], &[SUITE, &path]].concat()))?;
    Ok(clean)
}

/// What a program says that sees only the files below `root`, and has no network.
fn inside(root: &Path, program: &str, args: &[&str]) -> Result<String, Failed> {
    let root = root.to_string_lossy();
    let apart = ["--mount", "--net", "--pid", "--fork", "chroot", &root, program];
    let mut command = command("unshare", &[&apart, args].concat());
    command.env_clear().env("HOME", "/tmp").env("DEBIAN_FRONTEND", "noninteractive");
    // For `unshare` itself, too.
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    output(&mut command)
}
