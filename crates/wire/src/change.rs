//! A parameter that changes while a policy runs: what its module or its agent reads, and answers.
//!
//! | line | means |
//! |---|---|
//! | `anysched-change 1` | the first line of both: the format and its version |
//! | `set` *name* *value* | asks for it |
//! | `done` | the answer: from now on it has that value |
//! | `refused` *why* | the answer: everything is as it was |
//!
//! One line follows the first. Names and values are as in the [boot text](crate::boot).

use crate::text::TextFormat;
use crate::{At, WireError, escape};
use alloc::format;
use alloc::string::String;

/// The most bytes of the text.
pub const LONGEST: usize = 1 << 13;

const FORMAT: TextFormat =
    TextFormat { name: "change", magic: "anysched-change", version: 1, longest: LONGEST };

/// What is asked or answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The parameter of this name is to have this value.
    Set(String, String),
    /// It has.
    Done,
    /// It has not, and why.
    Refused(String),
}

impl Change {
    /// The text.
    ///
    /// Errors: the name is no word, or the text is too long.
    pub fn write(&self) -> Result<String, WireError> {
        let line = match self {
            Change::Set(name, value) => {
                let name = FORMAT.name(name, At::Field("parameter"))?;
                format!("set {name} {}", escape::rest(value))
            }
            Change::Done => "done".into(),
            Change::Refused(why) => format!("refused {}", escape::rest(why)),
        };
        FORMAT.end(format!("{}{line}\n", FORMAT.begin()))
    }

    /// Reads a text.
    ///
    /// Errors: it is of another version, is cut off, or has no line that means something, or more.
    pub fn read(text: &[u8]) -> Result<Change, WireError> {
        let mut lines = FORMAT.lines(text)?;
        let (number, line) = lines.next().ok_or_else(|| FORMAT.missing("set"))?;
        if let Some((number, more)) = lines.next() {
            return Err(FORMAT.error(At::Line(number), more, "one line is all that there may be"));
        }
        let at = At::Line(number);
        let (word, rest) = line.split_once(' ').map_or((line, None), |(w, r)| (w, Some(r)));
        match (word, rest) {
            ("set", Some(rest)) => {
                FORMAT.pair(rest, at).map(|(name, value)| Change::Set(name, value))
            }
            ("done", None) => Ok(Change::Done),
            ("refused", Some(why)) => escape::unescape(why)
                .map(Change::Refused)
                .ok_or_else(|| FORMAT.error(at, why, "text is wanted")),
            _ => Err(FORMAT.error(at, line, "set NAME VALUE, done or refused WHY is wanted")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_by_hand() {
        for (change, line) in [
            (Change::Set("grouping".into(), "0-3;4-7".into()), "set grouping 0-3;4-7"),
            (Change::Set("a".into(), "1\n2".into()), "set a 1\\n2"),
            (Change::Done, "done"),
            (Change::Refused("no: \\".into()), "refused no: \\\\"),
        ] {
            let text = format!("anysched-change 1\n{line}\n");
            assert_eq!(change.write().unwrap(), text);
            assert_eq!(Change::read(text.as_bytes()), Ok(change));
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for wrong in ["", "set a", "set a b\ndone", "done it", "refused", "boats 3"] {
            let text = format!("anysched-change 1\n{wrong}\n");
            assert!(Change::read(text.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Change::read(b"anysched-change 1\n").is_err(), "nothing is asked");
        assert!(Change::read(b"anysched-change 1\ndone").is_err(), "cut off");
        assert!(Change::read(b"anysched-change 2\ndone\n").is_err());
        assert!(Change::Set("a b".into(), String::new()).write().is_err());
    }
}
