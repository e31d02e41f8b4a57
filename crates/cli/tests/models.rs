//! `load-model` and `model`: what they print, to the character, and what they refuse.

mod program;

use anysched_workload::dist::Dist;
use anysched_workload::rng::Rng;
use flate2::{Compression, write::GzEncoder};
use program::Folder;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

fn printed(args: &[&str]) -> String {
    let text = Folder::new().stdout(args);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{args:?}: {line}");
        assert_eq!(line, line.trim_end(), "{args:?}");
    }
    text
}

fn json(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_str(&folder.stdout(&[args, &["--format", "json"]].concat())).unwrap()
}

/// Times drawn from a distribution, one a line.
fn drawn(text: &str, n: usize) -> String {
    let dist = Dist::parse(text, Path::new("")).unwrap();
    let mut rng = Rng::from_seed(1);
    let mut lines = String::from("service_ns\n");
    for _ in 0..n {
        writeln!(lines, "{}", dist.sample(&mut rng).0).unwrap();
    }
    lines
}

#[test]
fn an_exponential() {
    insta::assert_snapshot!(printed(&["load-model", "--service", "exp(10ms)"]));
}

#[test]
fn a_uniform() {
    insta::assert_snapshot!(printed(&["load-model", "--service", "uniform(2ms, 8ms)"]));
}

#[test]
fn a_heavy_tail() {
    insta::assert_snapshot!(printed(&["load-model", "--service", "pareto(1.1, 100us, 10s)"]));
}

#[test]
fn a_fit() {
    let folder = Folder::new();
    folder.write("times.csv", drawn("hyperexp(0.9: 1ms, 0.1: 50ms)", 10_000));
    let text = folder.stdout(&["load-model", "--fit", "times.csv"]);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn m_m_c() {
    let station = ["--load", "0.9", "--service", "10ms", "--servers", "4"];
    insta::assert_snapshot!(printed(&[&["model", "mmc"][..], &station].concat()));
}

#[test]
fn m_m_c_n_beside_the_paper() {
    let station = ["--arrivals", "270", "--service", "10ms", "--servers", "3", "--limit", "20"];
    insta::assert_snapshot!(printed(&[&["model", "mmcn", "--paper"][..], &station].concat()));
}

#[test]
fn a_batch_under_m_rsf() {
    insta::assert_snapshot!(printed(&["model", "m-rsf"]));
}

#[test]
fn a_batch_of_other_tasks_under_m_rsf() {
    let service = ["--service", "lognormal(10ms, 1.5)", "--q", "0.5,1,4"];
    insta::assert_snapshot!(printed(&[&["model", "m-rsf"][..], &service].concat()));
}

const PERIODIC: &str = "run,period,deadline\n3ms,7ms,\n3ms,12ms,\n5ms,20ms,\n";

/// The last task is done just in time.
#[test]
fn periodic_tasks() {
    let folder = Folder::new();
    folder.write("tasks.csv", PERIODIC);
    insta::assert_snapshot!(folder.stdout(&["model", "periodic", "tasks.csv"]));
}

#[test]
fn periodic_tasks_that_miss_deadlines() {
    let folder = Folder::new();
    folder.write(
        "tasks.csv",
        "period,run,deadline,jitter\n4ms,2ms,2ms,\n6ms,3ms,5ms,100us\n9s,1ms,,",
    );
    insta::assert_snapshot!(folder.stdout(&["model", "periodic", "tasks.csv"]));
}

/// The CPU is busy for thousands of millions of jobs at a stretch.
#[test]
fn periodic_tasks_that_are_not_decided() {
    let folder = Folder::new();
    folder.write("tasks.csv", "run,period\n999999999ns,1s\n999999993ns,1000000h\n");
    insta::assert_snapshot!(folder.stdout(&["model", "periodic", "tasks.csv"]));
}

#[test]
fn json_has_the_same_numbers() {
    let folder = Folder::new();
    let exponential = json(&folder, &["load-model", "--service", "exp(10ms)"]);
    assert_eq!(exponential["recommended_slice_ns"], 10_000_000);
    let near = |value: &Value, wanted: f64| {
        let found = value.as_f64().unwrap();
        assert!((found - wanted).abs() < 0.00005, "{found}, not {wanted}");
    };
    near(&exponential["done_after_q1"], 0.6321);
    near(&exponential["done_after_q2"], 0.8647);
    let slices = ["load-model", "--service", "exp(10ms)", "--q1", "5ms", "--q2", "20ms"];
    let other = json(&folder, &slices);
    near(&other["done_after_q1"], 1.0 - (-0.5f64).exp());
    near(&other["done_after_q2"], 1.0 - (-2.5f64).exp());
    let batch = json(&folder, &["model", "m-rsf"]);
    for (row, wanted) in [0.3758, 0.3268, 0.2892, 0.2687].into_iter().enumerate() {
        near(&batch["rows"][row]["closed_form"], wanted);
    }
    let queue = json(&folder, &["model", "mmc", "--load", "0.5", "--service", "1s"]);
    near(&queue["time_ns"], 2e9);
    folder.write("tasks.csv", PERIODIC);
    let periodic = json(&folder, &["model", "periodic", "tasks.csv"]);
    near(&periodic["utilisation"], 3.0 / 7.0 + 0.5);
    assert_eq!(periodic["hyperperiod_ns"], 420_000_000);
    assert_eq!((&periodic["dm"], &periodic["edf"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!(periodic["liu_layland"], false);
    assert_eq!(periodic["tasks"][2]["dm_response_ns"], 20_000_000);
    let limited = ["model", "mmcn", "--load", "1", "--service", "1s", "--limit", "3"];
    assert_eq!(json(&folder, &limited)["pi"].as_array().unwrap().len(), 4);
}

/// The same times as CSV, as tasks, compressed, and as a job log.
#[test]
fn formats_of_files() {
    let folder = Folder::new();
    let seconds = [3u64, 5, 9, 2, 14, 1, 30, 4];
    let (mut csv, mut tasks, mut swf) =
        (String::new(), "arrival_ns,service_ns\n".to_string(), "; Version: 2\n".to_string());
    for (number, time) in seconds.into_iter().enumerate() {
        writeln!(csv, "{time}s").unwrap();
        writeln!(tasks, "{number},{}", time * 1_000_000_000).unwrap();
        writeln!(swf, "{number} 0 5 {time} 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1").unwrap();
    }
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(csv.as_bytes()).unwrap();
    folder.write("times.csv", &csv);
    folder.write("times.csv.gz", zipped.finish().unwrap());
    folder.write("tasks.csv", &tasks);
    folder.write("log.swf", &swf);
    let expected = json(&folder, &["load-model", "--fit", "times.csv"]);
    for (file, format) in
        [("times.csv", "csv"), ("times.csv.gz", "csv"), ("tasks.csv", "tasks"), ("log.swf", "swf")]
    {
        let guessed = json(&folder, &["load-model", "--fit", file]);
        assert_eq!(guessed["fit"]["format"], format, "{file}");
        assert_eq!(guessed["fit"]["fits"], expected["fit"]["fits"], "{file}");
        let told = json(&folder, &["load-model", "--fit", file, "--as", format]);
        assert_eq!(told, guessed);
    }
}

#[test]
fn a_recording_is_fitted() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/cargo-build.txt.gz");
    let fitted = json(&Folder::new(), &["load-model", "--fit", trace]);
    assert_eq!(fitted["fit"]["format"], "ftrace");
    assert!(fitted["fit"]["times"].as_u64().unwrap() > 1000);
    assert!(fitted["fit"]["fits"].as_array().unwrap().len() >= 4);
}

#[test]
fn wrong_input_says_what_to_change() {
    let folder = Folder::new();
    folder.write("empty.csv", "");
    folder.write("same.csv", "5ms\n5ms\n5ms\n");
    folder.write("word.csv", "times\n5ms\nsoon\n");
    folder.write("long.csv", "run,period\n1ms,4ms\n5ms,4ms\n");
    folder.write("zero.csv", "run,period\n1ms,0\n");
    folder.write("names.csv", "run,period,deadline\n");
    let mmc = |more: &[&'static str]| [&["model", "mmc", "--service", "10ms"][..], more].concat();
    let mut all = String::new();
    for args in [
        vec!["load-model", "--service", "exp(0)"],
        vec!["load-model", "--service", "exp(-1ms)"],
        vec!["load-model", "--service", "0"],
        vec!["load-model", "--service", "uniform(5ms, 1ms)"],
        vec!["load-model", "--service", "normal(5ms)"],
        vec!["load-model", "--service", "exp(10ms)", "--q1", "0"],
        vec!["load-model", "--service", "exp(10ms)", "--q2", "5"],
        vec!["load-model", "--fit", "empty.csv"],
        vec!["load-model", "--fit", "same.csv"],
        vec!["load-model", "--fit", "word.csv"],
        vec!["load-model", "--fit", "word.csv", "--as", "swf"],
        vec!["load-model", "--fit", "word.csv", "--as", "ftrace"],
        vec!["load-model", "--fit", "word.csv", "--as", "tasks"],
        mmc(&["--arrivals", "0"]),
        mmc(&["--arrivals", "-5"]),
        mmc(&["--load", "0"]),
        mmc(&["--load", "nan"]),
        mmc(&["--load", "0.5", "--servers", "0"]),
        mmc(&["--load", "1"]),
        mmc(&["--arrivals", "250", "--servers", "2"]),
        vec!["model", "mmc", "--load", "0.5", "--service", "0"],
        vec!["model", "mmc", "--load", "0.5", "--service", "10"],
        vec!["model", "mmcn", "--load", "2", "--service", "1s", "--servers", "3", "--limit", "2"],
        vec!["model", "mmcn", "--load", "1", "--service", "1s", "--limit", "2", "--paper"],
        vec!["model", "m-rsf", "--q", "0"],
        vec!["model", "m-rsf", "--service", "0"],
        vec!["model", "periodic", "nothing.csv"],
        vec!["model", "periodic", "empty.csv"],
        vec!["model", "periodic", "names.csv"],
        vec!["model", "periodic", "word.csv"],
        vec!["model", "periodic", "long.csv"],
        vec!["model", "periodic", "zero.csv"],
    ] {
        let error = folder.stderr(&args);
        writeln!(all, "{}\n    {}\n", args.join(" "), error.trim_end()).unwrap();
    }
    insta::assert_snapshot!(all);
}
