//! What a kernel is to run, and how to read what it says of it.

use crate::{Outcome as Said, measured};
use anysched_core::Span;
use anysched_host::{HostError, HostInfo, Outcome, Program, Work};
use anysched_measure::Benchmark;
use anysched_wire::script::Script;
use anysched_workload::{Program as LoadProgram, steps};

/// The program that performs a script.
const BATCH: &str = "batch";

/// What a kernel is to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<(String, String)>,
    /// The tasks that it performs, if it performs a script.
    pub tasks: Option<Script>,
    /// How to read what it says.
    pub reading: Reading,
}

/// How to read what a kernel says of its job.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The tasks are those of a script.
    is_script: bool,
    /// How many iterations a group has, by task, if the job says.
    iterations: Vec<u64>,
}

impl Job {
    /// `work` as a kernel of `host` does it on `cpus` CPUs: a load as the program made for it, or
    /// step by step.
    ///
    /// Errors: there is no such program, it has no such argument, or a task of the load does what
    /// no kernel performs.
    pub fn of(work: Work, host: &HostInfo, cpus: usize) -> Result<Job, HostError> {
        let load = match work {
            Work::Program(program) => {
                host.require_program(&program)?;
                let Program { name, arguments } = program;
                let reading = Reading::default();
                return Ok(Job { program: name, arguments, tasks: None, reading });
            }
            Work::Load(load) => load,
        };
        let Some(LoadProgram { name, arguments }) = load.program() else {
            return Ok(Job {
                program: BATCH.into(),
                arguments: Vec::new(),
                tasks: Some(steps::script(load, cpus).map_err(|error| error.to_string())?),
                reading: Reading { is_script: true, iterations: Vec::new() },
            });
        };
        let list = arguments.iter().find(|(argument, _)| *argument == "iterations");
        let numbers = list.map_or("", |(_, text)| text).split(',');
        let iterations = numbers.filter_map(|number| number.parse().ok()).collect();
        let owned = |(name, text): (&str, String)| (name.to_string(), text);
        Ok(Job {
            program: name.into(),
            arguments: arguments.into_iter().map(owned).collect(),
            tasks: None,
            reading: Reading { is_script: false, iterations },
        })
    }
}

impl Reading {
    /// What a kernel has said, as what it measured; its logs only if they are wanted.
    pub fn outcome(&self, said: Said, with_logs: bool) -> Outcome {
        let mut outcome = measured(said);
        if !with_logs {
            outcome.logs.clear();
        }
        if self.is_script {
            // A list of tasks is no benchmark, whatever the program says of them.
            outcome.metrics.benchmark = Benchmark::default();
        }
        // What a task has done, at a nanosecond an iteration: how tasks share is all that counts.
        for (task, iterations) in outcome.metrics.benchmark.tasks.iter_mut().zip(&self.iterations) {
            let done = |(groups, _): (u32, Span)| (groups, Span(u64::from(groups) * iterations));
            task.counted = task.counted.map(done);
        }
        outcome
    }
}
