//! The settings of a policy that are worth searching: its defaults, and each choice among words
//! made otherwise, one at a time.

use anysched_core::Machine;
use anysched_core::registry::{PolicyInfo, Settings};

/// Layouts, for policies that have them.
const LAYOUTS: [&[(&str, &str)]; 5] = [
    &[("layout", "global")],
    &[("layout", "per-cpu"), ("place", "least-loaded"), ("steal", "machine"), ("balance", "never")],
    &[("layout", "per-cpu"), ("place", "linux"), ("steal", "linux"), ("balance", "linux")],
    &[("layout", "per-cpu"), ("place", "creator"), ("steal", "never"), ("balance", "linux")],
    &[("layout", "per-llc"), ("place", "round-robin"), ("steal", "llc"), ("balance", "linux")],
];

/// The names of parameters that make up a layout.
const OF_LAYOUT: [&str; 4] = ["layout", "place", "steal", "balance"];

/// The defaults, which is no setting, and others with which the policy can be built for `machine`.
pub fn settings(info: &PolicyInfo, machine: &Machine) -> Vec<Settings> {
    let params = (info.params)();
    let mut all = vec![Settings::new()];
    let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
    if params.iter().any(|param| param.name == "place") {
        all.extend(LAYOUTS.iter().map(|layout| layout.iter().map(owned).collect()));
    }
    let choices = params.iter().filter(|param| !OF_LAYOUT.contains(&param.name));
    for param in choices.filter(|param| param.kind.contains(" | ")) {
        let others = param.kind.split(" | ").filter(|&word| word != param.default);
        all.extend(others.map(|word| vec![owned(&(param.name, word))]));
    }
    all.retain(|settings| {
        let settings: Vec<_> = settings.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        (info.build)(machine, &settings).is_ok()
    });
    all
}
