//! Parallel programs.

use super::{Generator, MAX_SOURCES, MAX_TASKS, Maker, SettingError, Settings, check, check_run};
use crate::dist::Dist;
use crate::extent::Extent;
use crate::kinds::{Needs, keys};
use crate::per_task::PerTask;
use crate::rng::Rng;
use crate::{Barrier, Load, Lock, Op, Outside, Sizes};
use anysched_core::{Span, TaskId, Time};

keys! {
    /// Tasks that compute and meet at a barrier, round by round, as the programs of the NAS
    /// parallel benchmarks do (EP: one round); in each round every task may need a lock.
    pub struct Parallel {
        ..settings: Settings;
        /// How many tasks there are.
        tasks: u32 = "1", eg "4", in 0..=MAX_SOURCES;
        /// CPU time of a task in a round; at least 1 ns.
        run: Dist = needed, eg "exp(10ms)";
        /// How many rounds there are.
        rounds: u64 = "1", eg "100", in 1..=MAX_TASKS;
        /// CPU time while holding the lock, in each round; with 0 there is no lock.
        locked: Span = "0ns", eg "100us";
        /// Whether tasks that wait for the lock use the CPU instead of sleeping.
        spin: bool = "false", eg "true";
    }
}

impl Generator for Parallel {
    fn validate(&self, cpus: usize) -> Result<(), SettingError> {
        self.settings.validate(cpus)?;
        check(self.tasks > 0, "tasks", self.tasks, "at least 1")?;
        check(self.rounds > 0, "rounds", self.rounds, "at least 1")?;
        check_run("run", &self.run)
    }

    fn endless(&self) -> bool {
        false
    }

    fn extent(&self, cpus: usize, until: Option<Time>) -> Extent {
        let run = self.run.mean() + self.locked.0 as f64;
        Extent::repeated((self.tasks, cpus), Some(self.rounds), until, run, run)
    }

    fn needs(&self) -> Needs {
        Needs { barriers: true, locks: self.locked > Span::ZERO, ..self.settings.needs() }
    }

    fn build(&self, seed: u64, cpus: usize) -> Result<Box<dyn Load>, SettingError> {
        self.validate(cpus)?;
        Ok(Box::new(ParallelLoad {
            maker: Maker::new(&self.settings, self.tasks > 1),
            plan: self.clone(),
            seed,
            arrived: 0,
            tasks: PerTask::default(),
        }))
    }
}

struct ParallelLoad {
    maker: Maker,
    plan: Parallel,
    seed: u64,
    arrived: u32,
    tasks: PerTask<Option<Worker>>,
}

#[derive(Clone)]
struct Worker {
    rng: Rng,
    left: u64,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Run,
    Lock,
    Hold,
    Unlock,
    Meet,
}

impl Load for ParallelLoad {
    fn sizes(&self) -> Sizes {
        Sizes { locks: 1, barriers: vec![self.plan.tasks], ..Sizes::default() }
    }

    #[inline]
    fn peek(&self) -> Time {
        if self.arrived < self.plan.tasks { Time::ZERO } else { Time::NEVER }
    }

    fn outside(&mut self) -> Outside {
        self.arrived += 1;
        Outside::Arrival(self.maker.make(Time::ZERO))
    }

    fn start(&mut self, task: TaskId, _: Time) {
        let rng = Rng::numbered(self.seed, "run", u64::from(self.arrived - 1));
        self.tasks.set(task, Some(Worker { rng, left: self.plan.rounds, step: Step::Run }));
    }

    fn step(&mut self, task: TaskId, _: Time) -> Op {
        let Some(worker) = &mut self.tasks[task] else { return Op::Exit };
        let locks = self.plan.locked > Span::ZERO;
        let (next, op) = match worker.step {
            Step::Run if worker.left == 0 => return Op::Exit,
            Step::Run => {
                worker.left -= 1;
                let then = if locks { Step::Lock } else { Step::Meet };
                (then, Op::Run(super::run(&self.plan.run, &mut worker.rng)))
            }
            Step::Lock if self.plan.spin => (Step::Hold, Op::Spin(Lock(0))),
            Step::Lock => (Step::Hold, Op::Lock(Lock(0))),
            Step::Hold => (Step::Unlock, Op::Run(self.plan.locked)),
            Step::Unlock => (Step::Meet, Op::Unlock(Lock(0))),
            Step::Meet => (Step::Run, Op::Meet(Barrier(0))),
        };
        worker.step = next;
        op
    }
}
