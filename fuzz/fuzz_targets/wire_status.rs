//! Statuses: lines that are read and written again read the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::status::{FIRST, read};

fuzz_target!(|data: &[u8]| {
    if let Ok(lines) = read(data) {
        let text = lines.iter().fold(String::from(FIRST), |text, line| format!("{text}{line}\n"));
        assert_eq!(read(text.as_bytes()), Ok(lines));
    }
});
