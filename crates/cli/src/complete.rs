//! What shells complete: the names that arguments take, as the program itself knows them.
//!
//! Scripts of shells ask the program for candidates, so they need not be made anew when a policy or
//! a metric is added.

use crate::args::Args;
use crate::output::{self, Failure};
use anysched_lab::keys::{SECTIONS, Takes};
use anysched_lab::{Stat, builtin};
use anysched_measure::{Kind, metric_infos};
use anysched_policies::POLICIES;
use anysched_workload::KINDS;
use anysched_workload::kinds::KindInfo;
use clap::{CommandFactory, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use std::ffi::OsStr;

/// The program's name.
const NAME: &str = "anysched";

/// By which variable scripts tell the program that it is asked for candidates.
const VARIABLE: &str = "COMPLETE";

/// A shell with completion.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// Answers a shell that asks for candidates, and ends the program then.
pub fn answer() {
    CompleteEnv::with_factory(Args::command).var(VARIABLE).bin(NAME).complete();
}

/// Prints the script with which a shell asks.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let known: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
        Shell::Elvish => &Elvish,
        Shell::Powershell => &Powershell,
    };
    let mut script = Vec::new();
    known.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    output::print(&String::from_utf8_lossy(&script))
}

fn candidate(name: impl Into<String>, help: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(name.into()).help(Some(help.into().into()))
}

/// Policies.
pub fn policies() -> ArgValueCandidates {
    let all = || POLICIES.iter().map(|policy| candidate(policy.name, policy.summary)).collect();
    ArgValueCandidates::new(all)
}

/// Columns of metrics: `waiting_time_ns_p99`.
pub fn metrics() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let columns = metric_infos().flat_map(|info| {
            let stats: Vec<String> = match info.kind {
                Kind::Distribution => Stat::ALL.map(|stat| format!("_{}", stat.name())).into(),
                Kind::Total | Kind::Derived => vec![String::new()],
            };
            let column = |stat| candidate(format!("{}{stat}", info.name), info.what);
            stats.into_iter().map(column).collect::<Vec<_>>()
        });
        columns.collect()
    })
}

/// Keys of experiments with what they do: `machine.cpus`, `workload.0.service`.
fn keys() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for section in SECTIONS.iter().filter(|section| ["", "machine"].contains(&section.path)) {
        let path =
            if section.path.is_empty() { String::new() } else { format!("{}.", section.path) };
        let keys = section.keys.iter().filter(|key| is_single(&key.takes));
        all.extend(keys.map(|key| (format!("{path}{}", key.name), key.what.to_string())));
    }
    for key in KINDS.iter().flat_map(KindInfo::keys) {
        all.push((format!("workload.0.{}", key.name), key.help.to_string()));
    }
    for parameter in POLICIES.iter().flat_map(|policy| (policy.params)()) {
        all.push((parameter.name.to_string(), parameter.doc.to_string()));
    }
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    all
}

/// Whether a key has a value that fits into an argument.
fn is_single(takes: &Takes) -> bool {
    !matches!(takes, Takes::Table(_) | Takes::Tables(_) | Takes::Loads | Takes::Rows)
}

/// `KEY=` of what can be set.
pub fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        keys().into_iter().map(|(key, what)| candidate(format!("{key}="), what)).collect()
    })
}

/// Keys along which results can be plotted.
pub fn axes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let scenario = candidate("scenario", "The scenarios of the experiment.");
        let keys = keys().into_iter().map(|(key, what)| candidate(key, what));
        [scenario].into_iter().chain(keys).collect()
    })
}

/// What `explain` knows.
pub fn names() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut names = crate::reference::all_names();
        names.sort();
        names.dedup();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// Files, and experiments that come with the program.
pub fn experiments() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = PathCompleter::any().complete(current);
        let start = current.to_string_lossy();
        let known = builtin::experiments().filter(|name| name.starts_with(&*start));
        all.extend(known.map(|name| candidate(name, "comes with the program")));
        all
    })
}
