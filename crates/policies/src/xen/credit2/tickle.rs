//! Which CPU is kicked for a vCPU that has entered a runqueue.

use super::{CREDIT_INIT, Credit2, Runqueue, Task};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::machine::Level;
use anysched_core::time::{Span, Time};

/// A running vCPU may be preempted from elsewhere this much earlier than `ratelimit` says, because
/// the CPU takes a while to react.
const TICKLE_TOLERANCE: Span = Span::from_us(50);

impl Runqueue {
    /// The first of its CPUs that `fits`, from `start` upwards and wrapping around.
    pub fn find(&self, start: CpuId, fits: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let (before, after) = self.cpus.split_at(self.cpus.partition_point(|&cpu| cpu < start));
        after.iter().chain(before).copied().find(|&cpu| fits(cpu))
    }
}

impl Credit2 {
    /// Kicks `cpu` and remembers that until it picks.
    pub(super) fn poke(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        if on.online {
            on.tickled = true;
            cx.kick(cpu);
        }
    }

    /// Kicks the best CPU for `task`, which waits, if there is one.
    pub(super) fn tickle(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let idle = self.idle_cpu(self.task(task));
        if let Some(cpu) = idle.or_else(|| self.busy_cpu(task, cx.now)) {
            self.poke(cx, cpu);
            self.tasks[task].tickled = Some(cpu);
        }
    }

    /// Whether `cpu` is idle and has not been kicked.
    pub(super) fn is_free(&self, cpu: CpuId) -> bool {
        let on = &self.cpus[cpu.index()];
        on.idle && !on.tickled
    }

    /// Whether all CPUs of this core that share its runqueue are idle and have not been kicked.
    fn is_core_free(&self, cpu: CpuId) -> bool {
        let queue = self.cpus[cpu.index()].queue;
        let siblings = self.machine.sharing(Level::Core, cpu).iter().copied();
        let others = |&sibling: &CpuId| {
            let on = &self.cpus[sibling.index()];
            on.online && on.queue == queue
        };
        siblings.filter(others).all(|sibling| self.is_free(sibling))
    }

    fn idle_cpu(&self, task: &Task) -> Option<CpuId> {
        if self.queues[task.queue].idle == 0 {
            return None;
        }
        let preferred = match self.is_choosy(task) {
            true => self.idle_cpu_of(task, |cpu| task.prefers(cpu)),
            false => None,
        };
        preferred.or_else(|| self.idle_cpu_of(task, |cpu| task.affinity.contains(cpu)))
    }

    /// The idle CPU for `task` among those that are `allowed`.
    fn idle_cpu_of(&self, task: &Task, allowed: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let (queue, saves) = (&self.queues[task.queue], self.params.smt_power_savings);
        let first = queue.find(task.cpu, |cpu| {
            let idle = self.cpus[cpu.index()].idle && allowed(cpu);
            idle && self.is_core_free(cpu) != saves
        });
        first.or_else(|| queue.find(task.cpu, |cpu| self.is_free(cpu) && allowed(cpu)))
    }

    /// The CPU where `task` gains the most; its own comes before all others, if it prefers that.
    fn busy_cpu(&mut self, task: TaskId, now: Time) -> Option<CpuId> {
        let home = self.task(task).cpu;
        let (mut most, mut best) = (0, None);
        let gain = self.gain(task, home, now);
        if gain > 0 {
            if self.task(task).preferred.contains(home) {
                return Some(home);
            }
            (most, best) = (gain, Some(home));
        }
        let queue = self.task(task).queue;
        for at in 0..self.queues[queue].cpus.len() {
            let cpu = self.queues[queue].cpus[at];
            let gain = if cpu == home { 0 } else { self.gain(task, cpu, now) };
            if gain > most {
                (most, best) = (gain, Some(cpu));
            }
        }
        best
    }

    /// By how much credit `task` is ahead of what runs on `cpu`, if it may displace that; more, if
    /// it prefers to run there, and if what runs there does not.
    fn gain(&mut self, task: TaskId, cpu: CpuId, now: Time) -> i64 {
        let on = &self.cpus[cpu.index()];
        let Some(current) = on.current.filter(|_| !on.idle && !on.tickled) else { return 0 };
        let protected = self.params.ratelimit.saturating_sub(TICKLE_TOLERANCE);
        let young = protected > Span::ZERO && now.since(self.task(current).entered) <= protected;
        if young || !self.task(task).affinity.contains(cpu) {
            return 0;
        }
        if self.running(cpu) == Some(current) {
            self.charge_running(current, now);
        }
        let resist = if self.task(task).cpu == cpu { 0 } else { self.params.migrate_resist.0 };
        let (task, current) = (self.task(task), self.task(current));
        let gain = task.credit - current.credit - resist as i64;
        if gain <= 0 {
            return gain;
        }
        let lead = |is: bool| if is { CREDIT_INIT } else { 0 };
        gain + lead(task.preferred.contains(cpu)) + lead(!current.preferred.contains(cpu))
    }
}
