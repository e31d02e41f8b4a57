//! Experiment files, planned but not run.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_lab::Experiment;

fuzz_target!(|text: &str| {
    // The folder does not exist, so no file can be named, and nothing is run.
    if let Ok(experiment) = Experiment::parse(text, "/nonexistent/fuzz.toml".as_ref()) {
        let _ = experiment.plan();
    }
});
