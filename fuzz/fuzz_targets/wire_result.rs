//! Lines of a kernel's console: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::result::Message;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        if let Ok(Some(message)) = Message::read(line) {
            assert_eq!(Message::read(&message.to_string()), Ok(Some(message)));
        }
    }
});
