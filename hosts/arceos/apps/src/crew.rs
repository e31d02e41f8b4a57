//! The tasks of a program and what is recorded of each.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

use anysched_arceos_qemu::{boot, refuse};
use anysched_wire::result::{self, Message};
use axtask::AxTaskRef;

use crate::signal::Signal;
use crate::{Kernel, say};

/// Nanoseconds since boot.
pub fn now() -> u64 {
    axplat::time::monotonic_time_nanos()
}

/// An argument of the program, a whole number, with its default.
///
/// Refuses to run if it is not a number.
pub fn argument(name: &str, default: u64) -> u64 {
    let Some(text) = boot().argument(name) else { return default };
    match text.parse() {
        Ok(number) => number,
        Err(_) => refuse(format_args!("`{name}` = \"{text}\": a whole number is wanted")),
    }
}

/// A task, as a program describes it before it starts it.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// What the results call it.
    pub name: String,
    /// CPU time it will use in all, in nanoseconds, if the program knows.
    pub work: Option<u64>,
}

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
    /// It has been told to sleep for this many nanoseconds.
    pub fn sleeps(&self, span: u64) {
        self.slept.store(self.slept.load(Relaxed) + span, Relaxed);
    }

    /// Another group of its work is done.
    pub fn group_done(&self) {
        self.groups.store(self.groups.load(Relaxed) + 1, Relaxed);
    }
}

/// The tasks of a program, in the order in which they were started.
pub struct Crew<'a> {
    kernel: &'a Kernel,
    members: Vec<Member>,
    left: Arc<Left>,
    /// Whether handles are kept even of tasks whose usage is not counted.
    holds: bool,
    /// How many groups each had done when they were counted.
    counted: Option<Vec<u64>>,
}

/// How many members have not ended. The program waits for the last one, not for each: that would be
/// one more task that the scheduler has to run whenever one ends.
struct Left {
    tasks: AtomicU64,
    none: Signal,
}

struct Member {
    task: Task,
    notes: Arc<Notes>,
    /// For its usage. While an ended task is held, the kernel's `gc` yields in a loop, which takes
    /// a share of the CPU under a fair scheduler of ArceOS's own.
    started: Option<AxTaskRef>,
}

impl<'a> Crew<'a> {
    /// No task yet.
    pub fn new(kernel: &'a Kernel) -> Crew<'a> {
        let left = Arc::new(Left { tasks: AtomicU64::new(0), none: Signal::new() });
        let holds = argument("hold", 0) > 0;
        Crew { kernel, members: Vec::new(), left, holds, counted: None }
    }

    /// Starts a task.
    pub fn start(&mut self, task: Task, body: impl FnOnce(&Notes) + Send + 'static) {
        self.start_late(task, now(), body);
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
            own.first.store(now(), Relaxed);
            body(&own);
            own.finish.store(now(), Relaxed);
            if left.tasks.fetch_sub(1, AcqRel) == 1 {
                left.none.wake();
            }
        };
        let started = (self.kernel.spawn)(&task, Box::new(body));
        let keep = self.holds || (self.kernel.usage)(&started).is_some();
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
            started.join();
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
            let usage = started.as_ref().and_then(self.kernel.usage);
            say(&Message::Task(result::Task {
                name: task.name.clone(),
                arrival,
                first,
                finish,
                groups,
                slept,
                service: usage.map(|(service, _)| service),
                dispatches: usage.map(|(_, dispatches)| dispatches.into()),
            }));
        }
    }
}
