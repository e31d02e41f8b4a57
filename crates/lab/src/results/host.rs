//! What a host has besides what an experiment says: costs and rows of its own.

use crate::results::{Exception, Group, PolicyUsed, Results, Row, Run};
use crate::spec::columns;
use crate::spec::parts::RowsShown;
use anysched_host::{HostInfo, Outcome};

/// A run that a host has made by itself, outside an experiment.
#[derive(Clone, Debug)]
pub struct HostedRun {
    /// The policy.
    pub policy: PolicyUsed,
    /// What came of it.
    pub outcome: Outcome,
}

impl Group {
    /// The runs are made on `host`, which may have costs of its own: then it makes no difference
    /// what the experiment says of costs.
    pub(crate) fn run_on(&mut self, host: &HostInfo) {
        let Some(costs) = host.costs else { return };
        self.costs = costs.into();
        let only_costs = |exception: &Exception| match exception {
            Exception::Machine { machine, .. } => *machine == self.machine,
            Exception::Settings { .. } => false,
        };
        self.exceptions.retain(|exception| !only_costs(exception));
    }
}

impl Results {
    /// Results of runs that were made outside an experiment, a row each: `title` and `question`
    /// head the table, `machine`, `load` and `costs` describe what all have in common, `columns`
    /// are shown if there is data (the usual ones if none are named).
    pub fn of_host(
        host: &HostInfo,
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
            runs: vec![Run { index: 0, seed: 0, values: columns::measure(&run.outcome.metrics) }],
        };
        let rows: Vec<Row> = runs.iter().enumerate().map(row).collect();
        // Programs that measure other things have no tasks.
        let is_known =
            |column: &crate::Column| rows.iter().any(|row| !row.values(*column).is_empty());
        let shown = columns.iter().filter_map(|name| columns::column(name)).filter(is_known);
        let shown = shown.map(Into::into).collect();
        Results {
            host: host.name,
            experiment: title.into(),
            question: question.into(),
            title: Some(title.into()),
            spec_hash: String::new(),
            seed: 0,
            seeds: 1,
            rows,
            policies: runs.into_iter().map(|run| run.policy).collect(),
            groups: vec![group],
            claims: Vec::new(),
            complete: true,
            planned: vec![0],
            shown,
            rows_shown: RowsShown::default(),
        }
    }
}
