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
//!     RunOptions { host: &Simulator, jobs: 2, cancel: &cancel, progress: &|_| {} };
//! let results = experiment.plan()?.run(&options)?;
//! print!("{}", output::table(&results));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file is read into a tree of values that know their place in it. Each combination of axis
//! values is a copy of the tree with some values replaced, from which the machine, the loads and
//! the policies are built; an error points at the value that it is about, be it that of an axis.
//!

#![doc = include_str!("../EXPERIMENTS.md")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod calibrated;
mod claim;
mod columns;
mod error;
mod experiment;
mod fields;
mod files;
mod host;
mod load;
mod machine;
pub mod output;
mod overrides;
mod plan;
mod rehearsal;
mod results;
mod run;
mod stats;
mod sweep;
mod tree;
pub mod tune;
mod vm;
mod workers;

pub use claim::{Check, ClaimResult, Measure, Verdict};
pub use columns::{Column, Stat, column, columns};
pub use error::Error;
pub use experiment::Experiment;
pub use host::HostedRun;
pub use plan::Plan;
pub use results::{Aggregate, Exception, Group, PolicyUsed, Results, Row, Run};
pub use run::{Progress, RunError, RunOptions, available_jobs};
pub use stats::{Estimate, student_t_975};
pub use sweep::{AxisValue, PolicyEntry};
