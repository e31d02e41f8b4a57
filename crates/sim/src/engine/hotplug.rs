//! CPUs that come and go, parameters of the policy that change, and CPUs that slow each other down.

use anysched_core::machine::Level;
use anysched_core::{CpuId, CpuSet, Off, Scheduler, TaskId, Time};
use anysched_host::ParamChange;
use anysched_trace::Sink;
use anysched_workload::Load;

use super::cpu::Cpu;
use super::{Sim, SimError};

impl<S: Scheduler, L: Load, T: Sink> Sim<S, L, T> {
    /// Does what the setup has for now: first what happens to CPUs.
    pub(super) fn change_setup(&mut self) {
        let hotplug = self.setup.hotplug.get(self.agenda.hotplugged);
        if hotplug.is_some_and(|&(at, ..)| at <= self.now()) {
            self.hotplug();
        } else {
            self.change_param();
        }
    }

    fn change_param(&mut self) {
        let ParamChange { name, text, .. } = self.setup.changes[self.agenda.changed].clone();
        self.agenda.changed += 1;
        match self.policy.check_param(&name, &text) {
            Ok(()) => self.call(|policy, cx| policy.set_param(cx, &name, &text)),
            Err(why) => self.clock.fail(SimError::Refused { at: self.now(), why }),
        }
    }

    fn hotplug(&mut self) {
        let (_, cpu, online) = self.setup.hotplug[self.agenda.hotplugged];
        self.agenda.hotplugged += 1;
        let index = cpu.index();
        if self.cpus[index].online == online {
            return;
        }
        self.cpus[index].online = online;
        if online {
            self.cpus[index].idle_since = self.now();
            self.call(|policy, cx| policy.set_online(cx, cpu, true));
            return;
        }
        self.widen_stranded();
        self.call(|policy, cx| policy.set_online(cx, cpu, false));
        if self.cpus[index].task.is_some() {
            self.put_prev(index, Off::Preempted);
            if let Some((task, _)) = self.cpus[index].leaving {
                self.tell_leaving(task, cpu);
            }
            self.cpus[index].leaving = None;
            self.cpus[index].leaving_told = false;
            if self.setup.smt_speed != 1024 {
                self.change_sibling_speed(index);
            }
            if !self.setup.contention.is_none() {
                self.change_pressure(index);
            }
        } else {
            let idle = self.now().since(self.cpus[index].idle_since);
            self.cpus[index].idle += idle;
        }
        self.cpus[index].idle_since = Time::NEVER;
    }

    /// Tasks not allowed on any CPU in use become allowed on all, as in Linux
    /// (`select_fallback_rq`).
    fn widen_stranded(&mut self) {
        let online = |cpu: &Cpu| cpu.online;
        let stranded: Vec<TaskId> = self
            .tasks
            .live()
            .filter(|(_, task)| {
                task.params.as_ref().is_some_and(|params| {
                    !self.cpus.iter().any(|cpu| online(cpu) && params.affinity.contains(cpu.id))
                })
            })
            .map(|(id, _)| id)
            .collect();
        for id in stranded {
            self.update_params(id, |params| params.affinity = CpuSet::All);
        }
    }

    /// `cpu` became busy or idle: its siblings slow down or speed up.
    pub(super) fn change_sibling_speed(&mut self, cpu: usize) {
        for sibling in self.setup.machine.sharing(Level::Core, self.cpus[cpu].id).to_vec() {
            self.change_speed(sibling);
        }
    }

    /// `cpu` may have got a task that uses the memory more or less than the one before: whatever
    /// shares a cache with it slows down or speeds up.
    pub(super) fn change_pressure(&mut self, cpu: usize) {
        let task = self.cpus[cpu].task;
        let intensity = task.map_or(0, |task| self.intensity(task));
        if std::mem::replace(&mut self.cpus[cpu].intensity, intensity) == intensity {
            return;
        }
        for other in self.setup.machine.sharing(Level::Llc, self.cpus[cpu].id).to_vec() {
            if self.cpus[other.index()].intensity > 0 || other.index() == cpu {
                self.change_speed(other);
            }
        }
    }

    fn intensity(&self, task: TaskId) -> u8 {
        self.tasks[task].params.as_ref().map_or(0, |params| params.intensity)
    }

    /// Sets the speed of `cpu` by what runs beside it now.
    fn change_speed(&mut self, cpu: CpuId) {
        let others = |level| {
            let sharing = self.setup.machine.sharing(level, cpu).iter();
            sharing.filter(|&&other| other != cpu).map(|other| &self.cpus[other.index()])
        };
        let shared = others(Level::Core).any(|other| other.task.is_some());
        let smt = if shared { u64::from(self.setup.smt_speed) } else { 1024 };
        let mut speed = u64::from(self.setup.machine.cpu(cpu).capacity) * smt / 1024;
        let own = self.cpus[cpu.index()].intensity;
        if own > 0 {
            let sum = |level| others(level).map(|other| u32::from(other.intensity)).sum();
            speed = self.setup.contention.slowed(speed, own, sum(Level::Core), sum(Level::Llc));
        }
        let cpu = cpu.index();
        self.count(cpu);
        self.cpus[cpu].speed = speed.max(1);
        self.change_vcpu_speed(cpu);
        self.schedule(cpu);
    }
}
