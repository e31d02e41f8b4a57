//! Tests of the tester: glue with a planted flaw is found out, and glue without one is not.

use std::time::Duration;

use anysched_core::checked::{OnViolation, Rules};
use anysched_core::registry::PolicyInfo;
use anysched_core::{Checked, Machine};
use anysched_policies::POLICIES;

use super::{ArceOs, Glue, Kernel, Linux, Xen};
use crate::property::{Demands, Property};
use crate::search::{End, Limits, Report, search};
use crate::subject::Held;

/// What can be wrong with the glue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// It is not told when registers are saved.
    ForgetsSaved,
    /// It takes vCPUs whose registers another pCPU has, or tasks on whose stack another CPU is.
    TakesSaving,
    /// It does not pass on which CPUs are kicked.
    LosesKicks,
}

/// Searches 2 tasks on 2 CPUs.
fn searched<K: Kernel>(
    info: &PolicyInfo,
    depth: u32,
    kernel: impl Fn(Held, &Machine) -> K + Sync,
) -> Report<String> {
    searched_on(2, info, depth, kernel)
}

/// Searches 2 tasks on so many CPUs.
fn searched_on<K: Kernel>(
    cpus: usize,
    info: &PolicyInfo,
    depth: u32,
    kernel: impl Fn(Held, &Machine) -> K + Sync,
) -> Report<String> {
    let machine = Machine::flat(cpus).unwrap();
    let nature = (info.nature)(&[]).unwrap();
    let build = || {
        let rules = Rules {
            work_conserving: nature.work_conserving,
            on_violation: OnViolation::Collect,
            ..Rules::default()
        };
        let policy = (info.build)(&machine, &[]).unwrap();
        kernel(Checked::new(policy, &machine, rules), &machine)
    };
    let demands = Demands::from(nature);
    let glue = Glue { build: &build, demands, machine: &machine };
    let limits = Limits { depth, time: Some(Duration::MAX), states: 1 << 22, threads: 2 };
    search(&glue, &Property::ALL, &limits, &mut |_, _| ()).in_words()
}

fn in_xen(flaw: Flaw) -> impl Fn(Held, &Machine) -> Xen + Sync {
    move |policy, machine| {
        let mut xen = Xen::new(policy, machine, 2, true);
        xen.flaw = flaw;
        xen
    }
}

fn in_linux(flaw: Flaw) -> impl Fn(Held, &Machine) -> Linux + Sync {
    move |policy, machine| {
        let mut linux = Linux::new(policy, machine, 2, true);
        linux.flaw = flaw;
        linux
    }
}

fn in_arceos(flaw: Flaw) -> impl Fn(Held, &Machine) -> ArceOs + Sync {
    move |policy, machine| {
        let mut arceos = ArceOs::new(policy, machine, 2);
        arceos.flaw = flaw;
        arceos
    }
}

fn rr() -> &'static PolicyInfo {
    anysched_policies::policy("rr").unwrap()
}

fn require(report: &Report<String>, what: &str) {
    let found = report.findings.iter().any(|finding| finding.what.contains(what));
    assert!(found, "{report:?}");
}

fn holds_behind<K: Kernel>(cpus: usize, kernel: impl Fn(Held, &Machine) -> K + Sync + Copy) {
    let mut wrong = Vec::new();
    for info in POLICIES {
        let report = searched_on(cpus, info, 5, kernel);
        assert_eq!(report.end, End::Depth, "{}", info.name);
        let findings = report.findings.iter();
        wrong.extend(findings.map(|finding| format!("{}: {finding:?}", info.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_policy_holds_behind_the_glue_of_xen() {
    holds_behind(2, |policy, machine| in_xen(Flaw::None)(policy, machine));
}

#[test]
fn every_policy_holds_behind_the_glue_of_arceos() {
    // There is one adapter for one CPU and one for several.
    for cpus in [1, 2] {
        holds_behind(cpus, |policy, machine| in_arceos(Flaw::None)(policy, machine));
    }
}

#[test]
fn every_policy_holds_behind_the_glue_of_linux() {
    holds_behind(2, |policy, machine| in_linux(Flaw::None)(policy, machine));
}

#[test]
fn glue_that_is_not_told_of_saved_registers_loses_a_vcpu() {
    require(&searched(rr(), 7, in_xen(Flaw::ForgetsSaved)), "stays ready");
}

#[test]
fn glue_that_takes_what_is_being_saved_runs_it_twice() {
    require(&searched(rr(), 9, in_xen(Flaw::TakesSaving)), "on two pCPUs");
}

#[test]
fn glue_that_loses_kicks_loses_a_task() {
    require(&searched(rr(), 7, in_linux(Flaw::LosesKicks)), "stays ready");
}

#[test]
fn glue_that_takes_what_a_cpu_is_leaving_runs_it_twice() {
    require(&searched(rr(), 9, in_arceos(Flaw::TakesSaving)), "is on two CPUs");
}

#[test]
fn glue_of_one_cpu_that_loses_kicks_has_a_task_wait() {
    // Until an interrupt comes that nobody asked for.
    require(&searched_on(1, rr(), 7, in_arceos(Flaw::LosesKicks)), "waits longer");
}
