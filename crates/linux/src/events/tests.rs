//! Recordings and logs by hand.

use super::*;
use anysched_core::recorder::Recorder;
use anysched_core::{
    Arrival, CpuMask, Cx, Enqueue, Machine, Off, Scheduler, Span, TaskId, TaskParams,
};

/// What a sink was told, in words.
#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    takes_lines: bool,
}

impl Sink for Heard {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.lines.push(format!("task {}", info.label()));
    }

    fn event(&mut self, event: &Event) {
        let time = event.time.0;
        let name = |id: Option<TaskId>| id.map_or("idle".into(), |id| id.0.to_string());
        self.lines.push(match event.kind {
            Kind::Attach { task, by } => format!("{time} {} comes by {}", task.0, name(by)),
            Kind::Wake { task, by, .. } => format!("{time} {} wakes by {}", task.0, name(by)),
            Kind::Switch { cpu, prev, next } => {
                let why = prev.map_or("".into(), |(_, why)| format!(" {why:?}"));
                let prev = name(prev.map(|(prev, _)| prev));
                format!("{time} cpu{} {prev}{why} -> {}", cpu.0, name(next))
            }
            Kind::Migrate { task, from, to } => {
                format!("{time} {} from {} to {}", task.0, from.0, to.0)
            }
            Kind::Kick { .. } | Kind::Offline { .. } | Kind::State { .. } | Kind::Sample { .. } => {
                return;
            }
        });
    }

    fn takes_lines(&self) -> bool {
        self.takes_lines
    }

    fn line(&mut self, time: Time, line: &str) {
        self.lines.push(format!("{} {}", time.0, line.trim_start()));
    }

    fn decision(&mut self, decision: &Decision<'_>) {
        let current = decision.current.map_or("idle", |current| current.comm);
        self.lines.push(format!("{} on {current}: {decision}", decision.time().0));
    }
}

fn head(current: &str, cpu: u32, time: u64) -> String {
    format!("{current} [{cpu:03}] d..2. {}.{:09}: ", time / 1_000_000_000, time % 1_000_000_000)
}

/// A switch of CPU 0. Who is called `rt` is real-time.
fn switch(time: u64, prev: &str, state: &str, next: &str) -> String {
    let [prev, next] = [("prev", prev), ("next", next)].map(|(which, who)| {
        let (comm, pid) = who.split_once('-').unwrap();
        let prio = if comm == "rt" { 0 } else { 120 };
        (comm.to_string(), pid.to_string(), format!("{which}_prio={prio}"))
    });
    format!(
        "{}sched_switch: prev_comm={} prev_pid={} {} prev_state={state} ==> next_comm={} \
         next_pid={} {}\n",
        head(&format!("{}-{}", prev.0, prev.1), 0, time),
        prev.0,
        prev.1,
        prev.2,
        next.0,
        next.1,
        next.2
    )
}

fn woken(time: u64, event: &str, current: &str, who: &str) -> String {
    let (comm, pid) = who.split_once('-').unwrap();
    format!("{}{event}: comm={comm} pid={pid} prio=120 target_cpu=000\n", head(current, 0, time))
}

/// A log of `fcfs` on one CPU.
struct Log(Recorder<Box<dyn Scheduler>, Vec<u8>>);

impl Log {
    fn new() -> Log {
        let machine = Machine::flat(1).unwrap();
        let policy = (anysched_policies::policy("fcfs").unwrap().build)(&machine, &[]).unwrap();
        Log(Recorder::new(policy, &machine, "fcfs", &[], Vec::new()))
    }

    fn call(
        &mut self,
        time: u64,
        call: impl FnOnce(&mut Recorder<Box<dyn Scheduler>, Vec<u8>>, &mut Cx<'_>),
    ) {
        let mut kicks = CpuMask::EMPTY;
        call(&mut self.0, &mut Cx::new(Time(time), &mut kicks));
    }

    fn attach(&mut self, time: u64, task: u32) {
        self.call(time, |policy, cx| policy.attach(cx, TaskId(task), &TaskParams::default()));
        let arrival = Arrival::because(Enqueue::New);
        self.call(time, |policy, cx| policy.enqueue(cx, TaskId(task), arrival));
    }

    fn pick(&mut self, time: u64) {
        self.call(time, |policy, cx| assert!(policy.pick_next(cx, CpuId(0)).is_some()));
    }

    fn put(&mut self, time: u64, task: u32, why: Off) {
        let (cpu, task) = (CpuId(0), TaskId(task));
        self.call(time, |policy, cx| policy.put_prev(cx, cpu, task, Span(1), why));
    }

    fn bytes(self) -> Vec<u8> {
        self.0.into_parts().1
    }
}

fn heard(text: &str, log: Option<&[u8]>, takes_lines: bool) -> Vec<String> {
    let mut sink = Heard { takes_lines, ..Heard::default() };
    tell(&[text.as_bytes().to_vec()], log, &mut sink).unwrap();
    sink.lines
}

#[test]
fn a_kernels_events_are_those_of_its_tasks() {
    let text = [
        // Had run before the recording began; wakes what had blocked before, and blocks.
        woken(10, "sched_waking", "a-5", "b-6"),
        woken(11, "sched_wakeup", "a-5", "b-6"),
        switch(20, "a-5", "S", "b-6"),
        // An interrupt wakes it; so it does what is about to block, and does so when that has.
        head("b-6", 0, 29).replace("d..2.", "d.h2.")
            + "sched_waking: comm=a pid=5 prio=120 target_cpu=000\n",
        woken(30, "sched_waking", "b-6", "b-6"),
        switch(31, "b-6", "S", "a-5"),
        woken(32, "sched_wakeup", "a-5", "b-6"),
        // Its number has a new holder.
        switch(40, "a-5", "X", "b-6"),
        head("b-6", 0, 50) + "sched_process_fork: comm=b pid=6 child_comm=b child_pid=5\n",
        woken(51, "sched_wakeup_new", "b-6", "b-5"),
        switch(60, "b-6", "R+", "c-5"),
        head("c-5", 0, 70) + "cpuhp_enter: cpu: 0001 target: 1 step: 2 (x)\n",
        switch(80, "c-5", "R", "swapper/0-0"),
    ];
    let expected = [
        "task a-5",
        "10 0 comes by idle",
        "10 cpu0 idle -> 0",
        "task b-6",
        "10 1 comes by 0",
        "20 cpu0 0 Blocked -> 1",
        "29 0 wakes by idle",
        "31 cpu0 1 Blocked -> 0",
        "32 1 wakes by 1",
        "40 cpu0 0 Exited -> 1",
        "task c-5",
        "51 2 comes by 1",
        "60 cpu0 1 Preempted -> 2",
        "80 cpu0 2 Preempted -> idle",
    ];
    assert_eq!(heard(&text.concat(), None, false), expected);
    // As lines, they are what they were.
    let lines = heard(&text.concat(), None, true);
    assert_eq!(lines.len(), text.len());
    for (line, text) in lines.iter().zip(&text) {
        assert_eq!(line.split_once(' ').unwrap().1, text.trim());
    }
}

/// The lines of what was picked, and what was made of it.
fn picks(text: &str, log: Log) -> Vec<String> {
    let lines = heard(text, Some(&log.bytes()), true);
    let pick = |line: &String| line.split_once("pick_next CPU 0: ").map(|(_, pick)| pick.into());
    lines.iter().filter_map(pick).collect()
}

#[test]
fn what_was_made_of_each_pick_is_said() {
    let mut log = Log::new();
    for task in [0, 1] {
        log.attach(1, task);
    }
    log.pick(10);
    log.put(50, 0, Off::Yielded);
    // Bound tasks go first, without the policy, and so do real-time tasks.
    log.pick(60);
    log.put(100, 1, Off::Yielded);
    log.pick(110);
    log.put(130, 0, Off::Expired);
    // The same once more: it goes on.
    log.pick(140);
    log.put(160, 1, Off::Preempted);
    log.pick(170);
    log.put(171, 0, Off::NotRun);
    log.pick(180);
    let text = [
        switch(14, "swapper/0-0", "R", "a-5"),
        switch(65, "a-5", "R", "kworker/0:1-9"),
        switch(70, "kworker/0:1-9", "S", "rt-3"),
        switch(72, "rt-3", "S", "b-6"),
        switch(112, "b-6", "R", "a-5"),
        switch(143, "a-5", "R", "rt-3"),
        switch(178, "rt-3", "S", "a-5"),
    ];
    let expected = [
        "task 0 (a-5), no slice, switched to after 4ns",
        "task 1 (b-6), no slice, switched to after 12ns",
        "task 0 (a-5), no slice, switched to after 2ns",
        "task 1 (b-6), no slice, overtaken",
        "task 0 (a-5), no slice, not run",
        "task 0 (a-5), no slice, went on",
    ];
    assert_eq!(picks(&text.concat(), log), expected);
}

#[test]
fn numbers_that_are_used_again_are_other_tasks() {
    let mut log = Log::new();
    log.attach(1, 0);
    log.pick(10);
    log.put(20, 0, Off::Exited);
    log.call(21, |policy, cx| policy.detach(cx, TaskId(0)));
    log.attach(30, 0);
    log.pick(40);
    let text = [
        switch(14, "swapper/0-0", "R", "a-5"),
        switch(25, "a-5", "X", "swapper/0-0"),
        switch(45, "swapper/0-0", "R", "b-6"),
    ];
    let expected = [
        "task 0 (a-5), no slice, switched to after 4ns",
        "task 0 (b-6), no slice, switched to after 5ns",
    ];
    assert_eq!(picks(&text.concat(), log), expected);
}

#[test]
fn decisions_stand_before_what_follows_from_them() {
    let mut log = Log::new();
    log.attach(5, 0);
    log.pick(14);
    log.put(30, 0, Off::Blocked);
    let text = switch(14, "swapper/0-0", "R", "a-5") + &switch(31, "a-5", "S", "swapper/0-0");
    let lines = heard(&text, Some(&log.bytes()), true);
    let begins = [
        "5 on idle: attach task 0, ",
        "5 on idle: enqueue task 0, new (a-5)",
        "14 on idle: pick_next CPU 0: task 0 (a-5), no slice, switched to after 0",
        "14 swapper/0-0 [000] ",
        "30 on a: put_prev CPU 0, task 0, ran 1ns, Blocked (a-5)",
        "31 a-5 [000] ",
    ];
    assert_eq!(lines.len(), begins.len(), "{lines:#?}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn what_is_no_recording_is_refused_with_its_place() {
    let told = |text: &str, log: Option<&[u8]>| {
        tell(&[Vec::new(), text.as_bytes().to_vec()], log, &mut Heard::default()).unwrap_err()
    };
    let error = told("a-5 [001] d..2. 1.000000000: sched_switch: x\n", None);
    assert!(
        error.starts_with("the kernel's events of CPU 1, line 1: sched_switch is not"),
        "{error}"
    );
    assert!(told("\nnonsense\n", None).starts_with("the kernel's events of CPU 1, line 1: there"));
    assert!(!told("", Some(b"anysched")).is_empty());
}
