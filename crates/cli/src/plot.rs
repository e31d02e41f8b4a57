//! `anysched plot`.

use crate::args::{PlotArgs, PlotFormat, PlotKind};
use crate::choose;
use crate::hosts;
use crate::output::{self, Failure};
use crate::progress::with_bar;
use crate::run::{interrupted, kept};
use anysched_lab::output::{Bars, Chart, Inputs, Shape};
use anysched_lab::{Experiment, Plan, Results, RunOptions};
use std::io::Write;

pub fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let experiment = choose::with_seeds(&args.selection, args.seeds)?;
    let drawing = Drawing::of(args, &experiment)?;
    let plan = drawing.planned(choose::plan(&experiment)?);
    let inputs = Inputs::of(plan.inputs());
    if let Some(path) = &args.out {
        output::require_places([path], &inputs)?;
    }
    let cancel = output::cancel_on_interrupt()?;
    let host = hosts::open(args.host.host);
    let kept = kept(&plan, &*host)?;
    let run = |options: &RunOptions<'_>| plan.run(options);
    let results = with_bar(&*host, args.jobs, cancel, kept.as_ref(), run)?;
    let drawn = drawing.draw(args.format, &results);
    match &args.out {
        Some(path) => output::write_named(path, &inputs, |out| out.write_all(drawn.as_bytes()))?,
        None => output::print(&drawn)?,
    }
    if results.complete { Ok(()) } else { Err(interrupted(&results, None)) }
}

/// What is drawn.
enum Drawing {
    Lines(Chart),
    Bars(Bars),
}

impl Drawing {
    fn of(args: &PlotArgs, experiment: &Experiment) -> Result<Drawing, Failure> {
        let metrics: Vec<&str> = args.y.iter().map(String::as_str).collect();
        let shape = match (args.kind, &args.x) {
            (None | Some(PlotKind::Line), Some(axis)) => {
                let chart = experiment.chart(axis, &metrics, [args.log_x, args.log_y]);
                return Ok(Drawing::Lines(chart.map_err(Failure::pointing)?));
            }
            (Some(PlotKind::Line), None) => {
                return Err("--kind line: --x says along which axis".into());
            }
            (Some(PlotKind::Bar | PlotKind::Box), Some(axis)) => {
                return Err(format!(
                    "--x {axis}: bars and boxes have no axis; each of its values has a section \
                     without --x"
                )
                .into());
            }
            (None | Some(PlotKind::Bar), None) => Shape::Bar,
            (Some(PlotKind::Box), None) => Shape::Box,
        };
        let bars = experiment.bars(&metrics, shape, args.log_y);
        Ok(Drawing::Bars(bars.map_err(Failure::pointing)?))
    }

    /// The same runs, with all measured that is drawn.
    fn planned(&self, plan: Plan) -> Plan {
        match self {
            Drawing::Lines(chart) => plan.with_chart(chart),
            Drawing::Bars(bars) => plan.with_bars(bars),
        }
    }

    fn draw(&self, format: PlotFormat, results: &Results) -> String {
        match (self, format) {
            (Drawing::Lines(chart), PlotFormat::Svg) => chart.svg(results),
            (Drawing::Lines(chart), PlotFormat::Text) => chart.text(results),
            (Drawing::Bars(bars), PlotFormat::Svg) => bars.svg(results),
            (Drawing::Bars(bars), PlotFormat::Text) => bars.text(results),
        }
    }
}
