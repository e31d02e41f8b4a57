//! `anysched run` and `anysched check`.

use crate::args::{CheckArgs, Format, RunArgs, RunFiles};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use crate::report;
use crate::stuck;
use anysched_core::recorder::LogReader;
use anysched_core::{TaskId, Time};
use anysched_host::{Host, Watch};
use anysched_lab::output::{self as formats, Form, Inputs, write_whole};
use anysched_lab::{Journal, Plan, Results, Row, RunOptions};
use anysched_trace::decisions;
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::perfetto::PerfettoWriter;
use anysched_trace::policy::Decision;
use anysched_trace::{Event, Sink, TaskInfo};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let changes = choose::Changes::of(&args.selection, args.seeds)?;
    let as_it_is = choose::read(&args.selection.file)?;
    let job = args.on.as_ref().map(|on| on.job(&as_it_is, &changes, args.host.host)).transpose()?;
    let experiment = changes.apply(as_it_is)?;
    let plan = choose::plan(&experiment)?;
    let (plan, apart) = match &args.files.report {
        // Workers measure what they are told to, and kernels all tasks together.
        Some(_) if job.is_none() && args.host.host.capabilities.parts => plan.with_loads_apart(),
        _ => (plan, false),
    };
    let inputs = Inputs::of(plan.inputs());
    let format = args.files.require(&inputs)?;
    let cancel = output::cancel_on_interrupt()?;
    let host = hosts::open(args.host.host);
    plan.require(args.host.host)?;
    let mut journal = match &args.out {
        Some(folder) => Some(open_journal(&plan, &*host, &inputs, folder, args.resume)?),
        None => None,
    };
    if let Some(job) = job {
        let journal = match &mut journal {
            Some(journal) => journal,
            none => none.insert(Journal::of_parts(&plan, [])?),
        };
        job.make(&plan, &*host, journal, cancel)?;
    }
    let kept = if journal.is_none() { kept(&plan, &*host)? } else { None };
    let run = |options: &RunOptions<'_>| plan.run(options);
    let told = with_bar(&*host, args.jobs, cancel, journal.as_ref().or(kept.as_ref()), run)?;
    // What is printed and written does not depend on whether there is a report.
    let results = if apart { told.without_loads_apart() } else { told.clone() };
    if let Some(folder) = args.out.as_ref().filter(|_| results.complete) {
        write_results(&results, &inputs, folder)?;
    }
    output::print(&match args.format {
        Format::Table => formats::table(&results),
        Format::Json => formats::json(&results),
        Format::Csv => formats::csv(&results),
    })?;
    if !results.complete {
        return Err(interrupted(&results, journal.as_ref()));
    }
    if let Some(journal) = journal {
        journal.finish()?;
    }
    stuck::say(&plan, &*host, &results)?;
    if let Some(path) = &args.files.report {
        report::of_run(path, &inputs, args, &experiment, (&plan, &*host, &told))?;
    }
    if let (Some(path), Some(format)) = (&args.files.trace, format) {
        write_traces(&plan, &*host, &results, &inputs, path, format)?;
    }
    if let Some(path) = &args.files.record {
        for (group, policy) in policies_run(&plan, &results) {
            let path = path_of_run(path, &plan, &results, (group, policy));
            let watch = Watch { record: true, ..Watch::default() };
            let outcome = plan.run_one(&*host, group, policy, 0, watch)?;
            let log = outcome.only_log()?;
            output::write_named(&path, &inputs, |out| out.write_all(log))?;
        }
    }
    if let Some(path) = &args.files.learned {
        let mut written = 0;
        for (group, policy) in policies_run(&plan, &results) {
            let path = path_of_run(path, &plan, &results, (group, policy));
            written += write_learned(&plan, &*host, (group, policy), &path, &inputs)?;
        }
        if written == 0 {
            eprintln!("anysched: none of these policies has learned anything");
        }
    }
    Ok(())
}

/// Makes the first run of each row again, and writes a trace of each.
fn write_traces(
    plan: &Plan,
    host: &dyn Host,
    results: &Results,
    inputs: &Inputs,
    path: &Path,
    format: TraceFormat,
) -> Result<(), Failure> {
    for (group, policy) in results.runs() {
        let path = path_of_run(path, plan, results, (group, policy));
        let is_own = policy >= plan.policies().len();
        let cpus = plan.setup(group, if is_own { 0 } else { policy }).machine.cpus();
        write_traced(&path, inputs, format, cpus, |sink| {
            let watch = Watch { trace: Some(sink), ..Watch::default() };
            let name = &results.policies[policy].name;
            match is_own {
                true => plan.run_one_by_host(host, name, group, 0, watch),
                false => plan.run_one(host, group, policy, 0, watch),
            }
        })?;
    }
    Ok(())
}

/// Names the folder where runs are kept for other commands.
const KEPT: &str = "ANYSCHED_RUNS";

/// The runs of the plan that other commands have made, where this one's are kept, too; `None` if no
/// folder for them is named.
pub fn kept(plan: &Plan, host: &dyn Host) -> Result<Option<Journal>, Failure> {
    let named = std::env::var_os(KEPT).filter(|folder| !folder.is_empty());
    let Some(folder) = named.map(PathBuf::from) else { return Ok(None) };
    Ok(Some(Journal::keep(plan, host.info().name, &folder)?))
}

/// Opens the file of runs in a folder for results, which have to fit there.
pub fn open_journal(
    plan: &Plan,
    host: &dyn Host,
    inputs: &Inputs,
    folder: &Path,
    resume: bool,
) -> Result<Journal, Failure> {
    output::require_folder(folder)?;
    let forms = Form::built();
    formats::require_folder(plan.experiment(), plan.question(), inputs, folder, &forms)?;
    let journal = Journal::open(plan, host.info().name, folder, resume)?;
    if !journal.is_empty() {
        eprintln!("anysched: {} runs are done already", journal.len());
    }
    Ok(journal)
}

/// Writes results in all forms that this program can write, and says which it cannot.
pub fn write_results(results: &Results, inputs: &Inputs, folder: &Path) -> Result<(), Failure> {
    for path in formats::write(results, inputs, folder, &Form::built())? {
        output::say_written(&path);
    }
    for form in Form::ALL.into_iter().filter(|form| !form.is_built()) {
        let name = form.name();
        eprintln!(
            "anysched: no {name}: this program was built without it; `cargo run --release -p \
             anysched-cli --features {name} -- …` writes it too"
        );
    }
    Ok(())
}

/// The rows of policies, without those of schedulers that the host has of its own.
pub fn policies_run(plan: &Plan, results: &Results) -> Vec<(usize, usize)> {
    let mut runs = results.runs();
    runs.retain(|&(_, policy)| policy < plan.policies().len());
    runs
}

/// Says which part of the results there is, and how to have the rest.
pub fn interrupted(results: &Results, journal: Option<&Journal>) -> Failure {
    let is_whole = |row: &&Row| row.runs.len() == results.seeds as usize;
    let rows = results.rows.iter().filter(is_whole).count();
    let (begun, all) = (results.rows.len() - rows, results.policies.len() * results.groups.len());
    let begun = match begun {
        0 => String::new(),
        _ => format!(", {begun} more have some of their seeds"),
    };
    let remedy = match journal.map(Journal::failure) {
        Some(Some(why)) => format!("; what is done could not be kept: {why}"),
        Some(None) => "; --resume goes on from there".to_string(),
        None => String::new(),
    };
    eprintln!("anysched: interrupted; {rows} of {all} rows are complete{begun}{remedy}");
    Failure::Interrupted
}

impl RunFiles {
    /// Refuses files that cannot be written, before anything runs; the format of the trace.
    pub fn require(&self, inputs: &Inputs) -> Result<Option<TraceFormat>, Failure> {
        let format = self.trace.as_deref().map(TraceFormat::of).transpose()?;
        let outputs =
            self.trace.iter().chain(&self.record).chain(&self.learned).chain(&self.report);
        output::require_places(outputs, inputs)?;
        Ok(format)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum TraceFormat {
    Perfetto,
    Ftrace,
}

impl TraceFormat {
    pub fn of(path: &Path) -> Result<TraceFormat, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("pftrace" | "perfetto-trace") => Ok(TraceFormat::Perfetto),
            Some("txt" | "ftrace") => Ok(TraceFormat::Ftrace),
            _ => Err(Failure::from(format!(
                "{}: a trace's name ends in .pftrace (Perfetto) or .txt (ftrace text)",
                path.display()
            ))),
        }
    }
}

/// `path` itself if all runs have one row; otherwise with the row's place in its name.
fn path_of_run(
    path: &Path,
    plan: &Plan,
    results: &Results,
    (group, policy): (usize, usize),
) -> PathBuf {
    let mut suffix = String::new();
    if plan.groups().len() > 1 {
        suffix.push_str(&format!("-{group}"));
    }
    if results.policies.len() > 1 {
        let label = &results.policies[policy].label;
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        suffix.push_str(&format!("-{}", label.chars().map(plain).collect::<String>()));
    }
    output::with_suffix(path, &suffix)
}

/// Knows when the run ended: when its host says, or at the last event.
struct Ending<S> {
    sink: S,
    end: Time,
}

impl<S: Sink> Sink for Ending<S> {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.sink.task(info);
    }
    #[inline]
    fn event(&mut self, event: &Event) {
        self.end = event.time;
        self.sink.event(event);
    }
    fn job(&mut self, task: TaskId, release: Time, deadline: Option<Time>) {
        self.sink.job(task, release, deadline);
    }
    fn job_done(&mut self, task: TaskId, time: Time) {
        self.sink.job_done(task, time);
    }
    fn end(&mut self, time: Time) {
        self.end = self.end.max(time);
        self.sink.end(time);
    }
    fn takes_lines(&self) -> bool {
        self.sink.takes_lines()
    }
    fn line(&mut self, time: Time, line: &str) {
        self.end = time;
        self.sink.line(time, line);
    }
    fn decision(&mut self, decision: &Decision<'_>) {
        self.end = decision.time();
        self.sink.decision(decision);
    }
    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        self.sink.vm(vm, name, tasks);
    }
    fn vm_end(&mut self, vm: usize, time: Time) {
        self.end = time;
        self.sink.vm_end(vm, time);
    }
    fn vm_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        self.sink.vm_task(vm, info);
    }
    fn vm_event(&mut self, vm: usize, event: &Event) {
        self.end = event.time;
        self.sink.vm_event(vm, event);
    }
}

/// A writer of one of the formats.
enum TraceWriter<W: Write> {
    Perfetto(Box<PerfettoWriter<W>>),
    Ftrace(FtraceWriter<W>),
}

impl<W: Write> TraceWriter<W> {
    fn new(format: TraceFormat, cpus: usize, out: W) -> TraceWriter<W> {
        match format {
            TraceFormat::Perfetto => TraceWriter::Perfetto(Box::new(PerfettoWriter::new(out))),
            TraceFormat::Ftrace => TraceWriter::Ftrace(FtraceWriter::new(out, cpus)),
        }
    }

    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            TraceWriter::Perfetto(writer) => &mut **writer,
            TraceWriter::Ftrace(writer) => writer,
        }
    }

    fn finish(self, end: Time) -> io::Result<()> {
        match self {
            TraceWriter::Perfetto(writer) => writer.finish(end).map(drop),
            TraceWriter::Ftrace(writer) => writer.finish(end).map(drop),
        }
    }
}

/// Writes the trace of what `run` does.
///
/// Errors: the file cannot be written, or those of `run`.
pub fn write_traced<R, E: Display>(
    path: &Path,
    inputs: &Inputs,
    format: TraceFormat,
    cpus: usize,
    run: impl FnOnce(&mut dyn Sink) -> Result<R, E>,
) -> Result<R, Failure> {
    write_told(path, inputs, format, cpus, |sink| {
        let mut sink = Ending { sink, end: Time::ZERO };
        let result = run(&mut sink)?;
        Ok::<_, E>((result, sink.end))
    })
}

/// Writes the trace of a run from the log of its decisions.
pub fn write_events(
    path: &Path,
    inputs: &Inputs,
    format: TraceFormat,
    log: &[u8],
    name: impl Fn(u64) -> Option<String>,
) -> Result<(), Failure> {
    let cpus = LogReader::new(log).map_err(|error| error.to_string())?.header().machine.cpus();
    write_told(path, inputs, format, cpus, |sink| {
        decisions::tell(log, name, sink).map(|(end, _)| ((), end))
    })
}

/// Writes a trace of what `tell` reports, which returns also when that ended, and says so. If it
/// fails, no file is left.
fn write_told<R, E: Display>(
    path: &Path,
    inputs: &Inputs,
    format: TraceFormat,
    cpus: usize,
    tell: impl FnOnce(&mut dyn Sink) -> Result<(R, Time), E>,
) -> Result<R, Failure> {
    let mut told = None;
    let written = write_whole(path, inputs, |out| {
        let mut writer = TraceWriter::new(format, cpus, out);
        match told.insert(tell(writer.sink())) {
            Ok((_, end)) => writer.finish(*end),
            Err(_) => Err(io::Error::other("the run failed")),
        }
    });
    match told {
        Some(Err(error)) => Err(Failure::from(error)),
        Some(Ok((result, _))) => {
            written?;
            output::say_written(path);
            Ok(result)
        }
        None => Err(written.err().map_or_else(|| "nothing was run".into(), Failure::from)),
    }
}

/// Makes the first run of a row again, up to what its policy learns, and writes that: a file for
/// each parameter. Returns how many.
fn write_learned(
    plan: &Plan,
    host: &dyn Host,
    (group, policy): (usize, usize),
    path: &Path,
    inputs: &Inputs,
) -> Result<usize, Failure> {
    let learned = plan.learned(host, group, policy, 0)?;
    for (name, value) in &learned {
        let mut path = path.to_path_buf();
        if learned.len() > 1 {
            path = output::with_suffix(&path, &format!("-{name}"));
        }
        write_whole(&path, inputs, |out| writeln!(out, "{value}"))?;
        let label = &plan.policies()[policy].label;
        eprintln!("anysched: wrote what {label} learned: {name}=@{}", path.display());
    }
    Ok(learned.len())
}

pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let experiment = choose::experiment(&args.selection)?;
    let plan = choose::plan(&experiment)?;
    plan.require(args.host.host)?;
    let mut text = format!("{}: {}\n", experiment.name(), experiment.question());
    for (number, group) in plan.groups().enumerate() {
        text.push_str(format!("group {number}: {}", group.title()).trim_end_matches([':', ' ']));
        text.push('\n');
        text.push_str(&format!("  {}\n", group.machine));
        for load in &group.loads {
            text.push_str(&format!("  {load}\n"));
        }
    }
    let labels: Vec<&str> = plan.policies().iter().map(|entry| entry.label.as_str()).collect();
    text.push_str(&format!("policies: {}\n", labels.join(", ")));
    text.push_str(&format!("{} runs, {} seeds a row\n", plan.runs(), plan.seeds()));
    output::print(&text)
}
