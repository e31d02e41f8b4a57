//! M-RSF against the closed form for a batch on one CPU, and against an independent model of the
//! same rules. Seeds are fixed, so that each test passes or fails for good.

mod support;

use anysched_core::{Machine, Time};
use anysched_sim::{Metrics, Setup, Sim};
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

#[test]
fn numbers() {
    let row = |what: &str, [wt, resp]: [(f64, f64); 2], theirs: f64| {
        println!("{what:<60} WT {:9.3} ± {:6.3}  RESP {:8.3} ± {:6.3}  spec {theirs:9.3}  z {:5.2}", wt.0, wt.1, resp.0, resp.1, (wt.0 - theirs) / wt.1);
    };
    let fifo: &[Setting] = &[("sort_q1", "false"), ("sort_q2", "false")];
    let closed: &[(usize, u64, &[Setting], f64)] = &[
        (1, 500, &[], 164.7),
        (1, 1000, &[], 323.3),
        (1, 2000, &[], 650.0),
        (1, 2000, &[("spill", "true")], 629.9),
        (1, 500, &[("spill", "true")], 158.4),
        (3, 2000, &[], 216.2),
        (3, 2000, &[("spill", "true")], 209.1),
        (5, 2000, &[], 129.4),
        (5, 2000, &[("spill", "true")], 125.0),
        (3, 2000, &[("layout", "bound3")], 215.7),
        (3, 2000, &[("layout", "pipe3")], 432.1),
        (5, 2000, &[("layout", "pipe5")], 170.2),
        (5, 2000, &[("layout", "pipe5"), ("batch", "true")], 276.5),
        (5, 2000, &[("layout", "pipe5"), ("sort_q1", "false"), ("sort_q2", "false")], 218.6),
    ];
    for &(cpus, n, settings, theirs) in closed {
        row(&format!("k={cpus} n={n} {settings:?}"), over_seeds(|seed| measure(cpus, settings, batch(n, seed))), theirs);
    }
    let pipe5: &[Setting] = &[("layout", "pipe5")];
    let rows: &[(usize, Vec<Setting>, [f64; 4])] = &[
        (1, vec![], [369.9, 322.9, 287.0, 266.9]),
        (1, fifo.to_vec(), [495.1, 497.3, 500.5, 502.5]),
        (3, vec![("layout", "pipe3")], [168.8, 213.4, 233.9, 241.9]),
        (5, pipe5.to_vec(), [96.2, 84.4, 82.2, 81.8]),
        (5, [pipe5, fifo].concat(), [122.3, 109.5, 128.6, 143.3]),
        (5, [pipe5, &fifo[..1]].concat(), [102.6, 107.9, 128.6, 143.3]),
        (3, vec![("layout", "bound3"), ("deal", "contiguous-thirds")], [117.1, 98.5, 115.0, 122.9]),
        (5, vec![("layout", "pipe5"), ("deal", "contiguous-thirds")], [82.5, 95.5, 115.0, 122.9]),
    ];
    for (cpus, settings, theirs) in rows {
        for (q, theirs) in ["5ms", "10ms", "15ms", "20ms"].into_iter().zip(theirs) {
            let settings = [settings.as_slice(), &[("q1", q), ("q2", q)]].concat();
            row(&format!("k={cpus} n=1000 {settings:?}"), over_seeds(|seed| measure(*cpus, &settings, batch(1000, seed))), *theirs);
        }
    }
    let open: &[(usize, f64, &[Setting], f64)] = &[
        (1, 0.7, &[], 1.974),
        (1, 0.9, &[], 7.526),
        (3, 0.7, &[], 0.468),
        (3, 0.9, &[], 2.313),
        (3, 0.7, &[("layout", "bound3")], 0.641),
        (3, 0.9, &[("layout", "bound3")], 2.438),
        (1, 0.7, &[("batch", "true")], 1.974),
        (3, 0.7, &[("batch", "true")], 2.522),
        (3, 0.9, &[("batch", "true")], 32.9),
        (3, 0.7, &[("layout", "pipe3")], 100.0),
        (3, 0.9, &[("layout", "pipe3")], 166.0),
    ];
    for &(cpus, load, settings, theirs) in open {
        row(&format!("k={cpus} rho={load} {settings:?}"), over_seeds(|seed| measure(cpus, settings, poisson(cpus, load, seed))), theirs);
    }
}
