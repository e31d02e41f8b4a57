//! Whether an image is newer than all it is made of. Cargo would know, but images of several
//! configurations share programs that are compiled with the configuration: in turns, it builds each
//! of them anew every time.

use crate::BootError;
use anysched_debian::step::{description, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Has `cargo` build `image` of a workspace, with a configuration, unless that is there, the
/// command would be the same, and nothing has changed that it was made of.
///
/// Errors: something is not installed, or the compiler's.
pub(crate) fn unless_current(
    image: &Path,
    workspace: &Path,
    config: &Path,
    mut cargo: Command,
) -> Result<(), BootError> {
    let mut version = Command::new("rustc");
    version.arg("--version").current_dir(workspace);
    let version = run(version, "rustc")?.trim().to_string();
    let settings = format!("{cargo:?}\n{version}");
    let stamp = image.with_added_extension("stamp");
    let made_of = || -> Option<(Vec<PathBuf>, String)> {
        let inputs = inputs(image, workspace, config)?;
        let description = description(&settings, &inputs).ok()?;
        Some((inputs, description))
    };
    if image.is_file()
        && let Some((_, description)) = made_of()
        && fs::read_to_string(&stamp).is_ok_and(|found| found == description)
    {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    let begun = SystemTime::now();
    let built = cargo.output().map_err(|error| BootError::files("cargo", error))?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        return Err(BootError::Build { said: format!("{}{}", said.trim(), remedy(&version)) });
    }
    // What changes while it is built may be in the image or not.
    let is_older = |input: &PathBuf| {
        let changed = input.metadata().and_then(|data| data.modified());
        changed.is_ok_and(|changed| changed < begun)
    };
    match made_of() {
        Some((inputs, description)) if inputs.iter().all(is_older) => {
            fs::write(&stamp, description).map_err(|error| BootError::files(stamp.display(), error))
        }
        _ => Ok(()),
    }
}

/// The Rust that images are known to build with: its minor version, and all of it. ArceOS uses
/// unstable parts of it, which change.
const KNOWN: (u32, &str) = (95, "1.95.0");

/// What to do if a compiler with this version has failed, if that is newer than the known one.
fn remedy(version: &str) -> String {
    let mut numbers = version.split([' ', '.']).filter_map(|part| part.parse().ok());
    let (minor, known) = KNOWN;
    if numbers.nth(1).is_none_or(|found: u32| found <= minor) {
        return String::new();
    }
    format!(
        "\nArceOS is known to build with Rust {known}, and this is {version}: `rustup toolchain \
         install {known} --profile minimal --component rust-src --target x86_64-unknown-none`, and \
         set RUSTUP_TOOLCHAIN={known}"
    )
}

/// What an image was made of, besides packages of registries, of which the lock file says all: the
/// files that cargo has noted, and the manifests of their packages. `None` if it was not made.
fn inputs(image: &Path, workspace: &Path, config: &Path) -> Option<Vec<PathBuf>> {
    let noted = fs::read_to_string(image.with_added_extension("d")).ok()?;
    let (_, noted) = noted.split_once(": ")?;
    let mut inputs: BTreeSet<PathBuf> =
        ["Cargo.toml", "Cargo.lock"].map(|name| workspace.join(name)).into();
    inputs.insert(config.to_path_buf());
    for source in in_rule(noted) {
        let manifests = source.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
        inputs.extend(manifests.into_iter().find(|manifest| manifest.is_file()));
        inputs.insert(source);
    }
    Some(inputs.into_iter().collect())
}

/// The files of a rule for make, where a blank in a name has a backslash before it.
fn in_rule(noted: &str) -> Vec<PathBuf> {
    const BLANK: &str = "\\ ";
    let kept = noted.replace(BLANK, "\0");
    kept.split_whitespace().map(|name| name.replace('\0', " ").into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_rule_may_have_blanks() {
        let found = in_rule("/a/b.rs /a/two\\ words.rs\n");
        assert_eq!(found, ["/a/b.rs", "/a/two words.rs"].map(PathBuf::from));
    }

    #[test]
    fn a_newer_compiler_that_fails_is_named() {
        for fine in ["rustc 1.95.0 (59807616e 2026-04-14)", "rustc 1.94.1", "other"] {
            assert_eq!(remedy(fine), "");
        }
        let said = remedy("rustc 1.99.1 (0123456 2026-11-12)");
        assert!(said.contains("Rust 1.95.0, and this is rustc 1.99.1 (0123456"), "{said}");
        assert!(remedy("rustc 1.97.0-nightly (e50aa6fba)").contains("RUSTUP_TOOLCHAIN=1.95.0"));
    }

    /// A command that notes what it made the image of, and counts how often.
    #[test]
    fn an_image_is_made_again_only_when_something_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
        fs::create_dir(path("src")).unwrap();
        for name in ["Cargo.toml", "Cargo.lock", "config", "src/lib.rs", "src/new.rs"] {
            write(name, "");
        }
        let make = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(folder.path());
            unless_current(&path("image"), folder.path(), &path("config"), command).unwrap();
            fs::read_to_string(path("made")).unwrap().lines().count()
        };
        let script = "sleep 0.01; echo >> made; echo image: $PWD/src/lib.rs > image.d; : > image";
        let other = script.replace("lib.rs", "new.rs");
        assert_eq!([make(script), make(script)], [1, 1]);
        assert_eq!([make(&other), make(&other)], [2, 2], "another command");
        assert_eq!([make(script), make(script)], [3, 3]);
        for (number, name) in (4..).zip(["Cargo.toml", "Cargo.lock", "config", "src/lib.rs"]) {
            write(name, "other");
            assert_eq!([make(script), make(script)], [number; 2], "{name}");
        }
        write("src/new.rs", "not in it any more");
        assert_eq!(make(script), 7);
        fs::remove_file(path("image")).unwrap();
        assert_eq!([make(script), make(script)], [8, 8]);
        let changing = format!("{script}; echo >> src/lib.rs");
        assert_eq!([make(&changing), make(&changing)], [9, 10], "changed meanwhile");
        fs::remove_file(path("src/lib.rs")).unwrap();
        assert_eq!(make(script), 11);
    }
}
