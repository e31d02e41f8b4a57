//! Which CPU is kicked for a vCPU that waits.

use super::{Task, Vfair};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::machine::Level;
use anysched_core::time::Time;

impl Vfair {
    /// Kicks `cpu` once until it picks.
    pub(super) fn tell(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let on = &mut self.cpus[cpu.index()];
        if !on.online {
            return;
        }
        on.told = true;
        if on.current.is_none() && !on.coming {
            on.coming = true;
            self.coming += 1;
            self.idle.remove(cpu);
        }
        cx.kick(cpu);
    }

    /// `cpu`, which may have been idle when it was kicked, picks or goes out of use.
    pub(super) fn arrived(&mut self, cpu: CpuId) {
        if core::mem::take(&mut self.cpus[cpu.index()].coming) {
            self.coming -= 1;
        }
    }

    /// Kicks an idle CPU for `task`, which waits, or the one on which it preempts.
    pub(super) fn announce(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if !self.kick_idle(cx, task) {
            self.preempt(cx, task);
        }
    }

    /// `cpu`, which has put `task` back, picks next. Another CPU is needed if `cpu` was kicked for
    /// another vCPU, or may not run `task`.
    pub(super) fn stay_or_go(&mut self, cx: &mut Cx<'_>, cpu: CpuId, task: TaskId) {
        let on = &self.cpus[cpu.index()];
        if on.told || !on.online || !self.task(task).affinity.contains(cpu) {
            self.kick_idle(cx, task);
        }
    }

    /// Kicks idle CPUs for waiting vCPUs, unless enough have been kicked.
    pub(super) fn serve_idle(&mut self, cx: &mut Cx<'_>) {
        let mut at = self.waiting.first();
        let mut needed = self.waiting.len();
        if self.restricted == 0 {
            needed = needed.saturating_sub(self.coming);
        }
        while let Some(task) = at.filter(|_| needed > 0 && !self.idle.is_empty()) {
            at = self.queued.next(task);
            self.kick_idle(cx, task);
            needed -= 1;
        }
    }

    fn kick_idle(&mut self, cx: &mut Cx<'_>, task: TaskId) -> bool {
        if self.idle.is_empty() {
            return false;
        }
        let found = self.nearest_idle(self.task(task));
        if let Some(cpu) = found {
            self.tell(cx, cpu);
        }
        found.is_some()
    }

    fn nearest_idle(&self, task: &Task) -> Option<CpuId> {
        let fits = |cpu: &CpuId| self.idle.contains(*cpu) && task.affinity.contains(*cpu);
        let is_core_idle = |cpu: &CpuId| {
            let siblings = self.machine.sharing(Level::Core, *cpu);
            siblings.iter().all(|sibling| self.cpus[sibling.index()].current.is_none())
        };
        let home = Some(task.cpu).filter(fits);
        let near = |level: &Level| self.machine.sharing(*level, task.cpu).iter().copied();
        home.filter(is_core_idle)
            .or_else(|| {
                Level::ALL
                    .iter()
                    .find_map(|level| near(level).find(|cpu| fits(cpu) && is_core_idle(cpu)))
            })
            .or(home)
            .or_else(|| Level::ALL.iter().find_map(|level| near(level).find(fits)))
    }

    /// Kicks the CPU on which `task`, which waits, preempts a vCPU due later, if there is one.
    fn preempt(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let due = self.queued.key(task).due;
        let Task { left: asked, cpu: home, ref affinity, .. } = *self.task(task);
        let guard = self.params.guard.max(self.switch_cost.scaled(2, 1));
        let mut best: Option<(i64, CpuId)> = None;
        let mut retry = Time::NEVER;
        for (index, on) in self.cpus.iter().enumerate() {
            let cpu = CpuId(index as u16);
            let Some(current) = on.current.filter(|_| on.online && !on.told) else { continue };
            let ahead = self.due(current).minus(due);
            if ahead <= 0 || !affinity.contains(cpu) {
                continue;
            }
            let since = cx.now.since(on.picked);
            let rest = self.task(current).left.saturating_sub(since);
            if self.task(current).fresh && rest <= asked.scaled(2, 1) {
                continue;
            }
            if since < guard {
                retry = retry.min(on.picked + guard);
                continue;
            }
            let gain = if cpu == home { ahead + self.params.resist.0 as i64 } else { ahead };
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, cpu));
            }
        }
        match best {
            Some((_, cpu)) => self.tell(cx, cpu),
            None => self.retry = self.retry.min(retry),
        }
    }

    /// Retries for the first woken vCPUs, as many as there are CPUs.
    pub(super) fn preempt_again(&mut self, cx: &mut Cx<'_>) {
        let mut at = self.waiting.first();
        let mut tries = self.cpus.len();
        while let Some(task) = at.filter(|_| tries > 0) {
            at = self.queued.next(task);
            tries -= 1;
            if self.task(task).fresh {
                self.announce(cx, task);
            }
        }
    }
}
