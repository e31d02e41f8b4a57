//! Task lists as CSV: tasks that arrive at given times, run once and exit.
//!
//! ```csv
//! arrival_ns,service_ns,name,nice,affinity,deadline_ns
//! 0,5000000,compile,,,
//! 1000000,250000,reply,-5,"0-3,8",3000000
//! ```
//!
//! The first line names the columns, in any order. `arrival_ns` and `service_ns` are required.
//! `affinity` is in the kernel's list form or `all`; `deadline_ns` is absolute, like `arrival_ns`.
//! An empty field means the default. Lines that begin with `#` are comments.

use crate::model::{Model, ModelTask, Script};
use crate::model_load::ModelError;
use crate::nearest::nearest;
use crate::per_task::OneRun;
use crate::{Load, NewTask, Op, Outside};
use anysched_core::{CpuSet, DomainId, Span, TaskId, Time};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

const COLUMNS: [&str; 6] = ["arrival_ns", "service_ns", "name", "nice", "affinity", "deadline_ns"];

/// One task of a [`TaskList`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// When it arrives.
    pub arrival: Time,
    /// CPU time it uses; may be 0.
    pub service: Span,
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// Its nice value, −20 ..= 19.
    pub nice: i8,
    /// The CPUs it may run on.
    pub affinity: CpuSet,
    /// When it must be done; not before it arrives.
    pub deadline: Option<Time>,
}

/// Tasks in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskList {
    rows: Vec<Row>,
}

/// Why a task list was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvError {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 if it is about no particular line.
    pub line: u64,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for CsvError {}

impl TaskList {
    /// The tasks by arrival; those that arrive together keep their order.
    pub fn new(mut rows: Vec<Row>) -> TaskList {
        rows.sort_by_key(|row| row.arrival);
        TaskList { rows }
    }

    /// The name of each task.
    pub(crate) fn names(&mut self) -> impl Iterator<Item = &mut Option<Arc<str>>> {
        self.rows.iter_mut().map(|row| &mut row.name)
    }

    /// The tasks by arrival.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Reads a task list; `file` is its name for errors.
    ///
    /// Errors: a column that is unknown, missing or given twice, a field that is not a value of
    /// its column, a line with too few or too many fields, or an input that cannot be read.
    pub fn read(mut input: impl Read, file: &str) -> Result<TaskList, CsvError> {
        let at = |line, what| CsvError { file: file.to_string(), line, what };
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(|error| at(0, format!("cannot be read: {error}")))?;
        let refused = |error: csv::Error| at(line_at(&text, error.position()), describe(&error));
        let mut reader =
            ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(&text[..]);
        let header = reader.headers().map_err(refused)?;
        let places = places(header, COLUMNS, 2)
            .map_err(|what| at(line_at(&text, header.position()), what))?;
        let mut record = StringRecord::new();
        let mut rows = Vec::new();
        while reader.read_record(&mut record).map_err(refused)? {
            let row = row(&record, &places);
            rows.push(row.map_err(|what| at(line_at(&text, record.position()), what))?);
        }
        Ok(TaskList::new(rows))
    }

    /// Writes what [`TaskList::read`] reads. Columns in which all tasks have the default are left
    /// out.
    ///
    /// Errors: those of `out`.
    pub fn write(&self, out: impl Write) -> std::io::Result<()> {
        let used =
            |column: usize| column < 2 || self.rows.iter().any(|row| !row.field(column).is_empty());
        let columns: Vec<usize> = (0..COLUMNS.len()).filter(|&column| used(column)).collect();
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(|&column| COLUMNS[column]))?;
        for row in &self.rows {
            writer.write_record(columns.iter().map(|&column| row.field(column)))?;
        }
        writer.flush()
    }

    /// The tasks of a model in which each arrives, runs and exits.
    ///
    /// Errors: a task does anything else, or has parameters for which there is no column.
    pub fn from_model(model: &Model) -> Result<TaskList, ModelError> {
        let mut rows = Vec::with_capacity(model.tasks.len());
        for (number, task) in model.tasks.iter().enumerate() {
            let wrong = |why: &str| ModelError {
                place: format!("task {number}"),
                why: format!("{why}, which a task list cannot hold; keep it as a model"),
            };
            let Some(arrival) = task.arrives else { return Err(wrong("is spawned by another")) };
            let mut service = Span::ZERO;
            for op in &task.script.ops {
                match op {
                    Op::Run(span) => service += *span,
                    Op::Exit => break,
                    _ => return Err(wrong("does more than run")),
                }
            }
            if task.script.rounds > 1 && task.script.repeat_from < task.script.ops.len() {
                return Err(wrong("repeats what it does"));
            }
            let new = &task.new;
            let plain = new.domain == DomainId(0) && new.priority == 0 && new.period.is_none();
            let plain = plain && new.budget.is_none() && new.key.is_none() && new.intensity == 0;
            if !plain {
                return Err(wrong(
                    "has a domain, a priority, a period, a budget, a key or an intensity",
                ));
            }
            let deadline = new.deadline.or(new.relative_deadline.map(|span| arrival + span));
            let (name, affinity) = (new.name.clone(), new.affinity.clone());
            rows.push(Row { arrival, service, name, nice: new.nice, affinity, deadline });
        }
        Ok(TaskList::new(rows))
    }

    /// A model that does the same.
    pub fn to_model(&self) -> Model {
        let task = |row: &Row| ModelTask {
            new: NewTask {
                name: row.name.clone(),
                nice: row.nice,
                affinity: row.affinity.clone(),
                deadline: row.deadline,
                ..NewTask::default()
            },
            arrives: Some(row.arrival),
            script: Arc::new(Script::once(vec![Op::Run(row.service)])),
        };
        Model { tasks: self.rows.iter().map(task).collect(), ..Model::default() }
    }

    /// The load of these tasks.
    pub fn into_load(self) -> impl Load {
        TaskListLoad { rows: self.rows, next: 0, tasks: OneRun::default() }
    }
}

impl Row {
    /// The text in a column, empty for the default.
    fn field(&self, column: usize) -> String {
        match column {
            0 => self.arrival.0.to_string(),
            1 => self.service.0.to_string(),
            2 => self.name.as_deref().unwrap_or_default().to_string(),
            3 if self.nice != 0 => self.nice.to_string(),
            4 if !self.affinity.is_all() => self.affinity.to_string(),
            5 => self.deadline.map_or(String::new(), |deadline| deadline.0.to_string()),
            _ => String::new(),
        }
    }
}

/// The line of a record, from 1. The position that `csv` reports is before the comments and empty
/// lines that it skipped.
pub fn line_at(text: &[u8], position: Option<&csv::Position>) -> u64 {
    let start = position.map_or(0, |position| position.byte() as usize).min(text.len());
    let lines_before = text[..start].iter().filter(|&&byte| byte == b'\n').count();
    let ignored = |line: &&[u8]| matches!(line, [b'\n'] | [b'\r', b'\n'] | [b'#', ..]);
    let lines = text[start..].split_inclusive(|&byte| byte == b'\n');
    let skipped = lines.take_while(ignored).count();
    1 + (lines_before + skipped) as u64
}

/// Why a record of a table whose first line names the columns was refused.
pub fn describe(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, but the first line names {expected_len} columns")
        }
        csv::ErrorKind::Utf8 { err, .. } => {
            format!("field {} is not UTF-8; save the file as UTF-8", err.field() + 1)
        }
        _ => error.to_string(),
    }
}

/// The first 40 characters of a field, for error messages.
pub fn clipped(field: &str) -> &str {
    field.char_indices().nth(40).map_or(field, |(end, _)| &field[..end])
}

/// Where each of `columns` is in a record below `header`. The first `needed` of them are required.
///
/// Errors: a column that is unknown, missing or given twice.
pub fn places<const N: usize>(
    header: &StringRecord,
    columns: [&str; N],
    needed: usize,
) -> Result<[Option<usize>; N], String> {
    let mut places = [None; N];
    for (place, name) in header.iter().enumerate() {
        let Some(column) = columns.iter().position(|&known| known == name) else {
            let hint = nearest(name, columns);
            let hint = hint.map_or(String::new(), |near| format!("did you mean {near}? "));
            let known = columns.join(", ");
            return Err(format!("unknown column \"{name}\"; {hint}the columns are {known}"));
        };
        if places[column].replace(place).is_some() {
            return Err(format!("column {name} is there twice"));
        }
    }
    match columns.iter().zip(places).take(needed).find(|(_, place)| place.is_none()) {
        Some((name, _)) => {
            Err(format!("column {name} is missing; the first line names the columns"))
        }
        None => Ok(places),
    }
}

fn row(record: &StringRecord, places: &[Option<usize>]) -> Result<Row, String> {
    let field = |column: usize| places[column].and_then(|place| record.get(place)).unwrap_or("");
    let wrong = |column: usize, why: &str| {
        format!("column {} is \"{}\": {why}", COLUMNS[column], field(column))
    };
    let ns = |column: usize| {
        let why = "not a whole number of nanoseconds, such as 1000000 for 1 ms";
        field(column).parse::<u64>().map_err(|_| wrong(column, why))
    };
    let (arrival, service) = (Time(ns(0)?), Span(ns(1)?));
    if arrival == Time::NEVER {
        return Err(wrong(0, "this stands for \"never\"; leave the task out"));
    }
    let name = Some(field(2)).filter(|name| !name.is_empty()).map(Arc::from);
    let nice = match field(3) {
        "" => 0,
        text => match text.parse() {
            Ok(nice) if (-20..=19).contains(&nice) => nice,
            _ => return Err(wrong(3, "not a whole number from -20 to 19")),
        },
    };
    let affinity = match field(4) {
        "" => CpuSet::All,
        text => CpuSet::parse(text).map_err(|why| wrong(4, why))?,
    };
    let deadline = if field(5).is_empty() { None } else { Some(Time(ns(5)?)) };
    if deadline.is_some_and(|deadline| deadline < arrival) {
        let why =
            "before the task arrives; deadlines are absolute, on the same clock as arrival_ns";
        return Err(wrong(5, why));
    }
    Ok(Row { arrival, service, name, nice, affinity, deadline })
}

struct TaskListLoad {
    rows: Vec<Row>,
    next: usize,
    tasks: OneRun,
}

impl Load for TaskListLoad {
    #[inline]
    fn peek(&self) -> Time {
        self.rows.get(self.next).map_or(Time::NEVER, |row| row.arrival)
    }

    fn outside(&mut self) -> Outside {
        let row = &self.rows[self.next];
        self.next += 1;
        Outside::Arrival(NewTask {
            name: row.name.clone(),
            nice: row.nice,
            affinity: row.affinity.clone(),
            relative_deadline: row.deadline.map(|deadline| deadline - row.arrival),
            deadline: row.deadline,
            ..NewTask::default()
        })
    }

    fn start(&mut self, task: TaskId, _: Time) {
        self.tasks.start(task, self.rows[self.next - 1].service);
    }

    #[inline]
    fn step(&mut self, task: TaskId, _: Time) -> Op {
        self.tasks.step(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModelTask, Script};
    use crate::play::play;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<TaskList, String> {
        TaskList::read(text.as_bytes(), "tasks.csv").map_err(|error| error.to_string())
    }

    fn written(list: &TaskList) -> String {
        let mut out = Vec::new();
        list.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_come_in_any_order() {
        let text = "\u{feff}# two tasks\n\
                    nice,service_ns, affinity ,deadline_ns,name,arrival_ns\n\
                    -5,20,\"0-3,8\",90,\"a \"\"b\"\", c\",10\n\
                    \n\
                    ,5,,,,3\n";
        let rows = read(text).unwrap().rows().to_vec();
        let first = Row { arrival: Time(3), service: Span(5), ..Row::default() };
        let second = Row {
            arrival: Time(10),
            service: Span(20),
            name: Some("a \"b\", c".into()),
            nice: -5,
            affinity: CpuSet::parse("0-3,8").unwrap(),
            deadline: Some(Time(90)),
        };
        assert_eq!(rows, [first, second]);
    }

    #[test]
    fn unused_columns_are_not_written() {
        let row = |arrival| Row { arrival: Time(arrival), service: Span(7), ..Row::default() };
        let plain = TaskList::new(vec![row(4), row(2)]);
        assert_eq!(written(&plain), "arrival_ns,service_ns\n2,7\n4,7\n");
        let affinity = CpuSet::parse("1,3").unwrap();
        let list = TaskList::new(vec![Row { affinity, ..row(4) }, Row { nice: 3, ..row(9) }]);
        assert_eq!(written(&list), "arrival_ns,service_ns,nice,affinity\n4,7,,\"1,3\"\n9,7,3,\n");
        assert_eq!(written(&TaskList::default()), "arrival_ns,service_ns\n");
    }

    #[test]
    fn wrong_lists_say_where_and_why() {
        let known = "the columns are arrival_ns, service_ns, name, nice, affinity, deadline_ns";
        let ns = "not a whole number of nanoseconds, such as 1000000 for 1 ms";
        let head = "arrival_ns,service_ns,nice,affinity,deadline_ns";
        for (text, error) in [
            (String::new(), "1: column arrival_ns is missing; the first line names the columns"),
            (
                "arrival_ns\n1\n".to_string(),
                "1: column service_ns is missing; the first line names the columns",
            ),
            (
                "arrival_ns,service_ms\n".to_string(),
                &format!("1: unknown column \"service_ms\"; did you mean service_ns? {known}"),
            ),
            (
                "# x\narrival_ns,service_ns,colour\n".to_string(),
                &format!("2: unknown column \"colour\"; {known}"),
            ),
            (
                format!("{head}\n\n1,2,,,\r\n\r\n# note\n\nx,2,,,\n"),
                &format!("7: column arrival_ns is \"x\": {ns}"),
            ),
            ("nice,nice\n".to_string(), "1: column nice is there twice"),
            (
                "arrival_ns,service_ns\n1,2\n3\n".to_string(),
                "3: 1 fields, but the first line names 2 columns",
            ),
            (
                format!("{head}\n18446744073709551615,1,,,\n"),
                "2: column arrival_ns is \"18446744073709551615\": this stands for \"never\"; \
                 leave the task out",
            ),
            (format!("{head}\n1,1.5,,,\n"), &format!("2: column service_ns is \"1.5\": {ns}")),
            (format!("{head}\n\n,2,,,\n"), &format!("3: column arrival_ns is \"\": {ns}")),
            (format!("{head}\n1,-2,,,\n"), &format!("2: column service_ns is \"-2\": {ns}")),
            (
                format!("{head}\n1,2,20,,\n"),
                "2: column nice is \"20\": not a whole number from -20 to 19",
            ),
            (
                format!("{head}\n1,2,0,5-3,\n"),
                "2: column affinity is \"5-3\": a range of CPUs goes from the lower to the higher",
            ),
            (
                format!("{head}\n10,2,0,,9\n"),
                "2: column deadline_ns is \"9\": before the task arrives; deadlines are absolute, \
                 on the same clock as arrival_ns",
            ),
        ] {
            assert_eq!(read(&text), Err(format!("tasks.csv:{error}")), "{text}");
        }
        let latin1: &[u8] = b"arrival_ns,service_ns,name\n1,2,caf\xe9\n";
        let error = TaskList::read(latin1, "x").unwrap_err();
        assert_eq!(error.to_string(), "x:2: field 3 is not UTF-8; save the file as UTF-8");
    }

    #[test]
    fn long_fields_are_clipped_between_characters() {
        assert_eq!(clipped(""), "");
        assert_eq!(clipped(&"é".repeat(40)), "é".repeat(40));
        assert_eq!(clipped(&"é".repeat(41)), "é".repeat(40));
    }

    #[test]
    fn the_load_runs_each_task_once() {
        let list =
            read("arrival_ns,service_ns,name,deadline_ns\n5,10,b,30\n0,7,a,\n5,1,c,\n").unwrap();
        let played = play(list.into_load(), Time::NEVER, 1);
        assert_eq!(played.arrivals(), [0, 5, 5]);
        assert_eq!(played.services(), [7, 10, 1]);
        let new = &played.new[1].1;
        assert_eq!(new.name.as_deref(), Some("b"));
        assert_eq!((new.deadline, new.relative_deadline), (Some(Time(30)), Some(Span(25))));
        assert_eq!(played.of(1), [(5, Op::Run(Span(10))), (15, Op::Exit)]);
    }

    #[test]
    fn models_of_plain_jobs_become_lists() {
        let task = |arrives: u64, ops: Vec<Op>| ModelTask {
            arrives: Some(Time(arrives)),
            script: Arc::new(Script::once(ops)),
            ..ModelTask::default()
        };
        let jobs = vec![
            task(9, vec![Op::Run(Span(2)), Op::Run(Span(3)), Op::Exit, Op::Yield]),
            task(4, vec![]),
        ];
        let list = TaskList::from_model(&Model { tasks: jobs, ..Model::default() }).unwrap();
        assert_eq!(written(&list), "arrival_ns,service_ns\n4,0\n9,5\n");
        let sleeper = vec![task(0, vec![Op::Sleep(Span(1))])];
        let error = TaskList::from_model(&Model { tasks: sleeper, ..Model::default() });
        assert_eq!(
            error.unwrap_err().to_string(),
            "task 0: does more than run, which a task list cannot hold; keep it as a model"
        );
    }

    fn any_row() -> impl Strategy<Value = Row> {
        let name = proptest::option::of("[a-z#\",é][a-z#\", é\n]{0,5}[a-z#\",é]");
        let affinity = prop_oneof![
            Just(CpuSet::All),
            proptest::collection::vec(0u16..1024, 1..5)
                .prop_map(|cpus| CpuSet::of(cpus.into_iter().map(anysched_core::CpuId))),
        ];
        let times = (0..u64::MAX, any::<u64>(), proptest::option::of(any::<u64>()));
        (times, name, -20i8..=19, affinity).prop_map(|(times, name, nice, affinity)| {
            let arrival = Time(times.0);
            let deadline = times.2.map(|allowed| arrival + Span(allowed));
            let (service, name) = (Span(times.1), name.map(Arc::from));
            Row { arrival, service, name, nice, affinity, deadline }
        })
    }

    proptest! {
        #[test]
        fn lists_read_back_as_written(rows in proptest::collection::vec(any_row(), 0..9)) {
            let list = TaskList::new(rows);
            prop_assert_eq!(read(&written(&list)), Ok(list));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(arrival_ns,service_ns\n)?[a-z0-9,\"#\n _-]{0,60}") {
            let _ = read(&text);
        }
    }
}
