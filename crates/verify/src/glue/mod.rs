//! A kernel's glue with a policy behind it, under a model of the kernel that may do, next, anything
//! that the kernel does.
//!
//! The glue ([`anysched_vcpus`], [`anysched_scx`]) is what runs in the kernel, to the letter; what
//! calls it is a model, which keeps what the kernel knows of each task and asserts what the kernel
//! relies on. The policy is held to the contract, so that a call that the glue makes in the wrong
//! order is found as well as a task that it loses.

mod linux;
#[cfg(test)]
mod tests;
mod xen;

pub use linux::{Linux, LinuxEvent};
pub use xen::{Xen, XenEvent};

use anysched_core::registry::Bound;
use anysched_core::{Span, TaskId, Time};

use crate::property::{self, Demands, Lasso, MOST_STEPS, PATIENCE, Property, Steps, Waited};
use crate::search::Histories;
use crate::subject::{Held, guarded, kept};

/// A model of a kernel, with its glue and a policy behind it.
pub trait Kernel: Steps {
    /// The time of the next call.
    fn now(&self) -> Time;

    /// Lets time pass.
    fn pass_until(&mut self, time: Time);

    /// The policy.
    fn policy(&mut self) -> &mut Held;

    /// What happens next without anything new from outside, if anything is left to do at this time.
    fn due(&self) -> Option<Self::Event>;

    /// When something is due again.
    fn next_due(&self) -> Option<Time>;

    /// What brings back to the kernel what it holds back for a moment, if there is any.
    fn release(&self) -> Option<Self::Event>;

    /// What makes one of the tasks that run block, if any runs.
    fn block(&self) -> Option<Self::Event>;

    /// The ticks of CPUs that run something.
    fn ticks(&self) -> Vec<Self::Event>;

    /// Tasks that could run and do not, by the numbers that events have, which need not be the
    /// policy's.
    fn waiting(&self) -> Vec<TaskId>;

    /// How many tasks could run.
    fn runnable(&self) -> usize;

    /// For how long tasks run that the kernel has given CPUs itself, which the policy cannot help.
    fn unasked(&self) -> Span;
}

/// Builds a kernel with a policy, the same each time.
pub type Build<'a, K> = &'a (dyn Fn() -> K + Sync);

/// A kernel's glue with a policy behind it, as it is searched.
pub struct Glue<'a, K> {
    /// Builds both.
    pub build: Build<'a, K>,
    /// What the policy is held to.
    pub demands: Demands,
    /// The period of the ticks.
    pub tick: Span,
}

impl<K: Kernel> Glue<'_, K> {
    fn after(&self, history: &[K::Event]) -> K {
        let mut kernel = (self.build)();
        history.iter().for_each(|&event| kernel.apply(event));
        kernel
    }

    /// Lets every task that runs block, until none is left that could run.
    fn drain(&self, kernel: &mut K) -> Result<(), String> {
        let start = kernel.now();
        let mut lasso = Lasso::default();
        for _ in 0..MOST_STEPS {
            let next = kernel.due().or_else(|| kernel.release()).or_else(|| kernel.block());
            if let Some(event) = next {
                kernel.apply(event);
                continue;
            }
            let Some(&task) = kernel.waiting().first() else { return Ok(()) };
            let Some(due) = kernel.next_due() else {
                return Err(format!(
                    "task {} could run and never does: all CPUs are idle, nothing is pending, \
                     no timer is set",
                    task.0
                ));
            };
            let repeats = kernel.words().is_some_and(|words| lasso.closes(&words));
            if repeats || due.since(start) > PATIENCE {
                return Err(format!(
                    "task {} could run and never does: all CPUs are idle, and timers change \
                     nothing",
                    task.0
                ));
            }
            kernel.pass_until(due);
        }
        Err("a drain has no end: the policy goes on kicking".into())
    }

    /// Lets every task compute, until each that could run has. Returns the longest wait.
    fn hogs(&self, kernel: &mut K) -> Result<Option<Waited>, String> {
        let start = kernel.now();
        while let Some(event) = kernel.release() {
            kernel.apply(event);
        }
        let mut waits = kernel.waiting();
        let declared = |bound: Bound| bound.of(kernel.runnable() as u64) + kernel.unasked();
        let bound = self.demands.longest_wait.map(declared);
        let mut next_tick = start + self.tick;
        let (mut lasso, mut longest) = (Lasso::default(), None);
        for _ in 0..MOST_STEPS {
            if let Some(event) = kernel.due() {
                kernel.apply(event);
            } else {
                let Some(&task) = waits.first() else { return Ok(longest) };
                let due = kernel.next_due().unwrap_or(Time::NEVER).min(next_tick);
                let waited = due.since(start);
                if bound.is_some_and(|bound| waited > bound) {
                    return Err(format!("task {} waits longer than is declared", task.0));
                }
                let repeats = kernel.words().is_some_and(|mut words| {
                    words.push(next_tick.since(kernel.now()).0);
                    lasso.closes(&words)
                });
                if repeats || waited > PATIENCE {
                    return Err(format!("task {} never runs while others go on", task.0));
                }
                kernel.pass_until(due);
                if due == next_tick {
                    next_tick += self.tick;
                    kernel.ticks().into_iter().for_each(|tick| kernel.apply(tick));
                }
            }
            let (still, time) = (kernel.waiting(), kernel.now().since(start));
            waits.retain(|task| {
                let waits = still.contains(task);
                if !waits {
                    longest = longest.max(Some(Waited { time, task: *task }));
                }
                waits
            });
        }
        let task = waits.first().map_or(0, |task| task.0);
        Err(format!("task {task} has not run after {MOST_STEPS} calls"))
    }
}

impl<K: Kernel> Histories for Glue<'_, K> {
    type Event = K::Event;

    fn events(&self, history: &[K::Event]) -> Vec<K::Event> {
        self.after(history).events()
    }

    fn state(
        &self,
        history: &[K::Event],
        event: Option<K::Event>,
    ) -> Result<Option<Vec<u64>>, String> {
        guarded(|| {
            let mut kernel = self.after(history);
            event.into_iter().for_each(|event| kernel.apply(event));
            kept(kernel.policy()).map(|()| kernel.words())
        })
    }

    fn check(&self, property: Property, history: &[K::Event]) -> Result<Option<Waited>, String> {
        guarded(|| {
            let mut kernel = self.after(history);
            let held = match property {
                Property::Drain => self.drain(&mut kernel).map(|()| None),
                Property::Wait if !self.demands.starves => self.hogs(&mut kernel),
                // A yield is one call in some kernels and two in others, which the policy is
                // searched for alone.
                Property::Contract | Property::Wait | Property::Yield | Property::Merge => Ok(None),
            };
            kept(kernel.policy()).and(held)
        })
    }

    fn agree(
        &self,
        other: &[K::Event],
        history: &[K::Event],
        event: K::Event,
        seed: u64,
    ) -> Result<(), String> {
        guarded(|| {
            let (mut one, mut two) = (self.after(other), self.after(history));
            two.apply(event);
            property::agree(&mut one, &mut two, seed)
        })
    }
}
