//! Extra time: CPU time to which no vCPU has a right at the moment. Two queues per CPU, the lowest
//! score first, behind equals: L0 for vCPUs that lost time to a short block, which are served first
//! and leave it after one turn; L1 for all that may use extra time.
//!
//! A turn on L1 sets the score to 2^17 / extraweight (without an extraweight, to the inverse of the
//! utilisation in 1/1024) and subtracts the previous score from all others there: scores are
//! virtual start times, and turns come out in proportion to the weights.

use super::{Order, Sedf};
use anysched_core::canonical;
use anysched_core::ids::TaskId;

/// A turn of extra time, and the least time that must be left until a period starts, in ns.
pub(super) const EXTRA_QUANTUM: i64 = 500_000;

/// Which queue for extra time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// L0.
    Penalty = 0,
    /// L1.
    Utilisation = 1,
}

impl<O: Order> Sedf<O> {
    /// Adds `task` by its score, after deducting `subtract` from all others'.
    pub(super) fn join_extra(&mut self, task: TaskId, level: Level, subtract: i64) {
        let index = level as usize;
        let vcpu = &mut self.tasks[task.index()];
        let on = &mut self.cpus[vcpu.cpu.index()];
        let queue = &mut on.extraq[index];
        let mut key = vcpu.scores[index];
        if level == Level::Utilisation {
            on.subtracted = if queue.is_empty() { 0 } else { on.subtracted + subtract };
            key += on.subtracted;
        }
        vcpu.in_extraq[index] = true;
        self.extra[index].insert(queue, task, key, ());
    }

    /// Takes `task` out if it is in.
    pub(super) fn leave_extra(&mut self, task: TaskId, level: Level) {
        let index = level as usize;
        let score = self.score(task, level);
        let vcpu = &mut self.tasks[task.index()];
        if core::mem::take(&mut vcpu.in_extraq[index]) {
            vcpu.scores[index] = score;
            self.extra[index].remove(&mut self.cpus[vcpu.cpu.index()].extraq[index], task);
        }
    }

    /// The score of `task` as of now.
    pub(super) fn score(&self, task: TaskId, level: Level) -> i64 {
        let vcpu = &self.tasks[task.index()];
        if level == Level::Penalty || !vcpu.in_extraq[level as usize] {
            return vcpu.scores[level as usize];
        }
        self.extra[level as usize].key(task) - self.cpus[vcpu.cpu.index()].subtracted
    }

    /// `task` has had its turn.
    pub(super) fn end_extra(&mut self, task: TaskId, level: Level, runnable: bool) {
        self.leave_extra(task, level);
        let vcpu = &mut self.tasks[task.index()];
        vcpu.used = 0;
        let old = vcpu.scores[level as usize];
        match level {
            Level::Penalty => vcpu.wants_penalty = false,
            Level::Utilisation => vcpu.scores[level as usize] = vcpu.score_of_turn(),
        }
        if !runnable {
            self.remove(task);
        } else if level == Level::Utilisation && self.params.extra {
            self.join_extra(task, level, old);
        }
    }
}

impl super::Vcpu {
    fn score_of_turn(&self) -> i64 {
        match self.extraweight {
            0 => (self.now.period << 10) / self.now.slice.max(1),
            weight => ((1 << 17) / i64::from(weight)).max(1),
        }
    }
}

canonical!(Level: u64);
