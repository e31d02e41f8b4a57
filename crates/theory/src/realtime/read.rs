//! Task sets as CSV.

use super::{MOST_TASKS, SetError, Task, TaskSet};
use anysched_core::Span;
use anysched_workload::tasks_csv::{clipped, describe, line_at, places};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::io::Read;

const COLUMNS: [&str; 4] = ["run", "period", "deadline", "jitter"];

/// Reads a task set; `file` is its name for errors.
///
/// The first line names the columns, in any order: `run` and `period`, and optionally `deadline`
/// (default: the period) and `jitter` (default: 0). An empty field takes the default. Times have
/// units: `1.5ms`. Lines that begin with `#` are comments.
///
/// Errors: an unknown, missing or repeated column, a field that is not a time, a line with too few
/// or too many fields, an invalid task (see [`TaskSet::new`]), no task, or unreadable input; with
/// the line.
pub fn read(mut input: impl Read, file: &str) -> Result<TaskSet, SetError> {
    let mut text = Vec::new();
    let unreadable = |error| SetError(format!("{file}: cannot be read: {error}"));
    input.read_to_end(&mut text).map_err(unreadable)?;
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let at = |line: u64, what: String| SetError(format!("{file}:{line}: {what}"));
    let refused = |error: csv::Error| match error.position() {
        None => SetError(format!("{file}: {error}")),
        position => at(line_at(text, position), describe(&error)),
    };
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(text);
    let header = reader.headers().map_err(refused)?.clone();
    if header.is_empty() {
        let what = "there is no task; the first line is run,period,deadline, and a line for each \
                    task follows, such as 2ms,10ms,8ms";
        return Err(SetError(format!("{file}: {what}")));
    }
    let names = header.iter().map(clipped).collect();
    let places =
        places(&names, COLUMNS, 2).map_err(|what| at(line_at(text, header.position()), what))?;
    let (mut tasks, mut record) = (Vec::new(), StringRecord::new());
    while reader.read_record(&mut record).map_err(refused)? {
        if tasks.len() == MOST_TASKS {
            let what = format!("more than {MOST_TASKS} tasks, which cannot be analysed");
            return Err(at(line_at(text, record.position()), what));
        }
        let task = task(&record, &places).and_then(|task| task.check().map(|()| task));
        tasks.push(task.map_err(|what| at(line_at(text, record.position()), what))?);
    }
    if tasks.is_empty() {
        let what = "there is no task below the names of the columns; add a line for each, such \
                    as 2ms,10ms";
        return Err(SetError(format!("{file}: {what}")));
    }
    TaskSet::new(tasks).map_err(|error| SetError(format!("{file}: {error}")))
}

fn task(record: &StringRecord, places: &[Option<usize>]) -> Result<Task, String> {
    let time = |column: usize| {
        let name = COLUMNS[column];
        let field = places[column].and_then(|place| record.get(place)).unwrap_or("");
        let shown = clipped(field);
        match Span::parse(field) {
            _ if field.is_empty() => Ok(None),
            Ok(Span::MAX) => Err(format!("{name} is {shown}; give a time, for example 10ms")),
            Ok(span) => Ok(Some(span)),
            Err(why) => Err(format!("{name} is \"{shown}\": {why}")),
        }
    };
    let needed = |column: usize| {
        let empty = || format!("{} is empty; give a time, for example 10ms", COLUMNS[column]);
        time(column)?.ok_or_else(empty)
    };
    let (run, period) = (needed(0)?, needed(1)?);
    let deadline = time(2)?.unwrap_or(period);
    Ok(Task { run, period, deadline, jitter: time(3)?.unwrap_or(Span::ZERO) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TaskSet, String> {
        super::read(text.as_bytes(), "f").map_err(|error| error.to_string())
    }

    #[test]
    fn columns_in_any_order_and_defaults() {
        let text =
            "\u{feff}period , run,jitter,deadline\n# slow\n\n1s, 1.5ms,,\n10ms,2ms,1us,8ms\n";
        let ms = Span::from_ms;
        let first = Task::new(Span::from_us(1500), Span::from_s(1));
        let second = Task { run: ms(2), period: ms(10), deadline: ms(8), jitter: Span::from_us(1) };
        assert_eq!(read(text).unwrap().tasks(), [first, second]);
        assert_eq!(read("run,period\n1ms,2ms").unwrap().tasks(), [Task::new(ms(1), ms(2))]);
    }

    #[test]
    fn wrong_files_say_where_and_what_to_do() {
        for (text, error) in [
            (
                "",
                "f: there is no task; the first line is run,period,deadline, and a line for each \
                 task follows, such as 2ms,10ms,8ms",
            ),
            (
                "run,period\n# none\n",
                "f: there is no task below the names of the columns; add a line for each, such as \
                 2ms,10ms",
            ),
            (
                "2ms,10ms\n",
                "f:1: unknown column \"2ms\"; the columns are run, period, deadline, jitter",
            ),
            (
                "run,peroid\n",
                "f:1: unknown column \"peroid\"; did you mean period? the columns are run, \
                 period, deadline, jitter",
            ),
            ("run,period,run\n", "f:1: column run is there twice"),
            (
                "# x\nrun,deadline\n",
                "f:2: column period is missing; the first line names the columns",
            ),
            ("run,period\n1ms\n", "f:2: 1 fields, but the first line names 2 columns"),
            (
                "run,period\n1ms,2ms\n\n5,2ms\n",
                "f:4: run is \"5\": a time needs a unit, for example \"3ms\"",
            ),
            ("run,period\n1ms,-2ms\n", "f:2: period is \"-2ms\": a time is not negative"),
            ("run,period\n1ms,\n", "f:2: period is empty; give a time, for example 10ms"),
            ("run,period\n1ms,none\n", "f:2: period is none; give a time, for example 10ms"),
            ("run,period\n1ms,0\n", "f:2: period is 0; it has to be above 0, for example 2ms"),
            ("run,period\n0,1ms\n", "f:2: run is 0; it has to be above 0, for example 2ms"),
            (
                "run,period,deadline\n1ms,2ms,0\n",
                "f:2: deadline is 0; it has to be above 0, for example 2ms",
            ),
            (
                "run,period,jitter\n1ms,2ms,4000000h\n",
                "f:2: jitter is 14400000000s; it can be at most 292 years",
            ),
            (
                "run,period\n3ms,2ms\n",
                "f:2: run is 3ms, but the period only 2ms: each job would need more than there is \
                 before the next; shorten run or lengthen the period",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
        let many = format!("run,period\n{}", "1ms,5s\n".repeat(1001));
        let error = "f:1002: more than 1000 tasks, which cannot be analysed";
        assert_eq!(read(&many).unwrap_err(), error);
        let error = format!(
            "f:1: unknown column \"{}\"; the columns are run, period, deadline, jitter",
            "x".repeat(40)
        );
        assert_eq!(read(&"x".repeat(41)).unwrap_err(), error);
        let error = super::super::read(&b"run,period\n\xff,2ms\n"[..], "f").unwrap_err();
        assert_eq!(error.to_string(), "f:2: field 1 is not UTF-8; save the file as UTF-8");
    }
}
