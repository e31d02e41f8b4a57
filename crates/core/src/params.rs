//! Parameters of tasks, and typed parameters of policies that can be set by name.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::ids::{CpuSet, DomainId};
use crate::time::Span;

/// What a policy may know about a task besides its behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskParams {
    /// Share of the CPU relative to other tasks; 1024 is nice 0. At least 1.
    pub weight: u32,
    /// Fixed priority for policies that use one; larger is more urgent.
    pub priority: i32,
    /// The CPUs the task may run on.
    pub affinity: CpuSet,
    /// Those of them that it prefers (soft affinity), which policies may ignore. CPUs outside of
    /// `affinity` or out of use may be among them, and none that it may use.
    pub preferred: CpuSet,
    /// The group it belongs to.
    pub domain: DomainId,
    /// Time between two releases of a periodic task.
    pub period: Option<Span>,
    /// CPU time the task may use per period.
    pub budget: Option<Span>,
    /// Time from a release to its deadline.
    pub relative_deadline: Option<Span>,
    /// Identifies the task within its program, for policies that know tasks from an earlier run.
    /// Tasks that do the same may share a key.
    pub key: Option<u32>,
    /// How much it uses the memory behind the caches, in percent of the most that a task can; as a
    /// kernel may count it, for policies that keep such tasks apart. 0 where nothing counts it.
    pub intensity: u8,
}

impl Default for TaskParams {
    fn default() -> TaskParams {
        TaskParams {
            weight: NICE_0_WEIGHT,
            priority: 0,
            affinity: CpuSet::All,
            preferred: CpuSet::All,
            domain: DomainId(0),
            period: None,
            budget: None,
            relative_deadline: None,
            key: None,
            intensity: 0,
        }
    }
}

impl TaskParams {
    /// The defaults with the weight of `nice`, which is clamped to −20 ..= 19.
    pub fn nice(nice: i8) -> TaskParams {
        TaskParams { weight: weight_of_nice(nice), ..TaskParams::default() }
    }
}

/// What a policy may know about a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainParams {
    /// Share of the machine relative to other domains; Xen's default is
    /// [`DEFAULT_DOMAIN_WEIGHT`].
    pub weight: u32,
    /// At most this much CPU time, in percent of one CPU; 0 is no cap.
    pub cap_percent: u32,
}

/// The weight of a domain that was given none: 256, Xen's default.
pub const DEFAULT_DOMAIN_WEIGHT: u32 = 256;

/// The weight of nice 0.
pub const NICE_0_WEIGHT: u32 = 1024;

/// Weights of nice −20 … 19 (Linux `sched_prio_to_weight`, the same in every version since
/// 2.6.23): each step is a factor of about 1.25.
pub const NICE_WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of each vCPU of a domain of this weight, as a task, for policies that know nothing of
/// domains: the usual one of domains is the usual one of tasks.
pub fn weight_of_vcpu(domain_weight: u32) -> u32 {
    domain_weight.saturating_mul(NICE_0_WEIGHT / DEFAULT_DOMAIN_WEIGHT).max(1)
}

/// The weight of `nice`, which is clamped to −20 ..= 19.
pub fn weight_of_nice(nice: i8) -> u32 {
    NICE_WEIGHTS[(nice.clamp(-20, 19) + 20) as usize]
}

/// One parameter of a policy, for help texts and documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its key in experiment files and on command lines.
    pub name: &'static str,
    /// What it does, with its unit.
    pub doc: &'static str,
    /// The values it takes, for example `time` or `yes | no`.
    pub kind: &'static str,
    /// Its default, as it would be written.
    pub default: String,
}

/// A policy's parameters, set by name from text: the one mechanism for experiment files and for
/// command lines of programs and kernels. Made by [`params!`](crate::params!).
pub trait Params: Default + Clone + fmt::Debug {
    /// Sets `name` to the value that `text` denotes.
    ///
    /// Errors: there is no such parameter, or the text is not one of its values.
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError>;

    /// All parameters; the values in `self` are listed as their defaults.
    fn list(&self) -> Vec<ParamInfo>;
}

/// Why a parameter or a combination of them was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// No parameter of this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The text is not a value of the parameter.
    Value {
        /// The parameter.
        name: String,
        /// The text that was given.
        value: String,
        /// What is wrong with it, or what is expected.
        why: &'static str,
    },
    /// The value cannot be used, alone or with the others.
    Invalid {
        /// The parameter.
        name: &'static str,
        /// What is expected.
        why: &'static str,
    },
    /// The parameter cannot be changed while the policy runs.
    Fixed {
        /// The parameter.
        name: String,
        /// Those that can.
        changeable: &'static [&'static str],
    },
}

impl ParamError {
    /// The parameter that it is about.
    pub fn name(&self) -> &str {
        match self {
            ParamError::Unknown { name }
            | ParamError::Value { name, .. }
            | ParamError::Fixed { name, .. } => name,
            ParamError::Invalid { name, .. } => name,
        }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::Unknown { name } => write!(f, "no parameter `{name}`"),
            ParamError::Value { name, value, why } => write!(f, "`{name}` = \"{value}\": {why}"),
            ParamError::Invalid { name, why } => write!(f, "`{name}`: {why}"),
            ParamError::Fixed { name, changeable: [] } => {
                write!(f, "`{name}` cannot be changed while the policy runs, nor can any other")
            }
            ParamError::Fixed { name, changeable } => write!(
                f,
                "`{name}` cannot be changed while the policy runs; these can: {}",
                changeable.join(", ")
            ),
        }
    }
}

impl core::error::Error for ParamError {}

/// A type that a parameter may have.
pub trait Value: Sized {
    /// The values it takes, in words.
    const KIND: &'static str;
    /// Reads the text form. Errors: says what is wrong with it.
    fn parse(text: &str) -> Result<Self, &'static str>;
    /// As [`Value::parse`], for the parameter `name`. Types with long texts override it so that the
    /// error names the faulty part.
    fn read(name: &str, text: &str) -> Result<Self, ParamError> {
        Self::parse(text).map_err(|why| ParamError::Value {
            name: name.into(),
            value: text.into(),
            why,
        })
    }
    /// Writes the text form, which [`Value::parse`] reads back.
    fn show(&self) -> String;
}

impl Value for Span {
    const KIND: &'static str = "time";
    fn parse(text: &str) -> Result<Span, &'static str> {
        Span::parse(text)
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for u32 {
    const KIND: &'static str = "number";
    fn parse(text: &str) -> Result<u32, &'static str> {
        text.trim().parse().map_err(|_| "not a whole number from 0 to 4294967295")
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    const KIND: &'static str = "number";
    fn parse(text: &str) -> Result<u64, &'static str> {
        text.trim().parse().map_err(|_| "not a whole number from 0 to 18446744073709551615")
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: &'static str = "true | false";
    fn parse(text: &str) -> Result<bool, &'static str> {
        match text.trim() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err("neither true nor false"),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: &'static str = T::KIND;
    fn parse(text: &str) -> Result<Option<T>, &'static str> {
        if text.trim() == "auto" { Ok(None) } else { T::parse(text).map(Some) }
    }
    fn read(name: &str, text: &str) -> Result<Option<T>, ParamError> {
        if text.trim() == "auto" { Ok(None) } else { T::read(name, text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_string(), Value::show)
    }
}

impl Value for Vec<Span> {
    const KIND: &'static str = "times, separated by commas";
    fn parse(text: &str) -> Result<Vec<Span>, &'static str> {
        text.split(',').map(Span::parse).collect()
    }
    fn show(&self) -> String {
        let texts: Vec<String> = self.iter().map(ToString::to_string).collect();
        texts.join(",")
    }
}

/// Defines a policy's parameters: a struct with defaults, documentation and [`Params`].
///
/// ```
/// use anysched_core::{params, Params, Span};
///
/// params! {
///     /// Parameters of an example.
///     pub struct ExampleParams {
///         /// Time a task runs before the next one gets its turn.
///         quantum: Span = Span::from_ms(50),
///     }
/// }
///
/// let mut params = ExampleParams::default();
/// params.set("quantum", "10ms").unwrap();
/// assert_eq!(params.quantum, Span::from_ms(10));
/// assert!(params.set("quantun", "10ms").is_err());
/// ```
#[macro_export]
macro_rules! params {
    (
        $(#[doc = $struct_doc:literal])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])* $field:ident : $type:ty = $default:expr ),* $(,)?
        }
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $( $(#[doc = $doc])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* }
            }
        }

        impl $crate::Params for $name {
            #[allow(unused_variables)]
            fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::ParamError> {
                $(
                    if name == stringify!($field) {
                        self.$field = <$type as $crate::params::Value>::read(name, text)?;
                        return Ok(());
                    }
                )*
                Err($crate::ParamError::Unknown { name: name.into() })
            }

            fn list(&self) -> $crate::params::ParamList {
                [$( $crate::params::ParamInfo {
                    name: stringify!($field),
                    doc: concat!($($doc),*).trim_ascii(),
                    kind: <$type as $crate::params::Value>::KIND,
                    default: $crate::params::Value::show(&self.$field),
                }, )*].into()
            }
        }
    };
}

/// What [`Params::list`] returns; named so that [`params!`](crate::params!) works in crates that
/// do not import `alloc`.
pub type ParamList = Vec<ParamInfo>;

/// Defines a parameter type that is one of a few words.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$doc:meta])* $variant:ident = $text:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$doc])* $variant, )+ }

        impl $crate::params::Value for $name {
            const KIND: &'static str = $crate::choice!(@join $($text),+);
            fn parse(text: &str) -> Result<Self, &'static str> {
                match text.trim() {
                    $( $text => Ok($name::$variant), )+
                    _ => Err(concat!("not one of ", $crate::choice!(@join $($text),+))),
                }
            }
            fn show(&self) -> $crate::params::Text {
                match self { $( $name::$variant => $text, )+ }.into()
            }
        }
    };
    (@join $first:literal $(, $rest:literal)*) => {
        concat!($first $(, " | ", $rest)*)
    };
}

/// The text form of a value, under a name that [`choice!`](crate::choice!) can use.
pub type Text = String;

#[cfg(test)]
mod tests {
    use super::*;

    choice! {
        /// Example.
        pub enum Colour { Red = "red", DarkBlue = "dark-blue" }
    }

    params! {
        /// Example.
        pub struct Example {
            /// How long.
            quantum: Span = Span::from_ms(50),
            /// Which.
            colour: Colour = Colour::Red,
            /// Whether.
            strict: bool = true,
            /// One each.
            slices: Vec<Span> = [Span::from_ms(10), Span::MAX].into(),
            /// Its own.
            tick: Option<Span> = None,
        }
    }

    #[test]
    fn every_parameter_reads_back_its_default() {
        let mut params = Example::default();
        for info in Example::default().list() {
            params.set(info.name, &info.default).unwrap();
        }
        let defaults: Vec<String> =
            Example::default().list().into_iter().map(|info| info.default).collect();
        assert_eq!(defaults, ["50ms", "red", "true", "10ms,none", "auto"]);
        assert_eq!(Example::default().list()[1].kind, "red | dark-blue");
        assert_eq!(Example::default().list()[0].doc, "How long.");
    }

    #[test]
    fn errors_name_the_parameter_and_the_remedy() {
        let mut params = Example::default();
        let text = |error: ParamError| error.to_string();
        let error = params.set("colour", "blue").unwrap_err();
        assert_eq!(text(error), "`colour` = \"blue\": not one of red | dark-blue");
        let error = params.set("quantum", "3").unwrap_err();
        assert_eq!(text(error), "`quantum` = \"3\": a time needs a unit, for example \"3ms\"");
        assert_eq!(text(params.set("hue", "1").unwrap_err()), "no parameter `hue`");
    }
}
