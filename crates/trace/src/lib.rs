//! Scheduling events: one schema for every host, and writers for it.
//!
//! Policies emit nothing; the driver (the simulator, a kernel's shim) tells a [`Sink`] what it
//! did. Events come in time order and are written as they come: no sink holds a whole run.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(all(test, feature = "std"))]
mod churn;
pub mod decisions;
#[cfg(feature = "std")]
pub mod ftrace;
pub mod gantt;
mod guests;
#[cfg(feature = "std")]
mod output;
#[cfg(feature = "std")]
pub mod perfetto;

use anysched_core::{CpuId, Off, TaskId, Time};
use core::fmt;

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
    /// A new task became ready for the first time. [`Sink::task`] has named it just before.
    Attach {
        /// The task.
        task: TaskId,
        /// The task that created it, if one did.
        by: Option<TaskId>,
    },
    /// A blocked task became ready.
    Wake {
        /// The task.
        task: TaskId,
        /// The running task that woke it; `None`: a timer or a device.
        by: Option<TaskId>,
        /// The CPU where the wake-up was done, if it was done on one.
        cpu: Option<CpuId>,
    },
    /// A CPU went from one task to another, or to or from idle. `prev` and `next` may be equal
    /// (a task picked again), which counts as no switch. If a task does something else at the
    /// instant at which it left its CPU (it is woken, begins on another CPU, or its number is
    /// used again), a switch to idle comes before that.
    Switch {
        /// The CPU.
        cpu: CpuId,
        /// The task that ran and why it stopped; `None`: the CPU was idle. `Blocked` and
        /// `Exited` are how a task's blocking and its end show.
        prev: Option<(TaskId, Off)>,
        /// The task that runs now; `None`: the CPU is idle.
        next: Option<TaskId>,
    },
    /// The policy asked a CPU to pick again.
    Kick {
        /// The CPU.
        cpu: CpuId,
    },
    /// A task is about to run on another CPU than before; its switch follows.
    Migrate {
        /// The task.
        task: TaskId,
        /// Where it ran.
        from: CpuId,
        /// Where it will run.
        to: CpuId,
    },
    /// A counter has a new value.
    Sample {
        /// Which.
        counter: Counter,
        /// Its value.
        value: u64,
    },
}

/// What a [`Kind::Sample`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Tasks that are ready but do not run.
    Ready,
    /// CPUs that run a task.
    Busy,
}

/// A new task, for the sink's records.
#[derive(Clone, Copy, Debug)]
pub struct TaskInfo<'a> {
    /// Its number; the number of a task that has exited may be used again.
    pub task: TaskId,
    /// How many tasks there were before it in this run; never used again.
    pub serial: u64,
    /// Its name, if it has one; otherwise sinks name it after its serial.
    pub name: Option<&'a str>,
    /// Its nice value.
    pub nice: i8,
}

impl TaskInfo<'_> {
    /// How sinks call it: its name, or `task 7` for one without a name (or an empty one) that
    /// had seven before it.
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
    /// Whether anybody takes what it is told; if not, hosts need not find out.
    #[inline]
    fn listens(&self) -> bool {
        true
    }

    /// A task that the next event attaches.
    fn task(&mut self, info: &TaskInfo<'_>);
    /// An event; times never decrease.
    fn event(&mut self, event: &Event);

    /// A virtual machine starts; `vm` is its number, never used again. Its CPUs, in their order,
    /// are these `tasks` here until it stops; [`Sink::task`] names each before it is first ready.
    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        let _ = (vm, name, tasks);
    }
    /// A virtual machine is gone at `time`, and so are the tasks that were its CPUs. One that was
    /// running leaves its CPU with a switch of its own, after this and at the same time.
    fn vm_end(&mut self, vm: usize, time: Time) {
        let _ = (vm, time);
    }
    /// A task that the next event in that virtual machine attaches. Tasks and CPUs of a virtual
    /// machine are numbered by themselves.
    fn vm_task(&mut self, vm: usize, info: &TaskInfo<'_>) {
        let _ = (vm, info);
    }
    /// An event in a virtual machine, in time order with those outside. Time passes there while its
    /// CPUs run here.
    fn vm_event(&mut self, vm: usize, event: &Event) {
        let _ = (vm, event);
    }
}

/// Takes nothing and costs nothing.
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
