//! Runs of the simulator, written as ftrace text and imported again: the importer has to recover
//! what happened, to the nanosecond.

use crate::support::{at, build, model, ms, run, task};
use anysched_core::registry::PolicyInfo;
use anysched_core::{CpuId, CpuSet, Machine, Off, Span, TaskId, Time};
use anysched_host::{Costs, Setup};
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::import::ftrace::{Burst, Ended, Recording, Replay, Slot, Softirqs};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::rng::Rng;
use anysched_workload::{Barrier, Channel, Lock, Op};
use std::sync::Arc;

/// What happened, straight from the events, in the terms of an imported recording. Times count
/// from the first event; tasks are numbered as they arrive.
#[derive(Default)]
struct Truth {
    start: Option<Time>,
    now: Time,
    /// The time of the last event that ftrace has a line for.
    last: Time,
    tasks: Vec<Task>,
    /// Per task number, which task it is now.
    serials: Vec<usize>,
    /// Per CPU, who runs since when.
    cpus: Vec<Option<(usize, Time)>>,
    schedule: Vec<Slot>,
    signals: Vec<(Time, Channel)>,
    /// Wake-ups by tasks, and moves to other CPUs.
    woken_by_tasks: usize,
    migrations: usize,
}

#[derive(Default)]
struct Task {
    name: String,
    nice: i8,
    arrives: Option<Time>,
    ops: Vec<Op>,
    bursts: Vec<Burst>,
    /// CPU time of the current burst.
    used: Span,
    /// Up to when its CPU time is in `ops`; it runs.
    counted: Option<Time>,
    stage: Stage,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    #[default]
    Ready,
    Blocked,
    Ended,
}

impl Task {
    fn count(&mut self, now: Time) {
        let Some(counted) = &mut self.counted else { return };
        let ran = now - std::mem::replace(counted, now);
        self.used += ran;
        match self.ops.last_mut() {
            _ if ran == Span::ZERO => {}
            Some(Op::Run(before)) => *before += ran,
            _ => self.ops.push(Op::Run(ran)),
        }
    }

    fn end_burst(&mut self, end: Time, why: Ended) {
        self.bursts.push(Burst { used: std::mem::take(&mut self.used), end, why });
    }
}

impl Truth {
    fn of(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[self.serials[task.index()]]
    }

    /// `by`, which runs, does `op` now.
    fn does(&mut self, by: TaskId, op: Op) {
        let now = self.now;
        let by = self.of(by);
        assert!(by.counted.is_some(), "{} does {op:?} but does not run", by.name);
        by.count(now);
        by.ops.push(op);
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, Off)>, next: Option<TaskId>) {
        let now = self.now;
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, None);
        }
        let ran = self.cpus[cpu.index()].map(|(task, _)| task);
        assert_eq!(prev.map(|(prev, _)| self.serials[prev.index()]), ran, "who leaves CPU {cpu:?}");
        let next = next.map(|next| self.serials[next.index()]);
        if ran == next {
            return;
        }
        if let Some((_, why)) = prev {
            self.stop(cpu, why);
        }
        if let Some(next) = next {
            let task = &mut self.tasks[next];
            assert_eq!((task.counted, task.stage), (None, Stage::Ready), "{}", task.name);
            task.counted = Some(now);
            self.cpus[cpu.index()] = Some((next, now));
        }
        self.last = now;
    }

    /// What runs on `cpu` leaves it.
    fn stop(&mut self, cpu: CpuId, why: Off) {
        let now = self.now;
        let Some((serial, start)) = self.cpus[cpu.index()].take() else { return };
        if start < now {
            self.schedule.push(Slot { cpu, task: serial as u32, start, end: now });
        }
        let task = &mut self.tasks[serial];
        task.count(now);
        task.counted = None;
        match why {
            Off::Blocked => {
                task.end_burst(now, Ended::Blocked);
                task.ops.push(Op::Wait(Channel(serial as u32)));
                task.stage = Stage::Blocked;
            }
            Off::Exited => {
                task.end_burst(now, Ended::Exited);
                task.stage = Stage::Ended;
            }
            _ => {}
        }
    }

    /// The run ends at `end`.
    fn finish(&mut self, end: Time) {
        if self.cpus.iter().any(Option::is_some) {
            self.now = self.now.max(Time(end.0 - self.start.unwrap_or_default().0));
            self.last = self.now;
        }
        for cpu in 0..self.cpus.len() {
            self.stop(CpuId(cpu as u16), Off::Preempted);
        }
        let last = self.last;
        let cut = |task: &&mut Task| task.stage == Stage::Ready && task.used > Span::ZERO;
        self.tasks.iter_mut().filter(cut).for_each(|task| task.end_burst(last, Ended::Cut));
        self.schedule.sort_by_key(|slot| (slot.start, slot.cpu));
    }
}

impl Sink for Truth {
    fn task(&mut self, info: &TaskInfo<'_>) {
        let serial = info.serial as usize;
        assert_eq!(serial, self.tasks.len());
        if self.serials.len() <= info.task.index() {
            self.serials.resize(info.task.index() + 1, 0);
        }
        self.serials[info.task.index()] = serial;
        let name = format!("{}-{}", info.label().to_string().replace(' ', "_"), serial + 1);
        self.tasks.push(Task { name, nice: info.nice, ..Task::default() });
    }

    fn event(&mut self, event: &Event) {
        self.now = Time((event.time - *self.start.get_or_insert(event.time)).0);
        let now = self.now;
        match event.kind {
            Kind::Attach { task, by } => {
                let new = self.serials[task.index()];
                match by {
                    Some(by) => self.does(by, Op::Spawn(new as u32)),
                    None => self.of(task).arrives = Some(now),
                }
                self.last = now;
            }
            Kind::Wake { task, by, .. } => {
                let channel = Channel(self.serials[task.index()] as u32);
                assert_eq!(self.of(task).stage, Stage::Blocked);
                self.of(task).stage = Stage::Ready;
                self.woken_by_tasks += usize::from(by.is_some());
                match by {
                    Some(by) => self.does(by, Op::Signal(channel)),
                    None => self.signals.push((now, channel)),
                }
                self.last = now;
            }
            Kind::Switch { cpu, prev, next } => self.switch(cpu, prev, next),
            Kind::Migrate { .. } => {
                self.migrations += 1;
                self.last = now;
            }
            Kind::Kick { .. } | Kind::Offline { .. } | Kind::State { .. } | Kind::Sample { .. } => {
            }
        }
    }
}

/// Tells two sinks.
struct Both<'a>(&'a mut FtraceWriter<Vec<u8>>, &'a mut Truth);

impl Sink for Both<'_> {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.0.task(info);
        self.1.task(info);
    }
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }
}

/// One run: what happened, and what the importer makes of its text.
fn both(
    setup: &Setup,
    policy: &str,
    settings: &[(&str, &str)],
    model: &Model,
) -> (Truth, Recording, Replay) {
    let mut writer = FtraceWriter::new(Vec::new(), setup.machine.cpus());
    let mut truth = Truth::default();
    let scheduler = build(&setup.machine, policy, settings);
    let load = model.clone().into_load().unwrap();
    Sim::with_sink(setup.clone(), scheduler, load, Both(&mut writer, &mut truth)).run().unwrap();
    let end = if setup.until == Time::NEVER { Time::ZERO } else { setup.until };
    truth.finish(end);
    let text = writer.finish(end).unwrap();
    let recording = Recording::read(&text[..]).unwrap();
    let replay = recording.replay(Softirqs::ByEvidence);
    (truth, recording, replay)
}

fn check(truth: &Truth, recording: &Recording, replay: &Replay, cpus: usize) {
    assert_eq!(recording.cpus() as usize, cpus);
    assert_eq!(recording.span(), truth.last.since(Time::ZERO));
    assert_eq!(replay.schedule, truth.schedule, "who ran where, from when to when");
    assert_eq!(replay.model.signals, truth.signals, "wake-ups by timers and from outside");
    assert_eq!(replay.model.tasks.len(), truth.tasks.len());
    for (number, (found, task)) in replay.model.tasks.iter().zip(&truth.tasks).enumerate() {
        assert_eq!(found.new.name.as_deref(), Some(&task.name[..]));
        assert_eq!((found.new.nice, found.arrives), (task.nice, task.arrives), "{}", task.name);
        assert_eq!(found.script.ops, task.ops, "what {} did", task.name);
        assert_eq!(replay.bursts[number], task.bursts, "the bursts of {}", task.name);
    }
    let says = |text: &str| replay.model.warnings.iter().any(|warning| warning.contains(text));
    assert!(!says("missing") && !says("soft interrupts"), "{:?}", replay.model.warnings);
    assert!(!says("are no events") && !says("not used"), "{:?}", replay.model.warnings);
}

#[test]
fn a_small_run_comes_back() {
    let mut load = model(vec![
        task(5, vec![run(3), Op::Signal(Channel(0)), run(2)]),
        task(4, vec![Op::Wait(Channel(0)), run(4), Op::Sleep(ms(5)), run(1)]),
        task(5, vec![run(1), Op::Yield, run(1), Op::Spawn(3), run(2)]),
        ModelTask { arrives: None, ..task(0, vec![run(7)]) },
    ]);
    load.tasks[0].new.name = Some("first task".into());
    load.sizes.channels = 1;
    let setup = Setup::new(Machine::flat(1).unwrap());
    let (truth, recording, replay) = both(&setup, "fcfs", &[], &load);
    check(&truth, &recording, &replay, 1);
    // The second arrives first, at 4 ms, and waits at once. The first runs until 10 ms with the
    // signal at 8; the third was queued before that: it runs and yields at 11; the second runs
    // 11–15 and sleeps until 20; the third 15–16, creates the fourth, 16–18; that one 18–25, and
    // the second 25–26. Times count from 4 ms.
    let shown = |task: &ModelTask| (task.new.name.as_deref().unwrap().to_string(), task.arrives);
    let tasks: Vec<_> = replay.model.tasks.iter().map(shown).collect();
    assert_eq!(
        tasks,
        [
            ("task_0-1".to_string(), Some(at(0))),
            ("first_task-2".to_string(), Some(at(1))),
            ("task_2-3".to_string(), Some(at(1))),
            ("task_3-4".to_string(), None),
        ]
    );
    let ops = |task: usize| &replay.model.tasks[task].script.ops[..];
    let wait = || Op::Wait(Channel(0));
    assert_eq!(ops(0), [wait(), run(4), wait(), run(1)]);
    assert_eq!(ops(1), [run(3), Op::Signal(Channel(0)), run(2)]);
    assert_eq!(ops(2), [run(2), Op::Spawn(3), run(2)]);
    assert_eq!(ops(3), [run(7)]);
    assert_eq!(replay.model.signals, [(at(16), Channel(0))]);
    let slot = |task, start, end| Slot { cpu: CpuId(0), task, start: at(start), end: at(end) };
    let slots = [
        slot(1, 1, 6),
        slot(2, 6, 7),
        slot(0, 7, 11),
        slot(2, 11, 14),
        slot(3, 14, 21),
        slot(0, 21, 22),
    ];
    assert_eq!(replay.schedule, slots);
}

const CASES: u64 = 600;

const TOPOLOGIES: [&str; 6] = [
    "1",
    "2",
    "5",
    "2 cores x 2 threads",
    "2 nodes x 2 cores x 2 threads",
    "2 packages x 2 llcs x 2 cores",
];

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

/// Up to `most` µs. Half of them are whole milliseconds, so that much happens at once.
fn span(rng: &mut Rng, most: u64) -> Span {
    match rng.below(2) {
        0 => Span::from_ms(rng.below(most / 1000 + 1)),
        _ => Span(rng.below(most * 1000 + 1)),
    }
}

fn setup(rng: &mut Rng) -> Setup {
    let machine = Machine::parse(pick(rng, &TOPOLOGIES)).unwrap();
    let mut setup = Setup::new(machine.with_tick(pick(rng, &[None, Some(ms(1))])));
    setup.until = pick(rng, &[Time::NEVER, at(150)]);
    if rng.below(2) == 0 {
        setup.costs = Costs {
            context_switch: span(rng, 50),
            migrate_llc: span(rng, 50),
            lock_hold: Span(rng.below(500)),
            enqueue_base: Span(rng.below(1000)),
            timer_irq: Span(rng.below(2000)),
            ..Costs::default()
        };
    }
    setup.smt_speed = pick(rng, &[1024, 600]);
    let cpus = setup.machine.cpus() as u64;
    if cpus > 1 && rng.below(3) == 0 {
        for _ in 0..4 {
            let cpu = CpuId(1 + rng.below(cpus - 1) as u16);
            setup.hotplug.push((Time(rng.below(120_000_000)), cpu, rng.below(2) == 0));
        }
        setup.hotplug.sort();
    }
    setup
}

fn random_model(rng: &mut Rng, cpus: u64) -> Model {
    let mut load = Model::default();
    load.sizes.channels = 3;
    load.sizes.locks = 1;
    load.sizes.barriers = vec![2];
    let tasks = 2 + rng.below(20) as usize;
    for number in 0..tasks {
        // A fifth of the tasks are created by one that comes before them, if at all.
        let spawned = number > 0 && rng.below(5) == 0;
        let arrives = (!spawned).then(|| Time(span(rng, 60_000).0));
        let mut script = script(rng, cpus);
        if rng.below(2) == 0 && number + 1 < tasks {
            let later = number + 1 + rng.below((tasks - number - 1) as u64) as usize;
            let place = rng.below(script.ops.len() as u64) as usize;
            script.ops.insert(place + 1, Op::Spawn(later as u32));
        }
        let mut task = ModelTask { arrives, script: Arc::new(script), ..ModelTask::default() };
        task.new.nice = rng.below(40) as i8 - 20;
        if rng.below(2) == 0 {
            task.new.name = Some(format!("worker {number}").into());
        }
        load.tasks.push(task);
    }
    for _ in 0..rng.below(30) {
        load.signals.push((Time(span(rng, 120_000).0), Channel(rng.below(3) as u32)));
    }
    load
}

fn script(rng: &mut Rng, cpus: u64) -> Script {
    let mut ops = vec![Op::Run(Span(1) + span(rng, 4_000))];
    for _ in 0..rng.below(8) {
        let channel = Channel(rng.below(3) as u32);
        match rng.below(12) {
            0..3 => ops.push(Op::Run(span(rng, 6_000))),
            3 | 4 => ops.push(Op::Sleep(span(rng, 6_000))),
            5 => ops.push(Op::Yield),
            6 => ops.extend([Op::Lock(Lock(0)), Op::Run(span(rng, 500)), Op::Unlock(Lock(0))]),
            7 => ops.push(Op::Wait(channel)),
            8 => ops.push(Op::Signal(channel)),
            9 => ops.push(Op::Broadcast(channel)),
            10 => ops.push(Op::Meet(Barrier(0))),
            _ => {
                let cpu = CpuId(rng.below(cpus) as u16);
                ops.push(Op::SetAffinity(pick(rng, &[CpuSet::All, CpuSet::of([cpu])])));
            }
        }
    }
    Script { ops, rounds: 1 + rng.below(3), ..Script::default() }
}

/// Says which case it was when a test fails.
struct Blame<'a>(u64, &'a PolicyInfo, &'a Setup);

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("case {}: {} on {:?}", self.0, self.1.name, self.2);
        }
    }
}

#[test]
fn random_runs_come_back() {
    let (mut slots, mut exits, mut cut, mut spawned) = (0, 0, 0, 0);
    let (mut outside, mut by_tasks, mut migrations) = (0, 0, 0);
    for seed in 0..CASES {
        let rng = &mut Rng::stream(seed, "ftrace round trip");
        let setup = setup(rng);
        let load = random_model(rng, setup.machine.cpus() as u64);
        let policy = &POLICIES[seed as usize % POLICIES.len()];
        let mut settings = vec![
            ("layout", pick(rng, &["global", "per-cpu", "per-llc"])),
            ("steal", pick(rng, &["never", "machine"])),
        ];
        // Some policies have CPUs and runqueues of their own.
        let params = (policy.params)();
        settings.retain(|_| params.iter().any(|param| param.name == "place"));
        let _blame = Blame(seed, policy, &setup);
        let (truth, recording, replay) = both(&setup, policy.name, &settings, &load);
        check(&truth, &recording, &replay, setup.machine.cpus());
        slots += truth.schedule.len();
        outside += truth.signals.len();
        by_tasks += truth.woken_by_tasks;
        migrations += truth.migrations;
        spawned += truth.tasks.iter().filter(|task| task.arrives.is_none()).count();
        let ends = truth.tasks.iter().filter_map(|task| task.bursts.last());
        for burst in ends {
            exits += usize::from(burst.why == Ended::Exited);
            cut += usize::from(burst.why == Ended::Cut);
        }
    }
    let seen = [slots, exits, cut, spawned, outside, by_tasks, migrations];
    let enough = [20_000, 6_000, 150, 4_000, 7_000, 3_000, 6_000];
    assert!(seen.iter().zip(enough).all(|(&seen, enough)| seen > enough), "{seen:?} {enough:?}");
}
