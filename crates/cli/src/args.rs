//! Command-line arguments.

use crate::attach_args::{AttachArgs, RecordArgs};
use crate::bench_args::BenchCommand;
use crate::cluster::Cluster;
use crate::complete::{self, Shell};
use crate::hosts;
use crate::shrink_args::ShrinkArgs;
use crate::verify_args::VerifyArgs;
use anysched_clients::Cost;
use anysched_core::{Machine, Span};
use anysched_host::{Dom0, HostInfo, InstructionTime, Place};
use anysched_lab::output::report::EVENTS;
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
    /// Run an experiment and plot its results: along an axis, or policies side by side
    ///
    /// Where ANYSCHED_RUNS names a folder, `run`, `plot` and `reproduce` keep runs there, and take
    /// from there what has been run of the same experiment by the same program.
    Plot(PlotArgs),
    /// Set two experiments, or the results of earlier runs, side by side
    Compare(CompareArgs),
    /// Write results that `run --out` or `reproduce --out` has written as one page
    Report(ReportArgs),
    /// Check an experiment file without running it
    Check(CheckArgs),
    /// Run all experiments of a paper and print which of its claims hold
    ///
    /// Exits with 3 if a claim comes out otherwise than its experiment expects; with `--quick`, if
    /// it comes out as the opposite, since fewer seeds may leave it undecided.
    Reproduce(ReproduceArgs),
    /// List the claims, figures, tables and equations of a paper, each with the experiments'
    /// claims about it or the reason that there is none
    Coverage(CoverageArgs),
    /// Run a benchmark in simulation and print its report for each policy
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Boot a kernel that schedules by a policy, run one of its programs and print the results
    Boot(Box<BootArgs>),
    /// Have a policy schedule this machine, and show what it does
    Attach(Box<AttachArgs>),
    /// Record what this machine's scheduler does, for `import`
    Record(RecordArgs),
    /// List the hosts on which experiments can run, and what each supports
    Hosts(HostsArgs),
    /// Measure what scheduling costs in a real kernel under each policy, for use in simulations
    Calibrate(CalibrateArgs),
    /// Run an experiment in a real kernel and in a simulation with costs measured there, and print
    /// how much they differ
    Predict(PredictArgs),
    /// Build a kernel or hypervisor with the policies for machines of your own, as a package
    Package(PackageArgs),
    /// Find the parameters that suit a load best, and say how close they come to the optimum
    Tune(TuneArgs),
    /// Draw one run: which task each CPU runs, when
    Gantt(GanttArgs),
    /// Say why a task waited: who ran instead, where, for how long, and by which values of the
    /// policy
    Why(WhyArgs),
    /// Find the first decision at which two schedules part, and say what came of it
    Diff(DiffArgs),
    /// Make what fails as small as can be: the machine, the load and the settings
    Shrink(ShrinkArgs),
    /// Search every short history of a policy for one after which it breaks a promise
    ///
    /// Exits with 1 if it finds one.
    Verify(VerifyArgs),
    /// List the policies, or explain one
    Policies(PoliciesArgs),
    /// Show a machine: its CPUs, what they share, and the groups that the policy gfs forms
    Topology(TopologyArgs),
    /// List the kinds of load that experiments can use, or explain one
    Workloads(WorkloadsArgs),
    /// List the metrics that runs are measured by
    Metrics(MetricsArgs),
    /// Tell what a key, a parameter, a metric or a column is
    Explain(ExplainArgs),
    /// Print the JSON Schema of experiment files, for editors
    Schema,
    /// Convert a recording or another tool's load into a model or a list of tasks
    Import(ImportArgs),
    /// Show what a distribution of run times implies for slices, or fit distributions to measured
    /// times
    LoadModel(LoadModelArgs),
    /// Compute results of queueing and scheduling theory
    #[command(subcommand)]
    Model(ModelCommand),
    /// Replay a recorded log against the same policy and stop at the first decision that differs
    Replay(ReplayArgs),
    /// List the experiments that come with the program, or print one
    Experiments(ExperimentsArgs),
    /// Print what a shell runs to complete commands, with names of policies, metrics and keys
    ///
    /// bash: `source <(anysched completions bash)` in ~/.bashrc; zsh: the same in ~/.zshrc, after
    /// compinit; fish: `anysched completions fish | source` in ~/.config/fish/config.fish.
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
    /// Print a manual page, or install all of them
    Man(ManArgs),
}

#[derive(clap::Args, Debug)]
pub struct ExperimentsArgs {
    /// The experiment to print, for example quickstart; commands take these names for files
    pub name: Option<PathBuf>,
    /// Output format of the list
    #[arg(long, value_enum, default_value_t = ListFormat::Table, conflicts_with = "name")]
    pub format: ListFormat,
    /// Write all of them into this folder, with the files that they name
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub write: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// The command to print the page of, for example run or "model mmc" [default: that of
    /// anysched]
    pub command: Vec<String>,
    /// Write the pages of all commands to where man(1) finds them, share/man/man1 of the user
    #[arg(long, conflicts_with = "command")]
    pub install: bool,
    /// Write them to this folder instead
    #[arg(long, value_name = "DIR", requires = "install")]
    pub dir: Option<PathBuf>,
}

/// The largest count accepted for a dimension of a picture.
const MOST: u64 = 1_000_000;

/// Parses whole numbers within a range; the error message states the range.
pub fn whole<T: TryFrom<u64>>(
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

/// Selects part of an experiment, with changes to it.
#[derive(clap::Args, Debug)]
pub struct Selection {
    /// The experiment file, `-` for standard input, or one of `anysched experiments` by name
    #[arg(value_name = "FILE.toml", add = complete::experiments())]
    pub file: PathBuf,
    /// Only these policies, by registered name or by label in the file; a file without any takes
    /// them from here
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", add = complete::policies())]
    pub policy: Vec<String>,
    /// Set a value: `machine.cpus=8`, `workload.0.tasks=500`, or a policy parameter, `quantum=10ms`
    #[arg(long, value_name = "KEY=VALUE", add = complete::settings())]
    pub set: Vec<String>,
    /// Vary a value: `machine.cpus=1,2,4`, `workload.0.service=5ms,10ms`
    #[arg(long, value_name = "KEY=VALUE,…", add = complete::settings())]
    pub sweep: Vec<String>,
    /// Rows for each workload or task besides those for all, or for each vm, which have them anyway
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PART,…",
        value_parser = ["workload", "task", "vm"],
    )]
    pub by: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub selection: Selection,
    /// Number of seeds per row, overriding the file
    #[arg(long, value_parser = whole::<u32>(1..=100_000), allow_negative_numbers = true)]
    pub seeds: Option<u32>,
    #[command(flatten)]
    pub host: HostArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Also write the results to this folder: as a table, JSON and CSV, the runs as CSV, and as
    /// Parquet if built in
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on where a run with the same `--out` was interrupted: what is done is in `NAME.runs`
    #[arg(long, requires = "out")]
    pub resume: bool,
    #[command(flatten)]
    pub files: RunFiles,
    /// Number of runs in parallel [default: one per hardware thread]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
    /// Make the runs on the workers of a cluster, `dask:tcp://HOST:PORT`, by the Python package
    #[arg(long, value_name = "CLUSTER", conflicts_with = "jobs")]
    pub on: Option<Cluster>,
}

/// Files about the first run of each row.
#[derive(clap::Args, Debug)]
pub struct RunFiles {
    /// Also write a trace of the first run of each row: `.pftrace` for Perfetto, `.txt` for ftrace
    /// text; several rows get several files
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Also record the policy's calls and answers in the first run of each row, for `replay`
    #[arg(long, value_name = "LOG")]
    pub record: Option<PathBuf>,
    /// Also write what the policy learned in the first run of each row (in its rehearsal, if it has
    /// one), to run with it later: `--set KEY=@FILE`
    #[arg(long, value_name = "FILE")]
    pub learned: Option<PathBuf>,
    /// Also write the results as one HTML page that needs no network: answers, tables, plots,
    /// claims, and a timeline of the first run of each row
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// How many events the timelines of the page have at most, in all
    #[arg(
        long,
        value_name = "N",
        requires = "report",
        default_value_t = EVENTS,
        value_parser = whole::<u64>(0..=100_000_000),
        allow_negative_numbers = true
    )]
    pub report_events: u64,
}

/// Where experiments run.
#[derive(clap::Args, Debug)]
pub struct HostArgs {
    /// Where to run
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
    /// For reading
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
    /// The experiment's axis to plot along, with a line per policy, for example `scenario` or
    /// `machine.cpus`; without one, policies are set side by side
    #[arg(long, value_name = "AXIS", add = complete::axes())]
    pub x: Option<String>,
    /// What is drawn [default: lines along an axis, bars without one]
    #[arg(long, value_enum)]
    pub kind: Option<PlotKind>,
    /// Metrics to plot, one panel each, for example `wakeup_latency_ns_p99`
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "METRIC,…",
        required = true,
        add = complete::metrics()
    )]
    pub y: Vec<String>,
    /// Logarithmic x axis
    #[arg(long, requires = "x")]
    pub log_x: bool,
    /// Logarithmic axis of the metric; values that are not above 0 are omitted
    #[arg(long)]
    pub log_y: bool,
    /// Number of seeds per row, overriding the file
    #[arg(long, value_parser = whole::<u32>(1..=100_000), allow_negative_numbers = true)]
    pub seeds: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlotFormat::Svg)]
    pub format: PlotFormat,
    /// Write to this file instead of printing
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Number of runs in parallel [default: one per hardware thread]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Results as JSON: files, or folders of which all files that end in `.json` are taken
    #[arg(value_name = "RESULTS", required = true)]
    pub results: Vec<PathBuf>,
    /// Write the page to this file
    #[arg(short = 'o', long = "output", value_name = "FILE.html")]
    pub output: PathBuf,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// A line per policy along an axis
    Line,
    /// A bar per policy: the mean over seeds
    Bar,
    /// A box per policy: the values of its seeds, by quartiles
    Box,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    /// A figure for light and dark pages
    Svg,
    /// For terminals: the plotted numbers as tables, bars of letters
    Text,
}

/// Rows with the same policy and axis values are compared, or the only policies of both. Where
/// seeds are the same, so were the tasks, and differences are taken run by run; two experiments are
/// run with the same tasks.
#[derive(clap::Args, Debug)]
pub struct CompareArgs {
    /// An experiment file, a folder that `run --out` wrote, or a file NAME.runs.csv in it
    #[arg(value_name = "A", add = complete::experiments())]
    pub a: PathBuf,
    /// What it is compared with: another of these
    #[arg(value_name = "B", add = complete::experiments())]
    pub b: PathBuf,
    /// Metrics to compare, for example `wakeup_latency_ns_p99` [default: those that the
    /// experiments show]
    #[arg(long, value_delimiter = ',', value_name = "METRIC,…", add = complete::metrics())]
    pub metric: Vec<String>,
    /// Only these policies of experiments that are run
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", add = complete::policies())]
    pub policy: Vec<String>,
    /// Set a value in experiments that are run, as for `run`
    #[arg(long, value_name = "KEY=VALUE", add = complete::settings())]
    pub set: Vec<String>,
    /// Number of seeds per row of experiments that are run, overriding the files
    #[arg(long, value_parser = whole::<u32>(1..=100_000), allow_negative_numbers = true)]
    pub seeds: Option<u32>,
    #[command(flatten)]
    pub host: HostArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Number of runs in parallel [default: one per hardware thread]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(clap::Args, Debug)]
pub struct ReproduceArgs {
    /// The paper: a folder with experiment files; "all" is each folder
    pub paper: String,
    /// Run smaller versions of the experiments, as their files define them: for a first look
    #[arg(long)]
    pub quick: bool,
    /// Where to run; experiments for hosts other than the default are in folders named after the
    /// host
    #[arg(
        long,
        value_name = "HOST",
        value_parser = hosts::parser(),
        default_value = hosts::usual()
    )]
    pub host: &'static HostInfo,
    /// The folder that contains the papers' folders
    #[arg(long, default_value = "experiments", value_name = "DIR")]
    pub experiments: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Also write the results to this folder, as `run` does; with `all`, to a folder for each
    /// paper in it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on where a run with the same `--out` was interrupted
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Number of runs in parallel [default: one per hardware thread]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(clap::Args, Debug)]
pub struct CoverageArgs {
    /// The paper: a folder with experiment files and a file `coverage.tsv`
    pub paper: String,
    /// The folder that contains the papers' folders
    #[arg(long, default_value = "experiments", value_name = "DIR")]
    pub experiments: PathBuf,
}

#[derive(clap::Args, Debug)]
pub struct TuneArgs {
    /// An experiment in which to search given values of a policy's parameters, for each row
    #[arg(
        value_name = "FILE.toml",
        required_unless_present = "service",
        add = complete::experiments()
    )]
    pub file: Option<PathBuf>,
    /// CPU time of the tasks, for example "exp(10ms)"; `workloads` lists the distributions
    #[arg(long, value_name = "DIST", required_unless_present = "file")]
    pub service: Option<String>,
    /// Fraction of the CPUs' time that tasks, arriving one by one, keep busy [default: 0.9]
    #[arg(long)]
    pub load: Option<f64>,
    /// All tasks arrive at once
    #[arg(long, conflicts_with = "load")]
    pub batch: bool,
    /// Tasks per run [default: 2000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub tasks: Option<u64>,
    /// CPUs of the machine [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: Option<u16>,
    #[command(flatten)]
    pub host: HostArgs,
    /// The policies to tune, m-rsf and mlfq; with a file, the label of one policy
    #[arg(long, value_name = "NAME,…", add = complete::policies())]
    pub policy: Vec<String>,
    /// Which statistic of turnaround to minimise [default: mean]
    #[arg(long, value_enum)]
    pub objective: Option<ObjectiveName>,
    /// With a file: the metric to minimise, for example `wakeup_latency_ns_p99`
    #[arg(long, value_name = "COLUMN", requires = "file", add = complete::metrics())]
    pub metric: Option<String>,
    /// With a file: maximise the metric instead
    #[arg(long, requires = "file")]
    pub larger: bool,
    /// With a file: a parameter and the values to try, in all combinations; separate values that
    /// contain commas with `|`
    #[arg(long, value_name = "KEY=V1,V2,…", requires = "file")]
    pub over: Vec<String>,
    /// With a file: set a value, as for `run`
    #[arg(long, value_name = "KEY=VALUE", requires = "file")]
    pub set: Vec<String>,
    /// Runs per parameter set in the search, and again in the comparison [default: 20; the file's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub seeds: Option<u32>,
    /// Seed from which the runs' seeds derive [default: 1; the file's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Number of runs in parallel [default: one per hardware thread]
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
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct BootArgs {
    /// The kernel
    #[arg(value_parser = hosts::parser())]
    pub host: &'static HostInfo,
    /// The policies, one boot each; may include the kernel's own schedulers, which `hosts` lists
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        required = true,
        add = complete::policies()
    )]
    pub policy: Vec<String>,
    /// The program, one of those that `hosts` lists; if it is a server, this computer sends it
    /// requests
    #[arg(long, value_name = "NAME")]
    pub app: String,
    /// A parameter of the policies, for example quantum=10ms; `@FILE` reads the value from a file
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// An argument of the program, for example scale=100; `hosts` lists those of each
    #[arg(long, value_name = "KEY=VALUE")]
    pub with: Vec<String>,
    /// The tick for policies that do not define their own
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub tick: Option<Span>,
    /// Where policies run; a row for each, if there are several [default: module]
    #[arg(long = "in", value_enum, value_delimiter = ',', value_name = "PLACE,…")]
    pub place: Vec<PlaceArg>,
    /// What runs beside a hypervisor, as dom0, and in its domains [default: small]
    #[arg(long, value_enum, value_name = "KERNEL")]
    pub dom0: Option<Dom0Arg>,
    /// More of the kernel's command line, or of the hypervisor's, for example
    /// "sched_ratelimit_us=0"
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    pub kernel_options: String,
    /// Count instructions instead of time, the default for one CPU: each takes a nanosecond, or as
    /// long as is said here (2ns, 4ns, … 1024ns), and the same boot always takes the same time
    #[arg(
        long,
        value_name = "TIME",
        value_parser = InstructionTime::parse,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1ns"
    )]
    pub icount: Option<InstructionTime>,
    /// CPUs of the machine: how many, or for example "4 cores x 2 threads"
    #[arg(long, default_value = "1", value_name = "N", value_parser = machine)]
    pub smp: Machine,
    /// Let idle time pass in real time; otherwise as with --icount
    #[arg(long, conflicts_with = "icount")]
    pub real_time: bool,
    /// Boot this image of a kernel instead of the host's own
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Hold policy and kernel to their contract, if the kernel's end can: a breach ends the policy
    #[arg(long)]
    pub checked: bool,
    #[command(flatten)]
    pub files: RunFiles,
    /// How long the kernel may be silent before it is considered hung; time for which QEMU waits
    /// for a CPU does not count
    #[arg(long, default_value = "120s", value_name = "TIME", value_parser = Span::parse)]
    pub timeout: Span,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    #[command(flatten)]
    pub clients: ClientArgs,
}

/// A machine: a number of CPUs, or its topology in words.
fn machine(text: &str) -> Result<Machine, String> {
    let machine = match text.parse() {
        Ok(cpus) => Machine::flat(cpus),
        Err(_) => Machine::parse(text),
    };
    machine.map_err(|error| error.to_string())
}

/// Where policies run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlaceArg {
    /// In a module of the kernel
    Module,
    /// In a process that decides for the kernel
    Agent,
}

impl PlaceArg {
    /// As hosts know it.
    pub fn place(self) -> Place {
        match self {
            PlaceArg::Module => Place::Kernel,
            PlaceArg::Agent => Place::Agent,
        }
    }
}

/// What runs beside a hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dom0Arg {
    /// A small kernel that builds domains by itself
    Small,
    /// Linux, with the hypervisor's own tools
    Linux,
}

impl Dom0Arg {
    /// As hosts know it.
    pub fn dom0(self) -> Dom0 {
        match self {
            Dom0Arg::Small => Dom0::Small,
            Dom0Arg::Linux => Dom0::Linux,
        }
    }
}

/// The requests that clients on this computer send to a server in a kernel.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Load of a server")]
pub struct ClientArgs {
    /// Number of clients: each sends a request, waits for the answer and sends the next [default:
    /// 40]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=512))]
    pub clients: Option<u16>,
    /// Requests per client [default: 100]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000_000))]
    pub requests: Option<u32>,
    /// CPU time of requests, with weights [default: 1ms*4,20ms]
    #[arg(long, value_delimiter = ',', value_name = "TIME*N,…")]
    pub costs: Vec<Cost>,
    /// Make clients wait for each other: all requests of a round are sent at once
    #[arg(long)]
    pub rounds: bool,
    /// Seed for the order of the costs [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Size of a request and of its answer in bytes [default: 64]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(SIZES))]
    pub size: Option<u16>,
    /// How long a client waits for an answer before counting the request as lost [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub lost_after: Option<Span>,
}

/// Possible sizes of a datagram, in bytes.
const SIZES: RangeInclusive<u64> = datagram::SHORTEST as u64..=datagram::LONGEST as u64;

#[derive(clap::Args, Debug)]
pub struct CalibrateArgs {
    /// The kernel
    #[arg(value_parser = hosts::parser())]
    pub host: &'static HostInfo,
    /// An experiment whose policies to measure, with the parameters set there
    #[arg(value_name = "FILE.toml")]
    pub file: Option<PathBuf>,
    /// The policies; may include the kernel's own schedulers, which `hosts` lists [default: all
    /// that exist both here and in the kernel]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub policy: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = CalibrateFormat::Table)]
    pub format: CalibrateFormat,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrateFormat {
    /// For reading
    Table,
    /// For experiments: a file for the key `costs` of `[machine]`
    Toml,
    /// For documentation
    Markdown,
}

#[derive(clap::Args, Debug)]
pub struct PackageArgs {
    /// What is built
    #[arg(value_parser = hosts::parser())]
    pub host: &'static HostInfo,
    /// The folder for the package, which is made if it is not there
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
}

#[derive(clap::Args, Debug)]
pub struct PredictArgs {
    /// Experiments whose `[machine]` names measured costs
    #[arg(value_name = "FILE.toml", required = true)]
    pub files: Vec<PathBuf>,
    /// The kernel to predict
    #[arg(
        long,
        value_name = "HOST",
        value_parser = hosts::parser(),
        default_value = hosts::measured()
    )]
    pub host: &'static HostInfo,
    /// What to compare [default: every column of each experiment's report that is a time]
    #[arg(long, value_delimiter = ',', value_name = "METRIC,…")]
    pub column: Vec<String>,
    /// Run smaller versions of the experiments, as their files define them: for a first look
    #[arg(long)]
    pub quick: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = PredictFormat::Table)]
    pub format: PredictFormat,
    /// Number of runs in parallel [default: one per hardware thread]
    #[arg(long, value_parser = whole::<u16>(1..=65_535), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictFormat {
    /// For reading
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
    /// Which combination of axis values to draw, numbered from 0 as in `check`
    #[arg(
        long,
        default_value = "0",
        value_parser = whole::<usize>(0..=MOST),
        allow_negative_numbers = true
    )]
    pub group: usize,
    /// Which of the row's seeds to draw, from 0
    #[arg(
        long,
        default_value = "0",
        value_parser = whole::<u32>(0..=MOST),
        allow_negative_numbers = true
    )]
    pub seed: u32,
    /// Width of the picture [default: the terminal's, at most 100]
    #[arg(long, value_parser = whole::<u16>(30..=100), allow_negative_numbers = true)]
    pub columns: Option<u16>,
    /// Number of lines for tasks
    #[arg(
        long,
        default_value = "20",
        value_parser = whole::<usize>(0..=MOST),
        allow_negative_numbers = true
    )]
    pub tasks: usize,
    /// Start of the picture, for example 10ms
    #[arg(
        long,
        default_value = "0",
        value_name = "TIME",
        value_parser = Span::parse,
        allow_hyphen_values = true
    )]
    pub from: Span,
    /// End of the picture [default: the end of the run]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, allow_hyphen_values = true)]
    pub until: Option<Span>,
    /// Also mark when tasks become ready and are preempted; deadlines are marked anyway
    #[arg(long)]
    pub marks: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = GanttFormat::Text)]
    pub format: GanttFormat,
    /// Write to this file instead of printing
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GanttFormat {
    /// For terminals
    Text,
    /// A figure for light and dark pages, with all marks
    Svg,
}

/// An experiment, or a log of decisions from any host (`run --record`, `boot --record`).
#[derive(clap::Args, Debug)]
pub struct WhyArgs {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub host: HostArgs,
    /// The task: its name, or its number in the order of arrival
    #[arg(long, value_name = "TASK", required_unless_present = "longest")]
    pub task: Option<String>,
    /// A moment at which it waited, for example 12ms
    #[arg(
        long,
        value_name = "TIME",
        value_parser = Span::parse,
        allow_hyphen_values = true,
        required_unless_present = "longest"
    )]
    pub at: Option<Span>,
    /// The longest wait of the run, or of the task
    #[arg(long, conflicts_with = "at")]
    pub longest: bool,
    /// Which combination of axis values, numbered from 0 as in `check`
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
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct DiffArgs {
    #[command(flatten)]
    pub selection: Selection,
    /// A log of decisions to compare with: of both, the order counts and not the time
    #[arg(value_name = "LOG")]
    pub other: Option<PathBuf>,
    #[command(flatten)]
    pub host: HostArgs,
    /// Which combination of axis values, numbered from 0 as in `check`
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
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct PoliciesArgs {
    /// The policy to explain
    #[arg(value_parser = PossibleValuesParser::new(POLICIES.iter().map(|policy| policy.name)))]
    pub name: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Folder with a page NAME.md for each policy, for links in the Markdown list
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub pages: Option<String>,
}

#[derive(clap::Args, Debug)]
pub struct MetricsArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

#[derive(clap::Args, Debug)]
pub struct ExplainArgs {
    /// A name, or a path such as machine.tick, batch.service, rr.quantum, waiting_time_ns_p99
    /// [default: lists the keys of experiments]
    #[arg(value_name = "KEY", add = complete::names())]
    pub key: Option<String>,
    /// Output format of the list
    #[arg(long, value_enum, default_value_t = ListFormat::Table, conflicts_with = "outputs")]
    pub format: ListFormat,
    /// List what is in the files of results instead, as Markdown
    #[arg(long, conflicts_with = "key")]
    pub outputs: bool,
}

#[derive(clap::Args, Debug)]
pub struct WorkloadsArgs {
    /// The kind to explain
    #[arg(value_parser = PossibleValuesParser::new(KINDS.iter().map(kind_value)))]
    pub kind: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// A kind of load as an argument.
fn kind_value(kind: &KindInfo) -> PossibleValue {
    PossibleValue::new(kind.name).aliases(kind.aliases)
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// For reading
    Table,
    /// For programs: an array of objects
    Json,
    /// For documentation
    Markdown,
}

#[derive(clap::Args, Debug)]
pub struct TopologyArgs {
    /// The machine, in the form of `topology` in an experiment: `host`, an .xml of lstopo, a .json
    /// of lscpu, or words such as "2 packages x 4 cores x 2 threads"
    #[arg(default_value = "host")]
    pub spec: String,
    /// Show each node, package, cache and core on a line, and all groups
    #[arg(long)]
    pub full: bool,
    /// Check and show only these groups: a rule of gfs, or lists of CPUs such as "0-3;4-7"
    #[arg(long, value_name = "GROUPS")]
    pub grouping: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct ImportArgs {
    /// The format of FILE
    #[arg(value_parser = PossibleValuesParser::new(IMPORTERS.iter().map(format_value)))]
    pub format: String,
    /// The file, plain or packed with gzip, zstd, xz, zip or tar
    pub file: PathBuf,
    /// The output: `.json` for a model, `.csv` for a list of tasks
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// An option for reading FILE, for example softirqs=task; `workloads KIND` lists the keys
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub part: PartOfFile,
}

/// Options of importers that have an argument of their own. Each is the key of its name.
#[derive(clap::Args, Debug)]
pub struct PartOfFile {
    /// Only so many jobs of a log, or lines of a table
    #[arg(long, value_name = "N")]
    pub jobs: Option<String>,
    /// Leave out what comes before this time
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Leave out what comes at this time or later
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// The column of a table with the time at which a task arrives
    #[arg(long, value_name = "COLUMN")]
    pub arrival: Option<String>,
    /// The column with the time that it takes
    #[arg(long, value_name = "COLUMN")]
    pub service: Option<String>,
    /// The column with the time at which it ends, in place of one of the other two
    #[arg(long, value_name = "COLUMN")]
    pub end: Option<String>,
    /// What the numbers of these columns count: s, ms, us or ns
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
}

impl PartOfFile {
    /// The keys that are given, with their values.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = [
            ("jobs", &self.jobs),
            ("from", &self.from),
            ("until", &self.until),
            ("arrival", &self.arrival),
            ("service", &self.service),
            ("end", &self.end),
            ("unit", &self.unit),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

/// A format of files that are loads, as an argument.
fn format_value(format: &ImporterInfo) -> PossibleValue {
    PossibleValue::new(format.name).aliases(format.aliases).help(format.summary)
}

/// The formats of files with run times, as arguments.
fn times_values() -> impl Iterator<Item = PossibleValue> {
    let column = "A column of times, or a table with the column service_ns; plain numbers are ns";
    let column = PossibleValue::new(COLUMN).help(column);
    let importers = IMPORTERS.iter().filter(|format| format.times.is_some());
    [column].into_iter().chain(importers.map(format_value))
}

#[derive(clap::Args, Debug)]
pub struct LoadModelArgs {
    #[command(flatten)]
    pub times: RunTimes,
    /// The format of FILE [default: recognised by its first lines]
    #[arg(
        long = "as",
        value_parser = PossibleValuesParser::new(times_values()),
        requires = "fit",
        value_name = "FORMAT"
    )]
    pub format_of_file: Option<String>,
    /// The slice in Q1 [default: the recommended one]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub q1: Option<String>,
    /// The slice in Q2 [default: the same as in Q1]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub q2: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct RunTimes {
    /// The distribution, for example "exp(10ms)"; `anysched workloads` lists the kinds
    #[arg(long, value_name = "DISTRIBUTION", allow_hyphen_values = true)]
    pub service: Option<String>,
    /// Measured run times to fit distributions to, plain or gzip-compressed
    #[arg(long, value_name = "FILE")]
    pub fit: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainFormat {
    /// For reading
    Table,
    /// For programs
    Json,
}

#[derive(Subcommand, Debug)]
pub enum ModelCommand {
    /// M/M/c: Poisson arrivals, exponential service times, unlimited waiting room
    Mmc(MmcArgs),
    /// M/M/c/N: the same with room for N tasks; arrivals that find it full are turned away
    Mmcn(MmcnArgs),
    /// A closed batch under M-RSF on an idle machine, without costs
    MRsf(MRsfArgs),
    /// Periodic tasks on one CPU: whether DM and EDF meet their deadlines, and response times
    Periodic(PeriodicArgs),
}

#[derive(clap::Args, Debug)]
pub struct MmcArgs {
    #[command(flatten)]
    pub station: StationArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct MmcnArgs {
    #[command(flatten)]
    pub station: StationArgs,
    /// N: the number of tasks there is room for, including those in service
    #[arg(long, value_name = "N")]
    pub limit: u32,
    /// Also print equations (9) to (11) of the M-RSF paper, which are wrong, for comparison
    #[arg(long)]
    pub paper: bool,
    /// Output format
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
    /// c: the number of servers
    #[arg(long, value_name = "C", default_value_t = 1)]
    pub servers: u32,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct RateArgs {
    /// λ: arrivals per second
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub arrivals: Option<f64>,
    /// ρ: λ divided by the capacity of all servers
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    pub load: Option<f64>,
}

#[derive(clap::Args, Debug)]
pub struct MRsfArgs {
    /// Slices of Q1 and Q2, in multiples of the mean run time
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "RATIO,…",
        default_value = "0.5,1,1.5,2",
        allow_hyphen_values = true
    )]
    pub q: Vec<f64>,
    /// The distribution of run times
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        default_value = "exp(1s)",
        allow_hyphen_values = true
    )]
    pub service: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct PeriodicArgs {
    /// The tasks: CSV with the header run,period,deadline and times such as 2ms; the deadline may
    /// be omitted, and a column jitter may be added
    pub file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = PlainFormat::Table)]
    pub format: PlainFormat,
}

#[derive(clap::Args, Debug)]
pub struct ReplayArgs {
    /// The log
    pub log: PathBuf,
    /// Print the records instead of replaying them
    #[arg(long)]
    pub show: bool,
    /// Also write a trace of the recorded run: `.pftrace` for Perfetto, `.txt` for ftrace text
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}
