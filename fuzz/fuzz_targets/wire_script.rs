//! Scripts: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::script::{Script, burst};

fuzz_target!(|data: &[u8]| {
    if let Ok(script) = Script::read(data) {
        for task in &script.tasks {
            let _ = burst(&task.steps, 0);
        }
        let text = script.write().unwrap();
        assert_eq!(Script::read(text.as_bytes()), Ok(script));
    }
});
