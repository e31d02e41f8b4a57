//! Lists of tasks; [`tasks_csv`](crate::tasks_csv) says what they are.

use super::{Imported, Importer, ReadError, ReadTimes, first_line};
use crate::kinds::{FileName, keys};
use crate::tasks_csv::TaskList;
use anysched_core::Span;
use std::io::Read;

keys! {
    /// The keys of a load that is a list of tasks.
    pub struct Tasks {
        /// The list: CSV with `arrival_ns`, `service_ns` and perhaps `name`, `nice`, `affinity`,
        /// `deadline_ns`.
        file: FileName = needed, eg "tasks.csv";
    }
}

impl Importer for Tasks {
    const FORMAT: &'static str = "tasks";
    const ENDINGS: &'static [&'static str] = &[".csv"];
    const TIMES: Option<ReadTimes> = Some(times);

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(text: &str) -> bool {
        let first = first_line(text);
        let has = |name| first.is_some_and(|line| line.split(',').any(|f| f.trim() == name));
        has("arrival_ns") && has("service_ns")
    }

    fn import(&self, input: &mut dyn Read, name: &str) -> Result<Imported, ReadError> {
        TaskList::read(input, name).map(Imported::Tasks).map_err(ReadError::List)
    }
}

fn times(input: &mut dyn Read, name: &str) -> Result<(Vec<Span>, Vec<String>), ReadError> {
    let list = TaskList::read(input, name).map_err(ReadError::List)?;
    Ok((list.rows().iter().map(|row| row.service).collect(), Vec::new()))
}
