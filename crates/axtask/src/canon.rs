//! The state of the adapter, for searches ([`anysched_core::canon`]).

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{Scheduler, canon_fields, canonical};

use crate::adapter::{Known, OnCpu};
use crate::{Adapter, OneCpu};

canonical!(Known { is_runnable, last, is_new });

impl Canonical for OnCpu {
    fn canon(&self, _: &(), to: &mut Canon) {
        canon_fields!(
            self,
            to,
            OnCpu {
                runs,
                task: fixed,
                since: fixed,
                slice_end: fixed,
                next_tick: due,
                put,
                leaves,
                is_idle,
                resched,
                expired,
            }
        );
        // Of what ran last nothing is asked, but of one that was put back.
        let task = (self.runs || self.put.is_some()).then_some(self.task);
        task.canon(&(), to);
        if self.runs {
            self.since.canon(&(), to);
            to.due(self.slice_end);
        }
    }
}

impl<P: Scheduler> Adapter<P> {
    /// Records the state of the adapter and of the policy behind it.
    pub fn canon(&self, to: &mut Canon) {
        // The latest time is not recorded: whoever searches has one clock.
        canon_fields!(self, to, Adapter { driver: fixed, now: fixed, tasks, free, cpus });
        self.driver.canon(to);
    }
}

impl<P: Scheduler> OneCpu<P> {
    /// Records the state of the adapter and of the policy behind it.
    pub fn canon(&self, to: &mut Canon) {
        canon_fields!(
            self,
            to,
            OneCpu {
                driver: fixed,
                tasks,
                free,
                runs,
                task: fixed,
                since: fixed,
                slice_end: fixed,
                next_tick: due,
                put,
                is_unusual,
                is_idle,
                resched,
                expired,
            }
        );
        if self.runs {
            self.task.canon(&(), to);
            self.since.canon(&(), to);
            to.due(self.slice_end);
        }
        self.driver.canon(to);
    }
}
