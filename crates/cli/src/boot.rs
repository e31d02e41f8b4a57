//! `anysched boot`: a kernel under a policy.

use crate::args::{BootArgs, Dom0Arg, Format, PlaceArg};
use crate::output::{self, Failure, write_named};
use crate::run::{TraceFormat, write_traced};
use crate::serve;
use anysched_core::Machine;
use anysched_core::registry::{PolicyInfo, Settings};
use anysched_host::{
    By, Clock, Demands, Host, Options, Order, Outcome, Place, Program, Setup, Stage, Watch, Work,
    as_text, rehearsed,
};
use anysched_lab::output::{self as formats, Inputs};
use anysched_lab::{HostedRun, PolicyUsed, Results};
use anysched_policies::policy;
use anysched_workload::kinds::Needs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A scheduler of the table.
#[derive(Clone)]
pub struct Row {
    /// The policy, or one of the host's own schedulers.
    pub name: &'static str,
    /// `None`: one of the host's own.
    pub info: Option<&'static PolicyInfo>,
    pub settings: Settings,
    /// What results call it.
    pub label: String,
    /// Where the policy runs: which of [`places`].
    pub place: usize,
}

impl Row {
    /// Who schedules, with these settings.
    pub fn by<'a>(&self, settings: &'a Settings) -> By<'a> {
        match self.info {
            Some(info) => By::Policy(info, as_text(settings)),
            None => By::Own(self.name),
        }
    }

    /// The scheduler as results have it.
    pub fn used(&self) -> PolicyUsed {
        let of_host = PolicyUsed::of_host(self.name);
        let nature = self.info.and_then(|info| (info.nature)(&as_text(&self.settings)).ok());
        PolicyUsed {
            label: self.label.clone(),
            settings: self.settings.clone(),
            nature: nature.unwrap_or(of_host.nature),
            ..of_host
        }
    }
}

pub fn boot(args: &BootArgs) -> Result<(), Failure> {
    if args.dom0.is_some() && !args.host.capabilities.dom0s {
        return Err(args.host.cannot("choose what runs as dom0: leave `--dom0` out").into());
    }
    if args.host.server == Some(args.app.as_str()) {
        return serve::serve(args);
    }
    serve::require_no_load(args)?;
    if args.place.contains(&PlaceArg::Agent) && !args.host.capabilities.agents {
        return Err(args.host.cannot("run policies in an agent").into());
    }
    let hosts: Vec<_> = places(args).into_iter().map(|place| open(args, place)).collect();
    hosts[0].require_program(&program(args)?)?;
    let inputs = inputs(args);
    let format = args.files.require(&inputs)?;
    let setup = setup(args)?;
    args.host.require(&Demands { setup: &setup, vms: false, needs: Needs::NOTHING })?;
    let rows = rows(args, &setup)?;
    let host = |row: &Row| &*hosts[row.place];
    // A policy needs more than the kernel's own scheduler, which may then do with a part of it.
    let (policies, own): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.info.is_some());
    let mut all = policies.into_iter().chain(own);
    all.try_for_each(|row| host(row).build(&row.by(&row.settings), &setup))?;
    let mut runs = Vec::new();
    for row in &rows {
        let beside = |path: &PathBuf| beside(path, &row.label, rows.len());
        let trace = args.files.trace.as_ref().map(beside).zip(format);
        let outcome = run(args, host(row), row, &setup, &inputs, trace)?;
        if let Some(path) = &args.files.record {
            write_logs(&beside(path), &inputs, &outcome)?;
        }
        if let Some(path) = &args.files.learned {
            write_learned(&beside(path), &inputs, row.name, args.host.title, &outcome.learned)?;
        }
        runs.push(HostedRun { policy: row.used(), outcome });
    }
    let values = values(&runs);
    let results = results(args, &*hosts[0], &setup, runs);
    output::print(&match args.format {
        Format::Table => formats::table(&results) + &values,
        Format::Json => formats::json(&results),
        Format::Csv => formats::csv(&results),
    })
}

/// Makes the run of a row; before it, a rehearsal if its policy needs to know the program.
fn run(
    args: &BootArgs,
    host: &dyn Host,
    row: &Row,
    setup: &Setup,
    inputs: &Inputs,
    trace: Option<(PathBuf, TraceFormat)>,
) -> Result<Outcome, Failure> {
    let say = |line: &str| eprintln!("{}: {line}", row.label);
    let program = program(args)?;
    let order = |settings: &Settings, mut watch: Watch<'_>| {
        let work = Work::Program(program.clone());
        let (by, vms) = (row.by(settings), Vec::new());
        host.run(Order { by, setup, work, vms, watch: watch.reborrow() })
    };
    let counts = |settings: &Settings| -> Result<Outcome, Failure> {
        let (mut say, record) = (say, args.files.record.is_some());
        match &trace {
            None => Ok(order(settings, Watch { record, say: Some(&mut say), ..Watch::default() })?),
            Some((path, format)) => {
                write_traced(path, inputs, *format, setup.machine.cpus(), |sink| {
                    let say: &mut dyn FnMut(&str) = &mut say;
                    let mut watch = Watch { trace: Some(sink), record, ..Watch::default() };
                    watch.say = Some(say);
                    order(settings, watch)
                })
            }
        }
    };
    let Some(info) = row.info else { return counts(&row.settings) };
    let (mut outcome, taught) = rehearsed(
        info,
        &row.settings,
        |stage, settings| match stage {
            Stage::Run => {
                if *settings != row.settings {
                    say("run with what was learned");
                }
                counts(settings)
            }
            Stage::Rehearsal => {
                say("rehearsal");
                let mut say = say;
                Ok(order(settings, Watch { say: Some(&mut say), ..Watch::default() })?)
            }
        },
        |outcome: Outcome| outcome.learned,
    )?;
    if let Some(taught) = taught {
        outcome.learned = taught;
    }
    Ok(outcome)
}

/// What programs measured besides tasks: a line for each value, a column for each scheduler.
fn values(runs: &[HostedRun]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.outcome.values) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    let columns: Vec<Vec<String>> = runs.iter().map(|run| column(run, &names)).collect();
    let line = |at: usize, first: &str| {
        let cell = |column: &Vec<String>| {
            let width = column.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
            format!("  {:>width$}", column[at])
        };
        format!("{first:width$}{}\n", columns.iter().map(cell).collect::<String>())
    };
    let heads = ["value"].into_iter().chain(names.iter().copied()).enumerate();
    format!("\n{}", heads.map(|(at, first)| line(at, first)).collect::<String>())
}

/// The scheduler's name and its values.
fn column(run: &HostedRun, names: &[&str]) -> Vec<String> {
    let value = |name: &&str| run.outcome.value(name).map_or("-".into(), |value| value.to_string());
    let label = std::iter::once(run.policy.label.clone());
    label.chain(names.iter().map(value)).collect()
}

fn results(args: &BootArgs, host: &dyn Host, setup: &Setup, runs: Vec<HostedRun>) -> Results {
    let info = args.host;
    let title = format!("{}: {}", info.title, args.app);
    let question = "What does a real kernel make of it?";
    let with = args.with.join(", ");
    let load = if with.is_empty() { args.app.clone() } else { format!("{}: {with}", args.app) };
    let machine = host.machine(setup);
    let costs = info.costs.unwrap_or("none");
    Results::of_host(info, [&title, question], [&machine, &load, costs], &COLUMNS, runs)
}

/// What is shown, where there is data.
const COLUMNS: [&str; 9] = [
    "turnaround_ns_mean",
    "response_time_ns_mean",
    "waiting_time_ns_mean",
    "leave_time_ns_mean",
    "makespan_ns",
    "round_trip_ns_mean",
    "round_trip_ns_max",
    "dispatches",
    "context_switches",
];

/// The program that is booted, with its arguments.
pub fn program(args: &BootArgs) -> Result<Program, Failure> {
    Ok(Program { name: args.app.clone(), arguments: pairs("--with", &args.with)? })
}

/// Where policies run, one place after the other; `None`: where the host usually has them.
pub fn places(args: &BootArgs) -> Vec<Option<Place>> {
    let places: Vec<_> = args.place.iter().map(|place| Some(place.place())).collect();
    if places.is_empty() { vec![None] } else { places }
}

/// Opens the host as the arguments want it, with policies in that place.
pub fn open(args: &BootArgs, place: Option<Place>) -> Box<dyn Host> {
    let clock = match (args.real_time, args.icount) {
        (true, _) => Some(Clock::Real),
        (false, each) => each.map(Clock::Instructions),
    };
    (args.host.open)(&Options {
        silence: Some(args.timeout),
        clock,
        kernel: args.kernel.clone(),
        checked: args.checked,
        place,
        dom0: args.dom0.map(Dom0Arg::dom0),
    })
}

/// The machine that is booted.
pub fn setup(args: &BootArgs) -> Result<Setup, Failure> {
    let mut setup = Setup::new(args.smp.clone().with_tick(args.tick));
    setup.kernel_options.clone_from(&args.kernel_options);
    Ok(setup)
}

/// The schedulers of the table, checked.
pub fn rows(args: &BootArgs, setup: &Setup) -> Result<Vec<Row>, Failure> {
    let places = places(args);
    let mut rows = Vec::new();
    for name in &args.policy {
        let row = row(args, name, setup)?;
        // The kernel's own schedulers are where they are.
        if places.len() == 1 || row.info.is_none() {
            rows.push(row);
            continue;
        }
        rows.extend(places.iter().enumerate().map(|(at, place)| {
            let agent = if *place == Some(Place::Agent) { "-agent" } else { "" };
            Row { label: format!("{}{agent}", row.name), place: at, ..row.clone() }
        }));
    }
    Ok(rows)
}

fn row(args: &BootArgs, name: &str, setup: &Setup) -> Result<Row, Failure> {
    if let Some(name) = args.host.schedulers.iter().find(|own| **own == name) {
        if args.files.record.is_some() {
            By::Own(name).require_recordable()?;
        }
        return Ok(Row { name, info: None, settings: Vec::new(), label: (*name).into(), place: 0 });
    }
    let info = policy(name).ok_or_else(|| unknown(args.host, name))?;
    let settings = settings(&args.set)?;
    let machine = Machine::flat(1).map_err(|error| error.to_string())?;
    let machine = machine.with_tick(setup.machine.tick());
    (info.build)(&machine, &as_text(&settings)).map_err(|error| format!("{name}: {error}"))?;
    let label = info.name.into();
    Ok(Row { name: info.name, info: Some(info), settings, label, place: 0 })
}

/// That `name` is no scheduler there.
pub fn unknown(host: &anysched_host::HostInfo, name: &str) -> Failure {
    let own = match host.schedulers {
        [] => String::new(),
        own => format!(", and {} has {}", host.title, own.join(", ")),
    };
    format!("there is no policy `{name}`; `anysched policies` lists them{own}").into()
}

/// The values of `--set`, read from files where they say so.
pub fn settings(given: &[String]) -> Result<Settings, Failure> {
    settings_of("--set", given)
}

/// Those of another option.
pub fn settings_of(option: &str, given: &[String]) -> Result<Settings, Failure> {
    let mut settings = pairs(option, given)?;
    for (_, value) in &mut settings {
        if let Some(path) = value.strip_prefix('@') {
            let text = std::fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
            *value = one_line(&text);
        }
    }
    Ok(settings)
}

/// The text of a file as a value: without comments, in one line.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `NAME=VALUE` of each.
pub fn pairs(option: &str, given: &[String]) -> Result<Settings, Failure> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => Err(Failure::from(format!("{option} \"{text}\": it takes NAME=VALUE"))),
    };
    given.iter().map(pair).collect()
}

/// The files that it reads: of the command line, and a kernel.
fn inputs(args: &BootArgs) -> Inputs {
    let values = args.set.iter().filter_map(|setting| setting.split_once('='));
    let named = values.filter_map(|(_, value)| value.trim().strip_prefix('@')).map(Path::new);
    Inputs::of(named.chain(args.kernel.as_deref()))
}

/// `path`, with the policy's name in it if there are several.
fn beside(path: &Path, policy: &str, policies: usize) -> PathBuf {
    if policies == 1 {
        return path.to_path_buf();
    }
    output::with_suffix(path, &format!("-{policy}"))
}

/// The log of the first CPU there, those of others with their numbers behind.
fn write_logs(path: &Path, inputs: &Inputs, outcome: &Outcome) -> Result<(), Failure> {
    for (cpu, log) in outcome.logs.iter().enumerate() {
        let path = if cpu == 0 {
            path.to_path_buf()
        } else {
            let mut name = path.as_os_str().to_os_string();
            name.push(format!(".{cpu}"));
            name.into()
        };
        write_named(&path, inputs, |out| out.write_all(log))?;
    }
    Ok(())
}

fn write_learned(
    path: &Path,
    inputs: &Inputs,
    policy: &str,
    host: &str,
    learned: &Settings,
) -> Result<(), Failure> {
    write_named(path, inputs, |out| {
        for (name, value) in learned {
            writeln!(out, "# {policy}: `{name}`, learned in {host}")?;
            writeln!(out, "{value}")?;
        }
        Ok(())
    })
}
