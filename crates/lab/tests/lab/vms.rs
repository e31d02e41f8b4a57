//! Experiments with virtual machines: how many there are, their rows, and what rows depend on.

use crate::support::{self, SIMULATED};
use anysched_core::TaskId;
use anysched_host::Watch;
use anysched_lab::{Column, Experiment, Plan, Results, Row, Verdict, output};
use anysched_sim::Simulator;
use anysched_trace::{Event, Sink, TaskInfo};
use std::path::Path;

fn experiment(text: &str) -> Experiment {
    support::experiment("vms.toml", text)
}

fn run_plan(plan: &Plan) -> Results {
    plan.run(&SIMULATED).unwrap()
}

fn plan(text: &str) -> Plan {
    support::plan(&experiment(text))
}

fn run(text: &str) -> Results {
    run_plan(&plan(text))
}

/// Two machines `web` with two tasks each, and `db` with three, on a CPU for each; `rest` follows.
fn farm(rest: &str) -> String {
    format!(
        r#"
question = "?"
[machine]
cpus = 3
[[vm]]
name = "web"
count = 2
policy = "fcfs"
[[vm.workload]]
kind = "batch"
tasks = 2
service = "5ms"
[[vm]]
name = "db"
policy = "fcfs"
[[vm.workload]]
kind = "batch"
tasks = 3
service = "20ms"
{rest}
"#
    )
}

const SWEEP: &str = "[sweep]\npolicy = [\"fcfs\", \"rr\"]\nseeds = 2\n";

/// The title of each group and the mean of a metric there under the first policy.
fn of_groups(results: &Results, metric: &str) -> Vec<(String, Option<f64>)> {
    let group = |(number, group): (usize, &anysched_lab::Group)| {
        let row = results.row(number, 0).unwrap();
        (group.title(), row.aggregate(metric).map(|of| of.mean))
    };
    results.groups.iter().enumerate().map(group).collect()
}

fn named(pairs: &[(&str, f64)]) -> Vec<(String, Option<f64>)> {
    pairs.iter().map(|&(name, value)| (name.to_string(), Some(value))).collect()
}

/// The host counts in time slices of its own, the two machines of a kind in theirs.
#[test]
fn what_policies_count_is_in_the_rows_of_their_machines() {
    let text = "question = \"?\"\npolicy = \"vfair\"\n[machine]\ncpus = 1\n[[vm]]\nname = \"a\"\n\
                policy = \"credit\"\nvcpus = 2\ncount = 2\n[[vm.workload]]\nkind = \"batch\"\n\
                tasks = 2\nservice = \"5ms\"\n[report]\ncolumns = [\"policy.boost_ns\"]\n";
    let results = run(text);
    let counted = |row: usize| -> Vec<String> {
        let metrics = results.rows[row].metrics();
        let names = metrics.iter().map(|(metric, ..)| metric.to_string());
        names.filter(|name| name.starts_with("policy.") && !name.ends_with("_cv")).collect()
    };
    assert_eq!([counted(0), counted(1)], [["policy.switch_cost_ns"], ["policy.boost_ns"]]);
}

#[test]
fn there_is_a_row_for_the_whole_and_for_each_kind() {
    let results = run(&farm(SWEEP));
    let tasks = of_groups(&results, "tasks");
    assert_eq!(tasks, named(&[("vm = all", 7.0), ("vm = web", 4.0), ("vm = db", 3.0)]));
    // Each has a CPU: 5 and 10 ms, and 20, 40 and 60 ms.
    let turnaround = of_groups(&results, "turnaround_ns");
    let all = (2.0 * (5.0 + 10.0) + 20.0 + 40.0 + 60.0) / 7.0 * 1e6;
    assert_eq!(turnaround[1..], named(&[("vm = web", 7.5e6), ("vm = db", 40e6)]));
    assert!((turnaround[0].1.unwrap() / all - 1.0).abs() < 1e-12, "{turnaround:?}");
    assert_eq!(results.rows.len(), 3 * 2);
    assert!(results.complete);
    assert!(results.rows.iter().all(|row| row.runs.len() == 2));
}

/// Policies of hypervisors know the domain's weight, others that of its vCPUs: one of twice the
/// weight has two thirds of the CPU, until it is done after 150 ms.
#[test]
fn weights_count_under_policies_that_know_tasks_only() {
    let vm = |name: &str, weight: u32| {
        format!(
            "[[vm]]\nname = \"{name}\"\nweight = {weight}\npolicy = \"fcfs\"\n\
             [[vm.workload]]\nkind = \"batch\"\ntasks = 1\nservice = \"100ms\"\n"
        )
    };
    let machine = "question = \"?\"\n[machine]\ncpus = 1\ntick = \"1ms\"\ncosts = \"free\"\n";
    let rest = "[sweep]\npolicy = [\"cfs\", \"eevdf\", \"stride\", \"credit2\"]\n";
    let results = run(&format!("{machine}{}{}{rest}", vm("heavy", 512), vm("light", 256)));
    let turnaround = |policy: usize, group: usize| {
        results.row(group, policy).unwrap().aggregate("turnaround_ns").unwrap().mean / 1e6
    };
    for policy in 0..4 {
        let (heavy, light) = (turnaround(policy, 1), turnaround(policy, 2));
        assert!((heavy - 150.0).abs() <= 10.0, "policy {policy}: {heavy} ms");
        assert!((light - 200.0).abs() < 0.1, "policy {policy}: {light} ms");
    }
}

#[derive(Default)]
struct Names(Vec<(usize, String, usize)>);

impl Sink for Names {
    fn task(&mut self, _: &TaskInfo<'_>) {}
    fn event(&mut self, _: &Event) {}
    fn vm(&mut self, vm: usize, name: &str, tasks: &[TaskId]) {
        self.0.push((vm, name.to_string(), tasks.len()));
    }
}

#[test]
fn machines_of_a_kind_are_numbered() {
    let text = farm(SWEEP).replace("name = \"db\"", "name = \"db\"\nvcpus = 2");
    let mut sink = Names::default();
    let watch = Watch { trace: Some(&mut sink), ..Watch::default() };
    plan(&text).run_one(&Simulator, 0, 0, 0, watch).unwrap();
    let Names(names) = sink;
    let expected = [(0, "web-0", 1), (1, "web-1", 1), (2, "db", 2)];
    assert_eq!(names, expected.map(|(vm, name, cpus)| (vm, name.to_string(), cpus)));
}

#[test]
fn counts_are_swept_and_may_be_none() {
    let results = run(&farm(&format!("{SWEEP}\"vm.0.count\" = [0, 1, 3]\n")));
    let expected = [
        ("vm.0.count = 0, vm = all", 3.0),
        ("vm.0.count = 0, vm = web", 0.0),
        ("vm.0.count = 0, vm = db", 3.0),
        ("vm.0.count = 1, vm = all", 5.0),
        ("vm.0.count = 1, vm = web", 2.0),
        ("vm.0.count = 1, vm = db", 3.0),
        ("vm.0.count = 3, vm = all", 9.0),
        ("vm.0.count = 3, vm = web", 6.0),
        ("vm.0.count = 3, vm = db", 3.0),
    ];
    assert_eq!(of_groups(&results, "tasks"), named(&expected));
    assert_eq!(results.row(1, 0).unwrap().aggregate("turnaround_ns"), None);
}

#[test]
fn a_kind_of_which_there_never_is_one_has_rows_all_the_same() {
    let text = farm(SWEEP).replace("name = \"db\"", "name = \"db\"\ncount = 0");
    let results = run(&text.replace("count = 2", "count = 0"));
    let tasks = of_groups(&results, "tasks");
    assert_eq!(tasks, named(&[("vm = all", 0.0), ("vm = web", 0.0), ("vm = db", 0.0)]));
}

#[test]
fn schedulers_of_guests_are_swept() {
    let axis = "\"vm.1.policy\" = [\"fcfs\", { name = \"rr\", quantum = \"1ms\" }]\n";
    let results = run(&farm(&format!("{SWEEP}{axis}")));
    let response = of_groups(&results, "response_time_ns");
    let of = |number: usize| response[number].1.unwrap() / 1e6;
    // web runs as before; the tasks of db first run at 0, 20, 40 or at 0, 1, 2 ms.
    assert_eq!(of(1), of(4));
    assert_eq!((of(2), of(5)), (20.0, 1.0));
}

#[test]
fn values_are_set_from_outside() {
    let set = |key: &str, value: &str| {
        let changed = experiment(&farm(SWEEP)).with_setting(key, value);
        let changed = changed.and_then(|experiment| experiment.plan());
        changed.map(|plan| of_groups(&run_plan(&plan), "tasks")).map_err(|e| e.to_plain())
    };
    let tasks = set("vm.0.count", "5").unwrap();
    assert_eq!(tasks, named(&[("vm = all", 13.0), ("vm = web", 10.0), ("vm = db", 3.0)]));
    let tasks = set("vm.1.workload.0.tasks", "1").unwrap();
    assert_eq!(tasks, named(&[("vm = all", 5.0), ("vm = web", 4.0), ("vm = db", 1.0)]));
    assert!(set("vm.0.policy", "rr").is_ok());
    let error = set("vm.0.policy", "rrr").unwrap_err();
    assert!(error.contains("no policy is called `rrr`"), "{error}");
}

/// The values of all runs of a row, to the bit.
fn bits(row: &Row) -> Vec<Vec<(Column, u64)>> {
    let values = |run: &anysched_lab::Run| {
        run.values().iter().map(|(column, value)| (*column, value.to_bits())).collect()
    };
    row.runs.iter().map(values).collect()
}

#[test]
fn what_happens_in_a_machine_depends_on_no_other() {
    let text = |others: &str| {
        format!(
            "question = \"?\"\nduration = \"2s\"\n[machine]\ncpus = 2\n{others}\n[[vm]]\n\
             name = \"web\"\naffinity = 0\nvcpus = 1\n[[vm.workload]]\nkind = \"service\"\n\
             rate = 30\nservice = \"exp(10ms)\"\nservers = 3\n[sweep]\npolicy = \"rr\"\nseeds = 3\n"
        )
    };
    let other = "[[vm]]\nname = \"other\"\naffinity = 1\n[[vm.workload]]\nkind = \"open\"\n\
                 rate = 40\nservice = \"exp(9ms)\"\n";
    let (alone, beside) = (run(&text("")), run(&text(other)));
    let web = |results: &Results| {
        let is_web = |group: &anysched_lab::Group| group.title() == "vm = web";
        let group = results.groups.iter().position(is_web).unwrap();
        bits(results.row(group, 0).unwrap())
    };
    assert_eq!(web(&alone), web(&beside));
    let of_seeds = web(&alone);
    assert!(of_seeds[0] != of_seeds[1] && of_seeds[1] != of_seeds[2]);
}

#[test]
fn machines_of_one_kind_have_loads_of_their_own() {
    let text = "question = \"?\"\n[machine]\ncpus = 2\n[[vm]]\nname = \"a\"\ncount = 2\n\
                [[vm.workload]]\nkind = \"batch\"\ntasks = 1\nservice = \"exp(1s)\"\n\
                [sweep]\npolicy = \"fcfs\"\n";
    let results = run(text);
    let turnaround = results.row(1, 0).unwrap().aggregate("turnaround_ns").unwrap();
    assert!(turnaround.min < turnaround.max, "{turnaround:?}");
}

#[test]
fn claims_are_about_the_machines_that_they_name() {
    let claim = |expect: &str, rows: &str| {
        let claim = format!("[[claim]]\nid = \"1\"\ntext = \"t\"\nexpect = \"{expect}\"\n{rows}\n");
        run(&farm(&format!("{SWEEP}{claim}"))).claims.remove(0)
    };
    let web = claim("fcfs.turnaround_ns_mean < 7.6ms", "where = { vm = \"web\" }");
    assert_eq!((web.checks.len(), web.checks[0].verdict), (1, Some(Verdict::Holds)), "{web:?}");
    let db = claim("fcfs.turnaround_ns_mean < 7.6ms", "where = { vm = \"db\" }");
    assert_eq!(db.checks[0].verdict, Some(Verdict::DoesNotHold));
    // About the whole machine if it does not say; other rows by reference.
    let all = claim("fcfs.tasks > 6 and fcfs{vm = web}.tasks < 5 and fcfs{vm = db}.tasks < 4", "");
    let found: Vec<_> = all.checks.iter().map(|check| check.verdict).collect();
    assert_eq!(found, [Some(Verdict::Holds); 3], "{all:?}");
}

#[test]
fn answers_come_unless_nobody_is_there_to_give_them() {
    let text = |rest: &str| {
        format!(
            "question = \"?\"\nduration = \"95ms\"\n[machine]\ncpus = 2\n[[vm]]\nname = \"asker\"\n\
             [[vm.workload]]\nkind = \"ping\"\nto = \"asked\"\nevery = \"10ms\"\nwork = \"1ms\"\n\
             answer = \"2ms\"\nhop = \"500us\"\n[[vm]]\nname = \"asked\"\n\
             [sweep]\npolicy = \"fcfs\"\n{rest}"
        )
    };
    let results = run(&text("\"vm.1.count\" = [0, 1]\n"));
    let trips = of_groups(&results, "round_trip_ns");
    let of = |title: &str| trips.iter().find(|(of, _)| of == title).unwrap().1;
    assert_eq!(of("vm.1.count = 0, vm = asker"), None);
    // From the sending on: 0.5 ms there, 2 for the answer, 0.5 back, 1 to take it.
    let trip = of("vm.1.count = 1, vm = asker").unwrap();
    assert_eq!(trip, of("vm.1.count = 1, vm = all").unwrap());
    assert_eq!(trip, 4e6);
}

/// Two machines ask at the same time; the driver domain hands their four messages on, one after
/// another, for 0.1 ms each.
#[test]
fn messages_go_by_way_of_a_machine_that_pays_for_them() {
    let text = "question = \"?\"\nduration = \"95ms\"\n[machine]\ncpus = 8\n\
         [[vm]]\nname = \"dom0\"\npolicy = \"fcfs\"\n[[vm]]\nname = \"asker\"\ncount = 2\n\
         [[vm.workload]]\nkind = \"ping\"\nto = \"asked\"\nevery = \"10ms\"\nwork = \"1ms\"\n\
         answer = \"2ms\"\nhop = \"500us\"\nvia = \"dom0\"\nforward = \"100us\"\n\
         [[vm]]\nname = \"asked\"\ncount = 2\n[sweep]\npolicy = \"fcfs\"\n";
    let results = run(text);
    let of = |metric: &str, title: &str| {
        of_groups(&results, metric).into_iter().find(|(of, _)| of == title).unwrap().1.unwrap()
    };
    // Four halves of 0.5 ms, 2 for the answer, 1 to take it, 0.2 for handing on; the second waits
    // for the first's question, and their answers come apart.
    assert_eq!(of("round_trip_ns", "vm = asker"), 5.25e6);
    // Ten rounds of four messages.
    assert_eq!(of("busy_ns", "vm = dom0"), 4e6);
    let refused =
        Experiment::parse(&text.replace("\"dom0\"\nforward", "\"dom1\"\nforward"), Path::new("x"));
    let error = refused.and_then(|experiment| experiment.check()).unwrap_err().to_plain();
    assert!(error.contains("no [[vm]] is called \"dom1\"") && error.contains("`dom0`"), "{error}");
}

#[test]
fn all_forms_have_the_axis() {
    let results = run(&farm(SWEEP));
    let csv = output::csv(&results);
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let column = head.iter().position(|name| *name == "vm").unwrap();
    let names: Vec<&str> =
        csv.lines().skip(1).map(|line| line.split(',').nth(column).unwrap()).collect();
    assert_eq!(names, ["all", "all", "web", "web", "db", "db"]);

    let json: serde_json::Value = serde_json::from_str(&output::json(&results)).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["axes"]["vm"].as_str().unwrap()).collect();
    assert_eq!(names, ["all", "all", "web", "web", "db", "db"]);

    #[cfg(feature = "parquet")]
    parquet_has_their_names(&results);
}

#[cfg(feature = "parquet")]
fn parquet_has_their_names(results: &Results) {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let bytes = bytes::Bytes::from(output::parquet(results).unwrap());
    let reader = SerializedFileReader::new(bytes).unwrap();
    let lines = reader.get_row_iter(None).unwrap();
    let name = |line: parquet::record::Row| {
        let vm = line.get_column_iter().find(|(name, _)| *name == "vm").unwrap();
        vm.1.to_string()
    };
    let names: Vec<String> = lines.map(|line| name(line.unwrap())).collect();
    let each = ["all", "all", "all", "all", "web", "web", "web", "web", "db", "db", "db", "db"];
    assert_eq!(names, each.map(|name| format!("\"{name}\"")));
}

#[test]
fn the_table_shows_the_machines_that_are_asked_for() {
    let titles = |report: &str| {
        let text = output::table(&run(&farm(&format!("{report}{SWEEP}"))));
        let title = |line: &&str| line.starts_with("vm = ");
        text.lines().filter(title).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(titles(""), ["vm = all", "vm = web", "vm = db"]);
    assert_eq!(titles("[report]\nvms = [\"db\", \"all\"]\n"), ["vm = all", "vm = db"]);
    assert_eq!(titles("[report]\nvms = [\"web\"]\n"), ["vm = web"]);
    // What is not shown is measured all the same.
    assert_eq!(run(&farm(&format!("[report]\nvms = [\"web\"]\n{SWEEP}"))).rows.len(), 6);
}
