//! The simulated benchmarks, in cases small enough to work out by hand, and under every policy.

use crate::support::{MS, at, build, ms};
use anysched_core::checked::{Checked, Rules};
use anysched_core::{Machine, Span, Time};
use anysched_host::Setup;
use anysched_measure::{Metrics, Summary};
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_workload::generate::{
    Background, Cyclictest, Emulation, Generator, Hackbench, Hog, Interbench, Schbench, Settings,
};
use anysched_workload::mix::Mix;

const RR: &str = "rr";

fn cpus(n: usize) -> Setup {
    Setup::new(Machine::flat(n).unwrap())
}

fn us(n: u64) -> Span {
    Span::from_us(n)
}

/// Runs loads side by side.
fn play(
    setup: Setup,
    policy: &str,
    settings: &[(&str, &str)],
    loads: &[&dyn Generator],
) -> Metrics {
    let cpus = setup.machine.cpus();
    let scheduler = build(&setup.machine, policy, settings);
    let loads = loads.iter().map(|load| load.build(1, cpus).unwrap()).collect();
    let (metrics, ..) = Sim::new(setup, scheduler, Mix::new(loads)).run().unwrap();
    metrics
}

fn interbench(task: Emulation, against: Background, pause: Span, duration: Span) -> Interbench {
    Interbench { settings: Settings::default(), task, against, load_nice: 0, pause, duration }
}

fn custom(run: u64, interval: u64) -> Emulation {
    Emulation::Custom { run: ms(run), interval: ms(interval) }
}

/// Count, smallest, sum and largest.
fn all(summary: &Summary) -> (u64, u64, u64, u64) {
    let (min, max) = (summary.min().unwrap_or(0), summary.max().unwrap_or(0));
    (summary.count(), min, summary.sum() as u64, max)
}

/// Audio: frames begin at 0, 50, …, 950 ms; it wakes for the last time at 1000 ms, the end.
/// Video: at 16.666 · 0 … 60 = 999.96 ms.
/// X: frame i > 0 begins at 99 i + 1 ms. Frame 99 ends at its deadline and frame 100 begins at
/// once, at 9901 ms; it has no deadline, ends at 10001 ms and with it everything.
/// Gaming: 10 times 100 ms.
#[test]
fn alone_nothing_is_late() {
    let (second, ten) = (ms(1000), ms(10_000));
    let cases = [
        (Emulation::Audio, second, 20, 20, Some(100.0)),
        (Emulation::Video, second, 61, 61, Some(100.0)),
        (Emulation::X, ten, 101, 99, Some(100.0)),
        (Emulation::Gaming, second, 10, 0, None),
    ];
    for (task, duration, frames, wakeups, met) in cases {
        let load = interbench(task, Background::None, ms(1000), duration);
        let metrics = play(cpus(1), "fcfs", &[], &[&load]);
        let benchmark = &metrics.benchmark;
        assert_eq!(all(&benchmark.latency), (frames, 0, 0, 0), "{task:?}");
        assert_eq!(all(&benchmark.wakeup), (wakeups, 0, 0, 0), "{task:?}");
        assert_eq!(benchmark.desired_cpu_percent(), Some(100.0), "{task:?}");
        assert_eq!(benchmark.deadlines_met_percent(), met, "{task:?}");
    }
}

/// 10 ms every 30 ms against one that never sleeps, in slices of 100 ms from 10 ms on. The task
/// gets the CPU at 110, 210, 310 and 410 ms; its deadlines before are 30, 120, 240 and 330 ms. It
/// is late by 80, 90, 70 and 80 ms, for which it skips 2, 3, 2 and 2 frames. At 500 ms the
/// other one ends, and the task, which has waited from 420 ms on, does.
#[test]
fn frames_are_skipped_by_one_that_comes_too_late() {
    let load = interbench(custom(10, 30), Background::Burn(1), Span::ZERO, ms(500));
    let metrics = play(cpus(1), RR, &[("quantum", "100ms")], &[&load]);
    let benchmark = &metrics.benchmark;
    assert_eq!(all(&benchmark.latency), (5, 0, 590 * MS, 180 * MS));
    assert_eq!(all(&benchmark.wakeup), (5, 70 * MS, 400 * MS, 90 * MS));
    assert_eq!((benchmark.deadlines_met, benchmark.deadlines_missed), (1, 9));
    assert_eq!((benchmark.work_done, benchmark.work_missed), (1, 9));
    // Latencies 0, 140, 180, 130 and 140 ms: squares of 88500, mean 118.
    let near = |found: f64, squared: f64| (found / 1e6 - squared.sqrt()).abs() < 1e-6;
    assert!(near(benchmark.latency.sd(), (88_500.0 - 5.0 * 118.0 * 118.0) / 4.0));
    assert!(near(benchmark.interbench_sd(), (88_500.0 - 118.0 * 118.0 / 5.0) / 4.0));
    assert_eq!(metrics.last_completion, at(500));
}

/// 20 ms every 30 ms, in slices of 15 ms: 0–15, 30–35 (deadline 30), from 60 on; 65–80, 95–100
/// (deadline 90), from 120 on; 130–145, and, since the other one ends, 150–155 (deadline 150).
#[test]
fn a_frame_that_ends_late_costs_an_interval() {
    let load = interbench(custom(20, 30), Background::Burn(1), Span::ZERO, ms(150));
    let metrics = play(cpus(1), RR, &[("quantum", "15ms")], &[&load]);
    let benchmark = &metrics.benchmark;
    assert_eq!(all(&benchmark.latency), (3, 30 * MS, 105 * MS, 40 * MS));
    assert_eq!((benchmark.deadlines_met, benchmark.deadlines_missed), (0, 3));
    assert_eq!((benchmark.work_done, benchmark.work_missed), (3, 0));
}

/// Half of a CPU, in slices of 10 ms: a frame of 100 ms takes 190 ms, then 200 ms each.
#[test]
fn gaming_is_late_by_what_it_did_not_get() {
    let load = interbench(Emulation::Gaming, Background::Burn(1), Span::ZERO, ms(390));
    let metrics = play(cpus(1), RR, &[("quantum", "10ms")], &[&load]);
    let benchmark = &metrics.benchmark;
    assert_eq!(all(&benchmark.latency), (2, 90 * MS, 190 * MS, 100 * MS));
    assert_eq!((benchmark.work_done, benchmark.work_missed), (200_000, 190_000));
    assert_eq!(benchmark.wakeup.count(), 0);
}

fn cyclictest(threads: u32, interval: Span, distance: Span, loops: u64) -> Cyclictest {
    let settings = Settings::default();
    Cyclictest { settings, threads, interval, distance, loops: Some(loops), duration: None }
}

#[test]
fn cyclic_threads_see_what_a_pick_and_a_switch_cost() {
    let mut setup = cpus(1);
    setup.costs.pick_base = us(3);
    let metrics = play(setup, "fcfs", &[], &[&cyclictest(1, us(1000), us(500), 5)]);
    assert_eq!(all(&metrics.benchmark.latency), (5, 3_000, 15_000, 3_000));
    // The first begins at 4 us, the second at 8 us; each needs the CPU when the other has left it.
    let mut setup = cpus(1);
    setup.costs.context_switch = us(4);
    let metrics = play(setup, "fcfs", &[], &[&cyclictest(2, us(1000), Span::ZERO, 5)]);
    let threads = &metrics.benchmark.threads;
    assert_eq!(threads.len(), 2);
    for thread in threads {
        let found = (thread.cycles, thread.min, thread.last, thread.max, thread.mean());
        assert_eq!(found, (5, us(4), us(4), us(4), us(4)));
    }
}

/// Every 10 ms against one that never sleeps, in slices of 25 ms: it gets the CPU at 25 ms, 15 ms
/// late, sleeps until 30 ms, gets it at 50 ms, 20 ms late, has no time to sleep until 50 ms, and
/// sleeps until 60 ms.
#[test]
fn cycles_that_have_passed_are_left_out() {
    let hog = Hog {
        settings: Settings::default(),
        tasks: 1,
        offset: anysched_workload::dist::Dist::constant(Span::ZERO),
        until: Some(at(1000)),
        check: ms(1),
    };
    let load = cyclictest(1, ms(10), Span::ZERO, 6);
    let metrics = play(cpus(1), RR, &[("quantum", "25ms")], &[&load, &hog]);
    let thread = metrics.benchmark.threads[0];
    assert_eq!((thread.cycles, thread.sum, thread.max), (6, ms(70), ms(20)));
    assert_eq!((thread.min, thread.last), (Span::ZERO, Span::ZERO));
}

/// Intervals of 1000, 1500 and 2000 us: after 6 cycles of the first, at 6 ms, the others do the
/// cycle that they sleep for, if any.
#[test]
fn threads_have_intervals_of_their_own_and_end_together() {
    let load = cyclictest(3, us(1000), us(500), 6);
    let metrics = play(cpus(4), "fcfs", &[], &[&load]);
    let cycles: Vec<u64> = metrics.benchmark.threads.iter().map(|thread| thread.cycles).collect();
    assert_eq!(cycles[0], 6);
    assert!((4..=5).contains(&cycles[1]) && (3..=4).contains(&cycles[2]), "{cycles:?}");
    assert_eq!(metrics.unfinished, 0);
    let load = Cyclictest { loops: None, duration: Some(us(6500)), ..load };
    let metrics = play(cpus(4), "fcfs", &[], &[&load]);
    assert_eq!(metrics.benchmark.threads[0].cycles, 7);
}

fn schbench(workers: u32, duration: Span) -> Schbench {
    Schbench {
        settings: Settings::default(),
        message_threads: 1,
        workers: Some(workers),
        sleep: us(100),
        work: ms(1),
        duration,
    }
}

/// One worker on a machine of two CPUs: requests of 1.1 ms, 9 of them done at 10.5 ms, the tenth
/// after that. Latencies of 0 are not counted.
#[test]
fn requests_of_one_worker_follow_each_other() {
    let metrics = play(cpus(2), "fcfs", &[], &[&schbench(1, us(10_500))]);
    let benchmark = &metrics.benchmark;
    assert_eq!(all(&benchmark.request), (10, 1_100_000, 11_000_000, 1_100_000));
    assert_eq!(benchmark.latency.count(), 0);
    assert_eq!(all(&benchmark.rate), (2, 0, 857, 857));
    assert!((benchmark.requests_per_s().unwrap() - 10.0 / 0.0105).abs() < 1e-9);
    assert_eq!([metrics.tasks, metrics.unfinished], [3, 0]);
}

/// Two workers on one CPU: both sleep until 0.1 ms; the first computes until 1.1, the second until
/// 2.1 ms. Only then does the message thread run and wake both. In the next round, until 4.2 ms,
/// the main task waits from 3 ms on; then it stops them, and each does one more request.
#[test]
fn workers_wait_for_each_other_and_for_the_message_thread() {
    let metrics = play(cpus(1), "fcfs", &[], &[&schbench(2, us(3_000))]);
    let benchmark = &metrics.benchmark;
    assert_eq!(all(&benchmark.request), (6, 1_100_000, 3 * 3_200_000, 2_100_000));
}

/// A switch costs 5 us. The worker, which waits, is woken by the message thread at its look at
/// the clock, at 20 + 1110 k us, and runs 5 us after it. The ninth request ends at 10005 us; the
/// main task, which waits from 9505 us on, stops them, and there is a tenth.
#[test]
fn wakeups_are_measured_from_the_look_of_the_message_thread() {
    let mut setup = cpus(1);
    setup.costs.context_switch = us(5);
    let metrics = play(setup, "fcfs", &[], &[&schbench(1, us(9_500))]);
    assert_eq!(all(&metrics.benchmark.latency), (10, 5_000, 50_000, 5_000));
}

fn hackbench(groups: u32, fds: u32, loops: u32, times: [u64; 2], buffer: u32) -> Hackbench {
    let [send, receive] = times.map(us);
    Hackbench { settings: Settings::default(), groups, fds, loops, send, receive, buffer }
}

/// Three messages. On two CPUs, one that takes 2 us to send and 1 us to receive: sent at 2, 4 and
/// 6 us, received at 3, 5 and 7 us. On one CPU: sent until 6 us, then received. The other way
/// round, with room for one: sent at 1, 4 and 7 us, received at 3, 6 and 9 us; with room for
/// all: sent until 3 us, received from 1 to 7 us.
#[test]
fn a_pipe_by_hand() {
    let time = |cpus_: usize, times, buffer| {
        let metrics = play(cpus(cpus_), "fcfs", &[], &[&hackbench(1, 1, 3, times, buffer)]);
        assert_eq!([metrics.tasks, metrics.unfinished], [3, 0]);
        metrics.benchmark.elapsed.unwrap()
    };
    assert_eq!(time(2, [2, 1], 640), us(7));
    assert_eq!(time(1, [2, 1], 640), us(9));
    assert_eq!(time(2, [1, 2], 1), us(9));
    assert_eq!(time(2, [1, 2], 640), us(7));
}

#[test]
fn every_message_arrives() {
    for buffer in [1, 2, 640] {
        let load = hackbench(2, 3, 5, [1, 2], buffer);
        let metrics = play(cpus(3), RR, &[("quantum", "10us")], &[&load]);
        assert_eq!([metrics.completed, metrics.unfinished], [2 * 2 * 3 + 1, 0]);
        // 2 groups of 3 senders and 3 receivers, 5 messages for each pair.
        assert_eq!(metrics.busy, us(2 * 3 * 3 * 5 * 3));
    }
}

/// Whatever the policy does, no task is lost and time goes on.
#[test]
fn every_policy_comes_to_the_end() {
    let settings = Settings::default();
    let x = interbench(Emulation::X, Background::Burn(5), ms(100), ms(500));
    let video = Interbench {
        task: Emulation::Video,
        against: Background::Emulated(Emulation::X),
        ..x.clone()
    };
    let cyclic = Cyclictest {
        settings,
        threads: 6,
        interval: us(1000),
        distance: us(500),
        loops: None,
        duration: Some(ms(200)),
    };
    let requests = Schbench { message_threads: 2, ..schbench(4, ms(200)) };
    let messages = hackbench(2, 4, 10, [1, 1], 3);
    let loads: [&dyn Generator; 5] = [&x, &video, &cyclic, &requests, &messages];
    for policy in POLICIES {
        for (number, load) in loads.iter().enumerate() {
            let mut setup = Setup::new(Machine::parse("2 cores x 2 threads").unwrap());
            setup.costs.context_switch = us(2);
            setup.costs.pick_base = Span(300);
            setup.costs.lock_hold = Span(200);
            setup.smt_speed = 600;
            setup.until = at(60_000);
            let scheduler = (policy.build)(&setup.machine, &[]).unwrap();
            let nature = (policy.nature)(&[]).unwrap();
            let rules = Rules { work_conserving: nature.work_conserving, ..Rules::default() };
            let checked = Checked::new(scheduler, &setup.machine, rules);
            let load = load.build(1, 4).unwrap();
            let (metrics, ..) = Sim::new(setup, checked, load).run().unwrap();
            let name = policy.name;
            assert_eq!(metrics.completed, metrics.tasks, "{name}, load {number}");
            assert!(metrics.last_completion < Time(60_000 * MS), "{name}, load {number}");
        }
    }
}
