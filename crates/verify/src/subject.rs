//! What is searched: a policy in a scope, and what it is held to.

use std::panic::{self, AssertUnwindSafe};

use anysched_core::checked::{OnViolation, Rules};
use anysched_core::{Checked, CpuId, Recorder, Scheduler};

use crate::event::Event;
use crate::host::Host;
use crate::property::{self, Demands, Property, Steps, Waited};
use crate::scope::Scope;
use crate::search::Histories;

/// Builds the policy, the same each time.
pub type Build<'a> = &'a (dyn Fn() -> Box<dyn Scheduler> + Sync);

/// A policy in a scope, and what it is held to.
pub struct Subject<'a> {
    /// How many tasks there are, which machine, which events.
    pub scope: &'a Scope,
    /// Builds the policy for that machine.
    pub build: Build<'a>,
    /// What it is held to.
    pub demands: Demands,
}

/// A policy that is held to the contract.
pub type Held = Checked<Box<dyn Scheduler>>;

impl Subject<'_> {
    fn replay<S: Scheduler>(&self, policy: S, history: &[Event]) -> Host<'_, S> {
        let mut host = Host::new(policy, self.scope);
        history.iter().for_each(|&event| host.apply(event));
        host
    }

    /// The policy, held to the contract.
    pub fn held_policy(&self) -> Held {
        let rules = Rules {
            work_conserving: self.demands.work_conserving,
            on_violation: OnViolation::Collect,
            ..Rules::default()
        };
        Checked::new((self.build)(), &self.scope.machine, rules)
    }

    /// After `history`, held to the contract.
    pub(crate) fn held(&self, history: &[Event]) -> Host<'_, Held> {
        self.replay(self.held_policy(), history)
    }

    /// After `history`, as it is.
    pub(crate) fn raw(&self, history: &[Event]) -> Host<'_, Box<dyn Scheduler>> {
        self.replay((self.build)(), history)
    }

    fn check_yields(&self, history: &[Event]) -> Result<(), String> {
        let host = self.raw(history);
        let busy: Vec<CpuId> = host.busy_cpus().collect();
        let mut first = Some(host);
        for cpu in busy {
            let mut once = first.take().unwrap_or_else(|| self.raw(history));
            property::yields_alike(cpu, &mut once, &mut self.raw(history))?;
        }
        Ok(())
    }

    /// The log ([`anysched_core::recorder`]) of `history` and of what follows from it where
    /// `property` is about that, of the policy that is called `name` and built with `settings`.
    pub fn log(
        &self,
        property: Property,
        history: &[Event],
        name: &str,
        settings: &[(&str, &str)],
    ) -> Vec<u8> {
        let mut log = Vec::new();
        let machine = &self.scope.machine;
        // The log is as long as the policy does not panic.
        let _ = guarded(|| {
            let policy = Recorder::new((self.build)(), machine, name, settings, &mut log);
            let mut host = self.replay(policy, history);
            match property {
                Property::Drain => property::drain(&mut host),
                Property::Wait => property::hogs(&mut host, &self.demands, machine).map(|_| ()),
                _ => Ok(()),
            }
        });
        log
    }
}

impl Histories for Subject<'_> {
    type Event = Event;

    fn events(&self, history: &[Event]) -> Vec<Event> {
        self.held(history).events()
    }

    fn state(&self, history: &[Event], event: Option<Event>) -> Result<Option<Vec<u64>>, String> {
        guarded(|| {
            let mut host = self.held(history);
            event.into_iter().for_each(|event| host.apply(event));
            kept(&mut host.policy).map(|()| host.words())
        })
    }

    fn check(&self, property: Property, history: &[Event]) -> Result<Option<Waited>, String> {
        guarded(|| match property {
            Property::Contract => kept(&mut self.held(history).policy).map(|()| None),
            Property::Drain => {
                let mut host = self.held(history);
                let drained = property::drain(&mut host);
                kept(&mut host.policy).and(drained).map(|()| None)
            }
            Property::Wait if self.demands.starves => Ok(None),
            Property::Wait => {
                let mut host = self.held(history);
                let waited = property::hogs(&mut host, &self.demands, &self.scope.machine);
                kept(&mut host.policy).and(waited)
            }
            Property::Yield => self.check_yields(history).map(|()| None),
            Property::Merge => Ok(None),
        })
    }

    fn agree(
        &self,
        other: &[Event],
        history: &[Event],
        event: Event,
        seed: u64,
    ) -> Result<(), String> {
        guarded(|| {
            let mut later = self.raw(history);
            later.apply(event);
            property::agree(&mut self.raw(other), &mut later, seed)
        })
    }
}

/// What `policy` has kept to since violations were last taken.
pub(crate) fn kept(policy: &mut Held) -> Result<(), String> {
    match policy.take_violations().first() {
        None => Ok(()),
        Some(violation) => Err(violation.fault.to_string()),
    }
}

/// A panic is a break like any other.
pub(crate) fn guarded<T>(check: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("the policy panics: {text}"))
    })
}
