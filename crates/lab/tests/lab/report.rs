//! The page of results: what is in it, and that it is what the results say.

use crate::support::{self, SIMULATED};
use anysched_host::{By, Capabilities, Host, HostError, HostInfo, Order, Outcome, Watch};
use anysched_lab::output::report::{EVENTS, Origin, Told, VERSION, report};
use anysched_lab::output::{json, table};
use anysched_lab::{Plan, Results, RunOptions};
use anysched_sim::Simulator;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;

/// Two loads, of which one has jobs, on two CPUs.
const MIXED: &str = r#"
question = "Who waits?"
duration = "200ms"
[machine]
cpus = 2
context_switch = "2us"
tick = "1ms"
[[workload]]
kind = "periodic"
name = "audio"
tasks = 3
period = "10ms"
run = "uniform(1ms, 3ms)"
[[workload]]
kind = "hog"
name = "batch"
tasks = 2
[sweep]
policy = ["cfs", { name = "rr", quantum = "2ms" }, "srpt"]
seeds = 3
[report]
columns = ["wakeup_latency_ns_mean", "wakeup_latency_ns_p99"]
"#;

fn plan(text: &str) -> Plan {
    support::plan(&support::experiment("dir/mixed.toml", text))
}

fn run(plan: &Plan) -> Results {
    run_on(&Simulator, plan)
}

fn run_on(host: &dyn Host, plan: &Plan) -> Results {
    plan.run(&RunOptions { host, ..SIMULATED }).unwrap()
}

fn origin() -> Origin {
    Origin {
        file: "mixed.toml".into(),
        text: MIXED.into(),
        command: "anysched run mixed.toml".into(),
        changes: String::new(),
    }
}

fn page(events: u64) -> (Results, String) {
    let (plan, apart) = plan(MIXED).with_loads_apart();
    assert!(apart);
    let results = run(&plan);
    let told = Told::of_run(&results, &plan, &Simulator, &origin(), events).unwrap();
    (results, String::from_utf8(report(&[told])).unwrap())
}

/// What is packed into an element of the page.
fn unpacked(page: &str, id: &str) -> Vec<u8> {
    let start = format!("<script type=\"text/plain\" id=\"{id}\">");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {id}"));
    let (text, _) = rest.split_once("</script>").unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&STANDARD.decode(text).unwrap()[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

fn document(page: &str) -> Value {
    serde_json::from_slice(&unpacked(page, "document")).unwrap()
}

#[test]
fn the_document_has_the_results_as_they_are_written() {
    let (results, page) = page(EVENTS);
    let document = document(&page);
    assert_eq!(document["format"], "anysched report");
    assert_eq!(document["version"], VERSION);
    let one = &document["experiments"][0];
    let written: Value = serde_json::from_str(&json(&results)).unwrap();
    assert_eq!(one["results"], written);
    let details = &one["details"];
    assert_eq!(details["text"], MIXED);
    assert_eq!(details["machines"][0]["cpus"].as_array().unwrap().len(), 2);
    // Every run has its values in the order of the columns.
    let columns: Vec<&str> = details["columns"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(columns[..2], ["wakeup_latency_ns_mean", "wakeup_latency_ns_p99"]);
    for (row, of) in results.rows.iter().zip(details["runs"].as_array().unwrap()) {
        assert_eq!(
            (of["group"].as_u64(), of["policy"].as_u64()),
            (index(row.group), index(row.policy))
        );
        for (run, of) in row.runs.iter().zip(of["seeds"].as_array().unwrap()) {
            assert_eq!(of["seed"], run.seed.to_string());
            for (column, value) in columns.iter().zip(of["values"].as_array().unwrap()) {
                let column = anysched_lab::column(column).unwrap();
                assert_eq!(run.value(column), value.as_f64(), "{column}");
            }
        }
    }
}

fn name(column: &Value) -> &str {
    column["name"].as_str().unwrap()
}

fn index(number: usize) -> Option<u64> {
    Some(number as u64)
}

#[test]
fn answers_are_of_the_best_and_say_how_sure_that_is() {
    let (results, page) = page(0);
    let document = document(&page);
    let details = &document["experiments"][0]["details"];
    let audio = results.groups.iter().position(|group| group.has("workload", "audio")).unwrap();
    let answers = details["answers"].as_array().unwrap();
    let answer = answers
        .iter()
        .find(|answer| answer["group"] == audio && answer["column"] == "wakeup_latency_ns_mean")
        .unwrap();
    let column = anysched_lab::column("wakeup_latency_ns_mean").unwrap();
    let mean = |label: &str| {
        let policy = results.policy(label).unwrap();
        results.row(audio, policy).unwrap().estimate(column).unwrap().mean
    };
    // srpt is told how long tasks run, so it is not the answer.
    let [best, next] = if mean("rr") < mean("cfs") { ["rr", "cfs"] } else { ["cfs", "rr"] };
    assert_eq!(answer["best"]["policy"], results.policy(best).unwrap());
    assert_eq!(answer["next"]["policy"], results.policy(next).unwrap());
    let paired = results.paired(audio, "wakeup_latency_ns_mean", next, best).unwrap();
    assert_eq!(answer["next"]["difference"]["ci95"].as_f64(), paired.ci95);
    assert_eq!(answer["next"]["sure"], paired.mean.abs() > paired.ci95.unwrap());
    let told = (mean("srpt") < mean(best)).then(|| results.policy("srpt"));
    assert_eq!(answer["told"].get("policy").cloned(), told.map(|policy| json!(policy)));
    // What the other load pays.
    let batch = results.groups.iter().position(|group| group.has("workload", "batch")).unwrap();
    assert_eq!(answer["costs"][0]["group"], batch);
    assert_eq!(answer["costs"][0]["column"], "busy_ns");
}

#[test]
fn nothing_else_depends_on_the_report() {
    let plain = run(&plan(MIXED));
    let whole = run(&plan(MIXED).with_loads_apart().0).without_loads_apart();
    assert_eq!(json(&whole), json(&plain));
    assert_eq!(table(&whole), table(&plain));
}

#[test]
fn timelines_have_the_events_that_are_asked_for() {
    let (_, page) = page(300);
    let document = document(&page);
    let timelines = document["experiments"][0]["details"]["timelines"].as_array().unwrap().clone();
    assert_eq!(timelines.len(), 3);
    let events = |of: &Value| of["events"].as_u64().unwrap();
    assert_eq!(timelines.iter().map(events).sum::<u64>(), 300);
    for (number, timeline) in timelines.iter().enumerate() {
        assert_eq!(
            (timeline["block"].as_u64(), &timeline["ended"]),
            (index(number), &json!(false))
        );
        let block = unpacked(&page, &format!("block-{number}"));
        let kinds = u32::from_le_bytes(block[..4].try_into().unwrap());
        assert_eq!(u64::from(kinds), events(timeline), "a byte each");
    }
}

#[test]
fn the_same_results_give_the_same_page() {
    assert!(page(EVENTS).1 == page(EVENTS).1);
}

#[test]
fn results_of_a_file_are_taken_as_they_are() {
    let written = json(&run(&plan(MIXED)));
    let page = report(&[Told::of_json(&written).unwrap(), Told::of_json(&written).unwrap()]);
    let document = document(&String::from_utf8(page).unwrap());
    let experiments = document["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 2);
    assert_eq!(experiments[1]["results"], serde_json::from_str::<Value>(&written).unwrap());
    assert!(experiments[1]["details"].is_null());
    assert!(Told::of_json("[1]").unwrap_err().contains("no \"experiment\""));
    assert!(Told::of_json("{").unwrap_err().starts_with("not JSON"));
}

/// The simulator as a kernel: policies are out of sight, and it has a scheduler of its own.
struct Kernel;

static KERNEL: HostInfo = HostInfo {
    name: "kernel",
    title: "Kernel",
    summary: "A simulator that nobody can look into",
    capabilities: Capabilities { observed: false, ..Capabilities::all(8) },
    costs: None,
    schedulers: &["stock"],
    programs: &[],
    server: None,
    open: |_| Box::new(Kernel),
};

impl Host for Kernel {
    fn info(&self) -> &'static HostInfo {
        &KERNEL
    }

    fn run(&self, mut order: Order<'_>) -> Result<Outcome, HostError> {
        let Watch { observe, trace, .. } = &order.watch;
        assert!(observe.is_none(), "nobody said that policies can be observed");
        if let By::Own(_) = order.by {
            assert!(trace.is_none(), "only policies can be traced");
            order.by = By::Policy(&anysched_policies::POLICIES[0], Vec::new());
        }
        Simulator.run(order)
    }
}

#[test]
fn timelines_of_kernels_have_events_and_no_reasons() {
    let plan = plan(MIXED);
    let results = run_on(&Kernel, &plan);
    assert_eq!(results.policies.last().unwrap().label, "stock");
    let told = |host: &dyn Host, results: &Results, events| {
        let told = Told::of_run(results, &plan, host, &origin(), events).unwrap();
        String::from_utf8(report(&[told])).unwrap()
    };
    let here = told(&Simulator, &run(&plan), EVENTS);
    let there = told(&Kernel, &results, EVENTS);
    let timelines = |page: &str| {
        let details = &document(page)["experiments"][0]["details"];
        details["timelines"].as_array().unwrap().clone()
    };
    let (of_simulator, of_kernel) = (timelines(&here), timelines(&there));
    assert_eq!([of_simulator.len(), of_kernel.len()], [3, 3]);
    for (number, (there_is, here_is)) in of_kernel.iter().zip(&of_simulator).enumerate() {
        assert_eq!([&there_is["reasons"], &here_is["reasons"]], [false, true]);
        assert_eq!(there_is["events"], here_is["events"]);
        let id = format!("block-{number}");
        assert_eq!(unpacked(&there, &id), unpacked(&here, &id));
    }
    // Runs in kernels take long: without events to show, they are not made again.
    assert!(timelines(&told(&Kernel, &results, 0)).is_empty());
}
