//! Recorded logs: read, shown, replayed.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_core::recorder::{LogReader, replay};
use anysched_policies::policy;

fuzz_target!(|data: &[u8]| {
    let Ok(reader) = LogReader::new(data) else { return };
    let settings = reader.header().settings.clone();
    let built = policy(reader.header().policy)
        .map(|known| (known.build)(&reader.header().machine, &settings));
    for record in reader {
        let Ok(record) = record else { break };
        let _ = record.to_string();
    }
    if let Some(Ok(mut scheduler)) = built {
        let _ = replay(data, &mut *scheduler);
    }
});
