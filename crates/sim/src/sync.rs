//! Channels, locks and barriers of a load, and who waits at them.

use anysched_core::TaskId;
use anysched_core::queue::{Links, List};
use anysched_workload::{Barrier, Channel, Lock, Sizes};

/// A task waits at no more than one object, so that all queues share one arena of links.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    links: Links,
    channels: Vec<(u64, List)>,
    locks: Vec<(Option<TaskId>, List)>,
    barriers: Vec<(u32, List)>,
}

impl Objects {
    pub(crate) fn new(sizes: &Sizes) -> Objects {
        Objects {
            links: Links::default(),
            channels: vec![(0, List::default()); sizes.channels as usize],
            locks: vec![(None, List::default()); sizes.locks as usize],
            barriers: sizes.barriers.iter().map(|&n| (n.max(1), List::default())).collect(),
        }
    }

    fn wait(links: &mut Links, list: &mut List, task: TaskId) {
        links.attach(task);
        links.push_back(list, task);
    }

    /// Whether `task` took a stored signal; otherwise it waits for one.
    pub(crate) fn take(&mut self, channel: Channel, task: TaskId) -> bool {
        let (stored, list) = &mut self.channels[channel.0 as usize];
        if *stored > 0 {
            *stored -= 1;
            return true;
        }
        Objects::wait(&mut self.links, list, task);
        false
    }

    /// The first task that waits, which is to be woken; if there is none, `store` keeps the
    /// signal.
    pub(crate) fn signal(&mut self, channel: Channel, store: bool) -> Option<TaskId> {
        let (stored, list) = &mut self.channels[channel.0 as usize];
        let woken = self.links.pop_front(list);
        if woken.is_none() && store {
            *stored += 1;
        }
        woken
    }

    /// Whether `task` got the lock; otherwise it waits for it. Taking it twice keeps it.
    pub(crate) fn lock(&mut self, lock: Lock, task: TaskId) -> bool {
        let (holder, list) = &mut self.locks[lock.0 as usize];
        match holder {
            None => *holder = Some(task),
            Some(holder) if *holder != task => {
                Objects::wait(&mut self.links, list, task);
                return false;
            }
            Some(_) => {}
        }
        true
    }

    /// Gives the lock, if `task` holds it, to the first task that waits for it, which is to be
    /// woken.
    pub(crate) fn unlock(&mut self, lock: Lock, task: TaskId) -> Option<TaskId> {
        let (holder, list) = &mut self.locks[lock.0 as usize];
        if *holder != Some(task) {
            return None;
        }
        *holder = self.links.pop_front(list);
        *holder
    }

    /// Whether `task` completes the meeting; otherwise it waits. On completion
    /// [`Objects::next_met`] yields those that waited.
    pub(crate) fn meet(&mut self, barrier: Barrier, task: TaskId) -> bool {
        let (party, list) = &mut self.barriers[barrier.0 as usize];
        if list.len() + 1 >= *party as usize {
            return true;
        }
        Objects::wait(&mut self.links, list, task);
        false
    }

    pub(crate) fn next_met(&mut self, barrier: Barrier) -> Option<TaskId> {
        let (_, list) = &mut self.barriers[barrier.0 as usize];
        self.links.pop_front(list)
    }
}
