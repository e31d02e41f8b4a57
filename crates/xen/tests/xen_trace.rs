//! Traces of real boots: what Xen has recorded of vCPUs, and between that what the policy decided.
//! `cargo xtask hosts xen` runs these.

use anysched_core::{Machine, Span, Time};
use anysched_host::Clock;
use anysched_qemu::Outcome;
use anysched_trace::ftrace::FtraceWriter;
use anysched_trace::perfetto::PerfettoWriter;
use anysched_workload::import::ftrace::line::{Fields, Line, parse, time};
use anysched_workload::import::ftrace::{Recording, Softirqs};
use anysched_xen::{Boot, BootError, Image, Sources, events};
use std::io::Write;
use std::sync::OnceLock;

/// If there is a Xen to be had today; if not, that is said in capitals.
fn image() -> Option<&'static Image> {
    static IMAGE: OnceLock<Option<Image>> = OnceLock::new();
    let build = || match Sources::find(&mut |_| ()) {
        Err(error @ BootError::Unavailable { .. }) => {
            let said = format!("NO XEN THAT FITS CAN BE HAD: NOTHING IS TESTED\n{error}\n");
            // Not by `eprintln`, which tests keep to themselves.
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            None
        }
        sources => {
            let image = sources.and_then(|found| Image::build(&found, false, &mut |_| ()));
            Some(image.unwrap_or_else(|error| panic!("{error}")))
        }
    };
    IMAGE.get_or_init(build).as_ref()
}

fn boot(scheduler: &str, program: &str, arguments: &[(&str, &str)]) -> Boot {
    let mut boot = Boot::new(scheduler, program);
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    boot.orders.arguments = arguments.iter().map(owned).collect();
    (boot.orders.events, boot.orders.record) = (true, !scheduler.starts_with("stock-"));
    boot
}

/// Domains that wake each other and sleep, beside one that computes.
fn sleepers(scheduler: &str, cpus: usize) -> Boot {
    let arguments = [("l", "60"), ("hogs", "3"), ("work_ns", "50000")];
    let mut boot = boot(scheduler, "cyclictest", &arguments);
    boot.machine = Machine::flat(cpus).unwrap();
    boot
}

fn run(boot: &Boot) -> Option<Outcome> {
    let image = image()?;
    Some(boot.run(image, &mut |_| ()).unwrap_or_else(|error| panic!("{error}")))
}

fn log(outcome: &Outcome) -> Option<&[u8]> {
    outcome.logs.first().map(Vec::as_slice)
}

fn text(outcome: &Outcome) -> String {
    let mut writer = FtraceWriter::new(Vec::new(), outcome.events.len());
    events::tell(&outcome.events, log(outcome), &|_| None, &mut writer).unwrap();
    String::from_utf8(writer.finish(Time::ZERO).unwrap()).unwrap()
}

fn perfetto(outcome: &Outcome) -> Vec<u8> {
    let mut writer = PerfettoWriter::new(Vec::new());
    events::tell(&outcome.events, log(outcome), &|_| None, &mut writer).unwrap();
    writer.finish(Time::ZERO).unwrap()
}

/// A switch of Xen's.
struct Switch {
    at: u64,
    cpu: u32,
    next: u32,
}

fn switches(text: &str) -> Vec<Switch> {
    let switch = |line| match parse(line).unwrap() {
        Line::Event(head, Fields::Switch { next, .. }) => {
            Some(Switch { at: head.time, cpu: head.cpu, next: next.pid })
        }
        _ => None,
    };
    text.lines().filter_map(switch).collect()
}

/// The picks in `text`: when, on which pCPU, and the rest.
fn picks(text: &str) -> Vec<(u64, u32, &str)> {
    let pick = |line| {
        let (_, rest): (_, &str) = str::split_once(line, "anysched: pick_next CPU ")?;
        let (cpu, rest) = rest.split_once(": ")?;
        Some((time(line)?, cpu.parse().ok()?, rest))
    };
    text.lines().filter_map(pick).collect()
}

/// The process number behind the name in brackets.
fn pid(pick: &str) -> u32 {
    let name = pick.rsplit_once(')').unwrap().0.rsplit_once('(').unwrap().1;
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

/// That each pick was followed by the switch that Xen has recorded, or the pCPU went on with what
/// Xen says that it ran. Returns how many were followed by a switch.
fn check_picks(text: &str) -> usize {
    let switches = switches(text);
    let mut switched = 0;
    let picks = picks(text);
    let last = picks.len().saturating_sub(1);
    for (number, (at, cpu, what)) in picks.iter().enumerate() {
        if *what == "nothing" || what.ends_with(", not run") {
            continue;
        }
        if let Some((_, after)) = what.rsplit_once(", switched to after ") {
            let then = at + Span::parse(after.split(',').next().unwrap()).unwrap().0;
            let is_it =
                |switch: &Switch| (switch.at, switch.cpu, switch.next) == (then, *cpu, pid(what));
            assert!(switches.iter().any(is_it), "{at} CPU {cpu}: {what}");
            switched += 1;
        } else if what.contains(", went on") {
            // The policy's time stands still where a pCPU's own is behind: then the switch to what
            // went on has the same.
            let here = || switches.iter().filter(|switch| switch.cpu == *cpu);
            let before = here().rfind(|switch| switch.at < *at);
            let mut runs = here().filter(|switch| switch.at == *at).chain(before);
            assert!(runs.any(|switch| switch.next == pid(what)), "{at} CPU {cpu}: {what}");
        } else {
            // The log ends where dom0 has Xen send it, which runs at that time.
            assert!(number == last && what.ends_with(", unknown"), "{at} CPU {cpu}: {what}");
        }
    }
    switched
}

/// What the policy picked is what Xen says that ran, and importers read all of it.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn quick_picks_are_followed_by_switches() {
    let Some(outcome) = run(&sleepers("credit", 2)) else { return };
    let text = text(&outcome);
    assert!(check_picks(&text) > 50);
    let recording = Recording::read(text.as_bytes()).unwrap();
    assert_eq!(recording.switches(), switches(&text).len());
    let model = recording.replay(Softirqs::ByEvidence).model;
    assert_eq!(model.warnings.iter().find(|warning| warning.contains("missing")), None);
    for boost in ["|pri|0", "|pri|-1"] {
        assert!(text.contains(boost), "{boost}");
    }
}

/// Where instructions are counted, a trace is the same again, to the byte.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn a_trace_repeated_is_the_same() {
    let boot = sleepers("credit", 2);
    let Some(outcome) = run(&boot) else { return };
    assert!(perfetto(&outcome) == perfetto(&run(&boot).unwrap()));
}

/// Under other rules, on one pCPU and on several that run at the same time.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn picks_of_other_policies_are_followed_by_switches() {
    for (policy, cpus, clock) in [
        ("credit2", 1, Clock::COUNTED),
        ("rtds", 4, Clock::COUNTED),
        ("rr", 4, Clock::Parallel),
        ("cfs", 2, Clock::Parallel),
    ] {
        let mut boot = sleepers(policy, cpus);
        boot.clock = clock;
        let Some(outcome) = run(&boot) else { return };
        let switched = check_picks(&text(&outcome));
        assert!(switched > 50, "{policy} on {cpus}: {switched}");
    }
}

/// Of Xen's own schedulers there is what Xen records, and of Credit which vCPUs it boosts.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn xens_own_schedulers_are_traced() {
    for own in ["stock-credit", "stock-credit2", "stock-rtds", "stock-null"] {
        // The last has a pCPU for each vCPU.
        let cpus = if own == "stock-null" { 8 } else { 1 };
        let Some(outcome) = run(&sleepers(own, cpus)) else { return };
        let text = text(&outcome);
        assert!(switches(&text).len() > 120, "{own}: {}", switches(&text).len());
        assert!(picks(&text).is_empty());
        for name in ["dom0/0", "cyclictest/0", "hog3/0"] {
            assert!(text.contains(&format!("next_comm={name} ")), "{own}: {name}");
        }
        assert_eq!(text.contains("|boost|1"), own == "stock-credit", "{own}");
    }
}

/// A vCPU that computes ends up on the pCPU that it prefers, under our policies as under Xen's own.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn vcpus_run_where_they_prefer_to() {
    for scheduler in ["credit", "stock-credit", "credit2", "stock-credit2"] {
        for cpu in [0, 1] {
            let mask = (1 << cpu).to_string();
            let arguments =
                [("domains", "1"), ("duration_ns", "300000000"), ("preferred", mask.as_str())];
            let mut boot = boot(scheduler, "hog", &arguments);
            boot.machine = Machine::flat(2).unwrap();
            let Some(outcome) = run(&boot) else { return };
            let text = text(&outcome);
            let last = text.lines().rfind(|line| line.contains("next_comm=hog1/0 ")).unwrap();
            // Where dom0 was when it told what the vCPU prefers, the vCPU could not go at once.
            assert!(last.contains(&format!("[{cpu:03}]")), "{scheduler} on {cpu}: {last}");
        }
    }
}

/// vCPUs are paused, and come and go with their domains and pCPUs, while dom0 reads small buffers
/// again and again: nothing is lost.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn storms_are_traced() {
    for cpus in [1, 4] {
        let pcpus = cpus.to_string();
        let arguments = [("duration_ns", "600000000"), ("pcpus", &pcpus), ("seed", "3")];
        let mut boot = boot("credit", "storm", &arguments);
        boot.machine = Machine::flat(cpus).unwrap();
        boot.trace_pages = Some(16);
        let Some(outcome) = run(&boot) else { return };
        assert!(check_picks(&text(&outcome)) > 100);
        let trace = perfetto(&outcome);
        for name in [&b"offline"[..], b"storm1/0", b"switched to", b"parked"] {
            assert!(trace.windows(name.len()).any(|part| part == name), "{name:?}");
        }
    }
}

/// Buffers that are full before dom0 comes to read them are not passed over in silence.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn lost_records_are_noticed() {
    // While one that yields has its turn among pCPUs that count instructions, dom0 has none.
    let mut boot = boot("stock-null", "yield", &[("count", "2000")]);
    boot.machine = Machine::flat(3).unwrap();
    boot.trace_pages = Some(1);
    let Some(outcome) = run(&boot) else { return };
    let mut writer = PerfettoWriter::new(Vec::new());
    let error = events::tell(&outcome.events, None, &|_| None, &mut writer).unwrap_err();
    assert!(error.contains("found no room in its buffer"), "{error}");
}

/// Where there is no Xen of today's Debian, that of the one before is traced as well.
#[test]
#[ignore = "boots kernels: cargo xtask hosts xen"]
fn an_older_xen_is_traced_too() {
    let sources = Sources::find_oldest(&mut |_| ()).unwrap();
    let image = Image::build(&sources, false, &mut |_| ()).unwrap();
    for scheduler in ["credit", "stock-credit"] {
        let outcome = sleepers(scheduler, 2).run(&image, &mut |_| ()).unwrap();
        let text = text(&outcome);
        assert!(switches(&text).len() > 120, "{scheduler}: {}", switches(&text).len());
        assert_eq!(check_picks(&text) > 50, scheduler == "credit");
    }
}
