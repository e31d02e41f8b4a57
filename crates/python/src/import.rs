//! Recordings and traces as frames.

use crate::errors;
use crate::frame::{Columns, Frame};
use anysched_workload::Op;
use anysched_workload::import::input::{of_file, open};
use anysched_workload::import::{IMPORTERS, ImporterInfo, Options};
use anysched_workload::model::Model;
use arrow_array::{Int64Array, StringArray, UInt64Array};
use pyo3::prelude::*;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of a file tells its format.
const BEGINNING: u64 = 1 << 16;

/// What a file has been read as: its tasks, and what each does.
#[pyclass(frozen, module = "anysched._core")]
#[derive(Debug)]
pub struct ImportedTrace {
    model: Model,
    format: &'static str,
}

/// The formats that can be read.
#[pyfunction]
pub fn trace_formats() -> Vec<&'static str> {
    IMPORTERS.iter().map(|importer| importer.name).collect()
}

/// Reads a file; without a format, that by which it begins.
#[pyfunction]
pub fn import_trace(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    options: Vec<(String, String)>,
) -> PyResult<ImportedTrace> {
    let name = path.display().to_string();
    let unread =
        |error: std::io::Error| errors::import(py, format!("{name}: cannot be read: {error}"));
    let format = match format {
        Some(format) => ImporterInfo::of(format).ok_or_else(|| {
            let known = trace_formats().join(", ");
            errors::import(py, format!("no format is called `{format}`; there are {known}"))
        })?,
        None => {
            let mut start = Vec::new();
            let file = File::open(&path).map_err(unread)?;
            let begins = open(file).and_then(|file| file.take(BEGINNING).read_to_end(&mut start));
            begins.map_err(unread)?;
            ImporterInfo::recognise(&start).ok_or_else(|| {
                let known = trace_formats().join(", ");
                let why = "it begins as no known format does; say which it is";
                errors::import(py, format!("{name}: {why}: {known}"))
            })?
        }
    };
    let mut values = vec![("file", path.to_str().unwrap_or_default())];
    values.extend(options.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let options = Options { format, values };
    let read = py.detach(|| {
        let file = File::open(&path).and_then(of_file);
        let mut file = file.map_err(|error| format!("{name}: cannot be read: {error}"))?;
        let read = (format.read)(&mut *file, &name, &options).map_err(|error| error.of(&name))?;
        let model = read.into_model();
        model.validate().map_err(|error| format!("{name}: {error}"))?;
        Ok::<_, String>(model)
    });
    let model = read.map_err(|why| errors::import(py, why))?;
    Ok(ImportedTrace { model, format: format.name })
}

#[pymethods]
impl ImportedTrace {
    /// The format that it was read as.
    #[getter]
    fn format(&self) -> &'static str {
        self.format
    }

    /// CPUs of the machine it was recorded on, if it was.
    #[getter]
    fn cpus(&self) -> Option<u32> {
        self.model.cpus
    }

    /// What the source said that is left out.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.model.warnings.clone()
    }

    /// A line for each task.
    fn tasks(&self) -> PyResult<Frame> {
        let tasks = &self.model.tasks;
        let work = |index: usize| -> u64 {
            let script = &tasks[index].script;
            let runs = |ops: &[Op]| -> u64 {
                ops.iter().map(|op| if let Op::Run(span) = op { span.0 } else { 0 }).sum()
            };
            let again = runs(&script.ops[script.repeat_from.min(script.ops.len())..]);
            runs(&script.ops).saturating_add(again.saturating_mul(script.rounds - 1))
        };
        let is_endless = |index: usize| tasks[index].script.rounds == u64::MAX;
        let numbers = 0..tasks.len();
        let name = |index: usize| tasks[index].new.name.as_deref();
        let arrives = |index: usize| tasks[index].arrives.map(|time| time.0);
        let cpu = |index: usize| (!is_endless(index)).then(|| work(index));
        let rounds = |index: usize| (!is_endless(index)).then(|| tasks[index].script.rounds);
        let steps = |index: usize| tasks[index].script.ops.len() as u64;
        let nice = |index: usize| i64::from(tasks[index].new.nice);
        let unsigned = |of: &dyn Fn(usize) -> u64| -> UInt64Array {
            numbers.clone().map(of).collect::<Vec<_>>().into()
        };
        Columns::default()
            .add("task", unsigned(&|index| index as u64))
            .add("name", numbers.clone().map(name).collect::<StringArray>())
            .add("arrives_ns", numbers.clone().map(arrives).collect::<UInt64Array>())
            .add("nice", Int64Array::from(numbers.clone().map(nice).collect::<Vec<_>>()))
            .add("steps", unsigned(&steps))
            .add("rounds", numbers.clone().map(rounds).collect::<UInt64Array>())
            .add("cpu_ns", numbers.clone().map(cpu).collect::<UInt64Array>())
            .frame()
    }

    /// A line for each step of each task, repeated ones once.
    fn steps(&self) -> PyResult<Frame> {
        let tasks = self.model.tasks.iter().enumerate();
        let steps: Vec<(u64, u64, &Op)> = tasks
            .flat_map(|(task, of)| {
                let ops = of.script.ops.iter().enumerate();
                ops.map(move |(step, op)| (task as u64, step as u64, op))
            })
            .collect();
        let told: Vec<(&str, Option<u64>, Option<i64>)> =
            steps.iter().map(|(.., op)| told(op)).collect();
        let column = |of: fn(&(u64, u64, &Op)) -> u64| -> UInt64Array {
            steps.iter().map(of).collect::<Vec<_>>().into()
        };
        Columns::default()
            .add("task", column(|step| step.0))
            .add("step", column(|step| step.1))
            .add("does", StringArray::from_iter_values(told.iter().map(|step| step.0)))
            .add("ns", told.iter().map(|step| step.1).collect::<UInt64Array>())
            .add("of", told.iter().map(|step| step.2).collect::<Int64Array>())
            .frame()
    }

    /// Writes it as a model, which an experiment runs as a load of kind `model`.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        use anysched_lab::output::{Inputs, write_whole};
        write_whole(Path::new(&path), &Inputs::default(), |out| self.model.write(out))
            .map_err(|error| errors::import(py, error.to_string()))
    }
}

/// A step: what, for how long, and of which channel, lock, barrier, port, task or value.
fn told(op: &Op) -> (&'static str, Option<u64>, Option<i64>) {
    let of = |what: &'static str, number: u32| (what, None, Some(i64::from(number)));
    match op {
        Op::Run(span) => ("run", Some(span.0), None),
        Op::Sleep(span) => ("sleep", Some(span.0), None),
        Op::Release { at, .. } => ("release", Some(at.0), None),
        Op::Wait(channel) => of("wait", channel.0),
        Op::Signal(channel) => of("signal", channel.0),
        Op::Write(channel) => of("write", channel.0),
        Op::Notify(channel) => of("notify", channel.0),
        Op::Broadcast(channel) => of("broadcast", channel.0),
        Op::Lock(lock) => of("lock", lock.0),
        Op::Spin(lock) => of("spin", lock.0),
        Op::Unlock(lock) => of("unlock", lock.0),
        Op::Meet(barrier) => of("meet", barrier.0),
        Op::Send(port) => ("send", None, Some(i64::from(port.0))),
        Op::Reply(way) => ("reply", None, i64::try_from(way.0).ok()),
        Op::Yield => ("yield", None, None),
        Op::SetNice(nice) => ("nice", None, Some(i64::from(*nice))),
        Op::SetAffinity(_) => ("affinity", None, None),
        Op::Spawn(task) => ("spawn", None, Some(i64::from(*task))),
        Op::Exit => ("exit", None, None),
        Op::Measure(_) => ("measure", None, None),
    }
}
