//! Queueing theory as an oracle. Seeds are fixed, so that each test passes or fails for good; the
//! bounds are three standard errors over seeds.

use crate::support;
use anysched_core::{CpuId, Machine, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_sim::Sim;
use anysched_theory::m_rsf;
use anysched_theory::queueing::{Station, mmc::Mmc};
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::Load;
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Arrivals, Batch, Generator, Hog, Open, Settings};
use anysched_workload::mix::Mix;
use std::path::Path;

const MEAN: f64 = 1e7;

fn dist(text: &str) -> Dist {
    Dist::parse(text, Path::new(".")).unwrap()
}

fn measure(cpus: usize, policy: &str, settings: &[(&str, &str)], load: Box<dyn Load>) -> Metrics {
    let machine = Machine::flat(cpus).unwrap();
    let scheduler = support::build(&machine, policy, settings);
    Sim::new(Setup::new(machine), scheduler, load).run().unwrap().0
}

fn open(cpus: usize, load: f64, service: &str, tasks: u64, seed: u64) -> Box<dyn Load> {
    let open = Open {
        settings: Settings::default(),
        arrivals: Arrivals::Load(load),
        service: dist(service),
        tasks: Some(tasks),
        start: Time::ZERO,
        until: None,
    };
    open.build(seed, cpus).unwrap()
}

/// Mean and three standard errors of the mean of `value` over seeds.
fn over_seeds(seeds: u64, value: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=seeds).map(value).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 3.0 * (variance / n).sqrt())
}

fn assert_near(what: &str, (mean, bound): (f64, f64), theory: f64) {
    assert!(
        (mean - theory).abs() <= bound && bound < theory * 0.1,
        "{what}: {mean} ± {bound}, theory says {theory}"
    );
}

#[test]
fn waiting_in_m_m_c_is_as_erlang_says() {
    for cpus in [1, 4] {
        for load in [0.5, 0.7, 0.9] {
            let wait = over_seeds(20, |seed| {
                let load = open(cpus, load, "exp(10ms)", 60_000, seed);
                measure(cpus, "fcfs", &[], load).waiting_time.mean()
            });
            let station = Station::with_load(load, MEAN, cpus as u32).unwrap();
            let theory = Mmc::new(station).unwrap().measures().waiting_time;
            assert_near(&format!("M/M/{cpus} at {load}"), wait, theory);
        }
    }
}

#[test]
fn fcfs_waits_by_pollaczek_and_khinchine_and_small_quanta_share_the_processor() {
    // Hyperexponential: mean 10 ms, squared coefficient of variation 4. FCFS suffers from the
    // variance, W = ρ (1 + cv²) / 2 (1 − ρ) · E[S]; processor sharing does not, T = E[S] / (1 − ρ).
    let service = "hyperexp(10ms, cv2=4)";
    let fcfs = over_seeds(20, |seed| {
        measure(1, "fcfs", &[], open(1, 0.7, service, 60_000, seed)).waiting_time.mean()
    });
    assert_near("M/G/1 FCFS", fcfs, 0.7 * 5.0 / (2.0 * 0.3) * MEAN);
    let sharing = over_seeds(20, |seed| {
        let load = open(1, 0.7, service, 20_000, seed);
        measure(1, "rr", &[("quantum", "200us")], load).turnaround.mean()
    });
    // Of a quantum of q a task loses, on average, half to rounding up: within 2 % for q = E[S]/50.
    let theory = MEAN / 0.3;
    let (mean, bound) = sharing;
    assert!((mean - theory).abs() <= bound + 0.02 * theory, "PS: {mean} ± {bound}, {theory}");
}

/// For large n; 2000 tasks are within the error over seeds.
#[test]
fn batches_are_as_their_integrals_say() {
    for service in ["uniform(2ms, 18ms)", "lognormal(10ms, 1.0)", "hyperexp(10ms, cv2=4)"] {
        let theory = m_rsf::batch(&dist(service), Span::from_ms(10), Span::from_ms(10));
        for (policy, settings, per_task) in [
            ("sjf", &[][..], theory.sjf),
            ("m-rsf", &[("q1", "10ms"), ("q2", "10ms")], theory.m_rsf),
            ("fcfs", &[], theory.fcfs),
            ("rr", &[("quantum", "500us")], theory.sharing),
        ] {
            let (mean, bound) = over_seeds(20, |seed| {
                let batch = Batch {
                    settings: Settings::default(),
                    tasks: 2000,
                    service: dist(service),
                    at: Time::ZERO,
                };
                measure(1, policy, settings, batch.build(seed, 1).unwrap()).turnaround.mean()
            });
            // What RR rounds up, and what 2000 tasks lack to infinitely many.
            let bound = bound + 0.01 * per_task * 2000.0;
            assert_near(&format!("{policy}, {service}"), (mean, bound), per_task * 2000.0);
        }
    }
}

#[test]
fn shortest_first_in_a_closed_batch() {
    // n exponential jobs in order of size: mean completion is (n + 3) / 4 means.
    for policy in ["sjf", "srpt"] {
        let turnaround = over_seeds(20, |seed| {
            let batch = Batch {
                settings: Settings::default(),
                tasks: 2000,
                service: dist("exp(10ms)"),
                at: Time::ZERO,
            };
            measure(1, policy, &[], batch.build(seed, 1).unwrap()).turnaround.mean()
        });
        assert_near(policy, turnaround, 2003.0 / 4.0 * MEAN);
    }
}

/// CPU time per task, and the furthest that any task was ahead of or behind its share.
struct Shares {
    /// Weight and CPU time of each task.
    tasks: Vec<(f64, f64)>,
    running: Option<(usize, Time)>,
    furthest: f64,
}

impl Shares {
    fn advance(&mut self, now: Time) {
        if let Some((task, since)) = self.running {
            self.tasks[task].1 += now.since(since).0 as f64;
            self.running = Some((task, now));
        }
        let total: f64 = self.tasks.iter().map(|task| task.0).sum();
        for (weight, used) in &self.tasks {
            let fair = now.0 as f64 * weight / total;
            self.furthest = self.furthest.max((used - fair).abs());
        }
    }
}

impl Sink for Shares {
    fn task(&mut self, info: &TaskInfo<'_>) {
        let weight = anysched_core::params::weight_of_nice(info.nice);
        self.tasks.push((f64::from(weight), 0.0));
    }
    fn event(&mut self, event: &Event) {
        if let Kind::Switch { cpu: CpuId(0), next, .. } = event.kind {
            self.advance(event.time);
            self.running = next.map(|TaskId(task)| (task as usize, event.time));
        }
    }
}

/// Hogs with these nice values for `seconds` on one CPU.
fn shares(policy: &str, settings: &[(&str, &str)], nices: &[i8], seconds: u64) -> Shares {
    let machine = Machine::flat(1).unwrap();
    let scheduler = support::build(&machine, policy, settings);
    let hog = |&nice: &i8| {
        let hog = Hog {
            settings: Settings { nice, ..Settings::default() },
            tasks: 1,
            offset: dist("0ns"),
            until: None,
            check: Span::from_ms(1),
        };
        hog.build(1, 1).unwrap()
    };
    let load = Mix::new(nices.iter().map(hog).collect());
    let mut setup = Setup::new(machine);
    setup.until = Time(seconds * 1_000_000_000);
    let sink = Shares { tasks: Vec::new(), running: None, furthest: 0.0 };
    let (_, _, mut shares) = Sim::with_sink(setup, scheduler, load, sink).run().unwrap();
    shares.advance(Time(seconds * 1_000_000_000));
    shares
}

#[test]
fn cpu_time_goes_by_nice_weight() {
    for policy in ["cfs", "eevdf"] {
        for tick in ["auto", "0"] {
            let nices = [-5, 0, 0, 5, 10];
            let shares = shares(policy, &[("tick", tick)], &nices, 60);
            let total: f64 = shares.tasks.iter().map(|task| task.0).sum();
            for (weight, used) in &shares.tasks {
                let (share, fair) = (used / 60e9, weight / total);
                assert!(
                    (share / fair - 1.0).abs() < 0.01,
                    "{policy}, tick {tick}, weight {weight}: {share} instead of {fair}"
                );
            }
        }
    }
}

#[test]
fn eevdf_lag_is_bounded() {
    // For tasks that are always ready, |lag| is at most one slice, plus a tick where the slice
    // ends only at ticks (Stoica and Abdel-Wahab 1995, theorem 1; quantum = slice).
    let slice = 750_000.0;
    let exact = shares("eevdf", &[("tick", "0")], &[0, 0, 0, -3, 3, 5], 20);
    assert!(exact.furthest <= slice, "{} ns", exact.furthest);
    let ticking = shares("eevdf", &[("tick", "1ms")], &[0, 0, 0, -3, 3, 5], 20);
    assert!(ticking.furthest <= slice + 1e6, "{} ns", ticking.furthest);
    // A policy that ignores lag fails by far.
    let rr = shares("rr", &[("quantum", "3ms")], &[0, 0, 0, -3, 3, 5], 20);
    assert!(rr.furthest > 100.0 * slice);
}
