//! Interactive tasks.

use super::{
    Agenda, Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_count,
    check_run, check_until, run,
};
use crate::dist::Dist;
use crate::extent::{Extent, earlier};
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::rng::Rng;
use crate::{Load, Op, Outside};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Tasks that run and sleep in turn until the end.
    ///
    /// Each wake-up begins a job, so that the time from wake-up to the next sleep is a response
    /// time and the deadline, if there is one, counts from the wake-up.
    pub struct Interactive {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: u32 = "1", eg "4", in 0..=MAX_SOURCES;
        /// CPU time between two sleeps; at least 1 ns.
        run: Dist = needed, eg "exp(1ms)";
        /// Time asleep, from the end of a run.
        sleep: Dist = needed, eg "exp(10ms)";
        /// When a task arrives; drawn for each task.
        offset: Dist = "0ns", eg "uniform(0ns, 10ms)";
        /// How often each of them runs; it then exits.
        rounds: Option<u64> = none "no limit", eg "1000", in 0..=MAX_TASKS;
        /// A task that would wake up at this time or later exits instead of sleeping.
        until: Option<Time> = none "no limit", eg "10s";
    }
}

impl Generator for Interactive {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.tasks > 0, "tasks", self.tasks, "at least 1")?;
        check_run("run", &self.run)?;
        check_count("rounds", self.rounds)?;
        check_until(Time::ZERO, self.until)
    }

    fn endless(&self) -> bool {
        self.rounds.is_none() && self.until.is_none()
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let (run, until) = (self.run.mean(), earlier(self.until, until));
        let cycle = run + self.sleep.mean();
        Extent::repeated((self.tasks, cpus), self.rounds, until, cycle, run)
    }

    fn needs(&self) -> Needs {
        self.settings.needs()
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        let user = |task| User {
            run: Rng::numbered(seed, "run", u64::from(task)),
            sleep: Rng::numbered(seed, "sleep", u64::from(task)),
        };
        Ok(Box::new(InteractiveLoad {
            maker: Maker::new(&self.settings, self.tasks > 1),
            agenda: Agenda::drawn(self.tasks, &self.offset, self.until, seed),
            users: (0..self.tasks).map(user).collect(),
            run: self.run.clone(),
            sleep: self.sleep.clone(),
            rounds: self.rounds.unwrap_or(u64::MAX),
            until: self.until.unwrap_or(Time::NEVER),
            deadline: self.settings.deadline,
            arriving: 0,
            tasks: PerTask::default(),
        }))
    }
}

struct User {
    run: Rng,
    sleep: Rng,
}

struct InteractiveLoad {
    maker: Maker,
    agenda: Agenda,
    users: Vec<User>,
    run: Dist,
    sleep: Dist,
    rounds: u64,
    until: Time,
    deadline: Option<Span>,
    /// The task that arrived last, by its number in this load.
    arriving: u32,
    tasks: PerTask<Doing>,
}

/// What a task does.
#[derive(Clone, Copy, Default)]
struct Doing {
    /// Number in this load.
    user: u32,
    runs: bool,
    /// Rounds that it has begun.
    rounds: u64,
}

impl Load for InteractiveLoad {
    #[inline]
    fn peek(&self) -> Time {
        self.agenda.peek()
    }

    fn outside(&mut self) -> Outside {
        let (at, task) = self.agenda.take();
        self.arriving = task;
        let mut new = self.maker.make_numbered(u64::from(task), at);
        // A deadline makes the first run a job like those that begin with a release.
        new.deadline.get_or_insert(Time::NEVER);
        Outside::Arrival(new)
    }

    fn start(&mut self, task: TaskId, _: Time) {
        self.tasks.set(task, Doing { user: self.arriving, ..Doing::default() });
    }

    #[inline]
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let doing = &mut self.tasks[task];
        let user = &mut self.users[doing.user as usize];
        doing.runs = !doing.runs;
        if doing.runs {
            doing.rounds += 1;
            return Op::Run(run(&self.run, &mut user.run));
        }
        let at = now + self.sleep.sample(&mut user.sleep);
        if doing.rounds >= self.rounds || at >= self.until {
            return Op::Exit;
        }
        Op::Release { at, deadline: self.deadline.map(|deadline| at + deadline) }
    }

    fn rests(&self, _: TaskId) -> bool {
        true
    }
}
