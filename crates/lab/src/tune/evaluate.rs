//! Runs of parameter sets, all with the same tasks for the same seed.

use super::space::Candidate;
use super::{Arriving, Counter, Objective, TuneError, Tuning};
use crate::plan::rehearsal::seeded;
use crate::plan::run::{Progress, RunError};
use crate::plan::workers::Workers;
use anysched_core::registry;
use anysched_core::{Machine, Span, Time};
use anysched_host::{By, Host, HostError, Order, Outcome, Setup, Work, as_text, rehearsed};
use anysched_workload::generate::{Arrivals, Batch, Generator, Open, SettingError, Settings};
use anysched_workload::rng::derive;

/// The turnaround of the tasks of a run, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    pub(super) mean: f64,
    pub(super) p99: f64,
}

/// One per seed, in order.
pub(super) type Scores = Vec<Score>;

impl Score {
    pub(super) fn of(self, objective: Objective) -> f64 {
        match objective {
            Objective::Mean => self.mean,
            Objective::P99 => self.p99,
        }
    }
}

/// What a seed is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Search,
    Compare,
}

/// The machine and the load.
pub(super) struct Bench {
    setup: Setup,
    load: Box<dyn Generator>,
    mean: Span,
    seeds: usize,
    seed: u64,
}

impl Bench {
    pub(super) fn new(tuning: &Tuning) -> Result<Bench, TuneError> {
        let refused = |key, value: String, why: &str| {
            Err(TuneError::Setting { key, value, why: why.to_string() })
        };
        if tuning.seeds < 2 {
            return refused(
                "seeds",
                tuning.seeds.to_string(),
                "at least 2, to tell luck from worth",
            );
        }
        let Ok(machine) = Machine::flat(tuning.cpus) else {
            return refused("cpus", tuning.cpus.to_string(), "from 1 to 1024");
        };
        let load = generator(tuning);
        let wrong = |SettingError { key, value, why }| TuneError::Setting { key, value, why };
        load.validate(tuning.cpus).map_err(wrong)?;
        let setup = Setup::new(machine.with_tick(None));
        let mean = Span(libm::round(tuning.service.mean()) as u64);
        Ok(Bench { setup, load, mean, seeds: tuning.seeds as usize, seed: tuning.seed })
    }

    /// Mean CPU time of the tasks.
    pub(super) fn mean(&self) -> Span {
        self.mean
    }

    pub(super) fn seeds(&self) -> usize {
        self.seeds
    }

    /// Derives from the base seed, the purpose and the number, and from nothing else.
    pub(super) fn seed(&self, purpose: Purpose, index: usize) -> u64 {
        derive(self.seed, &format!("{purpose:?} {index}"))
    }

    /// The scores of parameter sets with seeds, in order; `None` after a cancellation.
    pub(super) fn run(
        &self,
        workers: Workers<'_>,
        counter: &Counter<'_>,
        label: &str,
        wanted: &[(&Candidate, u64)],
    ) -> Result<Option<Scores>, TuneError> {
        let (options, before, total) = (counter.options, counter.before.get(), counter.total);
        let one = |number: usize| {
            let (candidate, seed) = wanted[number];
            self.run_one(options.host, candidate, seed).map_err(|why| {
                let group = candidate.shown();
                TuneError::Run(RunError { policy: label.to_string(), group, seed, why })
            })
        };
        let after = |done, _| {
            let done = before + done;
            (options.progress)(&Progress::after(done, total, label, ""));
        };
        let outcomes = workers.run(wanted.len(), one, after);
        counter.before.set(before + wanted.len());
        let scores = outcomes.into_iter().flatten().collect::<Result<Scores, _>>()?;
        Ok((scores.len() == wanted.len()).then_some(scores))
    }

    fn run_one(&self, host: &dyn Host, candidate: &Candidate, seed: u64) -> Result<Score, String> {
        let machine = &self.setup.machine;
        let given: Vec<(&str, &str)> =
            candidate.settings.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let run = |_, settings: &registry::Settings| {
            let load = self.load.build(seed, machine.cpus()).map_err(|error| error.to_string())?;
            let by = By::Policy(candidate.info, as_text(settings));
            host.run(Order::new(by, &self.setup, Work::Load(load)))
        };
        let settings = seeded(candidate.info, &given, seed);
        let made = rehearsed(candidate.info, &settings, run, |first| first.learned);
        let (Outcome { metrics, .. }, _) = made.map_err(|why: HostError| why.0)?;
        let turnaround = &metrics.turnaround;
        let [p99] = turnaround.percentiles([99.0]).ok_or("no task ended")?;
        Ok(Score { mean: turnaround.mean(), p99: p99 as f64 })
    }
}

fn generator(tuning: &Tuning) -> Box<dyn Generator> {
    let (settings, service, tasks) = (Settings::default(), tuning.service.clone(), tuning.tasks);
    match tuning.arriving {
        Arriving::Batch => Box::new(Batch { settings, tasks, service, at: Time::ZERO }),
        Arriving::Load(load) => Box::new(Open {
            settings,
            arrivals: Arrivals::Load(load),
            service,
            tasks: Some(tasks),
            start: Time::ZERO,
            until: None,
        }),
    }
}
