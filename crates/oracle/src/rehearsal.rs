//! What policies learn in a first run under the random host.

use crate::random::{Host, Load};
use anysched_core::Machine;
use anysched_core::registry::{PolicyInfo, Settings, changed, learned};

/// `settings`, and what a rehearsal teaches the policy if it needs one.
pub fn rehearsed(
    policy: &PolicyInfo,
    settings: &[(&str, &str)],
    machine: &Machine,
    load: Load,
    seed: u64,
) -> Settings {
    let Some(first) = (policy.rehearsal)(settings).unwrap() else { return changed(settings, &[]) };
    let first = (policy.build)(machine, &text(&first)).unwrap();
    let mut host = Host::new(first, machine, load, seed);
    while host.picks < 500 {
        host.step();
    }
    changed(settings, &text(&learned(&*host.policy)))
}

/// Settings in the form from which policies are built.
pub fn text(settings: &Settings) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}
