//! Runs that end with tasks that wait for each other say who waits for whom.

use crate::support::{build, model, run, task};
use anysched_core::{Machine, Time};
use anysched_host::Setup;
use anysched_sim::Sim;
use anysched_trace::stuck::Waits;
use anysched_workload::model::{Model, ModelTask};
use anysched_workload::{Barrier, Channel, Lock, Op};

fn named(name: &str, arrives: u64, ops: Vec<Op>) -> ModelTask {
    let mut task = task(arrives, ops);
    task.new.name = Some(name.into());
    task
}

fn with(mut model: Model, locks: u32) -> Model {
    model.sizes.locks = locks;
    model.sizes.channels = 1;
    model.sizes.barriers = vec![3];
    model
}

/// What is said of a run on one CPU with turns of 1 ms.
fn said(model: Model) -> Vec<String> {
    let machine = Machine::flat(1).unwrap();
    let policy = build(&machine, "rr", &[("quantum", "1ms")]);
    let mut waits = Waits::default();
    let load = model.into_load().unwrap();
    let sim = Sim::with_sink(Setup::new(machine), policy, load, &mut waits);
    sim.run().unwrap();
    waits.lines()
}

/// Two tasks take two locks in opposite orders; the third only waits for one of them.
#[test]
fn a_circle_of_locks_is_a_deadlock() {
    let (one, two) = (Lock(0), Lock(1));
    let tasks = vec![
        named("a", 0, vec![Op::Lock(one), run(2), Op::Lock(two), run(1)]),
        named("b", 0, vec![Op::Lock(two), run(2), Op::Lock(one), run(1)]),
        named("c", 10, vec![Op::Lock(one), run(1)]),
    ];
    let expected = [
        "deadlock: a waits for lock 1, which b holds; b waits for lock 0, which a holds",
        "c waits for ever for lock 0, which a holds",
    ];
    assert_eq!(said(with(model(tasks), 2)), expected);
}

#[test]
fn a_circle_may_be_longer() {
    let tasks = (0..4).map(|n| {
        let next = (n + 1) % 4;
        named(&format!("t{n}"), 0, vec![Op::Lock(Lock(n)), run(2), Op::Lock(Lock(next)), run(1)])
    });
    let lines = said(with(model(tasks.collect()), 4));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].matches("waits for lock").count(), 4, "{lines:?}");
}

#[test]
fn locks_that_are_not_given_back_and_barriers_are_said() {
    let tasks = vec![
        named("leaver", 0, vec![Op::Lock(Lock(0)), run(1)]),
        named("heir", 0, vec![Op::Lock(Lock(0)), run(1)]),
        named("first", 0, vec![run(1), Op::Meet(Barrier(0)), run(1)]),
        named("second", 0, vec![run(1), Op::Meet(Barrier(0)), run(1)]),
        named("server", 0, vec![Op::Wait(Channel(0)), run(1)]),
    ];
    let expected = [
        "first, second wait for ever at barrier 0, where only 2 of 3 are",
        "heir waits for ever for lock 0, whose holder has ended without giving it back",
    ];
    assert_eq!(said(with(model(tasks), 1)), expected);
}

/// In the same order they end, and nothing is said; nor where the run was ended.
#[test]
fn nothing_is_said_of_runs_that_end_well() {
    let both = || vec![Op::Lock(Lock(0)), Op::Lock(Lock(1)), run(2), Op::Unlock(Lock(1))];
    let ops = |name| {
        let mut ops = both();
        ops.push(Op::Unlock(Lock(0)));
        named(name, 0, ops)
    };
    assert_eq!(said(with(model(vec![ops("a"), ops("b")]), 2)), [""; 0]);
    let machine = Machine::flat(1).unwrap();
    let mut setup = Setup::new(machine.clone());
    setup.until = Time(1_000_000);
    let mut waits = Waits::default();
    let load = with(model(vec![ops("a"), ops("b")]), 2).into_load().unwrap();
    Sim::with_sink(setup, build(&machine, "rr", &[]), load, &mut waits).run().unwrap();
    assert_eq!(waits.lines(), [""; 0]);
}
