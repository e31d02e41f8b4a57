//! Balancing: when, from whom, how much.

use alloc::vec::Vec;

use super::{Gfs, set};
use anysched_core::{Off, Scheduler, TaskParams, Time};

/// A group per CPU; all run something of deadline 6 ms that is never taken off.
fn busy(machine: &str, settings: &[(&str, &str)]) -> Gfs {
    let mut gfs = Gfs::new(machine, &[settings, &[("grouping", "core")]].concat());
    for cpu in 0..gfs.policy.cpus.len() as u16 {
        gfs.start(cpu, u32::from(cpu), -20);
    }
    gfs
}

/// `count` tasks of nice 0 wait in the group of `cpu`, numbered from `first`.
fn pile(gfs: &mut Gfs, cpu: u16, first: u32, count: u32) {
    let params = TaskParams::default();
    (first..first + count).for_each(|task| gfs.create(task, &params, Some(cpu)));
}

const DEEP: &str = "2 nodes x 2 packages x 2 cores";

/// In each step groups look in turn, 0 first. At 64 ms group 1 takes (13 - 1) / 2 from group 0.
/// At 128 ms group 2 takes (7 - 1) / 2 from group 0, then group 3 takes (4 - 1) / 2 from group 2
/// and (7 - 2) / 2 from group 1 in the package with more. At 192 ms 4 to 3 are (4 - 3) / 2 = 0
/// tasks. At 256 ms group 2 takes (5 - 3) / 2 from group 1; then the other node: each (4 - 1) / 2
/// from a group of 4.
#[test]
fn intervals_grow_with_the_level() {
    let mut gfs = busy(DEEP, &[]);
    pile(&mut gfs, 0, 10, 12);
    let mut steps = Vec::new();
    for _ in 0..5 {
        steps.push((gfs.timer(), gfs.loads()));
    }
    let expected = [
        (1, [13, 1, 1, 1, 1, 1, 1, 1]),
        (64, [7, 7, 1, 1, 1, 1, 1, 1]),
        (128, [4, 5, 3, 4, 1, 1, 1, 1]),
        (192, [4, 5, 3, 4, 1, 1, 1, 1]),
        (256, [3, 3, 3, 3, 2, 2, 2, 2]),
    ];
    assert_eq!(steps, expected.map(|(ms, loads)| (ms, loads.to_vec())));
}

/// The same with idle CPUs: intervals of 1, 2 and 4 ms. A group that got something is busy.
/// At 2 ms group 2 takes (7 - 0) / 2, group 3 (3 - 0) / 2 from it and (6 - 1) / 2 from group 1. At
/// 4 ms group 4 takes (4 - 0) / 2 from group 0; group 5 (2 - 0) / 2 from that and (4 - 1) / 2 from
/// group 1; group 6 (2 - 0) / 2 from group 5 and (3 - 1) / 2 from group 1; group 7 (2 - 0) / 2
/// from group 6 and (3 - 1) / 2 from group 3.
#[test]
fn idle_groups_look_sooner() {
    let mut gfs = Gfs::new(DEEP, &[("grouping", "core")]);
    gfs.start(0, 0, -20);
    pile(&mut gfs, 0, 10, 12);
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push((gfs.timer(), gfs.loads()));
    }
    let expected = [
        (1, [7, 6, 0, 0, 0, 0, 0, 0]),
        (2, [4, 4, 2, 3, 0, 0, 0, 0]),
        (3, [4, 4, 2, 3, 0, 0, 0, 0]),
        (4, [2, 2, 2, 2, 1, 1, 1, 2]),
    ];
    assert_eq!(steps, expected.map(|(ms, loads)| (ms, loads.to_vec())));
    assert_eq!(gfs.kicked(), [1, 2, 3, 4, 5, 6, 7]);
}

/// At 1 ms group 0 finds nothing to take and looks again 100 us later. Group 1 takes the only task
/// that waits, so that nothing waits for a moment: from then on no group looks before 2 ms, but the
/// turn of group 0 has been planned already.
#[test]
fn a_turn_that_is_planned_outlasts_a_moment_without_waiting_tasks() {
    let settings = [("grouping", "core"), ("core_interval", "100us"), ("busy_factor", "1")];
    let mut gfs = Gfs::new("3 cores", &settings);
    gfs.start(0, 0, -20);
    gfs.start(2, 1, -20);
    pile(&mut gfs, 2, 10, 1);
    assert_eq!((gfs.timer(), gfs.loads()), (1, Vec::from([1, 1, 1])));
    assert_eq!(gfs.policy.next_timer(), Some(Time(1_100_000)));
}

#[test]
fn nobody_looks_while_nothing_waits() {
    let mut gfs = busy("2", &[]);
    assert_eq!(gfs.policy.next_timer(), None);
    gfs.now += anysched_core::Span::from_us(100_300);
    pile(&mut gfs, 0, 10, 1);
    assert_eq!(gfs.timer(), 101, "the next full ms");
    gfs.off(0, Off::Blocked);
    assert_eq!(gfs.pick(0), Some(10));
    assert_eq!(gfs.policy.next_timer(), None);
}

#[test]
fn intervals_are_parameters() {
    let settings = [("core_interval", "10ms"), ("busy_factor", "5")];
    let mut gfs = busy("2", &settings);
    pile(&mut gfs, 0, 10, 1);
    assert_eq!([gfs.timer(), gfs.timer(), gfs.timer()], [1, 10, 20]);
    let mut idle = Gfs::new("2", &[&settings[..], &[("grouping", "core")]].concat());
    idle.start(0, 0, -20);
    // It may not be moved.
    idle.asleep(10, 0, set("0"));
    idle.wake(10, 0);
    assert_eq!([idle.timer(), idle.timer(), idle.timer()], [1, 2, 4]);
    let mut never = busy("2", &[("core_interval", "none")]);
    pile(&mut never, 0, 10, 9);
    never.timer();
    assert_eq!((never.policy.next_timer(), never.loads()), (None, Vec::from([10, 1])));
}

/// Loads of 10 and 8 are 125 to 100; 11 and 8 are more, and (11 - 8) / 2 = 1.
#[test]
fn a_group_must_have_more_than_the_threshold() {
    for (threshold, waiting, loads) in
        [("125", 9, [10, 8]), ("124", 9, [9, 9]), ("125", 10, [10, 9]), ("138", 10, [11, 8])]
    {
        let mut gfs = busy("2", &[("threshold", threshold)]);
        pile(&mut gfs, 0, 10, waiting);
        pile(&mut gfs, 1, 30, 7);
        gfs.at(64);
        gfs.call(|gfs, cx| gfs.timer(cx));
        assert_eq!(gfs.loads(), loads, "{threshold} percent");
    }
}

#[test]
fn the_latest_are_moved_first() {
    let mut gfs = Gfs::new("2", &[("grouping", "core")]);
    gfs.start(0, 0, 0);
    gfs.start(1, 1, 19);
    for (task, nice) in [(10, -20), (11, 0), (12, 5), (13, 19)] {
        gfs.create(task, &TaskParams::nice(nice), Some(0));
    }
    gfs.kicked();
    assert_eq!((gfs.timer(), gfs.timer()), (1, 64));
    // (5 - 1) / 2: tasks 13 and 12. Task 13 is as late as what CPU 1 runs, task 12 sooner.
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([3, 3]), Vec::from([1])));
    assert_eq!(gfs.switch(1), Some(12));
    assert_eq!(gfs.switch(0), Some(10));
}

#[test]
fn what_may_not_go_is_passed_over() {
    let mut gfs = busy("2", &[]);
    pile(&mut gfs, 0, 10, 4);
    gfs.pin(13, 0, "0");
    gfs.timer();
    gfs.timer();
    // Tasks 12 and 11.
    assert_eq!((gfs.loads(), gfs.work.scanned), (Vec::from([3, 3]), 3));
    gfs.off(1, Off::Exited);
    // Of equals the first to arrive there, which is the last of the other group.
    assert_eq!(gfs.pick(1), Some(12));
}

/// 10 tasks on 3 CPUs beside 1 on 1: (10 - 3) / 4 = 1. 13: (13 - 3) / 4 = 2. The other way round,
/// 9 on 1 beside 3 on 3: (27 - 3) / 4 = 6, and all have 3 each.
#[test]
fn loads_are_per_cpu() {
    for (cpu, waiting, loads) in [(0, 7, [9, 2]), (0, 10, [11, 3]), (3, 8, [9, 3])] {
        let mut gfs = Gfs::new("4", &[("grouping", "0-2;3")]);
        (0..4).for_each(|cpu| gfs.start(cpu, u32::from(cpu), -20));
        pile(&mut gfs, cpu, 10, waiting);
        assert_eq!((gfs.timer(), gfs.timer()), (1, 64));
        assert_eq!(gfs.loads(), loads);
    }
}

/// Packages of 6 + 1 and 4 + 4 tasks: CPU 4 looks at the second one, and takes (4 - 1) / 2. Nobody
/// else may take anything.
#[test]
fn the_busiest_domain_counts_before_the_busiest_group() {
    let mut gfs = busy("3 packages x 2 cores", &[]);
    let mut task = 10;
    for (cpu, count, affinity) in [(0, 5, "0,4"), (2, 3, "2,4"), (3, 3, "3-4")] {
        for _ in 0..count {
            let params = TaskParams { affinity: set(affinity), ..TaskParams::default() };
            gfs.create(task, &params, Some(cpu));
            task += 1;
        }
    }
    assert_eq!((gfs.timer(), gfs.timer()), (1, 64));
    assert_eq!(gfs.loads(), [6, 1, 4, 4, 1, 1]);
    assert_eq!(gfs.timer(), 128);
    assert_eq!(gfs.loads(), [6, 1, 3, 4, 2, 1]);
}

#[test]
fn levels_are_looked_at_from_below() {
    let settings = [("core_interval", "200ms"), ("package_interval", "100ms")];
    let mut gfs = busy("2 packages x 2 cores", &settings);
    pile(&mut gfs, 0, 10, 4);
    assert_eq!((gfs.timer(), gfs.timer()), (1, 200));
    // Group 1 takes (5 - 1) / 2 from group 0, group 2 (3 - 1) / 2 from that; group 3 then
    // (2 - 1) / 2 = 0 from its neighbour and (3 - 1) / 2 from group 1.
    assert_eq!(gfs.loads(), [2, 2, 2, 2]);
    let mut never = busy("2 packages x 2 cores", &[("core_interval", "none")]);
    pile(&mut never, 0, 10, 4);
    never.timer();
    assert_eq!(never.policy.next_timer(), None);
}

#[test]
fn a_cpu_that_runs_out_of_work_tries_at_once() {
    let mut gfs = busy("2", &[]);
    pile(&mut gfs, 0, 10, 4);
    gfs.off(1, Off::Blocked);
    assert_eq!(gfs.pick(1), None, "too soon: it has looked at 0");
    gfs.at(1);
    // (5 - 0) / 2 = 2 tasks: 13 and 12. Task 13 arrives first.
    assert_eq!(gfs.pick(1), Some(13));
    assert_eq!(gfs.loads(), [3, 2]);
    // Running out again within a ms, it does not look.
    gfs.off(1, Off::Exited);
    assert_eq!(gfs.pick(1), Some(12));
    gfs.off(1, Off::Exited);
    assert_eq!(gfs.pick(1), None);
    gfs.at(2);
    assert_eq!(gfs.pick(1), Some(11));
}

#[test]
fn idle_cpus_of_the_group_are_kicked() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start(0, 0, 0);
    gfs.start(1, 1, 0);
    (10..16).for_each(|task| gfs.create(task, &TaskParams::default(), Some(0)));
    gfs.kicked();
    assert_eq!(gfs.timer(), 1);
    // (8 · 2 - 0) / 4 = 4 tasks, two of which are told to idle CPUs; nothing runs that is later.
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([4, 4]), Vec::from([2, 3])));
}

#[test]
fn groups_without_cpus_take_no_part() {
    let mut gfs = busy("2", &[]);
    pile(&mut gfs, 0, 10, 8);
    gfs.set_online(1, false);
    gfs.off(1, Off::Exited);
    gfs.timer();
    gfs.timer();
    assert_eq!(gfs.loads(), [9, 0]);
}
