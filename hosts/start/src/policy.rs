//! A policy as a start text describes it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use anysched_core::checked::Rules;
use anysched_core::machine::Cpu;
use anysched_core::params::weight_of_nice;
use anysched_core::recorder::LogSink;
use anysched_core::registry::PolicyInfo;
use anysched_core::{Checked, CpuId, CpuSet, Machine, Recorder, Scheduler, Span, TaskParams};
use anysched_wire::start::Start;

use crate::fault::Faulty;

/// The machine that the text describes.
///
/// Errors: there is no such machine.
// In a frame of its own: building a policy takes some KiB of the stack, of which Xen has 8.
#[inline(never)]
pub fn machine(start: &Start) -> Result<Machine, String> {
    let cpus = start.cpus.iter().map(|&[core, llc, package, node, capacity]| Cpu {
        core,
        llc,
        package,
        node,
        capacity,
    });
    let machine = Machine::new(cpus.collect()).map_err(|error| format!("the machine: {error}"))?;
    Ok(machine.with_tick(start.tick.map(Span)))
}

/// The policy that the text asks for, with what is to be wrapped around it. If it is to be
/// recorded, the log goes to `sink`.
///
/// Errors: there is no such policy here, or a parameter or the fault is refused.
pub fn policy(
    start: &Start,
    machine: &Machine,
    sink: impl LogSink + 'static,
) -> Result<Box<dyn Scheduler>, String> {
    let settings: Vec<(&str, &str)> =
        start.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let name = &start.policy;
    let info = anysched_policies::policy(name)
        .ok_or_else(|| format!("there is no policy \"{name}\" in this build"))?;
    let built = (info.build)(machine, &settings);
    let policy = built.map_err(|error| format!("policy {name}: {error}"))?;
    wrapped(policy, info, start, machine, &settings, sink)
}

/// `policy` with what the text asks for around it.
///
/// Errors: the fault is refused.
// In a frame of its own, too.
#[inline(never)]
fn wrapped(
    mut policy: Box<dyn Scheduler>,
    info: &PolicyInfo,
    start: &Start,
    machine: &Machine,
    settings: &[(&str, &str)],
    sink: impl LogSink + 'static,
) -> Result<Box<dyn Scheduler>, String> {
    if let Some((kind, at)) = &start.fault {
        policy = Box::new(Faulty::new(policy, kind, *at)?);
    }
    if start.checked {
        let work_conserving = (info.nature)(settings).is_ok_and(|nature| nature.work_conserving);
        let rules = Rules { work_conserving, ..Rules::default() };
        policy = Box::new(Checked::new(policy, machine, rules));
    }
    if start.record.is_some() {
        policy = Box::new(Recorder::new(policy, machine, &start.policy, settings, sink));
    }
    Ok(policy)
}

/// Whether the policy that the text asks for may let a task that is ready wait for as long as
/// others go on computing.
pub fn starves(start: &Start) -> bool {
    let settings: Vec<(&str, &str)> =
        start.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let info = anysched_policies::policy(&start.policy);
    info.is_some_and(|info| (info.nature)(&settings).is_ok_and(|nature| nature.starves))
}

/// The CPUs that a task may run on, or prefers to: a bit for each of the `cpus` that the machine
/// has, in words of 64.
pub fn affinity(words: &[u64], cpus: usize) -> CpuSet {
    let has = |cpu: &CpuId| words[cpu.index() / 64] >> (cpu.index() % 64) & 1 != 0;
    let all = || (0..cpus as u16).map(CpuId);
    if all().all(|cpu| has(&cpu)) { CpuSet::All } else { CpuSet::of(all().filter(has)) }
}

/// The parameters of a task of the kernel's. `niceness` is its nice value + 20, 40 for
/// `SCHED_IDLE`.
pub fn params(niceness: u32, affinity: CpuSet) -> TaskParams {
    TaskParams {
        // Of `SCHED_IDLE` as in kernel/sched/sched.h (WEIGHT_IDLEPRIO).
        weight: if niceness == 40 { 3 } else { weight_of_nice(niceness as i8 - 20) },
        affinity,
        ..TaskParams::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_the_kernel() {
        assert_eq!(affinity(&[0b1111], 4), CpuSet::All);
        assert_eq!(affinity(&[u64::MAX], 4), CpuSet::All);
        assert_eq!(affinity(&[0b0101], 4), CpuSet::Few(0b0101));
        assert_eq!(affinity(&[1, 1], 65), CpuSet::of([CpuId(0), CpuId(64)]));
        // What is beyond the machine means nothing.
        assert_eq!(affinity(&[0b11_0001], 4), CpuSet::Few(1));
    }
}
