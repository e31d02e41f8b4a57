//! Placement and balancing as in Linux decide as a naive implementation of its rules does.

use anysched_core::{CpuId, Machine, Off, Scheduler, Span, TaskParams, Time};
use anysched_oracle::drive::pinned;
use anysched_oracle::fair::{self, Fair, Options, Rule, Stride, Turns};
use anysched_oracle::{
    Drive, Moves, Picks, Pins, Scope, Seen, cfs, compare, compare_all, compare_same, eevdf, moves,
};
use anysched_policies::policy;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

const MACHINES: [&str; 13] = [
    "2",
    "3",
    "4",
    "8",
    "1 cores x 2 threads",
    "4 cores x 2 threads",
    "2 llcs x 2 cores",
    "2 llcs x 2 cores x 2 threads",
    "2 nodes x 2 cores x 2 threads",
    "2 nodes x 2 llcs x 2 cores",
    "2 nodes x 1 cores",
    "2 nodes x 1 cores x 2 threads",
    "2 llcs x 1 cores x 2 threads",
];

const LINUX: [(&str, &str); 4] =
    [("layout", "per-cpu"), ("place", "linux"), ("steal", "linux"), ("balance", "linux")];

/// From microseconds to a second.
fn pass() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0u64),
        3 => 0..200_000u64,
        6 => 0..5_000_000u64,
        2 => 0..50_000_000u64,
        1 => 0..1_000_000_000u64,
    ]
}

fn scope(tasks: u32, wakers: u8, prompt: bool) -> Scope {
    Scope {
        start: Time::ZERO + Span::from_s(1),
        offs: &[Off::Blocked, Off::Blocked, Off::Blocked, Off::Yielded, Off::Preempted],
        syncs: true,
        wakers,
        picks: Picks::AtOnce,
        prompt,
        tick: Some(Span::from_ms(4)),
        ..Scope::new(tasks)
    }
}

fn play<R: Rule>(
    name: &str,
    machine: &str,
    rule: impl Fn(&Machine) -> R,
    scope: &Scope,
    moves: &Moves,
) -> Result<Seen, TestCaseError> {
    play_with(name, &[], &Options::default(), machine, rule, scope, moves)
}

fn play_with<R: Rule>(
    name: &str,
    settings: &[(&str, &str)],
    options: &Options,
    machine: &str,
    rule: impl Fn(&Machine) -> R,
    scope: &Scope,
    moves: &Moves,
) -> Result<Seen, TestCaseError> {
    let machine = Machine::parse(machine).unwrap().with_tick(Some(Span::from_ms(4)));
    let linux: &[(&str, &str)] = if machine.cpus() > 1 { &LINUX } else { &[] };
    let settings = [settings, linux].concat();
    let policy = (policy(name).unwrap().build)(&machine, &settings).unwrap();
    // The policies compute the load of a task as a part of its runqueue's whenever they need it.
    let shows_load = machine.cpus() > 1;
    let options = Options { caches_h_load: false, shows_load, ..options.clone() };
    let oracle = Fair::new(&machine, rule(&machine), options);
    compare(&machine, policy, oracle, scope, moves)
}

fn stride(machine: &Machine) -> Stride {
    Stride::new(machine.cpus())
}

/// Machine, tasks, wakers among three, prompt kicks, and what happens.
fn loads() -> impl Strategy<Value = (&'static str, u32, u8, bool, Moves)> {
    (select(MACHINES.as_slice()), 2..20u32, 0..4u8, any::<bool>(), moves(pass(), 400))
}

/// The order within a runqueue, without any balancing.
#[test]
fn a_single_cpu_decides_as_the_rule() {
    compare_all(200, loads(), |(_, tasks, wakers, prompt, moves)| {
        let scope = changing(tasks, wakers, prompt, Pins::Any);
        let turns = |machine: &Machine| Turns::new(machine.cpus(), Span::from_ms(50));
        play("rr", "1", turns, &scope, &moves)?;
        play("stride", "1", stride, &scope, &moves)
    });
}

#[test]
fn round_robin_on_many_cpus_is_balanced_as_by_linux() {
    let seen = compare_all(500, loads(), |(machine, tasks, wakers, prompt, moves)| {
        let rule = |machine: &Machine| Turns::new(machine.cpus(), Span::from_ms(50));
        play("rr", machine, rule, &scope(tasks, wakers, prompt), &moves)
    });
    assert!(seen["moves"] > 500 && seen["pulls"] > 500, "{seen:?}");
}

#[test]
fn stride_on_many_cpus_is_balanced_as_by_linux() {
    let seen = compare_all(500, loads(), |(machine, tasks, wakers, prompt, moves)| {
        let scope = Scope { nice: true, ..scope(tasks, wakers, prompt) };
        play("stride", machine, stride, &scope, &moves)
    });
    assert!(seen["moves"] > 500 && seen["pulls"] > 500, "{seen:?}");
}

/// A CPU out of use counts as neither busy nor idle: who is alone on the only busy CPU has no other
/// CPU balance.
#[test]
fn cpus_out_of_use_are_not_busy() {
    let next = |goes: bool| {
        let machine = Machine::flat(3).unwrap().with_tick(Some(Span::from_ms(4)));
        let policy = (policy("rr").unwrap().build)(&machine, &LINUX).unwrap();
        let mut drive = Drive::new(policy, &machine);
        drive.create_from(0, &TaskParams::default(), Some(0));
        drive.settle();
        let cpu = (0..3).find(|&cpu| drive.running(cpu).is_some()).unwrap();
        if goes {
            let other = CpuId((cpu + 1) % 3);
            drive.call(|policy, cx| policy.set_online(cx, other, false));
        }
        for _ in 0..100 {
            drive.now += Span::from_ms(4);
            drive.tick_on(cpu);
        }
        drive.probe(0, "nohz_next")
    };
    assert_eq!(next(true), next(false));
}

/// A task that sleeps in its runqueue, from which it was bound away while it ran, goes where it may
/// run as soon as it is off the CPU (`migration_cpu_stop`).
#[test]
fn a_delayed_task_goes_where_it_may_run() {
    let machine = Machine::flat(2).unwrap().with_tick(Some(Span::from_ms(4)));
    let policy = (policy("eevdf").unwrap().build)(&machine, &LINUX).unwrap();
    let mut drive = Drive::new(policy, &machine);
    for task in 0..2 {
        drive.create_from(task, &pinned("0"), Some(0));
    }
    drive.create_from(2, &pinned("1"), Some(1));
    drive.settle();
    drive.now += Span::from_us(1500);
    let task = drive.running(0).unwrap();
    drive.update(task, &pinned("1"));
    assert_eq!(drive.off(0, Off::Blocked), task);
    assert_eq!(drive.probe(task, "delayed"), 1);
    assert_eq!(drive.probe(task, "runqueue"), 1);
    assert_eq!(drive.pick_task(0), Some(1 - task));
}

/// Weights change, so do affinities, tasks end and are taken out, picks are undone.
fn changing(tasks: u32, wakers: u8, prompt: bool, pins: Pins) -> Scope {
    Scope {
        offs: &[Off::Blocked, Off::Blocked, Off::Yielded, Off::Preempted, Off::Exited],
        nice: true,
        renices: true,
        pins,
        dequeues: true,
        detaches: true,
        undoes: true,
        ..scope(tasks, wakers, prompt)
    }
}

#[test]
fn tasks_that_change_are_balanced_as_by_linux() {
    let seen = compare_all(500, loads(), |(machine, tasks, wakers, prompt, moves)| {
        let scope = changing(tasks, wakers, prompt, Pins::Asleep);
        play("stride", machine, stride, &scope, &moves)
    });
    assert!(seen["moves"] > 500, "{seen:?}");
}

/// Tasks that may no longer stay where they are are distributed.
#[test]
fn tasks_that_are_bound_anew_are_balanced_as_by_linux() {
    let seen = compare_all(500, loads(), |(machine, tasks, wakers, prompt, moves)| {
        let scope = changing(tasks, wakers, prompt, Pins::Any);
        play("stride", machine, stride, &scope, &moves)
    });
    assert!(seen["moves"] > 500, "{seen:?}");
}

/// What the defaults are multiplied by on so many CPUs.
fn scale(cpus: usize) -> u64 {
    1 + u64::from(cpus.min(8).ilog2())
}

fn cfs_on(options: cfs::Options, tasks: u32) -> impl Fn(&Machine) -> fair::cfs::Cfs {
    move |machine| {
        let cpus = machine.cpus();
        let by = scale(cpus);
        let scaled = cfs::Options {
            latency: options.latency * by,
            min_granularity: options.min_granularity * by,
            wakeup_granularity: options.wakeup_granularity * by,
            ..options
        };
        fair::cfs::Cfs::new(scaled, tasks as usize, cpus)
    }
}

/// Plays so many loads, always the same ones; with ANYSCHED_LOADS set, as many others.
fn compare_loads(
    usual: u32,
    test: impl Fn((&'static str, u32, u8, bool, Moves)) -> Result<Seen, TestCaseError>,
) -> Seen {
    match std::env::var("ANYSCHED_LOADS") {
        Ok(number) => compare_all(number.parse().unwrap(), loads(), test),
        Err(_) => compare_same(usual, 1, loads(), test),
    }
}

/// Picks are not undone, which no kernel does.
fn fair_scope(tasks: u32, wakers: u8, prompt: bool) -> Scope {
    Scope { undoes: false, ..changing(tasks, wakers, prompt, Pins::Any) }
}

fn cfs_decides_as(profile: &str, options: cfs::Options) {
    let seen = compare_loads(30, |(machine, tasks, wakers, prompt, moves)| {
        let scope = fair_scope(tasks, wakers, prompt);
        let (settings, rule) = ([("profile", profile)], cfs_on(options, tasks));
        let options =
            Options { balances_cores: false, ni_random: profile == "6.1", ..Options::default() };
        play_with("cfs", &settings, &options, machine, rule, &scope, &moves)
    });
    assert!(seen["moves"] > 0, "{profile}: {seen:?}");
}

#[test]
fn cfs_of_each_kernel_is_balanced_as_by_linux() {
    for (profile, options) in cfs::PROFILES {
        cfs_decides_as(profile, options);
    }
}

fn eevdf_on(version: (u8, u8), tasks: u32) -> impl Fn(&Machine) -> fair::eevdf::Eevdf {
    move |machine| {
        let cpus = machine.cpus();
        let rules = eevdf::Rules::of(version, 4_000_000);
        let base_slice = rules.base_slice * i128::from(scale(cpus));
        fair::eevdf::Eevdf::new(eevdf::Rules { base_slice, ..rules }, tasks as usize, machine)
    }
}

fn eevdf_decides_as(profile: &str, version: (u8, u8)) {
    let seen = compare_loads(40, |(machine, tasks, wakers, prompt, moves)| {
        let scope = fair_scope(tasks, wakers, prompt);
        let options = Options {
            balances_eligible: version > (6, 12),
            ni_rate: version >= (7, 2),
            ..Options::default()
        };
        let (settings, rule) = ([("profile", profile)], eevdf_on(version, tasks));
        play_with("eevdf", &settings, &options, machine, rule, &scope, &moves)
    });
    assert!(seen["moves"] > 0, "{profile}: {seen:?}");
    let delays = seen.get("delays").copied().unwrap_or(0);
    assert_eq!(delays > 0, version > (6, 6), "{profile}: {seen:?}");
}

const EEVDF: [(&str, (u8, u8)); 5] =
    [("6.6", (6, 6)), ("6.12", (6, 12)), ("6.18", (6, 18)), ("7.2", (7, 2)), ("7.3", (7, 3))];

#[test]
fn eevdf_of_each_kernel_is_balanced_as_by_linux() {
    for (profile, version) in EEVDF {
        eevdf_decides_as(profile, version);
    }
}
