//! Traces of real boots: the kernel's own events, and between them what the policy decided. `cargo
//! xtask hosts` runs these.

mod guest;

use anysched_core::{Machine, Span, Time};
use anysched_host::Place;
use anysched_linux::{Boot, events};
use anysched_qemu::Outcome;
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::perfetto::PerfettoWriter;
use anysched_workload::import::ftrace::line::{Fields, Line, parse, time};
use anysched_workload::import::ftrace::{Recording, Softirqs, State};
use std::time::Duration;

fn boot(policy: &str, machine: &str) -> Boot {
    let mut boot = guest::boot(policy, "latency", &[("duration_ns", "60000000")]);
    (boot.orders.record, boot.orders.events) = (true, true);
    boot.machine = Machine::parse(machine).unwrap();
    boot.patience = Duration::from_secs(240);
    boot
}

fn run(boot: &Boot) -> Option<Outcome> {
    let image = guest::image()?;
    Some(boot.run(image, &mut |_| ()).unwrap_or_else(|error| panic!("{error}")))
}

fn text(outcome: &Outcome) -> String {
    let mut writer = FtraceWriter::new(Vec::new(), outcome.events.len());
    events::tell(&outcome.events, Some(&outcome.logs[0]), &mut writer).unwrap();
    String::from_utf8(writer.finish(Time::ZERO).unwrap()).unwrap()
}

/// A switch of the kernel's.
struct Switch {
    at: u64,
    cpu: u32,
    prev: u32,
    state: State,
    next: u32,
}

fn switches(text: &str) -> Vec<Switch> {
    let switch = |line| match parse(line).unwrap() {
        Line::Event(head, Fields::Switch { prev, state, next }) => {
            let (at, cpu) = (head.time, head.cpu);
            Some(Switch { at, cpu, prev: prev.pid, state, next: next.pid })
        }
        _ => None,
    };
    text.lines().filter_map(switch).collect()
}

/// The decisions in `text` that begin with `call`: when, on which CPU, and the rest.
fn decisions<'a>(text: &'a str, call: &str) -> Vec<(u64, u32, &'a str)> {
    let mark = format!("anysched: {call} CPU ");
    let decision = |line: &'a str| {
        let (_, rest) = line.split_once(&mark)?;
        let (cpu, rest) = rest.split_at(rest.find([':', ','])?);
        Some((time(line)?, cpu.parse().ok()?, &rest[2..]))
    };
    text.lines().filter_map(decision).collect()
}

/// The process number behind the name in brackets.
fn pid(decision: &str) -> u32 {
    let name = decision.rsplit_once(')').unwrap().0.rsplit_once('(').unwrap().1;
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

/// That each pick was followed by what is said of it, and otherwise by one of `others`; returns how
/// many by a switch.
fn check_picks(text: &str, others: &[&str]) -> usize {
    let switches = switches(text);
    let picks = decisions(text, "pick_next");
    let mut switched = 0;
    for (at, cpu, what) in picks.iter().filter(|(.., what)| *what != "nothing") {
        if what.contains(", switched to after ") {
            let (_, after) = what.rsplit_once(", switched to after ").unwrap();
            let then = at + Span::parse(after.split(',').next().unwrap()).unwrap().0;
            let is_there =
                |switch: &Switch| (switch.at, switch.cpu, switch.next) == (then, *cpu, pid(what));
            assert!(switches.iter().any(is_there), "{at} CPU {cpu}: {what}");
            let is_between =
                |(other, on, _): &&(u64, u32, &str)| on == cpu && (at + 1..then).contains(other);
            assert_eq!(picks.iter().find(is_between), None, "{at} CPU {cpu}: {what}");
            switched += 1;
        } else if what.contains(", went on") {
            let before = switches.iter().rev().find(|switch| switch.cpu == *cpu && switch.at < *at);
            assert_eq!(before.map(|switch| switch.next), Some(pid(what)), "{at} CPU {cpu}: {what}");
        } else {
            let is_known = others.iter().any(|other| what.ends_with(other));
            assert!(is_known, "{at} CPU {cpu}: {what}");
        }
    }
    assert!(switched * 2 > picks.len(), "{switched} of {} picks", picks.len());
    switched
}

/// In the kernel, what blocks is put back, and is what the CPU then switches from; so tasks of the
/// log are those of the kernel. What was picked ran, and importers read all of it.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn quick_picks_are_followed_by_switches() {
    for machine in ["1 cpu", "2 cores x 2 threads"] {
        let Some(outcome) = run(&boot("gfs", machine)) else { return };
        let text = text(&outcome);
        assert!(check_picks(&text, &[", not run"]) > 40);
        let switches = switches(&text);
        let mut blocked = 0;
        for (at, cpu, what) in decisions(&text, "put_prev") {
            if what.contains(", Blocked (") {
                let mut later = switches.iter().filter(|switch| switch.cpu == cpu);
                let next = later.find(|switch| switch.at >= at).unwrap();
                assert_eq!((next.prev, next.state), (pid(what), State::Blocked), "{at}: {what}");
                blocked += 1;
            }
        }
        assert!(blocked > 10, "{blocked}");
        let recording = Recording::read(text.as_bytes()).unwrap();
        assert_eq!(recording.switches(), switches.len());
        let model = recording.replay(Softirqs::ByEvidence).model;
        let missing = model.warnings.iter().find(|warning| warning.contains("missing"));
        assert_eq!(missing, None);
    }
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn cpus_that_come_and_go_are_in_it() {
    let command = "cd /sys/devices/system/cpu/cpu1; echo 0 > online; sleep 0.01; echo 1 > online";
    let mut boot = boot("cfs", "2 cpus");
    boot.orders.program = "shell".into();
    boot.orders.arguments = vec![("command".into(), command.into())];
    let Some(outcome) = run(&boot) else { return };
    let text = text(&outcome);
    let policys: Vec<_> = decisions(&text, "set_online").iter().map(|(_, cpu, _)| *cpu).collect();
    assert_eq!(policys, [1, 1]);
    let kernels = text.lines().filter(|line| line.contains(": cpuhp_enter: cpu: 0001 ")).count();
    assert!(kernels >= 2, "{kernels}");
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn an_agents_picks_are_followed_by_switches() {
    for machine in ["1 cpu", "4 cpus"] {
        let mut boot = boot("cfs", machine);
        boot.place = Place::Agent;
        // Its answers may come too late, and it is ended with what is on its way.
        let others = [", not run", ", taken back", ", overtaken", ", unknown"];
        let Some(outcome) = run(&boot) else { return };
        assert!(check_picks(&text(&outcome), &others) > 40);
    }
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn two_boots_give_the_same_traces() {
    let boot = boot("eevdf", "1 cpu");
    let (Some(first), Some(second)) = (run(&boot), run(&boot)) else { return };
    assert_eq!(text(&first), text(&second));
    let perfetto = |outcome: &Outcome| {
        let mut writer = PerfettoWriter::new(Vec::new());
        events::tell(&outcome.events, Some(&outcome.logs[0]), &mut writer).unwrap();
        writer.finish(Time::ZERO).unwrap()
    };
    let trace = perfetto(&first);
    assert!(trace == perfetto(&second));
    for name in [&b"Policy"[..], b"CPUs", b"switched to", b"init-1"] {
        assert!(trace.windows(name.len()).any(|part| part == name));
    }
}
