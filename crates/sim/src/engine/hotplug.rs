//! CPUs that come and go, parameters of the policy that change, and threads of a core that slow
//! each other down.

use anysched_core::machine::Level;
use anysched_core::{CpuSet, Off, Scheduler, TaskId, Time};
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
        let siblings = self.setup.machine.sharing(Level::Core, self.cpus[cpu].id).to_vec();
        let busy = siblings.iter().filter(|cpu| self.cpus[cpu.index()].task.is_some()).count();
        for sibling in siblings {
            let capacity = u64::from(self.setup.machine.cpu(sibling).capacity);
            let sibling = sibling.index();
            let shared = busy > usize::from(self.cpus[sibling].task.is_some());
            let smt = if shared { u64::from(self.setup.smt_speed) } else { 1024 };
            self.count(sibling);
            self.cpus[sibling].speed = (capacity * smt / 1024).max(1);
            self.change_vcpu_speed(sibling);
            self.schedule(sibling);
        }
    }
}
