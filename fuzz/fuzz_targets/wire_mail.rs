//! Messages from outside: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::mail::{read, read_envelopes, write};

fuzz_target!(|data: &[u8]| {
    let Ok(messages) = read(data) else { return };
    let text = write(&messages).unwrap();
    assert_eq!(read(text.as_bytes()).as_ref(), Ok(&messages));
    let mut envelopes = 0;
    read_envelopes(text.as_bytes(), &mut |_| envelopes += 1).unwrap();
    assert_eq!(envelopes, messages.len());
});
