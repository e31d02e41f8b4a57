//! `anysched import`.

use crate::args::{ImportArgs, ImportFormat};
use crate::output::{Failure, write_whole};
use anysched_workload::import::{self, ftrace, rtapp, swf};
use anysched_workload::model::Model;
use anysched_workload::tasks_csv::TaskList;
use std::fs::File;
use std::io;

pub fn import(args: &ImportArgs) -> Result<(), Failure> {
    let name = args.file.display();
    let file = File::open(&args.file).map_err(|error| format!("{name}: {error}"))?;
    let model = read(args.format, file).map_err(|error| format!("{name}: {error}"))?;
    for warning in &model.warnings {
        eprintln!("anysched: {name}: {warning}");
    }
    let extension = args.output.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("json") => write_whole(&args.output, |out| model.write(out))?,
        Some("csv") => {
            let tasks = TaskList::from_model(&model).map_err(|error| {
                format!("{name} does not fit into a list of tasks: {error}; write a .json")
            })?;
            write_whole(&args.output, |out| tasks.write(out).map_err(io::Error::other))?;
        }
        _ => {
            let why = "the output's name ends in .json (a model) or .csv (a list of tasks)";
            return Err(Failure::from(format!("{}: {why}", args.output.display())));
        }
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
