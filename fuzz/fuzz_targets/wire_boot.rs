//! Boot texts: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::boot::Boot;

fuzz_target!(|data: &[u8]| {
    if let Ok(boot) = Boot::read(data) {
        let text = boot.write().unwrap();
        assert_eq!(Boot::read(text.as_bytes()), Ok(boot));
    }
});
