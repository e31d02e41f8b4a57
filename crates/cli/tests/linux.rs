//! Experiments in Linux, by the program itself: `cargo xtask hosts linux` runs these.

mod program;

use program::Folder;
use serde_json::Value;
use std::io::Write;

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
    let output = folder.run(&["run", "bound.toml", "--host", "linux", "--format", "json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no suite of Debian at ") {
        let said = format!("NO LINUX KERNEL THAT FITS CAN BE HAD: NOTHING IS TESTED\n{errors}\n");
        // Not by `eprintln`, which tests keep to themselves.
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    }
    assert!(output.status.success(), "{errors}");
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{results:#}");
    for row in rows {
        let mean = |metric: &str| row["metrics"][metric]["mean"].as_f64().unwrap();
        assert_eq!(mean("completed"), 3.0, "{row:#}");
        // The nice one has a tenth of the CPU until the other is done: they end after 66 and 120 ms
        // of CPU 0's time, and the third after 60 of CPU 1's.
        assert!(mean("turnaround_ns") < 0.8 * mean("makespan_ns"), "{row:#}");
    }
}
