//! Balancing and pulling where each CPU has its own runqueue, as in Linux 6.12. A jiffy is 4 ms.
//!
//! What is expected follows from `kernel/sched/fair.c` by hand. A new task counts with its whole
//! weight at once, but as using half of what is free on its CPU: alone it is taken to be busy
//! (117 % of its use is more than a CPU) only after some 60 ms, and a CPU that is not busy, but not
//! idle either, leaves it to idle ones to pull.

use crate::{Rig, fill, pinned};
use anysched_core::registry::build_rule;
use anysched_core::{Machine, Off, RunQueue, Scheduler, Span, TaskParams, Time};
use anysched_oracle::Drive;
use anysched_policies::textbook::fcfs::Fcfs;
use anysched_policies::textbook::stride::Stride;

const JIFFY: u64 = 4000;

/// A rig where tasks start on their creator's CPU and only periodic balancing moves them.
fn rig<Q: RunQueue>(machine: &str) -> Rig<Q> {
    Rig::new(machine, &[("place", "creator"), ("steal", "never"), ("balance", "linux")])
}

/// The same with weights.
fn weighted(machine: &str) -> Rig<Stride> {
    rig(machine)
}

/// `cpu` has `count` tasks from number `first` on that may run on `cpus` only.
fn bind<Q: RunQueue>(rig: &mut Rig<Q>, cpu: u16, first: u32, count: u32, cpus: &str) {
    for task in first..first + count {
        rig.create_with(task, cpu, &pinned(cpus));
    }
    rig.settle();
}

/// Asserts that runqueues become as long as `after` in that jiffy, and not before.
fn change_at<Q: RunQueue>(rig: &mut Rig<Q>, jiffy: u64, before: &[usize], after: &[usize]) {
    rig.pass_until(jiffy * JIFFY - 1);
    assert_eq!(rig.waiting(), before, "before jiffy {jiffy}");
    rig.pass_until(jiffy * JIFFY);
    assert_eq!(rig.waiting(), after, "in jiffy {jiffy}");
}

#[test]
fn there_are_ticks_only_while_something_waits() {
    let mut rig = rig::<Fcfs>("2 cpus");
    assert_eq!(rig.policy.next_timer(), None);
    rig.now = Time(5_300_000);
    fill(&mut rig, &[1, 1]);
    assert_eq!(rig.policy.next_timer(), None);
    rig.create(1, 0);
    assert_eq!(rig.policy.next_timer(), Some(Time(8_000_000)));
    rig.now = Time(7_900_000);
    assert_eq!(rig.policy.next_timer(), Some(Time(8_000_000)));
    rig.next(0, Off::Exited);
    assert_eq!(rig.policy.next_timer(), None);
    rig.now = Time(12_000_000);
    rig.create(2, 0);
    assert_eq!(rig.policy.next_timer(), Some(Time(16_000_000)), "not before it began to wait");
}

#[test]
fn a_late_host_keeps_the_grid() {
    let mut rig = rig::<Fcfs>("2 cpus");
    fill(&mut rig, &[5, 4]);
    rig.now = Time(9_700_000);
    rig.call(|smp, cx| smp.timer(cx));
    assert_eq!(rig.policy.next_timer(), Some(Time(12_000_000)));
}

#[test]
fn a_busy_cpu_pulls_until_loads_meet() {
    // 2 CPUs: an interval of 2 ms, times 16 as they are busy, is 8 jiffies, less one. In jiffy 7
    // CPU 1 has capacity to spare and leaves it at that, so that its interval doubles: 16 - 1 more.
    // Then its load is 1024 and that of CPU 0 9216: 4096 are to be moved, and each task is 1023.
    let mut rig = rig::<Fcfs>("2 cpus");
    fill(&mut rig, &[9, 1]);
    change_at(&mut rig, 7 + 15, &[8, 0], &[4, 4]);
    assert_eq!([1, 2, 3, 4].map(|task| rig.queue(task)), [1; 4], "the first that came");
}

#[test]
fn three_cpus_meet_at_the_mean() {
    // 3 CPUs: jiffy 12 - 1, in which CPUs 1 and 2 have capacity to spare, then 24 - 1 more. The mean
    // is 4: CPU 1 takes 3 of 10, then CPU 2 sees 7, 4 and 1.
    let mut rig = rig::<Fcfs>("3 cpus");
    fill(&mut rig, &[10, 1, 1]);
    change_at(&mut rig, 11 + 23, &[9, 0, 0], &[3, 3, 3]);
}

#[test]
fn imbalances_of_17_percent_or_10_between_threads_are_left_alone() {
    // Where there is one, it is half a task: moved at the second try, as failures halve what a task
    // counts for.
    let cores = [([7, 6], [6, 5]), ([6, 5], [4, 5])];
    let threads = [([11, 10], [10, 9]), ([7, 6], [5, 6])];
    for (machine, cases) in [("2 cpus", cores), ("1 core x 2 threads", threads)] {
        for (counts, after) in cases {
            let mut rig = rig::<Fcfs>(machine);
            fill(&mut rig, &counts);
            change_at(&mut rig, 14, &counts.map(|count| count as usize - 1), &after);
        }
    }
}

#[test]
fn weight_counts_not_number() {
    // 12000 against 4000: 4000 are to be moved; 2000 first, then 600, then 400.
    let mut rig = weighted("2 cpus");
    rig.create_with(0, 0, &TaskParams { weight: 9000, ..pinned("0") });
    rig.create_with(1, 1, &TaskParams { weight: 4000, ..pinned("1") });
    rig.settle();
    for (task, weight) in [(10, 2000), (11, 600), (12, 400)] {
        rig.create_with(task, 0, &TaskParams { weight, ..TaskParams::default() });
    }
    change_at(&mut rig, 22, &[3, 0], &[0, 3]);
}

#[test]
fn what_weighs_more_than_is_to_move_stays() {
    // 6000 against 1000: 2500 are to be moved, which is less than task 10.
    let mut rig = weighted("2 cpus");
    rig.create_with(0, 0, &TaskParams { weight: 1000, ..pinned("0") });
    rig.create_with(1, 1, &TaskParams { weight: 1000, ..pinned("1") });
    rig.settle();
    for (task, weight) in [(10, 3000), (11, 1000), (12, 1000)] {
        rig.create_with(task, 0, &TaskParams { weight, ..TaskParams::default() });
    }
    change_at(&mut rig, 22, &[3, 0], &[1, 2]);
    assert_eq!([10, 11, 12].map(|task| rig.queue(task)), [0, 1, 1]);
}

#[test]
fn a_heavy_task_elsewhere_lets_all_go_that_waits() {
    // CPU 1 is overloaded, CPU 0 is not, though it is far heavier. The mean is above the load of
    // CPU 1, and what that has above the mean wraps: CPU 2 takes all that waits.
    let mut rig = weighted("3 cpus");
    rig.create_with(0, 0, &TaskParams { weight: 88761, ..pinned("0") });
    bind(&mut rig, 2, 200, 1, "2");
    fill(&mut rig, &[0, 3]);
    change_at(&mut rig, 34, &[0, 2, 0], &[0, 0, 2]);
}

#[test]
fn an_idle_cpu_learns_of_a_waiting_task_at_the_tick_of_a_busy_one() {
    let mut rig = rig::<Fcfs>("2 cpus");
    for task in 0..3 {
        rig.create(task, 0);
    }
    assert_eq!(rig.kicked(), [0]);
    rig.settle();
    // 3 tasks against none: half of the difference is 1.
    change_at(&mut rig, 1, &[2, 0], &[1, 0]);
    assert_eq!(rig.running(1), Some(1));
}

#[test]
fn far_groups_are_balanced_less_often_and_by_their_first_cpu() {
    let mut rig = rig::<Fcfs>("2 nodes x 3 cores");
    fill(&mut rig, &[10, 1, 1, 1, 1, 1]);
    // Nodes: 6 ms, so jiffy 24 - 1. Node 1 has 3 tasks and node 0 has 12, on 3 CPUs each: 4608 are
    // to be moved, which is 4 tasks.
    change_at(&mut rig, 23, &[9, 0, 0, 0, 0, 0], &[5, 0, 0, 4, 0, 0]);
    // Cores: 3 ms, so jiffy 11, where all but CPU 0 have capacity to spare, and 23 more. CPUs 1
    // and 2 lack 1706 each, CPUs 4 and 5 lack 1365.
    change_at(&mut rig, 11 + 23, &[5, 0, 0, 4, 0, 0], &[3, 1, 1, 2, 1, 1]);
}

#[test]
fn the_first_idle_cpu_of_a_group_balances_for_it() {
    let mut rig = rig::<Fcfs>("2 nodes x 3 cores");
    fill(&mut rig, &[2, 2, 2, 1]);
    // 6 ms are 2 jiffies. CPU 5 comes first, but it is for CPU 4 to pull, up to 2 of the busiest
    // CPU, of equals the lowest; and that is left with one.
    change_at(&mut rig, 2, &[1, 1, 1, 0, 0, 0], &[0, 1, 1, 0, 0, 0]);
    assert_eq!([3, 4, 5].map(|cpu| rig.running(cpu)), [Some(300), Some(1), None]);
}

#[test]
fn a_cpu_out_of_use_takes_no_part() {
    let mut rig = rig::<Fcfs>("2 llcs x 2 cores");
    rig.set_online(2, false);
    bind(&mut rig, 1, 100, 1, "1");
    fill(&mut rig, &[3]);
    // It is for CPU 3 to balance: 4 tasks against none, so 2 are to be moved.
    change_at(&mut rig, 1, &[2, 0, 0, 0], &[0, 0, 0, 1]);
    assert_eq!([2, 3].map(|cpu| rig.running(cpu)), [None, Some(2)]);
}

#[test]
fn hot_tasks_move_after_two_failures() {
    for (machine, moves_in) in [("2 cpus", 3), ("1 core x 2 threads", 1)] {
        let mut rig = rig::<Fcfs>(machine);
        fill(&mut rig, &[4]);
        for jiffy in 1..=moves_in {
            // All that wait are hot: each has run for a moment just before.
            rig.pass_until(jiffy * JIFFY - 100);
            for _ in 0..4 {
                rig.next(0, Off::Yielded);
            }
            // 4 tasks against none: 2 are to be moved.
            let after = if jiffy == moves_in { [1, 1] } else { [3, 0] };
            change_at(&mut rig, jiffy, &[3, 0], &after);
        }
    }
}

#[test]
fn intervals_double_while_all_tasks_are_bound() {
    let mut rig = rig::<Fcfs>("2 cpus");
    bind(&mut rig, 0, 0, 3, "0");
    // CPU 1, which is idle, tries in jiffies 1, 2, 4, 8 and 16 (2, 4, … 64 ms), each time in vain.
    rig.pass_until(17 * JIFFY);
    rig.create(9, 0);
    change_at(&mut rig, 32, &[3, 0], &[2, 0]);
    assert_eq!(rig.running(1), Some(9));
}

#[test]
fn intervals_double_once_while_balanced() {
    // 2 and then 4 ms are a jiffy each for an idle CPU.
    let mut rig = rig::<Fcfs>("2 cpus");
    bind(&mut rig, 0, 0, 1, "0");
    rig.create_with(1, 0, &pinned("0"));
    rig.next(0, Off::Exited);
    rig.pass_until(17 * JIFFY);
    fill(&mut rig, &[0, 0]);
    rig.create(9, 0);
    change_at(&mut rig, 18, &[1, 0], &[0, 0]);
    assert_eq!(rig.running(1), Some(9));
}

#[test]
fn what_may_not_run_here_goes_to_another_cpu_of_the_group() {
    let mut rig = rig::<Fcfs>("2 nodes x 2 cores");
    bind(&mut rig, 0, 0, 6, "0,3");
    bind(&mut rig, 1, 100, 1, "1");
    // CPU 2, the first idle one of node 1, balances: 7 tasks against none, so that 3 are to be
    // moved, of which it may run none itself.
    change_at(&mut rig, 1, &[5, 0, 0, 0], &[2, 0, 0, 2]);
    assert_eq!((rig.running(2), rig.running(3)), (None, Some(3)), "the last to leave comes first");
}

#[test]
fn bound_tasks_stay_and_another_cpu_is_tried() {
    let mut rig = rig::<Fcfs>("2 nodes x 2 cores");
    bind(&mut rig, 0, 0, 8, "0");
    fill(&mut rig, &[0, 4, 1, 1]);
    // Nodes: 4 ms, so jiffy 16 - 1. CPU 2 cannot take the tasks of CPU 0, but some of CPU 1.
    rig.pass_until(15 * JIFFY - 1);
    assert_eq!(rig.waiting(), [7, 3, 0, 0]);
    rig.pass_until(15 * JIFFY);
    assert_eq!((rig.waiting()[0], rig.queue(101)), (7, 2));
}

#[test]
fn a_group_whose_tasks_are_bound_is_helped_by_others() {
    let mut rig = rig::<Fcfs>("2 nodes x 2 cores");
    bind(&mut rig, 0, 0, 1, "0");
    bind(&mut rig, 0, 1, 1, "0,2");
    // In jiffy 1 CPU 2 sees two tasks on the two CPUs of node 0, which nodes may differ by. Then
    // CPU 1 finds that it may run neither, which node 1 heeds at its next turn, after 8 ms.
    change_at(&mut rig, 3, &[1, 0, 0, 0], &[0, 0, 0, 0]);
    assert_eq!([0, 1, 2].map(|cpu| rig.running(cpu)), [Some(0), None, Some(1)]);
}

/// All CPUs that run something tick, in `jiffy`.
fn tick<Q: RunQueue>(rig: &mut Rig<Q>, jiffy: u64) {
    rig.now = Time(jiffy * JIFFY * 1000);
    for cpu in 0..rig.cpus() {
        if let Some(task) = rig.running(cpu) {
            rig.charge_tick(cpu, task, Span::from_us(JIFFY));
        }
    }
    rig.settle();
}

/// The same rig on a machine with ticks, which also come while nothing waits.
fn ticking<Q: RunQueue>(machine: &str) -> Rig<Q> {
    let machine = Machine::parse(machine).unwrap().with_tick(Some(Span::from_us(JIFFY)));
    let settings =
        [("layout", "per-cpu"), ("place", "creator"), ("steal", "never"), ("balance", "linux")];
    Rig(Drive::new(build_rule(&machine, &settings).unwrap(), &machine))
}

#[test]
fn a_running_task_is_pushed_to_an_idle_core_after_four_failures() {
    let mut rig = ticking::<Fcfs>("2 cores x 2 threads");
    fill(&mut rig, &[1, 1]);
    // CPU 2 is to pull one of the two tasks of core 0, but both run.
    for jiffy in 1..=3 {
        tick(&mut rig, jiffy);
        assert_eq!([0, 1, 2].map(|cpu| rig.running(cpu)), [Some(0), Some(100), None], "{jiffy}");
    }
    tick(&mut rig, 4);
    assert_eq!([0, 1, 2].map(|cpu| rig.running(cpu)), [None, Some(100), Some(0)]);
}

#[test]
fn a_running_task_that_is_bound_is_not_pushed() {
    let mut rig = ticking::<Fcfs>("2 cores x 2 threads");
    bind(&mut rig, 0, 0, 1, "0,1");
    bind(&mut rig, 1, 100, 1, "0,1");
    (1..=20).for_each(|jiffy| tick(&mut rig, jiffy));
    assert_eq!([0, 1, 2].map(|cpu| rig.running(cpu)), [Some(0), Some(100), None]);
}

/// A rig where CPUs pull whenever they run out of work, and nothing else moves tasks.
fn pulling<Q: RunQueue>(machine: &str, cost: &str) -> Rig<Q> {
    let settings =
        [("place", "creator"), ("steal", "linux"), ("newidle_cost", cost), ("ni_random", "false")];
    Rig::new(machine, &settings)
}

/// How often CPU 1, which runs out of work, searches the other one that so often.
fn searches(rig: &mut Rig<Fcfs>, times: usize) -> usize {
    (0..times).filter(|_| rig.pick(1).is_some_and(|_| rig.off(1, Off::Exited) > 0)).count()
}

/// At first every other time; hardly ever where nothing is found (NI_RANDOM). Where something
/// always is, rarely less than three times of four: that a search is worth 1.3 tries rounds to one.
#[test]
fn a_domain_is_searched_as_often_as_that_helps() {
    let settings = [("place", "creator"), ("steal", "linux"), ("cache_hot", "0")];
    let mut rig = Rig::new("2 cpus", &settings);
    fill(&mut rig, &[3000]);
    let found = searches(&mut rig, 400);
    assert!((160..240).contains(&found), "{found} of 400");
    searches(&mut rig, 800);
    let found = searches(&mut rig, 400);
    assert!((280..360).contains(&found), "{found} of 400");
    // What is left may not go.
    while rig.waiting() != [0, 0] {
        searches(&mut rig, 1);
    }
    bind(&mut rig, 0, 20_000, 2, "0");
    searches(&mut rig, 20_000);
    (10_000..10_500).for_each(|task| rig.create(task, 0));
    let found = searches(&mut rig, 400);
    assert!(found < 40, "{found} of 400");
}

#[test]
fn a_cpu_that_runs_out_of_work_pulls_one_task() {
    let mut rig = pulling::<Fcfs>("2 cpus", "0");
    fill(&mut rig, &[4, 1]);
    assert_eq!(rig.next(1, Off::Exited), Some(1));
    assert_eq!(rig.waiting(), [2, 0]);
    // Of 2 tasks against none half the difference is one; of one nothing.
    assert_eq!(rig.next(1, Off::Exited), Some(2));
    assert_eq!(rig.next(1, Off::Exited), Some(3));
    assert_eq!(rig.next(1, Off::Exited), None);
    rig.create(4, 0);
    assert_eq!(rig.kicked(), [], "it is not told");
}

#[test]
fn a_hot_task_is_not_pulled() {
    let mut rig = pulling::<Fcfs>("2 cpus", "0");
    fill(&mut rig, &[2]);
    bind(&mut rig, 1, 100, 1, "1");
    assert_eq!(rig.next(0, Off::Yielded), Some(1));
    rig.pass_until(499);
    assert_eq!(rig.next(1, Off::Blocked), None);
    rig.wake(100, 1, None);
    rig.settle();
    rig.pass_until(500);
    assert_eq!(rig.next(1, Off::Blocked), Some(0));
}

#[test]
fn a_cpu_does_not_pull_if_that_takes_longer_than_it_is_idle() {
    // Balancing 2 CPUs takes 2 ms, which CPU 1 learns the first time. It expects to be idle for
    // 1 ms, until it was idle for 100 ms: by an eighth of the difference more, at most 4 ms.
    let mut rig = pulling::<Fcfs>("2 cpus", "1ms");
    fill(&mut rig, &[4]);
    bind(&mut rig, 1, 100, 1, "1");
    assert_eq!(rig.next(1, Off::Blocked), Some(1));
    assert_eq!(rig.next(1, Off::Exited), None);
    rig.pass_until(100_000);
    rig.wake(100, 1, None);
    rig.settle();
    assert_eq!(rig.next(1, Off::Blocked), Some(2));
}
