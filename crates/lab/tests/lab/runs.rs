//! From a file to numbers: values worked out by hand, and what runs may depend on.

use crate::support::{self, SIMULATED};
use anysched_lab::{
    AxisValue, Experiment, Journal, Plan, Progress, Results, RunOptions, column, output,
};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

fn experiment(text: &str) -> Experiment {
    support::experiment("dir/name.toml", text)
}

fn plan(text: &str) -> Plan {
    support::plan(&experiment(text))
}

fn run_with(plan: &Plan, jobs: usize) -> Results {
    plan.run(&RunOptions { jobs, ..SIMULATED }).unwrap()
}

fn run(text: &str) -> Results {
    run_with(&plan(text), 2)
}

/// Each row in words: policy, axes and, per seed, the seed and the bits of all values.
fn rows(results: &Results) -> Vec<String> {
    let mut rows = Vec::new();
    for row in &results.rows {
        let policy = &results.policies[row.policy].label;
        let mut text = format!("{policy} {}", results.groups[row.group].title());
        for run in &row.runs {
            let values: Vec<(String, u64)> = run
                .values()
                .iter()
                .map(|(column, value)| (column.to_string(), value.to_bits()))
                .collect();
            text += &format!(" {} {values:?}", run.seed);
        }
        rows.push(text);
    }
    rows
}

const BATCH: &str = "
question = \"?\"
[machine]
cpus = 1
[[workload]]
kind = \"batch\"
tasks = 3
service = \"2ms\"
";

const OPEN: &str = "
question = \"?\"
[machine]
cpus = 2
[[workload]]
kind = \"open\"
tasks = 50
service = \"exp(10ms)\"
load = 0.9
";

#[test]
fn a_batch_by_hand() {
    let sweep = "[sweep]\npolicy = [\"fcfs\", { name = \"rr\", quantum = \"1ms\" }]\n";
    let results = run(&format!("{BATCH}{sweep}"));
    // First come, first served ends at 2, 4 and 6 ms; in turns of 1 ms they end at 4, 5 and 6.
    for (policy, waiting, response, turnaround) in [
        (0, [0.0, 2.0, 4.0], [0.0, 2.0, 4.0], [2.0, 4.0, 6.0]),
        (1, [2.0, 3.0, 4.0], [0.0, 1.0, 2.0], [4.0, 5.0, 6.0]),
    ] {
        let row = results.row(0, policy).unwrap();
        for (metric, [min, mean, max]) in [
            ("waiting_time_ns", waiting),
            ("response_time_ns", response),
            ("turnaround_ns", turnaround),
        ] {
            let of = row.aggregate(metric).unwrap();
            let found = [of.min, of.mean, of.max, of.p50].map(|ns| ns / 1e6);
            assert_eq!(found, [min, mean, max, mean], "{metric} of {policy}");
            assert_eq!(of.ci95, None, "one seed");
        }
        assert_eq!(row.aggregate("makespan_ns").unwrap().mean, 6e6);
        assert_eq!(row.aggregate("wakeup_latency_ns"), None, "nothing sleeps");
    }
    let paired = results.paired(0, "waiting_time_ns_mean", "rr", "fcfs").unwrap();
    assert_eq!((paired.mean, paired.ci95), (1e6, None));
    assert_eq!(results.paired(0, "waiting_time_ns_mean", "rr", "cfs"), None);
}

/// A column of one number a run, over seeds with known values.
#[test]
fn numbers_are_aggregated_over_seeds() {
    let results = run(&format!("{OPEN}[sweep]\npolicy = \"fcfs\"\nseeds = 5\n"));
    let row = &results.rows[0];
    let index = column("makespan_ns").unwrap();
    let mut values: Vec<f64> = row.runs.iter().map(|run| run.value(index).unwrap()).collect();
    values.sort_by(f64::total_cmp);
    let of = row.aggregate("makespan_ns").unwrap();
    let mean = values.iter().sum::<f64>() / 5.0;
    let sd = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 4.0).sqrt();
    assert!((of.mean / mean - 1.0).abs() < 1e-12 && (of.sd / sd - 1.0).abs() < 1e-12);
    let ci95 = 2.776445 * sd / 5f64.sqrt();
    assert!((of.ci95.unwrap() / ci95 - 1.0).abs() < 1e-6);
    assert_eq!([of.min, of.p50, of.p95, of.max], [values[0], values[2], values[4], values[4]]);
}

#[test]
fn extremes_are_those_of_all_seeds() {
    let row = &run(&format!("{OPEN}[sweep]\npolicy = \"fcfs\"\nseeds = 5\n")).rows[0];
    let values = |name: &str| row.values(column(name).unwrap());
    let of = row.aggregate("turnaround_ns").unwrap();
    let mins = values("turnaround_ns_min");
    assert!(mins.iter().all(|&min| of.min <= min) && mins.contains(&of.min));
    let maxima = values("turnaround_ns_max");
    assert!(maxima.iter().all(|&max| of.max >= max) && maxima.contains(&of.max));
    let p99 = values("turnaround_ns_p99").iter().sum::<f64>() / 5.0;
    assert!((of.p99 / p99 - 1.0).abs() < 1e-12, "percentiles are means over seeds");
}

#[test]
fn labels_tell_policies_apart() {
    let labels = |policies: &str| -> Vec<String> {
        let plan = plan(&format!("{BATCH}[sweep]\npolicy = {policies}\n"));
        plan.policies().iter().map(|policy| policy.label.clone()).collect()
    };
    let two =
        "[{ name = \"rr\", quantum = \"1ms\" }, { name = \"rr\", quantum = \"2ms\", tick = 0 }]";
    assert_eq!(labels(two), ["rr(quantum=1ms)", "rr(quantum=2ms,tick=0)"]);
    let one = "[{ name = \"rr\", quantum = \"1ms\" }, { name = \"rr\", label = \"other\" }]";
    assert_eq!(labels(one), ["rr", "other"]);
    assert_eq!(labels("\"fcfs\""), ["fcfs"]);
    let all = labels("\"all\"");
    let names: Vec<&str> = anysched_policies::POLICIES.iter().map(|policy| policy.name).collect();
    assert_eq!(all, names);
}

#[test]
fn nothing_depends_on_the_number_of_jobs() {
    let text = format!(
        "{OPEN}[sweep]\npolicy = [\"fcfs\", \"rr\"]\n\"machine.cpus\" = [1, 2]\nseeds = 3\n"
    );
    let plan = plan(&text);
    let all = |jobs| {
        let results = run_with(&plan, jobs);
        (
            output::json(&results),
            output::csv(&results),
            output::table(&results),
            #[cfg(feature = "parquet")]
            output::parquet(&results).unwrap(),
        )
    };
    let one = all(1);
    assert!(all(2) == one);
    assert!(all(7) == one);
}

#[test]
fn a_new_axis_value_or_policy_changes_no_other_row() {
    let with = |policies: &str, cpus: &str, seeds: u32| {
        rows(&run(&format!(
            "{OPEN}[sweep]\n\"machine.cpus\" = {cpus}\npolicy = {policies}\n\
             \"workload.0.tasks\" = [20, 30]\nseeds = {seeds}\n"
        )))
    };
    let few = with("[\"rr\"]", "[2]", 2);
    let many = with("[\"fcfs\", \"rr\"]", "[1, 2, 4]", 2);
    assert_eq!((few.len(), many.len()), (2, 12));
    for row in &few {
        assert!(many.contains(row), "{row}");
    }
    let turned = rows(&run(&format!(
        "{OPEN}[sweep]\n\"workload.0.tasks\" = [20, 30]\n\"machine.cpus\" = [2]\n\
         policy = \"rr\"\nseeds = 2\n"
    )));
    let numbers = |row: &String| row.split_once("] ").map(|(_, rest)| rest.to_string());
    assert_eq!(
        turned.iter().map(numbers).collect::<Vec<_>>(),
        few.iter().map(numbers).collect::<Vec<_>>(),
        "the order of axes changes nothing"
    );
    let longer = with("[\"rr\"]", "[2]", 3);
    for (row, longer) in few.iter().zip(&longer) {
        assert!(longer.starts_with(row), "more seeds come behind the others");
    }
}

#[test]
fn seeds_stay_what_they_are() {
    let text =
        format!("{OPEN}[sweep]\npolicy = \"fcfs\"\n\"workload.0.tasks\" = [20]\nseeds = 2\n");
    let plan = plan(&text);
    // BLAKE3 by an independent program of the parts "name", "1", "workload.0.tasks=20" and the
    // number, each behind its length in 8 bytes.
    assert_eq!([0, 1].map(|index| plan.seed(0, index)), SEEDS);
}

const SEEDS: [u64; 2] = [9_755_348_457_264_973_085, 7_227_267_463_068_491_591];

#[test]
fn policies_are_given_the_same_tasks_and_seeds_are_not() {
    let text = format!("{OPEN}[sweep]\npolicy = [\"fcfs\", \"rr\"]\nseeds = 2\n");
    let results = run(&text);
    let busy = column("busy_ns").unwrap();
    let of = |policy: usize, seed: usize| results.row(0, policy).unwrap().runs[seed].value(busy);
    assert_eq!(of(0, 0), of(1, 0));
    assert_eq!(of(0, 1), of(1, 1));
    assert_ne!(of(0, 0), of(0, 1));
}

#[test]
fn the_hash_is_of_values_and_files() {
    let hash = |text: &str| plan(text).spec_hash().to_string();
    let text = format!("policy = \"fcfs\"\n{BATCH}");
    let original = hash(&text);
    assert_eq!(original.len(), 64);
    assert_eq!(hash(&format!("# a comment\n{}", text.replace(" = ", "   ="))), original);
    assert_ne!(hash(&text.replace("2ms", "3ms")), original);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("e.toml");
    let with_tasks = |tasks: &str| {
        std::fs::write(directory.path().join("tasks.csv"), tasks).unwrap();
        let load = "[[workload]]\nkind = \"tasks\"\nfile = \"tasks.csv\"";
        let text = format!("question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n{load}");
        let plan = Experiment::parse(&text, &path).unwrap().plan().unwrap();
        (plan.spec_hash().to_string(), run_with(&plan, 1))
    };
    let (one, results) = with_tasks("arrival_ns,service_ns\n0,5\n");
    assert_eq!(results.rows[0].aggregate("makespan_ns").unwrap().mean, 5.0);
    let (two, _) = with_tasks("arrival_ns,service_ns\n0,6\n");
    assert_ne!(one, two);
}

#[test]
fn a_cancelled_experiment_keeps_what_there_is() {
    let text = format!(
        "{OPEN}[sweep]\npolicy = [\"fcfs\", \"rr\"]\n\"machine.cpus\" = [1, 2]\nseeds = 3\n"
    );
    let plan = plan(&text);
    let whole = rows(&run_with(&plan, 1));
    let cancel = AtomicBool::new(false);
    let seen = Mutex::new(Vec::new());
    let progress = |progress: &Progress<'_>| {
        seen.lock().unwrap().push((progress.done, progress.total));
        if progress.done == 7 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let results = plan
        .run(&RunOptions { jobs: 1, cancel: &cancel, progress: &progress, ..SIMULATED })
        .unwrap();
    assert!(!results.complete);
    assert_eq!(rows(&results)[..2], whole[..2], "7 of 12 runs are 2 rows and one run");
    let made: Vec<usize> = results.rows.iter().map(|row| row.runs.len()).collect();
    assert_eq!(made, [3, 3, 1]);
    let expected: Vec<(usize, usize)> = (1..=7).map(|done| (done, 12)).collect();
    assert_eq!(seen.into_inner().unwrap(), expected);
    let table = output::table(&results);
    assert!(
        table.contains("\nInterrupted: fcfs (machine.cpus = 2) has 1 of 3 seeds; rows"),
        "{table}"
    );
    assert!(output::json(&results).contains("\"complete\": false"));
    #[cfg(feature = "parquet")]
    assert!(output::parquet(&results).is_ok());
}

#[test]
fn scenarios_have_loads_and_machines_of_their_own() {
    let results = run(&format!(
        "{BATCH}duration = \"1h\"\n\
         [[scenario]]\nname = \"as above\"\n\
         [[scenario]]\nname = \"two CPUs\"\nmachine = {{ topology = \"2 cores\" }}\n\
         [[scenario]]\nname = \"short\"\nduration = \"3ms\"\n\
         [[scenario.workload]]\nkind = \"hog\"\n\
         [sweep]\npolicy = \"fcfs\"\n"
    )
    .replacen("duration = \"1h\"\n", "", 1));
    let makespans: Vec<f64> =
        results.rows.iter().map(|row| row.aggregate("makespan_ns").unwrap().mean / 1e6).collect();
    assert_eq!(makespans, [6.0, 4.0, 3.0]);
    let names: Vec<String> = results.groups.iter().map(|group| group.title()).collect();
    assert_eq!(names, ["scenario = as above", "scenario = two CPUs", "scenario = short"]);
    assert_eq!(results.groups[2].axes[0].1, AxisValue::Text("short".into()));
}

/// Three tasks of 2 ms: the same tasks on other machines, said so in the heading.
#[test]
fn a_policy_may_have_a_machine_of_its_own() {
    let text = format!(
        "{BATCH}[[scenario]]\nname = \"a\"\n[[scenario]]\nname = \"b\"\n\
         policy = {{ \"fcfs, 3 CPUs\" = {{ machine = {{ context_switch = \"1ms\" }} }}, \
         rr = {{ quantum = \"1s\" }} }}\n[sweep]\npolicy = [\"rr\", \
         {{ name = \"fcfs\", label = \"fcfs, 3 CPUs\", machine = {{ cpus = 3 }} }}]\n"
    );
    let results = run(&text);
    let turnaround = |group, policy| {
        results.row(group, policy).unwrap().aggregate("turnaround_ns").unwrap().mean / 1e6
    };
    assert_eq!([turnaround(0, 0), turnaround(0, 1)], [4.0, 2.0]);
    assert_eq!([turnaround(1, 0), turnaround(1, 1)], [4.0, 3.0]);
    let exceptions = |group: usize| {
        let words = results.groups[group].exceptions.iter().map(ToString::to_string);
        words.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(exceptions(0), "fcfs, 3 CPUs: 3 CPUs; costs: none");
    let here = "rr: quantum 1s; fcfs, 3 CPUs: 3 CPUs; costs: context switch 1ms";
    assert_eq!(exceptions(1), here);
    assert!(output::table(&results).contains("but fcfs, 3 CPUs: 3 CPUs; costs: none\n"));
    // The load is made for the common machine, so that the tasks are the same.
    let open = format!(
        "{OPEN}[sweep]\npolicy = [\"fcfs\", \
         {{ name = \"fcfs\", label = \"1\", machine = {{ cpus = 1 }} }}]"
    );
    let results = run(&open);
    let busy = |policy| results.row(0, policy).unwrap().aggregate("busy_ns").unwrap().mean;
    assert_eq!(busy(0), busy(1));
}

#[test]
fn all_costs_and_parts_of_a_machine_arrive_in_the_setup() {
    let plan = plan(
        "question = \"?\"\npolicy = \"fcfs\"\nduration = \"2s\"\n[machine]\n\
         topology = \"2 nodes x 2 cores\"\ncontext_switch = \"1us\"\n\
         migration = { core = \"2us\", llc = \"3us\", node = \"4us\" }\npick = \"5us\"\n\
         pick_per_item = \"6us\"\nenqueue = \"7us\"\nenqueue_log = \"8us\"\nlock_hold = \"9us\"\n\
         ipi = \"10us\"\ntimer_irq = \"11us\"\ntick = \"12us\"\nsmt = 0.5\n\
         contention = { core = 0.25, llc = 2 }\n\
         capacity = [1024, 1024, 512, 1]\n\
         [[machine.hotplug]]\nat = \"2ms\"\ncpu = 3\nonline = true\n\
         [[machine.hotplug]]\nat = \"1ms\"\ncpu = 3\nonline = false\n\
         [[workload]]\nkind = \"hog\"\n",
    );
    let setup = plan.setup(0, 0);
    let costs = &setup.costs;
    let spans = [
        costs.context_switch,
        costs.migrate_core,
        costs.migrate_llc,
        costs.migrate_node,
        costs.pick_base,
        costs.pick_per_item,
        costs.enqueue_base,
        costs.enqueue_log,
        costs.lock_hold,
        costs.ipi,
        costs.timer_irq,
        setup.machine.tick().unwrap(),
    ];
    assert_eq!(spans.map(|span| span.0 / 1000), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!((setup.smt_speed, setup.until.0), (512, 2_000_000_000));
    assert_eq!((setup.contention.core, setup.contention.llc), (256, 2048));
    let capacities: Vec<u16> =
        setup.machine.cpu_ids().map(|cpu| setup.machine.cpu(cpu).capacity).collect();
    assert_eq!(capacities, [1024, 1024, 512, 1]);
    let moments: Vec<(u64, u16, bool)> =
        setup.hotplug.iter().map(|&(at, cpu, online)| (at.0 / 1_000_000, cpu.0, online)).collect();
    assert_eq!(moments, [(1, 3, false), (2, 3, true)]);
}

#[test]
fn every_kind_of_load_is_read() {
    let loads = [
        "kind = \"closed batch\"\ntasks = 3\nservice = \"exp(1ms)\"\nat = \"1s\"\nnice = -5",
        "kind = \"open\"\nservice = \"1ms\"\nrate = 100\nuntil = \"1s\"\nname = \"r\"",
        "kind = \"open\"\nservice = \"1ms\"\ninterarrival = \"2ms\"\ntasks = 5\nstart = \"1s\"",
        "kind = \"closed loop\"\nclients = 4\nrequests = 10\nservice = \"1ms\"\nthink = \"1ms\"",
        "kind = \"periodic\"\ntasks = 2\nperiod = \"10ms\"\nrun = \"1ms\"\njobs = 3\n\
         deadline = \"5ms\"\njitter = \"1ms\"\noffset = \"uniform(0, 10ms)\"",
        "kind = \"task-set\"\ntasks = 5\nload = 0.5\nperiods = [\"1ms\", \"100ms\"]\njobs = 2",
        "kind = \"interactive\"\ntasks = 2\nrun = \"1ms\"\nsleep = \"9ms\"\nuntil = \"50ms\"",
        "kind = \"hog\"\nuntil = \"20ms\"\naffinity = 1\npriority = 3\ndomain = 2",
        "kind = \"interbench\"\ntask = \"custom\"\nagainst = \"burn\"\nburners = 1\n\
         load_nice = 1\ncustom_run = \"1ms\"\ncustom_interval = \"9ms\"\npause = \"1ms\"\n\
         duration = \"50ms\"",
        "kind = \"cyclictest\"\nthreads = 2\ninterval = \"1ms\"\ndistance = \"1us\"\n\
         loops = 5\nduration = \"1s\"",
        "kind = \"schbench\"\nmessage_threads = 2\nworkers = 1\nsleep = \"1ms\"\nwork = \"2ms\"\n\
         duration = \"20ms\"",
        "kind = \"hackbench\"\ngroups = 1\nfds = 2\nloops = 3\nsend = \"2us\"\nreceive = \"1us\"\n\
         buffer = 2",
        "kind = \"arceos-test\"\ncase = \"unequal\"\nthreads = 2\ngroups = 3\n\
         iterations = [5, 7]\niteration = \"1.5us\"\nduration = \"10us\"",
    ];
    for load in loads {
        let text = format!(
            "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 2\n[[workload]]\n{load}\n"
        );
        let results = run(&text);
        let row = &results.rows[0];
        let count = |name: &str| row.aggregate(name).map(|of| of.mean);
        assert!(count("completed").unwrap() > 0.0, "{load}");
        assert_eq!(count("unfinished"), Some(0.0), "{load}");
    }
    let all: Vec<String> = loads.iter().map(|load| format!("[[workload]]\n{load}\n")).collect();
    let text = format!("question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 2\n{}", all.join(""));
    assert_eq!(run(&text).groups[0].loads.len(), loads.len());
}

/// The recordings are large; one run of each kind of file.
#[test]
fn recordings_are_loads() {
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces");
    let text = "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 2\n[[workload]]\n\
                kind = \"trace\"\nfile = \"cargo-build.txt.gz\"\n";
    let path = Path::new(traces).join("x.toml");
    let plan = Experiment::parse(text, &path).unwrap().plan().unwrap();
    let row = &run_with(&plan, 1).rows[0];
    assert!(row.aggregate("completed").unwrap().mean > 300.0);
    assert!(row.aggregate("wakeup_latency_ns").is_some());
}

#[test]
fn files_of_other_programs_are_loads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("e.toml");
    let planned = |kind: &str, contents: &str, top: &str| {
        std::fs::write(directory.path().join("file"), contents).unwrap();
        let text = format!(
            "question = \"?\"\npolicy = \"fcfs\"\n{top}\n[machine]\ncpus = 1\n[[workload]]\n\
             kind = \"{kind}\"\nfile = \"file\"\n"
        );
        Experiment::parse(&text, &path).and_then(|experiment| experiment.plan())
    };
    let makespan = |plan: &Plan| run_with(plan, 1).rows[0].aggregate("makespan_ns").unwrap().mean;
    let swf = "; a log\n1 0 -1 10 1 -1 -1 1 -1 -1 1 3 -1 -1 -1 -1 -1 -1\n";
    assert_eq!(makespan(&planned("swf", swf, "").unwrap()), 10e9);
    let app = |duration: i32| {
        format!(
            "{{\"tasks\": {{\"t\": {{\"loop\": -1, \"run\": 1000, \"sleep\": 1000}}}}, \
             \"global\": {{\"duration\": {duration}}}}}"
        )
    };
    // It runs 1 ms and sleeps 1 ms, until the file ends it or the experiment does.
    let plan = planned("rt-app", &app(1), "").unwrap();
    assert_eq!(plan.setup(0, 0).until.0, 1_000_000_000);
    let utilisation = run_with(&plan, 1).rows[0].aggregate("utilisation").unwrap().mean;
    assert!((utilisation - 0.5).abs() < 0.01, "{utilisation}");
    let plan = planned("rt-app", &app(1), "duration = \"1.5s\"").unwrap();
    assert_eq!(plan.setup(0, 0).until.0, 1_500_000_000);
    let error = planned("rt-app", &app(-1), "").unwrap_err();
    assert_eq!(error.to_string(), "this load never ends");
    assert!(planned("rt-app", &app(-1), "duration = \"1s\"").is_ok());
    let model = |task: &str| {
        format!("{{\"anysched-model\":1,\"scripts\":[{{\"ops\":[]}}],\"tasks\":[{task}]}}")
    };
    let plan = planned("model", &model("{\"script\":0,\"arrives\":0,\"affinity\":\"0-3\"}"), "");
    assert_eq!(plan.unwrap().warnings(), [] as [&str; 0]);
}

#[test]
fn files_without_tasks_are_refused_and_those_for_other_machines_run_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("e.toml");
    let planned = |kind: &str, contents: &str| {
        std::fs::write(directory.path().join("file"), contents).unwrap();
        let text = format!(
            "question = \"?\"\npolicy = \"fcfs\"\n[[workload]]\nkind = \"{kind}\"\n\
             file = \"file\"\n[sweep]\n\"machine.cpus\" = [2, 5]\n"
        );
        Experiment::parse(&text, &path).and_then(|experiment| experiment.plan())
    };
    let model = |tasks: &str| {
        format!(
            "{{\"anysched-model\":1,\"scripts\":[{{\"ops\":[]}},\
             {{\"ops\":[[\"affinity\",\"2-3\"]]}}],\"tasks\":[{tasks}]}}"
        )
    };
    for (kind, contents, message, help) in [
        (
            "tasks",
            "arrival_ns,service_ns\n",
            "\"file\" has no tasks",
            "each is a line below that of the columns",
        ),
        (
            "model",
            &model("{\"script\":0}"),
            "\"file\": no task arrives",
            "a task of a model has a time in `arrives`",
        ),
        (
            "swf",
            "1 0 -1 -1 1 -1 -1 1 -1 -1 1 3 -1 -1 -1 -1 -1 -1\n",
            "\"file\": no task arrives",
            "1 jobs have no run time or one of 0; they are skipped",
        ),
    ] {
        let error = planned(kind, contents).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.remedy()), (message, Some(help)));
    }
    let warning = "2 tasks are bound to CPUs that this machine of 2 does not have; they may use all \
                   of it";
    let tasks = "arrival_ns,service_ns,affinity\n0,1,4\n0,1,\"1,4\"\n0,1,2-9\n0,1,\n";
    assert_eq!(planned("tasks", tasks).unwrap().warnings(), [format!("file: {warning}")]);
    let task = |script: u8, affinity: &str| {
        format!("{{\"script\":{script},\"arrives\":0,\"affinity\":\"{affinity}\"}}")
    };
    let tasks = [task(0, "4"), task(1, "all"), task(0, "0-4")].join(",");
    assert_eq!(planned("model", &model(&tasks)).unwrap().warnings(), [format!("file: {warning}")]);
}

#[test]
fn experiments_can_be_changed_from_outside() {
    let text = format!(
        "{OPEN}[sweep]\n\
         policy = [\"fcfs\", {{ name = \"rr\", quantum = \"1ms\", label = \"short\" }}]\n\
         \"machine.cpus\" = [1, 2]\n[[claim]]\nid = \"1\"\ntext = \"t\"\n\
         expect = \"short.response_time_ns_mean <= fcfs.response_time_ns_mean\"\n"
    );
    let all = run(&text);
    let change = |change: &dyn Fn(Experiment) -> Experiment| {
        run_with(&change(experiment(&text)).plan().unwrap(), 1)
    };
    let one = change(&|e| e.with_setting("machine.cpus", "2").unwrap());
    assert_eq!(rows(&one), rows(&all)[2..], "an axis keeps this value alone");
    assert_ne!(one.spec_hash, all.spec_hash);
    assert_eq!(one.claims.len(), 1);
    let short = change(&|e| e.with_policies(&["short", "rr"]).unwrap());
    let labels: Vec<&str> = short.policies.iter().map(|policy| policy.label.as_str()).collect();
    assert_eq!((labels, short.claims.len()), (vec!["short", "rr"], 0));
    assert_eq!(rows(&short)[0], rows(&all)[1]);
    let slow = change(&|e| e.with_setting("short.quantum", "10s").unwrap());
    assert_eq!(slow.policies[1].settings, [("quantum".to_string(), "10s".to_string())]);
    let seed = change(&|e| e.with_setting("seed", "2").unwrap());
    assert_ne!(seed.rows[0].runs[0].seed, all.rows[0].runs[0].seed);
    let refused = |key: &str, value: &str| {
        let changed = experiment(&text).with_setting(key, value);
        let error = changed.and_then(|e| e.plan().map(|_| e)).unwrap_err().to_plain();
        error
            .strip_prefix("command line for dir/name.toml:1:")
            .unwrap()
            .split_once(": ")
            .unwrap()
            .1
            .to_string()
    };
    assert_eq!(refused("machine.cpus", "none"), "`cpus` is a whole number, not \"none\"");
    assert_eq!(refused("quantun", "1ms"), "no policy here has `quantun`; did you mean `quantum`?");
    assert!(refused("fcfs.quantum", "1ms").starts_with("no policy here has `fcfs.quantum`"));
    let label = "no policy here is called `shrt`; did you mean `short`?";
    assert_eq!(refused("shrt.quantum", "1ms"), label);
    let part = "no policy here is called `machin`; did you mean `machine`?";
    assert_eq!(refused("machin.cpus", "1"), part);
    let values = "values are `duration` and paths such as `machine.cpus`, `workload.0.tasks`, \
             `vm.0.count`";
    for key in ["machine", "workload", "workload.", "duration.x"] {
        assert_eq!(refused(key, "1"), format!("`{key}` is no value; {values}"));
    }
    let range = "it goes from 1 to 1024";
    for cpus in ["0", "1025", "99999999999999999999"] {
        assert_eq!(
            refused("machine.cpus", cpus),
            format!("`cpus` = {cpus} is out of range; {range}")
        );
    }
    let quoted = "`cpus` is a whole number, not \"2\"; without quotes: `cpus = 2`";
    assert_eq!(refused("machine.cpus", "\"2\""), quoted);
    assert!(refused("quantum", "0").starts_with("`quantum` of policy `rr`: must be above 0"));
    assert!(refused("workload.3.tasks", "1").starts_with("there is no `3`"));
    for (names, why) in [
        (&["shirt"][..], "no policy is called \"shirt\"; did you mean `short`?"),
        (
            &["rr", "all"],
            "policy \"rr\" is chosen twice; name each once; `all` are the registered ones",
        ),
    ] {
        let error = experiment(&text).with_policies(names).unwrap_err().to_plain();
        assert!(error.ends_with(why), "{error}");
    }
}

/// A custom task of 1 ms every 10 ms alone, and half of two CPUs with hogs; the numbers of the
/// benchmark are columns, which are empty where there is none.
/// Groups of 2.28 ns are 22 ns in all, and 5 in a list are one for each task; the last takes 45 ns.
#[test]
fn sizes_of_arceos_tests_are_numbers_or_lists() {
    let load = |keys: &str| {
        let results = run(&format!(
            "question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 5\n[[workload]]\n\
             kind = \"arceos-test\"\n{keys}\n"
        ));
        let value = |metric: &str| results.rows[0].aggregate(metric).map(|of| of.mean);
        (value("tasks"), ["finish_0_ns", "finish_4_ns", "leave_4_ns"].map(value))
    };
    let (all, last) = (Some(5.0), Some(45.0));
    let all_same = load("case = \"realtime\"\ngroups = 10\niterations = 1");
    assert_eq!(all_same, (all, [Some(22.0), Some(22.0), Some(22.0)]));
    let listed = load("case = \"equal\"\ngroups = [1, 1, 1, 1, 20]\niterations = 1");
    assert_eq!(listed, (all, [Some(2.0), last, last]));
    let picoseconds = load("case = \"occupy\"\ngroups = 3\niterations = 1\niteration = \"900ps\"");
    assert_eq!(picoseconds.1[0], Some(2.0));
    let one = load("case = \"yield\"\nthreads = 1\ngroups = 1\niterations = 10");
    assert_eq!(one, (Some(1.0), [Some(22.0), None, None]));
}

/// Seven tasks that finish: what each tells is a column, and there are no others.
#[test]
fn columns_of_benchmarks_are_where_they_ran() {
    let results = run("question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 1\n\
         [[scenario]]\nname = \"a\"\n[[scenario.workload]]\nkind = \"arceos-test\"\n\
         case = \"yield\"\nthreads = 7\ngroups = 1\niterations = 10\n\
         [[scenario]]\nname = \"b\"\n[[scenario.workload]]\nkind = \"cyclictest\"\nthreads = 1\n\
         loops = 3\n");
    let names = |row: usize| -> Vec<String> {
        results.rows[row].metrics().iter().map(|(metric, ..)| metric.to_string()).collect()
    };
    let (tasks, latency) = (names(0), names(1));
    for (name, of_tasks, of_latency) in [
        ("dispatches", true, true),
        ("finish_6_ns", true, false),
        ("finish_7_ns", false, false),
        ("leave_time_ns", true, false),
        ("benchmark_latency_ns", false, true),
        ("interbench_sd_ns", false, false),
        ("deadlines_met_percent", false, false),
    ] {
        let found = [&tasks, &latency].map(|names| names.iter().any(|known| known == name));
        assert_eq!(found, [of_tasks, of_latency], "{name}");
    }
    let csv = anysched_lab::output::csv(&results);
    assert!(csv.contains(",finish_6_ns_mean,") && !csv.contains("interbench"), "{csv}");
}

#[test]
fn what_benchmarks_measure_is_in_columns() {
    let results = run("question = \"?\"\npolicy = \"fcfs\"\n[machine]\ncpus = 2\n\
         [[scenario]]\nname = \"a\"\n[[scenario.workload]]\nkind = \"interbench\"\n\
         task = \"custom\"\nagainst = \"none\"\ncustom_run = \"1ms\"\n\
         custom_interval = \"10ms\"\nduration = \"50ms\"\n\
         [[scenario]]\nname = \"b\"\n[[scenario.workload]]\nkind = \"schbench\"\nworkers = 1\n\
         work = \"1ms\"\nduration = \"10500us\"\n\
         [[scenario]]\nname = \"c\"\n[[scenario.workload]]\nkind = \"hackbench\"\ngroups = 1\n\
         fds = 1\nloops = 3\nsend = \"2us\"\n");
    let value = |row: usize, metric: &str| results.rows[row].aggregate(metric).map(|of| of.mean);
    assert_eq!(value(0, "benchmark_latency_ns"), Some(0.0));
    assert_eq!(value(0, "benchmark_wakeup_ns"), Some(0.0));
    assert_eq!(value(0, "interbench_sd_ns"), Some(0.0));
    assert_eq!(value(0, "deadlines_met_percent"), Some(100.0));
    assert_eq!(value(0, "desired_cpu_percent"), Some(100.0));
    assert_eq!(value(0, "benchmark_requests_per_s"), None);
    assert_eq!(value(1, "benchmark_request_ns"), Some(1_100_000.0));
    assert_eq!(value(1, "benchmark_requests_per_s").map(f64::round), Some(952.0));
    assert_eq!(value(1, "deadlines_met_percent"), None);
    assert_eq!(value(2, "benchmark_time_ns"), Some(7_000.0));
    assert_eq!(value(2, "benchmark_latency_ns"), None);
}

/// All that the first run of each row measured, row by row.
#[test]
fn the_first_runs_can_be_had_whole() {
    let plan = plan(
        "question = \"?\"\npolicy = [\"fcfs\", \"rr\"]\n[machine]\ncpus = 1\n\
         [[workload]]\nkind = \"batch\"\ntasks = 3\nservice = \"1ms\"\n\
         [sweep]\n\"workload.0.tasks\" = [3, 4]\nseeds = 2\n",
    );
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let options = RunOptions { cancel: &cancel, ..SIMULATED };
    let tasks: Vec<u64> =
        plan.measure(&options).unwrap().iter().filter_map(|metrics| metrics.tasks.get()).collect();
    assert_eq!(tasks, [3, 3, 4, 4]);
    cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(plan.measure(&options).unwrap().is_empty());
}

/// In groups of a CPU each, the second task waits for the first; from 3 ms on it has CPU 1.
#[test]
fn parameters_change_during_a_run() {
    let text = |policy: &str| {
        format!(
            "question = \"?\"\n[machine]\ncpus = 2\n[[workload]]\nkind = \"batch\"\ntasks = 2\n\
             service = \"20ms\"\n[sweep]\npolicy = [{policy}]\n"
        )
    };
    let own = "name = \"gfs\", grouping = \"core\", core_interval = \"none\", tick = \"0ns\"";
    let changes =
        "[{ at = \"4ms\", grouping = \"core\" }, { at = \"3ms\", grouping = \"single\" }]";
    let policies =
        format!("{{ {own}, label = \"stays\" }}, {{ {own}, label = \"x\", changes = {changes} }}");
    let plan = plan(&text(&policies));
    assert!(plan.setup(0, 0).changes.is_empty());
    let setup = plan.setup(0, 1);
    let changed: Vec<(u64, &str)> =
        setup.changes.iter().map(|change| (change.at.0 / 1_000_000, &*change.text)).collect();
    assert_eq!(changed, [(3, "single"), (4, "core")]);
    let results = run_with(&plan, 1);
    let makespan = |policy| {
        results.row(0, policy).unwrap().aggregate("makespan_ns").unwrap().mean / 1_000_000.0
    };
    assert_eq!([makespan(0), makespan(1)], [40.0, 23.0]);
}

#[test]
fn parts_put_together_in_any_order_are_the_whole() {
    let text = "
question = \"?\"
[machine]
cpus = 2
[[workload]]
kind = \"open\"
load = 0.7
service = \"exp(5ms)\"
tasks = 30
[sweep]
policy = [\"rr\", \"eevdf\"]
\"machine.cpus\" = [1, 2]
seeds = 5
[report]
by = \"task\"
";
    let (plan, cancel) = (plan(text), AtomicBool::new(false));
    let options = RunOptions { jobs: 1, cancel: &cancel, ..SIMULATED };
    let part = |numbers| plan.part(&options, numbers).unwrap();
    // One run is missing, one is there twice.
    let parts = [part(13..20), part(0..3), part(2..12)];
    let journal = Journal::of_parts(&plan, parts.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(journal.len(), 19);
    let together = plan.run(&RunOptions { journal: Some(&journal), ..options }).unwrap();
    assert_eq!(output::json(&together), output::json(&run(text)));
    assert_eq!(rows(&together), rows(&run(text)));
    assert!(plan.part(&options, 13..21).unwrap_err().why.contains("only 20 runs"));
    let of = |part: &[u8]| Journal::of_parts(&plan, [part]).unwrap_err().to_string();
    assert!(of(&parts[0][..100]).contains("line 1: not a run"));
    let text = String::from_utf8(parts[0].clone()).unwrap();
    // The run of one seed does not pass for that of another.
    let others = text.replacen("\"index\":0", "\"index\":1", 1);
    assert!(of(others.as_bytes()).contains("line 3: a run of another experiment"));
}
