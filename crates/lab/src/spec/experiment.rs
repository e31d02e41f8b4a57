//! The experiment file as a whole.

use crate::spec::claim::ClaimSpec;
use crate::spec::error::{Error, Fault, Faults, Source};
use crate::spec::fields::{self, Fields, read_all};
use crate::spec::keys::EXPERIMENT;
use crate::spec::parts::RowsShown;
use crate::spec::report::{Asked, Counted, read_report};
use crate::spec::scenario::{Scenario, read_scenarios};
use crate::spec::sweep::{self, Axis, PolicyEntry, Sweep};
use crate::spec::tree::{self, Entry, Node};
use anysched_measure::Apart;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An experiment file that has been read. [`Experiment::plan`] checks the rest of it.
#[derive(Debug)]
pub struct Experiment {
    pub(crate) source: Source,
    /// Its file.
    pub(crate) path: PathBuf,
    /// Where files that it names are looked for.
    pub(crate) directory: PathBuf,
    /// Files that are looked for here first, by the name that the experiment has for them.
    pub(crate) attached: Attached,
    pub(crate) name: String,
    pub(crate) question: String,
    pub(crate) title: Option<String>,
    pub(crate) seed: u64,
    pub(crate) sweep: Sweep,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) claims: Vec<ClaimSpec>,
    /// What the table shows; empty: chosen by what there is data for.
    pub(crate) columns: Vec<Asked>,
    /// Which rows the table shows.
    pub(crate) rows_shown: RowsShown,
    pub(crate) canonical: String,
    pub(crate) quick: Quick,
}

/// Contents of files, by name.
pub(crate) type Attached = BTreeMap<String, Arc<[u8]>>;

/// What `[quick]` changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quick {
    seeds: Option<u32>,
    /// Keys and values, as `--set` and, of a list for an axis, `--sweep` take them.
    settings: Vec<(String, Node)>,
}

/// What `seed` may be: whole numbers of TOML from 0 on.
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=i64::MAX as u64;

impl Experiment {
    /// What can be read of an experiment, and what is wrong with the rest.
    ///
    /// Errors: it is not TOML.
    pub(crate) fn read(source: &Source, path: &Path) -> Result<(Experiment, Faults), Fault> {
        let root = tree::parse(&source.text)?;
        let fields = Fields::any(&root, EXPERIMENT.name)?;
        let mut faults = Faults::default();
        faults.take(fields.refuse_others(EXPERIMENT.names()));
        let question = faults.take(fields.text("question")).flatten();
        if question.is_none() && fields.get("question").is_none() {
            faults.add(
                Fault::whole("no `question`").help(
                    "an experiment says first what it is to find out: `question = \"Does …?\"`",
                ),
            );
        }
        let title = faults.take(fields.text("title")).flatten();
        let seed = faults.take(fields.whole("seed", SEEDS)).flatten();
        let quick = faults.take(read_quick(fields.get("quick")));
        let sweep = faults.take(sweep::read(fields.get("sweep"), fields.get("policy")));
        let mut known = sweep.is_some();
        let sweep = sweep.unwrap_or_default();
        let scenarios = faults.take(read_scenarios(&fields, &sweep)).unwrap_or_default();
        let (scenarios, wrong) = scenarios;
        // What policies there are, and loads, claims and columns have to know.
        known &= wrong.is_empty() && !scenarios.is_empty();
        faults.take(wrong.result());
        let counted = Counted::by_policies(&sweep, &scenarios);
        let claims = fields.tables("claim").and_then(|all| match known {
            true => ClaimSpec::read_all(all, &sweep, &scenarios, &counted),
            false => ClaimSpec::check_all(all).map(|()| Vec::new()),
        });
        let claims = faults.take(claims);
        let report = fields.get("report").filter(|_| known);
        let report =
            report.map(|node| read_all(node, |node| read_report(node, &scenarios, &counted)));
        let report = report.and_then(|read| faults.take(read));
        let (columns, rows_shown) = report.unwrap_or_default();
        let name = path.file_stem().map_or("experiment".into(), |stem| stem.to_string_lossy());
        let experiment = Experiment {
            source: source.clone(),
            path: path.to_path_buf(),
            directory: path.parent().unwrap_or(Path::new("")).to_path_buf(),
            attached: Attached::default(),
            name: name.into_owned(),
            question: question.unwrap_or_default().to_string(),
            title: title.map(str::to_string),
            seed: seed.unwrap_or(1),
            sweep,
            scenarios,
            claims: claims.unwrap_or_default(),
            columns,
            rows_shown,
            canonical: root.to_string(),
            quick: quick.unwrap_or_default(),
        };
        Ok((experiment, faults))
    }

    /// The stem of the file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same experiment with a file that is not on disk: what it calls `name` has these bytes.
    pub fn with_file(mut self, name: &str, bytes: &[u8]) -> Experiment {
        self.attached.insert(name.to_string(), bytes.into());
        self
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is to be measured of some of the tasks: what is shown of them, or claims are about.
    pub(crate) fn apart(&self) -> Apart {
        let of_claims = self.claims.iter().map(ClaimSpec::apart);
        of_claims
            .chain(self.columns.iter().map(Asked::apart))
            .fold(self.rows_shown.apart, Apart::and)
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

    /// Whether it has claims to examine.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// The ids of its claims, and what the paper says about each, if it is a paper's.
    pub fn claims(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.claims.iter().map(|claim| (claim.id.as_str(), claim.paper.as_deref()))
    }

    /// What its claims have in the column that tells why: their ids, and the reason or else the
    /// reading.
    pub fn explanations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.claims.iter().filter_map(|claim| {
            let why = claim.because.as_deref().or(claim.reading.as_deref())?;
            Some((claim.id.as_str(), why))
        })
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
        settings.iter().try_fold(fewer, |changed, (key, value)| {
            // A list is fewer values of an axis, unless the axis is of lists.
            let axis = changed.sweep.axes.iter().find(|axis| axis.path == *key);
            let is_of_lists = |axis: &Axis| axis.values.iter().any(|it| it.as_list().is_some());
            match value.as_list() {
                Some(values) if axis.is_some_and(|axis| !is_of_lists(axis)) => {
                    let values: Vec<String> = values.iter().map(Node::to_string).collect();
                    let values: Vec<&str> = values.iter().map(String::as_str).collect();
                    changed.with_axis(key, &values)
                }
                _ => changed.with_setting(key, &value.to_string()),
            }
        })
    }

    /// The same experiment with another number of seeds, at least 1: fewer for a quick look, or
    /// more. The runs with the same number of the seed are the same.
    pub fn with_seeds(mut self, seeds: u32) -> Experiment {
        self.sweep.seeds = seeds.max(1);
        self
    }
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
            "seeds" => quick.seeds = Some(fields::whole(node, key, 1..=100_000)?),
            _ => quick.settings.push((key.clone(), node.clone())),
        }
    }
    Ok(quick)
}
