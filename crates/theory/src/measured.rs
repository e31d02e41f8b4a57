//! Run times from files.

use anysched_core::Span;
use anysched_workload::dist::Dist;
use anysched_workload::import::input::beginning;
use anysched_workload::import::{
    self, IMPORTERS, ImportError, ImporterInfo, Input, LOOK, ReadError, ReadTimes,
};
use anysched_workload::tasks_csv::{clipped, line_at};
use std::fmt;
use std::io::Read;

/// Measured run times: at least one, all above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    values: Vec<Span>,
}

impl Sample {
    /// Takes the times in any order; drops those of 0. `None` if nothing is left.
    pub fn new(mut values: Vec<Span>) -> Option<Sample> {
        values.retain(|&value| value > Span::ZERO);
        values.sort_unstable();
        (!values.is_empty()).then_some(Sample { values })
    }

    /// The times in ascending order.
    pub fn values(&self) -> &[Span] {
        &self.values
    }

    /// The distribution, called `name`, that draws each of the times with equal probability.
    pub fn dist(&self, name: &str) -> Dist {
        // There is at least one value.
        Dist::of_values(self.values.clone(), name).unwrap_or(Dist::constant(self.values[0]))
    }
}

/// File formats.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// One time per line, or a table with a column `service_ns`. A plain number is ns; units as
    /// everywhere: `1.5ms`. Lines that begin with `#` are comments.
    Column,
    /// A load whose importer also reads run times.
    Load(&'static ImporterInfo, ReadTimes),
}

/// The name of [`Format::Column`].
pub const COLUMN: &str = "csv";

impl Format {
    /// The formats of loads that have run times.
    fn loads() -> impl Iterator<Item = Format> {
        IMPORTERS.iter().filter_map(|format| Some(Format::Load(format, format.times?)))
    }

    /// The format called `name`; a column if there is none.
    pub fn of(name: &str) -> Format {
        let is_it = |format: &Format| {
            format.name() == name
                || matches!(format, Format::Load(load, _) if load.aliases.contains(&name))
        };
        Format::loads().find(is_it).unwrap_or(Format::Column)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Column => COLUMN,
            Format::Load(format, _) => format.name,
        }
    }

    /// The format of a text that begins with `start`.
    fn guess(start: &[u8]) -> Format {
        let begins = |format: &Format| match format {
            Format::Column => false,
            Format::Load(format, _) => (format.begins)(start),
        };
        Format::loads().find(begins).unwrap_or(Format::Column)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Run times read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The run times.
    pub sample: Sample,
    /// The format it was read as.
    pub format: Format,
    /// What was left out.
    pub notes: Vec<String>,
}

/// Why a file was rejected, with its name and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredError(String);

impl fmt::Display for MeasuredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MeasuredError {}

/// Reads run times, plain or packed. `file` is the name for errors; without a `format`,
/// the first lines determine it.
///
/// Errors: the file cannot be read, is not of that format, or has no time above 0.
pub fn read(
    mut input: impl Input,
    file: &str,
    format: Option<Format>,
) -> Result<Measured, MeasuredError> {
    let refused = |why: &dyn fmt::Display| MeasuredError(format!("{file}: {why}"));
    let unreadable = |error: std::io::Error| refused(&format!("cannot be read: {error}"));
    let start = beginning(&mut input, LOOK).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    let format = format.unwrap_or_else(|| Format::guess(&start));
    let (values, mut notes) = match format {
        Format::Column => {
            let mut whole = Vec::new();
            let mut text = import::open(input).map_err(unreadable)?;
            text.read_to_end(&mut whole).map_err(unreadable)?;
            let values = column(&whole).map_err(|(line, why)| match line {
                0 => refused(&why),
                line => MeasuredError(format!("{file}:{line}: {why}")),
            })?;
            (values, Vec::new())
        }
        Format::Load(_, times) => times(&mut input, file).map_err(|error| match error {
            ReadError::Input(ImportError { line, what, .. }) if line > 0 => {
                MeasuredError(format!("{file}:{line}: {what}"))
            }
            error => MeasuredError(error.of(file)),
        })?,
    };
    let all = values.len();
    let Some(sample) = Sample::new(values) else {
        return Err(refused(&match all {
            0 => "has no times; it needs at least two that differ".to_string(),
            all => format!("all {all} times are 0; measure with a finer clock"),
        }));
    };
    let zeros = all - sample.values.len();
    if zeros > 0 {
        notes.push(format!("{zeros} times of 0, shorter than the clock can tell, are left out"));
    }
    Ok(Measured { sample, format, notes })
}

/// The column that holds the times if there are several.
const SERVICE: &str = "service_ns";

/// The times in the only column, or in the one called [`SERVICE`]; errors come with the line.
fn column(text: &[u8]) -> Result<Vec<Span>, (u64, String)> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text);
    let (mut values, mut place, mut first) = (Vec::new(), 0, true);
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = line_at(text, error.position());
            let what = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("{len} fields, but the first line has {expected_len}")
                }
                csv::ErrorKind::Utf8 { .. } => {
                    "not UTF-8; save the file as UTF-8, or name its format with --as".to_string()
                }
                _ => error.to_string(),
            };
            (line, what)
        })?;
        let line = line_at(text, record.position());
        if std::mem::take(&mut first) {
            let named = record.iter().position(|name| name == SERVICE);
            if named.is_none() && record.len() > 1 {
                let names: Vec<&str> = record.iter().take(8).collect();
                let why = format!(
                    "no column is called {SERVICE} among {}; rename the one with the times, or \
                     keep only that one",
                    names.join(", ")
                );
                return Err((line, why));
            }
            place = named.unwrap_or(0);
            if named.is_some() || record[0].starts_with(char::is_alphabetic) {
                continue;
            }
        }
        let field = record.get(place).unwrap_or("");
        let value = match field.parse::<u64>() {
            Ok(ns) => Span(ns),
            Err(_) => Span::parse(field).map_err(|why| {
                let shown = clipped(field);
                let number = field.starts_with(|c: char| c.is_ascii_digit() || c == '.');
                let why = if number { format!(": {why}") } else { " such as \"3ms\"".to_string() };
                (line, format!("\"{shown}\" is not a time{why}; a plain number is whole ns"))
            })?,
        };
        if value == Span::MAX {
            return Err((
                line,
                "\"none\" is not a time that a task can run; leave it out".to_string(),
            ));
        }
        values.push(value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn times(text: &str) -> Result<Vec<u64>, String> {
        let measured =
            read(Cursor::new(text.as_bytes()), "f", None).map_err(|error| error.to_string())?;
        Ok(measured.sample.values().iter().map(|value| value.0).collect())
    }

    #[test]
    fn one_column_with_or_without_a_name() {
        assert_eq!(times("3\n1us\n\n# x\n2.5us\n"), Ok(vec![3, 1000, 2500]));
        assert_eq!(times("\u{feff}burst\n7\n"), Ok(vec![7]));
        assert_eq!(times("name,service_ns\na,7\nb,5ms\n"), Ok(vec![7, 5_000_000]));
    }

    #[test]
    fn the_contents_tell_the_format() {
        let format = |text: &str| read(Cursor::new(text.as_bytes()), "f", None).unwrap().format;
        assert_eq!(format("5\n6\n"), Format::Column);
        assert_eq!(format("# a list\narrival_ns,service_ns\n1,5\n"), Format::of("tasks"));
        let job = "1 0 5 30 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n";
        assert_eq!(format(job), Format::of("swf"));
        assert_eq!(format(&format!("; Version: 2\n{job}")), Format::of("swf"));
        assert_eq!(times(job), Ok(vec![30_000_000_000]));
    }

    #[test]
    fn zeros_are_left_out_and_counted() {
        let measured = read(Cursor::new(&b"0\n5\n0\n"[..]), "f", None).unwrap();
        assert_eq!(measured.sample.values(), [Span(5)]);
        let note = "2 times of 0, shorter than the clock can tell, are left out";
        assert_eq!(measured.notes, [note]);
    }

    /// Task 1 runs 2 ms, is preempted, runs 1 ms more and blocks: one burst of 3 ms. Task 2 runs 4
    /// ms and blocks. The burst that task 1 then begins is cut.
    #[test]
    fn bursts_of_a_recording() {
        let switch = |ms: u32, prev: u32, state: &str, next: u32| {
            let name = |pid: u32| if pid == 0 { "swapper/0".into() } else { format!("t{pid}") };
            format!(
                "{}-{prev} [000] d..2. 1.{ms:03}000: sched_switch: prev_comm={} prev_pid={prev} \
                 prev_prio=120 prev_state={state} ==> next_comm={} next_pid={next} \
                 next_prio=120\n",
                name(prev),
                name(prev),
                name(next)
            )
        };
        let text = [
            switch(0, 0, "R", 1),
            switch(2, 1, "R", 2),
            switch(6, 2, "S", 1),
            switch(7, 1, "S", 0),
            switch(9, 0, "R", 1),
            switch(10, 1, "R", 0),
        ]
        .concat();
        let measured = read(Cursor::new(text.as_bytes()), "f", None).unwrap();
        assert_eq!(measured.format, Format::of("ftrace"));
        assert_eq!(measured.sample.values(), [Span::from_ms(3), Span::from_ms(4)]);
        let cut = "1 bursts are cut by the end of the recording and left out";
        assert!(measured.notes.iter().any(|note| note == cut), "{:?}", measured.notes);
    }

    #[test]
    fn wrong_files_say_where_and_what_to_do() {
        for (text, error) in [
            ("", "f: has no times; it needs at least two that differ"),
            ("service_ns\n", "f: has no times; it needs at least two that differ"),
            ("0\n0\n", "f: all 2 times are 0; measure with a finer clock"),
            (
                "1\n\n1.5\n",
                "f:3: \"1.5\" is not a time: a time needs a unit, for example \"3ms\"; a plain \
                 number is whole ns",
            ),
            (
                "a,b\n1,2\n",
                "f:1: no column is called service_ns among a, b; rename the one with the times, \
                 or keep only that one",
            ),
            ("service_ns,b\n1,2\n3\n", "f:3: 1 fields, but the first line has 2"),
            ("5\nnone\n", "f:2: \"none\" is not a time that a task can run; leave it out"),
        ] {
            assert_eq!(times(text), Err(error.to_string()), "{text}");
        }
        assert_eq!(
            read(Cursor::new(&b"-3\n"[..]), "f", None).unwrap_err().to_string(),
            "f:1: \"-3\" is not a time such as \"3ms\"; a plain number is whole ns"
        );
        let error = read(Cursor::new(&b"hello\n"[..]), "f", Some(Format::of("ftrace")))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("f: there is no sched_switch event; "), "{error}");
        let error = read(Cursor::new(&b"1 2 3\n"[..]), "f", Some(Format::of("swf")))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "f:1: 3 fields of 18, of which it needs 5: 1 2 3");
    }
}
