//! The programs that build: those of a suite, with its directory as their root, or this machine's.

use crate::step::run;
use crate::{BootError, Root};
use std::path::{Path, PathBuf, absolute};
use std::process::Command;

/// Where the programs are from.
#[derive(Clone, Copy, Debug)]
pub enum Tools<'a> {
    /// From this root.
    Root(&'a Root),
    /// From where this machine finds programs.
    Machine,
}

/// A program that is about to run.
pub struct Tool<'a> {
    /// With the arguments so far.
    pub command: Command,
    name: &'a str,
    /// Directories, and where the program sees them if not where they are.
    mounts: &'a [(&'a Path, &'a str)],
    is_inside: bool,
}

impl<'a> Tools<'a> {
    /// The program `name`. Of this computer's directories, one from a root sees `mounts` alone.
    ///
    /// Errors: this user may not change roots.
    pub fn tool<'b>(
        self,
        name: &'b str,
        mounts: &'b [(&'b Path, &'b str)],
    ) -> Result<Tool<'b>, BootError> {
        let command = match self {
            Tools::Root(root) => root.command(name, mounts)?,
            Tools::Machine => Command::new(name),
        };
        Ok(Tool { command, name, mounts, is_inside: matches!(self, Tools::Root(_)) })
    }
}

impl Tool<'_> {
    /// What the program calls a file in one of its mounts.
    pub fn seen(&self, path: &Path) -> PathBuf {
        if !self.is_inside {
            return absolute(path).unwrap_or_else(|_| path.into());
        }
        let inside = |(outside, inside): &(&Path, &str)| {
            let rest = path.strip_prefix(outside).ok()?;
            Some(if rest.as_os_str().is_empty() {
                inside.into()
            } else {
                Path::new(inside).join(rest)
            })
        };
        self.mounts.iter().find_map(inside).unwrap_or_else(|| path.into())
    }

    /// Runs it and returns what it prints.
    ///
    /// Errors: it cannot be started, or what it says if it fails.
    pub fn run(self) -> Result<String, BootError> {
        run(self.command, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_what_the_program_sees() {
        let mounts = [(Path::new("/a/b"), "/work"), (Path::new("/c"), "/out")];
        let tool = |is_inside| {
            let command = Command::new("true");
            Tool { command, name: "true", mounts: &mounts, is_inside }
        };
        let names = ["/a/b", "/a/b/x/y", "/c/z", "/d"];
        let seen = |is_inside| names.map(|name| tool(is_inside).seen(Path::new(name)));
        assert_eq!(seen(true), ["/work", "/work/x/y", "/out/z", "/d"].map(PathBuf::from));
        assert_eq!(seen(false), names.map(PathBuf::from));
    }
}
