//! SEDF and its relatives in the simulator: the golden value, and the overload that the paper on
//! SEDF_DM studies beside the figures of an independent model of the same rules.

use crate::support::{MS, at, build, model, ms, run, sum, task};
use anysched_core::checked::{Checked, Rules};
use anysched_core::{CpuId, DomainId, Machine, Scheduler, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_sim::{Sim, TaskResult};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::rng::Rng;
use anysched_workload::{NewTask, Op};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Slices of the virtual machines of the paper, in ms of 100.
const SLICES: [u64; 6] = [50, 54, 58, 62, 66, 70];

const NO_EXTRA: [(&str, &str); 2] = [("extra", "off"), ("slice", "50ms")];

/// A vCPU that has `work` ms to do and a slice of 100 ms.
fn vm(slice: u64, work: u64) -> ModelTask {
    let mut vm = task(0, vec![run(work)]);
    vm.new.period = Some(ms(100));
    vm.new.budget = Some(ms(slice));
    vm
}

fn vms(count: usize) -> Model {
    model(SLICES[..count].iter().map(|&slice| vm(slice, 30_000)).collect())
}

struct Played {
    metrics: Metrics,
    policy: Box<dyn Scheduler>,
    results: Vec<TaskResult>,
}

impl Played {
    fn probe(&self, name: &str) -> i64 {
        let mut found = None;
        self.policy.probe(TaskId(0), &mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }

    /// Mean completion in s.
    fn mean(&self) -> f64 {
        let sum: u64 = self.results.iter().map(|result| result.completion.0).sum();
        sum as f64 / self.results.len() as f64 / 1e9
    }
}

fn play(name: &str, settings: &[(&str, &str)], until: Time, load: Model) -> Played {
    let mut setup = Setup::new(Machine::flat(1).unwrap());
    setup.until = until;
    let policy = build(&setup.machine, name, settings);
    let results = Rc::new(RefCell::new(Vec::new()));
    let take = Rc::clone(&results);
    let sim = Sim::new(setup, policy, load.into_load().unwrap());
    let (metrics, policy, _) =
        sim.on_exit(move |result| take.borrow_mut().push(*result)).run().unwrap();
    let results = results.take();
    Played { metrics, policy, results }
}

fn overload(name: &str, own: &[(&str, &str)], count: usize) -> Played {
    let played = play(name, &[&NO_EXTRA, own].concat(), Time::NEVER, vms(count));
    assert_eq!(played.metrics.unfinished, 0);
    played
}

/// Up to `until` ms, how often the order has changed and whether it is DM.
fn switches(name: &str, own: &[(&str, &str)], count: usize, until: u64) -> (i64, bool) {
    let played = play(name, &[&NO_EXTRA, own].concat(), at(until), vms(count));
    (played.probe("switches"), played.probe("dm") == 1)
}

fn assert_near(what: &str, found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{what}: {found}, not {expected}");
}

#[test]
fn half_of_a_cpu_for_30_s() {
    let ends = |start| {
        let settings = [&NO_EXTRA[..], &[("start", start)]].concat();
        let played = play("sedf", &settings, Time::NEVER, model(vec![vm(50, 30_000)]));
        played.results[0].completion.0 / 1_000_000
    };
    // The first two slices are contiguous; the first one is not; the first one comes late.
    assert_eq!(["slice", "period", "wait"].map(ends), [59_900, 59_950, 60_000]);
}

#[test]
fn six_virtual_machines_end_when_the_independent_model_says() {
    for (name, expected) in
        [("sedf", 122.4), ("dm-xen", 117.8), ("d-edf", 117.8), ("sedf-dm", 117.9)]
    {
        assert_near(name, overload(name, &[], 6).mean(), expected);
    }
    assert_near("percent", overload("sedf-dm", &[("rule", "percent")], 6).mean(), 117.9);
}

#[test]
fn without_overload_the_order_says_nothing() {
    for count in [1, 2] {
        let sedf = overload("sedf", &[], count).mean();
        for name in ["dm-xen", "d-edf", "sedf-dm"] {
            assert_near(name, overload(name, &[], count).mean(), sedf);
        }
        assert_eq!(overload("sedf-dm", &[], count).probe("switches"), 0, "{count}");
    }
    let ratio = overload("dm-xen", &[], 4).mean() / overload("sedf", &[], 4).mean();
    assert_near("four", ratio, 0.990);
}

#[test]
fn d_edf_changes_at_once_and_back_when_the_load_ends() {
    assert_eq!(switches("d-edf", &[], 6, 90), (0, false));
    assert_eq!(switches("d-edf", &[], 6, 200), (1, true));
    assert_eq!(switches("d-edf", &[], 6, 162_000), (1, true));
    assert_eq!(switches("d-edf", &[], 6, 165_500), (2, false));
    assert_eq!(overload("d-edf", &[], 6).probe("switches"), 2);
}

#[test]
fn sedf_dm_changes_after_a_window_and_never_back() {
    assert_eq!(switches("sedf-dm", &[], 6, 1_830), (0, false));
    assert_eq!(switches("sedf-dm", &[], 6, 1_870), (1, true));
    assert_eq!(overload("sedf-dm", &[], 6).probe("switches"), 1);
    assert_eq!(switches("sedf-dm", &[], 3, 3_540), (0, false));
    assert_eq!(switches("sedf-dm", &[], 3, 3_600), (1, true));
    // Each slice once is a slower count; without a full scan, many are not seen.
    assert_eq!(switches("sedf-dm", &[("count", "per-job")], 6, 4_200), (0, false));
    assert_eq!(switches("sedf-dm", &[("count", "per-job")], 6, 4_300), (1, true));
    assert_eq!(switches("sedf-dm", &[("full_scan", "off")], 6, 3_900), (0, false));
}

/// vCPUs with random budgets that run, sleep and yield, on CPUs that come and go, keep the
/// contract, and no time is lost.
#[test]
fn random_budgets_keep_the_contract() {
    for seed in 0..400 {
        let rng = &mut Rng::stream(seed, "budgets");
        let machine = Machine::flat(1 + rng.below(3) as usize).unwrap();
        let mut setup = Setup::new(machine.with_tick((seed % 2 == 0).then_some(ms(1))));
        setup.until = at(500);
        if seed % 3 == 0 {
            setup.costs.context_switch = Span::from_us(20);
            setup.costs.ipi = Span::from_us(5);
        }
        let mut online = at(500).0;
        if setup.machine.cpus() > 1 && rng.below(2) == 0 {
            // CPU 0, where all are at first, goes and comes back.
            let (gone, back) = (rng.below(200), 200 + rng.below(200));
            setup.hotplug = vec![(at(gone), CpuId(0), false), (at(back), CpuId(0), true)];
            online -= (back - gone) * MS;
        }
        online += at(500).0 * (setup.machine.cpus() as u64 - 1);
        let tasks = (0..1 + rng.below(8)).map(|_| random_vcpu(rng)).collect();
        let name = ["sedf", "dm-xen", "d-edf", "sedf-dm"][seed as usize % 4];
        let weights = ["off", "slices", "extra"][rng.below(3) as usize];
        let policy = build(&setup.machine, name, &[("weights", weights), ("latency", "3ms")]);
        let rules = Rules { work_conserving: false, ..Rules::default() };
        let checked = Checked::new(policy, &setup.machine, rules);
        let load = model(tasks).into_load().unwrap();
        let (metrics, ..) = Sim::new(setup, checked, load).run().unwrap();
        let spent = sum([metrics.busy, metrics.overhead, metrics.idle]).0;
        assert_eq!(spent, online, "{seed}");
        assert!(metrics.dispatches.get() > Some(0), "{seed}");
    }
}

fn random_vcpu(rng: &mut Rng) -> ModelTask {
    let us = |n| Span::from_us(n);
    let ops = vec![
        Op::Run(us(1 + rng.below(20_000))),
        Op::Sleep(us(rng.below(20_000))),
        Op::Run(us(rng.below(3_000))),
        Op::Yield,
    ];
    let script = Script { ops, rounds: u64::MAX, ..Script::default() };
    let period = 1_000 + rng.below(50_000);
    let budget = (rng.below(4) > 0).then(|| us(5 + rng.below(period - 5)));
    let domain = DomainId(rng.below(3) as u16);
    let new = NewTask { period: Some(us(period)), budget, domain, ..NewTask::default() };
    ModelTask { new, arrives: Some(at(rng.below(50))), script: Arc::new(script) }
}

/// Three tasks whose periods begin too close to each other for any extra time: they are ready, the
/// policy's timer goes on for ever, and the run still ends.
#[test]
fn a_timer_that_helps_nobody_keeps_no_run_going() {
    let mut tasks = vec![task(0, vec![run(10)]); 3];
    for (nth, task) in (0..).zip(&mut tasks) {
        task.arrives = Some(Time(nth * 400_000));
    }
    let played = play("sedf", &[("period", "1ms")], Time::NEVER, model(tasks));
    assert_eq!([played.metrics.completed, played.metrics.unfinished], [0, 3]);
}
