//! Recordings of real machines, run again under other policies: every task does what it did, with
//! the same CPU time between the same waits, and wakes whom it woke when it is as far as it was.

#[path = "../../../workload/tests/arm/mod.rs"]
mod arm;
use crate::support::build;
use anysched_core::{Machine, Span, TaskId, Time};
use anysched_host::Setup;
use anysched_measure::Metrics;
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::import::ftrace::{Burst, Ended, Recording, Replay, Softirqs};
use anysched_workload::model::Model;
use anysched_workload::{Channel, Load, NewTask, Op, Outside, Sizes};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::rc::Rc;

/// What the tasks of a model do in a run. Its CPU time is that which the trace shows, not what
/// the simulator says.
#[derive(Default)]
struct Seen {
    /// Per task number, which task of the model it is.
    index_of: Vec<usize>,
    tasks: Vec<Task>,
    /// Per channel, signals so far and waits that are over.
    signals: Vec<u64>,
    passed: Vec<u64>,
}

#[derive(Clone, Default)]
struct Task {
    /// CPU time so far, and since when it runs.
    used: Span,
    since: Option<Time>,
    /// The CPU time at the last wait or at the start.
    burst_from: Span,
    /// The CPU time up to each wait and the end; none of zero.
    bursts: Vec<u64>,
    /// The CPU time so far when it signalled which channel.
    woke: Vec<(u64, u32)>,
    waits: Option<Channel>,
    exited: bool,
}

impl Seen {
    fn task_at(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[self.index_of[task.index()]]
    }

    /// `task` has done what it did before and goes on with `op`.
    fn step(&mut self, task: TaskId, now: Time, op: &Op) {
        let task = self.task_at(task);
        let running = task.since.map_or(Span::ZERO, |since| now - since);
        let used = task.used + running;
        let waited = task.waits.take();
        if matches!(op, Op::Wait(_) | Op::Exit) {
            let burst = used - std::mem::replace(&mut task.burst_from, used);
            task.bursts.extend((burst > Span::ZERO).then_some(burst.0));
        }
        match op {
            Op::Wait(channel) => task.waits = Some(*channel),
            Op::Exit => task.exited = true,
            Op::Signal(channel) | Op::Write(channel) => {
                task.woke.push((used.0, channel.0));
                self.signals[channel.0 as usize] += 1;
            }
            _ => {}
        }
        if let Some(Channel(channel)) = waited {
            self.passed[channel as usize] += 1;
            let (passed, signals) = (self.passed[channel as usize], self.signals[channel as usize]);
            assert!(passed <= signals, "wait {passed} of task {channel} ended without a signal");
        }
    }
}

/// Sees the events of a run and what its load is asked.
#[derive(Clone)]
struct Watch(Rc<RefCell<Seen>>);

impl Sink for Watch {
    fn task(&mut self, info: &TaskInfo<'_>) {
        let index_of = &mut self.0.borrow_mut().index_of;
        if index_of.len() <= info.task.index() {
            index_of.resize(info.task.index() + 1, 0);
        }
        // Tasks are named after their places in the model.
        index_of[info.task.index()] = info.name.unwrap().parse().unwrap();
    }

    fn event(&mut self, event: &Event) {
        let Kind::Switch { prev, next, .. } = event.kind else { return };
        let mut seen = self.0.borrow_mut();
        if let Some((prev, _)) = prev {
            let task = seen.task_at(prev);
            task.used += event.time - task.since.take().expect("what leaves a CPU had one");
        }
        if let Some(next) = next {
            let before = seen.task_at(next).since.replace(event.time);
            assert_eq!(before, None, "task {next:?} is on two CPUs");
        }
    }
}

struct Watched<L>(L, Watch);

impl<L: Load> Load for Watched<L> {
    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }
    fn peek(&self) -> Time {
        self.0.peek()
    }
    fn outside(&mut self) -> Outside {
        let outside = self.0.outside();
        if let Outside::Signal(channel) = outside {
            self.1.0.borrow_mut().signals[channel.0 as usize] += 1;
        }
        outside
    }
    fn spawn(&mut self, what: u32) -> NewTask {
        self.0.spawn(what)
    }
    fn start(&mut self, task: TaskId, now: Time) {
        self.0.start(task, now);
    }
    fn step(&mut self, task: TaskId, now: Time) -> Op {
        let op = self.0.step(task, now);
        self.1.0.borrow_mut().step(task, now, &op);
        op
    }
    fn burst(&self, task: TaskId, run: Span) -> Span {
        self.0.burst(task, run)
    }
    fn exited(&mut self, task: TaskId, now: Time) {
        self.0.exited(task, now);
    }
}

/// Runs a model under a policy.
fn run(setup: &Setup, policy: &str, model: &Model) -> (Metrics, Seen) {
    let mut model = model.clone();
    for (index, task) in model.tasks.iter_mut().enumerate() {
        task.new.name = Some(index.to_string().into());
    }
    let channels = model.sizes.channels as usize;
    let watch = Watch(Rc::new(RefCell::new(Seen {
        tasks: vec![Task::default(); model.tasks.len()],
        signals: vec![0; channels],
        passed: vec![0; channels],
        ..Seen::default()
    })));
    let load = Watched(model.into_load().unwrap(), watch.clone());
    let scheduler = build(&setup.machine, policy, &[]);
    let (metrics, ..) =
        Sim::with_sink(setup.clone(), scheduler, load, watch.clone()).run().unwrap();
    (metrics, watch.0.take())
}

/// The CPU time of each burst of each task; none of zero.
fn bursts(replay: &Replay) -> Vec<Vec<u64>> {
    let used = |bursts: &Vec<Burst>| -> Vec<u64> {
        bursts.iter().map(|burst| burst.used.0).filter(|&used| used > 0).collect()
    };
    replay.bursts.iter().map(used).collect()
}

/// Runs a recording under every policy, on as many CPUs as it was made on and on one, and
/// compares what the tasks do with what was recorded. Returns what the last of these runs did.
fn runs_again(recording: &Recording) -> (Replay, Seen) {
    let replay = recording.replay(Softirqs::default());
    let expected = bursts(&replay);
    let mut last = Seen::default();
    for cpus in [recording.cpus() as usize, 1] {
        let setup = Setup::new(Machine::flat(cpus).unwrap());
        let mut delays = BTreeSet::new();
        for policy in POLICIES.iter().map(|policy| policy.name) {
            let (metrics, seen) = run(&setup, policy, &replay.model);
            check(&replay, &expected, &seen, policy);
            assert_eq!(metrics.busy, Span(expected.iter().flatten().sum()), "{policy}");
            delays.insert(metrics.wakeup_latency.sum());
            last = seen;
        }
        assert!(delays.len() > 2, "policies that all do the same are no test: {delays:?}");
    }
    (replay, last)
}

fn check(replay: &Replay, expected: &[Vec<u64>], seen: &Seen, policy: &str) {
    for (index, task) in seen.tasks.iter().enumerate() {
        let model = &replay.model.tasks[index];
        let name = &model.new.name;
        assert_eq!(task.bursts, expected[index], "{policy}: the bursts of {name:?}");
        assert_eq!(seen.passed[index], seen.signals[index], "{policy}: wake-ups of {name:?}");
        // Whoever does not end waits at the end, as in the recording.
        if !task.exited {
            assert!(matches!(model.script.ops.last(), Some(Op::Wait(_))), "{policy}: {name:?}");
            assert_eq!(task.waits, Some(Channel(index as u32)), "{policy}: {name:?}");
        }
    }
}

/// What is told of a model's tasks by pid.
fn by_pid<T>(replay: &Replay, of: impl Fn(usize) -> Vec<T>) -> BTreeMap<u32, Vec<T>> {
    let tasks = replay.model.tasks.iter().enumerate();
    let by_pid = tasks.map(|(index, task)| (pid(task.new.name.as_deref().unwrap()), of(index)));
    by_pid.filter(|(_, of)| !of.is_empty()).collect()
}

fn pid(name: &str) -> u32 {
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

fn recorded(name: &str) -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name);
    Recording::read(File::open(&path).unwrap()).unwrap()
}

#[test]
#[ignore = "needs a recording that is not in the repository: ANYSCHED_RECORDINGS=FOLDER"]
fn the_arm_recording_runs_again() {
    let text = arm::text();
    let recording = Recording::read(text.as_bytes()).unwrap();
    assert_eq!((recording.switches(), recording.cpus()), (1856, 6));
    let (replay, seen) = runs_again(&recording);
    assert_eq!(replay.model.tasks.len(), 49);
    // The text itself says the same.
    let told = arm::told(&text);
    assert_eq!(by_pid(&replay, |task| seen.tasks[task].bursts.clone()), told.bursts);
    let pids: Vec<u32> =
        replay.model.tasks.iter().map(|task| pid(task.new.name.as_deref().unwrap())).collect();
    let woke = |task: usize| {
        let woke = seen.tasks[task].woke.iter();
        woke.map(|&(used, channel)| (used, pids[channel as usize])).collect()
    };
    assert_eq!(by_pid(&replay, woke), told.woke);
}

#[test]
fn the_recording_of_a_build_runs_again() {
    let (replay, seen) = runs_again(&recorded("cargo-build.txt.gz"));
    // 315 tasks of the command end, and all that it created are created again.
    let exits = replay.bursts.iter().filter_map(|bursts| bursts.last());
    let exits = exits.filter(|burst| burst.why == Ended::Exited);
    assert_eq!(exits.count(), 315);
    assert!(seen.tasks.iter().filter(|task| task.exited).count() >= 315);
}

#[test]
fn the_recording_of_a_server_runs_again() {
    let (replay, seen) = runs_again(&recorded("request-response.txt.gz"));
    // Of some 20 000 wake-ups, most are by tasks, and none of those is lost or made by others.
    let by_tasks: usize = seen.tasks.iter().map(|task| task.woke.len()).sum();
    let all = by_tasks + replay.model.signals.len();
    assert_eq!(seen.signals.iter().sum::<u64>(), all as u64);
    assert!(by_tasks > 10_000 && all > 18_000, "{by_tasks} of {all}");
}

#[test]
fn costs_are_not_the_tasks_time() {
    let replay = recorded("cargo-build.txt.gz").replay(Softirqs::default());
    let mut setup = Setup::new(Machine::flat(2).unwrap());
    setup.costs.context_switch = Span::from_us(3);
    setup.costs.migrate_core = Span::from_us(2);
    setup.costs.enqueue_base = Span::from_us(1);
    let (metrics, _) = run(&setup, "eevdf", &replay.model);
    assert_eq!(metrics.busy, Span(bursts(&replay).iter().flatten().sum()));
    assert!(metrics.overhead.get() > Some(Span::from_ms(10)), "{:?}", metrics.overhead);
}
