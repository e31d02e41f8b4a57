//! A step of a build: skipped when its result was made of the same inputs with the same settings.

use crate::BootError;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// Has `make` write the file that it is given, a new name for `result`, unless `result` is there
/// and was made of the same `inputs` with the same `settings`. Length and time of change tell
/// whether inputs are the same.
///
/// Errors: an input is missing, those of `make`, or the result cannot be put in its place.
pub fn step(
    result: &Path,
    settings: &str,
    inputs: &[PathBuf],
    make: impl FnOnce(&Path) -> Result<(), BootError>,
) -> Result<(), BootError> {
    let fault = |path: &Path, error| BootError::files(path.display(), error);
    let stamp = result.with_added_extension("stamp");
    let wanted = description(settings, inputs)?;
    if result.exists() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if let Some(directory) = result.parent() {
        fs::create_dir_all(directory).map_err(|error| fault(directory, error))?;
    }
    // A step that is interrupted leaves a result that nobody vouches for.
    let _ = fs::remove_file(&stamp);
    let new = result.with_added_extension("new");
    make(&new)?;
    fs::rename(&new, result).map_err(|error| fault(result, error))?;
    fs::write(&stamp, wanted).map_err(|error| fault(&stamp, error))
}

/// What a result is made of: settings, then a line for each input, with its length and time of
/// change.
///
/// Errors: an input is missing.
pub fn description(settings: &str, inputs: &[PathBuf]) -> Result<String, BootError> {
    let mut text = format!("{settings}\n");
    for input in inputs {
        let fault = |error| BootError::files(input.display(), error);
        let data = input.metadata().map_err(fault)?;
        let changed = data.modified().map_err(fault)?;
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let _ = writeln!(text, "{} {} {changed}", input.display(), data.len());
    }
    Ok(text)
}

/// Runs a command of a build and returns what it prints.
///
/// Errors: it cannot be started, or what it says if it fails.
pub fn run(mut command: Command, what: &str) -> Result<String, BootError> {
    let output = command.output().map_err(|error| BootError::files(what, error))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let said = format!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    Err(BootError::Build { said: format!("{what}:\n{}", said.trim()) })
}

/// The files in a directory, in order, whose names end with `ending`.
///
/// Errors: it cannot be read.
pub fn files(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, BootError> {
    let fault = |error| BootError::files(directory.display(), error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.is_file() && path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Copies a file unless the copy is the same: make goes by the time of change.
///
/// Errors: it cannot be read or written.
pub fn copy_changed(from: &Path, to: &Path) -> Result<(), BootError> {
    let fault = |path: &Path, error| BootError::files(path.display(), error);
    let contents = fs::read(from).map_err(|error| fault(from, error))?;
    if fs::read(to).is_ok_and(|found| found == contents) {
        return Ok(());
    }
    fs::write(to, contents).map_err(|error| fault(to, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_runs_again_only_when_something_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let (result, input) = (directory.path().join("deep/result"), directory.path().join("in"));
        fs::write(&input, "a").unwrap();
        let runs = Cell::new(0);
        let run = |settings: &str| {
            step(&result, settings, std::slice::from_ref(&input), |new| {
                runs.set(runs.get() + 1);
                fs::write(new, fs::read(&input).unwrap()).unwrap();
                Ok(())
            })
            .unwrap();
            runs.get()
        };
        assert_eq!(run("x"), 1);
        assert_eq!(run("x"), 1);
        assert_eq!(run("y"), 2, "other settings");
        fs::write(&input, "bb").unwrap();
        assert_eq!(run("y"), 3, "another input");
        assert_eq!(fs::read_to_string(&result).unwrap(), "bb");
        fs::remove_file(&result).unwrap();
        assert_eq!(run("y"), 4, "no result");
        assert_eq!(run("y"), 4);
    }

    #[test]
    fn a_step_that_fails_is_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let result = directory.path().join("result");
        let write = |new: &Path| {
            fs::write(new, "made").unwrap();
            Ok(())
        };
        step(&result, "x", &[], write).unwrap();
        let failed = |_: &Path| Err(BootError::Build { said: "no".into() });
        step(&result, "y", &[], failed).unwrap_err();
        // Back to the settings of the result that is there.
        step(&result, "x", &[], failed).unwrap_err();
        step(&result, "x", &[], write).unwrap();
        step(&result, "x", &[], failed).unwrap();
        let error = step(&result, "x", &["/nonesuch".into()], failed).unwrap_err().to_string();
        assert!(error.starts_with("/nonesuch: "), "{error}");
    }

    #[test]
    fn what_a_command_says_is_in_the_error() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = run(command, "the test").unwrap_err().to_string();
        assert_eq!(error, "the image could not be built:\nthe test:\nout\nerr");
    }
}
