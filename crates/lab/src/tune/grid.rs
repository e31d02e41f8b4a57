//! The values of a policy's parameters that suit an experiment best, out of those that are given.
//!
//! All combinations of the values are thinned by successive halving, as in [`super`]: a quarter of
//! the seeds for all, twice as many for the best quarter, until the best few have all seeds. The
//! same seed gives the same tasks to all. The best few are then compared with fresh seeds, of the
//! numbers behind those of the search, among each other and with what they compete with: the
//! policy as the file has it, with its own defaults, and the file's other policies. Each row of the
//! experiment is searched on its own.

use super::Counter;
use super::space::{first_round, survivors};
use crate::plan::Plan;
use crate::plan::run::{Progress, RunError, RunOptions};
use crate::plan::views::View;
use crate::plan::workers::Workers;
use crate::results::stats::Estimate;
use crate::results::{Group, Run};
use crate::spec::columns::Column;
use crate::spec::error::{Error, Fault};
use crate::spec::experiment::Experiment;
use crate::spec::overrides::quoted;
use crate::spec::report::{Counted, find_column};
use crate::spec::sweep::MAX_RUNS;
use anysched_core::registry::Nature;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

/// How many parameter sets are compared at the end, the best of the search.
const FEW: usize = 3;

/// What is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridRequest {
    /// The label of the policy, or the name of one that the file does not have.
    pub policy: String,
    /// The column that is made small, for example `wakeup_latency_ns_p99`.
    pub metric: String,
    /// Parameters and their values, in the order in which the first of equals is kept.
    pub over: Vec<(String, Vec<String>)>,
    /// The column is made large instead.
    pub larger: bool,
}

/// A search that is ready to go.
#[derive(Debug)]
pub struct Grid {
    request: GridRequest,
    plan: Plan,
    column: Column,
    /// By position in the plan, behind the policies of the file: one per combination of values.
    candidates: Vec<Candidate>,
    /// What the best is compared with: kind and position.
    others: Vec<(GridKind, usize)>,
}

#[derive(Debug)]
struct Candidate {
    policy: usize,
    settings: Vec<(String, String)>,
}

/// Why a policy stands in the outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridKind {
    /// It was found; the best comes first.
    Found,
    /// The policy as the file has it.
    File,
    /// The policy with all parameters as they are if nothing is said.
    Defaults,
    /// Another policy of the file.
    Other,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct GridTuned {
    /// The experiment's name.
    pub experiment: String,
    /// Its title, or its name.
    pub title: String,
    /// What was searched.
    pub request: GridRequest,
    /// How many seeds the search had, and how many others the comparison.
    pub seeds: u32,
    /// One for each combination of axis values.
    pub rows: Vec<GridRow>,
    /// Whether no row is missing.
    pub complete: bool,
    pub(crate) column: Column,
}

/// The best for one combination of axis values.
#[derive(Clone, Debug)]
pub struct GridRow {
    /// The combination.
    pub group: Group,
    /// How many runs its search made that those before it had not made.
    pub search_runs: usize,
    /// What was found, best first; then the others.
    pub lines: Vec<GridLine>,
}

/// A policy, measured with seeds that the search did not see.
#[derive(Clone, Debug)]
pub struct GridLine {
    /// Why it is here.
    pub kind: GridKind,
    /// Its name in the registry.
    pub policy: &'static str,
    /// Its label in the file, and what is different from there.
    pub label: String,
    /// The values that were searched, for those that were found.
    pub settings: Vec<(String, String)>,
    /// What it needs to know, and whether it leaves CPUs idle.
    pub nature: Nature,
    /// By seed; `None`: nothing was measured.
    values: Vec<Option<f64>>,
}

impl GridLine {
    /// The column over the fresh seeds.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.values.iter().flatten().copied().collect::<Vec<_>>())
    }

    /// The difference from `other` over seeds, paired.
    pub fn against(&self, other: &GridLine) -> Option<Estimate> {
        let difference = |(own, other): (&Option<f64>, &Option<f64>)| Some((*own)? - (*other)?);
        let pairs = self.values.iter().zip(&other.values);
        Estimate::of(&pairs.filter_map(difference).collect::<Vec<_>>())
    }
}

impl GridTuned {
    /// The column that was searched by.
    pub fn metric(&self) -> Column {
        self.column
    }
}

impl Experiment {
    /// A search for the best values of a policy's parameters.
    ///
    /// Errors: there is no such policy, parameter or column; a value that the policy refuses, or
    /// that is given twice; too many combinations; as [`Experiment::plan`].
    pub fn grid(&self, request: &GridRequest) -> Result<Grid, Error> {
        let label = request.policy.as_str();
        let mut labels: Vec<&str> =
            self.sweep.policies.iter().map(|entry| entry.label.as_str()).collect();
        if !labels.contains(&label) {
            labels.push(label);
        }
        let experiment = self.policies(&labels)?;
        let place = |entry: &crate::PolicyEntry| entry.label == label;
        let Some(tuned) = experiment.sweep.policies.iter().position(place) else {
            let asked = self.append("policy", &quoted(label));
            let fault = Fault::at(&asked.node.at, format!("`{label}` is not one policy"));
            return Err(asked.source.error(fault.help("name the one that is tuned")));
        };
        let asked = self.append("metric", &quoted(&request.metric));
        let counted = Counted::by_policies(&experiment.sweep, &experiment.scenarios);
        let column = find_column(&request.metric, &asked.node.at, &counted)
            .map_err(|fault| asked.source.error(fault))?;
        let mut plan = experiment.plan()?;
        let mut others = vec![(GridKind::File, tuned)];
        let has_settings = |group| !plan.policy(group, tuned).settings().is_empty();
        if (0..plan.groups.len()).any(has_settings) {
            others.push((GridKind::Defaults, plan.policies.len()));
            plan.add_variant(tuned, crate::PolicyEntry::reset)
                .map_err(|fault| experiment.source.error(fault))?;
        }
        let of_file = 0..experiment.sweep.policies.len();
        others.extend(of_file.filter(|it| *it != tuned).map(|policy| (GridKind::Other, policy)));
        let candidates = experiment.candidates(request, tuned, &mut plan)?;
        Ok(Grid { request: request.clone(), plan, column, candidates, others })
    }

    /// Adds all combinations of values to the plan.
    fn candidates(
        &self,
        request: &GridRequest,
        tuned: usize,
        plan: &mut Plan,
    ) -> Result<Vec<Candidate>, Error> {
        let runs = |values: usize| values.checked_mul(plan.groups.len() * plan.seeds as usize);
        let counts = request.over.iter().map(|(_, values)| values.len());
        let sets = counts.clone().try_fold(1usize, |all, values| all.checked_mul(values));
        if sets.and_then(runs).is_none_or(|runs| runs > MAX_RUNS) {
            let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
            let message = format!("{} values are too many to try", counts.join(" x "));
            let help = format!("a search has at most {MAX_RUNS} runs; leave out values or seeds");
            return Err(self.source.error(Fault::whole(message).help(help)));
        }
        let names: Vec<&str> = request.over.iter().map(|(name, _)| name.as_str()).collect();
        let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (number, (name, values)) in request.over.iter().enumerate() {
            self.check_values(request, number)?;
            let longer = |start: &Vec<(String, String)>| {
                let with = |value: &String| [&start[..], &[(name.clone(), value.clone())]].concat();
                values.iter().map(with).collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(longer).collect();
        }
        let mut candidates = Vec::with_capacity(combinations.len());
        for settings in combinations {
            let mut changed = self.policies(&[&request.policy])?;
            for (name, value) in &settings {
                changed = changed.setting(&format!("{}.{name}", request.policy), value)?;
            }
            let with = &changed.sweep.policies[0];
            candidates.push(Candidate { policy: plan.policies.len(), settings });
            plan.add_variant(tuned, |entry| entry.take(&names, with))
                .map_err(|fault| changed.source.error(fault))?;
        }
        Ok(candidates)
    }

    /// Refuses parameters that the policy does not have, and repetitions.
    fn check_values(&self, request: &GridRequest, number: usize) -> Result<(), Error> {
        let (name, values) = &request.over[number];
        let key = format!("{}.{name}", request.policy);
        let twice = |message: String, at: &str| {
            let asked = self.append("over", &quoted(at));
            let fault = Fault::at(&asked.node.at, message).label("the second time");
            Err(asked.source.error(fault.help("give each parameter once, and each value once")))
        };
        if request.over[..number].iter().any(|(other, _)| other == name) {
            return twice(format!("`{name}` is searched twice"), name);
        }
        for (number, value) in values.iter().enumerate() {
            self.setting(&key, value)?;
            if values[..number].contains(value) {
                return twice(format!("`{name}` has the value {value} twice"), value);
            }
        }
        Ok(())
    }
}

/// How many parameter sets take part in each round, and how many seeds each then has.
fn rounds(candidates: usize, seeds: usize) -> Vec<(usize, usize)> {
    let (mut left, mut with) = (candidates, first_round(seeds));
    let mut rounds = vec![(left, with)];
    while with < seeds {
        left = survivors(left).max(FEW.min(left));
        with = (with * 2).min(seeds);
        rounds.push((left, with));
    }
    rounds
}

/// Runs that a search makes at most.
fn budget(candidates: usize, seeds: usize) -> usize {
    let mut before = 0;
    let new = |(left, with)| {
        let runs = left * (with - before);
        before = with;
        runs
    };
    rounds(candidates, seeds).into_iter().map(new).sum()
}

impl Grid {
    /// What the loads leave out, one line each.
    pub fn warnings(&self) -> &[String] {
        self.plan.warnings()
    }

    /// Searches and compares. After a cancellation, the rows that are complete. What comes out
    /// depends on the experiment and the request alone.
    ///
    /// Errors: a run that could not be finished.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<GridTuned, RunError> {
        let (plan, seeds) = (&self.plan, self.plan.seeds as usize);
        let mut tuned = GridTuned {
            experiment: plan.experiment.clone(),
            title: plan.title.clone().unwrap_or_else(|| plan.experiment.clone()),
            request: self.request.clone(),
            seeds: plan.seeds,
            rows: Vec::new(),
            complete: false,
            column: self.column,
        };
        let compared = FEW.min(self.candidates.len()) + self.others.len();
        let of_view = budget(self.candidates.len(), seeds) + compared * seeds;
        let views = (0..plan.groups.len()).map(|group| self.views(group).len());
        let total = views.sum::<usize>() * of_view;
        let counter = Counter { options, total, before: Cell::new(0) };
        for group in 0..plan.groups.len() {
            let mut bench = Bench { grid: self, group, counter: &counter, known: BTreeMap::new() };
            for (view, described) in self.views(group) {
                let start = counter.before.get();
                let Some((found, search_runs)) = bench.search(view)? else { return Ok(tuned) };
                let Some(lines) = bench.compare(view, &found)? else { return Ok(tuned) };
                counter.before.set(start + of_view);
                tuned.rows.push(GridRow { group: described, search_runs, lines });
            }
        }
        tuned.complete = true;
        Ok(tuned)
    }

    /// Those that the file wants to be shown of what a group's runs show.
    fn views(&self, group: usize) -> Vec<(usize, Group)> {
        let views = self.plan.views(group).into_iter().enumerate();
        let viewed = views.map(|(number, view)| (number, self.plan.viewed(group, &view)));
        viewed.filter(|(_, view)| self.plan.rows_shown.include(&view.axes)).collect()
    }

    fn line(&self, kind: GridKind, policy: usize, values: Vec<Option<f64>>) -> GridLine {
        let entry = &self.plan.policies[policy];
        let found = self.candidates.iter().find(|candidate| candidate.policy == policy);
        let settings = found.map(|found| found.settings.clone()).unwrap_or_default();
        let words: Vec<String> =
            settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let label = match kind {
            GridKind::Found => format!("{}: {}", entry.label, words.join(", ")),
            GridKind::Defaults => format!("{}: defaults", entry.label),
            GridKind::File | GridKind::Other => entry.label.clone(),
        };
        let nature = entry.nature();
        GridLine { kind, policy: entry.info.name, label, settings, nature, values }
    }
}

/// The runs of one group.
struct Bench<'a> {
    grid: &'a Grid,
    group: usize,
    counter: &'a Counter<'a>,
    /// By policy and number of the seed, the column in each view.
    known: BTreeMap<(usize, u32), Vec<Option<f64>>>,
}

impl Bench<'_> {
    /// The best few, best first, and how many runs were made; `None` after a cancellation.
    fn search(&mut self, view: usize) -> Result<Option<(Vec<usize>, usize)>, RunError> {
        let mut left: Vec<usize> =
            self.grid.candidates.iter().map(|candidate| candidate.policy).collect();
        let mut seen = 0;
        let before = self.known.len();
        for (count, with) in rounds(left.len(), self.grid.plan.seeds as usize) {
            self.rank(&mut left, view, seen);
            left.truncate(count);
            if !self.evaluate(&left, 0..with as u32)? {
                return Ok(None);
            }
            seen = with;
        }
        self.rank(&mut left, view, seen);
        left.truncate(FEW);
        Ok(Some((left, self.known.len() - before)))
    }

    /// Best first by the first seeds; the first of equals stays before the others.
    fn rank(&self, policies: &mut [usize], view: usize, seeds: usize) {
        policies.sort_unstable();
        let score = |policy: &usize| {
            let values = self.values(*policy, view, 0..seeds as u32);
            let mean = Estimate::of(&values.into_iter().flatten().collect::<Vec<_>>());
            let sign = if self.grid.request.larger { -1.0 } else { 1.0 };
            mean.map_or(f64::INFINITY, |estimate| sign * estimate.mean)
        };
        let mut scored: Vec<(f64, usize)> =
            policies.iter().map(|policy| (score(policy), *policy)).collect();
        scored.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        policies.iter_mut().zip(scored).for_each(|(place, (_, policy))| *place = policy);
    }

    /// Runs with seeds that no search sees; `None` after a cancellation.
    fn compare(&mut self, view: usize, found: &[usize]) -> Result<Option<Vec<GridLine>>, RunError> {
        let grid = self.grid;
        let mut lines: Vec<(GridKind, usize)> =
            found.iter().map(|policy| (GridKind::Found, *policy)).collect();
        lines.extend(&grid.others);
        let policies: Vec<usize> = lines.iter().map(|(_, policy)| *policy).collect();
        let fresh = grid.plan.seeds..2 * grid.plan.seeds;
        if !self.evaluate(&policies, fresh.clone())? {
            return Ok(None);
        }
        let line =
            |(kind, policy)| grid.line(kind, policy, self.values(policy, view, fresh.clone()));
        Ok(Some(lines.into_iter().map(line).collect()))
    }

    /// Makes the runs that have not been made; false: cancelled.
    fn evaluate(&mut self, policies: &[usize], seeds: Range<u32>) -> Result<bool, RunError> {
        let all = policies.iter().flat_map(|policy| seeds.clone().map(|seed| (*policy, seed)));
        let wanted: Vec<(usize, u32)> = all.filter(|run| !self.known.contains_key(run)).collect();
        let Counter { options, total, before } = self.counter;
        let (plan, column, done) = (&self.grid.plan, self.grid.column, before.get());
        let title = plan.groups[self.group].described.title();
        let workers = Workers { jobs: options.jobs, cancel: options.cancel };
        let outcomes = workers.run(
            wanted.len(),
            |number| {
                let (policy, seed) = wanted[number];
                plan.run_views(options.host, self.group, policy, seed)
            },
            |more, number| {
                let label = &plan.policies[wanted[number].0].label;
                (options.progress)(&Progress::after(done + more, *total, label, &title));
            },
        );
        before.set(done + wanted.len());
        let runs = outcomes.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
        let complete = runs.len() == wanted.len();
        let values =
            |views: Vec<(View, Run)>| views.iter().map(|(_, run)| run.value(column)).collect();
        self.known.extend(wanted.into_iter().zip(runs.into_iter().map(values)));
        Ok(complete)
    }

    fn values(&self, policy: usize, view: usize, seeds: Range<u32>) -> Vec<Option<f64>> {
        let value = |seed| self.known.get(&(policy, seed)).and_then(|views| views[view]);
        seeds.map(value).collect()
    }
}
