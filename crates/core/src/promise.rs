//! Promises: which CPU will pick on account of which waiting task.
//!
//! No CPU may stay idle beside a waiting task that it could take (rule 3 of the [contract](crate)).
//! A scheduler ensures that by *promising* each such task to a CPU of its own that runs nothing and
//! is about to pick: one that was kicked for it, or the one that just put it back and picks next
//! anyway. A CPU may still take another task than the one promised to it; it then hands its promise
//! on, first to the CPU that the task it took was promised to.

use alloc::vec::Vec;

use crate::canon::{Canon, Canonical};
use crate::ids::{CpuId, TaskId};
use crate::per_task::PerTask;
use crate::queue::NONE;

const NO_CPU: u16 = u16::MAX;

/// Which tasks are promised to which CPUs: at most one task per CPU, at most one CPU per task. All
/// operations O(1).
///
/// A promise holds while both sides name each other, so a single write withdraws it from either
/// side.
#[derive(Clone, Debug)]
pub struct Promises {
    /// Per CPU, the task on whose account it will pick; [`NONE`] if there is none.
    tasks: Vec<u32>,
    /// Per task, the CPU that will pick on its account; [`NO_CPU`] if there is none.
    cpus: PerTask<u16>,
}

/// A task whose promised CPU has picked another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The task.
    pub task: TaskId,
    /// The CPU that the task it picked was promised to, which can serve this one instead.
    pub freed: Option<CpuId>,
}

impl Promises {
    /// No promises among `cpus` CPUs.
    pub fn new(cpus: usize) -> Promises {
        Promises { tasks: alloc::vec![NONE; cpus], cpus: PerTask::new() }
    }

    /// Makes room for `task`, promised to no CPU. Allocates; every other operation does not.
    pub fn attach(&mut self, task: TaskId) {
        self.cpus.set(task, NO_CPU);
    }

    /// `cpu`, which runs nothing, will pick on account of `task`. Replaces earlier promises of
    /// both.
    #[inline]
    pub fn promise(&mut self, task: TaskId, cpu: CpuId) {
        self.tasks[cpu.index()] = task.0;
        self.cpus[task] = cpu.0;
    }

    /// The CPU that `task` is promised to.
    #[inline]
    pub fn cpu(&self, task: TaskId) -> Option<CpuId> {
        let cpu = self.cpus[task];
        (cpu != NO_CPU && self.tasks[usize::from(cpu)] == task.0).then_some(CpuId(cpu))
    }

    /// Whether any task is promised to `cpu`.
    #[inline]
    pub fn is_promised(&self, cpu: CpuId) -> bool {
        let task = self.tasks[cpu.index()];
        task != NONE && self.cpus[TaskId(task)] == cpu.0
    }

    /// Withdraws the promise of `task`.
    #[inline]
    pub fn withdraw(&mut self, task: TaskId) {
        self.cpus[task] = NO_CPU;
    }

    /// The same. Returns the CPU that it was promised to.
    #[inline]
    pub fn release(&mut self, task: TaskId) -> Option<CpuId> {
        let cpu = self.cpu(task);
        self.withdraw(task);
        cpu
    }

    /// `cpu` has picked `taken` or goes away. Returns the task that counted on it, if that is
    /// another one; the caller makes sure that a CPU picks on its account, if it still waits.
    #[inline]
    pub fn settle(&mut self, cpu: CpuId, taken: Option<TaskId>) -> Option<PassedOver> {
        let task = core::mem::replace(&mut self.tasks[cpu.index()], NONE);
        if task != NONE && taken != Some(TaskId(task)) {
            return self.pass_over(cpu, TaskId(task), taken);
        }
        if let Some(taken) = taken {
            self.withdraw(taken);
        }
        None
    }

    fn pass_over(&mut self, cpu: CpuId, task: TaskId, taken: Option<TaskId>) -> Option<PassedOver> {
        let freed = taken.and_then(|taken| self.release(taken));
        (self.cpus[task] == cpu.0).then_some(PassedOver { task, freed })
    }
}

impl Canonical for Promises {
    fn canon(&self, _: &(), to: &mut Canon) {
        for task in self.cpus.iter().map(|(task, _)| task) {
            self.cpu(task).canon(&(), to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn promises() -> Promises {
        let mut promises = Promises::new(3);
        promises.attach(A);
        promises.attach(B);
        promises
    }

    #[test]
    fn a_promise_is_kept_by_picking() {
        let mut promises = promises();
        promises.promise(A, CpuId(1));
        assert_eq!((promises.cpu(A), promises.is_promised(CpuId(1))), (Some(CpuId(1)), true));
        assert_eq!(promises.settle(CpuId(1), Some(A)), None);
        assert_eq!((promises.cpu(A), promises.is_promised(CpuId(1))), (None, false));
    }

    #[test]
    fn cpus_that_take_each_others_task_are_told_of_each_other() {
        let mut promises = promises();
        promises.promise(A, CpuId(1));
        promises.promise(B, CpuId(2));
        let passed_over = PassedOver { task: B, freed: Some(CpuId(1)) };
        assert_eq!(promises.settle(CpuId(2), Some(A)), Some(passed_over));
        assert!(!promises.is_promised(CpuId(1)));
        promises.promise(B, CpuId(1));
        assert_eq!(promises.settle(CpuId(1), Some(B)), None);
    }

    #[test]
    fn a_cpu_that_takes_a_task_of_another_frees_it() {
        let mut promises = promises();
        promises.promise(A, CpuId(1));
        assert_eq!(promises.settle(CpuId(0), Some(A)), None, "nobody counted on CPU 0");
        assert_eq!(promises.settle(CpuId(1), None), None, "A runs");
    }

    #[test]
    fn withdrawn_promises_bind_nobody() {
        let mut promises = promises();
        promises.promise(A, CpuId(1));
        assert_eq!(promises.release(A), Some(CpuId(1)));
        assert_eq!(promises.release(A), None);
        assert_eq!(promises.settle(CpuId(1), None), None);
        promises.promise(A, CpuId(1));
        promises.promise(A, CpuId(2));
        assert_eq!(promises.settle(CpuId(1), None), None, "A has another CPU");
        promises.promise(B, CpuId(2));
        assert_eq!((promises.cpu(A), promises.cpu(B)), (None, Some(CpuId(2))));
    }
}
