//! Xen Credit2 in the simulator: shares by weight, caps, wake-ups, and moves between runqueues.

use crate::support::{self, Events, at, build, model, run, task};
use anysched_core::{
    CpuId, CpuMask, CpuSet, Cx, DomainId, DomainParams, Machine, Scheduler, Span, Time,
};
use anysched_host::Setup;
use anysched_sim::Sim;
use anysched_trace::Kind;
use anysched_workload::Op;
use anysched_workload::model::{Model, ModelTask, Script};
use std::sync::Arc;

fn hog(domain: u16) -> ModelTask {
    let mut task = task(0, vec![run(100_000)]);
    task.new.domain = DomainId(domain);
    task
}

/// (weight, cap in percent) of each domain.
type Domains<'a> = &'a [(u32, u32)];

fn credit2(
    machine: &Machine,
    settings: &[(&str, &str)],
    domains: Domains<'_>,
) -> Box<dyn Scheduler> {
    let mut credit2 = build(machine, "credit2", settings);
    let mut kicks = CpuMask::EMPTY;
    for (domain, &(weight, cap_percent)) in (0..).zip(domains) {
        let params = DomainParams { weight, cap_percent };
        credit2.set_domain(&mut Cx::new(Time::ZERO, &mut kicks), DomainId(domain), &params);
    }
    credit2
}

fn events(
    machine: &str,
    until: u64,
    settings: &[(&str, &str)],
    domains: Domains<'_>,
    load: Model,
) -> Events {
    let mut setup = Setup::new(Machine::parse(machine).unwrap());
    setup.until = at(until);
    let credit2 = credit2(&setup.machine, settings, domains);
    let sim = Sim::with_sink(setup, credit2, load.into_load().unwrap(), Events::default());
    sim.run().unwrap().2
}

/// CPU time of each task by `until`, in us.
fn used(events: &Events, until: u64, tasks: usize) -> Vec<u64> {
    let mut used = vec![0; tasks];
    let mut running: Vec<Option<(usize, Time)>> = vec![None; 64];
    let mut stop = |run: Option<(usize, Time)>, now: Time| {
        if let Some((task, since)) = run {
            used[task] += (now - since).0 / 1_000;
        }
    };
    for event in &events.0 {
        if let Kind::Switch { cpu, next, .. } = event.kind {
            let on = &mut running[cpu.index()];
            stop(on.take(), event.time);
            *on = next.map(|next| (next.index(), event.time));
        }
    }
    running.into_iter().for_each(|run| stop(run, at(until)));
    used
}

fn assert_within_percent(found: u64, expected: u64, percent: u64) {
    let off = found.abs_diff(expected) * 100;
    assert!(off <= expected * percent, "{found} instead of {expected}");
}

/// The time of each domain when each has this many hogs.
fn domain_times(cpus: &str, domains: Domains<'_>, each: usize) -> Vec<u64> {
    let tasks = (0..each * domains.len()).map(|n| hog((n % domains.len()) as u16));
    let load = model(tasks.collect());
    let found = used(&events(cpus, 1_000, &[], domains, load), 1_000, each * domains.len());
    let mut times = vec![0; domains.len()];
    found.iter().enumerate().for_each(|(n, used)| times[n % domains.len()] += used);
    times
}

#[test]
fn time_is_shared_by_weight() {
    for (cpus, each, total) in [("1", 1, 1), ("1", 3, 1), ("4", 4, 4), ("4", 6, 4)] {
        let times = domain_times(cpus, &[(256, 0), (512, 0)], each);
        assert_within_percent(times[0], total * 1_000_000 / 3, 1);
        assert_within_percent(times[1], total * 2_000_000 / 3, 1);
    }
}

#[test]
fn what_a_heavy_domain_cannot_use_goes_to_others() {
    let times = domain_times("2", &[(65_535, 0), (1, 0)], 1);
    assert_eq!(times, [1_000_000, 1_000_000]);
}

#[test]
fn caps_hold_even_on_an_idle_machine() {
    for cap in [5, 10, 40, 75] {
        assert_within_percent(domain_times("1", &[(256, cap)], 1)[0], u64::from(cap) * 10_000, 1);
    }
    // 150 % for three vCPUs on four CPUs; 25 % for three that share a CPU with another domain.
    assert_within_percent(domain_times("4", &[(256, 150)], 3)[0], 1_500_000, 1);
    let times = domain_times("1", &[(256, 25), (256, 0)], 3);
    assert_within_percent(times[0], 250_000, 1);
    assert_within_percent(times[1], 750_000, 1);
}

/// All wait for the budget, so that nothing happens but the policy's timer.
#[test]
fn a_run_goes_on_while_all_are_parked() {
    let setup = Setup::new(Machine::flat(1).unwrap());
    let credit2 = credit2(&setup.machine, &[], &[(256, 10)]);
    let load = model(vec![task(0, vec![run(20)])]).into_load().unwrap();
    let (metrics, ..) = Sim::new(setup, credit2, load).run().unwrap();
    // 1 ms in each of 20 periods of 10 ms.
    assert_eq!(metrics.last_completion, at(191));
}

/// A sleeper finds the hog with less credit and takes its CPU, unless that has run for less than
/// 1 ms; then within the 500 us that the hog is given more.
#[test]
fn sleepers_preempt_hogs() {
    let mut sleeper = hog(0);
    let script = vec![Op::Run(Span::from_us(100)), Op::Sleep(Span::from_us(4_900))];
    sleeper.script = Arc::new(Script { ops: script, rounds: u64::MAX, ..Script::default() });
    let mut setup = Setup::new(Machine::flat(1).unwrap());
    setup.until = at(1_000);
    let load = model(vec![hog(0), sleeper]);
    let (metrics, _) = support::play(setup, "credit2", &[], load);
    assert!(metrics.wakeup_latency.count() > 190);
    assert_eq!(metrics.wakeup_latency.max(), Some(0));
}

/// Two packages with two hogs each. The hogs of one end at 2 s as `last` says; when others move.
fn moves_after_2_s(last: Op, settings: &[(&str, &str)]) -> Vec<u64> {
    let mut tasks = vec![hog(0), hog(0), hog(0), hog(0)];
    for (task, cpu) in tasks.iter_mut().zip([0, 0, 1, 1]) {
        task.new.affinity = CpuSet::of([CpuId(cpu)]);
    }
    for task in &mut tasks[..2] {
        let ops = vec![Op::SetAffinity(CpuSet::All), run(100_000)];
        task.script = Arc::new(Script::once(ops));
    }
    for task in &mut tasks[2..] {
        task.script = Arc::new(Script::once(vec![run(1_000), last.clone()]));
    }
    let found = events("2 packages x 1 core", 6_000, settings, &[], model(tasks));
    let moves = found.0.iter().filter(|event| matches!(event.kind, Kind::Migrate { .. }));
    moves.map(|event| event.time.0 / support::MS).filter(|&at| at >= 2_000).collect()
}

/// The load of a vCPU that exits is gone at once, so that the next reset, which two hogs have
/// every 20 ms, moves one of the others.
#[test]
fn loads_even_out_between_runqueues() {
    let moves = moves_after_2_s(Op::Exit, &[]);
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert!((2_000..2_021).contains(&moves[0]), "{moves:?}");
    let never = [("balance_under", "20"), ("balance_over", "20")];
    assert!(moves_after_2_s(Op::Exit, &never).is_empty());
}

/// The load of vCPUs that sleep decays over a window of 1.07 s. When it is below half of what it
/// was, after 1.07 ln 2 = 0.74 s, the loads are nearer to each other with a hog moved.
#[test]
fn loads_of_sleepers_decay() {
    let moves = moves_after_2_s(Op::Sleep(Span::from_s(100)), &[]);
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert!((2_735..2_765).contains(&moves[0]), "{moves:?}");
}
