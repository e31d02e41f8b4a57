//! CPUs that come and go.

use anysched_core::{CpuId, Scheduler, TaskId, Time};

use crate::Adapter;

impl<P: Scheduler> Adapter<P> {
    /// `cpu` is put into use or taken out of it. The task that the policy
    /// [believes](Adapter::runs) to be there has used `runtime`.
    pub fn set_online(&mut self, now: Time, cpu: CpuId, online: bool, runtime: u64) {
        let Some(before) = self.affinities.set_online(cpu, online) else { return };
        if online {
            self.call(now, |policy, cx| policy.set_online(cx, cpu, true));
        }
        let mut next = TaskId(0);
        while let Some((id, known)) = self.affinities.next_changed(&before, next) {
            self.call(now, |policy, cx| policy.update(cx, id, &known));
            next = TaskId(id.0 + 1);
        }
        if !online {
            self.call(now, |policy, cx| policy.set_online(cx, cpu, false));
            self.vacate(now, cpu, runtime);
        }
    }
}
