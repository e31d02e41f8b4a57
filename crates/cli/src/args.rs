//! Command-line arguments.

use crate::bench::args::BenchCommand;
use crate::hosts;
use anysched_clients::Cost;
use anysched_core::Span;
use anysched_host::HostInfo;
use anysched_policies::POLICIES;
use anysched_theory::measured::COLUMN;
use anysched_wire::datagram;
use anysched_workload::import::{IMPORTERS, ImporterInfo};
use anysched_workload::kinds::{KINDS, KindInfo};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Parser, Subcommand, ValueEnum};
use std::ops::RangeInclusive;
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
    /// Run an experiment and draw its results over the values of an axis
    Plot(PlotArgs),
    /// Check an experiment file without running it
    Check(CheckArgs),
    /// Run all experiments of a paper and print which of its claims hold
    Reproduce(ReproduceArgs),
    /// Run a benchmark in simulation and print its report for each policy
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Boot a kernel whose scheduler is a policy, run one of its programs and print what came of it
    Boot(BootArgs),
    /// List the hosts: where runs can be made, and what each can do
    Hosts(HostsArgs),
    /// Measure what scheduling costs in a real kernel under each policy, for simulations of it
    Calibrate(CalibrateArgs),
    /// Run an experiment in a real kernel and in a simulation with costs measured there, and print
    /// how far the two are apart
    Predict(PredictArgs),
    /// Search the parameters that suit a load best, and say how far that is from the optimum
    Tune(TuneArgs),
    /// Draw one run as characters: which task each CPU runs, when
    Gantt(GanttArgs),
    /// List the policies, or explain one
    Policies(PoliciesArgs),
    /// Show a machine: its CPUs, what they share, and the groups that the policy gfs makes of them
    Topology(TopologyArgs),
    /// List the kinds of load that experiments can have, or explain one
    Workloads(WorkloadsArgs),
    /// Turn a recording or another tool's load into one of ours
    Import(ImportArgs),
    /// Say what a distribution of run times means for slices, or find the one that measured times
    /// follow
    LoadModel(LoadModelArgs),
    /// Compute what queueing theory says
    #[command(subcommand)]
    Model(ModelCommand),
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

/// The most of anything that is counted in a picture.
const MOST: u64 = 1_000_000;

/// Reads whole numbers of this range; another text is told which they are.
fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("not a whole number from {least} to {most}")
        })
    }
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
    #[arg(long, value_parser = whole::<u32>(1..=100_000), allow_negative_numbers = true)]
    pub seeds: Option<u32>,
    #[command(flatten)]
    pub host: HostArgs,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Also write the results there: as table, JSON and CSV, and as Parquet (a line per run) if
    /// that is built in
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write what happened in the first run of each row: `.pftrace` for Perfetto, `.txt` for
    /// ftrace text; several rows get several files
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Also record the calls and answers of the policy in the first run of each row, for `replay`
    #[arg(long, value_name = "LOG")]
    pub record: Option<PathBuf>,
    /// Also write what the policy learned in the first run of each row (in its rehearsal, if it
    /// has one) for runs that go by it, as the value of its parameter: `--set KEY=@FILE`
    #[arg(long, value_name = "FILE")]
    pub learned: Option<PathBuf>,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

/// Where runs are made.
#[derive(clap::Args, Debug)]
pub struct HostArgs {
    /// Where the runs are made
    #[arg(
        long,
        value_name = "HOST",
        value_parser = hosts::parser(),
        default_value = hosts::usual()
    )]
    pub host: &'static HostInfo,
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
pub struct PlotArgs {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub host: HostArgs,
    /// The axis of the experiment over which a line per policy is drawn, for example `scenario` or
    /// `machine.cpus`
    #[arg(long, value_name = "AXIS")]
    pub x: String,
    /// What is drawn, a panel each, for example `wakeup_latency_ns_p99`
    #[arg(long, value_delimiter = ',', value_name = "METRIC,…", required = true)]
    pub y: Vec<String>,
    /// Equal distances on the axis are equal ratios
    #[arg(long)]
    pub log_x: bool,
    /// Equal heights are equal ratios; what is not above 0 is left out
    #[arg(long)]
    pub log_y: bool,
    /// How many seeds each row has, instead of the file's
    #[arg(long, value_parser = whole::<u32>(1..=100_000), allow_negative_numbers = true)]
    pub seeds: Option<u32>,
    /// What is written
    #[arg(long, value_enum, default_value_t = PlotFormat::Svg)]
    pub format: PlotFormat,
    /// Write it there instead of printing it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    /// A picture for light and dark pages
    Svg,
    /// Its numbers as tables
    Text,
}

#[derive(clap::Args, Debug)]
pub struct ReproduceArgs {
    /// The paper: a folder with experiment files
    pub paper: String,
    /// Smaller experiments, as their files say: for a first look
    #[arg(long)]
    pub quick: bool,
    /// Where the runs are made; experiments for other hosts than the usual one are in folders of
    /// their names
    #[arg(
        long,
        value_name = "HOST",
        value_parser = hosts::parser(),
        default_value = hosts::usual()
    )]
    pub host: &'static HostInfo,
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
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(clap::Args, Debug)]
pub struct TuneArgs {
    /// An experiment: given values of a policy's parameters are searched there, for each row
    #[arg(value_name = "FILE.toml", required_unless_present = "service")]
    pub file: Option<PathBuf>,
    /// CPU time of the tasks, for example "exp(10ms)"; `workloads` lists the distributions
    #[arg(long, value_name = "DIST", required_unless_present = "file")]
    pub service: Option<String>,
    /// Part of the CPUs that tasks keep busy, which arrive one by one [default: 0.9]
    #[arg(long)]
    pub load: Option<f64>,
    /// All tasks arrive at once
    #[arg(long, conflicts_with = "load")]
    pub batch: bool,
    /// Tasks of a run [default: 2000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub tasks: Option<u64>,
    /// CPUs of the machine [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: Option<u16>,
    #[command(flatten)]
    pub host: HostArgs,
    /// The policies that are tuned, m-rsf and mlfq; with a file, the label of one
    #[arg(long, value_name = "NAME,…")]
    pub policy: Vec<String>,
    /// What of the turnaround is made small [default: mean]
    #[arg(long, value_enum)]
    pub objective: Option<ObjectiveName>,
    /// With a file: what is made small, for example `wakeup_latency_ns_p99`
    #[arg(long, value_name = "COLUMN", requires = "file")]
    pub metric: Option<String>,
    /// With a file: the metric is made large
    #[arg(long, requires = "file")]
    pub larger: bool,
    /// With a file: a parameter and the values that are tried, in all combinations; behind each
    /// other with `|` if there are commas in them
    #[arg(long, value_name = "KEY=V1,V2,…", requires = "file")]
    pub over: Vec<String>,
    /// With a file: change a value, as for `run`
    #[arg(long, value_name = "KEY=VALUE", requires = "file")]
    pub set: Vec<String>,
    /// Runs of a parameter set in the search, and as many others in the comparison [default: 20;
    /// those of the file]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub seeds: Option<u32>,
    /// What the seeds of the runs derive from [default: 1; that of the file]
    #[arg(long)]
    pub seed: Option<u64>,
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
pub struct HostsArgs {
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct BootArgs {
    /// The kernel
    #[arg(value_parser = hosts::parser())]
    pub host: &'static HostInfo,
    /// The policies, a boot each; `hosts` lists the kernel's own schedulers, which can be named too
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", required = true)]
    pub policy: Vec<String>,
    /// The program, of those that `hosts` lists; on a server, this computer puts a load
    #[arg(long, value_name = "NAME")]
    pub app: String,
    /// A parameter of the policies, for example quantum=10ms; a value `@FILE` is read from there
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// An argument of the program, for example scale=100
    #[arg(long, value_name = "KEY=VALUE")]
    pub with: Vec<String>,
    /// The tick of policies that have none of their own
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub tick: Option<Span>,
    /// Count instructions instead of time, which is the default for one CPU: an instruction takes
    /// a nanosecond, and the same boot always takes the same time
    #[arg(long)]
    pub icount: bool,
    /// CPUs of the machine; each has a runqueue and the policy of its own
    #[arg(long, default_value = "1", value_name = "N", value_parser = whole::<u16>(1..=16))]
    pub smp: u16,
    /// Let time pass as it really does while the machine is idle; otherwise as with --icount
    #[arg(long, conflicts_with = "icount")]
    pub real_time: bool,
    /// Also write what happened: `.pftrace` for Perfetto, `.txt` for ftrace text
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Also record the calls and answers of the policy, for `replay`
    #[arg(long, value_name = "LOG")]
    pub record: Option<PathBuf>,
    /// Also write what the policy has learned, to give it to another boot with --set KEY=@FILE
    #[arg(long, value_name = "FILE")]
    pub learned: Option<PathBuf>,
    /// How long the kernel may be silent before it counts as hung
    #[arg(long, default_value = "120s", value_name = "TIME", value_parser = Span::parse)]
    pub timeout: Span,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    #[command(flatten)]
    pub clients: ClientArgs,
}

/// What clients of this computer ask of a server in a kernel.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Load of a server")]
pub struct ClientArgs {
    /// Clients: each sends a request, waits for the answer and sends the next [default: 40]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=512))]
    pub clients: Option<u16>,
    /// Requests of each client [default: 100]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000_000))]
    pub requests: Option<u32>,
    /// CPU time that requests need, and how many there are of each [default: 1ms*4,20ms]
    #[arg(long, value_delimiter = ',', value_name = "TIME*N,…")]
    pub costs: Vec<Cost>,
    /// Have clients wait for each other: the requests of a round are sent at once
    #[arg(long)]
    pub rounds: bool,
    /// What the order of the costs is drawn with [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Bytes of a request and of its answer [default: 64]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(SIZES))]
    pub size: Option<u16>,
    /// How long a client waits for an answer before the request counts as lost [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub lost_after: Option<Span>,
}

/// Bytes that datagrams can have.
const SIZES: RangeInclusive<u64> = datagram::SHORTEST as u64..=datagram::LONGEST as u64;

#[derive(clap::Args, Debug)]
pub struct CalibrateArgs {
    /// The kernel
    #[arg(value_parser = hosts::parser())]
    pub host: &'static HostInfo,
    /// An experiment, whose policies are measured as they are set there
    #[arg(value_name = "FILE.toml")]
    pub file: Option<PathBuf>,
    /// These policies; `hosts` lists the kernel's own schedulers, which can be named too [default:
    /// those that the kernel has, in both forms]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub policy: Vec<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = CalibrateFormat::Table)]
    pub format: CalibrateFormat,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrateFormat {
    /// For people
    Table,
    /// For experiments: a file that the key `costs` of `[machine]` names
    Toml,
    /// For documentation
    Markdown,
}

#[derive(clap::Args, Debug)]
pub struct PredictArgs {
    /// Experiments whose `[machine]` names measured costs
    #[arg(value_name = "FILE.toml", required = true)]
    pub files: Vec<PathBuf>,
    /// The kernel that is predicted
    #[arg(
        long,
        value_name = "HOST",
        value_parser = hosts::parser(),
        default_value = hosts::measured()
    )]
    pub host: &'static HostInfo,
    /// What is compared [default: what each experiment reports, as far as it is a time]
    #[arg(long, value_delimiter = ',', value_name = "METRIC,…")]
    pub column: Vec<String>,
    /// Smaller experiments, as their files say: for a first look
    #[arg(long)]
    pub quick: bool,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PredictFormat::Table)]
    pub format: PredictFormat,
    /// Runs made at the same time [default: as many as the machine runs threads]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictFormat {
    /// For people
    Table,
    /// For documentation
    Markdown,
}

#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub host: HostArgs,
}

#[derive(clap::Args, Debug)]
pub struct GanttArgs {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub host: HostArgs,
    /// Which combination of axis values, counted from 0 as `check` lists them
    #[arg(
        long,
        default_value = "0",
        value_parser = whole::<usize>(0..=MOST),
        allow_negative_numbers = true
    )]
    pub group: usize,
    /// Which of the row's seeds, from 0
    #[arg(
        long,
        default_value = "0",
        value_parser = whole::<u32>(0..=MOST),
        allow_negative_numbers = true
    )]
    pub seed: u32,
    /// Width of the picture [default: that of the terminal, at most 100]
    #[arg(long, value_parser = whole::<u16>(30..=100), allow_negative_numbers = true)]
    pub columns: Option<u16>,
    /// Lines for tasks
    #[arg(
        long,
        default_value = "20",
        value_parser = whole::<usize>(0..=MOST),
        allow_negative_numbers = true
    )]
    pub tasks: usize,
    /// Where the picture begins, for example 10ms
    #[arg(
        long,
        default_value = "0",
        value_name = "TIME",
        value_parser = Span::parse,
        allow_hyphen_values = true
    )]
    pub from: Span,
    /// Where it ends [default: the end of the run]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, allow_hyphen_values = true)]
    pub until: Option<Span>,
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

#[derive(clap::Args, Debug)]
pub struct WorkloadsArgs {
    /// The one to explain
    #[arg(value_parser = PossibleValuesParser::new(KINDS.iter().map(kind_value)))]
    pub kind: Option<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// A kind of load as an argument.
fn kind_value(kind: &KindInfo) -> PossibleValue {
    PossibleValue::new(kind.name).aliases(kind.aliases)
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
pub struct TopologyArgs {
    /// The machine, as `topology` names it in an experiment: `host`, an .xml of lstopo, a .json of
    /// lscpu, or words such as "2 packages x 4 cores x 2 threads"
    #[arg(default_value = "host")]
    pub spec: String,
    /// A line for each node, package, cache and core, and all groups
    #[arg(long)]
    pub full: bool,
    /// Only these groups, after a check: a rule of gfs, or lists of CPUs such as "0-3;4-7"
    #[arg(long, value_name = "GROUPS")]
    pub grouping: Option<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct ImportArgs {
    /// What the file is
    #[arg(value_parser = PossibleValuesParser::new(IMPORTERS.iter().map(format_value)))]
    pub format: String,
    /// The file, plain or compressed with gzip
    pub file: PathBuf,
    /// Where the load goes: `.json` for a model, `.csv` for a list of tasks
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// How it is read, for example softirqs=task; `workloads KIND` lists the keys
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// A format of files that are loads, as an argument.
fn format_value(format: &ImporterInfo) -> PossibleValue {
    PossibleValue::new(format.name).aliases(format.aliases).help(format.summary)
}

/// The formats of files with run times, as arguments.
fn times_values() -> impl Iterator<Item = PossibleValue> {
    let column = "A column of times, or the column service_ns of several; plain numbers are ns";
    let column = PossibleValue::new(COLUMN).help(column);
    let importers = IMPORTERS.iter().filter(|format| format.times.is_some());
    [column].into_iter().chain(importers.map(format_value))
}

#[derive(clap::Args, Debug)]
pub struct LoadModelArgs {
    #[command(flatten)]
    pub times: RunTimes,
    /// What FILE is [default: its first lines tell]
    #[arg(
        long = "as",
        value_parser = PossibleValuesParser::new(times_values()),
        requires = "fit",
        value_name = "FORMAT"
    )]
    pub format_of_file: Option<String>,
    /// The slice of Q1 [default: the recommended one]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub q1: Option<String>,
    /// The slice of Q2 [default: that of Q1]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub q2: Option<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct RunTimes {
    /// The distribution, for example "exp(10ms)"; `anysched workloads` lists the kinds
    #[arg(long, value_name = "DISTRIBUTION", allow_hyphen_values = true)]
    pub service: Option<String>,
    /// Measured run times, plain or compressed with gzip, to which distributions are fitted
    #[arg(long, value_name = "FILE")]
    pub fit: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Subcommand, Debug)]
pub enum ModelCommand {
    /// M/M/c: Poisson arrivals, exponential service times, everybody waits until served
    Mmc(MmcArgs),
    /// M/M/c/N: the same with room for N tasks; who comes when it is full is turned away
    Mmcn(MmcnArgs),
    /// A closed batch under M-RSF, on an idle machine and without costs
    MRsf(MRsfArgs),
    /// Periodic tasks on one CPU: whether DM and EDF meet their deadlines, and response times
    Periodic(PeriodicArgs),
}

#[derive(clap::Args, Debug)]
pub struct MmcArgs {
    #[command(flatten)]
    pub station: StationArgs,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct MmcnArgs {
    #[command(flatten)]
    pub station: StationArgs,
    /// N: how many tasks there is room for, those served among them
    #[arg(long, value_name = "N")]
    pub limit: u32,
    /// Also print equations (9) to (11) of the M-RSF paper, which are wrong, beside it
    #[arg(long)]
    pub paper: bool,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct StationArgs {
    #[command(flatten)]
    pub rate: RateArgs,
    /// The mean service time, for example 10ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub service: String,
    /// c: how many tasks are served at the same time
    #[arg(long, value_name = "C", default_value_t = 1)]
    pub servers: u32,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct RateArgs {
    /// λ: tasks per second
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub arrivals: Option<f64>,
    /// ρ: λ over what all servers can do
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    pub load: Option<f64>,
}

#[derive(clap::Args, Debug)]
pub struct MRsfArgs {
    /// Slices of Q1 and Q2, in means of the run time
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "RATIO,…",
        default_value = "0.5,1,1.5,2",
        allow_hyphen_values = true
    )]
    pub q: Vec<f64>,
    /// The distribution of the run times
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        default_value = "exp(1s)",
        allow_hyphen_values = true
    )]
    pub service: String,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct PeriodicArgs {
    /// The tasks: CSV whose first line is run,period,deadline and whose times are such as 2ms; the
    /// deadline may be left out, and there may be a column jitter
    pub file: PathBuf,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct ReplayArgs {
    /// The log
    pub log: PathBuf,
    /// Print the records instead
    #[arg(long)]
    pub show: bool,
    /// Also write what the log tells of the run: `.pftrace` for Perfetto, `.txt` for ftrace text
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}
