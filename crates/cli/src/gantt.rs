//! `anysched gantt`.

use crate::args::{GanttArgs, GanttFormat};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use anysched_lab::gantt::{Asked, Form, gantt as draw};
use anysched_lab::output::Inputs;
use std::io::Write;

/// The widest picture.
const WIDEST: usize = 100;

pub fn gantt(args: &GanttArgs) -> Result<(), Failure> {
    let experiment = choose::experiment(&args.selection)?;
    let plan = choose::plan(&experiment)?;
    choose::require_run(&plan, args.group, args.seed)?;
    if let Some(until) = args.until.filter(|&until| until <= args.from) {
        let from = args.from;
        return Err(Failure::from(format!("--until {until}: it has to be after --from {from}")));
    }
    let host = hosts::open(args.host.host);
    let inputs = Inputs::of(plan.inputs());
    output::require_places(&args.out, &inputs)?;
    let width = args.columns.map_or_else(output::columns, usize::from).clamp(30, WIDEST);
    let asked = Asked {
        group: args.group,
        seed: args.seed,
        tasks: args.tasks,
        from: args.from,
        until: args.until,
        marks: args.marks,
        form: match args.format {
            GanttFormat::Text => Form::Text(width),
            GanttFormat::Svg => Form::Svg,
        },
    };
    let text = draw(&plan, &*host, &asked)?;
    match &args.out {
        Some(path) => output::write_named(path, &inputs, |out| out.write_all(text.as_bytes())),
        None => output::print(&text),
    }
}
