//! Virtual machines: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::domains::{Described, read, write};

fuzz_target!(|data: &[u8]| {
    let Ok(domains) = read(data) else { return };
    let described = domains.iter().map(|one| {
        let (start, rest) = one.texts.split_at_checked(one.start)?;
        let (script, mail) = rest.split_at_checked(one.script)?;
        assert_eq!(mail, one.mail());
        let (domain, start) = (one.domain.clone(), start.into());
        Some(Described { domain, start, script: script.into(), mail: mail.into() })
    });
    if let Some(described) = described.collect::<Option<Vec<_>>>() {
        let text = write(&described).unwrap();
        assert_eq!(read(text.as_bytes()), Ok(domains));
    }
});
