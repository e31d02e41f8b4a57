//! Tasks that use all the CPU time they get.

use super::{
    Agenda, Generator, MAX_SOURCES, Maker, SettingError, Settings, check, check_period, check_until,
};
use crate::dist::Dist;
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::{Load, Op, Outside};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Tasks that never block: background load.
    pub struct Hog {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: u32 = "1", eg "4", in 0..=MAX_SOURCES;
        /// When a task arrives; drawn for each task.
        offset: Dist = "0ns", eg "uniform(0ns, 10ms)";
        /// When they end.
        until: Option<Time> = none "no limit", eg "10s";
        /// CPU time between two looks at the clock, which bounds what a task uses after `until`.
        check: Span = "1ms", eg "100us";
    }
}

/// CPU time that stands for "forever": 104 days, 2^53 ns, with room for arithmetic.
pub(crate) const FOR_EVER: Span = Span(1 << 53);

impl Generator for Hog {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.tasks > 0, "tasks", self.tasks, "at least 1")?;
        check_period("check", self.check)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        self.until.is_none()
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        // One that ends looks at the clock as it goes.
        let step = if self.until.is_some() { self.check } else { FOR_EVER };
        let end = earlier(self.until, until);
        let extent = Extent::repeated((self.tasks, cpus), None, end, step.0 as f64, step.0 as f64);
        let last = end.map_or(f64::INFINITY, |end| end.0 as f64);
        Extent { work: 0.0, last, ..extent }
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        Ok(Box::new(HogLoad {
            maker: Maker::new(&self.settings, self.tasks > 1),
            agenda: Agenda::drawn(self.tasks, &self.offset, self.until, seed),
            until: self.until,
            check: self.check,
            clock: PerTask::default(),
        }))
    }
}

struct HogLoad {
    maker: Maker,
    agenda: Agenda,
    until: Option<Time>,
    check: Span,
    /// When each task last looked at the clock.
    clock: PerTask<Time>,
}

impl Load for HogLoad {
    #[inline]
    fn peek(&self) -> Time {
        self.agenda.peek()
    }

    fn outside(&mut self) -> Outside {
        let (at, task) = self.agenda.take();
        Outside::Arrival(self.maker.make_numbered(u64::from(task), at))
    }

    fn start(&mut self, task: TaskId, now: Time) {
        self.clock.set(task, now);
    }

    #[inline]
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let Some(until) = self.until else { return Op::Run(FOR_EVER) };
        self.clock[task] = now;
        if now >= until { Op::Exit } else { Op::Run(self.check.min(until - now)) }
    }

    /// What it gets until the end if nothing else runs.
    fn burst(&self, task: TaskId, run: Span) -> Span {
        match self.until {
            None => FOR_EVER,
            Some(until) => until.since(self.clock[task]).max(run),
        }
    }
}
