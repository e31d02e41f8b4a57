//! `bench`: the reports, to the character, and what is refused.

mod program;

use program::Folder;
use serde_json::Value;

/// Short runs on a small machine without costs but for switching.
fn bench(tool: &str, more: &[&str]) -> String {
    let machine = ["--policy", "rr", "--topology", "2 cores", "--set", "quantum=10ms"];
    let text = Folder::new().stdout(&[&["bench", tool][..], &machine, more].concat());
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    trimmed.join("\n")
}

#[test]
fn interbench() {
    let more = ["--duration", "3s", "--against", "none,burn", "--burn", "3"];
    insta::assert_snapshot!(bench("interbench", &more));
}

#[test]
fn cyclictest() {
    let more = ["--threads", "3", "--burn", "2", "--duration", "1s"];
    insta::assert_snapshot!(bench("cyclictest", &more));
    insta::assert_snapshot!(bench("cyclictest", &["--duration", "1s", "--nsecs"]));
}

#[test]
fn schbench() {
    let more = ["--threads", "4", "--duration", "3s"];
    insta::assert_snapshot!(bench("schbench", &more));
}

#[test]
fn hackbench() {
    insta::assert_snapshot!(bench("hackbench", &["--groups", "2", "--loops", "10"]));
}

#[test]
fn json_has_an_object_for_each_policy() {
    let args = ["bench", "interbench", "--duration", "1s", "--format", "json"];
    let more = ["--policy", "fcfs,cfs", "--task", "x,audio", "--against", "x,none"];
    let found: Value =
        serde_json::from_str(&Folder::new().stdout(&[&args[..], &more].concat())).unwrap();
    let found = found.as_array().unwrap();
    let policies: Vec<&str> = found.iter().filter_map(|of| of["policy"].as_str()).collect();
    assert_eq!(policies, ["fcfs", "cfs"]);
    let pairs: Vec<[&str; 2]> = found[0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| ["task", "against"].map(|key| result[key].as_str().unwrap()))
        .collect();
    assert_eq!(pairs, [["x", "none"], ["audio", "x"], ["audio", "none"]]);
    let audio = &found[0]["results"][2];
    assert_eq!(audio["deadlines_met_percent"], 100.0);
    assert_eq!(audio["latency_ns"]["count"], 20);
}

/// Three messages on one CPU: 1 us each to send, then 1 us each to receive; or 2 us to send.
#[test]
fn settings_change_machines_and_loads() {
    let folder = Folder::new();
    let time = |more: &[&str]| {
        let small = ["--topology", "1 cores", "--groups", "1", "--fds", "1", "--loops", "3"];
        let args = ["bench", "hackbench", "--policy", "fcfs", "--format", "json"];
        let text = folder.stdout(&[&args[..], &small, more].concat());
        let found: Value = serde_json::from_str(&text).unwrap();
        found[0]["results"][0]["time_ns"].as_u64().unwrap()
    };
    let mut free = Vec::new();
    for cost in ["context_switch", "pick", "enqueue"] {
        free.extend(["--set".to_owned(), format!("machine.{cost}=0ns")]);
    }
    let free: Vec<&str> = free.iter().map(String::as_str).collect();
    assert_eq!(time(&free), 6_000);
    assert_eq!(time(&[&free[..], &["--set", "workload.0.send=2us"]].concat()), 9_000);
    assert!(time(&[]) > 6_000);
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let folder = Folder::new();
    for (args, remedy) in [
        (&["hackbench", "--policy", "cfz"][..], "did you mean `cfs`?"),
        (&["hackbench", "--topology", "3 foos"], "a topology looks like"),
        (&["cyclictest", "--threads", "0"], "from 1 to 1024"),
        (&["schbench", "--work", "0s"], "a request uses CPU time"),
        (&["interbench", "--task", "x", "--against", "x"], "nothing is left"),
        (&["interbench", "--burn", "0"], "`against` = \"none\" is no load"),
        (&["interbench", "--task", "burn"], "[possible values: audio, video, x, gaming, custom]"),
        (&["interbench", "--set", "machine.cores=3"], "machine.cores"),
    ] {
        let said = folder.stderr(&[&["bench"][..], args].concat());
        assert!(said.contains(remedy), "{args:?}: {said}");
    }
}
