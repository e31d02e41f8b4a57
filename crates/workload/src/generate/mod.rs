//! Generated loads.
//!
//! A [`Generator`] is a set of parameters; [`Generator::build`] makes the load. What a task does
//! depends on the seed and on which task of the load it is, never on when it was run, so two
//! policies given the same seed are given the same tasks.

#[cfg(test)]
mod tests;

/// Declares the modules of generators and the list of kinds: names, module, keys, and what it is.
macro_rules! generators {
    ($( $name:literal $(| $alias:literal)* $module:ident => $keys:ident, $summary:literal; )*) => {
        $( mod $module; )*

        /// The kinds of load that are generated.
        pub const KINDS: &[KindInfo] =
            &[$( kinds::line_of::<$module::$keys>($name, &[$($alias),*], $summary), )*];
    };
}

generators! {
    "batch" | "closed-batch" batch => Batch, "Tasks that are all there at once";
    "open" | "poisson" open => OpenKeys,
        "Tasks that arrive one after another, whatever has become of those before";
    "closed-loop" | "closed" closed => Closed,
        "Clients that wait for the answer before they ask again";
    "periodic" periodic => Periodic, "Tasks that are released once per period";
    "task-set" task_set => TaskSet,
        "Periodic tasks with random periods and utilisations of a given sum";
    "interactive" interactive => Interactive, "Tasks that run and sleep in turn";
    "hog" hog => Hog, "Tasks that use all the CPU time they get";
    "service" service => ServiceKeys, "Requests from elsewhere, and tasks that answer them";
    "ping" ping => PingKeys, "A task that asks another virtual machine at fixed times";
    "parallel" parallel => Parallel,
        "Tasks that compute and meet at a barrier, perhaps with a lock that they need";
    "interbench" interbench => InterbenchKeys,
        "Interbench: is a task of a desktop on time beside a background load?";
    "cyclictest" cyclictest => Cyclictest,
        "cyclictest: how late do threads wake up that sleep until fixed times?";
    "schbench" schbench => Schbench,
        "schbench: how long do workers wait that are woken in batches?";
    "hackbench" hackbench => Hackbench,
        "hackbench: how long do many tasks take to send each other messages?";
    "arceos-test" arceos_test => ArceosTestKeys,
        "The scheduler tests of ArceOS: tasks compute, yield, and do it again";
}

pub use arceos_test::{ArceosCase, ArceosTest, Groups, Runs};
pub use batch::Batch;
pub use closed::Closed;
pub use cyclictest::Cyclictest;
pub use hackbench::Hackbench;
pub(crate) use hog::FOR_EVER;
pub use hog::Hog;
pub use interactive::Interactive;
pub use interbench::{Background, Emulation, Interbench};
pub use open::{Arrivals, Open};
pub use parallel::Parallel;
pub use periodic::Periodic;
pub use ping::{Echo, Ping};
pub use schbench::Schbench;
pub use service::Service;
pub use task_set::{TaskSet, utilisations};

use crate::dist::Dist;
use crate::extent::Extent;
use crate::kinds::{self, KindInfo, Needs, keys};
use crate::rng::Rng;
use crate::{Load, NewTask};
use anysched_core::{CpuId, CpuSet, DomainId, Span, Time};
use std::fmt;
use std::sync::Arc;

/// The parameters of a generated load.
pub trait Generator: fmt::Debug + Send + Sync {
    /// Checks the parameters for a machine of `cpus` CPUs.
    ///
    /// Errors: names the parameter, its value and what would be right.
    fn validate(&self, cpus: usize) -> Result<(), SettingError>;

    /// Whether it never ends by itself, so that the run needs an end of its own.
    fn endless(&self) -> bool;

    /// How many of `cpus` CPUs it keeps busy in the long run, as far as its work comes at a rate of
    /// its own, whether the last was done or not; 0: it does not.
    fn utilisation(&self, cpus: usize) -> f64 {
        let _ = cpus;
        0.0
    }

    /// How much there is of it on `cpus` CPUs up to a time, if it is ended then.
    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent;

    /// What it needs from a host.
    fn needs(&self) -> Needs;

    /// The load for a machine of `cpus` CPUs.
    ///
    /// Errors: those of [`Generator::validate`].
    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError>;
}

keys! {
    /// What all tasks of a generated load have in common.
    #[derive(Default)]
    pub struct Settings {
        /// The name of the only task; several are called `name-0`, `name-1` and so on.
        name: Option<String> = none "none", eg "worker";
        /// Their nice value.
        nice: i8 = "0", eg "-5", in -20..=19;
        /// Their fixed priority, for policies that use one; larger is more urgent.
        priority: i32 = "0", eg "10";
        /// The CPUs that they may run on.
        affinity: CpuSet = "all", eg "0";
        /// The group that they belong to.
        domain: DomainId = "0", eg "1";
        /// Time from the arrival or release of a job to its deadline.
        deadline: Option<Span> = none "none; of periodic tasks, the period", eg "20ms";
        /// Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of
        /// Linux); periodic tasks have none.
        slice: Option<Span> = none "the policy's", eg "1ms";
        /// The key by which policies that learn from an earlier run recognise the tasks; those with
        /// the same key count as one that runs several times.
        key: Option<u32> = none "the order of creation", eg "7";
        /// How much they use the memory behind the caches, of the most that a task can: machines
        /// with `contention` slow them down by it, and policies may go by it.
        intensity: u8 = "0", eg "80", in 0..=100, unit "%";
    }
}

/// Sources of tasks cost memory for the whole run.
const MAX_SOURCES: i64 = 1 << 20;
/// Tasks of a batch are all there at once, at some 150 bytes each.
const MAX_BATCH: i64 = 1 << 24;
/// More would take years.
const MAX_TASKS: i64 = 1 << 40;

/// Why the parameters of a load were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The parameter.
    pub key: &'static str,
    /// What it was.
    pub value: String,
    /// What would be right.
    pub why: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` = {}: {}", self.key, self.value, self.why)
    }
}

impl std::error::Error for SettingError {}

/// An error unless `right`.
fn check(
    right: bool,
    key: &'static str,
    value: impl fmt::Display,
    why: impl fmt::Display,
) -> Result<(), SettingError> {
    if right {
        return Ok(());
    }
    Err(SettingError { key, value: value.to_string(), why: why.to_string() })
}

/// An error if all runs drawn from `dist` would be empty.
fn check_run(key: &'static str, dist: &Dist) -> Result<(), SettingError> {
    check(dist.mean() > 0.0, key, dist, "a task uses CPU time, for example \"10ms\"")
}

/// An error if `period` is zero or endless.
fn check_period(key: &'static str, period: Span) -> Result<(), SettingError> {
    let right = period > Span::ZERO && period < Span::MAX;
    check(right, key, period, "longer than 0, for example \"10ms\"")
}

/// An error if `count`, where it is given, is 0.
fn check_count(key: &'static str, count: Option<u64>) -> Result<(), SettingError> {
    check(count != Some(0), key, 0, "at least 1")
}

/// An error if nothing can come before `until`.
fn check_until(start: Time, until: Option<Time>) -> Result<(), SettingError> {
    let why = "later than the start; leave it out to go on for ever";
    check(until.is_none_or(|until| until > start), "until", shown(until), why)
}

fn shown(time: Option<Time>) -> Span {
    time.unwrap_or(Time::NEVER).since(Time::ZERO)
}

impl Settings {
    /// What tasks that do not interact need from a host.
    fn needs(&self) -> Needs {
        Needs {
            deadlines: self.deadline.is_some(),
            niceness: self.nice != 0,
            affinity: !self.affinity.is_all(),
            intensity: self.intensity != 0,
            ..Needs::NOTHING
        }
    }

    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        check((-20..=19).contains(&self.nice), "nice", self.nice, "from -20 to 19")?;
        check(self.intensity <= 100, "intensity", self.intensity, "from 0 to 100")?;
        let somewhere = (0..cpus).any(|cpu| self.affinity.contains(CpuId(cpu as u16)));
        let why =
            format_args!("none of these is a CPU of this machine, which has {cpus}").to_string();
        check(somewhere, "affinity", &self.affinity, why)?;
        let why = "longer than 0; leave it out for tasks without deadlines";
        check(self.deadline != Some(Span::ZERO), "deadline", 0, why)?;
        let why = "longer than 0; leave it out for the policy's";
        check(self.slice != Some(Span::ZERO), "slice", 0, why)
    }
}

/// Makes the tasks of one load.
#[derive(Clone, Debug)]
struct Maker {
    settings: Settings,
    numbered: bool,
    made: u64,
}

impl Maker {
    /// Of one task, or of several with numbers in their names.
    fn new(settings: &Settings, numbered: bool) -> Maker {
        Maker { settings: settings.clone(), numbered, made: 0 }
    }

    /// The next task, which arrives at `at`.
    #[inline]
    fn make(&mut self, at: Time) -> NewTask {
        let number = self.made;
        self.made += 1;
        self.make_numbered(number, at)
    }

    /// The task that `number` means, which arrives at `at`.
    #[inline]
    fn make_numbered(&self, number: u64, at: Time) -> NewTask {
        let settings = &self.settings;
        NewTask {
            name: if settings.name.is_some() { self.name(number) } else { None },
            nice: settings.nice,
            affinity: settings.affinity.clone(),
            domain: settings.domain,
            priority: settings.priority,
            period: None,
            budget: settings.slice,
            relative_deadline: settings.deadline,
            deadline: settings.deadline.map(|deadline| at + deadline),
            key: settings.key,
            intensity: settings.intensity,
        }
    }

    /// Out of line, so that making tasks without names costs only a few stores.
    #[cold]
    fn name(&self, number: u64) -> Option<Arc<str>> {
        let name = self.settings.name.as_deref()?;
        Some(if self.numbered { format!("{name}-{number}").into() } else { name.into() })
    }
}

/// The arrivals of those tasks of a load that are known from the start.
#[derive(Clone, Debug)]
struct Agenda {
    /// Times, and which task of the load each is for, in order.
    arrivals: Vec<(Time, u32)>,
    next: usize,
}

impl Agenda {
    fn new(mut arrivals: Vec<(Time, u32)>) -> Agenda {
        arrivals.sort_unstable();
        Agenda { arrivals, next: 0 }
    }

    /// Tasks that arrive at times drawn from `offset`, but none from `until` on.
    fn drawn(tasks: u32, offset: &Dist, until: Option<Time>, seed: u64) -> Agenda {
        let end = until.unwrap_or(Time::NEVER);
        let all = (0..tasks).map(|task| (Agenda::offset(offset, seed, task), task));
        Agenda::new(all.filter(|&(at, _)| at < end).collect())
    }

    /// When one task of the load arrives.
    fn offset(offset: &Dist, seed: u64, task: u32) -> Time {
        Time::ZERO + offset.sample(&mut Rng::numbered(seed, "offset", u64::from(task)))
    }

    #[inline]
    fn peek(&self) -> Time {
        self.arrivals.get(self.next).map_or(Time::NEVER, |&(at, _)| at)
    }

    /// The next arrival; [`Agenda::peek`] has said that there is one.
    #[inline]
    fn take(&mut self) -> (Time, u32) {
        self.next += 1;
        self.arrivals[self.next - 1]
    }
}

/// A run of at least 1 ns, so that every task does something.
#[inline]
fn run(dist: &Dist, rng: &mut Rng) -> Span {
    dist.sample(rng).max(Span(1))
}
