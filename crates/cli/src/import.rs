//! `anysched import`.

use crate::args::ImportArgs;
use crate::output::{self, Failure};
use anysched_core::MAX_CPUS;
use anysched_lab::output::{Inputs, write_whole};
use anysched_workload::Op;
use anysched_workload::import::input::of_file;
use anysched_workload::import::{ImporterInfo, Input, Options};
use anysched_workload::model::Model;
use anysched_workload::tasks_csv::TaskList;
use std::fs::File;

pub fn import(args: &ImportArgs) -> Result<(), Failure> {
    let as_list = match args.output.extension().and_then(|extension| extension.to_str()) {
        Some("json") => false,
        Some("csv") => true,
        _ => {
            let why = "the output's name ends in .json (a model) or .csv (a list of tasks)";
            return Err(Failure::from(format!("{}: {why}", args.output.display())));
        }
    };
    let inputs = Inputs::of([&args.file]);
    output::require_places([&args.output], &inputs)?;
    let name = args.file.display();
    let file = File::open(&args.file).and_then(of_file);
    let mut file = file.map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let model = read(args, &mut *file)?;
    for warning in &model.warnings {
        eprintln!("anysched: {name}: {warning}");
    }
    model.validate().map_err(|error| format!("{name}: {error}"))?;
    if model.tasks.iter().all(|task| task.arrives.is_none()) {
        return Err(Failure::from(format!("{name}: no task arrives, so there is nothing to run")));
    }
    if as_list {
        let tasks = TaskList::from_model(&model).map_err(|error| {
            format!("{name} does not fit into a list of tasks: {error}; write a .json")
        })?;
        write_whole(&args.output, &inputs, |out| tasks.write(out))?;
    } else {
        write_whole(&args.output, &inputs, |out| model.write(out))?;
    }
    eprintln!("{} tasks in {}", model.tasks.len(), args.output.display());
    print!("{}", experiment(args, &model, if as_list { "tasks" } else { "model" }));
    Ok(())
}

/// The experiment that runs what was imported.
fn experiment(args: &ImportArgs, model: &Model, kind: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let source = args.file.file_name().unwrap_or_default().to_string_lossy();
    let extent = Extent::of(model);
    let (cpus, why) = match model.cpus.filter(|&cpus| cpus > 0) {
        Some(cpus) => (cpus, "as many as it was recorded on"),
        None => (extent.cpus(), "as many as its work needs on average"),
    };
    let duration =
        if model.is_endless() { "duration = \"10s\" # the load never ends\n" } else { "" };
    // Ticks and slices of hours would take long, and tell little.
    const LONG: u128 = 1_000_000_000_000;
    let (policies, tick) = match extent.span < LONG {
        true => ("\"rr\", \"cfs\", \"eevdf\"", "tick = \"4ms\"\n"),
        false => ("\"fcfs\", \"sjf\"", ""),
    };
    let (most, file) = (MAX_CPUS as u32, args.output.to_string_lossy());
    format!(
        "# Save this as run.toml, and run it: anysched run run.toml\n\
         question = {}\n\
         policy = [{policies}] # all: anysched policies\n\
         {duration}\n\
         [machine]\n\
         cpus = {} # {why}{}\n\
         {tick}\n\
         [[workload]]\n\
         kind = \"{kind}\"\n\
         file = {}\n",
        quoted(&format!("How do policies schedule {source}?")),
        cpus.min(most),
        if cpus > most { format!(", {cpus}, but at most {most}") } else { String::new() },
        quoted(&file),
    )
}

/// How much a load is, in ns.
struct Extent {
    /// CPU time of all tasks, as far as they do not repeat anything.
    work: u128,
    /// From the first arrival to the end of the last task that arrives, if each had a CPU.
    span: u128,
}

impl Extent {
    fn of(model: &Model) -> Extent {
        let (mut work, mut first, mut last) = (0_u128, u128::MAX, 0_u128);
        for task in &model.tasks {
            let (mut run, mut rest) = (0_u128, 0_u128);
            for op in &task.script.ops {
                match op {
                    Op::Run(span) => run += u128::from(span.0),
                    Op::Sleep(span) => rest += u128::from(span.0),
                    _ => {}
                }
            }
            work += run;
            if let Some(arrival) = task.arrives {
                first = first.min(arrival.0.into());
                last = last.max(u128::from(arrival.0) + run + rest);
            }
        }
        Extent { work, span: last.saturating_sub(first).max(1) }
    }

    /// The fewest CPUs that can do the work in that time.
    fn cpus(&self) -> u32 {
        u32::try_from(self.work.div_ceil(self.span)).unwrap_or(u32::MAX).max(1)
    }
}

fn read(args: &ImportArgs, file: &mut dyn Input) -> Result<Model, Failure> {
    let (name, format) = (args.file.display(), &args.format);
    let format = ImporterInfo::of(format).ok_or_else(|| format!("no format `{format}`"))?;
    let options = Options { format, values: values(args)? };
    let read = (format.read)(file, &name.to_string(), &options);
    Ok(read.map_err(|error| error.of(name))?.into_model())
}

/// The values of `--set`, and the name of the file.
fn values(args: &ImportArgs) -> Result<Vec<(&str, &str)>, Failure> {
    let mut values = vec![("file", args.file.to_str().unwrap_or_default())];
    values.extend(args.part.keys());
    for text in &args.set {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("--set {text}: a setting is written KEY=VALUE"))?;
        if values.iter().any(|(known, _)| *known == key) {
            return Err(Failure::from(format!("--set {text}: `{key}` is given already")));
        }
        values.push((key, value));
    }
    Ok(values)
}
