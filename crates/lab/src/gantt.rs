//! Gantt charts of runs of an experiment.

use crate::plan::Plan;
use crate::plan::run::RunError;
use anysched_core::{Span, Time};
use anysched_host::{Host, Outcome, Watch};
use anysched_trace::gantt::{Gantt, NAMES, SVG_COLUMNS, svg};
use anysched_trace::{Event, Sink, TaskInfo};
use std::fmt;

/// What is drawn, of each policy of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The group, as it is numbered in the plan.
    pub group: usize,
    /// Which of the seeds of its rows, from 0.
    pub seed: u32,
    /// How many lines tasks have at most.
    pub tasks: usize,
    /// Where the picture begins.
    pub from: Span,
    /// Where it ends, if not with the run.
    pub until: Option<Span>,
    /// Whether marks say when tasks become ready and are preempted. An SVG always has them.
    pub marks: bool,
    /// What it becomes.
    pub form: Form,
}

/// What a picture is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Characters, so many in a line; at least 30.
    Text(usize),
    /// An SVG, light or dark as the page that it is on.
    Svg,
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A run could not be made.
    Run(RunError),
    /// The run of this policy ends before the picture begins.
    Ended {
        /// Where the picture begins.
        from: Span,
        /// The policy's label.
        label: String,
        /// When its run ends.
        end: Span,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Run(error) => write!(f, "{error}"),
            Refused::Ended { from, label, end } => {
                write!(f, "--from {from}: the run of {label} ends at {end}")
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Records the time of the last event.
struct End(Time);

impl Sink for End {
    fn task(&mut self, _: &TaskInfo<'_>) {}
    fn event(&mut self, event: &Event) {
        self.0 = event.time;
    }
    fn vm_event(&mut self, _: usize, event: &Event) {
        self.0 = event.time;
    }
}

/// The chart of one run for each policy of `plan`. The group and the seed have to be there.
///
/// Errors: a run cannot be made, or ends before the picture begins.
pub fn gantt(plan: &Plan, host: &dyn Host, asked: &Asked) -> Result<String, Refused> {
    let pictures = (0..plan.policies().len()).map(|policy| picture(plan, host, asked, policy));
    let pictures: Vec<Gantt> = pictures.collect::<Result<_, _>>()?;
    let labels = plan.policies().iter().map(|entry| entry.label.as_str());
    Ok(match asked.form {
        Form::Text(width) => {
            let each = labels.zip(&pictures).map(|(label, picture)| format!("{label}\n{picture}"));
            each.collect::<String>() + &Gantt::legend(&pictures, width)
        }
        Form::Svg => {
            let all: Vec<(&str, &Gantt)> = labels.zip(&pictures).collect();
            svg(plan.title().unwrap_or(plan.question()), &all)
        }
    })
}

fn picture(plan: &Plan, host: &dyn Host, asked: &Asked, policy: usize) -> Result<Gantt, Refused> {
    let Asked { group, seed, tasks, from, .. } = *asked;
    let traced = |sink: &mut dyn Sink| {
        let watch = Watch { trace: Some(sink), ..Watch::default() };
        plan.run_one(host, group, policy, seed, watch).map_err(Refused::Run)
    };
    let columns = match asked.form {
        Form::Text(width) => width.max(30) - NAMES,
        Form::Svg => SVG_COLUMNS,
    };
    // The picture's scale is known only after a run, so the run is made twice.
    let mut end = End(Time::ZERO);
    let Outcome { metrics, .. } = traced(&mut end)?;
    let End(last) = end;
    let setup = plan.setup(group, policy);
    let cut = metrics.unfinished.get() > Some(0) && setup.until != Time::NEVER;
    let end = if cut { setup.until } else { last };
    let until = asked.until.map_or(end, |until| end.min(Time::ZERO + until));
    let start = Time::ZERO + from;
    if until <= start {
        let label = plan.policies()[policy].label.clone();
        return Err(Refused::Ended { from, label, end: end.since(Time::ZERO) });
    }
    let mut gantt = Gantt::new(setup.machine.cpus(), start, until, columns, tasks);
    if asked.marks || asked.form == Form::Svg {
        gantt = gantt.with_marks();
    }
    traced(&mut gantt)?;
    gantt.finish(until);
    Ok(gantt)
}
