//! What a run should be, and what came of it.

use crate::{HostError, Setup, Vm};
use anysched_clients::Report;
use anysched_core::registry::{PolicyInfo, Settings};
use anysched_core::{Observer, Time};
use anysched_measure::{Apart, Metrics};
use anysched_trace::Sink;
use anysched_workload::Load;
use std::ops::ControlFlow;

/// A run that a host is to make.
pub struct Order<'a> {
    /// Who schedules.
    pub by: By<'a>,
    /// The machine, what scheduling costs on it (for hosts without costs of their own) and when
    /// the run ends at the latest.
    pub setup: &'a Setup,
    /// What runs.
    pub work: Work,
    /// Virtual machines beside it.
    pub vms: Vec<Vm>,
    /// What to observe of the run besides its metrics.
    pub watch: Watch<'a>,
}

impl<'a> Order<'a> {
    /// A run of `work` by `by` on the machine of `setup`, without virtual machines, unwatched.
    pub fn new(by: By<'a>, setup: &'a Setup, work: Work) -> Order<'a> {
        Order { by, setup, work, vms: Vec::new(), watch: Watch::default() }
    }
}

/// Who schedules a run.
#[derive(Clone, Debug)]
pub enum By<'a> {
    /// A policy with its settings.
    Policy(&'static PolicyInfo, Vec<(&'a str, &'a str)>),
    /// One of the host's own schedulers, by name.
    Own(&'static str),
}

impl By<'_> {
    /// The name of the policy or scheduler.
    pub fn name(&self) -> &'static str {
        match self {
            By::Policy(info, _) => info.name,
            By::Own(name) => name,
        }
    }

    /// The settings, as those of a boot.
    pub fn owned_settings(&self) -> Vec<(String, String)> {
        let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        self.settings().iter().map(owned).collect()
    }

    /// Checks that what it decides can be recorded.
    ///
    /// Errors: it is one of the host's own schedulers.
    pub fn require_recordable(&self) -> Result<(), HostError> {
        match self {
            By::Policy(..) => Ok(()),
            By::Own(name) => {
                Err(HostError(format!("{name}: only policies can be recorded or traced")))
            }
        }
    }

    /// The settings; the host's own schedulers have none.
    pub fn settings(&self) -> &[(&str, &str)] {
        match self {
            By::Policy(_, settings) => settings,
            By::Own(_) => &[],
        }
    }
}

/// What runs.
pub enum Work {
    /// Tasks of a load.
    Load(Box<dyn Load>),
    /// One of the host's programs.
    Program(Program),
}

/// A call of a program that a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<(String, String)>,
}

/// What to observe of a run besides its metrics.
#[derive(Default)]
pub struct Watch<'a> {
    /// Receives the events.
    pub trace: Option<&'a mut dyn Sink>,
    /// Whether the calls and answers of the policy are recorded.
    pub record: bool,
    /// What is measured of some of the tasks.
    pub apart: Apart,
    /// Is told of each call of the policy, and may ask it for its state. Only hosts that run the
    /// policy in this process can; of others there are logs.
    pub observe: Option<&'a mut dyn Observer>,
    /// Receives what the host and its programs say for people, a line at a time.
    pub say: Option<&'a mut dyn FnMut(&str)>,
    /// Is told now and then how far the run is, and may end it, which is an error. Hosts that
    /// cannot tell do not.
    pub beat: Option<&'a mut dyn FnMut(Beat) -> ControlFlow<()>>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The time of the run.
    pub now: Time,
    /// Tasks that have ended.
    pub ended: u64,
}

impl Watch<'_> {
    /// The same watch for a part of the time.
    pub fn reborrow(&mut self) -> Watch<'_> {
        Watch {
            trace: match &mut self.trace {
                Some(trace) => Some(&mut **trace),
                None => None,
            },
            record: self.record,
            apart: self.apart,
            observe: match &mut self.observe {
                Some(observe) => Some(&mut **observe),
                None => None,
            },
            say: match &mut self.say {
                Some(say) => Some(&mut **say),
                None => None,
            },
            beat: match &mut self.beat {
                Some(beat) => Some(&mut **beat),
                None => None,
            },
        }
    }

    /// Passes a line on to the listener, if any.
    pub fn say(&mut self, line: &str) {
        if let Some(say) = &mut self.say {
            say(line);
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was measured, and nothing else.
    pub metrics: Metrics,
    /// What the policy has learned for a later run.
    pub learned: Settings,
    /// The decisions of each scheduler instance, if they were recorded: one, or one per CPU.
    pub logs: Vec<Vec<u8>>,
    /// What else a program measured, by name.
    pub values: Vec<(String, u64)>,
}

impl Outcome {
    /// The value called `name`.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The only log.
    ///
    /// Errors: nothing was recorded, or each CPU has a log of its own.
    pub fn only_log(&self) -> Result<&[u8], HostError> {
        match &self.logs[..] {
            [log] => Ok(log),
            [] => Err(HostError("nothing was recorded".into())),
            logs => Err(HostError(format!(
                "each of the {} CPUs has a scheduler and a log of its own",
                logs.len()
            ))),
        }
    }
}

/// What came of a load on a server.
#[derive(Clone, Debug)]
pub struct Served {
    /// What the clients saw.
    pub report: Report,
    /// What the host measured.
    pub outcome: Outcome,
}
