//! What there is to choose from.

use anysched_lab::{Experiment, builtin, described};
use anysched_policies::POLICIES;
use anysched_workload::KINDS;
use anysched_workload::kinds::{Fallback, KeyInfo};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The version; policies, kinds of load, and experiments that are built in.
pub(crate) fn about() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "policies": POLICIES.iter().map(described::policy).collect::<Vec<_>>(),
        "kinds": kinds(),
        "experiments": experiments(),
    })
}

/// Those of which a file is not the load.
fn kinds() -> Vec<Value> {
    let key = |key: &KeyInfo| {
        let (needed, default) = match key.default {
            Fallback::Needed => (true, ""),
            Fallback::Value(value) => (false, value),
            Fallback::Words(words) | Fallback::Or(words) => (false, words),
        };
        json!({
            "name": key.name,
            "takes": key.takes.to_string(),
            "text": is_text(key),
            "needed": needed,
            "default": default,
            "example": key.example,
            "help": key.help,
        })
    };
    let is_file = |key: &KeyInfo| key.name == "file";
    let generated = KINDS.iter().filter(|kind| !kind.own.iter().any(is_file));
    generated
        .map(|kind| {
            let keys: Vec<Value> = kind.own.iter().map(key).collect();
            json!({ "name": kind.name, "summary": kind.summary, "keys": keys })
        })
        .collect()
}

/// Whether a value is written in quotes.
fn is_text(key: &KeyInfo) -> bool {
    use anysched_workload::kinds::Given;
    matches!(key.takes.literal(key.example), Given::Text(_))
}

fn experiments() -> Vec<Value> {
    let entry = |name: &str| {
        let path = builtin::experiment(Path::new(name))?;
        let experiment = Experiment::load(&path).ok()?;
        Some(json!({ "name": name, "question": experiment.question() }))
    };
    builtin::experiments().filter_map(entry).collect()
}

/// The path and the text of an experiment that is built in.
pub(crate) fn built(name: &str) -> Result<(PathBuf, &'static str), String> {
    let unknown = || format!("no experiment is called \"{name}\"");
    let path = builtin::experiment(Path::new(name)).ok_or_else(unknown)?;
    let bytes = builtin::contents(&path).ok_or_else(unknown)?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))?;
    Ok((path, text))
}
