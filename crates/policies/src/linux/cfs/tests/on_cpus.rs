//! The rule on machines: slices, shares, new tasks and moves between runqueues.

use alloc::vec::Vec;

use super::{Cfs, CfsParams, HALF, MS, THIRD, ms};
use anysched_core::registry::build_rule;
use anysched_core::{
    Arrival, CpuId, CpuSet, Enqueue, Machine, Off, RunQueue, Scheduler, Span, TaskId, TaskParams,
};
use anysched_core::{Smp, Uni};
use anysched_oracle::drive::Drive;

/// One CPU's runqueue of a machine; the other CPUs do nothing.
fn one_queue(machine: &str, settings: &[(&str, &str)]) -> Drive<Smp<Cfs>> {
    let alone = [("place", "creator"), ("steal", "never"), ("balance", "never")];
    Drive::rule(machine, &[&alone, settings].concat())
}

fn create(drive: &mut Drive<Smp<Cfs>>, task: u32, nice: i8) {
    drive.create_with(task, None, &TaskParams::nice(nice));
}

/// The task running on CPU 0 creates `task`.
fn fork(drive: &mut Drive<Smp<Cfs>>, task: u32) {
    drive.call(|smp, cx| {
        smp.attach(cx, TaskId(task), &TaskParams::default());
        let arrival = Arrival { from: Some(CpuId(0)), ..Arrival::because(Enqueue::New) };
        smp.enqueue(cx, TaskId(task), arrival);
    });
}

fn vruntime(drive: &Drive<Smp<Cfs>>, task: u32) -> i64 {
    drive.probe(task, "vruntime_ns")
}

fn min_vruntime(drive: &Drive<Smp<Cfs>>, task: u32) -> i64 {
    drive.probe(task, "min_vruntime_ns")
}

/// The slice that task 0 gets beside the others, if slices end exactly and all begin alike.
fn slice(machine: &str, settings: &[(&str, &str)], nices: &[i8]) -> Span {
    let exact = [("tick", "0"), ("start_debit", "false"), ("base_slice", "false")];
    let mut drive = one_queue(machine, &[&exact, settings].concat());
    for (task, &nice) in (0..).zip(nices) {
        create(&mut drive, task, nice);
    }
    let (task, slice) = drive.pick(0).unwrap();
    assert_eq!(task, 0, "the first of the new ones");
    slice
}

#[test]
fn slices_divide_a_period_by_weight() {
    // Within 20 ns, because the inverses of weights are rounded down.
    let assert = |slice: Span, exact: u64| assert!((exact - 20..=exact).contains(&slice.0));
    let equal = |tasks| slice("8 cpus", &[], &[0].repeat(tasks));
    assert(equal(1), 24_000_000);
    assert(equal(2), 12_000_000);
    assert(equal(8), 3_000_000);
    // 48 ms among 16.
    assert(equal(16), 3_000_000);
    // 26 ms are 8.67 times 3 ms, so 9 tasks share one latency and 10 do not.
    let longer = |tasks| slice("8 cpus", &[("latency", "6.5ms")], &[0].repeat(tasks));
    assert(longer(9), 26_000_000 / 9);
    assert(longer(10), 3_000_000);
    // Nice 0 weighs 1024, nice 5 weighs 335.
    assert(slice("8 cpus", &[], &[0, 5]), 24_000_000 * 1024 / 1359);
    assert(slice("8 cpus", &[], &[5, 0]), 24_000_000 * 335 / 1359);
    // Of 24 ms, weight 15 beside 88761 has 4 us: less than an exact slice may be.
    assert_eq!(slice("8 cpus", &[], &[19, -20]), Span::from_us(10));
    assert_eq!(slice("8 cpus", &[("base_slice", "true")], &[19, -20]), ms(3));
}

#[test]
fn times_scale_with_the_number_of_cpus() {
    // Half of a latency of 6 ms times 1, 2, 3 or 4; or times the number of CPUs, up to 8.
    for (cpus, log, linear) in
        [("1", 3, 3), ("2", 6, 6), ("3", 6, 9), ("4", 9, 12), ("7", 9, 21), ("16", 12, 24)]
    {
        for (scaling, expected) in [("log", log), ("linear", linear), ("none", 3)] {
            let slice = slice(cpus, &[("tunable_scaling", scaling)], &[0, 0]);
            assert_eq!(slice.0.div_ceil(1000), expected * 1000, "{cpus} CPUs, {scaling}");
        }
    }
}

#[test]
fn cpus_that_share_a_runqueue_share_its_weight() {
    let slice =
        |nices: &[i8]| slice("2 cpus", &[("layout", "global"), ("tunable_scaling", "none")], nices);
    let us = |nices: &[i8]| slice(nices).0.div_ceil(1000);
    assert_eq!(us(&[0; 4]), 3_000, "half a CPU each, of 6 ms");
    assert_eq!(us(&[-20, 0, 0]), 6_000, "not more than a whole CPU");
    // 17 tasks are 9 per CPU, more than the 8 that share one latency: 6.75 ms.
    assert_eq!(us(&[0; 17]), 6_750 * 2 / 17 + 1);
}

/// CPU time in ms of tasks that always run, with a tick of 1 ms on one CPU of 8.
fn shares<const N: usize>(nices: [i8; N], duration_ms: u64) -> [u64; N] {
    let mut drive = one_queue("8 cpus", &[]);
    for (task, nice) in (0..).zip(nices) {
        create(&mut drive, task, nice);
    }
    let mut had = [0; N];
    let (mut running, _) = drive.pick(0).unwrap();
    drive.kicked();
    for _ in 0..duration_ms {
        had[running as usize] += 1;
        if drive.tick(running, ms(1)) {
            drive.put(0, running, Span::ZERO, Off::Preempted);
            (running, _) = drive.pick(0).unwrap();
        }
    }
    had
}

#[test]
fn cpu_time_is_shared_by_weight() {
    // 1024 / (1024 + 335) is 75.35 % of 60 s: 45.21 s, to within two slices of 18 ms.
    let [nice_0, nice_5] = shares([0, 5], 60_000);
    assert!((45_174..=45_246).contains(&nice_0), "{nice_0} {nice_5}");
    let had = shares([0; 5], 60_000);
    // 4.8 ms each, seen to end at 5 ms; whoever began ahead may be a turn behind at the end.
    assert!(had.iter().all(|had| had.abs_diff(12_000) <= 24), "{had:?}");
}

#[test]
fn equal_tasks_take_turns_of_a_slice() {
    // Task 1 begins at 12 ms, as one of two, and task 0 at 24 ms. A slice is exceeded at 12 ms, the
    // first tick after 11.999 ms.
    assert_eq!(shares([0, 0], 12), [0, 12]);
    assert_eq!(shares([0, 0], 24), [12, 12]);
    assert_eq!(shares([0, 0], 25), [12, 13]);
}

#[test]
fn the_tick_is_the_machines_or_1_ms_or_as_told() {
    let period = |tick, settings: &[(&str, &str)]| {
        let machine = Machine::flat(2).unwrap().with_tick(tick);
        let smp = build_rule::<Cfs>(&machine, settings).unwrap();
        smp.tick_period()
    };
    assert_eq!(period(None, &[]), Some(ms(1)));
    assert_eq!(period(Some(ms(4)), &[]), Some(ms(4)));
    assert_eq!(period(Some(ms(4)), &[("tick", "10ms")]), Some(ms(10)));
    assert_eq!(period(Some(ms(4)), &[("tick", "0")]), None);
}

#[test]
fn a_new_task_begins_one_slice_behind() {
    let mut drive = one_queue("8 cpus", &[]);
    create(&mut drive, 0, 0);
    assert_eq!(vruntime(&drive, 0), 24 * MS - 6, "alone: the slice is the latency");
    create(&mut drive, 1, 0);
    assert_eq!((min_vruntime(&drive, 1), vruntime(&drive, 1)), (0, HALF.0 as i64));
    // Weighs 335 of 2383: its slice of 24 ms is 3.374 ms, in its virtual time 10.31 ms.
    create(&mut drive, 2, 5);
    assert!((vruntime(&drive, 2) - 24 * MS * 1024 / 2383).abs() < 10);

    let mut drive = one_queue("8 cpus", &[("start_debit", "false")]);
    create(&mut drive, 0, 0);
    create(&mut drive, 1, 0);
    assert_eq!((vruntime(&drive, 0), vruntime(&drive, 1)), (0, 0));
}

#[test]
fn a_child_does_not_begin_before_its_creator() {
    let mut drive = one_queue("8 cpus", &[]);
    create(&mut drive, 0, 0);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    create(&mut drive, 1, 0);
    // Task 0 runs from 24 ms to 50 ms; task 1 waits at 12 ms.
    drive.now += ms(26);
    fork(&mut drive, 2);
    let half = HALF.0 as i64;
    assert_eq!(min_vruntime(&drive, 2), half);
    assert_eq!(vruntime(&drive, 2), 50 * MS - 6, "12 ms and a third of 24 ms are less");
    // Task 1 is itself the minimum. With tasks 2 and 3 that makes 3 again.
    drive.put(0, 0, ms(26), Off::Blocked);
    assert_eq!(drive.pick(0).unwrap().0, 1);
    fork(&mut drive, 3);
    assert_eq!(vruntime(&drive, 3), half + THIRD.0 as i64);
}

#[test]
fn a_child_may_change_places_with_its_creator() {
    let mut drive = one_queue("1", &[("child_runs_first", "true")]);
    create(&mut drive, 0, 0);
    drive.pick(0);
    drive.kicked();
    let own = vruntime(&drive, 0);
    drive.now += ms(1);
    create(&mut drive, 1, 0);
    assert_eq!(drive.kicked(), [0; 0], "nobody created it");
    fork(&mut drive, 2);
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(vruntime(&drive, 2), own + MS);
    assert!(vruntime(&drive, 0) > own + MS);
}

#[test]
fn new_weights_count_for_preemption_at_once() {
    let machine = Machine::flat(1).unwrap();
    let params = CfsParams { start_debit: false, ..CfsParams::default() };
    let mut drive = Drive::new(Uni::<Cfs>::new(&machine, &params).unwrap(), &machine);
    (0..3).for_each(|task| drive.create_with(task, None, &TaskParams::nice(0)));
    drive.pick(0);
    drive.kicked();
    drive.now += Span::from_us(900);
    drive.update(0, &TaskParams::nice(0));
    assert_eq!(drive.kicked(), [0; 0], "nothing has changed");
    drive.update(0, &TaskParams::nice(-1));
    assert_eq!(drive.kicked(), [0; 0], "what runs is less nice");
    // 0.9 ms behind: less than 1 ms, but not than 1 ms at nice -5.
    drive.update(1, &TaskParams::nice(-5));
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(drive.next(0, Off::Preempted), Some(1));
    drive.update(1, &TaskParams::nice(0));
    assert_eq!(drive.kicked(), [0], "what runs is nicer");
}

#[test]
fn a_child_on_another_cpu_is_as_far_behind_there() {
    let settings = [("place", "round-robin"), ("steal", "never"), ("tick", "0")];
    let mut drive = Drive::<Smp<Cfs>>::rule("8 cpus", &settings);
    create(&mut drive, 0, 0);
    drive.pick(0);
    drive.now += ms(100);
    // Alone, the creator is the minimum of its runqueue, at 124 ms, and the slice of a child is
    // 12 ms there. Where the child goes nothing has run yet.
    fork(&mut drive, 1);
    assert_eq!(drive.probe(1, "runqueue"), 1);
    assert_eq!(vruntime(&drive, 1), HALF.0 as i64);
}

/// Two CPUs: task 0 runs on CPU 0 from 24 ms on, task 1 on CPU 1 from 124 ms on. Task 2 belongs
/// to CPU 0.
fn two_queues() -> Drive<Smp<Cfs>> {
    let settings = [("place", "creator"), ("balance", "never"), ("tunable_scaling", "linear")];
    let mut drive = Drive::<Smp<Cfs>>::rule("4 cpus", &settings);
    for (task, cpu) in [(1, 1), (0, 0)] {
        let affinity = CpuSet::of([CpuId(cpu)]);
        drive.create_with(task, None, &TaskParams { affinity, ..TaskParams::default() });
        drive.pick(cpu);
        // What the slice of a new task was rounded by.
        let mut ran = Span(6);
        if task == 1 {
            drive.now += ms(100);
            ran += ms(100);
        }
        drive.call(|smp, cx| smp.tick(cx, CpuId(cpu), TaskId(task), ran));
    }
    let affinity = CpuSet::of([CpuId(0)]);
    drive.create_with(2, None, &TaskParams { affinity, ..TaskParams::default() });
    drive
}

#[test]
fn a_task_that_is_moved_stays_as_far_behind() {
    let mut drive = two_queues();
    let half = HALF.0 as i64;
    assert_eq!((min_vruntime(&drive, 0), vruntime(&drive, 2)), (24 * MS, 24 * MS + half));
    assert_eq!(min_vruntime(&drive, 1), 124 * MS);
    let allowed = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::default() };
    drive.call(|smp, cx| smp.update(cx, TaskId(2), &allowed));
    assert_eq!(drive.probe(2, "runqueue"), 1);
    assert_eq!(vruntime(&drive, 2), 124 * MS + half);
    assert_eq!(
        (0..2).map(|queue| drive.policy.rule().load(queue)).collect::<Vec<_>>(),
        [1024, 2048]
    );
}

#[test]
fn a_task_that_wakes_elsewhere_stays_as_far_ahead_within_limits() {
    for (ran, expected) in [(5, 119 * MS + HALF.0 as i64), (30, (124 - 12) * MS)] {
        let mut drive = two_queues();
        drive.call(|smp, cx| smp.dequeue(cx, TaskId(2)));
        let allowed = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::default() };
        drive.call(|smp, cx| smp.update(cx, TaskId(2), &allowed));
        // While it sleeps, its old runqueue goes on by `ran`, the new one stands still.
        let ran = ms(ran);
        drive.call(|smp, cx| smp.tick(cx, CpuId(0), TaskId(0), ran));
        drive.wake(2);
        assert_eq!(drive.probe(2, "runqueue"), 1);
        assert_eq!(vruntime(&drive, 2), expected);
    }
}
