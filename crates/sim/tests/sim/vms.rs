//! Virtual machines: cases small enough to work out by hand, and a virtual machine with CPUs of its
//! own beside a bare one.

use crate::support::{self, build, model, ms, run, task};
use anysched_core::{
    CpuId, CpuSet, DomainId, DomainParams, Machine, Span, TaskId, TaskParams, Time,
};
use anysched_host::{Setup, Vm, Wire};
use anysched_measure::Metrics;
use anysched_sim::Sim;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use anysched_workload::dist::Dist;
use anysched_workload::generate::{Arrivals, Generator, Open, Settings};
use anysched_workload::model::{Model, ModelTask, Script};
use anysched_workload::{Channel, Load, Lock, Op, Port};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn cpus(n: usize) -> Setup {
    Setup::new(Machine::flat(n).unwrap())
}

fn load(model: Model) -> Box<dyn Load> {
    Box::new(model.into_load().unwrap())
}

fn vm(number: u16, cpus: usize, policy: &str, model: Model) -> Vm {
    let setup = self::cpus(cpus);
    let policy = build(&setup.machine, policy, &[]);
    Vm::new(&format!("vm{number}"), DomainId(number), setup, policy, load(model))
}

/// Runs virtual machines on a host that has nothing else to do.
fn host(setup: Setup, policy: &str, settings: &[(&str, &str)], vms: Vec<Vm>) -> Metrics {
    let policy = build(&setup.machine, policy, settings);
    Sim::new(setup, policy, load(Model::default())).with_vms(vms).run().unwrap().0
}

/// Busy, stolen and idle in ms.
fn shares(metrics: &Metrics, vm: usize) -> [u64; 3] {
    let inside = &metrics.vms[vm].inside;
    [inside.busy, inside.stolen, inside.idle].map(|total| support::sum([total]).0 / support::MS)
}

#[test]
fn two_machines_share_a_cpu() {
    let one = || model(vec![task(0, vec![run(30)])]);
    let vms = vec![vm(1, 1, "fcfs", one()), vm(2, 1, "fcfs", one())];
    let mut setup = cpus(1);
    setup.until = support::at(70);
    let metrics = host(setup, "rr", &[("quantum", "10ms")], vms);
    // 10 ms in turn: done at 50 and 60.
    assert_eq!(metrics.turnaround.min(), Some(50_000_000));
    assert_eq!(metrics.turnaround.max(), Some(60_000_000));
    assert_eq!((shares(&metrics, 0), shares(&metrics, 1)), ([30, 20, 20], [30, 30, 10]));
    assert_eq!(metrics.stolen_from_all(), Some(ms(50)));
    assert_eq!([metrics.busy, metrics.idle], [ms(60), ms(10)]);
    assert_eq!([metrics.tasks, metrics.completed, metrics.unfinished], [2, 2, 0]);
}

#[test]
fn a_sleep_that_ends_while_the_cpu_waits_is_noticed_when_it_runs() {
    let sleeper =
        model(vec![task(0, vec![run(1), Op::Sleep(ms(2)), run(1)]), task(0, vec![run(20)])]);
    let hog = model(vec![task(0, vec![run(40)])]);
    let vms = vec![vm(1, 1, "rr", sleeper), vm(2, 1, "fcfs", hog)];
    let metrics = host(cpus(1), "rr", &[("quantum", "2ms")], vms);
    // vm1 runs 0 to 2, 4 to 6, ...: its first task wakes up at 3 and is enqueued at 4.
    let inside = &metrics.vms[0].inside;
    assert_eq!(inside.wakeup_latency.count(), 1);
    // It is behind the task that runs, which has a quantum of 50 ms: until 41. It was due at 3.
    assert_eq!(inside.wakeup_latency.max(), Some(38_000_000));
    assert_eq!(inside.turnaround.max(), Some(42_000_000));
    assert_eq!(inside.turnaround.min(), Some(41_000_000));
    assert_eq!(shares(&metrics, 1), [40, 22, 0]);
}

#[test]
fn halted_machines_leave_the_cpu_and_come_back_for_timers() {
    let sleeper = model(vec![task(0, vec![run(1), Op::Sleep(ms(9)), run(1)])]);
    let hog = model(vec![task(0, vec![run(30)])]);
    let vms = vec![vm(1, 1, "fcfs", sleeper), vm(2, 1, "fcfs", hog)];
    let metrics = host(cpus(1), "fcfs", &[], vms);
    // Halts at 1; wakes up at 10; runs when the hog is done at 31.
    assert_eq!(shares(&metrics, 0), [2, 21, 9]);
    assert_eq!(shares(&metrics, 1), [30, 1, 1]);
    assert_eq!(metrics.vms[0].inside.wakeup_latency.max(), Some(21_000_000));
    assert_eq!(metrics.vcpu_wait.max(), Some(21_000_000));
}

#[test]
fn the_guests_scheduler_counts_only_the_time_that_it_got() {
    // Two tasks in turn in vm1, which has every other 5 ms.
    let pair = model(vec![task(0, vec![run(20)]), task(0, vec![run(20)])]);
    let mut one = vm(1, 1, "fcfs", pair);
    one.policy = build(&one.setup.machine, "rr", &[("quantum", "10ms")]);
    let vms = vec![one, vm(2, 1, "fcfs", model(vec![task(0, vec![run(100)])]))];
    let metrics = host(cpus(1), "rr", &[("quantum", "5ms")], vms);
    // 10 ms of its own time each: first at 0..5, 10..15, ...; done at 55 and 75.
    assert_eq!(metrics.vms[0].inside.turnaround.min(), Some(55_000_000));
    assert_eq!(metrics.vms[0].inside.turnaround.max(), Some(75_000_000));
    assert_eq!(metrics.vms[0].inside.context_switches, 4);
}

#[test]
fn a_lock_holder_that_does_not_run_makes_others_spin() {
    // Both CPUs of vm1 need the lock; they and a hog share one CPU, 2 ms in turn.
    let spinner = || vec![Op::Spin(Lock(0)), run(3), Op::Unlock(Lock(0))];
    let mut spinners = model(vec![task(0, spinner()), task(0, spinner())]);
    spinners.sizes.locks = 1;
    let vms =
        vec![vm(1, 2, "fcfs", spinners), vm(2, 1, "fcfs", model(vec![task(0, vec![run(9)])]))];
    let metrics = host(cpus(1), "rr", &[("quantum", "2ms")], vms);
    // CPU 0 of vm1 0..2 and 6..7, done. CPU 1 spins 2..4. The hog 4..6.
    let inside = &metrics.vms[0].inside;
    assert_eq!(inside.spun, ms(2));
    assert_eq!(inside.busy, ms(8));
    assert_eq!(inside.turnaround.min(), Some(7_000_000));
}

#[test]
fn messages_take_their_time_and_are_answered() {
    // vm1 asks every 10 ms, twice; vm2 needs 2 ms for the answer.
    let ask = || [run(1), Op::Send(Port(0)), Op::Wait(Channel(0)), Op::Reply(Span::ZERO)];
    let asks = [ask().to_vec(), vec![Op::Sleep(ms(5))], ask().to_vec()].concat();
    let mut asker = model(vec![task(0, asks)]);
    asker.sizes.channels = 1;
    let answer = [Op::Wait(Channel(0)), run(2), Op::Send(Port(0))];
    let mut server = model(vec![ModelTask {
        script: Arc::new(Script { rounds: 2, ..Script::once(answer.to_vec()) }),
        ..task(0, vec![])
    }]);
    server.sizes.channels = 1;
    let mut vms = vec![vm(1, 1, "fcfs", asker), vm(2, 1, "fcfs", server)];
    vms[0].ports = vec![Wire { vm: 1, channel: Channel(0), delay: ms(3) }];
    vms[1].ports = vec![Wire { vm: 0, channel: Channel(0), delay: ms(4) }];
    let metrics = host(cpus(2), "fcfs", &[], vms);
    assert_eq!(metrics.round_trip.count(), 2);
    assert_eq!(
        (metrics.round_trip.min(), metrics.round_trip.max()),
        (Some(9_000_000), Some(9_000_000))
    );
    assert_eq!(metrics.makespan().unwrap(), ms(1 + 9 + 5 + 1 + 9));
}

/// Adds up what a trace says of the CPUs of virtual machines.
#[derive(Default)]
struct Times {
    /// By task of the host: machine, state (blocked, ready, running), since when.
    cpus: BTreeMap<TaskId, (usize, usize, Time)>,
    /// By machine: time blocked, ready and running.
    spent: BTreeMap<usize, [u64; 3]>,
    guest_events: usize,
    last: Time,
}

impl Times {
    fn change(&mut self, task: TaskId, state: usize, now: Time) {
        if let Some((vm, before, since)) = self.cpus.get_mut(&task) {
            self.spent.entry(*vm).or_default()[*before] += now.since(*since).0;
            (*before, *since) = (state, now);
        }
    }
}

impl Sink for Times {
    fn task(&mut self, _: &TaskInfo<'_>) {}

    fn event(&mut self, event: &Event) {
        assert!(event.time >= self.last);
        self.last = event.time;
        match event.kind {
            Kind::Attach { task, .. } | Kind::Wake { task, .. } => {
                self.change(task, 1, event.time);
            }
            Kind::Switch { prev, next, .. } => {
                if let Some((task, why)) = prev {
                    self.change(task, usize::from(why.runnable()), event.time);
                }
                if let Some(task) = next {
                    self.change(task, 2, event.time);
                }
            }
            _ => {}
        }
    }

    fn vm(&mut self, vm: usize, _: &str, tasks: &[TaskId]) {
        let started = |&task: &TaskId| (task, (vm, 0, self.last));
        self.cpus.extend(tasks.iter().map(started).collect::<Vec<_>>());
    }

    fn vm_end(&mut self, vm: usize, time: Time) {
        let of_it = |(task, cpu): (&TaskId, &(usize, usize, Time))| (cpu.0 == vm).then_some(*task);
        for task in self.cpus.iter().filter_map(of_it).collect::<Vec<_>>() {
            self.change(task, 0, time);
            self.cpus.remove(&task);
        }
    }

    fn vm_event(&mut self, _: usize, event: &Event) {
        assert!(event.time >= self.last, "{event:?} comes after {:?}", self.last);
        self.last = event.time;
        self.guest_events += 1;
    }
}

#[test]
fn traces_say_how_long_virtual_cpus_ran_and_waited() {
    let sleeper = |sleep| {
        let ops = vec![run(3), Op::Sleep(ms(sleep)), run(2), Op::Sleep(ms(1)), run(7)];
        load(model(vec![task(0, ops.clone()), task(2, ops)]))
    };
    let mut vms: Vec<Vm> = (1..=3).map(|n| vm(n, 2, "rr", model(vec![]))).collect();
    for (vm, sleep) in vms.iter_mut().zip([2, 5, 9]) {
        vm.load = sleeper(sleep);
    }
    vms[1].stop = support::at(17);
    vms[2].start = support::at(4);
    let mut setup = cpus(2);
    setup.until = support::at(60);
    let policy = build(&setup.machine, "rr", &[("quantum", "2ms")]);
    let sim = Sim::with_sink(setup, policy, load(model(vec![])), Times::default()).with_vms(vms);
    let (metrics, _, mut times) = sim.run().unwrap();
    for vm in 0..3 {
        times.vm_end(vm, support::at(60));
        let inside = &metrics.vms[vm].inside;
        let [_, ready, running] = times.spent[&vm];
        assert_eq!([inside.stolen, inside.busy], [Span(ready), Span(running)], "machine {vm}");
        assert!(ready > 0 && running > 0);
    }
    assert!(times.guest_events > 30);
}

#[test]
fn machines_come_and_go() {
    let hog = || model(vec![task(0, vec![run(1000)])]);
    let mut late = vm(2, 1, "fcfs", hog());
    (late.start, late.stop) = (support::at(20), support::at(60));
    let mut setup = cpus(1);
    setup.until = support::at(100);
    let metrics = host(setup, "rr", &[("quantum", "10ms")], vec![vm(1, 1, "fcfs", hog()), late]);
    // Alone up to 20, in turn up to 60, alone up to 100.
    assert_eq!((shares(&metrics, 0), shares(&metrics, 1)), ([80, 20, 0], [20, 20, 0]));
    assert_eq!([metrics.tasks, metrics.unfinished], [2, 2]);
}

#[test]
fn a_machine_that_stops_when_it_starts_is_never_there() {
    let hog = || model(vec![task(0, vec![run(1000)])]);
    let mut never = vm(2, 1, "fcfs", hog());
    (never.start, never.stop) = (support::at(20), support::at(20));
    let mut setup = cpus(1);
    setup.until = support::at(100);
    let metrics = host(setup, "rr", &[("quantum", "10ms")], vec![vm(1, 1, "fcfs", hog()), never]);
    assert_eq!((shares(&metrics, 0), shares(&metrics, 1)), ([100, 0, 0], [0, 0, 0]));
}

#[test]
fn machines_nest() {
    let hog = |n| model(vec![task(0, vec![run(n)])]);
    let inner = vec![vm(1, 1, "fcfs", hog(20)), vm(2, 1, "fcfs", hog(20))];
    let mut outer = vm(1, 1, "fcfs", Model::default());
    outer.policy = build(&outer.setup.machine, "rr", &[("quantum", "10ms")]);
    outer.vms = inner;
    let metrics =
        host(cpus(1), "rr", &[("quantum", "5ms")], vec![outer, vm(2, 1, "fcfs", hog(100))]);
    // The outer one runs 0..5, 10..15, ...: the inner ones have 10 ms of that in turn.
    let inside = &metrics.vms[0].inside;
    assert_eq!(inside.busy, ms(40));
    assert_eq!((shares(inside, 0), shares(inside, 1)), ([20, 35, 85], [20, 55, 65]));
    assert_eq!(inside.vms[0].inside.turnaround.max(), Some(55_000_000));
    assert_eq!(inside.vms[1].inside.turnaround.max(), Some(75_000_000));
}

#[test]
fn pinned_cpus_get_no_others() {
    let hog = || model(vec![task(0, vec![run(10)])]);
    let mut vms = vec![vm(1, 1, "fcfs", hog()), vm(2, 1, "fcfs", hog()), vm(3, 1, "fcfs", hog())];
    for vm in &mut vms[..2] {
        vm.vcpus[0] = TaskParams { affinity: CpuSet::of([CpuId(1)]), ..TaskParams::default() };
    }
    let metrics = host(cpus(2), "rr", &[("quantum", "1ms")], vms);
    assert_eq!(metrics.vms[2].inside.turnaround.max(), Some(10_000_000));
    assert_eq!(metrics.vms[1].inside.turnaround.max(), Some(20_000_000));
}

/// With a CPU for each of its own, a virtual machine is as fast as a bare one, whatever the two
/// schedulers are.
#[test]
fn a_machine_with_cpus_of_its_own_is_like_a_bare_one() {
    let open = |seed| {
        let dist = |text| Dist::parse(text, Path::new("")).unwrap();
        let open = Open {
            settings: Settings::default(),
            arrivals: Arrivals::Load(0.9),
            service: dist("exp(10ms)"),
            tasks: Some(300),
            start: Time::ZERO,
            until: None,
        };
        open.build(seed, 2).unwrap()
    };
    for guest in ["fcfs", "rr", "srpt", "mlfq", "cfs", "eevdf"] {
        for on in ["fcfs", "cfs", "rr"] {
            let setup = cpus(2);
            let policy = build(&setup.machine, guest, &[]);
            let bare = Sim::new(setup.clone(), policy, open(7)).run().unwrap().0;
            let policy = build(&setup.machine, guest, &[]);
            let vm = Vm::new("vm", DomainId(1), setup, policy, open(7));
            let virtual_ = host(cpus(2), on, &[], vec![vm]);
            for (bare, inside) in [
                (&bare.turnaround, &virtual_.turnaround),
                (&bare.response_time, &virtual_.response_time),
            ] {
                assert_eq!(bare.sum(), inside.sum(), "{guest} on {on}");
                assert_eq!(bare.max(), inside.max(), "{guest} on {on}");
            }
            let inside = &virtual_.vms[0].inside;
            assert_eq!((bare.busy, bare.dispatches), (inside.busy, inside.dispatches));
            assert_eq!(virtual_.stolen_from_all(), Some(Span::ZERO));
        }
    }
}

/// Two machines that compute for ever, with weights or caps, on one CPU: the share of the first.
fn share_of_first(policy: &str, seconds: u64, shares: [(u32, u32); 2]) -> f64 {
    let hog = || model(vec![task(0, vec![run(1_000_000)])]);
    let mut vms = vec![vm(1, 1, "fcfs", hog()), vm(2, 1, "fcfs", hog())];
    for (vm, (weight, cap_percent)) in vms.iter_mut().zip(shares) {
        vm.share = DomainParams { weight, cap_percent };
    }
    let mut setup = cpus(1);
    setup.until = Time(seconds * 1_000_000_000);
    let metrics = host(setup, policy, &[], vms);
    support::sum([metrics.vms[0].inside.busy]).0 as f64 / (seconds * 1_000_000_000) as f64
}

#[test]
fn domains_share_by_weight() {
    for policy in ["credit", "credit2"] {
        let share = share_of_first(policy, 30, [(256, 0), (512, 0)]);
        assert!((share * 3.0 - 1.0).abs() < 0.01, "{policy}: {share}");
        let share = share_of_first(policy, 30, [(512, 0), (512, 0)]);
        assert!((share * 2.0 - 1.0).abs() < 0.01, "{policy}: {share}");
    }
}

#[test]
fn caps_hold_whatever_the_weight() {
    // Credit parks and unparks a vCPU in turns of 150 ms together, 60 of which are 40 %.
    for policy in ["credit", "credit2"] {
        let share = share_of_first(policy, 30, [(512, 40), (256, 0)]);
        assert!((share / 0.4 - 1.0).abs() < 0.01, "{policy}: {share}");
    }
}
