//! What policies are told where sched_ext says less than they have to know.

use anysched_core::checked::{Checked, OnViolation, Rules};
use anysched_core::params::TaskParams;
use anysched_core::{CpuId, Machine, Off, Span, TaskId, Time};
use anysched_policies::{POLICIES, policy};
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

/// As above, of every policy, and of a task that leaves the policy's class, as one does that becomes
/// a real-time task, when its slice is used up to the nanosecond, and comes back.
#[test]
fn what_has_used_its_whole_slice_gets_another() {
    let machine = Machine::flat(1).unwrap();
    let mut wrong = Vec::new();
    for info in POLICIES {
        for leaves in [false, true] {
            // Policies that have to know the program first are none to begin with.
            let Ok(built) = (info.build)(&machine, &[]) else { continue };
            let nature = (info.nature)(&[]).unwrap();
            let (work_conserving, on_violation) = (nature.work_conserving, OnViolation::Collect);
            let rules = Rules { work_conserving, on_violation, ..Rules::default() };
            let mut adapter = Adapter::new(Checked::new(built, &machine, rules), &machine);
            let task = adapter.attach(Time(0), TaskParams::default(), 0);
            adapter.enqueue(Time(0), task, 0, Waking::default());
            let mut now = 0;
            for _ in 0..20 {
                let Some(pick) = adapter.dispatch(Time(now), CPU, None, now) else { break };
                assert_eq!(pick.task, task, "{}", info.name);
                adapter.started(task);
                now += pick.slice.0.min(QUANTUM);
                if leaves {
                    adapter.leaves(Time(now), task, now, Off::Blocked);
                    adapter.enqueue(Time(now), task, now, Waking::default());
                }
            }
            wrong.extend(
                adapter.policy().violations().first().map(|why| (info.name, why.to_string())),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// New groups are those that the policy picks by from then on, and a CPU that gets work by them is
/// kicked; what the policy does not change stays, with its reason.
#[test]
fn what_a_policy_allows_changes_while_it_runs() {
    let machine = Machine::flat(2).unwrap();
    let settings = [("grouping", "0;1"), ("threshold", "1000000")];
    let built = (policy("gfs").unwrap().build)(&machine, &settings).unwrap();
    // A group looks after its own CPUs only.
    let rules = Rules { work_conserving: false, ..Rules::default() };
    let mut adapter = Adapter::new(Checked::new(built, &machine, rules), &machine);
    let tasks: Vec<TaskId> =
        (0..2).map(|_| adapter.attach(Time(0), TaskParams::default(), 0)).collect();
    let on_first = Waking { from: Some(CPU), ..Waking::default() };
    for task in &tasks {
        adapter.enqueue(Time(0), *task, 0, on_first);
    }
    let picked = adapter.dispatch(Time(0), CPU, None, 0).unwrap().task;
    adapter.started(picked);
    let refused = |adapter: &mut Adapter<_>, name, text| {
        adapter.set_param(Time(1), name, text).unwrap_err().to_string()
    };
    let fixed = "`slice` cannot be changed while the policy runs; these can: grouping";
    assert_eq!(refused(&mut adapter, "slice", "1ms"), fixed);
    assert!(refused(&mut adapter, "grouping", "0;7").starts_with("`grouping`: "));
    while adapter.take_kick().is_some() {}
    adapter.set_param(Time(2), "grouping", "single").unwrap();
    assert_eq!(adapter.take_kick(), Some(CpuId(1)));
    let other = adapter.dispatch(Time(3), CpuId(1), None, 0).unwrap().task;
    assert_ne!(other, picked);
}
