//! Where vCPUs start and wake.

use core::cmp::Reverse;

use super::runqueue::cycle;
use super::{Credit, Current, Place, Pri};
use anysched_core::Cx;
use anysched_core::ids::{CpuId, CpuMask, TaskId};
use anysched_core::machine::{Distance, Level};
use anysched_core::params::TaskParams;

impl Credit {
    pub(super) fn set_processor(&mut self, task: TaskId, cpu: CpuId) {
        let old = core::mem::replace(&mut self.vcpus[task].processor, cpu);
        self.pcpus[old.index()].homes -= 1;
        self.pcpus[cpu.index()].homes += 1;
    }

    /// Where a vCPU starts: the first one of a domain where the fewest are at home, on the highest
    /// PCPU of equals and only on the second of SMT siblings; each further one on the next PCPU.
    pub(super) fn first_processor(&self, params: &TaskParams) -> CpuId {
        let allowed = |cpu: &CpuId| self.online.contains(*cpu) && params.affinity.contains(*cpu);
        let all = || self.machine.cpu_ids().filter(allowed);
        let newest = self.domains.get(usize::from(params.domain.0)).and_then(|known| known.newest);
        if let Some(newest) = newest {
            return cycle(newest, all()).unwrap_or(newest);
        }
        let first_choice = |cpu: &CpuId| match self.machine.sharing(Level::Core, *cpu) {
            [_, second, ..] => second == cpu,
            _ => true,
        };
        let homes = |cpu: &CpuId| (self.pcpus[cpu.index()].homes, Reverse(*cpu));
        let best = all().filter(first_choice).min_by_key(homes);
        best.or_else(|| all().min_by_key(homes)).unwrap_or(CpuId(0))
    }

    /// The best PCPU for `task`, and the one from which that was found: its own, unless that is
    /// busy or an idle PCPU has more idle ones around it.
    ///
    /// Among those that it prefers, unless none of them is idle.
    pub(super) fn pick_cpu(&self, task: TaskId) -> (CpuId, Option<CpuId>) {
        let preferred = |cpu: CpuId| self.online.contains(cpu) && self.prefers(task, cpu);
        if self.is_choosy(task) && self.machine.cpu_ids().any(preferred) {
            let (cpu, found_from, is_idle) = self.pick_cpu_of(task, preferred);
            if is_idle {
                return (cpu, found_from);
            }
        }
        let (cpu, found_from, _) = self.pick_cpu_of(task, |cpu| self.may_run(task, cpu));
        (cpu, found_from)
    }

    /// The same of those that are `allowed`, and whether it is idle, or its vCPU is all that there
    /// is to run.
    fn pick_cpu_of(
        &self,
        task: TaskId,
        allowed: impl Fn(CpuId) -> bool,
    ) -> (CpuId, Option<CpuId>, bool) {
        let home = self.vcpus[task].processor;
        let allowed = |cpu: &CpuId| allowed(*cpu);
        let mut cpu = home;
        let mut idlers = self.idlers.clone();
        if !allowed(&home) {
            cpu = cycle(home, self.machine.cpu_ids().filter(allowed)).unwrap_or(home);
        } else if self.pcpus[home.index()].queue.is_empty() {
            // Whatever runs there is this vCPU or the only other one.
            idlers.insert(home);
        }
        let mut rest = CpuMask::EMPTY;
        idlers.iter().filter(allowed).for_each(|idler| rest.insert(idler));
        if !rest.contains(cpu) {
            cpu = cycle(cpu, rest.iter()).unwrap_or(cpu);
        }
        rest.remove(cpu);
        let mut found_from = None;
        while let Some(next) = cycle(cpu, rest.iter()) {
            let is_near = self.machine.cpu(cpu).package == self.machine.cpu(next).package;
            let (level, factor) = if is_near { (Level::Core, 1) } else { (Level::Package, 2) };
            let idle_near = |cpu| {
                let near = self.machine.sharing(level, cpu).iter().copied();
                near.filter(|&near| idlers.contains(near))
            };
            if idle_near(cpu).count() * factor < idle_near(next).count() {
                let bias = self.pcpus[next.index()].idle_bias;
                let better = idle_near(next).filter(|&better| rest.contains(better));
                cpu = cycle(bias, better).unwrap_or(next);
                found_from = Some(next);
                self.machine.sharing(Level::Core, cpu).iter().for_each(|&cpu| rest.remove(cpu));
            } else {
                idle_near(next).for_each(|cpu| rest.remove(cpu));
            }
        }
        (cpu, found_from, idlers.contains(cpu))
    }

    /// Gives `task`, which is on no queue, the PCPU that is best for it.
    pub(super) fn relocate(&mut self, task: TaskId) {
        let (cpu, found_from) = self.pick_cpu(task);
        if let Some(from) = found_from {
            self.pcpus[from.index()].idle_bias = cpu;
        }
        self.set_processor(task, cpu);
    }

    /// Places `task`, which is ready but on no queue, anew, and wakes it there.
    pub(super) fn migrate(&mut self, cx: &mut Cx<'_>, task: TaskId, by: CpuId) {
        self.vcpus[task].migrating = false;
        self.relocate(task);
        self.wake(cx, task, by);
    }

    /// Places `task`, whose affinity has changed, anew: at once, or as soon as it is off its PCPU.
    pub(super) fn place_anew(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let cpu = self.vcpus[task].processor;
        match self.vcpus[task].place {
            Place::OnCpu => {
                self.vcpus[task].migrating = true;
                cx.kick(cpu);
            }
            Place::Queued => {
                self.remove(task);
                self.migrate(cx, task, cpu);
            }
            _ => self.relocate(task),
        }
    }

    /// Moves all vCPUs but the running one away from `cpu`, which is out of use.
    pub(super) fn evacuate(&mut self, cx: &mut Cx<'_>, cpu: CpuId) {
        let pcpu = &mut self.pcpus[cpu.index()];
        pcpu.slice = None;
        let running = pcpu.stint().filter(|stint| stint.put.is_none()).map(|stint| stint.task);
        if running.is_none() {
            pcpu.current = Current::Idle;
        }
        for task in (0..self.vcpus.len() as u32).map(TaskId) {
            let vcpu = &self.vcpus[task];
            let stays = vcpu.processor != cpu || vcpu.place == Place::Detached;
            if stays || running == Some(task) {
                continue;
            }
            match vcpu.place {
                Place::Queued => {
                    self.remove(task);
                    self.migrate(cx, task, cpu);
                }
                // Put aside.
                Place::OnCpu => self.migrate(cx, task, cpu),
                _ => self.relocate(task),
            }
        }
    }

    /// With `boost_balance`: where `task`, which is BOOST and on no queue, is best queued.
    pub(super) fn boost_target(&self, task: TaskId) -> CpuId {
        let home = self.vcpus[task].processor;
        if !self.runs_boosted(home) {
            return home;
        }
        let allowed = |cpu: &CpuId| self.may_run(task, *cpu);
        let is_free =
            |cpu: &CpuId| self.idlers.contains(*cpu) && self.pcpus[cpu.index()].queue.is_empty();
        for level in [Level::Core, Level::Package, Level::Machine] {
            let near = self.machine.sharing(level, home).iter().copied();
            if let Some(idle) = cycle(home, near.filter(allowed).filter(is_free)) {
                return idle;
            }
        }
        let load = |cpu: &CpuId| {
            let boosted = self.pcpus[cpu.index()].boosted + u32::from(self.runs_boosted(*cpu));
            (boosted, self.remoteness(home, *cpu))
        };
        self.machine.cpu_ids().filter(allowed).min_by_key(load).unwrap_or(home)
    }

    fn runs_boosted(&self, cpu: CpuId) -> bool {
        self.pcpus[cpu.index()].stint().is_some_and(|stint| self.pri(stint.task) == Pri::Boost)
    }

    /// 0: the same PCPU, 1: the same core, 2: the same package, 3: beyond.
    fn remoteness(&self, a: CpuId, b: CpuId) -> u8 {
        match self.machine.distance(a, b) {
            Distance::Same => 0,
            Distance::Shares(Level::Core) => 1,
            Distance::Shares(Level::Llc | Level::Package) => 2,
            Distance::Shares(Level::Node | Level::Machine) => 3,
        }
    }
}
