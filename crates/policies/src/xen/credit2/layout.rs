//! Which CPUs share a runqueue, and in which runqueue a vCPU is.

use alloc::vec::Vec;

use super::load::Load;
use super::{Credit2, Moving, Place, Runqueue, Task};
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::machine::Level;
use anysched_core::queue::{List, Tree};
use anysched_core::time::Time;
use anysched_core::{Cx, choice};

choice! {
    /// Which CPUs share a runqueue.
    pub enum Runqueues {
        /// None.
        Cpu = "cpu",
        /// Those of a core.
        Core = "core",
        /// Those of a package.
        Socket = "socket",
        /// Those of a NUMA node.
        Node = "node",
        /// All.
        All = "all",
    }
}

impl Runqueues {
    fn level(self) -> Option<Level> {
        match self {
            Runqueues::Cpu => None,
            Runqueues::Core => Some(Level::Core),
            Runqueues::Socket => Some(Level::Package),
            Runqueues::Node => Some(Level::Node),
            Runqueues::All => Some(Level::Machine),
        }
    }
}

impl Runqueue {
    pub fn new() -> Runqueue {
        Runqueue {
            cpus: Vec::new(),
            waiting: Tree::default(),
            members: List::default(),
            max_weight: 1,
            load: Load::default(),
            expected: 0,
            active: 0,
            pick_bias: CpuId(0),
            idle: 0,
        }
    }

    /// The next CPU after the last choice that a vCPU may run on.
    fn next_cpu(&self, allowed: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        self.find(CpuId(self.pick_bias.0 + 1), allowed)
    }
}

impl Credit2 {
    /// Puts `cpu`, one of `count`, into use.
    pub(super) fn add_cpu(&mut self, cpu: CpuId, count: usize, now: Time) {
        let queue = self.queue_for(cpu, count);
        let taken = &mut self.queues[queue];
        if taken.cpus.is_empty() {
            taken.pick_bias = cpu;
            // Nothing averages to nothing as of any time; Xen's is as of its boot.
            (taken.load, taken.expected) = (Load::of_nothing(now), 0);
        }
        let at = taken.cpus.partition_point(|&other| other < cpu);
        taken.cpus.insert(at, cpu);
        let on = &mut self.cpus[cpu.index()];
        (on.queue, on.online, on.tickled) = (queue, true, false);
        if on.current.is_none() {
            self.set_idle(cpu, true);
        }
    }

    /// The runqueue for `cpu`: that of its siblings, else the one with the fewest CPUs that is near
    /// enough and has room for it and its siblings, else a new one.
    fn queue_for(&self, cpu: CpuId, count: usize) -> usize {
        let most = self.params.max_cpus_runqueue as usize;
        let room = count / ((count - 1) / most + 1);
        let near: &[CpuId] = match self.params.runqueue.level() {
            Some(level) => self.machine.sharing(level, cpu),
            None => &[],
        };
        let siblings = self.machine.sharing(Level::Core, cpu);
        let mut best: Option<usize> = None;
        for (index, queue) in self.queues.iter().enumerate() {
            if queue.cpus.is_empty() || near.binary_search(&queue.pick_bias).is_err() {
                continue;
            }
            if queue.cpus.iter().any(|other| siblings.contains(other)) {
                return index;
            }
            let fits = self.params.runqueue == Runqueues::All
                || self.whole_cores(queue) + siblings.len() <= room;
            let fewer = best.is_none_or(|best| queue.cpus.len() < self.queues[best].cpus.len());
            if queue.cpus.len() < room && fits && fewer {
                best = Some(index);
            }
        }
        // There are as many runqueues as CPUs.
        let unused = || self.queues.iter().position(|queue| queue.cpus.is_empty());
        best.or_else(unused).unwrap_or(0)
    }

    /// The CPUs of a runqueue, with all their siblings wherever those are.
    fn whole_cores(&self, queue: &Runqueue) -> usize {
        let mut last = None;
        let firsts = queue.cpus.iter().filter(|&&cpu| {
            let core = self.machine.cpu(cpu).core;
            last.replace(core) != Some(core)
        });
        firsts.map(|&cpu| self.machine.sharing(Level::Core, cpu).len()).sum()
    }

    /// Takes `cpu` out of use. What runs there leaves when the host takes it off.
    pub(super) fn remove_cpu(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        self.set_idle(cpu, false);
        let on = &mut self.cpus[cpu.index()];
        (on.online, on.tickled) = (false, false);
        let queue = on.queue;
        self.queues[queue].cpus.retain(|&other| other != cpu);
        let on = &self.cpus[cpu.index()];
        if let Some(aside) = on.current.filter(|_| on.put.is_some()) {
            self.clear(cpu);
            self.leave(cx, cpu, aside, true);
        }
        let members: Vec<TaskId> = self.members.iter(&self.queues[queue].members).collect();
        for task in members {
            let known = self.task(task);
            if known.cpu == cpu && known.place != Place::OnCpu {
                self.replace(cx, task);
            } else if known.tickled == Some(cpu) && known.place == Place::Waiting {
                self.tickle(cx, task);
            }
        }
        let queue = &mut self.queues[queue];
        if queue.pick_bias == cpu {
            queue.pick_bias = queue.cpus.first().copied().unwrap_or(cpu);
        }
    }

    /// Chooses the CPU where `task` is placed, which becomes the last choice of its runqueue.
    pub(super) fn choose_cpu(&mut self, task: TaskId) -> Option<CpuId> {
        let known = &mut self.tasks[task];
        if let Moving::To(queue) = core::mem::replace(&mut known.moving, Moving::No)
            && let Some(cpu) = self.next_cpu(task, queue)
        {
            self.queues[queue].pick_bias = cpu;
            return Some(cpu);
        }
        let known = self.task(task);
        let least = self.least_loaded(known, |cpu| known.affinity.contains(cpu))?;
        let preferred = match self.is_choosy(known) {
            true => self.least_loaded(known, |cpu| known.prefers(cpu)),
            false => None,
        };
        let cpu = match preferred {
            // Xen goes on from the last choice of the other runqueue, and notes it there.
            Some(queue) => {
                let next = CpuId(self.queues[least].pick_bias.0 + 1);
                self.queues[queue].find(next, |cpu| known.prefers(cpu))
            }
            None => self.next_cpu(task, least),
        }?;
        self.queues[least].pick_bias = cpu;
        Some(cpu)
    }

    fn next_cpu(&self, task: TaskId, queue: usize) -> Option<CpuId> {
        self.queues[queue].next_cpu(|cpu| self.task(task).affinity.contains(cpu))
    }

    /// The runqueue with the least load, not counting that of `known`, among those with a CPU that
    /// is `allowed`.
    fn least_loaded(&self, known: &Task, allowed: impl Fn(CpuId) -> bool) -> Option<usize> {
        let allowed = |&cpu: &CpuId| allowed(cpu);
        let queues = self.queues.iter().enumerate();
        let usable = queues.filter(|(_, queue)| queue.cpus.iter().any(allowed));
        let least = usable.min_by_key(|&(index, queue)| match index == known.queue {
            true => (queue.expected - known.load.average).max(0),
            false => queue.expected,
        });
        least.map(|(index, _)| index)
    }

    /// Places `task`, which is neither queued nor on a CPU.
    pub(super) fn relocate(&mut self, task: TaskId) {
        let Some(cpu) = self.choose_cpu(task) else { return };
        let to = self.cpus[cpu.index()].queue;
        if to == self.task(task).queue {
            self.tasks[task].cpu = cpu;
        } else {
            self.move_to(task, to);
        }
    }

    /// Moves `task`, which is neither queued nor on a CPU, to the runqueue `to`.
    pub(super) fn move_to(&mut self, task: TaskId, to: usize) {
        self.quit(task);
        if let Some(cpu) = self.next_cpu(task, to) {
            self.queues[to].pick_bias = cpu;
            self.tasks[task].cpu = cpu;
        }
        self.join(task, to);
    }

    pub(super) fn join(&mut self, task: TaskId, queue: usize) {
        let known = &mut self.tasks[task];
        known.queue = queue;
        let queue = &mut self.queues[queue];
        self.members.push_back(&mut queue.members, task);
        queue.max_weight = queue.max_weight.max(known.weight);
        queue.expected += known.load.average;
    }

    pub(super) fn quit(&mut self, task: TaskId) {
        let known = &self.tasks[task];
        let (index, weight) = (known.queue, known.weight);
        let queue = &mut self.queues[index];
        self.members.remove(&mut queue.members, task);
        queue.expected = (queue.expected - known.load.average).max(0);
        self.weight_left(index, weight);
    }

    /// A vCPU of this weight has left or changed its weight.
    pub(super) fn weight_left(&mut self, queue: usize, weight: u32) {
        if weight == self.queues[queue].max_weight {
            let members = self.members.iter(&self.queues[queue].members);
            let most = members.map(|task| self.task(task).weight).max();
            self.queues[queue].max_weight = most.unwrap_or(1);
        }
    }
}
