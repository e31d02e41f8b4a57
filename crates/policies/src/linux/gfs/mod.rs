//! BFS's deadlines in a runqueue per group of near CPUs, with lists of woken tasks per CPU and
//! balancing between the groups.
//!
//! Source: GFS, Cao Yue and Gu Naijie 2015, for Linux 3.6. Its code is not public; where the
//! paper is silent, what was decided is marked †.
//! Deadlines, slices and their end: see `virtual_deadline`.
//!
//! - Groups: the CPUs of a package if there are several, else the threads of a core
//!   (`grouping = auto`). Each has a tree of waiting tasks ordered by (deadline, arrival number).
//! - New: into the tree of its creator's group; kicks an idle CPU of that, else† the one that runs
//!   the latest deadline if that is later.
//! - Woken: in the group where it last ran, the nearest idle CPU, its own first; else the nearest
//!   CPU that runs a later deadline†. It waits there in a list of its own, ordered by deadline,
//!   and the CPU picks again. If there is no such CPU, or the waker is about to sleep†: into the
//!   tree. Other groups are not searched.
//! - Pick: the CPU's own list, whatever the tree has; then the tree. What is put back goes into
//!   the tree of the CPU's group, with a new slice and deadline if the old one is used up.
//! - Balancing: per group, upwards from the narrowest level that has several: cores or caches of a
//!   package, packages of a node, nodes. At each level, if its interval has passed, the busiest
//!   domain and its busiest other group are compared with the own one: tasks that wait or run per
//!   CPU. If it has more than `threshold` percent, waiting tasks of latest deadline are moved
//!   until both have the same†. Intervals are shorter by `busy_factor` while a CPU of the group
//!   is idle†, and one that runs out of work tries at once†.
//! - Lists of woken tasks belong to their CPU: others of the group go idle beside them unless
//!   `steal_high` is set†.
//!
//! The tree is served by a CPU whose list has nothing, however soon its first task is due. Lists
//! delay but do not starve it: a list takes only what is due before the task that the CPU runs,
//! and what is preempted goes to the tree. With m tasks that sleep, a CPU's list is empty after
//! 2^m - 1 of their bursts at the latest; after few, unless they wake each other as they block.
//!
//! A group of all CPUs (`grouping = single`) differs from `bfs` in this: nothing sticks to a CPU;
//! woken tasks do not wait among the others and preempt the nearest later CPU, not the latest
//! (both as in `bfs` with `wake = tree` and `victim = latest`); idle CPUs are chosen by distance
//! alone, which is the same where cores have one thread and share one cache; a new task does not
//! make its creator's CPU pick. On one CPU lists make no difference unless several tasks become
//! ready before it has picked, or one that runs has been given a better nice value.
//!
//! Not work-conserving: balancing takes its time, and see above.
//! Cost, with N tasks, M CPUs, K groups: O(log(N/K)) to queue and to pick, O(log(M/K)) to wake, but
//! O(M/K) for tasks that may not use every CPU; O(log K) for a look at other groups and O(log(N/K))
//! for each task that is moved.

#[cfg(test)]
mod tests;

pub use crate::linux::virtual_deadline::Grouping;
use alloc::boxed::Box;

use crate::linux::virtual_deadline::{
    Balancer, Balancing, Rules, VirtualDeadlines, check_interval, longest_wait, tick,
};
use anysched_core::params::ParamError;
use anysched_core::registry::{Bound, First, Groupings, Native, Policy};
use anysched_core::time::Span;
use anysched_core::{Machine, choice, params};

choice! {
    /// Where a woken task waits.
    pub enum Wake {
        /// At the CPU that it is to run on, before the tree.
        High = "high",
        /// In the tree.
        Tree = "tree",
    }
}

choice! {
    /// Which CPU of its group a woken task preempts, of those that run a later deadline.
    pub enum Victim {
        /// The nearest.
        Nearest = "nearest",
        /// The one that runs the latest.
        Latest = "latest",
    }
}

params! {
    /// Parameters of `gfs`.
    pub struct GfsParams {
        /// Slice, and a 6.53rd of the time to the deadline of a task of nice 0; 1ms to 1048ms.
        rr_interval: Span = Span::from_ms(6),
        /// Which CPUs share a tree.
        grouping: Grouping = Grouping::Auto,
        /// Time between two looks at the other groups of a package, up to 1h; none never looks.
        core_interval: Span = Span::from_ms(64),
        /// The same for the other packages of a node.
        package_interval: Span = Span::from_ms(128),
        /// The same for other nodes.
        node_interval: Span = Span::from_ms(256),
        /// Intervals are shorter by this factor while a CPU of the group is idle; 1 to 1000.
        busy_factor: u32 = 64,
        /// A group with more than this percentage of the own load is too busy; at least 100.
        threshold: u32 = 125,
        /// Where a woken task waits.
        wake: Wake = Wake::High,
        /// Which CPU it preempts; with `wake = tree` the latest is BFS's choice.
        victim: Victim = Victim::Nearest,
        /// A CPU with nothing else to run takes what has woken for others of its group.
        steal_high: bool = false,
        /// A CPU that picks in the first half of a tick ends slices half a tick early.
        dither: bool = true,
        /// Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends
        /// them exactly.
        tick: Option<Span> = None,
    }
}

/// Marks `VirtualDeadlines` as [`Gfs`].
#[derive(Clone, Copy, Debug)]
pub struct GroupQueues;

/// See the [module documentation](self).
pub type Gfs = VirtualDeadlines<GroupQueues>;

impl Policy for Gfs {
    type Params = GfsParams;
    const SOURCE: &'static str = "GFS, Cao and Gu 2015; BFS v0.427";
    const ORDER: &'static [First] = &[First::Least("deadline_ns")];
    const NATIVE: &'static [Native] = &[Native { host: "linux", scheduler: None }];
    const GROUPINGS: Option<Groupings> =
        Some(Groupings { names: Grouping::names, of: Grouping::divide });

    fn is_work_conserving(params: &Self::Params) -> bool {
        params.grouping == Grouping::Single && (params.steal_high || params.wake == Wake::Tree)
    }

    fn longest_wait(params: &Self::Params) -> Option<Bound> {
        Some(longest_wait(params.rr_interval))
    }

    fn build(machine: &Machine, _: usize, params: &Self::Params) -> Result<Self, ParamError> {
        check_interval(params.rr_interval)?;
        if params.wake == Wake::High && params.victim == Victim::Latest {
            let why = "must be nearest unless `wake` is tree";
            return Err(ParamError::Invalid { name: "victim", why });
        }
        let groups = params.grouping.groups(machine)?;
        let rules = Rules {
            rr_interval: params.rr_interval,
            tick: tick(machine, params.tick)?,
            dither: params.dither,
            fork_shares: false,
            creator_picks: false,
            sticky: false,
            scaling: false,
            list: false,
            pick_scans: false,
            high: params.wake == Wake::High,
            steal_high: params.steal_high,
            ranked: false,
            nearest: params.victim == Victim::Nearest,
            regroups: true,
        };
        let balancing = Balancing {
            core: params.core_interval,
            package: params.package_interval,
            node: params.node_interval,
            busy_factor: params.busy_factor,
            threshold: params.threshold,
        };
        let balancer = Balancer::new(machine, &groups, &balancing)?;
        Ok(VirtualDeadlines::with_rules(machine, rules, &groups, Box::new(balancer)))
    }
}
