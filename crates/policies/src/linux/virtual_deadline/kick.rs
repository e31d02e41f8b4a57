//! Kicks: which CPU is told that a task is ready.
//!
//! As in [`Smp`](anysched_core::Smp), each task that waits while an idle CPU could run it is
//! [promised](anysched_core::promise) to a CPU that is about to pick.

use core::ops::Range;

use super::{Place, VirtualDeadlines};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, CpuMask, TaskId};
use anysched_core::machine::Level;
use anysched_core::promise::PassedOver;
use anysched_core::queue::NONE;
use anysched_core::time::Time;

impl<Of> VirtualDeadlines<Of> {
    pub(crate) fn set_idle(&mut self, cpu: CpuId, idle: bool) {
        let group = self.group_of(cpu);
        let mask = &mut self.groups[group].idle;
        if mask.contains(cpu) == idle {
            return;
        }
        let was_empty = mask.is_empty();
        if idle {
            mask.insert(cpu);
        } else {
            mask.remove(cpu);
        }
        let is_empty = mask.is_empty();
        if was_empty != is_empty {
            self.balancer.plan(group, !is_empty);
        }
        if self.rules.ranked {
            self.idleness.change(&self.machine, &self.neighbours, cpu, idle);
        }
    }

    /// `cpu` counts as running something of this deadline.
    pub(crate) fn stand(&mut self, cpu: CpuId, deadline: Time) {
        let (group, slot) = (self.group_of(cpu), usize::from(self.cpus[cpu.index()].slot));
        self.groups[group].standing.set(slot, deadline);
    }

    /// `cpu` picks again.
    pub(crate) fn tell(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        self.cpus[cpu.index()].told = true;
        self.set_idle(cpu, false);
        cx.kick(cpu);
    }

    /// `cpu` picks again on account of `task` and counts as running it.
    pub(crate) fn stand_in(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId) {
        self.tell(cx, cpu);
        self.stand(cpu, self.tasks[task].deadline);
        if self.cpus[cpu.index()].running == NONE && !self.promises.is_promised(cpu) {
            self.promises.promise(task, cpu);
        }
    }

    /// Whether the CPU that was told of `task` may still run it.
    pub(crate) fn is_promised_allowed(&self, task: TaskId) -> bool {
        self.promises.cpu(task).is_some_and(|cpu| self.tasks[task].affinity.contains(cpu))
    }

    /// Kicks an idle CPU of `group` for `task`, which waits there. Returns whether there was one.
    pub(crate) fn kick_idle(&mut self, cx: &mut Cx<'_>, task: TaskId, group: usize) -> bool {
        self.kick_idle_near(cx, task, group, CpuId(self.tasks[task].cpu))
    }

    /// The same, as if the task had last run on `near`.
    pub(crate) fn kick_idle_near(
        &mut self,
        cx: &mut Cx<'_>,
        task: TaskId,
        group: usize,
        near: CpuId,
    ) -> bool {
        let Some(cpu) = self.find_idle(task, group, near) else { return false };
        self.stand_in(cx, cpu, task);
        true
    }

    /// Kicks the CPU of `group` that runs the latest task if that is later than `task`, which
    /// waits there; the lowest of equals.
    pub(crate) fn preempt_latest(&mut self, cx: &mut Cx<'_>, task: TaskId, group: usize) {
        let standing = &self.groups[group].standing;
        let known = &self.tasks[task];
        if standing.latest() <= known.deadline {
            return;
        }
        let members = &self.groups[group].members;
        let cpu = if known.affinity.is_all() {
            members[standing.first_of_latest()]
        } else {
            let mut latest = (known.deadline, None);
            for (slot, &cpu) in members.iter().enumerate() {
                if standing.get(slot) > latest.0 && known.affinity.contains(cpu) {
                    latest = (standing.get(slot), Some(cpu));
                }
            }
            let Some(cpu) = latest.1 else { return };
            cpu
        };
        self.stand_in(cx, cpu, task);
    }

    /// The CPU of `group` nearest to where `task` last ran that may run it and runs something
    /// later; the lowest of equals.
    pub(crate) fn find_later(&self, task: TaskId, group: usize) -> Option<CpuId> {
        let known = &self.tasks[task];
        let (standing, near) = (&self.groups[group].standing, CpuId(known.cpu));
        if standing.latest() <= known.deadline {
            return None;
        }
        let later = |cpu: CpuId| {
            let state = &self.cpus[cpu.index()];
            usize::from(state.group) == group
                && standing.get(usize::from(state.slot)) > known.deadline
                && known.affinity.contains(cpu)
        };
        if later(near) {
            return Some(near);
        }
        let members = &self.groups[group].members;
        Level::ALL.into_iter().find_map(|level| {
            let around = self.machine.sharing(level, near);
            if known.affinity.is_all()
                && let Some(slots) = slots_among(members, around)
            {
                let slot = standing.first_later(slots, known.deadline);
                return slot.map(|slot| members[slot]);
            }
            around.iter().copied().find(|&cpu| later(cpu))
        })
    }

    /// The idle CPU of `group` that `task` gets, the best as seen from `near`.
    pub(crate) fn find_idle(&self, task: TaskId, group: usize, near: CpuId) -> Option<CpuId> {
        let idle = &self.groups[group].idle;
        let known = &self.tasks[task];
        if idle.is_empty() {
            None
        } else if idle.contains(near) && known.affinity.contains(near) {
            Some(near)
        } else if known.sticky && self.rules.scaling {
            None
        } else if self.rules.ranked {
            self.find_ranked(idle, task, near)
        } else {
            self.find_nearest(idle, task, near)
        }
    }

    /// The lowest CPU of `idle` that `task` may use among those nearest to `near`.
    fn find_nearest(&self, idle: &CpuMask, task: TaskId, near: CpuId) -> Option<CpuId> {
        let affinity = &self.tasks[task].affinity;
        Level::ALL.into_iter().find_map(|level| {
            let around = self.neighbours.of(&self.machine, level, near);
            idle.lowest_among(|word| around.word(word) & affinity.word(word))
        })
    }

    /// The lowest CPU of `idle` that `task` may use among those of best rank (v0.427
    /// `resched_best_mask`). From the best: CPUs of idle cores: the siblings of `near`, those
    /// behind its cache, those of its node behind idle caches, behind others; the same for CPUs of
    /// cores that are not idle; then other nodes in the same way, but for the first two.
    fn find_ranked(&self, idle: &CpuMask, task: TaskId, near: CpuId) -> Option<CpuId> {
        let affinity = &self.tasks[task].affinity;
        let (cores, caches) = (self.idleness.cores(), self.idleness.caches());
        let [core, cache, node] = [Level::Core, Level::Llc, Level::Node]
            .map(|level| self.neighbours.of(&self.machine, level, near));
        let lowest = |wanted: &dyn Fn(usize) -> u64| {
            idle.lowest_among(|word| wanted(word) & affinity.word(word))
        };
        lowest(&|w| core.word(w) & cores.word(w))
            .or_else(|| lowest(&|w| cache.word(w) & cores.word(w)))
            .or_else(|| lowest(&|w| node.word(w) & caches.word(w)))
            .or_else(|| lowest(&|w| node.word(w) & cores.word(w)))
            .or_else(|| lowest(&|w| core.word(w)))
            .or_else(|| lowest(&|w| cache.word(w)))
            .or_else(|| lowest(&|w| node.word(w)))
            .or_else(|| lowest(&|w| caches.word(w)))
            .or_else(|| lowest(&|w| cores.word(w)))
            .or_else(|| lowest(&|_| u64::MAX))
    }

    /// `cpu` has picked `taken`, or goes away. If it was to pick because of another task and that
    /// still waits, another CPU takes its place: the one that was to run `taken`, else an idle one.
    pub(crate) fn hand_on(&mut self, cx: &mut Cx<'_>, cpu: CpuId, taken: Option<TaskId>) {
        let Some(PassedOver { task, freed }) = self.promises.settle(cpu, taken) else { return };
        let known = &self.tasks[task];
        let Place::Group(group) = known.place else { return };
        let group = usize::from(group);
        if let Some(freed) = freed
            && self.group_of(freed) == group
            && self.online.contains(freed)
            && known.affinity.contains(freed)
        {
            return self.promises.promise(task, freed);
        }
        self.promises.withdraw(task);
        self.kick_idle(cx, task, group);
    }
}

/// The places of those `members` that are also in `around`, both ascending, if the CPUs of
/// `around` have consecutive numbers, as they have on most machines.
fn slots_among(members: &[CpuId], around: &[CpuId]) -> Option<Range<usize>> {
    let (first, last) = (around.first()?, around.last()?);
    let start = members.partition_point(|cpu| cpu < first);
    let end = members.partition_point(|cpu| cpu <= last);
    (usize::from(last.0 - first.0) + 1 == around.len()).then_some(start..end)
}
