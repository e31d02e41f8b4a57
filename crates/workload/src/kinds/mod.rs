//! The kinds of load that experiments can have, and how each is read.
//!
//! A kind is a file that declares its keys, and a line in the list of
//! [`generate`] or [`import`]. Everything else that needs to know kinds uses [`KINDS`].

mod given;
mod key;
mod needs;
pub(crate) mod reader;
mod source;
#[cfg(test)]
mod tests;

pub use given::{Given, Place, Refusal, Table, Whole, hint};
pub use key::{Calibrated, Each, Fallback, FileName, KeyInfo, KeyType, Picoseconds, Value, Words};
pub(crate) use key::{ONE_OR_EACH, words};
pub use needs::Needs;
pub use reader::{Files, Keys, Kind, ReadFile, Reader, read};
pub(crate) use reader::{keys, read_options};
pub use source::{LoadSpec, Pings, Source};

use crate::{generate, import};

/// A kind of load.
#[derive(Clone, Copy, Debug)]
pub struct KindInfo {
    /// The value of `kind`.
    pub name: &'static str,
    /// Other values that `kind` may have for it.
    pub aliases: &'static [&'static str],
    /// What it is, in one line.
    pub summary: &'static str,
    /// The keys that only it has.
    pub own: &'static [KeyInfo],
    /// The keys that it shares with other kinds.
    pub shared: &'static [KeyInfo],
    /// Reads one.
    pub read: ReadKind,
}

/// Reads a load whose kind is known.
///
/// Errors: a value that cannot be used.
pub type ReadKind = fn(&mut Reader<'_>) -> Result<LoadSpec, Refusal>;

impl KindInfo {
    /// The keys that it takes in addition to `kind`.
    pub fn keys(&self) -> impl Iterator<Item = &'static KeyInfo> + Clone {
        self.own.iter().chain(self.shared)
    }
}

/// All kinds of load: those that are generated, and those that are read from files.
pub static KINDS: &[KindInfo] =
    &join::<{ generate::KINDS.len() + import::KINDS.len() }>(generate::KINDS, import::KINDS);

/// The elements of both lists, of which there are `N`.
const fn join<const N: usize>(first: &[KindInfo], second: &[KindInfo]) -> [KindInfo; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// The kind called `name`, or something like it: case, spaces and underscores do not matter.
pub fn kind(name: &str) -> Option<&'static KindInfo> {
    let name = canonical(name);
    KINDS.iter().find(|kind| kind.name == name || kind.aliases.contains(&name.as_str()))
}

fn canonical(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '_'], "-")
}

/// The entry of a kind whose keys are `T`.
pub(crate) const fn line_of<T: Kind>(
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
) -> KindInfo {
    KindInfo { name, aliases, summary, own: T::OWN, shared: T::SHARED, read: read_keys::<T> }
}

fn read_keys<T: Kind>(reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
    T::read(reader)?.load(reader)
}
