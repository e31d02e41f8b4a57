//! The simulator as a host.

use crate::{Sim, SimError};
use anysched_core::recorder::{LogSink, Recorder};
use anysched_core::registry::learned;
use anysched_core::{MAX_CPUS, Observed, Scheduler};
use anysched_host::{
    Beat, By, Capabilities, Host, HostError, HostInfo, Options, Order, Outcome, Setup, Vm, Watch,
    Work,
};
use anysched_measure::{Apart, Metrics};
use anysched_trace::{NoTrace, Sink};
use anysched_workload::Load;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// The simulator's entry in the list of hosts.
pub static HOST: HostInfo = HostInfo {
    name: "sim",
    title: "Simulator",
    summary: "The simulator",
    capabilities: Capabilities::all(MAX_CPUS),
    costs: None,
    schedulers: &[],
    programs: &[],
    server: None,
    open,
};

fn open(_: &Options) -> Box<dyn Host> {
    Box::new(Simulator)
}

/// Simulates each run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Host for Simulator {
    fn info(&self) -> &'static HostInfo {
        &HOST
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        let Order { by, setup, work, vms, watch } = order;
        let (info, settings) = match by {
            By::Policy(info, settings) => (info, settings),
            By::Own(name) => return Err(HOST.no_scheduler(name)),
        };
        let load = match work {
            Work::Load(load) => load,
            Work::Program(program) => return Err(HOST.no_program(&program.name)),
        };
        let built = (info.build)(&setup.machine, &settings);
        let mut policy: Box<dyn Scheduler + '_> =
            built.map_err(|error| HostError(error.to_string()))?;
        let Watch { trace, record, observe, mut beat, apart, .. } = watch;
        let beat = |now| beat.as_mut().map_or(ControlFlow::Continue(()), |beat| beat(now));
        let log = SharedLog::default();
        if record {
            let (machine, sink) = (&setup.machine, log.clone());
            policy = Box::new(Recorder::new(policy, machine, info.name, &settings, sink));
        }
        if let Some(observer) = observe {
            policy = Box::new(Observed::new(policy, observer));
        }
        let ran = match trace {
            Some(sink) => simulate(setup, policy, (load, vms), apart, sink, beat),
            None => simulate(setup, policy, (load, vms), apart, NoTrace, beat),
        };
        let (metrics, policy) = ran.map_err(|error| HostError(error.to_string()))?;
        let logs = if record { vec![log.0.take()] } else { Vec::new() };
        Ok(Outcome { metrics, learned: learned(&*policy), logs, values: Vec::new() })
    }
}

fn simulate<'p, T: Sink>(
    setup: &Setup,
    policy: Box<dyn Scheduler + 'p>,
    (load, vms): (Box<dyn Load>, Vec<Vm>),
    apart: Apart,
    sink: T,
    beat: impl FnMut(Beat) -> ControlFlow<()>,
) -> Result<(Metrics, Box<dyn Scheduler + 'p>), SimError> {
    let sim = Sim::with_sink(setup.clone(), policy, load, sink).measured_apart(apart);
    sim.with_vms(vms).run_watched(beat).map(|(metrics, policy, _)| (metrics, policy))
}

/// A log in memory, shared with the recorder inside the run.
#[derive(Clone, Default)]
struct SharedLog(Rc<RefCell<Vec<u8>>>);

impl LogSink for SharedLog {
    fn write(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}
