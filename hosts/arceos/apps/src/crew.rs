//! The tasks of a program and what is noted of each.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anysched_arceos_qemu::boot;
use axtask::AxTaskRef;
use std::{print, println};

use crate::Kernel;

/// Nanoseconds since boot.
pub fn now() -> u64 {
    axplat::time::monotonic_time_nanos()
}

/// An argument of the program, a whole number, with its default.
///
/// Panics if it is not a number.
pub fn argument(name: &str, default: u64) -> u64 {
    let Some(text) = boot().argument(name) else { return default };
    match text.parse() {
        Ok(number) => number,
        Err(_) => panic!("`{name}` = \"{text}\": a whole number is wanted"),
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

/// What is noted of a task while it runs.
#[derive(Debug, Default)]
pub struct Notes {
    arrival: AtomicU64,
    first: AtomicU64,
    finish: AtomicU64,
    groups: AtomicU64,
    slept: AtomicU64,
}

impl Notes {
    /// It has been told to sleep for so many nanoseconds.
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
    /// How many groups each had done when they were counted.
    counted: Option<Vec<u64>>,
}

struct Member {
    task: Task,
    notes: Arc<Notes>,
    started: AxTaskRef,
}

impl<'a> Crew<'a> {
    /// Nobody yet.
    pub fn new(kernel: &'a Kernel) -> Crew<'a> {
        Crew { kernel, members: Vec::new(), counted: None }
    }

    /// Starts a task.
    pub fn start(&mut self, task: Task, body: impl FnOnce(&Notes) + Send + 'static) {
        let notes = Arc::new(Notes::default());
        notes.arrival.store(now(), Relaxed);
        let own = notes.clone();
        let body = move || {
            own.first.store(now(), Relaxed);
            body(&own);
            own.finish.store(now(), Relaxed);
        };
        let started = (self.kernel.spawn)(&task, Box::new(body));
        self.members.push(Member { task, notes, started });
    }

    /// Counts what each has done so far, for the results.
    pub fn count(&mut self) {
        let groups = self.members.iter().map(|member| member.notes.groups.load(Relaxed));
        self.counted = Some(groups.collect());
    }

    /// Waits for all tasks and prints what was noted.
    pub fn finish(self) {
        for member in &self.members {
            member.started.join();
        }
        for (number, Member { task, notes, started }) in self.members.iter().enumerate() {
            let [arrival, first, finish, groups, slept] =
                [&notes.arrival, &notes.first, &notes.finish, &notes.groups, &notes.slept]
                    .map(|note| note.load(Relaxed));
            let groups = self.counted.as_ref().map_or(groups, |counted| counted[number]);
            print!("@task {} arrival={arrival} first={first} finish={finish}", task.name);
            print!(" groups={groups} slept={slept}");
            match (self.kernel.usage)(started) {
                Some((service, dispatches)) => {
                    println!(" service={service} dispatches={dispatches}");
                }
                None => println!(),
            }
        }
    }
}
