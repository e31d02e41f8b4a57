//! Answers as the page gets them, without a page.

use anysched_lab::{Experiment, RunOptions, output};
use anysched_playground::Session;
use anysched_sim::Simulator;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

const NAME: &str = "classroom/e1-round-robin";

fn ask(session: &mut Session, request: &Value) -> Value {
    let answer = session.answer(&request.to_string(), &|_, _| {});
    serde_json::from_str(&answer.json).unwrap()
}

fn built(session: &mut Session) -> Value {
    ask(session, &json!({ "op": "built", "name": NAME }))
}

#[test]
fn a_run_gives_what_the_library_gives() {
    let experiment = Experiment::load(Path::new(NAME)).unwrap();
    let cancel = AtomicBool::new(false);
    let options =
        RunOptions { host: &Simulator, jobs: 1, cancel: &cancel, journal: None, progress: &|_| {} };
    let results = experiment.plan().unwrap().run(&options).unwrap();
    let mut session = Session::default();
    let experiment = built(&mut session);
    let told = Mutex::new(Vec::new());
    let request = json!({ "op": "run", "experiment": experiment });
    let answer =
        session.answer(&request.to_string(), &|done, all| told.lock().unwrap().push((done, all)));
    let answer: Value = serde_json::from_str(&answer.json).unwrap();
    assert_eq!(answer["results"], output::json(&results));
    assert_eq!(answer["table"], output::table(&results));
    assert_eq!(told.into_inner().unwrap().last(), Some(&(3.0, 3.0)));
    let request = json!({ "op": "report", "file": "f", "command": "c", "changes": "",
        "events": 1000 });
    let report = session.answer(&request.to_string(), &|_, _| {});
    assert_eq!(report.blocks.len(), 6, "two for each policy");
}

#[test]
fn policies_and_settings_are_changed_as_by_the_command() {
    let mut session = Session::default();
    let mut experiment = built(&mut session);
    experiment["policies"] = json!(["rr", "edf"]);
    experiment["settings"] = json!([["machine.cpus", "2"]]);
    experiment["seeds"] = json!(4);
    let answer = ask(&mut session, &json!({ "op": "read", "experiment": experiment }));
    assert_eq!(answer["runs"], 8);
    // What there is to choose from is what the text has.
    let labels: Vec<&str> =
        answer["policies"].as_array().unwrap().iter().flat_map(|it| it["label"].as_str()).collect();
    assert_eq!(labels, ["fcfs", "rr", "sjf"]);
    assert!(answer["machine"].as_str().unwrap().starts_with("2 CPUs"));
}

#[test]
fn refusals_say_where_and_what_would_be_right() {
    let mut session = Session::default();
    let mut experiment = built(&mut session);
    let text = experiment["toml"].as_str().unwrap().replace("24ms", "24 parsecs");
    experiment["toml"] = json!(text);
    let error = &ask(&mut session, &json!({ "op": "run", "experiment": experiment }))["error"];
    let line = 1 + text.lines().position(|line| line.contains("parsecs")).unwrap();
    assert_eq!(error["line"], line);
    assert!(error["text"].as_str().unwrap().contains("parsecs"), "{error}");
    let nothing = ask(
        &mut session,
        &json!({ "op": "gantt", "group": 0, "from": null,
        "until": null }),
    );
    assert_eq!(nothing["error"]["text"], "nothing has been run");
    let unknown = ask(&mut session, &json!({ "op": "built", "name": "none" }));
    assert_eq!(unknown["error"]["text"], "no experiment is called \"none\"");
}

#[test]
fn a_list_of_tasks_becomes_an_experiment_with_its_file() {
    let mut session = Session::default();
    let bytes = STANDARD.encode("arrival_ns,service_ns\n0,3000000\n1000000,2000000\n");
    let request = json!({ "op": "import", "name": "list.csv", "bytes": bytes });
    let answer = ask(&mut session, &request);
    assert_eq!((&answer["tasks"], &answer["format"]), (&json!(2), &json!("tasks")), "{answer}");
    let experiment =
        json!({ "path": "list.toml", "toml": answer["toml"], "files": { "list.csv": bytes } });
    let run = ask(&mut session, &json!({ "op": "run", "experiment": experiment }));
    assert_eq!(run["error"], Value::Null, "{run}");
    assert!(run["table"].as_str().unwrap().contains("eevdf"));
}

#[test]
fn what_there_is_to_choose_from_is_listed() {
    let about = ask(&mut Session::default(), &json!({ "op": "about" }));
    let names = |list: &str| {
        let list = about[list].as_array().unwrap();
        list.iter().map(|it| it["name"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert!(names("policies").contains(&"eevdf".to_string()));
    assert!(names("experiments").contains(&NAME.to_string()));
    // A file is no form.
    let kinds = names("kinds");
    assert!(kinds.contains(&"open".to_string()) && !kinds.contains(&"trace".to_string()));
}
