//! The search over values of parameters for an experiment.

use crate::support::{self, SIMULATED};
use anysched_lab::output::{grid_json, grid_markdown, grid_table};
use anysched_lab::tune::{GridKind, GridRequest, GridRow, GridTuned};
use anysched_lab::{Experiment, Progress, RunOptions, column};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// `mixed`: ten tasks of 2 ms behind one of 100 ms, and each switch costs 1 ms. With a quantum of
/// 2 ms each of the ten is done in its first turn; a shorter one means more turns and switches, a
/// longer one that they wait for the long task. `alike`: any quantum of 10 ms or more is in order
/// of arrival, and none is better for tasks that are all of 10 ms.
const PLANTED: &str = "question = \"?\"\n[machine]\ncpus = 1\ncontext_switch = \"1ms\"\n\
    [[scenario]]\nname = \"mixed\"\n\
    [[scenario.workload]]\nkind = \"batch\"\ntasks = 1\nservice = \"100ms\"\n\
    [[scenario.workload]]\nkind = \"batch\"\ntasks = 10\nservice = \"2ms\"\n\
    [[scenario]]\nname = \"alike\"\n\
    [[scenario.workload]]\nkind = \"batch\"\ntasks = 10\nservice = \"10ms\"\n\
    [sweep]\npolicy = [\"fcfs\", { name = \"rr\", quantum = \"3ms\" }]\nseeds = 8\n";

/// Random, so that seeds count.
const RANDOM: &str = "question = \"?\"\n[machine]\ncpus = 2\ncontext_switch = \"20us\"\n\
    [[workload]]\nkind = \"open\"\nservice = \"hyperexp(5ms, cv2=8)\"\ntasks = 100\nload = 0.8\n\
    [sweep]\npolicy = [\"rr\", \"srpt\"]\nseeds = 8\n";

fn quantum<'a>(values: &'a [&'a str]) -> [(&'a str, &'a [&'a str]); 1] {
    [("quantum", values)]
}

fn experiment(text: &str) -> Experiment {
    support::experiment("grid.toml", text)
}

fn request(metric: &str, over: &[(&str, &[&str])]) -> GridRequest {
    let owned = |values: &[&str]| values.iter().map(|value| value.to_string()).collect();
    GridRequest {
        policy: "rr".to_string(),
        metric: metric.to_string(),
        over: over.iter().map(|(name, values)| (name.to_string(), owned(values))).collect(),
        larger: false,
    }
}

fn tuned(text: &str, request: &GridRequest) -> GridTuned {
    let grid = experiment(text).grid(request).unwrap_or_else(|e| panic!("{}", e.to_plain()));
    grid.run(&SIMULATED).unwrap()
}

fn refused(text: &str, request: &GridRequest) -> String {
    experiment(text).grid(request).unwrap_err().to_plain()
}

fn best(row: &GridRow) -> &str {
    &row.lines[0].settings[0].1
}

const QUANTA: &[&str] = &["100ms", "1ms", "2ms", "20ms"];

#[test]
fn the_planted_best_is_found_for_each_row_and_ties_keep_the_first() {
    let mut request = request("turnaround_ns_mean", &quantum(QUANTA));
    let found = tuned(PLANTED, &request);
    let [mixed, alike] = found.rows.as_slice() else { panic!("{found:?}") };
    assert_eq!((best(mixed), mixed.group.title().as_str()), ("2ms", "scenario = mixed"));
    assert_eq!(best(alike), "100ms");
    // Four with 2 seeds, three with 4, and these with 8.
    assert_eq!([mixed.search_runs, alike.search_runs], [8 + 6 + 12; 2]);
    let kinds: Vec<GridKind> = alike.lines.iter().map(|line| line.kind).collect();
    use GridKind::{Defaults, File, Found, Other};
    assert_eq!(kinds, [Found, Found, Found, File, Defaults, Other]);
    let labels: Vec<&str> = alike.lines.iter().map(|line| line.label.as_str()).collect();
    assert_eq!(labels[..2], ["rr: quantum = 100ms", "rr: quantum = 20ms"]);
    assert_eq!(labels[3..], ["rr", "rr: defaults", "fcfs"]);
    // Task k of 10 ends after k times 10 ms and as many switches.
    let mean = |line: usize| alike.lines[line].estimate().unwrap().mean;
    assert_eq!(mean(0), 5.5 * 11e6);
    assert_eq!((mean(4), mean(5)), (mean(0), mean(0)), "50 ms are the default");
    let difference = alike.lines[3].against(&alike.lines[0]).unwrap();
    assert_eq!((difference.mean, difference.ci95), (mean(3) - mean(0), Some(0.0)));
    assert!(difference.mean > 0.0, "3 ms are too short for tasks of 10 ms");
    request.larger = true;
    let worst = tuned(PLANTED, &request);
    assert_eq!([best(&worst.rows[0]), best(&worst.rows[1])], ["100ms", "1ms"]);
}

/// The numbers are those of plain runs of the same policy with the same numbers of seeds.
#[test]
fn fresh_seeds_are_those_behind_the_ones_of_the_search() {
    let quanta = ["200ms", "1ms", "500us", "20ms"];
    let found = tuned(RANDOM, &request("slowdown_mean", &quantum(&quanta)));
    let best = &found.rows[0].lines[0];
    let quantum = &best.settings[0].1;
    let plan = experiment(RANDOM).with_setting("quantum", quantum).unwrap().with_seeds(16);
    let results = plan.plan().unwrap().run(&SIMULATED).unwrap();
    let index = column("slowdown_mean").unwrap();
    let values = results.row(0, 0).unwrap().values(index);
    let mean = values[8..].iter().sum::<f64>() / 8.0;
    assert!((best.estimate().unwrap().mean - mean).abs() < 1e-9 * mean);
    assert_eq!(best.estimate().unwrap().n, 8);
    let other = found.rows[0].lines.iter().find(|line| line.label == "srpt").unwrap();
    assert!(other.nature.clairvoyant && !best.nature.clairvoyant);
    let difference = other.against(best).unwrap();
    assert!(difference.mean < 0.0, "nothing beats full knowledge: {difference:?}");
    let unpaired = other.estimate().unwrap().mean - best.estimate().unwrap().mean;
    assert!((difference.mean - unpaired).abs() < 1e-9 * mean);
}

#[test]
fn neither_jobs_nor_other_rows_change_numbers() {
    let request =
        request("slowdown_mean", &[("quantum", &["1ms", "5ms"]), ("tick", &["0", "1ms"])]);
    let printed = |text: &str, jobs| {
        experiment(text).grid(&request).unwrap().run(&RunOptions { jobs, ..SIMULATED }).unwrap()
    };
    let one = printed(RANDOM, 1);
    assert_eq!(grid_json(&one), grid_json(&printed(RANDOM, 2)));
    let swept =
        |loads: &str| RANDOM.replace("seeds", &format!("\"workload.0.load\" = {loads}\nseeds"));
    let (alone, both) = (printed(&swept("[0.5]"), 2), printed(&swept("[0.8, 0.5]"), 2));
    for (a, b) in alone.rows[0].lines.iter().zip(&both.rows[1].lines) {
        assert_eq!((&a.label, a.estimate()), (&b.label, b.estimate()));
    }
}

/// What a scenario changes of the policy holds but for what is searched.
#[test]
fn what_is_searched_wins_over_scenarios() {
    let text = PLANTED.replace(
        "name = \"alike\"\n",
        "name = \"alike\"\npolicy = { rr = { quantum = \"1ms\" } }\n",
    );
    let request = request("turnaround_ns_mean", &quantum(&["100ms"]));
    let (plain, changed) = (tuned(PLANTED, &request), tuned(&text, &request));
    let mean = |found: &GridTuned, line: usize| found.rows[1].lines[line].estimate().unwrap().mean;
    assert_eq!(mean(&plain, 0), mean(&changed, 0));
    assert_eq!(mean(&plain, 2), mean(&changed, 2), "defaults");
    assert!(mean(&plain, 1) < mean(&changed, 1), "the policy as the file has it");
}

/// Machines have rows of their own, which share their runs.
#[test]
fn virtual_machines_are_searched_each() {
    let text = "question = \"?\"\n[machine]\ncpus = 1\n\
        [[vm]]\nname = \"short\"\npolicy = \"fcfs\"\n[[vm.workload]]\nkind = \"batch\"\ntasks = 1\n\
        service = \"2ms\"\n\
        [[vm]]\nname = \"long\"\npolicy = \"fcfs\"\n[[vm.workload]]\nkind = \"batch\"\ntasks = 1\n\
        service = \"9ms\"\n[sweep]\npolicy = \"rr\"\n[report]\nvms = [\"short\", \"long\"]\n";
    let found = tuned(text, &request("turnaround_ns_mean", &quantum(&["20ms", "1ms"])));
    let titles: Vec<String> = found.rows.iter().map(|row| row.group.title()).collect();
    assert_eq!(titles, ["vm = short", "vm = long"]);
    assert_eq!([found.rows[0].search_runs, found.rows[1].search_runs], [2, 0]);
}

#[test]
fn the_forms_say_the_same() {
    let found = tuned(PLANTED, &request("turnaround_ns_mean", &quantum(QUANTA)));
    insta::assert_snapshot!(grid_table(&found));
    let json: serde_json::Value = serde_json::from_str(&grid_json(&found)).unwrap();
    let line = &json["rows"][1]["lines"][3];
    assert_eq!((&line["kind"], &line["label"]), (&"file".into(), &"rr".into()));
    let [own, best] = [3, 0].map(|at| json["rows"][1]["lines"][at]["mean"].as_f64().unwrap());
    assert_eq!(line["over_best"]["mean"].as_f64(), Some(own - best));
    assert_eq!(json["rows"][1]["lines"][0]["over_best"], serde_json::Value::Null);
    assert_eq!(json["over"]["quantum"][2], "2ms");
    let page = grid_markdown(&found);
    assert_eq!(page.lines().filter(|line| line.starts_with('|')).count(), 2 * (2 + 6), "{page}");
}

#[test]
fn progress_ends_at_its_total_and_a_cancellation_leaves_whole_rows() {
    let grid = experiment(PLANTED).grid(&request("makespan_ns", &quantum(QUANTA))).unwrap();
    let (seen, cancel) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let note = |progress: &Progress<'_>| {
        let mut seen = seen.lock().unwrap();
        seen.push((progress.done, progress.total));
    };
    grid.run(&RunOptions { cancel: &cancel, progress: &note, ..SIMULATED }).unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted());
    let (done, total) = seen[seen.len() - 1];
    assert_eq!((done, total), (2 * (26 + 6 * 8), total));
    assert_eq!(done, total);
    let stop =
        |progress: &Progress<'_>| cancel.store(progress.done > total / 2 + 3, Ordering::Relaxed);
    let found = grid.run(&RunOptions { cancel: &cancel, progress: &stop, ..SIMULATED }).unwrap();
    assert!(!found.complete);
    assert_eq!(found.rows.len(), 1);
    assert!(found.rows[0].lines.iter().all(|line| line.estimate().unwrap().n == 8));
}

#[test]
fn wrong_requests_are_named_with_place_and_remedy() {
    let why = refused(RANDOM, &request("slowdown", &quantum(&["1ms"])));
    assert!(
        why.starts_with("command line for grid.toml:1:10: no metric is called `slowdown`; of this"),
        "{why}"
    );
    let why = refused(RANDOM, &request("slowdown_mean", &[("quantu", &["1ms"])]));
    assert!(
        why.ends_with("no policy here has `rr.quantu`; did you mean `quantum`?")
            && why.starts_with("command line for grid.toml:1:1: "),
        "{why}"
    );
    let why = refused(RANDOM, &request("slowdown_mean", &quantum(&["1ms", "soon"])));
    assert!(why.contains("`quantum` of policy `rr` = \"soon\": "), "{why}");
    let why = refused(RANDOM, &request("slowdown_mean", &quantum(&["1ms", "0"])));
    assert!(why.ends_with("`quantum` of policy `rr`: must be above 0"), "{why}");
    let why = refused(RANDOM, &request("slowdown_mean", &quantum(&["1ms", "1ms"])));
    assert!(why.contains("`quantum` has the value 1ms twice; give each"), "{why}");
    let twice = [("quantum", &["1ms"] as &[&str]), ("quantum", &["2ms"])];
    let why = refused(RANDOM, &request("slowdown_mean", &twice));
    assert!(why.contains("`quantum` is searched twice; give each"), "{why}");
    let mut other = request("slowdown_mean", &quantum(&["1ms"]));
    other.policy = "rrr".to_string();
    let why = refused(RANDOM, &other);
    assert!(why.contains("no policy is called \"rrr\"; did you mean `rr`?"), "{why}");
    let many: Vec<String> = (1..=400).map(|ms| format!("{ms}ms")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let over = [("quantum", many.as_slice()), ("tick", many.as_slice())];
    let why = refused(RANDOM, &request("slowdown_mean", &over));
    assert!(why.contains("400 x 400 values are too many to try; "), "{why}");
}
