//! A note of what is attached, for other processes: who did it, when and how.

use anysched_host::Attach;
use anysched_wire::escape;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Gone with the boot, as is what it tells of.
const PATH: &str = "run/anysched/attached";

/// What it begins with.
const FIRST: &str = "anysched-attached 1";

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The policy.
    pub policy: String,
    /// Its parameters.
    pub settings: Vec<(String, String)>,
    /// The process that watches it, and when that was started, in the kernel's ticks.
    pub process: (u32, u64),
    /// Who started that process.
    pub user: String,
    /// Seconds since 1970.
    pub since: u64,
}

impl Note {
    /// Of what this process attaches.
    pub fn of(order: &Attach<'_>) -> Note {
        let user = ["SUDO_USER", "USER", "LOGNAME"].map(|name| std::env::var(name).ok());
        let process = std::process::id();
        Note {
            policy: order.policy.into(),
            settings: order.settings.to_vec(),
            process: (process, started(Path::new("/"), process).unwrap_or(0)),
            user: user.into_iter().flatten().next().unwrap_or_else(|| "root".into()),
            since: now(),
        }
    }

    /// With another value of a parameter.
    pub fn with(mut self, name: &str, value: &str) -> Note {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.into(), value.into()));
        self
    }

    /// The note that there is below `root`.
    pub fn read(root: &Path) -> Option<Note> {
        Note::parse(&fs::read_to_string(root.join(PATH)).ok()?)
    }

    /// Writes it below `root`.
    ///
    /// Errors: it cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), String> {
        let path = root.join(PATH);
        let written = fs::create_dir_all(path.parent().unwrap_or(root))
            .and_then(|()| fs::write(&path, self.text()));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Removes the note below `root`, if there is one.
    pub fn remove(root: &Path) {
        let path = root.join(PATH);
        let _ = fs::remove_file(&path);
        let _ = path.parent().map(fs::remove_dir);
    }

    fn text(&self) -> String {
        let Note { policy, settings, process: (process, started), user, since } = self;
        let mut text = format!("{FIRST}\npolicy {}\n", escape::rest(policy));
        for (name, value) in settings {
            let _ = writeln!(text, "set {} {}", escape::word(name), escape::rest(value));
        }
        let _ = writeln!(text, "process {process} {started}");
        let _ = writeln!(text, "user {}\nsince {since}", escape::rest(user));
        text
    }

    fn parse(text: &str) -> Option<Note> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == FIRST)?;
        let mut note = Note::default();
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            match word {
                "policy" => note.policy = escape::unescape(rest)?,
                "user" => note.user = escape::unescape(rest)?,
                "since" => note.since = rest.parse().ok()?,
                "process" => {
                    let (process, started) = rest.split_once(' ')?;
                    note.process = (process.parse().ok()?, started.parse().ok()?);
                }
                "set" => {
                    let (name, value) = rest.split_once(' ')?;
                    note.settings.push((escape::unescape(name)?, escape::unescape(value)?));
                }
                _ => return None,
            }
        }
        Some(note)
    }

    /// Whether the process that wrote it still runs.
    pub fn is_watched(&self, root: &Path) -> bool {
        let (process, since) = self.process;
        started(root, process) == Some(since)
    }

    /// What it tells, a line each.
    pub fn lines(&self, root: &Path) -> Vec<String> {
        let Note { settings, process: (process, _), user, since, .. } = self;
        let mut lines =
            vec![format!("attached {} ago by {user}", clock(now() - since.min(&now())))];
        lines.push(match self.is_watched(root) {
            true => format!("watched by process {process}"),
            false => {
                format!("process {process}, which attached it, has ended without taking it out")
            }
        });
        lines.extend(settings.iter().map(|(name, value)| format!("{name} = {value}")));
        lines
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// `1:02:03`.
fn clock(seconds: u64) -> String {
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// When a process was started, in ticks since the machine was.
fn started(root: &Path, process: u32) -> Option<u64> {
    let path: PathBuf = root.join(format!("proc/{process}/stat"));
    let text = fs::read_to_string(path).ok()?;
    // The name, in parentheses, may hold anything.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let note = Note {
            policy: "a".into(),
            settings: vec![("x".into(), "1\n2".into())],
            process: (own, started(Path::new("/"), own).unwrap()),
            user: "a b".into(),
            since: now() - 3723,
        };
        note.write(root.path()).unwrap();
        assert_eq!(Note::read(root.path()), Some(note.clone()));
        assert!(note.is_watched(Path::new("/")));
        let lines = note.lines(Path::new("/"));
        assert!(lines[0].starts_with("attached 1:02:0") && lines[0].ends_with(" ago by a b"));
        assert_eq!(lines[1..], [format!("watched by process {own}"), "x = 1\n2".into()]);
        let changed = note.with("y", "2").with("x", "3");
        assert_eq!(changed.lines(Path::new("/"))[2..], ["y = 2", "x = 3"]);
        Note::remove(root.path());
        assert_eq!(Note::read(root.path()), None);
        assert!(!root.path().join("run/anysched").exists());
    }

    #[test]
    fn another_process_of_that_number_does_not_watch() {
        let own = std::process::id();
        let note = Note { process: (own, 1), ..Note::default() };
        assert!(!note.is_watched(Path::new("/")));
        assert!(note.lines(Path::new("/"))[1].ends_with("has ended without taking it out"));
    }
}
