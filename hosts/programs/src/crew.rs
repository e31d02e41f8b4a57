//! The tasks of a program and what is recorded of each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

use anysched_wire::result::{self, Message};

use crate::arguments::argument;
use crate::{Kernel, Signal, Task};

/// What is recorded of a task while it runs.
#[derive(Debug, Default)]
pub struct Notes {
    arrival: AtomicU64,
    first: AtomicU64,
    finish: AtomicU64,
    groups: AtomicU64,
    slept: AtomicU64,
}

impl Notes {
    /// It has been told to sleep, or was blocked by others, for this many nanoseconds.
    pub fn sleeps(&self, span: u64) {
        self.slept.store(self.slept.load(Relaxed) + span, Relaxed);
    }

    /// Another group of its work is done.
    pub fn group_done(&self) {
        self.groups.store(self.groups.load(Relaxed) + 1, Relaxed);
    }
}

/// The tasks of a program, in the order in which they were started.
pub struct Crew<K: Kernel> {
    members: Vec<Member<K::Handle>>,
    left: Arc<Left<K::Signal>>,
    /// Whether handles are kept even of tasks whose usage is not counted.
    holds: bool,
    /// How many groups each had done when they were counted.
    counted: Option<Vec<u64>>,
}

/// How many members have not ended. The program waits for the last one, not for each: that would be
/// one more task that the scheduler has to run whenever one ends.
struct Left<S> {
    tasks: AtomicU64,
    none: S,
}

struct Member<H> {
    task: Task,
    notes: Arc<Notes>,
    /// For its usage. While an ended task is held, ArceOS's `gc` yields in a loop, which takes a
    /// share of the CPU under a fair scheduler of its own.
    started: Option<H>,
}

impl<K: Kernel> Default for Crew<K> {
    fn default() -> Crew<K> {
        Crew::new()
    }
}

impl<K: Kernel> Crew<K> {
    /// No task yet.
    pub fn new() -> Crew<K> {
        let left = Arc::new(Left { tasks: AtomicU64::new(0), none: K::Signal::default() });
        let holds = argument::<K>("hold", 0) > 0;
        Crew { members: Vec::new(), left, holds, counted: None }
    }

    /// Starts a task.
    pub fn start(&mut self, task: Task, body: impl FnOnce(&Notes) + Send + 'static) {
        self.start_late(task, K::now(), body);
    }

    /// Starts a task that was due at `arrival`.
    pub fn start_late(
        &mut self,
        task: Task,
        arrival: u64,
        body: impl FnOnce(&Notes) + Send + 'static,
    ) {
        let notes = Arc::new(Notes::default());
        notes.arrival.store(arrival, Relaxed);
        let (own, left) = (notes.clone(), self.left.clone());
        left.tasks.fetch_add(1, Relaxed);
        let body = move || {
            own.first.store(K::now(), Relaxed);
            body(&own);
            own.finish.store(K::now(), Relaxed);
            if left.tasks.fetch_sub(1, AcqRel) == 1 {
                left.none.wake();
            }
        };
        let started = K::spawn(&task, Box::new(body));
        let keep = self.holds || K::COUNTS;
        self.members.push(Member { task, notes, started: keep.then_some(started) });
    }

    /// Counts what each task has done so far, for the results.
    pub fn count(&mut self) {
        let groups = self.members.iter().map(|member| member.notes.groups.load(Relaxed));
        self.counted = Some(groups.collect());
    }

    /// Waits for all tasks.
    pub fn wait(&self) {
        self.left.none.wait_until(|| self.left.tasks.load(Acquire) == 0);
        for started in self.members.iter().filter_map(|member| member.started.as_ref()) {
            K::join(started);
        }
    }

    /// Waits for all tasks and reports what was recorded.
    pub fn finish(self) {
        self.wait();
        for (number, Member { task, notes, started }) in self.members.iter().enumerate() {
            let [arrival, first, finish, groups, slept] =
                [&notes.arrival, &notes.first, &notes.finish, &notes.groups, &notes.slept]
                    .map(|note| note.load(Relaxed));
            let groups = self.counted.as_ref().map_or(groups, |counted| counted[number]);
            let usage = started.as_ref().and_then(K::usage);
            K::say(&Message::Task(result::Task {
                name: task.name.clone(),
                arrival,
                first,
                finish,
                groups,
                slept,
                service: usage.map(|usage| usage.service),
                dispatches: usage.and_then(|usage| usage.dispatches),
            }));
        }
    }
}
