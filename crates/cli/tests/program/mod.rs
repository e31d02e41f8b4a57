//! The program itself, run in a folder of its own.

#![allow(dead_code)] // each test uses a part of it

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_anysched");

/// A folder for one test, gone after it.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.join(name), contents).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let names = fs::read_dir(self.path()).unwrap().map(name);
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program with arguments, ready to start in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).current_dir(self.path()).env_remove("COLUMNS").env("NO_COLOR", "1");
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What the program prints; it must succeed.
    pub fn stdout(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the program says when it fails, which it must, without a panic.
    pub fn stderr(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        let code = output.status.code();
        assert!(code.is_some_and(|code| code != 0 && code != 101), "{args:?}: {code:?} {errors}");
        assert!(!errors.contains("panicked"), "{args:?}: {errors}");
        errors
    }
}
