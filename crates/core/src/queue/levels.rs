//! Multi-level queues.

use alloc::vec::Vec;

use super::{Links, List};
use crate::canonical;
use crate::ids::TaskId;

/// Runqueues with a list per level; level 0 is the highest.
#[derive(Debug)]
pub struct Levels {
    links: Links,
    queues: Vec<Queue>,
}

#[derive(Clone, Debug)]
struct Queue {
    lists: Vec<List>,
    /// The non-empty levels, one bit each.
    occupied: u64,
    len: usize,
}

impl Levels {
    /// The most levels: a bit for each says which are occupied.
    pub const MOST: usize = 64;

    /// `queues` runqueues of `levels` levels, at most [`Levels::MOST`].
    pub fn new(queues: usize, levels: usize) -> Levels {
        let queue = Queue { lists: alloc::vec![List::default(); levels], occupied: 0, len: 0 };
        Levels { links: Links::default(), queues: alloc::vec![queue; queues] }
    }

    /// Makes room for `task`. Allocates; every other operation does not.
    pub fn attach(&mut self, task: TaskId) {
        self.links.attach(task);
    }

    /// Adds `task`, which must be in no list, at the tail of `level`.
    #[inline]
    pub fn push_back(&mut self, queue: usize, level: usize, task: TaskId) {
        let queue = &mut self.queues[queue];
        self.links.push_back(&mut queue.lists[level], task);
        queue.occupied |= 1 << level;
        queue.len += 1;
    }

    /// Adds `task`, which must be in no list, at the head of `level`.
    #[inline]
    pub fn push_front(&mut self, queue: usize, level: usize, task: TaskId) {
        let queue = &mut self.queues[queue];
        self.links.push_front(&mut queue.lists[level], task);
        queue.occupied |= 1 << level;
        queue.len += 1;
    }

    /// Takes out `task`, which must be on `level` of `queue`.
    pub fn remove(&mut self, queue: usize, level: usize, task: TaskId) {
        let queue = &mut self.queues[queue];
        self.links.remove(&mut queue.lists[level], task);
        queue.occupied &= !(u64::from(queue.lists[level].is_empty()) << level);
        queue.len -= 1;
    }

    /// Takes the first task of the highest level that `fits`.
    #[inline]
    pub fn pop(&mut self, queue: usize, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut occupied = self.queues[queue].occupied;
        while occupied != 0 {
            let level = occupied.trailing_zeros() as usize;
            let list = &self.queues[queue].lists[level];
            let first = self.links.iter(list).find(|&task| fits(task));
            if let Some(task) = first {
                self.remove(queue, level, task);
                return Some(task);
            }
            occupied &= occupied - 1;
        }
        None
    }

    /// The first task of the lowest level that `fits`.
    pub fn first_of_lowest(&self, queue: usize, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let lists = self.queues[queue].lists.iter().rev();
        lists.flat_map(|list| self.links.iter(list)).find(|&task| fits(task))
    }

    /// How many tasks are in `queue`.
    #[inline]
    pub fn len(&self, queue: usize) -> usize {
        self.queues[queue].len
    }

    /// The tasks of `queue`, highest level first.
    pub fn iter(&self, queue: usize) -> impl Iterator<Item = TaskId> + '_ {
        self.queues[queue].lists.iter().flat_map(|list| self.links.iter(list))
    }

    /// Moves the tasks of `queue` to its highest level, keeping their order.
    pub fn raise(&mut self, queue: usize) {
        let queue = &mut self.queues[queue];
        let Some((top, lower)) = queue.lists.split_first_mut() else { return };
        for list in lower {
            while let Some(task) = self.links.pop_front(list) {
                self.links.push_back(top, task);
            }
        }
        queue.occupied = u64::from(queue.len > 0);
    }

    /// Moves all tasks to the highest level of their runqueue, keeping their order.
    pub fn raise_all(&mut self) {
        (0..self.queues.len()).for_each(|queue| self.raise(queue));
    }
}

canonical!(Levels { links: fixed, queues: of(links) });
canonical!(Queue, links: Links { lists: of(links), occupied: fixed, len: fixed });

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        /// The lists of two runqueues behave as deques under any sequence of operations.
        #[test]
        fn levels_behave_as_deques(
            steps in prop::collection::vec((0..8u8, 0..2usize, 0..4usize, 0..12u32), 0..300)
        ) {
            let mut levels = Levels::new(2, 4);
            (0..12).for_each(|task| levels.attach(TaskId(task)));
            let mut plain: [[VecDeque<u32>; 4]; 2] = Default::default();
            for (step, queue, level, task) in steps {
                let queued = (0..8).find(|&n| plain[n / 4][n % 4].contains(&task));
                let fits = |id: TaskId| id.0 % 3 != task % 3;
                let fitting = |list: &VecDeque<u32>| {
                    list.iter().copied().find(|&task| fits(TaskId(task)))
                };
                match (step, queued) {
                    (0..=2, None) => {
                        levels.push_back(queue, level, TaskId(task));
                        plain[queue][level].push_back(task);
                    }
                    (3, None) => {
                        levels.push_front(queue, level, TaskId(task));
                        plain[queue][level].push_front(task);
                    }
                    (4, Some(n)) => {
                        levels.remove(n / 4, n % 4, TaskId(task));
                        plain[n / 4][n % 4].retain(|&other| other != task);
                    }
                    (5, _) => {
                        levels.raise(queue);
                        let all = plain[queue].iter_mut().flat_map(std::mem::take).collect();
                        plain[queue][0] = all;
                    }
                    _ => {
                        let spare = plain[queue].iter().rev().find_map(fitting);
                        prop_assert_eq!(levels.first_of_lowest(queue, fits), spare.map(TaskId));
                        let first = plain[queue].iter().find_map(fitting);
                        prop_assert_eq!(levels.pop(queue, fits), first.map(TaskId));
                        plain[queue].iter_mut().for_each(|list| {
                            list.retain(|&other| Some(other) != first);
                        });
                    }
                }
                for (queue, lists) in plain.iter().enumerate() {
                    let all: Vec<u32> = lists.iter().flatten().copied().collect();
                    prop_assert_eq!(levels.len(queue), all.len());
                    prop_assert!(levels.iter(queue).map(|task| task.0).eq(all));
                }
            }
        }
    }
}
