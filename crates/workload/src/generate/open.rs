//! An open load: tasks arrive whatever became of those before them.

use super::{
    Generator, MAX_TASKS, Maker, SettingError, Settings, check, check_count, check_run,
    check_until, run,
};
use crate::dist::{Dist, exp_quantile, to_span};
use crate::extent::{Extent, earlier};
use crate::kinds::{Kind, LoadSpec, Needs, Place, Reader, Refusal, keys};
use crate::per_task::OneRun;
use crate::rng::Rng;
use crate::{Load, Op, Outside};
use anysched_core::{Span, TaskId, Time};

/// Tasks that arrive one after another, run once and exit.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// Of each task.
    pub settings: Settings,
    /// How often tasks arrive. The first comes one gap after `start`.
    pub arrivals: Arrivals,
    /// CPU time of each; at least 1 ns.
    pub service: Dist,
    /// How many there are, at least 1; `None`: until `until`, or endless.
    pub tasks: Option<u64>,
    /// When arrivals start.
    pub start: Time,
    /// None arrives at this time or later.
    pub until: Option<Time>,
}

/// How often tasks arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// A Poisson process that keeps this fraction of all CPUs busy; above 0, overload from 1 up.
    Load(f64),
    /// A Poisson process of this many tasks per second; above 0.
    Rate(f64),
    /// Gaps drawn from this distribution; its mean is above 0.
    Gaps(Dist),
}

keys! {
    /// The keys of [`Open`].
    pub struct OpenKeys {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: Option<u64> = none "no limit", eg "2000", in 0..=MAX_TASKS;
        /// CPU time of a task; at least 1 ns.
        service: Dist = needed, eg "exp(10ms)";
        /// The fraction of all CPUs that a Poisson process of tasks keeps busy; overload from 1 up.
        load: Option<f64> = or "`rate` or `interarrival`", eg "0.9";
        /// Rate at which tasks of a Poisson process arrive.
        rate: Option<f64> = or "`load` or `interarrival`", eg "100", unit "tasks per second";
        /// Time between two arrivals.
        interarrival: Option<Dist> = or "`load` or `rate`", eg "exp(1ms)";
        /// When arrivals start; the first task arrives one time between arrivals later.
        start: Time = "0ns", eg "1s";
        /// No task arrives at this time or later.
        until: Option<Time> = none "no limit", eg "10s";
    }
}

impl Kind for OpenKeys {
    fn load(self, reader: &mut Reader<'_>) -> Result<LoadSpec, Refusal> {
        let given = [
            ("load", self.load.map(Arrivals::Load)),
            ("rate", self.rate.map(Arrivals::Rate)),
            ("interarrival", self.interarrival.map(Arrivals::Gaps)),
        ];
        let mut ways = given.into_iter().filter_map(|(key, way)| Some((key, way?)));
        let Some((first, arrivals)) = ways.next() else {
            return Err(Refusal::new(Place::Table, "it is not said how often tasks arrive").help(
                "`load = 0.9` keeps this part of the CPUs busy, `rate = 100` is tasks per second, \
                 `interarrival = \"exp(1ms)\"` is the time between them",
            ));
        };
        if let Some((second, _)) = ways.next() {
            let message = format!("`{first}` and `{second}` say the same thing");
            return Err(Refusal::value(second, message).help("keep one of them"));
        }
        reader.generated(Open {
            settings: self.settings,
            arrivals,
            service: self.service,
            tasks: self.tasks,
            start: self.start,
            until: self.until,
        })
    }
}

impl Open {
    fn gap(&self, cpus: usize) -> Gap {
        match &self.arrivals {
            Arrivals::Load(load) => Gap::Poisson(self.service.mean() / (load * cpus as f64)),
            Arrivals::Rate(rate) => Gap::Poisson(1e9 / rate),
            Arrivals::Gaps(gaps) => Gap::Drawn(gaps.clone()),
        }
    }
}

impl Generator for Open {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        let positive = |number: &f64| number.is_finite() && *number > 0.0;
        match &self.arrivals {
            Arrivals::Load(load) => {
                check(positive(load), "load", load, "above 0, for example 0.9")?;
            }
            Arrivals::Rate(rate) => {
                check(positive(rate), "rate", rate, "above 0, in tasks per second")?;
            }
            Arrivals::Gaps(gaps) => {
                let why = "longer than 0 on average; a batch has tasks that arrive together";
                check(gaps.mean() > 0.0, "interarrival", gaps, why)?;
            }
        }
        check_run("service", &self.service)?;
        check_count("tasks", self.tasks)?;
        check_until(self.start, self.until)
    }

    fn endless(&self) -> bool {
        self.tasks.is_none() && self.until.is_none()
    }

    fn utilisation(&self, cpus: usize) -> f64 {
        match &self.arrivals {
            Arrivals::Load(load) => load * cpus as f64,
            Arrivals::Rate(rate) => rate * self.service.mean() / 1e9,
            Arrivals::Gaps(gaps) => self.service.mean() / gaps.mean(),
        }
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let gap = match self.gap(cpus) {
            Gap::Poisson(mean) => mean,
            Gap::Drawn(gaps) => gaps.mean(),
        };
        let until = earlier(self.until, until);
        Extent::arriving(self.tasks, self.start, until, gap, self.service.mean())
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let stream = Stream::new(&self.settings, self.gap(cpus), &self.service, seed);
        Ok(Box::new(stream.limited(self.start, self.tasks, self.until)))
    }
}

/// Times between arrivals.
pub(super) enum Gap {
    /// Exponential with this mean in ns, which need not be a whole number.
    Poisson(f64),
    Drawn(Dist),
}

impl Gap {
    #[inline]
    fn draw(&self, rng: &mut Rng) -> Span {
        match self {
            Gap::Poisson(mean) => to_span(exp_quantile(*mean, rng.unit())),
            Gap::Drawn(dist) => dist.sample(rng),
        }
    }
}

/// Tasks that arrive one after another, run once and exit.
pub(super) struct Stream {
    maker: Maker,
    gap: Gap,
    gap_rng: Rng,
    service: Dist,
    service_rng: Rng,
    /// When the next task arrives; `NEVER` after the last one.
    next: Time,
    /// Tasks to come after the next one.
    left: u64,
    until: Time,
    tasks: OneRun,
}

impl Stream {
    pub(super) fn new(settings: &Settings, gap: Gap, service: &Dist, seed: u64) -> Stream {
        Stream {
            maker: Maker::new(settings, true),
            gap,
            gap_rng: Rng::stream(seed, "arrivals"),
            service: service.clone(),
            service_rng: Rng::stream(seed, "service"),
            next: Time::ZERO,
            left: 0,
            until: Time::NEVER,
            tasks: OneRun::default(),
        }
    }

    /// From `start`, at most this many tasks, and none at `until` or later.
    pub(super) fn limited(
        mut self,
        start: Time,
        tasks: Option<u64>,
        until: Option<Time>,
    ) -> Stream {
        self.next = start;
        self.left = tasks.unwrap_or(u64::MAX);
        self.until = until.unwrap_or(Time::NEVER);
        self.maker.numbered = tasks != Some(1);
        self.advance();
        self
    }

    #[inline]
    fn advance(&mut self) {
        let next = self.next + self.gap.draw(&mut self.gap_rng);
        if self.left == 0 || next >= self.until {
            self.next = Time::NEVER;
            return;
        }
        self.left -= 1;
        self.next = next;
    }
}

impl Load for Stream {
    #[inline]
    fn peek(&self) -> Time {
        self.next
    }

    #[inline]
    fn outside(&mut self) -> Outside {
        let at = self.next;
        self.advance();
        Outside::Arrival(self.maker.make(at))
    }

    #[inline]
    fn start(&mut self, task: TaskId, _: Time) {
        self.tasks.start(task, run(&self.service, &mut self.service_rng));
    }

    #[inline]
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        self.tasks.step(task)
    }
}
