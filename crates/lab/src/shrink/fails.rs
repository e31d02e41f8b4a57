//! What a run is said to do wrong, and whether it does.

use crate::plan::Plan;
use crate::plan::rehearsal::seeded;
use crate::plan::run::RunError;
use crate::results::verdict::ClaimResult;
use crate::shrink::calls::Sequence;
use crate::shrink::held::{Broken, Held, Pace};
use crate::shrink::search::Clock;
use crate::spec::claim::{ClaimSpec, Verdict};
use crate::spec::error::{Error, Fault};
use crate::spec::experiment::Experiment;
use crate::spec::report::Counted;
use crate::spec::sweep::PolicyEntry;
use crate::spec::tree::Node;
use anysched_core::Time;
use anysched_host::{Beat, Host, Watch};
use anysched_trace::stuck::Waits;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};

/// What a run does wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fails {
    /// This holds of it, which is written as what a claim expects.
    Condition(String),
    /// The claim with this id does not hold.
    Claim(String),
    /// The policy or the host breaks the contract, or panics.
    Contract,
    /// Tasks wait for each other for ever.
    Deadlock,
}

impl Fails {
    /// Reads `contract`, `deadlock`, `claim ID` or a condition.
    pub fn parse(text: &str) -> Fails {
        match text.trim() {
            "contract" => Fails::Contract,
            "deadlock" => Fails::Deadlock,
            text => match text.strip_prefix("claim ") {
                Some(id) => Fails::Claim(id.trim().into()),
                None => Fails::Condition(text.into()),
            },
        }
    }
}

impl fmt::Display for Fails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fails::Condition(text) => f.write_str(text),
            Fails::Claim(id) => write!(f, "claim {id}"),
            Fails::Contract => f.write_str("contract"),
            Fails::Deadlock => f.write_str("deadlock"),
        }
    }
}

/// How a run fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In which way, by which failures are the same: `NoKick`, `panic`.
    pub way: String,
    /// What is wrong, in a sentence.
    pub what: String,
}

impl Experiment {
    /// The same experiment, with as its only claim that `condition` holds.
    ///
    /// Errors: it cannot be read, or names what the experiment does not have.
    pub(crate) fn with_condition(&self, condition: &str) -> Result<Experiment, Error> {
        let change = self.append("fails", &crate::spec::overrides::quoted(condition));
        let source = change.source.clone();
        let at = change.node.at.clone();
        let entry = |key, text: &str| (key, Node::of_text(text, &at));
        let mut claim = Node::empty_table(at.clone());
        for (key, node) in [entry("id", "fails"), entry("text", condition)] {
            claim.replace(&[key], &at, node).map_err(|why| source.error(Fault::whole(why)))?;
        }
        claim
            .replace(&["expect"], &at, change.node.clone())
            .map_err(|why| source.error(Fault::whole(why)))?;
        let counted = Counted::by_policies(&self.sweep, &self.scenarios);
        let claims = ClaimSpec::read_all(&[claim], &self.sweep, &self.scenarios, &counted)
            .map_err(|fault| source.error(fault))?;
        Ok(self.changed(change, |changed, _| changed.claims = claims))
    }

    /// The same experiment as it is judged for `fails`, with the policies that this is about: all
    /// of them, where each is judged by itself.
    ///
    /// Errors: there is no such claim, or the condition cannot be read.
    pub(crate) fn judged(&self, fails: &Fails) -> Result<Experiment, Error> {
        let judged = match fails {
            Fails::Condition(condition) => self.with_condition(condition)?,
            Fails::Claim(id) => {
                let mut claims = self.claims.clone();
                claims.retain(|claim| claim.id == *id);
                if claims.is_empty() {
                    let ids: Vec<&str> =
                        self.claims.iter().map(|claim| claim.id.as_str()).collect();
                    let fault = Fault::whole(format!("no claim has the id \"{id}\""));
                    let help = match ids.is_empty() {
                        true => "the experiment has no claims".to_string(),
                        false => format!("there are: {}", ids.join(", ")),
                    };
                    return Err(self.source.error(fault.help(help)));
                }
                let change = self.append("claim", &crate::spec::overrides::quoted(id));
                self.changed(change, |changed, _| changed.claims = claims)
            }
            Fails::Contract | Fails::Deadlock => return self.policies(&self.all_labels()),
        };
        let mut named: Vec<usize> = Vec::new();
        for reference in judged.claims.iter().flat_map(ClaimSpec::references) {
            if !named.contains(&reference.policy) {
                named.push(reference.policy);
            }
        }
        named.sort_unstable();
        let labels = self.all_labels();
        let labels: Vec<&str> =
            named.into_iter().filter_map(|place| labels.get(place).copied()).collect();
        match labels.is_empty() {
            true => judged.policies(&self.all_labels()),
            false => judged.policies(&labels),
        }
    }

    fn all_labels(&self) -> Vec<&str> {
        self.sweep.policies.iter().map(|entry| entry.label.as_str()).collect()
    }
}

/// Where and how a plan is looked at.
pub(crate) struct Look<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) host: &'a dyn Host,
    pub(crate) group: usize,
    pub(crate) seed: u32,
    /// Runs end when it does.
    pub(crate) clock: Clock<'a>,
}

impl Look<'_> {
    /// How the runs fail, if they do: those of all policies together, or where that can be told of
    /// a policy alone, the one at `policy`. With the calls, if they are wanted and what is broken
    /// is the contract.
    ///
    /// Errors: a run cannot be made.
    pub(crate) fn failure(
        &self,
        fails: &Fails,
        policy: usize,
        keeps_calls: bool,
    ) -> Result<Option<(Failure, Option<Sequence>)>, RunError> {
        match fails {
            Fails::Condition(_) | Fails::Claim(_) => {
                let wanted = match fails {
                    Fails::Claim(_) => Verdict::DoesNotHold,
                    _ => Verdict::Holds,
                };
                let (mut beat, mut pace) = (|_: Beat| self.beat(), Pace::default());
                let judged = panic::catch_unwind(AssertUnwindSafe(|| {
                    self.plan.judge(self.host, self.group, self.seed, (&mut beat, &mut pace))
                }));
                // A run that panics has no metrics.
                let Ok(judged) = judged else { return Ok(None) };
                let judged = judged?;
                let held = |verdict: Option<Verdict>| match verdict {
                    Some(Verdict::HoldsUnderReading) => wanted == Verdict::Holds,
                    verdict => verdict == Some(wanted),
                };
                let found = judged.iter().find(|claim| held(claim.verdict));
                let what = |claim: &ClaimResult| {
                    let checks = claim.checks.iter().map(|check| {
                        let [left, right] = [check.left, check.right];
                        let values = [left, right].map(|value| side(value, check.is_time));
                        format!("{} ({} and {})", check.expression, values[0], values[1])
                    });
                    checks.collect::<Vec<_>>().join("; ")
                };
                Ok(found.map(|claim| (Failure { way: "claim".into(), what: what(claim) }, None)))
            }
            Fails::Deadlock => self.deadlock(policy).map(|found| found.map(|f| (f, None))),
            Fails::Contract => Ok(self.contract(policy, keeps_calls)),
        }
    }

    fn beat(&self) -> ControlFlow<()> {
        if self.clock.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn deadlock(&self, policy: usize) -> Result<Option<Failure>, RunError> {
        let mut waits = Waits::default();
        let (mut beat, mut pace) = (|_: Beat| self.beat(), Pace::default());
        let ran = panic::catch_unwind(AssertUnwindSafe(|| {
            let watch = Watch {
                trace: Some(&mut waits),
                observe: Some(&mut pace),
                beat: Some(&mut beat),
                ..Watch::default()
            };
            self.plan.run_one(self.host, self.group, policy, self.seed, watch)
        }));
        let Ok(ran) = ran else { return Ok(None) };
        ran?;
        Ok(waits.lines().into_iter().next().map(|what| {
            let way = if what.starts_with("deadlock") { "deadlock" } else { "wait" };
            Failure { way: way.into(), what }
        }))
    }

    fn contract(&self, policy: usize, keeps_calls: bool) -> Option<(Failure, Option<Sequence>)> {
        let entry = self.plan.policy(self.group, policy);
        let machine = &self.plan.setup(self.group, policy).machine;
        let mut held = Held::new(machine, conserves(entry), keeps_calls);
        let mut beat = |_: Beat| self.beat();
        let ran = panic::catch_unwind(AssertUnwindSafe(|| {
            let watch =
                Watch { observe: Some(&mut held), beat: Some(&mut beat), ..Watch::default() };
            // Whatever else keeps it from ending is no breach.
            let _ = self.plan.run_one(self.host, self.group, policy, self.seed, watch);
        }));
        let Held { calls, broken, stood_still, .. } = held;
        let endless = stood_still.map(|now| {
            let at = now.since(Time::ZERO);
            let what = format!("at {at} the policy kicks idle CPUs for ever");
            (Failure { way: "endless".into(), what }, None)
        });
        if endless.is_some() {
            return endless;
        }
        let failure = match (broken, ran) {
            (Some(violation), _) => {
                Failure { way: way(&violation.fault), what: violation.fault.to_string() }
            }
            (None, Err(panic)) if !panic.is::<Broken>() => {
                Failure { way: "panic".into(), what: said(&*panic) }
            }
            _ => return None,
        };
        let sequence = keeps_calls.then(|| {
            let seed = self.plan.seed(self.group, self.seed);
            let settings = seeded(entry.info, &entry.settings(), seed);
            Sequence::new(entry.info, settings, machine.clone(), calls)
        });
        Some((failure, sequence))
    }
}

fn side(value: f64, is_time: bool) -> String {
    match is_time && (0.0..1e19).contains(&value) {
        true => anysched_core::Span(value as u64).to_string(),
        false => value.to_string(),
    }
}

/// What a panic says.
pub(crate) fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("the policy panics: {text}")
}

/// The name of a fault, by which it is the same as others.
pub(crate) fn way(fault: &anysched_core::checked::Fault) -> String {
    let text = format!("{fault:?}");
    let inner = text.split_once('(').map_or(text.as_str(), |(_, inner)| inner);
    let end = inner.find(|c: char| !c.is_alphanumeric()).unwrap_or(inner.len());
    inner[..end].to_string()
}

/// Whether a policy leaves no CPU idle beside a ready task, whatever it changes during a run.
pub(crate) fn conserves(entry: &PolicyEntry) -> bool {
    let settings = entry.settings();
    let nature = |settings: &[(&str, &str)]| {
        (entry.info.nature)(settings).is_ok_and(|nature| nature.work_conserving)
    };
    let changes = entry.changes();
    let with = |change: &anysched_host::ParamChange| {
        nature(&[&settings[..], &[(change.name.as_str(), change.text.as_str())]].concat())
    };
    nature(&settings) && changes.iter().all(with)
}
