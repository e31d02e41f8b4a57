//! What can be typed.

use anysched_core::registry::POLICIES;
use anysched_lab::tune::space::policies;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// CPU scheduling policies, written once, compared on real and synthetic load.
#[derive(Parser, Debug)]
#[command(name = "anysched", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an experiment and print its results
    Run(RunArgs),
    /// Check an experiment file without running it
    Check(CheckArgs),
    /// Run all experiments of a paper and print which of its claims hold
    Reproduce(ReproduceArgs),
    /// Search the parameters that suit a load best, and say how far that is from the optimum
    Tune(TuneArgs),
    /// Draw one run as characters: which task each CPU runs, when
    Gantt(GanttArgs),
    /// List the policies, or explain one
    Policies(PoliciesArgs),
    /// List the kinds of load that experiments can have
    Workloads,
    /// Turn a recording or another tool's load into one of ours
    Import(ImportArgs),
    /// Feed a recorded log to the same policy and stop at the first decision that differs
    Replay(ReplayArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// Which part of an experiment is meant, and what is changed in it.
#[derive(clap::Args, Debug)]
pub struct Selection {
    /// The experiment file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Only these policies, registered ones or labels of the file
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub policy: Vec<String>,
    /// Change a value: `machine.cpus=8`, `workload.0.tasks=500`, or a parameter of the policies,
    /// `quantum=10ms`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub selection: Selection,
    /// How many seeds each row has, instead of the file's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Also write the results there, as table, JSON, CSV and Parquet (a line per run)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write what happened in the first run of each row: `.pftrace` for Perfetto, `.txt` for
    /// ftrace text; several rows get several files
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Also record the calls and answers of the policy in the first run of each row, for `replay`
    #[arg(long, value_name = "LOG")]
    pub record: Option<PathBuf>,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
    /// For spreadsheets: a line per row
    Csv,
}

#[derive(clap::Args, Debug)]
pub struct ReproduceArgs {
    /// The paper: a folder with experiment files
    pub paper: String,
    /// Smaller experiments, as their files say: for a first look
    #[arg(long)]
    pub quick: bool,
    /// Where the folders of the papers are
    #[arg(long, default_value = "experiments", value_name = "DIR")]
    pub experiments: PathBuf,
    /// What is printed
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Also write the results there, as `run` does
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

#[derive(clap::Args, Debug)]
pub struct TuneArgs {
    /// CPU time of the tasks, for example "exp(10ms)"; `workloads` lists the distributions
    #[arg(long, value_name = "DIST")]
    pub service: String,
    /// Part of the CPUs that tasks keep busy, which arrive one by one
    #[arg(long, default_value_t = 0.9)]
    pub load: f64,
    /// All tasks arrive at once
    #[arg(long, conflicts_with = "load")]
    pub batch: bool,
    /// Tasks of a run [default: 2000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub tasks: Option<u64>,
    /// CPUs of the machine
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: u16,
    /// The policies that are tuned
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_values_t = policies().into_iter().map(String::from),
        value_parser = PossibleValuesParser::new(policies()),
    )]
    pub policy: Vec<String>,
    /// What of the turnaround is made small
    #[arg(long, value_enum, default_value_t = ObjectiveName::Mean)]
    pub objective: ObjectiveName,
    /// Runs of a parameter set in the search, and as many others in the comparison
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub seeds: u32,
    /// What the seeds of the runs derive from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What is printed
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectiveName {
    /// The mean
    Mean,
    /// The 99th percentile
    P99,
}

#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub selection: Selection,
}

#[derive(clap::Args, Debug)]
pub struct GanttArgs {
    #[command(flatten)]
    pub selection: Selection,
    /// Which combination of axis values, counted from 0 as `check` lists them
    #[arg(long, default_value_t = 0)]
    pub group: usize,
    /// Which of the row's seeds, from 0
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// Width of the picture [default: that of the terminal, at most 100]
    #[arg(long, value_parser = clap::value_parser!(u16).range(30..=100))]
    pub columns: Option<u16>,
    /// Lines for tasks
    #[arg(long, default_value_t = 20)]
    pub tasks: usize,
    /// Where the picture begins, for example 10ms
    #[arg(long, default_value = "0", value_name = "TIME")]
    pub from: String,
    /// Where it ends [default: the end of the run]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

#[derive(clap::Args, Debug)]
pub struct PoliciesArgs {
    /// The one to explain
    #[arg(value_parser = PossibleValuesParser::new(POLICIES.iter().map(|policy| policy.name)))]
    pub name: Option<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Folder with a page NAME.md for each policy, to which the list in Markdown links
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub pages: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// For people
    Table,
    /// For programs: an array of objects
    Json,
    /// For documentation
    Markdown,
}

#[derive(clap::Args, Debug)]
pub struct ImportArgs {
    /// What the file is
    #[arg(value_enum)]
    pub format: ImportFormat,
    /// The file, plain or compressed with gzip
    pub file: PathBuf,
    /// Where the load goes: `.json` for a model, `.csv` for a list of tasks
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// Text of ftrace, `trace-cmd report` or `perf script`
    #[value(alias = "trace-cmd", alias = "perf")]
    Ftrace,
    /// JSON of rt-app
    #[value(name = "rt-app", alias = "rtapp")]
    RtApp,
    /// The standard workload format of parallel machines
    Swf,
}

#[derive(clap::Args, Debug)]
pub struct ReplayArgs {
    /// The log
    pub log: PathBuf,
    /// Print the records instead
    #[arg(long)]
    pub show: bool,
}
