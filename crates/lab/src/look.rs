//! Looking into runs: why a task waited, and where two schedules part.
//!
//! What is looked at is a run that is made again as often as needed, or a log of decisions, from
//! whichever kernel, that is replayed. Nothing of either is kept but what is asked for.

use crate::Plan;
use anysched_core::Observer;
use anysched_core::Time;
use anysched_core::recorder::{LogReader, replay_observed};
use anysched_core::registry::{First, PolicyInfo};
use anysched_host::{Host, HostError, Watch};
use anysched_policies::policy;
use anysched_trace::diff::{After, Aftermath, Diff, Parting, Side, Step, Steps, parting};
use anysched_trace::follow::Who;
use anysched_trace::why::{Explainer, Finder, Found, Longest, Missed, Wait, Why};
use anysched_trace::{Shared, Sink};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// What is looked at.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A run of a plan, of a group and a policy by position, with the seed of this number.
    Run {
        /// The plan.
        plan: &'a Plan,
        /// Who makes it.
        host: &'a dyn Host,
        /// The group.
        group: usize,
        /// The policy.
        policy: usize,
        /// The seed.
        seed: u32,
    },
    /// A log of decisions.
    Log {
        /// What it is called.
        name: &'a str,
        /// The log.
        log: &'a [u8],
    },
}

impl Source<'_> {
    /// The policy, as it is called in what is shown.
    ///
    /// Errors: a log that cannot be read.
    pub fn label(&self) -> Result<String, HostError> {
        match self {
            Source::Run { plan, policy, group, .. } => {
                Ok(plan.policy(*group, *policy).label.clone())
            }
            Source::Log { .. } => Ok(self.info()?.name.to_string()),
        }
    }

    /// The entry of its policy.
    fn info(&self) -> Result<&'static PolicyInfo, HostError> {
        match self {
            Source::Run { plan, policy, group, .. } => Ok(plan.policy(*group, *policy).info),
            Source::Log { name, log } => {
                let reader = LogReader::new(log).map_err(|e| HostError(format!("{name}: {e}")))?;
                let wanted = reader.header().policy;
                policy(wanted)
                    .ok_or_else(|| HostError(format!("{name}: there is no policy `{wanted}` here")))
            }
        }
    }

    /// How many CPUs there are.
    fn cpus(&self) -> Result<usize, HostError> {
        match self {
            Source::Run { plan, policy, group, .. } => {
                Ok(plan.setup(*group, *policy).machine.cpus())
            }
            Source::Log { name, log } => {
                let reader = LogReader::new(log).map_err(|e| HostError(format!("{name}: {e}")))?;
                Ok(reader.header().machine.cpus())
            }
        }
    }

    fn order(&self) -> Result<&'static [First], HostError> {
        Ok(self.info()?.order)
    }

    /// Has `listener` hear the run, until it says that it is done.
    ///
    /// Errors: the run cannot be made, or the log cannot be replayed.
    fn play<T: Sink + Observer>(
        &self,
        listener: T,
        is_done: impl Fn(&T) -> bool,
    ) -> Result<T, HostError> {
        let shared = RefCell::new(listener);
        match *self {
            Source::Run { plan, host, group, policy, seed } => {
                let (mut events, mut calls) = (Shared(&shared), Shared(&shared));
                let mut beat = |_| match is_done(&shared.borrow()) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                let watch = Watch {
                    trace: Some(&mut events),
                    observe: Some(&mut calls),
                    beat: Some(&mut beat),
                    ..Watch::default()
                };
                let made = plan.run_one(host, group, policy, seed, watch);
                // One that has been ended early is an error only if nobody wanted that.
                if let Err(error) = made
                    && !is_done(&shared.borrow())
                {
                    return Err(HostError(error.to_string()));
                }
            }
            Source::Log { name, log } => {
                let fault = |why: String| HostError(format!("{name}: {why}"));
                let reader = LogReader::new(log).map_err(|error| fault(error.to_string()))?;
                let (header, info) = (reader.header(), self.info()?);
                let built = (info.build)(&header.machine, &header.settings);
                let mut built = built.map_err(|error| fault(error.to_string()))?;
                replay_observed(log, &mut *built, &mut Shared(&shared))
                    .map_err(|error| fault(error.to_string()))?;
            }
        }
        Ok(shared.into_inner())
    }

    /// Whether its times can be compared with those of `other`, step by step.
    fn is_of_same_clock(&self, other: &Source<'_>) -> bool {
        matches!((self, other), (Source::Run { .. }, Source::Run { .. }))
    }
}

/// What came of asking why a task waited.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It did; so many more tasks had the same name then.
    Why(Box<Why>, u64),
    /// It did not wait at that moment.
    Missed(Box<Missed>),
    /// No such task has ever waited.
    Never,
    /// There is no such task: the names of the first of so many.
    Unknown(Vec<String>, u64),
}

/// Why the task with this name, or serial, waited at `at`.
///
/// Errors: the run cannot be made, or the log cannot be replayed.
pub fn why(source: &Source<'_>, task: &str, at: Time) -> Result<Answer, HostError> {
    match source.play(Finder::new(task, at), Finder::is_done)?.finish() {
        Found::Wait(wait, others) => explain(source, wait, others),
        Found::Missed(missed) => Ok(Answer::Missed(Box::new(missed))),
        Found::Unknown(names, tasks) => Ok(Answer::Unknown(names, tasks)),
    }
}

/// Why the task that has waited longest did: of those with this name, or serial, or of all.
///
/// Errors: as [`why`].
pub fn longest(source: &Source<'_>, task: Option<&str>) -> Result<Answer, HostError> {
    match source.play(Longest::new(task), |_| false)?.finish() {
        Ok(Some(wait)) => explain(source, wait, 0),
        Ok(None) => Ok(Answer::Never),
        Err((names, tasks)) => Ok(Answer::Unknown(names, tasks)),
    }
}

fn explain(source: &Source<'_>, wait: Wait, others: u64) -> Result<Answer, HostError> {
    let explainer = Explainer::new(&source.label()?, source.order()?, source.cpus()?, wait);
    let why = source.play(explainer, Explainer::is_done)?.finish();
    Ok(Answer::Why(Box::new(why), others))
}

/// How far two schedules that do not part go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alike {
    /// So many steps.
    pub steps: u64,
    /// Which of the two goes on, by position, if one was recorded for longer.
    pub longer: Option<usize>,
}

/// Where two schedules part; `Err` within: they do not.
///
/// Errors: a run cannot be made, or a log cannot be replayed.
pub fn diff(sources: [Source<'_>; 2]) -> Result<Result<Box<Diff>, Alike>, HostError> {
    let partings = match first_difference(sources)? {
        Ok(partings) => partings,
        Err(alike) => return Ok(Err(alike)),
    };
    let mut sides = Vec::new();
    for (source, parting) in sources.iter().zip(partings) {
        let watched = Aftermath::new(source.cpus()?, parting);
        let after = source.play(watched, Aftermath::is_done)?.finish();
        sides.push(Side { name: source.label()?, order: source.order()?, parting, after });
    }
    let [a, b] =
        <[Side; 2]>::try_from(sources_named(tasks_named(sides))).expect("as many as sources");
    Ok(Ok(Box::new(Diff { sides: [a, b] })))
}

/// Calls the tasks of a log, which has no names, as the other side does: they are compared by their
/// numbers.
fn tasks_named(mut sides: Vec<Side>) -> Vec<Side> {
    fn all(side: &mut Side) -> impl Iterator<Item = &mut Who> {
        let After { cpus, tasks, runs } = &mut side.after;
        let on_cpus = cpus.iter_mut().filter_map(|(_, task, _)| task.as_mut());
        on_cpus.chain(runs.as_mut()).chain(tasks.values_mut().map(|then| &mut then.who))
    }
    let is_named = |who: &Who| who.name != format!("task {}", who.serial);
    let named = sides.iter_mut().flat_map(all).filter(|who| is_named(who));
    let names: BTreeMap<u64, String> = named.map(|who| (who.serial, who.name.clone())).collect();
    for who in sides.iter_mut().flat_map(all).filter(|who| !is_named(who)) {
        if let Some(name) = names.get(&who.serial) {
            who.name.clone_from(name);
        }
    }
    sides
}

/// Tells sides of the same name apart.
fn sources_named(mut sides: Vec<Side>) -> Vec<Side> {
    if sides[0].name == sides[1].name {
        for (number, side) in sides.iter_mut().enumerate() {
            side.name = format!("{} ({})", side.name, number + 1);
        }
    }
    sides
}

/// Steps are passed from one thread to the other in groups of so many, of which so many wait.
const GROUP: usize = 128;
const GROUPS: usize = 16;

/// The steps of a run, as they come.
struct Coming {
    from: Receiver<Vec<Step>>,
    group: VecDeque<Step>,
}

impl Coming {
    fn next(&mut self) -> Option<Step> {
        while self.group.is_empty() {
            self.group = self.from.recv().ok()?.into();
        }
        self.group.pop_front()
    }
}

/// Makes both runs at the same time and compares their steps: where they part, in the time of each,
/// or how many steps they share.
fn first_difference(sources: [Source<'_>; 2]) -> Result<Result<[Parting; 2], Alike>, HostError> {
    let timed = sources[0].is_of_same_clock(&sources[1]);
    thread::scope(|scope| {
        let threads = sources.map(|source| {
            let (to, from) = sync_channel(GROUPS);
            let thread = scope.spawn(move || {
                let (unheard, group) = (Cell::new(false), RefCell::new(Vec::new()));
                let send = || unheard.set(to.send(group.take()).is_err() || unheard.get());
                let steps = Steps::new(|step| {
                    group.borrow_mut().push(step);
                    if group.borrow().len() == GROUP && !unheard.get() {
                        send();
                    }
                    if unheard.get() {
                        group.borrow_mut().clear();
                    }
                });
                source.play(steps, |_| unheard.get())?.finish();
                send();
                Ok::<_, HostError>(())
            });
            (thread, Coming { from, group: VecDeque::new() })
        });
        let [(first, a), (second, b)] = threads;
        let mut coming = [a, b];
        let found = if timed { compare(&mut coming) } else { compare_order(&mut coming) };
        drop(coming);
        for thread in [first, second] {
            thread.join().map_err(|_| HostError("a run has panicked".into()))??;
        }
        Ok(found)
    })
}

/// By time, CPU and task.
fn compare([a, b]: &mut [Coming; 2]) -> Result<[Parting; 2], Alike> {
    let mut alike = 0;
    loop {
        let [x, y] = [a.next(), b.next()];
        if x != y {
            let found = parting(alike, [x.as_ref(), y.as_ref()]);
            let end = Alike { steps: alike, longer: None };
            return found.map(|parting| [parting; 2]).ok_or(end);
        }
        if x.is_none() {
            return Err(Alike { steps: alike, longer: None });
        }
        alike += 1;
    }
}

/// By CPU and task, in order of time, which the two have not in common.
fn compare_order([a, b]: &mut [Coming; 2]) -> Result<[Parting; 2], Alike> {
    let mut alike = 0;
    let mut open = [VecDeque::new(), VecDeque::new()];
    loop {
        for (open, coming) in open.iter_mut().zip([&mut *a, &mut *b]) {
            while open.is_empty() {
                let Some(step) = coming.next() else { break };
                let runs = step.runs.into_iter();
                open.extend(runs.filter_map(|(cpu, task)| Some((step.time, cpu, task?))));
            }
        }
        let [x, y] = [open[0].pop_front(), open[1].pop_front()];
        let (Some((at, cpu, task)), Some((other_at, other_cpu, other))) = (x, y) else {
            let longer = [x, y].iter().position(Option::is_some);
            return Err(Alike { steps: alike, longer });
        };
        if (cpu, task) != (other_cpu, other) {
            let parting = |time, cpu| Parting { time, cpu, alike };
            return Ok([parting(at, cpu), parting(other_at, other_cpu)]);
        }
        alike += 1;
    }
}
