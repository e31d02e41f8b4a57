//! Job logs of parallel machines in the Standard Workload Format, version 2
//! (<https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>).
//!
//! One job per line, 18 numbers, −1 where one is unknown; `;` begins the header and comments. A job
//! becomes tasks that arrive when it was submitted and run as long as it ran. How long it waited in
//! the log's queue was the recorded scheduler's doing and is left out.
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

use super::{ImportError, Imported, Importer, Lines, ReadError, ReadTimes, excerpt, first_line};
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
        /// The log, plain or compressed with gzip.
        file: FileName = needed, eg "jobs.swf";
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

    fn begins(text: &str) -> bool {
        first_line(text).is_some_and(|line| {
            line.starts_with(';') || line.split_ascii_whitespace().count() == FIELDS
        })
    }

    fn import(&self, input: &mut dyn Read, _: &str) -> Result<Imported, ReadError> {
        Ok(Imported::Model(read(input, self.processors)?))
    }
}

/// The run times of the jobs.
fn times(input: &mut dyn Read, _: &str) -> Result<(Vec<Span>, Vec<String>), ReadError> {
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

/// Reads a log, plain or compressed with gzip, line by line. [`Model::cpus`] is the header's
/// `MaxProcs`.
///
/// Jobs without a run time, a submit time or processors are skipped, and counted in a warning.
///
/// Errors, with the line: not 18 fields, a field that is not a number or too large, or more than 2
/// 097 152 tasks.
pub fn read(input: impl Read, processors: Processors) -> Result<Model, ImportError> {
    let mut lines = Lines::of(input)?;
    let mut reader = Reader { processors, ..Reader::default() };
    while let Some((number, line)) = lines.next()? {
        reader.line(line.trim()).map_err(|what| ImportError::line(number, what))?;
    }
    if reader.jobs == 0 {
        return Err(ImportError::whole("there is no job, which is a line of 18 numbers"));
    }
    let Reader { mut model, skipped, dependent, .. } = reader;
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
    jobs: u64,
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
        let mut fields = [""; FIELDS];
        let mut count = 0;
        for word in line.split_ascii_whitespace() {
            if count < FIELDS {
                fields[count] = word;
            }
            count += 1;
        }
        if count != FIELDS {
            return Err(format!("{count} fields instead of {FIELDS}: {}", excerpt(line)));
        }
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
            return Err(format!("with this job there are more than {MAX_TASKS} tasks"));
        }
        let name: Arc<str> = match fields[11] {
            "-1" => format!("job{}", fields[0]).into(),
            user => format!("job{}-u{user}", fields[0]).into(),
        };
        let task = ModelTask {
            new: NewTask { name: Some(name), ..NewTask::default() },
            arrives: Some(Time::ZERO + submit),
            script: Arc::new(Script::once(vec![Op::Run(run)])),
        };
        self.model.tasks.extend(std::iter::repeat_n(task, tasks));
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
        let (seven, eight) = (("job7-u3", 100, 60_000), ("job8", 110, 500));
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
        assert_eq!(tasks(&model), [("job7-u3", 100, 60_000), ("job8", 110, 500)]);
    }

    #[test]
    fn malformed_logs() {
        let line = |second: &str| format!("; a\n1 {second} 1 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1");
        for (text, error) in [
            ("; only a header\n".into(), "there is no job, which is a line of 18 numbers"),
            ("1 2 3".into(), "line 1: 3 fields instead of 18: 1 2 3"),
            (
                line("0 0 5 7"),
                "line 2: 20 fields instead of 18: 1 0 0 5 7 1 1 -1 -1 1 1 -1 1 1 1 \
                                1 1 1 -1 -1",
            ),
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
                "line 1: with this job there are more than 2097152 tasks",
            ),
        ] {
            let found = read(text.as_bytes(), Processors::TaskEach).unwrap_err();
            assert_eq!(found.to_string(), error, "{text}");
        }
    }
}
