//! Where `gfs` with one group of all CPUs decides as `bfs` does, and where it does not.
//!
//! Without sticky tasks in `bfs`, and if picks cost the same however many tasks wait:
//!
//! - With `wake = tree` and `victim = latest` they are the same on cores without siblings behind
//!   one cache, for all loads in which tasks come from outside or are created while a CPU is idle
//!   that may run them: then `bfs` does not make the creator's CPU pick.
//! - With its defaults, `gfs` is the same there for tasks that never block.
//! - With its defaults, it is the same on one CPU if nothing costs time, no two tasks become ready
//!   at the same instant, and no nice value changes. Then what wakes for the list is picked before
//!   anything else wakes, and it was due before the running task, which was due before all that
//!   wait. With two at once, one stays in the list and is preferred to what becomes ready later
//!   and is due before it. A better nice value, once the slice is used up, makes the deadline of
//!   what runs earlier as it is preempted for the list.

use crate::support::random::{affinity, costs, sometimes, span};
use crate::support::{Events, at, build, model, random, run, task};
use anysched_core::{CpuId, Machine, Span, TaskId, Time};
use anysched_host::{Costs, Setup};
use anysched_sim::Sim;
use anysched_trace::Kind;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::rng::Rng;
use anysched_workload::{Channel, Lock, Op};
use std::sync::Arc;

type Settings = &'static [(&'static str, &'static str)];
type Switches = Vec<(Time, CpuId, Option<TaskId>)>;

const BFS: Settings = &[("sticky", "false")];
const SINGLE: Settings = &[("grouping", "single")];
const TREE: Settings = &[("grouping", "single"), ("wake", "tree"), ("victim", "latest")];

const CASES: u64 = 500;

fn switches(setup: &Setup, load: &Model, name: &str, settings: Settings) -> Switches {
    let policy = build(&setup.machine, name, settings);
    let load = load.clone().into_load().unwrap();
    let sim = Sim::with_sink(setup.clone(), policy, load, Events::default());
    let (_, _, events) = sim.run().unwrap();
    let switch = |kind| match kind {
        Kind::Switch { cpu, next, .. } => Some((cpu, next)),
        _ => None,
    };
    let found = events.0.iter().filter_map(|event| Some((event.time, switch(event.kind)?)));
    found.map(|(time, (cpu, next))| (time, cpu, next)).collect()
}

fn setup(machine: Machine, until: u64) -> Setup {
    Setup { until: at(until), ..Setup::new(machine) }
}

/// A machine of `cpus` alike, with or without ticks and costs.
fn flat(rng: &mut Rng, cpus: u64) -> Setup {
    let tick = sometimes(rng, 2).then_some(Span::from_ms(1));
    let mut setup = setup(Machine::flat(cpus as usize).unwrap().with_tick(tick), 400);
    if sometimes(rng, 2) {
        setup.costs = Costs { pick_per_item: Span::ZERO, ..costs(rng) };
    }
    for _ in 0..if cpus > 1 && sometimes(rng, 3) { rng.below(6) } else { 0 } {
        let cpu = CpuId(1 + rng.below(cpus - 1) as u16);
        setup.hotplug.push((Time(rng.below(300_000) * 1000), cpu, sometimes(rng, 2)));
    }
    setup.hotplug.sort();
    setup
}

/// All `CASES` of loads that `load` draws for up to `most` CPUs switch alike; on one CPU without
/// costs.
fn assert_same(most: u64, gfs: Settings, load: impl Fn(&mut Rng, u64) -> Model) {
    let mut compared = 0;
    for seed in 0..CASES {
        let rng = &mut Rng::stream(seed, "gfs is bfs");
        let cpus = 1 + rng.below(most);
        let mut setup = flat(rng, cpus);
        if most == 1 {
            setup.costs = Costs::default();
        }
        let load = load(rng, cpus);
        let expected = switches(&setup, &load, "bfs", BFS);
        compared += expected.len();
        assert_eq!(switches(&setup, &load, "gfs", gfs), expected, "case {seed}");
    }
    assert!(compared > 50 * CASES as usize, "{compared} switches are no test");
}

#[test]
fn the_same_if_woken_tasks_enter_the_tree() {
    assert_same(16, TREE, random::model);
}

#[test]
fn the_same_if_nothing_blocks() {
    assert_same(16, SINGLE, |rng, cpus| {
        let mut load = Model::default();
        for _ in 0..1 + rng.below(40) {
            let mut ops = vec![Op::Run(Span::from_us(1) + span(rng, 3_000))];
            for _ in 0..rng.below(6) {
                ops.push(match rng.below(6) {
                    0..3 => Op::Run(span(rng, 9_000)),
                    3 => Op::Yield,
                    4 => Op::SetNice(rng.below(40) as i8 - 20),
                    _ => Op::SetAffinity(affinity(rng, cpus)),
                });
            }
            let script = Script { ops, rounds: 1 + rng.below(6), ..Script::default() };
            let mut new = task(0, Vec::new());
            new.arrives = Some(Time(rng.below(100_000) * 1000));
            new.script = Arc::new(script);
            new.new.nice = rng.below(40) as i8 - 20;
            if sometimes(rng, 4) {
                new.new.affinity = affinity(rng, cpus);
            }
            load.tasks.push(new);
        }
        load
    });
}

/// Times in odd ns, so that no two are the same instant.
#[test]
fn the_same_on_one_cpu_if_wake_ups_are_apart() {
    assert_same(1, SINGLE, |rng, _| {
        let mut load = Model::default();
        load.sizes.channels = 2;
        load.sizes.locks = 2;
        for _ in 0..1 + rng.below(20) {
            let some = |rng: &mut Rng, most| Span(1 + rng.below(most));
            let mut ops = Vec::new();
            for _ in 0..1 + rng.below(6) {
                let channel = Channel(rng.below(2) as u32);
                let lock = Lock(rng.below(2) as u32);
                ops.push(Op::Run(some(rng, 3_000_000)));
                match rng.below(9) {
                    0..5 => ops.push(Op::Sleep(some(rng, 9_000_000))),
                    5 => ops.push(Op::Yield),
                    6 => ops.push(Op::Wait(channel)),
                    7 => ops.push(Op::Signal(channel)),
                    _ => {
                        ops.extend([Op::Lock(lock), Op::Run(some(rng, 500_000)), Op::Unlock(lock)])
                    }
                }
            }
            ops.push(Op::Run(some(rng, 100_000)));
            let script = Script { ops, rounds: 1 + rng.below(9), ..Script::default() };
            let mut new = task(0, Vec::new());
            new.arrives = Some(Time(rng.below(100_000_000)));
            new.script = Arc::new(script);
            new.new.nice = rng.below(40) as i8 - 20;
            load.tasks.push(new);
        }
        for _ in 0..rng.below(40) {
            load.signals.push((Time(rng.below(300_000_000)), Channel(rng.below(2) as u32)));
        }
        load.signals.sort();
        load
    });
}

/// A task that arrives at `ms` with this nice value.
fn niced(ms: u64, nice: i8, ops: Vec<Op>) -> ModelTask {
    let mut task = task(ms, ops);
    task.new.nice = nice;
    task
}

/// The CPU that `number`, a task by order of arrival, runs on first, and when, in us.
fn first_run(switches: &Switches, number: u32) -> (u64, u16) {
    let run = switches.iter().find(|(_, _, next)| *next == Some(TaskId(number)));
    let &(time, cpu, _) = run.expect("it runs");
    (time.0 / 1000, cpu.0)
}

/// Where and from when `number` runs under each policy.
fn differ(
    setup: &Setup,
    load: Model,
    bfs: Settings,
    gfs: Settings,
    number: u32,
) -> [(u64, u16); 2] {
    let [one, other] =
        [("bfs", bfs), ("gfs", gfs)].map(|(name, set)| switches(setup, &load, name, set));
    assert_ne!(one, other);
    [one, other].map(|switches| first_run(&switches, number))
}

/// Task 1 ends at 2 ms on CPU 0, which could have task 0, preempted on CPU 1, or task 3, which is
/// later.
#[test]
fn sticky_tasks_differ() {
    let load = || {
        model(vec![
            niced(0, 1, vec![run(50)]),
            niced(0, 0, vec![run(2)]),
            niced(1, -20, vec![run(5)]),
            niced(1, 19, vec![run(5)]),
        ])
    };
    let setup = setup(Machine::flat(2).unwrap(), 200);
    assert_eq!(differ(&setup, load(), &[], TREE, 3)[0], (2_000, 0));
    assert_eq!(switches(&setup, &load(), "bfs", BFS), switches(&setup, &load(), "gfs", TREE));
}

/// CPU 0 runs the creator, CPU 1 something later.
#[test]
fn creations_differ() {
    let mut load = model(vec![
        niced(0, 0, vec![run(1), Op::Spawn(2), run(10)]),
        niced(0, 19, vec![run(20)]),
        niced(0, -20, vec![run(1)]),
    ]);
    load.tasks[2].arrives = None;
    let setup = setup(Machine::flat(2).unwrap(), 200);
    assert_eq!(differ(&setup, load, BFS, TREE, 2), [(1_000, 0), (1_000, 1)]);
}

/// CPU 0 is busy: its sibling, or a core that is idle.
#[test]
fn idle_cpus_differ() {
    let load = model(vec![niced(0, 0, vec![run(9)]), niced(1, 0, vec![run(9)])]);
    let setup = setup(Machine::parse("2 cores x 2 threads").unwrap(), 200);
    assert_eq!(differ(&setup, load, BFS, TREE, 1), [(1_000, 2), (1_000, 1)]);
}

/// CPU 0 runs something later, CPU 1 something later still, when a task wakes that last ran on
/// CPU 0.
#[test]
fn victims_differ() {
    let mut load = model(vec![
        niced(0, -5, vec![Op::Run(Span::from_us(10)), Op::Wait(Channel(0)), run(1)]),
        niced(1, 5, vec![run(20)]),
        niced(2, 19, vec![run(20)]),
    ]);
    load.sizes.channels = 1;
    load.signals.push((at(5), Channel(0)));
    let setup = setup(Machine::flat(2).unwrap(), 200);
    for (gfs, victim) in [(SINGLE, 0), (TREE, 1)] {
        let found = switches(&setup, &load, "gfs", gfs);
        let at_5ms = found.iter().find(|switch| switch.0 >= at(5)).unwrap();
        assert_eq!(*at_5ms, (at(5), CpuId(victim), Some(TaskId(0))));
    }
    assert_ne!(switches(&setup, &load, "bfs", BFS), switches(&setup, &load, "gfs", SINGLE));
}

/// Tasks 1 and 2 wake at 10 ms. While task 2, of deadline 6 ms, runs, task 3 of 15.28125 ms wakes;
/// task 1, of 24.375 ms, is in the list.
#[test]
fn wake_ups_at_once_differ() {
    let sleeper = |nice, channel| {
        niced(0, nice, vec![Op::Run(Span::from_us(10)), Op::Wait(Channel(channel)), run(3)])
    };
    let mut load = model(vec![sleeper(-5, 0), sleeper(-20, 1), sleeper(-10, 2)]);
    load.tasks.insert(0, niced(0, 19, vec![run(50)]));
    load.sizes.channels = 3;
    load.signals = vec![(at(10), Channel(0)), (at(10), Channel(1)), (at(11), Channel(2))];
    let setup = setup(Machine::flat(1).unwrap(), 200);
    for (name, settings, third) in [("bfs", BFS, 3), ("gfs", SINGLE, 1), ("gfs", TREE, 3)] {
        let found = switches(&setup, &load, name, settings);
        let order: Vec<u32> =
            found.iter().filter(|s| s.0 >= at(10)).filter_map(|s| Some(s.2?.0)).collect();
        assert_eq!(order[..2], [2, third], "{name} {settings:?}");
    }
}

/// Task 1 has 60 us of its slice left and the deadline of nice 19 when task 0, due at 39.1875 ms,
/// wakes and preempts it. Its next deadline is that of nice -20, 11.95 ms.
#[test]
fn better_nice_values_differ() {
    let mut load = model(vec![
        niced(0, 0, vec![Op::Run(Span::from_us(10)), Op::Wait(Channel(0)), run(1)]),
        niced(0, 19, vec![run(1), Op::SetNice(-20), run(20)]),
    ]);
    load.sizes.channels = 1;
    let wakes = Time(5_950_000);
    load.signals.push((wakes, Channel(0)));
    let setup = setup(Machine::flat(1).unwrap(), 200);
    for (name, settings, next) in [("bfs", BFS, 1), ("gfs", SINGLE, 0), ("gfs", TREE, 1)] {
        let found = switches(&setup, &load, name, settings);
        let switch = found.iter().find(|switch| switch.0 >= wakes).unwrap();
        assert_eq!(*switch, (wakes, CpuId(0), Some(TaskId(next))), "{name} {settings:?}");
    }
}

/// A pick costs `bfs` 1 us for each of the tasks that wait, `gfs` nothing.
#[test]
fn costs_differ() {
    let load = model((0..3).map(|_| niced(0, 0, vec![run(1)])).collect());
    let mut setup = setup(Machine::flat(1).unwrap(), 200);
    setup.costs.pick_per_item = Span::from_us(1);
    let [bfs, gfs] = differ(&setup, load, BFS, TREE, 2);
    assert!(bfs > gfs, "{bfs:?} and {gfs:?}");
}

#[test]
fn loads_are_drawn_that_would_tell() {
    let told = |settings: Settings, other: Settings, cpus: u64| {
        (0..CASES).any(|seed| {
            let rng = &mut Rng::stream(seed, "gfs is bfs");
            let setup = flat(rng, cpus);
            let load = random::model(rng, cpus);
            switches(&setup, &load, "bfs", settings) != switches(&setup, &load, "gfs", other)
        })
    };
    assert!(told(&[], TREE, 3), "sticky tasks");
    assert!(told(BFS, SINGLE, 3), "lists and victims");
    assert!(told(BFS, SINGLE, 1), "wake-ups at the same instant");
}
