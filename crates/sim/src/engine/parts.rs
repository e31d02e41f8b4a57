//! What is measured of some of the tasks: of those of a load, of each.

use anysched_core::TaskId;
use anysched_measure::{Apart, Metrics, PART_TASKS, Part, PartMetrics};

/// The parts of a run that are measured apart, and who belongs to which.
pub(super) struct Parts {
    apart: Apart,
    loads: Vec<Metrics>,
    tasks: Vec<PartMetrics>,
    /// By number of a task, its load and its place among `tasks`; [`NONE`]: it is in neither.
    of: Vec<[u32; 2]>,
}

/// No part.
const NONE: u32 = u32::MAX;

impl Parts {
    pub(super) fn new(apart: Apart) -> Parts {
        Parts { apart, loads: Vec::new(), tasks: Vec::new(), of: Vec::new() }
    }

    pub(super) fn apart(&self) -> Apart {
        self.apart
    }

    pub(super) fn arrived(&mut self, id: TaskId, serial: u64, name: Option<&str>, load: usize) {
        let mut parts = [NONE; 2];
        if self.apart.loads {
            if self.loads.len() <= load {
                self.loads.resize_with(load + 1, Metrics::of_tasks);
            }
            parts[0] = load as u32;
        }
        if self.apart.tasks && self.tasks.len() < PART_TASKS {
            parts[1] = self.tasks.len() as u32;
            let part = Part::Task { serial, name: name.map(Into::into) };
            self.tasks.push(PartMetrics { part, inside: Metrics::of_tasks() });
        }
        if self.of.len() <= id.index() {
            self.of.resize(id.index() + 1, [NONE; 2]);
        }
        self.of[id.index()] = parts;
    }

    /// Records something that happened to a task.
    pub(super) fn of(&mut self, id: TaskId, record: impl Fn(&mut Metrics)) {
        // Virtual CPUs are of no load.
        let Some(&[load, task]) = self.of.get(id.index()) else { return };
        if let Some(metrics) = self.loads.get_mut(load as usize) {
            record(metrics);
        }
        if let Some(part) = self.tasks.get_mut(task as usize) {
            record(&mut part.inside);
        }
    }

    /// The number of a task that is gone is of no part.
    pub(super) fn forget(&mut self, id: TaskId) {
        if let Some(parts) = self.of.get_mut(id.index()) {
            *parts = [NONE; 2];
        }
    }

    /// All of them: the loads in their order, then the tasks as they arrived.
    pub(super) fn finish(self) -> Vec<PartMetrics> {
        let loads = self.loads.into_iter().enumerate();
        let load = |(number, inside)| PartMetrics { part: Part::Load(number), inside };
        loads.map(load).chain(self.tasks).collect()
    }
}
