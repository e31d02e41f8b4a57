//! Job logs of parallel machines in the Standard Workload Format, version 2
//! (<https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>).
//!
//! One job per line, 18 numbers, −1 where one is unknown; `;` begins the header and comments. Some
//! logs have more numbers, which are not used, or fewer, the rest of which is then unknown. A job
//! becomes tasks that arrive when it was submitted, counted from the first job of the log, and run
//! as long as it ran. How long it waited in the log's queue was the recorded scheduler's doing and
//! is left out.
//!
//! | fields | used |
//! |---|---|
//! | 1 job, 12 user | the name: `job7-u3`, or `job7` |
//! | 2 submitted | arrival |
//! | 4 run time | CPU time of each task |
//! | 5 processors, else 8 requested ones | how many tasks there are |
//! | 11 status | 2, 3 and 4 are parts of jobs that have a line of their own: skipped |
//! | 17, 18 preceding job, think time | counted in a warning |
//! | 3, 6, 7, 9, 10, 13 to 16 | not used |

use super::{
    ImportError, Imported, Importer, Input, Lines, ReadError, ReadTimes, Window, excerpt,
    first_line, text,
};
use crate::kinds::{FileName, keys, words};
use crate::model::{Model, ModelTask, Script};
use crate::{NewTask, Op};
use anysched_core::{Span, Time};
use std::io::Read;
use std::sync::Arc;

/// What a job on several processors becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processors {
    /// As many tasks, each with the job's run time. They are not bound to run at once.
    #[default]
    TaskEach,
    /// One task with the job's run time.
    OneTask,
}

words!(Processors {
    Processors::TaskEach => "task-each",
    Processors::OneTask => "one-task",
});

keys! {
    /// The keys of a load that is a job log.
    pub struct Swf {
        ..window: Window;
        /// The log, plain or packed.
        file: FileName = needed, eg "jobs.swf";
        /// Only so many jobs, the first ones of the window.
        jobs: Option<u64> = none "all", eg "1000", in 1..=i64::MAX;
        /// What a job on several processors becomes: a task on each, or one task.
        processors: Processors = "task-each", eg "one-task";
    }
}

impl Importer for Swf {
    const FORMAT: &'static str = "swf";
    const ENDINGS: &'static [&'static str] = &[".swf", ".swf.gz"];
    const TIMES: Option<ReadTimes> = Some(times);

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        let text = text(start);
        text.as_deref().and_then(first_line).is_some_and(|line| {
            let is_number = |word: &str| word.parse::<f64>().is_ok();
            let words = || line.split_ascii_whitespace();
            line.starts_with(';') || words().count() >= FEWEST && words().all(is_number)
        })
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(Imported::Model(read_part(input, self.processors, self.jobs, &self.window)?))
    }
}

/// The run times of the jobs.
fn times(input: &mut dyn Input, _: &str) -> Result<(Vec<Span>, Vec<String>), ReadError> {
    let model = read(input, Processors::OneTask)?;
    let ops = model.tasks.iter().flat_map(|task| &task.script.ops);
    let runs = ops.filter_map(|op| match op {
        Op::Run(span) => Some(*span),
        _ => None,
    });
    Ok((runs.collect(), model.warnings))
}

/// The most tasks that a log may make.
const MAX_TASKS: usize = 1 << 21;

const FIELDS: usize = 18;
/// What a job cannot do without: when it was submitted, how long it ran, on how many processors.
const FEWEST: usize = 5;

/// Reads all of a log.
///
/// Errors: as for [`read_part`].
pub fn read(input: impl Read, processors: Processors) -> Result<Model, ImportError> {
    read_part(input, processors, None, &Window::default())
}

/// Reads at most so many `jobs` of a log, those submitted within `window`, line by line and no
/// further than needed. [`Model::cpus`] is the header's `MaxProcs`.
///
/// Jobs without a run time, a submit time or processors are skipped, and counted in a warning.
///
/// Errors, with the line: fewer than 5 fields, a field that is not a number or too large, or more
/// than 2 097 152 tasks; no job in the window.
pub fn read_part(
    input: impl Read,
    processors: Processors,
    jobs: Option<u64>,
    window: &Window,
) -> Result<Model, ImportError> {
    let mut lines = Lines::of(input)?;
    let jobs_left = jobs.unwrap_or(u64::MAX);
    let mut reader = Reader { processors, jobs_left, window: window.clone(), ..Reader::default() };
    while reader.jobs_left > 0
        && let Some((number, line)) = lines.next()?
    {
        reader.line(line.trim()).map_err(|what| ImportError::line(number, what))?;
    }
    if reader.jobs == 0 {
        return Err(ImportError::whole("there is no job, which is a line of 18 numbers"));
    }
    if reader.model.tasks.is_empty() && reader.outside > 0 {
        let what = format!("none of its {} jobs was submitted {window}", reader.jobs);
        return Err(ImportError::whole(what));
    }
    let Reader { mut model, skipped, early, dependent, .. } = reader;
    // Submit times may be out of order.
    model.tasks.sort_by_key(|task| task.arrives);
    if reader.other_fields > 0 {
        model.warnings.push(format!(
            "{} jobs do not have the format's {FIELDS} fields: more are not used, missing ones are \
             unknown",
            reader.other_fields
        ));
    }
    for (count, what) in [
        (skipped.parts, "lines are parts of jobs that have a line of their own"),
        (skipped.run, "jobs have no run time or one of 0"),
        (skipped.submit, "jobs have no submit time"),
        (skipped.processors, "jobs have no processors"),
    ] {
        if count > 0 {
            model.warnings.push(format!("{count} {what}; they are skipped"));
        }
    }
    if early > 0 {
        model.warnings.push(format!(
            "{early} jobs were submitted before the first one of the log; they arrive with it"
        ));
    }
    if dependent > 0 {
        model.warnings.push(format!(
            "{dependent} jobs followed a preceding one; here they arrive when they were submitted"
        ));
    }
    Ok(model)
}

#[derive(Default)]
struct Reader {
    processors: Processors,
    model: Model,
    jobs_left: u64,
    window: Window,
    jobs: u64,
    /// When the first job was submitted.
    origin: Option<Span>,
    /// Jobs that were submitted before it.
    early: u64,
    /// Jobs that were not submitted in the window.
    outside: u64,
    /// Jobs with more or fewer fields than the format says.
    other_fields: u64,
    skipped: Skipped,
    dependent: u64,
}

#[derive(Default)]
struct Skipped {
    parts: u64,
    run: u64,
    submit: u64,
    processors: u64,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix(';') {
            self.header(comment);
            return Ok(());
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut fields = ["-1"; FIELDS];
        let mut count = 0;
        for word in line.split_ascii_whitespace() {
            if count < FIELDS {
                fields[count] = word;
            }
            count += 1;
        }
        if count < FEWEST {
            let line = excerpt(line);
            return Err(format!("{count} fields of {FIELDS}, of which it needs {FEWEST}: {line}"));
        }
        self.other_fields += u64::from(count != FIELDS);
        self.jobs += 1;
        self.job(&fields)
    }

    /// `; MaxProcs: 128` and the like.
    fn header(&mut self, comment: &str) {
        if let Some((label, value)) = comment.split_once(':')
            && label.trim() == "MaxProcs"
            && let Some(cpus) = value.split_whitespace().next()
        {
            self.model.cpus = cpus.parse().ok();
        }
    }

    fn job(&mut self, fields: &[&str; FIELDS]) -> Result<(), String> {
        for (index, field) in fields.iter().enumerate() {
            if field.parse::<f64>().is_ok_and(f64::is_finite) {
                continue;
            }
            return Err(format!("field {} is `{}`, which is no number", index + 1, excerpt(field)));
        }
        if matches!(fields[10], "2" | "3" | "4") {
            self.skipped.parts += 1;
            return Ok(());
        }
        let Some(submit) = seconds(fields, 1)? else {
            self.skipped.submit += 1;
            return Ok(());
        };
        // Times are since the log began, or of the calendar.
        let origin = *self.origin.get_or_insert(submit);
        if submit < origin {
            self.early += 1;
        }
        let submit = Span(submit.0.saturating_sub(origin.0));
        if !self.window.has(submit) {
            self.outside += 1;
            return Ok(());
        }
        let Some(run) = seconds(fields, 3)?.filter(|&run| run > Span::ZERO) else {
            self.skipped.run += 1;
            return Ok(());
        };
        let known = |index| match processors(fields, index) {
            Ok(0) => None,
            known => Some(known),
        };
        let Some(width) = known(4).or_else(|| known(7)).transpose()? else {
            self.skipped.processors += 1;
            return Ok(());
        };
        self.dependent += u64::from(!fields[16].starts_with('-') && fields[16] != "0");
        let tasks = match self.processors {
            Processors::TaskEach => width,
            Processors::OneTask => 1,
        };
        if tasks > MAX_TASKS - self.model.tasks.len() {
            return Err(format!(
                "with this job there are more than {MAX_TASKS} tasks; take a part of the log \
                 (`jobs`, `from`, `until`: --jobs 1000, or --from 0s --until 7200s), or one task \
                 for each job (`processors`: --set processors=one-task)"
            ));
        }
        let name: Arc<str> = match fields[11] {
            "-1" => format!("job{}", fields[0]).into(),
            user => format!("job{}-u{user}", fields[0]).into(),
        };
        let task = ModelTask {
            new: NewTask { name: Some(name), ..NewTask::default() },
            arrives: Some(Time::ZERO + (submit - self.window.from)),
            script: Arc::new(Script::once(vec![Op::Run(run)])),
        };
        self.model.tasks.extend(std::iter::repeat_n(task, tasks));
        self.jobs_left -= 1;
        Ok(())
    }
}

const PLAIN: &str = "seconds are written as digits, with a decimal point if need be";

/// A field in seconds; `None`: unknown. Errors: not written plainly, finer than a nanosecond or too
/// long.
fn seconds(fields: &[&str; FIELDS], index: usize) -> Result<Option<Span>, String> {
    let field = fields[index];
    if field.starts_with('-') {
        return Ok(None);
    }
    let plain = field.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let span = if plain { Span::parse(&format!("{field}s")) } else { Err(PLAIN) };
    span.map(Some).map_err(|why| format!("field {} is `{}`: {why}", index + 1, excerpt(field)))
}

/// How many processors a field names; 0: unknown.
fn processors(fields: &[&str; FIELDS], index: usize) -> Result<usize, String> {
    let field = fields[index];
    if field.starts_with('-') {
        return Ok(0);
    }
    field.parse().map_err(|_| {
        let field = excerpt(field);
        format!("field {} is `{field}`, which is no number of processors", index + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: &str = "\
; Version: 2.2
; MaxProcs: 128
;
    7 100   5  60  2 -1 -1  4 3600 -1 1 3 1 1 1 1 -1 -1
    8 110  -1 0.5 -1 -1 -1  3 3600 -1 0 -1 1 1 1 1 7 30
    9 120   0   0  1 -1 -1  1   60 -1 5 3 1 1 1 1 -1 -1
   10 130   0  -1  1 -1 -1  1   60 -1 5 3 1 1 1 1 -1 -1
   11  -1   0   9  1 -1 -1  1   60 -1 1 3 1 1 1 1 -1 -1
   12 140   0   9 -1 -1 -1 -1   60 -1 1 3 1 1 1 1 -1 -1
   13 150   0   9  1 -1 -1  1   60 -1 3 3 1 1 1 1 -1 -1
";

    /// Name, arrival in s and run time in ms of each task.
    fn tasks(model: &Model) -> Vec<(&str, u64, u64)> {
        let task = |task: &'_ ModelTask| {
            let [Op::Run(run)] = task.script.ops[..] else { panic!("{:?}", task.script) };
            (task.arrives.unwrap().0 / 1_000_000_000, run.0 / 1_000_000)
        };
        let tasks = model.tasks.iter();
        tasks.map(|t| (t.new.name.as_deref().unwrap(), task(t).0, task(t).1)).collect()
    }

    #[test]
    fn jobs_become_tasks() {
        let model = read(JOBS.as_bytes(), Processors::TaskEach).unwrap();
        let (seven, eight) = (("job7-u3", 0, 60_000), ("job8", 10, 500));
        assert_eq!(tasks(&model), [seven, seven, eight, eight, eight]);
        assert_eq!(model.cpus, Some(128));
        assert_eq!(
            model.warnings,
            [
                "1 lines are parts of jobs that have a line of their own; they are skipped",
                "2 jobs have no run time or one of 0; they are skipped",
                "1 jobs have no submit time; they are skipped",
                "1 jobs have no processors; they are skipped",
                "1 jobs followed a preceding one; here they arrive when they were submitted",
            ]
        );
    }

    #[test]
    fn a_job_can_be_one_task() {
        let model = read(JOBS.as_bytes(), Processors::OneTask).unwrap();
        assert_eq!(tasks(&model), [("job7-u3", 0, 60_000), ("job8", 10, 500)]);
    }

    #[test]
    fn a_part_of_a_log() {
        let part = |jobs, from, until: Option<u64>| {
            let window = Window { from: Span::from_s(from), until: until.map(Span::from_s) };
            read_part(JOBS.as_bytes(), Processors::OneTask, jobs, &window)
        };
        let (seven, eight) = (("job7-u3", 0, 60_000), ("job8", 10, 500));
        assert_eq!(tasks(&part(Some(1), 0, None).unwrap()), [seven]);
        assert_eq!(tasks(&part(Some(9), 0, None).unwrap()), [seven, eight]);
        assert_eq!(tasks(&part(None, 0, Some(10)).unwrap()), [seven]);
        assert_eq!(tasks(&part(None, 1, None).unwrap()), [("job8", 9, 500)]);
        let none = part(None, 100, Some(300)).unwrap_err().to_string();
        assert_eq!(none, "none of its 7 jobs was submitted from 100s until 300s");
    }

    #[test]
    fn jobs_with_other_numbers_of_fields() {
        let text = "2 20 0 1 1\n1 10 0 1 2 -1 -1 2 -1 -1 1 7 1 1 1 1 -1 -1 99\n";
        let model = read(text.as_bytes(), Processors::OneTask).unwrap();
        assert_eq!(tasks(&model), [("job2", 0, 1000), ("job1-u7", 0, 1000)]);
        assert_eq!(
            model.warnings,
            [
                "2 jobs do not have the format's 18 fields: more are not used, missing ones are \
                 unknown",
                "1 jobs were submitted before the first one of the log; they arrive with it",
            ]
        );
    }

    #[test]
    fn malformed_logs() {
        let line = |second: &str| format!("; a\n1 {second} 1 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1");
        for (text, error) in [
            ("; only a header\n".into(), "there is no job, which is a line of 18 numbers"),
            ("1 2 3".into(), "line 1: 3 fields of 18, of which it needs 5: 1 2 3"),
            (line("x 0"), "line 2: field 2 is `x`, which is no number"),
            (line("NaN 0"), "line 2: field 2 is `NaN`, which is no number"),
            (
                line("1e3 0"),
                "line 2: field 2 is `1e3`: seconds are written as digits, with a decimal point if \
                 need be",
            ),
            (line("99999999999 0"), "line 2: field 2 is `99999999999`: longer than 584 years"),
            (
                "1 0 0 1 1.5 1 -1 -1 1 1 -1 1 1 1 1 1 -1 -1".into(),
                "line 1: field 5 is `1.5`, which is no number of processors",
            ),
            (
                "1 0 0 1 99999999 1 -1 -1 1 1 -1 1 1 1 1 1 -1 -1".into(),
                "line 1: with this job there are more than 2097152 tasks; take a part of the log \
                 (`jobs`, `from`, `until`: --jobs 1000, or --from 0s --until 7200s), or one task \
                 for each job (`processors`: --set processors=one-task)",
            ),
        ] {
            let found = read(text.as_bytes(), Processors::TaskEach).unwrap_err();
            assert_eq!(found.to_string(), error, "{text}");
        }
    }
}
