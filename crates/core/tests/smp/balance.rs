//! Balancing of runqueues that CPUs share.

use crate::{Rig, fill, pinned};
use anysched_core::{CpuId, Off, RunQueue, Scheduler, Span, TaskId, TaskParams, Time};
use anysched_policies::linux::cfs::Cfs;
use anysched_policies::textbook::fcfs::Fcfs;

/// A rig where CPUs of a cache share a runqueue, tasks start on that of their creator and only
/// periodic balancing moves them. Where a cache has one CPU, runqueues have the numbers of CPUs.
fn rig<Q: RunQueue>(machine: &str) -> Rig<Q> {
    let settings =
        [("layout", "per-llc"), ("place", "creator"), ("steal", "never"), ("balance", "linux")];
    Rig::new(machine, &settings)
}

const MS: u64 = 1000;

#[test]
fn there_is_a_timer_only_while_something_waits() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    assert_eq!(rig.policy.next_timer(), None);
    rig.now = Time(5_300_000);
    fill(&mut rig, &[1, 1]);
    assert_eq!(rig.policy.next_timer(), None);
    // What was due at 1ms is due on the grid, whenever the host asks.
    rig.create(1, 0);
    assert_eq!(rig.policy.next_timer(), Some(Time(6_000_000)));
    rig.now = Time(5_900_000);
    assert_eq!(rig.policy.next_timer(), Some(Time(6_000_000)));
    rig.next(0, Off::Exited);
    assert_eq!(rig.policy.next_timer(), None);
    rig.now = Time(6_000_000);
    rig.create(2, 0);
    assert_eq!(rig.policy.next_timer(), Some(Time(7_000_000)), "not before it began to wait");
}

#[test]
fn one_runqueue_has_nothing_to_balance() {
    let settings = [("layout", "global"), ("balance", "linux")];
    let mut rig = Rig::<Fcfs>::new("2 cpus", &settings);
    fill(&mut rig, &[5]);
    assert_eq!(rig.policy.next_timer(), None);
}

#[test]
fn half_of_the_difference_moves() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    fill(&mut rig, &[9, 1]);
    rig.pass_until(999);
    assert_eq!(rig.waiting(), [8, 0]);
    rig.pass_until(MS);
    assert_eq!(rig.waiting(), [4, 4]);
    assert_eq!([1, 2, 3, 4].map(|task| rig.queue(task)), [1; 4], "as FCFS would lose them");
}

#[test]
fn three_groups_meet_at_the_mean() {
    let mut rig = rig::<Fcfs>("3 llcs x 1 core");
    fill(&mut rig, &[10, 1, 1]);
    rig.pass_until(MS);
    // The mean is 4: CPU 1 takes 3, then CPU 2 sees 7, 4 and 1.
    assert_eq!(rig.waiting(), [3, 3, 3]);
}

#[test]
fn a_quarter_more_is_balanced() {
    for (counts, after) in [([5, 4], [4, 3]), ([6, 4], [4, 4]), ([10, 8], [9, 7])] {
        let mut rig = rig::<Fcfs>("2 llcs x 1 core");
        fill(&mut rig, &counts);
        rig.pass_until(MS);
        assert_eq!(rig.waiting(), after, "{counts:?}");
    }
}

#[test]
fn weight_counts_not_number() {
    let mut rig = rig::<Cfs>("2 llcs x 1 core");
    rig.create_with(0, 0, &TaskParams { weight: 9000, ..pinned("0") });
    rig.create_with(1, 1, &TaskParams { weight: 4000, ..pinned("1") });
    rig.settle();
    for (task, weight) in [(10, 2000), (11, 600), (12, 400)] {
        rig.create_with(task, 0, &TaskParams { weight, ..TaskParams::default() });
    }
    // 12000 against 4000: 4000 may move; 2000 first, then 600, then 400.
    rig.pass_until(MS);
    assert_eq!([10, 11, 12].map(|task| rig.queue(task)), [1, 1, 1]);
}

#[test]
fn what_weighs_more_than_is_to_move_stays() {
    let mut rig = rig::<Cfs>("2 llcs x 1 core");
    rig.create_with(0, 0, &TaskParams { weight: 1000, ..pinned("0") });
    rig.create_with(1, 1, &TaskParams { weight: 1000, ..pinned("1") });
    rig.settle();
    for (task, weight) in [(10, 3000), (11, 1000), (12, 1000)] {
        rig.create_with(task, 0, &TaskParams { weight, ..TaskParams::default() });
    }
    // 6000 against 1000: 2500 may move, which is less than task 10.
    rig.pass_until(MS);
    assert_eq!([10, 11, 12].map(|task| rig.queue(task)), [0, 1, 1]);
}

#[test]
fn three_tasks_take_turns_at_having_a_cpu_alone() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    fill(&mut rig, &[2, 1]);
    // Half of the difference is half a task: the first try fails, the second one may move twice
    // as much. CPU 1 is busy, so that its turns are 64ms apart.
    rig.pass_until(64 * MS);
    assert_eq!(rig.waiting(), [1, 0]);
    rig.pass_until(65 * MS);
    assert_eq!(rig.waiting(), [0, 1]);
    // At 1ms CPU 0 found itself balanced, which doubled its interval.
    rig.pass_until(128 * MS);
    assert_eq!(rig.waiting(), [0, 1]);
    rig.pass_until((129 + 64) * MS);
    assert_eq!(rig.waiting(), [1, 0]);
}

#[test]
fn groups_prefer_different_ones_of_equals() {
    let mut rig = rig::<Fcfs>("4 llcs x 1 core");
    fill(&mut rig, &[1, 1, 2, 2]);
    // Each of CPUs 0 and 1 may take a task at its second try: the one of CPU 2, then of CPU 3,
    // not the one that CPU 0 has only just got.
    rig.pass_until(65 * MS);
    assert_eq!(rig.waiting(), [1, 1, 0, 0]);
    assert_eq!([201, 301].map(|task| rig.queue(task)), [0, 1]);
    // In the same way CPU 2 looks at CPU 3 first, then at 0; and CPU 3 at 0, then at 1.
    rig.pass_until(193 * MS);
    assert_eq!([201, 301].map(|task| rig.queue(task)), [2, 3]);
}

#[test]
fn intervals_double_while_balanced_up_to_the_longest() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    fill(&mut rig, &[5, 4]);
    let mut due = Vec::new();
    for _ in 0..5 {
        let next = rig.policy.next_timer().unwrap();
        due.push(next.0 / 1_000_000);
        rig.pass_until(next.0 / 1000);
    }
    // 2, 4, 4, … ms, 64 times as long for busy CPUs, but at most 100ms per CPU of the machine.
    assert_eq!(due, [1, 1 + 128, 1 + 128 + 200, 1 + 128 + 400, 1 + 128 + 600]);
}

#[test]
fn a_late_host_keeps_the_grid() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    fill(&mut rig, &[5, 4]);
    rig.now = Time(3_700_000);
    rig.call(|smp, cx| smp.timer(cx));
    assert_eq!(rig.policy.next_timer(), Some(Time(131_000_000)));
}

#[test]
fn an_idle_cpu_balances_more_often_and_takes_a_task_of_any_weight() {
    let mut rig = rig::<Cfs>("2 llcs x 1 core");
    rig.create_with(0, 0, &TaskParams { weight: 15, ..pinned("0") });
    rig.create_with(1, 1, &pinned("1"));
    rig.settle();
    rig.create_with(10, 0, &TaskParams { weight: 300, ..TaskParams::default() });
    rig.create_with(11, 0, &TaskParams { weight: 900, ..TaskParams::default() });
    rig.pass_until(40_200);
    assert_eq!(rig.waiting(), [2, 0]);
    // Busy, CPU 1 would have had its turn at 129ms.
    rig.next(1, Off::Blocked);
    assert_eq!(rig.policy.next_timer(), Some(Time(41_000_000)));
    rig.pass_until(41 * MS);
    assert_eq!((rig.running(1), rig.waiting()), (Some(10), [1, 0].into()));
}

#[test]
fn hot_tasks_move_after_two_failures() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    fill(&mut rig, &[4, 1]);
    // All that wait on CPU 0 are always hot: each has run for a moment just before.
    let stir = |rig: &mut Rig<Fcfs>| {
        for _ in 0..4 {
            rig.next(0, Off::Yielded);
        }
    };
    for turn in [1, 65] {
        rig.pass_until(turn * MS - 100);
        stir(&mut rig);
        rig.pass_until(turn * MS);
        assert_eq!(rig.waiting(), [3, 0], "at {turn}ms");
    }
    rig.pass_until(129 * MS - 100);
    stir(&mut rig);
    rig.pass_until(129 * MS);
    assert_eq!(rig.waiting(), [2, 1]);
}

#[test]
fn a_task_that_its_cpu_is_about_to_run_stays() {
    let mut rig = rig::<Fcfs>("2 llcs x 1 core");
    fill(&mut rig, &[0, 1]);
    for task in 0..4 {
        rig.create(task, 0);
    }
    assert_eq!(rig.kicked(), [0], "because of task 0");
    rig.now = Time(1_000_000);
    rig.call(|smp, cx| smp.timer(cx));
    assert_eq!([0, 1, 2, 3].map(|task| rig.queue(task)), [0, 1, 0, 0]);
}

#[test]
fn pinned_tasks_stay_and_another_runqueue_is_tried() {
    let mut rig = rig::<Fcfs>("2 nodes x 2 llcs x 1 core");
    for task in 0..8 {
        rig.create_with(task, 0, &pinned("0"));
    }
    rig.settle();
    fill(&mut rig, &[0, 3, 1, 1]);
    rig.pass_until(8 * MS);
    // Node 1 cannot take the tasks of CPU 0, but one of CPU 1.
    assert_eq!(rig.waiting()[0], 7);
    assert!(rig.queue(101) >= 2);
}

#[test]
fn near_groups_are_balanced_more_often_than_far_ones() {
    let mut rig = rig::<Fcfs>("2 nodes x 2 llcs x 1 core");
    fill(&mut rig, &[9, 1, 1, 1]);
    rig.pass_until(7 * MS);
    assert_eq!(rig.waiting(), [4, 4, 0, 0]);
    // Node 1 has 2 tasks, node 0 has 10: the first CPU of node 1 takes 4 of the busiest runqueue,
    // and then shares them with its neighbour.
    rig.pass_until(8 * MS);
    assert_eq!(rig.waiting(), [0, 4, 4, 0]);
    rig.pass_until(200 * MS);
    assert_eq!(rig.waiting(), [2, 2, 2, 2]);
}

#[test]
fn the_first_idle_cpu_of_a_group_balances_for_it() {
    let mut rig = rig::<Fcfs>("2 nodes x 3 llcs x 1 core");
    fill(&mut rig, &[2, 2, 2, 1]);
    rig.pass_until(8 * MS);
    // CPU 3 runs the task that is there, and CPU 4 takes one of the busiest, of equals the lowest.
    assert_eq!([3, 4, 5].map(|cpu| rig.running(cpu)), [Some(300), Some(1), None]);
    assert_eq!(rig.waiting(), [0, 1, 1, 0, 0, 0]);
}

#[test]
fn a_cpu_out_of_use_takes_no_part() {
    let mut rig = rig::<Fcfs>("3 llcs x 1 core");
    rig.set_online(1, false);
    fill(&mut rig, &[8, 0, 2]);
    rig.pass_until(MS);
    assert_eq!(rig.waiting(), [4, 0, 4]);
    rig.set_online(1, true);
    rig.settle();
    rig.pass_until(300 * MS);
    assert_eq!(rig.waiting().iter().sum::<usize>(), 7);
    assert!(rig.running(1).is_some());
}

#[test]
fn a_moved_task_preempts_as_if_it_woke_up() {
    let mut rig = rig::<Cfs>("2 llcs x 1 core");
    rig.create_with(10, 0, &pinned("0"));
    rig.settle();
    rig.next(0, Off::Blocked);
    let create = |rig: &mut Rig<Cfs>, task, cpus: &str| {
        rig.create_with(task, cpus.parse().unwrap(), &pinned(cpus));
        rig.settle();
    };
    create(&mut rig, 1, "1");
    create(&mut rig, 0, "0");
    // After a second of these two, task 10 wakes up half a latency ahead of all, as it stays when
    // it is moved.
    let ran = Span::from_s(1);
    rig.now += ran;
    for cpu in 0..2 {
        rig.call(|smp, cx| smp.tick(cx, CpuId(cpu), TaskId(cpu.into()), ran));
    }
    create(&mut rig, 11, "0");
    create(&mut rig, 12, "0");
    rig.wake(10, 0, None);
    rig.call(|smp, cx| smp.update(cx, TaskId(10), &TaskParams::default()));
    rig.kicks.clear();
    rig.timer();
    assert_eq!((rig.queue(10), rig.kicked()), (1, [1].into()));
}

#[test]
fn groups_with_runqueues_of_their_own_are_balanced_whole() {
    for (machine, layout) in
        [("2 llcs x 2 cores", "per-llc"), ("2 nodes x 2 llcs x 1 core", "per-node")]
    {
        let place = [("place", "creator"), ("steal", "never"), ("balance", "linux")];
        let mut rig = Rig::<Fcfs>::new(machine, &[&[("layout", layout)], &place[..]].concat());
        for task in 0..12 {
            rig.create(task, 0);
        }
        rig.create(20, 2);
        rig.create(21, 3);
        rig.settle();
        assert_eq!(rig.waiting(), [10, 0]);
        // Nodes begin with an interval of 8ms.
        let due = if layout == "per-node" { 8 * MS } else { MS };
        rig.pass_until(due - 1);
        assert_eq!(rig.waiting(), [10, 0]);
        rig.pass_until(due);
        assert_eq!(rig.waiting(), [5, 5]);
    }
}
