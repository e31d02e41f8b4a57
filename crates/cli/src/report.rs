//! `anysched report`, and the page of `anysched run --report`.

use crate::args::{ReportArgs, RunArgs, Selection};
use crate::output::{self, Failure};
use anysched_host::Host;
use anysched_lab::output::Inputs;
use anysched_lab::output::report::{Origin, Told, report as page};
use anysched_lab::{Experiment, Plan, Results};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes results of earlier runs as a page.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let mut files = Vec::new();
    for path in &args.results {
        match path.is_dir() {
            true => files.extend(results_in(path)?),
            false => files.push(path.clone()),
        }
    }
    let inputs = Inputs::of(&files);
    output::require_places([&args.output], &inputs)?;
    let mut told = Vec::new();
    for file in &files {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        told.push(Told::of_json(&text).map_err(|why| format!("{name}: {why}"))?);
    }
    output::write_named(&args.output, &inputs, |out| out.write_all(&page(&told)))
}

/// The results in a folder.
fn results_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| format!("{}: cannot be read: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    match files.is_empty() {
        true => Err(format!(
            "{}: there are no results: no file ends in .json; `anysched run FILE.toml --out DIR` \
             writes them",
            folder.display()
        )
        .into()),
        false => Ok(files),
    }
}

/// Writes the page of what `run` has run.
pub fn of_run(
    path: &Path,
    inputs: &Inputs,
    args: &RunArgs,
    experiment: &Experiment,
    (plan, host, results): (&Plan, &dyn Host, &Results),
) -> Result<(), Failure> {
    let origin = Origin {
        file: args.selection.file.display().to_string(),
        text: experiment.text().to_string(),
        command: command(std::env::args().skip(1)),
        changes: changes(&args.selection),
    };
    let told = Told::of_run(results, plan, host, &origin, args.files.report_events)?;
    output::write_named(path, inputs, |out| out.write_all(&page(&[told])))
}

/// The command line as it can be typed again.
fn command(args: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = args.map(|argument| quoted(&argument)).collect();
    format!("anysched {}", quoted.join(" "))
}

/// What of the command line changes the experiment, but for the policies, which are chosen anew.
fn changes(selection: &Selection) -> String {
    let mut changes = String::new();
    for (option, values) in [("--set", &selection.set), ("--sweep", &selection.sweep)] {
        for value in values {
            changes += &format!(" {option} {}", quoted(value));
        }
    }
    changes
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.to_string(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let args = ["run", "a b.toml", "--set", "service=exp(1ms)", "it's", ""];
        let typed = command(args.into_iter().map(String::from));
        assert_eq!(typed, r"anysched run 'a b.toml' --set 'service=exp(1ms)' 'it'\''s' ''");
    }
}
