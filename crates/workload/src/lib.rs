//! Load models: what tasks there are and what each of them does.
//!
//! The simulator asks a [`Load`] for one operation at a time, so endless and random loads need no
//! memory. Generators (closed batch, Poisson, closed loop, periodic, interactive) and imported
//! [`model::Model`]s (recordings, rt-app files) are loads; [`mix::Mix`] joins several.

#![forbid(unsafe_code)]

pub mod dist;
pub mod extent;
pub mod generate;
pub mod import;
pub mod kinds;
pub mod mix;
pub mod model;
pub mod model_load;
pub mod nearest;
mod per_task;
#[cfg(test)]
mod play;
pub mod rng;
pub mod steps;
pub mod tasks_csv;

pub use kinds::{KINDS, KeyInfo, KindInfo, Needs};

use anysched_core::{CpuSet, DomainId, Span, TaskId, Time};
use std::sync::Arc;

/// A counter of stored signals on which tasks wait: `0 .. Sizes::channels`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Channel(pub u32);

/// A sleeping mutex, handed over first come, first served: `0 .. Sizes::locks`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Lock(pub u32);

/// A meeting point of a fixed number of tasks: `0 .. Sizes::barriers.len()`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Barrier(pub u32);

/// A way out of the machine; whoever runs the machine decides where it leads.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Port(pub u32);

/// The next thing a task does. All but [`Op::Run`] take no time of their own; a task does them when
/// it is on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Uses this much CPU time of the fastest CPU. Zero is allowed.
    Run(Span),
    /// Sleeps for this long from now. Zero does nothing.
    Sleep(Span),
    /// Ends the current job and begins the next, which is released at `at`: blocks until then if
    /// that is in the future. The job's response time counts from `at`.
    Release {
        /// When the next job may begin.
        at: Time,
        /// When it must be done.
        deadline: Option<Time>,
    },
    /// Takes a stored signal, or blocks until one comes. If the signal is a message, the task holds
    /// it from then on, in place of any earlier one; any other signal counts as a message sent just
    /// then.
    Wait(Channel),
    /// Wakes the first waiting task, or stores the signal, as a semaphore does.
    Signal(Channel),
    /// The same by writing to a pipe or a socket, or by reading from a full one: the kernel takes
    /// it that the waker waits for the other soon, which Linux calls a sync wake-up.
    Write(Channel),
    /// Wakes the first waiting task, if there is one.
    Notify(Channel),
    /// Wakes every waiting task.
    Broadcast(Channel),
    /// Takes the lock, or blocks until it is handed over.
    Lock(Lock),
    /// Takes the lock, or uses the CPU until it is handed over, as kernels' spin locks do.
    Spin(Lock),
    /// Gives the lock to the first task that waits for it. Does nothing if the task does not hold
    /// it.
    Unlock(Lock),
    /// Blocks until as many tasks as [`Sizes::barriers`] says have arrived.
    Meet(Barrier),
    /// Sends the message that the task holds out of the machine, or a new one if it holds none.
    Send(Port),
    /// Answers the message that the task holds, if any: the message's round trip ends when the
    /// answer has spent this long on the way.
    Reply(Span),
    /// Gives up the CPU but stays ready.
    Yield,
    /// Changes its nice value.
    SetNice(i8),
    /// Changes the CPUs it may run on.
    SetAffinity(CpuSet),
    /// Creates the task that this number denotes in the load; see [`Load::spawn`].
    Spawn(u32),
    /// Hands over what a simulated benchmark has measured. Not in files of models.
    Measure(Measured),
    /// Ends.
    Exit,
}

/// What a simulated benchmark measures of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// A latency as the benchmark defines it.
    Latency {
        /// Which of its threads, from 0.
        thread: u16,
        /// How long.
        latency: Span,
    },
    /// From the end of a sleep to the first instruction after it.
    Wakeup(Span),
    /// From the beginning of a request to its end.
    Request(Span),
    /// Requests of all its threads per second.
    Rate(u64),
    /// Deadlines.
    Deadlines {
        /// How many were met.
        met: u32,
        /// How many were missed.
        missed: u32,
    },
    /// How much it wanted to compute, in a unit of its own.
    Work {
        /// How much it did.
        done: u32,
        /// How much it left out or was late with.
        missed: u32,
    },
    /// How long it took as a whole.
    Elapsed(Span),
    /// One of its tasks has done all its work.
    Finished {
        /// Which of its tasks, from 0.
        thread: u16,
        /// Since it was created.
        time: Span,
    },
    /// The same, from its first instruction.
    Left {
        /// Which of its tasks, from 0.
        thread: u16,
        /// Since its first instruction.
        time: Span,
    },
    /// What one of its tasks has done when all are counted.
    Groups {
        /// Which of its tasks, from 0.
        thread: u16,
        /// How many groups of work.
        groups: u32,
        /// How much CPU time they took.
        work: Span,
    },
}

/// A task about to be created.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// Its nice value, −20 ..= 19.
    pub nice: i8,
    /// The CPUs it may run on.
    pub affinity: CpuSet,
    /// The group it belongs to.
    pub domain: DomainId,
    /// Its fixed priority, for policies that use one.
    pub priority: i32,
    /// Time between its releases, if it is periodic.
    pub period: Option<Span>,
    /// CPU time reserved per period, if any.
    pub budget: Option<Span>,
    /// Time from a release to its deadline.
    pub relative_deadline: Option<Span>,
    /// The absolute deadline of its first (or only) job.
    pub deadline: Option<Time>,
    /// Which task of its program it is, for policies that know tasks from an earlier run.
    pub key: Option<u32>,
    /// How much it uses the memory behind the caches, in percent of the most that a task can.
    pub intensity: u8,
}

/// What comes from outside the tasks.
#[derive(Clone, Debug)]
pub enum Outside {
    /// A task arrives; [`Load::start`] follows with its number.
    Arrival(NewTask),
    /// A device or a timer signals.
    Signal(Channel),
    /// A message arrives that was sent before.
    Message {
        /// Where.
        channel: Channel,
        /// When it was sent.
        sent: Time,
    },
}

/// How many objects a load uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Channels.
    pub channels: u32,
    /// Locks.
    pub locks: u32,
    /// Per barrier, how many tasks meet there; at least 1.
    pub barriers: Vec<u32>,
}

/// A program that does in a kernel what a load does in the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name in the kernels' images.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: Vec<(&'static str, String)>,
}

/// What tasks there are and what each of them does.
///
/// The simulator numbers tasks as they arrive and reuses the number of a task after it has exited.
/// A load is deterministic: all randomness comes from the seed it was made with, and its answers
/// depend only on the calls so far.
pub trait Load {
    /// How many objects it uses; the same throughout.
    fn sizes(&self) -> Sizes {
        Sizes::default()
    }

    /// The channels to which messages come from outside ([`Outside::Message`]); always the same.
    fn inboxes(&self) -> Vec<Channel> {
        Vec::new()
    }

    /// The program that does the same in kernels, if one was made for it; otherwise hosts perform
    /// the load's own steps, if they can.
    fn program(&self) -> Option<Program> {
        None
    }

    /// When [`Load::outside`] next has something; [`Time::NEVER`]: nothing as far as known. Only
    /// [`Load::outside`] and [`Load::exited`] change it.
    fn peek(&self) -> Time;

    /// Takes what comes next from outside. Called when the time of [`Load::peek`] has come.
    fn outside(&mut self) -> Outside;

    /// The task that [`Op::Spawn`]`(what)` creates; [`Load::start`] follows with its number.
    fn spawn(&mut self, what: u32) -> NewTask {
        panic!("this load spawns nothing, not even {what}")
    }

    /// The task that has just arrived or been spawned has the number `task`.
    fn start(&mut self, task: TaskId, now: Time);

    /// What `task` does next, now that it has done what was asked for before.
    fn step(&mut self, task: TaskId, now: Time) -> Op;

    /// CPU time until `task` blocks or exits, given that what it does now takes `run`. This is the
    /// oracle of clairvoyant policies; loads whose tasks yield or signal between runs look ahead.
    fn burst(&self, _task: TaskId, run: Span) -> Span {
        run
    }

    /// Whether releases of `task` are so long after it has done what it did before, and not at
    /// times of their own.
    fn rests(&self, _task: TaskId) -> bool {
        false
    }

    /// `task` has done [`Op::Exit`]; its number may be reused.
    fn exited(&mut self, _task: TaskId, _now: Time) {}

    /// Which of several loads `task`, which has started, is of: its position among them.
    fn part(&self, _task: TaskId) -> usize {
        0
    }
}

impl<L: Load + ?Sized> Load for Box<L> {
    fn sizes(&self) -> Sizes {
        (**self).sizes()
    }
    fn inboxes(&self) -> Vec<Channel> {
        (**self).inboxes()
    }
    fn program(&self) -> Option<Program> {
        (**self).program()
    }
    fn peek(&self) -> Time {
        (**self).peek()
    }
    fn outside(&mut self) -> Outside {
        (**self).outside()
    }
    fn spawn(&mut self, what: u32) -> NewTask {
        (**self).spawn(what)
    }
    fn start(&mut self, task: TaskId, now: Time) {
        (**self).start(task, now);
    }
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        (**self).step(task, now)
    }
    fn burst(&self, task: TaskId, run: Span) -> Span {
        (**self).burst(task, run)
    }
    fn rests(&self, task: TaskId) -> bool {
        (**self).rests(task)
    }
    fn exited(&mut self, task: TaskId, now: Time) {
        (**self).exited(task, now);
    }
    fn part(&self, task: TaskId) -> usize {
        (**self).part(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks and the objects that they wait for number in the millions.
    #[test]
    fn what_is_measured_makes_no_operation_larger() {
        assert_eq!(size_of::<Op>(), size_of::<(Time, Option<Time>)>());
        assert!(size_of::<Measured>() <= 16);
    }
}
