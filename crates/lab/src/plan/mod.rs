//! From an experiment to its runs: machines, loads and policies are built, and runs made on a host.

mod calibrated;
pub(crate) mod journal;
mod like;
mod load;
mod machine;
mod pace;
mod read;
pub(crate) mod rehearsal;
pub(crate) mod run;
mod size;
pub(crate) mod views;
pub(crate) mod vm;
pub(crate) mod workers;

use crate::plan::calibrated::Calibrated;
use crate::plan::like::Like;
use crate::plan::load::Loads;
use crate::plan::rehearsal::OneRun;
use crate::plan::run::RunError;
use crate::plan::size::{Length, Size};
use crate::plan::views::View;
use crate::plan::vm::Vms;
use crate::results::verdict::ClaimResult;
use crate::results::{Exception, Group, PolicyUsed, Results, Row, Run};
use crate::spec::claim::ClaimSpec;
use crate::spec::error::Error;
use crate::spec::error::{Fault, Faults};
use crate::spec::experiment::Experiment;
use crate::spec::fields::{self, read_all};
use crate::spec::files::Files;
use crate::spec::parts::RowsShown;
use crate::spec::report::Asked;
use crate::spec::scenario::SCENARIO;
use crate::spec::scenario::{Scenario, set_part};
use crate::spec::sweep::{AxisValue, MAX_RUNS, PolicyEntry};
use crate::spec::tree::{Entry, Node};
use anysched_core::registry::Settings;
use anysched_core::{MAX_CPUS, Machine, Observer, Span, Time};
use anysched_host::{
    Beat, By, Demands, Host, HostError, HostInfo, Order, Outcome, Setup, Watch, Work,
};
use anysched_measure::Apart;
use anysched_workload::Load;
use anysched_workload::kinds::Needs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

impl Experiment {
    /// Checks everything without running anything: builds each policy for each machine, opens
    /// each file, makes each load.
    ///
    /// Errors: as [`Experiment::plan`].
    pub fn check(&self) -> Result<(), Error> {
        self.plan().map(drop)
    }

    /// All runs of the experiment, ready to go.
    ///
    /// Errors: a machine, a load, a policy or a file that cannot be used, with its place.
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::of(self).map_err(|fault| self.source.error(fault))
    }
}

/// All runs of an experiment, checked and ready to go.
#[derive(Debug)]
pub struct Plan {
    pub(crate) experiment: String,
    pub(crate) question: String,
    pub(crate) title: Option<String>,
    pub(crate) seed: u64,
    pub(crate) seeds: u32,
    pub(crate) spec_hash: String,
    pub(crate) policies: Vec<PolicyEntry>,
    /// Schedulers that the host is expected to have of its own; not said: whichever it has.
    pub(crate) of_host: Option<Vec<String>>,
    pub(crate) groups: Vec<PlannedGroup>,
    pub(crate) claims: Vec<ClaimSpec>,
    pub(crate) shown: Vec<Asked>,
    pub(crate) rows_shown: RowsShown,
    /// What is measured of some of the tasks: what is shown of them, or claims are about.
    pub(crate) apart: Apart,
    warnings: Vec<String>,
    inputs: Vec<PathBuf>,
}

/// One combination of axis values.
#[derive(Debug)]
pub(crate) struct PlannedGroup {
    pub(crate) described: Group,
    /// In the order of the policies, each with its machine. Where only schedulers of the host's
    /// own run, they are those of the file.
    cells: Vec<Cell>,
    pub(crate) loads: Loads,
    pub(crate) vms: Vms,
    /// What its loads need from a host, those in virtual machines among them.
    needs: Needs,
    /// What of the group its seeds derive from.
    identity: Vec<String>,
    /// How long its runs are.
    pub(crate) length: Length,
}

impl PlannedGroup {
    /// What the runs of this group on a machine ask of a host.
    fn demands<'a>(&self, setup: &'a Setup) -> Demands<'a> {
        Demands { setup, vms: !self.vms.is_empty(), needs: self.needs }
    }

    /// Has `host` make a run with this seed; `guests` are the settings of the schedulers of virtual
    /// machines.
    pub(crate) fn run<'a>(
        &self,
        host: &dyn Host,
        setup: &'a Setup,
        by: By<'a>,
        seed: u64,
        guests: &[Settings],
        watch: Watch<'a>,
    ) -> Result<Outcome, HostError> {
        host.info().require(&self.demands(setup))?;
        host.info().require_watch(&watch)?;
        let work = Work::Load(self.loads.build(seed)?);
        let vms = self.vms.build(seed, guests)?;
        host.run(Order { by, setup, work, vms, watch })
    }
}

/// A policy as it is in one group, and the machine that it runs on there.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) policy: PolicyEntry,
    pub(crate) setup: Arc<Setup>,
}

impl Cell {
    /// `policy` on the machine of `setup`, with the parameters that it changes during a run.
    ///
    /// Errors: it cannot be built for the machine, or does not change them so.
    fn new(policy: PolicyEntry, setup: Arc<Setup>) -> Result<Cell, Fault> {
        policy.check_changes(&*policy.build(&setup.machine)?)?;
        let changes = policy.changes();
        if changes == setup.changes {
            return Ok(Cell { policy, setup });
        }
        let setup = Arc::new(Setup { changes, ..Setup::clone(&setup) });
        Ok(Cell { policy, setup })
    }
}

impl Plan {
    pub(crate) fn of(experiment: &Experiment) -> Result<Plan, Fault> {
        let sweep = &experiment.sweep;
        if sweep.policies.is_empty() && !sweep.only_of_host {
            let none = Fault::whole("no policy").help(
                "add `policy = \"rr\"` at the top or a list of policies in [sweep], or say which \
                 with --policy",
            );
            return Err(match Plan::check_parts(experiment) {
                Ok(()) => none,
                Err(others) => others.and(none),
            });
        }
        let combinations = sweep
            .axes
            .iter()
            .try_fold(experiment.scenarios.len(), |n, axis| n.checked_mul(axis.values.len()))
            .filter(|groups| {
                let runs = groups.checked_mul(sweep.policies.len());
                runs.and_then(|runs| runs.checked_mul(sweep.seeds as usize))
                    .is_some_and(|runs| runs <= MAX_RUNS)
            });
        let Some(combinations) = combinations else {
            return Err(Fault::whole(format!("the sweep has more than {MAX_RUNS} runs"))
                .help("leave out axis values or seeds"));
        };
        let mut files = Files::new(experiment);
        let mut groups = Vec::with_capacity(combinations);
        let mut faults = Faults::default();
        for scenario in &experiment.scenarios {
            for number in 0..combinations / experiment.scenarios.len() {
                let parts = group_parts(experiment, scenario, number);
                let planned = parts.and_then(|parts| build_group(parts, &mut files));
                groups.extend(faults.take(planned));
            }
        }
        faults.result()?;
        let compared = if sweep.only_of_host { &[][..] } else { &sweep.policies };
        let mut policies = compared.to_vec();
        policies.iter_mut().try_for_each(|policy| policy.read_files(&mut files))?;
        let mut hash = blake3::Hasher::new();
        hash.update(experiment.canonical.as_bytes());
        for (name, contents) in files.hashes() {
            hash.update(&[0]);
            hash.update(name.as_bytes());
            hash.update(contents.as_bytes());
        }
        Ok(Plan {
            experiment: experiment.name.clone(),
            question: experiment.question.clone(),
            title: experiment.title.clone(),
            seed: experiment.seed,
            seeds: sweep.seeds,
            spec_hash: hash.finalize().to_hex().to_string(),
            policies,
            of_host: sweep.of_host.clone(),
            groups,
            claims: experiment.claims.clone(),
            shown: experiment.columns.clone(),
            rows_shown: experiment.rows_shown.clone(),
            apart: experiment.apart(),
            inputs: files.paths().chain([experiment.path.clone()]).collect(),
            warnings: files.warnings,
        })
    }

    /// Checks what can be checked of an experiment of which parts are wrong.
    ///
    /// Errors: what is wrong with its machines, loads and policies, as far as they were read.
    pub(crate) fn check_parts(experiment: &Experiment) -> Result<(), Fault> {
        let mut files = Files::new(experiment);
        let mut faults = Faults::default();
        for scenario in &experiment.scenarios {
            // The first values of all axes.
            let parts = group_parts(experiment, scenario, 0);
            faults.take(parts.and_then(|parts| build_group(parts, &mut files)));
        }
        faults.result()
    }

    /// What recordings and other files say that the loads leave out, and where loads ask for more
    /// than a machine has, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The experiment's name.
    pub fn experiment(&self) -> &str {
        &self.experiment
    }

    /// What it is to find out.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// Its title, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The files that it was read from: the experiment's own, and those that it names.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The policies that are compared.
    pub fn policies(&self) -> &[PolicyEntry] {
        &self.policies
    }

    /// The combinations of axis values.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.iter().map(|group| &group.described)
    }

    /// Adds a policy: the one at a position as `change` makes it, in each group on its machine.
    pub(crate) fn add_variant(
        &mut self,
        policy: usize,
        change: impl Fn(&mut PolicyEntry),
    ) -> Result<(), Fault> {
        let changed = |entry: &PolicyEntry| {
            let mut entry = entry.clone();
            change(&mut entry);
            entry
        };
        for group in &mut self.groups {
            let Cell { policy, setup } = &group.cells[policy];
            let cell = Cell::new(changed(policy), Arc::clone(setup))?;
            group.cells.push(cell);
        }
        self.policies.push(changed(&self.policies[policy]));
        Ok(())
    }

    /// What the seeds of all runs derive from.
    pub fn experiment_seed(&self) -> u64 {
        self.seed
    }

    /// How many seeds each row has.
    pub fn seeds(&self) -> u32 {
        self.seeds
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.groups.len() * self.policies.len() * self.seeds as usize
    }

    /// BLAKE3 of the experiment (its values, not its layout) and of the files it names, in hex.
    pub fn spec_hash(&self) -> &str {
        &self.spec_hash
    }

    /// The seed of the runs of a group with this number. It derives from the experiment's name
    /// and seed, the values of the group's axes and the number, and from nothing else: all
    /// policies get the same tasks, and a new axis value changes no other row.
    pub fn seed(&self, group: usize, index: u32) -> u64 {
        let mut hash = blake3::Hasher::new();
        let mut part = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        part(&self.experiment);
        part(&self.seed.to_string());
        for text in &self.groups[group].identity {
            part(text);
        }
        part(&index.to_string());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    }

    /// Whether tasks of a group, by position, may wait for each other for ever: at locks or
    /// barriers.
    pub fn waits_for_tasks(&self, group: usize) -> bool {
        let needs = self.groups[group].needs;
        needs.locks || needs.barriers
    }

    /// The machine that a policy has in a group, both by position, with its costs and the end of
    /// its runs. It is the same for all policies of a group but for those that say otherwise.
    pub fn setup(&self, group: usize, policy: usize) -> &Setup {
        &self.groups[group].cells[policy].setup
    }

    /// A policy as it is in a group, both by position: scenarios may change its settings.
    pub fn policy(&self, group: usize, policy: usize) -> &PolicyEntry {
        &self.groups[group].cells[policy].policy
    }

    /// Makes one run on `host`: of a group and a policy by position, with the seed of this number.
    ///
    /// Errors: the host cannot make it, or it could not be finished.
    pub fn run_one(
        &self,
        host: &dyn Host,
        group: usize,
        policy: usize,
        index: u32,
        watch: Watch<'_>,
    ) -> Result<Outcome, RunError> {
        let made = self.planned_run(host, group, policy, index).make(watch);
        made.map_err(|why| self.failed(group, &self.policy(group, policy).label, index, why))
    }

    /// The load of a group by position, with the seed of this number.
    ///
    /// Errors: one of its parts is refused after all.
    pub(crate) fn load(&self, group: usize, index: u32) -> Result<Box<dyn Load>, String> {
        self.groups[group].loads.build(self.seed(group, index))
    }

    /// Makes the runs of one group, by position, with the seed of this number, and judges the
    /// claims by them alone.
    ///
    /// Errors: as [`Plan::run`].
    pub(crate) fn judge(
        &self,
        host: &dyn Host,
        group: usize,
        index: u32,
        (beat, observe): (&mut dyn FnMut(Beat) -> ControlFlow<()>, &mut dyn Observer),
    ) -> Result<Vec<ClaimResult>, RunError> {
        let mut made = Vec::new();
        for policy in 0..self.policies.len() {
            let observe = host.info().capabilities.observed.then_some(&mut *observe);
            let watch = Watch {
                beat: Some(&mut *beat),
                observe: observe.map(|observe| observe as &mut dyn Observer),
                apart: self.apart,
                ..Watch::default()
            };
            let outcome = self.run_one(host, group, policy, index, watch)?;
            made.push(self.views_of(&outcome.metrics, group, index));
        }
        let mut views = self.views(group);
        for (view, _) in made.iter().flatten() {
            if !views.contains(view) {
                views.push(view.clone());
            }
        }
        let row = |(place, view): (usize, &View), policy: usize| {
            let shown = &made[policy];
            let run = shown.iter().find(|(known, _)| known == view).map(|(_, run)| run.clone());
            let run = run.unwrap_or_else(|| Run { values: [].into(), ..shown[0].1.clone() });
            Row { group: place, policy, runs: vec![run] }
        };
        let rows = views.iter().enumerate();
        let rows = rows.flat_map(|view| (0..made.len()).map(move |policy| row(view, policy)));
        let results = Results {
            host: host.info().name,
            experiment: self.experiment.clone(),
            question: self.question.clone(),
            title: self.title.clone(),
            spec_hash: self.spec_hash.clone(),
            seed: self.seed,
            seeds: 1,
            policies: self.policies_used(),
            complete: true,
            groups: views.iter().map(|view| self.viewed(group, view)).collect(),
            planned: vec![group; views.len()],
            rows: rows.collect(),
            claims: Vec::new(),
            shown: self.shown.clone(),
            rows_shown: self.rows_shown.clone(),
        };
        Ok(self.claims.iter().map(|claim| claim.judge(&results)).collect())
    }

    /// What the policy has [learned](anysched_core::Scheduler::learned) once a run is over (the
    /// rehearsal if it has one), of a group and a policy by position, with the seed of this
    /// number.
    ///
    /// Errors: as [`Plan::run_one`].
    pub fn learned(
        &self,
        host: &dyn Host,
        group: usize,
        policy: usize,
        index: u32,
    ) -> Result<Settings, RunError> {
        let lesson = self.planned_run(host, group, policy, index).lesson();
        lesson.map_err(|why| self.failed(group, &self.policy(group, policy).label, index, why))
    }

    fn planned_run<'a>(
        &'a self,
        host: &'a dyn Host,
        group: usize,
        policy: usize,
        index: u32,
    ) -> OneRun<'a> {
        let planned = &self.groups[group];
        let cell = &planned.cells[policy];
        OneRun { host, planned, cell, seed: self.seed(group, index) }
    }

    /// Makes one run on `host` by one of its own schedulers, of a group by position, with the seed
    /// of this number.
    ///
    /// Errors: the host has no such scheduler, cannot make the run, or it could not be finished.
    pub fn run_one_by_host<'a>(
        &'a self,
        host: &dyn Host,
        scheduler: &str,
        group: usize,
        index: u32,
        watch: Watch<'a>,
    ) -> Result<Outcome, RunError> {
        let known = host.info();
        let found = known.schedulers.iter().find(|own| **own == scheduler);
        let Some(scheduler) = found else {
            return Err(self.failed(group, scheduler, index, known.no_scheduler(scheduler)));
        };
        let planned = &self.groups[group];
        let (setup, seed) = (&planned.cells[0].setup, self.seed(group, index));
        let guests: Vec<Settings> =
            rehearsal::of_guests(planned, seed).map(|(_, own)| own).collect();
        let made = planned.run(host, setup, By::Own(scheduler), seed, &guests, watch);
        made.map_err(|why| self.failed(group, scheduler, index, why))
    }

    fn failed(&self, group: usize, label: &str, index: u32, why: HostError) -> RunError {
        RunError {
            policy: label.into(),
            group: self.groups[group].described.title(),
            seed: self.seed(group, index),
            why: why.0,
        }
    }

    /// Checks that `host` can make all runs.
    ///
    /// Errors: it cannot measure what is wanted; or names the first group that it cannot run, and
    /// why.
    pub fn require(&self, host: &HostInfo) -> Result<(), HostError> {
        host.require_watch(&Watch { apart: self.apart, ..Watch::default() })?;
        for group in &self.groups {
            group.loads.require(host)?;
            for cell in &group.cells {
                host.require(&group.demands(&cell.setup)).map_err(|why| {
                    match group.described.title() {
                        title if title.is_empty() => why,
                        title => HostError(format!("{title}: {why}")),
                    }
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn policies_used(&self) -> Vec<PolicyUsed> {
        let used = |entry: &PolicyEntry| PolicyUsed {
            label: entry.label.clone(),
            name: entry.info.name.to_string(),
            settings: entry.settings_written(),
            nature: entry.nature(),
        };
        self.policies.iter().map(used).collect()
    }
}

/// What a group has of its own.
pub(crate) struct GroupParts {
    /// The policies as they are in its scenario.
    pub(crate) policies: Vec<PolicyEntry>,
    /// A table of `machine`, `workload`, `vm` and `duration`.
    pub(crate) tree: Node,
    axes: Vec<(String, AxisValue)>,
    identity: Vec<String>,
}

/// The combination of axis values with this number; the last axis changes fastest.
pub(crate) fn group_parts(
    experiment: &Experiment,
    scenario: &Scenario,
    number: usize,
) -> Result<GroupParts, Fault> {
    let mut tree = scenario.tree.clone();
    let mut axes = Vec::new();
    let mut identity = Vec::new();
    if let Some(name) = &scenario.name {
        axes.push((SCENARIO.to_string(), AxisValue::Text(name.clone())));
        identity.push(format!("{SCENARIO}={name:?}"));
    }
    let mut left = number;
    let mut chosen = Vec::new();
    for axis in experiment.sweep.axes.iter().rev() {
        chosen.push((axis, &axis.values[left % axis.values.len()]));
        left /= axis.values.len();
    }
    for (axis, value) in chosen.into_iter().rev() {
        let path: Vec<&str> = axis.path.split('.').collect();
        set_part(&mut tree, &path, &axis.at, value.clone()).map_err(|why| {
            let place = match &scenario.name {
                Some(name) => format!("`{}` in scenario \"{name}\"", axis.path),
                None => format!("`{}`", axis.path),
            };
            Fault::at(&axis.at, format!("{place}: {why}")).label("this axis")
        })?;
        axes.push((axis.path.clone(), AxisValue::of(value)));
        identity.push(format!("{}={value}", axis.path));
    }
    // Independent of the order of axes in the file.
    identity.sort();
    let policies = experiment.sweep.policies.iter().map(|policy| scenario.policy(policy));
    let policies = policies.collect::<Result<Vec<_>, _>>()?;
    Ok(GroupParts { policies, tree, axes, identity })
}

/// Warns if the loads of the group with these axis values ask for more than its machine has.
fn warn_of_overload(
    loads: &Loads,
    machine: &Machine,
    axes: &[(String, AxisValue)],
    files: &mut Files,
) {
    let Some(overload) = loads.overload(machine) else { return };
    let of = axes.iter().map(|(axis, value)| format!("{axis} = {value}"));
    let of: Vec<String> = of.collect();
    let of = if of.is_empty() { String::new() } else { format!("{}: ", of.join(", ")) };
    files.warn(format!("{of}{overload}"));
}

fn build_group(parts: GroupParts, files: &mut Files) -> Result<PlannedGroup, Fault> {
    let GroupParts { policies, tree, axes, identity } = parts;
    let part = |key: &str| tree.as_table().and_then(|table| table.get(key));
    let wrong = || policies.iter().filter_map(|policy| policy.check_settings().err());
    let Some(machine) = part("machine") else {
        let none = Fault::whole("no [machine]").help("add `[machine]` and `cpus = 4` below it");
        let fault = read_parts(&tree, Err(none.clone()), files).err().unwrap_or(none);
        return Err(wrong().fold(fault, Fault::and));
    };
    let calibrated = Calibrated::of(machine, files)?;
    let tree = &calibrated.with_measured(&tree)?;
    let read = read_parts(tree, Ok(machine), files);
    let (setup, loads, vms) = read.map_err(|fault| wrong().fold(fault, Fault::and))?;
    let duration = part("duration");
    let size = Size { setup: &setup, loads: &loads, vms: &vms, duration, machine };
    let length = size.length()?;
    let like = Like::of(machine)?;
    warn_of_overload(&loads, &setup.machine, &axes, files);
    let mut described = Group {
        axes,
        machine: machine::describe(&setup),
        loads: loads.words.iter().map(String::as_str).chain(vms.words()).map(Into::into).collect(),
        costs: machine::describe_costs(&setup.costs),
        duration: (setup.until != Time::NEVER).then(|| setup.until.since(Time::ZERO).to_string()),
        exceptions: Vec::new(),
    };
    let setup = Arc::new(setup);
    let (mut cells, mut words) = (Vec::with_capacity(policies.len()), Vec::new());
    let mut plan_cell = |mut policy: PolicyEntry| -> Result<Cell, Fault> {
        policy.read_files(files)?;
        let mut own = Arc::clone(&setup);
        let different = policy.changes_in_scenario();
        if !different.is_empty() {
            let (label, changes) = (policy.label.clone(), different);
            described.exceptions.push(Exception::Settings { label, changes });
        }
        if let Some(like) = &like {
            let settled = like.settle(&mut policy);
            if !settled.is_empty() {
                words.push(format!("{}: {}", policy.label, settled.join(", ")));
            }
        }
        let costs = calibrated.costs(&policy, machine)?;
        if !policy.machine.0.is_empty() || !costs.0.is_empty() {
            let mut tree = tree.clone();
            for Entry { key, key_at, node } in costs.0.iter().chain(&policy.machine.0) {
                set_part(&mut tree, &["machine", key], key_at, node.clone())
                    .map_err(|why| Fault::at(key_at, why))?;
            }
            let machine = tree.as_table().and_then(|table| table.get("machine"));
            let different = machine::setup(machine.unwrap_or(&tree), files)?;
            own = Arc::new(Setup { until: setup.until, ..different });
            described.exceptions.push(Exception::Machine {
                label: policy.label.clone(),
                machine: machine::describe(&own),
                costs: machine::describe_costs(&own.costs),
            });
        }
        let cell = Cell::new(policy, own)?;
        if like::misses_tick(&cell.policy, &cell.setup.machine) {
            files.warn(like::missing_tick(&cell.policy.label));
        }
        Ok(cell)
    };
    let mut faults = Faults::default();
    for policy in policies {
        cells.extend(faults.take(plan_cell(policy)));
    }
    faults.result()?;
    if let Some(like) = like {
        described.machine += &like.described(&words);
    }
    let needs = loads.needs().or(vms.needs());
    Ok(PlannedGroup { described, cells, loads, vms, needs, identity, length })
}

/// The machine of a group with the end of its runs, the loads and the virtual machines.
///
/// Errors: all that is wrong with any of them, or that there is no machine.
fn read_parts(
    tree: &Node,
    machine: Result<&Node, Fault>,
    files: &mut Files,
) -> Result<(Setup, Loads, Vms), Fault> {
    let part = |key: &str| tree.as_table().and_then(|table| table.get(key));
    let mut faults = Faults::default();
    let setup = machine.and_then(|node| read_all(node, |machine| machine::setup(machine, files)));
    let setup = faults.take(setup);
    // Policies with machines of their own are given the same tasks as the others.
    let cpus = setup.as_ref().map_or(MAX_CPUS, |setup| setup.machine.cpus());
    let loads = part("workload").map_or(Ok(Loads::none(cpus)), |list| {
        let loads = Loads::read(list, cpus, files)?;
        match loads.pinged.first() {
            None => Ok(loads),
            Some(ping) => {
                Err(Fault::at(&ping.to_at, "what pings a virtual machine is in one itself")
                    .help("make it a [[vm.workload]] of another [[vm]]"))
            }
        }
    });
    let loads = faults.take(loads);
    let vms = part("vm").map_or(Ok(Vms::default()), |list| Vms::read(list, cpus, files));
    let vms = faults.take(vms);
    if let Some(duration) = part("duration") {
        faults.take(read_duration(duration));
    }
    if let (Some(loads), Some(vms)) = (loads, vms)
        && let Some(until) = faults.take(end(part("duration"), &loads, &vms))
        && let Some(setup) = setup
    {
        return faults.result().map(|()| (Setup { until, ..setup }, loads, vms));
    }
    faults.result()?;
    Err(Fault::whole("not an experiment"))
}

/// When a run ends at the latest.
fn end(duration: Option<&Node>, loads: &Loads, vms: &Vms) -> Result<Time, Fault> {
    match (duration, loads.until, loads.endless.as_ref().or(vms.endless())) {
        (Some(duration), ..) => Ok(Time::ZERO + read_duration(duration)?),
        (None, _, Some(at)) => Err(Fault::at(at, "this load never ends").help(
            "say how long a run is with `duration = \"10s\"` at the top, or how much there is of \
             the load",
        )),
        (None, until, None) => Ok(until.unwrap_or(Time::NEVER)),
    }
}

fn read_duration(node: &Node) -> Result<Span, Fault> {
    let duration = fields::span(node, "duration")?;
    if duration == Span::ZERO {
        return Err(Fault::at(&node.at, format!("`duration` = {node} is out of range"))
            .help("a run is longer than 0; leave `duration` out to run until all tasks are done"));
    }
    Ok(duration)
}
