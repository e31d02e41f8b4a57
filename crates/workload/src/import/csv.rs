//! Tables as CSV whose columns have any names, such as the traces of clusters: which column is what
//! is said by the keys.
//!
//! Two of three columns are needed: when a task arrives, how long it runs and when it ends; the
//! third follows. Where a table has no line with names, `columns` gives them. A column is named as
//! the first line names it, or by its number from 1.

use super::input::open;
use super::{ImportError, Imported, Importer, Input, ReadError, excerpt, first_line, tasks, text};
use crate::kinds::{FileName, Place, Refusal, keys, words};
use crate::nearest::nearest;
use crate::tasks_csv::{Row, TaskList, clipped};
use anysched_core::{Span, Time};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::io::Read;
use std::sync::Arc;

/// What the numbers of a column count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

words!(Unit {
    Unit::Seconds => "s",
    Unit::Milliseconds => "ms",
    Unit::Microseconds => "us",
    Unit::Nanoseconds => "ns",
});

impl Unit {
    /// How many digits behind the point make nanoseconds.
    fn digits(self) -> usize {
        match self {
            Unit::Seconds => 9,
            Unit::Milliseconds => 6,
            Unit::Microseconds => 3,
            Unit::Nanoseconds => 0,
        }
    }
}

/// What stands between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    Comma,
    Semicolon,
    Tab,
    Space,
}

words!(Separator {
    Separator::Comma => "comma",
    Separator::Semicolon => "semicolon",
    Separator::Tab => "tab",
    Separator::Space => "space",
});

keys! {
    /// The keys of a load that is a table.
    pub struct Csv {
        /// The table, plain or packed.
        file: FileName = needed, eg "cluster.csv";
        /// The column with the time at which a task arrives.
        arrival: Option<String> = or "arrival, service, end", eg "start_time";
        /// The column with the time that a task takes.
        service: Option<String> = or "arrival, service, end", eg "duration";
        /// The column with the time at which a task ends.
        end: Option<String> = or "arrival, service, end", eg "end_time";
        /// What the numbers of these columns count.
        unit: Unit = "s", eg "ms";
        /// What those of `service` count, if it is something else.
        service_unit: Option<Unit> = none "as `unit`", eg "ms";
        /// The column with a task's name.
        name: Option<String> = none "no names", eg "job_name";
        /// The column that says how many tasks a line stands for.
        tasks: Option<String> = none "one each", eg "instances";
        /// Names of the columns, between commas, of a table without a line of names.
        columns: Option<String> = none "the first line names them",
            eg "start_time,duration,end_time,job_name,instances";
        /// What stands between columns.
        separator: Separator = "comma", eg "comma";
        /// Only so many lines, the first ones of the window.
        jobs: Option<u64> = none "all", eg "1000", in 1..=i64::MAX;
        /// What arrives less than this after the earliest is left out; times of the load count from
        /// it.
        from: Span = "0s", eg "10s";
        /// What arrives this long after the earliest or later is left out.
        until: Option<Span> = none "no limit", eg "60s";
    }
}

impl Importer for Csv {
    const FORMAT: &'static str = "csv";
    const ENDINGS: &'static [&'static str] = &[".csv", ".csv.gz"];
    const USAGE: &'static str = "--arrival COLUMN --service COLUMN --unit ms";

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        !tasks::Tasks::begins(start) && Csv::takes(start)
    }

    fn takes(start: &[u8]) -> bool {
        let Some(text) = text(start) else { return false };
        let Some(first) = first_line(&text) else { return false };
        let columns = |line: &str| line.matches([',', ';', '\t']).count();
        let line = |line: &str| line.trim_start_matches('\u{feff}').trim() == first;
        let mut lines = text.lines().skip_while(|text| !line(text));
        columns(first) > 0
            && !first.starts_with(['{', '[', '<', ';', '/'])
            && !text.contains("sched_switch")
            // The last line may be cut.
            && lines.nth(1).is_none_or(|second| columns(second) >= columns(first))
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        let given = [&self.arrival, &self.service, &self.end];
        if given.iter().filter(|column| column.is_some()).count() < 2 {
            return Err(ReadError::Option(
                Refusal::new(Place::Table, "a table needs two of `arrival`, `service` and `end`")
                    .help(
                        "each names a column: `--arrival start_time --service duration --unit ms`, \
                         or in an experiment `arrival = \"start_time\"`",
                    ),
            ));
        }
        Ok(Imported::Tasks(self.read(input)?))
    }
}

/// The most tasks that a table may make.
const MAX_TASKS: u64 = 1 << 21;
/// The most characters that a number has.
const LONGEST: usize = 40;

/// Where the columns are.
struct Places {
    arrival: Option<usize>,
    service: Option<usize>,
    end: Option<usize>,
    name: Option<usize>,
    tasks: Option<usize>,
}

/// A task before times count from the beginning of the load.
struct Raw {
    arrival: i128,
    service: Span,
    name: Option<Arc<str>>,
    tasks: u64,
}

impl Csv {
    fn read(&self, input: &mut dyn Input) -> Result<TaskList, ImportError> {
        // A window counts from the earliest arrival, which only the whole file tells.
        let is_part = self.from > Span::ZERO || self.until.is_some();
        let earliest = match is_part {
            true => {
                let mut earliest = i128::MAX;
                self.lines(input, &mut |row| {
                    earliest = earliest.min(row.arrival);
                    Ok(true)
                })?;
                input.rewind()?;
                Some(earliest)
            }
            false => None,
        };
        let mut kept: Vec<Raw> = Vec::new();
        let (mut all, mut lines) = (0, 0);
        self.lines(input, &mut |row| {
            if let Some(earliest) = earliest {
                let since = row.arrival - earliest;
                let past = self.until.is_some_and(|until| since >= i128::from(until.0));
                if past || since < i128::from(self.from.0) {
                    return Ok(true);
                }
            }
            all += row.tasks;
            if all > MAX_TASKS {
                return Err(format!(
                    "with this line there are more than {MAX_TASKS} tasks; take a part of the \
                     table (`jobs`, `from`, `until`: --jobs 1000, or --from 0s --until 60s)"
                ));
            }
            lines += 1;
            kept.push(row);
            Ok(self.jobs.is_none_or(|jobs| lines < jobs))
        })?;
        if kept.is_empty() {
            return Err(ImportError::whole(match earliest {
                Some(i128::MAX) | None => "no line has a task that runs".to_string(),
                Some(_) => "no task arrives within the window".to_string(),
            }));
        }
        let origin = match earliest {
            Some(earliest) => earliest + i128::from(self.from.0),
            None => kept.iter().map(|row| row.arrival).min().unwrap_or_default(),
        };
        let mut rows = Vec::new();
        for raw in kept {
            let arrival = u64::try_from(raw.arrival - origin).ok().filter(|&ns| ns < u64::MAX);
            let arrival = arrival.ok_or_else(|| {
                ImportError::whole("the arrivals are more than 584 years apart; is `unit` right?")
            })?;
            let (service, name) = (raw.service, raw.name);
            let row = Row { arrival: Time(arrival), service, name, ..Row::default() };
            rows.extend(std::iter::repeat_n(row, raw.tasks as usize));
        }
        Ok(TaskList::new(rows))
    }

    /// Reads line by line, as long as `take` wants more. Lines without a value in a column that is
    /// used, and tasks that do not run, are skipped.
    fn lines(
        &self,
        input: &mut dyn Input,
        take: &mut dyn FnMut(Raw) -> Result<bool, String>,
    ) -> Result<(), ImportError> {
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .flexible(true)
            .delimiter(match self.separator {
                Separator::Comma => b',',
                Separator::Semicolon => b';',
                Separator::Tab => b'\t',
                Separator::Space => b' ',
            })
            // The last line may have no end; with one, lines are counted alike.
            .from_reader(open(input)?.chain(&b"\n"[..]));
        let mut record = StringRecord::new();
        let names: Option<Vec<&str>> =
            self.columns.as_ref().map(|names| names.split(',').map(str::trim).collect());
        let mut places = match &names {
            Some(names) => Some(self.places(names)?),
            None => None,
        };
        let mut is_first = true;
        loop {
            let refused = |error: csv::Error| {
                let line = error.position().map_or(0, csv::Position::line);
                ImportError::line(line, crate::tasks_csv::describe(&error))
            };
            if !reader.read_record(&mut record).map_err(refused)? {
                return Ok(());
            }
            let line = reader.position().line() - 1;
            let at = |what| ImportError::line(line, what);
            let Some(places) = &places else {
                let names: Vec<&str> =
                    record.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
                places = Some(self.places(&names).map_err(|error| at(error.what))?);
                continue;
            };
            // Names that are given although the table has them.
            let is_header =
                names.as_ref().is_some_and(|names| record.iter().eq(names.iter().copied()));
            if std::mem::take(&mut is_first) && is_header {
                continue;
            }
            let Some(raw) = self.raw(&record, places).map_err(at)? else { continue };
            if !take(raw).map_err(at)? {
                return Ok(());
            }
        }
    }

    fn places(&self, names: &[&str]) -> Result<Places, ImportError> {
        let place = |key: &str, column: &Option<String>| {
            let Some(column) = column else { return Ok(None) };
            if let Some(place) = names.iter().position(|name| name == column) {
                return Ok(Some(place));
            }
            if let Ok(number) = column.parse::<usize>()
                && (1..=names.len()).contains(&number)
            {
                return Ok(Some(number - 1));
            }
            let near = nearest(column, names.iter().copied());
            let hint =
                near.map_or(String::new(), |near| format!("did you mean {}? ", excerpt(near)));
            let known = excerpt(&names.join(", "));
            Err(ImportError::whole(format!(
                "no column is called \"{}\", as `{key}` says; {hint}there are {known}; for a table \
                 without names give them: --set columns=A,B,…, or use numbers from 1",
                excerpt(column)
            )))
        };
        Ok(Places {
            arrival: place("arrival", &self.arrival)?,
            service: place("service", &self.service)?,
            end: place("end", &self.end)?,
            name: place("name", &self.name)?,
            tasks: place("tasks", &self.tasks)?,
        })
    }

    fn raw(&self, record: &StringRecord, places: &Places) -> Result<Option<Raw>, String> {
        let field = |place: Option<usize>| place.map(|place| record.get(place).unwrap_or(""));
        let ns = |key: &str, place: Option<usize>, unit: Unit| match field(place) {
            None => Ok(None),
            Some("") => Ok(Some(None)),
            Some(text) => {
                let is_moment = key != "service";
                let ns = nanoseconds(text, unit);
                let ns = ns.or_else(|| moment(text).filter(|_| is_moment));
                ns.map(|ns| Some(Some(ns))).ok_or_else(|| {
                    let (text, unit) = (clipped(text), crate::kinds::Words::word(unit));
                    let or =
                        if is_moment { " and no date such as 2024-11-15 16:57:50" } else { "" };
                    format!("`{key}` is \"{text}\", which is no number of {unit}{or}")
                })
            }
        };
        let service_unit = self.service_unit.unwrap_or(self.unit);
        let arrival = ns("arrival", places.arrival, self.unit)?;
        let service = ns("service", places.service, service_unit)?;
        let end = ns("end", places.end, self.unit)?;
        let (arrival, service) = match (arrival, service, end) {
            (Some(Some(arrival)), Some(Some(service)), _) => (arrival, service),
            (Some(Some(arrival)), None, Some(Some(end))) => (arrival, end - arrival),
            (None, Some(Some(service)), Some(Some(end))) => (end - service, service),
            _ => return Ok(None),
        };
        let tasks = match field(places.tasks) {
            None => 1,
            Some("") => return Ok(None),
            Some(text) => match nanoseconds(text, Unit::Nanoseconds) {
                Some(count @ 0..=0xffff_ffff) => count as u64,
                _ => {
                    return Err(format!(
                        "`tasks` is \"{}\", which is no number of tasks",
                        clipped(text)
                    ));
                }
            },
        };
        if service <= 0 || tasks == 0 {
            return Ok(None);
        }
        let service = u64::try_from(service).ok().filter(|&ns| ns < u64::MAX);
        let service =
            Span(service.ok_or("this task would run for more than 584 years; is `unit` right?")?);
        let name = field(places.name).filter(|name| !name.is_empty()).map(Arc::from);
        Ok(Some(Raw { arrival, service, name, tasks }))
    }
}

/// A number in nanoseconds; what is below one is cut.
fn nanoseconds(text: &str, unit: Unit) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.len() > LONGEST {
        return None;
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) {
        // With an exponent.
        let number: f64 = text.parse().ok()?;
        let ns = number * 10f64.powi(unit.digits() as i32);
        return (ns.abs() < 1e30).then_some(ns as i128);
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut ns: i128 = 0;
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(unit.digits());
    for digit in whole.bytes().chain(fraction) {
        ns = ns.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    // Sums and differences of two fit.
    (ns < 1 << 100).then_some(sign * ns)
}

/// A date with a time, `2024-11-15 16:57:50.25` or with a `T` between, in nanoseconds since 1970. A
/// zone behind it is that of UTC or left out: all lines of a table have the same.
fn moment(text: &str) -> Option<i128> {
    let text = text.trim_end_matches(['Z', 'z']).trim_end_matches("+00:00").trim_end();
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u16>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (hour, rest) = time.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hour, minute) = (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?);
    let second =
        nanoseconds(second, Unit::Seconds).filter(|ns| (0..61_000_000_000).contains(ns))?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, 28 + u16::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = lengths.get(..usize::from(month.checked_sub(1)?))?.iter().sum::<u16>();
    if !(1970..10_000).contains(&year)
        || !(1..=*lengths.get(usize::from(month) - 1)?).contains(&day)
        || hour > 23
        || minute > 59
    {
        return None;
    }
    let leaps = |year: i128| year / 4 - year / 100 + year / 400;
    let past = i128::from(year) - 1;
    let years = (past - 1969) * 365 + leaps(past) - leaps(1969);
    let days = years + i128::from(before) + i128::from(day) - 1;
    let minutes = (days * 24 + i128::from(hour)) * 60 + i128::from(minute);
    Some(minutes * 60_000_000_000 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Given, Table};
    use std::io::Cursor;

    struct Options<'a>(&'a [(&'a str, Given<'a>)]);

    impl Table for Options<'_> {
        fn keys(&self) -> Vec<&str> {
            self.0.iter().map(|(key, _)| *key).collect()
        }

        fn get(&self, key: &str) -> Option<Given<'_>> {
            self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone())
        }
    }

    fn read(text: &str, options: &[(&str, &str)]) -> Result<TaskList, String> {
        let mut given = vec![("file", Given::Text("x"))];
        given.extend(options.iter().map(|&(key, value)| {
            (
                key,
                match key {
                    "jobs" => Given::Whole(value.parse().unwrap()),
                    _ => Given::Text(value),
                },
            )
        }));
        let csv: Csv = crate::kinds::read_options(&Options(&given), "csv").unwrap();
        match csv.import(&mut Cursor::new(text), "x").map_err(|error| error.of("x"))? {
            Imported::Tasks(tasks) => Ok(tasks),
            other => panic!("{other:?}"),
        }
    }

    /// Arrival and service in ms and the name of each task.
    fn tasks(list: &TaskList) -> Vec<(u64, u64, &str)> {
        let ms = |ns: u64| ns / 1_000_000;
        let row = |row: &'_ Row| (ms(row.arrival.0), ms(row.service.0));
        let name = |row: &Row| row.name.is_some();
        let rows = list.rows().iter();
        rows.map(|r| (row(r).0, row(r).1, if name(r) { r.name.as_deref().unwrap() } else { "" }))
            .collect()
    }

    /// Invocations of functions as Azure publishes them: when each ended and how long it took.
    #[test]
    fn what_ended_and_how_long_it_took() {
        let text = "app,func,end_timestamp,duration\na,f,10.5,0.5\na,g,2.25,2\nb,f,12,\nb,g,9,0\n";
        let options = [("end", "end_timestamp"), ("service", "duration"), ("name", "func")];
        let list = read(text, &options).unwrap();
        assert_eq!(tasks(&list), [(0, 2000, "g"), (9750, 500, "f")]);
    }

    /// A table without names whose lines stand for several tasks, as Alibaba publishes them.
    #[test]
    fn a_table_without_names() {
        let text = "M1,2,j_1,1,Terminated,100,160,50,0.2\nM2,1,j_2,1,Failed,130,,50,0.2\n";
        let columns = "task_name,inst_num,job_name,task_type,status,start_time,end_time,cpu,mem";
        let options = [
            ("columns", columns),
            ("arrival", "start_time"),
            ("end", "end_time"),
            ("name", "job_name"),
            ("tasks", "inst_num"),
        ];
        let list = read(text, &options).unwrap();
        assert_eq!(tasks(&list), [(0, 60_000, "j_1"), (0, 60_000, "j_1")]);
        let by_number = [("columns", columns), ("arrival", "6"), ("end", "7")];
        assert_eq!(tasks(&read(text, &by_number).unwrap()), [(0, 60_000, "")]);
        // A table with names may have them given.
        let named = format!("{columns}\n{text}");
        assert_eq!(read(&named, &options).unwrap(), list);
    }

    /// Microseconds since the trace began, as Google publishes them, and only a part.
    #[test]
    fn a_part_of_a_table() {
        let text = "t;run\n5000000;1e3\n1000000;2000\n9000000;3000\n# not this\n7000000;4000.9\n";
        let read = |more: &[(&str, &str)]| {
            let options =
                [("arrival", "t"), ("service", "run"), ("unit", "us"), ("separator", "semicolon")];
            read(text, &[&options[..], more].concat())
        };
        let all = read(&[]).unwrap();
        assert_eq!(tasks(&all), [(0, 2, ""), (4000, 1, ""), (6000, 4, ""), (8000, 3, "")]);
        assert_eq!(all.rows()[2].service, Span(4_000_900));
        let part = read(&[("from", "4s"), ("until", "8s")]).unwrap();
        assert_eq!(tasks(&part), [(0, 1, ""), (2000, 4, "")]);
        assert_eq!(tasks(&read(&[("jobs", "2")]).unwrap()), [(0, 2, ""), (4000, 1, "")]);
        assert_eq!(read(&[("from", "9s")]).unwrap_err(), "x: no task arrives within the window");
        let ms = read(&[("service_unit", "ms")]).unwrap();
        assert_eq!(tasks(&ms)[0], (0, 2000, ""));
    }

    #[test]
    fn malformed_tables() {
        let both = [("arrival", "t"), ("service", "run")];
        for (text, options, error) in [
            (
                "t,run\n1,2\n",
                &both[..1],
                "a table needs two of `arrival`, `service` and `end`; each",
            ),
            (
                "t,ran\n1,2\n",
                &both,
                "x: line 1: no column is called \"run\", as `service` says; did you mean ran?",
            ),
            (
                "t,run\n1,2\n\nx,2\n",
                &both,
                "x: line 4: `arrival` is \"x\", which is no number of s",
            ),
            ("t,run\n1,0\n", &both, "x: no line has a task that runs"),
            ("t,run\n0,1\n99999999999,1\n", &both, "x: the arrivals are more than 584 years apart"),
            ("t,run\n0,99999999999\n", &both, "x: line 2: this task would run for more than 584"),
        ] {
            let found = read(text, options).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
        }
        let many = [("arrival", "t"), ("service", "run"), ("tasks", "n")];
        let found = read("t,run,n\n0,1,2000000\n0,1,2000000\n", &many).unwrap_err();
        assert!(
            found.starts_with("x: line 3: with this line there are more than 2097152"),
            "{found}"
        );
    }

    /// Requests with dates, as Azure and Alibaba publish those for language models.
    #[test]
    fn dates_are_moments() {
        let text = "TIMESTAMP,ContextTokens\n2023-12-31 23:59:59.9,70\n\
                    2024-01-01 00:00:00.1500000,8\n2024-03-01T00:00:00Z,5\n";
        let options =
            [("arrival", "TIMESTAMP"), ("service", "ContextTokens"), ("service_unit", "ms")];
        let list = read(text, &options).unwrap();
        // 2024 has a 29th of February.
        assert_eq!(tasks(&list), [(0, 70, ""), (250, 8, ""), (60 * 86_400_000 + 100, 5, "")]);
        for (text, seconds) in [
            ("1970-01-01 00:00:00", Some(0)),
            ("2000-02-29 12:00", Some(951_825_600)),
            ("2023-11-16 18:17:03", Some(1_700_158_623)),
            ("2023-02-29 12:00:00", None),
            ("2023-13-01 12:00:00", None),
            ("2023-00-01 12:00:00", None),
            ("2023-01-00 12:00:00", None),
            ("2023-01-01 24:00:00", None),
            ("2023-01-01 12:60:00", None),
            ("2023-01-01 12:00:61", None),
            ("2023-01-01", None),
            ("12:00:00", None),
        ] {
            assert_eq!(moment(text), seconds.map(|seconds| seconds * 1_000_000_000), "{text}");
        }
        let refused =
            read("t,run\n1,2024-01-01 10:00:00\n", &[("arrival", "t"), ("service", "run")]);
        assert_eq!(
            refused.unwrap_err(),
            "x: line 2: `service` is \"2024-01-01 10:00:00\", which is no number of s"
        );
    }

    #[test]
    fn numbers_are_exact() {
        for (text, unit, ns) in [
            ("1.5", Unit::Seconds, Some(1_500_000_000)),
            ("1699999999.123456789", Unit::Seconds, Some(1_699_999_999_123_456_789)),
            (".25", Unit::Milliseconds, Some(250_000)),
            ("-3", Unit::Microseconds, Some(-3000)),
            ("7.9", Unit::Nanoseconds, Some(7)),
            ("1.5e3", Unit::Nanoseconds, Some(1500)),
            ("", Unit::Seconds, None),
            (".", Unit::Seconds, None),
            ("1e300", Unit::Seconds, None),
            ("NaN", Unit::Seconds, None),
        ] {
            assert_eq!(nanoseconds(text, unit), ns, "{text}");
        }
    }
}
