//! Tests of the tester: a policy with a planted bug of each kind is found out, and the same policy
//! without one is not.

use anysched_core::{Machine, Scheduler, Span};
use anysched_oracle::planted::{Bug, QUANTUM, Simple};
use anysched_verify::{Demands, End, Histories, Limits, Property, Report, Scope, Subject, search};

const BUGS: [(Bug, Property); 16] = [
    (Bug::TrustsOneKick, Property::Contract),
    (Bug::KicksTheLowest, Property::Contract),
    (Bug::ForgetsKickOfPut, Property::Contract),
    (Bug::ForgetsKickOfUpdate, Property::Contract),
    (Bug::ForgetsKickOfOnline, Property::Contract),
    (Bug::LosesResumed, Property::Contract),
    (Bug::LastFirst, Property::Wait),
    (Bug::ExitTakesTwo, Property::Contract),
    (Bug::ZeroSlice, Property::Contract),
    (Bug::RunsTwice, Property::Contract),
    (Bug::IgnoresBinding, Property::Contract),
    (Bug::TimerInThePast, Property::Drain),
    (Bug::KicksTooFar, Property::Contract),
    (Bug::YieldsOtherwise, Property::Yield),
    (Bug::Panics, Property::Contract),
    (Bug::SaysTooLittle, Property::Merge),
];

fn searched(bug: Bug, depth: u32) -> Report {
    let machine = Machine::flat(2).unwrap();
    let scope = Scope::new(machine.clone(), 3);
    let build = || -> Box<dyn Scheduler> { Box::new(Simple::new(bug, &machine)) };
    let bound = anysched_core::registry::Bound { fixed: Span::ZERO, per_rival: QUANTUM };
    let demands = Demands { work_conserving: true, starves: false, longest_wait: Some(bound) };
    let subject = Subject { scope: &scope, build: &build, demands };
    let limits = Limits { depth, time: None, states: usize::MAX, threads: 2 };
    search(&subject, &Property::ALL, &limits, &mut |_, _| {})
}

#[test]
fn without_a_bug_all_holds() {
    let report = searched(Bug::None, 6);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!((report.end, report.depth, report.merges), (End::Depth, 6, true));
    let (waited, _) = report.longest.unwrap();
    assert_eq!(waited.time, Span(2 * QUANTUM.0), "two others before it, on one CPU");
}

#[test]
fn every_planted_bug_is_found() {
    for (bug, property) in BUGS {
        let report = searched(bug, 6);
        let found = report.findings.iter().find(|finding| finding.property == property);
        let Some(found) = found else { panic!("{bug:?}: not found: {:#?}", report.findings) };
        let events: Vec<String> = found.history.iter().map(ToString::to_string).collect();
        println!(
            "{bug:?} after {} events: {}\n    {}",
            events.len(),
            found.what,
            events.join("; ")
        );
    }
}

/// A finding says all that a test needs.
#[test]
fn a_finding_can_be_checked_again() {
    let machine = Machine::flat(2).unwrap();
    let scope = Scope::new(machine.clone(), 3);
    for (bug, mended) in [(Bug::LastFirst, false), (Bug::None, true)] {
        let build = || -> Box<dyn Scheduler> { Box::new(Simple::new(bug, &machine)) };
        let demands = Demands { work_conserving: true, starves: false, longest_wait: None };
        let subject = Subject { scope: &scope, build: &build, demands };
        let report = searched(Bug::LastFirst, 6);
        let finding = report.findings.iter().find(|f| f.property == Property::Wait).unwrap();
        let again = subject.check(Property::Wait, &finding.history);
        assert_eq!(again.is_ok(), mended, "{again:?}");
    }
}
