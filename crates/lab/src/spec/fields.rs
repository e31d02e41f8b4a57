//! Typed reading of tables, with errors that say what would be right.

use crate::spec::error::{Fault, Faults};
use crate::spec::keys::{self, Section};
use crate::spec::tree::{Entry, Node, Table, Value};
use anysched_core::{CpuSet, Span};
pub(crate) use anysched_workload::kinds::hint;
use anysched_workload::kinds::{Given, Refusal, Whole};
use anysched_workload::nearest::nearest;
use std::ops::{Range, RangeInclusive};

/// A table whose keys are known.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) table: &'a Table,
    at: &'a Range<usize>,
    what: &'static str,
}

impl<'a> Fields<'a> {
    /// `node` as a table of the keys of `section`.
    ///
    /// Errors: it is no table, or has keys that the section does not.
    pub(crate) fn of(node: &'a Node, section: &Section) -> Result<Fields<'a>, Fault> {
        Fields::named(node, section.name, section.names())
    }

    /// `node` as `what`, which has `keys` and no others.
    pub(crate) fn named<'k>(
        node: &'a Node,
        what: &'static str,
        keys: impl Iterator<Item = &'k str> + Clone,
    ) -> Result<Fields<'a>, Fault> {
        let fields = Fields::any(node, what)?;
        fields.refuse_others(keys)?;
        Ok(fields)
    }

    /// `node` as `what`, whatever its keys are.
    pub(crate) fn any(node: &'a Node, what: &'static str) -> Result<Fields<'a>, Fault> {
        let Some(table) = node.as_table() else {
            return Err(Fault::at(&node.at, format!("{what} is a table, not {}", node.shown())));
        };
        Ok(Fields { table, at: &node.at, what })
    }

    /// Errors: it has keys besides these, all of them.
    pub(crate) fn refuse_others<'k>(
        &self,
        keys: impl Iterator<Item = &'k str> + Clone,
    ) -> Result<(), Fault> {
        let mut faults = Faults::default();
        for entry in &self.table.0 {
            if keys.clone().all(|key| key != entry.key) {
                let message = format!("no key `{}` in {}", entry.key, self.what);
                let fault = Fault::at(&entry.key_at, message).label("unknown key");
                faults.add(fault.help(self.hint(&entry.key, keys.clone())));
            }
        }
        faults.result()
    }

    /// What may be meant by `key`: one of these, or at the top one of a table of the file.
    fn hint<'k>(&self, key: &str, keys: impl Iterator<Item = &'k str> + Clone) -> String {
        let is_top = self.what == keys::EXPERIMENT.name;
        let mut tables = keys::SECTIONS.iter().filter(|table| is_top && !table.path.is_empty());
        match tables.find(|table| table.key(key).is_some()) {
            Some(table) if nearest(key, keys.clone()).is_none() => {
                format!("`{key}` is a key of {}", table.name)
            }
            _ => hint(key, keys),
        }
    }

    /// What goes before a key of the table where it heads a table itself: `machine.`.
    fn path(&self) -> String {
        match self.what.starts_with('[') {
            true => format!("{}.", self.what.trim_matches(['[', ']'])),
            false => String::new(),
        }
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
                .help(format!("each begins with a line `[[{}{key}]]`", self.path()))
        })
    }
}

/// What `read` makes of a table.
///
/// Errors: all that is wrong with its entries and with those of tables in it: what is wrong with
/// one is left out to find the next.
pub(crate) fn read_all<T>(
    node: &Node,
    mut read: impl FnMut(&Node) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut last = match read(node) {
        Ok(read) => return Ok(read),
        Err(fault) => fault,
    };
    let (mut all, mut left, mut holes) = (last.clone(), node.clone(), Vec::new());
    while leave_out(&mut left, &last, &mut holes) {
        let Err(fault) = read(&left) else { break };
        // That something is missing now is no fault of the file.
        let told = |at: &Range<usize>| is_below(&left, at) && !holes.contains(at);
        if let Some(fault) = fault.clone().about(told) {
            all = all.and(fault);
        }
        last = fault;
    }
    Err(all)
}

/// Leaves the innermost entries and tables of lists out of `node` that `fault` is about, and adds
/// the places of what they are missing from to `holes`. Whether there was one.
fn leave_out(node: &mut Node, fault: &Fault, holes: &mut Vec<Range<usize>>) -> bool {
    let (mut found, mut missing) = (false, false);
    let mut keeps = |inner: &mut Node, is_about: bool| {
        let is_inside = leave_out(inner, fault, holes);
        found |= is_inside || is_about;
        missing |= is_about && !is_inside;
        is_inside || !is_about
    };
    match &mut node.value {
        Value::Table(table) => table.0.retain_mut(|entry| {
            let is_about = is_about(fault, entry);
            keeps(&mut entry.node, is_about)
        }),
        Value::List(items) => items.retain_mut(|item| {
            let is_about = item.as_table().is_some() && fault.is_in(&item.at);
            keeps(item, is_about)
        }),
        _ => {}
    }
    if missing {
        holes.push(node.at.clone());
    }
    found
}

/// Whether `at` is in an entry of a table, or of one in it.
fn is_below(node: &Node, at: &Range<usize>) -> bool {
    let inside = |place: &Range<usize>| place.start <= at.start && at.end <= place.end;
    match &node.value {
        Value::Table(table) => table.0.iter().any(|entry| {
            inside(&entry.key_at) || inside(&entry.node.at) || is_below(&entry.node, at)
        }),
        Value::List(items) => items.iter().any(|item| inside(&item.at) || is_below(item, at)),
        _ => false,
    }
}

/// Whether a fault is about an entry, its key or its value.
fn is_about(fault: &Fault, entry: &Entry) -> bool {
    fault.is_in(&entry.key_at) || fault.is_in(&entry.node.at)
}

/// What `read` makes of the value of `node`.
fn read<T>(node: &Node, read: impl FnOnce(Given<'_>) -> Result<T, Refusal>) -> Result<T, Fault> {
    read(node.given()).map_err(|refusal| Fault::refused(&node.at, refusal))
}

pub(crate) fn text<'a>(node: &'a Node, key: &str) -> Result<&'a str, Fault> {
    node.given().text(key).map_err(|refusal| Fault::refused(&node.at, refusal))
}

/// A name: a text on one line.
pub(crate) fn name<'a>(node: &'a Node, key: &str) -> Result<&'a str, Fault> {
    node.given().name(key).map_err(|refusal| Fault::refused(&node.at, refusal))
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
