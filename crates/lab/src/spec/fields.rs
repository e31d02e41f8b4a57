//! Typed reading of tables, with errors that say what would be right.

use crate::spec::error::Fault;
use crate::spec::tree::{Node, Table};
use anysched_core::{CpuSet, Span};
pub(crate) use anysched_workload::kinds::hint;
use anysched_workload::kinds::{Given, Refusal, Whole};
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
        self.get(key).map(|node| read(node, |given| given.flag(key))).transpose()
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

/// What `read` makes of the value of `node`.
fn read<T>(node: &Node, read: impl FnOnce(Given<'_>) -> Result<T, Refusal>) -> Result<T, Fault> {
    read(node.given()).map_err(|refusal| Fault::refused(&node.at, refusal))
}

pub(crate) fn text<'a>(node: &'a Node, key: &str) -> Result<&'a str, Fault> {
    node.given().text(key).map_err(|refusal| Fault::refused(&node.at, refusal))
}

/// A set of CPUs as text, or the number of one.
pub(crate) fn cpus(node: &Node, key: &str) -> Result<CpuSet, Fault> {
    read(node, |given| given.cpus(key))
}

/// A time as text, or a plain 0.
pub(crate) fn span(node: &Node, key: &str) -> Result<Span, Fault> {
    read(node, |given| given.span(key))
}

pub(crate) fn whole<T: Whole>(
    node: &Node,
    key: &str,
    range: RangeInclusive<T>,
) -> Result<T, Fault> {
    read(node, |given| given.whole(key, range))
}

pub(crate) fn real(node: &Node, key: &str) -> Result<f64, Fault> {
    read(node, |given| given.real(key))
}
