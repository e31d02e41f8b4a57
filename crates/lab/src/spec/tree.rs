//! An experiment's values, each with its place in the file. Axes of a sweep replace some of
//! them, and the replaced value's place is then that of the axis value.

use crate::spec::error::Fault;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and the bytes of the file that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Real(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) Vec<Entry>);

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Range<usize>,
    pub(crate) node: Node,
}

/// Reads a TOML document.
pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        Fault::at(&at, format!("not TOML: {}", error.message()))
    })?;
    let at = document.span();
    Ok(Node { value: Value::Table(table(document.into_inner())?), at })
}

fn table(table: DeTable<'_>) -> Result<Table, Fault> {
    let entry = |(key, node): (Spanned<_>, _)| {
        let key_at = key.span();
        Ok(Entry { key: String::from(key.into_inner()), key_at, node: self::node(node)? })
    };
    let mut entries: Vec<Entry> = table.into_iter().map(entry).collect::<Result<_, _>>()?;
    entries.sort_by_key(|entry| entry.key_at.start);
    Ok(Table(entries))
}

fn node(node: Spanned<DeValue<'_>>) -> Result<Node, Fault> {
    let at = node.span();
    let value = match node.into_inner() {
        DeValue::String(text) => match text
            .chars()
            .find(|c| c.is_control() && !"\n\t\r".contains(*c))
        {
            None => Value::Text(text.into_owned()),
            Some(c) => {
                let message = format!("a text with the control character {}", c.escape_unicode());
                return Err(Fault::at(&at, message).help("terminals would obey it; leave it out"));
            }
        },
        DeValue::Integer(number) => {
            let value = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(value.map_err(|_| {
                Fault::at(&at, format!("{number} is too large"))
                    .help("whole numbers go up to 9223372036854775807")
            })?)
        }
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(value) if value.is_finite() => Value::Real(value),
            _ => return Err(Fault::at(&at, format!("{number} is not a finite number"))),
        },
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(date) => {
            return Err(Fault::at(&at, format!("no key takes a date such as {date}"))
                .help("times are lengths, written as text: \"3ms\""));
        }
        DeValue::Array(items) => {
            Value::List(items.into_iter().map(self::node).collect::<Result<_, _>>()?)
        }
        DeValue::Table(inner) => Value::Table(table(inner)?),
    };
    Ok(Node { value, at })
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Sets `key` to `node`, which comes from a key at `key_at`.
    pub(crate) fn set(&mut self, key: &str, key_at: &Range<usize>, node: Node) {
        match self.0.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => (entry.key_at, entry.node) = (key_at.clone(), node),
            None => self.0.push(Entry { key: key.to_string(), key_at: key_at.clone(), node }),
        }
    }
}

impl Node {
    /// A text.
    pub(crate) fn of_text(text: &str, at: &Range<usize>) -> Node {
        Node { value: Value::Text(text.to_string()), at: at.clone() }
    }

    pub(crate) fn empty_table(at: Range<usize>) -> Node {
        Node { value: Value::Table(Table::default()), at }
    }

    /// Has all of it be at `at`, in another text.
    pub(crate) fn place(&mut self, at: &Range<usize>) {
        self.at = at.clone();
        match &mut self.value {
            Value::List(list) => list.iter_mut().for_each(|node| node.place(at)),
            Value::Table(table) => {
                for entry in &mut table.0 {
                    entry.key_at = at.clone();
                    entry.node.place(at);
                }
            }
            _ => {}
        }
    }

    /// Moves all places `by` bytes back in the text.
    pub(crate) fn shift(&mut self, by: usize) {
        self.at = self.at.start + by..self.at.end + by;
        match &mut self.value {
            Value::List(list) => list.iter_mut().for_each(|node| node.shift(by)),
            Value::Table(table) => {
                for entry in &mut table.0 {
                    entry.key_at = entry.key_at.start + by..entry.key_at.end + by;
                    entry.node.shift(by);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for messages: a short value itself, otherwise its kind.
    pub(crate) fn shown(&self) -> String {
        self.given().shown()
    }

    /// The bytes of the file that hold `range` of this text, if it is written without escapes;
    /// otherwise those of the whole text.
    pub(crate) fn inside(&self, range: Range<usize>) -> Range<usize> {
        match &self.value {
            Value::Text(text) if self.at.len() == text.len() + 2 => {
                self.at.start + 1 + range.start..self.at.start + 1 + range.end
            }
            _ => self.at.clone(),
        }
    }

    /// Replaces what is at `path` (keys and list positions, from 0) or adds it if only its last
    /// key is missing.
    ///
    /// Errors, without a place: what of the path does not exist.
    pub(crate) fn replace(
        &mut self,
        path: &[&str],
        key_at: &Range<usize>,
        node: Node,
    ) -> Result<(), String> {
        let Some((first, rest)) = path.split_first() else {
            *self = node;
            return Ok(());
        };
        match &mut self.value {
            Value::Table(table) if rest.is_empty() => {
                table.set(first, key_at, node);
                Ok(())
            }
            Value::Table(table) => match table.0.iter_mut().find(|entry| entry.key == *first) {
                Some(entry) => entry.node.replace(rest, key_at, node),
                None => {
                    let mut inner = Node::empty_table(key_at.clone());
                    inner.replace(rest, key_at, node)?;
                    table.set(first, key_at, inner);
                    Ok(())
                }
            },
            Value::List(items) => {
                let count = items.len();
                let item = first.parse().ok().and_then(|index: usize| items.get_mut(index));
                let item = item.ok_or_else(|| match count {
                    0 => format!("there is no `{first}`; the list is empty"),
                    _ => format!("there is no `{first}`; positions go from 0 to {}", count - 1),
                })?;
                item.replace(rest, key_at, node)
            }
            _ => Err(format!("`{first}` would be inside {}, which has no parts", self.shown())),
        }
    }
}

/// The canonical form: independent of layout, comments and the order of keys.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Real(number) => write!(f, "{number:?}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{item}")?;
                }
                f.write_str("]")
            }
            Value::Table(table) => {
                let mut entries: Vec<&Entry> = table.0.iter().collect();
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                f.write_str("{")?;
                for (index, entry) in entries.into_iter().enumerate() {
                    let comma = if index == 0 { " " } else { ", " };
                    write!(f, "{comma}{:?} = {}", entry.key, entry.node)?;
                }
                f.write_str(" }")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "b = 1 # one\n[[a]]\nx = [1.5, \"é\"]\n[[a]]\n[c.d]\ne = true\n";

    #[test]
    fn places_are_those_of_the_text() {
        let root = parse(TEXT).unwrap();
        let table = root.as_table().unwrap();
        let keys: Vec<&str> = table.0.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "c"]);
        let a = table.get("a").unwrap().as_list().unwrap();
        let x = a[0].as_table().unwrap().entry("x").unwrap();
        assert_eq!((&TEXT[x.key_at.clone()], &TEXT[x.node.at.clone()]), ("x", "[1.5, \"é\"]"));
        let text = &x.node.as_list().unwrap()[1];
        assert_eq!(&TEXT[text.at.clone()], "\"é\"");
        assert_eq!(&TEXT[text.inside(0..2)], "é");
    }

    #[test]
    fn the_canonical_form_ignores_layout() {
        let canonical = "{ \"a\" = [{ \"x\" = [1.5, \"é\"] }, { }], \"b\" = 1, \
                         \"c\" = { \"d\" = { \"e\" = true } } }";
        assert_eq!(parse(TEXT).unwrap().to_string(), canonical);
        let other = "c.d.e=true\na=[{x=[1.5,'é',]},{}]\nb=0x1";
        assert_eq!(parse(other).unwrap().to_string(), canonical);
    }

    #[test]
    fn paths_replace_and_add() {
        let mut root = parse(TEXT).unwrap();
        let one = || Node { value: Value::Integer(7), at: 0..1 };
        for path in [&["b"][..], &["a", "1", "y"], &["c", "d", "e"], &["c", "f", "g"]] {
            root.replace(path, &(0..1), one()).unwrap();
        }
        let canonical = "{ \"a\" = [{ \"x\" = [1.5, \"é\"] }, { \"y\" = 7 }], \"b\" = 7, \
                         \"c\" = { \"d\" = { \"e\" = 7 }, \"f\" = { \"g\" = 7 } } }";
        assert_eq!(root.to_string(), canonical);
        let wrong = |root: &mut Node, path: &[&str]| root.replace(path, &(0..1), one());
        assert_eq!(
            wrong(&mut root, &["a", "2", "y"]).unwrap_err(),
            "there is no `2`; positions go from 0 to 1"
        );
        assert_eq!(
            wrong(&mut root, &["b", "z"]).unwrap_err(),
            "`z` would be inside 7, which has no parts"
        );
    }

    #[test]
    fn what_is_not_a_value_here_is_refused_at_its_place() {
        for (text, place, message) in [
            (
                "a = 99999999999999999999",
                "99999999999999999999",
                "99999999999999999999 is too large",
            ),
            ("a = [1, nan]", "nan", "nan is not a finite number"),
            ("a = 1979-05-27", "1979-05-27", "no key takes a date such as 1979-05-27"),
        ] {
            let error =
                crate::spec::error::Source::new("x".as_ref(), text).error(parse(text).unwrap_err());
            assert_eq!(error.to_string(), message);
            assert_eq!(error.location(), Some((1, text.find(place).unwrap() + 1)));
        }
    }
}
