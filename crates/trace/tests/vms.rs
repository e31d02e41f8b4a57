//! How virtual machines are shown, in Perfetto traces and in text.

mod pftrace;

use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::gantt::Gantt;
use anysched_trace::perfetto::PerfettoWriter;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use pftrace::Trace;
use proptest::prelude::*;
use std::fmt::Write;

/// What a sink is told; a leading number is that of a virtual machine.
#[derive(Clone, Debug)]
enum Item {
    Vm(usize, &'static str, Vec<TaskId>),
    End(usize, u64),
    Task(TaskId, u64, String),
    Host(u64, Kind),
    GuestTask(usize, TaskId, u64, Option<&'static str>),
    Guest(usize, u64, Kind),
}

fn tell(items: &[Item], sink: &mut impl Sink) {
    for item in items {
        match item {
            Item::Vm(vm, name, tasks) => sink.vm(*vm, name, tasks),
            &Item::End(vm, time) => sink.vm_end(vm, Time(time)),
            &Item::Task(task, serial, ref name) => {
                sink.task(&TaskInfo { task, serial, name: Some(name), nice: 0 });
            }
            &Item::Host(time, kind) => sink.event(&Event { time: Time(time), kind }),
            &Item::GuestTask(vm, task, serial, name) => {
                sink.vm_task(vm, &TaskInfo { task, serial, name, nice: 0 });
            }
            &Item::Guest(vm, time, kind) => sink.vm_event(vm, &Event { time: Time(time), kind }),
        }
    }
}

fn perfetto(items: &[Item], end: u64) -> Trace {
    let mut writer = PerfettoWriter::new(Vec::new());
    tell(items, &mut writer);
    Trace::read(&writer.finish(Time(end)).unwrap())
}

/// A picture with one column per nanosecond.
fn gantt(items: &[Item], cpus: usize, end: u64) -> String {
    let mut gantt = Gantt::new(cpus, Time::ZERO, Time(end), end as usize, 20);
    tell(items, &mut gantt);
    gantt.finish(Time(end));
    gantt.to_string()
}

fn switch(cpu: u16, prev: Option<(u32, Off)>, next: Option<u32>) -> Kind {
    let prev = prev.map(|(task, why)| (TaskId(task), why));
    Kind::Switch { cpu: CpuId(cpu), prev, next: next.map(TaskId) }
}

fn attach(task: u32) -> Kind {
    Kind::Attach { task: TaskId(task), by: None }
}

fn wake(task: u32) -> Kind {
    Kind::Wake { task: TaskId(task), by: None, cpu: None }
}

/// `web`, with two tasks and one CPU, and `db`, with one task and two CPUs, share CPU 0; a task
/// outside both has CPU 1 for a while.
fn two_machines() -> Vec<Item> {
    use Item::{End, Guest, GuestTask, Host, Task, Vm};
    vec![
        Vm(0, "web", vec![TaskId(0)]),
        Vm(1, "db", vec![TaskId(1), TaskId(2)]),
        Task(TaskId(0), 0, "web/0".into()),
        Host(0, attach(0)),
        Host(0, switch(0, None, Some(0))),
        GuestTask(0, TaskId(0), 0, Some("nginx")),
        Guest(0, 0, attach(0)),
        Guest(0, 0, switch(0, None, Some(0))),
        Task(TaskId(1), 1, "db/0".into()),
        Host(2, attach(1)),
        // The host takes CPU 0 away from web, which does not notice.
        Host(4, switch(0, Some((0, Off::Preempted)), Some(1))),
        GuestTask(1, TaskId(0), 0, None),
        Guest(1, 5, attach(0)),
        Guest(1, 5, switch(0, None, Some(0))),
        Task(TaskId(3), 3, "hog".into()),
        Host(6, attach(3)),
        Host(6, switch(1, None, Some(3))),
        // It halts; a moment later web continues, on the other CPU.
        Guest(1, 8, switch(0, Some((0, Off::Blocked)), None)),
        Host(8, switch(0, Some((1, Off::Blocked)), Some(0))),
        GuestTask(0, TaskId(1), 1, Some("php")),
        Guest(0, 9, attach(1)),
        Guest(0, 10, switch(0, Some((0, Off::Expired)), Some(1))),
        Host(12, switch(1, Some((3, Off::Exited)), None)),
        Host(12, switch(0, Some((0, Off::Preempted)), None)),
        Host(12, Kind::Migrate { task: TaskId(0), from: CpuId(0), to: CpuId(1) }),
        Host(12, switch(1, None, Some(0))),
        // db is woken, waits, and is destroyed.
        Host(13, wake(1)),
        End(1, 15),
        Guest(0, 16, switch(0, Some((1, Off::Expired)), Some(1))),
        Guest(0, 17, switch(0, Some((1, Off::Exited)), Some(0))),
    ]
}

#[test]
fn two_machines_are_shown_as_they_ran() {
    let trace = perfetto(&two_machines(), 19);
    let mut text = String::new();
    let slices = trace.slices();
    for track in ["CPU 0", "CPU 1", "web/0", "db/0"].map(|name| trace.track(name)) {
        show(&trace, &slices, track, "", &mut text);
    }
    show(&trace, &slices, trace.track("Virtual machines"), "", &mut text);
    let expected = "\
CPU 0
  web/0 0..4
  db/0 4..8
  web/0 8..12
CPU 1
  hog 6..12
  web/0 12..19
web/0
  ready 0..0
  running 0..4 cpu=0
  ready 4..8
  running 8..12 cpu=0
  ready 12..12
  migrate 12..12 from=0 to=1
  running 12..19 cpu=1
db/0
  ready 2..4
  running 4..8 cpu=0
  ready 13..15
Virtual machines
  web
    vCPU 0
      nginx 0..4 cpu=0
      stolen 4..8
      nginx 8..10 cpu=0
      php 10..12 cpu=0
      php 12..17 cpu=1
      nginx 17..19 cpu=1
  db
    vCPU 0
      stolen 2..4
      task 0 5..8 cpu=0
      stolen 13..15
    vCPU 1
";
    assert_eq!(text, expected);
}

/// Writes a track, its slices, and then the tracks below it, in order.
fn show(trace: &Trace, slices: &[pftrace::Slice], uuid: u64, indent: &str, text: &mut String) {
    writeln!(text, "{indent}{}", trace.tracks[&uuid].name).unwrap();
    for slice in slices.iter().filter(|slice| slice.begin.track == uuid) {
        let (begin, until) = (&slice.begin, slice.until.0);
        write!(text, "{indent}  {} {}..{until}", begin.name.as_deref().unwrap(), begin.at.0)
            .unwrap();
        for (name, value) in &begin.args {
            write!(text, " {name}={value}").unwrap();
        }
        text.push('\n');
    }
    let mut below: Vec<_> =
        trace.tracks.iter().filter(|(_, track)| track.parent == Some(uuid)).collect();
    below.sort_by_key(|(_, track)| track.rank);
    for (&uuid, _) in below {
        show(trace, slices, uuid, &format!("{indent}  "), text);
    }
}

#[test]
fn two_machines_as_characters() {
    let picture = gantt(&two_machines(), 2, 19);
    let expected = [
        "                |0            19ns|",
        "cpu 0           000011110000",
        "cpu 1                 3333330000000",
        "0 web/0         0000----00111111100",
        "1 db/0            -- 000     --",
        "3 hog                 111111",
        "in web: 0 nginx, 1 php",
        "",
    ];
    assert_eq!(picture, expected.join("\n"));
}

#[test]
fn tasks_of_one_name_and_machine_are_alike_in_all_their_slices() {
    let trace = perfetto(&two_machines(), 19);
    let web = trace.track("web");
    let track = *trace.tracks.iter().find(|(_, track)| track.parent == Some(web)).unwrap().0;
    let slices = trace.slices();
    let of = |name: &str| {
        let named = slices.iter().filter(|slice| {
            slice.begin.track == track && slice.begin.name.as_deref() == Some(name)
        });
        named.map(|slice| slice.begin.correlation).collect::<Vec<_>>()
    };
    let (nginx, php, stolen) = (of("nginx"), of("php"), of("stolen"));
    assert!(nginx[0].is_some() && nginx.iter().all(|id| *id == nginx[0]), "{nginx:?}");
    assert!(php[0].is_some() && php[0] != nginx[0] && php[1] == php[0], "{php:?}");
    assert_eq!(stolen, [None]);
}

#[test]
fn ftrace_text_has_virtual_cpus_but_not_what_they_run() {
    let mut writer = FtraceWriter::new(Vec::new(), 2);
    tell(&two_machines(), &mut writer);
    let text = String::from_utf8(writer.finish(Time(19)).unwrap()).unwrap();
    assert!(text.contains("web/0") && text.contains("db/0"), "{text}");
    assert!(!text.contains("nginx") && !text.contains("php"), "{text}");
}

#[test]
fn machines_and_tasks_that_nobody_named_do_no_harm() {
    let items = [
        Item::Guest(3, 1, switch(0, None, Some(7))),
        Item::GuestTask(3, TaskId(7), 0, None),
        Item::End(3, 1),
        Item::Vm(1, "late", vec![TaskId(9)]),
        Item::Guest(1, 2, switch(5, None, Some(7))),
        Item::Guest(1, 2, switch(0, None, Some(7))),
        Item::Host(2, switch(0, None, Some(9))),
        Item::Guest(0, 3, switch(0, None, Some(7))),
        Item::End(0, 3),
    ];
    let trace = perfetto(&items, 5);
    let slices = trace.slices();
    let mut text = String::new();
    show(&trace, &slices, trace.track("late"), "", &mut text);
    assert_eq!(text, "late\n  vCPU 0\n    unknown task 2..5 cpu=0\n");
    gantt(&items, 1, 5);
}

/// Two machines with two each.
const VCPUS: usize = 4;

/// A change, some time after the one before: in what the host does with a virtual CPU (0: blocks,
/// 1: waits, 2: runs), or in what the guest runs there (a task or none).
#[derive(Clone, Copy, Debug)]
enum Change {
    Host(usize, u8),
    Inside(usize, Option<u32>),
}

fn change() -> impl Strategy<Value = (u64, Change)> {
    let host = (0..VCPUS, 0..3u8).prop_map(|(vcpu, to)| Change::Host(vcpu, to));
    let task = prop::option::of(0..3u32);
    let inside = (0..VCPUS, task).prop_map(|(vcpu, task)| Change::Inside(vcpu, task));
    (prop_oneof![Just(0u64), 0..6u64], prop_oneof![host, inside])
}

/// The events of these changes, and what each virtual CPU does in each nanosecond: a task's number,
/// `-` or a space. Each virtual CPU has a CPU of the host to itself.
fn play(changes: &[(u64, Change)]) -> (Vec<Item>, [String; VCPUS], u64) {
    let tasks = |vm: u32| vec![TaskId(2 * vm), TaskId(2 * vm + 1)];
    let mut items = vec![Item::Vm(0, "a", tasks(0)), Item::Vm(1, "b", tasks(1))];
    for vcpu in 0..VCPUS as u32 {
        items.push(Item::Task(TaskId(vcpu), vcpu.into(), format!("v{vcpu}")));
        items.push(Item::Host(0, attach(vcpu)));
    }
    for (vm, task) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
        items.push(Item::GuestTask(vm, TaskId(task), task.into(), None));
    }
    let (mut host, mut inside) = ([1; VCPUS], [None::<u32>; VCPUS]);
    let (mut lines, mut now) = ([(); VCPUS].map(|()| String::new()), 0);
    for &(after, change) in changes.iter().chain([&(1, Change::Inside(0, None))]) {
        now += after;
        for (vcpu, line) in lines.iter_mut().enumerate() {
            let shown = match (host[vcpu], inside[vcpu]) {
                (1, _) => '-',
                (2, Some(task)) => char::from(b'0' + task as u8),
                _ => ' ',
            };
            line.extend(std::iter::repeat_n(shown, after as usize));
        }
        match change {
            Change::Host(vcpu, to) => {
                let (cpu, task) = (vcpu as u16, vcpu as u32);
                let off = if to == 0 { Off::Blocked } else { Off::Preempted };
                match (host[vcpu], to) {
                    (0, 1) => items.push(Item::Host(now, wake(task))),
                    (0, 2) => {
                        items.push(Item::Host(now, wake(task)));
                        items.push(Item::Host(now, switch(cpu, None, Some(task))));
                    }
                    (1, 2) => items.push(Item::Host(now, switch(cpu, None, Some(task)))),
                    (2, 2) => {
                        let kind = switch(cpu, Some((task, Off::Expired)), Some(task));
                        items.push(Item::Host(now, kind));
                    }
                    (2, _) => items.push(Item::Host(now, switch(cpu, Some((task, off)), None))),
                    _ => continue,
                }
                host[vcpu] = to;
            }
            Change::Inside(vcpu, next) => {
                let prev = inside[vcpu].map(|task| (task, Off::Expired));
                items.push(Item::Guest(vcpu / 2, now, switch((vcpu % 2) as u16, prev, next)));
                inside[vcpu] = next;
            }
        }
    }
    (items, lines, now)
}

proptest! {
    #[test]
    fn every_moment_of_a_virtual_cpu_is_shown_once(
        changes in prop::collection::vec(change(), 0..80)
    ) {
        let (items, lines, end) = play(&changes);
        let trace = perfetto(&items, end);
        let slices = trace.slices();
        for (vcpu, line) in lines.iter().enumerate() {
            let machine = trace.track(["a", "b"][vcpu / 2]);
            let of_machine = |track: &&pftrace::Track| {
                track.parent == Some(machine) && track.rank as usize == vcpu % 2
            };
            let (&uuid, _) = trace.tracks.iter().find(|(_, track)| of_machine(track)).unwrap();
            let mut shown = vec![' '; end as usize];
            for slice in slices.iter().filter(|slice| slice.begin.track == uuid) {
                let (from, until) = (slice.begin.at.0 as usize, slice.until.0 as usize);
                prop_assert!(from < until && slice.parent.is_none());
                let name = slice.begin.name.as_deref().unwrap();
                let mark = if name == "stolen" { '-' } else { name.chars().last().unwrap() };
                for cell in &mut shown[from..until] {
                    prop_assert_eq!(std::mem::replace(cell, mark), ' ');
                }
            }
            prop_assert_eq!(&String::from_iter(shown), line);
        }
        let picture = gantt(&items, VCPUS, end);
        for (vcpu, line) in lines.iter().enumerate() {
            let row = picture.lines().nth(1 + VCPUS + vcpu).unwrap();
            prop_assert_eq!(row, format!("{vcpu} v{vcpu:<13}{}", line.trim_end()));
        }
    }
}
