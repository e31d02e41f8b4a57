//! The state of the adapter, for searches ([`anysched_core::canon`]).

use anysched_core::canon::{Canon, Canonical};
use anysched_core::{Scheduler, canon_fields, canonical};

use crate::Adapter;
use crate::adapter::{Pcpu, State, Vcpu};
use crate::domains::Domains;

impl Canonical for State {
    fn canon(&self, _: &(), to: &mut Canon) {
        match *self {
            State::New => to.word(0),
            State::Blocked => to.word(1),
            State::Woken => to.word(2),
            State::Ready => to.word(3),
            State::Out => to.word(4),
            State::Running(cpu) => {
                to.word(5);
                cpu.canon(&(), to);
            }
        }
    }
}

impl Canonical for Vcpu {
    fn canon(&self, _: &(), to: &mut Canon) {
        canon_fields!(
            self,
            to,
            Vcpu { state, yielded, cpu, picked: fixed, charged: fixed, slice: fixed }
        );
        // They mean something of one that runs only; since when another has waited is for the
        // watchdog, which is no part of what is searched.
        if let State::Running(_) = self.state {
            canon_fields!(
                self,
                to,
                Vcpu { state: fixed, yielded: fixed, cpu: fixed, picked, charged, slice }
            );
        }
    }
}
// What it ran last is only counted.
canonical!(Pcpu { runs, last: fixed });

impl Canonical for Domains {
    fn canon(&self, _: &(), to: &mut Canon) {
        to.word(self.known.len() as u64);
        for (domain, number) in &self.known {
            to.word((*domain).into());
            number.canon(&(), to);
        }
        self.free[..].canon(&(), to);
    }
}

impl<P: Scheduler> Adapter<P> {
    /// Records the state of the adapter and of the policy behind it.
    pub fn canon(&self, to: &mut Canon) {
        // The latest time is not recorded: whoever searches has one clock.
        canon_fields!(
            self,
            to,
            Adapter {
                policy: fixed,
                has_timers: fixed,
                domains,
                vcpus,
                free,
                cpus,
                affinities,
                kicks,
                counts: fixed,
                now: fixed,
            }
        );
        self.policy.canon(to);
    }
}
