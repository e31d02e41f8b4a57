//! `eevdf` against values worked out from Linux's sources, and switch by switch against the naive
//! model of each kernel.

use crate::support;
use anysched_core::{Machine, Scheduler, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_oracle::eevdf::{Eevdf, Rules};
use anysched_sim::Sim;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::Load;
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Generator, Hog, Interactive, Settings};
use anysched_workload::mix::Mix;
use anysched_workload::model::Model;
use anysched_workload::rng::Rng;

fn hog() -> Box<dyn Load> {
    let (settings, offset) = (Settings::default(), Dist::constant(Span::ZERO));
    let hog = Hog { settings, tasks: 1, offset, until: None, check: Span::from_ms(1) };
    hog.build(1, 1).unwrap()
}

/// Runs and sleeps in turn, from an offset on; all in ns.
fn sleeper((run, sleep, offset): (u64, u64, u64)) -> Box<dyn Load> {
    let [run, sleep, offset] = [run, sleep, offset].map(|ns| Dist::constant(Span(ns)));
    let settings = Settings::default();
    let sleeper = Interactive { settings, tasks: 1, run, sleep, offset, rounds: None, until: None };
    sleeper.build(1, 1).unwrap()
}

fn measure(settings: &[(&str, &str)], loads: Vec<Box<dyn Load>>, until: Span) -> Metrics {
    let machine = Machine::flat(1).unwrap().with_tick(Some(Span::from_ms(1)));
    let policy = support::build(&machine, "eevdf", settings);
    let setup = Setup { until: Time(until.0), ..Setup::new(machine) };
    Sim::new(setup, policy, Box::new(Mix::new(loads))).run().unwrap().0
}

/// Switches, and mean latency of wake-ups in us.
fn switches_and_latency(settings: &[(&str, &str)], loads: Vec<Box<dyn Load>>) -> (u64, f64) {
    let metrics = measure(settings, loads, Span::from_s(1));
    let latency = metrics.wakeup_latency.mean() / 1e3;
    (support::number(metrics.context_switches), (latency * 10.0).round() / 10.0)
}

/// A wake-up charges the running task; a request that has ended gives way then, and not at the
/// next tick. Expected: `fair.c` of each kernel, rewritten as a simulation of its own.
#[test]
fn a_wakeup_acts_as_update_curr() {
    let short = [
        (500_000, 2_000_000, 0),
        (513_001, 2_017_003, 333_333),
        (526_002, 2_034_006, 666_666),
        (539_003, 2_051_009, 999_999),
    ];
    let long = [
        (2_500_000, 900_000, 0),
        (2_513_001, 917_003, 333_333),
        (2_526_002, 934_006, 666_666),
        (2_539_003, 951_009, 999_999),
    ];
    let settings = [("profile", "6.12"), ("base_slice", "750us")];
    let with_hog = || std::iter::once(hog()).chain(short.map(sleeper)).collect();
    assert_eq!(switches_and_latency(&settings, with_hog()), (1622, 580.0));
    let sleepers = || long.map(sleeper).into_iter().collect();
    assert_eq!(switches_and_latency(&settings, sleepers()), (1259, 899.7));
    // The value for 6.6 takes no account of its placing new tasks twice.
    let halved = [("profile", "6.6"), ("place_deadline_initial", "true")];
    let (_, latency) = switches_and_latency(&halved, sleepers());
    assert!((latency - 1434.0).abs() < 0.5, "{latency}");
}

/// Two equal hogs, a tick of 1 ms and slices of 0.75 ms: in 6.6 the running task wins ties.
#[test]
fn equal_deadlines_are_decided_as_in_each_kernel() {
    for (profile, switches) in [("6.6", 21), ("6.12", 41), ("6.18", 41)] {
        let metrics = measure(&[("profile", profile)], vec![hog(), hog()], Span::from_ms(40));
        assert_eq!(support::number(metrics.context_switches), switches, "{profile}");
    }
}

/// A slice of 0.1 ms wakes up sooner beside hogs than one of 3 ms.
#[test]
fn a_short_slice_is_for_latency() {
    for profile in ["6.12", "6.18", "7.2", "7.3"] {
        let latency = |slice| {
            let [run, sleep, offset] = [100_000, 3_000_000, 0].map(|ns| Dist::constant(Span(ns)));
            let settings = Settings { slice, ..Settings::default() };
            let sleeper =
                Interactive { settings, tasks: 1, run, sleep, offset, rounds: None, until: None };
            let loads = vec![hog(), hog(), hog(), sleeper.build(1, 1).unwrap()];
            let settings = [("profile", profile), ("base_slice", "3ms")];
            let metrics = measure(&settings, loads, Span::from_s(1));
            (metrics.wakeup_latency.mean(), metrics.wakeup_latency.count())
        };
        let (short, long) = (latency(Some(Span::from_us(100))), latency(None));
        assert!(short.0 * 2.0 < long.0, "{profile}: {short:?} {long:?}");
    }
}

/// Who ran from when on.
#[derive(Default)]
struct Switches(Vec<(Time, Option<TaskId>)>);

impl Sink for Switches {
    fn task(&mut self, _: &TaskInfo<'_>) {}
    fn event(&mut self, event: &Event) {
        if let Kind::Switch { next, .. } = event.kind
            && self.0.last().is_none_or(|(_, last)| *last != next)
        {
            self.0.push((event.time, next));
        }
    }
}

fn switches(machine: &Machine, policy: Box<dyn Scheduler>, load: &Model) -> Switches {
    let setup = Setup { until: Time(400_000_000), ..Setup::new(machine.clone()) };
    let load = load.clone().into_load().unwrap();
    Sim::with_sink(setup, policy, load, Switches::default()).run().unwrap().2
}

/// Random programs with locks, signals, barriers, sleeps, yields and nice values.
#[test]
fn each_switch_is_that_of_the_model() {
    let kernels =
        [("6.6", (6, 6)), ("6.12", (6, 12)), ("6.18", (6, 18)), ("7.2", (7, 2)), ("7.3", (7, 3))];
    let mut seen = 0;
    for (profile, version) in kernels {
        for seed in 0..200 {
            let mut rng = Rng::numbered(seed, "eevdf", 0);
            let load = support::random::model(&mut rng, 1);
            let tick = *support::random::pick(&mut rng, &[1_000_000, 4_000_000]);
            let machine = Machine::flat(1).unwrap().with_tick(Some(Span(tick)));
            let policy = support::build(&machine, "eevdf", &[("profile", profile)]);
            let model = Eevdf::new(Rules::of(version, tick));
            let policy = switches(&machine, policy, &load);
            let model = switches(&machine, Box::new(model), &load);
            assert_eq!(policy.0, model.0, "{profile}, seed {seed}");
            seen += policy.0.len();
        }
    }
    assert!(seen > 50_000, "{seen}");
}
