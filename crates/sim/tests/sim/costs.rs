//! What a machine's costs do to waits, turnarounds and preemptions, in cases worked out by hand;
//! and which wake-ups are in sync.

use crate::support::{MS, build, completions, model, ms, number, play, run, task};
use anysched_core::call::Call;
use anysched_core::recorder::{LogReader, Record, Recorder};
use anysched_core::{Enqueue, Machine, Span, Time};
use anysched_host::{Costs, Setup};
use anysched_measure::Metrics;
use anysched_sim::Sim;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Channel, Lock, Op};
use std::sync::Arc;

fn us(n: u64) -> Span {
    Span::from_us(n)
}

fn one(costs: Costs) -> Setup {
    Setup { costs, ..Setup::new(Machine::flat(1).unwrap()) }
}

fn times<const N: usize>(times: usize, ops: [Op; N]) -> Vec<Op> {
    std::iter::repeat_n(ops, times).flatten().collect()
}

/// A task of priority `priority`: higher runs first.
fn urgent(priority: i32, arrives: u64, ops: Vec<Op>) -> ModelTask {
    let mut task = task(arrives, ops);
    task.new.priority = priority;
    task
}

fn median(metrics: &Metrics) -> u64 {
    let [median] = metrics.wakeup_latency.percentiles([50.0]).unwrap();
    median
}

/// A sleeper that goes before the hog beside it: it waits for whatever its wake-ups cost.
fn sleeper_beside_a_hog(costs: Costs) -> (u64, u64) {
    let ops = times(20, [Op::Sleep(ms(3)), run(1)]);
    let load = model(vec![urgent(9, 0, ops), urgent(1, 0, vec![run(200)])]);
    let (metrics, _) = play(one(costs), "priority", &[], load);
    (median(&metrics), number(metrics.preemptions))
}

#[test]
fn the_switch_is_a_part_of_wake_up_latency() {
    assert_eq!(sleeper_beside_a_hog(Costs::default()), (0, 20));
    let costs = Costs { context_switch: us(4), ..Costs::default() };
    assert_eq!(sleeper_beside_a_hog(costs), (4_000, 20));
}

#[test]
fn what_interrupts_take_delays_the_task_that_preempts() {
    let costs = Costs { context_switch: us(4), wake_irq: us(2), ..Costs::default() };
    assert_eq!(sleeper_beside_a_hog(costs.clone()), (6_000, 20));
    let costs = Costs { enqueue_base: us(1), ..costs };
    assert_eq!(sleeper_beside_a_hog(costs), (7_000, 20));
}

#[test]
fn what_the_waker_pays_for_delays_the_next_task_even_if_the_waker_blocks_at_once() {
    let costs = Costs { enqueue_base: us(3), ..Costs::default() };
    let mut load = model(vec![
        task(0, vec![Op::Wait(Channel(0)), run(1)]),
        task(0, vec![run(1), Op::Signal(Channel(0)), Op::Wait(Channel(1))]),
    ]);
    load.sizes.channels = 2;
    let (metrics, _) = play(one(costs), "fcfs", &[], load);
    assert_eq!(median(&metrics), 3_000);
}

#[test]
fn leaving_idle_costs_only_after_idle_time() {
    let costs = Costs { idle_exit: us(14), ..Costs::default() };
    let ops = vec![run(1), Op::Sleep(ms(2)), run(1)];
    let (metrics, results) = play(one(costs.clone()), "fcfs", &[], model(vec![task(0, ops)]));
    assert_eq!(median(&metrics), 14_000);
    assert_eq!(results[0].completion, Time(4 * MS + 14_000));
    // The first is woken while the second runs, and follows without a pause.
    let load = model(vec![task(0, vec![Op::Sleep(ms(2)), run(1)]), task(0, vec![run(4)])]);
    let (metrics, _) = play(one(costs), "fcfs", &[], load);
    assert_eq!(metrics.makespan().unwrap(), ms(5));
}

#[test]
fn slices_end_late_by_chance() {
    let costs = Costs { timer_late: us(100), ..Costs::default() };
    let load = || model(vec![task(0, vec![run(20)]), task(0, vec![run(20)])]);
    let quantum = &[("quantum", "1ms")];
    let (exact, _) = play(one(Costs::default()), "rr", quantum, load());
    assert_eq!(number(exact.dispatches), 40);
    let ends = || {
        let (metrics, results) = play(one(costs.clone()), "rr", quantum, load());
        assert_eq!(metrics.makespan().unwrap(), ms(40));
        (number(metrics.dispatches), results[0].completion)
    };
    // Nineteen slices of 1 to 1.1 ms make up for the twentieth.
    let (dispatches, first) = ends();
    assert!((37..40).contains(&dispatches), "{dispatches}");
    assert!(!(first.0 % MS).is_multiple_of(100_000), "{first:?}");
    assert_eq!(ends(), (dispatches, first));
}

#[test]
fn a_task_is_created_before_it_is_there_and_ended_before_it_is_gone() {
    let costs = Costs { create: us(30), exit: us(20), ..Costs::default() };
    // From outside: its own first and last work.
    let (metrics, results) =
        play(one(costs.clone()), "fcfs", &[], model(vec![task(1, vec![run(2)])]));
    assert_eq!(results[0].completion, Time(3 * MS + 50_000));
    assert_eq!(results[0].service, ms(2));
    assert_eq!(metrics.busy, ms(2) + us(50));
    // By another: the creator's work, while the other is not there.
    let mut load = model(vec![task(0, vec![run(1), Op::Spawn(1), run(1)])]);
    let child = Arc::new(Script::once(vec![run(3)]));
    load.tasks.push(ModelTask { arrives: None, script: child, ..ModelTask::default() });
    let setup = Setup { costs, ..Setup::new(Machine::flat(2).unwrap()) };
    let (_, results) = play(setup, "fcfs", &[], load);
    // The first arrives from outside, too: 30 us, 1 ms, 30 us, 1 ms and 20 us.
    assert_eq!(results[0].completion, Time(2 * MS + 80_000));
    assert_eq!(results[1].arrival, Time(MS + 60_000));
    assert_eq!(results[1].completion, Time(4 * MS + 80_000));
    assert_eq!([results[0].service, results[1].service], [ms(2), ms(3)]);
}

/// Two tasks wake each other ten times; the second is more urgent.
fn turns(costs: Costs, op: fn(Channel) -> Op) -> (u64, Vec<Span>) {
    let (to, from) = (Channel(0), Channel(1));
    let one_asks = times(10, [us_run(10), op(to), Op::Wait(from)]);
    let other_answers = times(10, [Op::Wait(to), us_run(10), op(from)]);
    let mut load = model(vec![urgent(1, 0, one_asks), urgent(9, 0, other_answers)]);
    load.sizes.channels = 2;
    let (metrics, results) = play(one(costs), "priority", &[], load);
    (number(metrics.preemptions), results.iter().map(|result| result.service).collect())
}

fn us_run(n: u64) -> Op {
    Op::Run(us(n))
}

#[test]
fn a_waker_on_its_way_out_of_the_kernel_is_preempted() {
    // It blocks in the instant of the wake-up.
    assert_eq!(turns(Costs::default(), Op::Signal), (0, vec![us(100); 2]));
    let costs = Costs { after_wake: us(2), ..Costs::default() };
    assert_eq!(turns(costs, Op::Signal), (10, vec![us(100); 2]));
}

#[test]
fn a_wake_up_that_wakes_nobody_has_nothing_behind_it() {
    let costs = Costs { after_wake: us(2), ..Costs::default() };
    let lonely = [Op::Signal(Channel(0)), Op::Notify(Channel(0)), Op::Broadcast(Channel(0))];
    let locked = [Op::Lock(Lock(0)), Op::Unlock(Lock(0))];
    let mut load = model(vec![task(0, [&lonely[..], &locked, &[run(1)]].concat())]);
    load.sizes.channels = 1;
    load.sizes.locks = 1;
    assert_eq!(completions(&play(one(costs), "fcfs", &[], load).1), [1]);
}

#[test]
fn kernel_work_counts_for_policies_and_slices() {
    let costs = Costs { create: ms(1), ..Costs::default() };
    let load = || model(vec![task(0, vec![run(3)]), task(0, vec![run(1)])]);
    let (_, results) = play(one(costs), "rr", &[("quantum", "2ms")], load());
    // Slices of 2 ms: the first has done 1 ms of its own, when the second takes its turn.
    assert_eq!(completions(&results), [6, 4]);
}

#[test]
fn who_is_kicked_by_another_cpu_is_interrupted() {
    let costs = Costs { ipi: us(5), ..Costs::default() };
    let mut load = model(vec![
        task(0, vec![run(1), Op::Wait(Channel(0)), run(1)]),
        task(0, vec![run(3), Op::Signal(Channel(0)), run(1)]),
    ]);
    load.sizes.channels = 1;
    let setup = Setup { costs, ..Setup::new(Machine::flat(2).unwrap()) };
    let (metrics, results) = play(setup, "fcfs", &[], load);
    assert_eq!(median(&metrics), 5_000);
    assert_eq!(results[1].completion, Time(4 * MS));
}

/// The wake-ups of a run by operation: which were in sync.
fn in_sync(ops: Vec<Op>) -> Vec<bool> {
    let waits = times(4, [Op::Wait(Channel(0)), run(1)]);
    let mut load: Model = model(vec![task(0, waits), task(1, ops)]);
    load.sizes.channels = 1;
    load.signals = vec![(Time(90 * MS), Channel(0))];
    let setup = Setup::new(Machine::flat(2).unwrap());
    let policy = build(&setup.machine, "fcfs", &[]);
    let recorder = Recorder::new(policy, &setup.machine, "fcfs", &[], Vec::new());
    let (_, recorder, _) = Sim::new(setup, recorder, load.into_load().unwrap()).run().unwrap();
    let (_, log) = recorder.into_parts();
    let sync = |record: Record| match record.call {
        Call::Enqueue { arrival, .. } => match arrival.why {
            Enqueue::Wakeup { sync, .. } => Some(sync),
            _ => None,
        },
        _ => None,
    };
    LogReader::new(&log).unwrap().filter_map(|record| sync(record.unwrap())).collect()
}

#[test]
fn writing_wakes_in_sync_and_semaphores_and_timers_do_not() {
    let pause = || run(5);
    let ops = vec![
        Op::Write(Channel(0)),
        pause(),
        Op::Signal(Channel(0)),
        pause(),
        Op::Notify(Channel(0)),
        pause(),
    ];
    assert_eq!(in_sync(ops), [true, false, false, false]);
}
