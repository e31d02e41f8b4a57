//! Every registered policy keeps the contract, in every layout, under a random host.

use anysched_core::checked::{OnViolation, Rules};
use anysched_core::params::ParamInfo;
use anysched_core::recorder::LogReader;
use anysched_core::registry::PolicyInfo;
use anysched_core::{Checked, Machine, Recorder, Scheduler, Span};
use anysched_oracle::random::{Host, Load};
use anysched_oracle::rehearsal::{rehearsed, text};
use anysched_policies::POLICIES;

/// Longer than any run, so only a task that never runs waits for so long.
const FOR_EVER: Span = Span::from_s(600);

const LOADS: [Load; 2] = [
    // A few tasks more than CPUs, everything happens.
    Load {
        tasks: 14,
        burst: Span::from_us(300),
        pause: Span::from_us(700),
        pinned: true,
        hotplug: true,
    },
    // Long bursts, so that slices end, and CPUs that often have nothing to do.
    Load {
        tasks: 9,
        burst: Span::from_ms(30),
        pause: Span::from_ms(20),
        pinned: false,
        hotplug: false,
    },
];

/// Settings that `machine` has the CPUs for: every two of a policy's own choices, and every layout
/// with each placement. With each, whether no CPU may idle beside a ready task.
fn settings(
    policy: &PolicyInfo,
    machine: &Machine,
) -> Vec<(Vec<(&'static str, &'static str)>, bool)> {
    let params = (policy.params)();
    let layouts = params.iter().any(|param| param.name == "place");
    let of_layouts = ["layout", "place", "steal", "balance"];
    let own = params.iter().filter(|param| !layouts || !of_layouts.contains(&param.name));
    let words = |param: &ParamInfo| {
        let (name, default) = (param.name, param.default.clone());
        let words = param.kind.split(" | ").filter(move |&word| word != default);
        words.map(move |word| (name, word)).filter(|_| param.kind.contains(" | ")).collect()
    };
    let own: Vec<Vec<(&str, &str)>> = own.map(words).collect();
    let mut all = vec![vec![]];
    for (nth, one) in own.iter().enumerate() {
        for &one in one {
            all.push(vec![one]);
            all.extend(own[nth + 1..].iter().flatten().map(|&other| vec![one, other]));
        }
    }
    for layout in ["global", "per-cpu", "per-llc", "per-node"].into_iter().filter(|_| layouts) {
        for place in ["creator", "round-robin", "least-loaded", "linux"] {
            let steals = vec![("layout", layout), ("place", place), ("steal", "machine")];
            let balances = [steals.clone(), vec![("balance", "linux")]].concat();
            let alone = vec![("layout", layout), ("place", place), ("steal", "never")];
            all.extend([steals, balances, alone]);
        }
    }
    all.retain(|settings| (policy.build)(machine, settings).is_ok());
    all.into_iter()
        .map(|settings| {
            let work_conserving = (policy.nature)(&settings).unwrap().work_conserving;
            (settings, work_conserving)
        })
        .collect()
}

/// Plays `policy` and returns the first violation in words, with the calls that led to it.
fn play(
    policy: &PolicyInfo,
    machine: &Machine,
    settings: &[(&str, &str)],
    work_conserving: bool,
    load: Load,
    seed: u64,
) -> Option<String> {
    let rules = Rules {
        work_conserving,
        max_wait: Some(FOR_EVER),
        on_violation: OnViolation::Collect,
        ..Rules::default()
    };
    let settings = &rehearsed(policy, settings, machine, load, seed);
    let settings = &text(settings);
    let built = (policy.build)(machine, settings).unwrap();
    let recorded = Recorder::new(built, machine, policy.name, settings, Vec::new());
    let mut host = Host::new(Checked::new(recorded, machine, rules), machine, load, seed);
    while host.picks < 500 {
        host.step();
        if !host.policy.violations().is_empty() {
            return Some(tell(host.policy));
        }
    }
    let ready = host.drain();
    host.policy.check_waits(host.now + FOR_EVER + FOR_EVER);
    if !host.policy.violations().is_empty() {
        return Some(tell(host.policy));
    }
    (ready > 0).then(|| format!("{ready} tasks are still ready in the end"))
}

/// The first violation and the last calls before it.
fn tell(mut checked: Checked<Recorder<Box<dyn Scheduler>, Vec<u8>>>) -> String {
    let first = checked.take_violations()[0];
    let (_, log) = checked.into_policy().into_parts();
    let mut text = first.to_string();
    for record in LogReader::new(&log).unwrap().map(Result::unwrap) {
        if (record.number..record.number + 10).contains(&first.call) {
            text += &format!("\n    {record}");
        }
    }
    text
}

fn play_all(topology: &str) {
    let machine = Machine::parse(topology).unwrap();
    let mut found = Vec::new();
    for policy in POLICIES {
        for (settings, work_conserving) in settings(policy, &machine) {
            for (load, seed) in LOADS.into_iter().zip(1..) {
                let first = play(policy, &machine, &settings, work_conserving, load, seed);
                if let Some(first) = first {
                    found.push(format!("{} {settings:?}, load {seed}: {first}", policy.name));
                }
            }
        }
    }
    assert!(found.is_empty(), "{topology}:\n{}", found.join("\n"));
}

#[test]
fn every_policy_keeps_the_contract_on_one_cpu() {
    play_all("1 cpu");
}

#[test]
fn every_policy_keeps_the_contract_behind_one_cache() {
    play_all("4 cpus");
}

#[test]
fn every_policy_keeps_the_contract_on_two_nodes() {
    play_all("2 nodes x 2 llcs x 1 core x 2 threads");
}

#[test]
fn every_policy_keeps_the_contract_where_cpus_have_roles() {
    play_all("3 cpus");
    play_all("5 cpus");
}
