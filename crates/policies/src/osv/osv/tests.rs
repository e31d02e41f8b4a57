//! Golden values and events, worked out by hand from the rules or computed from them with 60
//! digits.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::policy;
use anysched_core::{
    CpuId, CpuSet, Enqueue, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_oracle::drive::{Drive, ms};
use anysched_oracle::rig;

rig! {
    struct Rig(Drive<Box<dyn Scheduler>>);
}

impl Rig {
    fn new(machine: &str, settings: &[(&str, &str)]) -> Rig {
        Rig(Drive::registered(policy("osv").unwrap(), machine, settings))
    }

    fn create(&mut self, task: u32, params: &TaskParams, from: Option<u16>) {
        self.create_from(task, params, from);
    }

    fn wake(&mut self, task: u32, from: Option<u16>) {
        self.wake_on(task, 0, from);
    }

    /// `task` leaves `cpu` after it has run for `ran`.
    fn put(&mut self, cpu: u16, task: u32, ran: Span, why: Off) {
        self.now += ran;
        self.0.put(cpu, task, ran, why);
    }
}

fn hogs(drive: &mut Rig, tasks: core::ops::Range<u32>) {
    tasks.for_each(|task| drive.create(task, &TaskParams::default(), None));
}

/// Each slice may end one ns off: where the exact value is whole, either side is right.
fn assert_slices(found: &[(u32, Span)], expected: &[(u32, u64)]) {
    assert!(found.len() >= expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        let same = found.0 == expected.0 && found.1.0.abs_diff(expected.1) <= 1;
        assert!(same, "{found:?} instead of {expected:?}");
    }
}

fn only(cpu: u16) -> TaskParams {
    TaskParams { affinity: CpuSet::of([CpuId(cpu)]), ..TaskParams::default() }
}

#[test]
fn two_hogs_take_turns_of_twice_the_head_start() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..2);
    // The first slice is 1.01 · 5 ms: nothing has run yet.
    let expected = [
        (0, 5_050_000),
        (1, 10_014_776),
        (0, 10_061_997),
        (1, 10_062_446),
        (0, 10_062_451),
        (1, 10_062_451),
    ];
    assert_slices(&drive.slices(Time(60_000_000)), &expected);
}

#[test]
fn three_hogs() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..3);
    let expected = [
        (0, 5_050_000),
        (1, 5_039_900),
        (2, 9_892_214),
        (0, 5_159_286),
        (1, 9_820_641),
        (2, 5_230_166),
        (0, 9_750_807),
        (1, 5_298_903),
    ];
    assert_slices(&drive.slices(Time(60_000_000)), &expected);
    let later = drive.slices(Time(3_000_000_000));
    // It settles at 1.01 · 7.44 ms.
    let last = &later[later.len() - 9..later.len() - 1];
    assert!(last.iter().all(|(_, slice)| slice.0.abs_diff(7_510_000) < 15_000), "{last:?}");
}

#[test]
fn a_newcomer_runs_for_ln_2_tau() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..1);
    drive.kicked();
    assert_eq!(drive.pick(0), Some((0, Span::MAX)));
    drive.now = Time(3_000_000_000);
    hogs(&mut drive, 1..2);
    assert_eq!(drive.kicked(), [0]);
    drive.call(|osv, cx| osv.put_prev(cx, CpuId(0), TaskId(0), ms(3000), Off::Preempted));
    // The first is 1.01 (τ ln 2 + thyst − penalty), less what 3 s fall short of infinity.
    let expected = [
        (1, 145_055_599),
        (0, 11_337_767),
        (1, 10_074_578),
        (0, 10_062_567),
        (1, 10_062_452),
        (0, 10_062_451),
    ];
    assert_slices(&drive.slices(Time(3_300_000_000)), &expected);
}

#[test]
fn half_the_priority_is_twice_the_share() {
    let mut drive = Rig::new("1", &[]);
    let share = |weight| TaskParams { weight, ..TaskParams::default() };
    drive.create(0, &share(1024), None);
    drive.create(1, &share(2048), None);
    let slices = drive.slices(Time(20_000_000_000));
    assert_slices(&slices, &[(0, 5_050_000), (1, 14_870_071), (0, 7_589_923), (1, 14_917_243)]);
    let ran = |task| -> u64 {
        slices.iter().filter(|slice| slice.0 == task).map(|slice| slice.1.0).sum()
    };
    // Not quite 2: the penalty and the stretched timer are the same for both.
    let per_mille = ran(1) * 1000 / ran(0);
    assert_eq!(per_mille, 1965);
}

#[test]
fn sleeping_only_ages() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..1);
    drive.pick(0);
    drive.put(0, 0, ms(200), Off::Blocked);
    assert_eq!(drive.pick(0), None);
    let decayed = |drive: &Rig| drive.probe(0, "decayed_runtime_ns");
    // τ (1 − 1/e)
    assert_eq!(decayed(&drive), 126_424_111);
    drive.now += ms(400);
    drive.wake(0, None);
    drive.pick(0);
    // Times e^-2.
    assert_eq!(decayed(&drive), 17_109_642);
}

/// Task 2 gets a slice without an end because 0 is out and 1 has blocked.
#[test]
fn one_that_was_out_for_a_moment_does_not_wait_for_ever() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..1);
    assert_eq!(drive.pick(0), Some((0, Span::MAX)));
    hogs(&mut drive, 1..3);
    drive.put(0, 0, ms(9), Off::Preempted);
    assert_eq!(drive.pick_task(0), Some(1));
    drive.dequeue(0);
    drive.put(0, 1, ms(1), Off::Blocked);
    assert_eq!(drive.pick(0), Some((2, Span::MAX)));
    drive.ready(0, Enqueue::Resumed { prev: CpuId(0) }, None);
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, 2, ms(1), Off::Preempted);
    let (task, slice) = drive.pick(0).unwrap();
    assert!(task == 2 && slice < ms(20), "{slice}");
    // One that is not the first waits for the end of a slice that another has bounded.
    drive.wake(1, None);
    drive.put(0, 2, ms(1), Off::Preempted);
    drive.pick(0);
    drive.kicked();
    drive.take_out_and_resume(0);
    assert_eq!(drive.kicked(), []);
}

#[test]
fn a_yielder_is_picked_again_only_when_it_is_alone() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..2);
    let (task, _) = drive.pick(0).unwrap();
    assert_eq!(task, 0);
    drive.put(0, 0, ms(1), Off::Yielded);
    // Not until R says so, but for thyst.
    assert_eq!(drive.pick(0), Some((1, ms(5))));
    drive.put(0, 1, ms(3), Off::Yielded);
    assert_eq!(drive.pick(0), Some((0, ms(5))));
    drive.put(0, 0, Span(1), Off::Yielded);
    // Task 1 has the larger R and runs all the same.
    assert_eq!(drive.pick(0), Some((1, ms(5))));
    drive.put(0, 1, ms(1), Off::Exited);
    assert_eq!(drive.pick(0), Some((0, Span::MAX)));
    drive.put(0, 0, ms(1), Off::Yielded);
    assert_eq!(drive.pick(0), Some((0, Span::MAX)));
}

#[test]
fn only_a_cpu_that_others_wait_for_is_not_told_of_what_others_wake() {
    let mut drive = Rig::new("2", &[]);
    (0..3).for_each(|task| drive.create(task, &TaskParams::default(), Some(0)));
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.put(0, 0, ms(4), Off::Blocked);
    assert_eq!(drive.pick(0).unwrap().0, 1);
    drive.put(0, 1, ms(4), Off::Blocked);
    assert_eq!(drive.pick(0), Some((2, Span::MAX)));
    // None waits: an interrupt. None is preempted, but the timer is set.
    drive.wake(0, Some(1));
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, 2, ms(1), Off::Preempted);
    let (task, slice) = drive.pick(0).unwrap();
    assert!(task == 2 && slice < ms(20), "{slice}");
    // Task 0 waits: none.
    drive.wake(1, Some(1));
    assert_eq!(drive.kicked(), []);
    // The same from CPU 0 itself or from a timer: at once.
    drive.call(|osv, cx| osv.dequeue(cx, TaskId(1)));
    drive.wake(1, Some(0));
    assert_eq!(drive.kicked(), [0]);
    drive.call(|osv, cx| osv.dequeue(cx, TaskId(1)));
    drive.wake(1, None);
    assert_eq!(drive.kicked(), [0]);
}

#[test]
fn what_comes_is_taken_in_by_sender_then_in_order() {
    let mut drive = Rig::new("3", &[]);
    for (task, from) in [(0, 2), (1, 1), (2, 2), (3, 0), (4, 1)] {
        drive.create(task, &only(0), Some(0));
        drive.call(|osv, cx| osv.dequeue(cx, TaskId(task)));
        drive.wake(task, Some(from));
    }
    let order: Vec<u32> = (0..5)
        .map(|_| {
            let (task, _) = drive.pick(0).unwrap();
            drive.put(0, task, ms(1), Off::Exited);
            task
        })
        .collect();
    assert_eq!(order, [3, 1, 4, 0, 2]);
}

#[test]
fn tasks_start_with_their_creator_or_in_turn() {
    let mut drive = Rig::new("3", &[]);
    drive.create(0, &TaskParams::default(), Some(2));
    assert_eq!(drive.kicked(), [2]);
    drive.create(1, &only(1), Some(2));
    assert_eq!(drive.kicked(), [1]);
    let mut drive = Rig::new("3", &[("start_place", "spread")]);
    for (task, cpu) in [(0, 0), (1, 1), (2, 2), (3, 0)] {
        drive.create(task, &TaskParams::default(), Some(2));
        assert_eq!(drive.kicked(), [cpu]);
        if task < 3 {
            assert_eq!(drive.pick(cpu), Some((task, Span::MAX)));
        }
    }
}

#[test]
fn the_balancer_gives_one_task_of_the_tail_away() {
    let mut drive = Rig::new("3", &[]);
    (0..5).for_each(|task| drive.create(task, &TaskParams::default(), Some(0)));
    let slices = drive.slices(Time(90_000_000));
    drive.kicked();
    let last = drive.pick(0).unwrap().0;
    assert_eq!(last, slices.last().unwrap().0, "less than its slice");
    drive.timer();
    assert_eq!(drive.now, Time(100_000_000));
    // The one that runs has the largest R by far: it leaves, and nobody else.
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, last, Span::ZERO, Off::Preempted);
    assert_eq!(drive.kicked(), [1]);
    assert_eq!(drive.pick(1), Some((last, Span::MAX)));
    assert_eq!(drive.pick(2), None);
    let next = drive.pick(0).unwrap().0;
    assert_ne!(next, last);
    // The next one goes to CPU 2, which has least; that it is going to have a task already keeps
    // the one of CPU 1 where it is.
    drive.timer();
    assert_eq!(drive.now, Time(200_000_000));
    assert_eq!(drive.kicked(), [0]);
    drive.put(0, next, ms(100), Off::Preempted);
    assert_eq!(drive.kicked(), [2]);
    assert_eq!(drive.pick(2), Some((next, Span::MAX)));
}

#[test]
fn a_lone_task_moves_to_and_fro() {
    let mut drive = Rig::new("2", &[]);
    hogs(&mut drive, 0..1);
    drive.kicked();
    for turn in 0..5u16 {
        let (here, there) = (turn % 2, (turn + 1) % 2);
        assert_eq!(drive.pick(here), Some((0, Span::MAX)));
        drive.timer();
        assert_eq!(drive.kicked(), [here]);
        drive.call(|osv, cx| osv.put_prev(cx, CpuId(here), TaskId(0), ms(100), Off::Preempted));
        assert_eq!(drive.kicked(), [there]);
        assert_eq!(drive.pick(here), None);
    }
}

#[test]
fn a_pinned_task_stays_and_the_balancer_takes_the_next() {
    let mut drive = Rig::new("2", &[]);
    drive.create(0, &only(0), Some(0));
    drive.create(1, &TaskParams::default(), Some(0));
    drive.create(2, &only(0), Some(0));
    drive.kicked();
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.timer();
    // Task 1 and not 2, which is last, nor 0, which has run.
    assert_eq!(drive.kicked(), [1]);
    assert_eq!(drive.pick(1), Some((1, Span::MAX)));
    drive.timer();
    // CPU 0 has two tasks and CPU 1 has one, which may move but need not.
    assert_eq!(drive.kicked(), []);
}

/// R / c of one of two equals is about 1/2, that of a lone task about 1.
#[test]
fn runtime_keeps_its_meaning_on_another_cpu() {
    let slice_of_the_moved = |lb_period| {
        let mut drive = Rig::new("2", &[("lb_period", lb_period)]);
        hogs(&mut drive, 0..2);
        drive.create(2, &only(1), Some(1));
        drive.kicked();
        assert_eq!(drive.pick(1), Some((2, Span::MAX)));
        let last = drive.slices(Time(1_000_000_000)).last().unwrap().0;
        if lb_period != "0" {
            drive.timer();
        }
        drive.call(|osv, cx| osv.update(cx, TaskId(last), &only(1)));
        assert_eq!(drive.kicked(), [1]);
        drive.call(|osv, cx| osv.put_prev(cx, CpuId(1), TaskId(2), ms(1000), Off::Preempted));
        let (task, slice) = drive.pick(1).unwrap();
        assert_eq!(task, last);
        slice
    };
    // About 1.01 (τ ln 3/2 + thyst), after a balancer has brought the clock of CPU 1 up to date.
    let slice = slice_of_the_moved("1s");
    assert!(slice > ms(80) && slice < ms(92), "{slice}");
    // Without balancers that clock says when CPU 1 began: R decays for that second once more.
    let slice = slice_of_the_moved("0");
    assert!(slice > ms(143) && slice < ms(145), "{slice}");
}

/// CPU 0 gives a task that waits to CPU 1, which has the smallest queue until its own balancer
/// takes that task in.
#[test]
fn no_balancer_gives_a_task_to_its_own_cpu() {
    let mut drive = Rig::new("2", &[]);
    (0..2).for_each(|task| drive.create(task, &TaskParams::default(), Some(1)));
    (2..6).for_each(|task| drive.create(task, &TaskParams::default(), Some(0)));
    assert_eq!([0, 1].map(|cpu| drive.pick_task(cpu)), [Some(2), Some(0)]);
    drive.at(90);
    assert_eq!(drive.next(0, Off::Preempted), Some(3));
    drive.kicked();
    drive.timer();
    assert_eq!(drive.kicked(), [1]);
    assert_eq!(drive.probe(2, "runqueue"), 1);
    assert_eq!(drive.off(1, Off::Preempted), 0);
    // 1.01 (τ ln(e^(1/2) + R) − 100.01 ms + thyst), where R is that of task 2 and 10 us are the
    // penalty for taking the CPU from task 0.
    assert_slices(&[drive.pick(1).unwrap()], &[(1, 64_863_655)]);
}

#[test]
fn a_cpu_that_goes_gives_everything_to_the_shortest_queue() {
    let mut drive = Rig::new("3", &[]);
    (0..3).for_each(|task| drive.create(task, &TaskParams::default(), Some(1)));
    drive.create(3, &TaskParams::default(), Some(0));
    drive.kicked();
    assert_eq!(drive.pick(0).unwrap().0, 3);
    assert_eq!(drive.pick(1).unwrap().0, 0);
    drive.call(|osv, cx| osv.set_online(cx, CpuId(1), false));
    drive.put(1, 0, ms(2), Off::Preempted);
    assert_eq!(drive.pick(1), None);
    assert_eq!(drive.kicked(), [0, 2]);
    // Task 1 to CPU 2 (0 against 1), task 2 to CPU 0 (1 against 1), task 0 to CPU 0 (1 against 1,
    // since what is on its way to a busy CPU does not count).
    let (task, slice) = drive.pick(2).unwrap();
    assert_eq!((task, slice), (1, Span::MAX));
    drive.put(0, 3, ms(6), Off::Preempted);
    assert_eq!(drive.pick(0).unwrap().0, 2);
    drive.put(0, 2, ms(1), Off::Exited);
    assert_eq!(drive.pick(0).unwrap().0, 0);
}

#[test]
fn a_task_that_was_taken_out_for_a_moment_interrupts_nobody() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..2);
    drive.kicked();
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.put(0, 0, Span(5_050_000), Off::Expired);
    assert_eq!(drive.pick(0).unwrap().0, 1);
    drive.call(|osv, cx| osv.dequeue(cx, TaskId(0)));
    drive.ready(0, Enqueue::Resumed { prev: CpuId(0) }, None);
    assert_eq!(drive.kicked(), []);
    drive.put(0, 1, Span(10_014_776), Off::Expired);
    assert_eq!(drive.pick(0).unwrap().0, 0);
}

#[test]
fn an_undone_pick_costs_nothing() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..2);
    drive.kicked();
    let pick = drive.pick(0);
    drive.put(0, 0, Span::ZERO, Off::NotRun);
    assert_eq!(drive.kicked(), [0]);
    assert_eq!(drive.pick(0), pick);
}

#[test]
fn another_weight_counts_from_now_on() {
    let mut drive = Rig::new("1", &[]);
    hogs(&mut drive, 0..2);
    drive.slices(Time(2_000_000_000));
    let (task, _) = drive.pick(0).unwrap();
    let params = TaskParams { weight: 4096, ..TaskParams::default() };
    drive.call(|osv, cx| osv.update(cx, TaskId(task), &params));
    drive.put(0, task, Span(1), Off::Preempted);
    let slices = drive.slices(Time(12_000_000_000));
    let ran = |of| -> u64 {
        let of = slices.iter().filter(|slice| (slice.0 == task) == of);
        of.map(|slice| slice.1.0).sum()
    };
    let per_mille = ran(true) * 1000 / ran(false);
    assert!((3700..4050).contains(&per_mille), "{per_mille}");
}

#[test]
fn unusable_parameters_are_refused() {
    let machine = Machine::flat(2).unwrap();
    let build = |setting| (policy("osv").unwrap().build)(&machine, &[setting]);
    for setting in [
        ("tau", "0"),
        ("tau", "2h"),
        ("penalty", "5ms"),
        ("thyst", "0"),
        ("thyst", "none"),
        ("lb_batch", "0"),
    ] {
        assert!(build(setting).is_err(), "{setting:?}");
    }
    for setting in [("tau", "1us"), ("tau", "1h"), ("penalty", "0"), ("lb_period", "none")] {
        assert!(build(setting).is_ok(), "{setting:?}");
    }
    assert_eq!(build(("lb_period", "0")).unwrap().next_timer(), None);
}
