//! Reading a load: look up its kind, and read its keys as the kind declares them.

use super::given::{Place, Refusal, Table, hint};
use super::key::{KeyInfo, Value};
use super::source::{LoadSpec, Source};
use super::{KINDS, kind};
use crate::dist::Dist;
use crate::generate::{Generator, SettingError};
use crate::import::{Imported, Input, ReadError};
use std::sync::Arc;

/// The files that loads name. Implemented by whoever runs experiments, who knows where they are,
/// reads them and caches them.
pub trait Files {
    /// The distribution that `text` describes; it may name a file.
    ///
    /// Errors: it describes none, or the file cannot be read.
    fn dist(&mut self, text: &str) -> Result<Dist, Refusal>;

    /// What `read` makes of the contents of the file `name`. `how` is whatever else the result
    /// depends on: a file read again in the same way may come from the cache.
    ///
    /// Errors: the file cannot be read, `read` refuses it, or it has no tasks.
    fn import(&mut self, name: &str, how: &str, read: &ReadFile<'_>) -> Result<Source, Refusal>;

    /// Notes, once, what is left out of a load.
    fn warn(&mut self, warning: String);
}

/// Makes a load of the contents of a file.
pub type ReadFile<'a> = dyn Fn(&mut dyn Input) -> Result<Imported, ReadError> + 'a;

/// A load while it is being read.
pub struct Reader<'a> {
    table: &'a dyn Table,
    /// What these keys belong to, in words.
    what: String,
    cpus: usize,
    files: &'a mut dyn Files,
}

/// Keys that are read together: those of a kind, or those that several kinds share.
pub trait Keys: Sized {
    /// Those that it declares itself.
    const OWN: &'static [KeyInfo];
    /// Those that it shares with others.
    const SHARED: &'static [KeyInfo];

    /// Reads their values.
    ///
    /// Errors: a required key is missing, or a value is wrong.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Refusal>;
}

/// The keys of a kind of load, and what is made of their values. Generators whose parameters are
/// the keys need nothing else.
pub trait Kind: Keys {
    /// The load.
    ///
    /// Errors: values that do not fit each other or the machine.
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal>;
}

impl<G: Generator + Keys + 'static> Kind for G {
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
        reader.generated(self)
    }
}

/// Reads a load for a machine of `cpus` CPUs.
///
/// Errors: no such kind, a key that the kind does not have, or an unusable value.
pub fn read(table: &dyn Table, cpus: usize, files: &mut dyn Files) -> Result<LoadSpec, Refusal> {
    let names = KINDS.iter().map(|kind| kind.name);
    let Some(given) = table.get("kind") else {
        return Err(Refusal::new(Place::Table, "a load has no `kind`").help(hint("", names)));
    };
    let text = given.text("kind")?;
    let kind = kind(text).ok_or_else(|| {
        Refusal::value("kind", format!("no kind of load is called \"{text}\""))
            .label("unknown kind")
            .help(hint(&super::canonical(text), names))
    })?;
    let what = format!("a load of kind \"{}\"", kind.name);
    let mut reader = Reader { table, what, cpus, files };
    let own = kind.keys().map(|key| key.name).filter(|key| *key != "name");
    // Every load has a name, by which rows are called; of some, the tasks have it too.
    table.get("name").map_or(Ok(""), |name| name.name("name"))?;
    let Err(unknown) = reader.refuse_unknown_keys(own.chain(["name", "kind"])) else {
        return (kind.read)(&mut reader);
    };
    // A key that is missing may be the one that is misspelt.
    let read = (kind.read)(&mut reader).err().into_iter().flat_map(Refusal::each);
    Err(read.filter(|refusal| refusal.place != Place::Table).fold(unknown, Refusal::and))
}

/// Reads keys outside of an experiment: how a file of `format` is read. Required keys are required
/// here as well.
///
/// Errors: an unknown key, or a value that it does not take.
pub(crate) fn read_options<T: Keys>(table: &dyn Table, format: &str) -> Result<T, Refusal> {
    let what = format!("a file of format \"{format}\"");
    let mut reader = Reader { table, what, cpus: 1, files: &mut NoFiles };
    reader.refuse_unknown_keys(T::OWN.iter().chain(T::SHARED).map(|key| key.name))?;
    T::read(&mut reader)
}

/// For use where no key names a file that could be read.
struct NoFiles;

impl Files for NoFiles {
    fn dist(&mut self, text: &str) -> Result<Dist, Refusal> {
        Err(Refusal::new(Place::Table, format!("\"{text}\" is not read here")))
    }
    fn import(&mut self, name: &str, _: &str, _: &ReadFile<'_>) -> Result<Source, Refusal> {
        Err(Refusal::new(Place::Table, format!("\"{name}\" is not read here")))
    }
    fn warn(&mut self, _: String) {}
}

/// What is wrong with keys so far of which more are to be read.
#[derive(Default)]
pub(crate) struct Refused(Option<Refusal>);

impl Refused {
    /// What has been read, or nothing if that was refused.
    pub(crate) fn take<T>(&mut self, read: Result<T, Refusal>) -> Option<T> {
        read.map_err(|refusal| {
            self.0 = Some(match self.0.take() {
                Some(others) => others.and(refusal),
                None => refusal,
            });
        })
        .ok()
    }

    /// What was read, once all keys have been.
    ///
    /// Errors: all that was refused, of whichever key.
    pub(crate) fn need<T>(&mut self, read: Option<T>) -> Result<T, Refusal> {
        match (self.0.take(), read) {
            (None, Some(read)) => Ok(read),
            (refused, _) => {
                Err(refused.unwrap_or_else(|| Refusal::new(Place::Table, "not such a load")))
            }
        }
    }
}

impl Reader<'_> {
    fn refuse_unknown_keys<'k>(
        &self,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> Result<(), Refusal> {
        let is_known = |key: &&str| known.clone().any(|known| known == *key);
        let unknown = self.table.keys().into_iter().filter(|key| !is_known(key));
        let refused = unknown.map(|key| {
            let message = format!("no key `{key}` in {}", self.what);
            Refusal::new(Place::Key(key.to_string()), message)
                .label("unknown key")
                .help(hint(key, known.clone()))
        });
        refused.reduce(Refusal::and).map_or(Ok(()), Err)
    }

    /// `key` is required and missing.
    pub(super) fn lacks(&self, key: &KeyInfo) -> Refusal {
        Refusal::new(Place::Table, format!("{} has no `{}`", self.what, key.name))
            .label(format!("`{}` is missing", key.name))
            .help(format!("for example `{}`", key.line()))
    }

    /// The value of `key`, or what applies without it.
    pub(crate) fn key<T: Value>(&mut self, key: &KeyInfo) -> Result<T, Refusal> {
        match self.table.get(key.name) {
            Some(given) => T::read(&given, key, self),
            None => T::absent(key, self),
        }
    }

    /// The distribution that `text`, the value of `key` or its substitute, describes.
    pub(crate) fn dist(&mut self, text: &str, key: &str) -> Result<Dist, Refusal> {
        self.files.dist(text).map_err(|refusal| refusal.at(Place::Value(key.to_string())))
    }

    /// Whether a setting is valid.
    pub(crate) fn check(&self, result: Result<(), SettingError>) -> Result<(), Refusal> {
        result.map_err(|SettingError { key, value, why }| {
            Refusal::value(key, format!("`{key}` = {value} is not possible")).help(why)
        })
    }

    /// The load that `generator` makes.
    pub(crate) fn generated(
        &mut self,
        generator: impl Generator + 'static,
    ) -> Result<LoadSpec, Refusal> {
        self.check(generator.validate(self.cpus))?;
        Ok(LoadSpec { source: Source::Generated(Arc::new(generator)), pings: None })
    }

    /// The load in the file `name`, the value of `file`, which `read` reads.
    pub(crate) fn imported(
        &mut self,
        name: &str,
        how: &str,
        read: &ReadFile<'_>,
    ) -> Result<LoadSpec, Refusal> {
        let source = self.files.import(name, how, read);
        let source = source.map_err(|refusal| refusal.at(Place::Value("file".to_string())))?;
        let (tasks, cpus) = (source.bound_elsewhere(self.cpus), self.cpus);
        if tasks > 0 {
            self.files.warn(format!(
                "{name}: {tasks} tasks are bound to CPUs that this machine of {cpus} does not \
                 have; they may use all of it"
            ));
        }
        Ok(LoadSpec { source, pings: None })
    }
}

/// Declares the keys of a kind of load: a struct that is read from them. Each key has a
/// description, a name and a type, and behind `=`
/// - `needed`, if it is required;
/// - `"VALUE"`, its default;
/// - `none "WORDS"`, what applies if it is left out; or
/// - `or "KEYS"`, if it or one of other keys is required; the last two for a type `Option`.
///
/// Then comes `eg "EXAMPLE"` and, where they apply, `in RANGE` of whole numbers, `unit "UNIT"`,
/// `calibrated CALIBRATED`. Values are written without the quotes of TOML, items of lists between
/// commas. `..settings: Settings;` before all keys adds those of another such struct.
macro_rules! keys {
    (
        $(#[$struct_meta:meta])*
        pub struct $name:ident {
            $( ..$group:ident: $group_type:ty; )?
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty = $($how:ident)? $($text:literal)?, eg $example:literal
                $(, in $range:expr)? $(, unit $unit:literal)? $(, calibrated $calibrated:expr)?;
            )*
        }
    ) => {
        $(#[$struct_meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( /// What it has in common with others.
            pub $group: $group_type, )?
            $( $(#[doc = $doc])+ pub $field: $type, )*
        }

        impl $crate::kinds::Keys for $name {
            const OWN: &'static [$crate::kinds::KeyInfo] = &[$(
                $crate::kinds::reader::keys!(
                    @info $field, $type, [$($how)? $($text)?], $example,
                    [$($range)?] [$($unit)?] [$($calibrated)?] $($doc)+
                ),
            )*];
            const SHARED: &'static [$crate::kinds::KeyInfo] =
                $crate::kinds::reader::keys!(@shared $($group_type)?);

            fn read(
                reader: &mut $crate::kinds::Reader<'_>,
            ) -> Result<$name, $crate::kinds::Refusal> {
                let mut refused = $crate::kinds::reader::Refused::default();
                $( let $field = refused.take(reader.key(&const {
                    $crate::kinds::reader::keys!(
                        @info $field, $type, [$($how)? $($text)?], $example,
                        [$($range)?] [$($unit)?] [$($calibrated)?] $($doc)+
                    )
                })); )*
                $( let $group =
                    refused.take(<$group_type as $crate::kinds::Keys>::read(reader)); )?
                Ok($name {
                    $( $field: refused.need($field)?, )*
                    $( $group: refused.need($group)?, )?
                })
            }
        }
    };
    (
        @info $field:ident, $type:ty, [$($default:tt)+], $example:literal,
        [$($range:expr)?] [$($unit:literal)?] [$($calibrated:expr)?] $($doc:literal)+
    ) => {
        $crate::kinds::KeyInfo {
            name: stringify!($field),
            takes: $crate::kinds::reader::keys!(@takes $type $(, $range)?),
            unit: concat!($($unit)?),
            default: $crate::kinds::reader::keys!(@default $($default)+),
            example: $example,
            help: concat!($($doc),+).trim_ascii(),
            calibrated: $crate::kinds::reader::keys!(@option $($calibrated)?),
        }
    };
    (@shared) => { &[] };
    (@shared $type:ty) => { <$type as $crate::kinds::Keys>::OWN };
    (@takes $type:ty) => { <$type as $crate::kinds::Value>::TAKES };
    (@takes $type:ty, $range:expr) => {
        <$type as $crate::kinds::Value>::TAKES.within($range)
    };
    (@default needed) => { $crate::kinds::Fallback::Needed };
    (@default none $words:literal) => { $crate::kinds::Fallback::Words($words) };
    (@default or $keys:literal) => { $crate::kinds::Fallback::Or($keys) };
    (@default $text:literal) => { $crate::kinds::Fallback::Value($text) };
    (@option) => { None };
    (@option $value:expr) => { Some($value) };
}
pub(crate) use keys;
