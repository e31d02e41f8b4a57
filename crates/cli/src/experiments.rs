//! `anysched experiments`: those that the program carries.

use crate::args::{ExperimentsArgs, ListFormat};
use crate::output::{self, Failure};
use anysched_lab::output::{Draft, Inputs, align};
use anysched_lab::{Experiment, builtin};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

pub fn experiments(args: &ExperimentsArgs) -> Result<(), Failure> {
    if let Some(folder) = &args.write {
        return write_all(folder);
    }
    match &args.name {
        Some(name) => print(name),
        None => list(args.format),
    }
}

fn print(name: &Path) -> Result<(), Failure> {
    let path = builtin::experiment(name).ok_or_else(|| unknown(name))?;
    let bytes = builtin::contents(&path).unwrap_or_default();
    output::print(&String::from_utf8_lossy(bytes))
}

fn unknown(name: &Path) -> String {
    format!(
        "no experiment \"{}\" comes with this program; `anysched experiments` lists them",
        name.display()
    )
}

fn list(format: ListFormat) -> Result<(), Failure> {
    let mut all = Vec::new();
    for name in builtin::experiments() {
        let experiment = Experiment::load(Path::new(&format!(
            "{}/{}/{name}.toml",
            builtin::ROOT,
            builtin::EXPERIMENTS
        )));
        let experiment = experiment.map_err(Failure::pointing)?;
        all.push((name, experiment.question().to_string()));
    }
    output::print(&match format {
        ListFormat::Table => {
            let rows: Vec<[String; 2]> =
                all.into_iter().map(|(name, question)| [name.to_string(), question]).collect();
            align::rows(&rows, 2)
        }
        ListFormat::Json => {
            let each: Vec<_> = all
                .iter()
                .map(|(name, question)| json!({ "name": name, "question": question }))
                .collect();
            format!("{:#}\n", json!(each))
        }
        ListFormat::Markdown => {
            let mut text = String::from("| experiment | question |\n|---|---|\n");
            for (name, question) in all {
                let _ = writeln!(text, "| `{name}` | {} |", question.replace('|', "\\|"));
            }
            text
        }
    })
}

/// Writes all files into a folder, as they stand in the repository.
fn write_all(folder: &Path) -> Result<(), Failure> {
    output::require_folder(folder)?;
    let all = builtin::files().map(|(name, bytes)| (folder.join(name), bytes));
    let all: Vec<_> = all.collect();
    if let Some((path, _)) = all.iter().find(|(path, _)| path.exists()) {
        let path = path.display();
        return Err(format!("{path} is there already; give another folder, or remove it").into());
    }
    for (path, bytes) in &all {
        std::fs::create_dir_all(path.parent().unwrap_or(folder))
            .map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        Draft::write(path, &Inputs::default(), |out| out.write_all(bytes))?.publish()?;
    }
    eprintln!("anysched: wrote {} files below {}", all.len(), folder.display());
    Ok(())
}
