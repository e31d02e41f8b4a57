mod calls;
mod known;
mod urgent;

use super::*;
use crate::POLICIES;
use alloc::string::String;
use anysched_core::Smp;
use anysched_core::registry::{self, PolicyInfo};
use anysched_core::{CpuMask, CpuSet, Cx};
use anysched_oracle::drive::{CLOSED, Drive, OPEN, ms, play, times};

fn with_key(key: u32) -> TaskParams {
    TaskParams { key: Some(key), ..TaskParams::default() }
}

fn drive(settings: &[(&str, &str)], tasks: u32) -> Drive<Smp<Pbg>> {
    let mut drive = Drive::rule("1", settings);
    (0..tasks).for_each(|task| drive.create(task, None));
    drive
}

/// The tasks that run in turn, for 1 ms each, and yield.
fn yielders(drive: &mut Drive<Smp<Pbg>>, turns: usize) -> Vec<u32> {
    (0..turns).map(|_| drive.run(ms(1), Off::Yielded)).collect()
}

pub(super) fn learned(drive: &Drive<Smp<Pbg>>) -> String {
    let learned = registry::learned(&drive.policy);
    assert_eq!(learned.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["profile"]);
    learned[0].1.clone()
}

fn info() -> &'static PolicyInfo {
    POLICIES.iter().find(|policy| policy.name == "pbg").unwrap()
}

/// Totals of 40, 20, 30 and 10 ms, in dispatches of 10 ms, the last of which is the exit.
const FOUR: &str = "0=40ms/4, 1=20ms/2, 2=30ms/3, 3=10ms/1";

/// By hand: shortest total first, each to its end, a yield changes nothing.
#[test]
fn planned_tasks_run_shortest_first() {
    let mut drive = drive(&[("profile", FOUR)], 4);
    let mut ran = Vec::new();
    for (dispatches, task) in [(1, 3), (2, 1), (3, 2), (4, 0)] {
        for left in (0..dispatches).rev() {
            let why = if left == 0 { Off::Exited } else { Off::Yielded };
            assert_eq!(drive.run(ms(10), why), task);
            assert_eq!(drive.probe(task, "dispatches_left"), left);
        }
        ran.push(drive.now);
    }
    assert_eq!(ran, times(&[10, 30, 60, 100]));
    assert_eq!(drive.pick(0), None);
}

#[test]
fn without_yields_it_is_shortest_job_first() {
    let profile = "0=7ms/1 1=2ms/1 2=5ms/1 3=1ms/1 4=9ms/1 5=3ms/1";
    play::<Pbg>(&[("profile", profile)], CLOSED).assert(CLOSED, &[18, 3, 11, 1, 27, 6], 39);
    let profile = "0=6ms/1 1=3ms/1 2=8ms/1 3=1ms/1 4=2ms/1";
    play::<Pbg>(&[("profile", profile)], OPEN).assert(OPEN, &[6, 12, 20, 7, 9], 20);
}

#[test]
fn off_and_learning_are_the_fallback_queue() {
    for mode in ["off", "profile", "plan"] {
        play::<Pbg>(&[("mode", mode)], CLOSED).assert(CLOSED, &[7, 9, 14, 15, 24, 27], 69);
    }
    let off = [("mode", "off"), ("profile", FOUR)];
    assert_eq!(yielders(&mut drive(&off, 3), 5), [0, 1, 2, 0, 1]);
    // The yielder is the last that came, and goes on.
    let lifo = [("mode", "profile"), ("fallback", "lifo")];
    assert_eq!(yielders(&mut drive(&lifo, 3), 3), [2, 2, 2]);
    assert!(registry::learned(&drive(&off, 3).policy).is_empty());
    assert!(registry::learned(&drive(&[("profile", FOUR)], 3).policy).is_empty());
}

#[test]
fn a_blocked_front_task_stays_in_the_plan() {
    for (on_yield, after) in [("stay", 1), ("next", 0), ("last", 0)] {
        let settings = [("profile", "0=5ms/3,1=9ms/9"), ("on_yield", on_yield)];
        let mut drive = drive(&settings, 3);
        assert_eq!(drive.run(ms(1), Off::Blocked), 0);
        assert_eq!(drive.run(ms(1), Off::Yielded), 1, "the next that is ready");
        let (task, slice) = drive.pick(0).unwrap();
        assert_eq!((task, slice), (1, Span::MAX), "task 2 is not planned");
        drive.kicked();
        drive.wake(0);
        assert!(drive.kicked().is_empty(), "nothing is interrupted");
        drive.put(0, 1, ms(1), Off::Yielded);
        assert_eq!(drive.run(ms(1), Off::Blocked), after, "{on_yield}");
        assert_eq!(drive.run(ms(1), Off::Blocked), 1 - after);
        assert_eq!(drive.run(ms(1), Off::Blocked), 2);
    }
}

#[test]
fn who_has_used_up_its_dispatches_falls_back() {
    let profile = ("profile", "0=5ms/2, 1=9ms/1");
    let mut fifo = drive(&[profile], 3);
    assert_eq!(yielders(&mut fifo, 7), [0, 0, 1, 2, 0, 1, 2]);
    let mut lifo = drive(&[profile, ("fallback", "lifo")], 3);
    assert_eq!(yielders(&mut lifo, 5), [0, 0, 1, 1, 1]);
    assert_eq!([0, 1].map(|_| lifo.run(ms(1), Off::Exited)), [1, 0]);
    assert_eq!(lifo.run(ms(1), Off::Blocked), 2);
    // Blocking uses up a dispatch as well, and a task that wakes without any falls back.
    let mut blocks = drive(&[profile], 3);
    assert_eq!(blocks.run(ms(1), Off::Blocked), 0);
    blocks.wake(0);
    assert_eq!(blocks.run(ms(1), Off::Blocked), 0);
    blocks.wake(0);
    assert_eq!(yielders(&mut blocks, 3), [1, 2, 0]);
}

#[test]
fn a_yielder_may_leave_its_cpu_to_others() {
    let profile = ("profile", "0=1ms/9, 1=2ms/9, 2=3ms/9");
    let mut next = drive(&[profile, ("on_yield", "next")], 4);
    assert_eq!(yielders(&mut next, 5), [0, 1, 0, 1, 0]);
    let mut last = drive(&[profile, ("on_yield", "last")], 4);
    assert_eq!(yielders(&mut last, 7), [0, 1, 2, 0, 1, 2, 0]);
    // A task that becomes ready is ahead of all that have yielded.
    assert_eq!(last.run(ms(1), Off::Blocked), 1);
    last.wake(1);
    assert_eq!(yielders(&mut last, 3), [1, 2, 0]);
    // Alone, it goes on; tasks that are not planned come later.
    for on_yield in ["stay", "next", "last"] {
        let mut alone = drive(&[("profile", "1=2ms/3"), ("on_yield", on_yield)], 2);
        assert_eq!(yielders(&mut alone, 4), [1, 1, 1, 0]);
    }
}

#[test]
fn what_the_host_undoes_or_interrupts_is_no_dispatch() {
    let mut drive = drive(&[("profile", "0=5ms/2, 1=9ms/1")], 2);
    for why in [Off::NotRun, Off::Preempted, Off::Expired] {
        assert_eq!(drive.run(ms(1), why), 0);
        assert_eq!(drive.probe(0, "dispatches_left"), 2);
    }
    assert_eq!(drive.run(ms(1), Off::Yielded), 0);
    drive.take_out_and_resume(0);
    assert_eq!(drive.probe(0, "dispatches_left"), 1);
    assert_eq!(drive.run(ms(1), Off::Yielded), 0);
    assert_eq!(drive.run(ms(1), Off::Yielded), 1);
    assert_eq!(drive.run(ms(1), Off::NotRun), 0);
    assert_eq!(drive.run(ms(1), Off::Yielded), 0, "an undone pick keeps its place");
}

#[test]
fn equal_times_go_by_creation_and_means_by_dispatch() {
    let equal = "3=2ms/1,0=2ms/1,k9=2ms/1,2=1999999ns/1";
    let mut drive = Drive::<Smp<Pbg>>::rule("1", &[("profile", equal)]);
    drive.create(0, None);
    drive.create_with(1, None, &with_key(9));
    (2..4).for_each(|task| drive.create(task, None));
    let order: Vec<u32> = (0..4).map(|_| drive.run(ms(1), Off::Exited)).collect();
    assert_eq!(order, [2, 0, 1, 3]);
    // Means of 2/3, 3/4 and 3/5 ns, which whole nanoseconds would not tell apart.
    let means = [("profile", "0=2ns/3,1=3ns/4,2=3ns/5"), ("order", "mean_time")];
    let mut drive = self::drive(&means, 3);
    let order: Vec<u32> = (0..3).map(|_| drive.run(ms(1), Off::Exited)).collect();
    assert_eq!(order, [2, 0, 1]);
}

#[test]
fn own_keys_and_numbers_are_two_things() {
    let mut drive = Drive::<Smp<Pbg>>::rule("1", &[("profile", "0=3ms/1,k1=2ms/1,2=1ms/1")]);
    drive.create_with(8, None, &with_key(0));
    drive.create_with(7, None, &with_key(1));
    drive.create(3, None);
    drive.create_with(2, None, &with_key(1));
    // Task 8 is the first of the run and has key 0, for which there is no record; task 3 is the
    // third of the run.
    let order: Vec<u32> = (0..4).map(|_| drive.run(ms(1), Off::Exited)).collect();
    assert_eq!(order, [3, 7, 2, 8]);
    // A number that the host uses again is another task.
    drive.call(|smp, cx| anysched_core::Scheduler::detach(smp, cx, TaskId(3)));
    drive.create(3, None);
    assert_eq!(drive.probe(3, "dispatches_left"), 0);
}

#[test]
fn other_cpus_leave_a_yielder_alone() {
    let mut drive = Drive::<Smp<Pbg>>::rule("2", &[("profile", "0=1ms/9,1=2ms/9")]);
    (0..3).for_each(|task| drive.create(task, None));
    assert_eq!([drive.pick(0), drive.pick(1)].map(|pick| pick.unwrap().0), [0, 1]);
    drive.put(1, 1, ms(1), Off::Blocked);
    drive.put(0, 0, ms(1), Off::Yielded);
    assert_eq!(drive.pick(1).unwrap().0, 2, "not even before what is not planned");
    drive.put(1, 2, ms(1), Off::Blocked);
    assert_eq!(drive.pick(1).unwrap().0, 0, "but rather than nothing");
    assert_eq!(drive.pick(0), None);
    // A task kept by a CPU that goes away, or that may no longer run it, is in the plan again.
    drive.put(1, 0, ms(1), Off::Yielded);
    drive.wake(1);
    drive.call(|smp, cx| anysched_core::Scheduler::set_online(smp, cx, CpuId(1), false));
    assert_eq!(drive.pick(0).unwrap().0, 0);
    drive.put(0, 0, ms(1), Off::Yielded);
    let elsewhere = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::default() };
    drive.call(|smp, cx| anysched_core::Scheduler::update(smp, cx, TaskId(0), &elsewhere));
    assert_eq!(drive.pick(0).unwrap().0, 1);
    drive.call(|smp, cx| anysched_core::Scheduler::set_online(smp, cx, CpuId(1), true));
    assert_eq!(drive.pick(1).unwrap().0, 0);
}

#[test]
fn a_profile_is_what_was_seen() {
    let mut drive = Drive::<Smp<Pbg>>::rule("1", &[("mode", "profile")]);
    drive.create(4, None);
    drive.create_with(5, None, &with_key(7));
    drive.create_with(6, None, &with_key(7));
    drive.create(7, None);
    assert_eq!(learned(&drive), "", "nothing has run");
    assert_eq!(drive.run(ms(5), Off::Yielded), 4);
    assert_eq!(drive.run(ms(4), Off::Exited), 5);
    assert_eq!(drive.run(ms(2), Off::Preempted), 6);
    assert_eq!(drive.run(ms(0), Off::Blocked), 7);
    drive.wake(7);
    assert_eq!(drive.run(ms(3), Off::Blocked), 4);
    assert_eq!(drive.run(ms(1), Off::Yielded), 6);
    assert_eq!(drive.run(ms(0), Off::NotRun), 7);
    let (task, _) = drive.pick(0).unwrap();
    drive.tick(task, ms(1));
    // Task 7 is in the middle of its second dispatch. Of the two with a key, one has used 4 ms in
    // a dispatch and the other 3 ms in one that was interrupted.
    assert_eq!((task, learned(&drive).as_str()), (7, "0=8ms/2,3=1ms/2,k7=3.5ms/1"));
    drive.put(0, 7, ms(1), Off::Exited);
    assert_eq!(drive.run(ms(3), Off::Yielded), 6);
    assert_eq!(learned(&drive), "0=8ms/2,3=2ms/2,k7=5ms/2", "one and a half dispatches");
    // A task that is taken out for good in the middle of a dispatch has ended it.
    drive.call(|smp, cx| {
        anysched_core::Scheduler::dequeue(smp, cx, TaskId(6));
        anysched_core::Scheduler::detach(smp, cx, TaskId(6));
    });
    assert_eq!(learned(&drive), "0=8ms/2,3=2ms/2,k7=5ms/2");
}

/// Runs of tasks in ms, the last of which ends in an exit, the others in yields.
const PROGRAM: [&[u64]; 5] = [&[3, 3, 3, 3], &[9], &[1, 2, 1], &[4, 1], &[2, 2, 2, 2, 2]];

/// Picks of the program with these settings, and what is learned.
fn play_program(settings: &[(&str, &str)]) -> (Vec<u32>, registry::Settings) {
    let machine = Machine::flat(1).unwrap();
    let mut policy = (info().build)(&machine, settings).unwrap();
    let mut kicks = CpuMask::EMPTY;
    let mut cx = Cx::new(anysched_core::Time::ZERO, &mut kicks);
    for task in 0..PROGRAM.len() as u32 {
        policy.attach(&mut cx, TaskId(task), &TaskParams::default());
        policy.enqueue(
            &mut cx,
            TaskId(task),
            anysched_core::Arrival::because(anysched_core::Enqueue::New),
        );
    }
    let mut done = [0; PROGRAM.len()];
    let mut picks = Vec::new();
    while let Some(pick) = policy.pick_next(&mut cx, CpuId(0)) {
        let (task, runs) = (pick.task.index(), PROGRAM[pick.task.index()]);
        let ran = ms(runs[done[task]]);
        done[task] += 1;
        cx.now += ran;
        let why = if done[task] == runs.len() { Off::Exited } else { Off::Yielded };
        policy.put_prev(&mut cx, CpuId(0), pick.task, ran, why);
        picks.push(pick.task.0);
    }
    assert!(kicks.iter().eq([CpuId(0)]));
    (picks, registry::learned(&*policy))
}

/// The first run is the one that a host makes when asked for a rehearsal.
#[test]
fn what_a_rehearsal_teaches_is_what_is_given() {
    let given = "0=12ms/4,1=9ms/1,2=4ms/3,3=5ms/2,4=10ms/5";
    let first = (info().rehearsal)(&[]).unwrap().expect("one is needed");
    assert_eq!(first, [("mode".into(), "profile".into())]);
    let (fifo, learned) = play_program(&[("mode", "profile")]);
    assert_eq!(fifo[..7], [0, 1, 2, 3, 4, 0, 2]);
    assert_eq!(learned, [("profile".into(), given.into())]);
    let (measured, learned) = play_program(&[("profile", &learned[0].1)]);
    assert!(learned.is_empty());
    assert_eq!(measured, [2, 2, 2, 3, 3, 1, 4, 4, 4, 4, 4, 0, 0, 0, 0]);
    let given = play_program(&[("profile_source", "given"), ("profile", given)]);
    assert_eq!(given.0, measured);
}

#[test]
fn settings_tell_what_it_needs_to_know() {
    let knows = |settings: &[(&str, &str)]| {
        let nature = (info().nature)(settings).unwrap();
        (nature.clairvoyant, nature.rehearsed, (info().rehearsal)(settings).unwrap().is_some())
    };
    assert_eq!(knows(&[]), (false, true, true));
    assert_eq!(knows(&[("mode", "plan")]), (false, true, true));
    assert_eq!(knows(&[("profile", "")]), (false, true, false));
    assert_eq!(knows(&[("profile_source", "noisy(1)")]), (false, true, true));
    assert_eq!(knows(&[("profile_source", "given"), ("profile", "")]), (true, false, false));
    assert_eq!(knows(&[("mode", "off")]), (false, false, false));
    assert_eq!(knows(&[("mode", "profile"), ("profile", FOUR)]), (false, false, false));
    let machine = Machine::flat(1).unwrap();
    let error = (info().build)(&machine, &[("profile_source", "given")]).err().unwrap();
    let text = "`profile`: profile_source = given needs one, for example 0=12.5ms/100000";
    assert_eq!(error.to_string(), text);
}

/// Each of two CPUs goes by the plan among its own; one without work takes what another would run
/// last: what is not planned, else the longest.
#[test]
fn runqueues_have_a_plan_each() {
    let profile = ("profile", "0=5ms/2,1=1ms/2,2=4ms/2,3=2ms/2,4=3ms/2");
    let layout = [profile, ("layout", "per-cpu"), ("place", "round-robin")];
    let mut drive = Drive::<Smp<Pbg>>::rule("2", &layout);
    (0..6).for_each(|task| drive.create(task, None));
    // Tasks 0, 2 and 4 on CPU 0; 1, 3 and 5, which is not planned, on CPU 1.
    assert_eq!([drive.pick(0), drive.pick(1)].map(|pick| pick.unwrap().0), [4, 1]);
    drive.put(0, 4, ms(1), Off::Yielded);
    assert_eq!(drive.pick(0).unwrap().0, 4, "it stays");
    drive.put(0, 4, ms(2), Off::Blocked);
    assert_eq!(drive.pick(0).unwrap().0, 2);
    for task in [1, 3, 5] {
        drive.put(1, task, ms(1), Off::Blocked);
        let next = drive.pick(1).map(|pick| pick.0);
        assert_eq!(
            next,
            Some(match task {
                1 => 3,
                3 => 5,
                _ => 0,
            })
        );
    }
    assert_eq!(drive.probe(0, "runqueue"), 1, "CPU 1 has taken it");
    drive.put(1, 0, ms(1), Off::Yielded);
    assert_eq!(drive.pick(1).unwrap().0, 0, "it stays there, too");
    drive.put(0, 2, ms(1), Off::Blocked);
    assert_eq!(drive.pick(0), None);
}
