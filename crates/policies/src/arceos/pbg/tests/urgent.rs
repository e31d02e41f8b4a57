//! What goes before the plan: priorities, and tasks that will be late.

use super::*;

fn with_priority(priority: i32) -> TaskParams {
    TaskParams { priority, ..TaskParams::default() }
}

fn due_in(deadline: u64) -> TaskParams {
    TaskParams { relative_deadline: Some(ms(deadline)), ..TaskParams::default() }
}

fn rig(settings: &[(&str, &str)], tasks: &[TaskParams]) -> Drive<Smp<Pbg>> {
    let mut drive = Drive::rule("1", settings);
    for (task, params) in tasks.iter().enumerate() {
        drive.create_with(task as u32, None, params);
    }
    drive
}

const THREE: (&str, &str) = ("profile", "0=6ms/6,1=2ms/2,2=4ms/4");

#[test]
fn a_higher_priority_goes_before_a_shorter_time() {
    let tasks = [with_priority(-1), with_priority(-2), with_priority(3)];
    let order = |settings: &[(&str, &str)]| -> Vec<u32> {
        let mut drive = rig(settings, &tasks);
        (0..3).map(|_| drive.run(ms(1), Off::Exited)).collect()
    };
    assert_eq!(order(&[THREE]), [1, 2, 0]);
    assert_eq!(order(&[THREE, ("priorities", "true")]), [2, 0, 1]);
}

/// Neither a task that runs nor one that is not planned is in its way; at a yield it is next.
#[test]
fn one_that_stays_gives_way_to_a_higher_priority() {
    let tasks = [with_priority(1), with_priority(0), with_priority(0), with_priority(9)];
    let mut drive = rig(&[THREE, ("priorities", "true")], &tasks);
    assert_eq!(drive.run(ms(1), Off::Blocked), 0);
    let (task, slice) = drive.pick(0).unwrap();
    assert_eq!((task, slice), (1, Span::MAX));
    drive.kicked();
    drive.wake(0);
    assert!(drive.kicked().is_empty(), "nothing is interrupted");
    drive.put(0, 1, ms(1), Off::Yielded);
    assert_eq!(drive.run(ms(1), Off::Yielded), 0);
    assert_eq!(drive.run(ms(1), Off::Blocked), 0, "it stays before lower ones");
    assert_eq!([0; 3].map(|_| drive.run(ms(1), Off::Blocked)), [1, 2, 3]);
    // It takes effect while a task waits, too.
    (0..4).for_each(|task| drive.wake(task));
    let params = with_priority(2);
    drive.call(|smp, cx| anysched_core::Scheduler::update(smp, cx, TaskId(2), &params));
    assert_eq!([0; 4].map(|_| drive.run(ms(1), Off::Blocked)), [2, 0, 1, 3]);
}

/// Task 0 needs 6 ms and is due at 9 ms, so it has to begin at 3 ms, when task 1 is done and task 2
/// has yielded once. From then on it goes on, though task 2 is late as well from 8 ms on.
#[test]
fn a_task_that_would_be_late_goes_before_all() {
    let tasks = [due_in(9), TaskParams::default(), due_in(11), due_in(7)];
    let ran = |settings: &[(&str, &str)]| -> Vec<u32> {
        let mut drive = rig(settings, &tasks);
        (0..11).map(|_| drive.run(ms(1), Off::Yielded)).collect()
    };
    assert_eq!(ran(&[THREE]), [1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 0]);
    // Task 3 is not planned: it is late from 7 ms on, when it is due, and until its job ends.
    assert_eq!(ran(&[THREE, ("latest", "true")]), [1, 1, 2, 0, 0, 0, 0, 0, 0, 3, 3]);
}

/// 2 ms earlier: at 1 ms.
#[test]
fn a_margin_is_for_the_dispatch_that_runs() {
    let settings = [THREE, ("latest", "true"), ("margin", "2ms")];
    let mut drive = rig(&settings, &[due_in(9), TaskParams::default()]);
    assert_eq!([0; 3].map(|_| drive.run(ms(1), Off::Yielded)), [1, 0, 0]);
}

/// By the mean, a job is one dispatch: of 1 ms here.
#[test]
fn by_the_mean_a_job_is_a_dispatch() {
    let settings = [THREE, ("latest", "true"), ("order", "mean_time")];
    let mut drive = rig(&settings, &[due_in(3), TaskParams::default(), TaskParams::default()]);
    assert_eq!([0; 2].map(|_| drive.run(ms(1), Off::Blocked)), [0, 1], "by creation");
    drive.wake(0);
    drive.wake(1);
    assert_eq!(
        drive.run(ms(1), Off::Blocked),
        0,
        "it is not late before 4 ms, but before the rest"
    );
    let mut drive = rig(&settings, &[TaskParams::default(), TaskParams::default(), due_in(3)]);
    assert_eq!([0; 3].map(|_| drive.run(ms(1), Off::Yielded)), [0, 0, 2]);
}

/// A job's deadline begins when it becomes ready, and one that the host names goes before.
#[test]
fn each_job_has_a_deadline_of_its_own() {
    let mut drive = rig(&[THREE, ("latest", "true")], &[due_in(6), TaskParams::default()]);
    assert_eq!(drive.run(ms(1), Off::Blocked), 0, "6 ms before it is due, it has to begin");
    assert_eq!(drive.run(ms(1), Off::Blocked), 1);
    drive.wake(1);
    drive.wake(0);
    // From 2 ms on it has 6 ms for what takes 5.
    assert_eq!(drive.run(ms(1), Off::Blocked), 1);
    assert_eq!(drive.run(ms(1), Off::Blocked), 0);
}
