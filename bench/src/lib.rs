//! Loads and runs shared by several benchmarks.

use anysched_core::registry::build_rule;
use anysched_core::{DomainId, Machine, Scheduler, Span, Time, Uni};
use anysched_host::{Setup, Vm};
use anysched_measure::Metrics;
use anysched_policies::policy;
use anysched_policies::textbook::fcfs::Fcfs;
use anysched_sim::Sim;
use anysched_trace::Sink;
use anysched_workload::Load;
use anysched_workload::dist::Dist;
use anysched_workload::generate::{
    Arrivals, Batch, Generator, Interactive, Open, Periodic, Settings, TaskSet,
};
use anysched_workload::mix::Mix;
use std::path::Path;

/// A distribution from its text form, which must be valid.
pub fn dist(text: &str) -> Dist {
    Dist::parse(text, Path::new(".")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn built(generator: impl Generator, cpus: usize) -> Box<dyn Load> {
    generator.build(1, cpus).unwrap_or_else(|error| panic!("{error}"))
}

/// `tasks` periodic tasks that keep `cpus` CPUs 80 % busy, generated as by Bini and Buttazzo;
/// periods from 1 to 100 ms.
pub fn periodic(tasks: u32, cpus: usize) -> Box<dyn Load> {
    let set = TaskSet {
        settings: Settings::default(),
        tasks,
        load: 0.8,
        periods: (Span::from_ms(1), Span::from_ms(100)),
        period_step: Span::from_us(1),
        offset: dist("0ns"),
        jitter: Span::ZERO,
        jobs: None,
        until: None,
    };
    built(set, cpus)
}

/// `tasks` periodic tasks of the same period, released one after another every 10 us, that keep
/// `cpus` CPUs 80 % busy: the rate of releases is the same for any number of tasks.
pub fn staggered(tasks: u32, cpus: usize) -> Box<dyn Load> {
    let period = Span::from_us(10 * u64::from(tasks));
    let load = Periodic {
        settings: Settings::default(),
        tasks,
        period,
        run: dist(&format!("{}ns", 8_000 * cpus)),
        budget: None,
        offset: dist(&format!("uniform(0ns, {}ns)", period.0)),
        jitter: Span::ZERO,
        jobs: None,
        until: None,
    };
    built(load, cpus)
}

/// M/M/1 at 80 % load: `tasks` arrivals with 1 ms of work on average.
pub fn mm1(tasks: u64) -> Box<dyn Load> {
    let open = Open {
        settings: Settings::default(),
        arrivals: Arrivals::Load(0.8),
        service: dist("exp(1ms)"),
        tasks: Some(tasks),
        start: Time::ZERO,
        until: None,
    };
    built(open, 1)
}

/// A closed batch of `tasks` with exponential work.
pub fn batch(tasks: u64) -> Box<dyn Load> {
    let settings = Settings::default();
    built(Batch { settings, tasks, service: dist("exp(1ms)"), at: Time::ZERO }, 4)
}

/// 20 tasks for each CPU that run for 1 ms and sleep for 20 ms on average.
pub fn sleepers(cpus: usize) -> Box<dyn Load> {
    let load = Interactive {
        settings: Settings::default(),
        tasks: 20 * cpus as u32,
        run: dist("exp(1ms)"),
        sleep: dist("exp(20ms)"),
        offset: dist("uniform(0ns, 21ms)"),
        rounds: None,
        until: None,
    };
    built(load, cpus)
}

/// A machine of up to 32 CPUs in one package, or of several such packages; two threads a core.
pub fn packages(cpus: usize) -> Machine {
    let topology = match cpus {
        1 => "1 core".to_owned(),
        2..=32 => format!("{} cores x 2 threads", cpus / 2),
        _ => format!("{} packages x 16 cores x 2 threads", cpus / 32),
    };
    Machine::parse(&topology).unwrap_or_else(|error| panic!("{topology}: {error}"))
}

/// A flat machine.
pub fn machine(cpus: usize) -> Machine {
    Machine::flat(cpus).unwrap_or_else(|error| panic!("{error}"))
}

/// A registered policy with its defaults.
pub fn registered(name: &str, machine: &Machine) -> Box<dyn Scheduler> {
    with(name, &[], machine)
}

/// A registered policy with some parameters set.
pub fn with(name: &str, settings: &[(&str, &str)], machine: &Machine) -> Box<dyn Scheduler> {
    let known = policy(name).unwrap_or_else(|| panic!("no policy {name}"));
    (known.build)(machine, settings).unwrap_or_else(|error| panic!("{error}"))
}

/// FCFS for one CPU, without dynamic dispatch.
pub fn fcfs_uni(machine: &Machine) -> Uni<Fcfs> {
    Uni::new(machine, &Default::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// FCFS on one queue for all CPUs, without dynamic dispatch.
pub fn fcfs_smp(machine: &Machine) -> impl Scheduler {
    build_rule::<Fcfs>(machine, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// 32 virtual machines with one CPU each, whose `tasks` interactive tasks keep `cpus` CPUs 90 %
/// busy in total.
pub fn vms(cpus: u64, tasks: u32, guest: &str) -> Vec<Vm> {
    const VMS: u64 = 32;
    let run = 200_000 * cpus / VMS / u64::from(tasks) * 9 / 10;
    let vm = |number: u64| {
        let load = Interactive {
            settings: Settings::default(),
            tasks,
            run: dist(&format!("{run}ns")),
            sleep: dist(&format!("uniform(100us, {}ns)", 300_000 - 2 * run)),
            offset: dist("uniform(0ns, 1ms)"),
            rounds: None,
            until: None,
        };
        let load = load.build(number, 1).unwrap_or_else(|error| panic!("{error}"));
        let machine = machine(1);
        let policy = registered(guest, &machine);
        Vm::new("vm", DomainId(number as u16 + 1), Setup::new(machine), policy, load)
    };
    (0..VMS).map(vm).collect()
}

/// Runs virtual machines until `until`; returns the dispatches on both levels together.
pub fn run_vms(machine: &Machine, host: &str, vms: Vec<Vm>, until: Time) -> u64 {
    let setup = Setup { until, ..Setup::new(machine.clone()) };
    let nothing = Box::new(Mix::new(Vec::new()));
    match Sim::new(setup, registered(host, machine), nothing).with_vms(vms).run() {
        Ok((metrics, ..)) => {
            let inside = metrics.vms.iter().map(|vm| &vm.inside);
            inside.chain([&metrics]).filter_map(|metrics| metrics.dispatches.get()).sum()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a load until `until`.
pub fn run<T: Sink>(
    machine: &Machine,
    scheduler: impl Scheduler,
    load: Box<dyn Load>,
    until: Time,
    sink: T,
) -> (Metrics, T) {
    let setup = Setup { until, ..Setup::new(machine.clone()) };
    match Sim::with_sink(setup, scheduler, load, sink).run() {
        Ok((metrics, _, sink)) => (metrics, sink),
        Err(error) => panic!("{error}"),
    }
}
