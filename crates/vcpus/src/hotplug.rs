//! pCPUs that come and go, with their pool or alone.

use anysched_core::{CpuId, CpuMask, CpuSet, Scheduler, TaskId, TaskParams, Time};

use crate::Adapter;

/// Whether a vCPU may run on none of the pCPUs in use.
fn is_stranded(affinity: &CpuSet, online: &CpuMask) -> bool {
    !affinity.is_all() && !online.meets(affinity)
}

impl<P: Scheduler> Adapter<P> {
    /// The parameters that the policy is told: a vCPU without a pCPU in use may run anywhere. Xen
    /// decides the same for it, but only when the pCPU has gone (`cpu_disable_scheduler`).
    pub(crate) fn usable(&self, params: &TaskParams) -> TaskParams {
        let mut params = params.clone();
        if is_stranded(&params.affinity, &self.online) {
            params.affinity = CpuSet::All;
        }
        params
    }

    /// A pCPU comes into use or goes out of it; one that goes has been
    /// [asked](Adapter::schedule) last with a tasklet, so that it runs nothing.
    pub fn set_online(&mut self, now: Time, cpu: CpuId, online: bool) {
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
            self.kicks.remove(cpu);
        }
    }

    /// Tells the policy of vCPUs that have lost their last pCPU, or have one again.
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
