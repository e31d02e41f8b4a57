//! CPUs that come and go.

use anysched_core::{CpuId, CpuMask, CpuSet, Scheduler, TaskId, TaskParams, Time};

use crate::Adapter;

/// Whether a task may run on none of the CPUs in use.
fn is_stranded(affinity: &CpuSet, online: &CpuMask) -> bool {
    !affinity.is_all() && !online.meets(affinity)
}

impl<P: Scheduler> Adapter<P> {
    /// The parameters that the policy is told: a task without a CPU in use may run anywhere, as the
    /// kernel decides for it, too, as soon as it has to.
    pub(crate) fn usable(&self, params: &TaskParams) -> TaskParams {
        let mut params = params.clone();
        if is_stranded(&params.affinity, &self.online) {
            params.affinity = CpuSet::All;
        }
        params
    }

    /// `cpu` is put into use or taken out of it. The task that the policy
    /// [believes](Adapter::runs) to be there has used `runtime`.
    pub fn set_online(&mut self, now: Time, cpu: CpuId, online: bool, runtime: u64) {
        if self.online.contains(cpu) == online {
            return;
        }
        let before = self.online.clone();
        if online {
            self.online.insert(cpu);
            self.call(now, |policy, cx| policy.set_online(cx, cpu, true));
            self.update_stranded(now, &before);
        } else {
            self.online.remove(cpu);
            self.update_stranded(now, &before);
            self.call(now, |policy, cx| policy.set_online(cx, cpu, false));
            self.vacate(now, cpu, runtime);
        }
    }

    /// Tells the policy of tasks that have lost their last CPU, or have one again.
    fn update_stranded(&mut self, now: Time, before: &CpuMask) {
        for index in 0..self.params.len() {
            let Some(params) = &self.params[index] else { continue };
            let [was, is] = [before, &self.online].map(|mask| is_stranded(&params.affinity, mask));
            if was != is {
                let (id, known) = (TaskId(index as u32), self.usable(params));
                self.call(now, |policy, cx| policy.update(cx, id, &known));
            }
        }
    }
}
