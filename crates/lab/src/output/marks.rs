//! How policies are marked that know more than a kernel does when a load first comes.

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
