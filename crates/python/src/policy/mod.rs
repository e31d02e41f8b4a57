//! Policies written in Python: the entry that experiments name, and the classes behind it.
//!
//! There is one entry, `python`; its parameter `class` says which class. Python registers a class
//! under a name that tells its code, too, so that results of another version are told apart.
//! Every such policy runs under [`Checked`], and ends its run with the first exception or breach
//! of the contract: that is kept for the thread, and the [host](crate::host) takes it from there.

mod key;
mod rule;
mod task;

pub use task::{Rule, Task};

use anysched_core::call::Call;
use anysched_core::checked::{OnViolation, Rules};
use anysched_core::registry::{
    PolicyInfo, build_boxed, list_rule, nature_of_rule, rehearsal_of_rule,
};
use anysched_core::{Checked, Cx, Machine, ParamError, Pick, Scheduler, scheduler_by_call};
use pyo3::prelude::*;
use rule::PythonRule;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What experiments call a policy in Python.
pub static POLICIES: [PolicyInfo; 1] = [PolicyInfo {
    name: "python",
    summary: "A class in Python",
    source: "the class",
    clairvoyant: false,
    order: &[],
    seed: None,
    native: &[],
    is_default_guest: false,
    groupings: None,
    spaces: &[],
    baseline: None,
    params: list_rule::<PythonRule>,
    nature: nature_of_rule::<PythonRule>,
    rehearsal: rehearsal_of_rule::<PythonRule>,
    build,
}];

/// A class, as Python has registered it.
#[derive(Debug)]
pub struct Class {
    /// Makes an instance: the rule of one runqueue.
    make: Py<PyAny>,
    /// Its tasks in the order of `key`, or of `push` and `pop` that are its own.
    is_ordered: bool,
    is_clairvoyant: bool,
    is_preemptive: bool,
    /// What a task may run at a time, if that never changes.
    quantum: Option<u64>,
    tick_ns: Option<u64>,
    hooks: Hooks,
}

/// Which hooks it has: those that it has not are not called.
#[derive(Debug, Default)]
struct Hooks {
    attach: bool,
    detach: bool,
    update: bool,
    charge: bool,
    leave: bool,
    slice: bool,
    tick: bool,
    preempts: bool,
}

static CLASSES: Mutex<BTreeMap<String, Arc<Class>>> = Mutex::new(BTreeMap::new());

/// Registers a class under a name; one that is registered already is replaced.
#[pyfunction]
#[pyo3(signature = (name, make, *, hooks, ordered, clairvoyant, preemptive, quantum, tick))]
pub fn register(
    name: String,
    make: Py<PyAny>,
    hooks: Vec<String>,
    ordered: bool,
    clairvoyant: bool,
    preemptive: bool,
    quantum: Option<u64>,
    tick: Option<u64>,
) {
    let has = |hook: &str| hooks.iter().any(|known| known == hook);
    let class = Class {
        make,
        is_ordered: ordered,
        is_clairvoyant: clairvoyant,
        is_preemptive: preemptive,
        quantum,
        tick_ns: tick,
        hooks: Hooks {
            attach: has("attach"),
            detach: has("detach"),
            update: has("update"),
            charge: has("charge"),
            leave: has("leave"),
            slice: has("slice"),
            tick: has("tick"),
            preempts: has("preempts"),
        },
    };
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    classes.insert(name, Arc::new(class));
}

fn class(name: &str) -> Option<Arc<Class>> {
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

fn build(machine: &Machine, settings: &[(&str, &str)]) -> Result<Box<dyn Scheduler>, ParamError> {
    let policy = build_boxed::<PythonRule>(machine, settings)?;
    let work_conserving = nature_of_rule::<PythonRule>(settings)?.work_conserving;
    let on_violation = OnViolation::Collect;
    let rules = Rules { work_conserving, on_violation, ..Rules::default() };
    Ok(Box::new(Guarded { policy: Checked::new(policy, machine, rules) }))
}

/// Why a run with a policy in Python cannot go on.
#[derive(Debug)]
pub enum Failure {
    /// The class has raised an exception.
    Raised(PyErr),
    /// The class has broken the contract.
    Broken(String),
}

thread_local! {
    static FAILURE: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Whether a policy has failed on this thread.
pub fn has_failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// How a policy has failed on this thread, once.
pub fn take_failure() -> Option<Failure> {
    FAILURE.take()
}

/// Only the first is kept: the others may follow from it.
fn fail(failure: Failure) {
    FAILURE.with_borrow_mut(|kept| {
        kept.get_or_insert(failure);
    });
}

/// A policy that is left alone once it has failed.
struct Guarded {
    policy: Checked<Box<dyn Scheduler>>,
}

impl Guarded {
    fn call(&mut self, cx: &mut Cx<'_>, call: Call<'_>) -> Option<Pick> {
        if has_failed() {
            return None;
        }
        let pick = call.make(&mut self.policy, cx);
        if let Some(violation) = self.policy.violations().first() {
            fail(Failure::Broken(violation.to_string()));
        }
        pick.filter(|_| !has_failed())
    }
}

scheduler_by_call!([] Guarded);
