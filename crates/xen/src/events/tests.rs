//! Records and logs by hand.

use super::*;
use anysched_core::recorder::Recorder;
use anysched_core::{Arrival, Cx, Enqueue, Machine, Scheduler, Span, TaskParams, ids::CpuMask};
use anysched_wire::vcpus::{self, IDLE, Writer};

const FIRST: Vcpu = Vcpu { domain: 1, number: 0 };
const SECOND: Vcpu = Vcpu { domain: 2, number: 0 };
const NOTHING: Vcpu = Vcpu { domain: IDLE, number: 0 };

/// What a sink was told, in words.
#[derive(Default)]
struct Heard(Vec<String>);

impl Sink for Heard {
    fn task(&mut self, info: &TaskInfo<'_>) {
        self.0.push(format!("task {}", info.label()));
    }

    fn event(&mut self, event: &Event) {
        let time = event.time.0;
        let name = |id: Option<TaskId>| id.map_or("idle".into(), |id| id.0.to_string());
        self.0.push(match event.kind {
            Kind::Attach { task, .. } => format!("{time} {} comes", task.0),
            Kind::Wake { task, .. } => format!("{time} {} wakes", task.0),
            Kind::Switch { cpu, prev, next } => {
                let why = prev.map_or("".into(), |(_, why)| format!(" {why:?}"));
                let prev = name(prev.map(|(prev, _)| prev));
                format!("{time} cpu{} {prev}{why} -> {}", cpu.0, name(next))
            }
            Kind::Migrate { task, from, to } => {
                format!("{time} {} from {} to {}", task.0, from.0, to.0)
            }
            Kind::Offline { task } => format!("{time} {} offline", task.0),
            Kind::State { task, name, value } => format!("{time} {} {name} {value}", task.0),
            Kind::Kick { .. } | Kind::Sample { .. } => return,
        });
    }

    fn decision(&mut self, decision: &Decision<'_>) {
        self.0.push(format!("{} {decision}", decision.time().0));
    }
}

/// The stream of a pCPU whose counter is Xen's time.
fn stream(records: &[(u64, vcpus::Event)]) -> Vec<u8> {
    let clock = |at| (0, vcpus::Event::Clock { ticks: at, now: at });
    let (mut writer, mut bytes) = (Writer::default(), Vec::new());
    for (ticks, event) in [clock(1), clock(1_000)].into_iter().chain(records.iter().cloned()) {
        writer.add(&vcpus::Record { ticks, event });
    }
    writer.take(|all| bytes.extend_from_slice(all));
    bytes
}

fn change(vcpu: Vcpu, from: Runstate, to: Runstate) -> vcpus::Event {
    vcpus::Event::Runstate { vcpu, from, to }
}

fn heard(streams: &[Vec<u8>], log: Option<&[u8]>) -> Result<Vec<String>, String> {
    let mut heard = Heard::default();
    tell(streams, log, &|name| (name == "0").then(|| "web".into()), &mut heard)?;
    Ok(heard.0)
}

#[test]
fn vcpus_of_xens_own_schedulers_are_told_without_a_log() {
    use Runstate::{Blocked, Offline, Runnable, Running};
    let first = stream(&[
        (10, vcpus::Event::Name { domain: 2, name: "0".into() }),
        (10, change(FIRST, Offline, Runnable)),
        (20, change(FIRST, Runnable, Running)),
        (30, change(FIRST, Running, Blocked)),
        (31, change(NOTHING, Runnable, Running)),
        (40, change(FIRST, Blocked, Runnable)),
        (41, vcpus::Event::Boost { vcpu: FIRST, on: true }),
        (60, change(FIRST, Runnable, Offline)),
    ]);
    let second = stream(&[
        (50, change(SECOND, Offline, Runnable)),
        (52, change(SECOND, Runnable, Running)),
        (70, change(FIRST, Offline, Runnable)),
        (75, vcpus::Event::Yield(SECOND)),
        (80, change(SECOND, Running, Runnable)),
        (81, change(FIRST, Runnable, Running)),
    ]);
    let expected = [
        "task d1/0",
        "10 0 comes",
        "20 cpu0 idle -> 0",
        "30 cpu0 0 Blocked -> idle",
        "40 0 wakes",
        "41 0 boost 1",
        "task web/0",
        "50 1 comes",
        "52 cpu1 idle -> 1",
        "60 0 offline",
        "70 0 wakes",
        "80 0 from 0 to 1",
        "80 cpu1 1 Yielded -> 0",
    ];
    assert_eq!(heard(&[first, second], None).unwrap(), expected);
}

/// The log of `credit` with two vCPUs, of which the first was there before Xen recorded.
fn log() -> Vec<u8> {
    let machine = Machine::flat(1).unwrap();
    let policy = (anysched_policies::policy("credit").unwrap().build)(&machine, &[]).unwrap();
    let mut policy = Recorder::new(policy, &machine, "credit", &[], Vec::new());
    let mut kicks = CpuMask::EMPTY;
    let mut at = |now, call: &mut dyn FnMut(&mut dyn Scheduler, &mut Cx<'_>)| {
        call(&mut policy, &mut Cx::new(Time(now), &mut kicks));
    };
    let (cpu, zero, one) = (CpuId(0), TaskId(0), TaskId(1));
    let new = || Arrival::because(Enqueue::New);
    at(5, &mut |policy, cx| policy.attach(cx, zero, &TaskParams::default()));
    at(11, &mut |policy, cx| policy.attach(cx, one, &TaskParams::default()));
    at(20, &mut |policy, cx| policy.enqueue(cx, one, new()));
    at(30, &mut |policy, cx| assert!(policy.pick_next(cx, cpu).is_some()));
    at(50, &mut |policy, cx| policy.enqueue(cx, zero, new()));
    at(60, &mut |policy, cx| {
        policy.put_prev(cx, cpu, one, Span(25), Off::Blocked);
        policy.pick_next(cx, cpu);
    });
    policy.into_parts().1
}

fn beside_log(attached: vcpus::Event, picked: Vcpu) -> Vec<u8> {
    use Runstate::{Blocked, Offline, Runnable, Running};
    stream(&[
        (10, change(SECOND, Offline, Offline)),
        (12, attached),
        (20, change(SECOND, Offline, Runnable)),
        (33, vcpus::Event::Asked { pool: POOL, now: 30 }),
        (35, change(SECOND, Runnable, Running)),
        (50, change(Vcpu { domain: 0, number: 0 }, Offline, Runnable)),
        (62, vcpus::Event::Asked { pool: POOL, now: 60 }),
        (65, change(SECOND, Running, Blocked)),
        (66, change(picked, Runnable, Running)),
    ])
}

#[test]
fn decisions_are_told_of_the_vcpus_that_they_mean() {
    let dom0 = Vcpu { domain: 0, number: 0 };
    let attached = vcpus::Event::Attach { pool: POOL, task: 1, vcpu: SECOND };
    let heard = heard(&[beside_log(attached, dom0)], Some(&log())).unwrap();
    let picks: Vec<&String> = heard.iter().filter(|line| line.contains("pick_next")).collect();
    let expected = [
        "30 pick_next CPU 0: task 1 (d2/0-1), slice 30ms, switched to after 5ns",
        "60 pick_next CPU 0: task 0 (dom0/0-2), slice 30ms, switched to after 5ns",
    ];
    assert_eq!(picks, expected);
    let put = "60 put_prev CPU 0, task 1, ran 25ns, Blocked (d2/0-1)";
    assert!(heard.contains(&put.into()), "{heard:#?}");
    // Of what was said before the sink knew the vCPU, it hears as soon as it does.
    let at = |line: &str| heard.iter().position(|other| other == line).unwrap();
    assert_eq!(at("20 0 pri -1"), at("20 0 comes") + 4, "{heard:#?}");
    assert_eq!(at("65 cpu0 0 Blocked -> 1"), heard.len() - 1, "{heard:#?}");
}

#[test]
fn a_log_that_does_not_fit_is_noticed() {
    let attached = vcpus::Event::Attach { pool: POOL, task: 1, vcpu: SECOND };
    let other = vcpus::Event::Attach { pool: POOL, task: 7, vcpu: SECOND };
    let error = heard(&[beside_log(other, FIRST)], Some(&log())).unwrap_err();
    assert!(error.contains("attach task 1") && error.contains("TaskId(7)"), "{error}");
    // What ran was another than the policy picked.
    let heard = heard(&[beside_log(attached, FIRST)], Some(&log())).unwrap();
    let wrong = "60 pick_next CPU 0: task 0 (dom0/0-2), slice 30ms, overtaken";
    assert!(heard.contains(&wrong.into()), "{heard:#?}");
    let cut = log().len() - 1;
    assert!(self::heard(&[Vec::new()], Some(&log()[..cut])).is_err());
}
