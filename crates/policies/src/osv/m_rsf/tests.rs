use super::*;
use alloc::string::ToString;
use anysched_core::Scheduler;
use anysched_core::Smp;
use anysched_core::registry::build_rule;
use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, times};

type Setting = (&'static str, &'static str);

const SLICES: [Setting; 2] = [("q1", "2ms"), ("q2", "2ms")];

fn with(more: &[Setting]) -> Vec<Setting> {
    [&SLICES, more].concat()
}

fn drive(machine: &str, more: &[Setting]) -> Drive<Smp<MRsf>> {
    Drive::rule(machine, &with(more))
}

/// Creates tasks of these sizes in ms at once, numbered from 0.
fn create(drive: &mut Drive<Smp<MRsf>>, sizes: &[u64]) {
    for (task, &size) in (0..).zip(sizes) {
        drive.create(task, Some(ms(size)));
    }
}

/// The tasks that CPU 0 picks, each to its end.
fn order(drive: &mut Drive<Smp<MRsf>>, tasks: usize) -> Vec<u32> {
    (0..tasks).map(|_| drive.run(Span(1), Off::Exited)).collect()
}

fn part(drive: &Drive<Smp<MRsf>>, task: u32) -> i64 {
    drive.probe(task, "part")
}

fn on(cpus: &[u16]) -> TaskParams {
    let affinity = CpuSet::of(cpus.iter().map(|&cpu| CpuId(cpu)));
    TaskParams { affinity, ..TaskParams::default() }
}

#[test]
fn golden_vectors() {
    let closed = play::<MRsf>(&SLICES, CLOSED);
    closed.assert(CLOSED, &[22, 3, 19, 1, 27, 12], 25);
    assert_eq!(closed.first, times(&[7, 1, 5, 0, 9, 3]));
    let spill = play::<MRsf>(&with(&[("spill", "true")]), CLOSED);
    spill.assert(CLOSED, &[20, 3, 17, 1, 27, 10], 30);
    assert_eq!(spill.first, times(&[7, 1, 5, 0, 14, 3]));
    play::<MRsf>(&SLICES, OPEN).assert(OPEN, &[16, 10, 20, 7, 9], 5);
    // With one CPU nothing runs when it picks, so the levels are apart anyhow.
    let batch = play::<MRsf>(&with(&[("batch", "true")]), CLOSED);
    assert_eq!(batch, closed);
}

#[test]
fn a_batch_is_dealt_by_size_in_turn_or_in_thirds_and_unsorted_by_number() {
    let sizes = [7, 2, 5, 1, 9, 3, 8];
    let parts = |settings: &[Setting]| {
        let mut drive = drive("1", settings);
        create(&mut drive, &sizes);
        drive.pick(0);
        (0..7).map(|task| part(&drive, task)).collect::<Vec<i64>>()
    };
    // By size: 3, 1, 5, 2, 0, 6, 4.
    assert_eq!(parts(&[]), [2, 2, 1, 1, 1, 3, 3]);
    // 7 tasks in thirds: places 0 to 2, 3 and 4, 5 and 6.
    assert_eq!(parts(&[("deal", "contiguous-thirds")]), [2, 1, 2, 1, 3, 1, 3]);
    assert_eq!(parts(&[("sort_q1", "false")]), [1, 2, 3, 1, 2, 3, 1]);
    let mut unsorted = drive("1", &[("sort_q1", "false")]);
    create(&mut unsorted, &sizes);
    assert_eq!(order(&mut unsorted, 7), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn dealing_in_turn_goes_on_from_batch_to_batch() {
    for deal in ["cyclic", "contiguous-thirds"] {
        let mut drive = drive("1", &[("deal", deal)]);
        create(&mut drive, &[4]);
        drive.pick(0);
        // Two at another instant, then one more before anything is picked.
        drive.now += ms(1);
        drive.create(1, Some(ms(9)));
        drive.create(2, Some(ms(1)));
        drive.now += ms(1);
        drive.create(3, Some(ms(5)));
        drive.put(0, 0, ms(1), Off::Exited);
        drive.pick(0);
        assert_eq!([0, 1, 2, 3].map(|task| part(&drive, task)), [1, 3, 2, 1], "{deal}");
    }
}

#[test]
fn the_parts_have_their_turns_and_an_undone_pick_takes_none() {
    let mut drive = drive("1", &[]);
    create(&mut drive, &[1, 2, 3, 4]);
    // Parts: 0 and 3 in the first, 1 in the second, 2 in the third.
    assert_eq!(drive.run(Span::ZERO, Off::NotRun), 0);
    assert_eq!(drive.run(Span(1), Off::Exited), 0);
    assert_eq!(drive.run(Span(1), Off::Yielded), 1);
    assert_eq!(order(&mut drive, 3), [2, 3, 1]);
}

#[test]
fn a_slice_per_level_and_the_rest_to_completion() {
    let mut drive = drive("1", &[]);
    create(&mut drive, &[9, 8]);
    assert_eq!(drive.pick(0), Some((1, ms(2))));
    drive.put(0, 1, ms(2), Off::Expired);
    assert_eq!(drive.probe(1, "level"), 2);
    assert_eq!(drive.run(ms(2), Off::Expired), 0);
    // 6 ms left against 7.
    assert_eq!(drive.pick(0), Some((1, ms(2))));
    drive.put(0, 1, ms(2), Off::Expired);
    assert_eq!(drive.run(ms(2), Off::Expired), 0);
    assert_eq!(drive.pick(0), Some((1, Span::MAX)));
    drive.put(0, 1, ms(1), Off::Yielded);
    assert_eq!(drive.pick(0), Some((0, Span::MAX)), "who yields in Q3 goes to the tail");
    // The host takes it off: its place is kept.
    drive.put(0, 0, ms(1), Off::Preempted);
    assert_eq!(order(&mut drive, 2), [0, 1]);
}

#[test]
fn yielding_and_preemption_keep_level_and_slice() {
    for why in [Off::Yielded, Off::Preempted] {
        let mut drive = drive("1", &[]);
        create(&mut drive, &[5, 6]);
        assert_eq!(drive.run(ms(1), why), 0);
        assert_eq!(drive.run(ms(1), Off::Exited), 1, "the next part has its turn");
        assert_eq!(drive.pick(0), Some((0, ms(1))));
        // With nothing left of it the slice is over, whatever the reason.
        drive.put(0, 0, ms(1), why);
        assert_eq!((drive.probe(0, "level"), drive.pick(0)), (2, Some((0, ms(2)))));
    }
}

/// Tasks 0 and 3 share a part and have 4 ms left each.
#[test]
fn of_equals_a_yielder_goes_behind_and_a_preempted_task_in_front() {
    for (why, then) in [(Off::Yielded, 3), (Off::Preempted, 0), (Off::NotRun, 0)] {
        let mut drive = drive("1", &[("sort_q1", "false")]);
        create(&mut drive, &[4, 4, 4, 4]);
        assert_eq!(drive.run(Span::ZERO, why), 0);
        if why != Off::NotRun {
            assert_eq!([drive.run(Span(1), Off::Exited), drive.run(Span(1), Off::Exited)], [1, 2]);
        }
        assert_eq!(drive.run(Span(1), Off::Exited), then, "{why:?}");
    }
}

#[test]
fn blocking_keeps_level_part_and_slice() {
    let mut drive = drive("1", &[]);
    create(&mut drive, &[1, 9]);
    assert_eq!(drive.run(ms(1), Off::Blocked), 0);
    drive.wake_for(0, Some(ms(7)));
    assert_eq!((part(&drive, 0), drive.probe(0, "left_ns")), (1, 7_000_000));
    assert_eq!(drive.run(ms(2), Off::Expired), 1);
    assert_eq!(drive.pick(0), Some((0, ms(1))));
    // It blocks when its slice is used up: there is no second one on the level.
    drive.put(0, 0, ms(1), Off::Blocked);
    assert_eq!(drive.probe(0, "level"), 1);
    drive.wake_for(0, Some(ms(3)));
    assert_eq!(drive.probe(0, "level"), 2);
    assert_eq!(drive.pick(0), Some((0, ms(2))));
    drive.put(0, 0, ms(1), Off::Blocked);
    drive.wake_for(0, Some(ms(8)));
    assert_eq!(drive.run(ms(2), Off::Expired), 1, "7 ms left against 8");
    assert_eq!(drive.pick(0), Some((0, ms(1))));
}

#[test]
fn taking_a_task_out_for_a_moment_keeps_its_place() {
    let mut drive = drive("1", &[]);
    create(&mut drive, &[5; 4]);
    drive.take_out_and_resume(0);
    assert_eq!(drive.run(Span(1), Off::Exited), 0);
    drive.take_out_and_resume(1);
    assert_eq!(order(&mut drive, 3), [1, 2, 3]);
}

#[test]
fn q2_may_be_unsorted() {
    for (sort, then) in [("true", [1, 0]), ("false", [0, 1])] {
        let mut drive = drive("1", &[("sort_q1", "false"), ("sort_q2", sort)]);
        create(&mut drive, &[9, 5]);
        drive.run(ms(2), Off::Expired);
        drive.run(ms(2), Off::Expired);
        assert_eq!(order(&mut drive, 2), then, "{sort}");
    }
}

#[test]
fn each_level_has_its_own_slice_or_none() {
    let settings = [("q1", "3ms"), ("q2", "none")];
    let mut drive = Drive::<Smp<MRsf>>::rule("1", &settings);
    drive.create(0, Some(ms(900)));
    assert_eq!(drive.pick(0), Some((0, ms(3))));
    drive.put(0, 0, ms(3), Off::Expired);
    assert_eq!(drive.run(ms(300), Off::Yielded), 0);
    assert_eq!((drive.pick(0), drive.probe(0, "level")), (Some((0, Span::MAX)), 2));
}

/// Part 1 has tasks 0, 3 and 6; the first to use up its slice takes the others along.
#[test]
fn an_overrun_spills_what_waits_in_its_part() {
    let mut drive = drive("1", &[("spill", "true")]);
    create(&mut drive, &[3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(drive.run(ms(2), Off::Expired), 0);
    assert_eq!([0, 3, 6].map(|task| drive.probe(task, "level")), [2; 3]);
    assert_eq!([1, 2, 4, 5].map(|task| drive.probe(task, "level")), [1; 4]);
    assert_eq!(order(&mut drive, 7), [1, 2, 4, 5, 0, 3, 6]);
    // A task created with the overrun is dealt before it. Ending a slice by blocking is none.
    drive.now += ms(1);
    drive.create(7, Some(ms(3)));
    drive.create(8, Some(ms(3)));
    drive.create(9, Some(ms(3)));
    let first = drive.pick(0).unwrap().0;
    drive.now += ms(2);
    (10..13).for_each(|task| drive.create(task, Some(ms(9))));
    drive.put(0, first, ms(2), Off::Expired);
    let fellow = (10..13).find(|&task| part(&drive, task) == part(&drive, first)).unwrap();
    let levels: Vec<i64> = (7..13).map(|task| drive.probe(task, "level")).collect();
    assert_eq!(levels.iter().sum::<i64>(), 6 + 2, "{levels:?}");
    assert_eq!(drive.probe(fellow, "level"), 2);
}

#[test]
fn in_batches_a_level_opens_when_no_task_of_a_higher_one_waits_or_runs() {
    let mut drive = drive("2", &[("batch", "true")]);
    create(&mut drive, &[5, 7]);
    assert_eq!([drive.pick(0), drive.pick(1)], [Some((0, ms(2))), Some((1, ms(2)))]);
    drive.kicked();
    drive.now += ms(2);
    drive.put(0, 0, ms(2), Off::Expired);
    assert_eq!((drive.pick(0), drive.kicked()), (None, [].into()), "task 1 runs on level 1");
    drive.put(1, 1, ms(2), Off::Expired);
    assert_eq!(drive.kicked(), [0]);
    assert_eq!([drive.pick(1), drive.pick(0)], [Some((0, ms(2))), Some((1, ms(2)))]);
    // The last of a level may also block, or be taken out of the queue.
    drive.put(1, 0, ms(2), Off::Expired);
    assert_eq!(drive.pick(1), None);
    drive.put(0, 1, ms(1), Off::Blocked);
    assert_eq!(drive.pick(0), Some((0, Span::MAX)));
    drive.wake_for(1, Some(ms(3)));
    assert_eq!(drive.kicked(), [1]);
    drive.call(|smp, cx| smp.dequeue(cx, TaskId(1)));
    assert_eq!(drive.pick(1), None);
    drive.put(0, 0, ms(1), Off::Yielded);
    drive.wake_for(1, Some(ms(3)));
    assert_eq!(drive.pick(0).map(|pick| pick.0), Some(1));
    assert_eq!(drive.pick(1), None, "Q3 is closed again");
}

#[test]
fn waiting_long_raises_a_level_with_a_new_slice() {
    let mut drive = drive("1", &[("aging", "10ms")]);
    create(&mut drive, &[30, 40]);
    for task in [0, 1, 0, 1] {
        assert_eq!(drive.policy.next_timer().is_some(), !drive.policy.rule().by_wait[0].is_empty());
        assert_eq!(drive.run(ms(2), Off::Expired), task);
    }
    // At 8 ms: both in Q3, queued at 6 and at 8 ms.
    assert_eq!(drive.pick(0), Some((0, Span::MAX)));
    assert_eq!(drive.policy.next_timer(), Some(Time::ZERO + ms(18)));
    drive.now = Time::ZERO + ms(17);
    drive.call(|smp, cx| smp.timer(cx));
    assert_eq!(drive.probe(1, "level"), 3);
    drive.now = Time::ZERO + ms(18);
    drive.call(|smp, cx| smp.timer(cx));
    assert_eq!((drive.probe(1, "level"), drive.probe(1, "slice_left_ns")), (2, 2_000_000));
    assert_eq!(drive.policy.next_timer(), Some(Time::ZERO + ms(28)));
    drive.now = Time::ZERO + ms(28);
    drive.call(|smp, cx| smp.timer(cx));
    assert_eq!((drive.probe(1, "level"), part(&drive, 1)), (1, 2));
    assert_eq!(drive.policy.next_timer(), None);
    drive.put(0, 0, ms(20), Off::Preempted);
    assert_eq!(drive.pick(0), Some((1, ms(2))));
    // What is taken out does not grow older.
    drive.call(|smp, cx| smp.dequeue(cx, TaskId(0)));
    assert_eq!(drive.policy.next_timer(), None);
}

#[test]
fn without_aging_there_is_no_timer() {
    let mut drive = drive("1", &[]);
    create(&mut drive, &[9, 9]);
    drive.run(ms(2), Off::Expired);
    assert_eq!(drive.policy.next_timer(), None);
}

#[test]
fn an_aged_task_wakes_the_cpu_that_serves_its_new_queue() {
    let mut drive = drive("5", &[("layout", "pipe5"), ("aging", "10ms")]);
    create(&mut drive, &[9, 9, 9, 9]);
    for cpu in 0..5 {
        drive.pick(cpu);
    }
    for (cpu, task) in [(0, 0), (1, 1)] {
        drive.put(cpu, task, ms(2), Off::Expired);
    }
    assert_eq!(drive.pick(3).map(|pick| pick.0), Some(0));
    assert_eq!([drive.pick(0), drive.pick(1)], [Some((3, ms(2))), None]);
    drive.kicked();
    drive.now += ms(10);
    drive.call(|smp, cx| smp.timer(cx));
    assert_eq!(drive.kicked(), [1, 4]);
    assert_eq!([drive.pick(1), drive.pick(4)], [Some((1, ms(2))), None]);
}

#[test]
fn estimates_come_from_the_host_the_task_or_its_domain() {
    let left = |drive: &Drive<Smp<MRsf>>, task| drive.probe(task, "left_ns");
    for (estimate, lefts) in [
        // Burst by burst: what the host says; where it says nothing, the task's own average.
        ("oracle", [3_000_000, 16_000_000, 3_000_000, 16_000_000]),
        // 16 and 32 ms teach 1/16 of the difference to 16.
        ("ewma", [16_000_000, 16_000_000, 17_000_000, 16_000_000]),
        // Bursts of 16, 32 and 24 ms in the domain of tasks 0 and 1; none in the other.
        ("profile", [16_000_000, 16_000_000, 24_000_000, 16_000_000]),
    ] {
        let settings =
            [("q1", "none"), ("estimate", estimate), ("initial", "16ms"), ("sort_q1", "false")];
        let mut drive = Drive::<Smp<MRsf>>::rule("1", &settings);
        let domain = |id| TaskParams { domain: DomainId(id), ..TaskParams::default() };
        drive.create_with(0, Some(ms(3)), &domain(2));
        let first = left(&drive, 0);
        drive.run(ms(16), Off::Blocked);
        drive.wake_for(0, Some(ms(3)));
        drive.run(ms(32), Off::Blocked);
        drive.create_with(1, None, &domain(2));
        drive.run(ms(10), Off::Yielded);
        drive.run(ms(14), Off::Exited);
        drive.create_with(2, None, &domain(1));
        drive.wake_for(0, Some(ms(3)));
        drive.create_with(3, None, &domain(9));
        let found = [first, left(&drive, 2), left(&drive, 0), left(&drive, 3)];
        assert_eq!(found, lefts, "{estimate}");
        drive.run(ms(1), Off::Yielded);
    }
    let mut moved = Drive::<Smp<MRsf>>::rule("1", &[("estimate", "profile")]);
    moved.create(0, None);
    moved.run(ms(4), Off::Blocked);
    let params = TaskParams { domain: DomainId(7), ..TaskParams::default() };
    moved.call(|smp, cx| smp.update(cx, TaskId(0), &params));
    moved.wake(0);
    assert_eq!(left(&moved, 0), 0, "its new domain has no past");
}

#[test]
fn beyond_an_estimate_nothing_is_left() {
    let mut drive = Drive::<Smp<MRsf>>::rule("1", &[("estimate", "ewma"), ("initial", "1ms")]);
    drive.create(0, Some(ms(70)));
    drive.run(ms(10), Off::Expired);
    assert_eq!((drive.probe(0, "left_ns"), drive.probe(0, "level")), (0, 2));
}

#[test]
fn what_the_policy_is_depends_on_its_parameters() {
    let info = crate::policy("m-rsf").unwrap();
    let nature = |settings: &[Setting]| {
        let nature = (info.nature)(settings).unwrap();
        (nature.clairvoyant, nature.work_conserving)
    };
    assert_eq!(nature(&[]), (true, true));
    assert_eq!(nature(&[("batch", "true")]), (true, false));
    assert_eq!(nature(&[("layout", "pipe3")]), (true, false));
    assert_eq!(nature(&[("estimate", "ewma")]), (false, true));
    assert_eq!(nature(&[("estimate", "profile"), ("layout", "bound3")]), (false, false));
}

#[test]
fn unusable_parameters_are_refused() {
    let build = |cpus, setting| {
        build_rule::<MRsf>(&Machine::flat(cpus).unwrap(), &[setting]).map(|_| ()).err()
    };
    for name in ["q1", "q2", "aging"] {
        assert_eq!(
            build(1, (name, "0")),
            Some(ParamError::Invalid { name, why: "must be above 0" })
        );
    }
    for (layout, needs) in [("bound3", 3), ("pipe3", 3), ("pipe5", 5)] {
        for cpus in 1..8 {
            assert_eq!(
                build(cpus, ("layout", layout)).is_none(),
                cpus == needs,
                "{layout}, {cpus}"
            );
        }
    }
    let error = build(2, ("layout", "pipe5")).unwrap().to_string();
    assert!(error.contains("`layout`") && error.contains("pipe5 one of 5"), "{error}");
    assert!(matches!(build(1, ("place", "linux")), Some(ParamError::Unknown { .. })));
}

/// CPU 3 serves Q2 of five CPUs; who may run only there, or waits for it while it is out of use,
/// is served all the same.
#[test]
fn a_queue_whose_cpu_may_not_or_cannot_is_served_by_others() {
    let mut drive = drive("5", &[("layout", "pipe5")]);
    drive.create_with(0, Some(ms(5)), &on(&[3, 4]));
    assert_eq!(drive.kicked(), [0, 1, 2, 3, 4]);
    assert_eq!([0, 1, 2].map(|cpu| drive.pick(cpu)), [None; 3]);
    assert_eq!(drive.pick(4), Some((0, ms(2))));
    assert_eq!(drive.pick(3), None);
    drive.put(4, 0, ms(2), Off::Expired);
    assert_eq!(drive.kicked(), [3], "Q2 is its own");
    assert_eq!([drive.pick(4), drive.pick(3)], [None, Some((0, ms(2)))]);
    // Its CPU goes out of use: another takes over, and hands back what it has not begun.
    drive.call(|smp, cx| smp.set_online(cx, CpuId(3), false));
    drive.put(3, 0, ms(1), Off::Preempted);
    assert_eq!(drive.kicked(), [0, 1, 2, 4]);
    assert_eq!([0, 1, 2].map(|cpu| drive.pick(cpu)), [None; 3], "not allowed there");
    assert_eq!(drive.pick(4), Some((0, ms(1))));
    drive.put(4, 0, ms(0), Off::Preempted);
    drive.call(|smp, cx| smp.set_online(cx, CpuId(3), true));
    assert_eq!([drive.pick(4), drive.pick(3)], [None, Some((0, ms(1)))]);
}

#[test]
fn another_runqueue_would_be_given_the_last_in_the_order() {
    let mut drive = drive("1", &[]);
    create(&mut drive, &[9, 1, 2]);
    let at = At { now: drive.now, queue: 0, running: &[] };
    assert_eq!(drive.policy.rule().spare(&at, |_| true), Some(TaskId(0)));
    assert_eq!(drive.policy.rule().spare(&at, |task| task.0 == 2), Some(TaskId(2)));
}
