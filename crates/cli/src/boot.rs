//! `anysched boot`: a real kernel under a policy.

use crate::args::{ArceosArgs, BootCommand, Format};
use crate::kernel::{self, ArceOs};
use crate::output::{self, Failure, write_whole};
use crate::run::{TraceFormat, write_events};
use crate::serve;
use anysched_arceos::{Boot, Clock, Kernel, Outcome};
use anysched_core::Machine;
use anysched_core::registry::{PolicyInfo, changed};
use anysched_lab::{HostedRun, PolicyUsed, Results, output as formats};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn boot(command: &BootCommand) -> Result<(), Failure> {
    match command {
        BootCommand::Arceos(args) => arceos(args),
    }
}

/// A scheduler of the table.
pub struct Row {
    pub boot: Boot,
    /// `None`: one of ArceOS's own.
    pub info: Option<&'static PolicyInfo>,
}

fn arceos(args: &ArceosArgs) -> Result<(), Failure> {
    if args.app == serve::APP {
        return serve::serve(args);
    }
    serve::require_no_load(&args.clients)?;
    let trace = args.trace.as_deref().map(TraceFormat::of).transpose()?;
    for path in args.trace.iter().chain(&args.record).chain(&args.learned) {
        output::require_place(path)?;
    }
    let rows = args.policy.iter().map(|name| row(args, name)).collect::<Result<Vec<_>, _>>()?;
    let host = ArceOs::new(Duration::from_nanos(args.timeout.0));
    let mut runs = Vec::new();
    for row in &rows {
        let name = &row.boot.policy;
        let mut say = |line: &str| eprintln!("{name}: {line}");
        let outcome = rehearsed(&host, row, &mut say)?;
        let beside = |path: &Path| beside(path, name, rows.len());
        if let Some(path) = &args.record {
            write_logs(&beside(path), &outcome)?;
        }
        if let (Some(path), Some(format)) = (&args.trace, trace) {
            write_trace(&beside(path), format, &outcome)?;
        }
        if let Some(path) = &args.learned {
            write_learned(&beside(path), name, &outcome)?;
        }
        say_values(args, name, &outcome);
        runs.push(HostedRun { policy: used(row), hosted: kernel::hosted(outcome) });
    }
    let results = results(args, runs);
    output::print(&match args.format {
        Format::Table => formats::table(&results),
        Format::Json => formats::json(&results),
        Format::Csv => formats::csv(&results),
    })
}

/// What the program measured besides tasks.
fn say_values(args: &ArceosArgs, name: &str, outcome: &Outcome) {
    if args.format == Format::Table {
        for (value, number) in &outcome.values {
            eprintln!("{name}: {value} = {number}");
        }
    }
}

fn results(args: &ArceosArgs, runs: Vec<HostedRun>) -> Results {
    let cpus = if args.smp == 1 { "1 CPU".into() } else { format!("{} CPUs", args.smp) };
    let clock = match clock(args) {
        Clock::Instructions => "an instruction is a nanosecond",
        Clock::Real => "an instruction is a nanosecond, idle time is real",
        Clock::Parallel => "CPUs run at once, times mean nothing",
    };
    let title = format!("ArceOS: {}", args.app);
    let question = "What does a real kernel make of it?";
    let with = args.with.join(", ");
    let load = if with.is_empty() { args.app.clone() } else { format!("{}: {with}", args.app) };
    let machine = format!("{cpus} in QEMU, {clock}");
    let shown: Vec<&str> = COLUMNS.to_vec();
    Results::of_host(
        "arceos",
        [&title, question],
        [&machine, &load, "the kernel's own"],
        &shown,
        runs,
    )
}

/// What is shown, where there is data.
const COLUMNS: [&str; 7] = [
    "turnaround_ns_mean",
    "response_time_ns_mean",
    "waiting_time_ns_mean",
    "leave_time_ns_mean",
    "makespan_ns",
    "dispatches",
    "context_switches",
];

fn clock(args: &ArceosArgs) -> Clock {
    if args.real_time {
        Clock::Real
    } else if args.smp > 1 && !args.icount {
        Clock::Parallel
    } else {
        Clock::Instructions
    }
}

/// The boot of a scheduler, checked.
pub fn row(args: &ArceosArgs, name: &str) -> Result<Row, Failure> {
    let mut boot = Boot::new(name, &args.app);
    boot.clock = clock(args);
    complete(args, boot)
}

/// `boot` with what is common to all programs, checked.
pub fn complete(args: &ArceosArgs, mut boot: Boot) -> Result<Row, Failure> {
    let name = boot.policy.clone();
    boot.image.cpus = args.smp;
    boot.tick = args.tick;
    boot.record = args.record.is_some() || args.trace.is_some();
    boot.patience = Duration::from_nanos(args.timeout.0);
    boot.arguments.extend(pairs("--with", &args.with)?);
    if boot.image.kernel != Kernel::Anysched {
        if boot.record {
            return Err(format!("{name}: only policies can be recorded or traced").into());
        }
        return Ok(Row { boot, info: None });
    }
    let info = anysched_policies::policy(&name).ok_or_else(|| {
        let stock: Vec<&str> = Kernel::STOCK.iter().map(|(name, _)| *name).collect();
        format!(
            "there is no policy `{name}`; `anysched policies` lists them, and ArceOS has {}",
            stock.join(", ")
        )
    })?;
    boot.settings = pairs("--set", &args.set)?;
    for (_, value) in &mut boot.settings {
        if let Some(path) = value.strip_prefix('@') {
            let text = std::fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
            *value = one_line(&text);
        }
    }
    let settings = borrowed(&boot.settings);
    let machine = Machine::flat(1).map_err(|error| error.to_string())?.with_tick(args.tick);
    (info.build)(&machine, &settings).map_err(|error| format!("{name}: {error}"))?;
    Ok(Row { boot, info: Some(info) })
}

/// The text of a file as a value: without comments, in one line.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn borrowed(settings: &[(String, String)]) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// Boots; before that, boots a rehearsal if the policy needs to know the program.
pub fn rehearsed(host: &ArceOs, row: &Row, say: &mut dyn FnMut(&str)) -> Result<Outcome, Failure> {
    let Some(info) = row.info else { return Ok(host.boot(&row.boot, say)?) };
    let first = (info.rehearsal)(&borrowed(&row.boot.settings));
    let Some(first) = first.map_err(|error| format!("{}: {error}", info.name))? else {
        return Ok(host.boot(&row.boot, say)?);
    };
    say("rehearsal");
    let rehearsal = Boot { settings: first, record: false, ..row.boot.clone() };
    let learned = host.boot(&rehearsal, say)?.learned;
    say("the run that goes by it");
    let settings = changed(&borrowed(&row.boot.settings), &borrowed(&learned));
    let mut outcome = host.boot(&Boot { settings, ..row.boot.clone() }, say)?;
    // What was learned is the rehearsal's.
    outcome.learned = learned;
    Ok(outcome)
}

pub fn used(row: &Row) -> PolicyUsed {
    let of_host = PolicyUsed::of_host(&row.boot.policy);
    let nature = row.info.and_then(|info| (info.nature)(&borrowed(&row.boot.settings)).ok());
    PolicyUsed {
        settings: row.boot.settings.clone(),
        nature: nature.unwrap_or(of_host.nature),
        ..of_host
    }
}

/// `NAME=VALUE` of each.
fn pairs(option: &str, given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => Err(Failure::from(format!("{option} \"{text}\": it takes NAME=VALUE"))),
    };
    given.iter().map(pair).collect()
}

/// `path`, with the policy's name in it if there are several.
fn beside(path: &Path, policy: &str, policies: usize) -> PathBuf {
    if policies == 1 {
        return path.to_path_buf();
    }
    output::with_suffix(path, &format!("-{policy}"))
}

/// The log of the first CPU there, those of others with their numbers behind.
fn write_logs(path: &Path, outcome: &Outcome) -> Result<(), Failure> {
    for (cpu, log) in outcome.logs.iter().enumerate() {
        let path = if cpu == 0 {
            path.to_path_buf()
        } else {
            let mut name = path.as_os_str().to_os_string();
            name.push(format!(".{cpu}"));
            name.into()
        };
        write_whole(&path, |out| out.write_all(log))?;
    }
    Ok(())
}

fn write_trace(path: &Path, format: TraceFormat, outcome: &Outcome) -> Result<(), Failure> {
    if outcome.logs.len() > 1 {
        return Err("a trace is of one CPU; --record has the decisions of each".into());
    }
    let log = outcome.logs.first().map(Vec::as_slice).unwrap_or_default();
    // The program's own task is the first that the policy knows, and starts the others.
    let name = |serial: u64| match serial.checked_sub(1) {
        None => Some("main".to_string()),
        Some(task) => outcome.tasks.get(task as usize).map(|task| task.name.clone()),
    };
    write_events(path, format, log, name)
}

fn write_learned(path: &Path, policy: &str, outcome: &Outcome) -> Result<(), Failure> {
    write_whole(path, |out| {
        for (name, value) in &outcome.learned {
            writeln!(out, "# {policy}: `{name}`, learned in ArceOS")?;
            writeln!(out, "{value}")?;
        }
        Ok(())
    })
}
