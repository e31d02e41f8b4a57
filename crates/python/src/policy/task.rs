//! What a class in Python sees: tasks, and the runqueue that it is the rule of.

use anysched_core::ids::{CpuId, CpuSet};
use anysched_core::params::TaskParams;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

/// A task. Policies may keep what they know of it in attributes of their own.
#[pyclass(dict, module = "anysched")]
#[derive(Debug)]
pub struct Task {
    /// Its number; reused after it has ended.
    #[pyo3(get)]
    pub id: u32,
    /// Share of the CPU relative to other tasks; 1024 is nice 0.
    #[pyo3(get)]
    pub weight: u32,
    /// Fixed priority; larger is more urgent.
    #[pyo3(get)]
    pub priority: i32,
    /// The number of its group, or of its virtual machine.
    #[pyo3(get)]
    pub domain: u32,
    /// Time between two releases of a periodic task, in ns.
    #[pyo3(get)]
    pub period: Option<u64>,
    /// CPU time that it may use in a period, in ns.
    #[pyo3(get)]
    pub budget: Option<u64>,
    /// Time from a release to its deadline, in ns.
    #[pyo3(get)]
    pub relative_deadline: Option<u64>,
    /// When its job is due, in ns.
    #[pyo3(get)]
    pub deadline: Option<u64>,
    /// When it last became ready, in ns.
    #[pyo3(get)]
    pub ready_since: u64,
    affinity: CpuSet,
    /// CPU time between becoming ready and blocking, where the host knows it.
    need: Option<u64>,
    /// CPU time since it became ready, as it was charged.
    used: u64,
    /// CPU time in all, as it was charged.
    service: u64,
    /// CPU time that is not charged yet.
    pending: u64,
    may_tell: bool,
}

#[pymethods]
impl Task {
    /// CPU time that it still needs until it blocks or ends, in ns, which no kernel knows.
    #[getter]
    fn burst(&self) -> PyResult<u64> {
        if !self.may_tell {
            return Err(PyAttributeError::new_err(
                "no kernel knows `task.burst`: say `clairvoyant = True` in the class, which marks \
                 its results",
            ));
        }
        let need = self.need.ok_or_else(|| {
            let id = self.id;
            PyAttributeError::new_err(format!("the burst of task {id} is not known in advance"))
        })?;
        Ok(need.saturating_sub(self.used + self.pending))
    }

    /// CPU time that it has used since it became ready, in ns.
    #[getter]
    fn used(&self) -> u64 {
        self.used + self.pending
    }

    /// CPU time that it has used in all, in ns.
    #[getter]
    fn service(&self) -> u64 {
        self.service + self.pending
    }

    /// Whether it is allowed on a CPU.
    fn may_run_on(&self, cpu: u32) -> bool {
        u16::try_from(cpu).is_ok_and(|cpu| self.affinity.contains(CpuId(cpu)))
    }

    fn __repr__(&self) -> String {
        format!("Task {}", self.id)
    }
}

impl Task {
    pub fn new(id: u32, params: &TaskParams, may_tell: bool) -> Task {
        let mut task = Task {
            id,
            weight: 0,
            priority: 0,
            domain: 0,
            period: None,
            budget: None,
            relative_deadline: None,
            deadline: None,
            ready_since: 0,
            affinity: CpuSet::All,
            need: None,
            used: 0,
            service: 0,
            pending: 0,
            may_tell,
        };
        task.update(params);
        task
    }

    pub fn update(&mut self, params: &TaskParams) {
        let ns = |span: Option<anysched_core::Span>| span.map(|span| span.0);
        self.weight = params.weight;
        self.priority = params.priority;
        self.domain = params.domain.0.into();
        self.period = ns(params.period);
        self.budget = ns(params.budget);
        self.relative_deadline = ns(params.relative_deadline);
        self.affinity = params.affinity.clone();
    }

    /// It becomes ready.
    pub fn begin(&mut self, now: u64, need: Option<u64>, deadline: Option<u64>) {
        (self.ready_since, self.need, self.used, self.deadline) = (now, need, 0, deadline);
    }

    pub fn charge(&mut self, ran: u64) {
        self.used += ran;
        self.service += ran;
    }

    /// So much of what it runs is not charged yet.
    pub fn set_pending(&mut self, pending: u64) {
        self.pending = pending;
    }
}

/// What all policies in Python derive from: a rule of one runqueue.
#[pyclass(subclass, module = "anysched._core")]
#[derive(Debug, Default)]
pub struct Rule {
    /// The time of the call, in ns.
    #[pyo3(get)]
    pub now: u64,
    /// The number of the runqueue.
    #[pyo3(get)]
    pub queue: usize,
    /// What runs on the CPUs of the runqueue.
    pub running: Vec<Py<Task>>,
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, pyo3::types::PyTuple>,
        _kwargs: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> Rule {
        Rule::default()
    }

    /// The tasks that run on the CPUs of the runqueue.
    #[getter]
    fn running(&self, py: Python<'_>) -> Vec<Py<Task>> {
        self.running.iter().map(|task| task.clone_ref(py)).collect()
    }
}
