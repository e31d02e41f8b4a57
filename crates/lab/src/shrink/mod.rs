//! What fails, made as small as can be: `anysched shrink`.
//!
//! An experiment is reduced to one row that [`Fails`]. Its load becomes a list of tasks with what
//! each does, where that can be said, so that no chance is left in it; then tasks, CPUs, steps,
//! costs and settings are left out, and times made round, as long as the row still fails in the
//! same way. Each try is an experiment that is read, planned and run as any other.

mod calls;
mod case;
mod fails;
mod held;
mod listed;
mod rust;
mod search;
mod smaller;
mod told;

pub use calls::{LogFails, Sequence, ShortLog, shrink_log};
pub use fails::{Fails, Failure};
pub use search::Limits;
pub use told::{Told, told};

use crate::plan::group_parts;
use crate::spec::claim::Verdict;
use crate::spec::error::Error;
use crate::spec::experiment::Experiment;
use crate::spec::tree::Value;
use anysched_host::{Host, HostError};
use calls::shrink_calls;
use case::{Case, list_node, table_node, text_node, whole_node};
use fails::Look;
use search::{Budget, Clock, Search};
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

/// Why nothing could be made smaller.
#[derive(Debug)]
pub enum ShrinkError {
    /// The experiment, or what it is said to do wrong, is wrong itself.
    Experiment(Error),
    /// A run cannot be made, or nothing fails.
    Other(String),
}

impl fmt::Display for ShrinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShrinkError::Experiment(error) => error.fmt(f),
            ShrinkError::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ShrinkError {}

impl From<Error> for ShrinkError {
    fn from(error: Error) -> ShrinkError {
        ShrinkError::Experiment(error)
    }
}

impl From<HostError> for ShrinkError {
    fn from(error: HostError) -> ShrinkError {
        ShrinkError::Other(error.0)
    }
}

/// How large a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Tasks, or loads and virtual machines where tasks cannot be listed.
    pub tasks: u64,
    /// CPUs.
    pub cpus: u64,
}

/// The smallest experiment that was found to fail.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// Its name: that of its file, from which the seeds of its runs derive.
    pub name: String,
    /// The experiment, in TOML.
    pub toml: String,
    /// The model that it names, if it names one: the file's name, and what is in it.
    pub model: Option<(String, String)>,
    /// How it fails.
    pub failure: Failure,
    /// Where that is a breach of the contract: calls of the policy after which it is broken so.
    pub calls: Option<ShortLog>,
    /// The row in which the experiment fails: its policies, axis values and seed.
    pub row: String,
    /// How large that row was.
    pub before: Extent,
    /// How large it is.
    pub after: Extent,
    /// How many cases were tried.
    pub tried: u64,
    /// Whether there was nothing more to try.
    pub complete: bool,
}

/// What is made smaller, and how.
pub struct Shrinker<'a> {
    /// Who makes runs.
    pub host: &'a dyn Host,
    /// What a run does wrong.
    pub fails: &'a Fails,
    /// Only this group and this seed of each row, from 0; `None`: all.
    pub only: (Option<usize>, Option<u32>),
    /// When the search ends.
    pub limits: Limits<'a>,
    /// Is told how many cases were tried, and how large the smallest is.
    pub progress: &'a dyn Fn(u64, Extent),
}

/// So many seeds are tried of a load that cannot be listed.
const SEEDS: i64 = 50;

impl Shrinker<'_> {
    /// Finds a row of `experiment` that fails, and makes it as small as can be. The case is called
    /// `name`.
    ///
    /// Errors: the experiment or what is to fail is wrong, a run cannot be made, or nothing fails.
    pub fn shrink(&self, experiment: &Experiment, name: &str) -> Result<Shrunk, ShrinkError> {
        let began = Instant::now();
        let mut budget = Budget::new(self.limits);
        let found = self.find(experiment, &mut budget)?;
        let (start, failure) = self.start(&found, name, &mut budget)?;
        let extent = |case: &Case| Extent { tasks: case.tasks(), cpus: case.cpus() as u64 };
        let before = extent(&start);
        let way = &failure.way;
        let smallest = std::cell::Cell::new(before);
        let tried = std::cell::Cell::new(0);
        let clock = budget.clock();
        let mut fails = |case: &Case| {
            tried.set(tried.get() + 1);
            let found = self.failure(case, clock, false).ok().flatten();
            let fails = found.is_some_and(|(found, _)| found.way == *way);
            if fails {
                smallest.set(extent(case));
            }
            (self.progress)(tried.get(), smallest.get());
            fails
        };
        let mut search = Search::new(start, &mut budget, &mut fails);
        smaller::shrink(&mut search);
        let best = search.best;
        let found_again = self.failure(&best, Clock::NONE, true).ok().flatten();
        let (failure, sequence) = found_again.unwrap_or((failure, None));
        let calls = sequence.and_then(|sequence| {
            let tries = self.limits.tries.saturating_sub(budget.tried());
            let time = self.limits.time.map(|time| time.saturating_sub(began.elapsed()));
            shrink_calls(sequence, Limits { tries, time, ..self.limits })
        });
        let after = extent(&best);
        let (toml, model) = best.written();
        let from = format!("{}, {}", experiment.name(), found.row);
        let toml = format!(
            "# The smallest that `anysched shrink` found: {} of {} tasks, {} of {} CPUs.\n\
             # From {from}.\n# --fails '{}': {}\n\n{toml}",
            after.tasks, before.tasks, after.cpus, before.cpus, self.fails, failure.what,
        );
        Ok(Shrunk {
            name: name.into(),
            toml,
            model: model
                .map(|bytes| (best.model_name(), String::from_utf8_lossy(&bytes).into_owned())),
            failure,
            calls,
            row: found.row,
            before,
            after,
            tried: budget.tried(),
            complete: !budget.is_over(),
        })
    }

    /// The first row that fails, and the seed with which it does.
    fn find(&self, experiment: &Experiment, budget: &mut Budget<'_>) -> Result<Found, ShrinkError> {
        let judged = experiment.judged(self.fails)?;
        let plan = judged.plan()?;
        plan.require(self.host.info())?;
        let alone = matches!(self.fails, Fails::Contract | Fails::Deadlock);
        let policies = if alone { plan.policies().len() } else { 1 };
        let titles: Vec<String> = plan.groups().map(|group| group.title()).collect();
        let (only_group, only_seed) = self.only;
        if let Some(group) = only_group.filter(|&group| group >= titles.len()) {
            let why = format!("there is no group {group}: they go from 0 to {}", titles.len() - 1);
            return Err(ShrinkError::Other(why));
        }
        if let Some(seed) = only_seed.filter(|&seed| seed >= plan.seeds()) {
            let why = format!("there is no seed {seed}: they go from 0 to {}", plan.seeds() - 1);
            return Err(ShrinkError::Other(why));
        }
        let is_meant = |group: usize| only_group.is_none_or(|only| only == group);
        let mut runs = 0;
        for (group, title) in titles.iter().enumerate().filter(|&(group, _)| is_meant(group)) {
            for policy in 0..policies {
                for seed in
                    (0..plan.seeds()).filter(|&seed| only_seed.is_none_or(|only| only == seed))
                {
                    runs += 1;
                    if budget.is_over() {
                        let why = "the time was over before a row was found that fails";
                        return Err(ShrinkError::Other(why.into()));
                    }
                    budget.spend();
                    let clock = budget.clock();
                    let look = Look { plan: &plan, host: self.host, group, seed, clock };
                    let failure = look.failure(self.fails, policy, false);
                    let failure = match failure {
                        Err(_) if budget.is_over() => continue,
                        failure => failure.map_err(|e| ShrinkError::Other(e.to_string()))?,
                    };
                    let Some((failure, _)) = failure else { continue };
                    let entries = plan.policies().iter().map(|entry| entry.label.clone());
                    let labels: Vec<String> = match alone {
                        true => entries.skip(policy).take(1).collect(),
                        false => entries.collect(),
                    };
                    let of = match title.is_empty() {
                        true => String::new(),
                        false => format!(", {title}"),
                    };
                    let row = format!("{}{of}, seed {seed}", labels.join(", "));
                    return Ok(Found { judged, plan, group, seed, labels, failure, row });
                }
            }
        }
        Err(ShrinkError::Other(format!("\"{}\": so fails none of {runs} runs", self.fails)))
    }

    /// The case to start from: the row that was found, with its tasks listed if it then still fails
    /// in the same way; otherwise with its loads as they are, and a seed with which they do.
    fn start(
        &self,
        found: &Found,
        name: &str,
        budget: &mut Budget<'_>,
    ) -> Result<(Case, Failure), ShrinkError> {
        let Found { judged, plan, group, seed, labels, .. } = found;
        let combinations: usize = judged.sweep.axes.iter().map(|axis| axis.values.len()).product();
        let scenario = &judged.scenarios[group / combinations];
        let parts = group_parts(judged, scenario, group % combinations)
            .map_err(|fault| judged.source.error(fault))?;
        let mut case = Case::of(name, &parts, labels, &judged.directory);
        case.set("question", text_node(self.question()));
        self.add_claim(&mut case, judged);
        let same = |case: &Case, budget: &mut Budget<'_>| {
            budget.spend();
            let failure = self.failure(case, budget.clock(), false);
            let failure = failure.ok().flatten().map(|(failure, _)| failure);
            failure.filter(|failure| failure.way == found.failure.way)
        };
        let until = plan.setup(*group, 0).until;
        let listed = plan.load(*group, *seed).ok().and_then(|load| listed::listed(load, until));
        if let Some(model) = listed.filter(|model| !model.tasks.is_empty()) {
            let mut listed = case.clone();
            listed.remove("workload");
            listed.model = Some(model);
            if let Some(failure) = same(&listed, budget) {
                return Ok((listed, failure));
            }
        }
        for number in 1..=SEEDS {
            if number > 1 {
                case.set("seed", whole_node(number));
            }
            if let Some(failure) = same(&case, budget) {
                return Ok((case, failure));
            }
            if budget.is_over() {
                break;
            }
        }
        Err(ShrinkError::Other(format!(
            "{}: \"{}\" fails there, but not by itself, neither with the tasks of that run listed \
             nor with {SEEDS} other seeds",
            found.row, self.fails
        )))
    }

    fn question(&self) -> String {
        match self.fails {
            Fails::Condition(text) => format!("Why is {text}?"),
            Fails::Claim(id) => format!("Why does claim {id} not hold?"),
            Fails::Contract => "Why is the contract of policies broken?".into(),
            Fails::Deadlock => "Why do tasks wait for each other for ever?".into(),
        }
    }

    /// Adds what the case is judged by.
    fn add_claim(&self, case: &mut Case, judged: &Experiment) {
        let Some(claim) = judged.claims.first() else { return };
        if matches!(self.fails, Fails::Contract | Fails::Deadlock) {
            return;
        }
        let expect: Vec<&str> = claim.expect.iter().map(|one| one.text.as_str()).collect();
        let (id, text, expect) = match self.fails {
            Fails::Condition(condition) => ("fails", "It fails".to_string(), condition.clone()),
            _ => (claim.id.as_str(), claim.text.clone(), expect.join(" and ")),
        };
        let mut node = table_node([
            ("id", text_node(id)),
            ("text", text_node(text)),
            ("expect", text_node(expect)),
        ]);
        if matches!(self.fails, Fails::Claim(_))
            && let Value::Table(table) = &mut node.value
        {
            let words = Verdict::DoesNotHold.words();
            table.set("verdict", &crate::spec::error::NOWHERE, text_node(words));
        }
        case.set("claim", list_node(vec![node]));
    }

    /// How a case fails, if it does.
    fn failure(
        &self,
        case: &Case,
        clock: Clock<'_>,
        keeps_calls: bool,
    ) -> Result<Option<(Failure, Option<Sequence>)>, ShrinkError> {
        let (text, model) = case.written();
        let file = PathBuf::from(format!("{}.toml", case.name));
        let mut experiment = Experiment::parse(&text, &file)?;
        if let Some(bytes) = model {
            experiment = experiment.with_file(&case.model_name(), &bytes);
        }
        look_at(&experiment, self.host, self.fails, clock, keeps_calls)
    }
}

/// A row that fails.
struct Found {
    judged: Experiment,
    plan: crate::plan::Plan,
    group: usize,
    seed: u32,
    labels: Vec<String>,
    failure: Failure,
    /// In words.
    row: String,
}

/// How the first row of `experiment` fails with its first seed, if it does; for tests of what
/// [`Shrinker::shrink`] has found.
///
/// Errors: the experiment or what is to fail is wrong, or a run cannot be made.
pub fn failure(
    experiment: &Experiment,
    host: &dyn Host,
    fails: &Fails,
) -> Result<Option<Failure>, ShrinkError> {
    let found = look_at(experiment, host, fails, Clock::NONE, false)?;
    Ok(found.map(|(failure, _)| failure))
}

fn look_at(
    experiment: &Experiment,
    host: &dyn Host,
    fails: &Fails,
    clock: Clock<'_>,
    keeps_calls: bool,
) -> Result<Option<(Failure, Option<Sequence>)>, ShrinkError> {
    let judged = experiment.judged(fails)?;
    let plan = judged.plan()?;
    plan.require(host.info())?;
    let look = Look { plan: &plan, host, group: 0, seed: 0, clock };
    let found = look.failure(fails, 0, keeps_calls);
    found.map_err(|error| ShrinkError::Other(error.to_string()))
}
