//! Charts of results over an axis.

use crate::support::{self, SIMULATED};
use anysched_lab::{Experiment, Results};

/// Of n tasks of 10 ms that are there at once, on one CPU in order, task k waits (k − 1) times
/// 10 ms: on average 5 (n − 1) ms.
const BATCH: &str = "question = \"How long do <n> tasks wait?\"\ntitle = \"Waiting & switching\"\n\
    [machine]\ncpus = 1\n[[workload]]\nkind = \"batch\"\nservice = \"10ms\"\n\
    [sweep]\npolicy = [\"fcfs\", \"sjf\"]\n\"workload.0.tasks\" = [1, 2, 5]\nseeds = 2\n";

/// Only what has an interactive task wakes up.
const GAP: &str = "question = \"?\"\npolicy = \"rr\"\nduration = \"50ms\"\n[machine]\ncpus = 1\n\
    [[workload]]\nkind = \"hog\"\n\
    [[scenario]]\nname = \"1 sleeper\"\n[[scenario.workload]]\nkind = \"interactive\"\n\
    run = \"1ms\"\nsleep = \"2ms\"\n[[scenario]]\nname = \"2 hogs\"\n\
    [[scenario.workload]]\nkind = \"hog\"\ntasks = 2\n[[scenario]]\nname = \"4 sleepers\"\n\
    [[scenario.workload]]\nkind = \"interactive\"\ntasks = 4\nrun = \"1ms\"\nsleep = \"2ms\"\n";

fn experiment(text: &str) -> Experiment {
    support::experiment("chart.toml", text)
}

fn run(experiment: &Experiment) -> Results {
    support::plan(experiment).run(&SIMULATED).unwrap()
}

fn svg(text: &str, axis: &str, metrics: &[&str], log: [bool; 2]) -> String {
    let experiment = experiment(text);
    experiment.chart(axis, metrics, log).unwrap().svg(&run(&experiment))
}

/// Where the first policy's points are.
fn points(svg: &str) -> Vec<(f64, f64)> {
    let line = svg.lines().find(|line| line.starts_with("<g class=\"c0\"><title>")).unwrap();
    let number = |text: &str, name: &str| -> f64 {
        let rest = text.split(&format!("{name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    line.split("<use ").skip(1).map(|point| (number(point, "x"), number(point, "y"))).collect()
}

fn refused(text: &str, axis: &str, metric: &str, log: [bool; 2]) -> String {
    experiment(text).chart(axis, &[metric], log).unwrap_err().to_plain()
}

#[test]
fn a_picture() {
    insta::assert_snapshot!(svg(
        BATCH,
        "workload.0.tasks",
        &["waiting_time_ns_mean"],
        [false, false]
    ));
}

#[test]
fn a_table() {
    let experiment = experiment(BATCH);
    let metrics = ["waiting_time_ns_mean", "makespan_ns"];
    let chart = experiment.chart("workload.0.tasks", &metrics, [false; 2]).unwrap();
    let expected = "\
Waiting & switching
How long do <n> tasks wait?

1 CPU; batch: service 10ms, tasks 1/2/5; costs: none; 2 seeds

waiting time, mean, ms
workload.0.tasks  fcfs  sjf *
1                    0      0
2                    5      5
5                   20     20

makespan, ms
workload.0.tasks  fcfs  sjf *
1                   10     10
2                   20     20
5                   50     50

* is told how long tasks will run, which no kernel knows.
± is half the 95 % confidence interval of the mean over seeds.
";
    assert_eq!(chart.text(&run(&experiment)), expected);
}

#[test]
fn points_are_where_the_values_are() {
    let axis = "workload.0.tasks";
    let linear = points(&svg(BATCH, axis, &["waiting_time_ns_mean"], [false, false]));
    let [a, b, c] = linear[..] else { panic!("{linear:?}") };
    // Of 1 to 5 is 2 a quarter, and so is 5 ms of 0 to 20.
    assert!((b.0 - (a.0 + (c.0 - a.0) / 4.0)).abs() < 0.2, "{linear:?}");
    assert!((b.1 - (a.1 + (c.1 - a.1) / 4.0)).abs() < 0.2, "{linear:?}");
    let both = points(&svg(BATCH, axis, &["makespan_ns"], [true, true]));
    let [a, b, c] = both[..] else { panic!("{both:?}") };
    // log 2 / log 5 on either axis.
    assert!((b.0 - (a.0 + (c.0 - a.0) * 0.43068)).abs() < 0.2, "{both:?}");
    assert!((b.1 - (a.1 + (c.1 - a.1) * 0.43068)).abs() < 0.2, "{both:?}");
}

#[test]
fn what_has_no_logarithm_is_left_out_and_said() {
    let drawn = svg(BATCH, "workload.0.tasks", &["waiting_time_ns_mean"], [false, true]);
    assert_eq!(points(&drawn).len(), 2);
    assert!(drawn.contains("left out: 2 means that are not above 0"), "{drawn}");
    let none = svg(BATCH, "workload.0.tasks", &["migrations"], [false, true]);
    assert!(none.contains("no value is above 0, as a logarithmic axis needs"), "{none}");
    let text =
        BATCH.replace("\"workload.0.tasks\" = [1, 2, 5]", "\"workload.0.at\" = [\"0\", \"1s\"]");
    let text = text.replace("kind = \"batch\"\n", "kind = \"batch\"\ntasks = 2\n");
    let why = refused(&text, "workload.0.at", "makespan_ns", [true, false]);
    assert_eq!(
        why,
        "command line for chart.toml:1:5: `workload.0.at` = 0 has no logarithm; leave out --log-x"
    );
}

/// Intervals far below 0 are cut off a tenth below the mean.
#[test]
fn wide_intervals_do_not_stretch_a_logarithmic_axis() {
    let text = BATCH.replace("service = \"10ms\"", "service = \"hyperexp(10ms, cv2=50)\"");
    let drawn = svg(&text, "workload.0.tasks", &["makespan_ns"], [false, true]);
    assert!(drawn.contains("confidence interval"));
    assert!(drawn.matches("class=\"grid\"").count() < 12, "{drawn}");
}

#[test]
fn a_line_is_broken_where_there_is_no_data() {
    let drawn = svg(GAP, "scenario", &["wakeup_latency_ns_mean"], [true, false]);
    let line = drawn.lines().find(|line| line.contains("<title>rr</title>")).unwrap();
    let path = line.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 0), "{path}");
    assert_eq!(points(&drawn).len(), 2);
    let experiment = experiment(GAP);
    let chart = experiment.chart("scenario", &["wakeup_latency_ns_mean"], [false; 2]).unwrap();
    let text = chart.text(&run(&experiment));
    let line = text.lines().find(|line| line.starts_with("2 hogs")).unwrap();
    assert!(line.ends_with(" -"), "{text}");
}

#[test]
fn nothing_measured_is_said() {
    let drawn = svg(BATCH, "workload.0.tasks", &["wakeup_latency_ns_mean"], [false, false]);
    assert!(drawn.contains("nothing was measured"), "{drawn}");
}

#[test]
fn one_value_is_a_point_in_the_middle() {
    let text = BATCH.replace("[1, 2, 5]", "[2]");
    let drawn = svg(&text, "workload.0.tasks", &["waiting_time_ns_mean"], [true, true]);
    let [(x, _)] = points(&drawn)[..] else { panic!("{drawn}") };
    assert_eq!(x, (16.0 + 52.0 + 744.0) / 2.0);
}

/// The other axes make panels, and those of a metric have one unit.
#[test]
fn a_panel_per_metric_and_combination_of_the_other_axes() {
    let text =
        BATCH.replace("seeds = 2", "\"machine.cpus\" = [1, 2]\n\"machine.smt\" = [1.0, 0.5]");
    let drawn =
        svg(&text, "workload.0.tasks", &["waiting_time_ns_mean", "makespan_ns"], [false; 2]);
    assert_eq!(drawn.matches("<g class=\"c0\"><title>fcfs</title>").count(), 8);
    for title in ["machine.cpus = 1, machine.smt = 1.0", "machine.cpus = 2, machine.smt = 0.5"] {
        assert!(drawn.contains(title), "{title}");
    }
    assert_eq!(drawn.matches(">makespan, ms<").count(), 4);
    assert!(!drawn.contains("confidence interval"), "there is one seed");
}

#[test]
fn wrong_axes_and_metrics_are_named_with_a_remedy() {
    let log = [false, false];
    assert_eq!(
        refused(BATCH, "workload.0.task", "makespan_ns", log),
        "command line for chart.toml:1:5: `workload.0.task` is no axis of this experiment; did you mean \
         `workload.0.tasks`?"
    );
    let why = refused(BATCH, "policy", "makespan_ns", log);
    assert!(why.contains("`policy` is no axis"), "{why}");
    let why = refused(&BATCH.replace("\"workload.0.tasks\" = [1, 2, 5]", ""), "x", "tasks", log);
    assert!(why.contains("varies nothing but policies"), "{why}");
    let why = refused(BATCH, "workload.0.tasks", "makespan", log);
    assert_eq!(
        why,
        "command line for chart.toml:1:5: no metric is called `makespan`; did you mean `makespan_ns`?"
    );
    let why = refused(GAP, "scenario", "waiting_time_ns", log);
    assert!(why.contains("`waiting_time_ns_p99`"), "{why}");
    let text =
        BATCH.replace("\"workload.0.tasks\" = [1, 2, 5]", "\"machine.tick\" = [\"none\", \"1ms\"]");
    let why = refused(&text, "machine.tick", "makespan_ns", [true, false]);
    assert!(why.contains("not all values of `machine.tick` are numbers"), "{why}");
}
