//! Archives from which Linux fills its first file system: the format `newc` of cpio, uncompressed.
//!
//! The kernel reads one after another, so that what differs between boots is a small archive behind
//! a large one. The same entries make the same bytes.

use crate::BootError;
use cpio::newc::{Builder, ModeFileType, trailer};
use std::collections::BTreeMap;
use std::io::Write;

/// The entries of an archive, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    File { contents: Vec<u8>, permissions: u32 },
    Link { target: String },
}

impl Archive {
    /// An archive of files that nobody runs. Directories above them are in it, too.
    pub fn of_files(files: &[(&str, &[u8])]) -> Archive {
        let mut archive = Archive::default();
        for (path, contents) in files {
            archive.add_file(path, contents.to_vec());
        }
        archive
    }

    /// Adds an empty directory.
    pub fn add_directory(&mut self, path: &str) {
        self.add(path, Entry::Directory);
    }

    /// Adds a file.
    pub fn add_file(&mut self, path: &str, contents: Vec<u8>) {
        self.add(path, Entry::File { contents, permissions: 0o644 });
    }

    /// Adds a file that can be run.
    pub fn add_program(&mut self, path: &str, contents: Vec<u8>) {
        self.add(path, Entry::File { contents, permissions: 0o755 });
    }

    /// Adds a symbolic link.
    pub fn add_link(&mut self, path: &str, target: &str) {
        self.add(path, Entry::Link { target: target.into() });
    }

    /// Adds an entry, unless there is one of that path, and the directories above it.
    fn add(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (end, _) in path.match_indices('/') {
            self.entries.entry(path[..end].into()).or_insert(Entry::Directory);
        }
        self.entries.entry(path.into()).or_insert(entry);
    }

    /// The archive: owned by root, at the beginning of time, in the order of paths.
    ///
    /// Errors: a file is larger than the format allows, 4 GiB.
    pub fn bytes(&self) -> Result<Vec<u8>, BootError> {
        let mut bytes = Vec::new();
        for (number, (path, entry)) in (1..).zip(&self.entries) {
            let (kind, permissions, contents) = match entry {
                Entry::Directory => (ModeFileType::Directory, 0o755, &[][..]),
                Entry::File { contents, permissions } => {
                    (ModeFileType::Regular, *permissions, contents.as_slice())
                }
                Entry::Link { target } => (ModeFileType::Symlink, 0o777, target.as_bytes()),
            };
            let fault = |error: &dyn std::fmt::Display| BootError::files(path, error);
            let size = u32::try_from(contents.len()).map_err(|error| fault(&error))?;
            let entry = Builder::new(path).ino(number).mode(permissions).set_mode_file_type(kind);
            let mut writer = entry.write(&mut bytes, size);
            writer.write_all(contents).map_err(|error| fault(&error))?;
            writer.finish().map_err(|error| fault(&error))?;
        }
        trailer(&mut bytes).map_err(|error| BootError::files("the archive's end", error))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;
    use std::io::Read;

    /// Path, mode and contents of the entries of archives that follow each other.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            let mut reader = Reader::new(bytes).unwrap();
            let entry = reader.entry().clone();
            assert_eq!((entry.uid(), entry.gid(), entry.mtime(), entry.nlink()), (0, 0, 0, 1));
            let mut contents = Vec::new();
            reader.read_to_end(&mut contents).unwrap();
            bytes = reader.finish().unwrap();
            if !entry.is_trailer() {
                entries.push((entry.name().to_string(), entry.mode(), contents));
            }
        }
        entries
    }

    fn example() -> Archive {
        let mut archive = Archive::default();
        archive.add_program("/usr/sbin/tool", b"program".to_vec());
        archive.add_link("/bin/sh", "busybox");
        archive.add_directory("/proc");
        archive.add_file("/etc/a", Vec::new());
        archive
    }

    #[test]
    fn it_reads_back_in_order_with_the_directories_above() {
        let expected: Vec<(String, u32, Vec<u8>)> = [
            ("bin", 0o040755, ""),
            ("bin/sh", 0o120777, "busybox"),
            ("etc", 0o040755, ""),
            ("etc/a", 0o100644, ""),
            ("proc", 0o040755, ""),
            ("usr", 0o040755, ""),
            ("usr/sbin", 0o040755, ""),
            ("usr/sbin/tool", 0o100755, "program"),
        ]
        .map(|(path, mode, contents)| (path.into(), mode, contents.into()))
        .into();
        assert_eq!(read(&example().bytes().unwrap()), expected);
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let mut other = Archive::default();
        other.add_file("etc/a", Vec::new());
        other.add_directory("proc/");
        other.add_link("bin/sh", "busybox");
        other.add_program("usr/sbin/tool", b"program".to_vec());
        assert_eq!(other.bytes().unwrap(), example().bytes().unwrap());
    }

    #[test]
    fn one_can_follow_another() {
        let boot = Archive::of_files(&[("/etc/anysched/boot", b"policy rr"), ("/x", b"odd")]);
        let mut both = example().bytes().unwrap();
        // The kernel wants the next one to begin at a multiple of four.
        assert_eq!(both.len() % 4, 0);
        both.extend(boot.bytes().unwrap());
        let entries = read(&both);
        assert_eq!(entries.len(), 8 + 4);
        let last = entries.last().unwrap();
        assert_eq!((last.0.as_str(), last.2.as_slice()), ("x", &b"odd"[..]));
    }
}
