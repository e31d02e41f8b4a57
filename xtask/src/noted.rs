//! What commands that take long have printed, noted in the repository: a line for each in
//! `docs/printed.tsv`, with hashes of what the output depends on ([`crate::inputs`]) and of the
//! output. A fresh clone prints again what has changed since, and some of the rest, which is drawn
//! anew for each commit; all of it with `ANYSCHED_LONG` set.

use crate::inputs::hash_of_texts;
use crate::run::{Failed, command, output, root};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Before the lines.
const HEAD: &str = "command\tinputs\toutput";

/// One in so many is printed again although nothing has changed.
const DRAWN: usize = 8;

/// The notes.
pub struct Noted {
    path: PathBuf,
    /// Inputs and output of each command.
    lines: BTreeMap<String, [String; 2]>,
    commit: String,
}

impl Noted {
    /// Those of the repository; none if there is no such file yet.
    ///
    /// Errors: git's, or a line that is none.
    pub fn read() -> Result<Noted, Failed> {
        let path = root().join("docs/printed.tsv");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = parse(&text)
            .map_err(|line| Failed(format!("{}:{line}: not as in {HEAD:?}", path.display())))?;
        let commit = output(&mut command("git", &["rev-parse", "HEAD"]))?;
        Ok(Noted { path, lines, commit })
    }

    /// Whether a command has printed `printed` from these inputs, which is believed unless it is
    /// drawn.
    pub fn has(&self, line: &str, inputs: &str, printed: &str) -> bool {
        let noted = self.lines.get(line).is_some_and(|[of, output]| {
            of == inputs && *output == hash_of_texts([printed.trim_end()])
        });
        noted && !is_drawn(&self.commit, line)
    }

    /// Notes what a command has printed.
    pub fn note(&mut self, line: &str, inputs: &str, printed: &str) {
        let noted = [inputs.to_string(), hash_of_texts([printed.trim_end()])];
        self.lines.insert(line.to_string(), noted);
    }

    /// Forgets commands that are on no page.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.lines.retain(|line, _| is_there(line));
    }

    pub fn write(&self) -> Result<(), Failed> {
        let lines = self.lines.iter();
        let lines = lines.map(|(line, [inputs, output])| format!("{line}\t{inputs}\t{output}\n"));
        let text = format!("{HEAD}\n{}", lines.collect::<String>());
        std::fs::write(&self.path, text)
            .map_err(|error| Failed(format!("{}: {error}", self.path.display())))
    }
}

/// Whether a command is printed again at this commit.
fn is_drawn(commit: &str, line: &str) -> bool {
    let digits = hash_of_texts([commit, line]);
    u64::from_str_radix(&digits, 16).is_ok_and(|number| number.is_multiple_of(DRAWN as u64))
}

/// Errors: the number of a line that is none of [`HEAD`]'s form.
fn parse(text: &str) -> Result<BTreeMap<String, [String; 2]>, usize> {
    let one = |(number, line): (usize, &str)| match line.split('\t').collect::<Vec<_>>()[..] {
        [command, inputs, output] => Ok((command.to_string(), [inputs.into(), output.into()])),
        _ => Err(number + 1),
    };
    let head = text.lines().next().is_none_or(|line| line == HEAD);
    head.then_some(()).ok_or(1_usize)?;
    text.lines().enumerate().skip(1).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(commit: &str) -> Noted {
        Noted { path: PathBuf::new(), lines: BTreeMap::new(), commit: commit.into() }
    }

    #[test]
    fn what_is_noted_is_believed_while_it_is_the_same() {
        // One at which the command is not drawn.
        let line = "anysched reproduce gfs";
        let commit = (0..).map(|number| number.to_string()).find(|c| !is_drawn(c, line)).unwrap();
        let mut notes = noted(&commit);
        assert!(!notes.has(line, "inputs", "printed"));
        notes.note(line, "inputs", "printed\n");
        assert!(notes.has(line, "inputs", "printed"));
        assert!(!notes.has(line, "others", "printed") && !notes.has(line, "inputs", "changed"));
        assert!(!notes.has("anysched reproduce pbg", "inputs", "printed"));
        notes.retain(|there| there != line);
        assert!(!notes.has(line, "inputs", "printed"));
    }

    /// Each command is printed again now and then, whatever is noted.
    #[test]
    fn one_in_eight_is_drawn() {
        let commits = 4000;
        let drawn = (0..commits).filter(|commit| is_drawn(&commit.to_string(), "a b")).count();
        assert!((commits / DRAWN * 4 / 5..commits / DRAWN * 6 / 5).contains(&drawn), "{drawn}");
        let mut notes = noted("");
        notes.note("a b", "inputs", "printed");
        let believed = |commit: usize| {
            notes.commit = commit.to_string();
            notes.has("a b", "inputs", "printed")
        };
        assert_eq!((0..commits).map(believed).filter(|is| !is).count(), drawn);
    }

    #[test]
    fn faults_are_found_by_line() {
        assert_eq!(parse("").map(|lines| lines.len()), Ok(0));
        let good = format!("{HEAD}\na b\t1\t2\n");
        assert_eq!(parse(&good).unwrap()["a b"], ["1", "2"]);
        assert_eq!(parse("other\n"), Err(1));
        assert_eq!(parse(&format!("{good}c d\t3\n")), Err(3));
    }
}
