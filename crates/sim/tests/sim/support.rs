//! Loads and runs that the simulator's tests share.

use anysched_core::registry::{PolicyInfo, Settings, changed, learned};
use anysched_core::{Machine, Scheduler, Span, Time};
use anysched_host::Setup;
use anysched_measure::{Metrics, Total};
use anysched_policies::policy;
use anysched_sim::{Sim, TaskResult};
use anysched_trace::{Event, Sink, TaskInfo};
use anysched_workload::Op;
use anysched_workload::model::{Model, ModelTask, Script};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

pub use anysched_lab::swarm::random;

pub const MS: u64 = 1_000_000;

pub fn ms(n: u64) -> Span {
    Span::from_ms(n)
}

pub fn at(ms: u64) -> Time {
    Time(ms * MS)
}

pub fn run(n: u64) -> Op {
    Op::Run(ms(n))
}

/// A task that arrives at `ms` and does `ops`.
pub fn task(arrives: u64, ops: Vec<Op>) -> ModelTask {
    ModelTask {
        arrives: Some(at(arrives)),
        script: Arc::new(Script::once(ops)),
        ..ModelTask::default()
    }
}

pub fn model(tasks: Vec<ModelTask>) -> Model {
    Model { tasks, ..Model::default() }
}

pub fn build(machine: &Machine, name: &str, settings: &[(&str, &str)]) -> Box<dyn Scheduler> {
    (policy(name).unwrap().build)(machine, settings).unwrap()
}

/// `settings`, and what a rehearsal teaches the policy if it needs one.
pub fn rehearsed(
    policy: &PolicyInfo,
    settings: &[(&str, &str)],
    setup: &Setup,
    model: &Model,
) -> Settings {
    let Some(first) = (policy.rehearsal)(settings).unwrap() else { return changed(settings, &[]) };
    let first = (policy.build)(&setup.machine, &text(&first)).unwrap();
    let load = model.clone().into_load().unwrap();
    let (_, policy, _) = Sim::new(setup.clone(), first, load).run().unwrap();
    changed(settings, &text(&learned(&*policy)))
}

/// Settings as policies are built from them.
pub fn text(settings: &Settings) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// Runs a model under a policy: the metrics and the results by order of arrival.
pub fn play(
    setup: Setup,
    name: &str,
    settings: &[(&str, &str)],
    model: Model,
) -> (Metrics, Vec<TaskResult>) {
    let scheduler = build(&setup.machine, name, settings);
    let results = Rc::new(RefCell::new(Vec::<TaskResult>::new()));
    let take = Rc::clone(&results);
    let sim = Sim::new(setup, scheduler, model.into_load().unwrap());
    let (metrics, ..) = sim.on_exit(move |result| take.borrow_mut().push(*result)).run().unwrap();
    let mut results = results.borrow().clone();
    results.sort_by_key(|result| result.serial);
    (metrics, results)
}

/// Completion times in ms by order of arrival.
pub fn completions(results: &[TaskResult]) -> Vec<u64> {
    results.iter().map(|result| result.completion.0 / MS).collect()
}

/// Keeps all events.
#[derive(Default)]
pub struct Events(pub Vec<Event>);

impl Sink for Events {
    fn task(&mut self, _: &TaskInfo<'_>) {}
    fn event(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

/// All of these times together, each of which was measured.
pub fn sum<const N: usize>(totals: [Total<Span>; N]) -> Span {
    Span(totals.iter().map(|total| total.get().unwrap().0).sum())
}

/// A count that was measured.
pub fn number(total: Total<u64>) -> u64 {
    total.get().unwrap()
}
