//! What tasks wait for and wake each other by: channels, locks and barriers.
//!
//! Whoever waits is let go in the order in which it came, and what it waited for is handed to it:
//! nobody that comes later takes it first.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;

use anysched_core::TaskId;
use anysched_wire::script::Step;

/// A message, or a signal, which counts as one.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// When it was sent, in nanoseconds of Xen's time.
    pub sent: u64,
    /// What whoever takes it does about it.
    pub brings: &'static [Step],
}

/// Stored signals, and tasks that wait for one.
#[derive(Debug, Default)]
struct Channel {
    stored: VecDeque<Message>,
    waiting: VecDeque<TaskId>,
}

/// Who holds a lock, and who waits for it.
#[derive(Debug, Default)]
struct Held {
    by: Option<TaskId>,
    waiting: VecDeque<TaskId>,
}

/// All channels, locks and barriers, by number.
#[derive(Debug, Default)]
pub struct Among {
    channels: BTreeMap<u32, Channel>,
    locks: BTreeMap<u32, Held>,
    barriers: BTreeMap<u32, Vec<TaskId>>,
}

/// A task that is let go, and with what, if it has waited on a channel.
pub type Freed = (TaskId, Option<Message>);

/// What becomes of the task that does a step.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It goes on.
    GoesOn,
    /// It goes on with this message.
    Takes(Message),
    /// It waits until it is let go.
    Waits,
    /// It waits on its CPU.
    Spins,
}

impl Among {
    /// `task` does a step at `now` in which others may have a part; those that it lets go are added
    /// to `free`, with the signal that each has waited for.
    pub fn step(&mut self, task: TaskId, step: &Step, now: u64, free: &mut Vec<Freed>) -> Fate {
        let signal = Message { sent: now, brings: &[] };
        match step {
            Step::Wait(channel) => {
                let channel = self.channels.entry(*channel).or_default();
                let Some(message) = channel.stored.pop_front() else {
                    channel.waiting.push_back(task);
                    return Fate::Waits;
                };
                return Fate::Takes(message);
            }
            Step::Post(channel) => self.receive(*channel, signal, free),
            Step::Notify(channel) => drop(self.signal(*channel, signal, free)),
            Step::Broadcast(channel) => {
                let channel = self.channels.entry(*channel).or_default();
                free.extend(channel.waiting.drain(..).map(|task| (task, Some(signal))));
            }
            Step::Lock(lock) => return self.lock(task, *lock, Fate::Waits),
            Step::Spin(lock) => return self.lock(task, *lock, Fate::Spins),
            Step::Unlock(lock) => {
                let lock = self.locks.entry(*lock).or_default();
                if lock.by == Some(task) {
                    lock.by = lock.waiting.pop_front();
                    free.extend(lock.by.map(|task| (task, None)));
                }
            }
            Step::Meet { barrier, tasks } => {
                let here = self.barriers.entry(*barrier).or_default();
                if here.len() as u64 + 1 < u64::from(*tasks) {
                    here.push(task);
                    return Fate::Waits;
                }
                free.extend(mem::take(here).into_iter().map(|task| (task, None)));
            }
            _ => {}
        }
        Fate::GoesOn
    }

    /// A message comes to a channel; it is kept if nobody waits.
    pub fn receive(&mut self, channel: u32, message: Message, free: &mut Vec<Freed>) {
        if let Some(message) = self.signal(channel, message, free) {
            self.channels.entry(channel).or_default().stored.push_back(message);
        }
    }

    /// Hands a message to the first task that waits for one. Returns it, if there is none.
    fn signal(&mut self, channel: u32, message: Message, free: &mut Vec<Freed>) -> Option<Message> {
        let channel = self.channels.entry(channel).or_default();
        let Some(first) = channel.waiting.pop_front() else { return Some(message) };
        free.push((first, Some(message)));
        None
    }

    fn lock(&mut self, task: TaskId, lock: u32, otherwise: Fate) -> Fate {
        let lock = self.locks.entry(lock).or_default();
        if lock.by.is_none() {
            lock.by = Some(task);
            return Fate::GoesOn;
        }
        lock.waiting.push_back(task);
        otherwise
    }
}
