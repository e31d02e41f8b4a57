//! The lines of a [status](anysched_wire::status).

use alloc::string::String;

use anysched_core::{CpuId, Scheduler};
use anysched_scx::Adapter;
use anysched_wire::status::{Cpu, Line};

/// Says a part of the status of the policy called `name`, on a machine of `cpus` CPUs: 0 is what is
/// said of all, then a part for each CPU, then the policy's own. `heap` is memory in bytes, used
/// and there. Returns whether there is such a part.
pub fn part<P: Scheduler>(
    part: usize,
    (name, cpus, heap): (&str, usize, (u64, u64)),
    adapter: &Adapter<P>,
    say: &mut dyn FnMut(&Line),
) -> bool {
    if part == 0 {
        say(&Line::Policy(name.into()));
        say(&Line::Heap(heap.0, heap.1));
    } else if part <= cpus {
        cpu(adapter, CpuId((part - 1) as u16), say);
    } else if part == cpus + 1 {
        for (floor, count) in adapter.latencies().iter() {
            say(&Line::Waited(floor, count.into()));
        }
        let policy = adapter.policy();
        policy.tally(&mut |name, number| say(&Line::Tally(name.into(), number)));
        policy.learned(&mut |name, text| say(&Line::Learned(name.into(), String::from(text))));
    }
    part <= cpus + 1
}

fn cpu<P: Scheduler>(adapter: &Adapter<P>, cpu: CpuId, say: &mut dyn FnMut(&Line)) {
    if !adapter.is_online(cpu) {
        return;
    }
    let c = adapter.counts(cpu);
    say(&Line::Cpu(Cpu {
        number: cpu.0,
        task: adapter.runs(cpu).map(|task| task.0),
        queued: adapter.queued(cpu).into(),
        counts: [
            c.dispatches,
            c.kept,
            c.idle,
            c.preemptions,
            c.migrations,
            c.wakeups,
            c.kicks,
            c.undone,
            c.unasked,
        ],
    }));
}
