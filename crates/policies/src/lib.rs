//! The policies, one file each: the rule in a sentence, its source, its order key, where it
//! deviates from its source and why, its cost; then parameters, rule and unit tests.
//!
//! [`POLICIES`] lists them all. Everything that needs the list walks it: command lines, experiment
//! files, documentation, tests.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

use anysched_core::registry::PolicyInfo;

anysched_core::policies! {
/// What textbooks teach.
textbook {
    "fcfs" fcfs => Fcfs: RunQueue, "First come, first served, each task to completion";
    "sjf" sjf => Sjf: RunQueue, "Shortest job first, each to completion";
    "srpt" srpt => Srpt: RunQueue, "Shortest remaining processing time, preemptive";
    "rr" rr => RoundRobin: RunQueue, "Round robin with a fixed quantum";
    "mlfq" mlfq => Mlfq: RunQueue, "Multilevel feedback queue with allotments and boosts";
    "edf" edf => Edf: RunQueue, "Earliest absolute deadline first, preemptive";
    "dm" dm => Dm: RunQueue, "Deadline monotonic: shortest relative deadline first";
    "priority" priority => Priority: RunQueue, "Fixed priorities, preemptive; equals FIFO or RR";
    "lottery" lottery => Lottery: RunQueue, "A random draw for each quantum, tickets by weight";
    "stride" stride => Stride: RunQueue, "Least pass first; passes advance by 1/weight";
}
/// ArceOS, and what was proposed for it.
arceos {
    "sjf-ewma" sjf_ewma => SjfEwma: RunQueue, "ArceOS: shortest job first by average past turn";
    "mlfq-arceos" mlfq_arceos => MlfqArceos: RunQueue, "ArceOS: feedback queue counted in ticks";
    "cfs-arceos" cfs_arceos => CfsArceos: RunQueue, "ArceOS: fair by weighted ticks";
    "pbg" pbg => Pbg: RunQueue, "Shortest first by a profile of an earlier run; yielders go on";
}
/// Linux, and what was proposed for it.
linux {
    "cfs" cfs => Cfs: RunQueue, "Linux up to 6.5: least virtual runtime first";
    "eevdf" eevdf => Eevdf: RunQueue, "Linux since 6.6: earliest eligible virtual deadline first";
    "bfs" bfs => Bfs: Scheduler, "One runqueue, earliest virtual deadline first, sticky tasks";
    "gfs" gfs => Gfs: Scheduler, "BFS's deadlines in a runqueue per core or package, balanced";
    "contention-aware" contention_aware => ContentionAware: Scheduler,
        "Round robin per CPU; tasks that use the memory much are kept apart";
    mod virtual_deadline;
}
/// OSv, and what was proposed for it.
osv {
    "osv" osv => Osv: Scheduler, "OSv: least exponentially decayed use of the CPU first";
    "m-rsf" m_rsf => MRsf: RunQueue, "Shortest first for two slices, then first come";
    "mqms-loose" mqms_loose => MqmsLoose: RunQueue, "Strawman: FCFS and RR queues by task number";
}
/// Xen, and what was proposed for it.
xen {
    "credit" credit => Credit: Scheduler, "Xen: domains share by weight and cap, wakers first";
    "credit2" credit2 => Credit2: Scheduler, "Xen since 4.12: most credit first, reset all at once";
    "sedf" sedf => Sedf: Scheduler, "Xen: a slice per period by earliest deadline; extra time";
    "dm-xen" sedf::dm_xen => DmXen: Scheduler, "SEDF by shortest slice, period or deadline";
    "d-edf" sedf::d_edf => DEdf: Scheduler, "SEDF, by shortest slice after misses in a row";
    "sedf-dm" sedf::sedf_dm => SedfDm: Scheduler,
        "SEDF, by shortest slice while many miss deadlines";
    "rtds" rtds => Rtds: Scheduler, "Xen: earliest deadline first, each vCPU within its budget";
}
/// This project's own.
own {
    "gittins" gittins => Gittins: RunQueue, "Soonest to end first, by how long tasks usually run";
    "vfair" vfair => Vfair: Scheduler, "Our own: virtual deadlines by usual bursts and switch cost";
}
}

/// The policy of this name.
pub fn policy(name: &str) -> Option<&'static PolicyInfo> {
    POLICIES.iter().find(|policy| policy.name == name)
}
