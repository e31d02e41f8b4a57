//! What can be typed after `anysched bench`.

use anysched_core::Span;
use clap::{Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// Interbench: is a task of a desktop on time beside background load?
    Interbench(InterbenchArgs),
    /// cyclictest: how late do threads wake up that sleep until fixed times?
    Cyclictest(CyclictestArgs),
    /// schbench: how long do workers wait that are woken in batches?
    Schbench(SchbenchArgs),
    /// hackbench: how long do many tasks take to send each other messages?
    Hackbench(HackbenchArgs),
}

/// What all of them take.
#[derive(clap::Args, Debug)]
pub struct BenchArgs {
    /// The policies, one report each
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", default_value = "cfs,eevdf,rr")]
    pub policy: Vec<String>,
    /// The machine
    #[arg(long, value_name = "SPEC", default_value = "4 cores x 2 threads")]
    pub topology: String,
    /// Change a value: `machine.context_switch=0ns`, `workload.0.nice=5`, or a parameter of the
    /// policies, `quantum=10ms`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub format: BenchFormat,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchFormat {
    /// The report of the tool
    Text,
    /// For programs: times in ns
    Json,
}

#[derive(clap::Args, Debug)]
pub struct InterbenchArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// What is benchmarked: audio, video, x, gaming, custom
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "audio,video,x,gaming",
        value_parser = ["audio", "video", "x", "gaming", "custom"]
    )]
    pub task: Vec<String>,
    /// In the presence of what, one after another: none, burn, or what is benchmarked
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "none,video,x,burn",
        value_parser = ["none", "audio", "video", "x", "gaming", "burn", "custom"]
    )]
    pub against: Vec<String>,
    /// How many tasks burn
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub burn: u32,
    /// How long each is measured
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "30s")]
    pub duration: Span,
}

#[derive(clap::Args, Debug)]
pub struct CyclictestArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// How many threads there are
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// The interval of the first thread
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1000us")]
    pub interval: Span,
    /// How much longer that of the next thread is
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "500us")]
    pub distance: Span,
    /// How long threads go on
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "10s")]
    pub duration: Span,
    /// How many tasks burn beside it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub burn: u32,
    /// Times in ns, as with the tool's -N
    #[arg(long)]
    pub nsecs: bool,
}

#[derive(clap::Args, Debug)]
pub struct SchbenchArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// How many message threads there are
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub message_threads: u32,
    /// Workers of each message thread [default: CPUs by message threads]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// CPU time of a request
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "17ms")]
    pub work: Span,
    /// How long requests are begun
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "30s")]
    pub duration: Span,
}

#[derive(clap::Args, Debug)]
pub struct HackbenchArgs {
    #[command(flatten)]
    pub bench: BenchArgs,
    /// How many groups there are
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub groups: u32,
    /// How many senders, and how many receivers, each group has
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub fds: u32,
    /// How many messages each sender sends to each receiver
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub loops: u32,
}
