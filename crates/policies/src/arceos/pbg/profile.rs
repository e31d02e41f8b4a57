//! Profiles and their text form.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use anysched_core::params::{ParamError, Value};
use anysched_core::time::Span;

/// What identifies a task. The two ways do not mix: a task that has a key of its own is never known
/// by its number, though it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// How many tasks had been created before it in the run. In text `7`.
    Created(u32),
    /// [`TaskParams::key`](anysched_core::TaskParams::key). In text `k7`.
    Own(u32),
}

/// What a task with this key does in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which task.
    pub key: Key,
    /// CPU time that it uses.
    pub time: Span,
    /// How often it is dispatched: how often it yields, blocks or ends. With 0, its tasks are not
    /// planned.
    pub dispatches: u64,
}

/// What is known of a program's tasks, a record per key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Profile {
    /// By ascending key.
    records: Vec<Record>,
}

impl Profile {
    /// With these records, whose keys differ.
    pub(super) fn of(records: impl Iterator<Item = Record>) -> Profile {
        let mut records: Vec<Record> = records.collect();
        records.sort_unstable_by_key(|record| record.key);
        Profile { records }
    }

    /// The records by ascending key.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Takes the records of `newer` over, in place of those with the same keys.
    pub(super) fn update(&mut self, newer: Profile) {
        self.records.retain(|record| {
            newer.records.binary_search_by_key(&record.key, |newer| newer.key).is_err()
        });
        self.records.extend(newer.records);
        self.records.sort_unstable_by_key(|record| record.key);
    }

    /// Reads records `KEY=TIME/DISPATCHES` with commas, spaces or line ends between them; the rest
    /// of a line from `#` on is a comment.
    ///
    /// Errors: the text of the record that is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Profile, (&str, &'static str)> {
        let separates = |c: char| c == ',' || c.is_whitespace();
        let code = text.lines().map(|line| line.split_once('#').map_or(line, |(code, _)| code));
        let words = code.flat_map(|line| line.split(separates)).filter(|word| !word.is_empty());
        let mut records = Vec::new();
        for word in words {
            let record = parse_record(word).map_err(|why| (word, why))?;
            records.push((record, records.len(), word));
        }
        // The later of two with the same key is reported. A stable sort would take 4 KiB of the
        // stack, which a kernel may not have.
        records.sort_unstable_by_key(|&(record, place, _)| (record.key, place));
        for pair in records.windows(2) {
            if pair[0].0.key == pair[1].0.key {
                return Err((pair[1].2, "there is another record with this key; keep one of them"));
            }
        }
        Ok(Profile { records: records.into_iter().map(|(record, ..)| record).collect() })
    }
}

fn parse_record(word: &str) -> Result<Record, &'static str> {
    let why = "a record is KEY=TIME/DISPATCHES without spaces, for example 0=12.5ms/100000";
    let (key, (time, dispatches)) = word
        .split_once('=')
        .and_then(|(key, rest)| Some((key, rest.split_once('/')?)))
        .ok_or(why)?;
    Ok(Record {
        key: parse_key(key)?,
        time: Span::parse(time)?,
        dispatches: digits(dispatches).ok_or("the dispatches are a whole number below 2^64")?,
    })
}

fn parse_key(text: &str) -> Result<Key, &'static str> {
    let key = match text.strip_prefix('k') {
        Some(own) => digits(own).map(Key::Own),
        None => digits(text).map(Key::Created),
    };
    key.ok_or("the key is how many tasks are created before, or k and a task's own key, below 2^32")
}

/// A number without a sign.
fn digits<T: core::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Created(number) => write!(f, "{number}"),
            Key::Own(key) => write!(f, "k{key}"),
        }
    }
}

impl fmt::Display for Profile {
    /// What [`Profile::parse`] reads, on one line without spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Record { key, time, dispatches }) in self.records.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{key}={time}/{dispatches}")?;
        }
        Ok(())
    }
}

impl Value for Profile {
    const KIND: &'static str = "records";
    fn parse(text: &str) -> Result<Profile, &'static str> {
        Profile::parse(text).map_err(|(_, why)| why)
    }
    fn read(name: &str, text: &str) -> Result<Profile, ParamError> {
        Profile::parse(text).map_err(|(record, why)| ParamError::Value {
            name: name.into(),
            value: record.into(),
            why,
        })
    }
    fn show(&self) -> String {
        self.to_string()
    }
}
