//! Values as a file gives them, and why one is refused. The reader of the file knows its syntax and
//! places; here are only types.

use crate::nearest::nearest;
use anysched_core::{CpuSet, Span};
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Given<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<Given<'a>>),
    /// A table.
    Table,
}

/// The keys of a load with their values.
pub trait Table {
    /// The keys, in the order of the file.
    fn keys(&self) -> Vec<&str>;
    /// The value of `key`, if it is there.
    fn get(&self, key: &str) -> Option<Given<'_>>;
}

/// What a [`Refusal`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The table as a whole.
    Table,
    /// A key, by name.
    Key(String),
    /// The value of a key; the table as a whole if it does not have the key.
    Value(String),
    /// An item of a list, the value of a key, by position from 0.
    Item(String, usize),
}

/// Why a load was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// A word or two to show at the place.
    pub label: Option<String>,
    /// What would be right.
    pub help: Option<String>,
    /// What else is wrong.
    pub next: Option<Box<Refusal>>,
}

impl Refusal {
    /// `message` is about `place`.
    pub fn new(place: Place, message: impl Into<String>) -> Refusal {
        Refusal { place, message: message.into(), label: None, help: None, next: None }
    }

    /// `message` is about the value of `key`.
    pub fn value(key: &str, message: impl Into<String>) -> Refusal {
        Refusal::new(Place::Value(key.to_string()), message)
    }

    /// `key` is not the `wanted` kind of value.
    fn wrong(given: &Given<'_>, key: &str, wanted: &str) -> Refusal {
        Refusal::value(key, format!("`{key}` is {wanted}, not {}", given.shown()))
    }

    /// Adds a word or two to show at the place.
    pub fn label(mut self, label: impl Into<String>) -> Refusal {
        self.label = Some(label.into());
        self
    }

    /// Adds what would be right.
    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }

    /// Both: what is wrong here, and with something else.
    pub fn and(mut self, other: Refusal) -> Refusal {
        let mut last = &mut self.next;
        while let Some(next) = last {
            last = &mut next.next;
        }
        *last = Some(Box::new(other));
        self
    }

    /// Each thing that is wrong, by itself.
    pub fn each(self) -> impl Iterator<Item = Refusal> {
        let mut next = Some(Box::new(self));
        std::iter::from_fn(move || {
            let mut refusal = next.take()?;
            next = refusal.next.take();
            Some(*refusal)
        })
    }

    /// The same about another place.
    pub fn at(mut self, place: Place) -> Refusal {
        self.place = place;
        self
    }
}

/// On one line.
impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl std::error::Error for Refusal {}

/// A hint at the names that exist: the nearest one if one is near.
pub fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let all = || names.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match nearest(wrong, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", all()),
    }
}

/// As it is written in a file, except for tables.
impl Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Text(text) => write!(f, "{text:?}"),
            Given::Whole(number) => write!(f, "{number}"),
            Given::Real(number) => write!(f, "{number:?}"),
            Given::Flag(flag) => write!(f, "{flag}"),
            Given::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Given::Table => f.write_str("a table"),
        }
    }
}

impl<'a> Given<'a> {
    /// What it is, for messages: a short value itself, a longer one by type.
    pub fn shown(&self) -> String {
        match self {
            Given::List(list) if list.is_empty() => "an empty list".to_string(),
            Given::List(_) => "a list".to_string(),
            Given::Text(text) if text.chars().count() > 40 => {
                format!("\"{}…\"", text.chars().take(40).collect::<String>())
            }
            _ => self.to_string(),
        }
    }

    /// The text, as the value of `key`.
    ///
    /// Errors: it is something else.
    pub fn text(&self, key: &str) -> Result<&'a str, Refusal> {
        match self {
            Given::Text(text) => Ok(text),
            _ => Err(Refusal::wrong(self, key, "a text in quotes")),
        }
    }

    /// The name, as the value of `key`: a text on one line.
    ///
    /// Errors: it is something else.
    pub fn name(&self, key: &str) -> Result<&'a str, Refusal> {
        let name = self.text(key)?;
        if name.contains(char::is_control) {
            let message = format!("`{key}` = {self} has a line end or another control character");
            return Err(Refusal::value(key, message).help("names are shown on one line"));
        }
        Ok(name)
    }

    /// True or false, as the value of `key`.
    ///
    /// Errors: it is something else.
    pub fn flag(&self, key: &str) -> Result<bool, Refusal> {
        match self {
            Given::Flag(flag) => Ok(*flag),
            _ => Err(Refusal::wrong(self, key, "true or false")),
        }
    }

    /// A number, as the value of `key`.
    ///
    /// Errors: it is something else.
    pub fn real(&self, key: &str) -> Result<f64, Refusal> {
        match self {
            Given::Whole(number) => Ok(*number as f64),
            Given::Real(number) => Ok(*number),
            _ => Err(Refusal::wrong(self, key, "a number")),
        }
    }

    /// A whole number of this range, as the value of `key`.
    ///
    /// Errors: it is something else, or out of range.
    pub fn whole<T: Whole>(&self, key: &str, range: RangeInclusive<T>) -> Result<T, Refusal> {
        let out_of_range = |number: &dyn Display| {
            let (start, end) = (range.start(), range.end());
            Refusal::value(key, format!("`{key}` = {number} is out of range"))
                .help(format!("it goes from {start} to {end}"))
        };
        match self {
            Given::Whole(number) => {
                let found = T::try_from(*number).ok().filter(|number| range.contains(number));
                found.ok_or_else(|| out_of_range(number))
            }
            // Settings of command lines pass numbers that TOML cannot express as text.
            Given::Text(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                Err(match text.parse::<i64>() {
                    Ok(_) => Refusal::wrong(self, key, "a whole number")
                        .help(format!("without quotes: `{key} = {text}`")),
                    Err(_) => out_of_range(text),
                })
            }
            _ => Err(Refusal::wrong(self, key, "a whole number")),
        }
    }

    /// A time as text, or a plain 0, as the value of `key`.
    ///
    /// Errors: it is something else, or endless.
    pub fn span(&self, key: &str) -> Result<Span, Refusal> {
        match self {
            Given::Text(text) => match Span::parse(text) {
                Ok(Span::MAX) => Err(Refusal::wrong(self, key, "a time that passes")
                    .help(format!("for no limit, leave `{key}` out"))),
                Ok(span) => Ok(span),
                Err(why) => Err(Refusal::value(key, format!("`{key}` = {}: {why}", self.shown()))),
            },
            Given::Whole(0) => Ok(Span::ZERO),
            Given::Whole(_) | Given::Real(_) => {
                Err(Refusal::wrong(self, key, "a time with a unit")
                    .help(format!("in quotes, for example `{key} = \"{self}ms\"`")))
            }
            _ => Err(Refusal::wrong(self, key, "a time such as \"3ms\"")),
        }
    }

    /// A set of CPUs as text, or the number of a single one, as the value of `key`.
    ///
    /// Errors: it is something else.
    pub fn cpus(&self, key: &str) -> Result<CpuSet, Refusal> {
        let text = match self {
            Given::Whole(cpu) => cpu.to_string(),
            _ => self.text(key)?.to_string(),
        };
        CpuSet::parse(&text)
            .map_err(|why| Refusal::value(key, format!("`{key}` = \"{text}\": {why}")))
    }
}

/// Integer types that keys may have.
pub trait Whole: TryFrom<i64> + PartialOrd + Display + Copy {}
impl<T: TryFrom<i64> + PartialOrd + Display + Copy> Whole for T {}
