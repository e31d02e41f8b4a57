//! The program as one file that needs no library, and its archive.

use super::{QUICKSTART, about, require_table};
use crate::run::{Failed, cargo, command, output, root, run};
use std::fs;
use std::path::{Path, PathBuf};

/// Whose C library is linked in.
pub(super) const TARGET: &str = "x86_64-unknown-linux-musl";

/// Below `target/package`: all that is installed, by its place below `/usr`.
pub(super) const STAGE: &str = "stage";

/// Builds it into `bin` of `folder`, by the way that users install it, so that this is tried, too.
pub(super) fn build(folder: &Path) -> Result<(), Failed> {
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
        &folder.to_string_lossy(),
    ])
}

/// Runs the quickstart in an empty folder, with nothing of the repository or of the environment.
pub(super) fn try_elsewhere(program: &Path) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("anysched-dist-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| about(&folder, &error))?;
    let mut quickstart = command(&program.to_string_lossy(), &QUICKSTART);
    let table = output(quickstart.current_dir(&folder).env_clear());
    let left = fs::remove_dir(&folder).map_err(|error| about(&folder, &error));
    let table = table?;
    left?;
    require_table(&table)
}

/// Puts the program, its manual, completions and licences where they go below `/usr`.
pub(super) fn stage(folder: &Path, program: &Path) -> Result<PathBuf, Failed> {
    let stage = folder.join(STAGE);
    let man = stage.join("share/man/man1");
    fs::create_dir_all(&man).map_err(|error| about(&man, &error))?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(file), &stage.join("share/doc/anysched").join(file))?;
    }
    copy(program, &stage.join("bin/anysched"))?;
    let program = program.to_string_lossy();
    run(&mut command(&program, &["man", "--install", "--dir", &man.to_string_lossy()]))?;
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/anysched"),
        ("zsh", "share/zsh/vendor-completions/_anysched"),
        ("fish", "share/fish/vendor_completions.d/anysched.fish"),
    ] {
        let script = output(&mut command(&program, &["completions", shell]))?;
        let path = stage.join(file);
        make_parent(&path)?;
        fs::write(&path, script).map_err(|error| about(&path, &error))?;
    }
    Ok(stage)
}

/// Packs what is staged. Packed again, it is the same bytes.
pub(super) fn archive(folder: &Path, stage: &Path) -> Result<PathBuf, Failed> {
    let program = stage.join("bin/anysched");
    let said = output(&mut command(&program.to_string_lossy(), &["--version"]))?;
    let name = format!("{}-{TARGET}", said.trim().replace(' ', "-"));
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
            "--transform",
            &format!("s/^{STAGE}/{name}/"),
            "--file",
            &archive.to_string_lossy(),
            "--directory",
            &folder.to_string_lossy(),
            STAGE,
        ],
    ))?;
    Ok(archive)
}

fn make_parent(path: &Path) -> Result<(), Failed> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|error| about(parent, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    make_parent(to)?;
    fs::copy(from, to).map(drop).map_err(|error| about(from, &error))
}
