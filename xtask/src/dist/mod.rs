//! Packages: a program that runs on any Linux of this architecture, as an archive and for Debian, a
//! wheel for Python, and a container with what hosts need.

mod container;
mod debian;
mod elf;
mod program;
mod roots;

use crate::hosts;
use crate::python;
use crate::run::{Failed, root, step};
use std::fs;
use std::path::{Path, PathBuf};

/// Where packages are made.
const FOLDER: &str = "target/package";

/// What there is when all is made.
struct Packages {
    program: PathBuf,
    debian: PathBuf,
    wheel: PathBuf,
}

/// Makes all packages.
pub fn dist() -> Result<(), Failed> {
    make().map(drop)
}

/// Makes all packages, installs each in a root that has nothing else, and uses it there.
pub fn check() -> Result<(), Failed> {
    let packages = make()?;
    step("the program alone", || roots::try_program(&packages.program))?;
    step("Debian's package", || roots::try_debian(&packages.debian))?;
    step("the wheel", || roots::try_wheel(&packages.wheel))?;
    step("the container", || container::check(&folder()))
}

fn folder() -> PathBuf {
    root().join(FOLDER)
}

fn make() -> Result<Packages, Failed> {
    hosts::require_toolchain()?;
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| about(&folder, &error))?;
    }
    step("build", || program::build(&folder))?;
    let program = folder.join("bin/anysched");
    step("needs no library", || elf::require_static(&program))?;
    step("runs elsewhere", || program::try_elsewhere(&program))?;
    let stage = program::stage(&folder, &program)?;
    let mut made = vec![program::archive(&folder, &stage)?];
    step("Debian's package", || debian::make(&folder).map(|debian| made.push(debian)))?;
    step("wheel", || python::release(&folder).map(|wheel| made.push(wheel)))?;
    container::write(&folder)?;
    for file in &made {
        let size = fs::metadata(file).map_err(|error| about(file, &error))?.len();
        println!("{} ({:.1} MB)", file.display(), size as f64 / 1e6);
    }
    println!("{}: {}", folder.join(container::FILE).display(), container::HOW);
    let [_, debian, wheel] = made.try_into().map_err(|_| Failed("not three packages".into()))?;
    Ok(Packages { program, debian, wheel })
}

/// The only file in `folder` whose name ends so.
fn only(folder: &Path, ending: &str) -> Result<PathBuf, Failed> {
    let entries = fs::read_dir(folder).map_err(|error| about(folder, &error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => Err(Failed(format!(
            "{}: {} files end with {ending}, where one was to be made",
            folder.display(),
            found.len()
        ))),
    }
}

/// What packages are tried with: the quickstart, for a second.
const QUICKSTART: [&str; 4] = ["run", "quickstart", "--seeds", "1"];

/// Refuses what is no table of it.
fn require_table(table: &str) -> Result<(), Failed> {
    match table.lines().any(|line| line.starts_with("eevdf ")) {
        true => Ok(()),
        false => Err(Failed(format!("the quickstart has no line for eevdf:\n{table}"))),
    }
}

fn about(path: &Path, error: &std::io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}
