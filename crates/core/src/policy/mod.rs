//! The policies, one file each: the rule in a sentence, its source, its order key, where it
//! deviates from its source and why, its cost; then parameters, rule and unit tests.

use crate::registry::policies;

#[cfg(test)]
mod drive;
pub mod virtual_deadline;

policies! {
    "fcfs" fcfs => Fcfs: RunQueue, "First come, first served, each task to completion";
    "sjf" sjf => Sjf: RunQueue, "Shortest job first, each to completion";
    "srpt" srpt => Srpt: RunQueue, "Shortest remaining processing time, preemptive";
    "sjf-ewma" sjf_ewma => SjfEwma: RunQueue, "ArceOS: shortest job first by average past turn";
    "rr" rr => RoundRobin: RunQueue, "Round robin with a fixed quantum";
    "mlfq" mlfq => Mlfq: RunQueue, "Multilevel feedback queue with allotments and boosts";
    "mlfq-arceos" mlfq_arceos => MlfqArceos: RunQueue, "ArceOS: feedback queue counted in ticks";
    "cfs" cfs => Cfs: RunQueue, "Linux up to 6.5: least virtual runtime first";
    "cfs-arceos" cfs_arceos => CfsArceos: RunQueue, "ArceOS: fair by weighted ticks";
    "eevdf" eevdf => Eevdf: RunQueue, "Linux since 6.6: earliest eligible virtual deadline first";
    "m-rsf" m_rsf => MRsf: RunQueue, "Shortest first for two slices, then first come";
    "bfs" bfs => Bfs: Scheduler, "One runqueue, earliest virtual deadline first, sticky tasks";
    "gfs" gfs => Gfs: Scheduler, "BFS's deadlines in a runqueue per core or package, balanced";
    "osv" osv => Osv: Scheduler, "OSv: least exponentially decayed use of the CPU first";
    "mqms-loose" mqms_loose => MqmsLoose: RunQueue, "Strawman: FCFS and RR queues by task number";
    "pbg" pbg => Pbg: RunQueue, "Shortest first by a profile of an earlier run; yielders go on";
    "credit" credit => Credit: Scheduler, "Xen: domains share by weight and cap, wakers first";
    "credit2" credit2 => Credit2: Scheduler, "Xen since 4.12: most credit first, reset all at once";
    "sedf" sedf => Sedf: Scheduler, "Xen: a slice per period by earliest deadline; extra time";
    "dm" dm => Dm: Scheduler, "SEDF by shortest slice (or period, or relative deadline)";
    "d-edf" d_edf => DEdf: Scheduler, "SEDF, by shortest slice after misses in a row";
    "sedf-dm" sedf_dm => SedfDm: Scheduler, "SEDF, by shortest slice while many miss deadlines";
    "rtds" rtds => Rtds: Scheduler, "Xen: earliest deadline first, each vCPU within its budget";
    "vfair" vfair => Vfair: Scheduler, "Our own: virtual deadlines by usual bursts and switch cost";
}
