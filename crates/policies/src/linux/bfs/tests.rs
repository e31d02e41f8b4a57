//! Golden values and events, worked out by hand from the rules.
//!
//! Deadlines used below, in ms after the time of the refill: nice -20: 6; -10: 15.28125;
//! -5: 24.375 (520/128 · 6); 0: 39.1875; 5: 63; 19: 238.546875.

use alloc::vec::Vec;

use super::OneQueue;
use crate::linux::virtual_deadline::RATIOS;
use crate::linux::virtual_deadline::rig::Rig;
use crate::policy;
use anysched_core::{CpuSet, Enqueue, Machine, Off, Scheduler, Span, TaskParams};

type Bfs = Rig<OneQueue>;

const ALL: CpuSet = CpuSet::All;

#[test]
fn ratios_are_those_of_the_source() {
    let table = [
        128, 140, 154, 169, 185, 203, 223, 245, 269, 295, 324, 356, 391, 430, 473, 520, 572, 629,
        691, 760, 836, 919, 1010, 1111, 1222, 1344, 1478, 1625, 1787, 1965, 2161, 2377, 2614, 2875,
        3162, 3478, 3825, 4207, 4627, 5089,
    ];
    assert_eq!(RATIOS, table);
    let mut bfs = Bfs::new("1", &[]);
    for (index, ratio) in table.into_iter().enumerate() {
        bfs.queue(index as u32, index as i8 - 20);
        assert_eq!(bfs.deadline(index as u32), i64::from(ratio) * 6_000_000 / 128);
    }
}

#[test]
fn golden_deadlines() {
    let mut bfs = Bfs::new("1", &[]);
    bfs.at(1000);
    for (task, (nice, ns)) in
        [(0, 39_187_500), (-20, 6_000_000), (19, 238_546_875)].iter().enumerate()
    {
        bfs.queue(task as u32, *nice);
        assert_eq!(bfs.deadline(task as u32), 1_000_000_000 + ns);
        assert_eq!(bfs.left(task as u32), 6_000_000);
    }
    let mut source = Bfs::new("1", &[("rr_interval", "6291456ns")]);
    source.queue(0, 0);
    // 6 ms of 2^20 ns each.
    assert_eq!(source.deadline(0), 836 * 6 * (1 << 20) / 128);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let build = policy("bfs").unwrap().build;
    let machine = Machine::flat(1).unwrap();
    for (name, wrong) in [("rr_interval", ["999us", "1049ms"]), ("tick", ["1001ms", "2s"])] {
        wrong.iter().for_each(|wrong| assert!(build(&machine, &[(name, wrong)]).is_err()));
    }
    for (name, right) in [("rr_interval", ["1ms", "1048ms"]), ("tick", ["0", "1s"])] {
        right.iter().for_each(|right| assert!(build(&machine, &[(name, right)]).is_ok()));
    }
}

#[test]
fn less_than_100us_is_refilled() {
    for (ran, left, deadline) in [(5_900, 100_000, 39_187_500), (5_901, 6_000_000, 45_088_500)] {
        for why in [Off::Preempted, Off::Yielded, Off::Blocked] {
            let mut bfs = Bfs::new("1", &[]);
            bfs.start(0, 0, 0);
            bfs.pass_us(ran);
            bfs.off(0, why);
            // now + 39.1875 ms if it was refilled.
            assert_eq!((bfs.left(0), bfs.deadline(0)), (left, deadline), "{why:?} after {ran} us");
        }
    }
}

#[test]
fn slices_end_exactly_without_a_tick() {
    let mut bfs = Bfs::new("1", &[]);
    assert_eq!(bfs.policy.tick_period(), None);
    bfs.queue(0, 0);
    assert_eq!(bfs.pick_slice(0), Some((0, Span::from_ms(6))));
    bfs.at(2);
    bfs.off(0, Off::Preempted);
    assert_eq!(bfs.pick_slice(0), Some((0, Span::from_ms(4))));
    bfs.at(6);
    bfs.off(0, Off::Expired);
    assert_eq!(bfs.pick_slice(0), Some((0, Span::from_ms(6))));
    assert_eq!(bfs.deadline(0), 45_187_500);
}

#[test]
fn the_tick_is_that_of_the_machine_or_1ms() {
    for (machine, setting, period) in
        [(None, "auto", 1_000), (Some(4_000), "auto", 4_000), (Some(4_000), "2ms", 2_000)]
    {
        let machine = Machine::flat(1).unwrap().with_tick(machine.map(Span::from_us));
        let mut bfs = Bfs::on(machine, &[("tick", setting)]);
        assert_eq!(bfs.policy.tick_period(), Some(Span::from_us(period)));
        bfs.queue(0, 0);
        assert_eq!(bfs.pick_slice(0), Some((0, Span::MAX)));
    }
}

/// The tick, in ms, that ends a slice of which `used` us had been used when its CPU picked at
/// `picked` us.
fn expires(dither: &str, used: u64, picked: u64) -> u64 {
    let mut bfs = Bfs::new("1", &[("tick", "1ms"), ("dither", dither)]);
    bfs.queue(0, 0);
    bfs.pick(0);
    bfs.pass_us(used);
    bfs.off(0, Off::Blocked);
    bfs.pass_us(picked - used);
    bfs.wake(0, 0);
    bfs.pick(0);
    bfs.kicked();
    let tick = (1..20).find(|&ms| {
        bfs.at(ms);
        bfs.tick(0)
    });
    bfs.off(0, Off::Preempted);
    assert_eq!(bfs.left(0), 6_000_000, "it has been refilled");
    tick.unwrap()
}

#[test]
fn the_first_half_of_a_tick_ends_slices_early() {
    // Half a tick after the last one is the first half; 0.5 ms are left at 6 ms, which is not
    // more than half a tick.
    assert_eq!(expires("true", 0, 500), 6);
    assert_eq!(expires("false", 0, 500), 7);
    // The second half: 0.5 ms are left at 6 ms too.
    assert_eq!(expires("true", 250, 750), 7);
    assert_eq!(expires("true", 1, 501), 7);
    assert_eq!(expires("true", 0, 501), 7);
    // The first half: 0.1 ms more than half a tick has been used.
    assert_eq!(expires("true", 100, 499), 6);
    assert_eq!(expires("true", 0, 0), 6);
    // 0.1 ms is enough to go on without dither, 0.099 ms is not.
    assert_eq!(expires("false", 0, 100), 7);
    assert_eq!(expires("false", 0, 99), 6);
}

#[test]
fn a_pick_in_another_half_decides_anew() {
    let mut bfs = Bfs::new("1", &[("tick", "1ms")]);
    bfs.start(0, 0, 0);
    bfs.pass_us(600);
    // In the second half: 0.4 ms more have to pass than with dither.
    assert_eq!(bfs.switch(0), Some(0));
    let ticks: Vec<u64> = (1..8)
        .filter(|&ms| {
            bfs.at(ms);
            bfs.tick(0)
        })
        .collect();
    // Nothing is left at 6 ms.
    assert_eq!(ticks, [6, 7]);
}

#[test]
fn a_new_task_has_its_own_slice() {
    let mut bfs = Bfs::new("1", &[]);
    bfs.start(0, 0, -5);
    bfs.at(2);
    bfs.create(1, &TaskParams::default(), Some(0));
    assert_eq!((bfs.left(1), bfs.deadline(1)), (6_000_000, 41_187_500));
    assert_eq!(bfs.left(0), 6_000_000, "as of the last charge");
}

#[test]
fn a_new_task_shares_its_creators_slice() {
    let mut bfs = Bfs::new("1", &[("fork", "share"), ("tick", "1ms")]);
    bfs.start(0, 0, -5);
    bfs.at(2);
    bfs.tick(0);
    bfs.pass_us(500);
    bfs.create(1, &TaskParams::default(), Some(0));
    // What has passed since the tick is not seen: 4 ms for two.
    for task in [0, 1] {
        assert_eq!((bfs.left(task), bfs.deadline(task)), (2_000_000, 24_375_000));
    }
    // From outside it shares with nobody.
    bfs.create(2, &TaskParams::default(), None);
    assert_eq!((bfs.left(2), bfs.deadline(2)), (6_000_000, 41_687_500));
}

#[test]
fn less_than_200us_are_not_shared() {
    for (ran, left, creator, deadline) in
        [(5_800, 100_000, 100_000, 24_375_000), (5_801, 6_000_000, 0, 5_801_000 + 39_187_500)]
    {
        let settings = [("fork", "share"), ("tick", "100ms"), ("dither", "false")];
        let mut bfs = Bfs::new("1", &settings);
        bfs.start(0, 0, -5);
        bfs.pass_us(ran);
        bfs.tick(0);
        bfs.create(1, &TaskParams::default(), Some(0));
        assert_eq!((bfs.left(1), bfs.left(0)), (left, creator));
        assert_eq!(bfs.deadline(1), deadline);
        assert_eq!(bfs.kicked(), [0]);
    }
}

#[test]
fn a_creators_cpu_picks_again_unless_one_is_idle() {
    let mut bfs = Bfs::new("3", &[]);
    bfs.start(0, 0, 0);
    bfs.start(1, 1, 19);
    bfs.create(2, &TaskParams::nice(19), Some(0));
    assert_eq!(bfs.kicked(), [2], "idle");
    assert_eq!(bfs.pick(2), Some(2));
    // CPU 1 runs something later, but that is not asked.
    bfs.create(3, &TaskParams::nice(5), Some(0));
    assert_eq!(bfs.kicked(), [0]);
    assert_eq!(bfs.switch(0), Some(0), "39.1875 ms are before 63 ms");
    // From outside, the latest is preempted: both of nice 19, the lowest.
    bfs.create(4, &TaskParams::nice(0), None);
    assert_eq!(bfs.kicked(), [1]);
}

/// The idle CPU that a task gets which last ran on `near` and may use `affinity`.
fn best(machine: &str, idle: &str, near: u16, affinity: &str) -> Vec<u16> {
    let idle = CpuSet::parse(idle).unwrap();
    let mut bfs = Bfs::new(machine, &[]);
    bfs.start_all();
    for cpu in idle.iter() {
        bfs.off(cpu.0, Off::Exited);
        assert_eq!(bfs.pick(cpu.0), None);
    }
    bfs.asleep(99, 19, CpuSet::parse(affinity).unwrap());
    bfs.wake(99, near);
    bfs.kicked()
}

const BIG: &str = "2 nodes x 2 llcs x 2 cores x 2 threads";

/// CPU 0 is near: CPU 1 is its sibling, 2 and 3 are behind its cache, 4 to 7 in its node behind
/// another one; 8 to 11 and 12 to 15 are the caches of the other node. Each set has the best CPU
/// and all that are worse.
#[test]
fn idle_cpus_are_ranked() {
    let worse = [
        // The one it last ran on, on a busy core behind a busy cache.
        ("0,4-15", 0),
        // An idle core behind its cache; its sibling's core is busy.
        ("1-15", 2),
        ("1,3,4-15", 4),
        // An idle core behind a cache that is not; CPU 5 is on a busy core.
        ("1,3,5-15", 6),
        // Busy cores: the sibling, its cache, its node.
        ("1,3,5,8-15", 1),
        ("3,5,8-15", 3),
        ("5,8-15", 5),
        // The other node: an idle cache, an idle core, the rest.
        ("9-15", 12),
        ("9-11,13-15", 10),
        ("9,11,13-15", 14),
        ("9,11,13,15", 9),
        ("15", 15),
    ];
    for (idle, best_cpu) in worse {
        assert_eq!(best(BIG, idle, 0, "0-15"), [best_cpu], "of {idle}");
    }
    assert_eq!(best(BIG, "4,6,12-15", 4, "0-15"), [4]);
    assert_eq!(best(BIG, "1-3,12-15", 12, "0-15"), [12]);
    // Of equals the lowest: two idle caches of the node.
    assert_eq!(best("3 llcs x 2 cores", "2-5", 0, "0-5"), [2]);
    // An idle cache before an idle core behind a busy one, whose number is lower.
    assert_eq!(best("3 llcs x 2 cores", "3-5", 0, "0-5"), [4]);
    assert_eq!(best("3 packages x 2 cores", "3-5", 0, "0-5"), [4]);
}

#[test]
fn only_allowed_idle_cpus_count() {
    // The sibling is on an idle core, because CPU 0 is idle too.
    assert_eq!(best(BIG, "0-15", 0, "1-15"), [1]);
    assert_eq!(best(BIG, "0-15", 0, "3,6,9"), [3]);
    assert_eq!(best(BIG, "1-15", 0, "1,3"), [3]);
    assert_eq!(best(BIG, "1-15", 0, "9,13"), [9]);
    // It is the latest of all and preempts nobody.
    assert_eq!(best(BIG, "1-7", 0, "8-15"), []);
}

#[test]
fn equal_deadlines_are_served_in_order_of_arrival() {
    for queue in ["list", "tree"] {
        let mut bfs = Bfs::new("1", &[("queue", queue)]);
        for (task, nice) in [(0, 0), (1, -5), (2, 0), (3, -5)] {
            bfs.queue(task, nice);
        }
        let mut order = Vec::new();
        while let Some(task) = bfs.pick(0) {
            order.push(task);
            bfs.off(0, Off::Exited);
        }
        assert_eq!(order, [1, 3, 0, 2]);
    }
}

#[test]
fn picks_are_charged_for_all_that_wait() {
    for queue in ["list", "tree"] {
        let mut bfs = Bfs::new("1", &[("queue", queue)]);
        (0..5).for_each(|task| bfs.queue(task, 0));
        bfs.pick(0);
        assert_eq!((bfs.work.scanned, bfs.work.queued), (5, 4));
    }
}

#[test]
fn the_latest_is_preempted_if_it_is_strictly_later() {
    let mut bfs = Bfs::new("4", &[]);
    for (cpu, nice) in [(0, 0), (1, 5), (2, 5), (3, 0)] {
        bfs.start(cpu, u32::from(cpu), nice);
    }
    bfs.asleep(4, 5, ALL);
    bfs.wake(4, 0);
    assert_eq!(bfs.kicked(), [], "as late as the latest");
    bfs.asleep(5, 4, ALL);
    bfs.wake(5, 0);
    assert_eq!(bfs.kicked(), [1], "the lowest of two");
    // CPU 1 counts as running task 5 before it has picked.
    bfs.asleep(6, 4, ALL);
    bfs.wake(6, 0);
    assert_eq!(bfs.kicked(), [2]);
    bfs.asleep(7, 4, ALL);
    bfs.wake(7, 0);
    assert_eq!(bfs.kicked(), []);
    assert_eq!((bfs.switch(1), bfs.switch(2)), (Some(5), Some(6)));
}

#[test]
fn the_latest_among_allowed_cpus_is_preempted() {
    let mut bfs = Bfs::new("3", &[]);
    for (cpu, nice) in [(0, 19), (1, 0), (2, 5)] {
        bfs.start(cpu, u32::from(cpu), nice);
    }
    bfs.asleep(3, -20, CpuSet::parse("1-2").unwrap());
    bfs.wake(3, 0);
    assert_eq!(bfs.kicked(), [2]);
    bfs.asleep(4, 5, CpuSet::parse("1-2").unwrap());
    bfs.wake(4, 0);
    assert_eq!(bfs.kicked(), []);
}

#[test]
fn a_waker_about_to_sleep_preempts_nobody() {
    let mut bfs = Bfs::new("2", &[]);
    bfs.start(0, 0, 0);
    bfs.asleep(2, -20, ALL);
    bfs.wake_sync(2, 0);
    assert_eq!(bfs.kicked(), [1], "an idle CPU is told");
    assert_eq!(bfs.pick(1), Some(2));
    bfs.asleep(3, -20, ALL);
    bfs.wake_sync(3, 0);
    assert_eq!(bfs.kicked(), []);
    bfs.off(0, Off::Blocked);
    assert_eq!(bfs.pick(0), Some(3));
}

#[test]
fn a_yielder_keeps_deadline_and_slice() {
    let mut bfs = Bfs::new("1", &[]);
    bfs.start(0, 0, 0);
    bfs.queue(1, 5);
    bfs.at(2);
    bfs.off(0, Off::Yielded);
    assert_eq!((bfs.left(0), bfs.deadline(0)), (4_000_000, 39_187_500));
    assert_eq!(bfs.pick_slice(0), Some((0, Span::from_ms(4))), "before 63 ms");
    bfs.queue(2, -20);
    bfs.off(0, Off::Yielded);
    assert_eq!(bfs.pick(0), Some(2), "8 ms are before 39.1875 ms");
}

#[test]
fn what_blocks_keeps_deadline_and_slice() {
    let mut bfs = Bfs::new("1", &[]);
    bfs.start(0, 0, 0);
    bfs.at(2);
    bfs.off(0, Off::Blocked);
    assert_eq!(bfs.pick(0), None);
    bfs.at(500);
    bfs.wake(0, 0);
    assert_eq!((bfs.left(0), bfs.deadline(0)), (4_000_000, 39_187_500));
}

/// CPUs 0 to n run tasks of their numbers and nice 0; task 10 of nice -20 has preempted the one of
/// CPU 0, which sticks to it.
fn stuck(machine: &str, settings: &[(&str, &str)]) -> Bfs {
    let mut bfs = Bfs::new(machine, settings);
    bfs.start(0, 0, 1);
    (1..bfs.policy.cpus.len() as u16).for_each(|cpu| bfs.start(cpu, u32::from(cpu), 0));
    bfs.queue(10, -20);
    assert_eq!(bfs.kicked(), [0], "the latest");
    assert_eq!(bfs.switch(0), Some(10));
    assert_eq!(bfs.kicked(), []);
    bfs
}

#[test]
fn a_preempted_task_sticks_to_its_cpu() {
    for queue in ["list", "tree"] {
        for (sticky, other, own) in [("true", 11, 0), ("false", 0, 11)] {
            let mut bfs = stuck("2", &[("sticky", sticky), ("queue", queue)]);
            // The latest deadline of all, but it sticks nowhere.
            bfs.queue(11, 19);
            bfs.off(1, Off::Exited);
            assert_eq!(bfs.pick(1), Some(other));
            bfs.off(0, Off::Exited);
            assert_eq!(bfs.pick(0), Some(own));
        }
    }
}

#[test]
fn it_is_taken_elsewhere_if_nothing_else_waits() {
    for queue in ["list", "tree"] {
        let mut bfs = stuck("2", &[("queue", queue)]);
        bfs.off(1, Off::Exited);
        assert_eq!(bfs.pick(1), Some(0));
        // And sticks no longer: preempted beside an empty queue, it does not stick to CPU 1.
        bfs.off(0, Off::Exited);
        assert_eq!(bfs.pick(0), None);
        bfs.off(1, Off::Preempted);
        bfs.queue(11, 19);
        assert_eq!(bfs.pick(0), Some(0));
    }
}

#[test]
fn nothing_sticks_if_nothing_waits() {
    let mut bfs = Bfs::new("2", &[]);
    bfs.start_all();
    bfs.off(0, Off::Preempted);
    // Task 0 was alone when it was preempted.
    bfs.queue(2, 19);
    bfs.off(1, Off::Exited);
    assert_eq!(bfs.pick(1), Some(0));
}

#[test]
fn the_nearest_of_those_that_stick_is_taken_first() {
    for queue in ["list", "tree"] {
        let mut bfs = Bfs::new("2 llcs x 2 cores", &[("queue", queue)]);
        for (cpu, nice) in [(0, 0), (1, 10), (2, 9), (3, 0)] {
            bfs.start(cpu, u32::from(cpu), nice);
        }
        for (task, cpu) in [(10, 1), (11, 2)] {
            bfs.queue(task, -20);
            assert_eq!(bfs.kicked(), [cpu]);
            assert_eq!(bfs.switch(cpu), Some(task));
        }
        // Task 1 is next door, task 2 would be due sooner.
        bfs.off(0, Off::Exited);
        assert_eq!(bfs.pick(0), Some(1));
        bfs.off(0, Off::Exited);
        assert_eq!(bfs.pick(0), Some(2));
    }
}

#[test]
fn the_next_one_preempted_there_takes_its_place() {
    let mut bfs = stuck("2", &[]);
    bfs.asleep(12, -20, CpuSet::parse("0").unwrap());
    bfs.at(6);
    // The slice of task 10 is over: its next deadline, 12 ms, is behind that of task 12.
    bfs.wake(12, 0);
    bfs.off(0, Off::Expired);
    assert_eq!(bfs.pick(0), Some(12));
    // Now task 10 sticks to CPU 0; task 0, of deadline 43.078125 ms, does not any more.
    bfs.off(1, Off::Exited);
    assert_eq!(bfs.pick(1), Some(0));
}

#[test]
fn an_idle_cpu_is_kicked_for_what_sticks_no_longer() {
    let mut bfs = stuck("2", &[("scaling", "true")]);
    bfs.off(1, Off::Exited);
    assert_eq!(bfs.pick(1), None, "it leaves task 0 alone");
    bfs.asleep(12, -20, CpuSet::parse("0").unwrap());
    bfs.at(6);
    bfs.wake(12, 0);
    assert_eq!(bfs.kicked(), []);
    bfs.off(0, Off::Expired);
    assert_eq!(bfs.kicked(), [1]);
    assert_eq!(bfs.pick(1), Some(0));
    assert_eq!(bfs.pick(0), Some(12));
}

#[test]
fn a_cpu_that_scales_leaves_them_alone() {
    for queue in ["list", "tree"] {
        let settings = [("scaling", "true"), ("queue", queue)];
        let mut bfs = stuck("2", &settings);
        bfs.off(1, Off::Exited);
        assert_eq!(bfs.pick(1), None);
        bfs.off(0, Off::Exited);
        assert_eq!(bfs.pick(0), Some(0));
        let nature = (policy("bfs").unwrap().nature)(&settings).unwrap();
        assert!(!nature.work_conserving);
    }
    assert!((policy("bfs").unwrap().nature)(&[]).unwrap().work_conserving);
}

/// Whether CPU 1 leaves task 0 alone while task 11, which is later, waits.
fn sticks(bfs: &mut Bfs) -> bool {
    bfs.queue(11, 19);
    bfs.off(1, Off::Exited);
    match bfs.pick(1) {
        Some(11) => true,
        Some(0) => false,
        other => panic!("{other:?} is neither"),
    }
}

#[test]
fn what_makes_it_stick_no_longer() {
    assert!(sticks(&mut stuck("2", &[])));

    let mut affinity = stuck("2", &[]);
    affinity.pin(0, 1, "0-1");
    assert!(!sticks(&mut affinity));

    for (nice, stays) in [(-5, false), (1, true), (5, true)] {
        let mut niced = stuck("2", &[]);
        niced.update(0, &TaskParams::nice(nice));
        assert_eq!(sticks(&mut niced), stays, "from nice 1 to {nice}");
    }

    let mut hotplug = stuck("2", &[]);
    hotplug.set_online(0, false);
    hotplug.off(0, Off::Exited);
    assert!(!sticks(&mut hotplug));

    let mut wake = stuck("2", &[]);
    wake.call(|bfs, cx| bfs.dequeue(cx, anysched_core::TaskId(0)));
    wake.wake(0, 0);
    assert!(!sticks(&mut wake));

    let mut blocked = stuck("2", &[]);
    blocked.off(0, Off::Exited);
    assert_eq!(blocked.pick(0), Some(0));
    blocked.off(0, Off::Blocked);
    blocked.queue(12, -20);
    assert_eq!(blocked.pick(0), Some(12));
    blocked.wake(0, 0);
    assert!(!sticks(&mut blocked));

    // A host that only looks again does not change it.
    let mut resumed = stuck("2", &[]);
    resumed.call(|bfs, cx| bfs.dequeue(cx, anysched_core::TaskId(0)));
    resumed.ready(0, Enqueue::Resumed { prev: anysched_core::CpuId(0) });
    assert!(sticks(&mut resumed));
}

/// 6 ms · (836 - 520) / 128 = 14.8125 ms lie between nice 0 and -5, 23.8125 ms between 0 and 5.
#[test]
fn a_new_nice_value_moves_the_deadline() {
    for queue in ["list", "tree"] {
        let mut bfs = Bfs::new("1", &[("queue", queue)]);
        bfs.start(0, 0, 0);
        (1..4).for_each(|task| bfs.queue(task, 0));
        bfs.at(1);
        bfs.update(1, &TaskParams::nice(5));
        bfs.update(2, &TaskParams::default());
        assert_eq!((bfs.deadline(1), bfs.deadline(2)), (63_000_000, 39_187_500));
        assert_eq!(bfs.kicked(), []);
        bfs.update(3, &TaskParams::nice(-5));
        assert_eq!(bfs.deadline(3), 24_375_000);
        assert_eq!(bfs.kicked(), [0], "24.375 ms are before 39.1875 ms");
        assert_eq!(bfs.switch(0), Some(3));
        // Back again, and behind its equals.
        bfs.update(2, &TaskParams::nice(5));
        bfs.update(2, &TaskParams::default());
        bfs.off(0, Off::Exited);
        assert_eq!((bfs.pick(0), bfs.deadline(2)), (Some(0), 39_187_500));
        bfs.off(0, Off::Exited);
        assert_eq!(bfs.pick(0), Some(2));
    }
}

#[test]
fn the_deadline_of_what_runs_stays() {
    let mut bfs = Bfs::new("1", &[]);
    bfs.start(0, 0, 0);
    bfs.update(0, &TaskParams::nice(-5));
    assert_eq!((bfs.deadline(0), bfs.kicked()), (39_187_500, Vec::new()));
    bfs.update(0, &TaskParams::nice(5));
    assert_eq!((bfs.deadline(0), bfs.kicked()), (39_187_500, [0].into()));
    bfs.at(6);
    bfs.off(0, Off::Expired);
    assert_eq!(bfs.deadline(0), 69_000_000, "as of nice 5");
}

#[test]
fn a_sleeper_has_its_new_deadline_when_it_wakes() {
    let mut bfs = Bfs::new("1", &[]);
    bfs.start(0, 0, 0);
    bfs.off(0, Off::Blocked);
    bfs.update(0, &TaskParams::nice(5));
    assert_eq!(bfs.deadline(0), 63_000_000);
}

#[test]
fn what_a_kicked_cpu_does_not_take_is_handed_on() {
    let mut bfs = Bfs::new("3", &[]);
    bfs.start_all();
    for cpu in [1, 2] {
        bfs.off(cpu, Off::Exited);
        assert_eq!(bfs.pick(cpu), None);
    }
    bfs.queue(10, 0);
    bfs.queue(11, -20);
    assert_eq!(bfs.kicked(), [1, 2]);
    // CPU 1, told of task 10, takes task 11, of which CPU 2 was told: that stays told.
    assert_eq!(bfs.pick(1), Some(11));
    assert_eq!(bfs.kicked(), []);
    assert_eq!(bfs.pick(2), Some(10));
}

#[test]
fn hotplug_moves_nothing_but_what_must_move() {
    let mut bfs = Bfs::new("2", &[]);
    bfs.start_all();
    bfs.set_online(1, false);
    bfs.off(1, Off::Preempted);
    assert_eq!(bfs.pick(1), None);
    bfs.queue(2, -20);
    assert_eq!(bfs.kicked(), [0], "CPU 1 is not there");
    assert_eq!(bfs.switch(0), Some(2));
    bfs.set_online(1, true);
    assert_eq!(bfs.kicked(), [1]);
    assert!(matches!(bfs.pick(1), Some(0 | 1)));
}
