//! One runqueue for all CPUs: earliest virtual deadline first, with a preference for the CPU that
//! a task was preempted on.
//!
//! Source: BFS v0.427 by Con Kolivas for Linux 3.7, `kernel/sched/bfs.c` and
//! `Documentation/scheduler/sched-BFS.txt`; also what GFS compares with and is built on (Cao
//! Yue, Gu Naijie 2015).
//! Deadlines, slices and their end: see `virtual_deadline`.
//!
//! - Order key: deadline, then arrival in the list. A task that was preempted sticks to its CPU
//!   until another one is preempted there or it is picked; other CPUs take it only if nothing
//!   else waits, from the nearest first. Then an idle CPU is kicked for the one that sticks no
//!   longer.
//! - Woken: on the best idle CPU. That is the last one; else by rank, of equals the lowest: on
//!   an idle core before a busy one; the sibling, then the same cache, then the same node behind
//!   an idle cache, then behind a busy one; other nodes last. Else it preempts the CPU that runs
//!   the latest deadline, if that is later; a waker that is about to sleep preempts nobody.
//! - New: its creator's CPU picks again unless one is idle.
//! - A yielder keeps deadline and slice, so that it may be picked again until its slice is used.
//!
//! Deviations:
//! - The source's ms are 2^20 ns; here they are ms. `rr_interval = 6291456ns` is exactly as there.
//! - It shifts the deadlines of tasks that stick elsewhere left by their distance. They are times
//!   since boot, so that this puts them behind all others, as is done here.
//! - A new task has a slice and a deadline of its own (`fork = fresh`), as GFS describes BFS; in
//!   the source it shares its creator's (`fork = share`).
//! - A kicked CPU counts as running what it was kicked for, and is idle no more.
//! - A task that may no longer use the CPU it last ran on counts as near to that all the same; in
//!   the source, as if it had last run on the lowest one that it may use.
//! - Left out: SCHED_FIFO, RR, ISO, BATCH and IDLEPRIO. Without the first two nothing unsticks
//!   at once.
//!
//! Cost: O(log CPUs) to wake, where the source looks at all CPUs, and O(log n) to pick, where it
//! looks through a list of all tasks that wait, as `queue = list` does. Both decide the same, and
//! the host is told in both cases how many tasks a list would have to be looked through for.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use crate::linux::virtual_deadline::{
    Balancer, Grouping, Rules, VirtualDeadlines, check_interval, longest_wait, tick,
};
use anysched_core::params::ParamError;
use anysched_core::registry::{Bound, First, Native, Policy};
use anysched_core::time::Span;
use anysched_core::{Machine, choice, params};

choice! {
    /// What a new task gets.
    pub enum Fork {
        /// A slice and a deadline of its own.
        Fresh = "fresh",
        /// Half of what its creator has left, and its deadline.
        Share = "share",
    }
}

choice! {
    /// How waiting tasks are kept.
    pub enum Queue {
        /// In a list that every pick looks through.
        List = "list",
        /// In a tree.
        Tree = "tree",
    }
}

params! {
    /// Parameters of `bfs`.
    pub struct BfsParams {
        /// Slice, and a 6.53rd of the time to the deadline of a task of nice 0; 1ms to 1048ms.
        rr_interval: Span = Span::from_ms(6),
        /// Preempted tasks stick to their CPU.
        sticky: bool = true,
        /// Other CPUs leave those alone even if nothing else waits, as with a CPU frequency
        /// governor that scales.
        scaling: bool = false,
        /// What a new task gets.
        fork: Fork = Fork::Fresh,
        /// How waiting tasks are kept; both decide alike.
        queue: Queue = Queue::Tree,
        /// A CPU that picks in the first half of a tick ends slices half a tick early.
        dither: bool = true,
        /// Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends
        /// them exactly.
        tick: Option<Span> = None,
    }
}

/// Marks `VirtualDeadlines` as [`Bfs`].
#[derive(Clone, Copy, Debug)]
pub struct OneQueue;

/// See the [module documentation](self).
pub type Bfs = VirtualDeadlines<OneQueue>;

impl Policy for Bfs {
    type Params = BfsParams;
    const SOURCE: &'static str = "BFS v0.427 for Linux 3.7, kernel/sched/bfs.c";
    const ORDER: &'static [First] = &[First::Least("deadline_ns")];
    const NATIVE: &'static [Native] = &[Native { host: "linux", scheduler: None }];

    fn is_work_conserving(params: &Self::Params) -> bool {
        !params.scaling
    }

    fn longest_wait(params: &Self::Params) -> Option<Bound> {
        Some(longest_wait(params.rr_interval))
    }

    fn build(machine: &Machine, _: usize, params: &Self::Params) -> Result<Self, ParamError> {
        check_interval(params.rr_interval)?;
        let rules = Rules {
            rr_interval: params.rr_interval,
            tick: tick(machine, params.tick)?,
            dither: params.dither,
            fork_shares: params.fork == Fork::Share,
            creator_picks: true,
            sticky: params.sticky,
            scaling: params.scaling,
            list: params.queue == Queue::List,
            pick_scans: true,
            high: false,
            steal_high: false,
            ranked: true,
            nearest: false,
            regroups: false,
        };
        let groups = Grouping::Single.groups(machine)?;
        Ok(VirtualDeadlines::with_rules(machine, rules, &groups, Box::new(Balancer::none())))
    }
}
