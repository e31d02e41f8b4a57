//! What formats of lines have in common: a first line that names format and version, and a line end
//! after every line, so that a truncated text is noticed.

use crate::{At, WireError, escape};
use alloc::format;
use alloc::string::String;

/// The most bytes of a name.
pub(crate) const LONGEST_NAME: usize = 64;

/// A format of lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextFormat {
    /// What errors call it.
    pub name: &'static str,
    /// The first word of the first line; the version follows.
    pub magic: &'static str,
    pub version: u32,
    /// The most bytes.
    pub longest: usize,
}

impl TextFormat {
    pub fn error(&self, at: At, value: &str, why: impl Into<String>) -> WireError {
        WireError::new(self.name, at, value, why)
    }

    /// `text`, if it is a name: a word that needs no escaping, of [`LONGEST_NAME`] bytes at most.
    pub fn name<'a>(&self, text: &'a str, at: At) -> Result<&'a str, WireError> {
        if !is_name(text) {
            let why =
                "a name is wanted: a word without white space, control characters and backslashes";
            return Err(self.error(at, text, why));
        }
        if text.len() > LONGEST_NAME {
            return Err(self.error(at, text, format!("a name has {LONGEST_NAME} bytes at most")));
        }
        Ok(text)
    }

    /// A name and a value, which is the rest of the line, escaped.
    pub fn pair(&self, text: &str, at: At) -> Result<(String, String), WireError> {
        let error = |why| self.error(at, text, why);
        let (name, value) = text.split_once(' ').ok_or_else(|| error("a value is wanted"))?;
        let name = self.name(name, at)?;
        let value = escape::unescape(value).ok_or_else(|| {
            error("a value is wanted; `\\-` is the empty one, and `\\\\` is a backslash")
        })?;
        Ok((name.into(), value))
    }

    /// That a line with this word is missing.
    pub fn missing(&self, word: &str) -> WireError {
        self.error(At::Whole, "", format!("there is no line \"{word}\""))
    }

    /// The first line.
    pub fn begin(&self) -> String {
        format!("{} {}\n", self.magic, self.version)
    }

    /// `text`, written, unless it is too long.
    pub fn end(&self, text: String) -> Result<String, WireError> {
        if text.len() <= self.longest { Ok(text) } else { Err(self.too_long(text.len())) }
    }

    /// The lines after the first, with their numbers.
    pub fn lines<'a>(
        &self,
        bytes: &'a [u8],
    ) -> Result<impl Iterator<Item = (usize, &'a str)>, WireError> {
        let text = self.text(bytes)?;
        let Some(lines) = text.strip_suffix('\n') else {
            let last = text.rsplit('\n').next().unwrap_or_default();
            let at = At::Line(text.split('\n').count());
            return Err(self.error(at, last, "the line has no end: the text is cut off"));
        };
        Ok(lines.split('\n').enumerate().skip(1).map(|(line, text)| (line + 1, text)))
    }

    /// All of it, if it is a text of this format and version.
    pub fn text<'a>(&self, bytes: &'a [u8]) -> Result<&'a str, WireError> {
        if bytes.len() > self.longest {
            return Err(self.too_long(bytes.len()));
        }
        let text = core::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            self.error(At::Byte(at), &format!("{:#04x}", bytes[at]), "this is not UTF-8")
        })?;
        let (first, _) = text.split_once('\n').unwrap_or((text, ""));
        self.check_version(first)?;
        Ok(text)
    }

    fn check_version(&self, first: &str) -> Result<(), WireError> {
        let TextFormat { magic, version, .. } = self;
        let error = |why| Err(self.error(At::Line(1), first, why));
        match first.split_once(' ') {
            Some((word, found)) if word == *magic => match number(found) {
                Some(found) if found == u64::from(*version) => Ok(()),
                Some(_) => error(other_version(*version)),
                None => error(format!("a version, a whole number, is wanted behind {magic}")),
            },
            _ => error(format!("\"{magic} {version}\" is wanted in the first line")),
        }
    }

    fn too_long(&self, length: usize) -> WireError {
        let why = format!("bytes are too many, {} are the most", self.longest);
        self.error(At::Whole, &format!("{length}"), why)
    }
}

/// What to do about a version that is not the reader's.
pub(crate) fn other_version(version: u32) -> String {
    format!("this end reads version {version}; build program and image from the same sources")
}

/// A whole number: digits and nothing else.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Whether `text` is a name that needs no escaping: a word without white space, control characters
/// or backslashes.
fn is_name(text: &str) -> bool {
    let other = |char: char| char.is_whitespace() || char.is_control() || char == '\\';
    !text.is_empty() && !text.contains(other)
}
