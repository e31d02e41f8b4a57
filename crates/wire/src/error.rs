//! The error of all formats.

use alloc::string::String;
use core::fmt;

/// Why something cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// The format.
    pub format: &'static str,
    /// The place in it.
    pub at: At,
    /// What is there, or the beginning of it.
    pub value: String,
    /// What is wrong with it, or what is expected instead.
    pub why: String,
}

/// A place in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// All of it.
    Whole,
    /// A line, from 1.
    Line(usize),
    /// A byte, from 0.
    Byte(usize),
    /// A field that is to be written.
    Field(&'static str),
}

/// How many characters of a value errors show.
const SHOWN: usize = 80;

impl WireError {
    pub(crate) fn new(
        format: &'static str,
        at: At,
        value: &str,
        why: impl Into<String>,
    ) -> WireError {
        let mut shown: String = value.chars().take(SHOWN).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        WireError { format, at, value: shown, why: why.into() }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.format)?;
        match self.at {
            At::Whole => {}
            At::Line(line) => write!(f, ", line {line}")?,
            At::Byte(byte) => write!(f, ", byte {byte}")?,
            At::Field(field) => write!(f, ", {field}")?,
        }
        write!(f, ": {:?}: {}", self.value, self.why)
    }
}

impl core::error::Error for WireError {}
