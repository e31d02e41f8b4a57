//! Events worked out by hand from the rules: where tasks wait and whom they preempt. For deadlines
//! see the tests of `bfs`. Balancing has its own.

mod balance;
mod regroup;
mod starvation;

use alloc::vec::Vec;

use super::GroupQueues;
use crate::linux::virtual_deadline::rig::Rig;
use crate::policy;
use anysched_core::machine::Cpu;
use anysched_core::{CpuSet, Machine, Off, TaskParams};

type Gfs = Rig<GroupQueues>;

const ALL: CpuSet = CpuSet::All;

/// The group of each CPU.
fn groups(machine: Machine, grouping: &str) -> Vec<u16> {
    let gfs = Gfs::on(machine, &[("grouping", grouping)]);
    gfs.policy.cpus.iter().map(|cpu| cpu.group).collect()
}

fn set(cpus: &str) -> CpuSet {
    CpuSet::parse(cpus).unwrap()
}

#[test]
fn golden_deadlines() {
    let mut gfs = Gfs::new("1", &[]);
    gfs.at(1000);
    for (task, nice, ns) in [(0, 0, 39_187_500), (1, -20, 6_000_000), (2, 19, 238_546_875)] {
        gfs.queue(task, nice);
        assert_eq!((gfs.deadline(task), gfs.left(task)), (1_000_000_000 + ns, 6_000_000));
    }
}

/// Linux numbers the siblings of an i7-3770 0 and 4, 1 and 5, 2 and 6, 3 and 7.
#[test]
fn the_papers_machine_has_four_groups_of_two() {
    let cpu = |cpu: u16| Cpu { core: cpu % 4, llc: 0, package: 0, node: 0, capacity: 1024 };
    let machine = Machine::new((0..8).map(cpu).collect()).unwrap();
    assert_eq!(groups(machine.clone(), "auto"), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(groups(machine.clone(), "package"), [0; 8]);
    let by_hand = groups(machine, "0,4;1,5;2,6;3,7");
    assert_eq!(by_hand, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn lists_are_the_groups_that_they_name() {
    let machine = |text| Machine::parse(text).unwrap();
    for (topology, word, list) in [
        ("2 cores x 2 threads", "core", "0-1;2-3"),
        ("2 packages x 2 cores x 2 threads", "auto", "0-3;4-7"),
        ("2 nodes x 2 llcs x 2 cores", "llc", "0-1;2-3;4-5;6-7"),
        ("2 nodes x 2 packages x 2 cores", "node", "0-3;4-7"),
        ("5", "single", "0-4"),
    ] {
        assert_eq!(groups(machine(topology), word), groups(machine(topology), list), "{word}");
    }
    assert_eq!(groups(machine("4"), "1,3;0,2"), [1, 0, 1, 0], "in the order of the list");
    let build = policy("gfs").unwrap().build;
    for wrong in ["0-2", "0-3;3", "0-4"] {
        assert!(build(&machine("4"), &[("grouping", wrong)]).is_err(), "{wrong}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let machine = Machine::flat(2).unwrap();
    let builds = |settings: &[_]| (policy("gfs").unwrap().build)(&machine, settings).is_ok();
    for wrong in [
        ("rr_interval", "999us"),
        ("core_interval", "99us"),
        ("package_interval", "3601s"),
        ("busy_factor", "0"),
        ("busy_factor", "1001"),
        ("threshold", "99"),
        ("tick", "1001ms"),
        ("victim", "latest"),
    ] {
        assert!(!builds(&[wrong]), "{wrong:?}");
    }
    for right in [("core_interval", "none"), ("busy_factor", "1000"), ("threshold", "100")] {
        assert!(builds(&[right]), "{right:?}");
    }
    assert!(builds(&[("wake", "tree"), ("victim", "latest")]));
}

#[test]
fn it_says_when_cpus_may_idle() {
    let conserves = |settings: &[_]| (policy("gfs").unwrap().nature)(settings).unwrap();
    let single = ("grouping", "single");
    assert!(!conserves(&[]).work_conserving);
    assert!(!conserves(&[single]).work_conserving);
    assert!(conserves(&[single, ("steal_high", "true")]).work_conserving);
    assert!(conserves(&[single, ("wake", "tree")]).work_conserving);
    assert!(!conserves(&[("steal_high", "true")]).work_conserving);
}

#[test]
fn the_list_is_served_before_the_tree() {
    for (wake, order) in [("high", [1, 2, 0]), ("tree", [2, 1, 0])] {
        let mut gfs = Gfs::new("1", &[("wake", wake)]);
        gfs.start(0, 0, 0);
        // Of deadline 15.28125 ms, then one of 6 ms that has not woken.
        gfs.asleep(1, -10, ALL);
        gfs.wake(1, 0);
        gfs.queue(2, -20);
        assert_eq!(gfs.kicked(), [0]);
        let mut found = Vec::from([gfs.switch(0).unwrap()]);
        for _ in 1..3 {
            gfs.off(0, Off::Exited);
            found.push(gfs.pick(0).unwrap());
        }
        assert_eq!(found, order, "wake = {wake}");
    }
}

#[test]
fn the_list_is_in_order_of_deadlines() {
    let mut gfs = Gfs::new("1", &[]);
    gfs.start(0, 0, 0);
    for (task, nice) in [(1, -5), (2, -10), (3, -20)] {
        gfs.asleep(task, nice, ALL);
        gfs.wake(task, 0);
        assert_eq!(gfs.kicked(), [0]);
    }
    // Not later than the CPU's: 24.375 ms to 6 ms, which it counts as running. Into the tree.
    gfs.asleep(4, -20, ALL);
    gfs.wake(4, 0);
    assert_eq!(gfs.kicked(), []);
    assert_eq!(gfs.switch(0), Some(3));
    for task in [2, 1, 4, 0] {
        gfs.off(0, Off::Exited);
        assert_eq!(gfs.pick(0), Some(task));
    }
}

#[test]
fn a_new_nice_value_sorts_the_list_anew() {
    let mut gfs = Gfs::new("1", &[]);
    gfs.start(0, 0, 0);
    for (task, nice) in [(1, -5), (2, -10)] {
        gfs.asleep(task, nice, ALL);
        gfs.wake(task, 0);
    }
    gfs.update(1, &TaskParams::nice(-20));
    assert_eq!(gfs.deadline(1), 6_000_000);
    assert_eq!(gfs.switch(0), Some(1));
}

/// Four CPUs behind two caches, of which CPU 2 runs something of deadline 6 ms and the others
/// 39.1875, 238.546875, - and 63 ms.
fn four(settings: &[(&str, &str)]) -> Gfs {
    let mut gfs = Gfs::new("2 llcs x 2 cores", settings);
    for (cpu, nice) in [(0, 0), (1, 19), (2, -20), (3, 5)] {
        gfs.start(cpu, u32::from(cpu), nice);
    }
    gfs.asleep(10, -10, ALL);
    gfs
}

#[test]
fn the_nearest_later_cpu_is_preempted() {
    let single = ("grouping", "single");
    for (prev, kicked) in [(0, 0), (1, 1), (2, 3), (3, 3)] {
        let mut gfs = four(&[single]);
        gfs.wake(10, prev);
        assert_eq!(gfs.kicked(), [kicked], "last ran on {prev}");
        assert_eq!(gfs.switch(kicked), Some(10));
    }
    let mut gfs = four(&[single]);
    gfs.pin(10, -10, "0-2");
    gfs.wake(10, 2);
    assert_eq!(gfs.kicked(), [0], "of two equally near the lowest, not the latest");
    let mut latest = four(&[single, ("wake", "tree"), ("victim", "latest")]);
    latest.wake(10, 2);
    assert_eq!(latest.kicked(), [1]);
    let mut tree = four(&[single, ("wake", "tree")]);
    tree.wake(10, 2);
    assert_eq!(tree.kicked(), [3]);
    // As late as the latest.
    let mut late = four(&[single]);
    late.asleep(11, 19, ALL);
    late.wake(11, 0);
    assert_eq!(late.kicked(), []);
}

/// The CPU that a task gets which last ran on `near`, if those of `idle` are.
fn best(idle: &str, near: u16, affinity: &str) -> Vec<u16> {
    let mut gfs = Gfs::new("2 nodes x 2 llcs x 2 cores x 2 threads", &[("grouping", "single")]);
    gfs.start_all();
    for cpu in set(idle).iter() {
        gfs.off(cpu.0, Off::Exited);
        assert_eq!(gfs.pick(cpu.0), None);
    }
    gfs.asleep(99, 19, set(affinity));
    gfs.wake(99, near);
    gfs.kicked()
}

#[test]
fn the_nearest_idle_cpu_gets_it() {
    for (idle, near, cpu) in [
        ("0-15", 5, 5),
        // The sibling although its core is busy, unlike in BFS.
        ("0-4,6-15", 5, 4),
        ("0-3,6-15", 5, 6),
        ("0-3,7-15", 5, 7),
        ("0-3,8-15", 5, 0),
        ("8-15", 5, 8),
        ("3,15", 5, 3),
        ("12-15", 13, 13),
        ("0-12", 13, 12),
    ] {
        assert_eq!(best(idle, near, "0-15"), [cpu], "of {idle} from {near}");
    }
    assert_eq!(best("0-15", 5, "7,12"), [7]);
    assert_eq!(best("0-15", 5, "3,12"), [3]);
    assert_eq!(best("0-15", 5, "12"), [12]);
    assert_eq!(best("0-11", 5, "12"), [], "as late as nothing that runs there");
}

#[test]
fn other_groups_are_not_searched() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start(0, 0, -20);
    gfs.start(1, 1, -20);
    gfs.asleep(2, 0, ALL);
    gfs.wake(2, 1);
    assert_eq!(gfs.kicked(), [], "CPUs 2 and 3 are idle");
    assert_eq!(gfs.loads(), [3, 0]);
    assert_eq!((gfs.pick(2), gfs.pick(3)), (None, None), "and it is too soon to balance");
    gfs.off(0, Off::Blocked);
    assert_eq!(gfs.pick(0), Some(2));
}

#[test]
fn a_forbidden_group_is_left_for_the_nearest_allowed() {
    let mut gfs = Gfs::new("2 nodes x 2 cores x 2 threads", &[]);
    gfs.asleep(0, 0, set("1,2,6"));
    gfs.wake(0, 1);
    assert_eq!(gfs.kicked(), [1]);
    gfs.asleep(1, 0, set("3,6"));
    gfs.wake(1, 1);
    assert_eq!(gfs.kicked(), [3]);
    gfs.asleep(2, 0, set("4-7"));
    gfs.wake(2, 1);
    assert_eq!(gfs.kicked(), [4]);
}

#[test]
fn a_waker_about_to_sleep_preempts_nobody() {
    let mut gfs = Gfs::new("1", &[]);
    gfs.asleep(1, -20, ALL);
    gfs.wake_sync(1, 0);
    assert_eq!(gfs.kicked(), [0], "idle");
    assert_eq!(gfs.pick(0), Some(1));
    gfs.off(0, Off::Exited);
    gfs.start(0, 0, 0);
    gfs.asleep(2, -20, ALL);
    gfs.wake_sync(2, 0);
    assert_eq!(gfs.kicked(), []);
    // In the tree: what wakes later and preempts comes first.
    gfs.asleep(3, -10, ALL);
    gfs.wake(3, 0);
    assert_eq!(gfs.switch(0), Some(3));
    gfs.off(0, Off::Exited);
    assert_eq!(gfs.pick(0), Some(2));
}

#[test]
fn new_tasks_enter_the_tree_of_their_creators_group() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start(2, 0, 0);
    gfs.create(1, &TaskParams::default(), Some(2));
    assert_eq!((gfs.kicked(), gfs.loads()), (Vec::from([3]), Vec::from([0, 2])));
    assert_eq!(gfs.pick(3), Some(1));
    // The latest is preempted, not the creator's CPU.
    gfs.off(3, Off::Exited);
    gfs.start(3, 2, 19);
    gfs.create(3, &TaskParams::nice(-5), Some(2));
    assert_eq!(gfs.kicked(), [3]);
    assert_eq!(gfs.switch(3), Some(3));
    gfs.create(4, &TaskParams::nice(19), Some(2));
    assert_eq!(gfs.kicked(), []);
    // From outside: the group of CPU 0.
    gfs.create(5, &TaskParams::default(), None);
    assert_eq!((gfs.kicked(), gfs.loads()), (Vec::from([0]), Vec::from([1, 4])));
}

#[test]
fn what_is_put_back_waits_in_the_tree() {
    let mut gfs = Gfs::new("1 core x 2 threads", &[]);
    gfs.start(0, 0, 0);
    gfs.start(1, 1, -20);
    gfs.asleep(2, -10, ALL);
    gfs.wake(2, 0);
    assert_eq!(gfs.switch(0), Some(2));
    gfs.off(0, Off::Preempted);
    assert_eq!(gfs.left(2), 6_000_000);
    // The other CPU may have it now.
    gfs.off(1, Off::Exited);
    assert_eq!(gfs.pick(1), Some(2));
    assert_eq!(gfs.pick(0), Some(0));
}

#[test]
fn lists_belong_to_their_cpu_unless_they_are_stolen() {
    for (steal, taken) in [("false", None), ("true", Some(3))] {
        let mut gfs = Gfs::new("1 core x 3 threads", &[("steal_high", steal)]);
        gfs.start(0, 0, 0);
        gfs.start(1, 1, 0);
        gfs.start(2, 2, -20);
        // Both wait at their CPUs, the sooner one at CPU 1.
        for (task, nice, prev) in [(4, -5, 0), (3, -10, 1)] {
            gfs.asleep(task, nice, ALL);
            gfs.wake(task, prev);
            assert_eq!(gfs.kicked(), [prev]);
        }
        gfs.off(2, Off::Exited);
        assert_eq!(gfs.pick(2), taken);
        assert_eq!(gfs.switch(0), Some(4));
    }
    let mut bound = Gfs::new("1 core x 2 threads", &[("steal_high", "true")]);
    bound.start_all();
    bound.asleep(2, -5, set("0"));
    bound.wake(2, 0);
    bound.off(1, Off::Exited);
    assert_eq!(bound.pick(1), None, "it may not run there");
}

#[test]
fn nothing_sticks() {
    let mut gfs = Gfs::new("1 core x 2 threads", &[]);
    gfs.start(0, 0, 1);
    gfs.start(1, 1, 0);
    gfs.queue(2, -20);
    assert_eq!(gfs.switch(0), Some(2));
    gfs.queue(3, 19);
    gfs.off(1, Off::Exited);
    assert_eq!(gfs.pick(1), Some(0));
}

#[test]
fn a_new_affinity_moves_what_waits() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start_all();
    gfs.queue(10, -20);
    assert_eq!(gfs.kicked(), [0]);
    gfs.pin(10, -20, "1-2");
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([3, 2]), Vec::from([1])));
    gfs.pin(10, -20, "3");
    assert_eq!((gfs.loads(), gfs.kicked()), (Vec::from([2, 3]), Vec::from([3])));
    assert_eq!((gfs.switch(0), gfs.switch(1), gfs.switch(3)), (Some(0), Some(1), Some(10)));
    // From a list.
    gfs.asleep(11, -20, ALL);
    gfs.wake(11, 0);
    assert_eq!(gfs.kicked(), [0]);
    gfs.pin(11, -20, "1");
    assert_eq!(gfs.kicked(), [1]);
    assert_eq!(gfs.switch(1), Some(11));
    // A running one has to leave.
    gfs.pin(0, 0, "2-3");
    assert_eq!(gfs.kicked(), [0]);
    gfs.off(0, Off::Preempted);
    assert_eq!(gfs.pick(0), Some(1));
    assert_eq!(gfs.loads(), [2, 4]);
}

#[test]
fn tasks_leave_a_group_whose_cpus_are_gone() {
    let mut gfs = Gfs::new("2 cores x 2 threads", &[]);
    gfs.start_all();
    gfs.queue(10, -20);
    gfs.asleep(11, -10, ALL);
    gfs.wake(11, 1);
    assert_eq!(gfs.kicked(), [0, 1]);
    gfs.set_online(1, false);
    gfs.off(1, Off::Preempted);
    // Tasks 1, 10 and 11 wait for CPU 0 now.
    assert_eq!(gfs.loads(), [4, 2]);
    gfs.kicked();
    gfs.set_online(0, false);
    gfs.off(0, Off::Preempted);
    assert_eq!(gfs.loads(), [0, 6]);
    // Task 10 preempts on CPU 2, task 11 on CPU 3.
    assert_eq!(gfs.kicked(), [2, 3]);
    assert_eq!((gfs.switch(2), gfs.switch(3)), (Some(10), Some(11)));
    gfs.set_online(0, true);
    assert_eq!(gfs.kicked(), [0]);
}
