//! The program, command by command.

mod program;

use anysched_policies::POLICIES;
use anysched_workload::KINDS;
use program::Folder;
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SMALL: &str = r#"
question = "Which is shorter?"
[machine]
cpus = 2
context_switch = "1us"
[[workload]]
kind = "batch"
tasks = 20
service = "exp(10ms)"
[sweep]
policy = ["fcfs", "rr"]
"workload.0.tasks" = [5, 20]
seeds = 2
[[claim]]
id = "c1"
text = "First come waits at most twice as long"
expect = "fcfs.waiting_time_ns_mean < 2.0 * rr.waiting_time_ns_mean"
"#;

fn small() -> Folder {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder
}

fn json(folder: &Folder, args: &[&str]) -> Value {
    let args = [&["run", "small.toml", "--format", "json"], args].concat();
    serde_json::from_str(&folder.stdout(&args)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn policies(results: &Value) -> Vec<&str> {
    let rows = results["rows"].as_array().unwrap();
    rows.iter().map(|row| row["policy"].as_str().unwrap()).collect()
}

/// The mean of a metric in the first row.
fn mean(results: &Value, metric: &str) -> f64 {
    results["rows"][0]["metrics"][metric]["mean"].as_f64().unwrap()
}

#[test]
fn results_do_not_depend_on_jobs_or_on_the_time_of_day() {
    let folder = small();
    for format in ["table", "json", "csv"] {
        let run = |jobs| folder.stdout(&["run", "small.toml", "--format", format, "--jobs", jobs]);
        let one = run("1");
        assert!(!one.is_empty());
        assert_eq!(one, run("2"), "{format}");
        assert_eq!(one, run("2"), "{format}");
    }
}

/// The code tells claims that came out otherwise than expected from errors; fewer seeds may leave
/// undecided what is expected to hold, and do not contradict it.
#[test]
fn reproduce_fails_if_a_claim_comes_out_otherwise() {
    let claim = |id: &str, expect: &str, keys: &str| {
        format!("[[claim]]\nid = \"{id}\"\ntext = \"t\"\nexpect = \"{expect}\"\n{keys}\n")
    };
    let folder = Folder::new();
    for paper in ["one", "two", "three", "none"] {
        std::fs::create_dir_all(folder.join("papers").join(paper)).unwrap();
    }
    let (head, _) = SMALL.split_once("[[claim]]").unwrap();
    let quick = "[quick]\nseeds = 2\n\"workload.0.tasks\" = 5\n";
    let (right, wrong) = ("fcfs.tasks > 4", "fcfs.tasks > 20");
    let more = head.replace("seeds = 2", "seeds = 20");
    // Round robin answers later in each of many seeds, but two are too few to tell.
    let slow = "fcfs.waiting_time_ns_mean < 1.1 * rr.waiting_time_ns_mean";
    let one = more + &claim("right", right, "") + &claim("slow", slow, "") + quick;
    folder.write("papers/one/a.toml", one);
    let in_some_rows = claim("rows", "fcfs.tasks < 6", "verdict = \"does not hold\"");
    folder.write("papers/two/a.toml", head.to_string() + &in_some_rows + quick);
    let sized = claim("sized", right, "measure = \"fcfs.tasks\"\nsize = [1, 2]");
    let three = claim("wrong", wrong, "") + &claim("right", right, "") + &sized;
    folder.write("papers/three/a.toml", head.to_string() + &three + quick);
    folder.write("papers/none/a.toml", head);
    let reproduce = |args: &[&str]| {
        let output =
            folder.run(&[&["reproduce", "--experiments", "papers", "--jobs", "1"], args].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said, String::from_utf8(output.stdout).unwrap())
    };
    for paper in ["one", "two"] {
        for args in [&[paper][..], &[paper, "--quick"]] {
            let (code, said, printed) = reproduce(args);
            assert_eq!((code, said.as_str()), (Some(0), ""), "{args:?}: {printed}");
        }
    }
    let told = "anysched: otherwise than the experiments expect: wrong, sized\n";
    for args in [&["three"][..], &["three", "--quick"], &["all", "--quick"]] {
        let (code, said, printed) = reproduce(args);
        assert_eq!((code, said.as_str()), (Some(3), told), "{args:?}");
        assert!(printed.contains("wrong: does not hold (expected: holds)"), "{printed}");
    }
    let (_, _, printed) = reproduce(&["all"]);
    for id in ["right", "slow", "rows", "wrong", "sized"] {
        assert!(printed.contains(&format!("  {id}: ")), "{id}: {printed}");
    }
    let (code, said, _) = reproduce(&["all", "--host", "linux"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("no experiments for linux in papers"), "{said}");
}

#[test]
fn json_has_the_documented_keys() {
    let results = json(&small(), &[]);
    let mut top = keys(&results);
    top.sort_unstable();
    let expected =
        ["claims", "complete", "experiment", "host", "question", "rows", "seed", "spec_hash"];
    assert_eq!(top, expected);
    assert_eq!(results["experiment"], "small");
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "two policies by two values of the axis");
    for row in rows {
        let mut names = keys(row);
        names.sort_unstable();
        assert_eq!(names, ["axes", "clairvoyant", "metrics", "policy", "rehearsed", "seeds"]);
        assert_eq!(keys(&row["axes"]), ["workload.0.tasks"]);
        assert_eq!(row["seeds"], 2);
        for (name, metric) in row["metrics"].as_object().unwrap() {
            let mut names = keys(metric);
            names.sort_unstable();
            let expected = ["ci95", "max", "mean", "min", "p50", "p95", "p99", "sd"];
            assert_eq!(names, expected, "{name}");
        }
    }
    assert_eq!(mean(&results, "tasks"), 5.0);
    assert_eq!(results["claims"][0]["id"], "c1");
}

#[test]
fn csv_has_a_line_per_row_and_as_many_fields_as_names() {
    let text = small().stdout(&["run", "small.toml", "--format", "csv"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 4);
    assert!(
        lines[0].starts_with(
            "experiment,spec_hash,host,policy,clairvoyant,rehearsed,workload.0.tasks,"
        )
    );
    let fields = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| fields(line) == fields(lines[0])));
}

#[test]
fn the_command_line_changes_the_experiment() {
    let folder = small();
    let chosen = json(&folder, &["--policy", "rr,cfs", "--seeds", "3"]);
    assert_eq!(policies(&chosen), ["rr", "cfs", "rr", "cfs"]);
    assert_eq!(chosen["rows"][0]["seeds"], 3);
    assert_eq!(chosen["claims"].as_array().unwrap().len(), 0, "fcfs is left out");

    let rr = |set: &[&str]| json(&folder, &[&["--policy", "rr"], set].concat());
    let plain = rr(&[]);
    let short = rr(&["--set", "quantum=1ms"]);
    let metric = "context_switches";
    assert!(mean(&short, metric) > 2.0 * mean(&plain, metric), "a short quantum switches more");
    let wide = rr(&["--set", "machine.cpus=8"]);
    assert_eq!(mean(&wide, "waiting_time_ns"), 1000.0, "five tasks on eight CPUs wait for nobody");
}

#[test]
fn out_writes_the_results_in_every_form() {
    let folder = small();
    let table = folder.stdout(&["run", "small.toml", "--out", "results"]);
    let in_results = |name: &str| folder.read(&format!("results/{name}"));
    assert_eq!(in_results("small.txt"), table.as_bytes());
    assert_eq!(
        in_results("small.csv"),
        folder.stdout(&["run", "small.toml", "--format", "csv"]).as_bytes()
    );
    assert_eq!(
        in_results("small.json"),
        folder.stdout(&["run", "small.toml", "--format", "json"]).as_bytes()
    );
    // A head, and a line for each run.
    let runs = String::from_utf8(in_results("small.runs.csv")).unwrap();
    let results: Value = serde_json::from_slice(&in_results("small.json")).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let seeds: u64 = rows.iter().map(|row| row["seeds"].as_u64().unwrap()).sum();
    assert_eq!(runs.lines().count() as u64, 1 + seeds);
    let files = std::fs::read_dir(folder.join("results")).unwrap().count();
    if cfg!(feature = "parquet") {
        let parquet = in_results("small.parquet");
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
        assert_eq!(files, 5);
    } else {
        assert_eq!(files, 4);
        let said = folder.run(&["run", "small.toml", "--out", "results"]).stderr;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("no parquet") && said.contains("--features parquet"), "{said}");
    }
}

/// Two tasks that wake each other for ever without using the CPU stop a run with an error.
const STANDSTILL: &str = r#"{"anysched-model":1,"until":1000000,"channels":2,"scripts":[
{"ops":[["signal",1],["wait",0]],"rounds":"forever"},
{"ops":[["wait",1],["signal",0]],"rounds":"forever"}],
"tasks":[{"arrives":0,"script":0},{"arrives":0,"script":1}]}"#;

#[test]
fn a_run_that_fails_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.write("model.json", STANDSTILL);
    let text = "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n[[workload]]\n\
                kind = \"model\"\nfile = \"model.json\"\n";
    folder.write("still.toml", text);
    let outputs = ["--out", "results", "--trace", "x.pftrace", "--record", "x.log"];
    let message = folder.stderr(&[&["run", "still.toml"], &outputs[..]].concat());
    assert!(message.contains("time stands still"), "{message}");
    assert_eq!(folder.names(), ["model.json", "still.toml"]);
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let folder = small();
    for option in ["--trace", "--record", "--learned"] {
        let message =
            folder.stderr(&["run", "small.toml", option, "no-folder/x.txt", "--out", "results"]);
        assert!(message.contains("no-folder"), "{message}");
    }
    assert_eq!(folder.names(), ["small.toml"], "and nothing else has been written");
}

#[test]
fn traces_are_of_the_format_that_their_name_says() {
    let folder = small();
    folder.stdout(&[
        "run",
        "small.toml",
        "--policy",
        "rr",
        "--set",
        "workload.0.tasks=5",
        "--trace",
        "x.txt",
    ]);
    folder.stdout(&[
        "run",
        "small.toml",
        "--policy",
        "rr",
        "--set",
        "workload.0.tasks=5",
        "--trace",
        "x.pftrace",
    ]);
    // Two rows, two files, told apart by the group's number.
    folder.stdout(&["run", "small.toml", "--policy", "rr", "--trace", "y.txt"]);
    let names = folder.names();
    assert_eq!(names, ["small.toml", "x.pftrace", "x.txt", "y-0.txt", "y-1.txt"]);
    assert!(folder.read("x.txt").starts_with(b"# tracer: nop\n"));
    // Every top-level field of a Perfetto trace is a packet: field 1, length-delimited.
    assert_eq!(folder.read("x.pftrace")[0], 0x0a);
}

/// The last event is the start of the task that runs from then on.
#[test]
fn a_trace_ends_when_the_run_does() {
    let folder = Folder::new();
    let experiment = r#"
question = "When does it end?"
duration = "70ms"
[machine]
cpus = 1
[[workload]]
kind = "hog"
[sweep]
policy = ["fcfs"]
"#;
    folder.write("hog.toml", experiment);
    folder.stdout(&["run", "hog.toml", "--trace", "x.txt"]);
    let trace = String::from_utf8(folder.read("x.txt")).unwrap();
    let last = trace.lines().last().unwrap();
    assert!(
        last.contains(" 0.070000000: sched_switch: ") && last.ends_with("next_pid=0 next_prio=120"),
        "{last}"
    );
}

#[test]
fn a_log_replays_and_a_changed_one_does_not() {
    let folder = small();
    let one = ["--set", "workload.0.tasks=20", "--policy", "rr", "--record", "x.log"];
    folder.stdout(&[&["run", "small.toml", "--set", "quantum=2ms"], &one[..]].concat());
    let said = folder.stdout(&["replay", "x.log"]);
    assert!(said.starts_with("rr: ") && said.ends_with("no decision differs\n"), "{said}");
    assert!(folder.stdout(&["replay", "x.log", "--show"]).starts_with("1 at 0: attach task 0"));

    let log = folder.read("x.log");
    let mut survived = 0;
    for at in (0..log.len()).step_by(log.len() / 50) {
        let mut changed = log.clone();
        changed[at] ^= 0x01;
        folder.write("y.log", &changed);
        let output = folder.run(&["replay", "y.log"]);
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "byte {at}");
        if output.status.success() {
            survived += 1;
        } else {
            assert!(output.stderr.len() + output.stdout.len() > 20, "byte {at}: no message");
        }
    }
    // Some bytes say nothing that round robin decides by, such as a burst's length.
    assert!(survived < 35, "{survived} of 50 changes were not noticed");
}

#[test]
fn a_log_of_another_policy_differs() {
    let folder = small();
    let one = ["run", "small.toml", "--policy", "rr", "--set", "workload.0.tasks=5"];
    folder.stdout(&[&one[..], &["--record", "x.log"]].concat());
    let log = folder.read("x.log");
    // Magic number and version, then the length of the name and the name.
    assert_eq!(&log[9..12], b"\x02rr");
    let renamed = |name: &[u8]| [&log[..9], &[name.len() as u8], name, &log[12..]].concat();
    folder.write("fcfs.log", renamed(b"fcfs"));
    let output = folder.run(&["replay", "fcfs.log"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("now the policy answers"), "{said}");
    folder.write("other.log", renamed(b"zz"));
    let message = folder.stderr(&["replay", "other.log"]);
    assert_eq!(message, "anysched: other.log: there is no policy `zz` here\n");
}

#[test]
fn what_is_learned_can_be_gone_by() {
    let folder = small();
    let run = ["run", "small.toml", "--set", "workload.0.tasks=5", "--seeds", "1"];
    let json = ["--format", "json"];
    let pbg = [&run[..], &["--policy", "pbg", "--learned", "a.profile"], &json].concat();
    let output = folder.run(&pbg);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "anysched: wrote what pbg learned: profile=@a.profile\n");
    let rehearsed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let profile = String::from_utf8(folder.read("a.profile")).unwrap();
    assert_eq!(profile.matches('=').count(), 5, "{profile}");
    assert_eq!(rehearsed["rows"][0]["rehearsed"], true);

    // Without a rehearsal, and as told by somebody who knows, the results are the same.
    let again = ["--policy", "pbg", "--set", "profile=@a.profile"];
    let told = ["--set", "profile_source=given"];
    for more in [&again[..], &[again, ["--learned", "c.profile", "--jobs", "1"]].concat()] {
        let results: Value =
            serde_json::from_str(&folder.stdout(&[&run[..], more, &json].concat())).unwrap();
        assert_eq!(results["rows"][0]["metrics"], rehearsed["rows"][0]["metrics"]);
    }
    let results = folder.stdout(&[&run[..], &again, &told, &json].concat());
    let results: Value = serde_json::from_str(&results).unwrap();
    assert_eq!(results["rows"][0]["metrics"], rehearsed["rows"][0]["metrics"]);
    assert_eq!(results["rows"][0]["clairvoyant"], true);
    assert_eq!(folder.names(), ["a.profile", "small.toml"], "a plan learns nothing");

    // In an experiment, the name is relative to its folder; a row each has a file of its own.
    std::fs::create_dir(folder.join("sub")).unwrap();
    let entry = "{ name = \"pbg\", profile = \"@../a.profile\" }, \"rr\", \
                 { name = \"pbg\", label = \"new one\" }";
    let text = SMALL.replace("\"rr\"]", &format!("{entry}]"));
    folder.write("sub/x.toml", text.replace("[5, 20]", "[5]"));
    folder.stdout(&["run", "sub/x.toml", "--learned", "b.profile"]);
    assert_eq!(folder.names(), ["a.profile", "b-new_one.profile", "small.toml", "sub"]);
    let missing = folder.stderr(&[&run[..], &["--policy", "pbg", "--set", "profile=@no"]].concat());
    assert!(missing.contains("cannot be read"), "{missing}");
}

/// The log has what the policy was built from, so that it replays without the rehearsal.
#[test]
fn a_log_of_a_rehearsed_policy_replays() {
    let folder = small();
    folder.stdout(&[
        "run",
        "small.toml",
        "--policy",
        "pbg",
        "--set",
        "workload.0.tasks=5",
        "--record",
        "x.log",
    ]);
    let said = folder.stdout(&["replay", "x.log"]);
    assert!(said.starts_with("pbg: ") && said.ends_with("no decision differs\n"), "{said}");
}

#[test]
fn the_list_of_policies_is_the_registry() {
    let folder = Folder::new();
    let list: Value =
        serde_json::from_str(&folder.stdout(&["policies", "--format", "json"])).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let registered: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
    assert_eq!(names, registered);
    let (table, markdown) =
        (folder.stdout(&["policies"]), folder.stdout(&["policies", "--format", "markdown"]));
    let linked = folder.stdout(&["policies", "--format", "markdown", "--pages", "docs"]);
    for policy in POLICIES {
        assert!(table.contains(policy.summary), "{}", policy.name);
        assert!(markdown.contains(&format!("| `{}`", policy.name)), "{}", policy.name);
        assert!(linked.contains(&format!("| [`{0}`](docs/{0}.md)", policy.name)), "{linked}");
        let page = folder.stdout(&["policies", policy.name]);
        for param in (policy.params)() {
            let line = format!("  {} = \"{}\"  ({})\n", param.name, param.default, param.kind);
            assert!(page.contains(&line), "{}: {line}", policy.name);
        }
    }
}

#[test]
fn only_markdown_has_links_to_pages() {
    let message = Folder::new().stderr(&["policies", "--pages", "docs"]);
    let expected = "anysched: --pages: only Markdown has links; add --format markdown\n";
    assert_eq!(message, expected);
}

#[test]
fn the_kinds_of_load_are_listed_with_their_keys() {
    let folder = Folder::new();
    let list = folder.stdout(&["workloads"]);
    let json = folder.stdout(&["workloads", "--format", "json"]);
    let json: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(json.len(), KINDS.len());
    for (kind, described) in KINDS.iter().zip(json) {
        assert!(list.contains(kind.summary), "{}", kind.name);
        assert!(kind.keys().all(|key| list.contains(key.name)), "{}", kind.name);
        assert_eq!(described["keys"].as_array().unwrap().len(), kind.keys().count());
    }
    assert!(list.lines().all(|line| line.len() <= 100 && line.trim_end() == line), "{list}");
    let page = folder.stdout(&["workloads", "swf", "--format", "markdown"]);
    let swf = KINDS.iter().find(|kind| kind.name == "swf").unwrap();
    let key = swf.keys().find(|key| key.name == "processors").unwrap();
    let row = format!("| `processors` | task-each \\| one-task | `task-each` | {} |", key.help);
    assert!(page.contains(&row), "{page}");
}

#[test]
fn importers_take_options_and_lists_of_tasks() {
    let folder = Folder::new();
    let job = "; MaxProcs: 4\n1 0 5 60 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1\n";
    folder.write("jobs.swf", job);
    let import = |options: &[&str]| {
        folder.stdout(&[&["import", "swf", "jobs.swf", "--output", "x.csv"], options].concat());
        folder.read("x.csv").iter().filter(|byte| **byte == b'\n').count() - 1
    };
    assert_eq!(import(&[]), 2);
    assert_eq!(import(&["--set", "processors=one-task"]), 1);
    let wrong = ["import", "swf", "jobs.swf", "--output", "y.csv", "--set", "processors=all"];
    let message = folder.stderr(&wrong);
    assert!(message.contains("`processors` = \"all\" is not one of its values"), "{message}");
    folder.stdout(&["import", "tasks", "x.csv", "--output", "x.json"]);
    folder.stdout(&["import", "model", "x.json", "--output", "again.csv"]);
    assert_eq!(folder.read("again.csv"), folder.read("x.csv"));
}

/// `lscpu -J -e` of four cores of two threads, of which CPU 6 is offline.
fn seven_cpus() -> String {
    let row = |cpu: u32| match cpu {
        6 => "{\"cpu\":6,\"core\":\"-\",\"socket\":\"-\",\"online\":false}".to_string(),
        _ => format!("{{\"cpu\":{cpu},\"core\":{},\"socket\":0,\"online\":true}}", cpu % 4),
    };
    format!("{{\"cpus\":[{}]}}", (0..8).map(row).collect::<Vec<_>>().join(","))
}

#[test]
fn machines_are_shown_as_trees_with_the_groups_of_gfs() {
    let folder = Folder::new();
    let text = folder.stdout(&["topology", "2 packages x 2 cores x 2 threads"]);
    let expected = "\
1 node, 2 packages, 2 llcs, 4 cores, 8 CPUs
packages 0-1: 2 cores x 2 threads each (CPUs 0-3; 4-7)

groups of the policy gfs:
  auto        2  0-3; 4-7
  core        4  0-1; 2-3; 4-5; 6-7
  llc         2  0-3; 4-7
  package     2  0-3; 4-7
  node        1  0-7
  single      1  0-7

in an experiment:
  topology = \"2 packages x 2 cores x 2 threads\"
";
    assert_eq!(text, expected);
    folder.write("seven.json", seven_cpus());
    let output = folder.run(&["topology", "seven.json", "--grouping", "0-3;4-6"]);
    let expected = "\
1 node, 1 package, 1 llc, 4 cores, 7 CPUs
package 0: CPUs 0-6, OS 0-5,7
  cores 0-1: 2 threads each (CPUs 0,4; 1,5, OS 0,4; 1,5)
  core 2: CPU 2, OS 2
  core 3: 2 threads (CPUs 3,6, OS 3,7)

groups of the policy gfs:
  0-3;4-6     2  0-3; 4-6

in an experiment:
  topology = \"seven.json\"
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let warning = "anysched: seven.json: no caches are described; assuming one per package\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), warning);
}

#[test]
fn machines_are_shown_in_full() {
    let folder = Folder::new();
    folder.write("seven.json", seven_cpus());
    let text = folder.stdout(&["topology", "seven.json", "--full"]);
    let tree = "\
node 0: CPUs 0-6, OS 0-5,7
  package 0: CPUs 0-6, OS 0-5,7
    llc 0: CPUs 0-6, OS 0-5,7
      core 0: CPUs 0,4, OS 0,4
      core 1: CPUs 1,5, OS 1,5
      core 2: CPU 2, OS 2
      core 3: CPUs 3,6, OS 3,7
";
    assert!(text.contains(tree), "{text}");
    let many = ["topology", "20 cores"];
    assert!(folder.stdout(&many).contains("  core       20  0; 1; 2; 3; 4; 5; 6; 7; …\n"));
    let full = folder.stdout(&[&many[..], &["--full"]].concat());
    assert!(full.contains("; 18; 19\n"), "{full}");
}

#[test]
fn machines_for_programs_are_descriptions_too() {
    let folder = Folder::new();
    folder.write("seven.json", seven_cpus());
    let args = |file| ["topology", file, "--format", "json"];
    let text = folder.stdout(&args("seven.json"));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(keys(&value), ["cpus", "groupings", "spec", "warnings", "words"]);
    assert_eq!(value["cpus"][6]["os"], 7);
    assert_eq!(value["groupings"]["core"], serde_json::json!([[0, 4], [1, 5], [2], [3, 6]]));
    assert_eq!(value["words"], Value::Null);
    assert_eq!(value["warnings"].as_array().unwrap().len(), 1);
    folder.write("again.json", &text);
    let again: Value = serde_json::from_str(&folder.stdout(&args("again.json"))).unwrap();
    assert_eq!(again["cpus"], value["cpus"]);
    assert_eq!(again["groupings"], value["groupings"]);
}

#[test]
fn check_says_what_would_be_run() {
    let folder = small();
    let text = folder.stdout(&["check", "small.toml"]);
    assert!(text.starts_with("small: Which is shorter?\n"), "{text}");
    assert!(text.ends_with("policies: fcfs, rr\n8 runs, 2 seeds a row\n"), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    assert_eq!(folder.names(), ["small.toml"]);
}

#[test]
fn pictures_are_at_most_100_columns_wide() {
    let folder = small();
    for columns in ["20", "72", "100", "1000"] {
        let mut command = folder.command(&["gantt", "small.toml", "--group", "1"]);
        let output = command.env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        let limit = columns.parse::<usize>().unwrap().clamp(30, 100);
        assert!(widest <= limit && widest + 8 >= limit, "{widest} of {limit}:\n{text}");
        assert!(text.starts_with("fcfs\n") && text.contains("\nrr\n"), "{text}");
    }
}

/// Two machines that take turns on one CPU, 5 ms each.
const VMS: &str = "question = \"Who runs when?\"\nduration = \"20ms\"\n[machine]\ncpus = 1\n\
    [[vm]]\nname = \"vm\"\ncount = 2\npolicy = \"fcfs\"\n[[vm.workload]]\nkind = \"hog\"\n\
    name = \"burn\"\n[sweep]\npolicy = [{ name = \"rr\", quantum = \"5ms\" }, \"fcfs\"]\n";

#[test]
fn pictures_show_what_virtual_cpus_run() {
    let folder = Folder::new();
    folder.write("vms.toml", VMS);
    let text = folder.stdout(&["gantt", "vms.toml", "--policy", "rr", "--columns", "36"]);
    let expected = [
        "rr",
        "                |0             20ms|",
        "cpu 0           00000111110000011111",
        "0 vm-0/0        00000-----00000-----",
        "1 vm-1/0        -----00000-----00000",
        "in vm-0: 0 burn",
        "in vm-1: 0 burn",
        "a CPU's line shows its tasks, a",
        "task's its CPU; - stolen: ready,",
        "while the host runs something else",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn there_is_a_trace_for_each_run_whatever_rows_it_gives() {
    let folder = Folder::new();
    folder.write("vms.toml", VMS);
    let args = ["run", "vms.toml", "--trace", "t.pftrace", "--record", "l.log"];
    let table = folder.stdout(&args);
    assert!(table.contains("vm = all") && table.contains("vm = vm"), "{table}");
    let names = ["l-fcfs.log", "l-rr.log", "t-fcfs.pftrace", "t-rr.pftrace", "vms.toml"];
    assert_eq!(folder.names(), names);
    let trace = folder.read("t-rr.pftrace");
    for name in ["Virtual machines", "vm-0", "vm-1/0", "vCPU 0", "burn", "stolen"] {
        let found = trace.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        assert!(found, "no {name}");
    }
}

/// What the scripts do when Tab is pressed is tested in the shells themselves.
#[test]
fn completions_and_the_manual_know_the_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.stdout(&["completions", shell]);
        assert!(script.contains("anysched") && script.contains("COMPLETE"), "{shell}: {script}");
    }
    let page = folder.stdout(&["man"]);
    assert!(["run", "gantt", "replay"].iter().all(|command| page.contains(command)), "{page}");
}

const SWF: &str = "; MaxProcs: 4\n\
    1 0 -1 10 1 -1 -1 1 -1 -1 1 3 1 -1 -1 -1 -1 -1\n\
    2 5 -1 20 2 -1 -1 2 -1 -1 1 4 1 -1 -1 -1 -1 -1\n";

const RT_APP: &str = r#"{"global": {"duration": 1},
"tasks": {"worker": {"loop": 10, "run": 2000, "sleep": 3000}}}"#;

const FTRACE: &str = "\
<idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 next_prio=120
     a-7 [000] d..2. 1.004000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120
     b-8 [000] d..2. 1.010000: sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn what_is_imported_can_be_run() {
    for (format, text, output, kind, tasks, busy_ms) in [
        ("swf", SWF, "load.csv", "tasks", 3.0, 50_000.0),
        ("swf", SWF, "load.json", "model", 3.0, 50_000.0),
        ("rt-app", RT_APP, "load.json", "model", 1.0, 20.0),
        ("ftrace", FTRACE, "load.json", "model", 2.0, 10.0),
    ] {
        let folder = Folder::new();
        folder.write("input", text);
        let experiment = folder.stdout(&["import", format, "input", "--output", output]);
        assert!(experiment.contains(&format!("kind = \"{kind}\"\nfile = \"{output}\"\n")));
        // What is printed runs as it is; here one policy is enough.
        folder.write("small.toml", experiment);
        let results = json(&folder, &["--policy", "cfs"]);
        assert_eq!(mean(&results, "tasks"), tasks, "{format} {output}");
        assert_eq!(mean(&results, "busy_ns"), busy_ms * 1e6, "{format} {output}");
        assert_eq!(folder.names(), ["input", output, "small.toml"]);
    }
}

#[test]
fn columns_and_parts_are_arguments_of_imports() {
    let folder = Folder::new();
    folder.write("cluster.csv", "job,start,took\na,5000,100\nb,65000,200\n");
    let columns = ["--arrival", "start", "--service", "took", "--unit", "ms"];
    let import = |more: &[&str]| {
        let args = [&["import", "csv", "cluster.csv", "-o", "load.csv"][..], &columns, more];
        folder.stdout(&args.concat());
        String::from_utf8(folder.read("load.csv")).unwrap()
    };
    let first = "arrival_ns,service_ns\n0,100000000\n";
    assert_eq!(import(&[]), format!("{first}60000000000,200000000\n"));
    assert_eq!(import(&["--jobs", "1"]), first);
    assert_eq!(import(&["--until", "1s"]), first);
    assert_eq!(import(&["--from", "10s"]), "arrival_ns,service_ns\n50000000000,200000000\n");
    let refused = folder.stderr(&["import", "swf", "cluster.csv", "-o", "x.json"]);
    let command =
        "`anysched import csv FILE --arrival COLUMN --service COLUMN --unit ms -o load.json`";
    assert!(refused.contains(command), "{refused}");
    folder.write("input", FTRACE);
    let refused = folder.stderr(&["import", "ftrace", "input", "-o", "x.json", "--jobs", "3"]);
    assert!(refused.contains("no key `jobs` in a file of format \"ftrace\""), "{refused}");
    assert_eq!(folder.names(), ["cluster.csv", "input", "load.csv"]);
}

#[test]
fn a_load_that_is_no_list_of_tasks_is_not_made_one() {
    let folder = Folder::new();
    folder.write("input", RT_APP);
    let message = folder.stderr(&["import", "rt-app", "input", "--output", "load.csv"]);
    assert!(message.contains("does not fit into a list of tasks"), "{message}");
    assert_eq!(folder.names(), ["input"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_prints_what_there_is() {
    let folder = small();
    let args = ["run", "small.toml", "--seeds", "20000", "--jobs", "1", "--format", "json"];
    let mut run = folder
        .command(&args)
        .args(["--set", "workload.0.tasks=100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Long enough that the handler is set, far too short for all runs.
    std::thread::sleep(Duration::from_millis(500));
    let interrupted = Instant::now();
    let kill = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(kill.success(), "the run was over before it could be interrupted");
    let (mut printed, mut said) = (String::new(), String::new());
    run.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{said}");
    assert!(interrupted.elapsed() < Duration::from_secs(5), "it ends at once");
    assert!(said.contains("anysched: stopping; "), "{said}");
    assert!(said.contains("anysched: interrupted; "), "{said}");
    let results: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(results["complete"], false);
    let rows = results["rows"].as_array().unwrap();
    let (last, whole) = rows.split_last().expect("what was begun is printed");
    assert!(whole.iter().all(|row| row["seeds"] == 20_000));
    assert!((1..=20_000).contains(&last["seeds"].as_u64().unwrap()), "{last}");
}

/// Policies name hosts, which they do not know: a misspelt one would leave a row out.
#[test]
fn policies_name_hosts_and_schedulers_that_there_are() {
    let hosts: Value =
        serde_json::from_str(&Folder::new().stdout(&["hosts", "--format", "json"])).unwrap();
    let hosts = hosts.as_array().unwrap();
    let mut seen = 0;
    for policy in POLICIES {
        for native in policy.native {
            let host = hosts.iter().find(|host| host["name"] == native.host);
            let host = host.unwrap_or_else(|| panic!("{}: {native:?}", policy.name));
            let schedulers = host["schedulers"].as_array().unwrap();
            let is_there = native.scheduler.is_none_or(|own| schedulers.iter().any(|s| s == own));
            assert!(is_there, "{}: {native:?}", policy.name);
            seen += 1;
        }
    }
    assert!(seen > 0, "no policy has a host's own rule");
}

#[test]
fn an_experiment_comes_from_a_pipe_and_its_policies_and_axes_from_the_command_line() {
    let folder = Folder::new();
    let text = "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\ntasks = 8\n\
                service = \"1ms\"\n";
    folder.write("none.toml", text);
    let said = folder.stderr(&["run", "none.toml"]);
    assert!(said.contains("none.toml: no policy") && said.contains("with --policy"), "{said}");
    let more = ["--policy", "fcfs,rr", "--sweep", "machine.cpus=1,2,4", "--format", "csv"];
    let printed = folder.stdout(&[&["run", "none.toml"], &more[..]].concat());
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 3, "{printed}");
    let mut run = folder
        .command(&[&["run", "-"], &more[..]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut run.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let mut piped = String::new();
    run.stdout.take().unwrap().read_to_string(&mut piped).unwrap();
    assert!(run.wait().unwrap().success());
    let after_name = |line: &str| line.split(',').skip(1).collect::<Vec<_>>().join(",");
    let rows = |text: &str| text.lines().skip(1).map(after_name).collect::<Vec<_>>();
    // Seeds derive from the name, which is another, but these loads have no chance in them.
    assert_eq!(rows(&piped), rows(&printed));
    assert!(piped.lines().nth(1).unwrap().starts_with("stdin,"), "{piped}");
    for (axis, why) in [
        ("machine.cpus", "it takes KEY=VALUE,…"),
        ("machine.cpus=1,,2", "it takes KEY=VALUE,…"),
        ("machine.cpus=1,1", "has the value 1 twice"),
        ("cpus=1,2", "command line for none.toml:1:1"),
    ] {
        let said = folder.stderr(&["run", "none.toml", "--policy", "rr", "--sweep", axis]);
        assert!(said.contains(why), "{axis}: {said}");
    }
}

/// Whatever writes files tells the name of each of them.
#[test]
fn files_that_are_written_are_named() {
    let folder = Folder::new();
    folder.write(
        "small.toml",
        "question = \"?\"\n[machine]\ncpus = 2\n[[workload]]\nkind = \"batch\"\ntasks = 5\n\
         service = \"exp(5ms)\"\n[sweep]\npolicy = [\"rr\", \"pbg\"]\n\"machine.cpus\" = [1, 2]\n",
    );
    folder.write("load.json", r#"{"tasks": {"t": {"loop": 2, "run": 500, "sleep": 500}}}"#);
    for (args, files) in [
        (&["run", "small.toml", "--trace", "a.pftrace"][..], 4),
        (&["run", "small.toml", "--trace", "a.txt"], 4),
        (&["run", "small.toml", "--record", "run.log"], 4),
        (&["run", "small.toml", "--learned", "profile.txt"], 2),
        (&["run", "small.toml", "--out", "results"], 1),
        (&["replay", "run-0-rr.log", "--trace", "b.txt"], 1),
        (&["gantt", "small.toml", "--policy", "rr", "--out", "gantt.txt"], 1),
        (&["plot", "small.toml", "--x", "machine.cpus", "--y", "makespan_ns", "--out", "x.svg"], 1),
        (&["import", "rt-app", "load.json", "-o", "model.json"], 1),
    ] {
        let before = folder.names();
        let output = folder.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        let new: Vec<String> =
            folder.names().into_iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(new.len(), files, "{args:?}: {new:?}");
        for name in new {
            assert!(said.contains(&name), "{args:?}: {name} is not in: {said}");
        }
    }
}
