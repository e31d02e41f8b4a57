//! `anysched gantt`.

use crate::args::{GanttArgs, GanttFormat};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use anysched_core::Time;
use anysched_host::{Outcome, Watch};
use anysched_lab::output::Inputs;
use anysched_trace::gantt::{Gantt, NAMES, SVG_COLUMNS, svg};
use anysched_trace::{Event, Sink, TaskInfo};
use std::io::Write;

/// The widest picture.
const WIDEST: usize = 100;

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

pub fn gantt(args: &GanttArgs) -> Result<(), Failure> {
    let experiment = choose::experiment(&args.selection)?;
    let plan = choose::plan(&experiment)?;
    choose::require_run(&plan, args.group, args.seed)?;
    if let Some(until) = args.until.filter(|&until| until <= args.from) {
        let from = args.from;
        return Err(Failure::from(format!("--until {until}: it has to be after --from {from}")));
    }
    let from = Time::ZERO + args.from;
    let host = hosts::open(args.host.host);
    let traced = |sink: &mut dyn Sink, policy: usize| {
        let watch = Watch { trace: Some(sink), ..Watch::default() };
        plan.run_one(&*host, args.group, policy, args.seed, watch)
    };
    let inputs = Inputs::of(plan.inputs());
    output::require_places(&args.out, &inputs)?;
    let width = args.columns.map_or_else(output::columns, usize::from).clamp(30, WIDEST);
    let columns = match args.format {
        GanttFormat::Text => width - NAMES,
        GanttFormat::Svg => SVG_COLUMNS,
    };
    let mut pictures = Vec::new();
    for (number, entry) in plan.policies().iter().enumerate() {
        // The picture's scale is known only after a run, so the run is made twice.
        let mut end = End(Time::ZERO);
        let Outcome { metrics, .. } = traced(&mut end, number)?;
        let End(last) = end;
        let setup = plan.setup(args.group, number);
        let cut = metrics.unfinished.get() > Some(0) && setup.until != Time::NEVER;
        let end = if cut { setup.until } else { last };
        let until = args.until.map_or(end, |until| end.min(Time::ZERO + until));
        if until <= from {
            let (from, label, end) = (args.from, &entry.label, end.since(Time::ZERO));
            return Err(Failure::from(format!("--from {from}: the run of {label} ends at {end}")));
        }
        let mut gantt = Gantt::new(setup.machine.cpus(), from, until, columns, args.tasks);
        if args.marks || args.format == GanttFormat::Svg {
            gantt = gantt.with_marks();
        }
        traced(&mut gantt, number)?;
        gantt.finish(until);
        pictures.push(gantt);
    }
    let labels = plan.policies().iter().map(|entry| entry.label.as_str());
    let text = match args.format {
        GanttFormat::Text => {
            let each = labels.zip(&pictures).map(|(label, picture)| format!("{label}\n{picture}"));
            each.collect::<String>() + &Gantt::legend(&pictures, width)
        }
        GanttFormat::Svg => {
            let all: Vec<(&str, &Gantt)> = labels.zip(&pictures).collect();
            svg(plan.title().unwrap_or(plan.question()), &all)
        }
    };
    match &args.out {
        Some(path) => output::write_named(path, &inputs, |out| out.write_all(text.as_bytes())),
        None => output::print(&text),
    }
}
