//! A closed batch: tasks that are all there at once.

use super::open::{Gap, Stream};
use super::{Generator, SettingError, Settings, check, check_run};
use crate::Load;
use crate::dist::Dist;
use anysched_core::{Span, Time};

/// Tasks that arrive together, run once and exit.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Of each task.
    pub settings: Settings,
    /// How many there are; at least 1.
    pub tasks: u64,
    /// CPU time of each; at least 1 ns.
    pub service: Dist,
    /// When they arrive.
    pub at: Time,
}

impl Generator for Batch {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.tasks > 0, "tasks", self.tasks, "at least 1")?;
        check_run("service", &self.service)
    }

    fn endless(&self) -> bool {
        false
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let together = Gap::Drawn(Dist::constant(Span::ZERO));
        let stream = Stream::new(&self.settings, together, &self.service, seed);
        Ok(Box::new(stream.limited(self.at, Some(self.tasks), None)))
    }
}
