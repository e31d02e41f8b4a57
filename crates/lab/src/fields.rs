//! Typed reading of tables, with errors that say what would be right.

use crate::error::Fault;
use crate::tree::{Node, Table, Value};
use anysched_core::{CpuSet, Span};
use anysched_workload::nearest::nearest;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

/// A table whose keys are known.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) table: &'a Table,
    at: &'a Range<usize>,
    what: &'a str,
}

impl<'a> Fields<'a> {
    /// `node` as `what`, which has `keys` and no others.
    pub(crate) fn of(node: &'a Node, what: &'a str, keys: &[&str]) -> Result<Fields<'a>, Fault> {
        let Some(table) = node.as_table() else {
            return Err(Fault::at(&node.at, format!("{what} is a table, not {}", node.shown())));
        };
        for entry in &table.0 {
            if !keys.contains(&entry.key.as_str()) {
                let message = format!("no key `{}` in {what}", entry.key);
                return Err(Fault::at(&entry.key_at, message)
                    .label("unknown key")
                    .help(hint(&entry.key, keys.iter().copied())));
            }
        }
        Ok(Fields { table, at: &node.at, what })
    }

    /// Where the table is.
    pub(crate) fn at(&self) -> &'a Range<usize> {
        self.at
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    /// The value of `key`, which has to be there; `example` shows one.
    pub(crate) fn need(&self, key: &str, example: &str) -> Result<&'a Node, Fault> {
        self.get(key).ok_or_else(|| {
            Fault::at(self.at, format!("{} has no `{key}`", self.what))
                .label(format!("`{key}` is missing"))
                .help(format!("for example `{key} = {example}`"))
        })
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        self.get(key).map(|node| text(node, key)).transpose()
    }

    pub(crate) fn span(&self, key: &str) -> Result<Option<Span>, Fault> {
        self.get(key).map(|node| span(node, key)).transpose()
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Fault> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match node.value {
            Value::Flag(flag) => Ok(Some(flag)),
            _ => Err(wrong(node, key, "true or false")),
        }
    }

    pub(crate) fn whole<T: Whole>(
        &self,
        key: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, Fault> {
        self.get(key).map(|node| whole(node, key, range)).transpose()
    }

    pub(crate) fn real(&self, key: &str) -> Result<Option<f64>, Fault> {
        self.get(key).map(|node| real(node, key)).transpose()
    }

    /// The entries of a list of tables; none if the key is absent.
    pub(crate) fn tables(&self, key: &str) -> Result<&'a [Node], Fault> {
        let Some(node) = self.get(key) else { return Ok(&[]) };
        let tables =
            node.as_list().filter(|list| list.iter().all(|item| item.as_table().is_some()));
        tables.ok_or_else(|| {
            Fault::at(&node.at, format!("`{key}` is a list of tables, not {}", node.shown()))
                .help(format!("each begins with a line `[[{key}]]`"))
        })
    }
}

/// A hint at the names that there are, the nearest first if one is near.
pub(crate) fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let all = || names.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match nearest(wrong, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", all()),
    }
}

fn wrong(node: &Node, key: &str, wanted: &str) -> Fault {
    Fault::at(&node.at, format!("`{key}` is {wanted}, not {}", node.shown()))
}

pub(crate) fn text<'a>(node: &'a Node, key: &str) -> Result<&'a str, Fault> {
    node.as_text().ok_or_else(|| wrong(node, key, "a text in quotes"))
}

/// A set of CPUs as text, or the number of one.
pub(crate) fn cpus(node: &Node, key: &str) -> Result<CpuSet, Fault> {
    let text = match &node.value {
        Value::Integer(cpu) => cpu.to_string(),
        _ => text(node, key)?.to_string(),
    };
    CpuSet::parse(&text).map_err(|why| Fault::at(&node.at, format!("`{key}` = \"{text}\": {why}")))
}

/// A time as text, or a plain 0.
pub(crate) fn span(node: &Node, key: &str) -> Result<Span, Fault> {
    match &node.value {
        Value::Text(text) => match Span::parse(text) {
            Ok(Span::MAX) => Err(wrong(node, key, "a time that passes")
                .help(format!("for no limit, leave `{key}` out"))),
            Ok(span) => Ok(span),
            Err(why) => Err(Fault::at(&node.at, format!("`{key}` = {}: {why}", node.shown()))),
        },
        Value::Integer(0) => Ok(Span::ZERO),
        Value::Integer(_) | Value::Real(_) => Err(wrong(node, key, "a time with a unit")
            .help(format!("in quotes, for example `{key} = \"{node}ms\"`"))),
        _ => Err(wrong(node, key, "a time such as \"3ms\"")),
    }
}

/// Integers that keys may have.
pub(crate) trait Whole: TryFrom<i64> + PartialOrd + Display + Copy {}
impl<T: TryFrom<i64> + PartialOrd + Display + Copy> Whole for T {}

pub(crate) fn whole<T: Whole>(
    node: &Node,
    key: &str,
    range: RangeInclusive<T>,
) -> Result<T, Fault> {
    let out_of_range = |number: &dyn Display| {
        let (start, end) = (range.start(), range.end());
        Fault::at(&node.at, format!("`{key}` = {number} is out of range"))
            .help(format!("it goes from {start} to {end}"))
    };
    match &node.value {
        Value::Integer(number) => {
            let found = T::try_from(*number).ok().filter(|number| range.contains(number));
            found.ok_or_else(|| out_of_range(number))
        }
        // `--set` passes on as text what TOML has no number for.
        Value::Text(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            Err(match text.parse::<i64>() {
                Ok(_) => wrong(node, key, "a whole number")
                    .help(format!("without quotes: `{key} = {text}`")),
                Err(_) => out_of_range(text),
            })
        }
        _ => Err(wrong(node, key, "a whole number")),
    }
}

pub(crate) fn real(node: &Node, key: &str) -> Result<f64, Fault> {
    match node.value {
        Value::Integer(number) => Ok(number as f64),
        Value::Real(number) => Ok(number),
        _ => Err(wrong(node, key, "a number")),
    }
}
