//! Channels, locks and barriers of a load, and the tasks that wait at them.

use anysched_core::queue::{Links, List};
use anysched_core::{TaskId, Time};
use anysched_trace::stuck::Stuck;
use anysched_workload::{Barrier, Channel, Lock, Sizes};
use std::collections::VecDeque;

/// A task waits at no more than one object, so all queues share one arena of links.
#[derive(Debug, Default)]
pub(super) struct Objects {
    links: Links,
    /// When the stored signals were sent, and who waits.
    channels: Vec<(VecDeque<Time>, List)>,
    locks: Vec<(Option<TaskId>, List)>,
    barriers: Vec<(u32, List)>,
    /// When the message that a task has was sent, by task; `NEVER`: it has none. Grows only to the
    /// highest-numbered task that ever had one: empty if no task waits at a channel.
    messages: Vec<Time>,
}

impl Objects {
    pub(super) fn new(sizes: &Sizes) -> Objects {
        Objects {
            links: Links::default(),
            channels: vec![Default::default(); sizes.channels as usize],
            locks: vec![(None, List::default()); sizes.locks as usize],
            barriers: sizes.barriers.iter().map(|&n| (n.max(1), List::default())).collect(),
            messages: Vec::new(),
        }
    }

    fn wait(links: &mut Links, list: &mut List, task: TaskId) {
        links.attach(task);
        links.push_back(list, task);
    }

    /// When the stored signal that `task` takes was sent; without one, the task waits.
    pub(super) fn take(&mut self, channel: Channel, task: TaskId) -> Option<Time> {
        let (stored, list) = &mut self.channels[channel.0 as usize];
        if stored.is_empty() {
            Objects::wait(&mut self.links, list, task);
        }
        stored.pop_front()
    }

    /// The first waiting task, to be woken; if there is none, the signal is stored with the time at
    /// which it was sent, if given.
    pub(super) fn signal(&mut self, channel: Channel, sent: Option<Time>) -> Option<TaskId> {
        let (stored, list) = &mut self.channels[channel.0 as usize];
        let woken = self.links.pop_front(list);
        if woken.is_none() {
            stored.extend(sent);
        }
        woken
    }

    /// Gives `task` the message sent at `sent`, in place of the one it had.
    pub(super) fn give_message(&mut self, task: TaskId, sent: Time) {
        if task.index() >= self.messages.len() {
            self.messages.resize(task.index() + 1, Time::NEVER);
        }
        self.messages[task.index()] = sent;
    }

    /// Takes the message away from `task` and returns when it was sent.
    pub(super) fn take_message(&mut self, task: TaskId) -> Option<Time> {
        let sent = std::mem::replace(self.messages.get_mut(task.index())?, Time::NEVER);
        (sent != Time::NEVER).then_some(sent)
    }

    /// Whether `task` got the lock; otherwise it waits. Locking again while holding it is allowed.
    pub(super) fn lock(&mut self, lock: Lock, task: TaskId) -> bool {
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

    /// Hands the lock, if `task` holds it, to the first task that waits for it, which is to be
    /// woken.
    pub(super) fn unlock(&mut self, lock: Lock, task: TaskId) -> Option<TaskId> {
        let (holder, list) = &mut self.locks[lock.0 as usize];
        if *holder != Some(task) {
            return None;
        }
        *holder = self.links.pop_front(list);
        *holder
    }

    /// Whether `task` completes the barrier; otherwise it waits. On completion
    /// [`Objects::next_met`] yields the tasks that waited.
    pub(super) fn meet(&mut self, barrier: Barrier, task: TaskId) -> bool {
        let (party, list) = &mut self.barriers[barrier.0 as usize];
        if list.len() + 1 >= *party as usize {
            return true;
        }
        Objects::wait(&mut self.links, list, task);
        false
    }

    /// The tasks that wait, and for what.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (TaskId, Stuck)> + '_ {
        let all = |list: &'_ List| self.links.iter(list).collect::<Vec<_>>();
        let channels = (0..).zip(&self.channels).flat_map(move |(channel, (_, list))| {
            all(list).into_iter().map(move |task| (task, Stuck::Channel { channel }))
        });
        let locks = (0..).zip(&self.locks).flat_map(move |(lock, &(holder, ref list))| {
            all(list).into_iter().map(move |task| (task, Stuck::Lock { lock, holder }))
        });
        let barriers = (0..).zip(&self.barriers).flat_map(move |(barrier, &(party, ref list))| {
            let present = list.len() as u32;
            let on = Stuck::Barrier { barrier, present, party };
            all(list).into_iter().map(move |task| (task, on))
        });
        channels.chain(locks).chain(barriers)
    }

    pub(super) fn next_met(&mut self, barrier: Barrier) -> Option<TaskId> {
        let (_, list) = &mut self.barriers[barrier.0 as usize];
        self.links.pop_front(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_memory_only_where_there_are_some() {
        let mut objects = Objects::new(&Sizes::default());
        assert_eq!(objects.take_message(TaskId(1_000_000)), None);
        assert_eq!(objects.messages.capacity(), 0);
        objects.give_message(TaskId(2), Time(5));
        objects.give_message(TaskId(2), Time(7));
        assert_eq!(objects.take_message(TaskId(1)), None);
        assert_eq!(objects.take_message(TaskId(2)), Some(Time(7)));
        assert_eq!(objects.take_message(TaskId(2)), None);
    }
}
