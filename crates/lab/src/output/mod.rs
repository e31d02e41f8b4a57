//! What is shown and written of results.

mod claims;
mod csv;
mod json;
mod numbers;
mod parquet;
mod table;
mod tuned;

pub use claims::{claims_markdown, claims_text};
pub use csv::csv;
pub use json::json;
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
    /// [`parquet`].
    Parquet,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 4] = [Form::Table, Form::Json, Form::Csv, Form::Parquet];

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
/// experiment's name. Each appears only when it is complete. Returns their paths.
///
/// Errors: the directory or a file cannot be written; the message names it.
pub fn write(results: &Results, directory: &Path, forms: &[Form]) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).map_err(|error| about(directory, error))?;
    let mut paths = Vec::new();
    for form in forms {
        let bytes = match form {
            Form::Table => table(results).into_bytes(),
            Form::Json => json(results).into_bytes(),
            Form::Csv => csv(results).into_bytes(),
            Form::Parquet => parquet(results).map_err(io::Error::other)?,
        };
        let path = directory.join(format!("{}.{}", results.experiment, form.extension()));
        replace(&path, &bytes).map_err(|error| about(&path, error))?;
        paths.push(path);
    }
    Ok(paths)
}

fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be written: {error}", path.display()))
}

/// Writes a file beside `path` and renames it, so that `path` never is a part of it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    let result = write();
    if result.is_err() {
        // It is not there if it could not be created.
        let _ = fs::remove_file(&temporary);
    }
    result
}
