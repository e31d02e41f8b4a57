//! Logs of several CPUs on one channel: what is received and sent again is received the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::log;

const CPUS: u8 = 4;

fuzz_target!(|data: &[u8]| {
    if let Ok(logs) = log::receive(data, usize::from(CPUS)) {
        let mut sent = Vec::new();
        for (cpu, log) in (0..CPUS).zip(&logs) {
            log::send(cpu, log, |bytes| sent.extend_from_slice(bytes));
        }
        assert_eq!(log::receive(&sent, usize::from(CPUS)), Ok(logs));
    }
});
