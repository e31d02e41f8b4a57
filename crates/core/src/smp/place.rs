//! Placement: which runqueue a task enters, and which idle CPU is told of it.

use super::{Place, RunQueue, Smp};
use crate::ids::{CpuId, TaskId};
use crate::machine::Level;
use crate::{Arrival, Cx, Enqueue, Off};

use super::{Entry, Removal, State, Steal, Why, at};
use super::At;

impl<Q: RunQueue> Smp<Q> {
    /// The runqueue that `task` enters; `near` is where it last ran or where it was created.
    /// `arrival` is `None` when it is moved because it cannot stay where it is.
    pub(super) fn choose_queue(
        &mut self,
        task: TaskId,
        arrival: Option<&Arrival>,
        near: CpuId,
    ) -> usize {
        let home = usize::from(self.queue_of[near.index()]);
        if self.queues() == 1 {
            return 0;
        }
        let new = arrival.is_some_and(|arrival| arrival.why == Enqueue::New);
        match (self.params.place, arrival) {
            (_, None) => self.least_loaded(task, home),
            (Place::RoundRobin, _) if new => self.next_in_turn(task, home),
            (Place::Creator | Place::RoundRobin, _) => {
                if self.may_enter(task, home) { home } else { self.least_loaded(task, home) }
            }
            (Place::LeastLoaded, _) => self.least_loaded(task, home),
            (Place::Linux, Some(arrival)) => {
                let cpu = if new {
                    self.place_new(task, near)
                } else {
                    self.place_woken(task, arrival, near)
                };
                match cpu {
                    Some(cpu) => usize::from(self.queue_of[cpu.index()]),
                    None => self.least_loaded(task, home),
                }
            }
        }
    }

    fn next_in_turn(&mut self, task: TaskId, home: usize) -> usize {
        for _ in 0..self.queues() {
            let queue = self.next_queue;
            self.next_queue = (queue + 1) % self.queues();
            if self.may_enter(task, queue) {
                return queue;
            }
        }
        home
    }

    /// Tasks that wait or run on `queue`.
    fn occupancy(&self, queue: usize) -> usize {
        let running = self.members(queue).iter().filter(|running| running.task().is_some());
        self.rule.len(queue) + running.count()
    }

    /// The runqueue with the fewest tasks per usable CPU that `task` may enter; among equals
    /// `home`, then the lowest.
    fn least_loaded(&self, task: TaskId, home: usize) -> usize {
        let mut best: Option<(usize, usize, usize)> = None;
        for queue in 0..self.queues() {
            if !self.may_enter(task, queue) {
                continue;
            }
            let members = self.members(queue);
            let cpus = members.iter().filter(|member| self.online.contains(member.cpu)).count();
            let tasks = self.occupancy(queue);
            let better = best.is_none_or(|(other_tasks, other_cpus, _)| {
                let (a, b) = (tasks * other_cpus, other_tasks * cpus);
                a < b || (a == b && queue == home)
            });
            if better {
                best = Some((tasks, cpus, queue));
            }
        }
        best.map_or(home, |(_, _, queue)| queue)
    }

    fn usable(&self, task: TaskId, cpu: CpuId) -> bool {
        self.online.contains(cpu) && self.tasks[task.index()].affinity.contains(cpu)
    }

    /// Linux `select_task_rq` at fork: the least loaded group of each level, from the widest,
    /// then its least loaded CPU; among equals the group of `near`, then the lowest.
    fn place_new(&self, task: TaskId, near: CpuId) -> Option<CpuId> {
        let mut inside: &[CpuId] = self.machine.members(Level::Machine, 0);
        for level in [Level::Node, Level::Package, Level::Llc, Level::Core] {
            let own = self.machine.cpu(near).group(level);
            let mut best: Option<(usize, usize, u16)> = None;
            let mut last = None;
            for &cpu in inside {
                let group = self.machine.cpu(cpu).group(level);
                if last == Some(group) {
                    continue;
                }
                last = Some(group);
                let members = self.machine.members(level, group);
                let usable = members.iter().filter(|&&cpu| self.usable(task, cpu));
                let (cpus, tasks) = usable.fold((0, 0), |(cpus, tasks), &cpu| {
                    (cpus + 1, tasks + self.occupancy(usize::from(self.queue_of[cpu.index()])))
                });
                let better = cpus > 0
                    && best.is_none_or(|(other_tasks, other_cpus, _)| {
                        let (a, b) = (tasks * other_cpus, other_tasks * cpus);
                        a < b || (a == b && group == own)
                    });
                if better {
                    best = Some((tasks, cpus, group));
                }
            }
            inside = self.machine.members(level, best?.2);
        }
        let load = |cpu: CpuId| self.occupancy(usize::from(self.queue_of[cpu.index()]));
        let usable = inside.iter().copied().filter(|&cpu| self.usable(task, cpu));
        usable.min_by_key(|&cpu| (load(cpu), cpu != near, cpu))
    }

    /// Linux `select_task_rq` at wake-up. The target is the waker's CPU if it shares the cache
    /// and is idle, or is no busier than the last one; else the last CPU. Then an idle CPU:
    /// target, last, a fully idle core of the target's cache, any idle CPU there.
    fn place_woken(&self, task: TaskId, arrival: &Arrival, prev: CpuId) -> Option<CpuId> {
        let near = |a: CpuId, b: CpuId| self.machine.cpu(a).llc == self.machine.cpu(b).llc;
        let load = |cpu: CpuId| self.occupancy(usize::from(self.queue_of[cpu.index()]));
        let is_idle = |cpu: CpuId| self.idle.contains(cpu) && self.usable(task, cpu);
        let mut target = prev;
        if let Some(waker) = arrival.from
            && waker != prev
            && self.usable(task, waker)
            && (load(waker) <= load(prev) || (is_idle(waker) && near(waker, prev)))
        {
            target = waker;
        }
        if is_idle(target) {
            return Some(target);
        }
        if is_idle(prev) && near(prev, target) {
            return Some(prev);
        }
        if !self.idle.is_empty() {
            let cache = self.machine.sharing(Level::Llc, target);
            let whole_core = |&cpu: &CpuId| {
                self.machine.sharing(Level::Core, cpu).iter().all(|&cpu| self.idle.contains(cpu))
            };
            let mut idle = cache.iter().copied().filter(|&cpu| is_idle(cpu));
            if let Some(first) = idle.next() {
                let rest = core::iter::once(first).chain(idle);
                return Some(rest.clone().find(whole_core).unwrap_or(first));
            }
        }
        self.usable(task, target).then_some(target)
    }

    /// An idle CPU that may run `task`, which has entered `queue`: the nearest to `near` that
    /// serves this runqueue, else one that may steal from it.
    pub(super) fn find_idle(&self, task: TaskId, queue: usize, near: CpuId) -> Option<CpuId> {
        let affinity = &self.tasks[task.index()].affinity;
        let serves = |cpu: CpuId| usize::from(self.queue_of[cpu.index()]) == queue;
        if serves(near) && self.idle.contains(near) && affinity.contains(near) {
            return Some(near);
        }
        if self.queues() == 1 {
            return self.nearest_idle(task, near, |_| true);
        }
        self.nearest_idle(task, near, serves).or_else(|| {
            if self.params.steal == Steal::Never {
                return None;
            }
            let reach = |cpu: CpuId| self.may_steal(cpu, queue);
            self.nearest_idle(task, near, reach)
        })
    }

    /// The idle CPU nearest to `near` that `task` may use and that is `wanted`.
    fn nearest_idle(
        &self,
        task: TaskId,
        near: CpuId,
        wanted: impl Fn(CpuId) -> bool,
    ) -> Option<CpuId> {
        let affinity = &self.tasks[task.index()].affinity;
        if self.machine.groups(Level::Core) == self.machine.cpus()
            && self.machine.groups(Level::Llc) == 1
            && self.queues() == 1
        {
            return self.idle.lowest_of(affinity);
        }
        let candidates = self.idle.iter().filter(|&cpu| affinity.contains(cpu) && wanted(cpu));
        candidates.min_by_key(|&cpu| (self.machine.distance(near, cpu), cpu))
    }

    /// Whether `cpu` may pull from `queue` when it has nothing to run.
    pub(super) fn may_steal(&self, cpu: CpuId, queue: usize) -> bool {
        let level = match self.params.steal {
            Steal::Never => return false,
            Steal::Llc => Level::Llc,
            Steal::Node => Level::Node,
            Steal::Machine => return true,
        };
        let group = self.machine.cpu(cpu).group(level);
        let member = self.members(queue).first();
        member.is_some_and(|member| self.machine.cpu(member.cpu).group(level) == group)
    }

    /// `task`, which ran on `cpu`, may not stay in its runqueue.
    #[cold]
    pub(super) fn expel(
        &mut self,
        cx: &mut Cx<'_>,
        task: TaskId,
        queue: usize,
        cpu: CpuId,
        why: Off,
    ) {
        self.tasks[task.index()].state = State::Ready;
        self.tasks[task.index()].queue = queue as u16;
        self.rule.push(&at!(self, cx.now, queue), task, &Entry::because(Why::Put(why)));
        let to = self.choose_queue(task, None, cpu);
        self.rule.remove(&at!(self, cx.now, queue), task, Removal::Move);
        self.touched(cx, queue);
        self.enter(cx, task, to, cpu, &Entry::because(Why::Moved));
    }
}
