//! `cfs` on one CPU decides as a naive model of the kernel's functions does: the same picks, kicks,
//! vruntimes and min_vruntime after every call.

use anysched_core::checked::Rules;
use anysched_core::{Checked, Machine, Off, Scheduler, Span, TaskParams, Time};
use anysched_oracle::cfs::{Cfs, IDLE, LINUX_6_1, Options, PROFILES};
use anysched_oracle::{Moves, Picks, Scope, Seen, compare, compare_all, moves};
use anysched_policies::policy;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

const TASKS: u32 = 14;

/// One in eight is of SCHED_IDLE.
fn idle_or_not(number: u64, params: &mut TaskParams) {
    if number >> 50 & 7 == 0 {
        params.weight = IDLE.0;
    }
}

/// How a load differs from others.
#[derive(Clone, Debug)]
struct Load {
    start: u64,
    tick: Option<Span>,
    tasks: u32,
    idle: bool,
    prompt: bool,
    /// Nobody leaves for good: many are ready.
    crowded: bool,
}

fn loads() -> impl Strategy<Value = Load> {
    let ticks = [Some(Span::from_us(250)), Some(Span::from_ms(1)), Some(Span::from_ms(4)), None];
    let start = prop_oneof![Just(0), 0..1u64 << 40, (1u64 << 62)..(1u64 << 62) + 99_999_999];
    let all = (start, select(ticks.to_vec()), 2..=TASKS, any::<[bool; 3]>());
    all.prop_map(|(start, tick, tasks, [idle, prompt, crowded])| Load {
        start,
        tick,
        tasks,
        idle,
        prompt,
        crowded,
    })
}

fn scope(load: &Load) -> Scope {
    Scope {
        start: Time(load.start),
        nice: true,
        renices: true,
        dequeues: true,
        detaches: true,
        wakers: 2,
        describe: if load.idle { idle_or_not } else { |_, _| {} },
        picks: Picks::AtOnce,
        prompt: load.prompt,
        tick: load.tick,
        offs: match load.crowded {
            true => &[Off::Blocked, Off::Yielded, Off::Yielded, Off::Preempted, Off::Preempted],
            false => &[Off::Blocked, Off::Blocked, Off::Yielded, Off::Preempted, Off::Exited],
        },
        ..Scope::new(load.tasks)
    }
}

/// From nanoseconds to some ticks.
fn pass() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0u64), 4 => 0..2_000_000u64, 1 => 0..3_000u64, 1 => 0..20_000_000u64]
}

fn play(
    settings: &[(&str, &str)],
    options: Options,
    load: &Load,
    moves: &Moves,
) -> Result<Seen, TestCaseError> {
    let machine = Machine::flat(1).unwrap();
    let tick = load.tick.unwrap_or(Span::from_ms(1)).to_string();
    let settings = [settings, &[("tick", tick.as_str())]].concat();
    let cfs = (policy("cfs").unwrap().build)(&machine, &settings).unwrap();
    let cfs: Checked<Box<dyn Scheduler>> = Checked::new(cfs, &machine, Rules::default());
    let oracle = Cfs::new(options, load.tasks as usize);
    compare(&machine, cfs, oracle, &scope(load), moves)
}

#[test]
fn every_profile_decides_as_its_kernel() {
    for (profile, options) in PROFILES {
        let seen = compare_all(1_000, (loads(), moves(pass(), 400)), |(load, moves)| {
            play(&[("profile", profile)], options, &load, &moves)
        });
        for name in [
            "switches",
            "picked again",
            "preempted by a wake-up",
            "slices that ended",
            "too far ahead",
            "buddies picked",
            "yielders skipped",
            "new weights",
            "forks",
            "idle ones preempted",
        ] {
            assert!(seen[name] > 150, "{profile}: {seen:?}");
        }
    }
}

fn word(on: bool) -> &'static str {
    if on { "true" } else { "false" }
}

fn settings(options: &Options) -> Vec<(&'static str, String)> {
    let time = |ns: u64| Span(ns).to_string();
    let words = [
        ("keep_slice", options.keep_slice),
        ("keep_buddies", options.keep_buddies),
        ("base_slice", options.base_slice),
        ("cap_slice", options.cap_slice),
        ("short_idle", options.short_idle),
        ("renew_sleepers", options.renew_sleepers),
        ("await_leaver", options.await_leaver),
        ("gentle_sleepers", options.gentle_sleepers),
        ("start_debit", options.start_debit),
        ("child_runs_first", options.child_runs_first),
        ("wakeup_preempt", options.wakeup_preempt),
        ("next_buddy", options.next_buddy),
        ("last_buddy", options.last_buddy),
    ];
    let mut settings = vec![
        ("latency", time(options.latency)),
        ("min_granularity", time(options.min_granularity)),
        ("wakeup_granularity", time(options.wakeup_granularity)),
    ];
    settings.extend(words.map(|(name, on)| (name, word(on).to_string())));
    settings
}

fn options() -> impl Strategy<Value = Options> {
    let latency = select([6_000_000u64, 20_000_000, 6_500_001, 1_000_000].as_slice());
    let min = select([750_000u64, 4_000_000, 1_000_000, 333_333].as_slice());
    let wakeup = select([1_000_000u64, 0, 10_000_000, 50_000].as_slice());
    let all = (latency, min, wakeup, any::<[bool; 13]>());
    all.prop_map(|(latency, min_granularity, wakeup_granularity, on)| Options {
        latency,
        min_granularity,
        wakeup_granularity,
        keep_slice: on[0],
        keep_buddies: on[1],
        base_slice: on[2],
        cap_slice: on[3],
        short_idle: on[4],
        renew_sleepers: on[5],
        await_leaver: on[6],
        gentle_sleepers: on[7],
        start_debit: on[8],
        child_runs_first: on[9],
        wakeup_preempt: on[10],
        next_buddy: on[11],
        last_buddy: on[12],
    })
}

#[test]
fn each_switch_does_what_it_says() {
    compare_all(2_000, (options(), loads(), moves(pass(), 400)), |(options, load, moves)| {
        let settings = settings(&options);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        play(&settings, options, &load, &moves)
    });
}

#[test]
fn who_slept_for_months_is_placed_anew() {
    // So few that virtual times stay within 2^63 ns of each other.
    let day = 86_400_000_000_000u64;
    let pass = prop_oneof![6 => 0..2_000_000u64, 1 => 60 * day..120 * day];
    let seen = compare_all(1_000, (loads(), moves(pass, 70)), |(load, moves)| {
        play(&[], LINUX_6_1, &Load { tick: None, start: 0, idle: false, ..load }, &moves)
    });
    assert!(seen["long sleepers"] > 300, "{seen:?}");
}
