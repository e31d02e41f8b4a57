//! Xen's Credit in the simulator: shares over time, caps, latency of those that sleep, and what the
//! improved one changes.

use crate::support::{Events, MS, at, build, model, ms, run, task};
use anysched_core::checked::{Checked, Rules};
use anysched_core::params::DomainParams;
use anysched_core::{CpuId, CpuMask, CpuSet, Cx, DomainId, Machine, Scheduler, Span, Time};
use anysched_host::Setup;
use anysched_sim::Sim;
use anysched_trace::Kind;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Channel, Op};
use std::sync::Arc;

/// A vCPU of `domain` that computes for ever.
fn hog(domain: u16) -> ModelTask {
    of_domain(domain, task(0, vec![run(1_000_000)]))
}

fn of_domain(domain: u16, mut task: ModelTask) -> ModelTask {
    task.new.domain = DomainId(domain);
    task
}

/// A vCPU that sleeps and computes in turn, from some time on.
fn sleeper(domain: u16, from_us: u64, sleep: Span, compute: Span) -> ModelTask {
    let ops = vec![Op::Sleep(sleep), Op::Run(compute)];
    let script = Script { ops, rounds: 1_000_000, ..Script::default() };
    let arrives = Some(Time(from_us * 1_000));
    of_domain(domain, ModelTask { arrives, script: Arc::new(script), ..ModelTask::default() })
}

/// A domain's number, weight and cap.
type Of = (u16, u32, u32);

fn credit(machine: &Machine, settings: &[(&str, &str)], domains: &[Of]) -> Box<dyn Scheduler> {
    let mut credit = build(machine, "credit", settings);
    let mut kicks = CpuMask::EMPTY;
    for &(domain, weight, cap_percent) in domains {
        let params = DomainParams { weight, cap_percent };
        credit.set_domain(&mut Cx::new(Time::ZERO, &mut kicks), DomainId(domain), &params);
    }
    credit
}

/// What happens under `credit` until `until` ms. The contract is checked.
fn events(
    machine: &str,
    settings: &[(&str, &str)],
    domains: &[Of],
    load: Model,
    until: u64,
) -> Events {
    let mut setup = Setup::new(Machine::parse(machine).unwrap());
    setup.until = at(until);
    let rules = Rules { work_conserving: false, ..Rules::default() };
    let credit = Checked::new(credit(&setup.machine, settings, domains), &setup.machine, rules);
    let load = load.into_load().unwrap();
    Sim::with_sink(setup, credit, load, Events::default()).run().unwrap().2
}

/// The CPU time of each task between two instants, in ns, when nothing is ever spent on overhead.
fn used(events: &Events, tasks: usize, from: u64, until: u64) -> Vec<u64> {
    let (from, until) = (at(from), at(until));
    let mut used = vec![0; tasks];
    let mut runs: Vec<Option<(usize, Time)>> = vec![None; 16];
    let mut count = |run: Option<(usize, Time)>, end: Time| {
        if let Some((task, since)) = run {
            used[task] += end.min(until).since(since.max(from)).0;
        }
    };
    for event in &events.0 {
        if let Kind::Switch { cpu, next, .. } = event.kind {
            let next = next.map(|task| (task.index(), event.time));
            count(std::mem::replace(&mut runs[cpu.index()], next), event.time);
        }
    }
    runs.into_iter().for_each(|run| count(run, until));
    used
}

fn assert_shares(used: &[u64], expected_ms: &[u64]) {
    for (used, expected) in used.iter().zip(expected_ms) {
        let expected = expected * MS;
        assert!(used.abs_diff(expected) <= expected / 100, "{used:?}, not {expected_ms:?} ms");
    }
}

#[test]
fn domains_share_by_weight() {
    let load = model(vec![hog(0), hog(1)]);
    let events = events("1", &[], &[(0, 256, 0), (1, 512, 0)], load, 30_000);
    assert_shares(&used(&events, 2, 0, 30_000), &[10_000, 20_000]);
    // From 150 ms on every 90 ms are 30 to 60, whenever one begins to look.
    for from in [150, 163, 1_111] {
        assert_eq!(used(&events, 2, from, from + 360), [120 * MS, 240 * MS]);
    }
}

/// What a weight is worth does not depend on how many vCPUs share it: it counts for each.
#[test]
fn weights_count_per_vcpu() {
    let load = model(vec![hog(0), hog(0), hog(1)]);
    let found = events("1", &[], &[(0, 256, 0), (1, 1024, 0)], load, 60_000);
    // 2 · 256 to 1024.
    assert_shares(&used(&found, 3, 0, 60_000), &[10_000, 10_000, 40_000]);
}

/// A parked vCPU with nothing else to happen: the accounting alone ends that.
#[test]
fn a_capped_vcpu_alone_comes_to_its_end() {
    let mut setup = Setup::new(Machine::flat(1).unwrap());
    setup.until = at(10_000);
    let credit = credit(&setup.machine, &[], &[(0, 256, 40)]);
    let load = model(vec![task(0, vec![run(180)])]).into_load().unwrap();
    let (metrics, ..) = Sim::new(setup, credit, load).run().unwrap();
    // 60 ms, parked for 90 ms, and so on.
    assert_eq!(metrics.completed, 1);
    assert_eq!(metrics.last_completion, at(360));
}

/// How long `task` waited each time it woke, in ns.
fn latencies(events: &Events, of: u32) -> Vec<u64> {
    let mut woken = None;
    let mut latencies = Vec::new();
    for event in &events.0 {
        match event.kind {
            Kind::Wake { task, .. } if task.0 == of => woken = Some(event.time),
            Kind::Switch { next: Some(task), .. } if task.0 == of => {
                latencies.extend(woken.take().map(|woken| (event.time - woken).0));
            }
            _ => {}
        }
    }
    latencies
}

#[test]
fn a_sleeper_does_not_wait_for_those_that_compute() {
    let light = || sleeper(9, 0, ms(7), Span::from_us(100));
    let load = model((0..8).map(hog).chain([light()]).collect());
    let found = latencies(&events("1", &[], &[], load, 20_000), 8);
    // At most the ratelimit of whoever has just begun.
    assert!(found.len() > 2_500, "{}", found.len());
    assert!(found.iter().all(|&latency| latency <= MS), "{:?}", found.iter().max());
    let load = model((0..8).map(hog).chain([light()]).collect());
    let found = latencies(&events("1", &[("ratelimit", "0")], &[], load, 20_000), 8);
    assert!(found.iter().all(|&latency| latency == 0), "{:?}", found.iter().max());
}

/// Switched off, the improvements change nothing, whatever their settings; on, they do.
#[test]
fn what_is_switched_off_is_not_there() {
    let load = || {
        let hogs = (0..6).map(hog);
        let light = (6..26).map(|n| {
            let sleep = Span::from_us(3_000 + 100 * u64::from(n % 3));
            sleeper(n, 0, sleep, Span::from_us(400))
        });
        model(hogs.chain(light).collect())
    };
    let play = |settings: &[(&str, &str)]| {
        let events = events("2 cores x 2 threads", settings, &[(3, 128, 35)], load(), 500);
        format!("{:?}", events.0)
    };
    let plain = play(&[]);
    let settings = [
        ("avg_length", "2"),
        ("boost_phase", "3ms"),
        ("long_slice", "7ms"),
        ("short_slice", "5ms"),
        ("qlen_includes_selected", "false"),
    ];
    assert!(plain == play(&settings));
    assert!(plain != play(&[("boost_balance", "true")]));
    assert!(plain != play(&[("dyn_slice", "true")]));
}

/// Many that wake at once, all at home on one PCPU: that spreads them, none waits for all.
#[test]
fn the_boosted_are_spread() {
    let latency = |settings: &[(&str, &str)]| {
        let pinger = |n: u16| {
            let home = CpuSet::of([CpuId(0)]);
            let mut ops = vec![Op::SetAffinity(home), Op::Sleep(ms(1))];
            ops.extend([Op::SetAffinity(CpuSet::All), Op::Wait(Channel(n.into())), run(1)]);
            let script = Script { ops, repeat_from: 3, rounds: 1_000_000, ..Script::default() };
            of_domain(n, ModelTask { script: Arc::new(script), ..task(0, vec![]) })
        };
        let mut load = model((0..12).map(pinger).chain((12..20).map(hog)).collect());
        load.sizes.channels = 12;
        for round in 1..20 {
            let start = at(100 * round + 5).0;
            load.signals.extend((0..12).map(|n| {
                let time = Time(start + 10_000 * u64::from(n));
                (time, Channel(n))
            }));
        }
        let found = events("4", settings, &[], load, 2_000);
        let all: Vec<u64> = (0..12).flat_map(|task| latencies(&found, task)).collect();
        assert_eq!(all.len(), 12 * 20);
        all.iter().sum::<u64>() / all.len() as u64
    };
    // One after the other, the n-th waits n ms less the 10 us that it wakes later: 5.4 ms in the
    // mean. On four PCPUs 0 to 2 ms: about 1 ms.
    let (plain, improved) = (latency(&[]), latency(&[("boost_balance", "true")]));
    assert!((5_000_000..5_500_000).contains(&plain), "{plain}");
    assert!((850_000..1_000_000).contains(&improved), "{improved}");
}
