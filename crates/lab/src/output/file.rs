//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Writes a file, which appears under its name when it is complete.
///
/// Errors: those of [`Draft`].
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    Draft::write(path, write)?.publish().map(drop)
}

/// A complete file under a temporary name beside its own; it is gone when this is dropped. Several
/// files appear together if all are drafted before the first is published.
///
/// Errors of all functions: the file cannot be written, or its path is that of a folder; the
/// message names the path.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    path: PathBuf,
}

impl Draft {
    /// Writes the file under a temporary name.
    pub fn write(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<Draft> {
        let drafted = || {
            if path.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            // Temporary files are private by default; these are to be read as other files are.
            let file = Builder::new().make_in(folder(path), |path| File::create_new(path))?;
            let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
            write(&mut out)?;
            out.flush()?;
            drop(out);
            // Otherwise a power cut may leave the name without the contents.
            file.as_file().sync_all()?;
            Ok(file)
        };
        let file = drafted().map_err(|error| about(path, error))?;
        Ok(Draft { file, path: path.to_path_buf() })
    }

    /// Gives the file its name, and returns it; what had that name is replaced.
    pub fn publish(self) -> io::Result<PathBuf> {
        let Draft { file, path } = self;
        file.persist(&path).map_err(|failed| about(&path, failed.error))?;
        Ok(path)
    }
}

/// The folder that a file is to be in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Adds the path to an error of writing to it.
pub(super) fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_fails_leaves_nothing_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_whole(&path, |out| out.write_all(b"first")).unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"second")?;
            Err(io::Error::other("no more"))
        });
        let expected = format!("{} cannot be written: no more", path.display());
        assert_eq!(failed.unwrap_err().to_string(), expected);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn errors_name_the_path_and_no_temporary_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none/a.txt");
        let error = write_whole(&path, |_| Ok(())).unwrap_err().to_string();
        let why = std::fs::write(&path, "").unwrap_err();
        assert_eq!(error, format!("{} cannot be written: {why}", path.display()));
        let error = write_whole(folder.path(), |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("cannot be written: is a directory"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn permissions_are_those_of_ordinary_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [own, ordinary] = ["own", "ordinary"].map(|name| folder.path().join(name));
        write_whole(&own, |_| Ok(())).unwrap();
        std::fs::write(&ordinary, "").unwrap();
        let [own, ordinary] =
            [own, ordinary].map(|path| path.metadata().unwrap().permissions().mode());
        assert_eq!(own, ordinary);
    }
}
