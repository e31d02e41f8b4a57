//! CFS in the simulator: loads whose outcome under Linux 6.1 was worked out from `fair.c`.

use crate::support::{Events, at, build, model, ms, number, run};
use anysched_core::{Machine, TaskId, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_sim::Sim;
use anysched_trace::Kind;
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{NewTask, Op};
use std::sync::Arc;

fn hog(arrives: Time, nice: i8) -> ModelTask {
    ModelTask {
        new: NewTask { nice, ..NewTask::default() },
        arrives: Some(arrives),
        script: Arc::new(Script::once(vec![run(100_000)])),
    }
}

fn play(until: u64, settings: &[(&str, &str)], load: Model) -> (Metrics, Events) {
    let mut setup = Setup::new(Machine::flat(1).unwrap().with_tick(Some(ms(1))));
    setup.until = at(until);
    let cfs = build(&setup.machine, "cfs", settings);
    let sim = Sim::with_sink(setup, cfs, load.into_load().unwrap(), Events::default());
    let (metrics, _, events) = sim.run().unwrap();
    (metrics, events)
}

/// min_vruntime must not pass what runs: the editor, which is placed up to 3 ms before it, then
/// preempts at once by 1 ms.
#[test]
fn an_editor_preempts_hogs_of_any_weight_at_once() {
    let editor = ModelTask {
        arrives: Some(at(5)),
        script: Arc::new(Script {
            ops: vec![run(1), Op::Sleep(ms(12))],
            rounds: u64::MAX,
            ..Script::default()
        }),
        ..ModelTask::default()
    };
    let load = model(vec![hog(at(0), 0), hog(at(0), 19), editor]);
    for (base_slice, switches) in [("false", 357), ("true", 356)] {
        let (metrics, _) = play(2_000, &[("base_slice", base_slice)], load.clone());
        assert!(metrics.wakeup_latency.count() > 140, "{}", metrics.wakeup_latency.count());
        assert_eq!(metrics.wakeup_latency.max(), Some(0));
        assert_eq!(number(metrics.context_switches), switches);
    }
}

/// A hog that is picked again has no new slice: it goes at the first tick at which the other one
/// has less vruntime.
#[test]
fn a_hog_that_is_picked_again_gets_no_slice() {
    let first_run = |arrives, settings| {
        let load = model(vec![hog(Time(557_969), 0), hog(Time(arrives), 0)]);
        let (_, events) = play(40, settings, load);
        let runs = |kind| matches!(kind, Kind::Switch { next: Some(TaskId(1)), .. });
        events.0.iter().find(|event| runs(event.kind)).map(|event| event.time)
    };
    assert_eq!(first_run(3_322_377, &[]), Some(at(7)));
    // The slice of 3 ms is over at 4 ms, but until 4.32 ms the first hog is not ahead. With a new
    // slice it would run until 7 ms.
    assert_eq!(first_run(1_322_377, &[]), Some(at(5)));
    assert_eq!(first_run(1_322_377, &[("profile", "3.15")]), Some(at(5)));
    assert_eq!(first_run(1_322_377, &[("profile", "3.14")]), Some(at(7)));
    assert_eq!(first_run(1_322_377, &[("keep_slice", "false")]), Some(at(7)));
}

/// Tasks of one instant are placed relative to the same min_vruntime.
#[test]
fn of_tasks_that_arrive_together_the_last_begins_first() {
    let load = model(vec![hog(at(0), 0), hog(at(0), 0), hog(at(0), 0)]);
    let (_, events) = play(1, &[], load);
    let first = events.0.iter().find_map(|event| match event.kind {
        Kind::Switch { next: Some(TaskId(task)), .. } => Some(task),
        _ => None,
    });
    assert_eq!(first, Some(2));
}
