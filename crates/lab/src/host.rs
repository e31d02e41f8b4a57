//! Other hosts than the simulator: kernels that run an experiment's policies and loads.

use crate::columns;
use crate::plan::Plan;
use crate::results::{Group, PolicyUsed, Results, Row, Run};
use crate::sweep::PolicyEntry;
use anysched_sim::{Metrics, Setup};
use anysched_workload::Load;

/// A host that makes the runs of an experiment in the simulator's place.
pub trait Host: Sync {
    /// Its name, for results.
    fn name(&self) -> &'static str;

    /// Makes a run.
    ///
    /// Errors: it could not be finished, or the host cannot do what it asks for.
    fn run(&self, order: Order<'_>) -> Result<Metrics, String>;

    /// How many runs may be made at a time, if not as many as there are threads.
    fn jobs(&self) -> Option<usize> {
        None
    }
}

/// A run that a host is to make.
pub struct Order<'a> {
    /// The policy with its settings.
    pub policy: &'a PolicyEntry,
    /// The machine. What scheduling costs there is for the simulator only.
    pub setup: &'a Setup,
    /// What the tasks do.
    pub load: Box<dyn Load>,
    /// The run's seed.
    pub seed: u64,
}

/// A run that a host has made by itself, outside an experiment.
#[derive(Clone, Debug)]
pub struct HostedRun {
    /// The policy.
    pub policy: PolicyUsed,
    /// What was measured.
    pub metrics: Metrics,
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
            runs: vec![Run { index: 0, seed: 0, values: columns::measure(&run.metrics) }],
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

impl Plan {
    /// What a host other than the simulator is asked to run: of a group and a policy by position,
    /// with the seed of this number.
    ///
    /// Errors: the load cannot be made, or needs what only the simulator has.
    pub(crate) fn order(
        &self,
        group: usize,
        policy: usize,
        index: u32,
    ) -> Result<Order<'_>, String> {
        let seed = self.seed(group, index);
        if !self.groups[group].vms.is_empty() {
            return Err("virtual machines exist in the simulator only".into());
        }
        Ok(Order {
            policy: self.policy(group, policy),
            setup: self.setup(group, policy),
            load: self.load(group, seed)?,
            seed,
        })
    }
}
