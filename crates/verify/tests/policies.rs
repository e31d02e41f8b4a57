//! All policies in a small scope. `cargo xtask verify` searches further.

use anysched_core::Machine;
use anysched_core::registry::PolicyInfo;
use anysched_policies::POLICIES;
use anysched_verify::{Demands, End, Limits, Property, Report, Scope, Subject, search};

fn searched(info: &PolicyInfo, settings: &[(&str, &str)], machine: &str, depth: u32) -> Report {
    searched_among(3, info, settings, machine, depth)
}

fn searched_among(
    tasks: u32,
    info: &PolicyInfo,
    settings: &[(&str, &str)],
    machine: &str,
    depth: u32,
) -> Report {
    let machine = Machine::parse(machine).unwrap();
    let nature = (info.nature)(settings).unwrap();
    let mut scope = Scope::new(machine.clone(), tasks);
    scope.tells_bursts = nature.clairvoyant;
    let build = || (info.build)(&machine, settings).unwrap();
    let subject = Subject { scope: &scope, build: &build, demands: Demands::from(nature) };
    let limits = Limits { depth, time: None, states: usize::MAX, threads: 2 };
    search(&subject, &Property::ALL, &limits, &mut |_, _| {})
}

fn assert_clean(info: &PolicyInfo, settings: &[(&str, &str)], machine: &str, depth: u32) {
    let report = searched(info, settings, machine, depth);
    let name = format!("{} {settings:?} on {machine}", info.name);
    assert!(report.findings.is_empty(), "{name}: {:#?}", report.findings);
    assert!(report.merges, "{name} does not say its state");
    assert_eq!((report.end, report.depth), (End::Depth, depth), "{name}");
}

#[test]
fn every_policy_holds_all_properties() {
    for info in POLICIES {
        assert_clean(info, &[], "1", 4);
        assert_clean(info, &[], "2", 4);
        assert_clean(info, &[], "2 nodes x 2 cores", 3);
    }
}

#[test]
fn layouts_hold_all_properties() {
    let settings = [
        [
            ("layout", "per-cpu"),
            ("place", "least-loaded"),
            ("steal", "machine"),
            ("balance", "never"),
        ],
        [("layout", "per-cpu"), ("place", "linux"), ("steal", "linux"), ("balance", "linux")],
        [("layout", "per-cpu"), ("place", "creator"), ("steal", "never"), ("balance", "linux")],
        [("layout", "per-llc"), ("place", "round-robin"), ("steal", "never"), ("balance", "linux")],
    ];
    let has_layouts =
        |info: &&PolicyInfo| (info.params)().iter().any(|param| param.name == "place");
    for info in POLICIES.iter().filter(has_layouts) {
        settings.iter().for_each(|settings| assert_clean(info, settings, "2 llcs x 1 cores", 3));
    }
}

/// The same search finds the same whatever the number of threads.
#[test]
fn threads_change_nothing() {
    let info = anysched_policies::policy("mlfq").unwrap();
    let machine = Machine::parse("2").unwrap();
    let scope = Scope::new(machine.clone(), 3);
    let build = || (info.build)(&machine, &[]).unwrap();
    let demands = Demands::from((info.nature)(&[]).unwrap());
    let subject = Subject { scope: &scope, build: &build, demands };
    let found = |threads| {
        let limits = Limits { depth: 5, time: None, states: usize::MAX, threads };
        let report = search(&subject, &Property::ALL, &limits, &mut |_, _| {});
        (report.states, report.transitions, report.longest)
    };
    assert_eq!(found(1), found(3));
}

/// What a policy declares is no more than twice of what happens, so that it says something. Where a
/// task has to come down from the top first, that takes a longer history of fewer tasks.
#[test]
fn declared_waits_are_met() {
    let mut declare = 0;
    for info in POLICIES {
        let Some(bound) = (info.nature)(&[]).unwrap().longest_wait else { continue };
        declare += 1;
        let near = |tasks: u32, machine: &str, depth: u32| {
            let report = searched_among(tasks, info, &[], machine, depth);
            assert!(report.findings.is_empty(), "{}: {:#?}", info.name, report.findings);
            let longest = report.longest.map_or(0, |(waited, _)| waited.time.0);
            println!(
                "{} {tasks} {machine} {depth}: {longest} of {}",
                info.name,
                bound.of(tasks.into()).0
            );
            2 * longest >= bound.of(tasks.into()).0
        };
        let met = near(3, "2", 6) || near(2, "1", 8) || near(2, "1", 10);
        assert!(met, "{} declares more than twice of what was found", info.name);
    }
    assert!(declare > 4, "only {declare} declare anything");
}
