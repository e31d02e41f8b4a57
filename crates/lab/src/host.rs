//! Other hosts than the simulator: kernels that run an experiment's policies and loads.

use crate::columns;
use crate::results::{Group, PolicyUsed, Results, Row, Run};
use anysched_core::registry::{PolicyInfo, Settings};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_workload::Load;

/// A host that makes the runs of an experiment in the simulator's place.
pub trait Host: Sync {
    /// Its name, for results.
    fn name(&self) -> &'static str;

    /// What scheduling costs there, in words.
    fn costs(&self) -> &'static str;

    /// Makes a run.
    ///
    /// Errors: it could not be finished, or the host cannot do what it asks for.
    fn run(&self, order: Order<'_>) -> Result<Hosted, String>;

    /// Schedulers that it has besides our policies; each is a row of every table.
    fn schedulers(&self) -> &'static [&'static str] {
        &[]
    }
}

/// A run that a host is to make.
pub struct Order<'a> {
    /// Who schedules.
    pub by: By<'a>,
    /// The machine. What scheduling costs there is for the simulator only.
    pub setup: &'a Setup,
    /// What the tasks do.
    pub load: Box<dyn Load>,
}

/// Who schedules a run.
#[derive(Clone, Debug)]
pub enum By<'a> {
    /// A policy with its settings.
    Policy(&'static PolicyInfo, Vec<(&'a str, &'a str)>),
    /// One of the host's own [schedulers](Host::schedulers).
    Own(&'static str),
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// What was measured.
    pub metrics: Metrics,
    /// Metrics, by name, that the host could not measure in this run.
    pub unknown: Vec<&'static str>,
    /// What the policy has learned for a later run.
    pub learned: Settings,
}

impl Hosted {
    /// The values of the columns.
    pub(crate) fn values(&self) -> Box<[f64]> {
        let mut values = columns::measure(&self.metrics);
        for (value, column) in values.iter_mut().zip(columns::columns()) {
            if self.unknown.contains(&column.metric) {
                *value = f64::NAN;
            }
        }
        values
    }
}

/// A run that a host has made by itself, outside an experiment.
#[derive(Clone, Debug)]
pub struct HostedRun {
    /// The policy.
    pub policy: PolicyUsed,
    /// What came of it.
    pub hosted: Hosted,
}

impl Group {
    /// The runs are made on `host`, where policies have no costs but its own.
    pub(crate) fn run_on(&mut self, host: &dyn Host) {
        self.costs = host.costs().into();
        let same = format!(": {}; costs: ", self.machine);
        self.exceptions.retain(|exception| !exception.contains(&same));
    }
}

impl Results {
    /// Results of runs that were made outside an experiment, a row each: `title` and `question`
    /// head the table, `machine`, `load` and `costs` describe what all have in common, `columns`
    /// are shown if there is data (the usual ones if none are named).
    pub fn of_host(
        host: &'static str,
        [title, question]: [&str; 2],
        [machine, load, costs]: [&str; 3],
        columns: &[&str],
        runs: Vec<HostedRun>,
    ) -> Results {
        let group = Group {
            axes: Vec::new(),
            machine: machine.into(),
            loads: vec![load.into()],
            costs: costs.into(),
            duration: None,
            exceptions: Vec::new(),
        };
        let row = |(policy, run): (usize, &HostedRun)| Row {
            group: 0,
            policy,
            runs: vec![Run { index: 0, seed: 0, values: run.hosted.values() }],
        };
        Results {
            host,
            experiment: title.into(),
            question: question.into(),
            title: Some(title.into()),
            spec_hash: String::new(),
            seed: 0,
            seeds: 1,
            rows: runs.iter().enumerate().map(row).collect(),
            policies: runs.into_iter().map(|run| run.policy).collect(),
            groups: vec![group],
            claims: Vec::new(),
            complete: true,
            planned: vec![0],
            shown: columns.iter().filter_map(|name| columns::column(name)).collect(),
            vms_shown: Vec::new(),
        }
    }
}
