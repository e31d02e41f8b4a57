//! Scheduling events: one schema for every host, and writers for it.
//!
//! Policies emit nothing; the driver (the simulator, a kernel's shim) reports to a [`Sink`] what it
//! did. Events arrive in time order and are written as they arrive: no sink holds a whole run.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(all(test, feature = "std"))]
mod churn;
pub mod decisions;
pub mod diff;
pub mod follow;
#[cfg(feature = "std")]
pub mod ftrace;
pub mod gantt;
mod guests;
#[cfg(feature = "std")]
mod output;
#[cfg(feature = "std")]
pub mod perfetto;
pub mod policy;
mod shared;
pub mod stuck;
pub mod svg;
pub mod why;

use anysched_core::{CpuId, Off, TaskId, Time};
use core::fmt;
use policy::Decision;
use stuck::Stuck;

pub use shared::Shared;

/// What happened, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Time,
    /// What.
    pub kind: Kind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new task became ready for the first time; the call before this one was [`Sink::task`] for
    /// it.
    Attach {
        /// The task.
        task: TaskId,
        /// The task that created it, if any.
        by: Option<TaskId>,
    },
    /// A blocked task became ready.
    Wake {
        /// The task.
        task: TaskId,
        /// The running task that woke it; `None`: a timer or a device.
        by: Option<TaskId>,
        /// The CPU that performed the wake-up, if any.
        cpu: Option<CpuId>,
    },
    /// A CPU switched between tasks, or to or from idle. `prev` and `next` may be equal (the same
    /// task was picked again), which is not a context switch. If a task does something else at the
    /// instant at which it leaves its CPU (is woken, starts on another CPU, or has its number
    /// reused), a switch to idle precedes that.
    Switch {
        /// The CPU.
        cpu: CpuId,
        /// The task that ran and why it stopped; `None`: the CPU was idle. `Blocked` and `Exited`
        /// here are the only record of a task blocking or ending.
        prev: Option<(TaskId, Off)>,
        /// The task that runs next; `None`: the CPU goes idle.
        next: Option<TaskId>,
    },
    /// The policy asked a CPU to pick again.
    Kick {
        /// The CPU.
        cpu: CpuId,
    },
    /// A task is about to run on a CPU other than its last; its switch follows.
    Migrate {
        /// The task.
        task: TaskId,
        /// Where it ran.
        from: CpuId,
        /// Where it will run.
        to: CpuId,
    },
    /// A task that is blocked, or no longer ready, cannot become ready before its next
    /// [`Kind::Wake`]: it is paused, or a virtual CPU that is not in use.
    Offline {
        /// The task.
        task: TaskId,
    },
    /// What the scheduler says of its state for a task has another value.
    State {
        /// The task.
        task: TaskId,
        /// What it is.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// A counter has a new value.
    Sample {
        /// Which counter.
        counter: Counter,
        /// Its value.
        value: u64,
    },
}

/// What a [`Kind::Sample`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Tasks that are ready but not running.
    Ready,
    /// CPUs that are running a task.
    Busy,
}

/// A new task, for the sink's records.
#[derive(Clone, Copy, Debug)]
pub struct TaskInfo<'a> {
    /// Its number; reused after the task has exited.
    pub task: TaskId,
    /// How many tasks this run had before it; never reused.
    pub serial: u64,
    /// Its name, if it has one; otherwise sinks name it after its serial.
    pub name: Option<&'a str>,
    /// Its nice value.
    pub nice: i8,
}

impl TaskInfo<'_> {
    /// The name that sinks show: its own, or `task 7` if it has none (or an empty one) and seven
    /// tasks came before it.
    pub fn label(&self) -> impl fmt::Display + '_ {
        struct Label<'a>(&'a TaskInfo<'a>);

        impl fmt::Display for Label<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0.name {
                    Some(name) if !name.is_empty() => f.write_str(name),
                    _ => write!(f, "task {}", self.0.serial),
                }
            }
        }

        Label(self)
    }
}

/// Takes events as they happen.
pub trait Sink {
    /// Whether anyone is listening; if not, hosts can skip gathering what they would report.
    #[inline]
    fn listens(&self) -> bool {
        true
    }

    /// Describes the task that the next event attaches.
    fn task(&mut self, info: &TaskInfo<'_>);
    /// Reports an event; times never decrease.
    fn event(&mut self, event: &Event);

    /// A job of a task is released at `release`, perhaps later than now, and due at `deadline` if
    /// it has one. The one before is done, or given up.
    fn job(&mut self, task: TaskId, release: Time, deadline: Option<Time>) {
        let _ = (task, release, deadline);
    }

    /// The job of a task is done.
    fn job_done(&mut self, task: TaskId, time: Time) {
        let _ = (task, time);
    }

    /// The run ends because nothing can happen any more, though this task has not ended: it waits
    /// for something that does not come. Of each such task, before [`Sink::end`].
    fn stuck(&mut self, task: TaskId, on: Stuck) {
        let _ = (task, on);
    }

    /// The run ends at `time`, perhaps later than its last event: what runs then has run until
    /// then.
    fn end(&mut self, time: Time) {
        let _ = time;
    }

    /// Whether events that the kernel under test has recorded itself are to come as [`Sink::line`],
    /// and not as events: this sink writes their format.
    fn takes_lines(&self) -> bool {
        false
    }

    /// An event that the kernel has recorded itself, as a line of ftrace's text without its end, in
    /// time order with all else.
    fn line(&mut self, time: Time, line: &str) {
        let _ = (time, line);
    }

    /// A call of the policy and its answer, in time order with all else, where that is told beside
    /// the kernel's own events.
    fn decision(&mut self, decision: &Decision<'_>) {
        let _ = decision;
    }

    /// A virtual machine starts; `vm` is its number, never reused. Until it stops, its CPUs are
    /// these `tasks` of the host, in order; [`Sink::task`] describes each before it first becomes
    /// ready.
    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        let _ = (vm, name, tasks);
    }
    /// A virtual machine is gone at `time`, and so are the tasks that were its CPUs. One that was
    /// running leaves its CPU in a separate switch, later in the stream but at the same time.
    fn vm_end(&mut self, vm: usize, time: Time) {
        let _ = (vm, time);
    }
    /// Describes the task that the next event in that virtual machine attaches. Each virtual
    /// machine numbers its own tasks and CPUs.
    fn vm_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        let _ = (vm, info);
    }
    /// An event inside a virtual machine, in time order with those of the host. Guest time passes
    /// only while the guest's CPUs run on the host.
    fn vm_event(&mut self, vm: usize, event: &Event) {
        let _ = (vm, event);
    }
}

/// Ignores everything and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Sink for NoTrace {
    #[inline]
    fn listens(&self) -> bool {
        false
    }
    #[inline]
    fn task(&mut self, _: &TaskInfo<'_>) {}
    #[inline]
    fn event(&mut self, _: &Event) {}
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn listens(&self) -> bool {
        (**self).listens()
    }
    fn task(&mut self, info: &TaskInfo<'_>) {
        (**self).task(info);
    }
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }
    fn job(&mut self, task: TaskId, release: Time, deadline: Option<Time>) {
        (**self).job(task, release, deadline);
    }
    fn job_done(&mut self, task: TaskId, time: Time) {
        (**self).job_done(task, time);
    }
    fn stuck(&mut self, task: TaskId, on: Stuck) {
        (**self).stuck(task, on);
    }
    fn end(&mut self, time: Time) {
        (**self).end(time);
    }
    fn takes_lines(&self) -> bool {
        (**self).takes_lines()
    }
    fn line(&mut self, time: Time, line: &str) {
        (**self).line(time, line);
    }
    fn decision(&mut self, decision: &Decision<'_>) {
        (**self).decision(decision);
    }
    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        (**self).vm(vm, name, tasks);
    }
    fn vm_end(&mut self, vm: usize, time: Time) {
        (**self).vm_end(vm, time);
    }
    fn vm_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        (**self).vm_task(vm, info);
    }
    fn vm_event(&mut self, vm: usize, event: &Event) {
        (**self).vm_event(vm, event);
    }
}
