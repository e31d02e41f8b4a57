//! A value per task.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::ids::TaskId;

/// A value per task, indexed by [`TaskId`]. Grows when a task is attached; nothing else allocates.
///
/// Task numbers are dense and reused, so this is an array. Indexing panics beyond the numbers that
/// it has grown to.
#[derive(Clone, Debug)]
pub struct PerTask<T> {
    values: Vec<T>,
}

impl<T> Default for PerTask<T> {
    fn default() -> PerTask<T> {
        PerTask::new()
    }
}

impl<T> PerTask<T> {
    /// Room for no task.
    pub const fn new() -> PerTask<T> {
        PerTask { values: Vec::new() }
    }

    /// Makes room for `task` and all lower numbers; `absent` makes the values of new numbers,
    /// existing ones keep theirs. May allocate.
    #[inline]
    pub fn grow(&mut self, task: TaskId, absent: impl FnMut(TaskId) -> T) {
        let known = self.values.len();
        if known <= task.index() {
            self.values.extend((known as u32..=task.0).map(TaskId).map(absent));
        }
    }

    /// Makes room for `task` and sets its value. Missing lower numbers get the same value until
    /// they are set. May allocate.
    #[inline]
    pub fn set(&mut self, task: TaskId, value: T)
    where
        T: Clone,
    {
        self.grow(task, |_| value.clone());
        self[task] = value;
    }

    /// One more than the highest number there is room for.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is room for no task.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of `task`, if there is room for it.
    #[inline]
    pub fn get(&self, task: TaskId) -> Option<&T> {
        self.values.get(task.index())
    }

    /// All values, in the order of the tasks' numbers.
    #[inline]
    pub fn values(&self) -> core::slice::Iter<'_, T> {
        self.values.iter()
    }

    /// All values, in the order of the tasks' numbers.
    #[inline]
    pub fn values_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.values.iter_mut()
    }

    /// All tasks there is room for and their values, in the order of their numbers.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &T)> {
        (0..).map(TaskId).zip(&self.values)
    }
}

impl<T> Index<TaskId> for PerTask<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, task: TaskId) -> &T {
        &self.values[task.index()]
    }
}

impl<T> IndexMut<TaskId> for PerTask<T> {
    #[inline(always)]
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        &mut self.values[task.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_what_is_there() {
        let mut tasks = PerTask::new();
        tasks.set(TaskId(2), 'c');
        assert_eq!(tasks.values().collect::<alloc::string::String>(), "ccc");
        tasks.set(TaskId(0), 'a');
        tasks.grow(TaskId(1), |_| '?');
        tasks.grow(TaskId(4), |task| char::from(b'0' + task.0 as u8));
        assert_eq!(tasks.values().collect::<alloc::string::String>(), "acc34");
        assert_eq!((tasks.len(), tasks.get(TaskId(5))), (5, None));
        tasks[TaskId(4)] = 'e';
        assert_eq!(tasks.iter().last(), Some((TaskId(4), &'e')));
    }
}
