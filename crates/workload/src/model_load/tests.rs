use super::*;
use crate::model::ModelTask;
use crate::play::{Played, play};
use crate::{Barrier, Channel, Lock};
use anysched_core::CpuSet;
use proptest::prelude::*;

const FOREVER: u64 = u64::MAX;

fn run(span: u64) -> Op {
    Op::Run(Span(span))
}

fn release(period: u64) -> Op {
    Op::Release { at: Time(period), deadline: Some(Time(period + 4)) }
}

fn released(at: u64) -> Op {
    Op::Release { at: Time(at), deadline: Some(Time(at + 4)) }
}

fn repeated(ops: Vec<Op>, repeat_from: usize, rounds: u64) -> Script {
    Script { repeat_from, rounds, ..Script::once(ops) }
}

fn task(arrives: Option<u64>, script: Script) -> ModelTask {
    let script = Arc::new(script);
    ModelTask { arrives: arrives.map(Time), script, ..ModelTask::default() }
}

fn model(tasks: Vec<ModelTask>) -> Model {
    let sizes = Sizes { channels: 2, locks: 1, barriers: vec![1, 2] };
    Model { tasks, sizes, ..Model::default() }
}

fn one(script: Script) -> Model {
    model(vec![task(Some(0), script)])
}

fn played(model: Model, until: u64) -> Played {
    play(model.into_load().unwrap(), Time(until), 1)
}

fn ops(played: &Played, serial: usize) -> Vec<Op> {
    played.of(serial).into_iter().map(|(_, op)| op).collect()
}

#[test]
fn the_last_part_is_repeated() {
    let script = repeated(vec![run(1), run(2), run(3)], 1, 3);
    let wanted = [1, 2, 3, 2, 3, 2, 3].map(run);
    assert_eq!(ops(&played(one(script), 99), 0), [&wanted[..], &[Op::Exit]].concat());
    assert_eq!(ops(&played(one(repeated(vec![run(1)], 1, 3)), 99), 0), [run(1), Op::Exit]);
    assert_eq!(ops(&played(one(Script::default()), 99), 0), [Op::Exit]);
    let leaves = Script::once(vec![run(1), Op::Exit, run(9)]);
    assert_eq!(ops(&played(one(leaves), 99), 0), [run(1), Op::Exit]);
    let endless = repeated(vec![run(1), run(2)], 1, FOREVER);
    assert_eq!(ops(&played(one(endless), 100), 0).len(), 51);
}

/// Releases count from the previous one; a late one keeps the grid or moves it.
#[test]
fn releases_are_repeated() {
    let script =
        |slips| Script { slips, ..repeated(vec![run(3), release(10), run(25), release(10)], 0, 3) };
    let at = |slips| {
        let played = played(model(vec![task(Some(100), script(slips))]), 999);
        played.of(0).into_iter().filter(|(_, op)| !matches!(op, Op::Run(_))).collect::<Vec<_>>()
    };
    let grid = [
        (103, released(110)),
        // 110 + 25 is past 120 by 15: the jobs that follow catch up.
        (135, released(120)),
        (138, released(130)),
        (163, released(140)),
        (166, released(150)),
        (191, released(160)),
        (191, Op::Exit),
    ];
    assert_eq!(at(false), grid);
    let moved = [
        (103, released(110)),
        (135, released(135)),
        (138, released(145)),
        (170, released(170)),
        (173, released(180)),
        (205, released(205)),
        (205, Op::Exit),
    ];
    assert_eq!(at(true), moved);
}

#[test]
fn signals_come_from_outside_after_tasks_of_the_same_time() {
    let waits = Script::once(vec![Op::Wait(Channel(0)), run(1)]);
    let mut model = model(vec![task(Some(9), waits.clone()), task(Some(5), waits)]);
    model.signals = vec![(Time(9), Channel(0)), (Time(5), Channel(0))];
    let mut load = model.clone().into_load().unwrap();
    assert_eq!(load.peek(), Time(5));
    assert!(matches!(load.outside(), Outside::Arrival(_)));
    assert!(matches!(load.outside(), Outside::Signal(Channel(0))));
    assert_eq!(load.peek(), Time(9));
    let played = played(model, 99);
    assert_eq!(played.of(0), [(5, Op::Wait(Channel(0))), (5, run(1)), (6, Op::Exit)]);
    assert_eq!(played.of(1), [(9, Op::Wait(Channel(0))), (9, run(1)), (10, Op::Exit)]);
}

#[test]
fn tasks_may_be_spawned_more_than_once() {
    let parent = repeated(vec![Op::Spawn(1), run(2)], 0, 3);
    let child = Script::once(vec![run(5)]);
    let mut model = model(vec![task(Some(1), parent), task(None, child)]);
    model.tasks[1].new.name = Some("child".into());
    let played = played(model, 99);
    assert_eq!(played.arrivals(), [1, 1, 3, 5]);
    for serial in 1..4 {
        assert_eq!(played.new[serial].1.name.as_deref(), Some("child"));
        assert_eq!(ops(&played, serial), [run(5), Op::Exit]);
    }
}

fn bursts(script: Script) -> Vec<u64> {
    played(one(script), 1000).bursts.into_iter().map(|(_, burst)| burst.0).collect()
}

#[test]
fn a_burst_lasts_until_the_task_may_block() {
    let signal = || Op::Signal(Channel(0));
    let script =
        |stop: Op| Script::once(vec![run(1), signal(), run(2), Op::Yield, run(4), stop, run(8)]);
    for stop in [Op::Sleep(Span(1)), Op::Wait(Channel(0)), Op::Lock(Lock(0)), Op::Meet(Barrier(0))]
    {
        assert_eq!(bursts(script(stop)), [7, 6, 4, 8]);
    }
    for passed in
        [Op::Sleep(Span::ZERO), Op::Unlock(Lock(0)), Op::Notify(Channel(1)), Op::SetNice(3)]
    {
        assert_eq!(bursts(script(passed)), [15, 14, 12, 8]);
    }
    assert_eq!(bursts(script(Op::Exit)), [7, 6, 4]);
}

#[test]
fn a_burst_goes_on_into_the_next_round() {
    let blocks = vec![run(1), run(2), Op::Sleep(Span(5)), run(4)];
    assert_eq!(bursts(repeated(blocks.clone(), 0, 2)), [3, 2, 7, 3, 2, 4]);
    assert_eq!(bursts(repeated(blocks, 2, 2)), [3, 2, 4, 4]);
    assert_eq!(bursts(repeated(vec![run(1), run(2)], 1, 4)), [9, 8, 6, 4, 2]);
    let endless = bursts(repeated(vec![run(400), run(2)], 1, FOREVER));
    assert!(endless.iter().all(|&burst| burst == FOR_EVER.0));
}

#[test]
fn a_burst_goes_through_past_releases() {
    // Released at 0, 10, 20, …; the first job ends at 25, so the next two follow at once. At most:
    // 25 + 2 + 2 is before 30. The second job ends at 27, and the third follows.
    let script = repeated(vec![release(10), run(2)], 0, 4);
    let script = Script { ops: [vec![run(25)], script.ops].concat(), repeat_from: 1, ..script };
    assert_eq!(bursts(script.clone()), [29, 4, 2, 2, 2]);
    // If the grid moves, the second job counts as released at 25 and the third at 35.
    assert_eq!(bursts(Script { slips: true, ..script }), [27, 2, 2, 2, 2]);
    // More releases are past than a look-ahead goes through.
    let many = repeated(vec![release(1), run(2)], 0, FOREVER);
    let mut load = one(many).into_load().unwrap();
    load.outside();
    load.start(TaskId(0), Time(0));
    assert_eq!(load.step(TaskId(0), Time(50)), released(1));
    assert_eq!(load.step(TaskId(0), Time(50)), run(2));
    assert_eq!(load.burst(TaskId(0), Span(2)), Span(2 * MOST_RELEASES as u64));
}

/// What has been asked for but not done yet may itself block.
#[test]
fn a_burst_begins_with_what_was_asked_for() {
    for (op, burst) in [
        (Op::Wait(Channel(0)), 0),
        (Op::Sleep(Span(1)), 0),
        (released(5), 0),
        (Op::Signal(Channel(0)), 6),
    ] {
        let period = if let Op::Release { .. } = op { release(5) } else { op.clone() };
        let script = Script::once(vec![period, run(6), Op::Wait(Channel(0))]);
        let mut load = one(script).into_load().unwrap();
        load.outside();
        load.start(TaskId(0), Time(0));
        assert_eq!(load.step(TaskId(0), Time(0)), op);
        assert_eq!(load.burst(TaskId(0), Span::ZERO), Span(burst));
    }
}

#[test]
fn models_that_do_not_hold_together_are_refused() {
    let nowhere = CpuSet::Few(0);
    let mut cases = vec![
        (
            one(Script::once(vec![run(1), Op::Wait(Channel(2))])),
            "task 0, operation 1: channel 2 is not there; the model has 2, numbered from 0",
        ),
        (
            one(Script::once(vec![Op::Unlock(Lock(1))])),
            "task 0, operation 0: lock 1 is not there; the model has 1, numbered from 0",
        ),
        (
            one(Script::once(vec![Op::Meet(Barrier(2))])),
            "task 0, operation 0: barrier 2 is not there; the model has 2, numbered from 0",
        ),
        (
            one(Script::once(vec![Op::Spawn(1)])),
            "task 0, operation 0: task 1 is not there; the model has 1, numbered from 0",
        ),
        (
            one(Script::once(vec![Op::SetNice(-21)])),
            "task 0, operation 0: nice -21 is not in -20 ..= 19",
        ),
        (
            one(Script::once(vec![Op::SetAffinity(nowhere.clone())])),
            "task 0, operation 0: the affinity has no CPU",
        ),
        (one(repeated(vec![run(1)], 2, 1)), "task 0: repeats from operation 2, but has only 1"),
        (one(repeated(vec![run(1)], 0, 0)), "task 0: is repeated 0 times; at least 1"),
    ];
    let mut named = one(Script::default());
    named.tasks[0].new = NewTask { nice: 20, name: Some("x".into()), ..NewTask::default() };
    cases.push((named, "task 0 \"x\": nice 20 is not in -20 ..= 19"));
    let mut beyond = one(Script::default());
    beyond.tasks[0].new.intensity = 101;
    cases.push((beyond, "task 0: intensity 101 is not in 0 ..= 100"));
    let mut nowhere_at_all = one(Script::default());
    nowhere_at_all.tasks[0].new.affinity = nowhere;
    cases.push((nowhere_at_all, "task 0: the affinity has no CPU"));
    let mut never = one(Script::default());
    never.tasks[0].arrives = Some(Time::NEVER);
    let why = "task 0: arrives at 18446744073709551615, which stands for never; leave it out";
    cases.push((never, why));
    let mut signal = one(Script::default());
    signal.signals = vec![(Time(0), Channel(1)), (Time(1), Channel(2))];
    cases.push((signal, "signal 1: channel 2 is not there; the model has 2, numbered from 0"));
    let mut barrier = one(Script::default());
    barrier.sizes.barriers = vec![1, 0];
    cases.push((barrier, "barrier 1: is for no task; at least 1 meets there"));
    for (model, error) in cases {
        assert_eq!(model.validate().unwrap_err().to_string(), error);
        assert!(model.into_load().is_err());
    }
}

#[test]
fn loops_in_which_no_time_passes_are_refused() {
    let no_time = |ops: &[Op]| one(repeated([&[run(1)], ops].concat(), 1, FOREVER)).validate();
    let refused = "task 0, operation 1: repeats without end from here on, but nothing there takes \
                   time; let it run, sleep or wait";
    for ops in [
        &[Op::Yield][..],
        &[run(0), Op::Sleep(Span::ZERO), release(0)],
        &[Op::Lock(Lock(0)), Op::Unlock(Lock(0))],
        &[Op::Meet(Barrier(0)), Op::Signal(Channel(0))],
    ] {
        assert_eq!(no_time(ops).unwrap_err().to_string(), refused, "{ops:?}");
    }
    for ops in [run(1), Op::Sleep(Span(1)), release(1), Op::Wait(Channel(0)), Op::Meet(Barrier(1))]
    {
        assert_eq!(no_time(&[Op::Yield, ops]), Ok(()));
    }
    assert_eq!(one(repeated(vec![Op::Yield], 0, 1_000_000)).validate(), Ok(()));
    assert!(one(repeated(vec![Op::Yield], 0, 1_000_001)).validate().is_err());
}

#[test]
fn tasks_that_spawn_each_other_in_no_time_are_refused() {
    let spawns = |what: &[u32]| Script::once(what.iter().map(|&what| Op::Spawn(what)).collect());
    let after = |what: u32| Script::once(vec![run(1), Op::Spawn(what)]);
    let check = |scripts: Vec<Script>| {
        model(scripts.into_iter().map(|script| task(Some(0), script)).collect()).validate()
    };
    assert_eq!(
        check(vec![Script::default(), spawns(&[1])]).unwrap_err().to_string(),
        "task 1: begins an endless chain of tasks that spawn each other in no time; let them run \
         before they spawn"
    );
    assert!(check(vec![spawns(&[1, 2]), spawns(&[2]), spawns(&[0])]).is_err());
    assert_eq!(check(vec![spawns(&[1, 2, 2]), spawns(&[2]), spawns(&[])]), Ok(()));
    assert_eq!(check(vec![spawns(&[1, 2]), spawns(&[2]), after(0)]), Ok(()));
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u64..20).prop_map(run),
        1 => (0u64..20).prop_map(|span| Op::Sleep(Span(span))),
        2 => (0u64..20).prop_map(release),
        1 => Just(Op::Yield),
        1 => Just(Op::Signal(Channel(0))),
        1 => Just(Op::Wait(Channel(0))),
    ]
}

fn any_script() -> impl Strategy<Value = Script> {
    let ops = proptest::collection::vec(any_op(), 0..9);
    (ops, 0usize..12, 1u64..6, any::<bool>()).prop_map(|(ops, from, rounds, slips)| {
        let repeat_from = from.min(ops.len());
        Script { slips, ..repeated(ops, repeat_from, rounds) }
    })
}

proptest! {
    /// Played alone, a task's burst is the CPU time from there to where it stops, if it runs as
    /// fast as the look-ahead assumes.
    #[test]
    fn bursts_come_true(script in any_script()) {
        let played = played(one(script), u64::MAX);
        let its = played.of(0);
        let mut bursts = played.bursts.iter();
        for (index, (_, op)) in its.iter().enumerate() {
            if !matches!(op, Op::Run(_)) {
                continue;
            }
            let blocks = |(at, op): &&(u64, Op)| match op {
                Op::Release { at: release, .. } => release.0 > *at,
                op => stops(op),
            };
            let rest = its[index..].iter().take_while(|step| !blocks(step));
            let actual: u64 = rest.map(|(_, op)| if let Op::Run(span) = op { span.0 } else { 0 }).sum();
            prop_assert_eq!(bursts.next(), Some(&(0, Span(actual))));
        }
    }
}
