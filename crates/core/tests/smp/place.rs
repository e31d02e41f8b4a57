//! Placement, as in Linux 6.12 where each CPU has its own runqueue; what is expected there follows
//! from `kernel/sched/fair.c` by hand.

use crate::{Rig, pinned};
use anysched_core::{CpuId, Enqueue, Off, RunQueue, Scheduler, TaskId, TaskParams};
use anysched_policies::linux::cfs::Cfs;
use anysched_policies::textbook::fcfs::Fcfs;

/// FCFS with a runqueue per CPU and Linux's placement, where nobody pulls.
fn linux(machine: &str) -> Rig<Fcfs> {
    Rig::new(machine, &[("place", "linux"), ("steal", "never")])
}

/// The same with a runqueue for each last-level cache.
fn shared<Q: RunQueue>(machine: &str) -> Rig<Q> {
    Rig::new(machine, &[("layout", "per-llc"), ("place", "linux"), ("steal", "never")])
}

/// Task n runs on CPU n, for each of `cpus`.
fn busy<Q: RunQueue>(rig: &mut Rig<Q>, cpus: &[u16]) {
    for &cpu in cpus {
        rig.create_with(u32::from(cpu), cpu, &pinned(&format!("{cpu}")));
        rig.settle();
        assert_eq!(rig.running(cpu), Some(u32::from(cpu)));
    }
}

/// Task `task` has run on `cpu`, which is idle, and sleeps.
fn sleeper<Q: RunQueue>(rig: &mut Rig<Q>, task: u32, cpu: u16) {
    rig.create_with(task, cpu, &pinned(&format!("{cpu}")));
    assert_eq!(rig.pick(cpu), Some(task));
    rig.next(cpu, Off::Blocked);
    rig.call(|smp, cx| {
        smp.update(cx, TaskId(task), &TaskParams::default());
    });
}

#[test]
fn new_tasks_spread_over_nodes_then_cores_then_threads() {
    let mut rig = linux("2 nodes x 2 cores x 2 threads");
    let mut cpus = Vec::new();
    for task in 0..10 {
        rig.create(task, 0);
        rig.settle();
        cpus.push(rig.queue(task));
    }
    // Of equals the creator's own node, core and CPU, else the lowest. As none is idle any more,
    // they stay, though the other node has fewer: the rest is left to balancing.
    assert_eq!(cpus, [0, 4, 2, 6, 1, 5, 3, 7, 0, 0]);
}

#[test]
fn new_tasks_spread_over_nodes_then_runqueues() {
    let mut rig = shared::<Fcfs>("2 nodes x 2 llcs x 1 core");
    let mut queues = Vec::new();
    for task in 0..6 {
        rig.create(task, 0);
        rig.settle();
        queues.push(rig.queue(task));
    }
    assert_eq!(queues, [0, 2, 1, 3, 0, 2]);
}

#[test]
fn new_tasks_go_where_load_is_least_if_all_cpus_are_overloaded() {
    let settings = [("place", "linux"), ("steal", "never"), ("balance", "linux"), ("tick", "0")];
    let mut rig = Rig::<Cfs>::new("2 llcs x 1 core", &settings);
    rig.create_with(0, 0, &TaskParams { weight: 5000, ..pinned("0") });
    rig.create_with(1, 0, &pinned("0"));
    for task in 2..6 {
        rig.create_with(task, 0, &pinned("1"));
    }
    rig.settle();
    rig.pass_until(200_000);
    let queues = [6, 7, 8].map(|task| {
        rig.create(task, 0);
        rig.queue(task)
    });
    // 6024 are more than 117 % of 4096, and of 5120, but not of 6144.
    assert_eq!(queues, [1, 1, 0]);
}

#[test]
fn new_tasks_go_to_the_runqueue_where_weight_is_least() {
    let mut rig = shared::<Cfs>("2 llcs x 1 core");
    rig.create_with(0, 0, &TaskParams { weight: 5000, ..pinned("0") });
    for task in 1..5 {
        rig.create_with(task, 0, &pinned("1"));
    }
    rig.settle();
    rig.create(5, 0);
    assert_eq!(rig.queue(5), 1, "1 task of weight 5000 against 4 of 1024");
    rig.create(6, 0);
    assert_eq!(rig.queue(6), 0, "5000 against 5120");
}

#[test]
fn new_tasks_go_to_the_cpu_of_a_group_that_went_idle_last() {
    let mut rig = Rig::<Fcfs>::new("2 llcs x 3 cores", &[("place", "linux"), ("steal", "linux")]);
    busy(&mut rig, &[0]);
    rig.pass_until(1000);
    sleeper(&mut rig, 10, 5);
    rig.pass_until(2000);
    sleeper(&mut rig, 11, 4);
    rig.create(20, 0);
    assert_eq!(rig.queue(20), 4, "the cache with most idle CPUs");
    rig.settle();
    rig.create(21, 0);
    assert_eq!(rig.queue(21), 1, "of equals the creator's own");
}

#[test]
fn what_idle_cpus_have_done_fades_when_another_goes_idle() {
    let mut rig = Rig::<Fcfs>::new("3 cpus", &[("place", "linux"), ("steal", "linux")]);
    busy(&mut rig, &[0]);
    rig.create_with(10, 1, &pinned("1"));
    rig.settle();
    rig.pass_until(20_000);
    rig.next(1, Off::Blocked);
    rig.pass_until(100_000);
    sleeper(&mut rig, 11, 2);
    // CPU 1 was used by 685 of 1024 when it went idle, which is 130 now; CPU 2 by 512.
    rig.create(20, 0);
    assert_eq!(rig.queue(20), 1);
}

#[test]
fn new_tasks_are_spread_over_the_cpus_that_they_may_use() {
    let mut rig = linux("2 nodes x 4 cores");
    // Node 0 has 3 tasks on 4 CPUs, but both of its CPUs that task 20 may use are free.
    busy(&mut rig, &[0, 1, 4, 7]);
    rig.create_with(20, 0, &pinned("2,3,4,5"));
    assert_eq!(rig.queue(20), 2);
    rig.settle();
    rig.create_with(21, 0, &pinned("2,4-6"));
    assert_eq!(rig.queue(21), 5, "node 0: 1 task on the 1 CPU; node 1: 1 on 3");
}

#[test]
fn a_task_wakes_where_it_ran_if_that_is_idle() {
    let mut rig = linux("4 cpus");
    sleeper(&mut rig, 10, 2);
    busy(&mut rig, &[1]);
    rig.wake(10, 2, Some(1));
    assert_eq!((rig.queue(10), rig.kicked()), (2, [2].into()));
}

#[test]
fn a_task_wakes_near_its_waker_if_that_is_no_busier() {
    let mut rig = linux("2 llcs x 2 cores");
    sleeper(&mut rig, 10, 0);
    sleeper(&mut rig, 11, 0);
    busy(&mut rig, &[0, 1, 2]);
    // One task on the waker's CPU; one on the last, where both sleepers still count: the waker's
    // cache, where CPU 3 is idle.
    rig.wake(10, 0, Some(2));
    assert_eq!((rig.queue(10), rig.kicked()), (3, [3].into()));
    rig.settle();
    rig.wake(11, 0, Some(2));
    assert_eq!(rig.queue(11), 2, "no idle CPU there: the waker's own");
}

#[test]
fn a_task_wakes_where_it_ran_if_its_waker_is_busier() {
    let mut rig = linux("2 llcs x 2 cores");
    sleeper(&mut rig, 10, 0);
    busy(&mut rig, &[0, 2, 3]);
    rig.create_with(20, 2, &pinned("2"));
    // Two tasks on the waker's CPU; one on the last, besides task 10: the last one's cache, where
    // CPU 1 is idle.
    rig.wake(10, 0, Some(2));
    assert_eq!(rig.queue(10), 1);
}

#[test]
fn a_waker_about_to_sleep_does_not_count() {
    // What else waits on the waker's CPU: nothing, something light, or up to 8 % more than on the
    // last one besides the task itself: (83 + 1024) * 100 against 1025 * 108 + 1, of which the
    // last is for such a waker. Loads of tasks are 1023, as they are rounded down.
    for (sync, beside, queue) in
        [(false, 0, 0), (true, 0, 2), (false, 15, 0), (true, 15, 2), (true, 83, 2), (true, 84, 0)]
    {
        let settings = [("place", "linux"), ("steal", "never")];
        let mut rig = Rig::<Cfs>::new("2 llcs x 2 cores", &settings);
        sleeper(&mut rig, 10, 0);
        busy(&mut rig, &[0, 1, 2, 3]);
        if beside > 0 {
            rig.create_with(20, 2, &TaskParams { weight: beside, ..pinned("2") });
        }
        rig.enqueue(10, Enqueue::Wakeup { prev: CpuId(0), sync }, Some(2));
        assert_eq!(rig.queue(10), queue, "sync: {sync}, beside it: {beside}");
    }
}

#[test]
fn a_waker_about_to_sleep_does_not_count_in_a_runqueue_that_cpus_share() {
    for (sync, queue) in [(false, 0), (true, 1)] {
        let mut rig = shared::<Fcfs>("2 llcs x 2 cores");
        sleeper(&mut rig, 10, 0);
        busy(&mut rig, &[0, 1, 2, 3]);
        rig.create_with(20, 2, &pinned("2"));
        rig.enqueue(10, Enqueue::Wakeup { prev: CpuId(0), sync }, Some(2));
        assert_eq!(rig.queue(10), queue);
    }
}

#[test]
fn idle_cpus_are_looked_for_from_the_next_one_on() {
    let mut rig = linux("4 cpus");
    (10..13).for_each(|task| sleeper(&mut rig, task, 2));
    busy(&mut rig, &[2]);
    for (task, queue) in [(10, 3), (11, 0), (12, 1)] {
        rig.wake(task, 2, None);
        rig.settle();
        assert_eq!(rig.queue(task), queue);
    }
}

#[test]
fn a_task_wakes_where_it_was_before_the_last_time() {
    let mut rig = linux("4 cpus");
    rig.create(10, 3);
    rig.settle();
    assert_eq!(rig.running(3), Some(10));
    rig.next(3, Off::Blocked);
    busy(&mut rig, &[3]);
    rig.wake(10, 3, None);
    rig.settle();
    assert_eq!(rig.running(0), Some(10));
    rig.next(0, Off::Blocked);
    busy(&mut rig, &[0]);
    rig.next(3, Off::Exited);
    rig.wake(10, 0, None);
    assert_eq!(rig.queue(10), 3, "not CPU 1, which comes next");
}

#[test]
fn an_idle_waker_is_an_interrupt() {
    // In the same cache its CPU will do if the last one is busy. In another one loads decide: 1023
    // there, but 1025 besides the task on the last CPU.
    let busy_cpus: [&[u16]; 4] = [&[], &[0], &[], &[0, 1]];
    for ((waker, queue), cpus) in [(1, 0), (1, 1), (2, 0), (2, 2)].into_iter().zip(busy_cpus) {
        let mut rig = linux("2 llcs x 2 cores");
        sleeper(&mut rig, 10, 0);
        busy(&mut rig, cpus);
        rig.wake(10, 0, Some(waker));
        assert_eq!(rig.queue(10), queue, "from CPU {waker} while {cpus:?} are busy");
    }
}

#[test]
fn a_waker_about_to_sleep_keeps_its_wakee_near() {
    for (sync, queue) in [(false, 0), (true, 2)] {
        let mut rig = linux("2 llcs x 2 cores");
        sleeper(&mut rig, 10, 0);
        busy(&mut rig, &[2, 3]);
        // The last CPU is idle, but its cache is not the waker's.
        rig.enqueue(10, Enqueue::Wakeup { prev: CpuId(0), sync }, Some(2));
        assert_eq!(rig.queue(10), queue);
    }
    let mut rig = linux("4 cpus");
    sleeper(&mut rig, 10, 2);
    busy(&mut rig, &[3]);
    rig.enqueue(10, Enqueue::Wakeup { prev: CpuId(2), sync: true }, Some(3));
    assert_eq!(rig.queue(10), 2, "its last CPU, before others of that cache");
}

#[test]
fn an_idle_core_comes_before_an_idle_thread() {
    let mut rig = linux("4 cores x 2 threads");
    sleeper(&mut rig, 10, 0);
    sleeper(&mut rig, 11, 0);
    busy(&mut rig, &[0, 2, 7]);
    // Idle are 1, 3, 6 beside busy threads, and the core of 4 and 5.
    rig.wake(10, 0, None);
    assert_eq!(rig.queue(10), 4);
    rig.settle();
    sleeper(&mut rig, 12, 6);
    rig.wake(11, 0, None);
    assert_eq!(rig.queue(11), 1, "no idle core left: the first idle thread");
    rig.settle();
    busy(&mut rig, &[6]);
    rig.next(7, Off::Exited);
    rig.wake(12, 6, None);
    assert_eq!(rig.queue(12), 7, "that is known: the thread beside its own, not the first");
}

#[test]
fn a_thread_out_of_use_does_not_make_its_core_busy() {
    let mut rig = linux("2 cores x 2 threads");
    sleeper(&mut rig, 10, 0);
    busy(&mut rig, &[0]);
    rig.set_online(2, false);
    rig.wake(10, 0, None);
    assert_eq!(rig.queue(10), 3);
}

#[test]
fn nothing_is_placed_on_a_cpu_out_of_use() {
    let mut rig = linux("2 llcs x 3 cores");
    sleeper(&mut rig, 10, 1);
    sleeper(&mut rig, 11, 1);
    rig.set_online(1, false);
    rig.wake(10, 1, None);
    assert_eq!(rig.queue(10), 0, "the first of its node");
    rig.settle();
    rig.wake(11, 1, None);
    assert_eq!(rig.queue(11), 0, "busy or not, though CPU 2 is idle");
    rig.settle();
    for task in 20..24 {
        rig.create(task, 1);
        assert_ne!(rig.queue(task), 1);
        rig.settle();
    }
}

#[test]
fn no_runqueue_is_used_whose_cpus_are_out_of_use() {
    let mut rig = shared::<Fcfs>("3 llcs x 1 core");
    sleeper(&mut rig, 10, 1);
    sleeper(&mut rig, 11, 1);
    rig.set_online(1, false);
    rig.wake(10, 1, None);
    assert_eq!(rig.queue(10), 0);
    rig.settle();
    rig.wake(11, 1, None);
    assert_eq!(rig.queue(11), 2, "the least loaded, the lowest of equals");
    rig.settle();
    for task in 20..24 {
        rig.create(task, 1);
        assert_ne!(rig.queue(task), 1);
        rig.settle();
    }
}

#[test]
fn what_was_out_for_a_moment_returns_to_its_runqueue() {
    let mut rig = linux("2 cpus");
    busy(&mut rig, &[0]);
    rig.create_with(10, 0, &pinned("0"));
    rig.call(|smp, cx| {
        smp.dequeue(cx, TaskId(10));
        smp.update(cx, TaskId(10), &TaskParams::default());
    });
    rig.enqueue(10, Enqueue::Resumed { prev: CpuId(0) }, None);
    assert_eq!(rig.queue(10), 0, "though CPU 1 is idle");
}

#[test]
fn other_placements() {
    let place = |place: &str, from: &[u16]| -> Vec<i64> {
        let mut rig = Rig::<Fcfs>::new("4 cpus", &[("place", place), ("steal", "never")]);
        rig.create_with(99, 0, &pinned("1"));
        rig.settle();
        let tasks = 0..from.len() as u32;
        for (task, &from) in tasks.clone().zip(from) {
            rig.create(task, from);
        }
        tasks.map(|task| rig.queue(task)).collect()
    };
    assert_eq!(place("creator", &[2, 2, 0, 1]), [2, 2, 0, 1]);
    // CPU 1 has a task already; task 99 took the first turn, which was not its CPU, and the next.
    assert_eq!(place("round-robin", &[2, 2, 0, 1]), [2, 3, 0, 1]);
    assert_eq!(place("least-loaded", &[1, 1, 1, 1, 1, 3]), [0, 2, 3, 1, 0, 3]);
}
