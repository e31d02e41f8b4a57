//! Random machines, loads and policies under [`Checked`]: whatever is thrown at them, every
//! policy keeps the contract and no CPU time is lost.

use crate::support::random::{self, affinity, costs, pick, sometimes, span};
use crate::support::{Events, at, model, number, rehearsed, run, sum, task, text};
use anysched_core::checked::{Checked, Rules};
use anysched_core::registry::{Nature, PolicyInfo};
use anysched_core::{
    DomainId, DomainParams, Machine, Off, Scheduler, Span, TaskId, TaskParams, Time,
};
use anysched_host::{Setup, Vm, Wire};
use anysched_lab::swarm::{Case, Setting, settings};
use anysched_measure::Metrics;
use anysched_policies::POLICIES;
use anysched_sim::Sim;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::rng::Rng;
use anysched_workload::{Channel, Lock, Op, Port};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::sync::Arc;

const CASES: u64 = 6_000;

/// Policies that by their definition leave even a single CPU idle beside ready tasks.
const IDLING: [&str; 5] = ["sedf", "dm-xen", "d-edf", "sedf-dm", "rtds"];

/// What the policy is, at first and with each change of its parameters.
fn natures(case: &Case) -> Vec<Nature> {
    let of = |changes: &[(&str, &str)]| {
        let settings = [&case.settings[..], changes].concat();
        (case.policy.nature)(&settings).unwrap()
    };
    let changes = case.setup.changes.iter();
    let changed = changes.map(|change| of(&[(change.name.as_str(), change.text.as_str())]));
    iter::once(of(&[])).chain(changed).collect()
}

/// Whether no CPU may idle while a ready task could run on it.
fn work_conserving(case: &Case) -> bool {
    let alone = case.setup.machine.cpus() == 1 && !IDLING.contains(&case.policy.name);
    alone || natures(case).iter().all(|nature| nature.work_conserving)
}

/// The policy of a case.
fn scheduler(case: &Case) -> Box<dyn Scheduler> {
    let settings = rehearsed(case.policy, &case.settings, &case.setup, &case.model);
    (case.policy.build)(&case.setup.machine, &text(&settings)).unwrap()
}

/// All events in one number.
#[derive(Default)]
struct Fingerprint(DefaultHasher);

impl Sink for Fingerprint {
    fn task(&mut self, info: &TaskInfo<'_>) {
        info.serial.hash(&mut self.0);
    }
    fn event(&mut self, event: &Event) {
        format!("{event:?}").hash(&mut self.0);
    }
}

/// Says which case it was when a test fails.
struct Blame<'a>(&'a Case);

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Case { seed, policy, settings, setup, .. } = self.0;
            eprintln!("case {seed}: {} {settings:?} on {setup:?}", policy.name);
        }
    }
}

/// The time that each CPU was in use, summed up.
fn online_time(setup: &Setup, end: Time) -> u64 {
    let mut online = vec![Some(Time::ZERO); setup.machine.cpus()];
    let mut sum = 0;
    for &(time, cpu, up) in &setup.hotplug {
        let since = &mut online[cpu.index()];
        match (*since, up) {
            (None, true) => *since = Some(time),
            (Some(from), false) => {
                sum += (time - from).0;
                *since = None;
            }
            _ => {}
        }
    }
    sum + online.into_iter().flatten().map(|from| (end - from).0).sum::<u64>()
}

fn check_case(case: &Case) -> Metrics {
    let _blame = Blame(case);
    let rules = Rules { work_conserving: work_conserving(case), ..Rules::default() };
    let checked = Checked::new(scheduler(case), &case.setup.machine, rules);
    let load = case.model.clone().into_load().unwrap();
    let sim = Sim::new(case.setup.clone(), checked, load);
    let (metrics, ..) = sim.run().unwrap();
    let spent = sum([metrics.busy, metrics.overhead, metrics.idle]).0;
    assert_eq!(spent, online_time(&case.setup, case.setup.until), "no CPU time is lost");
    let [tasks, completed, unfinished, dispatched] =
        [metrics.tasks, metrics.completed, metrics.unfinished, metrics.dispatches].map(number);
    assert_eq!(tasks, completed + unfinished);
    assert_eq!(metrics.runqueue_wait.count(), dispatched);
    metrics
}

#[test]
fn every_policy_keeps_the_contract_whatever_comes() {
    let (mut dispatches, mut changes) = (vec![0; POLICIES.len()], 0);
    for seed in 0..CASES {
        let case = Case::new(seed);
        changes += case.setup.changes.len();
        let metrics = check_case(&case);
        let at = POLICIES.iter().position(|policy| policy.name == case.policy.name).unwrap();
        dispatches[at] += number(metrics.dispatches);
    }
    for (policy, dispatches) in POLICIES.iter().zip(dispatches) {
        assert!(dispatches > 10_000, "{}: {dispatches} dispatches are no test", policy.name);
    }
    assert!(changes > 200, "{changes} changes are no test");
}

/// Settings from the ends of the ranges, those that the policy accepts.
fn extremes(rng: &mut Rng, policy: &PolicyInfo, machine: &Machine) -> Vec<Setting> {
    let mut settings = settings(rng, policy, machine);
    for param in (policy.params)() {
        let value: &str = match param.kind {
            _ if sometimes(rng, 3) => continue,
            "time" => pick::<&str>(rng, &["0", "1us", "1h", "18446744073709551614ns", "none"]),
            "number" => pick::<&str>(rng, &["0", "1", "255", "4294967295", "18446744073709551615"]),
            _ => continue,
        };
        settings.push((param.name, value));
        if (policy.build)(machine, &settings).is_err() {
            settings.pop();
        }
    }
    settings
}

/// What a policy accepts it can do: nothing overflows.
#[test]
fn parameters_at_the_ends_of_their_ranges_work() {
    let mut far = 0;
    for seed in 0..CASES / 4 {
        let mut case = Case::new(seed);
        case.settings =
            extremes(&mut Rng::stream(seed, "extremes"), case.policy, &case.setup.machine);
        case.setup.until = Time(20_000_000);
        case.setup.hotplug.retain(|(time, ..)| *time < case.setup.until);
        far +=
            case.settings.iter().filter(|(_, value)| value.len() > 15 || *value == "none").count();
        check_case(&case);
    }
    assert!(far > 500, "{far} are no test");
}

/// Beside tasks that compute without end, each goes on, unless the policy says that tasks may
/// starve.
#[test]
fn beside_hogs_only_policies_that_say_so_starve() {
    let says_so = |policy: &PolicyInfo| (policy.nature)(&[]).unwrap().starves;
    let starving: Vec<_> = POLICIES.iter().filter(|policy| starved(policy) > 0).collect();
    let silent: Vec<_> =
        starving.iter().filter(|policy| !says_so(policy)).map(|policy| policy.name).collect();
    assert!(silent.is_empty(), "{silent:?} starve and do not say so");
    assert!(starving.iter().any(|policy| policy.name == "fcfs"), "no test: fcfs starves none");
}

/// How many of nine hogs on a CPU have not run in the last 20 of 30 s.
fn starved(policy: &PolicyInfo) -> usize {
    const HOGS: usize = 9;
    let machine = Machine::flat(1).unwrap().with_tick(Some(Span::from_ms(4)));
    let mut setup = Setup::new(machine);
    setup.until = at(30_000);
    let load = model((0..HOGS).map(|_| task(0, vec![run(100_000)])).collect());
    let settings = rehearsed(policy, &[], &setup, &load);
    let scheduler = (policy.build)(&setup.machine, &text(&settings)).unwrap();
    let sim = Sim::with_sink(setup, scheduler, load.into_load().unwrap(), Events::default());
    let (_, _, Events(events)) = sim.run().unwrap();
    let late = events.iter().filter(|event| event.time > at(10_000));
    let ran: HashSet<_> = late
        .filter_map(|event| match event.kind {
            Kind::Switch { next, .. } => next,
            _ => None,
        })
        .collect();
    HOGS - ran.len()
}

/// Since when each task has been ready, as the trace tells.
#[derive(Default)]
struct Waiting(HashMap<TaskId, Time>);

impl Sink for Waiting {
    fn task(&mut self, _: &TaskInfo<'_>) {}

    fn event(&mut self, event: &Event) {
        let Waiting(waiting) = self;
        match event.kind {
            Kind::Attach { task, .. } | Kind::Wake { task, .. } => {
                waiting.insert(task, event.time);
            }
            Kind::Switch { prev, next, .. } => {
                let stays = |&(_, why): &(_, Off)| !matches!(why, Off::Blocked | Off::Exited);
                let ready = prev.filter(stays);
                waiting.extend(ready.map(|(task, _)| (task, event.time)));
                next.map(|task| waiting.remove(&task));
            }
            _ => {}
        }
    }
}

/// The task, with hardly less weight than others ever and nothing reserved: what has little waits
/// for long by right, and what is reserved may be all that there is.
fn weighty(task: &ModelTask) -> ModelTask {
    let mut task = task.clone();
    task.new.nice = task.new.nice.clamp(-5, 5);
    (task.new.period, task.new.budget) = (None, None);
    let mut script = Script::clone(&task.script);
    let is_change = |op: &Op| matches!(op, Op::SetNice(_));
    script.ops.iter_mut().filter(|op| is_change(op)).for_each(|op| *op = Op::SetNice(5));
    task.script = Arc::new(script);
    task
}

/// Whatever has come before, no task is lost beside CPUs that never run out of work, under policies
/// that say that none starves.
#[test]
fn every_task_goes_on_beside_hogs_whatever_came_before() {
    let (calm, end) = (Time(400_000_000), Time(10_400_000_000));
    let mut cases = 0;
    for seed in 0..CASES / 5 {
        let mut case = Case::new(seed);
        if natures(&case).iter().any(|nature| nature.starves) {
            continue;
        }
        cases += 1;
        // Some policies of kernels preempt at ticks only.
        let tick = case.setup.machine.tick().unwrap_or(Span::from_ms(4));
        case.setup.machine = case.setup.machine.with_tick(Some(tick));
        let hogs = case.setup.machine.cpus() + 1;
        let hog = |_| task(calm.0 / 1_000_000, vec![run(1_000_000)]);
        case.model.tasks = case.model.tasks.iter().map(weighty).collect();
        case.model.tasks.extend((0..hogs).map(hog));
        case.setup.until = end;
        let _blame = Blame(&case);
        let load = case.model.clone().into_load().unwrap();
        let sim = Sim::with_sink(case.setup.clone(), scheduler(&case), load, Waiting::default());
        let (_, _, Waiting(waiting)) = sim.run().unwrap();
        let lost = waiting.iter().find(|(_, since)| end.since(**since) > Span::from_s(5));
        assert!(lost.is_none(), "{lost:?} has been ready for five seconds");
    }
    assert!(cases > 500, "{cases} cases are no test");
}

/// A policy drawn for `machine`, under [`Checked`].
fn drawn(rng: &mut Rng, machine: &Machine) -> Box<dyn Scheduler> {
    let policy = pick(rng, POLICIES);
    let settings = settings(rng, policy, machine);
    let nature = (policy.nature)(&settings).unwrap();
    let rules = Rules { work_conserving: nature.work_conserving, ..Rules::default() };
    Box::new(Checked::new((policy.build)(machine, &settings).unwrap(), machine, rules))
}

/// Virtual machines for a host of `cpus` CPUs, some with others inside.
fn vms(rng: &mut Rng, cpus: u64, depth: u32) -> Vec<Vm> {
    let number = 1 + rng.below(4);
    let vm = |domain: u64| {
        let machine = Machine::flat(1 + rng.below(3) as usize).unwrap();
        let machine = machine.with_tick(sometimes(rng, 2).then_some(Span::from_ms(1)));
        let mut setup = Setup::new(machine);
        if sometimes(rng, 3) {
            setup.costs = costs(rng);
        }
        let own = setup.machine.cpus() as u64;
        let policy = drawn(rng, &setup.machine);
        let mut model = random::model(rng, own);
        let task = pick(rng, &model.tasks).clone();
        let talk = [Op::Wait(Channel(0)), Op::Spin(Lock(0)), Op::Run(span(rng, 300))];
        let answer = [Op::Unlock(Lock(0)), Op::Send(Port(0))];
        let ops = [&talk[..], &answer, &[Op::Wait(Channel(0)), Op::Reply(Span(5))]].concat();
        let script = Script { ops, rounds: 50, ..Script::default() };
        model.tasks.push(ModelTask { script: Arc::new(script), ..task });
        let load = Box::new(model.into_load().unwrap());
        let mut vm = Vm::new("vm", DomainId(domain as u16), setup, policy, load);
        vm.share = DomainParams { weight: 64 << rng.below(4), cap_percent: 0 };
        let to = rng.below(number) as usize;
        vm.ports.push(Wire { vm: to, channel: Channel(0), delay: span(rng, 100) });
        for vcpu in &mut vm.vcpus {
            if sometimes(rng, 3) {
                vcpu.affinity = affinity(rng, cpus);
            }
            if sometimes(rng, 3) {
                vcpu.preferred = affinity(rng, cpus);
            }
            if sometimes(rng, 3) {
                let (period, budget) = (Some(Span::from_ms(10)), Some(Span::from_ms(3)));
                *vcpu = TaskParams { period, budget, ..vcpu.clone() };
            }
        }
        if sometimes(rng, 3) {
            vm.start = Time(rng.below(200_000) * 1000);
        }
        if sometimes(rng, 3) {
            vm.stop = vm.start + span(rng, 200_000);
        }
        if depth > 0 && sometimes(rng, 3) {
            vm.vms = vms(rng, own, depth - 1);
        }
        vm
    };
    (0..number).map(vm).collect()
}

/// The time for which each virtual machine is there.
fn lives(vms: &[Vm], until: Time) -> Vec<u64> {
    let life = |vm: &Vm| vm.stop.min(until).since(vm.start.min(until)).0;
    vms.iter().map(|vm| life(vm) * vm.vcpus.len() as u64).collect()
}

#[test]
fn no_time_of_virtual_machines_is_lost() {
    let (mut dispatches, mut stolen, mut trips) = (0, Span::ZERO, 0);
    for seed in 0..CASES / 4 {
        let mut case = Case::new(seed);
        let rng = &mut Rng::stream(seed, "virtual machines");
        let alone = sometimes(rng, 2);
        if alone {
            case.model = Model::default();
        }
        let _blame = Blame(&case);
        let rules = Rules { work_conserving: work_conserving(&case), ..Rules::default() };
        let checked = Checked::new(scheduler(&case), &case.setup.machine, rules);
        let vms = vms(rng, case.setup.machine.cpus() as u64, 1);
        let lives = lives(&vms, case.setup.until);
        let load = case.model.clone().into_load().unwrap();
        let sim = Sim::new(case.setup.clone(), checked, load).with_vms(vms);
        let (metrics, ..) = sim.run().unwrap();
        let spent = sum([metrics.busy, metrics.overhead, metrics.idle]).0;
        assert_eq!(spent, online_time(&case.setup, case.setup.until), "on the host");
        let mut used = Span::ZERO;
        for (vm, life) in metrics.vms.iter().zip(lives) {
            let inside = &vm.inside;
            used += sum([inside.busy, inside.overhead]);
            let all = sum([inside.busy, inside.overhead, inside.stolen, inside.idle]).0;
            assert_eq!(all, life, "of domain {}", vm.domain.0);
            dispatches += number(inside.dispatches);
            stolen += sum([inside.stolen]);
        }
        if alone {
            assert_eq!(metrics.busy, used, "what they got is what the host gave");
        }
        trips += metrics.round_trip.count();
    }
    assert!(dispatches > 100_000 && trips > 1_000, "{dispatches} dispatches, {trips} round trips");
    assert!(stolen > Span::from_ms(100_000), "{stolen} stolen are no test");
}

#[test]
fn the_same_case_is_the_same_run() {
    for seed in 0..CASES / 20 {
        let run = || {
            let case = Case::new(seed);
            let load = case.model.clone().into_load().unwrap();
            let sink = Fingerprint::default();
            let sim = Sim::with_sink(case.setup.clone(), scheduler(&case), load, sink);
            let (_, _, sink) = sim.run().unwrap();
            sink.0.finish()
        };
        assert_eq!(run(), run(), "case {seed}");
    }
}
