//! Layout, placement and balancing as configuration.

use crate::machine::Level;
use crate::time::Span;
use crate::{choice, params};

choice! {
    /// Which CPUs share a runqueue.
    pub enum Layout {
        /// All.
        Global = "global",
        /// None: each has its own.
        PerCpu = "per-cpu",
        /// Those behind one last-level cache.
        PerLlc = "per-llc",
        /// Those of one NUMA node.
        PerNode = "per-node",
    }
}

impl Layout {
    /// The level whose groups have a runqueue each; `None` for one per CPU.
    pub fn level(self) -> Option<Level> {
        match self {
            Layout::Global => Some(Level::Machine),
            Layout::PerCpu => None,
            Layout::PerLlc => Some(Level::Llc),
            Layout::PerNode => Some(Level::Node),
        }
    }
}

choice! {
    /// The runqueue in which a task that becomes ready is placed, if there are several.
    pub enum Place {
        /// Where it last ran; a new task where its creator runs.
        Creator = "creator",
        /// New tasks in turn over all runqueues; others where they last ran.
        RoundRobin = "round-robin",
        /// The runqueue with the fewest tasks per CPU, running ones included; among equals the one
        /// where the task last ran, then the lowest.
        LeastLoaded = "least-loaded",
        /// As Linux does: a new task in the least loaded group, level by level; a waking one near
        /// its waker or where it last ran, on an idle CPU of that cache if there is one.
        Linux = "linux",
    }
}

choice! {
    /// From which other runqueues a CPU with nothing to run may pull.
    pub enum Steal {
        /// Nothing.
        Never = "never",
        /// From runqueues of its last-level cache.
        Llc = "llc",
        /// From runqueues of its node.
        Node = "node",
        /// From any runqueue, nearest first.
        Machine = "machine",
        /// As Linux does: domain by domain, if there is a CPU with two tasks and that is expected
        /// to take less time than the CPU would be idle. It is not told of tasks that wait
        /// elsewhere. With a runqueue per CPU; else as `machine`.
        Linux = "linux",
    }
}

impl Steal {
    /// The level within which CPUs pull from each other; `None` if they never do.
    pub fn level(self) -> Option<Level> {
        match self {
            Steal::Never | Steal::Linux => None,
            Steal::Llc => Some(Level::Llc),
            Steal::Node => Some(Level::Node),
            Steal::Machine => Some(Level::Machine),
        }
    }
}

choice! {
    /// Background balancing.
    pub enum Balance {
        /// None.
        Never = "never",
        /// As Linux does: per level, at an interval that grows while the level is balanced.
        Linux = "linux",
    }
}

params! {
    /// Parameters of [`Smp`](super::Smp), which every policy that is an ordering rule has as well.
    pub struct SmpParams {
        /// Which CPUs share a runqueue.
        layout: Layout = Layout::Global,
        /// Where a task that becomes ready is placed, if there are several runqueues.
        place: Place = Place::LeastLoaded,
        /// From which other runqueues a CPU with nothing to run may pull.
        steal: Steal = Steal::Machine,
        /// Background balancing between runqueues.
        balance: Balance = Balance::Never,
        /// A task that ran within this time is moved only when nothing else can be (Linux
        /// sched_migration_cost).
        cache_hot: Span = Span::from_us(500),
        /// With `steal = linux`, what balancing on running out of work is taken to cost for each
        /// CPU that is looked at.
        newidle_cost: Span = Span::ZERO,
        /// With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        /// NI_RANDOM); otherwise always. By default as in the kernel that the policy follows.
        ni_random: Option<bool> = None,
        /// The seed of the chances that this takes.
        ni_seed: u64 = 0,
    }
}

/// What kernels differ in when they balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balancing {
    /// Who is owed CPU time is heeded (Linux 6.18): tasks that are not stay where they are if the
    /// other CPU is busy, unless balancing has failed before; those that sleep in a runqueue go
    /// only for the load that they make, and do not count among those to be moved.
    pub eligible: bool,
    /// Threads of a core are one group that is relieved if another core is idle, CPUs of idle cores
    /// balance first, and tasks are compared by the number of cores (Linux 6.6).
    pub by_core: bool,
    /// A CPU that runs out of work looks at a domain as often as that has helped before
    /// (`NI_RANDOM`; in all kernels that are maintained, from 6.1 on),
    pub random: bool,
    /// and more often if it seldom runs out of work (`NI_RATE`, Linux 7.2).
    pub by_rate: bool,
}

impl Default for Balancing {
    /// As in Linux 6.12.107.
    fn default() -> Balancing {
        Balancing { eligible: false, by_core: true, random: true, by_rate: false }
    }
}

impl SmpParams {
    /// One runqueue for all CPUs.
    pub fn global() -> SmpParams {
        SmpParams::default()
    }

    /// From where CPUs pull with this layout: Linux's way needs a runqueue per CPU.
    pub fn steal(&self) -> Steal {
        match (self.steal, self.layout) {
            (Steal::Linux, Layout::Global | Layout::PerLlc | Layout::PerNode) => Steal::Machine,
            (steal, _) => steal,
        }
    }

    /// A runqueue per CPU, placement, pulling and balancing as in Linux.
    pub fn linux() -> SmpParams {
        SmpParams {
            layout: Layout::PerCpu,
            place: Place::Linux,
            steal: Steal::Linux,
            balance: Balance::Linux,
            ..SmpParams::default()
        }
    }
}
