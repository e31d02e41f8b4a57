//! Standard workload format.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_workload::import::swf::{self, Processors};

fuzz_target!(|data: &[u8]| {
    let _ = swf::read(data, Processors::default());
});
