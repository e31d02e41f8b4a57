//! The experiment file as a whole.

use crate::claim::ClaimSpec;
use crate::columns::{self, Column, Stat, column_with};
use crate::error::{Error, Fault, NOWHERE, Source};
use crate::fields::{Fields, hint};
use crate::plan::Plan;
use crate::sweep::{self, PolicyEntry, Sweep};
use crate::tree::{self, Entry, Node, Table, Value};
use crate::vm;
use anysched_core::registry::PolicyInfo;
use anysched_measure::{Kind, Metric, MetricInfo, metric_infos};
use anysched_policies::policy;
use anysched_workload::nearest::nearest;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

/// An experiment file that has been read. [`Experiment::plan`] checks the rest of it.
#[derive(Debug)]
pub struct Experiment {
    pub(crate) source: Source,
    /// Where files that it names are looked for.
    pub(crate) directory: PathBuf,
    pub(crate) name: String,
    pub(crate) question: String,
    pub(crate) title: Option<String>,
    pub(crate) seed: u64,
    pub(crate) sweep: Sweep,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) claims: Vec<ClaimSpec>,
    /// What the table shows; empty: chosen by what there is data for.
    pub(crate) columns: Vec<Column>,
    /// Values of the axis `vm` that the table shows; empty: all.
    pub(crate) vms_shown: Vec<String>,
    pub(crate) canonical: String,
    pub(crate) quick: Quick,
}

/// What `[quick]` changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quick {
    seeds: Option<u32>,
    /// Keys and values as [`Experiment::with_setting`] takes them.
    settings: Vec<(String, String)>,
}

/// One load and machine; an experiment without `[[scenario]]` has one without a name.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: Option<String>,
    pub(crate) at: Range<usize>,
    /// A table of `machine`, `workload` and perhaps `duration`.
    pub(crate) tree: Node,
    /// By label, what policies have different here.
    policies: Vec<(String, Table)>,
}

impl Scenario {
    /// `policy` as it is here.
    pub(crate) fn policy(&self, policy: &PolicyEntry) -> Result<PolicyEntry, Fault> {
        let mut here = policy.clone();
        for (_, changes) in self.policies.iter().filter(|(label, _)| *label == policy.label) {
            here.change_in_scenario(changes)?;
        }
        Ok(here)
    }
}

/// What `seed` may be: whole numbers of TOML from 0 on.
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=i64::MAX as u64;

const KEYS: [&str; 13] = [
    "question", "title", "seed", "policy", "duration", "machine", "workload", "vm", "scenario",
    "sweep", "claim", "report", "quick",
];

impl Experiment {
    /// Reads the experiment file at `path`.
    ///
    /// Errors: the file cannot be read, or as [`Experiment::parse`].
    pub fn load(path: &Path) -> Result<Experiment, Error> {
        let refused = |fault| Source::new(path, "").error(fault);
        let bytes = std::fs::read(path)
            .map_err(|error| refused(Fault::whole(format!("cannot be read: {error}"))))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            refused(
                Fault::whole(format!("line {line} is not UTF-8"))
                    .help("an experiment is a text in TOML; save it as UTF-8"),
            )
        })?;
        Experiment::parse(text, path)
    }

    /// Reads an experiment from `text`, as if it stood in the file `path`: the file's stem is
    /// the experiment's name, and files that it names are looked for beside it.
    ///
    /// Errors: it is not TOML, or a part of it is not understood. What depends on the values of
    /// the sweep is checked by [`Experiment::plan`].
    pub fn parse(text: &str, path: &Path) -> Result<Experiment, Error> {
        let source = Source::new(path, text);
        Experiment::read(&source, path).map_err(|fault| source.error(fault))
    }

    fn read(source: &Source, path: &Path) -> Result<Experiment, Fault> {
        let root = tree::parse(&source.text)?;
        let fields = Fields::of(&root, "an experiment", &KEYS)?;
        let question = fields.text("question")?.ok_or_else(|| {
            Fault::whole("no `question`")
                .help("an experiment says first what it is to find out: `question = \"Does …?\"`")
        })?;
        let sweep = sweep::read(fields.get("sweep"), fields.get("policy"))?;
        let scenarios = read_scenarios(&fields, &sweep)?;
        let counted = Counted::by_policies(&sweep, &scenarios);
        let claims = ClaimSpec::read_all(fields.tables("claim")?, &sweep, &scenarios, &counted)?;
        let (columns, vms_shown) = read_report(fields.get("report"), &scenarios, &counted)?;
        let name = path.file_stem().map_or("experiment".into(), |stem| stem.to_string_lossy());
        Ok(Experiment {
            source: source.clone(),
            directory: path.parent().unwrap_or(Path::new("")).to_path_buf(),
            name: name.into_owned(),
            question: question.to_string(),
            title: fields.text("title")?.map(str::to_string),
            seed: fields.whole("seed", SEEDS)?.unwrap_or(1),
            sweep,
            scenarios,
            claims,
            columns,
            vms_shown,
            canonical: root.to_string(),
            quick: read_quick(fields.get("quick"))?,
        })
    }

    /// The stem of the file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policies that are compared, as they are set in `[sweep]`; files that settings name have
    /// not been read.
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.sweep.policies
    }

    /// What it is to find out.
    pub fn question(&self) -> &str {
        &self.question
    }

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

    /// The same experiment as its `[quick]` changes it: smaller, for a first look. Claims about
    /// rows that are left out are not decided.
    ///
    /// Errors: as [`Experiment::with_setting`].
    pub fn quick(self) -> Result<Experiment, Error> {
        let Quick { seeds, settings } = self.quick.clone();
        let fewer = match seeds {
            Some(seeds) => self.with_seeds(seeds),
            None => self,
        };
        settings.iter().try_fold(fewer, |changed, (key, value)| changed.with_setting(key, value))
    }

    /// The same experiment with another number of seeds, at least 1: fewer for a quick look, or
    /// more. The runs with the same number of the seed are the same.
    pub fn with_seeds(mut self, seeds: u32) -> Experiment {
        self.sweep.seeds = seeds.max(1);
        self
    }
}

fn read_scenarios(fields: &Fields<'_>, sweep: &Sweep) -> Result<Vec<Scenario>, Fault> {
    let mut base = Node::empty_table(NOWHERE);
    for key in ["machine", "workload", "vm", "duration"] {
        if let Some(entry) = fields.table.entry(key) {
            base.replace(&[key], &entry.key_at, entry.node.clone()).map_err(Fault::whole)?;
        }
    }
    let nodes = fields.tables("scenario")?;
    if nodes.is_empty() {
        let scenario = Scenario { name: None, at: NOWHERE, tree: base, policies: Vec::new() };
        return require_workload(scenario).map(|scenario| vec![scenario]);
    }
    let mut scenarios: Vec<Scenario> = Vec::new();
    for node in nodes {
        let keys = ["name", "machine", "workload", "vm", "duration", "policy"];
        let fields = Fields::of(node, "[[scenario]]", &keys)?;
        let name_node = fields.need("name", "\"interactive\"")?;
        let name = crate::fields::text(name_node, "name")?;
        if scenarios.iter().any(|other| other.name.as_deref() == Some(name)) {
            let message = format!("two scenarios are called \"{name}\"");
            return Err(Fault::at(&name_node.at, message).label("the second one"));
        }
        let mut tree = base.clone();
        let mut policies = Vec::new();
        for entry in &fields.table.0 {
            match (entry.key.as_str(), &entry.node.value) {
                ("name", _) => {}
                ("policy", _) => policies = read_changes(&entry.node, sweep)?,
                ("machine", Value::Table(overrides)) => {
                    for inner in &overrides.0 {
                        let path = ["machine", inner.key.as_str()];
                        set_part(&mut tree, &path, &inner.key_at, inner.node.clone())
                            .map_err(|why| Fault::at(&inner.key_at, why))?;
                    }
                }
                (key, _) => set_part(&mut tree, &[key], &entry.key_at, entry.node.clone())
                    .map_err(|why| Fault::at(&entry.key_at, why))?,
            }
        }
        let scenario =
            Scenario { name: Some(name.to_string()), at: node.at.clone(), tree, policies };
        scenarios.push(require_workload(scenario)?);
    }
    Ok(scenarios)
}

/// What policies have different in a scenario, by label.
fn read_changes(node: &Node, sweep: &Sweep) -> Result<Vec<(String, Table)>, Fault> {
    let known: Vec<&str> = sweep.policies.iter().map(|policy| policy.label.as_str()).collect();
    let fields = Fields::of(node, "[scenario.policy]", &known)?;
    let change = |entry: &Entry| match &entry.node.value {
        Value::Table(changes) => Ok((entry.key.clone(), changes.clone())),
        _ => Err(Fault::at(&entry.node.at, format!("what differs is a table, not {}", entry.node))
            .help(format!("for example `{} = {{ machine = {{ cpus = 5 }} }}`", entry.key))),
    };
    fields.table.0.iter().map(change).collect()
}

fn require_workload(scenario: Scenario) -> Result<Scenario, Fault> {
    let has = |key| scenario.tree.as_table().is_some_and(|table| table.get(key).is_some());
    if has("workload") || has("vm") {
        return Ok(scenario);
    }
    let help = "add a `[[workload]]`, for example with `kind = \"batch\"`, `tasks = 100` and \
                `service = \"exp(10ms)\"`";
    Err(match &scenario.name {
        None => Fault::whole("no load").help(help),
        Some(name) => Fault::at(&scenario.at, format!("scenario \"{name}\" has no load"))
            .help(help.replace("[[workload]]", "[[scenario.workload]]")),
    })
}

/// Replaces a part of a scenario. `cpus` and `topology` are two ways to say one thing, so that
/// each replaces the other.
pub(crate) fn set_part(
    tree: &mut Node,
    path: &[&str],
    key_at: &Range<usize>,
    node: Node,
) -> Result<(), String> {
    let other = match path {
        ["machine", "cpus"] => Some("topology"),
        ["machine", "topology"] => Some("cpus"),
        _ => None,
    };
    if let (Some(other), Value::Table(table)) = (other, &mut tree.value)
        && let Some(machine) = table.0.iter_mut().find(|entry| entry.key == "machine")
        && let Value::Table(machine) = &mut machine.node.value
    {
        machine.0.retain(|entry| entry.key != other);
    }
    tree.replace(path, key_at, node)
}

fn read_quick(node: Option<&Node>) -> Result<Quick, Fault> {
    let mut quick = Quick::default();
    let Some(node) = node else { return Ok(quick) };
    let Some(table) = node.as_table() else {
        return Err(Fault::at(&node.at, format!("`quick` is a table, not {}", node.shown()))
            .help("for example `[quick]` and below it `seeds = 3`"));
    };
    for Entry { key, node, .. } in &table.0 {
        match key.as_str() {
            "seeds" => quick.seeds = Some(crate::fields::whole(node, key, 1..=100_000)?),
            _ => quick.settings.push((key.clone(), node.to_string())),
        }
    }
    Ok(quick)
}

/// Which columns and which virtual machines are shown; none: no wish.
fn read_report(
    node: Option<&Node>,
    scenarios: &[Scenario],
    counted: &Counted,
) -> Result<(Vec<Column>, Vec<String>), Fault> {
    let Some(node) = node else { return Ok(Default::default()) };
    let fields = Fields::of(node, "[report]", &["columns", "vms"])?;
    let columns = fields.get("columns").map(|list| read_columns(list, counted)).transpose()?;
    let vms = fields.get("vms").map(|list| read_vms_shown(list, scenarios)).transpose()?;
    Ok((columns.unwrap_or_default(), vms.unwrap_or_default()))
}

fn read_vms_shown(list: &Node, scenarios: &[Scenario]) -> Result<Vec<String>, Fault> {
    let names = vm::names(scenarios);
    if names.is_empty() {
        return Err(Fault::at(&list.at, "there are no virtual machines to be shown")
            .help("leave `vms` out, or add a `[[vm]]`"));
    }
    let items = list.as_list().filter(|items| !items.is_empty()).ok_or_else(|| {
        let message = format!("`vms` is a list of names, not {}", list.shown());
        Fault::at(&list.at, message).help("for example `vms = [\"all\", \"web\"]`")
    })?;
    let known = || [vm::ALL].into_iter().chain(names.iter().map(String::as_str));
    let read = |item: &Node| {
        let name = crate::fields::text(item, "vms")?;
        if known().any(|known| known == name) {
            return Ok(name.to_string());
        }
        Err(Fault::at(&item.at, format!("no [[vm]] is called \"{name}\""))
            .label("unknown name")
            .help(hint(name, known().collect::<Vec<_>>().into_iter())))
    };
    items.iter().map(read).collect()
}

fn read_columns(list: &Node, counted: &Counted) -> Result<Vec<Column>, Fault> {
    let Some(items) = list.as_list() else {
        return Err(Fault::at(&list.at, format!("`columns` is a list, not {}", list.shown()))
            .help("for example `columns = [\"waiting_time_ns_mean\", \"makespan_ns\"]`"));
    };
    items
        .iter()
        .map(|item| {
            let name = crate::fields::text(item, "columns")?;
            find_column(name, &item.at, counted)
        })
        .collect()
}

/// What the policies of an experiment count of themselves, those of its virtual machines included.
pub(crate) struct Counted(Vec<&'static str>);

impl Counted {
    pub(crate) fn by_policies(sweep: &Sweep, scenarios: &[Scenario]) -> Counted {
        let of_vms = scenarios.iter().flat_map(|scenario| {
            let list = scenario.tree.as_table().and_then(|table| table.get(vm::VM)?.as_list());
            let policy = |node: &'_ Node| node.as_table()?.get("policy").and_then(policy_named);
            list.unwrap_or_default().iter().filter_map(policy).collect::<Vec<_>>()
        });
        let is_policy = |axis: &&sweep::Axis| axis.path.ends_with(".policy");
        let swept = sweep.axes.iter().filter(is_policy).flat_map(|axis| &axis.values);
        let policies = sweep.policies.iter().map(|entry| entry.info);
        Counted(columns::tallies(policies.chain(of_vms).chain(swept.filter_map(policy_named))))
    }
}

/// The policy of a name or of a table with a `name`, if that is right.
fn policy_named(node: &Node) -> Option<&'static PolicyInfo> {
    let name = node.as_table().map_or(Some(node), |table| table.get("name"))?;
    policy(name.as_text()?)
}

/// The column `name`, if it is one of those that runs can have where policies count this.
pub(crate) fn find_column(
    name: &str,
    at: &Range<usize>,
    counted: &Counted,
) -> Result<Column, Fault> {
    column_with(name, &counted.0).ok_or_else(|| match name.strip_prefix("policy.") {
        None => no_column(name, at),
        Some(_) => not_counted(name, at, counted),
    })
}

/// No policy of an experiment counts `name`: what they count instead.
fn not_counted(name: &str, at: &Range<usize>, Counted(counted): &Counted) -> Fault {
    let names: Vec<String> = counted
        .iter()
        .flat_map(|name| [Metric::tally(name), Metric::tally_cv(name)])
        .map(|metric| metric.to_string())
        .collect();
    let help = match names.is_empty() {
        true => "none of the policies here counts anything of itself".to_string(),
        false => hint(name, names.iter().map(String::as_str)),
    };
    Fault::at(at, format!("no policy of this experiment counts `{name}`"))
        .label("not counted")
        .help(help)
}

/// There is no column `name`: what there is instead.
fn no_column(name: &str, at: &Range<usize>) -> Fault {
    let infos = || metric_infos().filter(|info| !info.name.contains('N'));
    let is_of = |info: &&MetricInfo| {
        let rest = name.strip_prefix(info.name);
        info.kind == Kind::Distribution
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let known: Vec<String> = infos()
        .filter_map(|info| Metric::named(info.name, &[]))
        .flat_map(Column::of)
        .map(|column| column.to_string())
        .collect();
    let names = known.iter().map(String::as_str);
    let help = match infos().find(is_of) {
        Some(MetricInfo { name, .. }) => {
            let stats = Stat::ALL.map(|stat| format!("`{name}_{}`", stat.name()));
            format!("of this metric there are {}", stats.join(", "))
        }
        None if nearest(name, names.clone()).is_some() => hint(name, names),
        None => {
            let names: Vec<&str> = metric_infos().map(|info| info.name).collect();
            format!("there are {}", names.join(", "))
        }
    };
    Fault::at(at, format!("no metric is called `{name}`")).label("unknown metric").help(help)
}
