//! Periodic tasks.

use super::{
    Agenda, Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_count,
    check_period, check_run, check_until, run,
};
use crate::dist::Dist;
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::rng::Rng;
use crate::{Load, Op, Outside};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Tasks that are released once per period for as long as they last.
    ///
    /// The n-th job of a task is released at offset + n · period + jitter. A job that is not done
    /// when the next one is released delays it; no job is skipped.
    ///
    /// The deadline counts from the release of each job; without one it is the period.
    pub struct Periodic {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: u32 = "1", eg "4", in 0..=MAX_SOURCES;
        /// Time between two releases.
        period: Span = needed, eg "10ms";
        /// CPU time of a job; at least 1 ns.
        run: Dist = needed, eg "2ms";
        /// CPU time reserved per period.
        budget: Option<Span> = none "that of a job, if it is constant", eg "3ms";
        /// When a task arrives: its first release before jitter, drawn for each task.
        offset: Dist = "0ns", eg "uniform(0ns, 10ms)";
        /// Maximum delay of a release, drawn uniformly for each job; at most the period.
        jitter: Span = "0ns", eg "1ms";
        /// How many jobs each task has.
        jobs: Option<u64> = none "no limit", eg "100", in 0..=MAX_TASKS;
        /// No release is due at this time or later, before jitter.
        until: Option<Time> = none "no limit", eg "10s";
    }
}

impl Generator for Periodic {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.tasks > 0, "tasks", self.tasks, "at least 1")?;
        check_period("period", self.period)?;
        check_run("run", &self.run)?;
        check(self.budget != Some(Span::ZERO), "budget", 0, "longer than 0")?;
        check(self.jitter <= self.period, "jitter", self.jitter, "at most the period")?;
        check_count("jobs", self.jobs)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        self.jobs.is_none() && self.until.is_none()
    }

    fn utilisation(&self, _: usize) -> f64 {
        f64::from(self.tasks) * self.run.mean() / self.period.0 as f64
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let (period, until) = (self.period.0 as f64, earlier(self.until, until));
        Extent::repeated((self.tasks, cpus), self.jobs, until, period, self.run.mean())
    }

    fn needs(&self) -> Needs {
        // Without one of its own, the deadline of a job is the next release.
        Needs { deadlines: true, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let timing = Timing {
            period: self.period,
            deadline: self.settings.deadline.unwrap_or(self.period),
            budget: self.budget.or(self.run.as_constant()),
            run: self.run.clone(),
        };
        let limits = Limits { jitter: self.jitter, jobs: self.jobs, until: self.until };
        let maker = Maker::new(&self.settings, self.tasks > 1);
        let timings = vec![timing; self.tasks as usize];
        Ok(Box::new(Jobs::new(maker, timings, &self.offset, limits, seed)))
    }
}

/// What distinguishes one periodic task of a load from another.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    pub(super) period: Span,
    /// From a release.
    pub(super) deadline: Span,
    pub(super) budget: Option<Span>,
    pub(super) run: Dist,
}

/// What all tasks of a periodic load have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) jitter: Span,
    pub(super) jobs: Option<u64>,
    pub(super) until: Option<Time>,
}

/// The load of periodic tasks.
pub(super) struct Jobs {
    maker: Maker,
    agenda: Agenda,
    sources: Vec<Source>,
    jitter: Span,
    jobs: u64,
    until: Time,
    /// The task that arrived last, by its number in this load.
    arriving: u32,
    tasks: PerTask<Job>,
}

/// One task of the load.
struct Source {
    timing: Timing,
    offset: Time,
    run: Rng,
    jitter: Rng,
}

/// Where a task is. What it needs for constant runs without jitter is all here, in a cache line.
#[derive(Clone, Copy, Default)]
struct Job {
    source: u32,
    running: bool,
    /// When it was due to be released, before jitter.
    due: Time,
    period: Span,
    deadline: Span,
    /// Jobs after this one.
    left: u64,
    /// CPU time of a job, if it is constant.
    run: Option<Span>,
}

impl Jobs {
    pub(super) fn new(
        maker: Maker,
        timings: Vec<Timing>,
        offset: &Dist,
        limits: Limits,
        seed: u64,
    ) -> Jobs {
        let source = |(task, timing)| Source {
            timing,
            offset: Agenda::offset(offset, seed, task),
            run: Rng::numbered(seed, "run", u64::from(task)),
            jitter: Rng::numbered(seed, "jitter", u64::from(task)),
        };
        let mut sources: Vec<Source> = (0..).zip(timings).map(source).collect();
        let until = limits.until.unwrap_or(Time::NEVER);
        let due = (0..).zip(&mut sources).filter(|(_, source)| source.offset < until);
        let arrivals = due
            .map(|(task, source)| (source.offset + late(limits.jitter, &mut source.jitter), task));
        Jobs {
            maker,
            agenda: Agenda::new(arrivals.collect()),
            sources,
            jitter: limits.jitter,
            jobs: limits.jobs.unwrap_or(u64::MAX),
            until,
            arriving: 0,
            tasks: PerTask::default(),
        }
    }
}

#[inline]
fn late(jitter: Span, rng: &mut Rng) -> Span {
    if jitter == Span::ZERO { jitter } else { Span(rng.below(jitter.0 + 1)) }
}

impl Load for Jobs {
    #[inline]
    fn peek(&self) -> Time {
        self.agenda.peek()
    }

    fn outside(&mut self) -> Outside {
        let (at, task) = self.agenda.take();
        self.arriving = task;
        let timing = &self.sources[task as usize].timing;
        let mut new = self.maker.make_numbered(u64::from(task), at);
        new.period = Some(timing.period);
        new.budget = timing.budget;
        new.relative_deadline = Some(timing.deadline);
        new.deadline = Some(at + timing.deadline);
        Outside::Arrival(new)
    }

    fn start(&mut self, task: TaskId, _: Time) {
        let source = &self.sources[self.arriving as usize];
        let job = Job {
            source: self.arriving,
            running: false,
            due: source.offset,
            period: source.timing.period,
            deadline: source.timing.deadline,
            left: self.jobs - 1,
            run: source.timing.run.as_constant(),
        };
        self.tasks.set(task, job);
    }

    #[inline]
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        let job = &mut self.tasks[task];
        job.running = !job.running;
        if job.running {
            return Op::Run(job.run.unwrap_or_else(|| {
                let source = &mut self.sources[job.source as usize];
                run(&source.timing.run, &mut source.run)
            }));
        }
        job.due += job.period;
        if job.left == 0 || job.due >= self.until {
            return Op::Exit;
        }
        job.left -= 1;
        let mut at = job.due;
        if self.jitter > Span::ZERO {
            at += late(self.jitter, &mut self.sources[job.source as usize].jitter);
        }
        Op::Release { at, deadline: Some(at + job.deadline) }
    }
}
