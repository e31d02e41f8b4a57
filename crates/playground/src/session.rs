//! Answers, and what is kept between them.

use crate::lists;
use crate::request::{Refused, Request, Source, decoded};
use anysched_core::Span;
use anysched_lab::gantt::{Asked, Form, gantt};
use anysched_lab::imported::experiment_of;
use anysched_lab::output::report::{Origin, Told, document};
use anysched_lab::output::{json as results_json, table};
use anysched_lab::{Error, Experiment, Group, Plan, Progress, Results, RunOptions};
use anysched_sim::{HOST, Simulator};
use anysched_workload::import::{IMPORTERS, ImporterInfo, LOOK, Options, input};
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::atomic::AtomicBool;

/// Lines for tasks in a Gantt chart, as the command has them unless told otherwise.
const TASKS: usize = 20;
/// Columns of one in characters.
const COLUMNS: usize = 100;

/// JSON, and the blocks of timelines.
#[derive(Debug)]
pub struct Answer {
    /// The JSON.
    pub json: String,
    /// What happened in each timeline, and why, in turn.
    pub blocks: Vec<Vec<u8>>,
}

/// What was run last.
#[derive(Debug, Default)]
pub struct Session(Option<Ran>);

#[derive(Debug)]
struct Ran {
    experiment: Experiment,
    plan: Plan,
    results: Results,
}

/// How far a run is: runs that are done, with parts of those under way, and runs in all.
type Far<'a> = dyn Fn(f64, f64) + Sync + 'a;

impl Session {
    /// Answers a request; while runs are made, `far` is told how far they are.
    pub fn answer(&mut self, request: &str, far: &Far<'_>) -> Answer {
        let asked: Result<Request, _> = serde_json::from_str(request);
        let answered = match asked {
            Ok(asked) => self.met(asked, far),
            Err(error) => Err(Refused::Other(format!("not a request: {error}"))),
        };
        let plain = |value: Value| Answer { json: value.to_string(), blocks: Vec::new() };
        answered.unwrap_or_else(|refused| plain(json!({ "error": told(&refused) })))
    }

    fn met(&mut self, request: Request, far: &Far<'_>) -> Result<Answer, Refused> {
        let value = match request {
            Request::About => lists::about(),
            Request::Built { name } => {
                let (path, toml) = lists::built(&name)?;
                json!({ "path": path, "toml": toml })
            }
            Request::Read { experiment } => read(&experiment)?,
            Request::Run { experiment } => self.run(&experiment, far)?,
            Request::Report { file, command, changes, events } => {
                return self.report(file, [command, changes], events);
            }
            Request::Gantt { group, from, until } => self.gantt(group, from, until)?,
            Request::Import { name, bytes } => import(&name, decoded(&name, &bytes)?)?,
        };
        Ok(Answer { json: value.to_string(), blocks: Vec::new() })
    }

    fn run(&mut self, source: &Source, far: &Far<'_>) -> Result<Value, Refused> {
        self.0 = None;
        let (experiment, plan) = planned(source)?;
        let (plan, apart) = plan.with_loads_apart();
        let cancel = AtomicBool::new(false);
        let progress = |now: &Progress<'_>| far(now.progress, now.total as f64);
        let options = RunOptions {
            host: &Simulator,
            jobs: 1,
            cancel: &cancel,
            journal: None,
            progress: &progress,
        };
        let results = plan.run(&options).map_err(|error| error.to_string())?;
        let shown = if apart { results.without_loads_apart() } else { results.clone() };
        let warnings = plan.warnings().to_vec();
        let runs = plan.runs();
        let title = |group: &Group| group.title().trim_end_matches([':', ' ']).to_string();
        let groups: Vec<String> = plan.groups().map(title).collect();
        self.0 = Some(Ran { experiment, plan, results });
        Ok(json!({
            "table": table(&shown),
            "results": results_json(&shown),
            "warnings": warnings,
            "runs": runs,
            "groups": groups,
        }))
    }

    fn ran(&self) -> Result<&Ran, Refused> {
        self.0.as_ref().ok_or_else(|| "nothing has been run".to_string().into())
    }

    fn report(
        &self,
        file: String,
        [command, changes]: [String; 2],
        events: u64,
    ) -> Result<Answer, Refused> {
        let Ran { experiment, plan, results } = self.ran()?;
        let text = experiment.text().to_string();
        let origin = Origin { file, text, command, changes };
        let told = Told::of_run(results, plan, &Simulator, &origin, events);
        let told = [told.map_err(|error| error.to_string())?];
        let (json, blocks) = document(&told);
        let blocks = blocks.into_iter().flat_map(|[events, choices]| [events, choices]);
        Ok(Answer { json, blocks: blocks.cloned().collect() })
    }

    fn gantt(
        &self,
        group: usize,
        from: Option<String>,
        until: Option<String>,
    ) -> Result<Value, Refused> {
        let Ran { plan, .. } = self.ran()?;
        let groups = plan.groups().len();
        if group >= groups {
            return Err(format!("group {group}: they go from 0 to {}", groups - 1).into());
        }
        let time = |text: Option<String>| text.map(|text| Span::parse(&text)).transpose();
        let from = time(from).map_err(|error| format!("from: {error}"))?;
        let until = time(until).map_err(|error| format!("until: {error}"))?;
        let from = from.unwrap_or(Span::ZERO);
        if let Some(until) = until.filter(|&until| until <= from) {
            return Err(format!("until {until}: it has to be after from {from}").into());
        }
        let drawn = |form, marks| {
            let asked = Asked { group, seed: 0, tasks: TASKS, from, until, marks, form };
            gantt(plan, &Simulator, &asked)
                .map_err(|error| error.to_string().trim_start_matches("--").to_string())
        };
        Ok(json!({ "svg": drawn(Form::Svg, true)?, "text": drawn(Form::Text(COLUMNS), true)? }))
    }
}

/// An error as the page has it.
fn told(refused: &Refused) -> Value {
    match refused {
        Refused::Other(why) => json!({ "text": why }),
        Refused::Experiment(error) => {
            let place = error.location();
            json!({
                "text": Error::to_snippet(error, false),
                "line": place.map(|(line, _)| line),
                "column": place.map(|(_, column)| column),
                "remedy": error.remedy(),
            })
        }
    }
}

/// The plan of an experiment, for the simulator.
fn planned(source: &Source) -> Result<(Experiment, Plan), Refused> {
    let experiment = source.experiment()?;
    let plan = experiment.plan()?;
    plan.require(&HOST).map_err(|error| error.to_string())?;
    Ok((experiment, plan))
}

fn read(source: &Source) -> Result<Value, Refused> {
    // What the text has, whatever is chosen of it.
    let whole = Source { policies: Vec::new(), ..source.clone() };
    let known = whole.experiment()?;
    let entries: Vec<Value> = known
        .entries()
        .iter()
        .map(|entry| json!({ "label": entry.label, "name": entry.info.name }))
        .collect();
    let (experiment, plan) = planned(source)?;
    Ok(json!({
        "name": experiment.name(),
        "question": experiment.question(),
        "title": plan.title(),
        "policies": entries,
        "machine": plan.groups().next().map(|group| group.machine.to_string()),
        "seeds": plan.seeds(),
        "runs": plan.runs(),
        "warnings": plan.warnings(),
    }))
}

/// Reads a file by the importer whose format it begins like.
fn import(name: &str, bytes: Vec<u8>) -> Result<Value, Refused> {
    let mut file = Cursor::new(bytes);
    let start = input::beginning(&mut file, LOOK);
    let start = start.map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let format = ImporterInfo::recognise(&start).ok_or_else(|| {
        let known: Vec<&str> = IMPORTERS.iter().map(|importer| importer.name).collect();
        format!("{name}: it begins as no known format does; there are {}", known.join(", "))
    })?;
    file.set_position(0);
    let options = Options { format, values: vec![("file", name)] };
    let read = (format.read)(&mut file, name, &options);
    let model = read.map_err(|error| error.of(name))?.into_model();
    model.validate().map_err(|error| format!("{name}: {error}"))?;
    if model.tasks.iter().all(|task| task.arrives.is_none()) {
        return Err(format!("{name}: no task arrives, so there is nothing to run").into());
    }
    let kind = format.aliases.first().copied().unwrap_or(format.name);
    Ok(json!({
        "format": format.name,
        "tasks": model.tasks.len(),
        "toml": experiment_of(&model, name, kind, name),
        "warnings": model.warnings,
    }))
}
