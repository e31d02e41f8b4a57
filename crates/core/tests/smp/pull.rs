use crate::{Rig, pinned};
use anysched_core::{Off, Scheduler, TaskId, TaskParams};
use anysched_policies::linux::cfs::Cfs;
use anysched_policies::textbook::fcfs::Fcfs;

/// A rig where tasks start on their creator's CPU and nothing moves but by pulling.
fn creator<Q: anysched_core::RunQueue>(machine: &str, steal: &str) -> Rig<Q> {
    Rig::new(machine, &[("place", "creator"), ("steal", steal)])
}

/// Every CPU runs the task of its number, which no other CPU may run.
fn all_busy<Q: anysched_core::RunQueue>(rig: &mut Rig<Q>, cpus: u16) {
    for cpu in 0..cpus {
        rig.create_with(u32::from(cpu), cpu, &pinned(&format!("{cpu}")));
    }
    rig.settle();
}

/// `count` tasks from number `first` on wait on `cpu`.
fn wait_on<Q: anysched_core::RunQueue>(rig: &mut Rig<Q>, cpu: u16, first: u32, count: u32) {
    for task in first..first + count {
        rig.create(task, cpu);
    }
    rig.settle();
}

/// What CPU 0 runs as its tasks exit one after the other.
fn drained<Q: anysched_core::RunQueue>(rig: &mut Rig<Q>) -> Vec<u32> {
    core::iter::from_fn(|| rig.next(0, Off::Exited)).collect()
}

#[test]
fn the_nearest_runqueue_comes_first_then_the_busiest() {
    let mut rig = creator::<Fcfs>("2 nodes x 2 llcs x 2 cores", "machine");
    all_busy(&mut rig, 8);
    wait_on(&mut rig, 1, 10, 1); // the same cache
    wait_on(&mut rig, 2, 20, 2); // the same node
    wait_on(&mut rig, 3, 30, 3);
    wait_on(&mut rig, 6, 60, 4); // the other node
    let pulled = drained(&mut rig);
    // On CPU 3 wait 3 tasks and on CPU 2 wait 2: the busier one, of equals the lower.
    assert_eq!(pulled, [10, 30, 20, 31, 21, 32, 60, 61, 62, 63]);
}

/// As Linux pulls, CPUs need runqueues of their own; where they share them they pull from all.
#[test]
fn cpus_that_share_runqueues_pull_from_all() {
    let settings = [("layout", "per-llc"), ("place", "creator"), ("steal", "linux")];
    let mut rig = Rig::<Fcfs>::new("2 llcs x 1 core", &settings);
    wait_on(&mut rig, 1, 10, 2);
    assert_eq!(rig.waiting(), [0, 0], "CPU 0 was told, and has taken one");
    let nature = anysched_core::registry::nature_of_rule::<Fcfs>(&settings).unwrap();
    assert!(nature.work_conserving);
}

#[test]
fn the_next_nearest_comes_after_one_with_nothing_to_take() {
    let mut rig = creator::<Fcfs>("2 nodes x 2 llcs x 2 cores", "machine");
    all_busy(&mut rig, 8);
    rig.create_with(70, 7, &pinned("7"));
    wait_on(&mut rig, 2, 20, 1);
    wait_on(&mut rig, 3, 30, 2);
    wait_on(&mut rig, 4, 40, 1);
    let pulled: Vec<u32> = core::iter::from_fn(|| rig.next(6, Off::Exited)).collect();
    assert_eq!(pulled, [40, 30, 20, 31], "the own node, then the busier of the other");
    assert_eq!(rig.waiting(), [0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn weight_decides_which_runqueue_is_busiest() {
    let mut rig = creator::<Cfs>("3 cpus", "machine");
    all_busy(&mut rig, 3);
    wait_on(&mut rig, 1, 10, 2);
    rig.create_with(20, 2, &TaskParams { weight: 5000, ..TaskParams::default() });
    rig.settle();
    assert_eq!(rig.next(0, Off::Exited), Some(20));
}

#[test]
fn a_cpu_of_less_capacity_is_busier_by_the_same_load() {
    use anysched_core::machine::{Cpu, Machine};
    let cpu = |core, capacity| Cpu { core, llc: 0, package: 0, node: 0, capacity };
    let machine = Machine::new([cpu(0, 1024), cpu(1, 1024), cpu(2, 512)].into()).unwrap();
    let mut rig = creator::<Fcfs>("3 cpus", "machine");
    let settings = [("layout", "per-cpu"), ("place", "creator")];
    rig.policy = anysched_core::registry::build_rule(&machine, &settings).unwrap();
    all_busy(&mut rig, 3);
    wait_on(&mut rig, 1, 10, 2);
    wait_on(&mut rig, 2, 20, 1);
    assert_eq!(drained(&mut rig), [20, 10, 11], "2 tasks on half a CPU against 3 on a whole");
}

#[test]
fn stealing_goes_as_far_as_it_may() {
    for (steal, expected) in
        [("never", &[][..]), ("llc", &[10]), ("node", &[10, 20]), ("machine", &[10, 20, 40])]
    {
        let mut rig = creator::<Fcfs>("2 nodes x 2 llcs x 2 cores", steal);
        all_busy(&mut rig, 8);
        wait_on(&mut rig, 1, 10, 1);
        wait_on(&mut rig, 2, 20, 1);
        wait_on(&mut rig, 4, 40, 1);
        assert_eq!(drained(&mut rig), expected, "{steal}");
        // CPU 0 is idle now: it is told of a task only if it could pull it.
        rig.create(41, 4);
        let told = if steal == "machine" { &[0][..] } else { &[] };
        assert_eq!(rig.kicked(), told, "{steal}");
    }
}

#[test]
fn a_cpu_that_is_too_far_to_pull_is_not_told() {
    for (steal, told) in [("llc", &[][..]), ("machine", &[1])] {
        let mut rig = Rig::<Fcfs>::new("2 llcs x 2 cores", &[("place", "linux"), ("steal", steal)]);
        rig.create_with(10, 0, &pinned("0"));
        rig.settle();
        rig.next(0, Off::Blocked);
        for (task, cpu) in [(0, "0"), (1, "0"), (2, "2"), (3, "3")] {
            rig.create_with(task, 0, &pinned(cpu));
        }
        rig.settle();
        rig.call(|smp, cx| smp.update(cx, TaskId(10), &TaskParams::default()));
        // It last ran beside CPU 1, which is idle, but wakes up in the cache of its waker.
        rig.wake(10, 0, Some(2));
        assert_eq!((rig.queue(10), &rig.kicked()[..]), (2, told));
    }
}

/// Task 10 has run on CPU 1 until 1ms and waits there since, task 20 waits on CPU 2.
fn one_ran_until_1ms(machine: &str) -> Rig<Fcfs> {
    let mut rig = creator::<Fcfs>(machine, "machine");
    all_busy(&mut rig, 4);
    rig.create_with(10, 1, &pinned("1"));
    rig.next(1, Off::Blocked);
    assert_eq!(rig.running(1), Some(10));
    rig.pass_until(1000);
    rig.wake(1, 1, None);
    rig.next(1, Off::Yielded);
    rig.call(|smp, cx| smp.update(cx, TaskId(10), &TaskParams::default()));
    wait_on(&mut rig, 2, 20, 1);
    rig
}

#[test]
fn what_ran_just_now_is_pulled_only_if_nothing_else_waits() {
    let mut rig = one_ran_until_1ms("2 nodes x 2 cores");
    // cache_hot is 0.5ms: 1 ns before, the task of the other node is taken first.
    rig.pass_until(1499);
    assert_eq!(drained(&mut rig), [20, 10]);
}

#[test]
fn what_ran_long_enough_ago_is_not_hot() {
    let mut rig = one_ran_until_1ms("2 nodes x 2 cores");
    rig.pass_until(1500);
    assert_eq!(drained(&mut rig), [10, 20]);
}

#[test]
fn threads_of_a_core_share_caches() {
    let mut rig = one_ran_until_1ms("2 cores x 2 threads");
    assert_eq!(drained(&mut rig), [10, 20]);
}

#[test]
fn only_allowed_tasks_are_pulled() {
    let mut rig = creator::<Fcfs>("3 cpus", "machine");
    all_busy(&mut rig, 3);
    rig.create_with(10, 1, &pinned("1,2"));
    wait_on(&mut rig, 1, 11, 1);
    rig.create_with(20, 2, &pinned("2"));
    assert_eq!(drained(&mut rig), [11]);
    assert_eq!(rig.waiting(), [0, 1, 1]);
    // As soon as task 20 may run there, the idle CPU is told.
    rig.call(|smp, cx| smp.update(cx, TaskId(20), &TaskParams::default()));
    assert_eq!(rig.kicked(), [0]);
}

#[test]
fn a_cpu_out_of_use_pulls_nothing_and_its_tasks_move() {
    let mut rig = creator::<Fcfs>("3 cpus", "machine");
    all_busy(&mut rig, 1);
    rig.create_with(1, 1, &TaskParams::default());
    rig.create_with(2, 2, &pinned("2"));
    rig.settle();
    wait_on(&mut rig, 1, 10, 2);
    rig.set_online(1, false);
    // Of tasks 10, 11 and 1 each goes to the runqueue that then has the fewest tasks.
    assert_eq!(rig.waiting(), [2, 0, 1]);
    assert_eq!(rig.pick(1), None);
    rig.set_online(1, true);
    assert_eq!(rig.kicked(), [1]);
    rig.settle();
    assert_eq!(rig.running(1), Some(10), "the first of the busiest");
}

#[test]
fn a_task_that_its_cpu_is_about_to_run_is_left_to_it() {
    let mut rig = creator::<Fcfs>("3 cpus", "machine");
    rig.create(10, 1);
    assert_eq!(rig.kicked(), [1]);
    assert_eq!(rig.pick(0), None);
    assert_eq!(rig.pick(2), None);
    rig.settle();
    assert_eq!(rig.running(1), Some(10));
}

#[test]
fn an_expired_task_wakes_nobody_if_its_cpu_picks_it_again() {
    let mut rig = creator::<Fcfs>("2 cpus", "machine");
    rig.create(10, 0);
    rig.settle();
    rig.put(0, Off::Expired);
    assert_eq!(rig.kicked(), [] as [u16; 0]);
    // A second task needs a second CPU, although the first one runs nothing yet.
    rig.create(11, 0);
    assert_eq!(rig.kicked(), [1]);
    rig.pick(0);
    rig.settle();
    assert_eq!((rig.running(0), rig.running(1)), (Some(10), Some(11)));
}

#[test]
fn a_cpu_that_takes_another_task_hands_on_the_one_it_was_told_of() {
    let mut rig = Rig::<Fcfs>::new("3 cpus", &[("layout", "global")]);
    rig.create_with(0, 0, &pinned("0"));
    rig.create_with(12, 1, &pinned("1,2"));
    rig.settle();
    rig.create_with(10, 1, &pinned("1"));
    rig.put(1, Off::Yielded);
    assert_eq!(rig.kicked(), [] as [u16; 0], "CPU 1 picks next and may take task 12 again");
    assert_eq!(rig.pick(1), Some(10));
    assert_eq!(rig.kicked(), [2], "but task 10 came first");
}

#[test]
fn two_cpus_that_take_each_others_task_need_no_third() {
    let mut rig = Rig::<Fcfs>::new("3 cpus", &[("layout", "global")]);
    rig.create(10, 1);
    rig.create(11, 2);
    assert_eq!(rig.kicked(), [1, 2]);
    assert_eq!(rig.pick(2), Some(10), "which CPU 1 was told of");
    assert_eq!(rig.kicked(), [1], "so CPU 1 is for task 11 now, and CPU 0 sleeps on");
}
