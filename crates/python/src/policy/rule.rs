//! A class in Python as an ordering rule.

use super::key::Key;
use super::task::{Rule, Task};
use super::{Class, Failure, class, fail, has_failed};
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::params::{ParamError, ParamInfo, ParamList, Params, TaskParams};
use anysched_core::registry::Policy;
use anysched_core::smp::{At, Entry, Removal, RunQueue, Running, SmpParams, Whereabouts, Why};
use anysched_core::time::Span;
use anysched_core::{Machine, Off};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The parameters of `python`.
#[derive(Clone, Debug, Default)]
pub struct PythonParams {
    class: Option<Arc<Class>>,
}

impl Params for PythonParams {
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        if name != "class" {
            return Err(ParamError::Unknown { name: name.into() });
        }
        self.class = Some(class(text).ok_or_else(|| ParamError::Value {
            name: name.into(),
            value: text.into(),
            why: "no class has this name here; give the class itself where the policy stands",
        })?);
        Ok(())
    }

    fn list(&self) -> ParamList {
        vec![ParamInfo {
            name: "class",
            doc: "The class, as it is registered.",
            kind: "text",
            default: String::new(),
        }]
    }
}

/// An ordering rule whose decisions Python makes.
#[derive(Debug)]
pub struct PythonRule {
    class: Arc<Class>,
    /// An instance for each runqueue, with its waiting tasks.
    queues: Vec<Queue>,
    /// By number.
    tasks: Vec<Option<Slot>>,
    /// How often a task has been queued.
    entries: u64,
}

#[derive(Debug)]
struct Queue {
    rule: Py<PyAny>,
    base: Py<Rule>,
    /// In the order of keys, or in which they came.
    waiting: BTreeSet<Place>,
}

/// Where a task stands: its key, its arrival number, its own number.
type Place = (Key, u64, u32);

#[derive(Debug)]
struct Slot {
    task: Py<Task>,
    queue: usize,
    /// The arrival number with which it was last queued.
    number: u64,
    /// While it waits.
    key: Option<Key>,
}

impl Policy for PythonRule {
    type Params = PythonParams;
    const SOURCE: &'static str = "the class";

    fn is_clairvoyant(params: &PythonParams) -> bool {
        params.class.as_ref().is_some_and(|class| class.is_clairvoyant)
    }

    fn build(_: &Machine, queues: usize, params: &PythonParams) -> Result<Self, ParamError> {
        let invalid = |why| ParamError::Invalid { name: "class", why };
        let class = params.class.clone().ok_or(invalid("it has to be given"))?;
        let make = || {
            Python::attach(|py| {
                let rule = class.make.call0(py)?;
                let base: Py<Rule> = rule.extract(py)?;
                Ok::<_, PyErr>(Queue { rule, base, waiting: BTreeSet::new() })
            })
        };
        let queues = (0..queues).map(|number| {
            let queue = make()?;
            Python::attach(|py| queue.base.borrow_mut(py).queue = number);
            Ok(queue)
        });
        let queues = queues.collect::<PyResult<Vec<Queue>>>().map_err(|error| {
            fail(Failure::Raised(error));
            invalid("making an instance of it has raised an exception")
        })?;
        Ok(PythonRule { class, queues, tasks: Vec::new(), entries: 0 })
    }
}

impl PythonRule {
    /// What `ask` answers, or `otherwise` once something has failed.
    fn ask<R>(&self, otherwise: R, ask: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
        if has_failed() {
            return otherwise;
        }
        Python::attach(ask).unwrap_or_else(|error| {
            fail(Failure::Raised(error));
            otherwise
        })
    }

    fn slot(&self, task: TaskId) -> Option<&Slot> {
        self.tasks.get(task.0 as usize)?.as_ref()
    }

    fn slot_mut(&mut self, task: TaskId) -> Option<&mut Slot> {
        self.tasks.get_mut(task.0 as usize)?.as_mut()
    }

    /// The instance of the runqueue in question, which is told the time and what runs.
    fn at<'py>(&self, py: Python<'py>, at: &At<'_>) -> &Bound<'py, PyAny> {
        let queue = &self.queues[at.queue];
        let mut base = queue.base.borrow_mut(py);
        base.now = at.now.0;
        let running = at.running.iter().filter_map(|cpu| self.slot(cpu.task()?));
        base.running.clear();
        base.running.extend(running.map(|slot| slot.task.clone_ref(py)));
        queue.rule.bind(py)
    }

    /// Calls a hook of the runqueue in question with a task.
    fn tell(&self, at: &At<'_>, hook: &str, task: TaskId) {
        self.ask((), |py| {
            let Some(slot) = self.slot(task) else { return Ok(()) };
            self.at(py, at).call_method1(hook, (&slot.task,)).map(drop)
        });
    }

    /// The key of a task of which this much is not charged yet.
    fn key_of(&self, at: &At<'_>, task: TaskId, pending: u64) -> Option<Key> {
        self.ask(None, |py| {
            let Some(slot) = self.slot(task) else { return Ok(None) };
            slot.task.borrow_mut(py).set_pending(pending);
            let key = self.at(py, at).call_method1(intern!(py, "key"), (&slot.task,));
            slot.task.borrow_mut(py).set_pending(0);
            Key::read(&key?).map(Some)
        })
    }

    /// Takes a task out of its runqueue's list.
    fn unlist(&mut self, task: TaskId) {
        let Some(slot) = self.slot_mut(task) else { return };
        let (queue, number) = (slot.queue, slot.number);
        if let Some(key) = slot.key.take() {
            self.queues[queue].waiting.remove(&(key, number, task.0));
        }
    }

    /// The task that the class itself hands out for `cpu`, which has to wait there and to fit.
    fn chosen(&self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.ask(None, |py| {
            let chosen = self.at(py, at).call_method1(intern!(py, "pop"), (cpu.0,))?;
            if chosen.is_none() {
                return Ok(None);
            }
            let id = match chosen.extract::<PyRef<'_, Task>>() {
                Ok(task) => TaskId(task.id),
                Err(_) => {
                    let kind = chosen.get_type();
                    let why = format!("`pop` returns a task or None, not {}", kind.name()?);
                    return Err(PyTypeError::new_err(why));
                }
            };
            let waits = |slot: &&Slot| slot.key.is_some() && slot.queue == at.queue;
            if self.slot(id).filter(waits).is_none() {
                return Err(PyValueError::new_err(format!(
                    "`pop` returned task {}, which does not wait in this runqueue: take a task \
                     out of your queue when you return it, and in `remove`",
                    id.0
                )));
            }
            if !fits(id) {
                return Err(PyValueError::new_err(format!(
                    "`pop` returned task {} for CPU {}, on which it may not run: choose among \
                     those of which `task.may_run_on(cpu)` is true",
                    id.0, cpu.0
                )));
            }
            Ok(Some(id))
        })
    }
}

impl RunQueue for PythonRule {
    const PREEMPTS: bool = true;

    fn smp() -> SmpParams {
        SmpParams::global()
    }

    fn attach(&mut self, id: TaskId, params: &TaskParams) {
        let index = id.0 as usize;
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, || None);
        }
        let task = Task::new(id.0, params, self.class.is_clairvoyant);
        let made = self.ask(None, |py| Py::new(py, task).map(Some));
        self.tasks[index] = made.map(|task| Slot { task, queue: 0, number: 0, key: None });
        if self.class.hooks.attach {
            self.ask((), |py| {
                let Some(slot) = self.slot(id) else { return Ok(()) };
                let rule = &self.queues[0].rule;
                rule.call_method1(py, intern!(py, "attach"), (&slot.task,)).map(drop)
            });
        }
    }

    fn detach(&mut self, id: TaskId) {
        if self.class.hooks.detach {
            self.ask((), |py| {
                let Some(slot) = self.slot(id) else { return Ok(()) };
                let rule = &self.queues[slot.queue].rule;
                rule.call_method1(py, intern!(py, "detach"), (&slot.task,)).map(drop)
            });
        }
        if let Some(slot) = self.tasks.get_mut(id.0 as usize) {
            *slot = None;
        }
    }

    fn update(&mut self, at: &At<'_>, is: Whereabouts, id: TaskId, params: &TaskParams) {
        self.ask((), |py| {
            let Some(slot) = self.slot(id) else { return Ok(()) };
            slot.task.borrow_mut(py).update(params);
            if self.class.hooks.update {
                let rule = &self.queues[slot.queue].rule;
                rule.call_method1(py, intern!(py, "update"), (&slot.task,))?;
            }
            Ok(())
        });
        // Its place may be another one now.
        if is == Whereabouts::Queued && self.class.is_ordered {
            let number = self.slot(id).map_or(0, |slot| slot.number);
            self.unlist(id);
            self.list(at, id, number);
        }
    }

    fn push(&mut self, at: &At<'_>, id: TaskId, entry: &Entry) {
        if matches!(entry.why, Why::New | Why::Woken) {
            let ns = |span: Option<Span>| span.map(|span| span.0);
            let deadline = entry.deadline.map(|time| time.0);
            self.ask((), |py| {
                let Some(slot) = self.slot(id) else { return Ok(()) };
                slot.task.borrow_mut(py).begin(at.now.0, ns(entry.burst), deadline);
                Ok(())
            });
        }
        let number = match entry.why {
            Why::Put(Off::NotRun) | Why::Resumed | Why::Moved => {
                self.slot(id).map_or(0, |slot| slot.number)
            }
            Why::New | Why::Woken | Why::Put(_) => {
                self.entries += 1;
                self.entries
            }
        };
        self.list(at, id, number);
        if !self.class.is_ordered {
            self.ask((), |py| {
                let Some(slot) = self.slot(id) else { return Ok(()) };
                let why = word(py, entry.why);
                let rule = self.at(py, at);
                rule.call_method1(intern!(py, "push"), (&slot.task, why)).map(drop)
            });
        }
    }

    fn pop(&mut self, at: &At<'_>, cpu: CpuId, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let waiting = &self.queues[at.queue].waiting;
        if waiting.is_empty() {
            return None;
        }
        let chosen = match self.class.is_ordered {
            true => waiting.iter().map(|(.., id)| TaskId(*id)).find(|&id| fits(id)),
            false => self.chosen(at, cpu, fits),
        };
        let chosen = chosen?;
        self.unlist(chosen);
        Some(chosen)
    }

    fn remove(&mut self, at: &At<'_>, task: TaskId, _: Removal) {
        self.unlist(task);
        if !self.class.is_ordered {
            self.tell(at, "remove", task);
        }
    }

    fn charge(&mut self, at: &At<'_>, task: TaskId, ran: Span) {
        self.ask((), |py| {
            let Some(slot) = self.slot(task) else { return Ok(()) };
            slot.task.borrow_mut(py).charge(ran.0);
            if self.class.hooks.charge {
                let rule = self.at(py, at);
                rule.call_method1(intern!(py, "charge"), (&slot.task, ran.0))?;
            }
            Ok(())
        });
    }

    fn leave(&mut self, at: &At<'_>, task: TaskId, why: Off) -> bool {
        if self.class.hooks.leave {
            self.ask((), |py| {
                let Some(slot) = self.slot(task) else { return Ok(()) };
                let why = word(py, Why::Put(why));
                let rule = self.at(py, at);
                rule.call_method1(intern!(py, "leave"), (&slot.task, why)).map(drop)
            });
        }
        false
    }

    fn slice(&mut self, at: &At<'_>, task: TaskId) -> Span {
        if !self.class.hooks.slice {
            return self.class.quantum.map_or(Span::MAX, Span);
        }
        self.ask(Span::MAX, |py| {
            let Some(slot) = self.slot(task) else { return Ok(Span::MAX) };
            let slice = self.at(py, at).call_method1(intern!(py, "slice"), (&slot.task,))?;
            if slice.is_none() {
                return Ok(Span::MAX);
            }
            match slice.extract::<u64>() {
                Ok(ns) if ns > 0 => Ok(Span(ns)),
                _ => Err(PyValueError::new_err(format!(
                    "`slice` returned {} for {}: it is a whole number of ns above 0, or None for \
                     no limit",
                    slice.repr()?,
                    slot.task.borrow(py).id
                ))),
            }
        })
    }

    fn tick(&mut self, at: &At<'_>, task: TaskId) -> bool {
        if !self.class.hooks.tick {
            return false;
        }
        self.ask(false, |py| {
            let Some(slot) = self.slot(task) else { return Ok(false) };
            self.at(py, at).call_method1(intern!(py, "tick"), (&slot.task,))?.is_truthy()
        })
    }

    fn tick_period(&self) -> Option<Span> {
        self.class.tick_ns.map(Span)
    }

    fn preempts(&mut self, at: &At<'_>, task: TaskId, running: &Running) -> Option<u64> {
        let rival = running.task()?;
        let pending = at.now.since(running.since()).0;
        if self.class.hooks.preempts {
            return self.ask(None, |py| {
                let (Some(slot), Some(other)) = (self.slot(task), self.slot(rival)) else {
                    return Ok(None);
                };
                other.task.borrow_mut(py).set_pending(pending);
                let rule = self.at(py, at);
                let said = rule.call_method1(intern!(py, "preempts"), (&slot.task, &other.task));
                other.task.borrow_mut(py).set_pending(0);
                Ok(said?.is_truthy()?.then_some(1))
            });
        }
        if !(self.class.is_preemptive && self.class.is_ordered) {
            return None;
        }
        let rival = self.key_of(at, rival, pending)?;
        rival.excess(self.slot(task)?.key.as_ref()?)
    }

    fn len(&self, queue: usize) -> usize {
        self.queues[queue].waiting.len()
    }

    fn spare(&self, at: &At<'_>, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let waiting = self.queues[at.queue].waiting.iter().rev();
        waiting.map(|(.., id)| TaskId(*id)).find(|&id| fits(id))
    }
}

impl PythonRule {
    /// Puts a task into the list of the runqueue in question.
    fn list(&mut self, at: &At<'_>, id: TaskId, number: u64) {
        let key = match self.class.is_ordered {
            true => self.key_of(at, id, 0).unwrap_or_default(),
            false => Key::default(),
        };
        let Some(slot) = self.slot_mut(id) else { return };
        (slot.queue, slot.number, slot.key) = (at.queue, number, Some(key.clone()));
        self.queues[at.queue].waiting.insert((key, number, id.0));
    }
}

/// Why a task enters or leaves, in the word that Python gets.
fn word(py: Python<'_>, why: Why) -> &Bound<'_, PyString> {
    match why {
        Why::New => intern!(py, "new"),
        Why::Woken => intern!(py, "woken"),
        Why::Resumed => intern!(py, "resumed"),
        Why::Moved => intern!(py, "moved"),
        Why::Put(Off::Expired) => intern!(py, "expired"),
        Why::Put(Off::Preempted) => intern!(py, "preempted"),
        Why::Put(Off::Yielded) => intern!(py, "yielded"),
        Why::Put(Off::NotRun) => intern!(py, "undone"),
        Why::Put(Off::Blocked) => intern!(py, "blocked"),
        Why::Put(Off::Exited) => intern!(py, "exited"),
    }
}
