//! Tasks that change CPUs.

use super::{Current, Osv};
use anysched_core::ids::{CpuId, TaskId};
use anysched_core::{Cx, Scheduler};

impl Osv {
    /// Sends `task`, which is on no queue, to the CPU `to`: R keeps its relation to e^(clock/τ).
    pub(super) fn hand_over(&mut self, cx: &mut Cx<'_>, task: TaskId, to: CpuId) {
        let from = self.tasks[task].cpu;
        if from != to {
            // OSv converts with the current clock here and with that of the last reschedule there,
            // by the balancer at the latest. The head start that both then have cancels out.
            let here = self.cpus[from.index()].clock_at(cx.now);
            let there = &self.cpus[to.index()];
            let there = there.clock_at(there.rescheduled.max(self.balanced));
            let known = &mut self.tasks[task];
            known.r = known.r.times(self.decay.growth(there.saturating_sub(here)));
            known.cpu = to;
        }
        self.send(cx, task, from);
    }

    /// Sends `task`, which is on no queue and may not run on its CPU, to one where it may.
    pub(super) fn rehome(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let all = (0..self.cpus.len() as u16).map(CpuId);
        let allowed = all.filter(|&cpu| self.may_run(task, cpu));
        // Of equals, the first is the least.
        if let Some(to) = allowed.min_by_key(|cpu| self.cpus[cpu.index()].size()) {
            self.hand_over(cx, task, to);
        }
    }

    /// The balancers of all CPUs, one after the other.
    pub(super) fn balance(&mut self, cx: &mut Cx<'_>) {
        if self.next_timer().is_none_or(|due| due > cx.now) {
            return;
        }
        let periods = (cx.now - self.next_balance).0 / self.params.lb_period.0 + 1;
        self.next_balance += self.params.lb_period.scaled(periods, 1);
        self.balanced = cx.now;
        let mut least = self.least();
        for cpu in 0..self.cpus.len() {
            for _ in 0..self.params.lb_batch {
                if !self.give_one_away(cx, cpu, &mut least) {
                    break;
                }
                least = self.least();
            }
        }
    }

    /// The CPU in use with the smallest queue, the lowest of equals, and the size of that.
    fn least(&self) -> (usize, CpuId) {
        let online = self.cpus.iter().enumerate().filter(|(_, on)| on.online);
        let sizes = online.map(|(cpu, on)| (on.size(), CpuId(cpu as u16)));
        sizes.min().unwrap_or((usize::MAX, CpuId(0)))
    }

    /// The balancer of `cpu`: of its tasks that may run where `least` is, gives away the one with
    /// the largest R if the difference in size is large enough.
    fn give_one_away(&mut self, cx: &mut Cx<'_>, cpu: usize, least: &mut (usize, CpuId)) -> bool {
        let on = &self.cpus[cpu];
        let Some(stint) = on.running().filter(|stint| on.online && stint.leaves_for.is_none())
        else {
            return false;
        };
        let (current, has_incoming) = (stint.task, !on.incoming.is_empty());
        if has_incoming {
            // The balancer's arrival is a reschedule.
            self.take_in(cpu);
            cx.kick(CpuId(cpu as u16));
            if least.1.index() == cpu {
                *least = self.least();
            }
        }
        let (size, to) = *least;
        // The displaced task and the idle thread wait too.
        if size + 1 >= self.cpus[cpu].queue.len() + 2 {
            return false;
        }
        let Some(task) = self.last_for(cx, cpu, to) else { return false };
        if task != current {
            self.take_out(task, cx.now);
            self.hand_over(cx, task, to);
        } else if let Current::Task(stint) = &mut self.cpus[cpu].current {
            stint.leaves_for = Some(to);
            self.cpus[to.index()].expected += 1;
            cx.kick(CpuId(cpu as u16));
        }
        true
    }

    /// The current task of `cpu` is off it; where the balancer sends it, if anywhere.
    pub(super) fn expect_no_more(&mut self, cpu: usize) -> Option<CpuId> {
        let Current::Task(stint) = &mut self.cpus[cpu].current else { return None };
        let to = stint.leaves_for.take()?;
        self.cpus[to.index()].expected -= 1;
        Some(to)
    }

    /// The task of `cpu` with the largest R that may run on `to`, the current one included.
    fn last_for(&self, cx: &mut Cx<'_>, cpu: usize, to: CpuId) -> Option<TaskId> {
        let on = &self.cpus[cpu];
        let stint = on.stint()?;
        let r = self.r_at(stint, on.clock_at(cx.now));
        let may_go = |task: TaskId| self.tasks[task].affinity.contains(to);
        let current = may_go(stint.task).then_some(stint.task);
        let mut at = on.queue.last();
        while let Some(task) = at {
            if current.is_some() && r >= self.queued.key(task) {
                return current;
            }
            cx.work.scanned += 1;
            if may_go(task) {
                return at;
            }
            at = self.queued.prev(task);
        }
        current
    }
}
