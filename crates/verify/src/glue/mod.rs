//! A kernel's glue with a policy behind it, under a model of the kernel that may do, next, anything
//! that the kernel does.
//!
//! The glue ([`anysched_axtask`], [`anysched_vcpus`], [`anysched_scx`]) is what runs in the kernel,
//! to the letter; what calls it is a model, which keeps what the kernel knows of each task and
//! asserts what the kernel relies on. The policy is held to the contract, so that a call that the
//! glue makes in the wrong order is found as well as a task that it loses.

mod arceos;
mod linux;
#[cfg(test)]
mod tests;
mod xen;

pub use arceos::{ArceOs, ArceOsEvent};
pub use linux::{Linux, LinuxEvent};
pub use xen::{Xen, XenEvent};

use anysched_core::Machine;

use crate::property::{self, Demands, Driven, Property, Waited};
use crate::search::Histories;
use crate::subject::{Held, guarded, kept};

/// A model of a kernel, with its glue and a policy behind it. Tasks are called by the numbers that
/// events have, which need not be the policy's.
pub trait Kernel: Driven {
    /// The policy.
    fn policy(&mut self) -> &mut Held;
}

/// Builds a kernel with a policy, the same each time.
pub type Build<'a, K> = &'a (dyn Fn() -> K + Sync);

/// A kernel's glue with a policy behind it, as it is searched.
pub struct Glue<'a, K> {
    /// Builds both.
    pub build: Build<'a, K>,
    /// What the policy is held to.
    pub demands: Demands,
    /// The machine.
    pub machine: &'a Machine,
}

impl<K: Kernel> Glue<'_, K> {
    fn after(&self, history: &[K::Event]) -> K {
        let mut kernel = (self.build)();
        history.iter().for_each(|&event| kernel.apply(event));
        kernel
    }
}

impl<K: Kernel> Histories for Glue<'_, K> {
    type Event = K::Event;

    fn events(&self, history: &[K::Event]) -> Vec<K::Event> {
        self.after(history).events()
    }

    fn state(
        &self,
        history: &[K::Event],
        event: Option<K::Event>,
    ) -> Result<Option<Vec<u64>>, String> {
        guarded(|| {
            let mut kernel = self.after(history);
            event.into_iter().for_each(|event| kernel.apply(event));
            kept(kernel.policy()).map(|()| kernel.words())
        })
    }

    fn check(&self, property: Property, history: &[K::Event]) -> Result<Option<Waited>, String> {
        guarded(|| {
            let mut kernel = self.after(history);
            let held = match property {
                Property::Drain => property::drain(&mut kernel).map(|()| None),
                Property::Wait if !self.demands.starves => {
                    property::hogs(&mut kernel, &self.demands, self.machine)
                }
                // A yield is one call in some kernels and two in others, which the policy is
                // searched for alone.
                Property::Contract | Property::Wait | Property::Yield | Property::Merge => Ok(None),
            };
            kept(kernel.policy()).and(held)
        })
    }

    fn agree(
        &self,
        other: &[K::Event],
        history: &[K::Event],
        event: K::Event,
        seed: u64,
    ) -> Result<(), String> {
        guarded(|| {
            let (mut one, mut two) = (self.after(other), self.after(history));
            two.apply(event);
            property::agree(&mut one, &mut two, seed)
        })
    }
}
