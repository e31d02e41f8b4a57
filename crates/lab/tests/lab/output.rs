//! What is shown and written.

use crate::support::{self, SIMULATED};
use anysched_lab::Results;
#[cfg(feature = "parquet")]
use anysched_lab::columns;
use anysched_lab::output::{self, Form, Inputs};

fn run(text: &str, file: &str) -> Results {
    support::plan(&support::experiment(file, text)).run(&SIMULATED).unwrap()
}

/// Two scenarios, one of which has jobs and wake-ups, with costs, several seeds and a policy that
/// needs to know the future.
fn mixed() -> Results {
    run(
        r#"
question = "How long do tasks wait on two CPUs?"
title = "Waiting on two CPUs"
[machine]
cpus = 2
context_switch = "2us"
tick = "1ms"
[[scenario]]
name = "batch"
[[scenario.workload]]
kind = "batch"
tasks = 20
service = "exp(10ms)"
[[scenario]]
name = "periodic, and a hog"
duration = "200ms"
[[scenario.workload]]
kind = "periodic"
tasks = 3
period = "10ms"
run = "uniform(1ms, 3ms)"
[[scenario.workload]]
kind = "hog"
tasks = 2
[sweep]
policy = ["fcfs", { name = "rr", quantum = "2ms" }, "sjf"]
seeds = 4
[[claim]]
id = "W-1"
text = "The shortest first waits least"
expect = "sjf.waiting_time_ns_mean < fcfs.waiting_time_ns_mean"
measure = "1 - sjf.waiting_time_ns_mean / fcfs.waiting_time_ns_mean"
where = { scenario = "batch" }
"#,
        "mixed.toml",
    )
}

#[test]
fn the_table() {
    let table = output::table(&mixed());
    insta::assert_snapshot!(table);
    assert!(table.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_table_shows_what_the_file_asks_for() {
    let results = run(
        "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\n\
         tasks = 2\nservice = \"3ms\"\n[report]\ncolumns = [\"makespan_ns\", \"slowdown_max\"]\n",
        "asked.toml",
    );
    let expected = "\
asked
?

1 CPU; batch: tasks 2, service 3ms; costs: none; 1 seed

        makespan  slowdown
policy        ms       max
fcfs           6         2
";
    assert_eq!(output::table(&results), expected);
}

#[test]
fn json_has_the_agreed_shape() {
    let results = mixed();
    let json: serde_json::Value = serde_json::from_str(&output::json(&results)).unwrap();
    assert_eq!(json["experiment"], "mixed");
    assert_eq!(json["host"], "sim");
    assert_eq!(json["spec_hash"].as_str().unwrap().len(), 64);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    let row = &rows[2];
    assert_eq!((&row["policy"], &row["clairvoyant"]), (&"sjf".into(), &true.into()));
    assert_eq!((&row["axes"]["scenario"], &row["seeds"]), (&"batch".into(), &4.into()));
    let of = results.rows[2].aggregate("waiting_time_ns").unwrap();
    let metric = &row["metrics"]["waiting_time_ns"];
    let keys: Vec<&String> = metric.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 8);
    for (key, value) in [
        ("mean", of.mean),
        ("ci95", of.ci95.unwrap()),
        ("sd", of.sd),
        ("min", of.min),
        ("p50", of.p50),
        ("p95", of.p95),
        ("p99", of.p99),
        ("max", of.max),
    ] {
        assert_eq!(metric[key].as_f64(), Some(value), "{key}");
    }
    assert!(row["metrics"].get("wakeup_latency_ns").is_none(), "nothing sleeps in a batch");
    assert!(rows[4]["metrics"].get("wakeup_latency_ns").is_some());
    assert!(rows[4]["metrics"].get("turnaround_ns").is_none(), "nothing ends there");
}

#[test]
fn csv_has_a_line_per_row() {
    let results = mixed();
    let csv = output::csv(&results);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 7);
    let head = "experiment,spec_hash,host,policy,clairvoyant,rehearsed,scenario,seeds,";
    assert!(lines[0].starts_with(head), "{}", lines[0]);
    let line = format!(
        "mixed,{},sim,rr,false,false,\"periodic, and a hog\",4,,,,,,,,,",
        results.spec_hash
    );
    assert!(lines[5].starts_with(&line), "{}", lines[5]);
    let mean = results.rows[0].aggregate("turnaround_ns").unwrap().mean;
    assert_eq!(lines[1].split(',').nth(8).unwrap(), mean.to_string());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let results = run(
        "question = \"?\"\n[machine]\ncpus = 2\n[[workload]]\nkind = \"open\"\ntasks = 9\n\
         load = 0.5\nservice = \"exp(1ms)\"\n[sweep]\npolicy = [\"fcfs\", \"rr\"]\n\
         \"workload.0.load\" = [1, 0.5]\n\"workload.0.tasks\" = [9, 10]\n\
         \"machine.tick\" = [\"1ms\"]\nseeds = 3\n",
        "p.toml",
    );
    let bytes = output::parquet(&results).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let lines: Vec<Vec<(String, Field)>> =
        reader.get_row_iter(None).unwrap().map(|line| line.unwrap().into_columns()).collect();
    let runs: Vec<_> =
        results.rows.iter().flat_map(|row| row.runs.iter().map(move |run| (row, run))).collect();
    assert_eq!(lines.len(), runs.len());
    for (line, (row, run)) in lines.iter().zip(runs) {
        let field = |name: &str| &line.iter().find(|(known, _)| known == name).unwrap().1;
        let text = |text: &str| Field::Str(text.to_string());
        assert_eq!(field("policy"), &text(&results.policies[row.policy].label));
        assert_eq!(field("spec_hash"), &text(&results.spec_hash));
        assert_eq!(field("seed_index"), &Field::Long(i64::from(run.index)));
        assert_eq!(field("seed"), &Field::ULong(run.seed));
        let axes: Vec<String> =
            results.groups[row.group].axes.iter().map(|(_, value)| value.to_string()).collect();
        assert_eq!(field("workload.0.load"), &Field::Double(axes[0].parse().unwrap()));
        assert_eq!(field("workload.0.tasks"), &Field::Long(axes[1].parse().unwrap()));
        assert_eq!(field("machine.tick"), &text("1ms"));
        for column in columns() {
            let expected = run.value(*column).map_or(Field::Null, Field::Double);
            assert_eq!(field(&column.to_string()), &expected, "{column}");
        }
    }
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let results = mixed();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("new/results");
    let paths = output::write(&results, &Inputs::default(), &out, &Form::built()).unwrap();
    output::write(&results, &Inputs::default(), &out, &Form::built()).unwrap();
    let mut expected = vec!["mixed.csv", "mixed.json", "mixed.runs.csv", "mixed.txt"];
    if Form::Parquet.is_built() {
        expected.insert(2, "mixed.parquet");
    } else {
        let error = output::write(&results, &Inputs::default(), &out, &[Form::Parquet])
            .unwrap_err()
            .to_string();
        assert!(error.contains("without the feature `parquet`"), "{error}");
    }
    let names = || {
        let entries = std::fs::read_dir(&out).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), expected);
    assert_eq!(std::fs::read_to_string(&paths[1]).unwrap(), output::json(&results));
    // A directory in the way.
    std::fs::remove_file(out.join("mixed.json")).unwrap();
    std::fs::create_dir(out.join("mixed.json")).unwrap();
    let error = output::write(&results, &Inputs::default(), &out, &[Form::Json]).unwrap_err();
    assert!(error.to_string().contains("mixed.json cannot be written: "), "{error}");
    assert_eq!(names(), expected);
}
