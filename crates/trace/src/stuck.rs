//! Who waits for whom when nothing can happen any more.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use anysched_core::TaskId;

use crate::{Event, Kind, Sink, TaskInfo};

/// What a task waits for that does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// A lock.
    Lock {
        /// Its number.
        lock: u32,
        /// Who holds it; `None`: a task that has ended without giving it back.
        holder: Option<TaskId>,
    },
    /// Others at a barrier.
    Barrier {
        /// Its number.
        barrier: u32,
        /// How many are there, itself among them.
        present: u32,
        /// How many have to be.
        party: u32,
    },
    /// A signal or a message.
    Channel {
        /// Its number.
        channel: u32,
    },
}

/// Collects what tasks wait for at the end of a run. Its memory depends on how many tasks there are
/// at a time.
#[derive(Debug, Default)]
pub struct Waits {
    names: BTreeMap<TaskId, String>,
    waits: BTreeMap<TaskId, Stuck>,
}

/// How many tasks are named of those that wait for the same.
const NAMED: usize = 5;

impl Waits {
    /// What is stuck, a line for each: circles of locks first, then what waits for one of these,
    /// for a lock that is never given back, or at a barrier. Empty: nothing, or tasks that wait for
    /// signals or messages only, as servers do.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut told: Vec<TaskId> = Vec::new();
        for &task in self.waits.keys() {
            let circle = self.circle(task);
            if circle.is_empty() || told.contains(&task) {
                continue;
            }
            let parts = circle.iter().map(|&task| {
                let (lock, holder) = self.lock(task).unwrap_or_default();
                let holder = holder.map_or_else(String::new, |holder| self.name(holder));
                format!("{} waits for lock {lock}, which {holder} holds", self.name(task))
            });
            lines.push(format!("deadlock: {}", parts.collect::<Vec<_>>().join("; ")));
            told.extend(circle);
        }
        let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (&task, on) in self.waits.iter().filter(|(task, _)| !told.contains(task)) {
            let what = match *on {
                Stuck::Lock { lock, holder: Some(holder) } => {
                    format!("for lock {lock}, which {} holds", self.name(holder))
                }
                Stuck::Lock { lock, holder: None } => {
                    format!("for lock {lock}, whose holder has ended without giving it back")
                }
                Stuck::Barrier { barrier, present, party } => {
                    format!("at barrier {barrier}, where only {present} of {party} are")
                }
                Stuck::Channel { .. } => continue,
            };
            others.entry(what).or_default().push(self.name(task));
        }
        for (what, tasks) in others {
            let more = match tasks.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names: Vec<String> = tasks.into_iter().take(NAMED).collect();
            let verb = if names.len() == 1 { "waits" } else { "wait" };
            lines.push(format!("{}{more} {verb} for ever {what}", names.join(", ")));
        }
        lines
    }

    fn name(&self, task: TaskId) -> String {
        self.names.get(&task).cloned().unwrap_or_else(|| format!("task number {}", task.0))
    }

    /// The lock for which a task waits, and who holds it.
    fn lock(&self, task: TaskId) -> Option<(u32, Option<TaskId>)> {
        match self.waits.get(&task) {
            Some(&Stuck::Lock { lock, holder }) => Some((lock, holder)),
            _ => None,
        }
    }

    /// The circle in which a task waits for itself, from that task on; empty: there is none.
    fn circle(&self, task: TaskId) -> Vec<TaskId> {
        let mut circle = alloc::vec![task];
        let mut next = self.lock(task).and_then(|(_, holder)| holder);
        while let Some(holder) = next {
            if holder == task {
                return circle;
            }
            if circle.len() > self.waits.len() {
                // It leads to a circle in which it is not.
                break;
            }
            circle.push(holder);
            next = self.lock(holder).and_then(|(_, holder)| holder);
        }
        Vec::new()
    }
}

impl Sink for Waits {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.names.insert(info.task, info.label().to_string());
    }
    fn event(&mut self, event: &Event) {
        if let Kind::Switch { prev: Some((task, anysched_core::Off::Exited)), .. } = event.kind {
            self.names.remove(&task);
        }
    }
    fn stuck(&mut self, task: TaskId, on: Stuck) {
        self.waits.insert(task, on);
    }
}
