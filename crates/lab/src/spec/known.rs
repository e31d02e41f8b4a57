//! The policies that experiments may name: those of the list, and those that a program has besides.

use anysched_core::registry::PolicyInfo;
use anysched_policies::policy;
use std::sync::OnceLock;

static ADDED: OnceLock<&'static [PolicyInfo]> = OnceLock::new();

/// Lets experiments of this process name these policies too, whose names are none of the list's.
/// Only the first call counts, which comes before an experiment is read.
pub fn add_policies(added: &'static [PolicyInfo]) {
    let _ = ADDED.set(added);
}

/// The policy of this name.
pub(crate) fn known(name: &str) -> Option<&'static PolicyInfo> {
    let added = || ADDED.get()?.iter().find(|policy| policy.name == name);
    policy(name).or_else(added)
}
