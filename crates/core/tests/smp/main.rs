//! Tests of layout, placement, kicks, pulling and balancing, and the host that they share.

mod balance;
mod idle;
mod linux;
mod place;
mod pull;

use std::ops::{Deref, DerefMut};

use anysched_core::{CpuId, Enqueue, Off, RunQueue, Smp, TaskParams};
use anysched_oracle::Drive;
pub use anysched_oracle::drive::pinned;

/// A driver of a rule with one runqueue per CPU, with shorthands.
pub struct Rig<Q>(Drive<Smp<Q>>);

impl<Q> Deref for Rig<Q> {
    type Target = Drive<Smp<Q>>;
    fn deref(&self) -> &Drive<Smp<Q>> {
        &self.0
    }
}

impl<Q> DerefMut for Rig<Q> {
    fn deref_mut(&mut self) -> &mut Drive<Smp<Q>> {
        &mut self.0
    }
}

/// `counts[n]` tasks on CPU n, one of them running, numbered from 100·n on.
pub fn fill<Q: RunQueue>(rig: &mut Rig<Q>, counts: &[u32]) {
    for (cpu, &count) in (0..).zip(counts) {
        for task in 0..count {
            rig.create(100 * u32::from(cpu) + task, cpu);
        }
    }
    rig.settle();
}

impl<Q: RunQueue> Rig<Q> {
    /// One runqueue per CPU unless `settings` say otherwise.
    pub fn new(machine: &str, settings: &[(&str, &str)]) -> Rig<Q> {
        Rig(Drive::rule(machine, &[&[("layout", "per-cpu")], settings].concat()))
    }

    /// Attaches `task`, created on CPU `from`, and makes it ready.
    pub fn create(&mut self, task: u32, from: u16) {
        self.create_with(task, from, &TaskParams::default());
    }

    pub fn create_with(&mut self, task: u32, from: u16, params: &TaskParams) {
        self.create_from(task, params, Some(from));
    }

    pub fn wake(&mut self, task: u32, prev: u16, from: Option<u16>) {
        self.enqueue(task, Enqueue::Wakeup { prev: CpuId(prev), sync: false }, from);
    }

    pub fn enqueue(&mut self, task: u32, why: Enqueue, from: Option<u16>) {
        self.ready(task, why, from);
    }

    pub fn pick(&mut self, cpu: u16) -> Option<u32> {
        assert!(self.running(cpu).is_none());
        self.pick_task(cpu)
    }

    pub fn put(&mut self, cpu: u16, why: Off) -> u32 {
        self.off(cpu, why)
    }

    /// The CPUs kicked and not yet answered.
    pub fn kicked(&self) -> Vec<u16> {
        self.pending()
    }

    /// How many tasks wait in the runqueue of each CPU.
    pub fn waiting(&self) -> Vec<usize> {
        (0..self.policy.queues()).map(|queue| self.policy.rule().len(queue)).collect()
    }

    /// The runqueue that `task` is in, or was last in.
    pub fn queue(&self, task: u32) -> i64 {
        self.probe(task, "runqueue")
    }

    /// Takes `cpu` into use or out of it, and what it runs off.
    pub fn set_online(&mut self, cpu: u16, online: bool) {
        self.0.set_online(cpu, online);
        if !online && self.running(cpu).is_some() {
            self.off(cpu, Off::Preempted);
        }
    }
}
