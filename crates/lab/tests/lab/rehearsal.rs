//! Policies that learn in a first run: what the run behind it is like, for the policy that is
//! compared and for those in virtual machines.

use crate::support::SIMULATED;
use anysched_core::recorder::LogReader;
use anysched_host::Watch;
use anysched_lab::{Experiment, Plan, Results, RunOptions, output};
use anysched_sim::Simulator;
use std::path::Path;

fn experiment_in(folder: &Path, text: &str) -> Result<Plan, String> {
    let parsed = Experiment::parse(text, &folder.join("name.toml"));
    parsed.and_then(|experiment| experiment.plan()).map_err(|error| error.to_plain())
}

fn plan(text: &str) -> Plan {
    experiment_in(Path::new("dir"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: &Plan) -> Results {
    plan.run(&RunOptions { jobs: 1, ..SIMULATED }).unwrap_or_else(|error| panic!("{error}"))
}

/// The mean of a metric over the runs of each row.
fn means(plan: &Plan, metric: &str) -> Vec<f64> {
    run(plan).rows.iter().map(|row| row.aggregate(metric).unwrap().mean).collect()
}

/// Two batches: 30 ms, then 10 ms.
const BATCHES: &str = r#"
question = "?"
[machine]
cpus = 1
[[workload]]
kind = "batch"
tasks = 1
service = "30ms"
[[workload]]
kind = "batch"
tasks = 2
service = "10ms"
"#;

fn batches(policy: &str) -> String {
    format!("{BATCHES}[sweep]\npolicy = {policy}\n")
}

/// First come: 30, 40 and 50 ms. Shortest first: 10, 20 and 50 ms.
#[test]
fn the_run_behind_the_rehearsal_is_the_row() {
    let policies = r#"["fcfs", "pbg", { name = "pbg", mode = "profile", label = "learning" },
        { name = "pbg", profile = "0=30ms/1,1=10ms/1,2=10ms/1", profile_source = "given",
          label = "given" }]"#;
    let plan = plan(&batches(policies));
    let turnaround = means(&plan, "turnaround_ns");
    assert_eq!(turnaround, [40e6, 80e6 / 3.0, 40e6, 80e6 / 3.0]);
    let learned = plan.learned(&Simulator, 0, 1, 0).unwrap();
    assert_eq!(learned, [("profile".into(), "0=30ms/1,1=10ms/1,2=10ms/1".into())]);
    assert_eq!(
        plan.learned(&Simulator, 0, 2, 0).unwrap(),
        learned,
        "a first run on its own learns the same"
    );
    assert_eq!(plan.learned(&Simulator, 0, 0, 0).unwrap(), []);
    assert_eq!(plan.learned(&Simulator, 0, 3, 0).unwrap(), []);
}

/// A recorder is to write down what the policy that decides was built from.
#[test]
fn a_log_names_what_was_learned() {
    let plan = plan(&batches("\"pbg\""));
    let watch = Watch { record: true, ..Watch::default() };
    let outcome = plan.run_one(&Simulator, 0, 0, 0, watch).unwrap();
    let reader = LogReader::new(outcome.only_log().unwrap()).unwrap();
    let settings = reader.header().settings.iter();
    let seen: Vec<String> = settings.map(|(name, text)| format!("{name} {text}")).collect();
    let seed = format!("noise_seed {}", plan.seed(0, 0));
    assert_eq!(seen, [seed, "profile 0=30ms/1,1=10ms/1,2=10ms/1".into()]);
}

#[test]
fn rows_are_marked() {
    let policies = r#"["fcfs", "sjf", "pbg",
        { name = "pbg", profile = "", profile_source = "given", label = "told" },
        { name = "pbg", mode = "off", label = "off" }]"#;
    let results = run(&plan(&batches(policies)));
    let table = output::table(&results);
    for line in ["\nfcfs  ", "\nsjf *  ", "\npbg †  ", "\ntold *  ", "\noff  "] {
        assert!(table.contains(line), "{line:?} is not in\n{table}");
    }
    let notes = "* is told how long tasks will run, which no kernel knows.\n\
                 † goes by an earlier run of the same load.\n";
    assert!(table.contains(notes), "{table}");
    let csv = output::csv(&results);
    let line = csv.lines().find(|line| line.contains(",pbg,")).unwrap();
    assert!(line.contains(",pbg,false,true,"), "{line}");
    assert!(output::json(&results).contains("\"rehearsed\": true"));
}

#[test]
fn a_value_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = batches("{ name = \"pbg\", profile = \"@known.profile\" }");
    let missing = experiment_in(folder.path(), &text).unwrap_err();
    assert!(missing.contains("\"known.profile\" cannot be read"), "{missing}");
    let file = folder.path().join("known.profile");
    std::fs::write(&file, "# of a run\n0=30ms/1\n1=10ms/1 # short\n2=10ms/1\n").unwrap();
    let plan = experiment_in(folder.path(), &text).unwrap();
    assert_eq!(means(&plan, "turnaround_ns"), [80e6 / 3.0]);
    let results = run(&plan);
    let settings = &results.policies[0].settings;
    assert_eq!(settings[..], [("profile".to_string(), "@known.profile".to_string())]);
    let hash = plan.spec_hash().to_string();
    // The long one is said to be short.
    std::fs::write(&file, "0=1ms/1,1=10ms/1,2=10ms/1").unwrap();
    let plan = experiment_in(folder.path(), &text).unwrap();
    assert_eq!(means(&plan, "turnaround_ns"), [40e6]);
    assert_ne!(plan.spec_hash(), hash);
    std::fs::write(&file, "0=1ms/1\n1=10/1\n").unwrap();
    let wrong = experiment_in(folder.path(), &text).unwrap_err();
    let why = "`profile` of policy `pbg` = \"1=10/1\": a time needs a unit, for example \"3ms\"";
    assert!(wrong.contains(why), "{wrong}");
    std::fs::write(&file, b"0=1ms/1\n\xff").unwrap();
    let wrong = experiment_in(folder.path(), &text).unwrap_err();
    assert!(wrong.contains("\"known.profile\" is not text: line 2 is not UTF-8"), "{wrong}");
}

#[test]
fn tasks_have_keys() {
    let text = batches("\"pbg\"").replace("service = \"10ms\"", "service = \"10ms\"\nkey = 7");
    let learned = plan(&text).learned(&Simulator, 0, 0, 0).unwrap();
    assert_eq!(learned[0].1, "0=30ms/1,k7=10ms/1");
    let wrong = text.replace("key = 7", "key = -1");
    assert!(experiment_in(Path::new("."), &wrong).unwrap_err().contains("`key`"));
}

/// With five seeds the same noise would give five times the same mean.
#[test]
fn noise_differs_by_seed_unless_told_otherwise() {
    let of = |seed: &str| {
        let policy = format!("{{ name = \"pbg\", profile_source = \"noisy(3)\"{seed} }}");
        let loads = (1..=12)
            .map(|n| format!("[[workload]]\nkind = \"batch\"\ntasks = 1\nservice = \"{n}ms\"\n"));
        let text = format!(
            "question = \"?\"\n[machine]\ncpus = 1\n{}[sweep]\npolicy = {policy}\nseeds = 5\n",
            loads.collect::<String>()
        );
        let results = run(&plan(&text));
        let column = anysched_lab::column("turnaround_ns_mean").unwrap();
        let values: Vec<u64> =
            results.rows[0].runs.iter().map(|run| run.value(column).unwrap() as u64).collect();
        values
    };
    let same = of(", noise_seed = 4");
    assert!(same.iter().all(|value| *value == same[0]), "{same:?}");
    let different = of("");
    assert!(different.iter().any(|value| *value != different[0]), "{different:?}");
}

/// In a virtual machine of one CPU: its tasks as above, under a policy of its own.
fn guest(policy: &str) -> String {
    let vm = format!(
        "[[vm]]\nname = \"guest\"\npolicy = {policy}\n{}",
        BATCHES.split("cpus = 1\n").nth(1).unwrap().replace("[[workload]]", "[[vm.workload]]")
    );
    format!("question = \"?\"\nduration = \"1s\"\n[machine]\ncpus = 1\n{vm}")
}

#[test]
fn guests_are_rehearsed_as_well() {
    let run = |text: &str| {
        let plan = plan(&format!("{text}[sweep]\npolicy = [\"credit\", \"pbg\"]\n"));
        means(&plan, "turnaround_ns")
    };
    // Rows of the whole and of the guest, under two policies of the host.
    assert_eq!(run(&guest("\"fcfs\"")), [40e6; 4]);
    assert_eq!(run(&guest("\"pbg\"")), [80e6 / 3.0; 4]);
}
