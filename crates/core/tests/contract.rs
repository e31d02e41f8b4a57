//! Every registered policy keeps the contract, in every layout, under a random host.

mod host;

use anysched_core::checked::{OnViolation, Rules};
use anysched_core::recorder::LogReader;
use anysched_core::registry::{POLICIES, PolicyInfo};
use anysched_core::{Checked, Machine, Recorder, Scheduler, Span};
use host::{Host, Load};

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

/// Settings under which no CPU may idle beside a ready task, and settings under which it may.
fn settings(policy: &PolicyInfo) -> Vec<(Vec<(&'static str, &'static str)>, bool)> {
    let nature = (policy.nature)(&[]).unwrap();
    let mut all = vec![(vec![], nature.work_conserving)];
    let params = (policy.params)();
    let Some(layout) = params.iter().find(|param| param.name == "layout") else { return all };
    for layout in layout.kind.split(" | ") {
        for place in ["creator", "round-robin", "least-loaded", "linux"] {
            let steals = vec![("layout", layout), ("place", place), ("steal", "machine")];
            let balances = [steals.clone(), vec![("balance", "linux")]].concat();
            let alone = vec![("layout", layout), ("place", place), ("steal", "never")];
            all.extend([(steals, true), (balances, true), (alone, layout == "global")]);
        }
    }
    all
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
        work_conserving: work_conserving || machine.cpus() == 1,
        max_wait: Some(FOR_EVER),
        on_violation: OnViolation::Collect,
        ..Rules::default()
    };
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
        for (settings, work_conserving) in settings(policy) {
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
