//! Experiments in Linux, by the program itself: `cargo xtask hosts linux` runs these.

mod program;

use program::Folder;
use serde_json::Value;
use std::io::Write;

/// The tick of the experiment, in nanoseconds.
const TICK_NS: f64 = 4e6;

/// Two tasks of one CPU, of which one is nice, and one that has the other CPU to itself.
const BOUND: &str = r#"
question = "Do tasks have their niceness and CPUs?"
policy = "cfs"
[machine]
cpus = 2
tick = "4ms"
[[workload]]
kind = "batch"
tasks = 1
name = "plain"
service = "60ms"
affinity = "0"
[[workload]]
kind = "batch"
tasks = 1
name = "nice"
service = "60ms"
nice = 10
affinity = "0"
[[workload]]
kind = "batch"
tasks = 1
name = "alone"
service = "60ms"
affinity = "1"
[sweep]
of_host = ["stock-eevdf"]
"#;

/// Tasks of an experiment have their niceness and CPUs in the kernel, under a policy and under the
/// kernel's own scheduler.
#[test]
#[ignore = "boots kernels: cargo xtask hosts linux"]
fn experiments_run_in_linux() {
    let folder = Folder::new();
    folder.write("bound.toml", BOUND);
    let run = "run bound.toml --host linux --format json --report bound.html";
    let output = folder.run(&run.split(' ').collect::<Vec<_>>());
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no suite of Debian at ") {
        let said = format!("NO LINUX KERNEL THAT FITS CAN BE HAD: NOTHING IS TESTED\n{errors}\n");
        // Not by `eprintln`, which tests keep to themselves.
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    }
    assert!(output.status.success(), "{errors}");
    assert!(folder.read("bound.html").starts_with(b"<!doctype html>"));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{results:#}");
    for row in rows {
        let of = |metric: &str, value: &str| row["metrics"][metric][value].as_f64().unwrap();
        assert_eq!(of("completed", "mean"), 3.0, "{row:#}");
        // The nice one has a tenth of CPU 0 until the other is done, so that it ends after 120 ms of
        // its time, the other after 66; with equal shares both would end within a tick of each
        // other. CPUs take turns, by which the clock may pass much of that time by.
        let (second, last) = (of("turnaround_ns", "p50"), of("turnaround_ns", "max"));
        assert!(last - second > 2.0 * TICK_NS, "{row:#}");
    }
}
