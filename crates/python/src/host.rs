//! The simulator, with policies in Python watched.

use crate::policy::{Failure, POLICIES, has_failed, take_failure};
use anysched_host::{Beat, By, Host, HostError, HostInfo, Order, Outcome, Setup};
use anysched_sim::Simulator;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// A simulator that ends a run once a policy in Python has failed, and knows how it has.
#[derive(Debug, Default)]
pub struct Watched {
    failure: Mutex<Option<Failure>>,
}

impl Watched {
    /// How a policy has failed.
    pub fn failure(self) -> Option<Failure> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn simulate(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        take_failure();
        let Order { by, setup, work, vms, watch: mut watched } = order;
        let by_python = matches!(by, By::Policy(info, _) if std::ptr::eq(info, &POLICIES[0]));
        let mut asked = watched.beat.take();
        let mut beat = |beat: Beat| {
            if has_failed() {
                return ControlFlow::Break(());
            }
            if by_python {
                // Others wait for their turn, among them the one that looks for Ctrl-C.
                Python::attach(|py| py.detach(|| ()));
            }
            asked.as_mut().map_or(ControlFlow::Continue(()), |asked| asked(beat))
        };
        let mut watch = watched.reborrow();
        watch.beat = Some(&mut beat);
        let order = Order { by, setup, work, vms, watch };
        let outcome = match by_python {
            // Once for the whole run: a call takes less then.
            true => Python::attach(|_| Simulator.run(order)),
            false => Simulator.run(order),
        };
        let Some(failure) = take_failure() else { return outcome };
        let why = match &failure {
            Failure::Raised(error) => Python::attach(|py| {
                let kind = error.get_type(py).name().map_or_else(|_| "?".into(), |n| n.to_string());
                format!("the policy has raised {kind}: {}", error.value(py))
            }),
            Failure::Broken(violation) => {
                format!("the policy has broken the contract of schedulers: {violation}")
            }
        };
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        Err(HostError(why))
    }
}

impl Host for Watched {
    fn info(&self) -> &'static HostInfo {
        Simulator.info()
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        self.simulate(order)
    }

    fn require_own(&self, own: &str, setup: &Setup, vcpus: usize) -> Result<(), HostError> {
        Simulator.require_own(own, setup, vcpus)
    }
}
