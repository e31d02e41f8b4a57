//! No output replaces what it should not, and what was done before an interruption is kept.

#![cfg(unix)]

mod program;

use program::Folder;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SMALL: &str = "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\ntasks = 40\n\
    service = \"exp(5ms)\"\n[sweep]\npolicy = [\"fcfs\", \"rr\"]\n";

const RT_APP: &str = r#"{"tasks": {"t": {"loop": 2, "run": 500, "sleep": 500}}}"#;

const TASKS: &str = "arrival_ns,service_ns\n0,1000000\n5,2000000\n";

/// What trace-cmd prints of a task that runs twice.
const SWITCHES: &str = "\
     <idle>-0     [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
     prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n\
          a-7     [000] d..2. 1.004000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 \
     prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n\
     <idle>-0     [000] d..2. 1.010000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
     prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n\
          a-7     [000] d..2. 1.012000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 \
     prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.write("load.json", RT_APP);
    folder
}

/// What each command says, which leaves all files as they were.
#[test]
fn what_is_read_is_not_replaced() {
    let folder = folder();
    folder.write("tasks.csv", TASKS);
    folder.write(
        "listed.toml",
        "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"tasks\"\nfile = \"tasks.csv\"\n[sweep]\n\
         policy = [\"rr\"]\n",
    );
    folder.stdout(&["run", "small.toml", "--policy", "rr", "--record", "run.log"]);
    symlink("load.json", folder.join("link.json")).unwrap();
    fs::hard_link(folder.join("load.json"), folder.join("hard.json")).unwrap();
    fs::create_dir(folder.join("here")).unwrap();
    fs::rename(folder.join("run.log"), folder.join("run.txt")).unwrap();
    let before: Vec<_> = folder.names();
    let contents = |names: &[String]| -> Vec<Option<Vec<u8>>> {
        names.iter().map(|name| fs::read(folder.join(name)).ok()).collect()
    };
    let bytes = contents(&before);
    for args in [
        &["run", "small.toml", "--record", "small.toml", "--policy", "rr"][..],
        &["run", "small.toml", "--policy", "rr", "--record", "./here/../small.toml"],
        &["run", "listed.toml", "--record", "tasks.csv"],
        &["run", "small.toml", "--learned", "small.toml"],
        &["plot", "small.toml", "--x", "policy", "--out", "small.toml"],
        &["import", "rt-app", "load.json", "-o", "load.json"],
        &["import", "rt-app", "load.json", "-o", "link.json"],
        &["import", "rt-app", "load.json", "-o", "hard.json"],
        &["replay", "run.txt", "--trace", "run.txt"],
    ] {
        let said = folder.stderr(args);
        let is_told = said.contains("cannot be written: it is read, too; give the output another");
        // A chart without an axis is refused before.
        assert!(is_told || args[0] == "plot", "{args:?}: {said}");
    }
    let said = folder.stderr(&["run", "small.toml", "--record", "a.txt", "--trace", "a.txt"]);
    assert!(said.contains("a.txt: two outputs have this name"), "{said}");
    // An experiment in the folder of its own results is none of them; a list of tasks could be.
    folder.write("tasks.toml", fs::read(folder.join("listed.toml")).unwrap());
    let said = folder.stderr(&["run", "tasks.toml", "--out", "."]);
    assert!(said.contains("tasks.csv cannot be written: it is read, too"), "{said}");
    fs::remove_file(folder.join("tasks.toml")).unwrap();
    assert_eq!(folder.names(), before);
    assert_eq!(contents(&before), bytes);
}

#[test]
fn devices_pipes_links_and_read_only_files_stay_what_they_are() {
    let folder = folder();
    folder.write("old", "old");
    fs::set_permissions(folder.join("old"), fs::Permissions::from_mode(0o444)).unwrap();
    symlink("target.json", folder.join("link.json")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("pipe.json")).status().unwrap().success());
    let said = folder.stderr(&["run", "small.toml", "--policy", "rr", "--record", "old"]);
    assert!(said.contains("old cannot be written: it is read-only"), "{said}");
    assert_eq!(folder.read("old"), b"old");
    folder.stdout(&["import", "rt-app", "load.json", "-o", "link.json"]);
    assert!(folder.join("link.json").is_symlink());
    let written = folder.read("target.json");
    let reader = std::thread::spawn({
        let pipe = folder.join("pipe.json");
        move || fs::read(pipe).unwrap()
    });
    folder.stdout(&["import", "rt-app", "load.json", "-o", "pipe.json"]);
    assert_eq!(reader.join().unwrap(), written);
    folder.stdout(&["run", "small.toml", "--policy", "rr", "--record", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let full = folder.stderr(&["run", "small.toml", "--policy", "rr", "--record", "/dev/full"]);
    assert!(full.contains("/dev/full cannot be written: "), "{full}");
}

#[test]
fn two_experiments_of_one_name_have_a_folder_each() {
    let folder = folder();
    fs::create_dir(folder.join("other")).unwrap();
    folder.write("other/small.toml", SMALL.replace("\"?\"", "\"Another?\""));
    folder.stdout(&["run", "small.toml", "--out", "results"]);
    let before = folder.read("results/small.json");
    let said = folder.stderr(&["run", "other/small.toml", "--out", "results"]);
    assert!(said.contains("small.json has the results of another experiment, \"?\"; "), "{said}");
    assert_eq!(folder.read("results/small.json"), before);
    // The same experiment, changed, replaces its own results.
    folder.stdout(&["run", "small.toml", "--out", "results", "--seeds", "2"]);
    assert_ne!(folder.read("results/small.json"), before);
}

/// Starts the program and ends it by `signal` when `wait` is over, unless it was faster. Returns
/// whether it was ended.
fn ended(folder: &Folder, args: &[&str], signal: &str, wait: impl FnOnce()) -> bool {
    let mut run = folder.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait();
    let id = run.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status().unwrap();
    let status = run.wait().unwrap();
    sent.success() && !status.success()
}

#[test]
fn an_interrupted_run_keeps_older_results_and_goes_on() {
    let folder = folder();
    let out = ["--out", "results", "--jobs", "2"];
    let long = ["run", "small.toml", "--seeds", "3000"];
    let [long_out, resumed] = [&[][..], &["--resume"]].map(|more| [&long[..], &out, more].concat());
    folder.stdout(&[&["run", "small.toml"][..], &out].concat());
    let older = folder.read("results/small.csv");
    let kept = || fs::read_to_string(folder.join("results/small.runs")).unwrap_or_default();
    let some_are_done = || {
        while kept().lines().count() < 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    assert!(ended(&folder, &long_out, "-INT", some_are_done), "it was too fast");
    assert_eq!(folder.read("results/small.csv"), older);
    let runs = String::from_utf8(folder.read("results/small.runs")).unwrap();
    assert!(runs.lines().count() > 2, "{runs}");
    // A crash in the middle of a line.
    folder.write("results/small.runs", &runs[..runs.len() - 7]);
    let said = folder.stderr(&long_out);
    assert!(said.contains("runs of this experiment, which was interrupted; --resume"), "{said}");
    let other = [&["run", "small.toml", "--set", "workload.0.tasks=3"][..], &out].concat();
    let said = folder.stderr(&other);
    assert!(
        said.contains("small.runs: it has runs of another experiment, or of another"),
        "{said}"
    );
    let output = folder.run(&resumed);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let known: usize =
        said.split("anysched: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_eq!(known, runs.lines().count() - 2, "all but the cut line: {said}");
    assert!(!folder.names().contains(&"small.runs".to_string()));
    let alone = folder.stdout(&[&long[..], &["--out", "alone"]].concat());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), alone);
    for name in ["small.txt", "small.csv", "small.json", "small.runs.csv"] {
        let [resumed, alone] = ["results", "alone"].map(|of| folder.read(&format!("{of}/{name}")));
        assert!(resumed == alone, "{name} differs");
    }
}

#[test]
fn ctrl_c_ends_a_long_run_within_a_second() {
    let folder = folder();
    // Some minutes of it.
    let more = ["--set", "workload.0.tasks=500000", "--set", "quantum=10us"];
    let args = [&["run", "small.toml", "--policy", "rr"][..], &more].concat();
    let mut run = folder.command(&args).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let interrupted = Instant::now();
    Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    // A second, and as much again for a computer with other work.
    assert!(interrupted.elapsed() < Duration::from_secs(2), "{:?}", interrupted.elapsed());
}

/// Kills the program at random moments: each file is there as before or as after, and whole, and
/// besides there is at most what was being written, under a hidden name. With ANYSCHED_LONG set, 500
/// times.
#[test]
fn a_crash_leaves_old_or_new_files() {
    let kills = if std::env::var_os("ANYSCHED_LONG").is_some() { 500 } else { 24 };
    let folder = folder();
    folder.write("switches.txt", SWITCHES);
    folder.stdout(&["run", "small.toml", "--out", "kept"]);
    let commands: [(&[&str], &[&str]); 8] = [
        (
            &["run", "small.toml", "--out", "results", "--resume"],
            &["results/small.txt", "results/small.csv", "results/small.json"],
        ),
        (&["import", "rt-app", "load.json", "-o", "model.json"], &["model.json"]),
        (&["run", "small.toml", "--policy", "rr", "--trace", "a.pftrace"], &["a.pftrace"]),
        (&["run", "small.toml", "--policy", "rr", "--record", "a.log"], &["a.log"]),
        (&["run", "small.toml", "--report", "a.html"], &["a.html"]),
        (&["report", "kept", "-o", "b.html"], &["b.html"]),
        (&["import", "ftrace", "switches.txt", "-o", "tasks.json"], &["tasks.json"]),
        (&["plot", "small.toml", "--y", "makespan_ns", "--out", "a.svg"], &["a.svg"]),
    ];
    let mut new = Vec::new();
    for (args, names) in commands {
        let begun = Instant::now();
        folder.stdout(args);
        let files: Vec<_> = names.iter().map(|name| folder.read(name)).collect();
        new.push((begun.elapsed(), files));
    }
    let inputs = ["small.toml", "load.json", "switches.txt", "kept/small.json"];
    let read = || inputs.map(|name| folder.read(name));
    let (names_before, before) = (folder.names(), read());
    let mut hit = 0;
    for number in 0..kills {
        let (args, names) = commands[number % commands.len()];
        let (takes, new) = &new[number % commands.len()];
        names.iter().for_each(|name| folder.write(name, "old"));
        // From before the first to after the last moment, in steps that meet others each time.
        let part = (number as u32 * 37) % 101;
        let wait = || std::thread::sleep(*takes * part / 100);
        hit += usize::from(ended(&folder, args, "-KILL", wait));
        for (name, new) in names.iter().zip(new) {
            let there = folder.read(name);
            assert!(
                there == b"old" || there == *new,
                "{name} after {args:?}: {} bytes",
                there.len()
            );
        }
        let mut names = folder.names();
        names.retain(|name| !name.starts_with(".tmp"));
        assert_eq!(names, names_before, "after {args:?}");
    }
    assert!(read() == before, "an input has changed");
    assert!(hit > kills / 4, "only {hit} of {kills} were hit");
    println!("{hit} of {kills} were hit");
    let json: Value = serde_json::from_slice(&new[0].1[2]).unwrap();
    assert_eq!(json["complete"], true);
}
