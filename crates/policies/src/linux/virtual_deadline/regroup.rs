//! Another division of the machine while tasks run.
//!
//! - A waiting task moves to the queue of the group for it: that of the CPU it last ran on, or of
//!   the nearest that it may use. Tasks move in the order of their keys, so that those of one
//!   deadline stay in the order in which they came.
//! - What has woken for a CPU stays in that one's list, and what runs goes on.
//! - A task keeps the CPU that was kicked for it if that one serves its new queue. Otherwise an
//!   idle CPU there is kicked, or the one that runs the latest deadline if that is later.
//! - Balancing begins anew, as if all groups had just looked at the others. Its counters go on.
//!
//! Nothing happens if the groups are those that there are.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use super::{Grouping, VirtualDeadlines, made_of, place_in};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, CpuSet, TaskId};
use anysched_core::params::{ParamError, Value};
use anysched_core::queue::NONE;

/// The parameter that can be changed.
const GROUPING: &str = "grouping";

impl<Of> VirtualDeadlines<Of> {
    /// The groups that the parameter `name` makes if it is changed to `text`.
    ///
    /// Errors: it is not the grouping, or the text is no grouping of this machine.
    pub(crate) fn new_groups(&self, name: &str, text: &str) -> Result<Vec<CpuSet>, ParamError> {
        let changeable: &[&str] = if self.rules.regroups { &[GROUPING] } else { &[] };
        if !changeable.contains(&name) {
            return Err(ParamError::Fixed { name: name.to_owned(), changeable });
        }
        Grouping::read(name, text)?.groups(&self.machine)
    }

    /// From now on, `sets` divide the machine.
    pub(crate) fn regroup(&mut self, cx: &mut Cx<'_>, sets: &[CpuSet]) {
        let groups = made_of(&self.machine, sets);
        if groups.iter().map(|new| &new.members).eq(self.groups.iter().map(|old| &old.members)) {
            return;
        }
        let waiting = self.take_out_all(cx);
        let old = core::mem::replace(&mut self.groups, groups);
        for cpu in self.machine.cpu_ids() {
            let state = &mut self.cpus[cpu.index()];
            let (from, slot) = (&old[usize::from(state.group)], usize::from(state.slot));
            (state.group, state.slot) = place_in(&self.groups, cpu);
            let to = &mut self.groups[usize::from(state.group)];
            to.standing.set(usize::from(state.slot), from.standing.get(slot));
            to.running += usize::from(state.running != NONE);
            to.high += state.high.len();
            to.usable -= usize::from(!self.online.contains(cpu));
            if !from.idle.contains(cpu) {
                to.idle.remove(cpu);
            }
        }
        self.balancer.divide(&self.machine, sets, cx.now);
        for (number, group) in self.groups.iter().enumerate() {
            self.balancer.plan(number, !group.idle.is_empty());
        }
        self.spread(cx, waiting);
    }

    /// Takes all tasks out of the queues of groups, in the order of their keys, each with the CPU
    /// that was kicked for it.
    fn take_out_all(&mut self, cx: &mut Cx<'_>) -> Vec<(TaskId, Option<CpuId>)> {
        let trees = self.groups.iter().flat_map(|group| self.forest.iter(&group.tree));
        let mut waiting: Vec<TaskId> = trees.collect();
        waiting.sort_unstable_by_key(|&task| self.forest.key(task));
        let mut taken = Vec::with_capacity(waiting.len());
        for task in waiting {
            taken.push((task, self.promises.release(task)));
            self.take_out(cx, task);
        }
        taken
    }

    /// `waiting` enter the queues of the new groups.
    fn spread(&mut self, cx: &mut Cx<'_>, waiting: Vec<(TaskId, Option<CpuId>)>) {
        cx.work.scanned += waiting.len() as u32;
        let mut unserved = Vec::new();
        for (task, promised) in waiting {
            let group = self.group_for(task, CpuId(self.tasks[task].cpu));
            self.push(cx, task, group);
            match promised.filter(|&cpu| self.group_of(cpu) == group) {
                Some(cpu) => self.promises.promise(task, cpu),
                None => unserved.push((task, group)),
            }
        }
        for (task, group) in unserved {
            if !self.kick_idle(cx, task, group) {
                self.preempt_latest(cx, task, group);
            }
        }
        if self.rules.steal_high {
            self.offer_high(cx);
        }
    }

    /// Tells CPUs that are idle of what waits at others of the group that they have come to.
    fn offer_high(&mut self, cx: &mut Cx<'_>) {
        for cpu in self.machine.cpu_ids() {
            let group = self.group_of(cpu);
            let high: Vec<TaskId> = self.forest.iter(&self.cpus[cpu.index()].high).collect();
            for task in high {
                if self.promises.cpu(task).is_none() {
                    self.kick_idle(cx, task, group);
                }
            }
        }
    }
}
