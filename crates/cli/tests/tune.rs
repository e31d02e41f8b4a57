//! `anysched tune`.

mod program;

use program::Folder;
use serde_json::Value;

const QUICK: [&str; 8] =
    ["tune", "--service", "exp(10ms)", "--batch", "--tasks", "200", "--seeds", "6"];

fn tune(more: &[&str]) -> String {
    Folder::new().stdout(&[&QUICK, more].concat())
}

#[test]
fn the_output_does_not_depend_on_jobs() {
    for format in ["table", "json", "markdown"] {
        let run = |jobs| tune(&["--format", format, "--jobs", jobs]);
        let one = run("1");
        assert!(!one.is_empty());
        assert_eq!(one, run("2"), "{format}");
        assert_eq!(one, run("2"), "{format}");
    }
}

#[test]
fn the_table() {
    let table = tune(&["--policy", "m-rsf"]);
    insta::assert_snapshot!("tune", table);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn json_says_what_was_asked_and_found() {
    let json: Value =
        serde_json::from_str(&tune(&["--objective", "p99", "--format", "json"])).unwrap();
    assert_eq!((&json["service"], &json["arriving"]), (&"exp(10ms)".into(), &"batch".into()));
    assert_eq!((&json["objective"], &json["complete"]), (&"p99".into(), &true.into()));
    let rows = json["rows"].as_array().unwrap();
    let row = |label: &str| rows.iter().find(|row| row["label"] == label).unwrap();
    assert_eq!(row("srpt")["turnaround_ns_mean"]["percent_over_srpt"], Value::Null);
    assert_eq!(row("srpt")["search_runs"], Value::Null);
    assert!(row("mlfq")["search_runs"].as_u64().unwrap() > 0);
    assert_eq!(row("m-rsf ewma")["settings"]["estimate"], "ewma");
    let mean = |label: &str| row(label)["turnaround_ns_mean"]["mean"].as_f64().unwrap();
    let percent = row("fcfs")["turnaround_ns_mean"]["percent_over_srpt"]["mean"].as_f64().unwrap();
    assert!((percent - (mean("fcfs") / mean("srpt") - 1.0) * 100.0).abs() < 1e-9, "{percent}");
}

#[test]
fn markdown_is_one_table() {
    let page = tune(&["--policy", "mlfq", "--format", "markdown"]);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 6, "{page}");
    assert!(rows.iter().all(|row| row.matches('|').count() == 7), "{page}");
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let says = |args: &[&str], parts: &[&str]| {
        let message = folder.stderr(&[&["tune"], args].concat());
        for part in parts {
            assert!(message.contains(part), "{args:?}: {part} is not in {message}");
        }
    };
    says(&["--service", "gauss(1ms)"], &["--service \"gauss(1ms)\"", "exp"]);
    says(&["--service", "0"], &["--service 0:", "for example \"10ms\""]);
    says(&["--service", "1ms", "--load", "1.2"], &["--load 1.2", "below 1", "--tasks"]);
    says(&["--service", "1ms", "--load", "0"], &["--load 0: above 0"]);
    says(&["--service", "1ms", "--load", "0.5", "--batch"], &["--batch", "--load"]);
    says(&["--service", "1ms", "--policy", "cfs"], &["m-rsf", "mlfq"]);
    says(&["--service", "1ms", "--seeds", "1"], &["2..=100000"]);
    says(&[], &["--service"]);
    let overload = ["tune", "--service", "1ms", "--load", "1.2", "--tasks", "20", "--seeds", "2"];
    assert!(folder.stdout(&overload).contains("load 1.2, 20 tasks"));
}

const EXPERIMENT: &str = "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\n\
    kind = \"batch\"\ntasks = 9\nservice = \"10ms\"\n[sweep]\npolicy = [\"rr\", \"fcfs\"]\nseeds = 4\n";

/// Tasks that are all alike are served best one after the other.
#[test]
fn values_are_searched_for_an_experiment() {
    let folder = Folder::new();
    folder.write("e.toml", EXPERIMENT);
    let tune = ["tune", "e.toml", "--policy", "rr", "--metric", "turnaround_ns_mean", "--over"];
    let json = folder.stdout(&[&tune[..], &["quantum=1ms,10ms,20ms", "--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"][0]["lines"][0]["settings"]["quantum"], "10ms");
    assert_eq!(json["rows"][0]["lines"][0]["mean"].as_f64(), Some(50e6));
    let more = ["quantum=1ms,10ms", "--set", "workload.0.tasks=3", "--seeds", "2", "--seed", "7"];
    let table = folder.stdout(&[&tune[..], &more].concat());
    assert!(table.contains("tasks 3") && table.contains("; 2 seeds, then 2"), "{table}");
    // Values with commas.
    let list = ["tune", "e.toml", "--policy", "mlfq", "--metric", "turnaround_ns_mean"];
    let over = ["--over", "slices=1ms,2ms|20ms", "--over", "boost=0", "--format", "markdown"];
    let page = folder.stdout(&[&list[..], &over].concat());
    assert!(page.contains("| mlfq: slices = 20ms, boost = 0 |"), "{page}");
    assert!(page.contains("| mlfq: slices = 1ms,2ms, boost = 0 |"), "{page}");
}

#[test]
fn what_a_file_says_is_not_said_again() {
    let folder = Folder::new();
    folder.write("e.toml", EXPERIMENT);
    let says = |args: &[&str], parts: &[&str]| {
        let message = folder.stderr(&[&["tune", "e.toml"], args].concat());
        for part in parts {
            assert!(message.contains(part), "{args:?}: {part} is not in {message}");
        }
    };
    let remedy = "change it there, or for example with --set 'machine.cpus=4'";
    says(&["--cpus", "2"], &["--cpus: the experiment file says that", remedy]);
    says(&["--service", "1ms"], &["--service: the experiment file"]);
    says(&["--load", "0.5"], &["--load: the experiment file"]);
    says(&["--batch"], &["--batch: the experiment file"]);
    says(&["--tasks", "5"], &["--tasks: the experiment file"]);
    says(&["--objective", "p99"], &["--objective: ", "--metric turnaround_ns_p99"]);
    says(&["--metric", "makespan_ns"], &["--policy is given 0 times", "label"]);
    says(&["--policy", "rr"], &["no --metric"]);
    let asked = ["--policy", "rr", "--metric", "makespan_ns"];
    says(&asked, &["no --over", "quantum=1ms,5ms,20ms"]);
    for wrong in ["quantum", "=1ms", "quantum=", "quantum=1ms,,2ms"] {
        let message = format!("--over \"{wrong}\": it takes KEY=V1,V2,…");
        says(&[&asked[..], &["--over", wrong]].concat(), &[&message]);
    }
    says(&[&asked[..], &["--over", "quantum=1ms,0"]].concat(), &["e.toml:", "above 0"]);
    let message = folder.stderr(&["tune", "--service", "1ms", "--over", "quantum=1ms"]);
    assert!(message.contains("FILE.toml"), "{message}");
}
