//! Command-line arguments of commands about the running machine.

use crate::args::{PlaceArg, PlainFormat};
use anysched_core::Span;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct AttachArgs {
    /// The policy
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present_any = ["status", "stop", "build", "change"]
    )]
    pub policy: Option<String>,
    /// Where it runs: an agent needs no headers of the kernel and loads no module, and a policy
    /// that goes wrong in it cannot hang the machine
    #[arg(long = "in", value_enum, value_name = "PLACE", default_value_t = PlaceArg::Module)]
    pub place: PlaceArg,
    /// A parameter of the policy, for example quantum=10ms; `@FILE` reads the value from a file
    #[arg(long, value_name = "KEY=VALUE", requires = "policy")]
    pub set: Vec<String>,
    /// Hold policy and kernel to their contract, and each call to a bound on its work: a violation
    /// ends the policy
    #[arg(long)]
    pub checked: bool,
    /// Memory for the policy; 16MiB is enough for about 40,000 tasks
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "16MiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub heap: u64,
    /// Also record the policy's calls and answers, for `replay`
    #[arg(long, value_name = "LOG", requires = "policy")]
    pub record: Option<PathBuf>,
    /// For how long [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = Span::parse, requires = "policy")]
    pub span: Option<Span>,
    /// Time between two tables
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub every: Span,
    /// Show only what happened in all, at the end
    #[arg(long, requires = "policy")]
    pub quiet: bool,
    /// Output format: tables, or an object per interval
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
    /// A module built before, instead of building one for this kernel
    #[arg(long, value_name = "FILE.ko", requires = "bpf")]
    pub module: Option<PathBuf>,
    /// An agent built before, instead of building one; it goes with --in agent
    #[arg(long, value_name = "FILE", requires = "bpf", conflicts_with = "module")]
    pub agent: Option<PathBuf>,
    /// The BPF program that was built with the module or the agent
    #[arg(long, value_name = "FILE.bpf.o")]
    pub bpf: Option<PathBuf>,
    /// Say who schedules this machine
    #[arg(long, conflicts_with_all = ["policy", "stop", "build"])]
    pub status: bool,
    /// End the policy that schedules this machine, also one attached by another process
    #[arg(long, conflicts_with_all = ["policy", "build"])]
    pub stop: bool,
    /// Change a parameter of the policy that schedules this machine while it runs, also of one
    /// attached by another process; `@FILE` reads the value from a file
    #[arg(
        long,
        value_name = "KEY=VALUE",
        conflicts_with_all = ["policy", "status", "stop", "build"]
    )]
    pub change: Vec<String>,
    /// Only build what this kernel needs, and print the names of module or agent and of the BPF
    /// program; this takes no privileges
    #[arg(long, conflicts_with = "policy")]
    pub build: bool,
    /// Make the policy go wrong, for tests: how, and at which pick
    #[arg(long, hide = true, value_name = "KIND:N", value_parser = fault)]
    pub fault: Option<(String, u64)>,
    /// Attach while this command runs, and exit with its code
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "span", requires = "policy")]
    pub command: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub struct RecordArgs {
    /// The output: text of ftrace, compressed if its name ends in .gz
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// For how long [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = Span::parse)]
    pub span: Option<Span>,
    /// The kernel's memory for events that have not been written yet, of all CPUs together
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64MiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub buffer: u64,
    /// Keep a recording in which events are missing
    #[arg(long)]
    pub lossy: bool,
    /// Record while this command runs, and exit with its code
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "span")]
    pub command: Vec<OsString>,
}

/// The least and the most bytes that make sense.
const SIZES: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 40;

/// Reads a number of bytes such as `16MiB`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(shift);
    let bytes = bytes.and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.filter(|bytes| SIZES.contains(bytes)).ok_or_else(|| {
        "not a size from 64KiB to 1024GiB, such as 16MiB; without a unit it is in bytes".into()
    })
}

/// Reads an interval that can be seen.
fn interval(text: &str) -> Result<Span, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    let allowed = Span::from_ms(10)..=Span::from_ms(86_400_000);
    if allowed.contains(&span) { Ok(span) } else { Err("not a time from 10ms to 24h".into()) }
}

fn fault(text: &str) -> Result<(String, u64), String> {
    let pair = text.split_once(':').and_then(|(kind, at)| Some((kind.into(), at.parse().ok()?)));
    pair.ok_or_else(|| "it takes KIND:N".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        for (text, bytes) in [
            ("65536", Some(65_536)),
            ("64KiB", Some(65_536)),
            ("16 MiB", Some(16 << 20)),
            ("1024GiB", Some(1 << 40)),
            ("1025GiB", None),
            ("1", None),
            ("16MB", None),
            ("-1MiB", None),
            ("99999999999999GiB", None),
        ] {
            assert_eq!(size(text).ok(), bytes, "{text}");
        }
    }
}
