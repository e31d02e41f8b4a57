//! How many events a second the writers can write.

#[path = "../tests/stream/mod.rs"]
mod stream;

use anysched_core::{CpuId, Off, Time};
use anysched_trace::Sink;
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::perfetto::PerfettoWriter;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::fs::File;
use stream::{Item, Machine};

const CPUS: usize = 4;
const TASKS: usize = 100;

/// 100 tasks on 4 CPUs: they block, wake each other and are woken by timers, and one in four stops
/// because its slice has ended. `sampled`: the counters are reported at each switch.
fn items(events: usize, sampled: bool) -> (Vec<Item>, Time) {
    let mut machine = Machine::new(CPUS);
    for task in 0..TASKS {
        machine.attach(None, Some(&format!("worker-{}", task % 10)), 0);
    }
    for cpu in 0..CPUS {
        machine.pick(cpu);
    }
    let mut step = 0;
    while machine.items.len() < events {
        step += 1;
        machine.pass(1_000 + step as u64 * 7_919 % 50_000);
        let cpu = step % CPUS;
        if let Some(blocked) = machine.blocked.len().checked_sub(1) {
            let by = machine.running((cpu + 1) % CPUS).filter(|_| step % 3 != 0);
            machine.wake(step % (blocked + 1), by, Some(CpuId(((cpu + 1) % CPUS) as u16)));
        }
        machine.leave(cpu, if step % 4 == 0 { Off::Expired } else { Off::Blocked });
        machine.pick(cpu);
        if sampled {
            machine.sample();
        }
    }
    (machine.items, machine.now)
}

fn write(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    let path = std::env::temp_dir().join(format!("anysched-bench-{}", std::process::id()));
    let create = || File::create(&path).unwrap();
    group.sample_size(20);
    for (name, sampled) in [("plain", false), ("sampled", true)] {
        let (items, end) = items(1_000_000, sampled);
        group.throughput(Throughput::Elements(items.len() as u64));
        group.bench_function(BenchmarkId::new("perfetto", name), |b| {
            b.iter(|| tell_all(&items, PerfettoWriter::new(create())).finish(end).unwrap());
        });
        group.bench_function(BenchmarkId::new("ftrace", name), |b| {
            b.iter(|| tell_all(&items, FtraceWriter::new(create(), CPUS)).finish(end).unwrap());
        });
    }
    group.finish();
    std::fs::remove_file(path).unwrap();
}

fn tell_all<S: Sink>(items: &[Item], mut sink: S) -> S {
    for item in items {
        item.tell(&mut sink);
    }
    sink
}

criterion_group!(benches, write);
criterion_main!(benches);
