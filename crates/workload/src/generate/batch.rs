//! A closed batch: tasks that all arrive at once.

use super::open::{Gap, Stream};
use super::{Generator, MAX_BATCH, SettingError, Settings, check, check_run};
use crate::Load;
use crate::dist::Dist;
use crate::extent::Extent;
use crate::kinds::{Needs, keys};
use anysched_core::{Span, Time};

keys! {
    /// Tasks that arrive together, run once and exit.
    pub struct Batch {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: u64 = needed, eg "100", in 0..=MAX_BATCH;
        /// CPU time of a task; at least 1 ns.
        service: Dist = needed, eg "exp(10ms)";
        /// When they arrive.
        at: Time = "0ns", eg "5ms";
    }
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

    fn extent(&self, _: usize, _: Option<Time>) -> Extent {
        let tasks = self.tasks as f64;
        let work = tasks * self.service.mean();
        Extent { steps: tasks, work, last: self.at.0 as f64, uninvited: tasks }
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let together = Gap::Drawn(Dist::constant(Span::ZERO));
        let stream = Stream::new(&self.settings, together, &self.service, seed);
        Ok(Box::new(stream.limited(self.at, Some(self.tasks), None)))
    }
}
