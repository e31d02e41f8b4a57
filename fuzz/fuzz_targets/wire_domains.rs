//! Virtual machines: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::domains::{Described, read, write};

fuzz_target!(|data: &[u8]| {
    let Ok(domains) = read(data) else { return };
    let described = domains.iter().map(|one| {
        let (start, script) = one.texts.split_at_checked(one.start)?;
        let (domain, start, script) = (one.domain.clone(), start.into(), script.into());
        Some(Described { domain, start, script })
    });
    if let Some(described) = described.collect::<Option<Vec<_>>>() {
        let text = write(&described).unwrap();
        assert_eq!(read(text.as_bytes()), Ok(domains));
    }
});
