//! Load averages, and moving vCPUs between runqueues whose loads differ.

use alloc::string::{String, ToString};

use super::{Credit2, Credit2Params, Moving, Place, Task};
use anysched_core::canon::Canonical;
use anysched_core::ids::TaskId;
use anysched_core::params::Value;
use anysched_core::time::Time;
use anysched_core::{Canon, Cx};

/// Averages count time in units of 2^10 ns.
const GRANULARITY_SHIFT: u32 = 10;

/// A binary logarithm that may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift(pub i32);

impl Value for Shift {
    const KIND: &'static str = "number";
    fn parse(text: &str) -> Result<Shift, &'static str> {
        text.trim().parse().map(Shift).map_err(|_| "not a whole number")
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// How averages are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loads {
    /// Binary logarithm of the window, in units of time.
    window: u32,
    /// Fractional bits.
    precision: u32,
}

/// An average as of some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub average: i64,
    /// In units of time.
    updated: u64,
}

impl Load {
    /// That of a runqueue without vCPUs.
    pub fn of_nothing(now: Time) -> Load {
        Load { average: 0, updated: now.0 >> GRANULARITY_SHIFT }
    }
}

impl Loads {
    pub fn new(params: &Credit2Params) -> Loads {
        let window = params.load_window_shift - GRANULARITY_SHIFT;
        Loads { window, precision: params.load_precision_shift }
    }

    /// One half.
    pub fn of_new_task(&self, now: Time) -> Load {
        Load { average: 1 << (self.precision - 1), updated: now.0 >> GRANULARITY_SHIFT }
    }

    /// What `average`, as of `updated`, becomes by `now` if the load has been `load` since.
    fn decay(&self, average: i64, updated: u64, load: u32, now: u64) -> i64 {
        let target = i64::from(load) << self.precision;
        let passed = now.saturating_sub(updated);
        if passed > 1 << self.window {
            return target;
        }
        let part = |value: i64| ((i128::from(passed) * i128::from(value)) >> self.window) as i64;
        average + part(target) - part(average)
    }
}

/// The best move found so far.
struct Best {
    /// What remains of the difference in load.
    difference: i64,
    push: Option<TaskId>,
    pull: Option<TaskId>,
}

impl Credit2 {
    /// Brings the averages of a runqueue up to date.
    pub(super) fn decay(&mut self, queue: usize, now: Time) {
        let now = now.0 >> GRANULARITY_SHIFT;
        let queue = &mut self.queues[queue];
        let Load { average, updated } = queue.load;
        queue.expected = self.loads.decay(queue.expected, updated, queue.active, now);
        queue.load.average = self.loads.decay(average, updated, queue.active, now);
        queue.load.updated = now;
    }

    /// Adds `change` to how many vCPUs are ready or running in the runqueue of `task`.
    fn change_active(&mut self, task: TaskId, change: i32, now: Time) {
        let queue = self.task(task).queue;
        self.decay(queue, now);
        let active = &mut self.queues[queue].active;
        *active = active.saturating_add_signed(change);
    }

    /// `task` becomes ready (1), stops being ready (−1), or nothing changes (0).
    pub(super) fn change_load(&mut self, task: TaskId, change: i32, now: Time) {
        self.change_active(task, change, now);
        let counted = if change == 0 { self.counts(task) } else { change < 0 };
        self.decay_task(task, counted, now);
    }

    /// Whether `task` counts as ready or running for load.
    fn counts(&self, task: TaskId) -> bool {
        let known = self.task(task);
        known.moving == Moving::No && matches!(known.place, Place::Waiting | Place::OnCpu)
    }

    /// Brings the average of `task` up to date; `counted` says whether it was ready since the last
    /// time.
    fn decay_task(&mut self, task: TaskId, counted: bool, now: Time) {
        let now = now.0 >> GRANULARITY_SHIFT;
        let Load { average, updated } = self.task(task).load;
        let average = self.loads.decay(average, updated, u32::from(counted), now);
        self.tasks[task].load = Load { average, updated: now };
    }

    /// Moves vCPUs between this runqueue and the one that differs the most from it.
    pub(super) fn balance(&mut self, cx: &mut Cx<'_>, here: usize) {
        self.decay(here, cx.now);
        let mine = self.queues[here].expected;
        let (mut difference, mut other, mut last) = (0, None, here);
        for queue in 0..self.queues.len() {
            if self.queues[queue].cpus.is_empty() {
                continue;
            }
            last = queue;
            if queue == here {
                continue;
            }
            self.decay(queue, cx.now);
            let found = (mine - self.queues[queue].expected).abs();
            if found > difference {
                (difference, other) = (found, Some(queue));
            }
        }
        let Some(other) = other else { return };
        let most = mine.max(self.queues[last].expected);
        let cpus = self.queues[here].cpus.len().max(self.queues[last].cpus.len());
        let spare = most < (cpus as i64) << self.loads.precision;
        let shift = if spare { self.params.balance_under } else { self.params.balance_over };
        if difference < 1 << (self.loads.precision as i32 + shift.0) {
            return;
        }
        let Best { push, pull, .. } = self.best_swap(cx, here, other, difference);
        if let Some(push) = push {
            self.migrate(cx, push, other);
        }
        if let Some(pull) = pull {
            self.migrate(cx, pull, here);
        }
    }

    /// What to push from `here` to `other` and what to pull from there, for the least difference.
    fn best_swap(&mut self, cx: &mut Cx<'_>, here: usize, other: usize, difference: i64) -> Best {
        let mut best = Best { difference, push: None, pull: None };
        let mut pulls_decayed = false;
        let mut next = self.queues[here].members.front();
        while let Some(push) = next {
            next = self.members.next(push);
            self.decay_task(push, self.counts(push), cx.now);
            if !self.may_migrate(push, other) {
                continue;
            }
            let mut next = self.queues[other].members.front();
            while let Some(pull) = next {
                next = self.members.next(pull);
                cx.work.scanned += 1;
                if !pulls_decayed {
                    self.decay_task(pull, self.counts(pull), cx.now);
                }
                if self.may_migrate(pull, here) {
                    self.consider(&mut best, here, other, Some(push), Some(pull));
                }
            }
            pulls_decayed = true;
            self.consider(&mut best, here, other, Some(push), None);
        }
        let mut next = self.queues[other].members.front();
        while let Some(pull) = next {
            next = self.members.next(pull);
            if self.may_migrate(pull, here) {
                self.consider(&mut best, here, other, None, Some(pull));
            }
        }
        best
    }

    fn consider(
        &self,
        best: &mut Best,
        here: usize,
        other: usize,
        push: Option<TaskId>,
        pull: Option<TaskId>,
    ) {
        let load = |task: Option<TaskId>| task.map_or(0, |task| self.task(task).load.average);
        let moved = load(pull) - load(push);
        let (mine, theirs) = (self.queues[here].expected, self.queues[other].expected);
        let difference = (mine + moved - (theirs - moved)).abs();
        if difference < best.difference {
            *best = Best { difference, push, pull };
        }
    }

    fn may_migrate(&self, task: TaskId, to: usize) -> bool {
        let known = self.task(task);
        let allowed = |&cpu| known.affinity.contains(cpu);
        !matches!(known.moving, Moving::To(_)) && self.queues[to].cpus.iter().any(allowed)
    }

    pub(super) fn migrate(&mut self, cx: &mut Cx<'_>, task: TaskId, to: usize) {
        let Task { place, cpu, .. } = *self.task(task);
        // A vCPU that has just been parked is still there.
        if place == Place::OnCpu || self.cpus[cpu.index()].current == Some(task) {
            self.tasks[task].moving = Moving::To(to);
            return self.poke(cx, cpu);
        }
        if place != Place::Waiting {
            return self.move_to(task, to);
        }
        self.remove(task);
        self.change_active(task, -1, cx.now);
        self.move_to(task, to);
        self.change_active(task, 1, cx.now);
        self.insert(task);
        self.tickle(cx, task);
    }
}

impl Canonical for Load {
    fn canon(&self, _: &(), to: &mut Canon) {
        let Load { average, updated } = self;
        average.canon(&(), to);
        Time(updated << GRANULARITY_SHIFT).canon(&(), to);
    }
}
