//! The keys of loads: what each is called, what it takes, and how it is read. The macro `keys!`
//! declares them, so that what is read cannot differ from what is documented.

use super::given::{Given, Place, Refusal, hint};
use super::reader::Reader;
use crate::dist::Dist;
use anysched_core::{CpuSet, DomainId, Span, Time};
use std::fmt::{self, Display, Write};

/// One key of a kind of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyInfo {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: KeyType,
    /// What its number counts, if the name does not say; empty otherwise.
    pub unit: &'static str,
    /// What applies if it is left out.
    pub default: Fallback,
    /// A value, written the way [`KeyType::literal`] reads it.
    pub example: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// Where costs measured in a kernel contain its value.
    pub calibrated: Option<Calibrated>,
}

/// What applies if a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Nothing: the key is required.
    Needed,
    /// This value, written the way [`KeyType::literal`] reads it.
    Value(&'static str),
    /// What these words say.
    Words(&'static str),
    /// One of the other keys that these words name; without any of them this one is required.
    Or(&'static str),
}

/// The value of a key that is left out, where `calibrate` has measured it: in the table named like
/// the key, selected by the value of another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibrated {
    /// The other key.
    pub by: &'static str,
    /// Its values, each with the name of what was measured.
    pub names: &'static [(&'static str, &'static str)],
}

impl Calibrated {
    /// The name of what was measured if the other key is `value`.
    pub fn name(&self, value: &str) -> Option<&'static str> {
        self.names.iter().find(|(known, _)| *known == value).map(|(_, name)| *name)
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyType {
    /// A text.
    Text,
    /// The name of a file, relative to the experiment.
    File,
    /// True or false.
    Flag,
    /// A number.
    Real,
    /// A whole number within a range.
    Whole {
        /// The least one.
        least: i64,
        /// The largest one.
        most: i64,
    },
    /// One such number for all, or a list with one for each.
    WholeOrList {
        /// The least one.
        least: i64,
        /// The largest one.
        most: i64,
    },
    /// A time.
    Time,
    /// A time with fractions of a nanosecond, down to a picosecond.
    FineTime,
    /// The shortest and the longest time.
    TwoTimes,
    /// A [`Dist`], or a time.
    Distribution,
    /// A list of CPUs, such as `0-3,8`.
    Cpus,
    /// One of a few words.
    Choice(&'static [&'static str]),
}

impl KeyType {
    /// The same type restricted to whole numbers of this range.
    pub(crate) const fn within(self, range: std::ops::RangeInclusive<i64>) -> KeyType {
        let (least, most) = (*range.start(), *range.end());
        match self {
            KeyType::Whole { .. } => KeyType::Whole { least, most },
            KeyType::WholeOrList { .. } => KeyType::WholeOrList { least, most },
            other => other,
        }
    }

    /// The value that `text` stands for in defaults, examples and settings of command lines: as
    /// written in a file, but without quotes, and lists without brackets.
    pub fn literal<'a>(&self, text: &'a str) -> Given<'a> {
        let whole = |text: &'a str| text.parse().map_or(Given::Text(text), Given::Whole);
        match self {
            KeyType::Flag => text.parse().map_or(Given::Text(text), Given::Flag),
            KeyType::Real => text.parse().map_or(Given::Text(text), Given::Real),
            KeyType::Whole { .. } => whole(text),
            KeyType::WholeOrList { .. } if text.contains(',') => {
                Given::List(text.split(',').map(|part| whole(part.trim())).collect())
            }
            KeyType::WholeOrList { .. } => whole(text),
            KeyType::TwoTimes => {
                Given::List(text.split(',').map(|part| Given::Text(part.trim())).collect())
            }
            _ => Given::Text(text),
        }
    }
}

/// In words, as in a table of keys.
impl Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyType::Text => f.write_str("text"),
            KeyType::File => f.write_str("file"),
            KeyType::Flag => f.write_str("true | false"),
            KeyType::Real => f.write_str("number"),
            KeyType::Whole { least, most } => write_range(f, *least, *most),
            KeyType::WholeOrList { least, most } => {
                write_range(f, *least, *most)?;
                f.write_str(", or a list")
            }
            KeyType::Time => f.write_str("time"),
            KeyType::FineTime => f.write_str("time, in ps, ns or us"),
            KeyType::TwoTimes => f.write_str("two times"),
            KeyType::Distribution => f.write_str("distribution"),
            KeyType::Cpus => f.write_str("CPUs"),
            KeyType::Choice(words) => f.write_str(&words.join(" | ")),
        }
    }
}

/// Limits that only bound memory are left out.
fn write_range(f: &mut fmt::Formatter<'_>, least: i64, most: i64) -> fmt::Result {
    match (least, most) {
        (_, 0..=65_535) => write!(f, "{least} to {most}"),
        (0.., _) => f.write_str("whole number"),
        _ => f.write_str("whole number, also below 0"),
    }
}

impl KeyInfo {
    /// The example as a line of an experiment file.
    pub fn line(&self) -> String {
        format!("{} = {}", self.name, self.takes.literal(self.example))
    }

    /// What it takes, with its unit.
    pub fn values(&self) -> String {
        let mut text = self.takes.to_string();
        if !self.unit.is_empty() {
            let _ = write!(text, ", in {}", self.unit);
        }
        text
    }

    /// What applies if it is left out, in words; `needed` if it is required.
    pub fn without(&self) -> &'static str {
        match self.default {
            Fallback::Needed => "needed",
            Fallback::Value(text) | Fallback::Words(text) | Fallback::Or(text) => text,
        }
    }
}

/// A type that a key can have.
pub trait Value: Sized {
    /// What it takes unless the key says otherwise.
    const TAKES: KeyType;

    /// Reads the value of `key`.
    ///
    /// Errors: it is not a value of this type, with its place.
    fn read(given: &Given<'_>, key: &KeyInfo, reader: &mut Reader<'_>) -> Result<Self, Refusal>;

    /// What applies if `key` is left out.
    ///
    /// Errors: it is required.
    fn absent(key: &KeyInfo, reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        match key.default {
            Fallback::Value(text) => Self::read(&key.takes.literal(text), key, reader),
            _ => Err(reader.lacks(key)),
        }
    }
}

impl<T: Value> Value for Option<T> {
    const TAKES: KeyType = T::TAKES;
    fn read(given: &Given<'_>, key: &KeyInfo, reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        T::read(given, key, reader).map(Some)
    }
    fn absent(key: &KeyInfo, reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        match key.default {
            Fallback::Words(_) | Fallback::Or(_) => Ok(None),
            _ => T::absent(key, reader).map(Some),
        }
    }
}

/// Whole numbers take the range of their key.
macro_rules! whole {
    ($($type:ty: $most:expr),*) => { $(
        impl Value for $type {
            const TAKES: KeyType = KeyType::Whole { least: <$type>::MIN as i64, most: $most };
            fn read(
                given: &Given<'_>,
                key: &KeyInfo,
                _: &mut Reader<'_>,
            ) -> Result<$type, Refusal> {
                let KeyType::Whole { least, most } = key.takes else {
                    return given.whole(key.name, <$type>::MIN..=<$type>::MAX);
                };
                let number = given.whole(key.name, least..=most)?;
                <$type>::try_from(number)
                    .or_else(|_| given.whole(key.name, <$type>::MIN..=<$type>::MAX))
            }
        }
    )* };
}

whole!(i8: i8::MAX as i64, u8: u8::MAX as i64, i32: i32::MAX as i64, u16: u16::MAX as i64,
       u32: u32::MAX as i64, u64: i64::MAX);

/// A type that is read as another one, or by a function.
macro_rules! value {
    ($type:ty, $takes:expr, $read:expr) => {
        impl Value for $type {
            const TAKES: KeyType = $takes;
            fn read(
                given: &Given<'_>,
                key: &KeyInfo,
                reader: &mut Reader<'_>,
            ) -> Result<$type, Refusal> {
                let read: fn(&Given<'_>, &KeyInfo, &mut Reader<'_>) -> Result<$type, Refusal> =
                    $read;
                read(given, key, reader)
            }
        }
    };
}

/// The name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(pub String);

/// One number for all, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each(pub Vec<u64>);

/// A time in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picoseconds(pub u64);

value!(bool, KeyType::Flag, |given, key, _| given.flag(key.name));
value!(f64, KeyType::Real, |given, key, _| given.real(key.name));
value!(String, KeyType::Text, |given, key, _| given.text(key.name).map(str::to_string));
value!(FileName, KeyType::File, |given, key, _| {
    given.text(key.name).map(|name| FileName(name.to_string()))
});
value!(Span, KeyType::Time, |given, key, _| given.span(key.name));
value!(Time, KeyType::Time, |given, key, _| Ok(Time::ZERO + given.span(key.name)?));
value!(CpuSet, KeyType::Cpus, |given, key, _| given.cpus(key.name));
value!(DomainId, u16::TAKES, |given, key, reader| u16::read(given, key, reader).map(DomainId));
value!(Dist, KeyType::Distribution, |given, key, reader| match given {
    Given::Text(text) => reader.dist(text, key.name),
    _ => given.span(key.name).map(Dist::constant),
});
value!((Span, Span), KeyType::TwoTimes, |given, key, _| {
    let item = |item: &Given<'_>, at| {
        item.span(key.name).map_err(|refusal| refusal.at(Place::Item(key.name.to_string(), at)))
    };
    match given {
        Given::List(items) if items.len() == 2 => Ok((item(&items[0], 0)?, item(&items[1], 1)?)),
        _ => {
            let message = format!("`{}` is a list of two times, not {}", key.name, given.shown());
            Err(Refusal::value(key.name, message)
                .help(format!("the shortest and the longest: `{}`", key.line())))
        }
    }
});
value!(Each, KeyType::WholeOrList { least: 0, most: i64::MAX }, |given, key, _| {
    let KeyType::WholeOrList { least, most } = key.takes else {
        return given.whole(key.name, 0..=i64::MAX as u64).map(|one| Each(vec![one]));
    };
    let range = least.max(0) as u64..=most.max(0) as u64;
    let Given::List(items) = given else {
        return Ok(Each(vec![given.whole(key.name, range)?]));
    };
    if items.is_empty() {
        return Err(
            Refusal::value(key.name, format!("`{}` is an empty list", key.name)).help(ONE_OR_EACH)
        );
    }
    let item = |(at, item): (usize, &Given<'_>)| {
        let number = item.whole(key.name, range.clone());
        number.map_err(|refusal| refusal.at(Place::Item(key.name.to_string(), at)))
    };
    items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Each)
});
value!(Picoseconds, KeyType::FineTime, |given, key, _| {
    let text = given.text(key.name)?;
    // Where times are in ns elsewhere, three digits after the point are allowed here.
    let thousandfold = [("ps", "ns"), ("ns", "us"), ("us", "ms")].into_iter();
    let mut read = thousandfold.filter_map(|(unit, next)| {
        let number = text.trim().strip_suffix(unit).filter(|n| !n.ends_with(['n', 'u', 'p']))?;
        Span::parse(&format!("{number}{next}")).ok()
    });
    read.next().map(|span| Picoseconds(span.0)).ok_or_else(|| {
        let (name, example) = (key.name, key.takes.literal(key.example));
        Refusal::value(name, format!("`{name}` = {given} is not the time of an {name}"))
            .help(format!("a number of ps, ns or us, for example {example}"))
    })
});

/// The type of a key with an [`Each`].
pub(crate) const ONE_OR_EACH: &str = "one number for all, or a list with one for each";

/// A type whose values are words.
pub trait Words: Copy + 'static {
    /// The words.
    const WORDS: &'static [&'static str];
    /// What they stand for, in the same order.
    const VALUES: &'static [Self];

    /// The word for this value.
    fn word(self) -> &'static str
    where
        Self: PartialEq,
    {
        let place = Self::VALUES.iter().position(|value| *value == self);
        place.map_or("", |place| Self::WORDS[place])
    }
}

impl<T: Words> Value for T {
    const TAKES: KeyType = KeyType::Choice(T::WORDS);
    fn read(given: &Given<'_>, key: &KeyInfo, _: &mut Reader<'_>) -> Result<T, Refusal> {
        let text = given.text(key.name)?;
        let found = T::WORDS.iter().zip(T::VALUES).find(|(word, _)| **word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let message = format!("`{}` = \"{text}\" is not one of its values", key.name);
            Refusal::value(key.name, message).help(hint(text, T::WORDS.iter().copied()))
        })
    }
}

/// Names the values of an enum in experiment files.
macro_rules! words {
    ($type:ident { $($value:expr => $word:literal),+ $(,)? }) => {
        impl $crate::kinds::Words for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const VALUES: &'static [$type] = &[$($value),+];
        }
    };
}
pub(crate) use words;
