//! The program as one file that runs on any Linux of this architecture, packed with its manual.

use crate::hosts;
use crate::run::{Failed, cargo, command, output, root, run, step};
use std::fs;
use std::path::{Path, PathBuf};

/// Whose C library is linked in.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Below `target`: where it is installed, and where it is packed.
const FOLDER: &str = "target/package";

/// Builds, tries and packs the program.
pub fn dist() -> Result<(), Failed> {
    hosts::require_toolchain()?;
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| about(&folder, &error))?;
    }
    // By the way that users install it, so that this is tried, too.
    step("build", || {
        cargo(&[
            "install",
            "--quiet",
            "--locked",
            "--path",
            "crates/cli",
            "--features",
            "parquet",
            "--profile",
            "dist",
            "--target",
            TARGET,
            "--target-dir",
            "target",
            "--no-track",
            "--root",
            FOLDER,
        ])
    })?;
    let program = folder.join("bin/anysched");
    step("needs no library", || require_static(&program))?;
    step("runs elsewhere", || try_elsewhere(&program))?;
    let packed = pack(&folder, &program)?;
    let size = fs::metadata(&packed).map_err(|error| about(&packed, &error))?.len();
    println!("{} ({:.1} MB)", packed.display(), size as f64 / 1e6);
    Ok(())
}

/// Refuses a program that asks for an interpreter, which loads libraries.
fn require_static(program: &Path) -> Result<(), Failed> {
    let bytes = fs::read(program).map_err(|error| about(program, &error))?;
    match interpreter(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(Failed(format!("{} needs libraries of the system", program.display()))),
        None => Err(Failed(format!("{} is no program for 64 bits", program.display()))),
    }
}

/// Whether an ELF file of 64 bits has a program header of the type `PT_INTERP`; `None`: it is no
/// such file.
///
/// Source: elf(5).
fn interpreter(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, size: usize| -> Option<u64> {
        let mut whole = [0; 8];
        whole[..size].copy_from_slice(bytes.get(at..at + size)?);
        Some(u64::from_le_bytes(whole))
    };
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut is_there = false;
    for header in 0..count {
        let at = usize::try_from(start + header * size).ok()?;
        is_there |= number(at, 4)? == u64::from(INTERPRETER);
    }
    Some(is_there)
}

/// Runs the quickstart in an empty folder, with nothing of the repository or of the environment.
fn try_elsewhere(program: &Path) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("anysched-dist-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| about(&folder, &error))?;
    let args = ["run", "quickstart", "--seeds", "1"];
    let mut quickstart = command(&program.to_string_lossy(), &args);
    let table = output(quickstart.current_dir(&folder).env_clear());
    let left = fs::remove_dir(&folder).map_err(|error| about(&folder, &error));
    let table = table?;
    left?;
    match table.lines().any(|line| line.starts_with("eevdf ")) {
        true => Ok(()),
        false => Err(Failed(format!("the quickstart has no line for eevdf:\n{table}"))),
    }
}

/// The program with licences, its manual and completions as an archive. Packed again, it is the
/// same bytes.
fn pack(folder: &Path, program: &Path) -> Result<PathBuf, Failed> {
    let said = output(&mut command(&program.to_string_lossy(), &["--version"]))?;
    let version = said.trim().replace(' ', "-");
    let name = format!("{version}-{TARGET}");
    let contents = folder.join(&name);
    let man = contents.join("share/man/man1");
    fs::create_dir_all(&man).map_err(|error| about(&man, &error))?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(file), &contents.join(file))?;
    }
    copy(program, &contents.join("anysched"))?;
    let install = ["man", "--install", "--dir", &man.to_string_lossy()];
    run(&mut command(&program.to_string_lossy(), &install))?;
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/anysched"),
        ("zsh", "share/zsh/site-functions/_anysched"),
        ("fish", "share/fish/vendor_completions.d/anysched.fish"),
    ] {
        let script = output(&mut command(&program.to_string_lossy(), &["completions", shell]))?;
        let path = contents.join(file);
        let parent = path.parent().unwrap_or(&path);
        fs::create_dir_all(parent).map_err(|error| about(parent, &error))?;
        fs::write(&path, script).map_err(|error| about(&path, &error))?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    run(&mut command(
        "tar",
        &[
            "--create",
            "--gzip",
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--file",
            &archive.to_string_lossy(),
            "--directory",
            &folder.to_string_lossy(),
            &name,
        ],
    ))?;
    Ok(archive)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    fs::copy(from, to).map(drop).map_err(|error| about(from, &error))
}

fn about(path: &Path, error: &std::io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these types of program headers.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * types.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = types.len() as u8;
        for (number, kind) in types.iter().enumerate() {
            let at = 64 + 56 * number;
            bytes[at..at + 4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn programs_that_need_libraries_are_found() {
        assert_eq!(interpreter(&elf(&[1, 2])), Some(false));
        assert_eq!(interpreter(&elf(&[1, 3, 2])), Some(true));
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(interpreter(&elf(&[1, 1])[..80]), None, "cut off");
        // This test needs libraries, or none; either way it is a program.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(interpreter(&own).is_some());
    }
}
