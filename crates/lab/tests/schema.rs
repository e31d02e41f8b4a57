//! The schema of experiments, under a validator of others.

use jsonschema::Validator;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn validator() -> Validator {
    jsonschema::validator_for(&anysched_lab::schema()).unwrap()
}

fn as_json(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap();
    serde_json::to_value(table).unwrap()
}

fn wrong(validator: &Validator, text: &str) -> Vec<String> {
    let value = as_json(text);
    let all = validator.iter_errors(&value);
    all.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn experiments(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            experiments(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_experiment_of_the_project_is_one() {
    let validator = validator();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    experiments(&root.join("experiments"), &mut files);
    experiments(&root.join("docs/policies"), &mut files);
    let mut seen = 0;
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        // Others are costs, or lists of what a paper says.
        if !text.lines().any(|line| line.starts_with("question = ")) {
            continue;
        }
        seen += 1;
        let wrong = wrong(&validator, &text);
        assert!(wrong.is_empty(), "{}: {wrong:#?}", path.display());
    }
    assert!(seen > 80, "{seen}");
}

#[test]
fn mistakes_are_found() {
    let validator = validator();
    let good = "question = \"?\"\npolicy = \"rr\"\n[machine]\ncpus = 2\n[[workload]]\n\
                kind = \"batch\"\ntasks = 5\nservice = \"exp(1ms)\"\n";
    assert_eq!(wrong(&validator, good), [""; 0]);
    for (old, new) in [
        ("question = \"?\"\n", ""),
        ("question = \"?\"", "qestion = \"?\""),
        ("question = \"?\"", "question = 5"),
        ("policy = \"rr\"", "policy = \"round robin\""),
        ("policy = \"rr\"", "policy = { name = \"rr\", quantun = \"1ms\" }"),
        ("policy = \"rr\"", "policy = { quantum = \"1ms\" }"),
        ("cpus = 2", "cpus = 0"),
        ("cpus = 2", "cpus = \"two\""),
        ("cpus = 2", "cpus = 2\ntick = \"4 parsecs\""),
        ("cpus = 2", "cpus = 2\nticks = \"4ms\""),
        ("cpus = 2", "cpus = 2\nmigration = { cores = \"1us\" }"),
        ("kind = \"batch\"", "kind = \"bach\""),
        ("tasks = 5", "task = 5"),
        ("tasks = 5", "tasks = \"5\""),
        ("question", "seed = -1\nquestion"),
        ("question", "duration = \"long\"\nquestion"),
        ("question", "report = { columns = [\"waiting\"] }\nquestion"),
        ("question", "report = { by = \"cpu\" }\nquestion"),
        ("question", "claim = [{ id = \"1\" }]\nquestion"),
        ("question", "claim = [{ id = \"1\", text = \"?\", verdict = \"true\" }]\nquestion"),
        ("question", "sweep = { seeds = 0 }\nquestion"),
        ("question", "sweep = { \"machine.cpus\" = 3 }\nquestion"),
    ] {
        let text = good.replacen(old, new, 1);
        assert_ne!(text, good);
        assert!(!wrong(&validator, &text).is_empty(), "{new}");
    }
}
