//! `gittins` beside theory: mean response times of M/G/1 under policies that go by a rank of the
//! age. Seeds are fixed, so that each test passes or fails for good.
//!
//! Source: Z. Scully, M. Harchol-Balter, A. Scheller-Wolf, SOAP: One Clean Analysis of All
//! Age-Based Scheduling Policies, POMACS 2(1), 2018, theorem 5.5; computed here in floating point on
//! its own grid, from distribution functions and not from the policy's tables.

use crate::support;
use anysched_core::{Machine, Time};
use anysched_host::Setup;
use anysched_sim::Sim;
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Arrivals, Generator, Open, Settings};
use std::path::Path;

/// A distribution on a grid of ages, in ns.
struct Grid {
    /// From 0 on; beyond the last one there is next to nothing.
    ages: Vec<f64>,
    /// The probability of more, at each age.
    above: Vec<f64>,
    /// The integral of that up to each age.
    area: Vec<f64>,
    mean: f64,
}

impl Grid {
    /// `points` ages in equal ratios from `low` to the 1 − 10^-9 quantile, besides 0.
    fn new(dist: &Dist, low: f64, points: i32) -> Grid {
        let high = dist.quantile(1.0 - 1e-9);
        let ratio = (high / low).powf(1.0 / f64::from(points));
        let ages: Vec<f64> =
            [0.0].into_iter().chain((0..=points).map(|n| low * ratio.powi(n))).collect();
        Grid {
            above: ages.iter().map(|&age| 1.0 - dist.cdf(age)).collect(),
            area: ages.iter().map(|&age| dist.limited_mean(age)).collect(),
            mean: dist.mean(),
            ages,
        }
    }

    fn cells(&self) -> usize {
        self.ages.len() - 1
    }

    /// The rank in each cell, by definition.
    fn ranks(&self, rank: &str) -> Vec<f64> {
        let cells = self.cells();
        let serpt = |cell: usize| (self.mean - self.area[cell]) / self.above[cell];
        match rank {
            "gittins" => (0..cells)
                .map(|cell| {
                    let until = |end: usize| {
                        (self.area[end] - self.area[cell]) / (self.above[cell] - self.above[end])
                    };
                    (cell + 1..=cells).map(until).fold(serpt(cell), f64::min)
                })
                .collect(),
            "serpt" => (0..cells).map(serpt).collect(),
            _ => (0..cells)
                .scan(0.0f64, |most, cell| {
                    *most = most.max(serpt(cell));
                    Some(*most)
                })
                .collect(),
        }
    }

    /// Mean response time with Poisson arrivals that make a load of `load`, of the jobs whose sizes
    /// are on the grid.
    fn response(&self, ranks: &[f64], load: f64) -> f64 {
        let rate = load / self.mean;
        let cells = self.cells();
        let highest: Vec<f64> = ranks
            .iter()
            .scan(0.0f64, |most, &rank| {
                *most = most.max(rank);
                Some(*most)
            })
            .collect();
        // The load of new jobs until they first have this rank or a larger one.
        let new = |rank: f64| rate * self.area[highest.partition_point(|&most| most < rank)];
        let mut mean = 0.0;
        for (size, &worst) in highest.iter().enumerate() {
            let (mut squares, mut first) = (0.0, 0.0);
            let mut cell = 0;
            while cell < cells {
                if ranks[cell] > worst {
                    cell += 1;
                    continue;
                }
                let begin = cell;
                while cell < cells && ranks[cell] <= worst {
                    let from_begin = |at: usize| self.ages[at] - self.ages[begin];
                    let served = self.area[cell + 1] - self.area[cell];
                    squares += (from_begin(cell) + from_begin(cell + 1)) * served;
                    cell += 1;
                }
                if begin == 0 {
                    first = self.area[cell];
                }
            }
            let wait = rate / 2.0 * squares / ((1.0 - rate * first) * (1.0 - new(worst)));
            // From its end back, the worst rank that is still to come.
            let (mut residence, mut ahead) = (0.0, 0.0f64);
            for cell in (0..=size).rev() {
                ahead = ahead.max(ranks[cell]);
                let half = if cell == size { 0.5 } else { 1.0 };
                residence += half * (self.ages[cell + 1] - self.ages[cell]) / (1.0 - new(ahead));
            }
            mean += (self.above[size] - self.above[size + 1]) * (wait + residence);
        }
        mean / (1.0 - self.above[cells])
    }
}

fn dist(text: &str) -> Dist {
    Dist::parse(text, Path::new(".")).unwrap()
}

const LOAD: f64 = 0.6;

/// Mean turnaround over seeds, and three standard errors.
fn simulated(
    (policy, settings): (&str, &[(&str, &str)]),
    service: &str,
    load: f64,
    (seeds, tasks): (u64, u64),
) -> (f64, f64) {
    let means: Vec<f64> = (1..=seeds)
        .map(|seed| {
            let open = Open {
                settings: Settings::default(),
                arrivals: Arrivals::Load(load),
                service: dist(service),
                tasks: Some(tasks),
                start: Time::ZERO,
                until: None,
            };
            let machine = Machine::flat(1).unwrap();
            let scheduler = support::build(&machine, policy, settings);
            let load = open.build(seed, 1).unwrap();
            Sim::new(Setup::new(machine), scheduler, load).run().unwrap().0.turnaround.mean()
        })
        .collect();
    let n = seeds as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 3.0 * (variance / n).sqrt())
}

/// The formula itself, where others say what comes of it.
#[test]
fn the_formula_is_right_where_there_is_another() {
    let near = |what: &str, found: f64, exact: f64| {
        assert!((found / exact - 1.0).abs() < 0.005, "{what}: {found}, not {exact}");
    };
    let exp = Grid::new(&dist("exp(10ms)"), 1e4, 1_000);
    let constant = vec![1.0; exp.cells()];
    // M/M/1 under FCFS, and under least attained service, which is the same.
    near("FCFS", exp.response(&constant, 0.8), 1e7 / 0.2);
    let age: Vec<f64> = exp.ages[1..].to_vec();
    near("FB", exp.response(&age, 0.8), 1e7 / 0.2);
    // M/G/1 under FCFS is Pollaczek and Khinchine's, for what the 10^-9 left out is worth.
    let service = dist("hyperexp(0.9: 2ms, 0.1: 40ms)");
    let mixed = Grid::new(&service, 1e4, 1_000);
    let square = service.variance() + service.mean().powi(2);
    let exact = 0.7 / service.mean() * square / (2.0 * 0.3) + service.mean();
    near("FCFS", mixed.response(&vec![1.0; mixed.cells()], 0.7), exact);
}

/// Any policy that does not know run times.
#[test]
fn for_exponential_times_every_rank_is_m_m_1() {
    for rank in ["gittins", "serpt", "m-serpt"] {
        let settings = [("sizes", "exp(10ms)"), ("rank", rank), ("share", "0")];
        let (mean, bound) = simulated(("gittins", &settings), "exp(10ms)", 0.7, (20, 60_000));
        let theory = 1e7 / 0.3;
        assert!(bound < 0.02 * theory, "{rank}: ± {bound}");
        assert!((mean - theory).abs() < 0.02 * theory, "{rank}: {mean}, {theory}");
    }
}

/// What theory says of each rank, with which the simulation agrees.
fn compare(service: &str, low: f64, ranks: &[&str]) -> Vec<f64> {
    let grid = Grid::new(&dist(service), low, 1_000);
    let compare = |&rank: &&str| {
        let theory = grid.response(&grid.ranks(rank), LOAD);
        let settings = [("sizes", service), ("rank", rank), ("share", "0")];
        let (mean, bound) = simulated(("gittins", &settings), service, LOAD, (40, 60_000));
        let found = format!("{service}, {rank}: {mean} ± {bound}, theory says {theory}");
        println!("{found}: {:+.4}", mean / theory - 1.0);
        assert!(bound < 0.02 * theory, "{found}");
        assert!((mean - theory).abs() < 0.02 * theory, "{found}");
        theory
    };
    ranks.iter().map(compare).collect()
}

/// All ranks rise with age, so that all three are the same policy.
#[test]
fn two_kinds_of_tasks_respond_as_soap_says() {
    compare("hyperexp(0.9: 2ms, 0.1: 30ms)", 2e4, &["gittins"]);
}

/// Ranks fall before the least and towards the greatest size, for Gittins's from another age on.
#[test]
fn heavy_tails_respond_as_soap_says() {
    let ranks = ["gittins", "serpt", "m-serpt"];
    let theories = compare("pareto(1.5, 1ms, 200ms)", 1e6, &ranks);
    // No other rank is better, and M-SERPT's at most five times worse.
    let [gittins, serpt, m_serpt] = theories[..] else { panic!("{theories:?}") };
    assert!(gittins < serpt && gittins < m_serpt && m_serpt <= 5.0 * gittins);
}
