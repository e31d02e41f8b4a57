//! State of tasks by their numbers, which the simulator keeps dense.

use crate::Op;
use anysched_core::{Span, TaskId};
use std::ops::{Index, IndexMut};

/// A value for each task that has been started.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerTask<T>(Vec<T>);

impl<T: Clone + Default> PerTask<T> {
    #[inline]
    pub(crate) fn set(&mut self, task: TaskId, value: T) {
        if self.0.len() <= task.index() {
            self.0.resize(task.index() + 1, T::default());
        }
        self.0[task.index()] = value;
    }
}

impl<T> Index<TaskId> for PerTask<T> {
    type Output = T;
    #[inline]
    fn index(&self, task: TaskId) -> &T {
        &self.0[task.index()]
    }
}

impl<T> IndexMut<TaskId> for PerTask<T> {
    #[inline]
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        &mut self.0[task.index()]
    }
}

/// Tasks that run once and exit: the run still to be asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct OneRun(PerTask<Option<Span>>);

impl OneRun {
    #[inline]
    pub(crate) fn start(&mut self, task: TaskId, service: Span) {
        self.0.set(task, Some(service));
    }

    #[inline]
    pub(crate) fn step(&mut self, task: TaskId) -> Op {
        self.0[task].take().map_or(Op::Exit, Op::Run)
    }
}
