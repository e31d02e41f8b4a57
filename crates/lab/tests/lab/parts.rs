//! Rows of workloads and tasks.

use crate::support::{self, SIMULATED};
use anysched_lab::{Experiment, Results, Verdict, output};
use std::path::Path;

/// On one CPU, first come, first served: two tasks of 10 ms, and one of 5 ms that comes at 1 ms.
fn two_loads(rest: &str) -> String {
    format!(
        r#"
question = "?"
policy = "fcfs"
[machine]
cpus = 1
[[workload]]
kind = "batch"
tasks = 2
service = "10ms"
[[workload]]
kind = "batch"
name = "late"
tasks = 1
service = "5ms"
at = "1ms"
{rest}
"#
    )
}

fn experiment(text: &str) -> Experiment {
    support::experiment("parts.toml", text)
}

fn run(experiment: &Experiment) -> Results {
    support::plan(experiment).run(&SIMULATED).unwrap()
}

/// A column of each row, behind the values of the row's axes.
fn rows(results: &Results, column: &str) -> Vec<(String, Vec<f64>)> {
    let column = anysched_lab::column(column).unwrap();
    let row = |row: &anysched_lab::Row| (results.groups[row.group].title(), row.values(column));
    results.rows.iter().map(row).collect()
}

fn expected(rows: &[(&str, f64)]) -> Vec<(String, Vec<f64>)> {
    rows.iter().map(|(title, value)| (title.to_string(), vec![*value])).collect()
}

#[test]
fn each_workload_has_a_row() {
    let experiment = experiment(&two_loads("")).with_rows_by(&["workload"]).unwrap();
    let results = run(&experiment);
    // 10, 20 and 25 ms after the start; the last arrived 1 ms after it.
    let turnaround =
        [("workload = all", 18e6), ("workload = batch", 15e6), ("workload = late", 24e6)];
    assert_eq!(rows(&results, "turnaround_ns_mean"), expected(&turnaround));
    let busy = [("workload = all", 25e6), ("workload = batch", 20e6), ("workload = late", 5e6)];
    assert_eq!(rows(&results, "busy_ns"), expected(&busy));
    insta::assert_snapshot!(output::table(&results));
    assert!(output::csv(&results).lines().next().unwrap().contains(",workload,seeds,"));
    assert!(output::json(&results).contains(r#""workload": "late""#));
}

#[test]
fn each_task_has_a_row() {
    let experiment = experiment(&two_loads("")).with_rows_by(&["task"]).unwrap();
    let waiting =
        [("task = all", 29e6 / 3.0), ("task = 0", 0.0), ("task = 1", 10e6), ("task = late", 19e6)];
    assert_eq!(rows(&run(&experiment), "waiting_time_ns_mean"), expected(&waiting));
}

#[test]
fn claims_and_columns_are_about_parts() {
    let text = two_loads(
        r#"
[report]
columns = ["turnaround_ns_mean", "workload.late.turnaround_ns_mean", "task.1.busy_ns"]
[[claim]]
id = "all"
text = "Of all tasks unless it says otherwise."
expect = "17ms < fcfs.turnaround_ns_mean < 19ms"
[[claim]]
id = "named"
text = "Workloads and tasks are compared."
expect = "fcfs.task.1.turnaround_ns_mean < fcfs.workload.late.turnaround_ns_mean"
[[claim]]
id = "where"
text = "Rows are chosen."
where = { workload = ["batch", "late"] }
expect = "fcfs.waiting_time_ns_mean > 4ms"
[[claim]]
id = "none"
text = "A task that is not there decides nothing."
expect = "fcfs.task.7.turnaround_ns_mean < 1s"
"#,
    );
    let results = run(&experiment(&text));
    let verdicts: Vec<_> = results.claims.iter().map(|claim| claim.verdict).collect();
    let holds = Some(Verdict::Holds);
    assert_eq!(verdicts, [holds, holds, holds, None]);
    assert_eq!(results.claims[2].checks.len(), 2, "one for each workload");
    insta::assert_snapshot!(output::table(&results));
}

#[test]
fn what_nothing_measures_is_said() {
    let text = two_loads("[report]\ncolumns = [\"job_response_time_ns_p99\"]");
    let table = output::table(&run(&experiment(&text)));
    let note = "No data of job_response_time_ns (Completion − release, per job of tasks that";
    assert!(table.contains(note), "{table}");
    assert!(table.contains("turnaround_ns"), "{table}");
}

#[test]
fn unknown_parts_are_refused() {
    let column = two_loads("[report]\ncolumns = [\"workload.lte.busy_ns\"]");
    let claim = two_loads(
        "[[claim]]\nid = \"1\"\ntext = \"?\"\nexpect = \"fcfs.workload.lte.busy_ns > 0\"",
    );
    for text in [column, claim] {
        let error = Experiment::parse(&text, Path::new("parts.toml")).unwrap_err().to_plain();
        assert!(error.contains("lte"), "{error}");
        assert!(error.contains("late"), "{error}");
    }
    let refused = experiment(&two_loads("")).with_rows_by(&["vm"]).unwrap_err().to_plain();
    assert!(refused.contains("no virtual machines"), "{refused}");
}
