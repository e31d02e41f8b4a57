//! OSv's scheduler in the simulator: its golden values, where tasks start, and how they move.

use crate::support::{self, Events, MS, at, build, model, ms, run, task};
use anysched_core::{CpuId, CpuSet, Machine, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_sim::Sim;
use anysched_trace::Kind;
use anysched_workload::Op;
use anysched_workload::model::{Model, ModelTask};
use anysched_workload::rng::Rng;

fn hog(arrives: u64) -> ModelTask {
    task(arrives, vec![run(10_000)])
}

fn events(cpus: usize, until: u64, settings: &[(&str, &str)], load: Model) -> Events {
    let mut setup = Setup::new(Machine::flat(cpus).unwrap());
    setup.until = at(until);
    let osv = build(&setup.machine, "osv", settings);
    let sim = Sim::with_sink(setup, osv, load.into_load().unwrap(), Events::default());
    sim.run().unwrap().2
}

/// When another task took CPU 0, and which.
fn switches(events: &Events) -> Vec<(Time, u32)> {
    let mut switches: Vec<(Time, u32)> = Vec::new();
    for event in &events.0 {
        if let Kind::Switch { cpu: CpuId(0), next: Some(TaskId(next)), .. } = event.kind
            && switches.last().is_none_or(|last| last.1 != next)
        {
            switches.push((event.time, next));
        }
    }
    switches
}

/// Who ran on CPU 0 and for how long, but for the last.
fn slices(events: &Events) -> Vec<(u32, u64)> {
    let switches = switches(events);
    switches.windows(2).map(|pair| (pair[0].1, (pair[1].0 - pair[0].0).0)).collect()
}

/// Each may be one ns off: where the exact value is whole, either side is right.
fn assert_slices(found: &[(u32, u64)], expected: &[(u32, u64)]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.0 == expected.0 && found.1.abs_diff(expected.1) <= 1, "{found:?}");
    }
}

/// (when, task, from, to) of all moves.
fn moves(events: &Events) -> Vec<(u64, u32, u16, u16)> {
    let mut moves = Vec::new();
    for event in &events.0 {
        if let Kind::Migrate { task, from, to } = event.kind {
            moves.push((event.time.0 / MS, task.0, from.0, to.0));
        }
    }
    moves
}

#[test]
fn two_hogs() {
    let found = slices(&events(1, 60, &[], model(vec![hog(0), hog(0)])));
    let expected = [
        (0, 5_050_000),
        (1, 10_014_776),
        (0, 10_061_997),
        (1, 10_062_446),
        (0, 10_062_451),
        (1, 10_062_451),
    ];
    assert_slices(&found[..5], &expected[..5]);
}

#[test]
fn three_hogs() {
    let found = slices(&events(1, 3_000, &[], model(vec![hog(0), hog(0), hog(0)])));
    assert_slices(&found[..4], &[(0, 5_050_000), (1, 5_039_900), (2, 9_892_214), (0, 5_159_286)]);
    let last = &found[found.len() - 6..];
    assert!(last.iter().all(|(_, slice)| slice.abs_diff(7_510_000) < 15_000), "{last:?}");
}

#[test]
fn a_newcomer() {
    let found = slices(&events(1, 3_190, &[], model(vec![hog(0), hog(3_000)])));
    let expected = [
        (0, 3_000_000_000),
        (1, 145_055_599),
        (0, 11_337_767),
        (1, 10_074_578),
        (0, 10_062_567),
        (1, 10_062_452),
    ];
    assert_slices(&found, &expected);
}

#[test]
fn one_task_leaves_its_creators_cpu_every_100_ms() {
    let spawner = task(0, vec![Op::Spawn(1), Op::Spawn(2), Op::Spawn(3), run(10_000)]);
    let child = || ModelTask { arrives: None, ..hog(0) };
    let load = model(vec![spawner, child(), child(), child()]);
    let found = moves(&events(4, 600, &[], load.clone()));
    let first: Vec<_> = found.iter().filter(|&&(_, _, from, _)| from == 0).take(3).collect();
    let gone: Vec<(u64, u16)> = first.iter().map(|found| (found.0, found.3)).collect();
    // At 200 ms the task that is alone on CPU 1 moves too, to CPU 3, which is idle.
    assert_eq!(gone, [(100, 1), (200, 2), (300, 1)]);
    assert!(found.iter().any(|&(at, _, from, to)| (at, from, to) == (200, 1, 3)), "{found:?}");
    assert_eq!(moves(&events(4, 600, &[("lb_period", "0")], load.clone())), []);
    assert_eq!(moves(&events(4, 600, &[("start_place", "spread")], load)), []);
}

#[test]
fn more_than_one_may_leave_at_a_time() {
    let load = model((0..9).map(|_| hog(0)).collect());
    let count = |batch| {
        // Some only wait there at first; they are seen to have moved when they run.
        let found = moves(&events(3, 190, &[("lb_batch", batch)], load.clone()));
        assert!(found.iter().all(|found| found.0 >= 100));
        found.len()
    };
    assert_eq!([count("1"), count("3")], [1, 3]);
}

/// The idle thread and the balancer are counted: a CPU with a task has two, an idle one none.
#[test]
fn a_lone_task_moves_every_100_ms() {
    let found = moves(&events(3, 450, &[], model(vec![hog(0)])));
    assert_eq!(found, [(100, 0, 0, 1), (200, 0, 1, 0), (300, 0, 0, 1), (400, 0, 1, 0)]);
    let mut pinned = hog(0);
    pinned.new.affinity = CpuSet::of([CpuId(1)]);
    assert_eq!(moves(&events(3, 450, &[], model(vec![pinned]))), []);
}

/// Batches of 2,000 exponential tasks of this mean on 5 CPUs: mean waiting time, in means.
fn batch_waiting(mean: Span, start_place: &str) -> f64 {
    (0..8).map(|seed| one_batch_waiting(seed, mean, start_place)).sum::<f64>() / 8.0
}

fn one_batch_waiting(seed: u64, mean: Span, start_place: &str) -> f64 {
    let rng = &mut Rng::stream(seed, "osv batch");
    let tasks = (0..2_000).map(|_| {
        let length = -libm::log(1.0 - rng.unit()) * mean.0 as f64;
        task(0, vec![Op::Run(Span(length as u64 + 1))])
    });
    let load = model(tasks.collect());
    let setup = Setup::new(Machine::flat(5).unwrap());
    let (metrics, _) = support::play(setup, "osv", &[("start_place", start_place)], load);
    metrics.waiting_time.sum() as f64 / 2_000.0 / mean.0 as f64
}

/// How much longer a batch waits because all of it starts on one CPU and one task leaves that
/// every 100 ms; the factors are those of another simulator, written from the same rules.
#[test]
fn starting_with_the_creator_makes_short_batches_wait() {
    let spread = batch_waiting(ms(1), "spread");
    // Processor sharing of 400 tasks a CPU: each waits for half of the others' time.
    assert!((spread - 200.0).abs() < 8.0, "{spread}");
    for (mean, expected) in [(1, 998.0 / 201.0), (10, 918.0 / 201.0), (100, 498.0 / 201.0)] {
        let factor = batch_waiting(ms(mean), "creator") / spread;
        assert!((factor / expected - 1.0).abs() < 0.02, "{mean} ms: {factor}, not {expected}");
    }
}
