//! What users are told when an experiment cannot be used: the whole message, with the place.

use anysched_lab::Experiment;
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "question = \"Which is faster?\"\n";
const MACHINE: &str = "[machine]\ncpus = 2\n";
const BATCH: &str = "[[workload]]\nkind = \"batch\"\ntasks = 3\nservice = \"2ms\"\n";

/// The message for what `text` is refused with.
fn message(text: &str) -> String {
    // So that files which are not there are looked for where no others can appear.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("case.toml");
    let refused = Experiment::parse(text, &path).and_then(|experiment| experiment.plan());
    let error = match refused {
        Ok(_) => return "no error\n".to_string(),
        Err(error) => error,
    };
    let mut shown = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_width(100);
    handler.render_report(&mut shown, &error).unwrap();
    shown.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), "…")
}

/// A complete experiment but for `rest`.
fn with(rest: &str) -> String {
    format!("{HEAD}policy = \"fcfs\"\n{MACHINE}{BATCH}{rest}")
}

/// One whose only load is `load`.
fn load(load: &str) -> String {
    format!("{HEAD}policy = \"fcfs\"\n{MACHINE}[[workload]]\n{load}\n")
}

/// One whose machine has `keys`.
fn machine(keys: &str) -> String {
    format!("{HEAD}policy = \"fcfs\"\n[machine]\n{keys}\n{BATCH}")
}

/// One that sweeps `keys`.
fn sweep(keys: &str) -> String {
    format!("{HEAD}{MACHINE}{BATCH}[sweep]\n{keys}\n")
}

/// One with a claim on two policies and two numbers of CPUs.
fn claim(keys: &str) -> String {
    let sweep = "policy = [\"fcfs\", \"rr\"]\n\"machine.cpus\" = [1, 2]";
    format!("{HEAD}{MACHINE}{BATCH}[sweep]\n{sweep}\n[[claim]]\nid = \"1\"\ntext = \"t\"\n{keys}\n")
}

fn file_cases() -> Vec<(&'static str, String)> {
    vec![
        ("not TOML", format!("{HEAD}[machine\ncpus = 2")),
        ("a key twice", with("[machine]\ntick = \"1ms\"")),
        ("no question", MACHINE.to_string()),
        ("unknown table", with("[machin]\ncpus = 3")),
        ("no policy", format!("{HEAD}{MACHINE}{BATCH}")),
        ("no machine", format!("{HEAD}policy = \"fcfs\"\n{BATCH}")),
        ("no load", format!("{HEAD}policy = \"fcfs\"\n{MACHINE}")),
        ("unknown key of the machine", machine("cpu = 2")),
        ("no CPUs", machine("tick = \"1ms\"")),
        ("too many CPUs", machine("cpus = 2000")),
        ("CPUs as text", machine("cpus = \"two\"")),
        ("CPUs twice", machine("cpus = 2\ntopology = \"2 cores\"")),
        ("topology", machine("topology = \"2 sockets x 4 cores\"")),
        ("time without unit", machine("cpus = 2\ncontext_switch = 1500")),
        ("no limit", machine("cpus = 2\ncontext_switch = \"none\"")),
        ("unknown unit", machine("cpus = 2\ncontext_switch = \"1.5usec\"")),
        ("migration", machine("cpus = 2\nmigration = { l3 = \"1us\" }")),
        ("smt", machine("cpus = 2\nsmt = 1.5")),
        ("capacities", machine("cpus = 2\ncapacity = [1024]")),
        ("a capacity", machine("cpus = 2\ncapacity = [1024, 0]")),
        ("hotplug", machine("cpus = 2\nhotplug = [{ at = \"1s\", cpu = 2, online = false }]")),
        ("duration", format!("duration = 0\n{}", with(""))),
        ("report", with("[report]\ncolumns = [\"waiting_time_ns_avg\"]")),
        ("report without stat", with("[report]\ncolumns = [\"waiting_time_ns\"]")),
        ("scenario twice", with("[[scenario]]\nname = \"a\"\n[[scenario]]\nname = \"a\"")),
        (
            "policy of a scenario",
            with("[[scenario]]\nname = \"a\"\n[scenario.policy.rr]\nquantum = \"1ms\""),
        ),
        ("a date", format!("seed = 2026-01-01\n{}", with(""))),
    ]
}

fn load_cases() -> Vec<(&'static str, String)> {
    vec![
        ("unknown kind", load("kind = \"bach\"")),
        ("no kind", load("tasks = 3")),
        ("missing key", load("kind = \"batch\"\ntasks = 3")),
        ("key of another kind", load("kind = \"batch\"\ntasks = 3\nload = 0.5\nservice = \"1ms\"")),
        ("distribution", load("kind = \"batch\"\ntasks = 3\nservice = \"expo(10ms)\"")),
        ("distribution without unit", load("kind = \"batch\"\ntasks = 3\nservice = \"exp(10)\"")),
        ("service as a number", load("kind = \"batch\"\ntasks = 3\nservice = 10")),
        ("no tasks", load("kind = \"batch\"\ntasks = 0\nservice = \"10ms\"")),
        ("negative", load("kind = \"batch\"\ntasks = -3\nservice = \"10ms\"")),
        ("how often", load("kind = \"open\"\ntasks = 9\nservice = \"10ms\"")),
        (
            "how often twice",
            load("kind = \"open\"\ntasks = 9\nservice = \"10ms\"\nload = 1\nrate = 2"),
        ),
        ("endless", load("kind = \"open\"\nservice = \"10ms\"\nload = 0.9")),
        ("affinity", load("kind = \"hog\"\naffinity = \"2-3\"\nuntil = \"1s\"")),
        ("missing file", load("kind = \"trace\"\nfile = \"no-such.txt.gz\"")),
        ("wrong file", load("kind = \"trace\"\nfile = \"../Cargo.toml\"")),
        ("task list", load("kind = \"tasks\"\nfile = \"../Cargo.toml\"")),
    ]
}

fn sweep_cases() -> Vec<(&'static str, String)> {
    vec![
        ("unknown policy", sweep("policy = [\"fcfs\", \"fifo\"]")),
        ("unknown parameter", sweep("policy = [{ name = \"rr\", quantun = \"10ms\" }]")),
        ("parameter's value", sweep("policy = [{ name = \"rr\", quantum = 10 }]")),
        ("impossible parameter", sweep("policy = [{ name = \"rr\", quantum = \"0\" }]")),
        ("two of one label", sweep("policy = [\"rr\", { name = \"rr\", label = \"rr\" }]")),
        ("own machine", sweep("policy = [{ name = \"rr\", machine = { cpus = 3 } }]")),
        (
            "part of an own machine",
            sweep("policy = [{ name = \"rr\", label = \"a\", machine = { cpus = 0 } }]"),
        ),
        ("axis that is none", sweep("policy = \"rr\"\n\"seed\" = [1, 2]")),
        ("policy's parameter as axis", sweep("policy = \"rr\"\n\"rr.quantum\" = [\"1ms\"]")),
        ("unknown path", sweep("policy = \"rr\"\n\"machine.cpuss\" = [1, 2]")),
        ("no such load", sweep("policy = \"rr\"\n\"workload.1.tasks\" = [1, 2]")),
        ("value of an axis", sweep("policy = \"rr\"\n\"machine.cpus\" = [1, 2, 0]")),
        ("value inside a load", sweep("policy = \"rr\"\nworkload.0.service = [\"1ms\", \"1\"]")),
        ("no list", sweep("policy = \"rr\"\n\"machine.cpus\" = 4")),
        ("the same value twice", sweep("policy = \"rr\"\n\"machine.cpus\" = [4, 4]")),
        ("no seeds", sweep("policy = \"rr\"\nseeds = 0")),
        ("too many runs", sweep("policy = [\"rr\", \"fcfs\"]\nseeds = 900_000")),
    ]
}

fn claim_cases() -> Vec<(&'static str, String)> {
    vec![
        ("no expectation", claim("")),
        ("unknown label", claim("expect = \"rr.makespan_ns < cfs.makespan_ns\"")),
        ("unknown metric", claim("expect = \"rr.makespan_ms < fcfs.makespan_ns\"")),
        ("no comparison", claim("expect = \"rr.makespan_ns - fcfs.makespan_ns\"")),
        ("syntax", claim("expect = \"rr.makespan_ns < 0.9 fcfs.makespan_ns\"")),
        ("row that is none", claim("expect = \"1 < 2\"\nwhere = { \"machine.cpus\" = 3 }")),
        ("axis that is none", claim("expect = \"1 < 2\"\nwhere = { scenario = \"a\" }")),
        ("row of a reference", claim("expect = \"rr{machine.cpus=4}.makespan_ns < 1\"")),
        ("verdict", claim("expect = \"1 < 2\"\nverdict = \"true\"")),
        ("no reason", claim("verdict = \"not testable in simulation\"")),
        ("reading", claim("expect = \"1 < 2\"\nverdict = \"holds only under the stated reading\"")),
    ]
}

#[test]
fn messages() {
    let mut all = String::new();
    for (part, cases) in [
        ("file", file_cases()),
        ("load", load_cases()),
        ("sweep", sweep_cases()),
        ("claim", claim_cases()),
    ] {
        for (name, text) in cases {
            let message = message(&text);
            assert_ne!(message, "no error\n", "{part}: {name}");
            writeln!(all, "=== {part}: {name}\n{}\n", message.trim_end()).unwrap();
        }
    }
    let trimmed: Vec<&str> = all.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(trimmed.join("\n"));
}

#[test]
fn the_experiment_of_the_cases_is_right_but_for_their_faults() {
    for text in [with(""), machine("cpus = 2"), sweep("policy = \"rr\"")] {
        assert_eq!(message(&text), "no error\n");
    }
    assert_eq!(message(&claim("expect = \"1 < 2\"")), "no error\n");
    assert_eq!(message(&load("kind = \"hog\"\nuntil = \"1s\"")), "no error\n");
}

#[test]
fn places_are_lines_and_columns_in_characters() {
    let line = "policy = { label = \"éé\", name = \"?\" }";
    let column = line.chars().take_while(|&c| c != '?').count();
    let text = format!("{HEAD}{line}\n");
    let error = Experiment::parse(&text, Path::new("dir/x.toml")).unwrap_err();
    assert_eq!(error.location(), Some((2, column)));
    let plain = error.to_plain();
    let expected = format!("dir/x.toml:2:{column}: no policy is called `?`; there are `fcfs`, ");
    assert!(plain.starts_with(&expected), "{plain}");
    let error = Experiment::parse("", Path::new("x.toml")).unwrap_err();
    assert_eq!(error.location(), None);
    assert!(error.to_plain().starts_with("x.toml: no `question`; "), "{}", error.to_plain());
}

/// Cutting a good file anywhere, or replacing a character, gives an experiment or an error.
#[test]
fn no_text_is_too_broken() {
    let good = format!(
        "{}[[scenario]]\nname = \"s\"\n[sweep]\n\"machine.cpus\" = [1, 2]\nseeds = 2\n[[claim]]\n\
         id = \"1\"\ntext = \"t\"\nexpect = \"fcfs.makespan_ns <= (1 + 2) * 3ms\"\n",
        with("")
    );
    let check = |text: &str| {
        if let Ok(experiment) = Experiment::parse(text, Path::new("x.toml")) {
            let _ = experiment.plan();
        }
    };
    for (index, c) in good.char_indices() {
        check(&good[..index]);
        for new in ['[', '"', '0', '-', '.', '\u{0}', 'é'] {
            check(&format!("{}{new}{}", &good[..index], &good[index + c.len_utf8()..]));
        }
    }
}
