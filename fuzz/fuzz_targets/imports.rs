//! Every importer of the list: the first byte says which. What it accepts has to be usable.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_workload::import::{IMPORTERS, Imported, ImporterInfo};
use anysched_workload::kinds::{Given, Table};
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    let Some((&which, file)) = data.split_first() else { return };
    let format = &IMPORTERS[usize::from(which) % IMPORTERS.len()];
    let _ = ImporterInfo::recognise(file);
    if let Ok(Imported::Model(model)) = (format.read)(&mut Cursor::new(file), "x", &Usage(format)) {
        let _ = model.validate();
    }
    if let Some(times) = format.times {
        let _ = times(&mut Cursor::new(file), "x");
    }
});

/// The options that a format cannot do without, with their examples.
struct Usage(&'static ImporterInfo);

impl Table for Usage {
    fn keys(&self) -> Vec<&str> {
        let words = self.0.usage.split_ascii_whitespace();
        ["file"].into_iter().chain(words.filter_map(|word| word.strip_prefix("--"))).collect()
    }

    fn get(&self, key: &str) -> Option<Given<'_>> {
        let is_given = self.keys().contains(&key);
        let option = self.0.options().find(|option| is_given && option.name == key)?;
        Some(option.takes.literal(option.example))
    }
}
