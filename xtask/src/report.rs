//! The page of reports: built, and tried in a browser.
//!
//! The page that comes with the program is in the repository, so that whoever builds the program
//! needs neither Node nor its packages. That it is what its sources give is checked here.

use crate::docs;
use crate::run::{Failed, command, root, run};
use crate::setup;
use std::process::Command;

/// A command in the folder of the page's sources.
pub fn in_report(program: &str, args: &[&str]) -> Command {
    let mut command = command(program, args);
    command.current_dir(root().join("report"));
    command
}

/// Fetches the packages of the lock file. Their own programs are not run.
pub fn fetch() -> Result<(), Failed> {
    setup::ensure_report()?;
    run(&mut in_report("npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]))
}

/// Builds the page from its sources.
pub fn write() -> Result<(), Failed> {
    fetch()?;
    run(&mut in_report("node", &["build.mjs"]))
}

/// Makes the pictures of a report that the README shows. The program has been built.
pub fn write_pictures() -> Result<(), Failed> {
    fetch()?;
    run(&mut with_program(in_report("node", &["tests/picture.mjs"])))
}

/// `command`, told of the program, and where reports go.
fn with_program(mut command: Command) -> Command {
    command.env("ANYSCHED", docs::program_path()).env("REPORTS", docs::target().join("report"));
    command
}

/// Checks that the page is what its sources give, and tries reports of the program in a browser.
/// The program has been built.
pub fn check() -> Result<(), Failed> {
    fetch()?;
    run(&mut in_report("node", &["build.mjs", "--check"]))?;
    run(&mut with_program(in_report("npm", &["test", "--silent"])))
}
