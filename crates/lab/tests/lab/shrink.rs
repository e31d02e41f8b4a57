//! `anysched shrink`: policies with planted bugs, under loads in which these hide.

/// Tests that `shrink` has written. They fail as long as there is what they were written for, so
/// that they are compiled here, but not run: what is in a function is no test of a crate.
#[allow(dead_code, unnameable_test_items)]
fn written() {
    #[path = "shrunk/calls.rs.golden"]
    mod calls;
    #[path = "shrunk/differs.rs.golden"]
    mod differs;
    #[path = "shrunk/experiment.rs.golden"]
    mod experiment;
}

use anysched_core::checked::{OnViolation, Rules};
use anysched_core::recorder::{LogSink, Recorder};
use anysched_core::registry::{Nature, PolicyInfo, Settings};
use anysched_core::{Checked, Machine, ParamError, Scheduler, Span, Time};
use anysched_lab::shrink::{
    Fails, Limits, LogFails, ShrinkError, Shrinker, Shrunk, failure, shrink_log,
};
use anysched_lab::swarm::random;
use anysched_lab::{Experiment, add_policies};
use anysched_oracle::planted::{Bug, Simple};
use anysched_oracle::random as random_host;
use anysched_sim::Simulator;
use anysched_workload::rng::Rng;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

/// A policy with each bug that breaks the contract, or lets a task wait, in what a host does at
/// random; what shows it, and how it shows in an experiment.
macro_rules! planted {
    ($($name:literal $bug:ident: $fails:literal, $way:literal;)*) => {
        static PLANTED: &[PolicyInfo] = &[$(PolicyInfo {
            name: $name,
            summary: "planted",
            source: "a test",
            clairvoyant: false,
            order: &[],
            seed: None,
            native: &[],
            is_default_guest: false,
            groupings: None,
            spaces: &[],
            baseline: None,
            params: Vec::new,
            nature,
            rehearsal,
            build: |machine, settings| build(Bug::$bug, machine, settings),
        },)*];
        const BUGS: &[(&str, &str, &str)] = &[$(($name, $fails, $way),)*];
        const KINDS: &[Bug] = &[$(Bug::$bug,)*];
    };
}

planted! {
    "right" None: "contract", "";
    "trusts-one-kick" TrustsOneKick: "contract", "NoKick";
    "kicks-the-lowest" KicksTheLowest: "contract", "NoKick";
    "forgets-kick-of-put" ForgetsKickOfPut: "contract", "NoKick";
    "forgets-kick-of-online" ForgetsKickOfOnline: "contract", "NoKick";
    "last-first" LastFirst: "last-first.waiting_time_ns_max > 15ms", "claim";
    "exit-takes-two" ExitTakesTwo: "contract", "IdleBesideReady";
    "runs-twice" RunsTwice: "contract", "DoubleRun";
    "ignores-binding" IgnoresBinding: "contract", "NotAllowed";
    "timer-in-the-past" TimerInThePast: "contract", "TimerStuck";
    "kicks-too-far" KicksTooFar: "contract", "KickedNoSuchCpu";
    // What a host has to do for these, the simulator does not.
    "forgets-kick-of-update" ForgetsKickOfUpdate: "log", "NoKick";
    "loses-resumed" LosesResumed: "log", "NoKick";
    "panics" Panics: "log", "panic";
}

fn nature(_: &[(&str, &str)]) -> Result<Nature, ParamError> {
    Ok(Nature {
        clairvoyant: false,
        rehearsed: false,
        work_conserving: true,
        starves: false,
        longest_wait: None,
    })
}

fn rehearsal(_: &[(&str, &str)]) -> Result<Option<Settings>, ParamError> {
    Ok(None)
}

fn build(
    bug: Bug,
    machine: &Machine,
    _: &[(&str, &str)],
) -> Result<Box<dyn Scheduler>, ParamError> {
    Ok(Box::new(Simple::new(bug, machine)))
}

/// Twenty tasks or more on eight CPUs, three of which come and go, with costs.
fn large(policy: &str, seed: u64) -> Experiment {
    add_policies(PLANTED);
    let mut model = (0..).map(|part| random::model(&mut Rng::numbered(seed, "large", part), 8));
    let model = model.find(|model| model.tasks.len() >= 20).unwrap();
    let rng = &mut Rng::stream(seed, "hotplug");
    let mut hotplug = String::new();
    for _ in 0..6 {
        let (at, cpu) = (Time(rng.below(100) * 1_000_000), 1 + rng.below(3));
        let (at, online) = (at.since(Time::ZERO), random::sometimes(rng, 2));
        hotplug += &format!("{{ at = \"{at}\", cpu = {cpu}, online = {online} }}, ");
    }
    let text = format!(
        "question = \"Is it right?\"\npolicy = \"{policy}\"\nduration = \"1s\"\n[machine]\n\
         cpus = 8\ntick = \"1ms\"\ncontext_switch = \"2us\"\nipi = \"1us\"\n\
         hotplug = [{hotplug}]\n[[workload]]\nkind = \"model\"\nfile = \"large.model\"\n"
    );
    let mut bytes = Vec::new();
    model.write(&mut bytes).unwrap();
    Experiment::parse(&text, Path::new("large.toml")).unwrap().with_file("large.model", &bytes)
}

fn shrunk(experiment: &Experiment, fails: &str, tries: u64) -> Result<Shrunk, ShrinkError> {
    let cancel = AtomicBool::new(false);
    let shrinker = Shrinker {
        host: &Simulator,
        fails: &Fails::parse(fails),
        only: (None, None),
        limits: Limits { time: None, tries, cancel: &cancel },
        progress: &|_, _| {},
    };
    shrinker.shrink(experiment, "small")
}

/// What was found, as it would be read.
fn read(found: &Shrunk) -> Experiment {
    let experiment = Experiment::parse(&found.toml, Path::new("small.toml")).unwrap();
    match &found.model {
        Some((name, text)) => experiment.with_file(name, text.as_bytes()),
        None => experiment,
    }
}

/// The first of the large experiments in which the bug shows, made small.
fn small(policy: &str, fails: &str, way: &str) -> Option<Shrunk> {
    let found = (0..40).find_map(|seed| {
        let experiment = large(policy, seed);
        let found = failure(&experiment, &Simulator, &Fails::parse(fails)).unwrap();
        found.is_some_and(|found| found.way == way).then(|| shrunk(&experiment, fails, 4_000))
    });
    found.map(Result::unwrap)
}

#[test]
fn every_planted_bug_becomes_small() {
    let mut wrong = Vec::new();
    for &(policy, fails, way) in BUGS[1..].iter().filter(|(_, fails, _)| *fails != "log") {
        let Some(found) = small(policy, fails, way) else {
            wrong.push(policy);
            println!("{policy}: it does not show");
            continue;
        };
        let Shrunk { before, after, tried, toml, model, .. } = &found;
        println!("{policy}: {before:?} to {after:?}, {tried} tries\n{toml}{model:?}\n");
        let is_small = after.tasks <= 3 && after.cpus <= 2;
        if !(found.complete && before.tasks >= 20 && before.cpus == 8 && is_small) {
            wrong.push(policy);
        }
        let again = failure(&read(&found), &Simulator, &Fails::parse(fails)).unwrap().unwrap();
        assert_eq!(again, found.failure, "{policy}: what is written fails alike");
        assert_eq!(again.way, way);
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn what_is_right_does_not_fail() {
    for seed in 0..40 {
        let said = shrunk(&large("right", seed), "contract", 4_000).unwrap_err().to_string();
        assert_eq!(said, "\"contract\": so fails none of 1 runs");
    }
}

/// A log that a test reads when the policy has panicked.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<u8>>>);

impl LogSink for Log {
    fn write(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

/// What a host has recorded that does at random what the contract lets it do, with twenty tasks on
/// eight CPUs, until the contract was broken.
fn recorded(bug: Bug, policy: &str, seed: u64) -> Option<Vec<u8>> {
    let machine = Machine::flat(8).unwrap();
    let load = random_host::Load {
        tasks: 20,
        burst: Span::from_us(300),
        pause: Span::from_us(700),
        pinned: true,
        hotplug: true,
    };
    let log = Log::default();
    let recorder = Recorder::new(Simple::new(bug, &machine), &machine, policy, &[], log.clone());
    let rules = Rules { on_violation: OnViolation::Collect, ..Rules::default() };
    let checked = Checked::new(recorder, &machine, rules);
    let mut host = random_host::Host::new(checked, &machine, load, seed);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        while host.picks < 2_000 {
            host.step();
            if !host.policy.violations().is_empty() {
                return true;
            }
        }
        false
    }));
    let log = log.0.take();
    ran.unwrap_or(true).then_some(log)
}

#[test]
fn logs_of_planted_bugs_become_short() {
    add_policies(PLANTED);
    let cancel = AtomicBool::new(false);
    let mut wrong = Vec::new();
    for (&(policy, ..), &bug) in BUGS.iter().zip(KINDS).skip(1) {
        let limits = Limits { time: None, tries: 4_000, cancel: &cancel };
        let Some(log) = (1..=20).find_map(|seed| recorded(bug, policy, seed)) else {
            // A wait is no breach.
            assert_eq!(bug, Bug::LastFirst, "{policy}: it does not show");
            continue;
        };
        let found = shrink_log(&log, LogFails::Contract, limits).unwrap();
        let [tasks, cpus, _] = found.after;
        println!("{policy}: {:?} to {:?}, {} tries", found.before, found.after, found.tried);
        println!("{}", found.test(LogFails::Contract, policy));
        if !found.complete || tasks > 3 || cpus > 2 {
            wrong.push(policy);
        }
        let again = shrink_log(&found.sequence.log(), LogFails::Contract, limits);
        assert_eq!(again.unwrap().failure, found.failure, "{policy}: what is written fails alike");
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// What stands in `shrunk`, compiled by [`written`], is what is written now. With
/// `INSTA_UPDATE=always`, as snapshots, it is replaced.
fn assert_written(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/shrunk").join(name);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, bytes).unwrap();
    }
    let there = std::fs::read(&path).unwrap();
    assert!(there == bytes, "{name} is another:\n{}", String::from_utf8_lossy(bytes));
}

#[test]
fn what_is_written_compiles() {
    add_policies(PLANTED);
    let fails = "last-first.waiting_time_ns_max > 15ms";
    let found = small("last-first", fails, "claim").unwrap();
    assert_written("experiment.rs.golden", found.test(&Fails::parse(fails)).as_bytes());
    let cancel = AtomicBool::new(false);
    let limits = Limits { time: None, tries: 4_000, cancel: &cancel };
    let log = (1..=20).find_map(|seed| recorded(Bug::LosesResumed, "loses-resumed", seed));
    let found = shrink_log(&log.unwrap(), LogFails::Contract, limits).unwrap();
    assert_written("calls.rs.golden", found.test(LogFails::Contract, "calls").as_bytes());
    // The same calls, said to be of another policy, which decides otherwise.
    let log = (1..=20).find_map(|seed| recorded(Bug::LosesResumed, "srpt", seed));
    let found = shrink_log(&log.unwrap(), LogFails::Differs, limits).unwrap();
    assert_written("differs.rs.golden", found.test(LogFails::Differs, "differs").as_bytes());
    assert_written("differs.log", &found.sequence.log());
}
