//! Experiments on another host than the simulator, and costs that were measured on one.

use crate::support;
use anysched_core::Span;
use anysched_host::{Capabilities, Host, HostError, HostInfo, Order, Outcome};
use anysched_lab::{Experiment, Plan, Results, RunError, RunOptions, Verdict};
use anysched_measure::Metrics;
use anysched_sim::Simulator;
use anysched_workload::kinds::Needs;
use std::path::Path;

/// A turnaround for each scheduler, by the length of its name in ms.
struct ByName;

static NAMES: HostInfo = HostInfo {
    name: "names",
    title: "Names",
    summary: "How long names are",
    capabilities: Capabilities {
        duration: false,
        vms: false,
        observed: false,
        parts: false,
        tasks: Needs::NOTHING,
        ..Capabilities::all(2)
    },
    costs: Some("none"),
    schedulers: &["own-1", "own-long"],
    programs: &[],
    server: None,
    open: |_| Box::new(ByName),
};

impl Host for ByName {
    fn info(&self) -> &'static HostInfo {
        &NAMES
    }

    fn run(&self, order: Order<'_>) -> Result<Outcome, HostError> {
        let mut metrics = Metrics::default();
        metrics.turnaround.record(Span::from_ms(order.by.name().len() as u64).0);
        Ok(Outcome { metrics, ..Outcome::default() })
    }
}

const OPTIONS: RunOptions<'static> = RunOptions { host: &ByName, jobs: 1, ..support::SIMULATED };
const SIMULATED: RunOptions<'static> = RunOptions { host: &Simulator, ..OPTIONS };

fn experiment(text: &str) -> Result<Experiment, String> {
    Experiment::parse(text, Path::new("name.toml")).map_err(|error| error.to_plain())
}

fn plan(text: &str) -> Plan {
    let planned = experiment(text).and_then(|e| e.plan().map_err(|error| error.to_plain()));
    planned.unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: &Plan) -> Result<Results, RunError> {
    plan.run(&OPTIONS)
}

fn labels(results: &Results) -> Vec<&str> {
    results.policies.iter().map(|policy| policy.label.as_str()).collect()
}

const LOAD: &str = "question = \"?\"\n[machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\n\
                    tasks = 2\nservice = \"2ms\"\n";

#[test]
fn claims_can_be_about_the_schedulers_of_the_host() {
    let text = format!(
        "{LOAD}[sweep]\npolicy = [\"fcfs\", \"rr\"]\nof_host = [\"own-long\"]\n[[claim]]\nid = \"a\"\n\
         text = \"?\"\nexpect = \"fcfs.turnaround_ns_mean < own-long.turnaround_ns_mean\"\n"
    );
    let results = run(&plan(&text)).unwrap();
    assert_eq!(labels(&results), ["fcfs", "rr", "own-long"]);
    assert_eq!(results.claims[0].verdict, Some(Verdict::Holds));
    // It is the scheduler of this name that is meant also when policies are left out.
    let chosen = experiment(&text).unwrap().with_policies(&["rr", "fcfs"]).unwrap();
    let results = run(&chosen.plan().unwrap()).unwrap();
    assert_eq!(labels(&results), ["rr", "fcfs", "own-long"]);
    let check = &results.claims[0].checks[0];
    assert_eq!((check.left, check.right), (4e6, 8e6));
    // The simulator has none.
    assert_eq!(plan(&text).run(&SIMULATED).unwrap().claims[0].verdict, None);
}

#[test]
fn without_a_choice_all_of_the_host_are_compared() {
    let text = format!("{LOAD}[sweep]\npolicy = \"fcfs\"\n");
    assert_eq!(labels(&run(&plan(&text)).unwrap()), ["fcfs", "own-1", "own-long"]);
}

#[test]
fn none_of_the_host_is_a_choice() {
    let text = format!("{LOAD}[sweep]\npolicy = \"fcfs\"\nof_host = []\n");
    assert_eq!(labels(&run(&plan(&text)).unwrap()), ["fcfs"]);
}

#[test]
fn schedulers_that_a_host_lacks_are_refused() {
    let text = format!("{LOAD}[sweep]\npolicy = \"fcfs\"\nof_host = [\"own-2\"]\n");
    let error = run(&plan(&text)).unwrap_err().to_string();
    assert!(error.contains("own-2") && error.contains("own-1, own-long"), "{error}");
    for (list, why) in
        [("\"a\"", "is a list of names"), ("[\"fcfs\"]", "two schedulers are called")]
    {
        let text = format!("{LOAD}[sweep]\npolicy = \"fcfs\"\nof_host = {list}\n");
        let error = experiment(&text).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn schedulers_of_the_host_can_be_chosen_by_name() {
    let text = format!(
        "{LOAD}[sweep]\npolicy = [\"fcfs\", \"rr\"]\nof_host = [\"own-1\", \"own-long\"]\n\
         [[claim]]\nid = \"a\"\ntext = \"?\"\nexpect = \"own-long.turnaround_ns_mean > 0\"\n\
         [[claim]]\nid = \"b\"\ntext = \"?\"\nexpect = \"own-1.turnaround_ns_mean > 0\"\n"
    );
    let chosen = |names: &[&str]| {
        experiment(&text).unwrap().with_policies(names).map_err(|error| error.to_plain())
    };
    let alone = chosen(&["own-long"]).unwrap().plan().unwrap();
    let results = run(&alone).unwrap();
    assert_eq!((labels(&results), results.rows.len()), (vec!["own-long"], 1));
    let claims: Vec<_> = results.claims.iter().map(|claim| (&*claim.id, claim.verdict)).collect();
    assert_eq!(claims, [("a", Some(Verdict::Holds))]);
    assert_eq!(results.claims[0].checks[0].left, 8e6, "that of the scheduler of this name");
    let both = run(&chosen(&["own-1", "rr"]).unwrap().plan().unwrap()).unwrap();
    assert_eq!(labels(&both), ["rr", "own-1"]);
    // The simulator has none, so nothing would run.
    let error = alone.run(&SIMULATED).unwrap_err().to_string();
    assert!(error.contains("own-long"), "{error}");
    assert!(chosen(&["own-1", "own-1"]).unwrap_err().contains("is chosen twice"));
}

/// An experiment in a folder of its own, beside a file of costs.
fn with_costs(name: &str, costs: &str, text: &str) -> Result<Plan, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("k.costs"), costs).unwrap();
    let read = Experiment::parse(text, &folder.join("name.toml"));
    read.and_then(|experiment| experiment.plan()).map_err(|error| error.to_plain())
}

#[test]
fn measured_costs_are_each_policy_s_own() {
    let costs = "[iteration]\ndivide = \"13ns\"\n[fcfs]\npick = \"300ns\"\ntimer_irq = \"5us\"\n\
                 [rr]\npick = \"400ns\"\n[short]\npick = \"500ns\"\n";
    let text = "question = \"?\"\n[machine]\ncpus = 1\ncosts = \"k.costs\"\ntimer_irq = \"1us\"\n\
                [[workload]]\nkind = \"arceos-test\"\ncase = \"yield\"\ngroups = 2\niterations = 1000\n\
                [sweep]\npolicy = [\"fcfs\", \"rr\", { name = \"rr\", label = \"short\", quantum = \"1ms\" }]\n";
    let plan = with_costs("own", costs, text).unwrap();
    let pick = |policy| plan.setup(0, policy).costs.pick_base;
    assert_eq!([0, 1, 2].map(pick), [300, 400, 500].map(Span));
    // What the experiment says itself goes before.
    assert_eq!(plan.setup(0, 0).costs.timer_irq, Span::from_us(1));
    // Four tasks with two groups of 13 us and two picks behind each, and the last to find out.
    let makespan = anysched_lab::column("makespan_ns").unwrap();
    let results = plan.run(&SIMULATED).unwrap();
    let fcfs = results.row(0, 0).unwrap().estimate(makespan).unwrap().mean;
    assert_eq!(fcfs, (8 * 13_000 + 12 * 300) as f64);
}

#[test]
fn costs_that_say_nothing_of_a_policy_are_refused() {
    let text = format!("{LOAD}[sweep]\npolicy = \"fcfs\"\n")
        .replace("cpus = 1", "cpus = 1\ncosts = \"k.costs\"");
    let error = with_costs("none", "[rr]\npick = \"1us\"\n", &text).unwrap_err();
    assert!(error.contains("does not say what fcfs costs"), "{error}");
    let error = with_costs("broken", "[fcfs\n", &text).unwrap_err();
    assert!(error.contains("\"k.costs\": not TOML"), "{error}");
}

#[test]
fn what_a_host_cannot_do_is_said_before_anything_runs() {
    let refused = |text: &str| {
        let plan = plan(&text.replace("tasks = 2", "tasks = 2\nname = \"t\""));
        let said = plan.require(&NAMES).unwrap_err().to_string();
        assert_eq!(run(&plan).map(|_| ()).unwrap_err().why, said.replace("machine.cpus = 3: ", ""));
        assert_eq!(plan.require(Simulator.info()), Ok(()));
        said
    };
    let sweep = "[sweep]\npolicy = \"fcfs\"\n";
    let said = refused(&format!("duration = \"1s\"\n{LOAD}{sweep}"));
    assert!(said.starts_with("names cannot end a run"), "{said}");
    let said = refused(&format!("{LOAD}{sweep}\"machine.cpus\" = [1, 3]\n"));
    assert_eq!(said, "machine.cpus = 3: names has at most 2 CPUs, not 3");
    let said = refused(&format!("{LOAD}[[vm]]\nname = \"a\"\n{sweep}"));
    assert!(said.starts_with("names cannot run virtual machines"), "{said}");
    let said = refused(&format!("{LOAD}{sweep}[report]\nby = \"workload\"\n"));
    assert!(said.starts_with("names cannot measure workloads or tasks apart"), "{said}");
    // Of tasks, it is the load that is named.
    let more = "[[workload]]\nkind = \"parallel\"\nrun = \"1ms\"\nnice = 5\n";
    let plan = plan(&format!("{LOAD}{more}{sweep}"));
    let said = plan.require(&NAMES).unwrap_err().to_string();
    let begins =
        "workload \"parallel: run 1ms, nice 5\": names does not have barriers, nice values: ";
    assert!(said.starts_with(begins), "{said}");
    assert!(run(&plan).is_err());
}

#[test]
fn a_machine_is_like_that_of_a_distribution() {
    let text = |machine: &str, policy: &str| {
        format!(
            "question = \"?\"\npolicy = {policy}\n[machine]\ncpus = 1\n{machine}\n[[workload]]\n\
             kind = \"batch\"\ntasks = 1\nservice = \"1ms\"\n"
        )
    };
    let plan = |machine: &str, policy: &str| {
        let experiment = Experiment::parse(&text(machine, policy), Path::new("x.toml")).unwrap();
        experiment.plan().unwrap()
    };
    let debian = plan("like = \"debian-13\"", "\"eevdf\"");
    let setup = debian.setup(0, 0);
    assert_eq!(setup.machine.tick(), Some(Span::from_ms(4)));
    assert!(setup.costs.context_switch > Span::ZERO && setup.costs.charged);
    assert!(debian.policy(0, 0).settings().contains(&("profile", "6.12")));
    let words = debian.groups().next().unwrap().machine.clone();
    assert!(
        words.contains("like debian-13 (Debian 13, Linux 6.12; eevdf: profile 6.12"),
        "{words}"
    );
    assert!(debian.warnings().is_empty());
    // What is said goes before.
    let own = plan(
        "like = \"debian-13\"\ntick = \"1ms\"\ncontext_switch = \"7us\"",
        "{ name = \"eevdf\", profile = \"6.6\" }",
    );
    assert_eq!(own.setup(0, 0).machine.tick(), Some(Span::from_ms(1)));
    assert_eq!(own.setup(0, 0).costs.context_switch, Span::from_us(7));
    assert_eq!(own.setup(0, 0).costs.pick_base, setup.costs.pick_base);
    assert_eq!(own.policy(0, 0).settings()[0], ("profile", "6.6"));
    let free = plan("like = \"debian-13\"\ncosts = \"free\"", "\"rr\"");
    assert!(free.setup(0, 0).costs.are_zero());
    assert_eq!(free.policy(0, 0).settings(), []);
    // The same costs by the name of the distribution or of the kernel.
    let [by_distribution, by_kernel] = ["debian-12", "linux-6.1"]
        .map(|name| plan(&format!("costs = {name:?}"), "\"rr\"").setup(0, 0).costs.clone());
    assert_eq!(by_distribution, by_kernel);
    assert_ne!(by_kernel, setup.costs);
}

#[test]
fn unknown_distributions_are_refused_and_missing_ticks_noted() {
    let text = "question = \"?\"\npolicy = [\"eevdf\", \"cfs\", \"rr\"]\n[machine]\ncpus = 1\n\
                [[workload]]\nkind = \"batch\"\ntasks = 1\nservice = \"1ms\"\n";
    let plan = |text: &str| Experiment::parse(text, Path::new("x.toml")).unwrap().plan();
    let warnings = plan(text).unwrap().warnings().to_vec();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("`eevdf` decides at ticks, and none is stated"));
    let ticking = text.replace("cpus = 1", "cpus = 1\ntick = \"4ms\"");
    assert!(plan(&ticking).unwrap().warnings().is_empty());
    let error = plan(&text.replace("cpus = 1", "cpus = 1\nlike = \"debian-31\"")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("no machine is known as \"debian-31\""), "{error}");
}
