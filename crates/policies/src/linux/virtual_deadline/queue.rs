//! The queues: of a group, a tree or a list; of a CPU, a tree of what has woken for it.

use alloc::vec::Vec;
use anysched_core::{Canon, canon_fields};

use super::standing::Standing;
use super::{Key, Place, VirtualDeadlines};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, CpuMask, TaskId};
use anysched_core::machine::{Distance, Level};
use anysched_core::queue::{Forest, Links, List, Tree};
use anysched_core::time::Time;

/// CPUs that share a runqueue.
#[derive(Debug)]
pub(crate) struct Group {
    /// Ascending.
    pub members: Vec<CpuId>,
    pub mask: CpuMask,
    pub idle: CpuMask,
    pub tree: Tree,
    /// Tasks that stick to a CPU, apart from the others, so that CPUs which leave them alone need
    /// not pass over them.
    stuck: Tree,
    list: List,
    /// How many of its CPUs are in use.
    pub usable: usize,
    /// How many tasks wait at its CPUs.
    pub high: usize,
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
            usable: members.len(),
            members,
            tree: Tree::default(),
            stuck: Tree::default(),
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
        self.tree.len() + self.stuck.len() + self.list.len()
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
        self.balancer.note(group);
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
            known.stuck = known.sticky;
            let tree = if known.sticky { &mut to.stuck } else { &mut to.tree };
            self.forest.insert(tree, task, (known.deadline, self.arrivals), ());
            let is_stray = known.sticky && self.cpus[usize::from(known.cpu)].sticky != task.0;
            known.stray = is_stray;
            self.strays += usize::from(is_stray);
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
                    let known = &mut self.tasks[task];
                    let tree = if known.stuck { &mut from.stuck } else { &mut from.tree };
                    self.forest.remove(tree, task);
                    self.strays -= usize::from(core::mem::take(&mut known.stray));
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
            self.earliest_of_trees(cpu, group)
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

    /// The same of the trees of `group`.
    fn earliest_of_trees(&self, cpu: CpuId, group: usize) -> (Option<TaskId>, u32) {
        let Group { tree, stuck, .. } = &self.groups[group];
        let key = |task: TaskId| self.forest.key(task);
        if self.strays > 0 {
            let both = self.forest.iter(tree).chain(self.forest.iter(stuck));
            return self.earliest(cpu, both, key, false);
        }
        let (free, passed) = self.earliest(cpu, self.forest.iter(tree), key, true);
        let own = Some(TaskId(self.cpus[cpu.index()].sticky)).filter(|task| {
            let known = self.tasks.get(*task);
            known.is_some_and(|known| {
                known.place == Place::Group(group as u16)
                    && known.stuck
                    && known.cpu == cpu.0
                    && known.affinity.contains(cpu)
            })
        });
        let first = free.into_iter().chain(own).min_by_key(|&task| key(task));
        match first {
            Some(_) => (first, passed),
            None => self.earliest(cpu, self.forest.iter(stuck), key, false),
        }
    }

    /// `task`, which waits in the queue of `group`, sticks to its CPU no more.
    pub(crate) fn free(&mut self, task: TaskId, group: usize) {
        let known = &mut self.tasks[task];
        known.sticky = false;
        if core::mem::take(&mut known.stuck) {
            self.strays -= usize::from(core::mem::take(&mut known.stray));
            let (key, group) = (self.forest.key(task), &mut self.groups[group]);
            self.forest.remove(&mut group.stuck, task);
            self.forest.insert(&mut group.tree, task, key, ());
        }
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
            let firsts = group.tree.first().into_iter().chain(group.stuck.first());
            firsts.map(deadline).min()
        }
    }

    /// A task in the queue of `group` that no usable CPU there may run.
    pub(crate) fn stranded(&self, group: usize) -> Option<TaskId> {
        let is_stranded = |task: &TaskId| !self.may_enter(*task, group);
        let from = &self.groups[group];
        let listed = self.links.iter(&from.list).find(is_stranded);
        let trees = [&from.tree, &from.stuck];
        let firsts = trees.into_iter().filter_map(|tree| self.forest.iter(tree).find(is_stranded));
        listed.or_else(|| firsts.min_by_key(|&task| self.forest.key(task)))
    }
}

impl Group {
    pub(crate) fn canon(&self, forest: &Forest<Key>, links: &Links, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Group {
                members,
                mask: fixed,
                idle,
                tree: of(forest),
                stuck: of(forest),
                list: of(links),
                usable,
                high,
                running,
                standing,
            }
        );
    }
}
