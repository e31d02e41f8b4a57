//! M-RSF against the closed form for a batch on one CPU, and against an independent model of the
//! same rules. Seeds are fixed, so that each test passes or fails for good.

use crate::support;
use anysched_core::{Machine, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_sim::Sim;
use anysched_theory::m_rsf::exponential_batch;
use anysched_workload::Load;
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Arrivals, Batch, Generator, Open, Settings};
use std::path::Path;

/// Mean CPU time of the tasks, in ns; the default of both slices.
const MEAN: f64 = 1e7;
const SEEDS: u64 = 20;

type Setting = (&'static str, &'static str);

fn exponential() -> Dist {
    Dist::parse("exp(10ms)", Path::new(".")).unwrap()
}

fn batch(tasks: u64, seed: u64) -> Box<dyn Load> {
    let (settings, service) = (Settings::default(), exponential());
    Batch { settings, tasks, service, at: Time::ZERO }.build(seed, 1).unwrap()
}

fn poisson(cpus: usize, load: f64, seed: u64) -> Box<dyn Load> {
    let open = Open {
        settings: Settings::default(),
        arrivals: Arrivals::Load(load),
        service: exponential(),
        tasks: Some(2000),
        start: Time::ZERO,
        until: None,
    };
    open.build(seed, cpus).unwrap()
}

fn measure(cpus: usize, settings: &[Setting], load: Box<dyn Load>) -> Metrics {
    let machine = Machine::flat(cpus).unwrap();
    let scheduler = support::build(&machine, "m-rsf", settings);
    Sim::new(Setup::new(machine), scheduler, load).run().unwrap().0
}

/// Means over seeds of the waiting and the response time in mean CPU times, each with its
/// standard error.
fn over_seeds(run: impl Fn(u64) -> Metrics) -> [(f64, f64); 2] {
    let runs: Vec<[f64; 2]> = (1..=SEEDS)
        .map(run)
        .map(|metrics| [metrics.waiting_time.mean(), metrics.response_time.mean()])
        .collect();
    [0, 1].map(|which| {
        let values = runs.iter().map(|run| run[which] / MEAN);
        let n = SEEDS as f64;
        let mean = values.clone().sum::<f64>() / n;
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    })
}

/// Waiting times in the independent model, which also took 20 seeds: two standard errors of the
/// difference of two such means are 2 · √2 times that of one.
fn assert_agree(what: &str, (mean, error): (f64, f64), theirs: f64) {
    let bound = 2.0 * 2f64.sqrt() * error;
    assert!((mean - theirs).abs() <= bound, "{what}: {mean} ± {error}, the model has {theirs}");
}

#[test]
fn a_batch_on_one_cpu_takes_as_long_as_the_closed_form_says() {
    for (q, text) in [(0.5, "5ms"), (1.0, "10ms"), (1.5, "15ms"), (2.0, "20ms")] {
        let theory = exponential_batch(q);
        let settings = [("q1", text), ("q2", text)];
        let [(waiting, _), _] = over_seeds(|seed| measure(1, &settings, batch(2000, seed)));
        let turnaround = (waiting + 1.0) / 2000.0;
        assert!((turnaround / theory - 1.0).abs() < 0.01, "{q}: {turnaround}, theory {theory}");
    }
}

#[test]
fn batches_wait_as_long_as_in_the_model() {
    let cases: &[(usize, u64, &[Setting], f64)] = &[
        (1, 500, &[], 164.7),
        (1, 500, &[("spill", "true")], 158.4),
        (1, 1000, &[], 323.3),
        (1, 2000, &[], 650.0),
        (1, 2000, &[("spill", "true")], 629.9),
        (3, 2000, &[], 216.2),
        (3, 2000, &[("spill", "true")], 209.1),
        (3, 2000, &[("layout", "bound3")], 215.7),
        (3, 2000, &[("layout", "pipe3")], 432.1),
        (5, 2000, &[], 129.4),
        (5, 2000, &[("spill", "true")], 125.0),
        (5, 2000, &[("layout", "pipe5")], 170.2),
        (5, 2000, &[("layout", "pipe5"), ("batch", "true")], 276.5),
        (5, 2000, &[("layout", "pipe5"), ("sort_q1", "false"), ("sort_q2", "false")], 218.6),
    ];
    for &(cpus, tasks, settings, theirs) in cases {
        let [waiting, _] = over_seeds(|seed| measure(cpus, settings, batch(tasks, seed)));
        assert_agree(&format!("{tasks} tasks, {cpus} CPUs, {settings:?}"), waiting, theirs);
    }
    for (tasks, theirs) in [(500, 108.0), (2000, 430.8)] {
        let [_, response] = over_seeds(|seed| measure(1, &[], batch(tasks, seed)));
        assert_agree(&format!("response, {tasks} tasks"), response, theirs);
    }
}

/// What slice is best depends on the layout and on whether Q1 is sorted.
#[test]
fn the_best_slice_is_another_in_each_layout() {
    let cases: &[(usize, &[Setting], [usize; 4])] = &[
        (1, &[], [3, 2, 1, 0]),
        (3, &[("layout", "bound3")], [3, 2, 1, 0]),
        (3, &[("layout", "pipe3")], [0, 1, 2, 3]),
        (5, &[("layout", "pipe5")], [3, 2, 1, 0]),
        (5, &[("layout", "pipe5"), ("sort_q1", "false"), ("sort_q2", "false")], [1, 0, 2, 3]),
        (5, &[("layout", "pipe5"), ("sort_q1", "false")], [0, 1, 2, 3]),
        (3, &[("layout", "bound3"), ("deal", "contiguous-thirds")], [1, 2, 0, 3]),
        (5, &[("layout", "pipe5"), ("deal", "contiguous-thirds")], [0, 1, 2, 3]),
    ];
    for (cpus, settings, order) in cases {
        let waiting = ["5ms", "10ms", "15ms", "20ms"].map(|q| {
            let settings = [*settings, &[("q1", q), ("q2", q)]].concat();
            over_seeds(|seed| measure(*cpus, &settings, batch(1000, seed)))[0].0
        });
        assert!(order.is_sorted_by(|&a, &b| waiting[a] < waiting[b]), "{settings:?} {waiting:?}");
    }
    let fifo = [("layout", "pipe5"), ("sort_q1", "false"), ("sort_q2", "false")];
    for (q, theirs) in [("5ms", 122.3), ("10ms", 109.5), ("15ms", 128.6), ("20ms", 143.3)] {
        let settings = [fifo.as_slice(), &[("q1", q), ("q2", q)]].concat();
        let [waiting, _] = over_seeds(|seed| measure(5, &settings, batch(1000, seed)));
        assert_agree(&format!("1000 tasks, 5 CPUs, {settings:?}"), waiting, theirs);
    }
}

#[test]
fn open_arrivals_wait_as_long_as_in_the_model() {
    let cases: &[(usize, f64, &[Setting], f64)] = &[
        (1, 0.7, &[], 1.974),
        (1, 0.9, &[], 7.526),
        (3, 0.7, &[], 0.468),
        (3, 0.9, &[], 2.313),
        (3, 0.7, &[("layout", "bound3")], 0.641),
        (3, 0.9, &[("layout", "bound3")], 2.438),
        (1, 0.7, &[("batch", "true")], 1.974),
        (3, 0.7, &[("batch", "true")], 2.522),
        (3, 0.9, &[("batch", "true")], 32.9),
    ];
    for &(cpus, load, settings, theirs) in cases {
        let [waiting, _] = over_seeds(|seed| measure(cpus, settings, poisson(cpus, load, seed)));
        assert_agree(&format!("load {load}, {cpus} CPUs, {settings:?}"), waiting, theirs);
    }
}
