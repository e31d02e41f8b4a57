//! Files of SimSo, a simulator of real-time scheduling (<https://projects.laas.fr/simso/>; the
//! format as its parser of version 0.8 reads it).
//!
//! | in the file | becomes |
//! |---|---|
//! | `task` of type Periodic | releases at its period, from its activation date |
//! | of type Sporadic or APeriodic | releases at its `list_activation_dates` |
//! | `followed_by` | the end of each job wakes the other task |
//! | `WCET`, `ACET` | CPU time of a job, as `etm` says; random times around `ACET` are taken as it |
//! | `deadline` | relative deadline |
//! | `duration`, `cycles_per_ms` | the end of the load |
//! | `processor` | CPUs of the machine |
//!
//! What has no meaning here (caches, overheads, speeds, aborted jobs) is named in warnings.

use super::{ImportError, Imported, Importer, Input, ReadError, excerpt, open, text};
use crate::kinds::{FileName, keys};
use crate::model::{Model, ModelTask, Script};
use crate::{Channel, NewTask, Op, Sizes};
use anysched_core::{Span, Time};
use roxmltree::{Document, Node};
use std::io::Read;
use std::sync::Arc;

keys! {
    /// The keys of a load that is a file of SimSo.
    pub struct SimSo {
        /// The file, plain or packed.
        file: FileName = needed, eg "tasks.xml";
    }
}

impl Importer for SimSo {
    const FORMAT: &'static str = "simso";
    const ENDINGS: &'static [&'static str] = &[".xml"];

    fn file(&self) -> &FileName {
        &self.file
    }

    fn begins(start: &[u8]) -> bool {
        text(start).is_some_and(|text| {
            text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
                && text.contains("<simulation")
        })
    }

    fn import(&self, input: &mut dyn Input, _: &str) -> Result<Imported, ReadError> {
        Ok(Imported::Model(read(input)?))
    }
}

/// Larger files are refused.
const MAX_TEXT: u64 = 16 << 20;
/// The most activation dates of all tasks.
const MAX_DATES: usize = 1 << 20;

/// Reads a file.
///
/// Errors, with line and column: it is no XML, or a value is missing or out of range.
pub fn read(input: impl Read) -> Result<Model, ImportError> {
    let mut bytes = Vec::new();
    open(input)?.take(MAX_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TEXT {
        let what = format!("longer than {MAX_TEXT} bytes: this is not such a text");
        return Err(ImportError::whole(what));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| ImportError::whole("not UTF-8; save the file as UTF-8"))?;
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        ImportError::at(at.row.into(), at.col.into(), format!("no XML: {error}"))
    })?;
    Reader { document: &document, warnings: Vec::new() }.read()
}

struct Reader<'a> {
    document: &'a Document<'a>,
    warnings: Vec<String>,
}

/// A task as the file describes it.
struct Task {
    id: i64,
    name: String,
    is_periodic: bool,
    first: Span,
    period: Span,
    run: Span,
    deadline: Span,
    dates: Vec<Span>,
    followed_by: Option<i64>,
}

impl<'a> Reader<'a> {
    fn error<T>(&self, node: Node<'_, '_>, what: impl Into<String>) -> Result<T, ImportError> {
        let at = self.document.text_pos_at(node.range().start);
        Err(ImportError::at(at.row.into(), at.col.into(), what))
    }

    fn all(&self, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> + use<'a> {
        self.document.descendants().filter(move |node| node.has_tag_name(name))
    }

    fn warn(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.warnings.contains(&what) {
            self.warnings.push(what);
        }
    }

    fn number(&self, node: Node<'_, '_>, key: &str) -> Result<Option<f64>, ImportError> {
        let Some(text) = node.attribute(key) else { return Ok(None) };
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => self.error(node, format!("`{key}` is \"{}\", which is no number", excerpt(text))),
        }
    }

    /// A time in ms.
    fn span(&self, node: Node<'_, '_>, key: &str) -> Result<Option<Span>, ImportError> {
        let Some(ms) = self.number(node, key)? else { return Ok(None) };
        match span_of_ms(ms) {
            Some(span) => Ok(Some(span)),
            None => self.error(node, format!("`{key}` = {ms} ms is longer than 584 years")),
        }
    }

    fn read(mut self) -> Result<Model, ImportError> {
        let Some(simulation) = self.all("simulation").next() else {
            return self.error(self.document.root_element(), "this has no element `simulation`");
        };
        let cycles_per_ms = self.number(simulation, "cycles_per_ms")?.unwrap_or(1e6);
        let duration = self.number(simulation, "duration")?.unwrap_or(50_000.0);
        let until = span_of_ms(duration / cycles_per_ms).filter(|&until| until > Span::ZERO);
        let Some(until) = until else {
            return self
                .error(simulation, "`duration` and `cycles_per_ms` make no time that passes");
        };
        let use_wcet =
            simulation.attribute("use_wcet").is_none_or(|text| matches!(text, "true" | "yes"));
        let etm = simulation.attribute("etm").unwrap_or(if use_wcet { "wcet" } else { "cache" });
        match etm {
            "wcet" | "acet" => {}
            "cache" => self.warn("execution times by a model of caches are taken as WCET"),
            other => {
                self.warn(format!("the execution time model {} is taken as wcet", excerpt(other)))
            }
        }
        if let Some(sched) = self.all("sched").next() {
            let named =
                sched.attribute("class").or(sched.attribute("className")).unwrap_or_default();
            self.warn(format!(
                "its scheduler is {}: name a policy to run it under",
                excerpt(named)
            ));
        }
        let cpus = self.all("processor").count() as u32;
        if self
            .all("processor")
            .any(|cpu| cpu.attribute("speed").is_some_and(|s| s.parse() != Ok(1.0)))
        {
            self.warn("the speeds of processors have no effect");
        }
        if self.all("cache").next().is_some() {
            self.warn("caches have no effect");
        }
        let mut tasks = Vec::new();
        let mut dates = 0;
        let nodes: Vec<_> = self.all("task").collect();
        for node in nodes {
            let task = self.task(node, etm == "acet")?;
            dates += task.dates.len();
            if dates > MAX_DATES {
                return self
                    .error(node, format!("with this there are more than {MAX_DATES} dates"));
            }
            tasks.push(task);
        }
        if tasks.is_empty() {
            return self.error(simulation, "there are no tasks");
        }
        Ok(self.model(&tasks, until, cpus))
    }

    fn task(&mut self, node: Node<'a, 'a>, acet: bool) -> Result<Task, ImportError> {
        let Some(name) = node.attribute("name") else {
            return self.error(node, "this task has no name");
        };
        let kind = node.attribute("task_type").unwrap_or(match node.attribute("periodic") {
            Some("no") => "APeriodic",
            _ => "Periodic",
        });
        let is_periodic = match kind {
            "Periodic" => true,
            "Sporadic" | "APeriodic" => false,
            other => {
                let other = excerpt(other);
                return self.error(
                    node,
                    format!("no type of tasks is called {other}: Periodic, APeriodic, Sporadic"),
                );
            }
        };
        let id = self.number(node, "id")?.map_or(-1, |id| id as i64);
        let period = self.span(node, "period")?.unwrap_or_default();
        if is_periodic && period == Span::ZERO {
            return self.error(node, "this task is periodic, but its `period` is 0");
        }
        let key = if acet { "ACET" } else { "WCET" };
        let Some(run) = self.span(node, key)? else {
            return self.error(node, format!("this task has no `{key}`"));
        };
        if acet && self.number(node, "et_stddev")?.is_some_and(|deviation| deviation > 0.0) {
            self.warn("random execution times are taken as ACET");
        }
        if node.attribute("abort_on_miss") == Some("yes") {
            self.warn("jobs that miss their deadline are done and not aborted");
        }
        if self.number(node, "preemption_cost")?.is_some_and(|cost| cost > 0.0) {
            self.warn("costs of preemption have no effect: the machine has its own");
        }
        let deadline = self.span(node, "deadline")?.filter(|&span| span > Span::ZERO);
        let mut dates = Vec::new();
        let list = node.attribute("list_activation_dates").unwrap_or_default();
        for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let date = text.parse::<f64>().ok().and_then(span_of_ms);
            let Some(date) = date else {
                return self
                    .error(node, format!("the date \"{}\" is no time in ms", excerpt(text)));
            };
            dates.push(date);
        }
        dates.sort_unstable();
        Ok(Task {
            id,
            name: name.to_string(),
            is_periodic,
            first: self.span(node, "activationDate")?.unwrap_or_default(),
            period,
            run,
            deadline: deadline.unwrap_or(if is_periodic { period } else { Span::MAX }),
            dates,
            followed_by: self.number(node, "followed_by")?.map(|id| id as i64),
        })
    }

    fn model(mut self, tasks: &[Task], until: Span, cpus: u32) -> Model {
        let place = |id: i64| tasks.iter().position(|task| task.id == id).map(|at| at as u32);
        let followers: Vec<Option<u32>> =
            tasks.iter().map(|task| task.followed_by.and_then(place)).collect();
        if tasks.iter().zip(&followers).any(|(task, to)| task.followed_by.is_some() && to.is_none())
        {
            self.warn("a task is followed by one that is not there");
        }
        let mut model = Model {
            sizes: Sizes { channels: tasks.len() as u32, ..Sizes::default() },
            cpus: (cpus > 0).then_some(cpus),
            until: Some(Time::ZERO + until),
            ..Model::default()
        };
        for (at, task) in tasks.iter().enumerate() {
            let signal = followers[at].map(|to| Op::Signal(Channel(to)));
            let job = || std::iter::once(Op::Run(task.run)).chain(signal.clone());
            let follows = followers.contains(&Some(at as u32));
            let after = |span: Span| match task.deadline {
                Span::MAX => None,
                deadline => {
                    span.0.checked_add(deadline.0).map(Time).filter(|&at| at != Time::NEVER)
                }
            };
            let release = |span: Span| Op::Release { at: Time(span.0), deadline: after(span) };
            let mut script = Script::default();
            let mut arrives = Span::ZERO;
            if task.is_periodic {
                if follows {
                    self.warn(format!(
                        "`{}` is periodic; that it follows another has no effect",
                        excerpt(&task.name)
                    ));
                }
                arrives = task.first;
                script.ops = job().chain([release(task.period)]).collect();
                script.rounds = (until.0.saturating_sub(arrives.0)).div_ceil(task.period.0).max(1);
            } else if let Some((&first, _)) = task.dates.split_first() {
                arrives = first;
                script.ops = job().collect();
                for pair in task.dates.windows(2) {
                    script.ops.push(release(pair[1] - pair[0]));
                    script.ops.extend(job());
                }
            } else if follows {
                script.ops = std::iter::once(Op::Wait(Channel(at as u32))).chain(job()).collect();
                script.rounds = u64::MAX;
            } else {
                self.warn(format!("`{}` is never activated; it is left out", excerpt(&task.name)));
                continue;
            }
            if arrives >= until {
                continue;
            }
            let has_deadline =
                task.deadline != Span::MAX && (task.is_periodic || !task.dates.is_empty());
            let deadline = has_deadline.then(|| after(arrives)).flatten();
            model.tasks.push(ModelTask {
                new: NewTask {
                    name: Some(task.name.as_str().into()),
                    period: task.is_periodic.then_some(task.period),
                    budget: task.is_periodic.then_some(task.run),
                    relative_deadline: has_deadline.then_some(task.deadline),
                    deadline,
                    ..NewTask::default()
                },
                arrives: Some(Time::ZERO + arrives),
                script: Arc::new(script),
            });
        }
        model.warnings = self.warnings;
        model
    }
}

/// `None`: longer than 584 years, or no time.
fn span_of_ms(ms: f64) -> Option<Span> {
    let ns = libm::round(ms * 1e6);
    (ns >= 0.0 && ns < u64::MAX as f64 / 2.0).then_some(Span(ns as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"<?xml version="1.0"?>
<simulation cycles_per_ms="1000000" duration="100000000" etm="wcet">
  <sched class="simso.schedulers.EDF"/>
  <caches memory_access_time="100"/>
  <processors><processor id="1" name="1"/><processor id="2" name="2" speed="1.0"/></processors>
  <tasks>
    <task id="1" name="T1" task_type="Periodic" period="10" WCET="2.5" deadline="8"
      activationDate="5" instructions="0" mix="0.5" base_cpi="1.0" followed_by="2"
      abort_on_miss="no"/>
    <task id="2" name="T2" task_type="APeriodic" period="0" WCET="1" deadline="4"/>
    <task id="3" name="T3" task_type="Sporadic" period="7" WCET="1" deadline="4"
      list_activation_dates="20, 3"/>
    <task id="4" name="T4" task_type="APeriodic" period="0" WCET="1" deadline="4"/>
  </tasks>
</simulation>
"#;

    #[test]
    fn tasks_are_released_as_the_file_says() {
        let model = read(FILE.as_bytes()).unwrap();
        model.validate().unwrap();
        assert_eq!((model.cpus, model.until), (Some(2), Some(Time(100_000_000))));
        let ms = |ms: u64| Span(ms * 1_000_000);
        let release = |at, deadline| Op::Release {
            at: Time::ZERO + ms(at),
            deadline: Some(Time::ZERO + ms(deadline)),
        };
        let names: Vec<_> = model.tasks.iter().map(|t| t.new.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["T1", "T2", "T3"]);
        let [one, two, three] = &model.tasks[..] else { panic!() };
        assert_eq!(
            (one.arrives, one.new.deadline),
            (Some(Time::ZERO + ms(5)), Some(Time::ZERO + ms(13)))
        );
        assert_eq!(
            one.script.ops,
            [Op::Run(Span(2_500_000)), Op::Signal(Channel(1)), release(10, 18)]
        );
        assert_eq!(one.script.rounds, 10);
        assert_eq!(two.script.ops, [Op::Wait(Channel(1)), Op::Run(ms(1))]);
        assert_eq!(three.script.ops, [Op::Run(ms(1)), release(17, 21), Op::Run(ms(1))]);
        assert_eq!(three.arrives, Some(Time::ZERO + ms(3)));
        assert_eq!(
            model.warnings,
            [
                "its scheduler is simso.schedulers.EDF: name a policy to run it under",
                "`T4` is never activated; it is left out",
            ]
        );
    }

    #[test]
    fn malformed_files() {
        for (from, to, error) in [
            ("</tasks>", "", "line 15, column 1: no XML: "),
            (
                "period=\"10\"",
                "period=\"0\"",
                "line 7, column 5: this task is periodic, but its `period` is 0",
            ),
            ("WCET=\"2.5\"", "", "line 7, column 5: this task has no `WCET`"),
            ("WCET=\"2.5\"", "WCET=\"x\"", "line 7, column 5: `WCET` is \"x\", which is no number"),
            ("Periodic", "Peri", "line 7, column 5: no type of tasks is called Peri"),
            ("duration=\"100000000\"", "duration=\"0\"", "line 2, column 1: `duration` and"),
            ("20, 3", "20, x", "line 11, column 5: the date \"x\" is no time in ms"),
        ] {
            let refused = read(FILE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
            assert!(refused.starts_with(error), "{refused}");
        }
    }
}
