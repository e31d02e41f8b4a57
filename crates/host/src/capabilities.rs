//! What experiments may ask of a host.

use crate::{HostError, HostInfo, Setup, Watch, cpus_in_words};
use anysched_core::Time;
use anysched_workload::kinds::Needs;

/// What a host can do. Plans are checked against it before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The most CPUs of a machine.
    pub cpus: usize,
    /// Virtual machines.
    pub vms: bool,
    /// Runs that end after a given `duration`, whatever tasks are left.
    pub duration: bool,
    /// CPUs that come and go.
    pub hotplug: bool,
    /// Parameters of the policy that change during a run.
    pub changes: bool,
    /// CPUs that slow each other down, as SMT siblings or through caches, and of unequal capacity.
    pub unequal_cpus: bool,
    /// Logs of decisions, for `replay`.
    pub logs: bool,
    /// Events of the run.
    pub traces: bool,
    /// What some of the tasks did: those of a load, each.
    pub parts: bool,
    /// Policies that can be asked for their state while they work.
    pub observed: bool,
    /// Policies in the machine that this program runs on, and recordings of it.
    pub running_machine: bool,
    /// Policies in a process that decides for the kernel.
    pub agents: bool,
    /// A choice of what runs beside the hypervisor, as dom0.
    pub dom0s: bool,
    /// Options on the command line of its kernel; without a kernel they mean nothing.
    pub kernel_options: bool,
    /// What tasks can do besides computing, sleeping, waiting for a time and yielding.
    pub tasks: Needs,
}

impl Capabilities {
    /// Everything but agents and dom0s, on at most `cpus` CPUs.
    pub const fn all(cpus: usize) -> Capabilities {
        Capabilities {
            cpus,
            vms: true,
            duration: true,
            hotplug: true,
            changes: true,
            unequal_cpus: true,
            logs: true,
            traces: true,
            parts: true,
            observed: true,
            running_machine: false,
            agents: false,
            dom0s: false,
            kernel_options: true,
            tasks: Needs::ALL,
        }
    }
}

/// What a group of runs asks of a host.
#[derive(Clone, Copy, Debug)]
pub struct Demands<'a> {
    /// The machine and the end.
    pub setup: &'a Setup,
    /// There are virtual machines.
    pub vms: bool,
    /// What tasks do.
    pub needs: Needs,
}

impl HostInfo {
    /// Checks that the host can do what runs demand.
    ///
    /// Errors: names what it cannot do, and what to do about it.
    pub fn require(&self, demands: &Demands<'_>) -> Result<(), HostError> {
        let can = &self.capabilities;
        let Demands { setup, vms, needs } = *demands;
        let cpus = setup.machine.cpus();
        if cpus > can.cpus {
            let most = cpus_in_words(can.cpus);
            return Err(HostError(format!("{} has at most {most}, not {cpus}", self.name)));
        }
        let ends = setup.until != Time::NEVER;
        for (wanted, can, what) in [
            (vms, can.vms, "run virtual machines: leave out [[vm]]"),
            (
                ends,
                can.duration,
                "end a run while tasks are left: leave `duration` out and give the load an end",
            ),
            (
                !setup.hotplug.is_empty(),
                can.hotplug,
                "take CPUs into use and out of it: leave `hotplug` out",
            ),
            (
                !setup.changes.is_empty(),
                can.changes,
                "change parameters of a policy during a run: leave `changes` out",
            ),
            (
                !setup.kernel_options.is_empty(),
                can.kernel_options,
                "take options on its kernel's command line: leave `kernel_options` out",
            ),
            (
                setup.is_unequal(),
                can.unequal_cpus,
                "have CPUs of different speeds: leave `smt`, `contention` and `capacity` out",
            ),
        ] {
            if wanted && !can {
                return Err(self.cannot(what));
            }
        }
        self.require_tasks(needs)
    }

    /// Checks that tasks can do on the host what they need.
    ///
    /// Errors: names what they cannot, what they can, and what to do about it.
    pub fn require_tasks(&self, needs: Needs) -> Result<(), HostError> {
        // A host that does not know deadlines runs the same tasks; what it would have measured of
        // them is absent.
        let needs = Needs { deadlines: false, ..needs };
        let can = self.capabilities.tasks;
        let lacking: Vec<&str> = needs.lacking(can).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let has: Vec<&str> = can.lacking(Needs::NOTHING).collect();
        let besides = if has.is_empty() { "" } else { "; besides, it has " };
        Err(HostError(format!(
            "{} does not have {}: leave that out, or take a host of `anysched hosts` that has it; \
             here tasks compute, sleep, wait for a time and yield{besides}{}",
            self.name,
            lacking.join(", "),
            has.join(", ")
        )))
    }

    /// Checks that what is to be watched can be seen.
    ///
    /// Errors: the host has no logs, or no traces, or knows only what all tasks did.
    pub fn require_watch(&self, watch: &Watch<'_>) -> Result<(), HostError> {
        let can = &self.capabilities;
        if watch.record && !can.logs {
            return Err(self.cannot("record runs"));
        }
        if watch.trace.is_some() && !can.traces {
            return Err(self.cannot("trace runs"));
        }
        if watch.apart.any() && !can.parts {
            return Err(self.cannot(
                "measure workloads or tasks apart: leave out `--by`, `by` in [report] and claims \
                 about `workload.` or `task.`",
            ));
        }
        if watch.observe.is_some() && !can.observed {
            return Err(self.cannot("be asked for a policy's state during a run"));
        }
        Ok(())
    }
}
