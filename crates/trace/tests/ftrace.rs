//! The ftrace writer's output, checked by a strict reader that shares no code with it.

mod stream;

use anysched_core::{CpuId, Off, TaskId, Time};
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use stream::{Arrow, Cause, Item, Stay, join};

fn written(cpus: usize, items: &[Item], end: Time) -> String {
    let mut writer = FtraceWriter::new(Vec::new(), cpus);
    for item in items {
        item.tell(&mut writer);
    }
    String::from_utf8(writer.finish(end).unwrap()).unwrap()
}

#[test]
fn a_small_run_line_by_line() {
    const MAKE: TaskId = TaskId(0);
    const CC: TaskId = TaskId(1);
    let task =
        |task, serial, name: &str, nice| Item::Task { task, serial, name: Some(name.into()), nice };
    let at = |ns, kind| Item::Event(Event { time: Time(ns), kind });
    let switch = |cpu, prev, next| Kind::Switch { cpu: CpuId(cpu), prev, next };
    let text = written(
        2,
        &[
            task(MAKE, 0, "make", 0),
            at(1, Kind::Attach { task: MAKE, by: None }),
            at(1, switch(0, None, Some(MAKE))),
            task(CC, 1, "my cc=#1", -20),
            at(2_000_000_005, Kind::Attach { task: CC, by: Some(MAKE) }),
            at(2_000_000_006, switch(1, None, Some(CC))),
            at(2_000_000_007, switch(1, Some((CC, Off::Blocked)), None)),
            at(2_000_000_008, Kind::Wake { task: CC, by: Some(MAKE), cpu: Some(CpuId(0)) }),
            at(2_000_000_009, Kind::Kick { cpu: CpuId(0) }),
            at(2_000_000_010, Kind::Migrate { task: CC, from: CpuId(1), to: CpuId(0) }),
            at(2_000_000_010, switch(0, Some((MAKE, Off::Preempted)), Some(CC))),
            at(2_000_000_011, switch(0, Some((CC, Off::Expired)), Some(CC))),
            at(2_000_000_012, switch(0, Some((CC, Off::Exited)), Some(MAKE))),
        ],
        Time(1_234_567_890_123),
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "# tracer: nop");
    assert!(lines[2].starts_with('#') && lines[2].ends_with(" #P:2"));
    let mut events = lines[5..].iter();
    let mut expect = |head: &str, event: &str| {
        assert_eq!(*events.next().unwrap(), format!("{head}: {event}"));
    };
    let make = "prev_comm=make prev_pid=1 prev_prio=120";
    let cc = "prev_comm=my_cc__1 prev_pid=2 prev_prio=100";
    let woken = "comm=my_cc__1 pid=2 prio=100";
    expect(
        "          <idle>-0       [000] d.h2.     0.000000001",
        "sched_wakeup_new: comm=make pid=1 prio=120 target_cpu=000",
    );
    expect(
        "          <idle>-0       [000] d..2.     0.000000001",
        "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
         next_comm=make next_pid=1 next_prio=120",
    );
    expect(
        "            make-1       [000] .....     2.000000005",
        "sched_process_fork: comm=make pid=1 child_comm=my_cc__1 child_pid=2",
    );
    expect(
        "            make-1       [000] d..2.     2.000000005",
        &format!("sched_wakeup_new: {woken} target_cpu=000"),
    );
    expect(
        "          <idle>-0       [001] d..2.     2.000000006",
        "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
         next_comm=my_cc__1 next_pid=2 next_prio=100",
    );
    expect(
        "        my_cc__1-2       [001] d..2.     2.000000007",
        &format!(
            "sched_switch: {cc} prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120"
        ),
    );
    for name in ["sched_waking", "sched_wakeup"] {
        expect(
            "            make-1       [000] d..2.     2.000000008",
            &format!("{name}: {woken} target_cpu=001"),
        );
    }
    expect(
        "            make-1       [000] d..2.     2.000000010",
        &format!("sched_migrate_task: {woken} orig_cpu=1 dest_cpu=0"),
    );
    expect(
        "            make-1       [000] d..2.     2.000000010",
        &format!(
            "sched_switch: {make} prev_state=R+ ==> next_comm=my_cc__1 next_pid=2 next_prio=100"
        ),
    );
    expect(
        "        my_cc__1-2       [000] .....     2.000000012",
        &format!("sched_process_exit: {woken}"),
    );
    expect(
        "        my_cc__1-2       [000] d..2.     2.000000012",
        &format!("sched_switch: {cc} prev_state=X ==> next_comm=make next_pid=1 next_prio=120"),
    );
    expect(
        "            make-1       [000] d..2.  1234.567890123",
        &format!(
            "sched_switch: {make} prev_state=R+ ==> next_comm=swapper/0 next_pid=0 next_prio=120"
        ),
    );
    assert_eq!(events.next(), None);
}

#[test]
fn states_tell_why_a_task_stopped() {
    let task = TaskId(0);
    let reasons = [
        (Off::Expired, "R+"),
        (Off::Preempted, "R+"),
        (Off::Yielded, "R"),
        (Off::NotRun, "R"),
        (Off::Blocked, "S"),
        (Off::Exited, "X"),
    ];
    for (off, state) in reasons {
        let kinds = [
            Kind::Attach { task, by: None },
            Kind::Switch { cpu: CpuId(0), prev: None, next: Some(task) },
            Kind::Switch { cpu: CpuId(0), prev: Some((task, off)), next: None },
        ];
        let events = kinds.map(|kind| Item::Event(Event { time: Time(0), kind }));
        let mut items = vec![Item::Task { task, serial: 0, name: None, nice: 0 }];
        items.extend(events);
        let text = written(1, &items, Time(0));
        let last = text.lines().last().unwrap();
        assert!(last.contains(&format!(" prev_state={state} ==> ")), "{off:?}: {last}");
    }
}

#[test]
fn what_no_task_did_is_an_interrupt() {
    let (a, b) = (TaskId(0), TaskId(1));
    let task = |task: TaskId, name: &str| {
        let (serial, name) = (u64::from(task.0), Some(name.into()));
        Item::Task { task, serial, name, nice: 0 }
    };
    let now = |kind| Item::Event(Event { time: Time(0), kind });
    let switch = |cpu, prev, next| now(Kind::Switch { cpu: CpuId(cpu), prev, next });
    let blocked = Some((a, Off::Blocked));
    let text = written(
        3,
        &[
            task(a, "a"),
            now(Kind::Attach { task: a, by: None }),
            task(b, "b"),
            now(Kind::Attach { task: b, by: None }),
            switch(1, None, Some(a)),
            switch(2, None, Some(b)),
            switch(1, blocked, None),
            now(Kind::Wake { task: a, by: None, cpu: None }),
            switch(1, None, Some(a)),
            switch(1, blocked, None),
            now(Kind::Wake { task: a, by: None, cpu: Some(CpuId(2)) }),
        ],
        Time(0),
    );
    let wakings = text.lines().filter(|line| line.contains("sched_waking"));
    let heads: Vec<&str> = wakings.map(|line| &line[..37]).collect();
    assert_eq!(
        heads,
        ["          <idle>-0       [001] d.h2. ", "               b-2       [002] d.h2. "]
    );
}

#[test]
fn a_name_cannot_break_a_line() {
    let name = format!("#\t prev_pid=3 [001]\r\nx\u{a0}{}", "é".repeat(40));
    let mut writer = FtraceWriter::new(Vec::new(), 1);
    writer.task(&TaskInfo { task: TaskId(0), serial: 0, name: Some(&name), nice: 0 });
    writer.event(&Event { time: Time(0), kind: Kind::Attach { task: TaskId(0), by: None } });
    let text = String::from_utf8(writer.finish(Time(0)).unwrap()).unwrap();
    let line = text.lines().nth(5).unwrap();
    let comm = format!("___prev_pid_3_[001]__x_{}", "é".repeat(20));
    assert_eq!(comm.len(), 63);
    assert!(line.ends_with(&format!(": comm={comm} pid=1 prio=120 target_cpu=000")), "{line}");
    assert_eq!(text.lines().count(), 6);
}

/// Interprets the lines. Panics at anything that cannot have happened.
#[derive(Default)]
struct Reader {
    /// Per CPU, the pid that is running, if it is not 0.
    cpus: BTreeMap<u16, u64>,
    tasks: BTreeMap<u64, Task>,
    forked: BTreeSet<u64>,
    exiting: BTreeSet<u64>,
    stays: Vec<Stay>,
    arrows: Vec<Arrow>,
    names: BTreeMap<u64, String>,
    /// A `sched_waking` whose `sched_wakeup` has to come next.
    waking: Option<String>,
    last: Time,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Task {
    Blocked,
    Ready(Time),
    Running(u16, Time),
    Ended,
}

impl Reader {
    fn read(text: &str) -> Reader {
        let mut reader = Reader::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            reader.line(line);
        }
        assert_eq!(reader.waking, None);
        reader
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (comm, pid) = words[0].rsplit_once('-').unwrap();
        let pid: u64 = pid.parse().unwrap();
        let cpu = words[1].strip_prefix('[').unwrap().strip_suffix(']').unwrap();
        let (cpu, flags) = (cpu.parse().unwrap(), words[2].as_bytes());
        let (seconds, ns) = words[3].strip_suffix(':').unwrap().split_once('.').unwrap();
        assert_eq!(ns.len(), 9);
        let now = seconds.parse::<u64>().unwrap() * 1_000_000_000 + ns.parse::<u64>().unwrap();
        assert!(Time(now) >= self.last, "{line}");
        self.last = Time(now);
        assert_eq!(flags.len(), 5);

        assert_eq!(self.cpus.get(&cpu).copied().unwrap_or(0), pid, "{line}");
        let expected = self.names.get(&pid).map_or("<idle>", |name| name.as_str());
        assert_eq!(comm, expected);
        let fields = words[5..].iter().filter_map(|word| word.split_once('='));
        let fields: BTreeMap<&str, &str> = fields.collect();
        let number = |name: &str| fields[name].parse::<u64>().unwrap();
        let interrupt = flags[2] == b'h';
        match words[4] {
            "sched_switch:" => {
                assert_eq!(number("prev_pid"), pid);
                let (next, name) = (number("next_pid"), fields["next_comm"]);
                assert_eq!(
                    fields["prev_comm"],
                    if pid == 0 { format!("swapper/{cpu}") } else { comm.into() }
                );
                assert_eq!(
                    name,
                    self.names.get(&next).cloned().unwrap_or(format!("swapper/{cpu}"))
                );
                assert_ne!(pid, next, "{line}");
                self.off(cpu, pid, fields["prev_state"]);
                self.on(cpu, next);
            }
            "sched_process_fork:" => {
                assert_eq!((number("pid"), interrupt), (pid, false));
                self.forked.insert(number("child_pid"));
            }
            "sched_process_exit:" => {
                assert_eq!(number("pid"), pid);
                self.exiting.insert(pid);
            }
            "sched_wakeup_new:" => {
                let new = number("pid");
                assert_eq!(self.forked.remove(&new), !interrupt);
                assert!(!self.names.contains_key(&new), "{line}");
                self.names.insert(new, fields["comm"].into());
                self.ready(new, cpu, if interrupt { None } else { Some(pid) }, true);
            }
            "sched_waking:" => {
                assert_eq!(self.tasks[&number("pid")], Task::Blocked, "{line}");
                self.waking = Some(line.replace("sched_waking", "sched_wakeup"));
                self.ready(number("pid"), cpu, if interrupt { None } else { Some(pid) }, false);
            }
            "sched_wakeup:" => assert_eq!(self.waking.take().as_deref(), Some(line)),
            "sched_migrate_task:" => assert_ne!(number("orig_cpu"), number("dest_cpu")),
            _ => panic!("{line}"),
        }
    }

    fn ready(&mut self, pid: u64, cpu: u16, by: Option<u64>, new: bool) {
        self.tasks.insert(pid, Task::Ready(self.last));
        let from = by.map_or(Cause::Cpu(CpuId(cpu)), |by| Cause::Task(by - 1));
        self.arrows.push(Arrow { at: self.last, from, to: pid - 1, new });
    }

    fn off(&mut self, cpu: u16, pid: u64, state: &str) {
        self.cpus.remove(&cpu);
        if pid == 0 {
            return assert_eq!(state, "R");
        }
        let Task::Running(on, from) = self.tasks[&pid] else { panic!("{pid} does not run") };
        assert_eq!(on, cpu);
        let stay = Stay { serial: pid - 1, from, until: self.last, cpu: Some(CpuId(cpu)) };
        self.stays.push(stay);
        let next = match state {
            "R" | "R+" => Task::Ready(self.last),
            "S" => Task::Blocked,
            "X" => Task::Ended,
            _ => panic!("state {state}"),
        };
        assert_eq!(self.exiting.remove(&pid), next == Task::Ended);
        self.tasks.insert(pid, next);
    }

    fn on(&mut self, cpu: u16, pid: u64) {
        if pid == 0 {
            return;
        }
        let Task::Ready(from) = self.tasks[&pid] else { panic!("{pid} is not ready") };
        self.stays.push(Stay { serial: pid - 1, from, until: self.last, cpu: None });
        self.tasks.insert(pid, Task::Running(cpu, self.last));
        self.cpus.insert(cpu, pid);
    }

    /// All stays, including those that last until the end.
    fn finish(&mut self, end: Time) -> Vec<Stay> {
        assert_eq!(self.cpus, BTreeMap::new(), "CPUs that do not end idle");
        let mut stays = self.stays.clone();
        for (pid, task) in &self.tasks {
            if let Task::Ready(from) = *task {
                stays.push(Stay { serial: pid - 1, from, until: end, cpu: None });
            }
        }
        join(stays)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_run_reads_back(
        cpus in 1usize..6,
        commands in prop::collection::vec(any::<stream::Command>(), 0..600),
    ) {
        let mut machine = stream::play(cpus, &commands);
        let stays = machine.finish();
        let mut reader = Reader::read(&written(cpus, &machine.items, machine.now));
        prop_assert_eq!(reader.finish(machine.now), stays);
        // ftrace has only CPUs as the place for what comes from outside.
        prop_assert_eq!(reader.arrows.len(), machine.arrows.len());
        for (read, made) in reader.arrows.iter().zip(&machine.arrows) {
            let from = match (made.from, read.from) {
                (Cause::Outside, Cause::Cpu(cpu)) => Cause::Cpu(cpu),
                (from, _) => from,
            };
            prop_assert_eq!(*read, Arrow { from, ..*made });
        }
        let names = machine.names.iter().map(|name| name.replace(' ', "_"));
        prop_assert_eq!(reader.names, (1..).zip(names).collect());
    }
}
