//! What policies are told where sched_ext says less than they have to know.

use anysched_core::checked::{Checked, Rules};
use anysched_core::params::TaskParams;
use anysched_core::{CpuId, Machine, Span, TaskId, Time};
use anysched_policies::policy;
use anysched_scx::{Adapter, Enqueued, Waking};

const CPU: CpuId = CpuId(0);
const QUANTUM: u64 = 50_000_000;

/// A task that a real-time task has displaced, and that has left the CPU's own queue meanwhile, has
/// run: what it used is no part of a pick that is undone. Here it has used its whole quantum, and is
/// to get another one, behind the task that waits.
#[test]
fn a_task_that_was_displaced_has_run() {
    for name in ["rr", "mlfq"] {
        let machine = Machine::flat(1).unwrap();
        let settings: &[(&str, &str)] = if name == "rr" { &[] } else { &[("slices", "50ms")] };
        let built = (policy(name).unwrap().build)(&machine, settings).unwrap();
        let mut adapter = Adapter::new(Checked::new(built, &machine, Rules::default()), &machine);
        let tasks: Vec<TaskId> =
            (0..2).map(|_| adapter.attach(Time(0), TaskParams::default(), 0)).collect();
        for task in &tasks {
            let waits = adapter.enqueue(Time(0), *task, 0, Waking::default());
            assert_eq!(waits, Enqueued::Waits);
        }
        let first = adapter.dispatch(Time(0), CPU, None, 0).unwrap();
        assert_eq!((first.task, first.slice), (tasks[0], Span(QUANTUM)), "{name}");
        adapter.started(tasks[0]);
        // The CPU asks after something that the policy does not know has run there.
        let next = adapter.dispatch(Time(QUANTUM), CPU, None, QUANTUM).unwrap();
        assert_eq!((next.task, next.slice), (tasks[1], Span(QUANTUM)), "{name}");
        adapter.started(tasks[1]);
        let again = adapter.dispatch(Time(2 * QUANTUM), CPU, None, QUANTUM).unwrap();
        assert_eq!((again.task, again.slice), (tasks[0], Span(QUANTUM)), "{name}");
    }
}
