//! How a table of metrics is written, and what is generated from it.

use crate::summary::Summary;

/// A metric, as references and schemas list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Its name: the column, or for distributions what the columns of its statistics begin with.
    /// `N` and `NAME` stand for a number and a name where there is a column for each.
    pub name: &'static str,
    /// Its unit, as UCUM writes it: `ns`, `%`, `/s`; `1` for counts and ratios.
    pub unit: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// Where its values come from.
    pub kind: Kind,
}

/// Where the values of a metric come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Many numbers a run, of which columns give mean, percentiles and extremes.
    Distribution,
    /// A count or a time, added up over a run.
    Total,
    /// Computed from others; absent if one of those is.
    Derived,
}

/// What a run has shown of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Measured<'a> {
    /// At least one number, with the factor that turns numbers as they were recorded into the
    /// metric's unit.
    Distribution(&'a Summary, f64),
    /// One finite number, in the metric's unit.
    Number(f64),
}

impl<'a> Measured<'a> {
    pub(crate) fn of(summary: &'a Summary, factor: f64) -> Option<Measured<'a>> {
        (summary.count() > 0).then_some(Measured::Distribution(summary, factor))
    }

    pub(crate) fn number(number: Option<f64>) -> Option<Measured<'a>> {
        number.filter(|number| number.is_finite()).map(Measured::Number)
    }
}

/// What a metric belongs to, which decides what it is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Of tasks, wherever they run: those in virtual machines count for the host too.
    Tasks,
    /// Of the CPUs of one machine. What virtual CPUs do is not work of the host's CPUs.
    Machine,
}

/// Declares a structure of metrics and, from the same lines, its columns and how two are added.
///
/// - `distributions`: `field of Scope [* factor] => name, unit, what;`
/// - `numbers`: `field: Type of Scope` for a [`Total`](crate::Total), `{ |metrics| value }` for
///   what is derived, then the same `=> name, unit, what;`
/// - `inputs`: totals without a column, which others are derived from.
/// - `kept`: anything else, with the function that adds another's.
///
/// The columns come in the order of the lines.
macro_rules! metrics {
    (
        $(#[$meta:meta])*
        $metrics:ident as $list:ident;
        distributions {
            $(
                $dist:ident of $dist_scope:ident $(* $factor:literal)?
                => $dist_name:literal, $dist_unit:literal, $dist_what:literal;
            )*
        }
        numbers {
            $(
                $($total:ident: $total_type:ty [$total_scope:ident])? $({ $derive:expr })?
                => $name:literal, $unit:literal, $what:literal;
            )*
        }
        inputs {
            $($input:ident: $input_type:ty [$input_scope:ident], $input_what:literal;)*
        }
        kept {
            $($kept:ident: $kept_type:ty [$kept_scope:ident by $merge:expr], $kept_what:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub struct $metrics {
            $(#[doc = $dist_what] pub $dist: $crate::Summary,)*
            $($(#[doc = $what] pub $total: $total_type,)?)*
            $(#[doc = $input_what] pub $input: $input_type,)*
            $(#[doc = $kept_what] pub $kept: $kept_type,)*
        }

        #[doc = concat!("The metrics of [`", stringify!($metrics), "`] in the order of columns.")]
        pub static $list: &[$crate::MetricInfo] = &[
            $($crate::MetricInfo {
                name: $dist_name,
                unit: $dist_unit,
                what: $dist_what,
                kind: $crate::Kind::Distribution,
            },)*
            $($crate::MetricInfo {
                name: $name,
                unit: $unit,
                what: $what,
                kind: metrics!(@kind $($total)?),
            },)*
        ];

        impl $metrics {
            /// Adds what another has of the scopes `of`.
            fn merge_those(&mut self, other: &$metrics, of: &[$crate::table::Scope]) {
                use $crate::table::Scope;
                $(if of.contains(&Scope::$dist_scope) {
                    self.$dist.merge(&other.$dist);
                })*
                $($(if of.contains(&Scope::$total_scope) {
                    self.$total.merge(&other.$total);
                })?)*
                $(if of.contains(&Scope::$input_scope) {
                    self.$input.merge(&other.$input);
                })*
                $(if of.contains(&Scope::$kept_scope) {
                    let merge: fn(&mut $kept_type, &$kept_type) = $merge;
                    merge(&mut self.$kept, &other.$kept);
                })*
            }

            /// What was measured, in the order of the table.
            pub(crate) fn table(&self) -> Vec<Option<$crate::Measured<'_>>> {
                vec![
                    $($crate::Measured::of(&self.$dist, metrics!(@factor $($factor)?)),)*
                    $($crate::Measured::number({
                        $(self.$total.number())?
                        $({
                            let derive: fn(&$metrics) -> Option<f64> = $derive;
                            derive(self)
                        })?
                    }),)*
                ]
            }

            /// Nothing has happened, and everything is measured: all totals are known to be 0.
            #[allow(dead_code, reason = "a table may have no totals")]
            pub(crate) fn zero() -> $metrics {
                $metrics {
                    $($($total: $crate::Total::of(Default::default()),)?)*
                    $($input: $crate::Total::of(Default::default()),)*
                    ..Default::default()
                }
            }

            /// Records a number in every distribution, and adds one to every total.
            #[cfg(test)]
            pub(crate) fn record_each(&mut self, mut draw: impl FnMut() -> u64) {
                $(self.$dist.record(draw());)*
                $($(self.$total += $crate::Amount::of_number(draw());)?)*
                $(self.$input += $crate::Amount::of_number(draw());)*
                draw();
            }
        }
    };
    (@kind) => { $crate::Kind::Derived };
    (@kind $total:ident) => { $crate::Kind::Total };
    (@factor) => { 1.0 };
    (@factor $factor:literal) => { $factor };
}

pub(crate) use metrics;
