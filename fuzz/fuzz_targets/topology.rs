//! Descriptions of machines in XML and JSON: what is printed reads back as the same machine.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_topology as topology;

fuzz_target!(|data: &[u8]| {
    for name in ["fuzz.xml", "fuzz.json"] {
        let Ok(found) = topology::parse(name, data) else { continue };
        assert_eq!(found.numbers.len(), found.machine.cpus());
        assert!(found.numbers.is_sorted_by(|a, b| a < b));
        let text = format!("{{\"cpus\":{}}}", topology::cpus_in_json(&found));
        let again = topology::parse("again.json", text.as_bytes()).unwrap();
        assert_eq!((again.machine, again.numbers), (found.machine, found.numbers));
        assert!(again.warnings.is_empty());
    }
});
