//! Cases worked out by hand from the kernel's rules, and that the model agrees with itself.

use anysched_core::checked::Rules;
use anysched_core::{
    Checked, CpuId, Enqueue, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use proptest::prelude::*;

use super::{Fair, Options, Stride, Turns};
use crate::drive::{Drive, ms, pinned};
use crate::{Picks, Pins, Scope, compare, compare_all, moves};

const MACHINES: [&str; 4] = ["1", "2", "3 cores x 2 threads", "2 nodes x 2 llcs x 2 cores"];

/// Whatever may happen is answered, within the contract.
#[test]
fn the_model_can_be_asked_anything() {
    let pass = prop_oneof![Just(0u64), 0..9_000_000u64, 0..900_000_000u64];
    let strategy = (prop::sample::select(MACHINES.as_slice()), moves(pass, 300));
    let seen = compare_all(200, strategy, |(machine, moves)| {
        let machine = Machine::parse(machine).unwrap();
        let scope = Scope {
            start: Time::ZERO + Span::from_s(1),
            nice: true,
            renices: true,
            pins: Pins::Any,
            dequeues: true,
            detaches: true,
            undoes: true,
            syncs: true,
            wakers: 2,
            picks: Picks::Later,
            tick: Some(ms(4)),
            ..Scope::new(12)
        };
        let options = Options { shows_load: true, ..Options::default() };
        let fair = Fair::new(&machine, Stride::new(machine.cpus()), options);
        let rules = Rules { work_conserving: false, ..Rules::default() };
        let policy = Checked::new(fair.clone(), &machine, rules);
        compare(&machine, policy, fair, &scope, &moves)
    });
    assert!(seen["moves"] > 100, "{seen:?}");
}

type Model = Drive<Fair<Turns>>;

/// At 1 s.
fn on(machine: &str, jiffy: Span) -> Model {
    let machine = Machine::parse(machine).unwrap();
    let options =
        Options { jiffy, ni_random: false, is_fresh: true, shows_load: true, ..Options::default() };
    let fair = Fair::new(&machine, Turns::new(machine.cpus(), Span::MAX), options);
    let mut drive = Drive::new(fair, &machine);
    drive.at(1_000);
    drive
}

/// Lets every CPU run something short and then find nothing to run, one after the other, 1 us apart.
fn idle(drive: &mut Model) {
    for cpu in 0..drive.cpus() {
        run_on(drive, 99, cpu);
        drive.off(cpu, Off::Exited);
        drive.call(|fair, cx| fair.detach(cx, TaskId(99)));
        assert_eq!(drive.pick(cpu), None);
        drive.pass_us(1);
    }
}

/// A task that runs on `cpu`; it could run elsewhere.
fn run_on(drive: &mut Model, task: u32, cpu: u16) {
    drive.create_from(task, &pinned(&cpu.to_string()), None);
    assert_eq!(drive.pick_task(cpu), Some(task));
    drive.update(task, &TaskParams::default());
    drive.kicked();
}

fn runqueue(drive: &Model, task: u32) -> i64 {
    drive.probe(task, "runqueue")
}

/// `jiffies` jiffies of 1 ms with their ticks.
fn ticks(drive: &mut Model, jiffies: u64) {
    for _ in 0..jiffies {
        drive.now += ms(1);
        for cpu in 0..drive.cpus() {
            if drive.running(cpu).is_some() {
                drive.tick_on(cpu);
            }
        }
    }
}

/// A new task has full load, and half of what its CPU can do as utilization; that of a CPU that
/// always runs grows to all.
#[test]
fn loads_of_a_task_that_runs() {
    let mut drive = on("2", ms(1));
    run_on(&mut drive, 0, 0);
    assert_eq!([drive.probe(0, "load_avg"), drive.probe(0, "util_avg")], [1024, 512]);
    // 32 periods of 1024 * 1024 ns are 33.6 ms: half of what is missing is left.
    ticks(&mut drive, 34);
    assert!((762..=772).contains(&drive.probe(0, "util_avg")), "{}", drive.probe(0, "util_avg"));
    // Asleep for as long, it loses half.
    ticks(&mut drive, 600);
    let before = drive.probe(0, "util_avg");
    assert!(before > 1020);
    drive.next(0, Off::Blocked);
    drive.now += Span(32 * 1024 * 1024);
    drive.wake_on(0, 0, None);
    let after = drive.probe(0, "util_avg");
    assert!((before / 2 - 8..=before / 2 + 1).contains(&after), "{before} {after}");
}

/// Of two nodes with two cores each, a new task goes to the node with more idle CPUs, unless it
/// leaves only as many tasks behind as a node may keep: one.
#[test]
fn new_tasks_spread_over_nodes() {
    let mut drive = on("2 nodes x 2 cores", ms(1));
    idle(&mut drive);
    let mut placed = Vec::new();
    for task in 0..4 {
        drive.create_from(task, &TaskParams::default(), Some(0));
        let cpu = runqueue(&drive, task);
        placed.push(cpu);
        drive.pick(cpu as u16);
        drive.kicked();
    }
    // The first stays on the creator's node, on the CPU there that became idle last. That node has
    // one task with the second, which may be left there only if none ran yet.
    placed[..2].sort_unstable();
    assert_eq!((placed[0] / 2, placed[1] / 2), (0, 1), "{placed:?}");
    placed.sort_unstable();
    assert_eq!(placed, [0, 1, 2, 3]);
}

/// The previous CPU if it is idle; of two idle ones behind one cache, the previous one.
#[test]
fn woken_tasks_prefer_idle_cpus_of_their_cache() {
    let mut drive = on("2 llcs x 2 cores", ms(1));
    idle(&mut drive);
    run_on(&mut drive, 9, 1);
    drive.off(1, Off::Blocked);
    drive.pick(1);
    // Woken by a device that interrupts the idle CPU 0.
    drive.wake_on(9, 1, Some(0));
    assert_eq!(runqueue(&drive, 9), 1);
    drive.pick(1);
    drive.off(1, Off::Blocked);
    drive.pick(1);
    // Busy there: the idle CPU of the waker, which shares the cache.
    run_on(&mut drive, 1, 1);
    drive.wake_on(9, 1, Some(0));
    assert_eq!(runqueue(&drive, 9), 0);
    drive.kicked();
}

/// A waker that is about to sleep, alone on its CPU, gets the task to itself, since nothing idle is
/// looked for before the first balancing behind a cache.
#[test]
fn a_waker_that_sleeps_takes_the_task_along() {
    let mut drive = on("2 llcs x 2 cores", ms(1));
    idle(&mut drive);
    run_on(&mut drive, 9, 2);
    drive.off(2, Off::Blocked);
    drive.pick(2);
    for (task, cpu) in [(1, 1), (2, 2), (3, 3), (4, 0)] {
        run_on(&mut drive, task, cpu);
    }
    let sync = Enqueue::Wakeup { prev: CpuId(2), sync: true };
    drive.ready(9, sync, Some(1));
    assert_eq!(runqueue(&drive, 9), 1);
}

/// Between busy CPUs the load decides: of 1024 here and 3 x 1024 there, the task is better off
/// here; with 1024 each and its own load on top, it stays.
#[test]
fn the_load_decides_between_busy_cpus() {
    let there = |tasks: u32| {
        let mut drive = on("2 llcs x 2 cores", ms(1));
        idle(&mut drive);
        run_on(&mut drive, 9, 2);
        drive.off(2, Off::Blocked);
        drive.pick(2);
        for (task, cpu) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            run_on(&mut drive, task, cpu);
        }
        for task in 4..4 + tasks {
            drive.create_from(task, &pinned("2"), None);
        }
        ticks(&mut drive, 8);
        drive.wake_on(9, 2, Some(0));
        runqueue(&drive, 9)
    };
    assert_eq!([there(0), there(3)], [2, 0]);
}

/// Who wakes many others that wake many others does not draw them near: each of both has to have
/// changed its wakee at least as often as there are CPUs behind the cache, one of them as often
/// again.
#[test]
fn wide_wakers_do_not_draw_their_wakees() {
    let mut drive = on("2 llcs x 2 cores", ms(1));
    idle(&mut drive);
    for (task, cpu) in [(0, 0), (1, 2)] {
        run_on(&mut drive, task, cpu);
    }
    let wide = |drive: &mut Model, wakers: (u64, u64)| {
        drive.policy.tasks[0].waker.flips = wakers.0;
        drive.policy.tasks[1].waker.flips = wakers.1;
        drive.policy.is_wide(0, 1)
    };
    assert!(wide(&mut drive, (4, 2)) && wide(&mut drive, (2, 4)));
    assert!(!wide(&mut drive, (3, 2)) && !wide(&mut drive, (8, 1)) && !wide(&mut drive, (4, 3)));
    // Waking the same one again is no change; after more than a second without any, half is left.
    run_on(&mut drive, 2, 3);
    for wakee in [2, 2, 2] {
        drive.off(3, Off::Blocked);
        drive.pick(3);
        drive.policy.tasks[0].waker.flips *= u64::from(drive.policy.tasks[0].waker.last.is_some());
        drive.wake_on(wakee, 3, Some(0));
        let cpu = runqueue(&drive, wakee) as u16;
        assert_eq!(drive.pick_task(cpu), Some(wakee));
        if cpu != 3 {
            break;
        }
    }
    assert_eq!(drive.policy.tasks[0].waker.flips, 1);
}

/// Four cores of two threads. If some core may be idle, whole cores are looked for from behind the
/// target on; if none is found, the first idle thread on the way is taken, and no more cores are
/// looked for.
#[test]
fn idle_cores_are_looked_for_from_behind_the_target() {
    let mut drive = on("4 cores x 2 threads", ms(1));
    idle(&mut drive);
    drive.policy.domains.shared[0].scan = 8;
    assert!(drive.policy.domains.shared[0].idle_cores);
    run_on(&mut drive, 0, 2);
    run_on(&mut drive, 1, 4);
    let llc: Vec<usize> = (0..8).collect();
    drive.attach(9, &TaskParams::default());
    let mut search = |target, has_core| drive.policy.idle_cpu(9, &llc, has_core, target);
    // From 3 on: 3 and 5 have busy siblings, and 6 is the first of an idle core.
    assert_eq!([search(2, true), search(6, true), search(7, true)], [Some(6), Some(7), Some(0)]);
    // From 3 on, the first thread.
    assert_eq!([search(2, false), search(3, false)], [Some(3), Some(5)]);
    for (task, cpu) in [(2, 0), (3, 6)] {
        run_on(&mut drive, task, cpu);
    }
    let mut search = |target, has_core| drive.policy.idle_cpu(9, &llc, has_core, target);
    assert_eq!(search(4, true), Some(5));
    assert!(!drive.policy.domains.shared[0].idle_cores);
    // Two are looked at, none at all while the limit is 0.
    drive.policy.domains.shared[0].scan = 1;
    run_on(&mut drive, 5, 5);
    let mut search = |target| drive.policy.idle_cpu(9, &llc, false, target);
    assert_eq!([search(4), search(6)], [None, Some(7)]);
    drive.policy.domains.shared[0].scan = 0;
    assert_eq!(drive.policy.idle_cpu(9, &llc, true, 6), None);
}

/// Where a task ran before its last CPU is tried before any search.
#[test]
fn a_recently_used_cpu_is_tried() {
    let mut drive = on("4", ms(1));
    idle(&mut drive);
    run_on(&mut drive, 9, 3);
    drive.off(3, Off::Blocked);
    drive.pick(3);
    run_on(&mut drive, 3, 3);
    run_on(&mut drive, 0, 0);
    // No search yet: its recent CPU is where it was created, 0, which is busy. It remembers 3.
    drive.wake_on(9, 3, Some(0));
    assert_eq!((runqueue(&drive, 9), drive.policy.tasks[9].recent), (3, 3));
    drive.dequeue(9);
    drive.policy.tasks[9].recent = 1;
    drive.wake_on(9, 3, Some(0));
    assert_eq!((runqueue(&drive, 9), drive.policy.tasks[9].recent), (1, 3));
}

/// Three that always run on two CPUs, at 1000 ticks per second: a busy CPU of two tries every
/// 2 ms * 16 − 1 ms. Half of the difference is half of a task, so that the first attempt moves
/// none, and the second one, with half the measure, one.
#[test]
fn three_hogs_take_turns_on_two_cpus() {
    let mut drive = on("2", ms(1));
    idle(&mut drive);
    run_on(&mut drive, 0, 0);
    run_on(&mut drive, 1, 1);
    drive.create_from(2, &pinned("0"), None);
    drive.update(2, &TaskParams::default());
    ticks(&mut drive, 500);
    let mut at = Vec::new();
    for jiffy in 0..1_000 {
        let moves = drive.policy.moves;
        ticks(&mut drive, 1);
        if drive.policy.moves > moves {
            at.push(jiffy);
        }
        if jiffy % 10 == 0 {
            for cpu in 0..2 {
                drive.next(cpu, Off::Expired);
            }
        }
    }
    let gaps: Vec<i32> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| (62..=126).contains(gap)), "{gaps:?}");
}

/// A CPU with nothing to run pulls only if some CPU is known to have two tasks.
#[test]
fn a_cpu_with_nothing_to_run_pulls_from_overloaded_machines_only() {
    let pulled = |overloaded| {
        let mut drive = on("2", ms(1));
        run_on(&mut drive, 0, 0);
        drive.create_from(1, &pinned("0"), None);
        drive.update(1, &TaskParams::default());
        drive.now += ms(2);
        drive.policy.overloaded &= overloaded;
        drive.pick_task(1)
    };
    assert_eq!([pulled(true), pulled(false)], [Some(1), None]);
}

/// Within half a millisecond, a task that ran is left where it is.
#[test]
fn cache_hot_tasks_stay() {
    let pulled = |us| {
        let mut drive = on("2", ms(1));
        run_on(&mut drive, 0, 0);
        drive.create_from(1, &pinned("0"), None);
        drive.update(1, &TaskParams::default());
        drive.now += ms(2);
        drive.next(0, Off::Expired);
        drive.pass_us(us);
        drive.pick_task(1)
    };
    assert_eq!([pulled(499), pulled(500)], [None, Some(0)]);
}

/// A CPU that runs one of two tasks kicks the idle one at its tick, which pulls the other.
#[test]
fn an_idle_cpu_is_kicked_to_pull() {
    let mut drive = on("2", ms(1));
    idle(&mut drive);
    run_on(&mut drive, 0, 0);
    drive.create_from(1, &pinned("0"), None);
    drive.update(1, &TaskParams::default());
    drive.now += ms(3);
    assert_eq!(runqueue(&drive, 1), 0);
    drive.tick_on(0);
    assert_eq!(runqueue(&drive, 1), 1);
    assert_eq!(drive.pick_task(1), Some(1));
}

/// Two tasks on the threads of one core, and another core idle: its first thread tries every 4 ms
/// to get one, finds both running, and has one pushed after the fourth failure.
#[test]
fn one_of_two_siblings_is_pushed_to_an_idle_core() {
    let mut drive = on("2 cores x 2 threads", ms(1));
    idle(&mut drive);
    run_on(&mut drive, 0, 0);
    run_on(&mut drive, 1, 1);
    let mut failures = Vec::new();
    while drive.policy.cpus[0].push_to.is_none() && failures.len() < 100 {
        ticks(&mut drive, 1);
        failures.push(drive.policy.domains.of[2][1].failed);
    }
    assert_eq!(drive.policy.cpus[0].push_to, Some(2), "{failures:?}");
    assert_eq!(failures.last(), Some(&4));
    assert!(failures.len() <= 20, "{failures:?}");
    assert_eq!(drive.next(0, Off::Preempted), None);
    assert_eq!((runqueue(&drive, 0), drive.pick_task(2)), (2, Some(0)));
    assert_eq!(drive.policy.domains.of[2][1].failed, 0);
}

/// Bound tasks that could go to another CPU of the group go there.
#[test]
fn bound_tasks_go_to_another_cpu_of_the_group() {
    let mut drive = on("2 llcs x 2 cores", ms(1));
    idle(&mut drive);
    for (task, cpu) in [(0, 0), (1, 1)] {
        run_on(&mut drive, task, cpu);
    }
    for task in 2..6 {
        drive.create_from(task, &pinned("0"), None);
        drive.update(task, &pinned("0,3"));
    }
    ticks(&mut drive, 20);
    let moved: Vec<u32> = (2..6).filter(|&task| runqueue(&drive, task) == 3).collect();
    assert!(!moved.is_empty(), "CPU 2 cannot take them, and lets 3 have some");
}
