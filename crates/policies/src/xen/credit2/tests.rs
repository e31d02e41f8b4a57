//! Values worked out by hand from the rules, and invariants that hold after every call.

mod rules;
mod sound;

use alloc::vec::Vec;

use super::{Credit2, Credit2Params};
use anysched_core::params::Params;
use anysched_core::registry::Policy;
use anysched_core::{
    CpuId, CpuSet, DomainId, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_oracle::drive::{Drive, in_domain as of, ms, us};
use anysched_oracle::rig;

rig! {
    struct Rig(Drive<Credit2>);
}

impl Rig {
    fn new(machine: &str, settings: &[(&str, &str)]) -> Rig {
        Rig(Drive::scheduler(machine, settings))
    }

    /// Attaches `task` to `domain` and makes it ready.
    fn create(&mut self, task: u32, domain: u16) {
        self.attach(task, &of(domain));
        self.wake(task);
    }

    /// Lets time pass in which CPU 0 runs `task`, and takes it off.
    fn run(&mut self, task: u32, ran: Span, why: Off) {
        self.now += ran;
        self.put(0, task, ran, why);
    }

    /// Credit in us.
    fn credit(&self, task: u32) -> i64 {
        self.probe(task, "credit_ns") / 1_000
    }

    fn set_credit(&mut self, task: u32, us: i64) {
        self.policy.tasks[TaskId(task)].credit = us * 1_000;
    }

    /// Runs CPU 0 slice by slice until `until`; who ran and for how many us.
    fn slices(&mut self, until: Time) -> Vec<(u32, u64)> {
        let slices = self.0.slices(until).into_iter();
        slices.map(|(task, ran)| (task, ran.0 / 1_000)).collect()
    }
}

fn only(cpus: &[u16]) -> TaskParams {
    let affinity = CpuSet::of(cpus.iter().map(|&cpu| CpuId(cpu)));
    TaskParams { affinity, ..TaskParams::default() }
}
