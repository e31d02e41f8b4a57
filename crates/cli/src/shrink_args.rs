//! Arguments of `anysched shrink`.

use crate::args::{PlainFormat, whole};
use crate::complete;
use anysched_core::Span;
use std::path::PathBuf;

/// An experiment, or a log of decisions from any host (`run --record`, `boot --record`).
#[derive(clap::Args, Debug)]
pub struct ShrinkArgs {
    /// The experiment file, `-` for standard input, one of `anysched experiments` by name, or a log
    #[arg(
        value_name = "FILE",
        add = complete::experiments(),
        required_unless_present = "swarm",
        conflicts_with = "swarm"
    )]
    pub file: Option<PathBuf>,
    /// Instead of a file, the random machine, load and policy of this number, or its machine and
    /// load under the policy that --policy names
    #[arg(long, value_name = "NUMBER")]
    pub swarm: Option<u64>,
    /// What it does wrong: a condition written as a claim's `expect`, such as
    /// "rr.waiting_time_ns_max > 1s", or `contract`, `deadlock` or `claim ID`; of a log, `contract`
    /// or `differs` [default: contract]
    #[arg(long, value_name = "CONDITION", default_value = "contract", hide_default_value = true)]
    pub fails: String,
    /// Only these policies
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", add = complete::policies())]
    pub policy: Vec<String>,
    /// Set a value, as for `run`
    #[arg(long, value_name = "KEY=VALUE", add = complete::settings())]
    pub set: Vec<String>,
    /// Look only at this combination of axis values, numbered from 0 as in `check` [default: all]
    #[arg(long, value_parser = whole::<usize>(0..=1_000_000), allow_negative_numbers = true)]
    pub group: Option<usize>,
    /// Look only at this of each row's seeds, from 0 [default: all]
    #[arg(long, value_parser = whole::<u32>(0..=1_000_000), allow_negative_numbers = true)]
    pub seed: Option<u32>,
    /// How long the search may take
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = Span::parse)]
    pub time: Span,
    /// How many cases are tried at most
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    pub tries: Option<u64>,
    /// Write what is found to this folder: NAME-shrunk.toml, and NAME-shrunk.rs, a test in Rust
    #[arg(short, long = "output", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}
