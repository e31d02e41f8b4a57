//! The runqueues: order, what a PCPU takes, and which PCPUs are kicked for a vCPU that becomes
//! ready.

use super::{Credit, Current, Place, Pri, Vcpu};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::machine::Level;
use anysched_core::time::Span;

/// The first of `cpus`, which ascend, after `cpu`, wrapping around.
pub(super) fn cycle(cpu: CpuId, cpus: impl Iterator<Item = CpuId>) -> Option<CpuId> {
    let mut first = None;
    for next in cpus {
        if next > cpu {
            return Some(next);
        }
        first.get_or_insert(next);
    }
    first
}

impl Credit {
    /// Queues `task` on its PCPU behind those of its priority, or with `ahead` before them.
    pub(super) fn insert(&mut self, task: TaskId, ahead: bool) {
        let vcpu = &mut self.vcpus[task];
        let (pri, yielded) = (vcpu.pri, vcpu.yielded);
        vcpu.place = Place::Queued;
        vcpu.red = true;
        let pcpu = &mut self.pcpus[vcpu.processor.index()];
        let mut queued = self.queues.iter(&pcpu.queue);
        let mut next = queued.find(|other| {
            let other = self.vcpus[*other].pri;
            if ahead { other <= pri } else { other < pri }
        });
        if yielded && next.is_some() {
            next = queued.next();
        }
        drop(queued);
        self.queues.insert_before(&mut pcpu.queue, next, task);
        pcpu.boosted += u32::from(pri == Pri::Boost);
    }

    /// Takes `task`, which is queued, off its queue.
    pub(super) fn remove(&mut self, task: TaskId) {
        let vcpu = &mut self.vcpus[task];
        vcpu.place = Place::Blocked;
        let pcpu = &mut self.pcpus[vcpu.processor.index()];
        self.queues.remove(&mut pcpu.queue, task);
        pcpu.boosted -= u32::from(vcpu.pri == Pri::Boost);
    }

    /// Changes the priority of `task` but, for now, not its place in the queue.
    pub(super) fn set_pri(&mut self, task: TaskId, pri: Pri) {
        let vcpu = &mut self.vcpus[task];
        let old = core::mem::replace(&mut vcpu.pri, pri);
        if vcpu.place == Place::Queued {
            let boosted = &mut self.pcpus[vcpu.processor.index()].boosted;
            *boosted += u32::from(pri == Pri::Boost);
            *boosted -= u32::from(old == Pri::Boost);
        }
    }

    /// After an accounting, moves all with credits before all without; otherwise the order stays.
    pub(super) fn sort(&mut self, cpu: CpuId) {
        let pcpu = &mut self.pcpus[cpu.index()];
        if core::mem::replace(&mut pcpu.sorted, self.epoch) == self.epoch {
            return;
        }
        let mut first_over = None;
        let mut next = pcpu.queue.front();
        while let Some(task) = next {
            next = self.queues.next(task);
            if self.vcpus[task].pri < Pri::Under {
                first_over = first_over.or(Some(task));
            } else if first_over.is_some() {
                self.queues.remove(&mut pcpu.queue, task);
                self.queues.insert_before(&mut pcpu.queue, first_over, task);
            }
        }
    }

    /// Takes what `cpu` runs next off its own queue or, if that has none with credits, off
    /// another's.
    pub(super) fn choose(&mut self, cx: &mut Cx<'_>, cpu: CpuId) -> Option<TaskId> {
        let head = self.pcpus[cpu.index()].queue.front();
        let pri = head.map_or(Pri::Idle, |task| self.pri(task));
        let stolen = if pri <= Pri::Over { self.steal(cx, cpu, pri) } else { None };
        if let Some(task) = stolen {
            self.remove(task);
            self.set_processor(task, cpu);
        } else if let Some(task) = head {
            self.remove(task);
        }
        stolen.or(head)
    }

    /// A vCPU above `pri` that waits on another PCPU and may run on `cpu`: one that prefers to, or
    /// else any.
    fn steal(&self, cx: &mut Cx<'_>, cpu: CpuId, pri: Pri) -> Option<TaskId> {
        let choosy = |task| self.is_choosy(task) && self.prefers(task, cpu);
        let preferring = (self.choosy > 0).then(|| self.steal_of(cx, cpu, pri, choosy)).flatten();
        preferring
            .or_else(|| self.steal_of(cx, cpu, pri, |task| self.vcpus[task].affinity.contains(cpu)))
    }

    /// Of those that are `wanted`, the first of the nearest node.
    fn steal_of(
        &self,
        cx: &mut Cx<'_>,
        cpu: CpuId,
        pri: Pri,
        wanted: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let nodes = self.machine.groups(Level::Node) as u16;
        let own = self.machine.cpu(cpu).node;
        for node in (own..nodes).chain(0..own) {
            for &peer in self.machine.members(Level::Node, node) {
                let pcpu = &self.pcpus[peer.index()];
                let usable = peer != cpu && self.online.contains(peer);
                // An idle PCPU is about to take what waits there.
                if !usable || matches!(pcpu.current, Current::Idle) {
                    continue;
                }
                for task in self.queues.iter(&pcpu.queue) {
                    cx.work.scanned += 1;
                    let vcpu = &self.vcpus[task];
                    if vcpu.pri <= pri {
                        break;
                    }
                    let rested = vcpu.last_ran.map_or(Span::MAX, |last| cx.now.since(last));
                    if wanted(task) && rested >= self.params.migration_delay {
                        return Some(task);
                    }
                }
            }
        }
        None
    }

    /// Kicks PCPUs for `new`, which has been queued on `cpu`; `by` is where that happened.
    pub(super) fn tickle(&mut self, cx: &mut Cx<'_>, cpu: CpuId, new: TaskId, by: CpuId) {
        let current = self.pcpus[cpu.index()].stint().map(|stint| stint.task);
        if matches!(self.pcpus[cpu.index()].current, Current::Idle) {
            return cx.kick(cpu);
        }
        let beaten = current.filter(|&current| self.pri(new) > self.pri(current));
        if self.idlers.is_empty() {
            if beaten.is_some() {
                cx.kick(cpu);
            }
            return;
        }
        let affinity = &self.vcpus[new].affinity;
        let is_preferred =
            self.is_choosy(new) && self.idlers.iter().any(|cpu| self.prefers(new, cpu));
        let suitable = self.idlers.iter().filter(|&idler| match is_preferred {
            true => self.prefers(new, idler),
            false => affinity.contains(idler),
        });
        if !self.params.tickle_one && self.idlers.meets(affinity) {
            suitable.for_each(|idler| cx.kick(idler));
        } else if let Some(idler) = cycle(self.pcpus[by.index()].last_tickled, suitable) {
            self.pcpus[by.index()].last_tickled = idler;
            cx.kick(idler);
        } else if let Some(current) = beaten {
            // The idle ones are for the displaced vCPU.
            self.vcpus[current].migrating = true;
            cx.kick(cpu);
        }
    }

    /// `task`, which waited for something, is ready; `by` is where that happened.
    pub(super) fn wake(&mut self, cx: &mut Cx<'_>, task: TaskId, by: CpuId) {
        let vcpu = &mut self.vcpus[task];
        if self.params.boost && vcpu.pri == Pri::Under && !vcpu.parked {
            vcpu.pri = Pri::Boost;
        }
        vcpu.boosted = Span::ZERO;
        if self.params.boost_balance && !vcpu.parked && vcpu.pri == Pri::Boost {
            let better = self.boost_target(task);
            self.set_processor(task, better);
        }
        self.make_ready(cx, task, by);
    }

    /// Queues `task`, unless it is parked, and kicks for it.
    pub(super) fn make_ready(&mut self, cx: &mut Cx<'_>, task: TaskId, by: CpuId) {
        if self.vcpus[task].parked {
            self.vcpus[task].place = Place::Parked;
            return;
        }
        self.insert(task, false);
        self.tickle(cx, self.vcpus[task].processor, task, by);
    }

    /// Removes `task` from wherever it waits.
    pub(super) fn take_out(&mut self, task: TaskId) {
        let Vcpu { processor, place, .. } = self.vcpus[task];
        match place {
            Place::Queued => self.remove(task),
            Place::OnCpu => self.pcpus[processor.index()].current = Current::Left,
            _ => {}
        }
        let vcpu = &mut self.vcpus[task];
        vcpu.place = Place::Blocked;
        vcpu.yielded = false;
        if core::mem::replace(&mut vcpu.migrating, false) {
            self.relocate(task);
        }
    }
}
