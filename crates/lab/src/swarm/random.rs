//! Random loads and costs.

use anysched_core::{CpuId, CpuSet, Span, Time};
use anysched_host::Costs;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::rng::Rng;
use anysched_workload::{Barrier, Channel, Lock, Op};
use std::sync::Arc;

/// One of `from`, which is not empty.
pub fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

/// Once in `one_in` times.
pub fn sometimes(rng: &mut Rng, one_in: u64) -> bool {
    rng.below(one_in) == 0
}

/// A span of whole microseconds, at most this many.
pub fn span(rng: &mut Rng, most_us: u64) -> Span {
    Span::from_us(rng.below(most_us + 1))
}

/// What scheduling costs.
pub fn costs(rng: &mut Rng) -> Costs {
    Costs {
        context_switch: span(rng, 20),
        migrate_thread: span(rng, 2),
        migrate_core: span(rng, 5),
        migrate_llc: span(rng, 50),
        migrate_node: span(rng, 100),
        pick_base: span(rng, 2),
        pick_per_item: Span(rng.below(100)),
        enqueue_base: span(rng, 2),
        enqueue_log: Span(rng.below(500)),
        lock_hold: Span(rng.below(1000)),
        ipi: span(rng, 3),
        timer_irq: span(rng, 3),
        charged: sometimes(rng, 4),
        ..Costs::default()
    }
}

/// Up to thirty tasks for a machine of so many CPUs, with signals from outside.
pub fn model(rng: &mut Rng, cpus: u64) -> Model {
    let mut model = Model::default();
    model.sizes.channels = 3;
    model.sizes.locks = 2;
    model.sizes.barriers = vec![2, 3];
    let tasks = 1 + rng.below(30);
    for _ in 0..tasks {
        let mut task = ModelTask {
            arrives: Some(Time(rng.below(100_000) * 1000)),
            script: Arc::new(script(rng, cpus)),
            ..ModelTask::default()
        };
        task.new.nice = rng.below(40) as i8 - 20;
        if sometimes(rng, 4) {
            task.new.affinity = affinity(rng, cpus);
        }
        model.tasks.push(task);
    }
    for _ in 0..rng.below(40) {
        let time = Time(rng.below(300_000) * 1000);
        model.signals.push((time, Channel(rng.below(3) as u32)));
    }
    model.signals.sort();
    model
}

/// Some of so many CPUs.
pub fn affinity(rng: &mut Rng, cpus: u64) -> CpuSet {
    let chosen = (0..cpus as u16).map(CpuId).filter(|_| sometimes(rng, 2));
    let mut chosen: Vec<CpuId> = chosen.collect();
    if chosen.is_empty() {
        chosen.push(CpuId(rng.below(cpus) as u16));
    }
    CpuSet::of(chosen)
}

/// What a task does.
pub fn script(rng: &mut Rng, cpus: u64) -> Script {
    let mut ops = vec![Op::Run(Span::from_us(1) + span(rng, 3_000))];
    for _ in 0..rng.below(8) {
        let lock = Lock(rng.below(2) as u32);
        match rng.below(12) {
            0..4 => ops.push(Op::Run(span(rng, 5_000))),
            4 => ops.push(Op::Sleep(span(rng, 5_000))),
            5 => ops.push(Op::Yield),
            6 => ops.extend([Op::Lock(lock), Op::Run(span(rng, 500)), Op::Unlock(lock)]),
            7 => ops.push(Op::Wait(Channel(rng.below(3) as u32))),
            8 => ops.push(Op::Signal(Channel(rng.below(3) as u32))),
            9 => ops.push(Op::Broadcast(Channel(rng.below(3) as u32))),
            10 if sometimes(rng, 3) => ops.push(Op::Meet(Barrier(rng.below(2) as u32))),
            10 => ops.push(Op::SetNice(rng.below(40) as i8 - 20)),
            _ => ops.push(Op::SetAffinity(affinity(rng, cpus))),
        }
    }
    Script { ops, repeat_from: 0, rounds: 1 + rng.below(20), ..Script::default() }
}
