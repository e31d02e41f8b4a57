//! `anysched import`.

use crate::args::{ImportArgs, ImportFormat};
use crate::output::{self, Failure, write_whole};
use anysched_workload::import::{self, ftrace, rtapp, swf};
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
    output::require_place(&args.output)?;
    let name = args.file.display();
    let file =
        File::open(&args.file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let model = read(args.format, file).map_err(|error| format!("{name}: {error}"))?;
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
        write_whole(&args.output, |out| tasks.write(out))?;
    } else {
        write_whole(&args.output, |out| model.write(out))?;
    }
    eprintln!("{} tasks in {}", model.tasks.len(), args.output.display());
    Ok(())
}

fn read(format: ImportFormat, file: File) -> Result<Model, import::ImportError> {
    match format {
        ImportFormat::Ftrace => {
            let recording = ftrace::Recording::read(file)?;
            Ok(recording.replay(ftrace::Softirqs::ByEvidence).model)
        }
        ImportFormat::RtApp => rtapp::read(file),
        ImportFormat::Swf => swf::read(file, swf::Processors::default()),
    }
}
