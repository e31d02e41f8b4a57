//! One decision of a policy: pick, tick, put, with 16, 1,000 and 100,000 tasks on one CPU, beside
//! the same three calls of ArceOS's `axsched` crate.

use anysched_core::policy::cfs_arceos::CfsArceos;
use anysched_core::policy::fcfs::Fcfs;
use anysched_core::policy::rr::RoundRobin;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Params, RunQueue, Scheduler, Span, TaskId,
    TaskParams, Time, Uni,
};
use axsched::BaseScheduler;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::sync::Arc;

const SIZES: [u32; 3] = [16, 1_000, 100_000];
const TICK: u64 = 10_000_000;

/// A scheduler with `tasks` ready tasks, and the loop that a kernel would drive it with.
struct Driven<S> {
    scheduler: S,
    kicks: CpuMask,
    now: Time,
}

impl<S: Scheduler> Driven<S> {
    fn new(scheduler: S, tasks: u32) -> Driven<S> {
        let mut driven = Driven { scheduler, kicks: CpuMask::EMPTY, now: Time(0) };
        for task in 0..tasks {
            let mut cx = Cx::new(driven.now, &mut driven.kicks);
            driven.scheduler.attach(&mut cx, TaskId(task), &TaskParams::default());
            let arrival = Arrival::because(Enqueue::New);
            driven.scheduler.enqueue(&mut cx, TaskId(task), arrival);
        }
        driven
    }

    #[inline]
    fn decide(&mut self) {
        let cpu = CpuId(0);
        let mut cx = Cx::new(self.now, &mut self.kicks);
        let Some(pick) = self.scheduler.pick_next(&mut cx, cpu) else { return };
        self.now += Span(TICK);
        let mut cx = Cx::new(self.now, &mut self.kicks);
        self.scheduler.tick(&mut cx, cpu, pick.task, Span(TICK));
        let kicked = self.kicks.take_lowest().is_some();
        let why = if kicked { Off::Preempted } else { Off::Yielded };
        let mut cx = Cx::new(self.now, &mut self.kicks);
        self.scheduler.put_prev(&mut cx, cpu, pick.task, Span::ZERO, why);
    }
}

fn ours<Q: RunQueue>(c: &mut Criterion, name: &str, settings: &[(&str, &str)]) {
    let machine = Machine::flat(1).unwrap();
    for tasks in SIZES {
        let mut params = Q::Params::default();
        settings.iter().for_each(|(name, text)| params.set(name, text).unwrap());
        let mut driven = Driven::new(Uni::<Q>::new(&machine, &params).unwrap(), tasks);
        c.benchmark_group("decision").bench_function(BenchmarkId::new(name, tasks), |b| {
            b.iter(|| driven.decide());
        });
    }
}

fn theirs<S: BaseScheduler<SchedItem = Arc<T>>, T>(
    c: &mut Criterion,
    name: &str,
    new: impl Fn() -> S,
    task: impl Fn(u32) -> T,
) {
    for tasks in SIZES {
        let mut scheduler = new();
        for number in 0..tasks {
            scheduler.add_task(Arc::new(task(number)));
        }
        c.benchmark_group("decision").bench_function(BenchmarkId::new(name, tasks), |b| {
            b.iter(|| {
                let task = scheduler.pick_next_task().unwrap();
                let preempt = scheduler.task_tick(&task);
                scheduler.put_prev_task(task, preempt);
            });
        });
    }
}

fn decisions(c: &mut Criterion) {
    ours::<Fcfs>(c, "fcfs", &[]);
    theirs(c, "axsched-fifo", axsched::FifoScheduler::new, axsched::FifoTask::new);
    ours::<RoundRobin>(c, "rr", &[("tick", "10ms")]);
    theirs(c, "axsched-rr", axsched::RRScheduler::<_, 5>::new, axsched::RRTask::<_, 5>::new);
    ours::<CfsArceos>(c, "cfs-arceos", &[]);
    theirs(c, "axsched-cfs", axsched::CFScheduler::new, axsched::CFSTask::new);
}

criterion_group!(benches, decisions);
criterion_main!(benches);
