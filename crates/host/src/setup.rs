//! What scheduling costs. All zero by default, so that a policy can be seen by itself.

use anysched_core::machine::{Distance, Level};
use anysched_core::{Machine, Span, Time};

/// No run has a time like this or a later one: 4.5 years.
pub const LONGEST: Time = Time(1 << 57);

/// Costs in CPU time, charged to the CPU that does the work, never to a task's service.
///
/// Policies are told how long a task ran without these costs, unless they are `charged`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A CPU switches to another task than it ran last.
    pub context_switch: Span,
    /// A task runs on an SMT sibling of the CPU that it ran on before: they share all caches, but
    /// not what a CPU keeps of a task's context.
    pub migrate_thread: Span,
    /// It runs on another core of the same last-level cache: its caches are cold there, which is
    /// paid for at once, here and below.
    pub migrate_core: Span,
    /// It runs behind another last-level cache of the same node.
    pub migrate_llc: Span,
    /// It runs on another NUMA node.
    pub migrate_node: Span,
    /// Every pick.
    pub pick_base: Span,
    /// Every task that a pick looks at one by one, with the runqueue locked.
    pub pick_per_item: Span,
    /// Every enqueue, on the waker's CPU; of a timer or a device, on the CPU the task last ran on.
    pub enqueue_base: Span,
    /// Times log2(tasks queued + 1), every enqueue.
    pub enqueue_log: Span,
    /// A runqueue's lock is held this long by every enqueue and pick, and also while a pick looks
    /// at tasks one by one; CPUs queue for it in order. Zero: there is no lock.
    pub lock_hold: Span,
    /// A CPU is kicked because a task on another wakes or creates one.
    pub ipi: Span,
    /// A tick.
    pub timer_irq: Span,
    /// An interrupt that wakes a task: a timer at the end of a sleep, or a device; on the CPU that
    /// the task last ran on.
    pub wake_irq: Span,
    /// A CPU that was idle for any time picks a task.
    pub idle_exit: Span,
    /// The timer that ends a slice goes off late by up to this, by chance. What runs goes on
    /// meanwhile: it is no cost, but keeps tasks of equal right from meeting to the nanosecond.
    pub timer_late: Span,
    /// Creating a task: work of the creator before the new task is there; of a task from outside,
    /// its own first work. This and the next two are CPU time of the task, of which policies are
    /// told and which counts for slices, but not its service.
    pub create: Span,
    /// Ending a task: its own last work.
    pub exit: Span,
    /// What a task does behind a wake-up by it until it is in its program again: it may be
    /// preempted before it gets there. Nothing, if nobody was woken.
    pub after_wake: Span,
    /// Policies are told that a task also ran for the cost of switching to it and of interrupting
    /// it, and slices include that: kernels that read the clock once between two tasks cannot tell
    /// these apart.
    pub charged: bool,
}

impl Costs {
    /// Whether everything is free.
    pub fn are_zero(&self) -> bool {
        Costs { charged: false, ..self.clone() } == Costs::default()
    }

    /// The cost of running a task at this distance from where it ran before.
    pub fn migration(&self, distance: Distance) -> Span {
        match distance {
            Distance::Same => Span::ZERO,
            Distance::Shares(Level::Core) => self.migrate_thread,
            Distance::Shares(Level::Llc) => self.migrate_core,
            Distance::Shares(Level::Package | Level::Node) => self.migrate_llc,
            Distance::Shares(Level::Machine) => self.migrate_node,
        }
    }

    /// The cost of adding a task to a runqueue that has `queued` tasks.
    pub fn enqueue(&self, queued: u32) -> Span {
        // log2(n + 1) to three binary digits after the point: the model needs no more, and
        // integers are the same everywhere.
        let n = u64::from(queued) + 1;
        let exponent = u64::from(n.ilog2());
        let fraction = ((n << 3) >> exponent) - 8;
        self.enqueue_base + self.enqueue_log.scaled(exponent * 8 + fraction, 8)
    }
}

/// A parameter of the policy that is changed during the run ([`Scheduler::set_param`]).
///
/// [`Scheduler::set_param`]: anysched_core::Scheduler::set_param
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamChange {
    /// When.
    pub at: anysched_core::Time,
    /// The parameter.
    pub name: String,
    /// Its new value.
    pub text: String,
}

/// How much tasks that use the memory slow each other down through the caches that they share.
///
/// A CPU whose task has the intensity i, from 0 to 1 ([`TaskParams::intensity`]), runs at
///
/// ```text
/// 1 / (1 + i · (core · Σ of its siblings + llc · Σ of the other CPUs of its last-level cache))
/// ```
///
/// of its speed, where Σ is the sum of the intensities of what these CPUs run now; siblings are
/// among the CPUs of the cache.
///
/// [`TaskParams::intensity`]: anysched_core::TaskParams::intensity
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Through the caches of a core, in 1/1024; at most [`Contention::MOST`].
    pub core: u32,
    /// Through the last-level cache, likewise.
    pub llc: u32,
}

impl Contention {
    /// The most of either: 1024, as a number of times.
    pub const MOST: u32 = 1024 * 1024;

    /// Whether tasks do not slow each other down.
    pub fn is_none(&self) -> bool {
        *self == Contention::default()
    }

    /// `speed` of a CPU, as it is while its task of intensity `own` has beside it tasks whose
    /// intensities sum up to `core` on its siblings and to `llc` on the other CPUs of its cache,
    /// all in percent. At least 1.
    pub fn slowed(&self, speed: u64, own: u8, core: u32, llc: u32) -> u64 {
        let pressure =
            u64::from(self.core) * u64::from(core) + u64::from(self.llc) * u64::from(llc);
        // In 1/1024 of percents of percents.
        let whole = 1024 * 100 * 100;
        (speed * whole / (whole + u64::from(own) * pressure)).max(1)
    }
}

/// When CPUs are put into use and taken out of it, and how fast they are together.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// What scheduling costs.
    pub costs: Costs,
    /// Speed of a CPU with a busy SMT sibling in 1/1024 of its speed alone; `1 ..= 1024`.
    pub smt_speed: u32,
    /// How much tasks slow each other down through caches.
    pub contention: Contention,
    /// Times at which a CPU goes offline (`false`) or online (`true`), in time order.
    pub hotplug: Vec<(anysched_core::Time, anysched_core::CpuId, bool)>,
    /// Parameters of the policy that change during the run, in time order. The policy allows them
    /// ([`check_param`](anysched_core::Scheduler::check_param)).
    pub changes: Vec<ParamChange>,
    /// What a kernel that is booted is told on its command line besides; one line.
    pub kernel_options: String,
    /// When the run ends at the latest.
    pub until: anysched_core::Time,
}

impl Setup {
    /// The machine with no costs and no end.
    pub fn new(machine: Machine) -> Setup {
        Setup {
            machine,
            costs: Costs::default(),
            smt_speed: 1024,
            contention: Contention::default(),
            hotplug: Vec::new(),
            changes: Vec::new(),
            kernel_options: String::new(),
            until: anysched_core::Time::NEVER,
        }
    }

    /// Whether CPUs differ in speed, or slow each other down.
    pub fn is_unequal(&self) -> bool {
        let machine = &self.machine;
        let shares_cores = machine.groups(Level::Core) != machine.cpus();
        (self.smt_speed != 1024 && shares_cores)
            || (!self.contention.is_none() && machine.cpus() > 1)
            || machine.cpu_ids().any(|cpu| machine.cpu(cpu).capacity != 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enqueue_grows_with_the_logarithm() {
        let costs = Costs { enqueue_log: Span(800), ..Costs::default() };
        assert_eq!([0, 1, 3, 7, 1023].map(|n| costs.enqueue(n).0), [0, 800, 1600, 2400, 8000]);
        assert_eq!(costs.enqueue(2), Span(1200)); // log2 3 = 1.58, linear between powers
    }

    #[test]
    fn contention_grows_with_both_sides() {
        let both = Contention { core: 512, llc: 256 };
        // 1 / (1 + 1 · (0.5 · 1 + 0.25 · 1.5)), and so on.
        for (own, core, llc, speed) in [
            (100, 100, 150, 546),
            (100, 100, 100, 585),
            (50, 100, 0, 819),
            (50, 50, 0, 910),
            (0, 100, 700, 1024),
            (100, 0, 0, 1024),
        ] {
            assert_eq!(both.slowed(1024, own, core, llc), speed, "{own} {core} {llc}");
        }
        assert_eq!(both.slowed(1, 100, 100, 100), 1);
        let most = Contention { core: Contention::MOST, llc: Contention::MOST };
        assert_eq!(most.slowed(1024, 100, 102_400, 102_400), 1);
    }

    #[test]
    fn migration_costs_by_distance() {
        let costs = Costs {
            migrate_thread: Span(2),
            migrate_core: Span(5),
            migrate_llc: Span(10),
            migrate_node: Span(30),
            ..Costs::default()
        };
        let machine = Machine::parse("2 nodes x 2 packages x 2 cores x 2 threads").unwrap();
        let cost = |to| {
            let cpu = anysched_core::CpuId;
            costs.migration(machine.distance(cpu(0), cpu(to))).0
        };
        assert_eq!([0, 1, 2, 4, 8].map(cost), [0, 2, 5, 10, 30]);
    }
}
