//! Golden results: every registered policy on three small fixed loads, in text that a reader can
//! judge: numbers in ns, a hash of all picks and a picture of the schedule.
//!
//! `cargo xtask bless` rewrites them.

use crate::support::{self, at, build, ms, rehearsed, run, task, text};
use anysched_core::recorder::{Answer, Call, LogReader, PickHash, Recorder};
use anysched_core::registry::PolicyInfo;
use anysched_core::{Machine, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_trace::gantt::Gantt;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Channel, Lock, Op};
use std::fmt::Write;
use std::sync::Arc;

/// 16 characters for names leave this for the schedule in 80 columns.
const COLUMNS: usize = 64;

/// What is run, and until when its picture goes.
struct Golden {
    title: &'static str,
    machine: &'static str,
    until_ms: Option<u64>,
    /// About the longest that a policy takes, in ms.
    drawn_ms: u64,
    model: Model,
}

fn golden() -> [Golden; 3] {
    [
        Golden {
            title: "Eight tasks at once on two CPUs",
            machine: "2",
            until_ms: None,
            drawn_ms: 128,
            model: batch(),
        },
        Golden {
            title: "Two hogs, one of them nice 10, and two interactive tasks on one CPU",
            machine: "1",
            until_ms: Some(200),
            drawn_ms: 192,
            model: mix(),
        },
        Golden {
            title: "Three tasks pass a token, all seven share a lock, 2 cores x 2 threads",
            machine: "2 cores x 2 threads",
            until_ms: None,
            drawn_ms: 64,
            model: chain(),
        },
    ]
}

fn batch() -> Model {
    let lengths = [40, 10, 25, 5, 60, 15, 50, 30];
    support::model(lengths.map(|length| task(0, vec![run(length)])).into())
}

fn named(mut task: ModelTask, name: &str, nice: i8) -> ModelTask {
    task.new.name = Some(name.into());
    task.new.nice = nice;
    task
}

/// Does `ops` again and again from `ms` on.
fn repeated(ms: u64, ops: Vec<Op>, rounds: u64) -> ModelTask {
    let script = Script { ops, rounds, ..Script::default() };
    ModelTask { arrives: Some(at(ms)), script: Arc::new(script), ..ModelTask::default() }
}

fn mix() -> Model {
    let hog = || repeated(0, vec![run(1000)], 1);
    support::model(vec![
        named(hog(), "hog", 0),
        named(hog(), "nice hog", 10),
        named(repeated(3, vec![run(2), Op::Sleep(ms(18))], u64::MAX), "editor", 0),
        named(repeated(5, vec![run(1), Op::Sleep(ms(9))], u64::MAX), "audio", -10),
    ])
}

/// The picture, and how long each task ran: a share of less than half a column is not drawn.
struct Schedule {
    gantt: Gantt,
    running: Vec<Option<(TaskId, Time)>>,
    ran: Vec<Span>,
}

impl Schedule {
    fn switch(&mut self, cpu: usize, next: Option<TaskId>, now: Time) {
        let next = next.map(|task| (task, now));
        if let Some((task, since)) = std::mem::replace(&mut self.running[cpu], next) {
            self.ran[task.index()] += now - since;
        }
    }

    fn finish(&mut self, now: Time) {
        (0..self.running.len()).for_each(|cpu| self.switch(cpu, None, now));
        self.gantt.finish(now);
    }
}

impl Sink for Schedule {
    fn task(&mut self, info: &TaskInfo<'_>) {
        // No number is used twice here: all tasks are there before the first exits.
        assert_eq!(u64::from(info.task.0), info.serial);
        self.ran.push(Span::ZERO);
        self.gantt.task(info);
    }

    fn event(&mut self, event: &Event) {
        if let Kind::Switch { cpu, next, .. } = event.kind {
            self.switch(cpu.index(), next, event.time);
        }
        self.gantt.event(event);
    }
}

/// Each worker waits for the token, works under the lock, and passes the token on.
fn chain() -> Model {
    let lock = Lock(0);
    let worker = |number: u32| {
        let next = Channel((number + 1) % 3);
        let locked = [Op::Lock(lock), run(2), Op::Unlock(lock)];
        let ops = [&[Op::Wait(Channel(number))], &locked[..], &[Op::Signal(next)]].concat();
        named(repeated(0, ops, 4), &format!("worker {number}"), 0)
    };
    let other = |number: u32| {
        let ops = vec![run(3), Op::Lock(lock), run(1), Op::Unlock(lock), Op::Sleep(ms(1))];
        named(repeated(1, ops, 4), &format!("other {number}"), 0)
    };
    let tasks = (0..3).map(worker).chain((0..4).map(other)).collect();
    let mut model = Model { tasks, signals: vec![(at(0), Channel(0))], ..Model::default() };
    (model.sizes.channels, model.sizes.locks) = (3, 1);
    model
}

fn numbers(metrics: &Metrics) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("makespan_ns", u128::from(metrics.makespan().unwrap().0)),
        ("waiting_time_ns_sum", metrics.waiting_time.sum()),
        ("wakeup_latency_ns_sum", metrics.wakeup_latency.sum()),
        ("busy_ns", metrics.busy.get().unwrap().0.into()),
        ("completed", metrics.completed.get().unwrap().into()),
        ("context_switches", metrics.context_switches.get().unwrap().into()),
        ("preemptions", metrics.preemptions.get().unwrap().into()),
        ("migrations", metrics.migrations.get().unwrap().into()),
    ] {
        let _ = writeln!(text, "{name:24}{value}");
    }
    text
}

fn played(policy: &PolicyInfo, golden: &Golden) -> String {
    let machine = Machine::parse(golden.machine).unwrap().with_tick(Some(Span::from_ms(1)));
    let mut setup = Setup::new(machine.clone());
    setup.smt_speed = 600;
    if let Some(until) = golden.until_ms {
        setup.until = at(until);
    }
    let settings = rehearsed(policy, &[], &setup, &golden.model);
    let scheduler = build(&machine, policy.name, &text(&settings));
    let recorder = Recorder::new(scheduler, &machine, policy.name, &text(&settings), Vec::new());
    let schedule = Schedule {
        gantt: Gantt::new(machine.cpus(), at(0), at(golden.drawn_ms), COLUMNS, 20),
        running: vec![None; machine.cpus()],
        ran: Vec::new(),
    };
    let load = golden.model.clone().into_load().unwrap();
    let sim = Sim::with_sink(setup, recorder, load, schedule);
    let (metrics, recorder, mut schedule) = sim.run().unwrap();
    schedule.finish(metrics.last_completion);
    let Schedule { gantt, ran, .. } = schedule;
    assert_eq!(metrics.busy, Span(ran.iter().map(|ran| ran.0).sum()));
    let mut hash = PickHash::default();
    let (_, log) = recorder.into_parts();
    for record in LogReader::new(&log).unwrap() {
        let record = record.unwrap();
        if let (Call::PickNext { cpu }, Some(Answer { pick: Some(pick), .. })) =
            (record.call, record.answer)
        {
            hash.add(record.now, cpu, pick);
        }
    }
    let ran: Vec<String> = ran.iter().map(|ran| ran.0.to_string()).collect();
    format!(
        "{}\n\n{}{:24}{:016x}\nran_ns of each task: {}\n\n{gantt}",
        golden.title,
        numbers(&metrics),
        "picks",
        hash.value(),
        ran.join(" ")
    )
}

#[test]
fn every_policy_schedules_as_before() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for policy in POLICIES {
            let runs = golden().map(|golden| played(policy, &golden)).join("\n");
            insta::assert_snapshot!(policy.name, runs);
        }
    });
}
