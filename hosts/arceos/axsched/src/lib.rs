//! Any policy of anysched as the scheduler of ArceOS.
//!
//! This crate has the name, the version and the public items of ArceOS's `axsched` 0.3.1, so that
//! `axtask` 0.3.0-preview.3 builds against it unchanged. Which policy runs, and with which
//! parameters, is read at boot (`anysched_arceos_qemu::boot`).
//!
//! axtask tells its scheduler neither the time nor why a task stops. [`PolicyScheduler`] finds that
//! out:
//!
//! | axtask calls | with | which is |
//! |---|---|---|
//! | `add_task` | a task never seen | `attach`, `enqueue(New)` |
//! | `put_prev_task` | the task last picked, no `preempt` | `put_prev(Yielded)` |
//! | `put_prev_task` | the task last picked, `preempt` | `put_prev(Preempted)`, or `Expired` |
//! | `put_prev_task` | another task | `enqueue(Wakeup)` |
//! | `pick_next_task` | nothing put back since the last pick | `put_prev(Blocked)`, or `Exited` |
//! | `task_tick` | | `tick`, `timer`, the end of a slice: whichever is due |
//! | `drop` of a task | | `detach`, at the scheduler's next call |
//!
//! A program may set parameters of the policy ([`ask_for_param`]), which is `set_param` as soon as
//! it waits.
//!
//! Slices and the policy's timers end when they are due, not at the next tick: the one-shot timer
//! is set to whatever comes first. A kick interrupts the CPU through its timer's vector, after
//! which axtask asks `task_tick`.
//!
//! There is one policy for all CPUs. Images of one CPU have an adapter without a lock, those of
//! several (feature `smp`) that of the module `shared`. The kernel's `gc` tasks, which free the
//! stacks of tasks that have ended and yield in a loop until they can, are kept out of the policy.

#![no_std]

extern crate alloc;

mod clock;
mod gc;
mod log;
mod mailbox;
mod policy;
#[cfg(not(feature = "smp"))]
mod scheduler;
#[cfg(feature = "smp")]
mod shared;
mod task;
mod timed;

#[cfg(not(feature = "smp"))]
pub use clock::interrupt_at;
#[cfg(feature = "smp")]
pub use clock::sleep::until as sleep_until;
pub use clock::{switches, timer_interrupt_begins};
pub use log::finish as finish_log;
pub use mailbox::{ask_for_param, ask_what_was_learned, learned, refused};
#[cfg(not(feature = "smp"))]
pub use scheduler::PolicyScheduler;
#[cfg(feature = "smp")]
pub use shared::{PolicyScheduler, interrupt_ends};
pub use task::{Declared, PolicyTask, declare_next};
pub use timed::calls;

/// The most CPUs that an image can be built for.
const MAX_CPUS: usize = 16;

/// What axtask calls. The same trait as in axsched 0.3.1.
pub trait BaseScheduler {
    /// A task.
    type SchedItem;

    /// Called once.
    fn init(&mut self);

    /// `task` is new and ready.
    fn add_task(&mut self, task: Self::SchedItem);

    /// Takes `task`, which is ready, out.
    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem>;

    /// The task that this CPU runs next; `None` is the idle task.
    fn pick_next_task(&mut self) -> Option<Self::SchedItem>;

    /// `prev` is ready: it stopped running, or it has been woken.
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool);

    /// The timer interrupted `current`. Returns whether another task should run.
    fn task_tick(&mut self, current: &Self::SchedItem) -> bool;

    /// Sets the niceness of `task`, −20 to 19. Returns whether the value is valid.
    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool;
}

// The names that axtask looks for, one pair for each of its `sched-*` features.

/// A task, for axtask's feature `sched-fifo`.
pub type FifoTask<T> = PolicyTask<T>;
/// The scheduler, for axtask's feature `sched-fifo`.
pub type FifoScheduler<T> = PolicyScheduler<T>;
/// A task, for axtask's feature `sched-rr`. Its slice means nothing here.
pub type RRTask<T, const S: usize> = PolicyTask<T, S>;
/// The scheduler, for axtask's feature `sched-rr`.
pub type RRScheduler<T, const S: usize> = PolicyScheduler<T, S>;
/// A task, for axtask's feature `sched-cfs`.
pub type CFSTask<T> = PolicyTask<T>;
/// The scheduler, for axtask's feature `sched-cfs`.
pub type CFScheduler<T> = PolicyScheduler<T>;
