//! What users are told when an experiment cannot be used: the whole message, with the place.

use anysched_lab::Experiment;
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
    error.to_snippet(false).replace(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), "…")
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
        ("contention", machine("cpus = 2\ncontention = { core = -1 }")),
        ("capacities", machine("cpus = 2\ncapacity = [1024]")),
        ("a capacity", machine("cpus = 2\ncapacity = [1024, 0]")),
        ("hotplug", machine("cpus = 2\nhotplug = [{ at = \"1s\", cpu = 2, online = false }]")),
        ("duration", format!("duration = 0\n{}", with(""))),
        ("report", with("[report]\ncolumns = [\"waiting_time_ns_avg\"]")),
        ("report without stat", with("[report]\ncolumns = [\"waiting_time_ns\"]")),
        ("a count that none keeps", with("[report]\ncolumns = [\"policy.switches\"]")),
        (
            "a count of another name",
            with("[report]\ncolumns = [\"policy.switch\"]").replace("\"fcfs\"", "\"sedf\""),
        ),
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
        ("benchmark of nothing", load("kind = \"interbench\"\ntask = \"burn\"")),
        ("benchmark against nobody", load("kind = \"interbench\"\nburners = 0")),
        ("custom run", load("kind = \"interbench\"\ntask = \"custom\"\ncustom_run = \"1s\"")),
        ("cyclictest without end", load("kind = \"cyclictest\"")),
        ("no room", load("kind = \"hackbench\"\nbuffer = 0")),
        ("no case", load("kind = \"arceos-test\"")),
        ("unknown case", load("kind = \"arceos-test\"\ncase = \"equall\"")),
        (
            "lists of two lengths",
            load(
                "kind = \"arceos-test\"\ncase = \"equal\"\ngroups = [1, 2]\niterations = [1, 2, 3]",
            ),
        ),
        (
            "too few for the threads",
            load("kind = \"arceos-test\"\ncase = \"equal\"\nthreads = 3\ngroups = [1, 2]"),
        ),
        ("no groups", load("kind = \"arceos-test\"\ncase = \"equal\"\ngroups = []")),
        ("iteration", load("kind = \"arceos-test\"\ncase = \"equal\"\niteration = \"2 n\"")),
        ("no iteration", load("kind = \"arceos-test\"\ncase = \"equal\"\niteration = \"0ns\"")),
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
        (
            "part of a long value",
            sweep("policy = [{ name = \"pbg\", profile = \"0=1ms/1 1=2ms 2=3ms/1\" }]"),
        ),
        ("file of a value", sweep("policy = [{ name = \"pbg\", profile = \"@none.profile\" }]")),
        ("lacking value", sweep("policy = [{ name = \"pbg\", profile_source = \"given\" }]")),
        ("two of one label", sweep("policy = [\"rr\", { name = \"rr\", label = \"rr\" }]")),
        ("own machine", sweep("policy = [{ name = \"rr\", machine = { cpus = 3 } }]")),
        (
            "part of an own machine",
            sweep("policy = [{ name = \"rr\", label = \"a\", machine = { cpus = 0 } }]"),
        ),
        ("changes", sweep("policy = [{ name = \"gfs\", changes = \"1s\" }]")),
        ("a change", sweep("policy = [{ name = \"gfs\", changes = [\"1s\"] }]")),
        (
            "a change without time",
            sweep("policy = [{ name = \"gfs\", changes = [{ grouping = \"core\" }] }]"),
        ),
        (
            "a change of nothing",
            sweep("policy = [{ name = \"gfs\", changes = [{ at = \"1s\" }] }]"),
        ),
        (
            "what does not change",
            sweep("policy = [{ name = \"gfs\", changes = [{ at = \"1s\", threshold = 200 }] }]"),
        ),
        (
            "what changes to no value",
            sweep("policy = [{ name = \"gfs\", changes = [{ at = \"1s\", grouping = \"0-7\" }] }]"),
        ),
        (
            "a policy that does not change",
            sweep("policy = [{ name = \"rr\", changes = [{ at = \"1s\", quantum = \"1ms\" }] }]"),
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
        ("no reason", claim("verdict = \"not testable\"")),
        ("reading", claim("expect = \"1 < 2\"\nverdict = \"holds under the stated reading\"")),
        ("size of nothing", claim("expect = \"1 < 2\"\nsize = [1, 2]")),
        ("one size", claim("expect = \"1 < 2\"\nmeasure = \"rr.makespan_ns\"\nsize = 1")),
        ("no number", claim("expect = \"1 < 2\"\nmeasure = \"rr.makespan_ns\"\nsize = [1, \"2\"]")),
        (
            "size backwards",
            claim("expect = \"1 < 2\"\nmeasure = \"rr.makespan_ns\"\nsize = [2, 1]"),
        ),
        (
            "three sizes",
            claim("expect = \"1 < 2\"\nmeasure = \"rr.makespan_ns\"\nsize = [1, 2, 3]"),
        ),
        ("verdict on no size", claim("expect = \"1 < 2\"\nsize_verdict = \"undecided\"")),
        (
            "verdict on a size",
            claim(
                "expect = \"1 < 2\"\nmeasure = \"rr.makespan_ns\"\nsize = [1, 2]\n\
                 size_verdict = \"not testable\"",
            ),
        ),
        ("details", claim("expect = \"1 < 2\"\ndetails = 1")),
    ]
}

/// An experiment with a host of two CPUs and the virtual machine `web`, which has `keys`.
fn vm(keys: &str) -> String {
    let head = format!("{HEAD}duration = \"1s\"\npolicy = \"credit\"\n{MACHINE}");
    format!("{head}[[vm]]\nname = \"web\"\n{keys}\n")
}

/// One whose virtual machine has `load`.
fn vm_load(load: &str) -> String {
    vm(&format!("[[vm.workload]]\n{load}"))
}

fn vm_cases() -> Vec<(&'static str, String)> {
    let hog = "[[vm.workload]]\nkind = \"hog\"\n";
    let claim = |keys: &str| vm(&format!("{hog}[[claim]]\nid = \"1\"\ntext = \"t\"\n{keys}"));
    let report = |vms: &str| vm(&format!("{hog}[report]\nvms = {vms}"));
    let sweep = |axis: &str| {
        vm(&format!("{hog}[sweep]\n{axis}"))
            .replace("policy = \"credit\"\n", "")
            .replace("[sweep]\n", "[sweep]\npolicy = \"rr\"\n")
    };
    let requests = "kind = \"service\"\nservice = \"1ms\"\n";
    vec![
        ("no table", with("[vm]\nname = \"web\"")),
        ("none", with("[report]\n").replace("policy", "vm = []\npolicy")),
        ("no name", vm("").replace("name = \"web\"", "")),
        ("empty name", vm("").replace("web", " ")),
        ("name of all", vm("").replace("web", "all")),
        ("name twice", vm("[[vm]]\nname = \"web\"")),
        ("unknown key", vm("cpus = 2")),
        ("machines in machines", vm("[[vm.vm]]\nname = \"inner\"")),
        ("negative count", vm("count = -1")),
        ("count", vm("count = 10_001")),
        ("all counts", vm("count = 9000\n[[vm]]\nname = \"db\"\ncount = 9000")),
        ("weight", vm("weight = 0")),
        ("cap", vm("cap = \"50 %\"")),
        ("CPUs", vm("vcpus = 0")),
        ("CPUs twice", vm("vcpus = 2\nmachine = { topology = \"2 cores\" }")),
        ("machine", vm("machine = 2")),
        ("key of the machine", vm("machine = { cpu = 2 }")),
        (
            "hotplug",
            vm("vcpus = 2\nmachine = { hotplug = [{ at = \"1s\", cpu = 1, online = false }] }"),
        ),
        (
            "changes",
            vm("policy = { name = \"gfs\", changes = [{ at = \"1s\", grouping = \"core\" }] }"),
        ),
        ("affinity", vm("affinity = \"2-3\"")),
        ("preferred", vm("preferred = \"2-3\"")),
        ("affinities", vm("vcpus = 2\naffinity = [\"0\", \"0\", \"1\"]")),
        ("one affinity", vm("vcpus = 2\naffinity = [\"0\", \"x\"]")),
        ("policy", vm("policy = \"cfss\"")),
        ("policies", vm("policy = [\"cfs\", \"rr\"]")),
        ("no policy", vm("policy = []")),
        ("policy's parameter", vm("policy = { name = \"rr\", quantum = \"0\" }")),
        ("stop", vm("start = \"2s\"\nstop = \"1s\"")),
        ("period", vm("period = 10")),
        ("load", vm("workload = \"hog\"")),
        ("endless", vm(hog).replace("duration = \"1s\"\n", "")),
        ("ping nobody", vm_load("kind = \"ping\"")),
        ("ping somebody unknown", vm_load("kind = \"ping\"\nto = \"wbe\"")),
        ("ping at once", vm_load("kind = \"ping\"\nto = \"web\"\nevery = 0")),
        ("ping without work", vm_load("kind = \"ping\"\nto = \"web\"\nwork = \"0\"")),
        ("ping without answer", vm_load("kind = \"ping\"\nto = \"web\"\nanswer = \"0\"")),
        ("ping never", vm_load("kind = \"ping\"\nto = \"web\"\npings = 0")),
        ("ping from outside", load("kind = \"ping\"\nto = \"web\"")),
        ("service without requests", vm_load(requests)),
        (
            "service with two rates",
            vm_load(&format!("{requests}rate = 10\ninterarrival = \"1ms\"")),
        ),
        ("rate", vm_load(&format!("{requests}rate = 0"))),
        ("no time between requests", vm_load(&format!("{requests}interarrival = \"0\""))),
        ("too many requests", vm_load(&format!("{requests}rate = 1e30"))),
        ("servers", vm_load(&format!("{requests}rate = 10\nservers = 0"))),
        ("hop", vm_load(&format!("{requests}rate = 10\nhop = \"50\""))),
        ("service of no time", vm_load("kind = \"service\"\nrate = 10\nservice = \"0\"")),
        ("parallel without work", vm_load("kind = \"parallel\"")),
        ("parallel tasks", vm_load("kind = \"parallel\"\nrun = \"1ms\"\ntasks = 0")),
        ("rounds", vm_load("kind = \"parallel\"\nrun = \"1ms\"\nrounds = 0")),
        ("spin", vm_load("kind = \"parallel\"\nrun = \"1ms\"\nspin = \"yes\"")),
        ("axis", sweep("\"vm.1.count\" = [1, 2]")),
        ("value of an axis", sweep("\"vm.0.policy\" = [\"cfs\", \"rrr\"]")),
        ("rows of a claim", claim("expect = \"1 < 2\"\nwhere = { vm = \"db\" }")),
        ("shown machines", report("[\"all\", \"webb\"]")),
        ("shown machine", report("\"web\"")),
        ("no shown machines", report("[]")),
        ("shown machines where none are", with("[report]\nvms = [\"all\"]")),
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
        ("vm", vm_cases()),
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
    assert_eq!(message(&vm("")), "no error\n");
    assert_eq!(message(&vm_load("kind = \"ping\"\nto = \"web\"")), "no error\n");
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

/// One mistake hides no other.
#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = r#"
title = 5
polcy = "rr"
[machine]
cpus = 0
tick = "4parsecs"
smt = 7
[[workload]]
kind = "batch"
tasks = "many"
servce = "1ms"
[[workload]]
kind = "opn"
[sweep]
policy = ["rr", "cfz", { name = "eevdf", slyce = 3 }]
seeds = 0
"machin.cpus" = [1]
"#;
    let plain = Experiment::parse(text, Path::new("x.toml")).unwrap_err().to_plain();
    for wrong in [
        "`title`",
        "`polcy`",
        "`cpus`",
        "`tick`",
        "`smt`",
        "`tasks`",
        "`servce`",
        "\"opn\"",
        "`cfz`",
        "`seeds`",
        "`machin.cpus`",
        "no `question`",
    ] {
        let lines: Vec<&str> = plain.lines().filter(|line| line.contains(wrong)).collect();
        assert!(!lines.is_empty(), "{wrong}: {plain}");
    }
    assert_eq!(plain.lines().count(), 12, "nothing else is: {plain}");
}

/// Nor does one in a table hide others in it, or what is missing what is there.
#[test]
fn all_that_is_wrong_with_a_table_is_said_at_once() {
    let told = |text: &str, expected: &[&str]| {
        let path = Path::new("x.toml");
        let refused = Experiment::parse(text, path).and_then(|experiment| experiment.plan());
        let plain = refused.err().map(|error| error.to_plain()).unwrap_or_default();
        for wrong in expected {
            assert!(plain.lines().any(|line| line.contains(wrong)), "{wrong}: {plain}");
        }
        assert_eq!(plain.lines().count(), expected.len(), "nothing else is: {plain}");
    };
    let costs =
        "cpus = 2\nipi = 5\npick = \"soon\"\nmigration = { core = 3, nod = \"1us\", llc = \"x\" }";
    told(&machine(costs), &["`ipi`", "`pick`", "`core`", "`nod`", "`llc`"]);
    told(&machine("cpus = 2\ncontention = { core = -1, llc = 9999 }"), &["`core`", "`llc`"]);
    let hotplug =
        "cpus = 2\nhotplug = [{ at = \"x\", cpu = 7, online = 1 }, { at = \"1s\", cpu = 9 }]";
    told(&machine(hotplug), &["\"x\"", "`cpu` = 7", "`online` is", "`cpu` = 9", "no `online`"]);
    let batch = "kind = \"batch\"\ntasks = \"many\"\nservice = 5\narrival = -1";
    told(&load(batch), &["`tasks`", "`service`", "`arrival`"]);
    told(&load("kind = \"batch\""), &["no `tasks`", "no `service`"]);
    told(&load("kind = \"batch\"\ntask = 3\nservce = \"1ms\""), &["`task`", "`servce`"]);
    told(
        &sweep("policy = [{ name = \"rr\", quantum = 3, layout = \"x\", quantun = 1, label = 2 }]"),
        &["`label`"],
    );
    told(
        &sweep("policy = [{ name = \"rr\", quantum = 3, layout = \"x\", quantun = 1 }]"),
        &["`quantum`", "`layout`", "`quantun`"],
    );
    told(
        &sweep("policy = [{ name = \"rr\", quantum = 3 }]").replace("cpus = 2", "cpus = 0"),
        &["`cpus`", "`quantum`"],
    );
    let no_load = format!("{HEAD}policy = {{ name = \"rr\", quantum = 3 }}\n[machine]\ncpus = 0\n");
    told(&no_load, &["`cpus`", "`quantum`", "no load"]);
    let claims = "[[claim]]\nid = \"1\"\ntext = 5\nexpect = \"fcfs.makespan_ns <\"\nverdct = 1\n";
    told(
        &format!("{no_load}{claims}"),
        &["`cpus`", "`quantum`", "no load", "`text`", "expected a", "`verdct`"],
    );
    told(
        &format!("policy = \"rr\"\n{BATCH}duration = 0\n"),
        &["no `question`", "`duration`", "no [machine]"],
    );
    told(&format!("{HEAD}[machine]\ncpus = 0\n{BATCH}"), &["`cpus`", "no policy"]);
    told(
        &with("[report]\ncolumns = [\"x\", \"makespan_ns\", \"y\"]\nby = \"cpu\"\nvms = [\"web\"]"),
        &["`x`", "`y`", "\"cpu\"", "virtual machines"],
    );
    told(
        &with(
            "[[scenario]]\nname = \"a\"\nmachne = 1\n[[scenario]]\nname = 5\n[quick]\nseeds = 0\n",
        ),
        &["`machne`", "`name`", "`seeds`"],
    );
}

/// Runs that nobody could wait for are refused before they begin, each at the value that makes them
/// so.
#[test]
fn runs_that_would_not_end() {
    const HOG: &str = "kind = \"hog\"";
    const DAYS: &str = "which is ";
    let years = "this load takes at least ";
    for (top, machine, load, place, said) in [
        ("duration = \"300000h\"", "", HOG, "\"300000h\"", "`duration` = \"300000h\""),
        ("duration = \"9223372036854775807ns\"", "", HOG, "\"9223", "is out of range"),
        ("", "", "kind = \"hog\"\nuntil = \"50000h\"", "[[workload]]", years),
        ("", "", "kind = \"batch\"\ntasks = 9\nservice = \"99999h\"", "[[workload]]", years),
        ("", "", "kind = \"batch\"\ntasks = 1\nservice = \"1ms\"\nat = \"99999h\"", "[[w", years),
        (
            "",
            "",
            "kind = \"closed\"\nclients = 4\nrequests = 99\nservice = \"1us\"\nthink = \"9999h\"",
            "[[workload]]",
            years,
        ),
        ("", "", "kind = \"open\"\ntasks = 5\nrate = 1e-300\nservice = \"1s\"", "[[w", years),
        ("duration = \"10s\"", "tick = \"1ns\"", HOG, "", ""),
        ("duration = \"1h\"", "tick = \"1ns\"", HOG, "\"1ns\"", "a run has 3.6e12 ticks"),
        (
            "duration = \"10s\"",
            "",
            "kind = \"open\"\nrate = 1e300\nservice = \"1ms\"",
            "[[workload]]",
            DAYS,
        ),
        (
            "duration = \"10s\"",
            "",
            "kind = \"open\"\nload = 1e9\nservice = \"1ms\"",
            "[[workload]]",
            DAYS,
        ),
        (
            "duration = \"10s\"",
            "",
            "kind = \"open\"\nrate = 1e9\nservice = \"1ms\"",
            "[[workload]]",
            "1.0e10 tasks or requests of this load wait in the end",
        ),
        (
            "duration = \"9h\"",
            "",
            "kind = \"periodic\"\nperiod = \"1ns\"\nrun = \"1ns\"",
            "[[workload]]",
            DAYS,
        ),
        (
            "",
            "",
            "kind = \"hackbench\"\nloops = 4000000000\ngroups = 1000\nfds = 500",
            "[[workload]]",
            years,
        ),
        (
            "",
            "",
            "kind = \"parallel\"\nrun = \"1ns\"\nrounds = 1000000000000\ntasks = 4",
            "[[workload]]",
            DAYS,
        ),
        ("", "", "kind = \"cyclictest\"\nduration = \"9h\"\ninterval = \"1ns\"", "[[w", DAYS),
        (
            "duration = \"99h\"",
            "",
            "kind = \"interactive\"\nrun = \"1ns\"\nsleep = \"1ns\"",
            "[[workload]]",
            DAYS,
        ),
        ("duration = \"90h\"", "", "kind = \"hog\"\nuntil = \"80h\"\ncheck = \"1ns\"", "[[w", DAYS),
    ] {
        let text = format!(
            "question = \"?\"\npolicy = \"rr\"\n{top}\n[machine]\ncpus = 2\n{machine}\n\
             [[workload]]\n{load}\n"
        );
        let message = message(&text);
        if said.is_empty() {
            assert_eq!(message, "no error\n", "{text}");
            continue;
        }
        assert!(message.contains(said), "{text}: {message}");
        // The place is a line of the text.
        let line = text.lines().position(|line| line.contains(place)).unwrap() + 1;
        assert!(message.contains(&format!("/case.toml:{line}:")), "{text}: {message}");
    }
}

/// What is only long is not refused: it tells how long it takes.
#[test]
fn long_runs_are_made() {
    for (top, load) in [
        ("duration = \"30000h\"", "kind = \"hog\"\ntasks = 4"),
        ("duration = \"9223372036854775807ns\"", "kind = \"batch\"\ntasks = 1\nservice = \"1ms\""),
        ("", "kind = \"batch\"\ntasks = 16000000\nservice = \"1ms\""),
        ("", "kind = \"open\"\nload = 0.5\ntasks = 1000000000\nservice = \"1ms\""),
        ("duration = \"60s\"", "kind = \"open\"\nload = 1.2\nservice = \"1ms\""),
    ] {
        let text = format!(
            "question = \"?\"\npolicy = \"rr\"\n{top}\n[machine]\ncpus = 2\n[[workload]]\n{load}\n"
        );
        assert_eq!(message(&text), "no error\n", "{text}");
    }
}
