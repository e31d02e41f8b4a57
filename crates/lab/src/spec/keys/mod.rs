//! The keys of an experiment file: what each takes, what applies without it, what it does. What
//! is read goes by these tables, and so do the reference and the schema.
//!
//! Keys of loads are those of [`anysched_workload::KINDS`], parameters those of the policies.

mod table;

pub use table::SECTIONS;
pub(crate) use table::*;

use anysched_workload::kinds::KeyType;
use std::fmt;

/// A table of an experiment file.
#[derive(Debug)]
pub struct Section {
    /// What it is called in errors and in the reference: `[machine]`.
    pub name: &'static str,
    /// The path to it, as that of a key: `machine`; empty for the file itself.
    pub path: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Which other keys it takes, in words; empty: none.
    pub others: &'static str,
}

/// A key of an experiment file.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What applies without it, in words or as it would be written.
    pub default: Default,
    /// A line that sets it, or a table with lines below it.
    pub example: &'static str,
    /// What it does, in a sentence or two.
    pub what: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A single value, or one of those that loads have too.
    Value(KeyType),
    /// A number within a range.
    Between(f64, f64),
    /// A list of texts.
    Texts,
    /// One of a few words, or a list of them.
    Words(&'static [&'static str]),
    /// A list of such numbers, one for each CPU.
    WholeEach(i64, i64),
    /// A set of CPUs, or a list with one for each virtual CPU.
    CpusEach,
    /// Two numbers, the least and the largest.
    Range,
    /// A policy by name, a table with a name and parameters, or a list of such.
    Policies,
    /// A policy by name, or a table with a name and parameters.
    Policy,
    /// The table of this path.
    Table(&'static str),
    /// A list of tables, each of this path.
    Tables(&'static str),
    /// A list of loads.
    Loads,
    /// A table of values of axes.
    Rows,
}

/// What applies without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// It is needed.
    Needed,
    /// This value, as it is written in a file.
    Value(&'static str),
    /// What these words say.
    Words(&'static str),
}

impl Section {
    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// In words, as in a table of keys.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Value(kind) => kind.fmt(f),
            Takes::Between(least, most) => write!(f, "number, {least} to {most}"),
            Takes::Texts => f.write_str("list of texts"),
            Takes::Words(words) => write!(f, "{}, or a list", words.join(" | ")),
            Takes::WholeEach(least, most) => write!(f, "list of {least} to {most}, one per CPU"),
            Takes::CpusEach => f.write_str("CPUs, or a list with one for each virtual CPU"),
            Takes::Range => f.write_str("[least, largest]"),
            Takes::Policies => f.write_str("policy, or a list"),
            Takes::Policy => f.write_str("policy"),
            Takes::Table(_) => f.write_str("table"),
            Takes::Tables(_) => f.write_str("list of tables"),
            Takes::Loads => f.write_str("list of loads"),
            Takes::Rows => f.write_str("table of axis values"),
        }
    }
}

impl Default {
    /// In words; `needed` for a key that is.
    pub fn words(self) -> &'static str {
        match self {
            Default::Needed => "needed",
            Default::Value(text) | Default::Words(text) => text,
        }
    }
}

/// The table that a path leads to, as `machine.migration`: positions in lists are left out.
pub fn section(path: &str) -> Option<&'static Section> {
    let parts = path.split('.').filter(|part| part.parse::<u32>().is_err());
    let path = parts.collect::<Vec<_>>().join(".");
    SECTIONS.iter().copied().find(|section| section.path == path)
}
