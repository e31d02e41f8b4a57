//! What a policy decided, beside a kernel's own events, in both formats.

mod pftrace;

use anysched_core::recorder::{Answer, Call, Record};
use anysched_core::{Arrival, CpuId, CpuMask, Enqueue, Off, Pick, Span, TaskId, Time};
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::perfetto::PerfettoWriter;
use anysched_trace::policy::{Actor, Decision, Made};
use anysched_trace::{Event, Kind, Sink, TaskInfo};
use pftrace::{Trace, Type};

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);
const A: TaskId = TaskId(0);

/// The policy's number of A.
const SEVEN: TaskId = TaskId(7);

const CC: Actor<'static> = Actor { id: A, comm: "cc", pid: 42 };

fn record(now: u64, call: Call<'static>, pick: Option<u64>, kicks: &[CpuId]) -> Record {
    let pick = pick.map(|slice| Pick { task: SEVEN, slice: Span(slice) });
    let kicks = CpuMask::of(kicks.iter().copied());
    let answer = Some(Answer { pick, kicks, next_timer: None });
    Record { number: 1, offset: 0, now: Time(now), call, answer }
}

/// A is woken, picked, switched to, and taken off; before the end, CPU 1 is given a task that nobody
/// knows.
fn tell(sink: &mut impl Sink) {
    let why = Enqueue::Wakeup { prev: CPU0, sync: false };
    let arrival = Arrival { from: Some(CPU1), ..Arrival::because(why) };
    let (cpu, task) = (CPU0, SEVEN);
    let off = Call::PutPrev { cpu, task, ran: Span(40), why: Off::Expired };
    let records = [
        (record(10, Call::Enqueue { task, arrival }, None, &[CPU0]), Some(CC), CPU1, None),
        (
            record(20, Call::PickNext { cpu }, Some(6_000_000), &[]),
            Some(CC),
            CPU0,
            Some(Made::Switched(Span(5))),
        ),
        (record(40, Call::Tick { cpu, task, ran: Span(15) }, None, &[]), Some(CC), CPU0, None),
        (record(65, off, None, &[]), Some(CC), CPU0, None),
        (record(65, Call::PickNext { cpu }, None, &[]), None, CPU0, None),
        (
            record(80, Call::PickNext { cpu: CPU1 }, Some(u64::MAX), &[]),
            None,
            CPU1,
            Some(Made::Unknown),
        ),
    ];
    let lines = [
        (11, "            sh-9       [001] d..2.     0.000000011: sched_waking: comm=cc pid=42"),
        (25, "          <idle>-0     [000] d..2.     0.000000025: sched_switch: …"),
    ];
    let mut lines = lines.iter().peekable();
    for (record, task, cpu, made) in &records {
        while let Some((time, line)) = lines.next_if(|(time, _)| *time < record.now.0) {
            if sink.takes_lines() {
                sink.line(Time(*time), line);
                continue;
            }
            let kind = match time {
                11 => {
                    sink.task(&TaskInfo { task: A, serial: 0, name: Some("cc-42"), nice: 0 });
                    Kind::Attach { task: A, by: None }
                }
                _ => Kind::Switch { cpu: CPU0, prev: None, next: Some(A) },
            };
            sink.event(&Event { time: Time(*time), kind });
        }
        let current = (record.now.0 == 40).then_some(CC);
        let (task, cpu, made) = (*task, *cpu, *made);
        sink.decision(&Decision { record, task, cpu, current, made });
    }
}

#[test]
fn decisions_are_marks_between_a_kernels_lines() {
    let mut writer = FtraceWriter::new(Vec::new(), 2);
    tell(&mut writer);
    let text = String::from_utf8(writer.finish(Time(100)).unwrap()).unwrap();
    let mark = |who: &str, cpu: u16, time: u32, what: &str| {
        let (name, pid) = who.split_once('-').unwrap();
        format!(
            "{name:>16}-{pid:<7} [{cpu:03}] d..2.     0.0000000{time}: tracing_mark_write: \
             I|{pid}|anysched: {what}"
        )
    };
    let lines: Vec<&str> = text.lines().skip(5).collect();
    let woken = "enqueue task 7, woken, was on CPU 0, by CPU 1 (cc-42), kicks CPU 0";
    assert_eq!(lines[0], mark("<idle>-0", 1, 10, woken));
    assert!(lines[1].contains("0.000000011: sched_waking: comm=cc pid=42"), "{}", lines[1]);
    let picked = "pick_next CPU 0: task 7 (cc-42), slice 6ms, switched to after 5ns";
    assert_eq!(lines[2], mark("<idle>-0", 0, 20, picked));
    assert!(lines[3].contains("sched_switch"), "{}", lines[3]);
    assert_eq!(lines[4], mark("cc-42", 0, 40, "tick CPU 0, task 7, ran 15ns (cc-42)"));
    let put = "put_prev CPU 0, task 7, ran 40ns, Expired (cc-42)";
    assert_eq!(lines[5], mark("<idle>-0", 0, 65, put));
    assert_eq!(lines[6], mark("<idle>-0", 0, 65, "pick_next CPU 0: nothing"));
    let unknown = "pick_next CPU 1: task 7, no slice, unknown";
    assert_eq!(lines[7..], [mark("<idle>-0", 1, 80, unknown)]);
}

#[test]
fn decisions_have_tracks_beside_those_of_a_kernel() {
    let mut writer = PerfettoWriter::new(Vec::new());
    tell(&mut writer);
    let trace = Trace::read(&writer.finish(Time(100)).unwrap());
    let policy = trace.track("Policy");
    let of = |name: &str| {
        let is = |track: &pftrace::Track| track.parent == Some(policy) && track.name == name;
        *trace.tracks.iter().find(|(_, track)| is(track)).unwrap().0
    };
    let slices = trace.slices();
    let on = |track: u64| {
        let on = slices.iter().filter(|slice| slice.begin.track == track);
        on.map(|slice| {
            let name = slice.begin.name.as_deref().unwrap();
            let args = slice.begin.args.iter().chain(&slice.end_args);
            let args = args.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
            (name, slice.begin.at.0, slice.until.0, args.join(" "))
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        on(of("CPU 0")),
        [
            ("kick", 10, 10, String::new()),
            ("cc-42", 20, 65, "slice=6000000 made=switched to off=expired".into()),
            ("tick", 40, 40, String::new()),
        ]
    );
    assert_eq!(on(of("CPU 1")), [("unknown task", 80, 100, "made=unknown".into())]);
    assert_eq!(on(of("calls")), [("enqueue", 10, 10, "task=cc-42 why=woken".into())]);
    // The kernel's own track has what the kernel did.
    let cpus = trace.track("CPUs");
    let is_kernels = |track: &pftrace::Track| track.parent == Some(cpus) && track.name == "CPU 0";
    let (kernels, _) = trace.tracks.iter().find(|(_, track)| is_kernels(track)).unwrap();
    assert_eq!(on(*kernels), [("cc-42", 25, 100, String::new())]);
    assert!(trace.events.iter().all(|event| event.r#type != Type::Counter(0)));
}
