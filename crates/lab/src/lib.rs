//! Experiments: from a TOML file to runs on all cores, to rows of numbers, to verdicts.
//!
//! ```no_run
//! use anysched_lab::{Experiment, RunOptions, output};
//! use anysched_sim::Simulator;
//! use std::sync::atomic::AtomicBool;
//!
//! let experiment = Experiment::load("experiments/quickstart.toml".as_ref())?;
//! let cancel = AtomicBool::new(false);
//! let options =
//!     RunOptions { host: &Simulator, jobs: 2, cancel: &cancel, journal: None, progress: &|_| {} };
//! let results = experiment.plan()?.run(&options)?;
//! print!("{}", output::table(&results));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file is read into a tree of values that know their place in it. Each combination of axis
//! values is a copy of the tree with some values replaced, from which the machine, the loads and
//! the policies are built; an error points at the value that it is about, be it that of an axis.
//!
//! | folder | what it is | uses |
//! |---|---|---|
//! | `spec` | what the file says | |
//! | `results` | rows, their statistics, verdicts on claims | `spec` |
//! | `plan` | machines, loads and policies built; runs made | `spec`, `results` |
//! | `tune` | searches for parameters | `spec`, `results`, `plan` |
//! | `builtin` | the experiments that the program carries | |
//! | `compare` | two sets of runs side by side | `spec`, `results` |
//! | `shrink` | what fails, made as small as can be | `spec`, `plan` |
//! | `swarm` | random experiments | |
//! | `look` | why a task waited, where two schedules part | `plan` |
//! | `described` | policies as JSON | |
//! | `gantt` | runs as Gantt charts | `plan` |
//! | `imported` | an experiment for a load that was imported | |
//! | `output` | tables, JSON, CSV, Parquet, charts | all of them |
//!

#![doc = include_str!("../EXPERIMENTS.md")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod builtin;
pub mod compare;
pub mod described;
pub mod gantt;
pub mod imported;
pub mod look;
pub mod output;
mod plan;
mod results;
mod schema;
pub mod shrink;
mod spec;
pub mod swarm;
pub mod tune;

pub use plan::Plan;
pub use plan::journal::Journal;
pub use plan::run::{Progress, RunError, RunOptions, available_jobs};
pub use results::host::HostedRun;
pub use results::stats::{Estimate, student_t_975};
pub use results::verdict::{Check, ClaimResult, Measure, SizeResult};
pub use results::{Aggregate, Exception, Group, PolicyUsed, Results, Row, Run};
pub use schema::schema;
pub use spec::claim::Verdict;
pub use spec::columns::{Column, Stat, column, columns};
pub use spec::error::Error;
pub use spec::experiment::Experiment;
pub use spec::keys;
pub use spec::known::add_policies;
pub use spec::sweep::{AxisValue, PolicyEntry};
