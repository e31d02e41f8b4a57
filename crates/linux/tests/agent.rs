//! Real boots of Linux with policies in an agent: that every policy decides there, and as it does
//! here; and that the machine outlives an agent that fails. `cargo xtask hosts` runs these.

mod guest;

use anysched_core::Machine;
use anysched_host::{Clock, InstructionTime, Place};
use anysched_linux::{Boot, BootError, Image};
use anysched_oracle::kernel::replayed;
use anysched_policies::{POLICIES, policy};
use anysched_qemu::Outcome;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

fn image() -> &'static Image {
    guest::image().expect("a kernel that fits")
}

fn boot(policy: &str, program: &str, arguments: &[(&str, &str)], cpus: usize) -> Boot {
    let mut boot = guest::boot(policy, program, arguments);
    boot.checked = true;
    boot.place = Place::Agent;
    boot.machine = Machine::flat(cpus).unwrap();
    boot.patience = Duration::from_secs(120);
    boot
}

fn value(outcome: &Outcome, name: &str) -> u64 {
    outcome.value(name).unwrap_or_else(|| panic!("{name} is missing: {:?}", outcome.values))
}

/// Runs `boot` on `image`; under a policy that needs a rehearsal, that first.
fn run(image: &Image, mut boot: Boot) -> Result<Outcome, String> {
    let info = policy(&boot.orders.policy).ok_or("no such policy")?;
    let once = |boot: &Boot| boot.run(image, &mut |_| ()).map_err(|error| error.to_string());
    guest::rehearse(info, &mut boot, |boot| once(boot).map(Some))?;
    once(&boot)
}

/// A program and its arguments.
type Program = (&'static str, &'static [(&'static str, &'static str)]);

const YIELD: Program = ("yield", &[("scale", "1000")]);

/// Every policy, held to its contract, runs a program to its end on this many CPUs and decides in the
/// agent what it decides here. Those that may starve tasks run one whose tasks give way: beside
/// `program` the kernel's own threads would starve, until its watchdog ends the policy.
fn every_policy_decides(cpus: usize, program: Program) {
    let image = image();
    let mut wrong = Vec::new();
    for info in POLICIES {
        let starves = (info.nature)(&[]).is_ok_and(|nature| nature.starves);
        let (program, arguments) = if starves { YIELD } else { program };
        let mut boot = boot(info.name, program, arguments, cpus);
        boot.orders.record = true;
        let picks = run(image, boot).and_then(|outcome| {
            let [log] = &outcome.logs[..] else {
                return Err(format!("{} logs", outcome.logs.len()));
            };
            let least: u64 = outcome.tasks.iter().filter_map(|task| task.dispatches).sum();
            Ok((replayed(log, policy)?, least))
        });
        match picks {
            Ok((picks, least)) if picks > 0 && picks >= least => {}
            Ok((picks, least)) => wrong.push(format!("{}: {picks} picks of {least}", info.name)),
            Err(why) => wrong.push(format!("{}: {why}", info.name)),
        }
    }
    assert!(wrong.is_empty(), "{} policies:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn every_policy_decides_in_the_agent_as_it_does_here() {
    every_policy_decides(1, YIELD);
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn every_policy_decides_for_several_cpus() {
    every_policy_decides(4, ("latency", &[("duration_ns", "400000000")]));
}

/// However an agent fails, the kernel's own scheduler is back within a second, with all tasks, and
/// the next agent is as good as the first. What it has died of is said.
fn machine_outlives_agents(cpus: usize, kinds: &[(&str, &str)]) {
    let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    let boot = boot("stock-eevdf", "agent-fault", &[("kinds", &names.join(","))], cpus);
    let mut lines = Vec::new();
    let outcome = boot.run(image(), &mut |line| lines.push(line.to_string()));
    let outcome = outcome.unwrap_or_else(|error| panic!("{cpus} CPUs: {error}\n{lines:#?}"));
    for (kind, said) in kinds {
        let back = value(&outcome, &format!("{kind}_back_after_ns"));
        assert!(back < SECOND, "{kind} on {cpus} CPUs: {back} ns\n{lines:#?}");
        let progress = value(&outcome, &format!("{kind}_progress_min_ns"));
        assert!(progress > 0, "{kind} on {cpus} CPUs: a task is lost\n{lines:#?}");
        let begin = format!("{kind}: ");
        let line = lines.iter().find(|line| line.starts_with(&begin));
        assert!(line.is_some_and(|line| line.contains(said)), "{kind}: {line:?}\n{lines:#?}");
    }
}

const NO_ANSWER: &str = "the agent has not answered for 300 ms";

#[test]
#[ignore = "boots a kernel: cargo xtask ci"]
fn quick_a_machine_outlives_its_agents() {
    machine_outlives_agents(
        1,
        &[
            ("kill", "it has left no reason"),
            ("stop", NO_ANSWER),
            ("loop", NO_ANSWER),
            ("panic", "the policy panicked: asked to panic ("),
            ("contract", "slice"),
            ("memory", "the policy's memory is used up: "),
        ],
    );
}

#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_machine_with_several_cpus_outlives_its_agents() {
    let kinds = [("kill", "it has left no reason"), ("stop", NO_ANSWER), ("loop", NO_ANSWER)];
    machine_outlives_agents(4, &kinds);
}

/// While an agent stands still for a tenth of a second, CPUs help themselves; it decides again after
/// that, and nothing waits for ever behind what it gives a CPU.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn an_agent_that_pauses_goes_on() {
    for (policy, cpus) in [("cfs", 1), ("rr", 4), ("cfs", 4), ("credit2", 4)] {
        let arguments = [("kinds", "pause"), ("policy", policy)];
        let boot = boot("stock-eevdf", "agent-fault", &arguments, cpus);
        let outcome = boot.run(image(), &mut |_| ());
        let outcome = outcome.unwrap_or_else(|error| panic!("{policy} on {cpus} CPUs: {error}"));
        let progress = value(&outcome, "pause_progress_min_ns");
        assert!(progress > 0, "{policy} on {cpus} CPUs: a task does not run");
    }
}

/// Tasks that change class, CPUs and niceness, and CPUs that come and go, stall nobody: a task that
/// comes back from another class is the agent's again, none is moved to a CPU that it has just lost,
/// and what a CPU wakes that goes offline reaches the agent. The last two take seconds of storm.
#[test]
#[ignore = "boots a kernel: cargo xtask hosts"]
fn storms_stall_nobody() {
    let arguments = [("duration_ns", "32000000000"), ("hotplug", "1")];
    let mut storm = boot("cfs", "storm", &arguments, 4);
    storm.patience = Duration::from_secs(300);
    storm.clock = Clock::Instructions(InstructionTime::parse("8ns").unwrap());
    let outcome = storm.run(image(), &mut |_| ()).unwrap_or_else(|error| panic!("{error}"));
    for change in ["forks", "affinity_changes", "nice_changes", "policy_changes", "hotplugs"] {
        assert!(value(&outcome, change) > 0, "no {change}");
    }
    assert_eq!(value(&outcome, "stalled"), 0);
}

/// What a boot refuses that cannot be, or ends with its reason.
fn refused(boot: &Boot) -> String {
    match boot.run(image(), &mut |_| ()).unwrap_err() {
        BootError::Refused { why } => why,
        other => panic!("{other}"),
    }
}

/// A policy that fails ends the program's boot with its reason.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn what_goes_wrong_is_said() {
    for (kind, said) in [
        ("panic", "the policy panicked: asked to panic ("),
        ("idle", "failed to run for "),
        ("no-such", "there is no fault \"no-such\""),
    ] {
        // Its tasks block all the time, so that what was picked last is not ready for long.
        let mut boot = boot("cfs", "cost", &[("n", "1000")], 1);
        boot.fault = Some((kind.into(), 300));
        boot.checked = false;
        let why = refused(&boot);
        assert!(why.contains(said), "{kind}: {why}");
    }
    let mut wrong = boot("cfs", "latency", &[], 1);
    wrong.orders.settings = vec![("no-such".into(), "1".into())];
    let why = refused(&wrong);
    assert!(why.starts_with("policy cfs: ") && why.contains("no-such"), "{why}");
}

/// A log that has lost decisions is none.
#[test]
#[ignore = "boots kernels: cargo xtask hosts"]
fn a_log_with_losses_is_refused() {
    for place in [Place::Agent, Place::Kernel] {
        let mut boot = boot("rr", "yield", &[("scale", "1000")], 1);
        (boot.place, boot.checked) = (place, false);
        (boot.orders.record, boot.log_bytes) = (true, 4096);
        let why = refused(&boot);
        let said = " decisions found no room in the log's buffer of 4096 bytes: ";
        assert!(why.contains(said), "{place:?}: {why}");
    }
}
