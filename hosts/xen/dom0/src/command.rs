//! Programs that are run.

use std::process::Command;

/// Where Xen's programs are, besides the usual places.
const PATH: &str = "/usr/lib/xen/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a program, whose name and arguments are the words of `line`, and returns what it prints.
///
/// Errors: it is not there; it fails, with what it says.
pub fn run(line: &str) -> Result<String, String> {
    let mut words = line.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).env("PATH", PATH).output();
    let output = output.map_err(|error| format!("`{line}`: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!("`{line}` has failed ({}): {}", output.status, said.trim()))
}

/// Runs programs, one after the other.
///
/// Errors: as [`run`], of the first that fails.
pub fn run_all(lines: &[&str]) -> Result<(), String> {
    lines.iter().try_for_each(|line| run(line).map(drop))
}
