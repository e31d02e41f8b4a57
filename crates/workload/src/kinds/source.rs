//! A load that has been read, from which each run builds its own.

use super::needs::Needs;
use crate::dist::Dist;
use crate::extent::{Extent, earlier};
use crate::generate::{Echo, Generator, Ping, Settings};
use crate::model::{Model, Script};
use crate::model_load::CheckedModel;
use crate::tasks_csv::TaskList;
use crate::{Load, Op, Port};
use anysched_core::{CpuId, CpuSet, Time};
use std::sync::Arc;

/// A load as a file describes it.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// What generates it.
    pub source: Source,
    /// The machine that it pings, if any; the port of `source` then leads nowhere yet.
    pub pings: Option<Pings>,
}

/// A load that sends messages to another virtual machine.
#[derive(Clone, Debug)]
pub struct Pings {
    /// The name of the other machine.
    pub to: String,
    /// How long a message takes, either way; with `via`, each half of it.
    pub hop: anysched_core::Span,
    /// The name of the machine that hands messages on, and its CPU time for each.
    pub via: Option<(String, Dist)>,
    /// CPU time of an answer.
    pub(crate) answer: Dist,
    pub(crate) ping: Ping,
}

impl Pings {
    /// The load with messages that leave through `port`.
    pub fn through(&self, port: Port) -> Source {
        Source::Generated(Arc::new(Ping { port, ..self.ping.clone() }))
    }

    /// The load of the other machine, whose answers leave through `port`.
    pub fn echo(&self, port: Port) -> Source {
        let (settings, work) = (Settings::default(), self.answer.clone());
        Source::Generated(Arc::new(Echo { settings, work, port }))
    }

    /// The load of the machine between, which hands messages on through `port`, if there is one.
    pub fn forwarder(&self, port: Port) -> Option<Source> {
        let (_, work) = self.via.as_ref()?;
        let (settings, work) = (Settings::default(), work.clone());
        Some(Source::Generated(Arc::new(Echo { settings, work, port })))
    }
}

/// What generates a load. All runs share what was read from files.
#[derive(Clone, Debug)]
pub enum Source {
    /// Parameters.
    Generated(Arc<dyn Generator>),
    /// A list of tasks.
    Tasks(Arc<TaskList>),
    /// A model.
    Model(CheckedModel),
}

impl Source {
    /// The load for the run with this seed, on a machine of `cpus` CPUs.
    ///
    /// Errors: it cannot run there.
    pub fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, String> {
        Ok(match self {
            Source::Generated(generator) => {
                generator.build(seed, cpus).map_err(|error| error.to_string())?
            }
            Source::Tasks(tasks) => Box::new(TaskList::clone(tasks).into_load()),
            Source::Model(model) => Box::new(model.load()),
        })
    }

    /// Whether it never ends by itself, so that the run needs an end of its own.
    pub fn endless(&self) -> bool {
        match self {
            Source::Generated(generator) => generator.endless(),
            Source::Tasks(_) => false,
            Source::Model(model) => model.model().is_endless(),
        }
    }

    /// How many of `cpus` CPUs it keeps busy in the long run, as far as that is said
    /// ([`Generator::utilisation`]).
    pub fn utilisation(&self, cpus: usize) -> f64 {
        match self {
            Source::Generated(generator) => generator.utilisation(cpus),
            Source::Tasks(_) | Source::Model(_) => 0.0,
        }
    }

    /// How much there is of it on `cpus` CPUs up to a time, if it is ended then.
    pub fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        match self {
            Source::Generated(generator) => generator.extent(cpus, until),
            Source::Tasks(tasks) => {
                let rows = tasks.rows();
                Extent {
                    steps: rows.len() as f64,
                    work: rows.iter().map(|row| row.service.0 as f64).sum(),
                    last: rows.last().map_or(0.0, |row| row.arrival.0 as f64),
                    uninvited: rows.len() as f64,
                }
            }
            Source::Model(model) => of_model(model.model(), until),
        }
    }

    /// When its source ends it, whatever its tasks are still doing.
    pub fn until(&self) -> Option<Time> {
        match self {
            Source::Model(model) => model.model().until,
            _ => None,
        }
    }

    /// What it needs from a host.
    pub fn needs(&self) -> Needs {
        match self {
            Source::Generated(generator) => generator.needs(),
            Source::Tasks(tasks) => {
                let rows = tasks.rows();
                Needs {
                    deadlines: rows.iter().any(|row| row.deadline.is_some()),
                    niceness: rows.iter().any(|row| row.nice != 0),
                    affinity: rows.iter().any(|row| !row.affinity.is_all()),
                    ..Needs::NOTHING
                }
            }
            Source::Model(model) => Needs::of_model(model.model()),
        }
    }

    /// How many tasks of a file are at some point bound to none of `cpus` CPUs.
    pub(crate) fn bound_elsewhere(&self, cpus: usize) -> usize {
        let elsewhere = |set: &CpuSet| !(0..cpus).any(|cpu| set.contains(CpuId(cpu as u16)));
        match self {
            // These are refused instead.
            Source::Generated(_) => 0,
            Source::Tasks(tasks) => {
                tasks.rows().iter().filter(|row| elsewhere(&row.affinity)).count()
            }
            Source::Model(model) => {
                let tasks = model.model().tasks.iter().filter(|task| {
                    let later = task.script.ops.iter().filter_map(|op| match op {
                        Op::SetAffinity(affinity) => Some(affinity),
                        _ => None,
                    });
                    later.chain([&task.new.affinity]).any(elsewhere)
                });
                tasks.count()
            }
        }
    }
}

/// What the tasks of a model do, as far as it is not for ever.
fn of_model(model: &Model, until: Option<Time>) -> Extent {
    let mut extent = Extent::default();
    for task in &model.tasks {
        let Script { ops, repeat_from, rounds, .. } = &*task.script;
        let again = if *rounds == u64::MAX { 1.0 } else { *rounds as f64 };
        let repeated = |index: usize| if index < *repeat_from { 1.0 } else { again };
        for (index, op) in ops.iter().enumerate() {
            extent.steps += repeated(index);
            if let Op::Run(time) = op {
                extent.work += repeated(index) * time.0 as f64;
            }
        }
    }
    // What is cut off is not done.
    if let Some(end) = earlier(model.until, until) {
        extent.last = end.0 as f64;
        extent.work = 0.0;
    }
    extent
}
