//! rt-app files.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(model) = anysched_workload::import::rtapp::read(data) {
        let _ = model.validate();
    }
});
