//! Small hand-made recordings, and what they must become.

use super::*;
use crate::Op;
use crate::model::Model;

/// The head of a line as the kernel writes it, at `us` µs after 10 s.
fn head(us: u64, cpu: u32, current: (&str, u32), flags: &str) -> String {
    format!("{:>16}-{:<7} [{cpu:03}] {flags} 10.{us:06}:", current.0, current.1)
}

type Pid = (&'static str, u32);
const IDLE: Pid = ("<idle>", 0);
const A: Pid = ("a", 1);
const B: Pid = ("b", 2);
const C: Pid = ("c", 3);

fn switch(us: u64, cpu: u32, prev: Pid, state: &str, next: Pid) -> String {
    format!(
        "{} sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> \
         next_comm={} next_pid={} next_prio=120\n",
        head(us, cpu, prev, "d..2."),
        prev.0,
        prev.1,
        next.0,
        next.1
    )
}

/// An event about another task than the one that runs, in the context that `flags` say.
fn about(us: u64, cpu: u32, current: Pid, flags: &str, event: &str, task: Pid) -> String {
    let head = head(us, cpu, current, flags);
    format!("{head} {event}: comm={} pid={} prio=120 target_cpu=000\n", task.0, task.1)
}

fn waking(us: u64, cpu: u32, current: Pid, task: Pid) -> String {
    about(us, cpu, current, "d..2.", "sched_waking", task)
}

fn wakeup(us: u64, cpu: u32, current: Pid, task: Pid) -> String {
    about(us, cpu, current, "d..2.", "sched_wakeup", task)
}

fn fork(us: u64, cpu: u32, parent: Pid, child: Pid) -> String {
    let head = head(us, cpu, parent, ".....");
    format!(
        "{head} sched_process_fork: comm={} pid={} child_comm={} child_pid={}\n",
        parent.0, parent.1, child.0, child.1
    )
}

fn recording(lines: &[String]) -> Recording {
    Recording::read(lines.concat().as_bytes()).unwrap()
}

fn replay(lines: &[String]) -> Replay {
    recording(lines).replay(Softirqs::default())
}

/// Each task as `name @arrival: what it does`, and `! time name` for signals from outside; times
/// in µs.
fn show(model: &Model) -> Vec<String> {
    let name = |index: u32| model.tasks[index as usize].new.name.as_deref().unwrap();
    let op = |op: &Op| match op {
        Op::Run(span) => format!("run {}", span.0 / 1000),
        Op::Wait(_) => "wait".into(),
        Op::Signal(channel) | Op::Write(channel) => format!("signal {}", name(channel.0)),
        Op::Spawn(task) => format!("spawn {}", name(*task)),
        Op::SetNice(nice) => format!("nice {nice}"),
        other => panic!("{other:?}"),
    };
    let tasks = model.tasks.iter().enumerate().map(|(index, task)| {
        for op in &task.script.ops {
            // Each waits on its own channel.
            assert!(!matches!(op, Op::Wait(channel) if channel.0 as usize != index));
        }
        let ops: Vec<String> = task.script.ops.iter().map(op).collect();
        let at = task.arrives.map_or("spawned".into(), |at| format!("@{}", at.0 / 1000));
        format!("{} {at}: {}", name(index as u32), ops.join(", "))
    });
    let signals = model.signals.iter().map(|(at, to)| format!("! {} {}", at.0 / 1000, name(to.0)));
    tasks.chain(signals).collect()
}

#[track_caller]
fn check(lines: &[String], expected: &[&str]) -> Replay {
    let replay = replay(lines);
    assert_eq!(show(&replay.model), expected);
    let used: u64 = replay.bursts.iter().flatten().map(|burst| burst.used.0).sum();
    let slots: u64 = replay.schedule.iter().map(|slot| (slot.end - slot.start).0).sum();
    assert_eq!(used, slots, "bursts and slots are the same CPU time");
    replay
}

#[test]
fn a_preemption_is_no_block_and_a_wake_up_cuts_the_burst() {
    let replay = check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(10, 0, A, "R+", B),
            switch(15, 0, B, "R", A),
            waking(17, 0, A, C),
            switch(22, 0, A, "S", C),
            switch(23, 0, C, "D", B),
            switch(30, 0, B, "S", IDLE),
        ],
        &[
            "a-1 @0: run 12, signal c-3, run 5, wait",
            "b-2 @0: run 12, wait",
            "c-3 @0: wait, run 1, wait",
        ],
    );
    let slot = |task, start: u64, end: u64| Slot {
        cpu: CpuId(0),
        task,
        start: Time(start * 1000),
        end: Time(end * 1000),
    };
    assert_eq!(
        replay.schedule,
        [slot(0, 0, 10), slot(1, 10, 15), slot(0, 15, 22), slot(2, 22, 23), slot(1, 23, 30)]
    );
    let burst = Burst { used: Span(17_000), end: Time(22_000), why: Ended::Blocked };
    assert_eq!(replay.bursts[0], [burst]);
}

#[test]
fn interrupts_and_idle_cpus_wake_at_the_recorded_time() {
    let by = |us, cpu, current, flags| about(us, cpu, current, flags, "sched_waking", B);
    let run = |us: u64| [switch(us, 1, IDLE, "R", B), switch(us + 1, 1, B, "S", IDLE)].concat();
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            by(5, 0, A, "d.h3."),
            run(6),
            by(15, 0, A, "dNH3."),
            run(16),
            by(25, 0, A, "d.s3."),
            run(26),
            by(35, 1, IDLE, "d..3."),
            run(36),
            by(45, 0, A, "D..3."),
            run(46),
            switch(60, 0, A, "X", IDLE),
        ],
        &[
            "a-1 @0: run 45, signal b-2, run 15",
            "b-2 @0: wait, run 1, wait, run 1, wait, run 1, wait, run 1, wait, run 1, wait",
            "! 5 b-2",
            "! 15 b-2",
            "! 25 b-2",
            "! 35 b-2",
        ],
    );
}

#[test]
fn a_wake_up_counts_once_and_only_if_it_ended_a_block() {
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            waking(5, 0, A, B),
            about(6, 1, IDLE, "dNh2.", "sched_wakeup", B),
            // No longer blocked: these change nothing.
            waking(7, 0, A, B),
            wakeup(8, 0, A, B),
            switch(9, 1, IDLE, "R", B),
            waking(10, 0, A, B),
            wakeup(11, 0, A, B),
            switch(20, 1, B, "S", IDLE),
            waking(21, 0, A, B),
            wakeup(22, 0, A, B),
            switch(23, 1, IDLE, "R", B),
            switch(24, 1, B, "S", IDLE),
            switch(30, 0, A, "S", IDLE),
        ],
        &[
            "a-1 @0: run 5, signal b-2, run 16, signal b-2, run 9, wait",
            "b-2 @0: wait, run 11, wait, run 1, wait",
        ],
    );
}

#[test]
fn a_wake_up_may_begin_before_the_block_that_it_ends() {
    // b was about to block when a woke it; the second time it was not, and the wake-up had no
    // effect.
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(0, 1, IDLE, "R", B),
            waking(5, 0, A, B),
            switch(6, 1, B, "S", IDLE),
            about(7, 1, IDLE, "dNh2.", "sched_wakeup", B),
            switch(8, 1, IDLE, "R", B),
            waking(10, 0, A, B),
            wakeup(11, 0, A, B),
            switch(12, 1, B, "S", IDLE),
            // Nothing is left of the second: this time it is unknown who woke b.
            switch(14, 1, IDLE, "R", B),
            switch(15, 1, B, "S", IDLE),
            switch(20, 0, A, "S", IDLE),
        ],
        &[
            "a-1 @0: run 5, signal b-2, run 15, wait",
            "b-2 @0: run 6, wait, run 4, wait, run 1, wait",
            "! 14 b-2",
        ],
    );
    // Without sched_wakeup, running again tells; but a later sched_waking is believed first.
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(0, 1, IDLE, "R", B),
            waking(5, 0, A, B),
            switch(6, 1, B, "S", IDLE),
            switch(8, 1, IDLE, "R", B),
            waking(10, 0, A, B),
            switch(12, 1, B, "S", IDLE),
            waking(14, 0, A, B),
            switch(15, 1, IDLE, "R", B),
            switch(16, 1, B, "S", IDLE),
            switch(20, 0, A, "S", IDLE),
        ],
        &[
            "a-1 @0: run 5, signal b-2, run 9, signal b-2, run 6, wait",
            "b-2 @0: run 6, wait, run 4, wait, run 1, wait",
        ],
    );
}

#[test]
fn the_start_of_a_recording() {
    let replay = check(
        &[
            // a leaves in the first instant and counts from its wake-up.
            switch(0, 0, A, "S", IDLE),
            // b had CPU 1 since the start.
            switch(4, 1, B, "S", C),
            waking(5, 1, C, A),
            switch(6, 0, IDLE, "R", A),
            switch(8, 0, A, "S", IDLE),
            switch(9, 1, C, "S", IDLE),
        ],
        &[
            "b-2 @0: run 4, wait",
            "c-3 @0: run 1, signal a-1, run 4, wait",
            "a-1 @0: wait, run 2, wait",
        ],
    );
    assert_eq!(replay.schedule[0].start, Time::ZERO);
}

#[test]
fn the_end_of_a_recording() {
    let replay = check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(0, 1, IDLE, "R", B),
            waking(5, 0, A, C),
            switch(6, 1, B, "R", C),
            switch(9, 1, C, "S", IDLE),
        ],
        // a runs at the end, b is ready and c is blocked.
        &["a-1 @0: run 5, signal c-3, run 4", "b-2 @0: run 6", "c-3 @0: wait, run 3, wait"],
    );
    let why: Vec<Ended> = replay.bursts.iter().map(|bursts| bursts[0].why).collect();
    assert_eq!(why, [Ended::Cut, Ended::Cut, Ended::Blocked]);
    assert_eq!(replay.model.cpus, Some(2));
}

#[test]
fn tasks_are_spawned_where_their_creator_was() {
    let new = |us, current, task| about(us, 0, current, "d..2.", "sched_wakeup_new", task);
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            fork(5, 0, A, B),
            new(7, A, B),
            // This one's start is missing, that of the next from an idle CPU.
            fork(8, 0, A, C),
            switch(10, 0, A, "S", B),
            switch(12, 0, B, "S", C),
            switch(15, 0, C, "X", IDLE),
            new(20, IDLE, ("d", 4)),
            switch(21, 0, IDLE, "R", ("d", 4)),
            switch(22, 0, ("d", 4), "X", IDLE),
        ],
        &[
            "a-1 @0: run 7, spawn b-2, run 1, spawn c-3, run 2, wait",
            "b-2 spawned: run 2, wait",
            "c-3 spawned: run 3",
            "d-4 @20: run 1",
        ],
    );
}

#[test]
fn the_number_of_a_task_that_has_ended_is_another_task() {
    let new = about(20, 0, A, "d..2.", "sched_wakeup_new", ("e", 2));
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(10, 0, A, "R", B),
            switch(12, 0, B, "Z", A),
            fork(18, 0, A, B),
            new,
            switch(30, 0, A, "S", ("e", 2)),
            switch(31, 0, ("e", 2), "X", IDLE),
        ],
        &["a-1 @0: run 18, spawn e-2, run 10, wait", "b-2 @0: run 2", "e-2 spawned: run 1"],
    );
    // The end of the first b is missing, and so is the start of the second.
    check(
        &[
            switch(0, 0, IDLE, "R", B),
            switch(4, 0, B, "S", A),
            fork(6, 0, A, B),
            waking(8, 0, A, B),
            switch(9, 0, A, "S", B),
            switch(11, 0, B, "X", IDLE),
        ],
        &[
            "b-2 @0: run 4, wait",
            "a-1 @0: run 2, spawn b-2, run 2, signal b-2, run 1, wait",
            "b-2 spawned: wait, run 2",
        ],
    );
}

#[test]
fn state_64_is_the_end_unless_the_task_is_heard_of_again() {
    let replay = check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(5, 0, A, "64", B),
            switch(9, 0, B, "64", IDLE),
            waking(10, 0, IDLE, A),
            switch(11, 0, IDLE, "R", A),
            switch(12, 0, A, "64", IDLE),
        ],
        &["a-1 @0: run 5, wait, run 1", "b-2 @0: run 4", "! 10 a-1"],
    );
    let why: Vec<Ended> = replay.bursts[0].iter().map(|burst| burst.why).collect();
    assert_eq!(why, [Ended::Blocked, Ended::Exited]);
}

#[test]
fn priorities_become_nice_values() {
    let line = |us: u64, text: &str| format!("{} sched_switch: {text}\n", head(us, 0, A, "d..2."));
    let replay = replay(&[
        line(0, "swapper/0:0 [120] R ==> a:1 [120]"),
        line(3, "a:1 [125] R ==> irq/7-x:2 [49]"),
        line(5, "irq/7-x:2 [49] S ==> a:1 [125]"),
        line(6, "a:1 [125] S ==> swapper/0:0 [120]"),
    ]);
    assert_eq!(
        show(&replay.model),
        ["a-1 @0: run 3, nice 5, run 1, wait", "irq/7-x-2 @0: run 2, wait"]
    );
    let new = &replay.model.tasks[1].new;
    assert_eq!((new.nice, new.priority), (-20, 50));
    assert_eq!(
        replay.model.warnings.last().unwrap(),
        "1 real-time tasks have nice -20, and a priority for policies that use it: irq/7-x-2"
    );
}

#[test]
fn kernel_threads_of_one_cpu_stay_there() {
    for (name, bound) in [
        ("kworker/1:0", true),
        ("kworker/1:2H", true),
        ("ksoftirqd/1", true),
        ("rcuc/1", true),
        ("migration/1", true),
        ("watchdog/1", true),
        ("cpuhp/1", true),
        ("kworker/u4:1", false),
        ("kworker/0:1", false),
        ("rcuop/1", false),
        ("user/1", false),
        ("kworker/1", false),
    ] {
        let replay =
            replay(&[switch(0, 1, IDLE, "R", (name, 9)), switch(5, 1, (name, 9), "S", IDLE)]);
        let affinity = replay.model.tasks[0].new.affinity.to_string();
        assert_eq!(affinity, if bound { "1" } else { "all" }, "{name}");
    }
}

#[test]
fn missing_switches_are_as_early_as_they_can_have_been() {
    let replay = check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(0, 1, IDLE, "R", B),
            switch(10, 1, B, "S", IDLE),
            waking(20, 0, A, B),
            // CPU 1 is seen idle at 22, and b leaves it at 30: it began at 22.
            about(22, 1, IDLE, "dNh2.", "sched_wakeup", B),
            switch(30, 1, B, "S", IDLE),
            // This time CPU 1 shows nothing: it began when it was woken.
            waking(32, 0, A, B),
            switch(33, 1, B, "S", IDLE),
            // c is seen on CPU 1 at 40 without anything before: it came after 33.
            waking(40, 1, C, B),
            switch(50, 0, A, "S", IDLE),
        ],
        &[
            "a-1 @0: run 20, signal b-2, run 12, signal b-2, run 18, wait",
            "b-2 @0: run 10, wait, run 8, wait, run 1, wait",
            "3 @33: run 7, signal b-2, run 10",
        ],
    );
    assert_eq!(
        replay.model.warnings[1],
        "3 switches are missing from the recording; each is taken to be as early as it can have \
         been"
    );
}

#[test]
fn a_task_that_vanished_was_ready_or_blocked() {
    check(
        &[
            switch(0, 0, IDLE, "R", A),
            // b runs where a did; a had blocked, as its wake-up shows.
            waking(10, 0, B, C),
            waking(12, 0, B, A),
            switch(20, 0, B, "S", A),
            switch(25, 0, A, "S", C),
            switch(27, 0, C, "S", IDLE),
        ],
        &[
            "a-1 @0: wait, run 5, wait",
            "b-2 @0: run 10, signal c-3, run 2, signal a-1, run 8, wait",
            "c-3 @0: wait, run 2, wait",
        ],
    );
}

#[test]
fn a_missing_wake_up_comes_from_outside_when_the_task_runs_again() {
    let replay = check(
        &[
            switch(0, 0, IDLE, "R", A),
            switch(5, 0, A, "S", IDLE),
            switch(9, 0, IDLE, "R", A),
            switch(11, 0, A, "S", IDLE),
        ],
        &["a-1 @0: run 5, wait, run 2, wait", "! 9 a-1"],
    );
    assert_eq!(
        replay.model.warnings,
        [
            "no events of creation: new tasks come from outside",
            "no wake-ups: all come from outside, when the task next ran",
            "1 wake-ups are missing from the recording; they come from outside when the task next \
             ran",
        ]
    );
}

#[test]
fn a_task_that_an_idle_cpu_did_not_run_was_not_there() {
    check(
        &[
            switch(0, 0, A, "R", B),
            switch(3, 0, B, "S", IDLE),
            switch(9, 0, IDLE, "R", C),
            switch(11, 0, C, "X", IDLE),
        ],
        &["a-1 @0: ", "b-2 @0: run 3, wait", "c-3 @9: run 2"],
    );
}

#[test]
fn soft_interrupts_wake_for_the_task_if_they_never_do_on_an_idle_cpu() {
    let wakes = |times: u64, idle: u64| {
        let mut lines = vec![switch(0, 0, IDLE, "R", A)];
        for n in 0..times {
            let us = 100 * (n + 1);
            let (cpu, current) = if n < idle { (1, IDLE) } else { (0, A) };
            lines.push(about(us, cpu, current, "d.s5.", "sched_waking", B));
            lines.push(switch(us + 1, 1, IDLE, "R", B));
            lines.push(switch(us + 2, 1, B, "S", IDLE));
        }
        lines.push(switch(9000, 0, A, "S", IDLE));
        lines
    };
    for (times, idle, softirqs, outside) in [
        (10, 0, Softirqs::ByEvidence, 0),
        (9, 0, Softirqs::ByEvidence, 9),
        (20, 1, Softirqs::ByEvidence, 1),
        (20, 2, Softirqs::ByEvidence, 20),
        (3, 1, Softirqs::Task, 1),
        (20, 0, Softirqs::Outside, 20),
    ] {
        let model = recording(&wakes(times, idle)).replay(softirqs).model;
        assert_eq!(model.signals.len(), outside, "{times} {idle} {softirqs:?}");
        let by_a = model.tasks[0]
            .script
            .ops
            .iter()
            .filter(|op| matches!(op, Op::Signal(_) | Op::Write(_)));
        assert_eq!(by_a.count() + outside, times as usize);
    }
}

#[test]
fn text_without_flags_and_with_sched_wakeup_only() {
    let lines = "\
version = 6
cpus=4
           a-1     [001]    76.000000: sched_switch:          a:1 [120] R ==> b:2 [120]
           b-2     [001]    76.000005: sched_wakeup:          c d:3 [120] success=1 CPU:003
CPU:2 [7 EVENTS DROPPED]
           b-2     [001]    76.000006: print:                 tracing_mark_write: hello
           b-2     [001]    76.000009500: sched_switch:       b:2 [120] S ==> a:1 [120]
  <idle>-0         [000]    76.000009600: sched_wakeup:       b:2 [120] CPU:001
a line of something else
           a-1     [001]    76.000010: sched_switch:          a:1 [120] S ==> b:2 [120]
";
    let recording = Recording::read(lines.as_bytes()).unwrap();
    assert_eq!((recording.switches(), recording.cpus()), (3, 4));
    assert_eq!((recording.start(), recording.span()), (Time(76_000_000_000), Span(10_000)));
    let model = recording.replay(Softirqs::default()).model;
    assert_eq!(
        show(&model),
        [
            "a-1 @0: run 0, wait",
            "b-2 @0: run 5, signal c d-3, run 4, wait",
            "c d-3 @0: wait",
            "! 9 b-2"
        ]
    );
    assert_eq!(
        model.warnings,
        [
            "events that are not used: print (1)",
            "1 lines are no events; the first is 9: a line of something else",
            "events were lost while recording: 1 times, 7 known",
            "no events of creation: new tasks come from outside",
            "no sched_waking: sched_wakeup tells who woke, and mostly nobody if that was on \
             another CPU",
            "no column of flags: what an interrupt woke counts as woken by the task it interrupted",
        ]
    );
}

#[test]
fn events_out_of_order_are_sorted() {
    let replay = check(
        &[
            switch(5, 0, A, "S", IDLE),
            switch(9, 0, IDLE, "R", B),
            switch(0, 1, IDLE, "R", C),
            switch(12, 1, C, "S", IDLE),
            switch(12, 0, B, "S", IDLE),
        ],
        &["c-3 @0: run 12, wait", "a-1 @0: run 5, wait", "b-2 @9: run 3, wait"],
    );
    assert!(replay.model.warnings.contains(&"1 events were out of order; they were sorted".into()));
}

#[test]
fn malformed_recordings() {
    let long = "x".repeat(70_000);
    let none = "there is no sched_switch event; this has to be the text of ftrace, of `trace-cmd \
                report` or of `perf script`, with the scheduler's events";
    for (text, error) in [
        ("", none),
        ("# tracer: nop\n", none),
        ("a-1 [000] d..2. 1.0: sched_wakeup: comm=b pid=2 prio=120\n", none),
        ("PK\u{3}\u{4} a zip file", "cannot be read: invalid Zip archive: Could not find EOCD"),
        (
            "\na-1 [000] d..2. 1.0: sched_wakeup: comm=b\u{7} pid=2\n",
            "line 2: sched_wakeup is not understood; it is `comm=NAME pid=N prio=N` or `NAME:PID \
             [PRIO]`: a-1 [000] d..2. 1.0: sched_wakeup: comm=b\\u{7} pid=2",
        ),
        (
            "a-1 [9999] 1.0: sched_waking: comm=b pid=2 prio=120",
            "line 1: CPU 9999: CPUs are numbered 0 to 1023: a-1 [9999] 1.0: sched_waking: comm=b \
             pid=2 prio=120",
        ),
        (&long, "line 1: longer than 65536 bytes: this is not such a text"),
    ] {
        assert_eq!(Recording::read(text.as_bytes()).unwrap_err().to_string(), error, "{text:.80}");
    }
}
