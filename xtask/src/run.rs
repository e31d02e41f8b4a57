//! Runs commands and reports what failed.

use std::io::{BufRead, BufReader};
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

/// Announces a step, runs it and says how long it took, and how much of that CPUs worked for it,
/// which tells more where there is other work.
pub fn step(name: &str, run: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
    println!("== {name}");
    let (started, before) = (Instant::now(), cpu_seconds());
    run().map_err(|Failed(why)| {
        println!("== {name}: failed");
        Failed(format!("{name}: {why}"))
    })?;
    let used = before.zip(cpu_seconds()).map(|(before, after)| after - before);
    let used = used.map_or_else(String::new, |used| format!(", {used:.1} s of CPU"));
    println!("== {name}: passed in {:.1} s{used}", started.elapsed().as_secs_f64());
    Ok(())
}

/// Does the task `args` of this program in a process of its own; each line that it says begins with
/// `name`, so that it is told from what others say.
pub fn beside(name: &str, args: &[&str]) -> Result<(), Failed> {
    let shown = format!("cargo xtask {}", args.join(" "));
    let failed = |error: std::io::Error| Failed(format!("`{shown}` could not be started: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let (said, say) = std::io::pipe().map_err(failed)?;
    let mut command = command(&program.to_string_lossy(), args);
    command.stdin(Stdio::null()).stdout(say.try_clone().map_err(failed)?).stderr(say);
    let mut child = command.spawn().map_err(failed)?;
    // It holds ends of the pipe, too, and nothing would ever be the last.
    drop(command);
    for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
        println!("{name} | {}", String::from_utf8_lossy(&line));
    }
    match child.wait().map_err(failed)? {
        status if status.success() => Ok(()),
        status => Err(Failed(format!("`{shown}` ended with {status}; see the lines of {name}"))),
    }
}

/// The CPU time of all commands that have ended, in seconds; `None` if the kernel does not tell. Of
/// a step that is the time of all that ended meanwhile, other threads' too.
///
/// Source: proc_pid_stat(5), `cutime` and `cstime`, in units that Linux has 100 of in a second.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // What precedes is a name, which may have blanks and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let of_children = fields.split_whitespace().skip(13).take(2);
    let ticks: Vec<u64> = of_children.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    Some(ticks.iter().sum::<u64>() as f64 / 100.0)
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
    output_or(command, |_| false)
}

/// Runs a command and returns what it printed, also if it ends with a code that `is_fine`.
pub fn output_or(
    command: &mut Command,
    is_fine: impl FnMut(i32) -> bool,
) -> Result<String, Failed> {
    let shown = show(command);
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() || output.status.code().is_some_and(is_fine) => {
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
