//! Importers: recordings, rt-app files and job logs become [`Model`](crate::model::Model)s.
//!
//! All take any reader, plain or compressed with gzip (seen by its first two bytes), and none of
//! them opens a file: the caller knows its name and adds it to the errors. Input is not trusted:
//! arbitrary bytes give a model or an [`ImportError`].

pub mod ftrace;
mod json;
pub mod rtapp;
pub mod swf;

use flate2::bufread::MultiGzDecoder;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Why an input was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The line, from 1; 0 if it is about no one line.
    pub line: u64,
    /// The column, from 1; 0 if it is about the whole line.
    pub column: u64,
    /// What is wrong and what would be right.
    pub what: String,
}

impl ImportError {
    pub(crate) fn at(line: u64, column: u64, what: impl Into<String>) -> ImportError {
        ImportError { line, column, what: what.into() }
    }

    pub(crate) fn line(line: u64, what: impl Into<String>) -> ImportError {
        ImportError::at(line, 0, what)
    }

    pub(crate) fn whole(what: impl Into<String>) -> ImportError {
        ImportError::at(0, 0, what)
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}", self.what),
            (line, 0) => write!(f, "line {line}: {}", self.what),
            (line, column) => write!(f, "line {line}, column {column}: {}", self.what),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> ImportError {
        ImportError::whole(format!("cannot be read: {error}"))
    }
}

/// The text of `input`, which may be compressed with gzip.
///
/// Errors: the first two bytes cannot be read.
pub fn open<'a>(mut input: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut magic = Vec::new();
    input.by_ref().take(2).read_to_end(&mut magic)?;
    let zipped = magic == [0x1f, 0x8b];
    let whole = BufReader::with_capacity(1 << 16, Cursor::new(magic).chain(input));
    Ok(if zipped {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    })
}

/// The longest line that is read; no format here has longer ones.
const MAX_LINE: usize = 1 << 16;

/// The lines of a text, one at a time.
pub(crate) struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(input: impl Read + 'a) -> io::Result<Lines<'a>> {
        Ok(Lines { input: open(input)?, line: Vec::new(), number: 0 })
    }

    /// The next line without its end, and its number from 1. What is not UTF-8 is replaced.
    ///
    /// Errors: those of the input; a line of more than 65 536 bytes.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Cow<'_, str>)>, ImportError> {
        self.line.clear();
        self.number += 1;
        let number = self.number;
        let mut limited = self.input.by_ref().take(MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        match read.map_err(|error| ImportError::line(number, format!("cannot be read: {error}")))? {
            0 => return Ok(None),
            length if length > MAX_LINE => {
                let what = format!("longer than {MAX_LINE} bytes: this is not such a text");
                return Err(ImportError::line(number, what));
            }
            _ => {}
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some((number, String::from_utf8_lossy(line))))
    }
}

/// A part of an input for an error message: short, and without control characters.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 120;
    let mut shown = String::new();
    for (number, character) in text.trim().chars().enumerate() {
        match character {
            _ if number == MOST => {
                shown.push('…');
                break;
            }
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn all(input: &[u8]) -> Vec<(u64, String)> {
        let mut lines = Lines::of(input).unwrap();
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            all.push((number, line.into_owned()));
        }
        all
    }

    #[test]
    fn lines_of_plain_and_of_compressed_text_are_the_same() {
        let text = b"one\r\n\ntwo \xff\nthree";
        let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
        zip.write_all(text).unwrap();
        let expected = [(1, "one"), (2, ""), (3, "two \u{fffd}"), (4, "three")];
        let expected = expected.map(|(number, line)| (number, line.to_string()));
        assert_eq!(all(text), expected);
        assert_eq!(all(&zip.finish().unwrap()), expected);
    }

    #[test]
    fn a_line_is_bounded() {
        let mut lines = Lines::of(io::repeat(b'x')).unwrap();
        let error = lines.next().unwrap_err();
        assert_eq!(error.to_string(), "line 1: longer than 65536 bytes: this is not such a text");
    }

    #[test]
    fn broken_compression_is_an_error_with_a_line() {
        let mut lines = Lines::of(&b"\x1f\x8b\x08\x00garbage"[..]).unwrap();
        assert!(lines.next().unwrap_err().to_string().starts_with("line 1: cannot be read: "));
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(" a\tb\u{7} "), "a\\tb\\u{7}");
        assert_eq!(excerpt(&"x".repeat(200)).chars().count(), 121);
    }
}
