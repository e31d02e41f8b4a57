//! `anysched import`.

use crate::args::ImportArgs;
use crate::output::{self, Failure};
use anysched_lab::output::{Inputs, write_whole};
use anysched_workload::import::{Imported, ImporterInfo};
use anysched_workload::kinds::{Given, Table};
use anysched_workload::model::Model;
use anysched_workload::tasks_csv::TaskList;
use std::fs::File;
use std::path::Path;

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
    let file =
        File::open(&args.file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let model = read(args, file)?;
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
    Ok(())
}

fn read(args: &ImportArgs, mut file: File) -> Result<Model, Failure> {
    let (name, format) = (args.file.display(), &args.format);
    let format = ImporterInfo::of(format).ok_or_else(|| format!("no format `{format}`"))?;
    let options = Options::of(&args.set, &args.file, format)?;
    let read = (format.read)(&mut file, &name.to_string(), &options);
    Ok(match read.map_err(|error| error.of(name))? {
        Imported::Model(model) => model,
        Imported::Tasks(tasks) => tasks.to_model(),
    })
}

/// The values of `--set`, and the name of the file.
struct Options<'a> {
    format: &'static ImporterInfo,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    fn of(
        set: &'a [String],
        file: &'a Path,
        format: &'static ImporterInfo,
    ) -> Result<Options<'a>, Failure> {
        let mut values = vec![("file", file.to_str().unwrap_or_default())];
        for text in set {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| format!("--set {text}: a setting is written KEY=VALUE"))?;
            if values.iter().any(|(known, _)| *known == key) {
                return Err(Failure::from(format!("--set {text}: `{key}` is given already")));
            }
            values.push((key, value));
        }
        Ok(Options { format, values })
    }
}

impl Table for Options<'_> {
    fn keys(&self) -> Vec<&str> {
        self.values.iter().map(|(key, _)| *key).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        let (_, text) = self.values.iter().find(|(known, _)| *known == key)?;
        let option = self.format.options.iter().find(|option| option.name == key);
        Some(option.map_or(Given::Text(text), |option| option.takes.literal(text)))
    }
}
