//! Lists of tasks.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = anysched_workload::tasks_csv::TaskList::read(data, "fuzz.csv");
});
