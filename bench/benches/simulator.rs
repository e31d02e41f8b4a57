//! The simulator: dispatches, events compared with a bare queueing loop, growth with the number of
//! tasks, a large batch, and tracing to a file.

use anysched_bench::{
    batch, fcfs_smp, fcfs_uni, machine, mm1, packages, periodic, registered, run, run_vms,
    sleepers, staggered, vms, with,
};
use anysched_core::Time;
use anysched_measure::Total;
use anysched_trace::perfetto::PerfettoWriter;
use anysched_trace::{Event, NoTrace, Sink, TaskInfo};
use anysched_workload::mix::Mix;
use anysched_workload::rng::Rng;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;

/// What is counted per second; 0 if it was not measured.
fn elements(count: Total<u64>) -> Throughput {
    Throughput::Elements(count.get().unwrap_or(0))
}

/// 100 periodic tasks on 4 CPUs: dispatches per second, by policy.
fn dispatches(c: &mut Criterion) {
    let machine = machine(4);
    let until = Time(20_000_000_000);
    let mut group = c.benchmark_group("dispatches");
    let load = || periodic(100, 4);
    let (metrics, _) = run(&machine, fcfs_smp(&machine), load(), until, NoTrace);
    group.throughput(elements(metrics.dispatches));
    group.bench_function("fcfs (static)", |b| {
        b.iter(|| run(&machine, fcfs_smp(&machine), load(), until, NoTrace).0.dispatches);
    });
    let quanta = ["100us", "20us"];
    let short = quanta.map(|quantum| (format!("rr {quantum}"), "rr", vec![("quantum", quantum)]));
    let names = ["fcfs", "rr", "mlfq", "srpt", "cfs", "eevdf"];
    let defaults = names.map(|name| (name.to_string(), name, Vec::new()));
    for (label, name, settings) in defaults.into_iter().chain(short) {
        let go = || run(&machine, with(name, &settings, &machine), load(), until, NoTrace).0;
        group.throughput(elements(go().dispatches));
        group.bench_function(label, |b| b.iter(|| go().dispatches));
    }
}

/// M/M/1 as a plain loop over a binary heap: the least that an event can cost.
fn bare_mm1(tasks: u64) -> u64 {
    let mut rng = Rng::from_seed(1);
    let mut draw = |mean: f64| (-mean * libm::log(1.0 - rng.unit())) as u64;
    let mut events = BinaryHeap::new();
    let mut queue = VecDeque::new();
    let (mut arrived, mut busy, mut waited) = (0, false, 0u64);
    events.push(Reverse((draw(1.25e6), true)));
    while let Some(Reverse((now, is_arrival))) = events.pop() {
        if is_arrival {
            arrived += 1;
            queue.push_back(now);
            if arrived < tasks {
                events.push(Reverse((now + draw(1.25e6), true)));
            }
        } else {
            busy = false;
        }
        if !busy && let Some(arrival) = queue.pop_front() {
            waited += now - arrival;
            busy = true;
            events.push(Reverse((now + draw(1e6), false)));
        }
    }
    waited
}

fn queueing(c: &mut Criterion) {
    const TASKS: u64 = 300_000;
    let machine = machine(1);
    let mut group = c.benchmark_group("mm1");
    group.throughput(Throughput::Elements(2 * TASKS));
    group.bench_function("bare heap loop", |b| b.iter(|| black_box(bare_mm1(TASKS))));
    group.bench_function("fcfs", |b| {
        b.iter(|| run(&machine, fcfs_uni(&machine), mm1(TASKS), Time::NEVER, NoTrace).0.events);
    });
}

/// Time per event with 10 to 1,000,000 periodic tasks, at the same rate of events.
fn growth(c: &mut Criterion) {
    let machine = machine(4);
    let mut group = c.benchmark_group("growth");
    for tasks in [10u32, 1_000, 100_000, 1_000_000] {
        // All tasks arrive within the first 10 s; then come two more rounds of the largest set.
        let until = Time(30_000_000_000);
        let load = || staggered(tasks, 4);
        let (metrics, _) = run(&machine, fcfs_smp(&machine), load(), until, NoTrace);
        group.throughput(elements(metrics.events));
        group.bench_function(BenchmarkId::from_parameter(tasks), |b| {
            b.iter_batched(
                load,
                |load| run(&machine, fcfs_smp(&machine), load, until, NoTrace).0.events,
                criterion::BatchSize::PerIteration,
            );
        });
    }
}

fn closed_batch(c: &mut Criterion) {
    const TASKS: u64 = 1_000_000;
    let machine = machine(4);
    let mut group = c.benchmark_group("batch");
    group.throughput(Throughput::Elements(TASKS));
    for name in ["fcfs", "sjf", "srpt", "cfs", "m-rsf"] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let scheduler = registered(name, &machine);
                run(&machine, scheduler, batch(TASKS), Time::NEVER, NoTrace).0.completed
            });
        });
    }
}

/// 32 virtual machines on 4 CPUs for 10 s: dispatches on both levels together, by the host's
/// policy; for comparison, the same tasks without virtual machines.
fn two_levels(c: &mut Criterion) {
    let machine = machine(4);
    let until = Time(10_000_000_000);
    let mut group = c.benchmark_group("two levels");
    for (host, guest, tasks) in
        [("fcfs", "fcfs", 1), ("credit", "fcfs", 1), ("credit2", "fcfs", 1), ("credit", "cfs", 4)]
    {
        group.throughput(Throughput::Elements(run_vms(
            &machine,
            host,
            vms(4, tasks, guest),
            until,
        )));
        group.bench_function(format!("{guest} on {host}"), |b| {
            b.iter(|| run_vms(&machine, host, vms(4, tasks, guest), until));
        });
    }
    let load = || Box::new(Mix::new(vms(4, 1, "fcfs").into_iter().map(|vm| vm.load).collect()));
    let flat = || run(&machine, registered("fcfs", &machine), load(), until, NoTrace).0.dispatches;
    group.throughput(elements(flat()));
    group.bench_function("fcfs alone", |b| b.iter(flat));
}

/// 20 tasks for each CPU that run and sleep: dispatches per second, by policy and number of CPUs.
fn many_cpus(c: &mut Criterion) {
    let mut group = c.benchmark_group("many cpus");
    for cpus in [1, 16, 256, 1024] {
        let machine = packages(cpus);
        // About as many dispatches whatever the number of CPUs; never less than 10 rounds.
        let until = Time((400_000_000_000 / cpus as u64).clamp(250_000_000, 40_000_000_000));
        for name in ["fcfs", "cfs", "eevdf", "gfs", "bfs"] {
            // Exact timers, without events that do nothing but ask.
            let settings: &[_] = if name == "fcfs" { &[] } else { &[("tick", "0ns")] };
            let go =
                || run(&machine, with(name, settings, &machine), sleepers(cpus), until, NoTrace).0;
            group.throughput(elements(go().dispatches));
            group.bench_function(BenchmarkId::new(name, cpus), |b| b.iter(|| go().dispatches));
        }
    }
}

/// Counts the events passed to the writer.
struct Counted<S>(S, u64);

impl<S: Sink> Sink for Counted<S> {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.0.task(info);
    }
    #[inline]
    fn event(&mut self, event: &Event) {
        self.1 += 1;
        self.0.event(event);
    }
}

fn tracing(c: &mut Criterion) {
    let machine = machine(4);
    let until = Time(5_000_000_000);
    let path = std::env::temp_dir().join(format!("anysched-bench-{}.pftrace", std::process::id()));
    let traced = || {
        let file =
            std::io::BufWriter::new(std::fs::File::create(&path).expect("a writable folder"));
        let sink = Counted(PerfettoWriter::new(file), 0);
        let load = periodic(100, 4);
        let (_, Counted(writer, events)) = run(&machine, fcfs_smp(&machine), load, until, sink);
        writer.finish(until).expect("room on the disk");
        events
    };
    let mut group = c.benchmark_group("tracing");
    group.throughput(Throughput::Elements(traced()));
    group.bench_function("perfetto file", |b| b.iter(traced));
    let _ = std::fs::remove_file(&path);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = dispatches, queueing, two_levels, many_cpus, growth, closed_batch, tracing
}
criterion_main!(benches);
