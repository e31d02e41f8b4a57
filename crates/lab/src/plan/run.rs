//! Making the runs, on as many threads as wanted. What comes out does not depend on how many.

use crate::plan::journal::{self, Journal};
use crate::plan::pace::{Pace, Said};
use crate::plan::views::View;
use crate::plan::workers::Workers;
use crate::plan::{Cell, Plan, PlannedGroup};
use crate::results::{PolicyUsed, Results, Row, Run};
use anysched_host::{Beat, By, Host, Outcome, Setup, Watch};
use anysched_measure::Metrics;
use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How an experiment is run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Who makes the runs.
    pub host: &'a dyn Host,
    /// How many runs are made at the same time; at least 1.
    pub jobs: usize,
    /// Looked at between runs and, where the host can, within them: once it is true, no further
    /// one is begun, and those that are under way end without a result.
    pub cancel: &'a AtomicBool,
    /// Runs that were done before, which are not made again; those that are made are added.
    pub journal: Option<&'a Journal>,
    /// Called after each run and, where the host can tell, within long ones.
    pub progress: &'a (dyn Fn(&Progress<'_>) + Sync),
}

/// How far an experiment is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// Runs that are done, and the parts that are done of those under way, as far as is known.
    pub progress: f64,
    /// How long the rest takes, as far as that can be told: each row by the time of its own runs.
    pub left: Option<Duration>,
    /// The policy of the run that this is about.
    pub policy: &'a str,
    /// Its axis values: `axis = value, …`.
    pub group: &'a str,
}

impl<'a> Progress<'a> {
    /// After so many of `total` runs, of which nothing else is known.
    pub(crate) fn after(done: usize, total: usize, policy: &'a str, group: &'a str) -> Self {
        Progress { done, total, progress: done as f64, left: None, policy, group }
    }
}

/// Why a run could not be finished: a fault of the load or the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// The policy's label.
    pub policy: String,
    /// The axis values: `axis = value, …`.
    pub group: String,
    /// The seed of the run.
    pub seed: u64,
    /// What happened.
    pub why: String,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunError { policy, group, seed, why } = self;
        let of = if group.is_empty() { String::new() } else { format!(" ({group})") };
        write!(f, "the run of {policy}{of} with seed {seed} failed: {why}")
    }
}

impl std::error::Error for RunError {}

/// As many jobs as the machine runs threads at once.
pub fn available_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a run has shown, of each view of its group that it has.
pub(crate) type Shown = Result<Vec<(View, Run)>, RunError>;

impl Plan {
    /// Makes all runs and judges the claims. After a cancellation, rows have the runs that were
    /// made; those without any are left out, and claims are about complete rows only.
    ///
    /// Errors: that of the first run, in the order of the rows, that could not be finished, or
    /// that the host cannot make.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<Results, RunError> {
        let host = options.host.info();
        let lanes = Lanes::of(self, options.host)?;
        let (policies, seeds) = (lanes.count(), self.seeds as usize);
        lanes.build()?;
        let mut outcomes = lanes.run_all(options);
        let mut rows = Vec::with_capacity(self.groups.len() * policies);
        let (mut groups, mut planned) = (Vec::new(), Vec::new());
        for (number, outcomes) in outcomes.chunks_mut(seeds * policies).enumerate() {
            let made = outcomes.chunks_mut(seeds).map(|outcomes| {
                let made = outcomes.iter_mut().filter_map(Option::take);
                made.collect::<Result<Vec<_>, _>>()
            });
            let made: Vec<Vec<Vec<(View, Run)>>> = made.collect::<Result<_, _>>()?;
            let mut views = self.views(number);
            let mut places: HashMap<View, usize> = views.iter().cloned().zip(0..).collect();
            for (view, _) in made.iter().flatten().flatten() {
                if !places.contains_key(view) {
                    places.insert(view.clone(), views.len());
                    views.push(view.clone());
                }
            }
            let first = groups.len();
            groups.extend(views.iter().map(|view| self.viewed(number, view)));
            groups[first..].iter_mut().for_each(|group| group.run_on(host));
            planned.resize(groups.len(), number);
            for (policy, made) in made.into_iter().enumerate().filter(|(_, made)| !made.is_empty())
            {
                // A view that a run does not have, as a task that did not arrive, has no data.
                let without =
                    |run: &Vec<(View, Run)>| Run { values: [].into(), ..run[0].1.clone() };
                let without: Vec<Run> = made.iter().map(without).collect();
                let mut runs = vec![without; views.len()];
                for (seed, run) in made.into_iter().enumerate() {
                    run.into_iter().for_each(|(view, run)| runs[places[&view]][seed] = run);
                }
                let row = |(view, runs)| Row { group: first + view, policy, runs };
                rows.extend(runs.into_iter().enumerate().map(row));
            }
        }
        rows.sort_by_key(|row| (row.group, row.policy));
        let (rows, begun): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.runs.len() == seeds);
        let mut results = Results {
            host: host.name,
            experiment: self.experiment.clone(),
            question: self.question.clone(),
            title: self.title.clone(),
            spec_hash: self.spec_hash.clone(),
            seed: self.seed,
            seeds: self.seeds,
            policies: lanes.used(),
            complete: rows.len() == groups.len() * policies,
            groups,
            planned,
            rows,
            claims: Vec::new(),
            shown: self.shown.clone(),
            rows_shown: self.rows_shown.clone(),
        };
        results.claims = self.claims.iter().map(|claim| claim.judge(&results)).collect();
        results.rows.extend(begun);
        results.rows.sort_by_key(|row| (row.group, row.policy));
        Ok(results)
    }

    /// Makes some of the runs, those with these numbers of `0 .. runs` as they follow each other
    /// within rows, for a program that puts parts together ([`Journal::of_parts`]). Ends early
    /// where it is cancelled.
    ///
    /// Errors: as [`Plan::run`], or the host has no runs with these numbers.
    pub fn part(
        &self,
        options: &RunOptions<'_>,
        numbers: Range<usize>,
    ) -> Result<Vec<u8>, RunError> {
        let lanes = Lanes::of(self, options.host)?;
        let refused = |why: String| RunError {
            policy: numbers.start.to_string(),
            group: String::new(),
            seed: self.seed,
            why,
        };
        if numbers.end > lanes.total() {
            return Err(refused(format!("there are only {} runs", lanes.total())));
        }
        let seeds = self.seeds as usize;
        let pace = Pace::new(lanes.total() / seeds, seeds, 1);
        let mut lines = Vec::new();
        for number in numbers.clone() {
            if options.cancel.load(Ordering::Relaxed) {
                break;
            }
            let (group, lane, _) = lanes.place(number);
            let made = lanes.run_or_recall(number, options, &pace)?;
            let line = journal::written(group, lanes.label(lane), &made);
            lines.extend(line.map_err(|error| refused(error.to_string()))?);
        }
        Ok(lines)
    }

    /// The numbers ([`Plan::part`]) of the runs on `host` that `journal` does not have.
    ///
    /// Errors: the experiment is about a scheduler that the host does not have.
    pub fn missing(
        &self,
        host: &dyn Host,
        journal: &Journal,
    ) -> Result<Vec<Range<usize>>, RunError> {
        let lanes = Lanes::of(self, host)?;
        let mut missing: Vec<Range<usize>> = Vec::new();
        for number in 0..lanes.total() {
            let (group, lane, index) = lanes.place(number);
            match missing.last_mut() {
                _ if journal.has(group, lanes.label(lane), index) => {}
                Some(last) if last.end == number => last.end += 1,
                _ => missing.push(number..number + 1),
            }
        }
        Ok(missing)
    }

    /// Checks that one of the schedulers that `host` has of its own can make all runs.
    ///
    /// Errors: that of the first group of which it cannot.
    fn require_own(&self, host: &dyn Host, own: &str) -> Result<(), RunError> {
        for (number, PlannedGroup { cells, vms, .. }) in self.groups.iter().enumerate() {
            host.require_own(own, &cells[0].setup, vms.vcpus())
                .map_err(|why| self.failed(number, own, 0, why))?;
        }
        Ok(())
    }

    /// Makes the first run of each row: all that it has measured, in the order of groups and, in
    /// each, of policies. After a cancellation, those before the first that was not made.
    ///
    /// Errors: as [`Plan::run`].
    pub fn measure(&self, options: &RunOptions<'_>) -> Result<Vec<Metrics>, RunError> {
        let policies = self.policies.len();
        let total = self.groups.len() * policies;
        let workers = Workers { jobs: options.jobs, cancel: options.cancel };
        let measured = workers.run(
            total,
            |row| self.run_one(options.host, row / policies, row % policies, 0, Watch::default()),
            |done, row| self.tell(options, [done, total], row / policies, row % policies),
        );
        let metrics = |run: Result<Outcome, RunError>| run.map(|outcome| outcome.metrics);
        measured.into_iter().map_while(|run| run.map(metrics)).collect()
    }

    /// Tells how far it is.
    fn tell(
        &self,
        options: &RunOptions<'_>,
        [done, total]: [usize; 2],
        group: usize,
        policy: usize,
    ) {
        let title = self.groups[group].described.title();
        let label = &self.policies[policy].label;
        (options.progress)(&Progress::after(done, total, label, &title));
    }

    /// Makes one run by one of the policies: what it shows of each of the views of its group.
    pub(crate) fn run_views(
        &self,
        host: &dyn Host,
        group: usize,
        policy: usize,
        index: u32,
    ) -> Shown {
        let outcome = self.run_one(host, group, policy, index, Watch::default())?;
        Ok(self.views_of(&outcome.metrics, group, index))
    }
}

/// What is compared: the policies of a plan, and the schedulers that the host has of its own.
struct Lanes<'a> {
    plan: &'a Plan,
    host: &'a dyn Host,
    /// Its own schedulers; unless the experiment names them, those that can run all groups.
    own: Vec<&'static str>,
}

impl<'a> Lanes<'a> {
    /// Errors: the experiment is about a scheduler that the host does not have.
    fn of(plan: &'a Plan, host: &'a dyn Host) -> Result<Lanes<'a>, RunError> {
        let known = host.info();
        // A host without schedulers of its own has nothing to say about those of others.
        let only_of_host = plan.policies.is_empty();
        let named = plan.of_host.as_ref();
        let Some(named) = named.filter(|_| !known.schedulers.is_empty() || only_of_host) else {
            let fits = |own: &&&'static str| plan.require_own(host, own).is_ok();
            let own = known.schedulers.iter().filter(fits).copied().collect();
            return Ok(Lanes { plan, host, own });
        };
        let find = |name: &String| {
            let found = known.schedulers.iter().find(|own| *own == name).copied();
            let own = found.ok_or_else(|| RunError {
                policy: name.clone(),
                group: String::new(),
                seed: plan.seed,
                why: known.no_scheduler(name).0,
            })?;
            plan.require_own(host, own).map(|()| own)
        };
        Ok(Lanes { plan, host, own: named.iter().map(find).collect::<Result<_, _>>()? })
    }

    fn count(&self) -> usize {
        self.plan.policies.len() + self.own.len()
    }

    /// How many runs there are.
    fn total(&self) -> usize {
        self.plan.groups.len() * self.count() * self.plan.seeds as usize
    }

    fn used(&self) -> Vec<PolicyUsed> {
        let own = self.own.iter().map(|name| PolicyUsed::of_host(name));
        self.plan.policies_used().into_iter().chain(own).collect()
    }

    /// Has the host build what the runs need, so that its errors show before the first run.
    fn build(&self) -> Result<(), RunError> {
        let build = |group, label: &str, by: By<'_>, setup: &Setup| {
            self.host.build(&by, setup).map_err(|why| self.plan.failed(group, label, 0, why))
        };
        for (number, PlannedGroup { cells, .. }) in self.plan.groups.iter().enumerate() {
            for Cell { policy, setup } in &cells[..self.plan.policies.len()] {
                let by = By::Policy(policy.info, policy.settings());
                build(number, &policy.label, by, setup)?;
            }
            self.own
                .iter()
                .try_for_each(|own| build(number, own, By::Own(own), &cells[0].setup))?;
        }
        Ok(())
    }

    /// The outcomes in the order of rows and seeds; `None` where the run was not made.
    fn run_all(&self, options: &RunOptions<'_>) -> Vec<Option<Shown>> {
        let (total, seeds) = (self.total(), self.plan.seeds as usize);
        let pace = Pace::new(total / seeds, seeds, options.jobs.min(total));
        let workers = Workers { jobs: options.jobs, cancel: options.cancel };
        // Runs are begun in order, so that a cancelled experiment has whole rows.
        workers.run(
            total,
            |number| self.run_or_recall(number, options, &pace),
            |_, number| self.tell(number, options, pace.end(number)),
        )
    }

    /// Tells how far it is, about the run with this number.
    fn tell(&self, number: usize, options: &RunOptions<'_>, said: Said) {
        let (group, lane, _) = self.place(number);
        (options.progress)(&Progress {
            done: said.done,
            total: self.plan.groups.len() * self.count() * self.plan.seeds as usize,
            progress: said.progress,
            left: said.left,
            policy: self.label(lane),
            group: &self.plan.groups[group].described.title(),
        });
    }

    /// Group, lane and seed of the run with this number.
    fn place(&self, number: usize) -> (usize, usize, u32) {
        let seeds = self.plan.seeds as usize;
        let (row, index) = (number / seeds, number % seeds);
        (row / self.count(), row % self.count(), index as u32)
    }

    fn label(&self, lane: usize) -> &str {
        match lane.checked_sub(self.plan.policies.len()) {
            Some(own) => self.own[own],
            None => &self.plan.policies[lane].label,
        }
    }

    fn run_or_recall(&self, number: usize, options: &RunOptions<'_>, pace: &Pace) -> Shown {
        let (group, lane, index) = self.place(number);
        let (label, journal) = (self.label(lane), options.journal);
        if let Some(known) = journal.and_then(|journal| journal.known(group, label, index)) {
            return Ok(known);
        }
        let length = self.plan.groups[group].length;
        let mut beat = |beat: Beat| {
            if let Some(said) = pace.beat(number, length.share(beat.now)) {
                self.tell(number, options, said);
            }
            match options.cancel.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        pace.begin(number);
        let watch = Watch { beat: Some(&mut beat), apart: self.plan.apart, ..Watch::default() };
        let outcome = match lane.checked_sub(self.plan.policies.len()) {
            None => self.plan.run_one(self.host, group, lane, index, watch)?,
            Some(own) => {
                self.plan.run_one_by_host(self.host, self.own[own], group, index, watch)?
            }
        };
        let views = self.plan.views_of(&outcome.metrics, group, index);
        if let Some(journal) = journal {
            journal.add(group, label, &views);
        }
        Ok(views)
    }
}
