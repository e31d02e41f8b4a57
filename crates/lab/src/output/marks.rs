//! What is noted below results: how policies are marked that know more than a kernel does when a
//! load first comes, and what is missing.

use crate::results::Results;
use anysched_core::registry::Nature;

const TOLD: (&str, &str) = ("*", "* is told how long tasks will run, which no kernel knows.");
const REHEARSED: (&str, &str) = ("†", "† goes by an earlier run of the same load.");

/// The label of a policy, with its mark.
pub(super) fn marked(label: &str, nature: Nature) -> String {
    match mark(nature) {
        Some((mark, _)) => format!("{label} {mark}"),
        None => label.to_string(),
    }
}

/// What the marks mean that these policies have.
pub(super) fn notes(natures: impl Iterator<Item = Nature> + Clone) -> Vec<&'static str> {
    let used = |known: &(&str, &str)| natures.clone().any(|nature| mark(nature) == Some(*known));
    [TOLD, REHEARSED].into_iter().filter(used).map(|(_, note)| note).collect()
}

fn mark(nature: Nature) -> Option<(&'static str, &'static str)> {
    match nature {
        Nature { clairvoyant: true, .. } => Some(TOLD),
        Nature { rehearsed: true, .. } => Some(REHEARSED),
        _ => None,
    }
}

/// What of results that are not complete there is.
pub(super) fn interrupted(results: &Results) -> String {
    let begun = results.rows.iter().filter(|row| row.runs.len() < results.seeds as usize);
    let told = begun.map(|row| {
        let (label, made) = (&results.policies[row.policy].label, row.runs.len());
        let of = match results.groups[row.group].title() {
            title if title.is_empty() => title,
            title => format!(" ({title})"),
        };
        format!("{label}{of} has {made} of {} seeds; ", results.seeds)
    });
    let told: String = told.collect();
    format!("Interrupted: {told}rows without any are left out, claims are about whole ones.")
}
