//! What users are told about command lines, files and outputs that cannot be used: the whole
//! message, which has to name the file, the place in it, the value and what would be right.
//! Whatever is wrong, nothing is printed, and no file is written or changed.

#![cfg(unix)] // the system's own words about files are those of Unix

mod program;

use anysched_core::recorder::LogReader;
use anysched_policies::POLICIES;
use program::{BINARY, Folder};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Output;

const EXPERIMENT: &str = "question = \"Which is shorter?\"\npolicy = \"rr\"\n\
    [machine]\ncpus = 2\n[[workload]]\nkind = \"batch\"\ntasks = 5\nservice = \"2ms\"\n";

const JOBS: &str = "; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 -1 -1 1 3 1 -1 -1 -1 -1 -1\n";

/// A host without a package says so, and no folder is made for one.
#[test]
fn packages_that_there_are_not() {
    let folder = Folder::new();
    let said = folder.stderr(&["package", "arceos", "-o", "new"]);
    assert_eq!(said, "anysched: arceos cannot be packaged\n");
    assert!(!folder.path().join("new").exists());
}

/// Programs say which arguments they take, before anything is fetched, built or booted.
#[test]
fn arguments_that_a_program_does_not_have() {
    for (host, app, with, said) in [
        ("linux", "cost", "times=3", "`cost` has no argument `times` (= \"3\"); it takes n"),
        (
            "linux",
            "latency",
            "spinner=2",
            "`latency` has no argument `spinner` (= \"2\"); it takes spinners, period_ns, work_ns, \
             duration_ns",
        ),
        (
            "linux",
            "hackbench",
            "file=a.json",
            "`hackbench` has no argument `file` (= \"a.json\"); it takes args, burners",
        ),
        (
            "arceos",
            "yield",
            "scael=10",
            "`yield` has no argument `scael` (= \"10\"); it takes groups, iterations, nice, cpus, \
             scale, duration, at, runs, every, calls, hold",
        ),
    ] {
        let arguments = ["boot", host, "--policy", "rr", "--app", app, "--with", with];
        let error = Folder::new().stderr(&arguments);
        assert_eq!(error.trim_end(), format!("anysched: {said}"));
    }
    let listed = Folder::new().run(&["hosts"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("\n  cost takes: n\n"), "{listed}");
}

/// What runs as dom0 is a choice of hypervisors, and each has programs of its own: said before
/// anything is fetched or built.
#[test]
fn dom0_is_a_choice_of_hypervisors() {
    for (host, app, dom0, said) in [
        ("arceos", "yield", "linux", "arceos cannot choose what runs as dom0: leave `--dom0` out"),
        ("linux", "yield", "small", "linux cannot choose what runs as dom0: leave `--dom0` out"),
        (
            "xen",
            "hog",
            "linux",
            "`hog` is for small guests: leave `--dom0 linux` out, or take `ping`",
        ),
        ("xen", "ping", "small", "`ping` is for domains with Linux: add `--dom0 linux`"),
    ] {
        let arguments = ["boot", host, "--policy", "rr", "--app", app, "--dom0", dom0];
        let error = Folder::new().stderr(&arguments);
        assert_eq!(error.trim_end(), format!("anysched: {said}"));
    }
    let error = Folder::new().stderr(&["boot", "xen", "--policy", "rr", "--app", "ping"]);
    assert!(error.ends_with("add `--dom0 linux`\n"), "{error}");
}

/// A line of `trace-cmd` with an event of task a.
fn line(cpu: &str, time: &str, event: &str) -> String {
    format!("     a-7     [{cpu}] d..2. {time}: {event}\n")
}

fn switches() -> String {
    let switch = |prev: &str, next: &str| {
        format!(
            "sched_switch: prev_comm={prev} prev_prio=120 prev_state=S ==> next_comm={next} \
             next_prio=120"
        )
    };
    line("000", "1.000000", &switch("idle prev_pid=0", "a next_pid=7"))
        + &line("000", "1.004000", &switch("a prev_pid=7", "idle next_pid=0"))
}

/// An experiment whose load is a file.
fn experiment(kind: &str, file: &str) -> String {
    format!(
        "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 2\n[[workload]]\n\
         kind = \"{kind}\"\nfile = \"{file}\"\n"
    )
}

/// A model with these further keys.
fn model(rest: &str) -> String {
    format!("{{\"anysched-model\":1,{rest}}}")
}

/// A model with one task that does `ops`, which has these further keys.
fn model_of(ops: &str, task: &str) -> String {
    model(&format!("\n\"scripts\":[{{\"ops\":{ops}}}],\n\"tasks\":[{{\"script\":0{task}}}]"))
}

/// A folder with a good file of each kind, with files that are none, and with outputs from before.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("good.toml", EXPERIMENT);
    folder.stdout(&["run", "good.toml", "--record", "good.log"]);
    folder.write("good.swf", JOBS);
    folder.write("good.ftrace", switches());
    folder.write("empty", "");
    folder.write("binary", b"\x7fELF\x02\x01\n\x00\xff\xfe\x80\n");
    for name in ["old.json", "old.csv", "old.txt", "old.log", "results/good.json"] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        folder.write(name, "from before");
    }
    for name in ["folder", "folder.json", "folder.txt", "results/good.csv"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    folder
}

/// All files below `path` with what is in them; folders have nothing.
fn files(path: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        let name = entry.display().to_string();
        if entry.is_dir() {
            found.extend(files(&entry));
            found.insert(name, None);
        } else {
            found.insert(name, Some(fs::read(&entry).unwrap()));
        }
    }
    found
}

/// Runs cases and writes down what is said.
struct Table {
    folder: Folder,
    text: String,
}

impl Table {
    fn new() -> Table {
        Table { folder: folder(), text: String::new() }
    }

    /// One case: arguments, which the program must refuse, with a message that has `named` in it.
    #[track_caller]
    fn refused(&mut self, named: &str, args: &[&str]) {
        let before = files(self.folder.path());
        let message = self.folder.stderr(args);
        let output = self.folder.run(args);
        assert_eq!(output.stdout, b"", "{args:?}");
        assert_eq!(output.stderr, message.as_bytes(), "{args:?}");
        assert!(message.contains(named), "{args:?}: no {named} in {message}");
        assert_eq!(files(self.folder.path()), before, "{args:?} changed files");
        let shown: Vec<String> = args.iter().map(|arg| shown(arg)).collect();
        writeln!(self.text, "$ anysched {}", shown.join(" ")).unwrap();
        let policies: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
        let message = message.replace(&policies.join(", "), "(all policies)");
        writeln!(self.text, "{}\n", message.trim_end()).unwrap();
    }

    /// One case for each content of the file `name`, which the message must name.
    #[track_caller]
    fn contents(&mut self, name: &str, args: &[&str], contents: &[impl AsRef<[u8]>]) {
        for content in contents {
            self.folder.write(name, content);
            for line in String::from_utf8_lossy(content.as_ref()).lines() {
                writeln!(self.text, "| {}", excerpt(line)).unwrap();
            }
            self.refused(name, args);
        }
    }

    /// The table without white space at the ends of lines.
    fn finish(self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

/// The beginning of a line, without control characters.
fn excerpt(line: &str) -> String {
    let printable = |c: char| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    let shown: String = line.chars().take(160).map(printable).collect();
    if line.chars().count() > 160 { shown + "…" } else { shown }
}

/// An argument as it is typed.
fn shown(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_string() } else { format!("'{arg}'") }
}

#[test]
fn command_lines() {
    let mut table = Table::new();
    for (named, args) in [
        ("runn", &["runn"][..]),
        ("FILE.toml", &["run"]),
        ("extra", &["run", "good.toml", "extra"]),
        ("--polcy", &["run", "good.toml", "--polcy", "rr"]),
        ("xml", &["run", "good.toml", "--format", "xml"]),
        ("cfss", &["policies", "cfss"]),
        ("tcsh", &["completions", "tcsh"]),
        ("ftrac", &["import", "ftrac", "x", "-o", "old.json"]),
        ("--output", &["import", "ftrace", "good.ftrace"]),
        ("LOG", &["replay"]),
        ("--policy", &["attach"]),
        ("nonesuch", &["attach", "--policy", "nonesuch"]),
        ("boats", &["attach", "--policy", "rr", "--set", "boats=3"]),
        ("16MB", &["attach", "--policy", "rr", "--heap", "16MB"]),
        ("--bpf", &["attach", "--policy", "rr", "--module", "a.ko"]),
        ("1ms", &["attach", "--policy", "rr", "--every", "1ms"]),
        ("--for", &["attach", "--policy", "rr", "--for", "1s", "--", "true"]),
        ("--stop", &["attach", "--stop", "--change", "grouping=core"]),
        ("grouping", &["attach", "--change", "grouping"]),
        ("--output", &["record", "--for", "1s"]),
    ] {
        table.refused(named, args);
    }
    for (option, value) in [
        ("--seeds", "0"),
        ("--seeds", "3.5"),
        ("--seeds", "-1"),
        ("--seeds", "99999999999999999999"),
        ("--jobs", "many"),
        ("--policy", "fifo"),
        ("--policy", "rr,rr"),
        ("--policy", "rr,all"),
    ] {
        table.refused(
            value.split(',').next().unwrap_or_default(),
            &["run", "good.toml", option, value],
        );
    }
    for (option, value) in [
        ("--columns", "10"),
        ("--tasks", "all"),
        ("--group", "1"),
        ("--seed", "1"),
        ("--from", "soon"),
        ("--from", "-1ms"),
        ("--from", "1h"),
        ("--until", "5"),
        ("--until", "5 parsecs"),
        ("--until", "1.5ns"),
        ("--until", "99999999999h"),
        ("--until", "0"),
    ] {
        table.refused(option, &["gantt", "good.toml", option, value]);
    }
    insta::assert_snapshot!(table.finish());
}

#[test]
fn papers() {
    let mut table = Table::new();
    fs::create_dir_all(table.folder.join("papers/one")).unwrap();
    fs::create_dir_all(table.folder.join("papers/two")).unwrap();
    table.folder.write("papers/two/a.toml", EXPERIMENT);
    table.folder.write("papers/two/b.toml", EXPERIMENT.replace("tasks", "task"));
    table.refused("experiments", &["reproduce", "one"]);
    for (named, args) in [
        ("three", &["three"][..]),
        ("papers/one", &["one"]),
        ("papers/two/b.toml", &["two"]),
        ("--jobs", &["two", "--jobs", "0"]),
        ("good.toml", &["two", "--out", "good.toml"]),
    ] {
        table.refused(named, &[&["reproduce", "--experiments", "papers"], args].concat());
    }
    insta::assert_snapshot!(table.finish());
}

#[test]
fn machines() {
    let mut table = Table::new();
    for file in ["nothing.xml", "folder.json", "good.swf"] {
        table.refused(file, &["topology", file]);
    }
    for (named, args) in [
        ("4 sockets", &["4 sockets"][..]),
        ("1025", &["1025 cores"]),
        ("cores", &["4 cores", "--grouping", "cores"]),
        ("0-1;1-3", &["4 cores", "--grouping", "0-1;1-3"]),
        ("0-4", &["4 cores", "--grouping", "0-4"]),
        ("0-1", &["4 cores", "--grouping", "0-1"]),
        ("csv", &["4 cores", "--format", "csv"]),
    ] {
        table.refused(named, &[&["topology"], args].concat());
    }
    let cases = ["", "<svg/>", "<topology>\n<object type=\"PU\" os_index=\"x\"/>\n</topology>"];
    table.contents("x.xml", &["topology", "x.xml"], &cases);
    let cases = ["", "{}", "{\"cpus\":[{\"cpu\":-1}]}", "{\"lscpu\":[]}"];
    table.contents("x.json", &["topology", "x.json"], &cases);
    let text = EXPERIMENT.replace("cpus = 2", "topology = \"x.json\"");
    table.folder.write("x.toml", text);
    table.contents("x.json", &["check", "x.toml"], &cases[2..]);
    insta::assert_snapshot!(table.finish());
}

#[test]
fn settings() {
    let mut table = Table::new();
    for setting in [
        "quantum",
        "=3",
        "quantum=",
        "quantum=3",
        "quantum=soon",
        "quantum=-1ms",
        "quantum=0",
        "quantum=99999999999h",
        "quantun=3ms",
        "rr.quantun=3ms",
        "cfs.base_slice=3ms",
        "layout=everywhere",
        "machine.cpus=0",
        "machine.cpus=two",
        "machine.cpus=99999999999999999999",
        "machine.cpus=[1, 2",
        "machine.cpu=2",
        "machine=2",
        "machin.cpus=2",
        "workload.1.tasks=2",
        "workload.0.tasks=1e3",
        "workload.0.service=exp",
        "workload.0.service=exp(-1ms)",
        "workload.0.service=empirical(nothing)",
        "workload.0.service=empirical(empty)",
        "workload.0.service=empirical(folder)",
        "workload.0.service=empirical(binary)",
        "duration=0",
        "seed=-1",
        "seeds=4",
        "policy=fcfs",
    ] {
        let value = setting.split_once('=').map_or(setting, |(_, value)| value);
        table.refused(value, &["check", "good.toml", "--set", setting]);
    }
    insta::assert_snapshot!(table.finish());
}

#[test]
fn experiments() {
    let mut table = Table::new();
    for file in ["nothing.toml", "folder", "empty", "binary", "good.log", "good.swf"] {
        table.refused(file, &["run", file]);
    }
    let cut = &EXPERIMENT[..EXPERIMENT.len() - 3];
    let huge = EXPERIMENT.replace("cpus = 2", "cpus = 99999999999999999999");
    let latin1 = [EXPERIMENT.as_bytes(), b"name = \"caf\xe9\"\n"].concat();
    let bytes = [cut.as_bytes(), huge.as_bytes(), &latin1];
    table.contents("x.toml", &["run", "x.toml"], &bytes);
    insta::assert_snapshot!(table.finish());
}

#[test]
fn task_lists() {
    let mut table = Table::new();
    for file in ["nothing.csv", "folder", "empty", "binary", "good.swf"] {
        table.folder.write("x.toml", experiment("tasks", file));
        table.refused(file, &["run", "x.toml"]);
    }
    let list = |head: &str, row: &str| format!("{head}\n{row}\n").into_bytes();
    let times = |row: &str| list("arrival_ns,service_ns", row);
    table.folder.write("x.toml", experiment("tasks", "x.csv"));
    table.contents(
        "x.csv",
        &["run", "x.toml"],
        &[
            b"arrival_ns,service_ns\n".to_vec(),
            times("0,1\n2"),
            times("0,1,2"),
            times("soon,2"),
            times("-1,2"),
            times("1,1.5"),
            times("1,99999999999999999999"),
            times("18446744073709551615,1"),
            list("arrival_ns,service_ms", "1,2"),
            list("arrival_ns,arrival_ns", "1,2"),
            list("arrival_ns,service_ns,nice", "1,2,20"),
            list("arrival_ns,service_ns,affinity", "1,2,3-1"),
            list("arrival_ns,service_ns,affinity", "1,2,1024"),
            list("arrival_ns,service_ns,deadline_ns", "10,2,5"),
            b"arrival_ns,service_ns,name\n1,2,caf\xe9\n".to_vec(),
        ],
    );
    insta::assert_snapshot!(table.finish());
}

#[test]
fn models() {
    let mut table = Table::new();
    for file in ["nothing.json", "folder", "empty", "binary", "good.swf"] {
        table.folder.write("x.toml", experiment("model", file));
        table.refused(file, &["run", "x.toml"]);
    }
    table.folder.write("x.toml", experiment("model", "x.json"));
    let arrives = ",\"arrives\":0";
    let nice = |nice: i32| model_of("[]", &format!("{arrives},\"nice\":{nice}"));
    let good = model_of("[[\"run\",5]]", arrives);
    let channels = model("\"channels\":4294967295");
    let endless = "[[\"yield\"]],\"rounds\":\"forever\"";
    table.contents(
        "x.json",
        &["run", "x.toml"],
        &[
            good[..good.len() - 10].to_string(),
            good.clone() + "}",
            "[]".into(),
            "{\"tasks\": {\"a\": {\"run\": 5}}}".into(),
            "{}".into(),
            "{\"anysched-model\":2}".into(),
            model_of("[[\"run\",-5]]", arrives),
            model_of("[[\"run\",1.5]]", arrives),
            model_of("[[\"run\",99999999999999999999]]", arrives),
            model_of("[[\"run\",\"5ms\"]]", arrives),
            model_of("[[\"runn\",5]]", arrives),
            model_of("[[\"rnu\",5]]", arrives),
            model_of("[[\"run\"]]", arrives),
            model_of("[[\"wait\",0]]", arrives),
            model_of("[[\"spawn\",9]]", arrives),
            model_of(endless, arrives),
            model("\"tasks\":[{\"script\":7}]"),
            nice(300),
            nice(20),
            channels,
            model_of("[[\"run\",5]]", ",\"arrives\":18446744073709551615"),
            model_of("[[\"run\",5]]", ""),
        ],
    );
    insta::assert_snapshot!(table.finish());
}

#[test]
fn job_logs() {
    let mut table = Table::new();
    let import = |file| ["import", "swf", file, "--output", "old.json"];
    for file in ["nothing.swf", "folder", "empty", "binary"] {
        table.refused(file, &import(file));
    }
    let job = |submit: &str, run: &str, processors: &str| {
        format!("; a log\n1 {submit} -1 {run} {processors} -1 -1 1 -1 -1 1 3 1 -1 -1 -1 -1 -1\n")
    };
    table.contents(
        "x.swf",
        &import("x.swf"),
        &[
            "1 2 3\n".into(),
            job("soon", "10", "1"),
            job("0.0000000001", "10", "1"),
            job("0", "1e3", "1"),
            job("0", "99999999999999999999", "1"),
            job("0", "10", "1.5"),
            job("0", "10", "99999999"),
            job("0", "-1", "1"),
            "x".repeat(70_000),
        ],
    );
    insta::assert_snapshot!(table.finish());
}

#[test]
fn rt_app_files() {
    let mut table = Table::new();
    let import = |file| ["import", "rt-app", file, "--output", "old.json"];
    for file in ["nothing.json", "folder", "empty", "binary", "good.swf"] {
        table.refused(file, &import(file));
    }
    let task = |rest: &str| format!("{{\"tasks\": {{\n  \"a\": {{{rest}}}}}}}\n").into_bytes();
    table.contents(
        "x.json",
        &import("x.json"),
        &[
            task("\"run\": 5")[..20].to_vec(),
            b"[]".to_vec(),
            b"{}".to_vec(),
            b"{\"tasks\": {}}".to_vec(),
            task("\"run\": \"long\""),
            task("\"run\": -5"),
            task("\"run\": 99999999999999999999"),
            task("\"slep\": 5"),
            task("\"loop\": -1"),
            task("\"loop\": -1, \"sleep\": 0"),
            task("\"instance\": 100000, \"run\": 5"),
            task("\"cpus\": [1024], \"run\": 5"),
            task("\"policy\": \"FIFO\", \"run\": 5"),
            task("\"fork\": \"child\""),
            b"{\"tasks\": {\n  \"caf\xe9\": {\"run\": 5}}}\n".to_vec(),
        ],
    );
    insta::assert_snapshot!(table.finish());
}

#[test]
fn recordings() {
    let mut table = Table::new();
    let import = |file| ["import", "ftrace", file, "--output", "old.json"];
    for file in ["nothing.txt", "folder", "empty", "binary", "good.swf"] {
        table.refused(file, &import(file));
    }
    let good = switches();
    let event =
        |cpu: &str, time: &str, event: &str| (good.clone() + &line(cpu, time, event)).into_bytes();
    let woken = |pid: &str| format!("sched_wakeup: comm=b pid={pid} prio=120");
    // The header of gzip and a beginning of what it compresses.
    let cut_off = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c".to_vec();
    table.contents(
        "x.txt",
        &import("x.txt"),
        &[
            good.as_bytes()[..good.len() - 20].to_vec(),
            event("1024", "1.5", &woken("9")),
            event("000", "123456", &woken("9")),
            event("000", "99999999999.5", &woken("9")),
            event("000", "1.5", &woken("99999999999")),
            event("000", "1.5", "sched_process_fork: comm=a pid=7"),
            vec![0; 70_000],
            cut_off,
        ],
    );
    insta::assert_snapshot!(table.finish());
}

#[test]
fn logs() {
    let mut table = Table::new();
    for file in ["nothing.log", "folder", "empty", "binary", "good.toml"] {
        table.refused(file, &["replay", file]);
    }
    let good = table.folder.read("good.log");
    assert_eq!(&good[..13], b"anysched\x02\x02rr\x00", "magic, version, policy, no settings");
    let settings = |settings: &[u8]| [&good[..12], settings, &good[13..]].concat();
    let policy = |name: &[u8]| [&good[..9], &[name.len() as u8], name, &good[12..]].concat();
    let version = |version: u8| [&good[..8], &[version], &good[9..]].concat();
    let calls = LogReader::new(&good).unwrap();
    let calls: Vec<usize> = calls.map(|record| record.unwrap().offset).collect();
    let with_byte = |at: usize, byte: u8| {
        let mut log = good.clone();
        log[at] = byte;
        log
    };
    // The answer to the first call is one byte, which says that there is none.
    for (what, log) in [
        ("version 3", version(3)),
        ("cut off in the header", good[..20].to_vec()),
        ("cut off in a call", good[..calls[1] - 2].to_vec()),
        ("cut off before an answer", good[..calls[1] - 1].to_vec()),
        ("a policy that there is not", policy(b"rrr")),
        ("a setting that there is not", settings(b"\x01\x07quantun\x031ms")),
        ("a setting out of range", settings(b"\x01\x07quantum\x010")),
        ("no CPUs", with_byte(13, 0)),
        ("a call that there is not", with_byte(calls[1], 0x0f)),
        ("a call that must not be made", [&good[..calls[0]], &good[calls[1]..]].concat()),
        ("bytes behind the end", [&good[..], &[0xff; 12]].concat()),
    ] {
        writeln!(table.text, "| {what}").unwrap();
        table.folder.write("x.log", log);
        table.refused("x.log", &["replay", "x.log"]);
    }
    insta::assert_snapshot!(table.finish());
}

#[test]
fn outputs() {
    let mut table = Table::new();
    let import = |output| ["import", "ftrace", "good.ftrace", "--output", output];
    for output in ["load", "load.txt", "folder.json", "nothing/load.json", "good.swf/load.json"] {
        table.refused(output, &import(output));
    }
    table.refused("list of tasks", &import("old.csv"));
    for (option, output) in [
        ("--trace", "trace"),
        ("--trace", "trace.png"),
        ("--trace", "folder.txt"),
        ("--trace", "nothing/trace.txt"),
        ("--trace", "good.toml/trace.txt"),
        ("--record", "folder"),
        ("--record", "nothing/x.log"),
        ("--out", "good.toml"),
        ("--out", "good.toml/results"),
        ("--out", "results"),
    ] {
        table.refused(output, &["run", "good.toml", option, output]);
    }
    insta::assert_snapshot!(table.finish());
}

/// Runs for two years and then for three more, which cannot be simulated.
const TOO_LONG: &str = r#"{"anysched-model":1,"scripts":[
{"ops":[["run",63072000000000000],["run",94608000000000000]]}],
"tasks":[{"script":0,"arrives":0}]}"#;

#[test]
fn a_run_that_fails_changes_no_output() {
    let mut table = Table::new();
    table.folder.write("x.json", TOO_LONG);
    table.folder.write("good.toml", experiment("model", "x.json"));
    fs::remove_dir(table.folder.join("results/good.csv")).unwrap();
    let outputs = ["--out", "results", "--trace", "old.txt", "--record", "old.log"];
    table.refused("fcfs", &[&["run", "good.toml"], &outputs[..]].concat());
    insta::assert_snapshot!(table.finish());
}

/// Runs the program where no file can grow beyond `blocks` · 512 bytes.
fn run_limited(folder: &Folder, blocks: u32, args: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, BINARY]).args(args).current_dir(folder.path());
    command.output().unwrap()
}

#[test]
fn outputs_that_cannot_be_finished_are_not_begun() {
    let folder = folder();
    fs::remove_dir(folder.join("results/good.csv")).unwrap();
    let many = "1 0 -1 10 1000 -1 -1 1 -1 -1 1 3 1 -1 -1 -1 -1 -1\n";
    folder.write("many.swf", many);
    let longer = EXPERIMENT.replace("tasks = 5", "tasks = 500");
    folder.write("longer.toml", longer);
    let before = files(folder.path());
    for (output, args) in [
        ("old.json", &["import", "swf", "many.swf", "-o", "old.json"][..]),
        ("old.csv", &["import", "swf", "many.swf", "-o", "old.csv"]),
        ("new.csv", &["import", "swf", "many.swf", "-o", "new.csv"]),
        ("old.txt", &["run", "longer.toml", "--trace", "old.txt"]),
        ("new.pftrace", &["run", "longer.toml", "--trace", "new.pftrace"]),
        ("old.log", &["run", "longer.toml", "--record", "old.log"]),
        // The table and the CSV are shorter than that, the JSON is not.
        ("results/good.json", &["run", "good.toml", "--out", "results"]),
    ] {
        let output_of = run_limited(&folder, 4, args);
        let message = String::from_utf8(output_of.stderr).unwrap();
        let why = "cannot be written: File too large (os error 27)";
        assert_eq!(message, format!("anysched: {output} {why}\n"), "{args:?}");
        assert_eq!(output_of.status.code(), Some(1), "{args:?}");
        // What was computed is printed, if what is about one of its runs cannot be written.
        let is_printed = args.iter().any(|arg| ["--trace", "--record"].contains(arg));
        assert_eq!(!output_of.stdout.is_empty(), is_printed, "{args:?}");
        // The runs that are done, for `--resume` when there is room.
        let _ = fs::remove_file(folder.join("results/good.runs"));
        assert!(files(folder.path()) == before, "{args:?} changed files");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let folder = folder();
    for args in [
        &["run", "good.toml"][..],
        &["check", "good.toml"],
        &["policies"],
        &["workloads"],
        &["man"],
        &["completions", "bash"],
        &["replay", "good.log"],
        &["replay", "good.log", "--show"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = folder.command(args).stdout(full).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        let why = "anysched: standard output: No space left on device (os error 28)\n";
        assert_eq!((message.as_str(), output.status.code()), (why, Some(1)), "{args:?}");
    }
}
