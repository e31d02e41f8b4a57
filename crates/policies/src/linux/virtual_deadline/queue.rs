//! The queues: of a group, a tree or a list; of a CPU, a tree of what has woken for it.

use alloc::vec::Vec;

use super::standing::Standing;
use super::{Place, VirtualDeadlines};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, CpuMask, TaskId};
use anysched_core::machine::{Distance, Level};
use anysched_core::queue::{List, Tree};
use anysched_core::time::Time;

/// CPUs that share a runqueue.
#[derive(Debug)]
pub(crate) struct Group {
    /// Ascending.
    pub members: Vec<CpuId>,
    pub mask: CpuMask,
    pub idle: CpuMask,
    pub tree: Tree,
    list: List,
    /// How many tasks wait at its CPUs.
    high: usize,
    pub running: usize,
    /// Of each CPU, the deadline of what it runs or has been kicked for.
    pub standing: Standing,
}

impl Group {
    pub(crate) fn new(cpus: impl Iterator<Item = CpuId>) -> Group {
        let members: Vec<CpuId> = cpus.collect();
        let mask = CpuMask::of(members.iter().copied());
        Group {
            idle: mask.clone(),
            mask,
            standing: Standing::new(members.len()),
            members,
            tree: Tree::default(),
            list: List::default(),
            high: 0,
            running: 0,
        }
    }

    pub(crate) fn slot(&self, cpu: CpuId) -> Option<usize> {
        self.members.binary_search(&cpu).ok()
    }

    /// How many tasks wait in its queue.
    pub(crate) fn queued(&self) -> usize {
        self.tree.len() + self.list.len()
    }

    /// Whether a task waits for one of its CPUs.
    pub(crate) fn waits(&self) -> bool {
        self.queued() + self.high > 0
    }

    /// How many tasks there are, waiting or running.
    pub(crate) fn load(&self) -> usize {
        self.queued() + self.high + self.running
    }
}

impl<Of> VirtualDeadlines<Of> {
    /// Notes for the host's cost model which queue a call touched.
    fn touched(&mut self, cx: &mut Cx<'_>, group: usize) {
        cx.work.queue = group as u16;
        cx.work.queued = self.groups[group].queued() as u32;
    }

    /// `task` enters the queue of `group`.
    pub(crate) fn push(&mut self, cx: &mut Cx<'_>, task: TaskId, group: usize) {
        self.promises.withdraw(task);
        let known = &mut self.tasks[task];
        known.place = Place::Group(group as u16);
        self.arrivals += 1;
        let to = &mut self.groups[group];
        if self.rules.list {
            self.links.push_back(&mut to.list, task);
        } else {
            self.forest.insert(&mut to.tree, task, (known.deadline, self.arrivals), ());
        }
        self.waiting += 1;
        if self.waiting == 1 {
            self.resume_balancing(cx.now);
        }
        self.touched(cx, group);
    }

    /// `task` waits at `cpu`, which is kicked.
    pub(crate) fn push_high(&mut self, cx: &mut Cx<'_>, task: TaskId, cpu: CpuId) {
        self.promises.withdraw(task);
        let known = &mut self.tasks[task];
        known.place = Place::High(cpu.0);
        self.arrivals += 1;
        let at = &mut self.cpus[cpu.index()];
        self.forest.insert(&mut at.high, task, (known.deadline, self.arrivals), ());
        let group = usize::from(at.group);
        self.groups[group].high += 1;
        self.stand_in(cx, cpu, task);
        self.touched(cx, group);
    }

    /// `task`, which waits, leaves its queue.
    pub(crate) fn take_out(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let place = core::mem::replace(&mut self.tasks[task].place, Place::Away);
        let group = match place {
            Place::High(cpu) => {
                let at = &mut self.cpus[usize::from(cpu)];
                self.forest.remove(&mut at.high, task);
                let group = usize::from(at.group);
                self.groups[group].high -= 1;
                group
            }
            Place::Group(group) => {
                let from = &mut self.groups[usize::from(group)];
                if self.rules.list {
                    self.links.remove(&mut from.list, task);
                } else {
                    self.forest.remove(&mut from.tree, task);
                }
                self.waiting -= 1;
                usize::from(group)
            }
            Place::Away | Place::Running => return,
        };
        self.touched(cx, group);
    }

    /// Takes the task of its group's queue that `cpu` runs next.
    pub(crate) fn pop(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<TaskId> {
        let group = self.group_of(cpu);
        let waiting = self.groups[group].queued();
        let (task, passed) = if self.rules.list {
            let list = &self.groups[group].list;
            let key = |task: TaskId| (self.tasks[task].deadline, 0);
            self.earliest(cpu, self.links.iter(list), key, false)
        } else {
            let tree = &self.groups[group].tree;
            self.earliest(cpu, self.forest.iter(tree), |task| self.forest.key(task), true)
        };
        if let Some(task) = task {
            self.take_out(cx, task);
        }
        self.touched(cx, group);
        cx.work.scanned += if self.rules.pick_scans { waiting as u32 } else { passed };
        task
    }

    /// Of `waiting`, the task that `cpu` runs next and how many had to be passed over: the one of
    /// the least key, but one that sticks to another CPU only if there is no other, the nearest
    /// first. If `ordered` the keys ascend.
    fn earliest(
        &self,
        cpu: CpuId,
        waiting: impl Iterator<Item = TaskId>,
        key: impl Fn(TaskId) -> (Time, u64),
        ordered: bool,
    ) -> (Option<TaskId>, u32) {
        let mut best = None;
        let mut passed = 0;
        for task in waiting {
            let known = &self.tasks[task];
            let elsewhere = known.sticky && known.cpu != cpu.0;
            if (elsewhere && self.rules.scaling)
                || (self.restricted > 0 && !known.affinity.contains(cpu))
            {
                passed += 1;
                continue;
            }
            if ordered && !elsewhere {
                return (Some(task), passed);
            }
            passed += u32::from(ordered);
            let way = elsewhere.then(|| self.locality(cpu, CpuId(known.cpu)));
            let rank = (way, key(task));
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, task));
            }
        }
        (best.map(|(_, task)| task), passed)
    }

    /// How far apart two CPUs are, to BFS: all of a node that share no cache equally.
    fn locality(&self, a: CpuId, b: CpuId) -> Distance {
        match self.machine.distance(a, b) {
            Distance::Shares(Level::Package) => Distance::Shares(Level::Node),
            distance => distance,
        }
    }

    /// The deadline of what `cpu` will probably pick.
    pub(crate) fn prospect(&self, cpu: CpuId) -> Option<Time> {
        let state = &self.cpus[cpu.index()];
        if let Some(task) = state.high.first() {
            return Some(self.tasks[task].deadline);
        }
        let group = &self.groups[usize::from(state.group)];
        let deadline = |task: TaskId| self.tasks[task].deadline;
        if self.rules.list {
            self.links.iter(&group.list).map(deadline).min()
        } else {
            group.tree.first().map(deadline)
        }
    }

    /// A task in the queue of `group` that no usable CPU there may run.
    pub(crate) fn stranded(&self, group: usize) -> Option<TaskId> {
        let is_stranded = |task: &TaskId| !self.may_enter(*task, group);
        let from = &self.groups[group];
        let listed = self.links.iter(&from.list).find(is_stranded);
        listed.or_else(|| self.forest.iter(&from.tree).find(is_stranded))
    }
}
