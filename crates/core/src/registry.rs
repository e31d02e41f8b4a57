//! What a policy declares about itself, and how it is built from text.
//! [`policies!`](crate::policies) declares a list of policies.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::params::{ParamError, ParamInfo, Params};
use crate::smp::{Layout, RunQueue, Smp, SmpParams, Steal};
use crate::tuning::{Baseline, Space};
use crate::uni::Uni;
use crate::{Machine, Scheduler};

pub use crate::policy::{Bound, First, Groupings, Native, Policy};

/// A policy's entry in the list.
#[derive(Debug)]
pub struct PolicyInfo {
    /// Its name in experiment files and on command lines.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The rule's origin.
    pub source: &'static str,
    /// Whether it needs to know how long tasks will run, which no kernel does.
    pub clairvoyant: bool,
    /// See [`Policy::ORDER`].
    pub order: &'static [First],
    /// The parameter that seeds its random numbers, if it draws any. A host that repeats runs sets
    /// it to the seed of the run unless it is given.
    pub seed: Option<&'static str>,
    /// The kernels that have its rule themselves.
    pub native: &'static [Native],
    /// Whether virtual machines run it unless told otherwise. One policy of a list is that.
    pub is_default_guest: bool,
    /// How it divides the CPUs of a machine, if it does and lets users see how.
    pub groupings: Option<Groupings>,
    /// Which of its parameters can be searched, and how.
    pub spaces: &'static [Space],
    /// What it stands for beside tuned policies, if anything.
    pub baseline: Option<Baseline>,
    /// Its parameters with their defaults.
    pub params: fn() -> Vec<ParamInfo>,
    /// Its nature with parameters given as text.
    ///
    /// Errors: an unknown parameter or an invalid value.
    pub nature: NatureOf,
    /// The settings of a rehearsal, if the given parameters need one. A host that gets some runs
    /// the load once with a policy built from them, adds what it has [`learned()`] to the
    /// parameters, and runs the load again. A host that cannot, or does not ask, may build the
    /// policy all the same.
    ///
    /// Errors: an unknown parameter or an invalid value.
    pub rehearsal: RehearsalOf,
    /// Builds it for a machine, with parameters given as text.
    ///
    /// Errors: an unknown parameter, an invalid value, or values that contradict each other.
    pub build: Build,
}

/// Properties of a policy with certain parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// It needs to know how long tasks will run, which no kernel does.
    pub clairvoyant: bool,
    /// It uses what it learned in an earlier run of the same load.
    pub rehearsed: bool,
    /// It leaves no CPU idle while a ready task is allowed there.
    pub work_conserving: bool,
    /// A ready task may wait for as long as others go on computing.
    pub starves: bool,
    /// How long a ready task waits at most while others go on computing, if that is known.
    pub longest_wait: Option<Bound>,
}

/// Determines a policy's nature from parameters as text.
pub type NatureOf = fn(&[(&str, &str)]) -> Result<Nature, ParamError>;

/// Names and values of parameters, as text.
pub type Settings = Vec<(String, String)>;

/// Determines the settings of a rehearsal from parameters as text.
pub type RehearsalOf = fn(&[(&str, &str)]) -> Result<Option<Settings>, ParamError>;

/// Builds a policy from parameters as text.
pub type Build = fn(&Machine, &[(&str, &str)]) -> Result<Box<dyn Scheduler>, ParamError>;

/// What `policy` has learned so far in the run ([`Scheduler::learned`]).
pub fn learned(policy: &(impl Scheduler + ?Sized)) -> Settings {
    let mut settings = Settings::new();
    policy.learned(&mut |name, text| settings.push((name.into(), text.into())));
    settings
}

/// `settings` with `changes` added; a change replaces the setting with the same name.
pub fn changed(settings: &[(&str, &str)], changes: &[(&str, &str)]) -> Settings {
    let stays = |name: &str| changes.iter().all(|(changed, _)| *changed != name);
    let kept = settings.iter().filter(|(name, _)| stays(name));
    kept.chain(changes).map(|(name, text)| ((*name).into(), (*text).into())).collect()
}

/// Builds a policy that is an ordering rule; one list of settings covers its own parameters and
/// those of [`Smp`].
///
/// Errors: as [`PolicyInfo::build`].
pub fn build_rule<Q: RunQueue>(
    machine: &Machine,
    settings: &[(&str, &str)],
) -> Result<Smp<Q>, ParamError> {
    let (params, smp) = read_settings::<Q>(settings)?;
    Smp::new(machine, &params, &smp)
}

/// [`build_rule`], or, for a machine with one CPU, the same rule in [`Uni`], where the parameters
/// of the layout have no effect.
pub fn build_boxed<Q: RunQueue + 'static>(
    machine: &Machine,
    settings: &[(&str, &str)],
) -> Result<Box<dyn Scheduler>, ParamError> {
    let (params, smp) = read_settings::<Q>(settings)?;
    if machine.cpus() > 1 {
        return Ok(Smp::<Q>::boxed(machine, &params, &smp)?);
    }
    boxed(|| Uni::<Q>::new(machine, &params))
}

/// What `build` returns, in memory of its own.
// In a frame of its own, as is what is built: a kernel's stack may have 8 KiB.
#[inline(never)]
fn boxed<P: Scheduler + 'static>(
    build: impl FnOnce() -> Result<P, ParamError>,
) -> Result<Box<dyn Scheduler>, ParamError> {
    Ok(Box::new(build()?))
}

fn read_settings<Q: RunQueue>(
    settings: &[(&str, &str)],
) -> Result<(Q::Params, SmpParams), ParamError> {
    let mut params = Q::Params::default();
    let mut smp = Q::smp();
    for (name, text) in settings {
        match params.set(name, text) {
            Err(ParamError::Unknown { .. }) if Q::HAS_LAYOUTS => smp.set(name, text)?,
            other => other?,
        }
    }
    Ok((params, smp))
}

fn read_own<P: Policy>(settings: &[(&str, &str)]) -> Result<P::Params, ParamError> {
    let mut params = P::Params::default();
    settings.iter().try_for_each(|(name, text)| params.set(name, text))?;
    Ok(params)
}

/// The parameters that [`build_rule`] accepts.
pub fn list_rule<Q: RunQueue>() -> Vec<ParamInfo> {
    let mut list = Q::Params::default().list();
    if Q::HAS_LAYOUTS {
        list.extend(Q::smp().list());
    }
    list
}

/// [`PolicyInfo::nature`] of a policy that is an ordering rule.
///
/// Errors: as [`PolicyInfo::nature`].
pub fn nature_of_rule<Q: RunQueue>(settings: &[(&str, &str)]) -> Result<Nature, ParamError> {
    let (params, smp) = read_settings::<Q>(settings)?;
    let together = smp.layout == Layout::Global || smp.steal() == Steal::Machine;
    Ok(Nature {
        clairvoyant: Q::is_clairvoyant(&params),
        rehearsed: Q::is_rehearsed(&params),
        work_conserving: together && Q::is_work_conserving(&params),
        starves: Q::starves(&params),
        longest_wait: Q::longest_wait(&params),
    })
}

/// [`PolicyInfo::rehearsal`] of a policy that is an ordering rule.
///
/// Errors: as [`PolicyInfo::rehearsal`].
pub fn rehearsal_of_rule<Q: RunQueue>(
    settings: &[(&str, &str)],
) -> Result<Option<Settings>, ParamError> {
    let (params, _) = read_settings::<Q>(settings)?;
    Ok(Q::rehearsal(&params).map(|changes| changed(settings, changes)))
}

/// Builds a policy that drives all CPUs itself; there are as many runqueues as CPUs.
///
/// Errors: as [`PolicyInfo::build`].
pub fn build_own<P: Policy + Scheduler + 'static>(
    machine: &Machine,
    settings: &[(&str, &str)],
) -> Result<Box<dyn Scheduler>, ParamError> {
    let params = read_own::<P>(settings)?;
    boxed(|| P::build(machine, machine.cpus(), &params))
}

/// The parameters that [`build_own`] accepts.
pub fn list_own<P: Policy>() -> Vec<ParamInfo> {
    P::Params::default().list()
}

/// [`PolicyInfo::nature`] of a policy that drives all CPUs itself.
///
/// Errors: as [`PolicyInfo::nature`].
pub fn nature_of_own<P: Policy>(settings: &[(&str, &str)]) -> Result<Nature, ParamError> {
    let params = read_own::<P>(settings)?;
    Ok(Nature {
        clairvoyant: P::is_clairvoyant(&params),
        rehearsed: P::is_rehearsed(&params),
        work_conserving: P::is_work_conserving(&params),
        starves: P::starves(&params),
        longest_wait: P::longest_wait(&params),
    })
}

/// [`PolicyInfo::rehearsal`] of a policy that drives all CPUs itself.
///
/// Errors: as [`PolicyInfo::rehearsal`].
pub fn rehearsal_of_own<P: Policy>(
    settings: &[(&str, &str)],
) -> Result<Option<Settings>, ParamError> {
    let changes = P::rehearsal(&read_own::<P>(settings)?);
    Ok(changes.map(|changes| changed(settings, changes)))
}

/// Declares policies: each line gives a module and its entry in the list `POLICIES`. A group is a
/// folder of that name. The kind is `RunQueue` for an ordering rule, `Scheduler` for a policy that
/// drives all CPUs itself. Code shared by policies of a group is a `mod` at its end. The path
/// `family::member` is a module that the policy `family` declares in its own folder.
#[macro_export]
macro_rules! policies {
    ($(
        $(#[$doc:meta])*
        $group:ident {
            $(
                $name:literal $module:ident $(:: $member:ident)? => $type:ident: $kind:ident,
                $summary:literal;
            )*
            $( mod $shared:ident; )*
        }
    )*) => {
        $(
            $(#[$doc])*
            // The group `osv` contains a module of the same name.
            #[allow(clippy::module_inception)]
            pub mod $group {
                $( $crate::policies!(@module $module $(:: $member)?); )*
                $( mod $shared; )*
            }
        )*

        /// All policies.
        pub static POLICIES: &[$crate::registry::PolicyInfo] = &[$($(
            $crate::policies!(@info $name, $summary, $kind, $group::$module$(::$member)?::$type),
        )*)*];
    };
    (@info $name:literal, $summary:literal, $kind:ident, $type:path) => {
        $crate::registry::PolicyInfo {
            name: $name,
            summary: $summary,
            source: <$type as $crate::registry::Policy>::SOURCE,
            clairvoyant: <$type as $crate::registry::Policy>::CLAIRVOYANT,
            order: <$type as $crate::registry::Policy>::ORDER,
            seed: <$type as $crate::registry::Policy>::SEED,
            native: <$type as $crate::registry::Policy>::NATIVE,
            is_default_guest: <$type as $crate::registry::Policy>::IS_DEFAULT_GUEST,
            groupings: <$type as $crate::registry::Policy>::GROUPINGS,
            spaces: <$type as $crate::registry::Policy>::SPACES,
            baseline: <$type as $crate::registry::Policy>::BASELINE,
            params: $crate::policies!(@params $kind, $type),
            nature: $crate::policies!(@nature $kind, $type),
            rehearsal: $crate::policies!(@rehearsal $kind, $type),
            build: $crate::policies!(@build $kind, $type),
        }
    };
    (@module $module:ident) => { pub mod $module; };
    (@module $family:ident :: $member:ident) => {};
    (@params RunQueue, $type:path) => { $crate::registry::list_rule::<$type> };
    (@params Scheduler, $type:path) => { $crate::registry::list_own::<$type> };
    (@nature RunQueue, $type:path) => { $crate::registry::nature_of_rule::<$type> };
    (@nature Scheduler, $type:path) => { $crate::registry::nature_of_own::<$type> };
    (@rehearsal RunQueue, $type:path) => { $crate::registry::rehearsal_of_rule::<$type> };
    (@rehearsal Scheduler, $type:path) => { $crate::registry::rehearsal_of_own::<$type> };
    (@build RunQueue, $type:path) => { $crate::registry::build_boxed::<$type> };
    (@build Scheduler, $type:path) => { $crate::registry::build_own::<$type> };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings_replace_those_of_the_same_name() {
        let owned = |list: &[(&str, &str)]| -> Settings {
            list.iter().map(|&(name, text)| (name.into(), text.into())).collect()
        };
        let given = [("a", "1"), ("b", "2"), ("a", "3")];
        assert_eq!(changed(&given, &[]), owned(&given));
        assert_eq!(changed(&given, &[("a", "4")]), owned(&[("b", "2"), ("a", "4")]));
        assert_eq!(changed(&[], &[("c", "5")]), owned(&[("c", "5")]));
    }
}
