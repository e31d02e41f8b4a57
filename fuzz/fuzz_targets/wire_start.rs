//! Start texts: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::start::Start;

fuzz_target!(|data: &[u8]| {
    if let Ok(start) = Start::read_part(data) {
        let text = start.write().unwrap();
        assert_eq!(Start::read_part(text.as_bytes()), Ok(start.clone()));
        assert_eq!(Start::read(data).is_ok(), !start.cpus.is_empty());
    }
});
