//! Command-line arguments of `anysched bench`.

use anysched_core::Span;
use clap::{Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// Interbench: does an interactive task stay on time under background load?
    Interbench(InterbenchArgs),
    /// cyclictest: how late do threads wake up from timed sleeps?
    Cyclictest(CyclictestArgs),
    /// schbench: how long do workers woken in batches wait?
    Schbench(SchbenchArgs),
    /// hackbench: how long do many tasks take to exchange messages?
    Hackbench(HackbenchArgs),
}

/// Arguments common to all benchmarks.
#[derive(clap::Args, Debug)]
pub struct BenchArgs {
    /// The policies, one report each
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", default_value = "cfs,eevdf,rr")]
    pub policy: Vec<String>,
    /// The machine, as `topology` in an experiment
    #[arg(long, value_name = "SPEC", default_value = "4 cores x 2 threads")]
    pub topology: String,
    /// Set a value: `machine.context_switch=0ns`, `workload.0.nice=5`, or a policy parameter,
    /// `quantum=10ms`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub format: BenchFormat,
    /// Number of runs in parallel [default: one per hardware thread]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchFormat {
    /// The tool's own report
    Text,
    /// For programs: times in ns
    Json,
}

#[derive(clap::Args, Debug)]
pub struct InterbenchArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// What to benchmark: audio, video, x, gaming, custom
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "audio,video,x,gaming",
        value_parser = ["audio", "video", "x", "gaming", "custom"]
    )]
    pub task: Vec<String>,
    /// Background loads, one after another: none, burn, or a task as for --task
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "none,video,x,burn",
        value_parser = ["none", "audio", "video", "x", "gaming", "burn", "custom"]
    )]
    pub against: Vec<String>,
    /// Number of tasks that burn
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub burn: u32,
    /// How long to measure each
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "30s")]
    pub duration: Span,
}

#[derive(clap::Args, Debug)]
pub struct CyclictestArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// Interval of the first thread
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1000us")]
    pub interval: Span,
    /// Difference between the intervals of successive threads
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "500us")]
    pub distance: Span,
    /// How long the threads run
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "10s")]
    pub duration: Span,
    /// Number of tasks that burn in the background
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub burn: u32,
    /// Print times in ns, like the tool's -N
    #[arg(long)]
    pub nsecs: bool,
}

#[derive(clap::Args, Debug)]
pub struct SchbenchArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// Number of message threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub message_threads: u32,
    /// Workers per message thread [default: CPUs divided by message threads]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// CPU time per request
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "17ms")]
    pub work: Span,
    /// How long new requests are started
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "30s")]
    pub duration: Span,
}

#[derive(clap::Args, Debug)]
pub struct HackbenchArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// Number of groups
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub groups: u32,
    /// Number of senders, and of receivers, per group
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub fds: u32,
    /// Number of messages from each sender to each receiver
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub loops: u32,
}
