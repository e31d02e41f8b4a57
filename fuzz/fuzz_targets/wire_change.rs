//! Changes: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::change::Change;

fuzz_target!(|data: &[u8]| {
    if let Ok(change) = Change::read(data) {
        // An escaped text may be longer than what it was read from.
        if let Ok(text) = change.write() {
            assert_eq!(Change::read(text.as_bytes()), Ok(change));
        }
    }
});
