//! Doubly linked lists of tasks.

use core::ops::{Index, IndexMut};

use super::NONE;
use crate::canon::{self, Canon, Canonical};
use crate::ids::TaskId;
use crate::per_task::PerTask;

/// The links of all tasks of a policy, each of which is in at most one [`List`] at a time, and what
/// else the policy keeps of each task, `T`.
#[derive(Clone, Debug, Default)]
pub struct Links<T = ()> {
    nodes: PerTask<Link<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Link<T> {
    /// Undefined for the head: popping does not update its successor.
    prev: u32,
    next: u32,
    data: T,
}

impl<T> Index<TaskId> for Links<T> {
    type Output = T;

    #[inline]
    fn index(&self, task: TaskId) -> &T {
        &self.nodes[task].data
    }
}

impl<T> IndexMut<TaskId> for Links<T> {
    #[inline]
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        &mut self.nodes[task].data
    }
}

/// A first-in first-out list. All operations O(1).
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    /// Undefined without a head.
    tail: u32,
    /// How many tasks have been added and removed. Two counters make a shorter dependency chain
    /// than a single length that both operations change.
    came: u32,
    went: u32,
}

impl Default for List {
    fn default() -> List {
        List { head: NONE, tail: NONE, came: 0, went: 0 }
    }
}

impl<T: Default> Links<T> {
    /// Makes room for `task`. Allocates; every other operation does not.
    pub fn attach(&mut self, task: TaskId) {
        self.nodes.grow(task, |_| Link { prev: NONE, next: NONE, data: T::default() });
    }
}

impl<T> Links<T> {
    #[inline]
    fn set(&mut self, task: TaskId, prev: u32, next: u32) {
        let link = &mut self.nodes[task];
        link.prev = prev;
        link.next = next;
    }

    /// Adds `task`, which must be in no list, at the tail.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, task: TaskId) {
        self.set(task, list.tail, NONE);
        match list.head {
            NONE => list.head = task.0,
            _ => self.nodes[TaskId(list.tail)].next = task.0,
        }
        list.tail = task.0;
        list.came = list.came.wrapping_add(1);
    }

    /// Adds `task`, which must be in no list, at the head.
    #[inline]
    pub fn push_front(&mut self, list: &mut List, task: TaskId) {
        self.set(task, NONE, list.head);
        match list.head {
            NONE => list.tail = task.0,
            head => self.nodes[TaskId(head)].prev = task.0,
        }
        list.head = task.0;
        list.came = list.came.wrapping_add(1);
    }

    /// Adds `task`, which must be in no list, before `next`, which must be in `list`; at the tail
    /// if that is `None`.
    pub fn insert_before(&mut self, list: &mut List, next: Option<TaskId>, task: TaskId) {
        let Some(next) = next else { return self.push_back(list, task) };
        if list.head == next.0 {
            return self.push_front(list, task);
        }
        let prev = self.nodes[next].prev;
        self.set(task, prev, next.0);
        self.nodes[TaskId(prev)].next = task.0;
        self.nodes[next].prev = task.0;
        list.came = list.came.wrapping_add(1);
    }

    /// The task after `task`, which must be in a list.
    #[inline]
    pub fn next(&self, task: TaskId) -> Option<TaskId> {
        let next = self.nodes[task].next;
        (next != NONE).then_some(TaskId(next))
    }

    /// Removes and returns the head.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<TaskId> {
        let head = list.head;
        if head == NONE {
            return None;
        }
        list.head = self.nodes[TaskId(head)].next;
        list.went = list.went.wrapping_add(1);
        Some(TaskId(head))
    }

    /// Removes and returns the first task that `fits`.
    #[inline]
    pub fn pop_first_fit(
        &mut self,
        list: &mut List,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        if fits(list.front()?) {
            return self.pop_front(list);
        }
        let task = self.iter(list).find(|&task| fits(task))?;
        self.remove(list, task);
        Some(task)
    }

    /// Moves `task`, which must be in `list`, to its tail.
    #[inline]
    pub fn move_back(&mut self, list: &mut List, task: TaskId) {
        if list.tail != task.0 {
            self.remove(list, task);
            self.push_back(list, task);
        }
    }

    /// Removes `task`, which must be in `list`.
    pub fn remove(&mut self, list: &mut List, task: TaskId) {
        let Link { prev, next, .. } = self.nodes[task];
        match list.head == task.0 {
            true => list.head = next,
            false => self.nodes[TaskId(prev)].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.nodes[TaskId(next)].prev = prev,
        }
        list.went = list.went.wrapping_add(1);
    }

    /// The tasks of `list` from head to tail.
    pub fn iter<'a>(&'a self, list: &List) -> impl Iterator<Item = TaskId> + use<'a, T> {
        let mut at = list.head;
        core::iter::from_fn(move || {
            if at == NONE {
                return None;
            }
            let task = TaskId(at);
            at = self.nodes[task].next;
            Some(task)
        })
    }
}

impl List {
    /// How many tasks are in the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.came.wrapping_sub(self.went) as usize
    }

    /// Whether no task is in the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The head.
    #[inline]
    pub fn front(&self) -> Option<TaskId> {
        (self.head != NONE).then_some(TaskId(self.head))
    }
}

impl<T> Canonical<Links<T>> for List {
    fn canon(&self, links: &Links<T>, to: &mut Canon) {
        canon::tasks(links.iter(self), to);
    }
}

/// What is kept of each task.
impl<T: Canonical> Canonical for Links<T> {
    fn canon(&self, _: &(), to: &mut Canon) {
        self.nodes.values().for_each(|node| node.data.canon(&(), to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        /// Two lists over one arena behave as two deques.
        #[test]
        fn lists_behave_as_deques(
            steps in prop::collection::vec((0..6u8, 0..2usize, 0..12u32), 0..300)
        ) {
            let mut links: Links = Links::default();
            let mut lists = [List::default(); 2];
            let mut model = [VecDeque::new(), VecDeque::new()];
            (0..12).for_each(|task| links.attach(TaskId(task)));
            for (step, which, task) in steps {
                let queued = model.iter().position(|deque| deque.contains(&task));
                match (step, queued) {
                    (0 | 1, None) => {
                        links.push_back(&mut lists[which], TaskId(task));
                        model[which].push_back(task);
                    }
                    (2, None) => {
                        links.push_front(&mut lists[which], TaskId(task));
                        model[which].push_front(task);
                    }
                    (5, None) => {
                        let before = model[which].get(task as usize / 2).copied();
                        let at = before.map_or(model[which].len(), |_| task as usize / 2);
                        links.insert_before(&mut lists[which], before.map(TaskId), TaskId(task));
                        model[which].insert(at, task);
                    }
                    (3, Some(which)) => {
                        links.remove(&mut lists[which], TaskId(task));
                        model[which].retain(|&other| other != task);
                    }
                    _ => {
                        let popped = links.pop_front(&mut lists[which]);
                        prop_assert_eq!(popped.map(|task| task.0), model[which].pop_front());
                    }
                }
                for (list, deque) in lists.iter().zip(&model) {
                    prop_assert!(links.iter(list).map(|task| task.0).eq(deque.iter().copied()));
                    for (nth, &task) in deque.iter().enumerate() {
                        let next = links.next(TaskId(task)).map(|task| task.0);
                        prop_assert_eq!(next, deque.get(nth + 1).copied());
                    }
                    prop_assert_eq!(list.len(), deque.len());
                    prop_assert_eq!(list.front().map(|task| task.0), deque.front().copied());
                }
            }
        }
    }
}
