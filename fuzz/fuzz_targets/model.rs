//! Saved models: reading, writing and reading again gives the same model.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_workload::model::Model;

fuzz_target!(|data: &[u8]| {
    if let Ok(model) = Model::read(data) {
        let mut written = Vec::new();
        model.write(&mut written).unwrap();
        let again = Model::read(&written[..]).unwrap();
        let mut rewritten = Vec::new();
        again.write(&mut rewritten).unwrap();
        assert_eq!(written, rewritten);
    }
});
