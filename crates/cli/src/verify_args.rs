//! Arguments of `anysched verify`.

use crate::args::{ListFormat, whole};
use anysched_core::Span;
use anysched_policies::POLICIES;
use anysched_verify::Property;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// The most tasks of a search; states of more are too many to come far.
const MOST_TASKS: u64 = 6;

#[derive(clap::Args, Debug)]
pub struct VerifyArgs {
    /// The policies [default: all]
    #[arg(value_parser = PossibleValuesParser::new(POLICIES.iter().map(|policy| policy.name)))]
    pub policy: Vec<String>,
    /// Set a parameter of the policy: `quantum=10ms`
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Search also with each layout and with each choice among words made otherwise
    #[arg(long, conflicts_with = "set")]
    pub settings: bool,
    /// How many tasks there are at most
    #[arg(
        long,
        default_value = "3",
        value_parser = whole::<u32>(1..=MOST_TASKS),
        allow_negative_numbers = true
    )]
    pub tasks: u32,
    /// How many CPUs the machine has
    #[arg(
        long,
        default_value = "2",
        value_parser = whole::<u16>(1..=8),
        allow_negative_numbers = true,
        conflicts_with = "machine"
    )]
    pub cpus: u16,
    /// The machine, as in experiments: "2 nodes x 1 cores"
    #[arg(long, value_name = "TOPOLOGY")]
    pub machine: Option<String>,
    /// How many events a history has at most; goes on until the time is over if only that is given
    /// [default: 7]
    #[arg(long, value_parser = whole::<u32>(0..=1000), allow_negative_numbers = true)]
    pub depth: Option<u32>,
    /// How long a search may take, for example 60s
    #[arg(long = "for", value_name = "TIME", value_parser = Span::parse)]
    pub time: Option<Span>,
    /// Search only for breaks of these
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PROPERTY,…",
        value_parser = PossibleValuesParser::new(Property::ALL.map(Property::name)),
    )]
    pub property: Vec<String>,
    /// Leave these kinds of events out
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "KIND,…",
        value_parser = PossibleValuesParser::new(KINDS.map(|(name, _)| name)),
    )]
    pub without: Vec<String>,
    /// Search the glue that drives the policies in this kernel, under a model of the kernel, with
    /// the policies behind it
    #[arg(long, value_enum, conflicts_with_all = ["without", "save"])]
    pub kernel: Option<Kernel>,
    /// Memory for states, in MiB; a search ends when it is used up
    #[arg(
        long,
        default_value = "2048",
        value_name = "MIB",
        value_parser = whole::<usize>(1..=1 << 20),
        allow_negative_numbers = true
    )]
    pub memory: usize,
    /// How many threads search [default: one per hardware thread]
    #[arg(long, value_parser = whole::<u16>(1..=1024), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
    /// Write what is found to this folder: a log for `replay`, a test in Rust, and an experiment of
    /// the same events, which says what of them has no words there
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// Kernels whose glue can be searched.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Tasks that start, wake, yield and end while CPUs leave their stacks and are interrupted
    #[value(name = "arceos")]
    ArceOs,
    /// vCPUs that block, are paused, bound, inserted and removed while registers are saved
    Xen,
    /// Tasks that sleep, change, are taken away before they run, and CPUs that real-time tasks take
    Linux,
}

/// The kinds of events that can be left out.
pub const KINDS: [(&str, &str); 8] = [
    ("sync", "wakers announce that they will block"),
    ("late-picks", "a CPU picks later than its task was put back"),
    ("not-run", "picks are undone"),
    ("resumed", "ready tasks are taken out for a moment"),
    ("ticks", "the host ticks"),
    ("nice", "weights and priorities change"),
    ("affinity", "affinities change"),
    ("hotplug", "CPUs come into use and go out of it"),
];
