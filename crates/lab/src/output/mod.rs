//! What is shown and written of results.

pub mod align;
mod chart;
mod claims;
mod compare;
mod csv;
mod fields;
mod file;
mod grid;
mod json;
mod marks;
mod numbers;
#[cfg(feature = "parquet")]
mod parquet;
pub mod report;
mod runs;
mod table;
mod tuned;

pub use chart::{Bars, Chart, Shape};
pub use claims::{claims_markdown, claims_text};
pub use compare::{comparison_csv, comparison_json, comparison_table};
pub use csv::{csv, csv_lines};
pub use fields::{OUTPUTS, OutputField};
pub use file::{Draft, Inputs, folder, require_output, write_whole};
pub use grid::{grid_json, grid_markdown, grid_table};
pub use json::json;
#[cfg(feature = "parquet")]
pub use parquet::parquet;
pub use runs::{Values, runs, runs_csv};
pub use table::table;
pub use tuned::{tuned_json, tuned_markdown, tuned_table};

use crate::compare::RUNS;
use crate::results::Results;
use file::about;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A form in which results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// [`table`], as `.txt`.
    Table,
    /// [`json`].
    Json,
    /// [`csv`].
    Csv,
    /// [`runs_csv`], as `.runs.csv`.
    Runs,
    /// A line per run, for the feature `parquet`.
    Parquet,
}

impl Form {
    /// All of them, built or not.
    pub const ALL: [Form; 5] = [Form::Table, Form::Json, Form::Csv, Form::Runs, Form::Parquet];

    /// Whether this program can write it.
    pub fn is_built(self) -> bool {
        self != Form::Parquet || cfg!(feature = "parquet")
    }

    /// Those that this program can write.
    pub fn built() -> Vec<Form> {
        Form::ALL.into_iter().filter(|form| form.is_built()).collect()
    }

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Form::Table => "table",
            Form::Json => "json",
            Form::Csv => "csv",
            Form::Runs => "runs",
            Form::Parquet => "parquet",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Form::Table => "txt",
            Form::Runs => RUNS,
            _ => self.name(),
        }
    }
}

/// Checks that the results of an experiment can be written into a folder.
///
/// Errors: one of the files cannot be written, or there are results of another experiment of that
/// name, which asks another question.
pub fn require_folder(
    experiment: &str,
    question: &str,
    inputs: &Inputs,
    directory: &Path,
    forms: &[Form],
) -> io::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    for form in forms {
        require_output(&path_of(experiment, *form, directory), inputs)?;
    }
    let there = path_of(experiment, Form::Json, directory);
    let Ok(bytes) = fs::read(&there) else { return Ok(()) };
    match serde_json::from_slice::<serde_json::Value>(&bytes)
        .ok()
        .as_ref()
        .map(|json| &json["question"])
    {
        Some(serde_json::Value::String(other)) if other != question => {
            Err(io::Error::other(format!(
                "{} has the results of another experiment, \"{other}\"; give another folder, or \
                 remove it",
                there.display()
            )))
        }
        _ => Ok(()),
    }
}

fn path_of(experiment: &str, form: Form, directory: &Path) -> PathBuf {
    directory.join(format!("{experiment}.{}", form.extension()))
}

/// Writes `results` into `directory`, which is made if it is not there, as files with the
/// experiment's name. They appear when all of them are complete. Returns their paths.
///
/// Errors: the directory or a file cannot be written, or as [`require_folder`]; the message names
/// it.
pub fn write(
    results: &Results,
    inputs: &Inputs,
    directory: &Path,
    forms: &[Form],
) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).map_err(|error| about(directory, error))?;
    require_folder(&results.experiment, &results.question, inputs, directory, forms)?;
    let mut drafts = Vec::new();
    for form in forms {
        let bytes = match form {
            Form::Table => table(results).into_bytes(),
            Form::Json => json(results).into_bytes(),
            Form::Csv => csv(results).into_bytes(),
            Form::Runs => runs_csv(results).into_bytes(),
            Form::Parquet => parquet_bytes(results)?,
        };
        let path = path_of(&results.experiment, *form, directory);
        drafts.push(Draft::write(&path, inputs, |out| out.write_all(&bytes))?);
    }
    drafts.into_iter().map(Draft::publish).collect()
}

#[cfg(feature = "parquet")]
fn parquet_bytes(results: &Results) -> io::Result<Vec<u8>> {
    parquet(results).map_err(io::Error::other)
}

#[cfg(not(feature = "parquet"))]
fn parquet_bytes(_: &Results) -> io::Result<Vec<u8>> {
    Err(io::Error::other("this program was built without the feature `parquet`"))
}
