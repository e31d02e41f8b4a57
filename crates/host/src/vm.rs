//! Virtual machines: machines whose CPUs are tasks of the machine that they run on, the host.

use crate::Setup;
use anysched_core::params::DEFAULT_DOMAIN_WEIGHT;
use anysched_core::registry::Settings;
use anysched_core::{DomainId, DomainParams, Scheduler, Span, TaskParams, Time};
use anysched_workload::{Channel, Load};

/// A virtual machine.
pub struct Vm {
    /// Its name.
    pub name: String,
    /// Its domain on the host; shared with no other, so that it can be told apart.
    pub domain: DomainId,
    /// What the host gives the domain.
    pub share: DomainParams,
    /// What the host's policy may know of each of its CPUs, in their order; the domain is filled
    /// in.
    pub vcpus: Vec<TaskParams>,
    /// The machine that it sees, with what scheduling costs in it. Its CPUs are there all the time,
    /// so `hotplug` and `until` mean nothing.
    pub setup: Setup,
    /// Its own scheduler, built for that machine.
    pub policy: Box<dyn Scheduler>,
    /// Its name and its settings, for hosts that build it where the machine runs.
    pub named: Option<(&'static str, Settings)>,
    /// What runs in it. Times count from `start`.
    pub load: Box<dyn Load>,
    /// Virtual machines in it.
    pub vms: Vec<Vm>,
    /// Where its ports lead; messages to others are lost.
    pub ports: Vec<Wire>,
    /// When it is created.
    pub start: Time,
    /// When it is destroyed, with all that runs in it; `NEVER`: not before the run ends.
    pub stop: Time,
}

impl Vm {
    /// A virtual machine that is there all the time, with Xen's default weight and without ports.
    pub fn new(
        name: &str,
        domain: DomainId,
        setup: Setup,
        policy: Box<dyn Scheduler>,
        load: Box<dyn Load>,
    ) -> Vm {
        Vm {
            name: name.to_string(),
            domain,
            share: DomainParams { weight: DEFAULT_DOMAIN_WEIGHT, cap_percent: 0 },
            vcpus: vec![TaskParams::default(); setup.machine.cpus()],
            setup,
            policy,
            named: None,
            load,
            vms: Vec::new(),
            ports: Vec::new(),
            start: Time::ZERO,
            stop: Time::NEVER,
        }
    }
}

/// Where a port leads: to a channel of another virtual machine of the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Its position among the virtual machines of the host.
    pub vm: usize,
    /// The channel there.
    pub channel: Channel,
    /// How long messages take.
    pub delay: Span,
}
