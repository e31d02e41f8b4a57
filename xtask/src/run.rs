//! Runs commands and reports what failed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A task failed; the text says why and what to do.
#[derive(Debug)]
pub struct Failed(pub String);

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Announces a step, runs it and says how long it took.
pub fn step(name: &str, run: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
    println!("== {name}");
    let started = Instant::now();
    run().map_err(|Failed(why)| Failed(format!("{name}: {why}")))?;
    println!("== {name}: passed in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// A command run in the root folder.
pub fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// A cargo command run in the root folder, by the cargo that runs this. Incremental compilation is
/// off: it would take longer than it saves.
pub fn cargo_command(args: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut cargo = command(&cargo, args);
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo
}

/// Runs a cargo command.
pub fn cargo(args: &[&str]) -> Result<(), Failed> {
    run(&mut cargo_command(args))
}

/// Runs a command with inherited output.
pub fn run(command: &mut Command) -> Result<(), Failed> {
    let shown = show(command);
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failed(format!("`{shown}` ended with {status}"))),
        Err(error) => Err(Failed(format!("`{shown}` could not be started: {error}"))),
    }
}

/// Runs a command and returns what it printed.
pub fn output(command: &mut Command) -> Result<String, Failed> {
    let shown = show(command);
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(Failed(format!("`{shown}` ended with {}", output.status))),
        Err(error) => Err(Failed(format!("`{shown}` could not be started: {error}"))),
    }
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
