//! `anysched compare`: two experiments, or two folders of results, side by side.

mod program;

use program::Folder;
use serde_json::Value;

const BASE: &str = "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\ntasks = 30\n\
    service = \"exp(5ms)\"\n[sweep]\npolicy = [\"fcfs\", \"rr\"]\nseeds = 4\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.toml", BASE);
    folder.write("b.toml", BASE.replace("cpus = 1", "cpus = 1\ncontext_switch = \"1ms\""));
    folder
}

fn json(folder: &Folder, args: &[&str]) -> Value {
    let args = [&["compare", "--format", "json"], args].concat();
    serde_json::from_str(&folder.stdout(&args)).unwrap()
}

/// Both have the same tasks, although seeds derive from an experiment's name: without that, no
/// difference of a few percent would show in four seeds.
#[test]
fn two_experiments_have_the_same_tasks() {
    let folder = folder();
    let compared = json(&folder, &["a.toml", "b.toml", "--metric", "makespan_ns"]);
    let rows = compared["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((&row["pairs"], &row["tells"]), (&Value::from(4), &Value::from("higher")));
        let (mean, ci95) = (&row["difference"]["mean"], &row["difference"]["ci95"]);
        // Thirty tasks switch at least thirty times, less those that follow themselves.
        assert!(mean.as_f64().unwrap() >= 29e6, "{row}");
        let own = row["a"]["ci95"].as_f64().unwrap();
        assert!(ci95.as_f64().unwrap() < own, "{row}: pairs tell more than means");
    }
    let table = folder.stdout(&["compare", "a.toml", "b.toml"]);
    assert!(table.starts_with("A: a.toml\nB: b.toml\n"), "{table}");
    assert!(table.contains("the same tasks: 4 pairs"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("fcfs ") && line.ends_with(" higher")));
    // The same with itself.
    let same = json(&folder, &["a.toml", "a.toml"]);
    let rows = same["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["tells"] == "same"), "{same}");
}

/// What was written says the same as what was run.
#[test]
fn results_are_compared_as_experiments_are() {
    let folder = folder();
    // Of one name, and so with the same tasks.
    std::fs::create_dir(folder.join("new")).unwrap();
    folder.write("new/a.toml", folder.read("b.toml"));
    folder.stdout(&["run", "a.toml", "--out", "before"]);
    folder.stdout(&["run", "new/a.toml", "--out", "after"]);
    folder.stdout(&["run", "b.toml", "--out", "after"]);
    let files = ["before/a.runs.csv", "after/a.runs.csv"];
    let mut of_files = json(&folder, &files);
    let mut of_runs = json(&folder, &["a.toml", "new/a.toml"]);
    for text in [&mut of_files, &mut of_runs] {
        (text["a"], text["b"]) = (Value::Null, Value::Null);
    }
    assert_eq!(of_files, of_runs);
    let of_folder = folder.run(&["compare", "before", "after", "--format", "json"]);
    let said = String::from_utf8(of_folder.stderr).unwrap();
    // One of two experiments is in both.
    let mut compared: Value = serde_json::from_slice(&of_folder.stdout).unwrap();
    (compared["a"], compared["b"]) = (Value::Null, Value::Null);
    assert_eq!(compared, of_files);
    assert!(said.contains("only one side has after/b.runs.csv"), "{said}");
    let mixed = json(&folder, &["a.toml", "before"]);
    assert!(mixed["rows"].as_array().unwrap().iter().all(|row| row["tells"] == "same"));
}

/// Without the same seeds, means are independent.
#[test]
fn other_tasks_are_not_paired() {
    let folder = folder();
    folder.stdout(&["run", "a.toml", "--out", "results"]);
    folder.stdout(&["run", "b.toml", "--out", "results"]);
    let files = ["compare", "results/a.runs.csv", "results/b.runs.csv"];
    let table = folder.stdout(&files);
    assert!(table.contains("two independent means (Welch)"), "{table}");
    let csv =
        folder.stdout(&[&files[..], &["--format", "csv", "--metric", "makespan_ns"]].concat());
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("axes,policy_a,policy_b,metric,a_mean"), "{csv}");
}

#[test]
fn one_policy_against_another() {
    let folder = folder();
    for policy in ["fcfs", "rr"] {
        let text = BASE.replace("[\"fcfs\", \"rr\"]", &format!("[\"{policy}\"]"));
        folder.write(&format!("{policy}.toml"), text);
    }
    let table = folder.stdout(&["compare", "fcfs.toml", "rr.toml"]);
    assert!(table.contains("fcfs | rr"), "{table}");
    folder.write("cfs.toml", BASE.replace("\"fcfs\", \"rr\"", "\"cfs\", \"eevdf\""));
    let none = folder.stdout(&["compare", "fcfs.toml", "cfs.toml"]);
    assert!(none.contains("They have no row in common"), "{none}");
    assert!(none.contains("Only in B: cfs, eevdf."), "{none}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = folder();
    std::fs::create_dir(folder.join("empty")).unwrap();
    folder.write("wrong.runs.csv", "experiment,host,policy,seed\na,simulator,rr,1\n");
    let head = "experiment,spec_hash,host,policy,seed_index,seed,makespan_ns\n";
    folder.write("number.runs.csv", format!("{head}a,0,simulator,rr,0,1,fast\n"));
    folder.write("short.runs.csv", format!("{head}a,0,simulator\n"));
    for (args, said) in [
        (["a.toml", "empty"], "empty: no NAME.runs.csv, which `anysched run FILE.toml --out DIR`"),
        (["a.toml", "none"], "none"),
        (["wrong.runs.csv", "a.toml"], "wrong.runs.csv:1: no column `seed_index`"),
        (["number.runs.csv", "a.toml"], "number.runs.csv:2: `makespan_ns` = \"fast\" is no number"),
        (["short.runs.csv", "a.toml"], "short.runs.csv:2: "),
    ] {
        let error = folder.stderr(&["compare", args[0], args[1]]);
        assert!(error.contains(said), "{args:?}: {error}");
    }
    let error = folder.stderr(&["compare", "a.toml", "b.toml", "--metric", "makespan"]);
    assert!(error.contains("--metric makespan: did you mean `makespan_ns`?"), "{error}");
}
