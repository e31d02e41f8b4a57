//! The Perfetto writer's output, checked by an independent decoder.

mod pftrace;
mod stream;

use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::perfetto::PerfettoWriter;
use anysched_trace::{Counter, Event, Kind, Sink, TaskInfo};
use pftrace::{Slice, Trace, Type};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use stream::{Arrow, Cause, Item, Stay, join};

fn written(items: &[Item], end: Time) -> Trace {
    let mut writer = PerfettoWriter::new(Vec::new());
    for item in items {
        item.tell(&mut writer);
    }
    Trace::read(&writer.finish(end).unwrap())
}

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);
const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

fn task(task: TaskId, serial: u64, name: Option<&str>) -> Item {
    Item::Task { task, serial, name: name.map(Into::into), nice: -5 }
}

fn at(time: u64, kind: Kind) -> Item {
    Item::Event(Event { time: Time(time), kind })
}

fn switch(cpu: CpuId, prev: Option<(TaskId, Off)>, next: Option<TaskId>) -> Kind {
    Kind::Switch { cpu, prev, next }
}

/// The slices of a track as (name, from, until, depth).
fn on(slices: &[Slice], track: u64) -> Vec<(&str, u64, u64, bool)> {
    let on = slices.iter().filter(|slice| slice.begin.track == track);
    on.map(|slice| {
        let name = slice.begin.name.as_deref().unwrap();
        (name, slice.begin.at.0, slice.until.0, slice.parent.is_some())
    })
    .collect()
}

#[test]
fn a_small_run_is_shown_as_it_was() {
    let trace = written(
        &[
            task(A, 0, Some("make")),
            at(5, Kind::Attach { task: A, by: None }),
            at(10, switch(CPU0, None, Some(A))),
            task(B, 1, Some("cc")),
            at(20, Kind::Attach { task: B, by: Some(A) }),
            at(25, switch(CPU1, None, Some(B))),
            at(30, switch(CPU1, Some((B, Off::Blocked)), None)),
            at(40, Kind::Kick { cpu: CPU0 }),
            at(45, Kind::Wake { task: B, by: Some(A), cpu: Some(CPU0) }),
            at(50, Kind::Migrate { task: B, from: CPU1, to: CPU0 }),
            at(50, switch(CPU0, Some((A, Off::Preempted)), Some(B))),
            at(60, switch(CPU0, Some((B, Off::Exited)), Some(A))),
            at(70, switch(CPU0, Some((A, Off::Expired)), Some(A))),
        ],
        Time(100),
    );
    let slices = trace.slices();
    let (make, cc) = (trace.track("make"), trace.track("cc"));
    assert_eq!(
        on(&slices, make),
        [
            ("ready", 5, 10, false),
            ("running", 10, 50, false),
            ("new", 20, 20, true),
            ("wake", 45, 45, true),
            ("ready", 50, 60, false),
            ("running", 60, 100, false),
        ]
    );
    assert_eq!(
        on(&slices, cc),
        [
            ("ready", 20, 25, false),
            ("running", 25, 30, false),
            ("ready", 45, 50, false),
            ("migrate", 50, 50, true),
            ("running", 50, 60, false),
        ]
    );
    assert_eq!(
        on(&slices, trace.track("CPU 0")),
        [
            ("make", 10, 50, false),
            ("kick", 40, 40, true),
            ("cc", 50, 60, false),
            ("make", 60, 100, false)
        ]
    );
    assert_eq!(on(&slices, trace.track("CPU 1")), [("cc", 25, 30, false)]);
    assert_eq!(on(&slices, trace.track("outside")), [("new", 5, 5, false)]);

    let running = |slice: &&Slice| slice.begin.name.as_deref() == Some("running");
    let args: Vec<_> = slices
        .iter()
        .filter(running)
        .map(|slice| {
            let off = slice.end_args.iter().find(|(name, _)| name == "off");
            let off = off.map(|(_, why)| why.as_str());
            (slice.begin.correlation.unwrap(), slice.begin.arg("cpu").unwrap(), off)
        })
        .collect();
    assert_eq!(
        args,
        [
            (0, "0", Some("preempted")),
            (1, "1", Some("blocked")),
            (1, "0", Some("exited")),
            (0, "0", None),
        ]
    );
    let migrate = slices.iter().find(|slice| slice.begin.name.as_deref() == Some("migrate"));
    let args = &migrate.unwrap().begin.args;
    assert_eq!(args[..], [("from".into(), "1".into()), ("to".into(), "0".into())]);
}

#[test]
fn tracks_are_grouped_and_kept_apart() {
    let trace = written(
        &[
            task(A, 0, Some("cc")),
            at(0, Kind::Attach { task: A, by: None }),
            at(0, switch(CPU1, None, Some(A))),
            at(5, switch(CPU1, Some((A, Off::Exited)), None)),
            task(A, 1, Some("cc")),
            at(9, Kind::Attach { task: A, by: None }),
            task(B, 2, None),
            at(9, Kind::Attach { task: B, by: None }),
            at(9, Kind::Sample { counter: Counter::Busy, value: 300 }),
            at(9, switch(CPU0, None, Some(A))),
        ],
        Time(10),
    );
    let (cpus, tasks) = (trace.track("CPUs"), trace.track("Tasks"));
    for group in [cpus, tasks] {
        assert_eq!((trace.tracks[&group].parent, trace.tracks[&group].child_ordering), (None, 3));
    }
    let children = |parent| {
        let mut children: Vec<_> =
            trace.tracks.values().filter(|track| track.parent == Some(parent)).collect();
        children.sort_by_key(|track| track.rank);
        children.iter().map(|track| track.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(children(cpus), ["busy CPUs", "CPU 0", "CPU 1", "outside"]);
    assert_eq!(children(tasks), ["cc", "cc", "task 2"]);
    // The viewer would merge tracks with the same name.
    let of_tasks = |track: &&pftrace::Track| track.parent == Some(tasks);
    assert!(trace.tracks.values().filter(of_tasks).all(|track| track.merge == 2));
    let first = trace.tracks.values().find(of_tasks).unwrap();
    assert_eq!(first.description.as_deref(), Some("task 0, nice -5"));
}

#[test]
fn counters_change_only_when_they_do() {
    let sample = |time, counter, value| at(time, Kind::Sample { counter, value });
    let trace = written(
        &[
            sample(0, Counter::Ready, 0),
            sample(0, Counter::Busy, 2),
            sample(7, Counter::Ready, 0),
            sample(7, Counter::Busy, 1),
            sample(9, Counter::Ready, 1 << 40),
        ],
        Time(9),
    );
    let of = |name| {
        let track = trace.track(name);
        let of = trace.events.iter().filter(|event| event.track == track);
        of.map(|event| (event.at.0, event.r#type)).collect::<Vec<_>>()
    };
    assert_eq!(of("ready tasks"), [(0, Type::Counter(0)), (9, Type::Counter(1 << 40))]);
    assert_eq!(of("busy CPUs"), [(0, Type::Counter(2)), (7, Type::Counter(1))]);
}

#[test]
fn a_task_may_be_told_to_leave_after_it_was_woken_or_replaced() {
    let trace = written(
        &[
            task(A, 0, Some("a")),
            at(0, Kind::Attach { task: A, by: None }),
            at(0, switch(CPU0, None, Some(A))),
            // It blocks at 5 and is woken and picked by CPU 1 before CPU 0 picks again.
            at(5, Kind::Wake { task: A, by: None, cpu: Some(CPU1) }),
            at(5, switch(CPU1, None, Some(A))),
            at(5, switch(CPU0, Some((A, Off::Blocked)), None)),
            // It ends at 8; its number is reused before CPU 1 picks again.
            task(A, 1, Some("b")),
            at(8, Kind::Attach { task: A, by: None }),
            at(8, switch(CPU1, Some((A, Off::Exited)), Some(A))),
        ],
        Time(9),
    );
    let slices = trace.slices();
    assert_eq!(
        on(&slices, trace.track("a")),
        [
            ("ready", 0, 0, false),
            ("running", 0, 5, false),
            ("ready", 5, 5, false),
            ("running", 5, 8, false)
        ]
    );
    assert_eq!(on(&slices, trace.track("b")), [("ready", 8, 8, false), ("running", 8, 9, false)]);
    assert_eq!(on(&slices, trace.track("CPU 0")), [("a", 0, 5, false)]);
    let cpu1 = on(&slices, trace.track("CPU 1"));
    assert_eq!(cpu1, [("wake", 5, 5, false), ("a", 5, 8, false), ("b", 8, 9, false)]);
}

#[test]
fn tasks_that_nobody_named_do_no_harm() {
    let trace = written(
        &[
            at(1, switch(CPU0, None, Some(B))),
            at(2, Kind::Wake { task: A, by: Some(B), cpu: None }),
            at(3, Kind::Attach { task: A, by: None }),
            at(4, Kind::Migrate { task: B, from: CPU0, to: CPU1 }),
            at(5, switch(CPU0, Some((B, Off::Blocked)), None)),
            task(A, 0, Some("a")),
            at(6, Kind::Attach { task: A, by: None }),
            at(6, switch(CPU0, None, Some(A))),
            at(7, switch(CPU0, Some((A, Off::Exited)), None)),
            at(8, Kind::Wake { task: A, by: None, cpu: Some(CPU0) }),
        ],
        Time(9),
    );
    let slices = trace.slices();
    let cpu0 = on(&slices, trace.track("CPU 0"));
    assert_eq!(cpu0, [("unknown task", 1, 5, false), ("a", 6, 7, false)]);
    assert_eq!(on(&slices, trace.track("a")), [("ready", 6, 6, false), ("running", 6, 7, false)]);
}

/// The stays and arrows that a trace shows, taken from the tracks of tasks; the CPUs' tracks must
/// agree.
fn shown(trace: &Trace) -> (Vec<Stay>, Vec<Arrow>) {
    let (cpus, tasks) = (trace.track("CPUs"), trace.track("Tasks"));
    let serial = |track: u64| {
        let track = &trace.tracks[&track];
        (track.parent == Some(tasks)).then_some(track.rank as u64)
    };
    let cpu = |track: u64| {
        let number = trace.tracks[&track].name.strip_prefix("CPU ");
        number.map(|number| CpuId(number.parse().unwrap()))
    };
    let (mut stays, mut on_cpus, mut arrows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut flows, mut flow_ids) = (BTreeMap::new(), BTreeSet::new());
    let slices = trace.slices();
    for slice in &slices {
        let Slice { begin, until, .. } = slice;
        let name = begin.name.as_deref().unwrap();
        let (from, until) = (begin.at, *until);
        if begin.r#type == Type::Instant {
            if let Some(flow) = begin.flow {
                let cause = match (serial(begin.track), cpu(begin.track)) {
                    (Some(serial), _) => {
                        // In the running slice of the waker.
                        let parent = &slices[slice.parent.unwrap()].begin;
                        assert_eq!(parent.name.as_deref(), Some("running"));
                        Cause::Task(serial)
                    }
                    (None, Some(cpu)) => Cause::Cpu(cpu),
                    (None, None) => Cause::Outside,
                };
                assert!(flow_ids.insert(flow), "arrow {flow} twice");
                flows.insert(flow, (from, cause, name == "new"));
            }
            continue;
        }
        assert_eq!(begin.flow, None);
        if let Some(cpu) = cpu(begin.track) {
            assert_eq!(trace.tracks[&begin.track].parent, Some(cpus));
            let serial = begin.correlation.unwrap();
            let same = |track: &&pftrace::Track| {
                track.parent == Some(tasks) && track.rank as u64 == serial && track.name == name
            };
            assert_eq!(trace.tracks.values().filter(same).count(), 1);
            on_cpus.push(Stay { serial, from, until, cpu: Some(cpu) });
            continue;
        }
        let serial = serial(begin.track).unwrap();
        let cpu = begin.arg("cpu").map(|cpu| CpuId(cpu.parse().unwrap()));
        assert_eq!(name, if cpu.is_some() { "running" } else { "ready" });
        stays.push(Stay { serial, from, until, cpu });
        if let Some(flow) = begin.end_of_flow {
            let (at, cause, new) = flows.remove(&flow).expect("an arrow has a beginning");
            assert_eq!((at, name), (from, "ready"));
            arrows.push(Arrow { at, from: cause, to: serial, new });
        }
    }
    assert_eq!(flows, BTreeMap::new(), "arrows that lead nowhere");
    let ran = stays.iter().copied().filter(|stay| stay.cpu.is_some()).collect();
    let ran = join(ran);
    assert_eq!(ran, join(on_cpus));
    assert_eq!(ran, join(as_a_kernel_would_record(trace)));
    // What made each task ready, in interrupts where no task did.
    let mut woken: Vec<_> =
        trace.wakings.iter().map(|w| (w.at, w.task.0 - 1, !w.in_interrupt)).collect();
    let by_task = |arrow: &Arrow| matches!(arrow.from, Cause::Task(_));
    let mut expected: Vec<_> = arrows.iter().map(|a| (a.at, a.to, by_task(a))).collect();
    woken.sort();
    expected.sort();
    assert_eq!(woken, expected);
    arrows.sort();
    (join(stays), arrows)
}

/// What ran where according to the switches, as the trace processor reads them: the first event of
/// a CPU tells only what runs from then on.
fn as_a_kernel_would_record(trace: &Trace) -> Vec<Stay> {
    let mut stays = Vec::new();
    let mut running: BTreeMap<u64, (u64, Time)> = BTreeMap::new();
    for switch in &trace.switches {
        let (pid, _, name) = &switch.next;
        assert_eq!(*pid == 0, name.starts_with("swapper/"));
        match running.insert(switch.cpu, (*pid, switch.at)) {
            None => assert_eq!((*pid, switch.at), (0, Time::ZERO)),
            Some((before, from)) => {
                assert!(from <= switch.at);
                let cpu = Some(CpuId(switch.cpu as u16));
                if before > 0 && from < switch.at {
                    stays.push(Stay { serial: before - 1, from, until: switch.at, cpu });
                }
            }
        }
    }
    assert!(running.values().all(|(pid, _)| *pid == 0), "something runs at the end");
    stays
}

#[test]
fn a_small_run_is_recorded_as_a_kernel_would() {
    let trace = written(
        &[
            task(A, 0, Some("make")),
            at(5, Kind::Attach { task: A, by: None }),
            at(10, switch(CPU0, None, Some(A))),
            task(B, 1, Some("cc")),
            at(20, Kind::Attach { task: B, by: Some(A) }),
            at(25, switch(CPU1, None, Some(B))),
            at(30, switch(CPU1, Some((B, Off::Blocked)), None)),
            at(45, Kind::Wake { task: B, by: None, cpu: Some(CPU0) }),
            at(50, switch(CPU0, Some((A, Off::Preempted)), Some(B))),
            at(60, switch(CPU0, Some((B, Off::Exited)), Some(A))),
            at(70, switch(CPU0, Some((A, Off::Yielded)), None)),
        ],
        Time(100),
    );
    let switches: Vec<_> =
        trace.switches.iter().map(|s| (s.at.0, s.cpu, s.state, s.next.0)).collect();
    assert_eq!(
        switches,
        [
            (0, 0, 0, 0),
            (10, 0, 0, 1),
            (50, 0, 0x800, 2),
            (60, 0, 16, 1),
            (70, 0, 0, 0),
            (0, 1, 0, 0),
            (25, 1, 0, 2),
            (30, 1, 1, 0),
        ]
    );
    let wakings: Vec<_> =
        trace.wakings.iter().map(|w| (w.at.0, w.cpu, w.task.0, w.target, w.in_interrupt)).collect();
    assert_eq!(wakings, [(5, 0, 1, 0, true), (20, 0, 2, 0, false), (45, 0, 2, 1, true)]);
    assert_eq!(trace.switches[1].next, (1, 115, "make".to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_run_is_shown_as_it_was(
        cpus in 1usize..6,
        commands in prop::collection::vec(any::<stream::Command>(), 0..600),
    ) {
        let mut machine = stream::play(cpus, &commands);
        let stays = machine.finish();
        let trace = written(&machine.items, machine.now);
        let (shown_stays, shown_arrows) = shown(&trace);
        prop_assert_eq!(shown_stays, stays);
        machine.arrows.sort();
        prop_assert_eq!(shown_arrows, machine.arrows);

        let tasks = trace.track("Tasks");
        let named = trace.tracks.values().filter(|track| track.parent == Some(tasks));
        let mut named: Vec<_> = named.map(|track| (track.rank, track.name.clone())).collect();
        named.sort();
        let names = machine.names.iter().cloned();
        prop_assert_eq!(named, (0i64..).zip(names).collect::<Vec<_>>());

        let instants = |name: &str| {
            let named = trace.events.iter().filter(|event| event.name.as_deref() == Some(name));
            named.count()
        };
        let told = |of: fn(&Kind) -> bool| {
            let is = |item: &&Item| matches!(item, Item::Event(event) if of(&event.kind));
            machine.items.iter().filter(is).count()
        };
        prop_assert_eq!(instants("kick"), told(|kind| matches!(kind, Kind::Kick { .. })));
        prop_assert_eq!(instants("migrate"), told(|kind| matches!(kind, Kind::Migrate { .. })));
    }
}

#[test]
fn times_and_numbers_of_any_size_are_kept() {
    let mut writer = PerfettoWriter::new(Vec::new());
    let serial = 1 << 40;
    writer.task(&TaskInfo { task: A, serial, name: Some("é\u{0}\n"), nice: 19 });
    let far = Time(1 << 62);
    for kind in [Kind::Attach { task: A, by: None }, switch(CpuId(1023), None, Some(A))] {
        writer.event(&Event { time: far, kind });
    }
    let trace = Trace::read(&writer.finish(Time::ZERO).unwrap());
    let slices = trace.slices();
    let on_cpu = on(&slices, trace.track("CPU 1023"));
    assert_eq!(on_cpu, [("é\u{0}\n", far.0, far.0, false)]);
    let running = slices.iter().find(|slice| slice.begin.arg("cpu").is_some()).unwrap();
    assert_eq!((running.begin.arg("cpu"), running.begin.correlation), (Some("1023"), Some(serial)));
}
