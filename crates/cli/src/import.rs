//! `anysched import`.

use crate::args::ImportArgs;
use crate::output::{self, Failure};
use anysched_lab::imported::experiment_of;
use anysched_lab::output::{Inputs, write_whole};
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
    let source = args.file.file_name().unwrap_or_default().to_string_lossy();
    let (kind, output) = (if as_list { "tasks" } else { "model" }, args.output.to_string_lossy());
    print!("{}", experiment_of(&model, &source, kind, &output));
    Ok(())
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
