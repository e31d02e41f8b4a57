//! Lists of tasks; [`tasks_csv`](crate::tasks_csv) says what they are.

use super::{Imported, Importer, Input, ReadError, ReadTimes, first_line, open, text};
use crate::kinds::{FileName, keys};
use crate::tasks_csv::TaskList;
use anysched_core::Span;

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

    fn begins(start: &[u8]) -> bool {
        let text = text(start);
        let first = text.as_deref().and_then(first_line);
        first.is_some_and(|line| line.split(',').any(|name| name.trim() == "arrival_ns"))
    }

    fn import(&self, input: &mut dyn Input, name: &str) -> Result<Imported, ReadError> {
        let input = open(input).map_err(super::ImportError::from)?;
        TaskList::read(input, name).map(Imported::Tasks).map_err(ReadError::List)
    }
}

fn times(input: &mut dyn Input, name: &str) -> Result<(Vec<Span>, Vec<String>), ReadError> {
    let input = open(input).map_err(super::ImportError::from)?;
    let list = TaskList::read(input, name).map_err(ReadError::List)?;
    Ok((list.rows().iter().map(|row| row.service).collect(), Vec::new()))
}
