use crate::{Rig, pinned};
use anysched_core::{CpuId, Enqueue, Off, Scheduler, TaskId, TaskParams};
use anysched_policies::linux::cfs::Cfs;
use anysched_policies::textbook::fcfs::Fcfs;

/// FCFS with a runqueue per CPU and Linux's placement, where nobody pulls.
fn linux(machine: &str) -> Rig<Fcfs> {
    Rig::new(machine, &[("place", "linux"), ("steal", "never")])
}

/// Task n runs on CPU n, for each of `cpus`.
fn busy(rig: &mut Rig<Fcfs>, cpus: &[u16]) {
    for &cpu in cpus {
        rig.create_with(u32::from(cpu), cpu, &pinned(&format!("{cpu}")));
        rig.settle();
        assert_eq!(rig.running(cpu), Some(u32::from(cpu)));
    }
}

/// Task `task` has run on `cpu`, which is idle, and sleeps.
fn sleeper(rig: &mut Rig<Fcfs>, task: u32, cpu: u16) {
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
    // Of equals the creator's own node, core and CPU, else the lowest.
    assert_eq!(cpus, [0, 4, 2, 6, 1, 5, 3, 7, 0, 4]);
}

#[test]
fn new_tasks_go_where_weight_is_least() {
    let mut rig = Rig::<Cfs>::new("2 nodes x 1 core", &[("place", "linux"), ("steal", "never")]);
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
    // One task on the waker's CPU, one on the last: the waker's cache, where CPU 3 is idle.
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
    // Two tasks on the waker's CPU, one on the last: the last one's cache, where CPU 1 is idle.
    rig.wake(10, 0, Some(2));
    assert_eq!(rig.queue(10), 1);
}

#[test]
fn a_waker_about_to_sleep_does_not_count() {
    for (sync, queue) in [(false, 0), (true, 2)] {
        let mut rig = linux("2 llcs x 2 cores");
        sleeper(&mut rig, 10, 0);
        busy(&mut rig, &[0, 1, 2, 3]);
        rig.create_with(20, 2, &pinned("2"));
        rig.enqueue(10, Enqueue::Wakeup { prev: CpuId(0), sync }, Some(2));
        assert_eq!(rig.queue(10), queue);
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
    rig.wake(11, 0, None);
    assert_eq!(rig.queue(11), 1, "no idle core left: the first idle thread");
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
    let mut rig = linux("2 llcs x 2 cores");
    sleeper(&mut rig, 10, 1);
    sleeper(&mut rig, 11, 1);
    rig.set_online(1, false);
    rig.wake(10, 1, None);
    assert_eq!(rig.queue(10), 0, "beside where it ran");
    rig.settle();
    rig.wake(11, 1, None);
    assert_eq!(rig.queue(11), 2, "its cache is busy: the least loaded, the lowest of equals");
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
