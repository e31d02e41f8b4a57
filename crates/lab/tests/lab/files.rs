//! The experiments that come with the project, and those of the documentation.

use anysched_lab::Experiment;
use std::path::{Path, PathBuf};

/// All experiment files in `directory` and below, in order.
fn experiments(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(experiments(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_experiment_can_be_run() {
    let files = experiments(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments").as_ref());
    assert!(!files.is_empty());
    for path in files {
        let checked = Experiment::load(&path).and_then(|experiment| experiment.check());
        checked.unwrap_or_else(|error| panic!("{}", error.to_plain()));
    }
}

/// Tables have a column for it, which only a phrase leaves readable: more belongs into `details`.
#[test]
fn what_explains_a_verdict_is_a_phrase() {
    let files = experiments(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments").as_ref());
    let mut told = 0;
    for path in files {
        for (id, why) in Experiment::load(&path).unwrap().explanations() {
            let length = why.chars().count();
            assert!(length <= 100, "{}: {id}: {length} characters: {why}", path.display());
            told += 1;
        }
    }
    assert!(told > 0);
}

#[test]
fn the_examples_of_the_documentation_are_right() {
    let text = include_str!("../../EXPERIMENTS.md");
    let mut examples = 0;
    for block in text.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let checked = Experiment::parse(block, Path::new("EXPERIMENTS.md")).and_then(|e| e.check());
        checked.unwrap_or_else(|error| panic!("{}", error.to_plain()));
        examples += 1;
    }
    assert_eq!(examples, 5);
}

/// Every key of every load is in the documentation, in the line of its kind.
#[test]
fn the_documentation_lists_the_loads() {
    let text = include_str!("../../EXPERIMENTS.md");
    let (_, rest) = text.split_once("The generated ones").unwrap();
    let common = rest.split("are distributions").next().unwrap();
    for kind in anysched_workload::KINDS {
        let line = text.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.name)));
        let line = line.unwrap_or_else(|| panic!("no line on {}", kind.name));
        for key in kind.keys() {
            let key = format!("`{}`", key.name);
            assert!(line.contains(&key) || common.contains(&key), "{}: {key}", kind.name);
        }
    }
}
