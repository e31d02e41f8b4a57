//! What is shown and written of results.

mod chart;
mod claims;
mod csv;
mod grid;
mod json;
mod marks;
mod numbers;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
mod tuned;

pub use chart::Chart;
pub use claims::{claims_markdown, claims_text};
pub use csv::csv;
pub use grid::{grid_json, grid_markdown, grid_table};
pub use json::json;
#[cfg(feature = "parquet")]
pub use parquet::parquet;
pub use table::table;
pub use tuned::{tuned_json, tuned_markdown, tuned_table};

use crate::results::Results;
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
    /// A line per run, for the feature `parquet`.
    Parquet,
}

impl Form {
    /// All of them, built or not.
    pub const ALL: [Form; 4] = [Form::Table, Form::Json, Form::Csv, Form::Parquet];

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
            Form::Parquet => "parquet",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Form::Table => "txt",
            _ => self.name(),
        }
    }
}

/// Writes `results` into `directory`, which is made if it is not there, as files with the
/// experiment's name. They appear when all of them are complete. Returns their paths.
///
/// Errors: the directory or a file cannot be written; the message names it.
pub fn write(results: &Results, directory: &Path, forms: &[Form]) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).map_err(|error| about(directory, error))?;
    let mut staged = Vec::new();
    for form in forms {
        let bytes = match form {
            Form::Table => table(results).into_bytes(),
            Form::Json => json(results).into_bytes(),
            Form::Csv => csv(results).into_bytes(),
            Form::Parquet => parquet_bytes(results)?,
        };
        let path = directory.join(format!("{}.{}", results.experiment, form.extension()));
        staged.push(Staged::write(&path, &bytes).map_err(|error| about(&path, error))?);
    }
    for file in &staged {
        fs::rename(&file.temporary, &file.path).map_err(|error| about(&file.path, error))?;
    }
    Ok(staged.iter().map(|file| file.path.clone()).collect())
}

#[cfg(feature = "parquet")]
fn parquet_bytes(results: &Results) -> io::Result<Vec<u8>> {
    parquet(results).map_err(io::Error::other)
}

#[cfg(not(feature = "parquet"))]
fn parquet_bytes(_: &Results) -> io::Result<Vec<u8>> {
    Err(io::Error::other("this program was built without the feature `parquet`"))
}

fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be written: {error}", path.display()))
}

/// A whole file beside the path that it is for; gone when this is, unless it was renamed.
struct Staged {
    temporary: PathBuf,
    path: PathBuf,
}

impl Staged {
    /// Errors: it cannot be written, or the path is that of a directory.
    fn write(path: &Path, bytes: &[u8]) -> io::Result<Staged> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let staged = Staged { temporary, path: path.to_path_buf() };
        let mut file = fs::File::create(&staged.temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(staged)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // It is not there if it was renamed or could not be made.
        let _ = fs::remove_file(&self.temporary);
    }
}
