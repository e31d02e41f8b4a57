//! What pbg promises, in whole runs: fewer switches, shortest job first without an oracle, the
//! shortest mean turnaround of short tasks beside a long one.

use crate::support::{build, completions, model, ms, play, rehearsed, text};
use anysched_core::registry::{Settings, learned};
use anysched_core::{Machine, Span, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_policies::policy;
use anysched_sim::{Sim, TaskResult};
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Arrivals, Batch, Generator, Open, Settings as OfTasks};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Load, Op};
use std::path::Path;
use std::sync::Arc;

/// A task that is there at the start: `runs` of `run`, each but the last followed by a yield.
fn yielding(runs: u64, run: Span) -> ModelTask {
    let ops = vec![Op::Run(run), Op::Yield];
    let script = Arc::new(Script { repeat_from: 0, rounds: runs, ..Script::once(ops) });
    ModelTask { arrives: Some(Time::ZERO), script, ..ModelTask::default() }
}

fn one_cpu(context_switch: Span) -> Setup {
    let mut setup = Setup::new(Machine::flat(1).unwrap());
    setup.costs.context_switch = context_switch;
    setup
}

/// The run of a model after a rehearsal.
fn after_rehearsal(
    setup: &Setup,
    settings: &[(&str, &str)],
    load: &Model,
) -> (Metrics, Vec<TaskResult>) {
    let settings = rehearsed(policy("pbg").unwrap(), settings, setup, load);
    play(setup.clone(), "pbg", &text(&settings), load.clone())
}

/// Three tasks of four turns: in turn they switch at each, one after another twice.
#[test]
fn a_yield_that_stays_costs_no_switch() {
    let load = model(vec![yielding(4, ms(3)), yielding(4, ms(1)), yielding(4, ms(2))]);
    let setup = one_cpu(Span::from_us(10));
    let (fcfs, _) = play(setup.clone(), "fcfs", &[], load.clone());
    let most = fcfs.context_switches.get().unwrap();
    let switches = |on_yield| {
        let (metrics, _) = after_rehearsal(&setup, &[("on_yield", on_yield)], &load);
        let switches = metrics.context_switches.get().unwrap();
        let earlier = fcfs.makespan().unwrap() - metrics.makespan().unwrap();
        assert_eq!(earlier, Span((most - switches) * 10_000), "{on_yield}");
        switches
    };
    assert_eq!(switches("stay"), 3);
    // Tasks 1 and 2 in turn, then task 0 alone.
    assert!(switches("next") < most);
    assert_eq!(switches("last"), most);
    assert!(most >= 12);
    let (_, results) = after_rehearsal(&setup, &[], &load);
    // 12, 4 and 8 ms of work behind one, two and three switches; yields may take a last pick.
    assert_eq!(completions(&results), [24, 4, 12]);
}

fn batch_or_arrivals(number: u64, cpus: usize) -> Box<dyn Load> {
    let service = Dist::parse("exp(10ms)", Path::new(".")).unwrap();
    let settings = OfTasks::default();
    match number % 2 {
        0 => Batch { settings, tasks: 60, service, at: Time::ZERO }.build(number, cpus).unwrap(),
        _ => {
            let (arrivals, tasks, start) = (Arrivals::Load(0.9), Some(200), Time::ZERO);
            Open { settings, arrivals, service, tasks, start, until: None }
                .build(number, cpus)
                .unwrap()
        }
    }
}

/// Which tasks end when; all loads are of tasks that run once.
fn ends(name: &str, settings: &Settings, cpus: usize, number: u64) -> (Vec<Time>, Settings) {
    let machine = Machine::flat(cpus).unwrap();
    let scheduler = build(&machine, name, &text(settings));
    let ends = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let take = std::rc::Rc::clone(&ends);
    let sim = Sim::new(Setup::new(machine), scheduler, batch_or_arrivals(number, cpus));
    let sim = sim.on_exit(move |result| take.borrow_mut().push((result.serial, result.completion)));
    let (_, policy, _) = sim.run().unwrap();
    let mut ends = ends.borrow().clone();
    ends.sort_unstable();
    (ends.into_iter().map(|(_, end)| end).collect(), learned(&*policy))
}

#[test]
fn without_costs_and_yields_it_is_shortest_job_first() {
    for number in 0..12 {
        for cpus in [1, 3] {
            let (fifo, taught) = ends("pbg", &Settings::new(), cpus, number);
            let (fcfs, _) = ends("fcfs", &Settings::new(), cpus, number);
            let (planned, _) = ends("pbg", &taught, cpus, number);
            let (sjf, _) = ends("sjf", &Settings::new(), cpus, number);
            assert!(fifo == fcfs, "load {number}, {cpus} CPUs");
            assert!(planned == sjf, "load {number}, {cpus} CPUs");
            assert!(planned != fcfs, "load {number}, {cpus} CPUs");
        }
    }
}

/// A long task that yields seldom, created first, and short ones that yield often: the report's
/// "realtime", with a hundredth of its turns.
#[test]
fn short_tasks_beside_a_long_one_have_the_shortest_mean_turnaround() {
    let short = [(500, 23), (1000, 11), (2000, 5), (5000, 2)];
    let short = short.map(|(turns, ns)| yielding(turns, Span(ns)));
    let long = yielding(8, Span::from_us(2280));
    let load = model([long].into_iter().chain(short).collect());
    let mut setup = one_cpu(Span::from_us(1));
    setup.machine = setup.machine.with_tick(Some(Span::from_us(100)));
    let (pbg, results) = after_rehearsal(&setup, &[], &load);
    let ends: Vec<Time> = results.iter().map(|result| result.completion).collect();
    // Total times of 11.5, 11, 10 and 10 us: the last two are equal, and go by creation.
    assert!(ends[3] < ends[4] && ends[4] < ends[2] && ends[2] < ends[1] && ends[1] < ends[0]);
    for name in ["fcfs", "rr", "sjf-ewma", "cfs-arceos", "mlfq-arceos"] {
        let (other, _) = play(setup.clone(), name, &[], load.clone());
        let (ours, theirs) = (pbg.turnaround.mean(), other.turnaround.mean());
        assert!(ours < theirs, "{name}: {theirs} ns, pbg: {ours} ns");
    }
}

/// The wrong order costs time, and σ = 0 is no noise.
#[test]
fn noise_makes_a_profile_worse() {
    let load = model((1..=40).map(|n| yielding(2, ms(n))).collect());
    let setup = one_cpu(Span::ZERO);
    let mean = |source: &str| {
        let settings = [("profile_source", source), ("noise_seed", "1")];
        after_rehearsal(&setup, &settings, &load).0.turnaround.mean()
    };
    let exact = mean("measured");
    assert_eq!(mean("noisy(0)"), exact);
    assert!(mean("noisy(0.1)") > exact);
    assert!(mean("noisy(2)") > mean("noisy(0.1)"));
}
