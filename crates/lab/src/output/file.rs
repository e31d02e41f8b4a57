//! Files that appear whole or not at all, and replace nothing that they should not.

use same_file::Handle;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Links to links that are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// Files that a command reads, which none of its outputs may replace.
#[derive(Debug, Default)]
pub struct Inputs(Vec<Handle>);

impl Inputs {
    /// Those of `paths` that are there; what is no regular file cannot be replaced.
    pub fn of<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Inputs {
        let mut inputs = Inputs::default();
        paths.into_iter().for_each(|path| inputs.add(path.as_ref()));
        inputs
    }

    /// Adds one, if it is there.
    pub fn add(&mut self, path: &Path) {
        if path.is_file()
            && let Ok(handle) = Handle::from_path(path)
        {
            self.0.push(handle);
        }
    }

    fn has(&self, path: &Path) -> bool {
        Handle::from_path(path).is_ok_and(|handle| self.0.contains(&handle))
    }
}

/// Checks that an output can be written, before work is done for it.
///
/// Errors: those of [`Draft`].
pub fn require_output(path: &Path, inputs: &Inputs) -> io::Result<()> {
    Target::of(path, inputs).map(drop).map_err(|error| about(path, error))
}

/// Writes a file, which appears under its name when it is complete.
///
/// Errors: those of [`Draft`].
pub fn write_whole(
    path: &Path,
    inputs: &Inputs,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    Draft::write(path, inputs, write)?.publish().map(drop)
}

/// Where an output goes.
#[derive(Debug)]
enum Target {
    /// To a file, which takes the place of the one that may be there.
    File(PathBuf, Option<Metadata>),
    /// To something that has no contents to replace: a terminal, a pipe, `/dev/null`.
    Stream(PathBuf),
}

impl Target {
    fn of(path: &Path, inputs: &Inputs) -> io::Result<Target> {
        let place = followed(path)?;
        let there = match fs::metadata(&place) {
            Ok(there) => there,
            Err(_) if !folder(&place).is_dir() => {
                let folder = folder(&place).display().to_string();
                return Err(io::Error::other(format!("there is no folder {folder}")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Target::File(place, None));
            }
            Err(error) => return Err(error),
        };
        let refused = if there.is_dir() {
            "it is a folder"
        } else if !there.is_file() {
            return Ok(Target::Stream(place));
        } else if inputs.has(&place) {
            "it is read, too; give the output another name"
        } else if there.permissions().readonly() {
            "it is read-only; make it writable, or give the output another name"
        } else {
            // What may not be written into must not be replaced either.
            OpenOptions::new().append(true).open(&place)?;
            return Ok(Target::File(place, Some(there)));
        };
        Err(io::Error::other(refused))
    }
}

/// Where symbolic links lead from `path`, to something that is there or not.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        path = folder(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("symbolic links lead in circles"))
}

/// A complete file under a temporary name beside its own; it is gone when this is dropped. Several
/// files appear together if all are drafted before the first is published. Where a symbolic link
/// leads, the file is replaced there. What is no file, as a pipe, gets all bytes in the end.
///
/// Errors of all functions: the file cannot be written, is among the inputs or read-only, or its
/// path is that of a folder; the message names the path.
#[derive(Debug)]
pub struct Draft {
    bytes: Bytes,
    path: PathBuf,
}

#[derive(Debug)]
enum Bytes {
    /// Of a file, and its path behind links.
    Beside(NamedTempFile, PathBuf),
    /// Of what is no file.
    Apart(File, PathBuf),
}

impl Draft {
    /// Writes the file under a temporary name.
    pub fn write(
        path: &Path,
        inputs: &Inputs,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<Draft> {
        let drafted = || {
            let bytes = match Target::of(path, inputs)? {
                Target::Stream(place) => Bytes::Apart(tempfile::tempfile()?, place),
                Target::File(place, before) => {
                    // Temporary files are private by default; these are to be read as others are.
                    let file =
                        Builder::new().make_in(folder(&place), |path| File::create_new(path))?;
                    if let Some(before) = before {
                        keep_rights(file.as_file(), &before)?;
                    }
                    Bytes::Beside(file, place)
                }
            };
            let file = match &bytes {
                Bytes::Beside(file, _) => file.as_file(),
                Bytes::Apart(file, _) => file,
            };
            let mut out = BufWriter::with_capacity(1 << 20, file);
            write(&mut out)?;
            out.flush()?;
            drop(out);
            // Otherwise a power cut may leave the name without the contents.
            file.sync_all()?;
            Ok(bytes)
        };
        let bytes = drafted().map_err(|error| about(path, error))?;
        Ok(Draft { bytes, path: path.to_path_buf() })
    }

    /// Gives the file its name, and returns it; what had that name is replaced.
    pub fn publish(self) -> io::Result<PathBuf> {
        let Draft { bytes, path } = self;
        let published = match bytes {
            Bytes::Beside(file, place) => {
                file.persist(&place).map(drop).map_err(|failed| failed.error)
            }
            Bytes::Apart(mut file, place) => file.rewind().and_then(|()| {
                let mut out = OpenOptions::new().write(true).open(place)?;
                io::copy(&mut file, &mut out).map(drop)
            }),
        };
        published.map(|()| path.clone()).map_err(|error| about(&path, error))
    }
}

/// Gives a file that takes another's place its rights, and its owner where that is allowed.
fn keep_rights(file: &File, before: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let now = file.metadata()?;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            let _ = fchown(file, Some(before.uid()), Some(before.gid()));
        }
    }
    file.set_permissions(before.permissions())
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

    fn none() -> Inputs {
        Inputs::default()
    }

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
        write_whole(&path, &none(), |out| out.write_all(b"first")).unwrap();
        let failed = write_whole(&path, &none(), |out| {
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
        let error = write_whole(&path, &none(), |_| Ok(())).unwrap_err().to_string();
        let why = format!("there is no folder {}", path.parent().unwrap().display());
        assert_eq!(error, format!("{} cannot be written: {why}", path.display()));
        let error = write_whole(folder.path(), &none(), |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("cannot be written: it is a folder"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn permissions_are_those_of_ordinary_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [own, ordinary] = ["own", "ordinary"].map(|name| folder.path().join(name));
        write_whole(&own, &none(), |_| Ok(())).unwrap();
        std::fs::write(&ordinary, "").unwrap();
        let [own, ordinary] =
            [own, ordinary].map(|path| path.metadata().unwrap().permissions().mode());
        assert_eq!(own, ordinary);
    }

    #[test]
    fn what_is_read_or_read_only_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        fs::write(&path, "first").unwrap();
        let inputs = Inputs::of([&path, &folder.path().join("none")]);
        let linked = folder.path().join("linked");
        fs::hard_link(&path, &linked).unwrap();
        for name in ["a.toml", "./a.toml", "linked"].map(|name| folder.path().join(name)) {
            let error = write_whole(&name, &inputs, |out| out.write_all(b"second")).unwrap_err();
            assert!(
                error.to_string().ends_with(
                    "a.toml cannot be written: it is read, too; give the output another name"
                ) || name == linked,
                "{error}"
            );
            assert_eq!(require_output(&name, &inputs).unwrap_err().to_string(), error.to_string());
        }
        let mut rights = path.metadata().unwrap().permissions();
        rights.set_readonly(true);
        fs::set_permissions(&path, rights).unwrap();
        let error = write_whole(&path, &none(), |out| out.write_all(b"second")).unwrap_err();
        assert!(error.to_string().contains("it is read-only; "), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["a.toml", "linked"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_and_pipes_and_rights_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [file, link, dangling, new, pipe] =
            ["file", "link", "dangling", "new", "pipe"].map(|name| folder.path().join(name));
        fs::write(&file, "first").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink(&new, &dangling).unwrap();
        for name in [&link, &dangling] {
            write_whole(name, &none(), |out| out.write_all(b"second")).unwrap();
            assert!(name.is_symlink());
        }
        assert_eq!([&file, &new].map(|path| fs::read(path).unwrap()), [b"second", b"second"]);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let read = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_whole(&pipe, &none(), |out| out.write_all(b"third")).unwrap();
        assert_eq!(read.join().unwrap(), b"third");
        write_whole(Path::new("/dev/null"), &none(), |out| out.write_all(b"fourth")).unwrap();
        assert_eq!(names(folder.path()), ["dangling", "file", "link", "new", "pipe"]);
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        let error = write_whole(&circle, &none(), |_| Ok(())).unwrap_err().to_string();
        assert!(error.ends_with("symbolic links lead in circles"), "{error}");
    }
}
