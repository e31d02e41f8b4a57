//! What goes to the terminal and to files.

use anysched_core::Span;
use anysched_lab::output::{self as formats, Inputs};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a command failed, already in words for a person.
#[derive(Debug)]
pub enum Failure {
    /// A line, and perhaps a remedy after it.
    Line(String),
    /// An error that points into a file, as it is shown.
    Pointing(String),
    /// Interrupted; what had to be said has been said.
    Interrupted,
    /// Ended with this code, which says all.
    Exit(u8),
    /// Something does not hold that was asked for; what had to be said has been printed.
    Differs,
}

impl<T: Display> From<T> for Failure {
    fn from(line: T) -> Failure {
        Failure::Line(line.to_string())
    }
}

impl Failure {
    /// An error that points into an experiment file.
    pub fn pointing(error: anysched_lab::Error) -> Failure {
        let styled = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Failure::Pointing(error.to_snippet(styled))
    }

    /// Tells the user and gives the status to exit with.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Line(line) => eprintln!("anysched: {line}"),
            Failure::Pointing(shown) => eprint!("{shown}"),
            Failure::Interrupted => return ExitCode::from(130),
            Failure::Exit(code) => return ExitCode::from(code),
            Failure::Differs => {}
        }
        ExitCode::FAILURE
    }
}

/// Set by Ctrl-C.
static CANCEL: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C set the flag that is returned, at which runs end; a second one ends the program at
/// once.
pub fn cancel_on_interrupt() -> Result<&'static AtomicBool, Failure> {
    let handler = ctrlc::set_handler(|| {
        if CANCEL.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("anysched: stopping; once more to stop without results");
    });
    handler.map_err(|error| format!("Ctrl-C cannot be handled: {error}"))?;
    Ok(&CANCEL)
}

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of printing. That nobody reads it any more (`| head`) is no failure.
pub fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::from(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Width of the terminal, or what `COLUMNS` says, or 80.
pub fn columns() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.or_else(|| Some(usize::from(terminal_width()?))).unwrap_or(80)
}

fn terminal_width() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// Refuses output files that cannot be written, or that two outputs would have, before long runs
/// are made for them.
pub fn require_places<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    inputs: &Inputs,
) -> Result<(), Failure> {
    let mut seen: Vec<&Path> = Vec::new();
    for path in paths {
        formats::require_output(path, inputs)?;
        if seen.contains(&path.as_path()) {
            return Err(Failure::from(format!("{}: two outputs have this name", path.display())));
        }
        seen.push(path);
    }
    Ok(())
}

/// Writes a file, whole or not at all, and says so.
pub fn write_named(
    path: &Path,
    inputs: &Inputs,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<(), Failure> {
    formats::write_whole(path, inputs, write)?;
    say_written(path);
    Ok(())
}

/// Tells the name of a file that was written.
pub fn say_written(path: &Path) {
    eprintln!("anysched: wrote {}", path.display());
}

/// Refuses a folder for outputs that is there but is none, or that cannot be made.
pub fn require_folder(path: &Path) -> Result<(), Failure> {
    match path.ancestors().find(|ancestor| ancestor.exists()) {
        Some(there) if !there.is_dir() => {
            let (path, there) = (path.display(), there.display());
            Err(Failure::from(format!("{path} cannot be written: {there} is not a folder")))
        }
        _ => Ok(()),
    }
}

/// `path` with `suffix` at the end of its name, before the extension.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A time of so many ns with four digits.
pub fn short_time(ns: f64) -> String {
    if ns == f64::INFINITY {
        return "no limit".to_string();
    }
    let digits = libm::log10(f64::max(ns, 1.0)) as i32 + 1;
    let unit = libm::pow(10.0, f64::from((digits - 4).max(0)));
    Span((libm::round(ns / unit) * unit) as u64).to_string()
}
