//! The state of the adapter, for searches ([`anysched_core::canon`]).

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{Scheduler, TaskId};

use crate::Adapter;
use crate::adapter::{State, Task};

impl Canonical for State {
    fn canon(&self, _: &(), to: &mut Canon) {
        let (kind, cpu) = match *self {
            State::New => (0, None),
            State::Blocked => (1, None),
            State::Out => (2, None),
            State::Ready => (3, None),
            State::Unasked => (4, None),
            State::Picked(cpu) => (5, Some(cpu)),
            State::Running(cpu) => (6, Some(cpu)),
        };
        to.word(kind);
        cpu.canon(&(), to);
    }
}

impl Task {
    /// `runtime`: as the kernel counts it.
    fn canon(&self, runtime: u64, to: &mut Canon) {
        // When it was woken is counted only.
        let Task { state, yielded, cpu, charged, told, woken: _ } = self;
        state.canon(&(), to);
        yielded.canon(&(), to);
        cpu.canon(&(), to);
        // Of others, it begins anew when they become ready.
        if let State::Picked(_) | State::Running(_) = state {
            to.word(runtime.wrapping_sub(*charged));
            told.canon(&(), to);
        }
    }
}

impl<P: Scheduler> Adapter<P> {
    /// Records the state of the adapter and of the policy behind it. `runtime` says the CPU time of
    /// a task, as the kernel counts it.
    pub fn canon(&self, runtime: impl Fn(TaskId) -> u64, to: &mut Canon) {
        to.word(self.tasks.len() as u64);
        for (number, task) in self.tasks.iter().enumerate() {
            task.canon(runtime(TaskId(number as u32)), to);
        }
        // Searches have one group.
        self.affinities.canon(&(), to);
        self.free[..].canon(&(), to);
        for cpu in &self.cpus {
            cpu.runs.canon(&(), to);
        }
        self.kicks.canon(&(), to);
        self.policy.canon(to);
    }
}
