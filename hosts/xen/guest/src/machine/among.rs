//! What tasks wait for and wake each other by: channels, locks and barriers.
//!
//! Whoever waits is let go in the order in which it came, and what it waited for is handed to it:
//! nobody that comes later takes it first.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;

use anysched_core::TaskId;
use anysched_wire::script::Step;

/// Stored signals, and tasks that wait for one.
#[derive(Debug, Default)]
struct Channel {
    stored: u64,
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

/// What becomes of the task that does a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    GoesOn,
    /// It waits until it is let go.
    Waits,
    /// It waits on its CPU.
    Spins,
}

impl Among {
    /// `task` does a step in which others may have a part; those that it lets go are added to
    /// `free`.
    pub fn step(&mut self, task: TaskId, step: &Step, free: &mut Vec<TaskId>) -> Fate {
        match step {
            Step::Wait(channel) => {
                let channel = self.channels.entry(*channel).or_default();
                if channel.stored == 0 {
                    channel.waiting.push_back(task);
                    return Fate::Waits;
                }
                channel.stored -= 1;
            }
            Step::Post(channel) => self.signal(*channel, true, free),
            Step::Notify(channel) => self.signal(*channel, false, free),
            Step::Broadcast(channel) => {
                let channel = self.channels.entry(*channel).or_default();
                free.extend(channel.waiting.drain(..));
            }
            Step::Lock(lock) => return self.lock(task, *lock, Fate::Waits),
            Step::Spin(lock) => return self.lock(task, *lock, Fate::Spins),
            Step::Unlock(lock) => {
                let lock = self.locks.entry(*lock).or_default();
                if lock.by == Some(task) {
                    lock.by = lock.waiting.pop_front();
                    free.extend(lock.by);
                }
            }
            Step::Meet { barrier, tasks } => {
                let here = self.barriers.entry(*barrier).or_default();
                if here.len() as u64 + 1 < u64::from(*tasks) {
                    here.push(task);
                    return Fate::Waits;
                }
                free.extend(mem::take(here));
            }
            _ => {}
        }
        Fate::GoesOn
    }

    fn signal(&mut self, channel: u32, is_stored: bool, free: &mut Vec<TaskId>) {
        let channel = self.channels.entry(channel).or_default();
        match channel.waiting.pop_front() {
            Some(first) => free.push(first),
            None => channel.stored += u64::from(is_stored),
        }
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
