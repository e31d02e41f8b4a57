//! The cost of a policy's decisions on one CPU: pick, tick, put with 16, 1,000 and 100,000 tasks,
//! compared with the same three calls of ArceOS's `axsched` crate; and a pick, a block and a
//! wake-up with 20 to 200,000 ready tasks, for M-RSF and GFS and the policies that their papers
//! compare them with.

use anysched_bench::with;
use anysched_core::{
    Arrival, CpuId, CpuMask, Cx, Enqueue, Machine, Off, Params, RunQueue, Scheduler, Span, TaskId,
    TaskParams, Time, Uni,
};
use anysched_policies::arceos::cfs_arceos::CfsArceos;
use anysched_policies::textbook::fcfs::Fcfs;
use anysched_policies::textbook::rr::RoundRobin;
use anysched_workload::rng::Rng;
use axsched::BaseScheduler;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::sync::Arc;

const SIZES: [u32; 3] = [16, 1_000, 100_000];
const TICK: u64 = 10_000_000;

/// A scheduler with `tasks` ready tasks, and the loop in which a kernel would drive it.
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

/// Picks a task, which blocks and wakes up at once with another burst, so that the number of ready
/// tasks stays the same. Bursts are drawn in advance.
fn wakeups(c: &mut Criterion) {
    let machine = Machine::flat(1).unwrap();
    let mut rng = Rng::from_seed(1);
    let mut draw = || Span((-1e6 * libm::log(1.0 - rng.unit())) as u64 + 1);
    let bursts: Vec<Span> = (0..1 << 16).map(|_| draw()).collect();
    let arrival = |why, burst| Arrival { burst: Some(burst), ..Arrival::because(why) };
    for tasks in [20, 2_000, 200_000] {
        for name in [
            "fcfs",
            "sjf",
            "rr",
            "mlfq",
            "cfs",
            "osv",
            "mqms-loose",
            "m-rsf",
            "bfs, list",
            "bfs, tree",
            "gfs",
        ] {
            let mut scheduler = match name.split_once(", ") {
                Some((name, queue)) => with(name, &[("queue", queue)], &machine),
                None => with(name, &[], &machine),
            };
            let (mut kicks, mut now, mut next) = (CpuMask::EMPTY, Time(0), 0);
            for task in (0..tasks).map(TaskId) {
                let mut cx = Cx::new(now, &mut kicks);
                scheduler.attach(&mut cx, task, &TaskParams::default());
                let burst = bursts[task.index() % bursts.len()];
                scheduler.enqueue(&mut cx, task, arrival(Enqueue::New, burst));
            }
            c.benchmark_group("wakeup").bench_function(BenchmarkId::new(name, tasks), |b| {
                b.iter(|| {
                    let cpu = CpuId(0);
                    let mut cx = Cx::new(now, &mut kicks);
                    let Some(pick) = scheduler.pick_next(&mut cx, cpu) else { return };
                    let ran = pick.slice.min(Span::from_ms(1));
                    now += ran;
                    let mut cx = Cx::new(now, &mut kicks);
                    scheduler.put_prev(&mut cx, cpu, pick.task, ran, Off::Blocked);
                    next = (next + 1) % bursts.len();
                    let why = Enqueue::Wakeup { prev: cpu, sync: false };
                    let woken = arrival(why, bursts[next]);
                    scheduler.enqueue(&mut cx, pick.task, woken);
                });
            });
        }
    }
}

criterion_group!(benches, decisions, wakeups);
criterion_main!(benches);
