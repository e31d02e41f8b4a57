//! What can be asked.

use anysched_lab::{Error, Experiment};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A request: its `op` in lower case, and what belongs to it.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The version; all policies, kinds of load and formats; the experiments that are built in.
    About,
    /// The text of an experiment that is built in, by name.
    Built {
        /// Its name, such as `classroom/e1-round-robin`.
        name: String,
    },
    /// An experiment read and checked, without running it.
    Read {
        /// The experiment.
        experiment: Source,
    },
    /// An experiment run: the table, and results as JSON.
    Run {
        /// The experiment.
        experiment: Source,
    },
    /// The report of what was run last: its document, and the blocks of its timelines.
    Report {
        /// The file that the command reads.
        file: String,
        /// The command that makes the same runs.
        command: String,
        /// What of it changes the experiment, but for its policies.
        changes: String,
        /// How many events all timelines have at most.
        events: u64,
    },
    /// Gantt charts of what was run last.
    Gantt {
        /// The group, as the plan numbers them.
        group: usize,
        /// The start as a time with a unit; none: that of the run.
        from: Option<String>,
        /// The end; none: that of the run.
        until: Option<String>,
    },
    /// A file imported: the experiment that runs it.
    Import {
        /// The file's name.
        name: String,
        /// What is in it, as base64.
        bytes: String,
    },
}

/// An experiment as the page has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Where its file is; the stem is the experiment's name, from which seeds derive. That of a
    /// built-in one begins with `built-in:`.
    pub path: String,
    /// Its text.
    pub toml: String,
    /// What is in the files that it names, as base64, by name. Others are looked for among those
    /// that are built in.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Policies by name or label; none: those of the text. As `--policy`.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Keys with their values. As `--set`.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// Parts that have rows of their own. As `--by`.
    #[serde(default)]
    pub by: Vec<String>,
    /// How many seeds a row has, if not as many as the text says. As `--seeds`.
    #[serde(default)]
    pub seeds: Option<u32>,
    /// Whether it is changed as `[quick]` says. As `reproduce --quick`.
    #[serde(default)]
    pub quick: bool,
}

/// Why an experiment was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It, at a place.
    Experiment(Error),
    /// Something else.
    Other(String),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Experiment(error)
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Other(why)
    }
}

impl Source {
    /// The experiment with its files and changes, in the order in which the command makes them.
    pub(crate) fn experiment(&self) -> Result<Experiment, Refused> {
        let mut experiment = Experiment::parse(&self.toml, Path::new(&self.path))?;
        for (name, text) in &self.files {
            experiment = experiment.with_file(name, &decoded(name, text)?);
        }
        if self.quick {
            experiment = experiment.quick()?;
        }
        if !self.policies.is_empty() {
            experiment = experiment.with_policies(&texts(&self.policies))?;
        }
        for (key, value) in &self.settings {
            experiment = experiment.with_setting(key, value)?;
        }
        if !self.by.is_empty() {
            experiment = experiment.with_rows_by(&texts(&self.by))?;
        }
        Ok(match self.seeds {
            Some(seeds) => experiment.with_seeds(seeds),
            None => experiment,
        })
    }
}

fn texts(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// What is in a file that came as base64.
pub(crate) fn decoded(name: &str, text: &str) -> Result<Vec<u8>, Refused> {
    let bytes = STANDARD.decode(text);
    bytes.map_err(|error| Refused::Other(format!("{name}: not base64: {error}")))
}
