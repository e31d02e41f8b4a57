//! What was found in a suite, kept beside it: a line for each thing, its name and its value.

use crate::BootError;
use std::fs;
use std::path::{Path, PathBuf};

/// What it begins with; another version of it is fetched anew.
const FIRST: &str = "anysched-packages 1";

/// Names and values, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    entries: Vec<(String, String)>,
}

impl State {
    /// The file's name.
    const FILE: &str = "found";

    /// Reads what was found in `directory`, if something was.
    pub fn read(directory: &Path) -> Option<State> {
        State::parse(&fs::read_to_string(directory.join(State::FILE)).ok()?)
    }

    /// The file of what was found in `directory`.
    pub fn file(directory: &Path) -> PathBuf {
        directory.join(State::FILE)
    }

    fn parse(text: &str) -> Option<State> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == FIRST)?;
        let entries = lines.map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_string(), value.to_string()))
        });
        Some(State { entries: entries.collect::<Option<_>>()? })
    }

    /// Writes it into `directory`.
    ///
    /// Errors: it cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), BootError> {
        let path = directory.join(State::FILE);
        fs::write(&path, self.text()).map_err(|error| BootError::files(path.display(), error))
    }

    fn text(&self) -> String {
        let lines = self.entries.iter().map(|(name, value)| format!("{name} {value}\n"));
        format!("{FIRST}\n{}", lines.collect::<String>())
    }

    /// Adds a value, which is one line.
    pub fn add(&mut self, name: &str, value: &str) {
        self.entries.push((name.into(), value.into()));
    }

    /// The first value of that name.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// All values of that name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = self.entries.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_wrote() {
        let mut state = State::default();
        state.add("kernel", "7.3.4+deb13-cloud-amd64");
        state.add("passed", "forky no kernel of 7.2 or later");
        state.add("passed", "sid expired");
        assert_eq!(State::parse(&state.text()), Some(state.clone()));
        assert_eq!(state.all("passed").len(), 2);
        assert_eq!(state.one("kernel"), Some("7.3.4+deb13-cloud-amd64"));
        assert_eq!(state.one("headers"), None);
    }

    #[test]
    fn what_another_version_wrote_is_not_read() {
        assert_eq!(State::parse("anysched-packages 0\nkernel 7\n"), None);
        assert_eq!(State::parse("anysched-packages 1\nkernel\n"), None);
        assert_eq!(State::parse(""), None);
    }
}
