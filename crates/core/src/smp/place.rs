//! Placement: which runqueue a task enters, and which idle CPU is kicked for it.

use super::fair::Leaves;
use super::rule::Rule;
use super::{At, Entry, Place, Removal, Smp, State, Why, at};
use crate::ids::{CpuId, CpuSet, TaskId};
use crate::machine::Level;
use crate::time::Time;
use crate::{Arrival, Cx, Enqueue, Off};

impl Smp<dyn Rule> {
    /// The runqueue that `task` enters; `near` is where it last ran or where it was created.
    /// `arrival` is `None` when it is moved because it cannot stay where it is.
    pub(super) fn choose_queue(
        &mut self,
        task: TaskId,
        arrival: Option<&Arrival>,
        near: CpuId,
    ) -> usize {
        if self.queues() == 1 {
            return 0;
        }
        let home = self.queue_of(near);
        let Some(arrival) = arrival else {
            return match self.kept.places {
                true => self.leave_for(task, near).index(),
                false => self.least_loaded(task, home),
            };
        };
        if matches!(arrival.why, Enqueue::Resumed { .. }) && self.may_enter(task, home) {
            return home;
        }
        let new = arrival.why == Enqueue::New;
        match self.params.place {
            Place::RoundRobin if new => self.next_in_turn(task, home),
            Place::Creator | Place::RoundRobin if self.may_enter(task, home) => home,
            Place::Creator | Place::RoundRobin | Place::LeastLoaded => {
                self.least_loaded(task, home)
            }
            Place::Linux => {
                let cpu = if new {
                    self.place_new(task, near)
                } else {
                    self.place_woken(task, arrival, near)
                };
                match cpu {
                    Some(cpu) => self.queue_of(cpu),
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

    /// How many tasks wait or run on `queue`.
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
            let cpus = self.online_members(queue).count();
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

    pub(super) fn usable(&self, task: TaskId, cpu: CpuId) -> bool {
        self.online.contains(cpu) && self.tasks[task].affinity.contains(cpu)
    }

    /// As Linux `find_idlest_cpu` at fork: the group with the least load per capacity, level by
    /// level from the widest, then the CPU; among equals the group of `near`, then the lowest. Only
    /// CPUs that `task` may use count. `None`: there is no such CPU.
    fn place_new(&self, task: TaskId, near: CpuId) -> Option<CpuId> {
        let mut inside = self.machine.members(Level::Machine, 0);
        for level in [Level::Node, Level::Package, Level::Llc, Level::Core] {
            if self.machine.sharing(level, inside[0]).len() == inside.len() {
                continue;
            }
            let own = self.machine.cpu(near).group(level);
            let mut best: Option<(u64, bool, &[CpuId])> = None;
            for &cpu in inside {
                let members = self.machine.sharing(level, cpu);
                if members[0] != cpu {
                    continue;
                }
                if let Some(load) = self.load_for(task, members) {
                    let other = self.machine.cpu(cpu).group(level) != own;
                    if best.is_none_or(|(least, far, _)| (load, other) < (least, far)) {
                        best = Some((load, other, members));
                    }
                }
            }
            inside = best?.2;
        }
        let usable = inside.iter().copied().filter(|&cpu| self.usable(task, cpu));
        usable.min_by_key(|&cpu| (self.cpu_load(cpu), cpu != near, cpu))
    }

    /// The mean load of those `cpus` that `task` may use; `None` if it may use none.
    fn load_for(&self, task: TaskId, cpus: &[CpuId]) -> Option<u64> {
        let usable = cpus.iter().filter(|&&cpu| self.usable(task, cpu));
        let loads = usable.map(|&cpu| self.cpu_load(cpu));
        let (count, sum) = loads.fold((0, 0), |(count, sum), load| (count + 1, sum + load));
        (count > 0).then(|| sum / count)
    }

    /// The load of the runqueue of `cpu` per capacity, see [`Smp::relative_load`].
    fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.relative_load(self.queue_of(cpu))
    }

    /// As Linux `select_task_rq_fair` at wake-up: the last CPU if it is idle, unless the waker is
    /// about to sleep. Else the target is the waker's CPU if it has no more tasks than the last one
    /// (not counting a waker about to sleep), or the last one. Then an idle CPU: the target, the
    /// last one if it shares the target's cache, a fully idle core of that cache, any idle CPU
    /// there. `None`: the task may not even use the target.
    fn place_woken(&self, task: TaskId, arrival: &Arrival, prev: CpuId) -> Option<CpuId> {
        let near = |a: CpuId, b: CpuId| self.machine.cpu(a).llc == self.machine.cpu(b).llc;
        let tasks = |cpu: CpuId| self.occupancy(self.queue_of(cpu));
        let is_idle = |cpu: CpuId| self.idle.contains(cpu) && self.usable(task, cpu);
        let sync = matches!(arrival.why, Enqueue::Wakeup { sync: true, .. });
        if is_idle(prev) && !sync {
            return Some(prev);
        }
        let mut target = prev;
        if let Some(waker) = arrival.from
            && waker != prev
            && self.usable(task, waker)
        {
            let staying = tasks(waker).saturating_sub(usize::from(sync));
            if staying <= tasks(prev) {
                target = waker;
            }
        }
        if is_idle(target) {
            return Some(target);
        }
        if is_idle(prev) && near(prev, target) {
            return Some(prev);
        }
        if !self.idle.is_empty() {
            let cache = self.neighbours.of(&self.machine, Level::Llc, target);
            let mut idle = self.idle.iter_among(cache).filter(|&cpu| is_idle(cpu));
            if let Some(first) = idle.next() {
                let mut rest = core::iter::once(first).chain(idle);
                return Some(rest.find(|&cpu| self.is_idle_core(cpu)).unwrap_or(first));
            }
        }
        self.usable(task, target).then_some(target)
    }

    /// Whether nothing runs on the core of `cpu`.
    fn is_idle_core(&self, cpu: CpuId) -> bool {
        let mut threads = self.machine.sharing(Level::Core, cpu).iter();
        threads.all(|&cpu| self.idle.contains(cpu) || !self.online.contains(cpu))
    }

    /// An idle CPU that may run `task`, which has entered `queue`: the nearest to `near` that
    /// serves this runqueue, else the nearest that may pull from it; the lowest of equals.
    pub(super) fn find_idle(&self, task: TaskId, queue: usize, near: CpuId) -> Option<CpuId> {
        let affinity = &self.tasks[task].affinity;
        let has_roles = self.rule.has_roles();
        let free = |cpu: CpuId| {
            let fits = self.idle.contains(cpu) && affinity.contains(cpu);
            fits && (!has_roles || self.rule.serves(cpu, task))
        };
        if self.queue_of(near) == queue && free(near) {
            return Some(near);
        }
        if has_roles {
            let nearest = |&cpu: &CpuId| (self.machine.distance(near, cpu), cpu);
            return self.idle.iter().filter(|&cpu| free(cpu)).min_by_key(nearest);
        }
        if self.queues() == 1 {
            return self.idle_around(near, Level::Machine, affinity);
        }
        let members = self.members(queue).iter().map(|member| member.cpu);
        let nearest = |&cpu: &CpuId| (self.machine.distance(near, cpu), cpu);
        if let Some(cpu) = members.filter(|&cpu| free(cpu)).min_by_key(nearest) {
            return Some(cpu);
        }
        let reach = self.params.steal.level()?;
        let centre = if self.may_pull(near, queue) { near } else { self.members(queue)[0].cpu };
        self.idle_around(centre, reach, affinity)
    }

    /// The idle CPU of `affinity` nearest to `centre` that shares `reach` with it; the lowest of
    /// equals.
    fn idle_around(&self, centre: CpuId, reach: Level, affinity: &CpuSet) -> Option<CpuId> {
        for level in Level::ALL {
            if self.machine.groups(level) == 1 {
                return self.idle.lowest_of(affinity);
            }
            let near = self.neighbours.of(&self.machine, level, centre);
            let found = self.idle.lowest_among(|word| near.word(word) & affinity.word(word));
            if found.is_some() || level == reach {
                return found;
            }
        }
        None
    }

    /// Whether `cpu` may run `task`, which waits in `queue`.
    pub(super) fn may_take(&self, cpu: CpuId, task: TaskId, queue: usize) -> bool {
        let serves = self.queue_of(cpu) == queue;
        self.usable(task, cpu)
            && self.rule.serves(cpu, task)
            && (serves || self.may_pull(cpu, queue))
    }

    /// Whether `cpu` is near enough to `queue` to pull from it.
    fn may_pull(&self, cpu: CpuId, queue: usize) -> bool {
        let member = self.members(queue)[0].cpu;
        let group =
            |level| self.machine.cpu(cpu).group(level) == self.machine.cpu(member).group(level);
        self.params.steal.level().is_some_and(group)
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
        let slot = &mut self.tasks[task];
        (slot.state, slot.queue) = (State::Ready, queue as u16);
        self.promises.withdraw(task);
        if self.kept.fair {
            self.fair.stops(cpu, task, cx.now);
            self.tasks[task].hot_until = Time::ZERO;
        }
        self.rule.push(&at!(self, cx.now, queue), task, &Entry::because(Why::Put(why)));
        let to = self.choose_queue(task, None, cpu);
        self.note_leaving(cx, queue, task, Leaves::Moves);
        self.rule.remove(&at!(self, cx.now, queue), task, Removal::Move);
        self.touched(cx, queue);
        self.enter(cx, task, to, cpu, &Entry::because(Why::Moved));
    }
}
