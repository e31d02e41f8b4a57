//! Recordings from arbitrary text: read, replayed, and turned into a model that validates.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_workload::import::ftrace::{Recording, Softirqs};

fuzz_target!(|data: &[u8]| {
    if let Ok(recording) = Recording::read(data) {
        let model = recording.replay(Softirqs::ByEvidence).model;
        assert!(model.validate().is_ok());
    }
});
