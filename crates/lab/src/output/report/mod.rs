//! Results as one page that needs nothing else: to read, to sort, to zoom into.
//!
//! The page is made once (`report/` at the top of the repository) and comes with this crate; what
//! it shows is put into it as text, compressed and in base64: a document, and two blocks for
//! each timeline, which the page unpacks when they are looked at.
//!
//! # The document
//!
//! JSON: `format` (`"anysched report"`), `version` ([`VERSION`]), `generator`, and `experiments`,
//! a list. Of each there are `results`, which are those of [`json`](super::json()), and `details`,
//! which are `null` where only the results are known. Positions count from 0.
//!
//! | key of `details` | what |
//! |---|---|
//! | `file`, `text` | the experiment's file and its text |
//! | `command`, `changes`, `version`, `seeds` | how to repeat it |
//! | `t975` | pairs of n and the 97.5 % quantile of Student's t for the mean of n seeds |
//! | `columns` | `name`, `metric`, `stat`, `unit`, `what`, `shown`, `better` (`less`, `more`) |
//! | `policies` | `label`, `name`, `summary`, `source`, `settings`, `clairvoyant`, `order` |
//! | `groups` | `planned` (for `--group`), `axes`, `machine`, `topology`, `loads`, `costs` … |
//! | `runs` | `group`, `policy`, `seeds`: `index`, `seed`, `values` in the order of `columns` |
//! | `answers` | `group`, `column`, `best`, `next`, `told`, `costs`: who does best, and how sure |
//! | `machines` | `cpus`: core, cache, package, node and capacity of each; `tick_ns` |
//! | `percents` | of what `distributions` have values |
//! | `distributions` | `group` and `policy` of the plan, `load`, `metric`, `count`, `values` |
//! | `timelines` | `group` and `policy` of the plan, `index` of the seed, `names`, `block` … |
//!
//! What was not measured is absent or `null`. Later versions may add keys; one that changes what a
//! key means has another `version`.

mod answers;
mod details;
mod distributions;
mod timeline;

pub use details::Origin;

use crate::plan::{Plan, PlannedGroup};
use crate::results::Results;
use crate::spec::parts::{ALL, WORKLOAD};
use crate::spec::sweep::AxisValue;
use anysched_host::{Capabilities, Host, HostError, Watch};
use anysched_trace::Shared;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use details::{Details, Made};
use distributions::Distribution;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use timeline::Recorder;

/// The version of the document's shape.
pub const VERSION: u32 = 1;

/// How many events all timelines of a page have, unless that is said.
pub const EVENTS: u64 = 1_000_000;

/// The page without data, and where they go.
const PAGE: &str = include_str!("../../../report/page.html");
const DATA: &str = "<!--data-->";
/// Where those go that the first picture does without: the page is not read further for it.
const MORE: &str = "<!--more-->";

/// What a page has of one experiment.
#[derive(Clone, Debug)]
pub struct Told {
    /// An entry of `experiments`.
    json: String,
    /// Of each timeline, what happened and why.
    blocks: Vec<[Vec<u8>; 2]>,
}

impl Plan {
    /// The same plan whose runs also measure each load apart, if a machine has several and they do
    /// not in any case: a page says what a policy does to each. `false`: nothing has changed.
    pub fn with_loads_apart(mut self) -> (Plan, bool) {
        let several = |group: &PlannedGroup| {
            let machines = group.vms.kinds().map(|(_, loads)| loads.len());
            machines.chain([group.loads.names.len()]).any(|loads| loads > 1)
        };
        let changes = !self.apart.loads && self.groups.iter().any(several);
        self.apart.loads |= changes;
        (self, changes)
    }
}

impl Results {
    /// The results of the plan before [`Plan::with_loads_apart`].
    pub fn without_loads_apart(&self) -> Results {
        let mut whole = self.clone();
        let is_load =
            |(axis, value): &(String, AxisValue)| axis == WORKLOAD && value.to_string() != ALL;
        let kept: Vec<usize> = (0..self.groups.len())
            .filter(|it| !self.groups[*it].axes.iter().any(is_load))
            .collect();
        let place = |group: usize| kept.iter().position(|kept| *kept == group);
        whole.rows.retain_mut(|row| {
            place(row.group).is_some_and(|place| {
                row.group = place;
                true
            })
        });
        whole.groups = kept.iter().map(|group| self.groups[*group].clone()).collect();
        whole.groups.iter_mut().for_each(|group| group.axes.retain(|(axis, _)| axis != WORKLOAD));
        whole.planned = kept.iter().map(|group| self.planned[*group]).collect();
        whole
    }
}

impl Told {
    /// Of results that [`json`](super::json()) has written.
    ///
    /// Errors: `text` is something else; says what is missing.
    pub fn of_json(text: &str) -> Result<Told, String> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        for key in ["experiment", "question", "spec_hash", "host", "seed", "rows", "claims"] {
            if value.get(key).is_none() {
                return Err(format!(
                    "no results of an experiment: there is no \"{key}\"; `anysched run FILE.toml \
                     --out DIR` writes results as NAME.json"
                ));
            }
        }
        let json = format!("{{\"results\":{},\"details\":null}}", text.trim_end());
        Ok(Told { json, blocks: Vec::new() })
    }

    /// Of results that `plan` gave on `host`, with timelines of the first run of each row. These
    /// are made again for it, as far as `events` in all; hosts that do not run policies in this
    /// process have none.
    ///
    /// Errors: a run cannot be made.
    pub fn of_run(
        results: &Results,
        plan: &Plan,
        host: &dyn Host,
        origin: &Origin,
        events: u64,
    ) -> Result<Told, HostError> {
        let Again { made, blocks, distributions } = Again::of(results, plan, host, events)?;
        let details = Details::of(results, plan, origin, made, distributions);
        let details = serde_json::to_string(&details).map_err(|e| HostError(e.to_string()))?;
        let results = super::json(results);
        let json = format!("{{\"results\":{},\"details\":{details}}}", results.trim_end());
        Ok(Told { json, blocks })
    }
}

/// The first runs of all rows, made again and watched.
#[derive(Default)]
struct Again {
    made: Vec<Made>,
    blocks: Vec<[Vec<u8>; 2]>,
    distributions: Vec<Distribution>,
}

impl Again {
    fn of(
        results: &Results,
        plan: &Plan,
        host: &dyn Host,
        events: u64,
    ) -> Result<Again, HostError> {
        let mut again = Again::default();
        let Capabilities { traces, observed, .. } = host.info().capabilities;
        // In a kernel a run takes seconds.
        if !traces || !observed && events == 0 {
            return Ok(again);
        }
        // Schedulers that a host has of its own tell nothing.
        let mut rows = results.runs();
        rows.retain(|(_, policy)| *policy < plan.policies().len());
        let mut left = events;
        for (done, &(group, policy)) in rows.iter().enumerate() {
            // What short runs leave is for those that follow.
            let most = left / (rows.len() - done) as u64;
            left -= again.run(plan, host, (group, policy), most)?;
        }
        Ok(again)
    }

    /// Makes one run; returns how many of at most so many events were kept.
    fn run(
        &mut self,
        plan: &Plan,
        host: &dyn Host,
        (group, policy): (usize, usize),
        most: u64,
    ) -> Result<u64, HostError> {
        let cpus = plan.setup(group, policy).machine.cpus();
        let recorder = Recorder::new(cpus, plan.policy(group, policy).info.order, most);
        let recorder = RefCell::new(recorder);
        let (mut events, mut calls) = (Shared(&recorder), Shared(&recorder));
        let mut watch = Watch { apart: plan.apart, ..Watch::default() };
        let reasons = host.info().capabilities.observed;
        if most > 0 {
            watch.trace = Some(&mut events);
            watch.observe = if reasons { Some(&mut calls) } else { None };
        }
        let outcome = plan.run_one(host, group, policy, 0, watch);
        let outcome = outcome.map_err(|error| HostError(error.to_string()))?;
        let loads = &plan.groups[group].loads.names;
        let found = distributions::of(&outcome.metrics, loads, (group, policy));
        self.distributions.extend(found);
        if most == 0 {
            return Ok(0);
        }
        let mut timeline = recorder.into_inner().finish();
        let (events, block) = (timeline.events, self.blocks.len());
        let blocks = [&mut timeline.block, &mut timeline.choices].map(std::mem::take);
        self.blocks.push(blocks);
        self.made.push(Made { group, policy, index: 0, cpus, timeline, reasons, block });
        Ok(events)
    }
}

/// The document, and of each timeline in it what happened and why.
pub fn document(told: &[Told]) -> (String, Vec<&[Vec<u8>; 2]>) {
    let mut document = format!(
        "{{\"format\":\"anysched report\",\"version\":{VERSION},\"generator\":\"anysched {}\",\
         \"experiments\":[",
        env!("CARGO_PKG_VERSION")
    );
    let mut blocks = Vec::new();
    for (number, one) in told.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        // Where its blocks begin among those of all.
        let _ = write!(document, "{comma}{{\"block\":{},{}", blocks.len(), &one.json[1..]);
        blocks.extend(&one.blocks);
    }
    document += "]}";
    (document, blocks)
}

/// The page. The same experiments give the same bytes.
pub fn report(told: &[Told]) -> Vec<u8> {
    let (document, timelines) = document(told);
    let (mut blocks, mut more) = (String::new(), String::new());
    for (block, [events, choices]) in timelines.into_iter().enumerate() {
        blocks += &packed(&format!("block-{block}"), events);
        more += &packed(&format!("choices-{block}"), choices);
    }
    let data = packed("document", document.as_bytes()) + &blocks;
    PAGE.replacen(DATA, &data, 1).replacen(MORE, &more, 1).into_bytes()
}

/// Compressed, as an element of the page.
fn packed(id: &str, bytes: &[u8]) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(6));
    let packed = gzip.write_all(bytes).and_then(|()| gzip.finish());
    let text = STANDARD.encode(packed.expect("memory takes all that is written"));
    format!("<script type=\"text/plain\" id=\"{id}\">{text}</script>\n")
}
